#!/usr/bin/python3
"""The page of `pwr serve` in a browser: a mistake typed and corrected, files dropped, a share file saved, by keyboard, light and dark."""
import json
import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "viz"))
from browser import SHOTS, chromium, errors, require_chromium  # noqa: E402
from serve_client import Serve, require_server, wait_for  # noqa: E402

require_server()
require_chromium()
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

DUMP = Path("examples/tiny-decoder.fx.txt").read_text()
DROP = """
const [name, text] = arguments, data = new DataTransfer();
data.items.add(new File([text], name));
for (const kind of ['dragenter', 'dragover', 'drop'])
  document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Serve()
        cls.addClassCleanup(cls.server.end)
        cls.driver = chromium(1500, 900)
        cls.addClassCleanup(cls.driver.quit)
        SHOTS.mkdir(parents=True, exist_ok=True)

    def setUp(self):
        self.driver.get("about:blank")
        self.driver.get(self.server.address)
        self.settle()

    def tearDown(self):
        self.assertEqual(errors(self.driver), [])
        self.driver.execute_script("document.querySelector('#text').value = ''")  # a page without changes sends no request

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def settle(self, kind="good"):
        """Waits for an answer, and for the picture that came with it."""
        wait_for(lambda: self.find("#state").get_attribute("class") == kind)
        wait_for(lambda: not self.all("iframe.coming"))

    def write(self, old, new):
        """Types: `new` in place of `old`."""
        self.driver.execute_script(
            "const f = document.querySelector('#text'), at = f.value.indexOf(arguments[0]); f.focus(); f.setSelectionRange(at, at + arguments[0].length);",
            old,
        )
        self.find("#text").send_keys(new)

    def enters_picture(self):
        """Switches to the picture's frame; False if the page replaced the frame in between."""
        try:
            self.driver.switch_to.frame(self.find("#right iframe"))
        except StaleElementReferenceException:
            return False
        return True

    def in_picture(self, expression):
        """A value of the viewer's page, once its script has run."""
        wait_for(self.enters_picture)
        try:
            wait_for(lambda: self.driver.execute_script("return typeof data !== 'undefined'"))
            return self.driver.execute_script(f"return {expression}")
        finally:
            self.driver.switch_to.default_content()

    def drop(self, name, text):
        self.driver.execute_script(DROP, name, text)

    def shot(self, name):
        time.sleep(0.4)  # the next frames
        self.driver.save_screenshot(str(SHOTS / f"serve-{name}.png"))

    def dark(self, on):
        media = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})

    def test_a_mistake_is_shown_where_it_is_and_the_graph_follows_when_it_is_mended(self):
        self.assertGreaterEqual(self.in_picture("piecewise.state('y') !== null && data.rewrites.length"), 2)
        self.shot("light")
        self.write("rms_norm(r, w)", "rms_nrom(r, w)")
        self.settle("bad")
        self.assertIn("1 mistake", self.find("#state").text)
        problem = self.find("#problems li.error").text
        self.assertRegex(problem, r"^✗5:7 unknown op `rms_nrom` PW0220")
        self.assertIn("help: did you mean `rms_norm`?", problem)
        marked = "".join(mark.text for mark in self.all("#colours .mark.error"))
        self.assertEqual(marked, "rms_nrom(r, w){eps}")
        self.assertIn("unknown op `rms_nrom` — did you mean `rms_norm`?", self.find("#colours .lens").text)
        self.assertTrue(self.find("#old").is_displayed())  # the last picture stays, marked as old
        self.shot("mistake")
        self.find("#problems button").click()
        self.assertEqual(
            self.driver.execute_script("const f = document.activeElement; return [f.id, f.value.slice(f.selectionStart, f.selectionStart + 8)]"),
            ["text", "rms_nrom"],
        )
        self.write("rms_nrom", "rms_norm")
        self.settle()
        self.assertFalse(self.find("#old").is_displayed())
        self.assertEqual(self.all("#colours .mark"), [])
        # Another rule: the graph changes.
        self.write("pipeline fuse", "rule gone { y = silu(x) => y = sigmoid(x) * x }\npipeline fuse")
        self.write("walk { add_norm }", "walk { gone }")
        self.settle()
        wait_for(lambda: self.in_picture("data.rewrites.length") == 1)
        self.assertEqual(self.in_picture("document.querySelector('h1').textContent"), "block")

    def test_files_are_dropped_and_a_share_file_saved(self):
        self.drop("tiny.fx.txt", DUMP)
        wait_for(lambda: self.find("#file").text == "tiny.fx.txt")
        self.settle()
        self.assertTrue(self.find("#symbols").is_displayed())
        self.find("#symbols").send_keys("n=arg0_1.0,arg1_1.0")
        self.drop("llm.pwr", 'use "llm"\n')
        wait_for(lambda: "llm" in self.driver.execute_script("return document.querySelector('#text').value"))
        self.settle()
        self.find("#run").send_keys("o2")
        wait_for(lambda: "ran o2" in self.find("#state").text)
        self.settle()
        self.assertGreater(self.in_picture("data.versions"), 5)
        self.assertIn("this is ", self.driver.execute_script("return document.querySelector('#log pre').textContent"))
        self.shot("library")
        self.driver.execute_script("URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return 'data:,'; }")
        self.find("#text").send_keys(Keys.CONTROL, "s")
        wait_for(lambda: self.driver.execute_script("return window.saved"))
        saved = self.driver.execute_script("return window.saved")
        share = json.loads(saved)
        self.assertEqual((share["rules"], share["pipeline"], share["graph"]["name"]), ('use "llm"\n', "o2", "tiny.fx.txt"))
        self.assertEqual((share["graph"]["symbols"], share["graph"]["text"]), (["n=arg0_1.0,arg1_1.0"], DUMP))
        # Another page opens it.
        self.driver.get("about:blank")
        self.driver.get(self.server.address)
        self.settle()
        self.drop("x.share", saved)
        wait_for(lambda: "ran o2" in self.find("#state").text)
        self.settle()
        self.assertGreater(self.in_picture("data.versions"), 5)
        self.assertEqual(self.find("#file").text, "tiny.fx.txt")

    def test_what_is_no_graph_is_refused_in_words(self):
        self.drop("picture.png", "\x89PNG\r\n\x1a\n")
        wait_for(lambda: "was not opened" in self.find("#state").text)
        self.assertIn("picture.png", self.find("#problems").text)
        self.assertEqual(self.find("#file").text, "block.pwg")

    def test_the_same_place_stays_in_view_where_somebody_looked_around(self):
        frame = self.find("#right iframe")
        frame.click()
        before = self.in_picture("location.hash")
        self.in_picture("piecewise.look(12, 34, 0.5)")
        wait_for(lambda: self.in_picture("location.hash") != before)  # the address follows after 200 ms
        self.write("// Change something", "// Change anything")
        self.settle()
        self.assertEqual(self.find("#right iframe"), frame)  # the picture is the same: it is not loaded again
        self.write("rule add_norm", "rule add_norms")
        self.write("walk { add_norm }", "walk { add_norms }")
        self.settle()
        wait_for(lambda: self.in_picture("data.rewrites.length") == 2)
        camera = self.in_picture("piecewise.camera()")
        self.assertEqual((camera["x"], camera["y"], camera["k"]), (12, 34, 0.5))

    def test_the_frame_reaches_nothing(self):
        messages = self.in_picture("(() => { try { return parent.document.title; } catch (e) { return e.name; } })()")
        self.assertEqual(messages, "SecurityError")

    def test_keys(self):
        self.find("#text").click()
        self.find("#text").send_keys(Keys.CONTROL, Keys.END)
        self.find("#text").send_keys("pass p = greedy {", Keys.ENTER, "add_norm", Keys.ENTER, Keys.BACKSPACE, Keys.BACKSPACE, "}")
        self.assertTrue(self.driver.execute_script("return document.querySelector('#text').value").endswith("pass p = greedy {\n  add_norm\n}"))
        self.settle()
        before = self.find("#left").size["width"]
        self.find("#text").send_keys(Keys.ESCAPE, Keys.TAB)
        self.assertNotEqual(self.driver.switch_to.active_element.get_attribute("id"), "text")
        self.find("#middle").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertGreater(self.find("#left").size["width"], before)

    def test_the_colours_lie_on_the_text(self):
        shown = self.driver.execute_script(
            "return [...document.querySelectorAll('#colours .line')].map(l => l.textContent.replace('\\u200b', '')).join('\\n')"
        )
        self.assertEqual(shown, self.driver.execute_script("return document.querySelector('#text').value"))
        text, colours = self.find("#text").rect, self.find("#colours").rect
        self.assertEqual((text["x"], text["y"]), (colours["x"], colours["y"]))
        kinds = {span.get_attribute("class"): span.text for span in self.all("#colours .line span")}
        self.assertEqual(kinds["c-call"][:3], kinds["c-call"].split("(")[0][:3])
        self.assertIn("c-contextual", kinds)
        self.assertIn("c-comment", kinds)

    def test_dark(self):
        self.dark(True)
        self.write("res, w){eps}", "res){eps}")
        self.settle("bad")
        self.shot("dark")
        self.assertEqual(self.driver.execute_script("return getComputedStyle(document.body).backgroundColor"), "rgb(21, 23, 26)")
        self.dark(False)


if __name__ == "__main__":
    unittest.main()
