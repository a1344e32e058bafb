#!/usr/bin/python3
"""Graphs run on numpy arrays, with opaque ops by Python callables. Skipped where there is no numpy."""
import ctypes
import sys
import tempfile
import unittest
from pathlib import Path

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


class Exported:
    """An array as another library exports it by DLPack, with another dtype code or device."""

    def __init__(self, array, code=None, device=1):
        self.array, self.code, self.device = array, code, device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, stream=None):
        capsule = self.array.__dlpack__()
        if self.code is not None:
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20).value = self.code  # after data, device and number of dims
        return capsule


class Runs(unittest.TestCase):
    def setUp(self):
        self.x = np.arange(12, dtype=np.float32).reshape(3, 4)
        self.inputs = {"x": self.x, "y": np.ones((3, 4), np.float32)}
        self.calls = []

    def scale(self, a, others, scale):
        self.calls.append((a.shape, len(others), others[1], scale))
        a *= scale
        return a + others[0]

    def test_conditions_of_the_imported_program(self):
        text = """{"format": "piecewise.graph/1", "name": "g",
          "symbols": {"n": {"min": 1, "max": 64, "role": "tokens"}, "m": {"min": 1, "max": 64}},
          "conditions": [{"left": "2*n", "op": ">", "right": "m", "text": "x is long"}],
          "inputs": [{"name": "x", "type": "f32[n]", "kind": "input"}, {"name": "y", "type": "f32[m]", "kind": "input"}],
          "nodes": [{"name": "z", "op": "neg", "operands": ["x"], "results": [{"name": "z", "type": "f32[n]"}]}],
          "outputs": ["z"]}"""
        graph, y = pw.load(text), np.zeros(6, np.float32)
        self.assertIn('"op": ">"', graph.json())
        for backend in ("eager", "cpu", "cuda-host"):
            np.testing.assert_array_equal(graph.run({"x": y[:4], "y": y}, backend=backend)[0], -y[:4])
            with self.assertRaisesRegex(pw.Error, "x is long, where n is 3 and m is 6") as caught:
                graph.run({"x": y[:3], "y": y}, backend=backend)
            self.assertEqual(caught.exception.code, "PW1210")
        one = pw.load(text.replace('"right": "m"', '"right": "6"'))
        pw.run_model(one, tokens=[4])
        with self.assertRaisesRegex(pw.Error, "x is long, where n is 3"):
            pw.run_model(one, tokens=[3])

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

    def test_a_static_graph_is_one_sequence_of_its_rows(self):
        def graph(symbol, rows):
            inputs = ", ".join(f"{name}: f32[{rows}, 2, 4]" for name in "qkv")
            return pw.load(f'graph g {{ {symbol}\n in {inputs}\n y = unified_attention(q, k, v, none){{layer = "a"}}\n out y }}\n')

        random = np.random.default_rng(0)
        arrays = {name: random.standard_normal((5, 2, 4)).astype(np.float32) for name in "qkv"}
        expected = graph("symbol n in 1..64 tokens", "n").run(arrays)[0]
        for backend in ("eager", "interpreter", "cpu", "cuda-host"):
            np.testing.assert_allclose(graph("", 5).run(arrays, backend=backend)[0], expected, rtol=1e-5, atol=1e-6, err_msg=backend)

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

    def test_tensors_of_other_libraries(self):
        graph = pw.load("graph { symbol n in 1..8 tokens  in x: f32[n, 4], y: f32[n, 4]  z = add(x, y)  out z }\n")
        wide = np.arange(24, dtype=np.float32).reshape(3, 8)
        for x in (self.x, wide[:, ::2], self.x.reshape(4, 3).T, wide[::-1, 2:6]):
            (out,) = graph.run({"x": Exported(x), "y": x})
            np.testing.assert_array_equal(out, x + x)
            np.testing.assert_array_equal(np.from_dlpack(out), out)
        (empty,) = pw.load("graph { in x: f32[0, 4]  z = relu(x)  out z }").run({"x": Exported(np.zeros((0, 4), np.float32))})
        self.assertEqual(empty.shape, (0, 4))
        for dtype in ("int32", "int64", "float16", "float64", "uint8", "int8"):
            name = {"float16": "f16", "float64": "f64", "uint8": "u8"}.get(dtype, dtype.replace("int", "i"))
            x = np.array([1, 2, 3], dtype)
            (out,) = pw.load(f"graph {{ in x: {name}[3]  z = reshape(x){{shape = [3]}}  out z }}").run({"x": Exported(x)})
            np.testing.assert_array_equal(out, x)
            self.assertEqual(out.dtype, x.dtype)

    def test_bfloat16_of_other_libraries(self):
        graph = pw.load("graph { in x: bf16[2]  y = add(x, x)  out y }\n")
        bits = np.array([0x3F80, 0x4000], np.uint16)
        for x in (Exported(bits), Exported(bits, code=4)):
            self.assertEqual(graph.run({"x": x})[0].tolist(), [0x4000, 0x4080])
        flags = pw.load("graph { in x: b8[2], y: f32[2], w: f32[2]  z = select(x, y, w)  out z }")
        self.assertEqual(
            flags.run({"x": Exported(np.array([1, 0], np.uint8), code=6), "y": np.ones(2, np.float32), "w": np.zeros(2, np.float32)})[0].tolist(),
            [1, 0],
        )

    def test_what_other_libraries_cannot_give(self):
        graph = pw.load("graph { in x: f32[2]  y = add(x, x)  out y }\n")
        with self.assertRaisesRegex(pw.Error, "input x is in the memory of a device"):
            graph.run({"x": Exported(np.ones(2, np.float32), device=2)})
        with self.assertRaisesRegex(pw.Error, "input x is a f32, which needs a tensor of float32, not of float64"):
            graph.run({"x": Exported(np.ones(2))})
        with self.assertRaisesRegex(pw.Error, "not of bfloat16"):
            graph.run({"x": Exported(np.ones(2, np.uint16), code=4)})
        with self.assertRaises(pw.Error):
            graph.run({"x": Exported(np.ones(3, np.float32))})

    def test_functions_may_return_tensors_of_other_libraries(self):
        graph = pw.load("graph { op mine.f(...)\n  in x: f32[3]\n  y: f32[3] = mine.f(x)\n  out y }\n")
        (out,) = graph.run({"x": np.arange(3, dtype=np.float32)}, functions={"mine.f": lambda x: Exported(x + 1)})
        self.assertEqual(out.tolist(), [1, 2, 3])

    def test_given_contents_of_the_main_job(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "g.pwg"
            path.write_text("graph { symbol n in 1..8 tokens  in x: f32[n, 4]  in weight w: bf16[4]  z = mul(x, w)  out z }\n")
            w = np.array([0x3F80, 0x4000, 0x4040, 0x4080], np.uint16)  # 1, 2, 3, 4
            for given in ({"x": self.x, "w": w}, {"x": Exported(self.x), "w": Exported(w, code=4)}):
                (step,) = pw.run_model(path, tokens=[3], given=given)["graphs"][0]["outputs"]
                np.testing.assert_array_equal(step["z"], self.x * [1, 2, 3, 4])
            for given, code in (({"z": self.x}, "PW1411"), ({"w": np.ones(3, np.uint16)}, "PW1411"), ({"x": self.x}, "PW1272")):
                with self.assertRaises(pw.Error) as caught:
                    pw.run_model(path, tokens=[2], given=given)
                self.assertEqual(caught.exception.code, code)
            with self.assertRaisesRegex(pw.Error, "input w is a bf16.*float32"):
                pw.run_model(path, given={"w": np.ones(4, np.float32)})
            with self.assertRaisesRegex(pw.Error, "one rank"):
                pw.run_model(path, tokens=[3], given={"x": self.x}, ranks=2)

    def test_what_is_wrong_is_said(self):
        graph = pw.load(GRAPH)
        with self.assertRaisesRegex(pw.Error, "mine.scale_"):
            graph.run(self.inputs)
        with self.assertRaisesRegex(pw.Error, "input x is a f32.*float64"):
            graph.run({**self.inputs, "x": self.x.astype(np.float64)}, functions={"mine.scale_": self.scale})
        with self.assertRaisesRegex(pw.Error, "no input `z`"):
            graph.run({"z": self.x})
        with self.assertRaisesRegex(pw.Error, "it has no tensor"):
            graph.run({"x": self.x}, functions={"mine.scale_": self.scale})
        with self.assertRaisesRegex(pw.Error, "result 0 of mine.scale_ has a different shape"):
            graph.run(self.inputs, functions={"mine.scale_": lambda a, b, scale: np.ones(3, np.float32)})
        with self.assertRaisesRegex(pw.Error, "returned nothing"):
            graph.run(self.inputs, functions={"mine.scale_": lambda a, b, scale: None})
        with self.assertRaises(ZeroDivisionError):
            graph.run(self.inputs, functions={"mine.scale_": lambda a, b, scale: 1 / 0})


if __name__ == "__main__":
    unittest.main()
