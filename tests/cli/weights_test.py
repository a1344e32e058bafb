#!/usr/bin/python3
"""pwr run --weights, --map, --save and --expect from outside, with files that are made here."""
import json
import os
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402

GRAPH = """graph g {
  symbol n in 1..64 tokens
  in x: f32[n, 2]  in weight l0_w: f32[2], l1_w: f32[2]
  y = x * l0_w
  z = y * l1_w
  out y, z
}
"""


def safetensors(tensors):
    """{name: (shape, floats)}"""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def integers(tensors):
    """{name: (safetensors dtype, letter of struct, numbers)}"""
    header, data = {}, b""
    for name, (dtype, letter, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}{letter}", *numbers)
        header[name] = {"dtype": dtype, "shape": [len(numbers)], "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read(path):
    bytes_ = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", bytes_[:8])
    header, out = json.loads(bytes_[8 : 8 + length]), {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        out[name] = (entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", bytes_[begin:end])))
    return out


BACKENDS = (("eager",), ("interpreter",), ("cpu",), ("cpu", "--strict"), ("cuda", "--driver", "host"))

DIVISIONS = """class f(torch.nn.Module):
    def forward(self, a_1: "i8[7]", b_1: "i8[7]", c_1: "i64[5]"):
        floor_divide: "i8[7]" = torch.ops.aten.floor_divide.default(a_1, b_1)
        div: "i64[5]" = torch.ops.aten.div.Tensor_mode(c_1, -3, rounding_mode = 'floor')
        floor_divide_1: "i64[5]" = c_1 // 10
        remainder: "i8[7]" = torch.ops.aten.remainder.Tensor(a_1, b_1);  a_1 = b_1 = None
        div_1: "i64[5]" = torch.ops.aten.div.Tensor_mode(c_1, 3, rounding_mode = 'trunc');  c_1 = None
        return (floor_divide, div, floor_divide_1, remainder, div_1)
"""

CASTS = """graph g {
  in x: f32[4]
  a = f32(f16(x))
  b = f32(bf16(x))
  out a, b
}
"""


class Numbers(ProgramTest):
    def test_floor_division_does_not_wrap_before_it_divides(self):
        a, b = [-128, 127, -128, -7, 7, -1, -128], [3, -128, 127, 2, -2, 3, -1]
        c = [-(2**63), -(2**63) + 1, 2**63 - 1, -1, 10]
        graph = self.file("divisions.fx.txt", DIVISIONS.encode())
        given = self.file("in", integers({"a_1": ("I8", "b", a), "b_1": ("I8", "b", b), "c_1": ("I64", "q", c)}))
        wanted = {
            "floor_divide": ("I8", "b", [(x // y + 128) % 256 - 128 for x, y in zip(a, b)]),
            "div": ("I64", "q", [x // -3 for x in c]),
            "floor_divide_1": ("I64", "q", [x // 10 for x in c]),
            "remainder": ("I8", "b", [x % y for x, y in zip(a, b)]),
            "div_1": ("I64", "q", [int(x // 3 if x >= 0 else -(-x // 3)) for x in c]),
        }
        expected = self.file("want", integers(wanted))
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                self.pwr("run", graph, "--weights", given, "--backend", *backend, "--expect", expected, "--rtol", "0", "--atol", "0")

    def test_a_stated_cast_rounds_on_every_backend(self):
        graph = self.file("casts.pwg", CASTS.encode())
        given = self.file("in", safetensors({"x": ([4], [2049, 0.1, 1.0009765625, -70000])}))
        near = safetensors({"a": ([4], [2048, 0.0999755859375, 1.0009765625, float("-inf")]), "b": ([4], [2048, 0.10009765625, 1, -70144])})
        expected = self.file("want", near)
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                done = self.pwr(
                    "run",
                    graph,
                    "--weights",
                    given,
                    "--backend",
                    *backend,
                    "--expect",
                    expected,
                    "--rtol",
                    "0",
                    "--atol",
                    "0",
                    "--check",
                    "--format",
                    "json",
                )
                self.assertEqual(json.loads(done.stdout)["graphs"][0]["ties"], [])


class ChangingWeights(ProgramTest):
    """Weights that another program writes while they are used. The map is a pipe: it is read once the weights are mapped."""

    WIDE = "graph g {\n  symbol n in 1..64 tokens\n  in x: f32[n, 65536]  in weight w: f32[65536]\n  y = x * w\n  out y, w\n}\n"

    def run_while(self, change, *args):
        graph, pipe = self.file("wide.pwg", self.WIDE.encode()), self.path("map.pipe")
        weights = self.file("wide.safetensors", safetensors({"w": ([65536], [2.0] * 65536)}))
        os.utime(weights, (1, 1))
        os.mkfifo(pipe)
        command = [BIN / "pwr", "run", graph, "--weights", weights, "--map", pipe, "--tokens", "3", *args]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        writer = self.opened(pipe, process)
        change(weights)
        os.write(writer, b"{}")
        os.close(writer)
        out, messages = process.communicate(timeout=3600)
        os.unlink(pipe)
        return process.returncode, out, messages

    def opened(self, pipe, process):
        """The pipe's other end, once the program reads it."""
        while process.poll() is None:
            try:
                return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                time.sleep(0.01)
        self.fail(process.communicate()[1])

    @staticmethod
    def rewrite(path):
        with open(path, "r+b") as file:
            file.seek(100_000)
            file.write(b"\1")

    def test_no_number_of_a_changed_file_is_told(self):
        for change in (lambda path: os.truncate(path, 4096), lambda path: os.truncate(path, 100_001), self.rewrite):
            for backend in ("interpreter", "eager", "cpu"):
                with self.subTest(backend=backend):
                    out = self.path("never.safetensors")
                    code, printed, messages = self.run_while(change, "--backend", backend, "--save", out, "--check")
                    self.assertEqual(code, 3, messages)
                    self.assertIn("PW1275", messages)
                    self.assertIn("changed while it was being read", messages)
                    self.assertNotIn("rms", printed)
                    self.assertFalse(os.path.exists(out))

    def test_a_file_that_is_replaced_is_read_to_its_end(self):
        def replace(path):
            Path(path + ".new").write_bytes(b"another")
            os.rename(path + ".new", path)

        out = self.path("out.safetensors")
        code, _, messages = self.run_while(replace, "--backend", "interpreter", "--save", out)
        self.assertEqual(code, 0, messages)
        self.assertEqual(read(out)["w"][1], [2.0] * 65536)

    def test_a_weights_file_in_python(self):
        program = (
            "import faulthandler, sys\nfaulthandler.enable()\nimport piecewise\n"
            "try:\n    piecewise.run_model(sys.argv[1], weights=sys.argv[2], map=sys.argv[3], tokens=[3], backend='interpreter')\n"
            "except piecewise.Error as error:\n    print(error.code)\n"
        )
        graph, pipe = self.file("wide.pwg", self.WIDE.encode()), self.path("python.pipe")
        weights = self.file("wide.safetensors", safetensors({"w": ([65536], [2.0] * 65536)}))
        os.mkfifo(pipe)
        env = {**os.environ, "PYTHONPATH": f"{BIN.parent}/python:python"}
        if subprocess.run([sys.executable, "-c", "import piecewise"], env=env, capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no Python module")
        process = subprocess.Popen(
            [sys.executable, "-c", program, graph, weights, pipe], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        writer = self.opened(pipe, process)
        os.truncate(weights, 4096)
        os.write(writer, b"{}")
        os.close(writer)
        out, messages = process.communicate(timeout=3600)
        self.assertEqual((process.returncode, out), (0, "PW1275\n"), messages)


class Weights(ProgramTest):
    def setUp(self):
        self.graph = self.file("g.pwg", GRAPH.encode())
        self.weights = self.file(
            "w.safetensors", safetensors({"layers.0.w": ([2], [2, 3]), "layers.1.w": ([2], [10, 100]), "tokens": ([3, 2], [1, 2, 3, 4, 5, 6])})
        )
        self.map = self.file("map.json", b'{"l{i}_w": "layers.{i}.w", "x": "tokens"}')

    def run_it(self, *args, code=0):
        return self.pwr("run", self.graph, "--weights", self.weights, "--map", self.map, "--tokens", "3", *args, code=code)

    def test_outputs_are_those_of_the_weights(self):
        for backend in (("eager",), ("cpu", "--strict"), ("cuda", "--driver", "host", "--strict")):
            out = self.path("out.safetensors")
            done = self.run_it("--backend", *backend, "--save", out, "--check")
            self.assertIn("3 inputs are tensors", done.stderr)
            self.assertEqual(read(out), {"y": ([3, 2], [2, 6, 6, 12, 10, 18]), "z": ([3, 2], [20, 600, 60, 1200, 100, 1800])})
            self.run_it("--backend", *backend, "--expect", out)

    def test_expected_outputs_that_differ(self):
        right = {"y": ([3, 2], [2, 6, 6, 12, 10, 18]), "z": ([3, 2], [20, 600, 60, 1200, 100, 1800])}
        near = self.file("near", safetensors({**right, "z": ([3, 2], [20, 600.5, 60, 1200, 100, 1800])}))
        done = self.run_it("--expect", near, "--format", "json", code=4)
        rows = json.loads(done.stdout)["graphs"][0]["expected"]
        self.assertEqual([(row["output"], row["outside"], row["largest"]) for row in rows], [("y", 0, 0), ("z", 1, 0.5)])
        self.assertEqual(rows[0]["result"], "ok")
        self.assertIn("the RMS of the difference is 0.204, at most ", rows[1]["result"])
        self.assertIn("the largest is 0.5", rows[1]["result"])
        self.assertEqual((round(rows[1]["rms_error"], 3), rows[1]["may_be"] < 1e-3), (0.204, True))
        self.run_it("--expect", near, "--rtol", "0.001")
        self.run_it("--expect", near, "--rtol", "0", "--atol", "0.5")
        self.run_it("--expect", near, "--rtol", "0", "--atol", "0.49", code=4)
        self.run_it("--expect", self.file("nan", safetensors({**right, "y": ([3, 2], [2, float("nan"), 6, 12, 10, 18])})), code=4)
        self.run_it("--expect", self.file("shape", safetensors({**right, "y": ([6], [2, 6, 6, 12, 10, 18])})), code=4)
        missing = self.run_it("--expect", self.file("missing", safetensors({"z": right["z"], "yy": right["y"]})), code=3)
        self.assertIn("did you mean `yy`?", missing.stderr)
        self.assertIn("it has yy, z", missing.stderr)
        self.assertIn("1 of 6 elements differ", self.run_it("--expect", near, "--rtol", "0", code=4).stdout)
        self.run_it("--rtol", "0.1", code=2)

    def test_outputs_of_other_names_are_taken_in_their_order(self):
        for first, second in (("output_9", "output_10"), ("zz", "aa"), ("0", "1")):
            other = self.file("other", safetensors({first: ([3, 2], [2, 6, 6, 12, 10, 18]), second: ([3, 2], [20, 600, 60, 1200, 100, 1800])}))
            self.assertIn(f"starting with {first} as y", self.run_it("--expect", other).stderr)
        more = self.file("more", safetensors({n: ([3, 2], [2, 6, 6, 12, 10, 18]) for n in ("a", "b", "c")}))
        self.assertIn("it has a, b, c", self.run_it("--expect", more, code=3).stderr)
        swapped = self.file("swapped", safetensors({"o2": ([3, 2], [2, 6, 6, 12, 10, 18]), "o1": ([3, 2], [20, 600, 60, 1200, 100, 1800])}))
        self.run_it("--expect", swapped, code=4)

    def test_a_static_graph_has_one_step_and_names_without_its_number(self):
        graph = self.file("static.pwg", b"graph s {\n  in x: f32[6, 4]  in weight w: f32[4]\n  sum = x + w\n  out sum\n}\n")
        out = self.path("static.safetensors")
        done = self.pwr("run", graph, "--save", out, "--format", "json")
        self.assertEqual([row["tokens"] for row in json.loads(done.stdout)["graphs"][0]["steps"]], [6])
        self.assertEqual(list(read(out)), ["sum"])
        self.pwr("run", graph, "--expect", out)
        numbered = self.file("numbered", safetensors({"sum@0": read(out)["sum"]}))
        self.pwr("run", graph, "--expect", numbered)
        refused = self.pwr("run", graph, "--tokens", "6,7", code=2).stderr
        for words in ("graph s", "7 tokens", "6 rows", "--tokens 6", "--symbol n=x.0", "PW1404"):
            self.assertIn(words, refused)
        self.assertIn("--symbol n=x.0", self.pwr("sizes", graph, "--histogram", "uniform", code=3).stderr)

    def test_a_static_graph_of_very_many_rows_names_symbol(self):
        graph = self.file("wide.pwg", b"graph s {\n  in x: f32[8192, 4]\n  y = relu(x)\n  out y\n}\n")
        few = self.file("few.pwg", b"graph s {\n  in x: f32[4096, 4]\n  y = relu(x)\n  out y\n}\n")
        for command in ("plan", "run"):
            self.assertIn("--symbol n=x.0", self.pwr(command, graph).stderr)
            self.assertNotIn("--symbol", self.pwr(command, few).stderr)

    def test_what_a_write_renamed_is_found_by_the_name_of_the_input(self):
        graph = self.file(
            "write.pwg",
            b"graph w {\n  symbol n in 1..64 tokens\n  in x: f32[n, 2]  in buffer cache: f32[n, 2]\n"
            b"  cache_1 = cache + x\n  out cache_1 write cache = cache_1\n}\n",
        )
        out = self.path("written.safetensors")
        self.pwr("run", graph, "--tokens", "3", "--save", out)
        value = read(out)["cache_1"]
        self.assertIn("cache", read(out))
        for names in (("cache",), ("cache_1",), ("cache", "cache_1")):
            self.pwr("run", graph, "--tokens", "3", "--expect", self.file("by_name", safetensors({name: value for name in names})))

    def test_a_right_run_in_bf16_is_right(self):
        model = self.make(
            "model.json", "generate", "llama", "--layers", "2", "--hidden", "64", "--heads", "4", "--kv-heads", "2", "--ffn", "96", "--vocab", "64"
        )
        out = self.path("right.safetensors")
        self.pwr("run", model, "--tokens", "5", "--backend", "eager", "--save", out)
        for backend in ("cpu", "interpreter"):
            self.pwr("run", model, "--tokens", "5", "-r", "llm", "-p", "o2", "--backend", backend, "--expect", out)
        wrong = self.pwr("run", model, "--tokens", "5", "--seed", "2", "--expect", out, code=4)
        self.assertIn("the RMS of the difference", wrong.stdout)

    def test_several_steps_are_numbered(self):
        steps, out = self.file("s.txt", b"0:3\n0:1\n"), self.path("out")
        args = ("run", self.graph, "--steps", steps)
        self.pwr(*args, "--save", out)
        self.assertEqual({name: value[0] for name, value in read(out).items()}, {"y@0": [3, 2], "z@0": [3, 2], "y@1": [1, 2], "z@1": [1, 2]})
        self.pwr(*args, "--expect", out, "--no-pad")

    def test_what_does_not_fit_is_named(self):
        self.assertIn("PW1272", self.pwr("run", self.graph, "--weights", self.weights, "--tokens", "3", code=3).stderr)
        self.assertIn(
            "this step needs [4, 2]", self.pwr("run", self.graph, "--weights", self.weights, "--map", self.map, "--tokens", "4", code=3).stderr
        )
        self.map = self.file("map.json", b'{"m{i}_w": "layers.{i}.w"}')
        self.assertIn("PW1273", self.run_it(code=3).stderr)
        self.map = self.file("map.json", b'{"l{i}_w": 7}')
        self.assertIn("PW1273", self.run_it(code=3).stderr)
        content = Path(self.weights).read_bytes()
        for cut in (0, 7, 20, len(content) - 1):
            self.weights = self.file("cut", content[:cut])
            self.assertIn("PW1271", self.run_it(code=3).stderr)
        self.weights = self.folder.name
        self.assertIn("PW1270", self.run_it(code=3).stderr)
        self.pwr("run", self.graph, "--map", self.map, code=2)
        self.assertEqual(self.pwr("run", self.graph, "--ranks", "2", "--save", "x", code=5).stdout, "")

    def test_bench_takes_them_too(self):
        self.pwr("bench", self.graph, "--weights", self.weights, "--map", self.map, "--tokens", "3", "--repeats", "1")


if __name__ == "__main__":
    unittest.main()
