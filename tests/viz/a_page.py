"""A page in a real browser, with the operations that its tests need."""
import tempfile
import unittest
from pathlib import Path

from browser import SHOTS, chromium, errors, require_chromium, run

require_chromium()
from selenium.webdriver.common.by import By  # noqa: E402

TINY = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0", "-q"]


class Page(unittest.TestCase):
    program = ["pwviz"]
    arguments = []

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = Path(cls.folder.name, "page.html")
        cls.prepare()
        run(*cls.program, *cls.arguments, "-o", cls.path)
        cls.driver = chromium()
        cls.addClassCleanup(cls.driver.quit)
        SHOTS.mkdir(parents=True, exist_ok=True)

    @classmethod
    def prepare(cls):
        """Writes what the page is made of, and sets the arguments."""

    def setUp(self):
        self.driver.get("about:blank")
        self.driver.get(self.path.as_uri())

    def tearDown(self):
        self.assertEqual(errors(self.driver), [])

    def ask(self, expression):
        return self.driver.execute_script(f"return piecewise.{expression}")

    def keys(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def text(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def tab(self, name):
        self.driver.execute_script("tabs.open(arguments[0])", name)

    def next_frame(self):
        """Returns once all that is drawn by now is on the screen."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));")

    def shot(self, name):
        self.next_frame()
        self.driver.save_screenshot(str(SHOTS / f"{name}.png"))

    def on_screen(self, node):
        """Returns whether the middle of a node is inside the picture."""
        return self.all_on_screen([node]) == [node]

    def all_on_screen(self, nodes):
        """Returns those of the nodes whose middle is inside the picture, by one call into the page."""
        places = self.driver.execute_script("return arguments[0].map(node => piecewise.onScreen(node))", nodes)
        canvas = self.driver.find_element(By.CSS_SELECTOR, ".picture:not([hidden]) canvas").rect
        left, top = canvas["x"], canvas["y"]
        right, bottom = left + canvas["width"], top + canvas["height"]
        return [node for node, (x, y) in zip(nodes, places) if left <= x <= right and top <= y <= bottom]

    def texts(self, selector):
        """Returns the visible texts of all elements of a CSS selector."""
        return self.driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())", selector)

    def rows(self, selector):
        """Returns the visible texts of the cells of each table row of a CSS selector."""
        script = "return [...document.querySelectorAll(arguments[0])].map(tr => [...tr.querySelectorAll('td')].map(td => td.innerText.trim()))"
        return self.driver.execute_script(script, selector)

    def click_node(self, node):
        from selenium.webdriver.common.action_chains import ActionChains

        x, y = self.ask(f"onScreen({node})")
        ActionChains(self.driver).move_by_offset(0, 0).w3c_actions.pointer_action.move_to_location(int(x), int(y))
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(int(x), int(y))
        actions.w3c_actions.pointer_action.click()
        actions.perform()

    def drawn(self):
        """Returns the number of colours in the picture; a blank canvas has one."""
        return self.driver.execute_script(
            "stage.drawNow(); const c = stage.picture.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();"
            "for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size;"
        )
