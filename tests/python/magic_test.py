#!/usr/bin/python3
"""%%pwr in a shell of IPython: rules are checked, run on a graph and drawn; mistakes have their place, and nothing in a cell reaches HTML unescaped."""
import re
import sys
import unittest

try:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
except ImportError as absent:
    print(f"SKIPPED: {absent}; install python3-ipython", file=sys.stderr)
    sys.exit(77)

import piecewise as pw
from piecewise import colours

GRAPH = """graph block {
  symbol n in 1..512 tokens
  in x: bf16[n, 256], res: bf16[n, 256]
  in weight w: bf16[256]
  a = neg(x)
  b = exp(a)
  c = tanh(b)
  r = add(c, res)
  y = rms_norm(r, w)
  z = relu(y)
  s = sigmoid(z)
  t = abs(s)
  out t, r
}"""
ADD_NORM = """rule add_norm {
  r = add(x, res)
  y = rms_norm(r, w){eps}
  =>
  y, r = fused_add_rms_norm(x, res, w){eps}
}
"""
RELU = "rule positive { y = relu(x)  => y = maximum(x, 0) }\n"


class Cell(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = InteractiveShell.instance()
        cls.shell.run_line_magic("load_ext", "piecewise")
        cls.graph = cls.shell.user_ns["g"] = pw.load(GRAPH)

    def run_cell(self, line, text):
        """(what was printed, what was displayed as bundles, the exception)."""
        with capture_output() as seen:
            done = self.shell.run_cell(f"%%pwr {line}\n{text}")
        return seen.stdout, [output.data for output in seen.outputs], done.error_in_exec or done.error_before_exec

    def pictures(self, shown):
        return [one["image/svg+xml"] for one in shown if "image/svg+xml" in one]

    def test_without_a_graph_the_rules_are_checked(self):
        printed, shown, error = self.run_cell("", ADD_NORM)
        self.assertIsNone(error)
        self.assertEqual(printed, "1 rule, 0 pipelines: no mistake\n")
        self.assertEqual(shown, [])

    def test_a_cell_of_rules_runs_all_of_them(self):
        printed, shown, error = self.run_cell("g -o run", ADD_NORM + RELU)
        self.assertIsNone(error)
        run = self.shell.user_ns["run"]
        self.assertEqual((run.count("add_norm"), run.count("positive")), (1, 1))
        self.assertIn("2 rewrites", printed)
        self.assertEqual(len(self.pictures(shown)), 1)
        self.assertEqual(self.graph.ops()["relu"], 1, "the graph of the notebook stays")

    def test_a_picture_for_each_pass_that_changed_something(self):
        text = ADD_NORM + RELU + "pipeline p { walk { add_norm } walk { positive } walk { positive } }"
        printed, shown, _ = self.run_cell("g", text)
        first, second = self.pictures(shown)
        self.assertIn("fused_add_rms_norm", first)
        self.assertNotIn("maximum", first)
        self.assertIn("maximum", second)
        self.assertRegex(printed, r"without a change: walk \{ positive \}")
        for svg in (first, second):
            self.assertIn("max-width: 100%", svg.partition(">")[0] + svg.partition("<svg ")[2][:80])

    def test_a_picture_is_cropped_to_the_change(self):
        _, shown, _ = self.run_cell("g -o run", ADD_NORM)
        (picture,) = self.pictures(shown)
        for far in ("exp", "sigmoid", "abs"):
            self.assertNotRegex(picture, rf">[+−~]? ?{far}<")
        for near in ("tanh", "relu", "rms_norm"):
            self.assertIn(near, picture)
        whole = self.shell.user_ns["run"]._repr_mimebundle_()["image/svg+xml"]
        self.assertRegex(whole, ">sigmoid<")
        self.assertIn("boxes are left out", shown[-1]["text/plain"])

    def test_a_pipeline_is_named_where_there_are_several(self):
        text = ADD_NORM + RELU + "pipeline p { walk { add_norm } } pipeline q { walk { positive } }"
        self.assertIn("name one with -p", str(self.run_cell("g", text)[2]))
        self.assertIn("maximum", self.pictures(self.run_cell("g -p q", text)[1])[0])

    def test_params(self):
        text = "param k: int = 0\nrule r { y = relu(x)  where k == 1  => y = maximum(x, 0) }"
        self.assertEqual(self.pictures(self.run_cell("g", text)[1]), [])
        self.assertEqual(len(self.pictures(self.run_cell("g -D k=1", text)[1])), 1)

    def test_an_op_may_be_written_anew(self):
        for body in ("relu(x)", "maximum(x, 0)"):
            text = f"op mine(x: T[*s]) -> y: T[*s] {{ y = {body} }}\nrule r {{ y = relu(x)  => y = mine(x) }}"
            self.assertIsNone(self.run_cell("g", text)[2])

    def test_a_mistake_has_its_place_and_its_hint(self):
        printed, shown, error = self.run_cell("g", ADD_NORM.replace("rms_norm(r", "rms_nrom(r"))
        self.assertEqual(type(error).__name__, "CellError")
        self.assertEqual(str(error), "1 mistake, and nothing ran")
        (message,) = shown
        self.assertIn("cell.pwr:3:7", message["text/plain"])
        self.assertIn("did you mean `rms_norm`?", message["text/plain"])
        for part in ("cell.pwr:3:7", "^^^^^^^^^^^^^^^^^^^", "did you mean `rms_norm`?"):
            self.assertIn(part, message["text/html"])
        self.assertEqual(self.pictures(shown), [])
        self.assertEqual(printed.count("\n"), 0 if "CellError" not in printed else printed.count("\n"))

    def test_no_match_has_its_reason(self):
        rule = "rule norm_quant {\n  y = rms_norm(r, w){eps}\n  q = static_scaled_fp8_quant(y, s)\n  =>\n  q = rms_norm_static_fp8_quant(r, w, s){eps}\n}\n"
        printed, shown, error = self.run_cell("g", rule)
        self.assertIsNone(error)
        self.assertRegex(printed, r"norm_quant: N\d\d ")
        self.assertEqual(shown, [])

    def test_what_is_no_graph_is_named(self):
        self.shell.user_ns["number"] = 3
        self.assertIn("`number` is not a Graph, but a int", str(self.run_cell("number", RELU)[2]))
        self.assertIn("no variable and no file `nothing`", str(self.run_cell("nothing", RELU)[2]))
        self.assertIn("unrecognized arguments: --depth", str(self.run_cell("g --depth 3", RELU)[2]))

    def test_nothing_of_a_cell_is_markup(self):
        _, shown, _ = self.run_cell("", 'rule r { y = relu(x)  => y = "<script>alert(1)</script>"(x) }')
        (message,) = shown
        self.assertIn("<script>", message["text/plain"])
        self.assertNotIn("<script", message["text/html"])
        self.assertIn("&lt;script&gt;", message["text/html"])


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Colours(unittest.TestCase):
    def setUp(self):
        if colours.PwrStyle is None:
            self.skipTest("Pygments is not installed")

    def test_every_colour_reads(self):
        named = set(re.findall(r"#[0-9a-f]{6}", " ".join([*colours.PwrStyle.styles.values(), *colours._LEVELS.values()])))
        self.assertGreater(len(named), 7)
        for colour in named:
            bright, dark = sorted((luminance(colours.BACKGROUND), luminance(colour)), reverse=True)
            self.assertGreaterEqual((bright + 0.05) / (dark + 0.05), 4.5, colour)

    def test_the_text_stays_what_it_is(self):
        """Without its tags the HTML is the text: nothing is lost, whatever it holds."""
        for text in (ADD_NORM, GRAPH, 'a "<b>&amp;" // <i>\n\tx`q`', "  \n\n rule", "é <", 'rule "open'):
            bare = re.sub(r"<[^>]*>", "", colours.rules_html(text))
            for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&#x27;", "'"), ("&amp;", "&")):
                bare = bare.replace(entity, character)
            self.assertEqual(bare, text.rstrip("\n"))

    def test_words_have_colours(self):
        html = colours.rules_html(ADD_NORM)
        self.assertRegex(html, r'<span style="color: #0550ae; font-weight: bold">rule</span>')
        self.assertNotIn("<style", html)

    def test_errors_are_coloured_where_they_are_shown(self):
        try:
            pw.Session().rules_text("rule a { y = rms_nrom(x) => y = x }")
        except pw.Error as error:
            html = error._repr_html_()
        self.assertIn('<span style="color: #a40e26; font-weight: bold">error[PW0220]:</span>', html)


if __name__ == "__main__":
    unittest.main()
