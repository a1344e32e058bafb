#!/usr/bin/python3
"""Graphs run on numpy arrays, with opaque ops by Python callables. Skipped where there is no numpy."""
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: the interpreter has no numpy")
    sys.exit(77)

import piecewise as pw

GRAPH = """graph g {
  symbol n in 1..64 tokens
  op mine.scale_(...) effect
  in x: f32[n, 4], y: f32[n, 4]
  in buffer seen: f32[n, 4]
  a = add(x, y)
  b: f32[n, 4], a2: f32[n, 4] = mine.scale_(a, y){writes = [0], scale = 2.0, call = "%0, [%1, None], scale = $scale"}
  c = mul(a2, b)
  out c, a2
  write seen = a
}
"""


class Runs(unittest.TestCase):
    def setUp(self):
        self.x = np.arange(12, dtype=np.float32).reshape(3, 4)
        self.inputs = {"x": self.x, "y": np.ones((3, 4), np.float32)}
        self.calls = []

    def scale(self, a, others, scale):
        self.calls.append((a.shape, len(others), others[1], scale))
        a *= scale
        return a + others[0]

    def test_every_backend(self):
        graph = pw.load(GRAPH)
        wanted = (self.x + 1) * 2
        for backend in ("eager", "interpreter", "cpu", "cuda-host"):
            out = graph.run(self.inputs, functions={"mine.scale_": self.scale}, backend=backend)
            self.assertEqual(out.names, ["c", "a2"])
            np.testing.assert_array_equal(out[1], wanted)
            np.testing.assert_array_equal(out[0], wanted * (wanted + 1))
            np.testing.assert_array_equal(out.written["seen"], self.x + 1)
            self.assertEqual(out[0].dtype, np.float32)
        self.assertEqual(self.calls, [((3, 4), 2, None, 2.0)] * 4)

    def test_rewritten_graphs_run(self):
        graph = pw.load(
            "graph { symbol n in 1..8 tokens  in x: f32[n, 4], r: f32[n, 4], w: f32[4]\n"
            "  s = add(x, r)\n  y = rms_norm(s, w){eps = 1e-5}\n  out y, s }\n"
        )
        rewritten = graph.rewrite(pw.rules("llm"), "o2")
        self.assertNotEqual(rewritten.ops(), graph.ops())
        inputs = {"x": self.x, "r": self.x * 2, "w": np.ones(4, np.float32)}
        for before, after in zip(graph.run(inputs), rewritten.run(inputs)):
            np.testing.assert_allclose(before, after, rtol=1e-6)

    def test_bits_of_bf16(self):
        graph = pw.load("graph { in x: bf16[2]  y = add(x, x)  out y }\n")
        out = graph.run({"x": np.array([0x3F80, 0x4000], np.uint16)})  # 1, 2
        self.assertEqual(out[0].tolist(), [0x4000, 0x4080])  # 2, 4

    def test_what_is_wrong_is_said(self):
        graph = pw.load(GRAPH)
        with self.assertRaisesRegex(pw.Error, "mine.scale_"):
            graph.run(self.inputs)
        with self.assertRaisesRegex(pw.Error, "input x is a f32.*float64"):
            graph.run({**self.inputs, "x": self.x.astype(np.float64)}, functions={"mine.scale_": self.scale})
        with self.assertRaisesRegex(pw.Error, "no input `z`"):
            graph.run({"z": self.x})
        with self.assertRaisesRegex(pw.Error, "no tensor is given"):
            graph.run({"x": self.x}, functions={"mine.scale_": self.scale})
        with self.assertRaisesRegex(pw.Error, "result 0 of mine.scale_ has another shape"):
            graph.run(self.inputs, functions={"mine.scale_": lambda a, b, scale: np.ones(3, np.float32)})
        with self.assertRaisesRegex(pw.Error, "returned nothing"):
            graph.run(self.inputs, functions={"mine.scale_": lambda a, b, scale: None})
        with self.assertRaises(ZeroDivisionError):
            graph.run(self.inputs, functions={"mine.scale_": lambda a, b, scale: 1 / 0})


if __name__ == "__main__":
    unittest.main()
