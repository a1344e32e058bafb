#!/usr/bin/python3
"""Memory in dumps: views made in place, ops of which nothing is known, slices of symbols, and one size. The numbers
are calculated here."""
import json
import sys
import unittest

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402
from pt2_test import meta, number, tensor  # noqa: E402
from pt2_test import archive as pt2_archive  # noqa: E402
from weights_test import read, safetensors  # noqa: E402

BACKENDS = (("eager",), ("cpu",))
X = [float(i) for i in range(6)]  # f32[2, 3]
TURNED = [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


def dump(lines, returned, parameters='x: "f32[2, 3]"'):
    body = "".join(f"        {line}\n" for line in lines)
    return f"class f(torch.nn.Module):\n    def forward(self, {parameters}):\n{body}        return ({returned},)\n"


class Memory(ProgramTest):
    def numbers(self, text, tensors, *args, name="m.fx.txt"):
        """Outputs by name, equal on every backend."""
        graph, given, out = self.file(name, text), self.file("in.safetensors", safetensors(tensors)), self.path("out.safetensors")
        found = []
        for backend in BACKENDS:
            for rules in ((), ("-r", "llm", "-p", "o2")):
                self.pwr("run", graph, "--weights", given, "--backend", *backend, *rules, *args, "--save", out)
                found.append(read(out))
        for other in found[1:]:
            self.assertEqual(found[0], other)
        return found[0]

    def both(self, lines, returned):
        """Returns the results of the dump, with and without the types of its statements."""
        plain = [line if ": " not in line else line.split(": ")[0] + " = " + line.split(" = ", 1)[1] for line in lines]
        first = self.numbers(dump(lines, returned), {"x": ([2, 3], X)}, "--input", "x")
        self.assertEqual(first, self.numbers(dump(plain, returned), {"x": ([2, 3], X)}, "--input", "x"))
        return first

    def test_every_name_of_a_tensor_is_the_view_that_was_made_of_it(self):
        lines = [
            'a: "f32[2, 3]" = torch.ops.aten.clone.default(x)',
            'b: "f32[3, 2]" = torch.ops.aten.t_.default(a)',
            'r: "f32[3, 2]" = torch.ops.aten.relu.default(a)',
        ]
        self.assertEqual(self.both(lines, "r")["r"], ([3, 2], TURNED))
        self.assertEqual(self.both(lines + ['s: "f32[3, 2]" = torch.ops.aten.neg.default(b)'], "s")["s"], ([3, 2], [-v for v in TURNED]))

    def test_a_view_of_before_keeps_its_shape(self):
        lines = [
            'a: "f32[2, 3]" = torch.ops.aten.clone.default(x)',
            'row: "f32[3]" = torch.ops.aten.select.int(a, 0, 1)',
            'b: "f32[1, 2, 3]" = torch.ops.aten.unsqueeze_.default(a, 0)',
            'c: "f32[1, 2, 3]" = torch.ops.aten.mul_.Tensor(b, 10)',
            'r: "f32[3]" = torch.ops.aten.neg.default(row)',
        ]
        self.assertEqual(self.both(lines, "r")["r"], ([3], [-30.0, -40.0, -50.0]))

    def test_writes_through_the_new_shape_reach_the_base(self):
        lines = [
            'view: "f32[2, 3]" = torch.ops.aten.slice.Tensor(x, 0, 0, 2)',
            'turned: "f32[3, 2]" = torch.ops.aten.transpose_.default(view, 0, 1)',
            'part: "f32[2]" = torch.ops.aten.select.int(view, 0, 1)',
            'filled: "f32[2]" = torch.ops.aten.fill_.Scalar(part, 7.0)',
            'r: "f32[2, 3]" = torch.ops.aten.add.Tensor(x, 0.5)',
        ]
        got = self.both(lines, "r")
        self.assertEqual(got["r"], ([2, 3], [0.5, 7.5, 2.5, 3.5, 7.5, 5.5]))
        self.assertEqual(got["x"], ([2, 3], [0.0, 7.0, 2.0, 3.0, 7.0, 5.0]))

    def test_the_ops_that_make_views_in_place(self):
        for call, shape, want in (
            ("t_.default(a)", "3, 2", TURNED),
            ("transpose_.default(a, 0, 1)", "3, 2", TURNED),
            ("swapaxes_.default(a, 0, 1)", "3, 2", TURNED),
            ("swapdims_.default(a, 0, -1)", "3, 2", TURNED),
            ("unsqueeze_.default(a, 1)", "2, 1, 3", X),
            ("detach_.default(a)", "2, 3", X),
        ):
            with self.subTest(call):
                lines = [
                    'a: "f32[2, 3]" = torch.ops.aten.clone.default(x)',
                    f'b: "f32[{shape}]" = torch.ops.aten.{call}',
                    f'r: "f32[{shape}]" = torch.ops.aten.abs.default(a)',
                ]
                self.assertEqual(self.both(lines, "r")["r"], ([int(d) for d in shape.split(", ")], want))
        lines = [
            'a: "f32[2, 1, 3]" = torch.ops.aten.unsqueeze.default(x, 1)',
            'b: "f32[2, 3]" = torch.ops.aten.squeeze_.dim(a, 1)',
            'r: "f32[2, 3]" = torch.ops.aten.abs.default(a)',
        ]
        self.assertEqual(self.both(lines, "r")["r"], ([2, 3], X))

    def test_methods_of_dynamo(self):
        text = 'class G(torch.nn.Module):\n    def forward(self, L_x_: "f32[2, 3]"):\n        l_x_ = L_x_\n        y = l_x_.clone();  l_x_ = None\n        z = y.t_()\n        w = y + 1\n        y.add_(1)\n        part = y[0]\n        return (w, z, part)\n'
        got = self.numbers(text, {"l_x_": ([2, 3], X)})
        turned = ([3, 2], [v + 1 for v in TURNED])
        self.assertEqual(sorted(got.values()), sorted([turned, turned, ([2], [1.0, 4.0])]))

    def test_what_no_view_expresses_is_refused(self):
        for call in ("resize_.default(a, [3])", "set_.source_Tensor(a, x)", "resize_as_.default(a, x)"):
            text = dump(["a = torch.ops.aten.clone.default(x)", f"b = torch.ops.aten.{call}"], "a")
            self.assertIn("error[PW0516]: `aten." + call.split("(")[0], self.pwr("import", self.file("m.fx.txt", text), code=3).stderr)
        text = dump(["a = torch.ops.aten.mul.Tensor(x, 2)", "c = torch.ops.aten.contiguous.default(a)", "b = torch.ops.aten.t_.default(c)"], "a")
        self.assertIn(
            "error[PW0517]: whether `aten.contiguous.default` returned its argument", self.pwr("import", self.file("m.fx.txt", text), code=3).stderr
        )

    def test_an_exported_program_keeps_them(self):
        rows, turned, more = meta([number(2), number(3)]), meta([number(3), number(2)]), meta([number(1), number(3), number(2)])

        def call(target, first, name, *rest):
            arguments = [{"name": "", "arg": tensor(first), "kind": 1}] + [{"name": "", "arg": {"as_int": r}, "kind": 1} for r in rest]
            return {"target": f"torch.ops.aten.{target}", "inputs": arguments, "outputs": [tensor(name)], "metadata": {}, "name": name}

        graph = {
            "inputs": [tensor("x")],
            "outputs": [tensor("relu"), tensor("mul")],
            "nodes": [
                call("add.Tensor", "x", "add", 1),
                call("t_.default", "add", "t_"),
                call("relu.default", "add", "relu"),
                call("unsqueeze_.default", "add", "unsqueeze_", 0),
                call("mul.Tensor", "add", "mul", 2),
            ],
            "tensor_values": {"x": rows, "add": rows, "t_": turned, "relu": turned, "unsqueeze_": more, "mul": more},
            "sym_int_values": {},
            "sym_bool_values": {},
        }
        signature = {
            "input_specs": [{"user_input": {"arg": tensor("x")}}],
            "output_specs": [{"user_output": {"arg": tensor(n)}} for n in ("relu", "mul")],
        }
        model = {
            "graph_module": {"graph": graph, "signature": signature, "module_call_graph": []},
            "range_constraints": {},
            "schema_version": {"major": 8, "minor": 20},
            "torch_version": "2.15.0",
        }
        weights = {"data/weights/model_weights_config.json": json.dumps({"config": {}}), "models/model.json": json.dumps(model)}
        got = self.numbers(pt2_archive(weights), {"x": ([2, 3], X)}, name="m.pt2")
        self.assertEqual(got, {"relu": ([3, 2], [v + 1 for v in TURNED]), "mul": ([1, 3, 2], [2 * v + 2 for v in TURNED])})

    def test_what_an_unknown_op_may_write_is_assumed_and_said(self):
        lines = [
            'view: "f32[2, 1, 3]" = torch.ops.aten.view.default(x, [2, 1, 3])',
            'many: "f32[2, 4, 3]" = torch.ops.aten.expand.default(view, [2, 4, 3])',
            'y: "f32[2, 3]" = torch.ops.my.attend(x, many)',
            'r: "f32[2, 3]" = torch.ops.aten.add.Tensor(y, x)',
        ]
        graph = self.path("g.pwg")
        messages = self.pwr("import", self.file("m.fx.txt", dump(lines, "r")), "-o", graph).stderr
        self.assertIn("note: `my.attend` has no known signature: it is assumed to write its arguments, here x", messages)
        with open(graph, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("op my.attend(...) effect", text)
        self.assertIn("writes = [0]", text)
        only = dump([lines[0], lines[1], 'y: "f32[2, 3]" = torch.ops.my.attend(many)'], "y")
        self.assertIn("`my.attend` has no known signature: it is assumed to write nothing", self.pwr("import", self.file("m.fx.txt", only)).stderr)

    def test_a_known_write_through_expand_is_refused_still(self):
        lines = [
            "view = torch.ops.aten.view.default(x, [2, 1, 3])",
            "many = torch.ops.aten.expand.default(view, [2, 4, 3])",
            "y = torch.ops.aten.add_.Tensor(many, 1)",
        ]
        self.assertIn("error[PW0516]", self.pwr("import", self.file("m.fx.txt", dump(lines, "x")), code=3).stderr)

    def test_an_assumed_write_stops_where_sharing_is_not_sure(self):
        text = "def forward(self, x):\n    a = torch.ops.my.make(x)\n    b = torch.ops.aten.reshape.default(a, [6])\n    c = torch.ops.my.use(b)\n    d = torch.ops.aten.neg.default(a)\n    return (c, d)\n"
        self.assertIn("`my.use` has no known signature", self.pwr("import", self.file("m.fx.txt", text)).stderr)

    SLICED = """class G(torch.nn.Module):
    def forward(self, s77: "Sym(s77)", x: "f32[s77, 2]"):
        first: "f32[s77, 2]" = torch.ops.aten.slice.Tensor(x, 0, 0, 5)
        a: "f32[s77, 2]" = torch.ops.aten.add.Tensor(first, 1)
        last: "f32[s77, 2]" = torch.ops.aten.slice.Tensor(x, 0, -4, 9223372036854775807)
        b: "f32[s77, 2]" = torch.ops.aten.mul.Tensor(last, 2)
        return (a, b)
"""

    def test_a_stated_type_says_how_a_symbol_compares(self):
        rows = ([3, 2], X)
        got = self.numbers(self.SLICED, {"x": rows}, "--tokens", "3")
        self.assertEqual(got, {"a": ([3, 2], [v + 1 for v in X]), "b": ([3, 2], [2 * v for v in X])})
        graph = self.file("m.fx.txt", self.SLICED)
        messages = self.pwr("import", graph).stderr
        self.assertIn("note: assumed: s77 <= 5, because `first` is stated as f32[s77, 2]; other sizes are refused", messages)
        self.assertIn("note: assumed: s77 <= 4", messages)
        self.assertIn("a step has 7 tokens, but the graph declares symbol s77 in 1..4", self.pwr("run", graph, "--tokens", "7", code=2).stderr)
        self.pwr("run", graph, "--check")  # the usual sizes that the graph has

    def test_the_other_way_round(self):
        text = self.SLICED.replace('first: "f32[s77, 2]"', 'first: "f32[5, 2]"').replace('a: "f32[s77, 2]"', 'a: "f32[5, 2]"')
        text = text.replace('last: "f32[s77, 2]"', 'last: "f32[4, 2]"').replace('b: "f32[s77, 2]"', 'b: "f32[4, 2]"')
        graph = self.file("m.fx.txt", text)
        self.assertIn("assumed: s77 >= 5", self.pwr("import", graph).stderr)
        self.assertIn("declares symbol s77 in 5..", self.pwr("run", graph, "--tokens", "3", code=2).stderr)
        x = [float(i) for i in range(12)]
        got = self.numbers(text, {"x": ([6, 2], x)}, "--tokens", "6")
        self.assertEqual(got, {"a": ([5, 2], [v + 1 for v in x[:10]]), "b": ([4, 2], [2 * v for v in x[4:]])})

    def test_a_slice_whose_type_nobody_states_is_as_long_as_the_rows_are(self):
        text = 'def forward(self, x: "f32[s77, 2]"):\n    first = torch.ops.aten.slice.Tensor(x, 0, 0, 5)\n    last = torch.ops.aten.slice.Tensor(x, 0, -4, 9223372036854775807)\n    a = torch.ops.aten.neg.default(first)\n    b = torch.ops.aten.neg.default(last)\n    return (a, b)\n'
        for rows in (1, 3, 4, 5, 7):
            x = [float(i) for i in range(2 * rows)]
            got = self.numbers(text, {"x": ([rows, 2], x)}, "--tokens", str(rows))
            self.assertEqual(got["a"], ([min(rows, 5), 2], [-v for v in x[:10]]))
            self.assertEqual(got["b"], ([min(rows, 4), 2], [-v for v in x[-8:]]))

    def test_a_contradiction_is_refused_still(self):
        text = self.SLICED.replace('first: "f32[s77, 2]"', 'first: "f32[s77 + 1, 2]"')
        self.assertIn("error[PW0511]", self.pwr("import", self.file("m.fx.txt", text), code=3).stderr)

    def test_a_last_row_of_a_symbol(self):
        text = 'def forward(self, x: "f32[s77, 2]"):\n    last = torch.ops.aten.select.int(x, 0, -1)\n    second = torch.ops.aten.select.int(x, 0, -2)\n    y = torch.ops.aten.sub.Tensor(last, second)\n    return (y,)\n'
        got = self.numbers(text, {"x": ([3, 2], [0, 1, 3, 5, 9, 100])}, "--tokens", "3")
        self.assertEqual(got["y"], ([2], [6.0, 95.0]))
        self.assertIn("s77 in 2..", self.pwr("run", self.path("m.fx.txt"), "--tokens", "1", code=2).stderr)

    def test_a_graph_without_a_symbol_runs_one_step(self):
        lines = [
            'turned: "f32[2, 3]" = torch.ops.aten.flip.default(x, [1])',
            'y: "f32[2, 3]" = torch.ops.aten.copy_.default(x, turned)',
            'r: "f32[2, 3]" = torch.ops.aten.add.Tensor(x, w)',
        ]
        text = dump(lines, "r", 'x: "f32[2, 3]", w: "f32[2, 3]"')
        tensors = {"x": ([2, 3], X), "w": ([2, 3], [0.0] * 6)}
        turned = [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]
        self.assertEqual(self.numbers(text, tensors), {"r": ([2, 3], turned), "x": ([2, 3], turned)})
        steps = json.loads(self.pwr("run", self.path("m.fx.txt"), "--format", "json").stdout)["graphs"][0]["steps"]
        self.assertEqual(len(steps), 1)


if __name__ == "__main__":
    unittest.main()
