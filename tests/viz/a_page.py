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
        x, y = self.ask(f"onScreen({node})")
        canvas = self.driver.find_element(By.CSS_SELECTOR, ".picture:not([hidden]) canvas").rect
        return canvas["x"] <= x <= canvas["x"] + canvas["width"] and canvas["y"] <= y <= canvas["y"] + canvas["height"]

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
