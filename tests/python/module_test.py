#!/usr/bin/python3
"""The module loads graphs and rules, runs a pipeline, draws, and reports mistakes."""
import json
import unittest
import unittest.mock

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
        self.assertEqual(self.session.rules("llm").pipelines, rules.pipelines)
        self.assertIn("o2", rules.pipelines)
        run = self.session.run(self.graph, rules, "o2", {"tp": "2"})
        self.assertEqual(run.count("add_rms"), 1)

    def test_round_trip(self):
        again = pw.Session().loads(self.graph.json())
        self.assertEqual(again.json(), self.graph.json())
        self.assertEqual(self.session.loads(self.graph.text()).text(), self.graph.text())

    def test_a_graph_as_objects(self):
        graph = pw.load(GRAPH.replace("  out ", "  p = transpose(y){dim0 = 0, dim1 = 1}\n  out "))
        self.assertEqual(graph.inputs[0], ("x", "bf16[n, 256]", "input"))
        self.assertEqual([node.op for node in graph.nodes], ["add", "rms_norm", "transpose"])
        norm = graph.nodes[1]
        self.assertEqual((norm.name, norm.operands, norm.attributes["eps"]), ("y", ("r", "w"), 1e-5))
        self.assertEqual(norm.results, (pw.Value("y", "bf16[n, 256]"),))
        self.assertEqual(graph.nodes[2].attributes, {"dim0": 0, "dim1": 1})
        self.assertEqual(graph.nodes[2].results[0].type, "bf16[256, n]")
        self.assertEqual([(value.name, value.type) for value in graph.outputs], [("y", "bf16[n, 256]"), ("r", "bf16[n, 256]")])
        self.assertIsNone(norm.group)
        self.assertIs(graph.nodes, graph.nodes)
        self.assertEqual(pw.Session().loads(GRAPH).session.loads(GRAPH).ops(), self.graph.ops())
        grouped = pw.load('graph { in x: f32[8]  in buffer b: f32[8]  y = relu(x) @ "layers.0" "model.py:88"  out y  write b = y }')
        self.assertEqual((grouped.nodes[0].group, grouped.nodes[0].source, grouped.writes), ("layers.0", "model.py:88", {"b": "y"}))
        self.assertEqual([each.kind for each in grouped.inputs], ["input", "buffer"])

    def test_pictures(self):
        bundle = self.graph._repr_mimebundle_()
        self.assertIn("rms_norm", bundle["text/plain"])
        self.assertIn("<svg", bundle["image/svg+xml"])
        self.assertIn("<iframe", self.graph.show()._repr_html_())
        self.assertTrue(self.graph.draw("png").startswith(b"\x89PNG"))

    def test_a_pass_by_itself(self):
        run = self.session.run(self.graph, self.session.rules_text(RULES), "fuse")
        self.assertEqual(run.versions[0], "input")
        self.assertEqual(run.after(1).ops(), run.graph.ops())
        bundle = run.step(1)._repr_mimebundle_()
        self.assertRegex(bundle["text/plain"], r"− .*rms_norm")
        self.assertRegex(bundle["text/plain"], r"\+ .*fused_add_rms_norm")
        self.assertIn("<svg", bundle["image/svg+xml"])
        self.assertNotIn("−", run.draw("txt", after=0).decode())
        for wrong in (2, "no_such"):
            with self.assertRaises(pw.Error):
                run.step(wrong)

    def test_diff(self):
        run = self.session.run(self.graph, self.session.rules_text(RULES), "fuse")
        found = pw.diff(self.graph, run.graph)
        self.assertTrue(found)
        self.assertEqual(
            [(row["change"], row["op"]) for row in found.rows], [("removed", "add"), ("removed", "rms_norm"), ("added", "fused_add_rms_norm")]
        )
        bundle = found._repr_mimebundle_()
        self.assertIn("removed 1 × add", bundle["text/plain"])
        self.assertIn("<td>rms_norm</td>", bundle["text/html"])
        same = pw.diff(self.graph, self.session.loads(GRAPH.replace("  y =", "  z =").replace("out y", "out z")))
        self.assertFalse(same)
        self.assertIn("equal", repr(same))
        with self.assertRaisesRegex(pw.Error, "sessions"):
            pw.diff(self.graph, pw.Session().loads(GRAPH))

    def test_names_are_escaped(self):
        graph = self.session.loads("graph { in `<script>alert(1)</script>`: f32[8]  `<b>` = relu(`<script>alert(1)</script>`)  out `<b>` }")
        other = self.session.loads("graph { in `<script>alert(1)</script>`: f32[8]  `<b>` = neg(`<script>alert(1)</script>`)  out `<b>` }")
        for html in (pw.diff(graph, other)._repr_mimebundle_()["text/html"], graph.show()._repr_html_(), graph._repr_mimebundle_()["image/svg+xml"]):
            self.assertNotIn("<script>alert", html)
            self.assertNotIn("<b>", html)

    def test_what_a_cell_cannot_hold_is_said(self):
        lines = [f"  v{i} = relu({f'v{i - 1}' if i else 'x'})" for i in range(200)]
        graph = self.session.loads("graph { in x: f32[8]\n" + "\n".join(lines) + "\n  out v199 }")
        self.assertEqual(pw._CELL_LIMIT, 2 << 20)
        for limit in (3_000, 50_000):
            with unittest.mock.patch.object(pw, "_CELL_LIMIT", limit):
                bundle = graph._repr_mimebundle_()
                self.assertLessEqual(len(json.dumps(bundle)), limit + 400)
                self.assertNotIn("image/svg+xml", bundle)
                self.assertRegex(bundle["text/plain"], r"no picture: it has \d+ bytes, more than a cell may hold")
                self.assertEqual("more lines, more than a cell may hold" in bundle["text/plain"], limit == 3_000)
                with self.assertRaisesRegex(pw.Error, f"more than the {limit} a cell may hold"):
                    graph.show()

    def test_a_picture_has_300_boxes_at_most(self):
        body = "\n".join(f"  v{i} = {'relu' if i % 3 else 'neg'}({f'v{i - 1}' if i else 'x'}) @ \"layers.{i // 20}\"" for i in range(900))
        svg = self.session.loads("graph { in x: f32[8]\n" + body + "\n  out v899 }")._repr_mimebundle_()["image/svg+xml"]
        self.assertLessEqual(svg.count('class="node'), 300)
        self.assertIn("<svg", svg)

    def test_mistakes(self):
        with self.assertRaisesRegex(pw.Error, "rms_norm"):
            self.session.rules_text("rule oops { y = rms_nrom(x, w){eps} => y = x }")
        with self.assertRaisesRegex(pw.Error, "text:1:"):
            self.session.loads("graph g { in x: f32[4]  y = relu( }")
        with self.assertRaises(pw.Error):
            self.session.run(self.graph, pw.Session().rules(["llm"]), "o2")


if __name__ == "__main__":
    unittest.main()
