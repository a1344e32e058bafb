#!/usr/bin/python3
"""Files that declare what the library declares, too: they load, with a warning, and each side keeps its meaning."""
import unittest

from program import ProgramTest

OWN = """op silu(x: T[*s]) {beta: float = 1.0} -> y: T[*s] pointwise { y = T(f32(x) / (1.0 + exp(neg(f32(x) * beta)))) }
op relu(x: U[*shape]) -> y: U[*shape] pointwise { y = maximum(x, 0) }
op doubled(x: T[*s]) -> y: T[*s] { y = silu(x){beta = 2.0} * 2.0 }
"""
RULES = (
    OWN
    + """rule own { y = neg(silu(x))  => y = doubled(x) }
rule plain { y = neg(relu(x))  => y = minimum(neg(x), 0) }
pass p = greedy { own, plain }
test in_the_file_the_name_is_the_files {
  graph { in x: f32[n, 4]  a = silu(x){beta = 3.0}  b = neg(silu(x))  out a, b }
  apply p
  expect own == 1, count(silu) == 1, count(doubled) == 1
}
"""
)
GRAPH = """graph g {
  in x: f32[2, 4]
  a = neg(silu(x))
  b = neg(mine.silu(x))
  c = neg(relu(x))
  out a, b, c
}
"""


class Names(ProgramTest):
    def setUp(self):
        self.rules = self.file("mine.pwr", RULES)

    def test_the_warning_names_both_places(self):
        messages = self.pwr("check", self.rules).stderr
        self.assertIn("warning[PW0206]: op `silu` is not the library's op of this name", messages)
        self.assertIn("mine.pwr:1:4", messages)
        self.assertIn("<library>/ops/activation.pwr", messages)
        self.assertIn("graphs call it `mine.silu`", messages)
        self.assertNotIn("`relu`", messages)

    def test_the_file_means_its_own_op(self):
        self.pwr("test", self.rules)

    def test_graphs_mean_the_librarys_op(self):
        out = self.pwr("opt", self.file("graph.pwg", GRAPH), "-r", self.rules, "-p", "p", "-o", "-").stdout
        self.assertIn("= silu(x)", out)
        self.assertIn("a = neg(", out)
        self.assertIn("b = doubled(x)", out)
        self.assertIn("minimum", out)

    def test_files_that_use_the_file_mean_its_op_and_others_do_not(self):
        other = "rule r { y = neg(silu(x))  => y = mul(x, x) }\npass q = greedy { r }\n"
        graph = self.file("graph.pwg", GRAPH)
        using = self.file("using.pwr", 'use "mine.pwr"\n' + other)
        apart = self.file("apart.pwr", other)
        self.assertIn("a = neg(", self.pwr("opt", graph, "-r", using, "-p", "q", "-o", "-").stdout)
        self.assertIn("b = mul(x, x)", self.pwr("opt", graph, "-r", using, "-p", "q", "-o", "-").stdout)
        beside = self.pwr("opt", graph, "-r", apart, "-r", self.rules, "-p", "q", "-o", "-").stdout
        self.assertIn("a = mul(x, x)", beside)
        self.assertIn("b = neg(", beside)

    def test_rules_of_the_library_mean_the_librarys_op(self):
        spelled = """graph g {
  in x: f32[n, 128]
  g, u = split(x){dim = 1, sizes = [64, 64]}
  y = mul(silu(g), u)
  out y
}"""
        out = self.pwr("opt", self.file("gate.pwg", spelled), "-r", self.rules, "-r", "llm", "-p", "o2", "-o", "-").stdout
        self.assertIn("silu_and_mul", out)

    def test_items_of_the_library_step_aside(self):
        rules = """use "norm.pwr"
param tp: int = 3
rule add_rms { y = rms_norm(add(x, x), w){eps}  => y = rms_norm(x * 2.0, w){eps} }
pass norm = greedy { add_rms }
pipeline o { norm  norm.norm }
"""
        graph = """graph g {
  in x: f32[n, 8], z: f32[n, 8], w: f32[8]
  a = rms_norm(add(x, x), w)
  b = rms_norm(add(x, z), w)
  out a, b
}"""
        done = self.pwr("opt", self.file("norms.pwg", graph), "-r", self.file("own.pwr", rules), "-p", "o", "-o", "-")
        self.assertIn("rule `add_rms` is not the library's rule of this name", done.stderr)
        self.assertIn("pass `norm` is not the library's pass of this name", done.stderr)
        self.assertIn("the library's is called `norm.add_rms` in this run", done.stderr)
        self.assertIn("mul(x, ", done.stdout)
        self.assertEqual(done.stdout.count("fused_add_rms_norm"), 1)

    def test_a_fused_op_has_the_name_of_its_file(self):
        rules = "rule silu { y = relu(neg(x))  => y = fuse }\npass p = greedy { silu }\n"
        graph = "graph g { in x: f32[n, 8]  y = relu(neg(x))  out y }"
        done = self.pwr("opt", self.file("f.pwg", graph), "-r", self.file("made.pwr", rules), "-p", "p", "-o", "-")
        self.assertIn("warning[PW0206]: op `silu`", done.stderr)
        self.assertIn("y = made.silu(x)", done.stdout)

    def test_a_graph_may_declare_its_own(self):
        graph = """graph g {
  op silu(x: T[*s]) -> y: T[*s] { y = x * 3.0 }
  op twice(x: T[*s]) -> y: T[*s] { y = silu(x) + silu(x) }
  in x: f32[2, 4]
  a = silu(x)
  b = twice(x)
  out a, b
}
"""
        path = self.file("own.pwg", graph)
        out = self.pwr("opt", path, "-r", "noop", "-p", "clean", "-o", "-").stdout
        self.assertIn("op g.silu(x: T[*s])", out)
        self.assertIn("a = g.silu(x)", out)
        again = self.pwr("opt", self.file("again.pwg", out), "-r", "noop", "-p", "clean", "-o", "-").stdout
        self.assertEqual(out, again)

    def test_two_meanings_are_refused_where_the_name_is_used(self):
        self.file("first.pwr", OWN)
        self.file("second.pwr", "op silu(x: T[*s]) -> y: T[*s] { y = x * 3.0 }\n")
        uses = 'use "first.pwr"\nuse "second.pwr"\n'
        self.pwr("check", self.file("quiet.pwr", uses + "rule r { y = neg(relu(x))  => y = neg(x) }\n"))
        done = self.pwr("check", self.file("loud.pwr", uses + "rule r { y = silu(x)  => y = neg(x) }\n"), code=3)
        self.assertIn("error[PW0207]: `silu` means two ops here: `first.silu` and `second.silu`", done.stderr)


if __name__ == "__main__":
    unittest.main()
