#!/usr/bin/python3
"""PT2 archives from outside: import with weights, run with them, and what is refused. The archives are made here."""
import io
import json
import struct
import sys
import unittest
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402
from weights_test import read, safetensors  # noqa: E402

ROWS = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 3}}}


def number(n):
    return {"as_int": n}


def meta(sizes, strides=(), offset=0):
    strides = [number(s) for s in strides]
    device = {"type": "cpu", "index": None}
    return {"dtype": 7, "sizes": sizes, "strides": strides, "storage_offset": number(offset), "layout": 7, "requires_grad": False, "device": device}


def tensor(name):
    return {"as_tensor": {"name": name}}


def node(target, inputs, name):
    arguments = [{"name": "", "arg": tensor(i), "kind": 1} for i in inputs]
    return {"target": target, "inputs": arguments, "outputs": [tensor(name)], "metadata": {}, "name": name}


def program():
    """y = x * w + n; n becomes n + w."""
    rows = meta([ROWS, number(2)])
    two = meta([number(2)])
    graph = {
        "inputs": [tensor("p_w"), tensor("b_n"), tensor("x")],
        "outputs": [tensor("next"), tensor("y")],
        "nodes": [
            node("torch.ops.aten.mul.Tensor", ["x", "p_w"], "m"),
            node("torch.ops.aten.add.Tensor", ["m", "b_n"], "y"),
            node("torch.ops.aten.add.Tensor", ["b_n", "p_w"], "next"),
        ],
        "tensor_values": {"p_w": two, "b_n": two, "x": rows, "m": rows, "y": rows, "next": two},
        "sym_int_values": {},
        "sym_bool_values": {},
    }
    signature = {
        "input_specs": [
            {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
            {"buffer": {"arg": {"name": "b_n"}, "buffer_name": "n", "persistent": True}},
            {"user_input": {"arg": tensor("x")}},
        ],
        "output_specs": [{"buffer_mutation": {"arg": {"name": "next"}, "buffer_name": "n"}}, {"user_output": {"arg": tensor("y")}}],
    }
    return {
        "graph_module": {"graph": graph, "signature": signature, "module_call_graph": []},
        "range_constraints": {"s0": {"min_val": 1, "max_val": 64}},
        "schema_version": {"major": 8, "minor": 20},
        "torch_version": "2.15.0",
    }


def payload(entry, about, pickled=False):
    return {"path_name": entry, "is_param": True, "use_pickle": pickled, "tensor_meta": about}


def archive(changed=None, method=zipfile.ZIP_STORED):
    weights = {"w": payload("weight_0", meta([number(2)], [2], 1)), "n": payload("weight_1", meta([number(2)], [1]))}
    entries = {
        "data/weights/weight_0": struct.pack("<4f", 0, 10, 0, 100),
        "data/weights/weight_1": struct.pack("<2f", 1, 2),
        "data/weights/model_weights_config.json": json.dumps({"config": weights}),
        "data/sample_inputs/model.pt": b"\x80\x02a pickle",
        "models/model.json": json.dumps(program()),
        "archive_format": "pt2",
        "archive_version": "0",
        "byteorder": "little",
        **(changed or {}),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, content in entries.items():
            file.writestr("m/" + name, content)
    return out.getvalue()


class Pt2(ProgramTest):
    def setUp(self):
        self.archive = self.file("m.pt2", archive())

    def test_a_run_has_the_weights_of_the_archive(self):
        given = self.file("x.safetensors", safetensors({"x": ([3, 2], [1, 2, 3, 4, 5, 6]), "p_w": ([2], [10, 100]), "b_n": ([2], [1, 2])}))
        for graph in (self.archive, self.file("packed.pt2", archive(method=zipfile.ZIP_DEFLATED))):
            weights, imported, out = self.path("w.safetensors"), self.path("g.json"), self.path("out.safetensors")
            messages = self.pwr("import", graph, "-o", imported, "--save-weights", weights).stderr
            self.assertIn("this is a PT2 archive of torch.export, PyTorch 2.15.0", messages)
            self.assertIn("not read: data/sample_inputs/model.pt", messages)
            self.assertEqual(read(weights), {"b_n": ([2], [1, 2]), "p_w": ([2], [10, 100])})
            self.pwr("run", imported, "--weights", given, "--tokens", "3", "--save", out)
            self.assertEqual(read(out)["y"], ([3, 2], [11, 202, 31, 402, 51, 602]))
            for source in (graph, imported):
                messages = self.pwr("run", source, "--weights", graph, "--tokens", "3", "--save", out).stderr
                self.assertIn("2 inputs are tensors", messages)
                self.assertEqual(read(out)["b_n"], ([2], [11, 102]))

    def test_runs_check_conditions_on_sizes(self):
        whole = program()
        whole["guards_code"] = ["(L['x'].size()[0] % 3) != 0"]
        graph, imported, rewritten, compiled = (self.path(name) for name in ("c.pt2", "c.json", "o2.json", "c.pwx"))
        self.file("c.pt2", archive({"models/model.json": json.dumps(whole)}))
        self.assertIn("checked by runs: (L['x'].size()[0] % 3) != 0", self.pwr("import", graph, "-o", imported).stderr)
        self.pwr("opt", graph, "-r", "llm", "-p", "o2", "-o", rewritten)
        self.pwr("compile", graph, "--backend", "eager", "-o", compiled)
        for source in (graph, imported, rewritten, compiled):
            with self.subTest(source):
                self.pwr("run", source, "--tokens", "2,4")
                printed = self.pwr("run", source, "--tokens", "4,6", code=2).stderr
                self.assertIn("error[PW1210]: the program refuses these sizes: (L['x'].size()[0] % 3) != 0, where s0 is 6", printed)
        for changed, code, message in (
            ('"op": "=>"', "PW1005", "this is not a comparison"),
            ('"op": 3', "PW1005", "expected a string"),
            ('"op": "!=", "more": 1', "PW1006", "unknown member `more`"),
        ):
            text = Path(imported).read_text(encoding="utf-8").replace('"op": "!="', changed)
            printed = self.pwr("stats", self.file("wrong.json", text), code=3).stderr
            self.assertIn(f"error[{code}]", printed)
            self.assertIn("/conditions/0", printed)
        other = json.loads(Path(imported).read_text(encoding="utf-8"))
        other["conditions"][0]["left"] = "s9"
        self.assertIn("the symbol `s9` is not declared", self.pwr("stats", self.file("wrong.json", json.dumps(other)), code=3).stderr)

    def test_other_commands_read_archives(self):
        self.assertIn("mul", self.pwr("stats", self.archive).stdout)
        self.pwr("opt", self.archive, "-r", "llm", "-p", "o2", "-o", self.path("o2.json"))
        self.pwr("diff", self.archive, self.archive)

    def refused(self, changed, code, message, command=("import",)):
        done = self.pwr(*command, self.file("wrong.pt2", archive(changed)), code=3)
        self.assertIn(f"error[{code}]: {message}", done.stderr)
        return done.stderr

    def test_what_is_wrong_is_told_with_its_place(self):
        broken = program()
        broken["graph_module"]["graph"]["nodes"][1]["inputs"][0]["arg"] = tensor("nothing")
        messages = self.refused({"models/model.json": json.dumps(broken)}, "PW0509", "unknown name `nothing`")
        self.assertRegex(messages, r"wrong\.pt2/m/models/model\.json at /graph_module/graph/nodes/1\n")
        self.refused({"models/model.json": "{"}, "PW0531", "invalid JSON at byte")
        self.refused({"archive_version": "7"}, "PW0530", "the archive states `7`")

    def test_pickles_and_places_outside_are_refused(self):
        def config(about):
            return {"data/weights/model_weights_config.json": json.dumps({"config": {"w": about, "n": payload("weight_1", meta([number(2)], [1]))}})}

        export = ("import", "-o", self.path("g.json"), "--save-weights", self.path("w.safetensors"))
        self.refused(config(payload("weight_0", None, True)), "PW1274", "no contents for the input p_w: it is pickled", export)
        self.refused(config(payload("weight_0", meta([number(2)], [3], 1))), "PW0531", "the tensor extends to element 4", export)
        self.refused(config(payload("../../../etc/hostname", meta([number(1)], [1]))), "PW0531", "the archive has no entry", export)
        done = self.pwr("import", self.file("g.pwg", b"graph g { in x: f32[2]\n out x }"), "--save-weights", self.path("w"), code=3)
        self.assertIn("error[PW1274]: this file contains no weights", done.stderr)


if __name__ == "__main__":
    unittest.main()
