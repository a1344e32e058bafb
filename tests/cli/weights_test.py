#!/usr/bin/python3
"""pwr run --weights, --map, --save and --expect from outside, with files that are made here."""
import json
import struct
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402

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


def read(path):
    bytes_ = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", bytes_[:8])
    header, out = json.loads(bytes_[8:8 + length]), {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        out[name] = (entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", bytes_[begin:end])))
    return out


class Weights(ProgramTest):
    def setUp(self):
        self.graph = self.file("g.pwg", GRAPH.encode())
        self.weights = self.file("w.safetensors", safetensors({"layers.0.w": ([2], [2, 3]), "layers.1.w": ([2], [10, 100]),
                                                               "tokens": ([3, 2], [1, 2, 3, 4, 5, 6])}))
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
        rows = json.loads(done.stdout[done.stdout.index("[", done.stdout.index("]")):])
        self.assertEqual([(row["output"], row["outside"], row["largest"]) for row in rows], [("y", 0, 0), ("z", 1, "0.5")])
        self.assertEqual(rows[0]["result"], "ok")
        self.assertIn("1 of 6 elements differ", rows[1]["result"])
        self.run_it("--expect", near, "--rtol", "0.001")
        self.run_it("--expect", near, "--rtol", "0", "--atol", "0.5")
        self.run_it("--expect", near, "--rtol", "0", "--atol", "0.49", code=4)
        self.run_it("--expect", self.file("nan", safetensors({**right, "y": ([3, 2], [2, float("nan"), 6, 12, 10, 18])})), code=4)
        self.run_it("--expect", self.file("shape", safetensors({**right, "y": ([6], [2, 6, 6, 12, 10, 18])})), code=4)
        missing = self.run_it("--expect", self.file("missing", safetensors({"z": right["z"], "yy": right["y"]})), code=3)
        self.assertIn("did you mean `yy`?", missing.stderr)
        self.run_it("--rtol", "0.1", code=2)

    def test_several_steps_are_numbered(self):
        steps, out = self.file("s.txt", b"0:3\n0:1\n"), self.path("out")
        args = ("run", self.graph, "--steps", steps)
        self.pwr(*args, "--save", out)
        self.assertEqual({name: value[0] for name, value in read(out).items()},
                         {"y@0": [3, 2], "z@0": [3, 2], "y@1": [1, 2], "z@1": [1, 2]})
        self.pwr(*args, "--expect", out, "--no-pad")

    def test_what_does_not_fit_is_named(self):
        self.assertIn("PW1272", self.pwr("run", self.graph, "--weights", self.weights, "--tokens", "3", code=3).stderr)
        self.assertIn("this step needs [4, 2]", self.pwr("run", self.graph, "--weights", self.weights, "--map", self.map,
                                                         "--tokens", "4", code=3).stderr)
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
