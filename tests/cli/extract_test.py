#!/usr/bin/python3
"""Extraction from files: what is chosen, what is refused, and the e-graph of a saturation."""

import json
import subprocess
import unittest

from program import BIN, ProgramTest

# A root with two nodes: one needs a shared child twice over, the other two children of its own that are dearer together.
GRAPH = {
    "nodes": {
        "r.0": {"op": "f", "children": ["a.0", "b.0"], "eclass": "r", "cost": 1.0},
        "r.1": {"op": "g", "children": ["c.0", "d.0"], "eclass": "r", "cost": 1.0},
        "a.0": {"op": "a", "children": ["s.0"], "eclass": "a", "cost": 2.0},
        "b.0": {"op": "b", "children": ["s.0"], "eclass": "b", "cost": 2.0},
        "c.0": {"op": "c", "eclass": "c", "cost": 6.0},
        "d.0": {"op": "d", "eclass": "d", "cost": 6.0},
        "s.0": {"op": "s", "children": ["r.0"], "eclass": "s", "cost": 1.0},
        "s.1": {"op": "s", "eclass": "s", "cost": 7.0},
    },
    "root_eclasses": ["r"],
    "class_data": {"r": {"type": "T"}},
}
RULES = """
op both(x: T[*s]) -> (p: T[*s], q: T[*s])
rule pair { p = sin(x)  q = cos(x)  => p, q = both(x) }
pass saturated = saturate { pair } cost nodes
pass plain = greedy { pair }
"""
MODEL = "graph g { in x: f32[4]  a = sin(x)  b = cos(x)  y = add(a, b)  z = relu(y)  out z }\n"


class Extract(ProgramTest):
    def extract(self, *args, code=0):
        return self.pwr("extract", *args, code=code)

    def rows(self, *args):
        return json.loads(self.extract(*args, "--format", "json").stdout)["extractions"]

    def test_shared_children_are_paid_once(self):
        path = self.file("e.json", json.dumps(GRAPH))
        chosen = self.path("chosen.json")
        (row,) = self.rows(path, "--choices", chosen)
        self.assertEqual((row["cost"], row["bound"], row["exact"], row["classes"], row["nodes"]), (12, 12, True, 6, 8))
        with open(chosen, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["choices"], {"r": "r.0", "a": "a.0", "b": "b.0", "s": "s.1"})
        dear = json.loads(json.dumps(GRAPH))
        dear["nodes"]["s.1"]["cost"] = 9.5
        (row,) = self.rows(self.file("dear.json", json.dumps(dear)))
        self.assertEqual(row["cost"], 13)

    def test_both_solvers_agree(self):
        path = self.file("e.json", json.dumps(GRAPH))
        done = subprocess.run(
            [BIN / "pwr", "extract", path, "--solver", "cbc", "--format", "json"], capture_output=True, text=True, timeout=3600, check=False
        )
        if done.returncode == 5:
            self.assertIn("without CBC", done.stderr)
            self.skipTest("built without CBC")
        self.assertEqual(json.loads(done.stdout)["extractions"][0]["cost"], 12)

    def test_what_is_no_egraph(self):
        for text, words in (
            ("[", "not JSON"),
            ("[]", "an e-graph is an object"),
            ("{}", "`nodes`"),
            ('{"nodes": {"a": 1}}', "/nodes/a/eclass"),
            ('{"nodes": {"a": {"eclass": "0", "cost": -1}}}', "non-negative"),
            ('{"nodes": {"a": {"eclass": "0", "children": ["b"]}}}', '"b" is not a node'),
            ('{"nodes": {"a": {"eclass": "0"}}}', "no root"),
            ('{"nodes": {"a": {"eclass": "0"}}, "root_eclasses": ["1"]}', '"1" is not a class'),
            ('{"nodes": {"a": {"eclass": "0", "children": ["a"]}}, "root_eclasses": ["0"]}', "from itself"),
            ('{"nodes": ' + '{"a": ' * 5000 + "1" + "}" * 5000 + "}", "/nodes/a/eclass"),
        ):
            done = self.extract(self.file("bad.json", text), code=3)
            self.assertIn(words, done.stderr)
            self.assertIn("bad.json", done.stderr)
        self.extract(self.path("none.json"), code=3)

    def test_the_forms_of_a_saturation(self):
        model, rules, out = self.file("m.pwg", MODEL), self.file("r.pwr", RULES), self.path("egraph.json")
        (row,) = self.rows(model, "-r", rules, "-p", "saturated", "--write-egraph", out)
        (again,) = self.rows(out)
        self.assertEqual((row["cost"], row["exact"]), (3, True))
        self.assertEqual([again[k] for k in ("cost", "bound", "nodes", "classes")], [row[k] for k in ("cost", "bound", "nodes", "classes")])
        self.assertIn("`plain` does not run `saturate`", self.pwr("extract", model, "-r", rules, "-p", "plain", code=3).stderr)
        done = self.pwr("opt", model, "-r", rules, "-p", "saturated", "--stats")
        self.assertIn("nodes 3 of 4, as the best", done.stderr)

    def test_rules_of_any_form_keep_the_numbers(self):
        """Siblings, spreads, `unless` and views up to equality: each has to be there, and what is computed stays."""
        model, rules, after = self.file("forms.pwg", FORMS), self.file("forms.pwr", FORM_RULES), self.path("after.pwg")
        done = self.pwr("opt", model, "-r", rules, "-p", "saturated", "--stats", "-o", after, "--format", "json")
        found = json.loads(done.stdout)
        (row,) = found["saturations"]
        self.assertEqual((row["stop"], row["exact"]), ("complete", True))
        counts = {rule["rule"].split("#")[0]: rule["matches"] for rule in found["rules"] if rule["matches"]}
        self.assertEqual(set(counts), {"merge.sibling_gemms", "merge.sink_relu", "flat", "through_views", "alone", "nothing"})
        with open(after, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("mm("), 1, text)
        self.pwr("run", model, "-r", rules, "-p", "saturated", "--tokens", "1,6", "--check")


FORMS = """graph forms {
  symbol n in 1..64 tokens
  in x: f32[n, 16]
  in weight q: f32[16, 8], k: f32[16, 4], v: f32[16, 4]
  a = mm(x, q)
  b = mm(detach(x), k)
  c = mm(detach(detach(x)), v)
  s = cat(cat(relu(a), relu(detach(b))){dim = 1}, relu(c)){dim = 1}
  t = reshape(reshape(abs(s)){shape = [-1, 4]}){shape = [n, 16]}
  u = relu(detach(t))
  w = sigmoid(u)
  out w
}
"""
FORM_RULES = """use "merge"
pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} }
table price(cost) {
  mm: 1000
  sigmoid: 1000
  split: 0
  other: 100
}
rule nothing { y = detach(x) => y = x }
rule flat { y = cat(cat(xs...){dim}, z){dim} => y = cat(xs..., z){dim} }
rule through_views { y = relu(views(abs(x))) => y = reshape(abs(x)){shape = y.shape} }
rule alone { y = sigmoid(x) unless { _ = tanh(y) } => y = 1.0 / (1.0 + exp(neg(x))) }
pass saturated = saturate { merge.*, nothing, flat, through_views, alone } cost price
"""

if __name__ == "__main__":
    unittest.main()
