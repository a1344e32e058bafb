#!/usr/bin/python3
"""The numbers of a report agree across its tabs and with the commands, and its first screen is readable."""
import json
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from a_page import TINY, Page  # noqa: E402
from browser import run  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

# Constants, weights that are transposed at load, a dead node, a duplicate, and an op without a kernel.
OPAQUE = """
graph opaque {
  symbol n in 1..64 tokens
  op my_op(...) effect
  in x: f32[n, 8]
  in weight w: f32[8, 8]
  c = constant(){dtype = f64, value = 2.0}
  d = constant(){dtype = f64, value = 3.0}
  t = transpose(w){dim0 = 0, dim1 = 1}
  a = mm(x, t)
  b: f32[n, 8] = my_op(a)
  e = mul(b, c)
  f = mul(b, c)
  unused = mul(b, d)
  y = add(e, f)
  out y
}
"""


def plain(text):
    """Returns the text without spaces, which group digits."""
    return re.sub(r"\s", "", text)


class Numbers(Page):
    """The demo, whose weights are transposed at load."""

    program = ["pwr", "report"]
    graph = TINY

    @classmethod
    def prepare(cls):
        cls.arguments = [*cls.graph, "-r", "llm", "-p", "o2"]

    def json(self, command):
        return json.loads(run("pwr", command, *self.arguments, "--format", "json"))

    def rows(self, table):
        read = "return [...arguments[0].tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))"
        return self.driver.execute_script(read, table)

    def pieces(self):
        """Returns the nodes of each piece and class, and the words above them."""
        self.tab("pieces")
        classes, pieces = self.driver.find_elements(By.CSS_SELECTOR, "#pieces table")
        return {row[0]: row[2:4] for row in self.rows(classes)}, {row[0]: row[2] for row in self.rows(pieces)}, self.text("#pieces")

    def test_nodes_before_and_after(self):
        run("pwr", "opt", *self.arguments, "-o", Path(self.folder.name, "after.json"))
        before = json.loads(run("pwr", "stats", *self.graph, "--format", "json"))["nodes"]
        after = json.loads(run("pwr", "stats", Path(self.folder.name, "after.json"), "-q", "--format", "json"))["nodes"]
        self.assertEqual(plain(self.driver.find_element(By.CSS_SELECTOR, ".card b").text), f"{before}→{after}")
        self.tab("graph")
        table = self.rows(self.driver.find_element(By.CSS_SELECTOR, "#passes table"))
        self.assertEqual([plain(row[1]) for row in table if row[0] in ("all passes", "input")], [str(after), str(before)])

    def test_passes(self):
        self.tab("graph")
        shown = [(row[0], plain(row[1])) for row in self.rows(self.driver.find_element(By.CSS_SELECTOR, "#passes table"))]
        for row in self.json("opt")["passes"]:
            if row["nodes_before"] != row["nodes_after"]:
                self.assertIn((row["pass"], str(row["nodes_after"])), shown)

    def test_the_pass_that_changed_most(self):
        self.tab("graph")
        pattern = r"Pass (\S+) changed most: ([\d\s]+) nodes? added, ([\d\s]+) removed, [\d\s]+ changed(?:; ([\d\s]+) constants? (fewer|more))?\."
        name, *numbers, direction = re.search(pattern, self.text("#summary")).groups(default="0")
        added, removed, constants = (int(plain(number)) for number in numbers)
        difference = added - removed + (constants if direction == "more" else -constants)
        shown = [(row[0], int(plain(row[2]).replace("−", "-") or 0)) for row in self.rows(self.driver.find_element(By.CSS_SELECTOR, "#passes table"))]
        self.assertIn((name, difference), shown)

    def test_pieces(self):
        classes, pieces, _ = self.pieces()
        split = self.json("split")
        self.assertEqual(pieces, {row["piece"]: str(row["nodes"]) for row in split})
        for row in split:
            self.assertEqual(classes[row["class"]], [str(sum(other["class"] == row["class"] for other in split)), str(row["nodes"])])

    def test_captured(self):
        steps = json.loads(run("pwr", "plan", *self.arguments))["steps"]
        captured = sum(step["captured"] for step in steps)
        self.assertIn(f"captured pieces\n{captured} of {len(steps)}", self.text("[data-title=Overview]"))
        words = self.pieces()[2]
        self.assertIn(f"{captured} pieces of {len(steps)} are captured" if captured else "No piece is captured", words)

    def test_load_is_named(self):
        self.assertIn("8 more nodes compute weights once at load", self.pieces()[2])

    def test_the_first_screen_is_whole(self):
        self.driver.set_window_size(1280, 800)
        self.addCleanup(self.driver.set_window_size, 1400, 900)
        wide = "return [...document.querySelectorAll('.fired td, #passes th')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
        lines = "return [...document.querySelectorAll('.fired td:not(:first-child)')].filter(e => e.getClientRects()[0].height > 40).map(e => e.textContent)"
        self.assertEqual(self.driver.execute_script(wide), [])
        self.assertEqual(self.driver.execute_script(lines), [])
        self.tab("graph")
        names = "return [...document.querySelectorAll('#passes td:first-child')].flatMap(cell => [...cell.childNodes].filter(part => part.nodeType === 3))"
        broken = ".filter(part => { const range = document.createRange(); range.selectNodeContents(part); return range.getClientRects().length > 1; }).map(part => part.data)"
        self.assertEqual([text for text in self.driver.execute_script(names + broken) if " " not in text], [])
        side = self.driver.execute_script("const side = document.getElementById('side'); return [side.scrollWidth, side.clientWidth]")
        self.assertEqual(*side)

    def test_the_caption_is_of_the_picture(self):
        self.assertEqual(self.text("#caption"), "")
        self.tab("graph")
        self.assertRegex(self.text("#caption"), r"showing \d+ of")


class Opaque(Numbers):
    """Nothing is captured, no rule fires, and constants are drawn in their readers."""

    @classmethod
    def prepare(cls):
        path = Path(cls.folder.name, "opaque.pwg")
        path.write_text(OPAQUE, encoding="utf-8")
        cls.graph = [path, "-q"]
        super().prepare()

    def test_load_is_named(self):
        self.assertIn("1 more node computes weights once at load", self.pieces()[2])

    def test_why_nothing_is_captured_or_fired(self):
        text = self.text("[data-title=Overview]")
        self.assertIn("all run eagerly: op my_op has no kernel", text)
        self.assertRegex(text, r"No rule fired\s+Built-in steps removed \d+ nodes")
        self.assertRegex(text, r"2 → 1 of them constants")


class Uncaptured(Opaque):
    """The ops allow capture, but no step may be padded, so the plan captures nothing."""

    @classmethod
    def prepare(cls):
        path = Path(cls.folder.name, "reversed.pwg")
        reversed_ = OPAQUE.replace("  op my_op(...) effect\n", "").replace("my_op(a)", "reverse(a){dim = 0}")
        path.write_text(reversed_, encoding="utf-8")
        cls.graph = [path, "-q"]
        Numbers.prepare.__func__(cls)

    def test_why_nothing_is_captured_or_fired(self):
        self.assertIn("all run eagerly: node b (reverse) mixes rows: ", self.text("[data-title=Overview]"))
        kinds = self.driver.execute_script("return data.groups.map(group => group.kind)")
        self.assertNotIn("captured", kinds)
        self.assertNotRegex(self.pieces()[2], r"piece_0\s+captured")


class Llama4(Numbers):
    """Classes of several pieces."""

    @classmethod
    def prepare(cls):
        path = Path(cls.folder.name, "llama4.pwg")
        run("pwr", "generate", "llama4", "--layers", "8", "-o", path)
        cls.graph = [path, "-q"]
        super().prepare()

    def test_load_is_named(self):
        self.assertRegex(self.pieces()[2], r"\d+ more nodes compute weights once at load")


class DeepSeek(Numbers):
    """Passes with long names, and more than a thousand nodes."""

    @classmethod
    def prepare(cls):
        path = Path(cls.folder.name, "deepseek.pwg")
        run("pwr", "generate", "deepseek-v3", "--layers", "61", "--quant", "fp8-group", "--tp", "8", "--opaque", "-o", path)
        cls.graph = [path, "-q"]
        super().prepare()
        cls.arguments += ["-D", "tp=8"]

    def test_load_is_named(self):
        self.assertRegex(self.pieces()[2], r"\d+ more nodes compute weights once at load")


if __name__ == "__main__":
    unittest.main()
