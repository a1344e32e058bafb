"""Graphs written as ONNX models: onnx's checker takes them, and ONNX Runtime computes what Piecewise does. Run by run.py."""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

GRAPHS = {
    "mlp": "graph g { in x: f32[n, 8], w: f32[8, 16], b: f32[16]  h = relu(addmm(b, x, w))  y = silu(h)  out y, h }",
    "norm": "graph g { in x: f32[n, 8], w: f32[8]  y = rms_norm(x, w){eps = 1e-5}  out y }",
    "gates": "graph g { in x: f32[n, 16]  a = silu_and_mul(x)  b = gelu(a)  c = gelu_tanh(a)  d = sigmoid(a)  out b, c, d }",
    "functions": """graph g { in x: f32[3, 4], y: f32[3, 4]
        a = exp(x) + log(abs(y)) - tanh(x) * sin(y) / (cos(x) + 3.0)
        b = pow(abs(x), y)  c = maximum(x, minimum(y, 0.5))  d = rsqrt(abs(x) + 1.0)  e = floor(x) + ceil(y) + round(x)
        f = select(lt(x, y), x, y)  h = fmod(x, y)  k = erf(x)  m = ne(x, y)  out a, b, c, d, e, f, h, k, m }""",
    "reductions": """graph g { in x: f32[n, 4, 5]
        a = sum(x){dim = 1}  b = mean(x){dim = 2, keepdim = true}  c = amax(x){dim = 0}  d = amin(x){dim = -1}
        e = argmax(x){dim = 1}  f = cumsum(x){dim = 1}  h = prod(x){dim = 2}  s, i = sort(x){dim = 1, descending = true}
        out a, b, c, d, e, f, h, s, i }""",
    "layout": """graph g { in x: f32[n, 4, 6]
        a = reshape(x){shape = [n * 4, 6]}  b = transpose(x){dim0 = 0, dim1 = 2}  c = slice(x){dim = 2, start = 1, end = 5, step = 2}
        d, e = split(x){dim = 1, sizes = [1, 3]}  f = cat(d, e, x){dim = 1}  h = reshape(x){shape = [2 * n, 2, 6]}
        k = expand(slice(x){dim = 1, start = 0, end = 1}){shape = [n, 7, 6]}  l = slice(x){dim = 0, start = 0, end = n - 1}
        out a, b, c, d, e, f, h, k, l }""",
    "types": """graph g { in x: f16[3, 4], i: i64[3, 4], m: b8[3, 4], u: u8[3, 4]
        a = x * 2.0  b = f32(x) + f32(i)  c = i + 3  d = bitwise_and(m, lt(i, 2))  e = bitwise_xor(i, 5)  f = x + i
        h = remainder(i, 3)  k = u + u  l = select(m, i, 0)  o = bitwise_not(m)  out a, b, c, d, e, f, h, k, l, o }""",
    "rows": """graph g { in t: f32[10, 4], i: i64[n], w: f32[2, n, 4], v: f32[2, 4, 3]
        a = embedding(t, i)  b = bmm(w, v)  c = index(t, i){dim = 0}  d = iota(){shape = [n, 3], dtype = f32}  e = mm(a, t2)
        out a, b, c, d, e }""".replace(
        "e = mm(a, t2)", "e = mm(a, transpose(t){dim0 = 0, dim1 = 1})"
    ),
    "numbers": "graph g { in x: f32[n, 4]  a = x * 0.1 + full(){shape = [n, 4], value = 2.5, dtype = f32}  out a, x, a }",
}
CUSTOM = "graph g { in x: f32[2, 4]  y = log2(x)  out y }"
TOLERANCE = {"float16": 2e-3, "float32": 2e-5}


def drawn(name, type_, rng):
    dtype, _, dims = type_.partition("[")
    shape = [5 if d.strip() == "n" else int(d) for d in dims.rstrip("]").split(",") if d.strip()]
    if dtype in ("i64", "i32", "u8"):
        return rng.integers(0, 10, shape).astype({"i64": np.int64, "i32": np.int32, "u8": np.uint8}[dtype])
    if dtype == "b8":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.standard_normal(shape).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])


def check(name, text, folder):
    import onnx
    import onnxruntime

    import piecewise

    graph = piecewise.load(text)
    path = folder / f"{name}.onnx"
    piecewise.export(graph, path)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    rng = np.random.default_rng(7)
    inputs = {i.name: drawn(i.name, i.type, rng) for i in graph.inputs}
    wanted = list(graph.run(inputs))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = {i.name for i in session.get_inputs()}
    for want, got in zip(wanted, session.run(None, {k: v for k, v in inputs.items() if k in names})):
        tolerance = TOLERANCE.get(str(want.dtype), 1e-12)
        if want.dtype != got.dtype or want.shape != got.shape or not np.allclose(want, got, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{name}: ONNX Runtime gives other numbers"
    again = list(piecewise.from_onnx(path).run(inputs))
    for want, got in zip(wanted, again):
        if want.shape != got.shape or not np.allclose(want, got, rtol=2e-3, atol=2e-3, equal_nan=True):
            return f"{name}: read back it gives other numbers"
    return ""


def custom(folder):
    """An op that ONNX has not is a call of our domain."""
    import onnx

    import piecewise

    path = folder / "custom.onnx"
    piecewise.export(piecewise.load(CUSTOM), path)
    model = onnx.load(path)
    onnx.checker.check_model(model)
    calls = [(node.domain, node.op_type) for node in model.graph.node]
    return "" if calls == [("piecewise", "log2")] else f"custom: {calls}"


def main():
    warnings.filterwarnings("ignore")
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as missing:
        print(f"SKIPPED: {missing}", file=sys.stderr)
        return 0
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in GRAPHS.items():
            try:
                wrong.append(check(name, text, Path(folder)))
            except Exception as error:  # whatever the checker or the runtime raises
                wrong.append(f"{name}: {type(error).__name__}: {str(error)[:400]}")
        wrong.append(custom(Path(folder)))
    print("\n".join(filter(None, wrong)) or f"{len(GRAPHS) + 1} graphs as ONNX models: onnx's checker, ONNX Runtime and the import agree")
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
