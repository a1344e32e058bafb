#!/usr/bin/python3
"""The module loads graphs and rules, runs a pipeline, draws, and says what is wrong."""
import unittest

import piecewise as pw

GRAPH = """
graph block {
  symbol n in 1..512 tokens
  in x: bf16[n, 256], res: bf16[n, 256], w: bf16[256]
  r = add(x, res)
  y = rms_norm(r, w){eps = 1e-5}
  out y, r
}
"""
RULES = """
rule add_norm {
  r = add(x, res)
  y = rms_norm(r, w){eps}
  =>
  y, r = fused_add_rms_norm(x, res, w){eps}
}
pipeline fuse { walk { add_norm } }
"""


class Module(unittest.TestCase):
    def setUp(self):
        self.session = pw.Session()
        self.graph = self.session.loads(GRAPH)

    def test_run(self):
        run = self.session.run(self.graph, self.session.rules_text(RULES), "fuse")
        self.assertEqual(run.count("add_norm"), 1)
        self.assertEqual(run.graph.ops(), {"fused_add_rms_norm": 1})
        self.assertEqual(run.before().ops(), {"add": 1, "rms_norm": 1})
        self.assertEqual(len(self.graph), 2, "the graph given stays as it is")

    def test_library_and_params(self):
        rules = self.session.rules(["llm"])
        self.assertIn("o2", rules.pipelines)
        run = self.session.run(self.graph, rules, "o2", {"tp": "2"})
        self.assertEqual(run.count("add_rms"), 1)

    def test_round_trip(self):
        again = pw.Session().loads(self.graph.json())
        self.assertEqual(again.json(), self.graph.json())
        self.assertEqual(self.session.loads(self.graph.text()).text(), self.graph.text())

    def test_pictures(self):
        bundle = self.graph._repr_mimebundle_()
        self.assertIn("rms_norm", bundle["text/plain"])
        self.assertIn("<svg", bundle["image/svg+xml"])
        self.assertIn("<iframe", self.graph.show()._repr_html_())
        self.assertTrue(self.graph.draw("png").startswith(b"\x89PNG"))

    def test_mistakes(self):
        with self.assertRaisesRegex(pw.Error, "rms_norm"):
            self.session.rules_text("rule oops { y = rms_nrom(x, w){eps} => y = x }")
        with self.assertRaisesRegex(pw.Error, "text:1:"):
            self.session.loads("graph g { in x: f32[4]  y = relu( }")
        with self.assertRaises(pw.Error):
            self.session.run(self.graph, pw.Session().rules(["llm"]), "o2")


if __name__ == "__main__":
    unittest.main()
