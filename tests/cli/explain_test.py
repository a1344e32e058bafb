#!/usr/bin/python3
"""pwr explain over a pipeline, from outside: who took a match, in which pass, at which step, as text and as data."""
import json
import unittest

from program import ProgramTest

RULES = """
rule early { y = relu(neg(x)) => y = cos(x) }
rule late { y = exp(relu(neg(x))) => y = sin(x) }
rule next { y = exp(sin(x)) => y = sqrt(x) }
rule double { y = abs(x) => y = exp(exp(x)) }
rule untyped { y = neg(x: T[*s]) => y = mm(x, x) }
rule dear { y = neg(x) => y = abs(abs(x)) }
rule pair { y = exp(relu(neg(x))) => y = tanh(x) }
pass one = greedy { early }
pass two = greedy { late, next }
pipeline p { one two }
pipeline parts { repeat (one ; two) fuel 2 }
pipeline clean { cse dce elide_clones one two }
pass back = atomic greedy { double } ensures count(exp) == 1
pipeline undone { back two }
pass choice = best of { greedy { dear } | one } by nodes
pipeline best { choice two }
pipeline all { saturate { early, late } nodes 100 cost nodes  two }
pipeline wrong { greedy { untyped } }
pipeline third { greedy { double } fuel 1  two }
pipeline ranged { for tokens in ranges(16) { one two } }
"""
GRAPH = """graph g {
  symbol n in 1..64 tokens
  in x: f32[n, 8], z: f32[n, 8]
  a = neg(x)
  b = relu(a)
  c = exp(b)
  d = abs(z)
  out c, d
}"""


class Explain(ProgramTest):
    def setUp(self):
        self.rules = self.file("rules.pwr", RULES)
        self.graph = self.file("graph.pwg", GRAPH)

    def text(self, rule, pipeline, *args, code=1):
        return self.pwr("explain", rule, self.graph, "-r", self.rules, "-p", pipeline, *args, code=code).stdout

    def data(self, rule, pipeline, *args, code=1):
        done = self.pwr("--format", "json", "explain", rule, self.graph, "-r", self.rules, "-p", pipeline, *args, code=code)
        return json.loads(done.stdout)

    def test_a_starved_rule_is_told_rule_pass_step_and_node(self):
        for args in ([], ["--before", "one"], ["--before", "two"], ["--at", "b"], ["--before", "two", "--at", "a"]):
            with self.subTest(args=args):
                text = self.text("late", "p", *args)
                self.assertIn("note[N10]: `late` matched at %a", text)
                self.assertIn("%a (neg) was consumed by `early` at step 1 of pass `one`", text)
                self.assertIn("pass `two`, which has `late`, began after the match was gone", text)
                [miss] = [m for m in self.data("late", "p", *args)["near_misses"] if m["code"] == "N10"]
                self.assertEqual(miss["taken_by"], {"rule": "early", "builtin": None, "pass": "one", "step": 1, "node": "a"})
                self.assertEqual((miss["at"], miss["nodes"], miss["missed_by"]), ("a", ["a", "b", "c"], "two"))

    def test_near_misses_at_nodes_that_a_pass_made(self):
        for args in ([], ["--before", "two"]):
            text = self.text("next", "p", *args)
            self.assertIn("%b (cos) is not `sin`", text)
            self.assertIn("%b was made by `early` at step 1 of pass `one`", text)

    def test_no_pipeline_and_no_pass_brings_it_down(self):
        pipelines = ("p", "parts", "clean", "undone", "best", "all", "wrong", "third")
        for rule in ("early", "late", "next", "double", "untyped", "dear", "pair"):
            for pipeline in pipelines:
                for args in ([], ["--before", "one"], ["--before", "two"], ["--at", "c"], ["--pieces"]):
                    with self.subTest(rule=rule, pipeline=pipeline, args=args):
                        names = {"undone": ("two",), "all": ("two",), "wrong": (), "third": ("two",)}.get(pipeline, ("one", "two"))
                        if args[:1] == ["--before"] and args[1] not in names:
                            continue
                        notice = self.data(rule, pipeline, *args, "--expect", "99")
                        self.assertEqual(notice["rule"], rule)

    def test_what_was_undone(self):
        text = self.text("double", "undone")
        self.assertIn("note[N17]", text)
        self.assertIn("`ensures count(exp) == 1` does not hold, count(exp) is 3", text)
        self.assertIn("%d (exp), which `double` made at step 1", text)
        [miss] = self.data("double", "undone")["near_misses"]
        self.assertEqual((miss["undone_by"]["strategy"], miss["undone_by"]["ensures"]), ("back", "count(exp) == 1"))
        self.assertIn("d", miss["undone_by"]["nodes"])
        self.assertIn("undone", self.pwr("explain", "N17").stdout)

    def test_right_sides_that_cannot_be_typed(self):
        self.assertIn("note[PW0306]", self.text("untyped", "wrong"))
        [miss] = self.data("untyped", "wrong")["near_misses"]
        self.assertEqual((miss["code"], miss["at"]), ("PW0306", "a"))
        self.assertIn("its right side cannot be typed here", miss["message"])

    def test_lost_alternatives_and_fuel(self):
        self.assertEqual(self.data("dear", "best")["near_misses"][0]["code"], "N16")
        two = self.file("two.pwg", "graph g { in x: f32[4]  a = abs(x)  b = abs(a)  out b }")
        done = self.pwr("--format", "json", "explain", "double", two, "-r", self.rules, "-p", "third", "--expect", "2", code=1)
        notice = json.loads(done.stdout)
        self.assertEqual(([m["code"] for m in notice["near_misses"]], notice["near_misses"][0]["at"]), (["N12"], "b"))

    def test_applied_matches_are_told_with_their_pass(self):
        self.assertIn("`early` was applied once in pass `one`, at step 1: %a, %b", self.text("early", "p", "--at", "b", code=0))
        [applied] = self.data("early", "p", code=0)["applied"]
        self.assertEqual(applied, {"rule": "early", "builtin": None, "pass": "one", "step": 1, "nodes": ["a", "b"], "count": 1})

    def test_the_number_of_tokens_selects_the_range(self):
        notice = self.data("late", "ranged", "--tokens", "17")
        self.assertEqual(notice["range"], {"min": 17, "max": 64})
        self.assertEqual(notice["near_misses"][0]["taken_by"]["rule"], "early")
        self.assertIn("late: 0 rewrites for 1..16 tokens", self.text("late", "ranged", "--tokens", "3"))
        for args in ([], ["--tokens", "65"]):
            done = self.pwr("explain", "late", self.graph, "-r", self.rules, "-p", "ranged", *args, code=3)
            self.assertIn("1..16, 17..64", done.stderr)
        self.pwr("explain", "late", self.graph, "-r", self.rules, "--tokens", "3", code=2)
        self.pwr("explain", "late", self.graph, "-r", self.rules, "-p", "p", "--tokens", "0", code=2)

    def test_names_that_are_not_there(self):
        for args, code in ((["--at", "nowhere"], 2), (["--before", "nowhere"], 2)):
            done = self.pwr("explain", "late", self.graph, "-r", self.rules, "-p", "p", *args, code=code)
            self.assertIn("nowhere", done.stderr)

    def test_spellings_of_one_node_are_one_match_each(self):
        dump = """class GraphModule(torch.nn.Module):
    def forward(self, a_1: "f32[2, 3, 8]", b_1: "f32[2, 5, 8]"):
        transpose: "f32[2, 8, 5]" = torch.ops.aten.transpose.int(b_1, -2, -1)
        bmm: "f32[2, 3, 5]" = torch.ops.aten.bmm.default(a_1, transpose);  transpose = None
        transpose_1: "f32[2, 8, 5]" = torch.ops.aten.transpose.int(b_1, 2, 1)
        bmm_1: "f32[2, 3, 5]" = torch.ops.aten.bmm.default(a_1, transpose_1);  transpose_1 = None
        permute: "f32[2, 8, 5]" = torch.ops.aten.permute.default(b_1, [0, -1, 1])
        bmm_2: "f32[2, 3, 5]" = torch.ops.aten.bmm.default(a_1, permute);  permute = None
        permute_1: "f32[8, 5, 2]" = torch.ops.aten.permute.default(b_1, [2, 1, 0])
        return (bmm, bmm_1, bmm_2, permute_1)
"""
        rules = """rule scores { y = bmm(q, transpose(k: T[b, m, d]){dim0 = -1, dim1 = 1})  => y = bmm(q, transpose(relu(k)){dim0 = 2, dim1 = 1}) }
"""
        model = self.file("model.fx.txt", dump)
        self.pwr("explain", "scores", model, "-r", self.file("scores.pwr", rules), "--expect", "3")
        clean = self.pwr("opt", model, "-r", "noop", "-p", "clean", "-o", "-").stdout
        self.assertEqual(clean.count("= bmm("), 1)
        self.assertEqual(clean.count("= transpose("), 2)

    def test_a_number_is_compared_in_the_dtype_of_its_op(self):
        rules = self.file("half.pwr", "rule half { y = div(x, 1.4142135623730951)  => y = neg(x) }\n")
        for dtype, code in (("f32", 0), ("bf16", 0), ("f64", 1)):
            with self.subTest(dtype=dtype):
                graph = f"graph g {{ in x: {dtype}[n]  y = div(x, 1.4142135381698608)  out y }}"
                self.pwr("explain", "half", self.file("number.pwg", graph), "-r", rules, "--expect", "1", code=code)


if __name__ == "__main__":
    unittest.main()
