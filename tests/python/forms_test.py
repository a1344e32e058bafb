"""Small dumps, one for each form or trap, run unchanged and after o2; the expected numbers are computed here with numpy.

They are data that the project does not contain (PW_SHARED_DATA, or ../shared/data); without them the test is skipped.
"""

import os
import sys
from pathlib import Path

import numpy as np
import piecewise as pw

FORMS = Path(os.environ.get("PW_SHARED_DATA", "../shared/data")) / "fx" / "forms"
SEED = 11


def bf16_bits(x):
    """Rounds to nearest even, as hardware does."""
    x = np.asarray(x, np.float32)
    u = np.frombuffer(x.tobytes(), np.uint32).reshape(x.shape)
    return np.asarray((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_value(bits):
    wide = np.asarray(bits, np.uint16).astype(np.uint32) << 16
    return np.frombuffer(np.asarray(wide, np.uint32).tobytes(), np.float32).reshape(wide.shape)


def fp8_value(bits):
    """e4m3fn: 4 bits of exponent with bias 7, no infinity."""
    b = np.asarray(bits, np.uint8).astype(np.int64)
    sign, exponent, fraction = b >> 7, (b >> 3) & 15, b & 7
    value = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7))
    return np.where(sign == 1, -value, value)


def b16(x):
    """The nearest bf16, as a number."""
    return bf16_value(bf16_bits(x)).astype(np.float64)


def relu(x):
    return np.maximum(x, 0)


def rms(x, w, eps):
    return b16(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)) * w


def rotate(positions, x, head, table, neox):
    n = x.shape[0]
    heads = x.reshape(n, -1, head).astype(np.float64)
    rows = table[positions]
    c, s = rows[:, None, : head // 2], rows[:, None, head // 2 :]
    if neox:
        a, b = heads[..., : head // 2], heads[..., head // 2 :]
        out = np.concatenate([a * c - b * s, b * c + a * s], -1)
    else:
        a, b = heads[..., 0::2], heads[..., 1::2]
        out = np.stack([a * c - b * s, b * c + a * s], -1)
    return out.reshape(x.shape)


def attention(q, k, v):
    """One sequence, each token sees itself and those before it."""
    n, heads, d = q.shape
    group = heads // k.shape[1]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = q[:, h] @ k[:, h // group].T / np.sqrt(d)
        scores[np.triu_indices(n, 1)] = -np.inf
        p = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, h] = p / p.sum(-1, keepdims=True) @ v[:, h // group]
    return out


def quantised(x, scale):
    return np.clip(x / scale, -448, 448)


def groups(x, size):
    m = np.abs(x.reshape(x.shape[0], -1, size))
    s = np.maximum(m.max(-1), 1e-10) / 448
    return np.clip(x / np.repeat(s, size, -1), -448, 448), s


def add_rms(x, res, w, eps):
    r = b16(x + res)
    return rms(r, w, eps), r


class Case:
    """`expected(inputs by name, as numbers) -> (outputs, {written input: contents})`."""

    def __init__(self, expected, tolerance=0.0, functions=None, ranges=None, quanta=(), tokens=None):
        self.tokens = tokens  # of one sequence, where no symbol counts them
        self.expected, self.tolerance, self.functions = expected, tolerance, functions or {}
        self.ranges = ranges or {}
        self.quanta = quanta  # outputs in fp8, which may be the neighbour


def lora(x, *rest, **named):
    """An unknown op whose result depends on which argument is which."""
    out = x.copy()
    for k, arg in enumerate(rest):
        if arg is not None:
            out = out + (k + 2) * arg
    for name, arg in named.items():
        out = out + ord(name[0]) * arg
    return out.astype(x.dtype)


def store(k, cache, slots):
    cache[slots] = k


def my_norm(out, x, w):
    out[...] = x * w


class Dice:
    """A stream of numbers that is the same for equal calls."""

    def __init__(self):
        self.rolled = 0

    def rand(self, size, **_):
        self.rolled += 1
        return np.full(size, self.rolled / 8, np.float32)

    def bernoulli(self, x, p):
        self.rolled += 1
        return np.full(x.shape, float(self.rolled), np.float32)


CASES = {
    "addmm2d.fx.txt": Case(lambda a: ([a["arg0_1"] + a["arg1_1"] @ a["arg2_1"]], {}), 1e-4),
    "alias.txt": Case(lambda a: ([relu(-a["arg0_1"]), relu(-a["arg0_1"] * 2)], {})),
    "cat_pos.fx.txt": Case(lambda a: ([a["x"] + 3 * a["i"], a["x"] + 2 * a["i"]], {"x": a["x"], "i": a["i"]}), functions={"mine.f": lora}),
    "clamp_max.fx.txt": Case(lambda a: ([np.minimum(a["x"], 0.5)], {})),
    "clone.txt": Case(lambda a: ([relu(a["arg0_1"]), relu(a["arg0_1"]) + 1], {})),
    "div_int_untyped.fx.txt": Case(lambda a: ([a["x"] / 3], {}), 1e-6),
    "floordiv.fx.txt": Case(lambda a: ([a["x"][0:-1:2]], {}), ranges={"rows": 7}),
    "index_none.fx.txt": Case(
        lambda a: ([a["t"][a["i"]] - a["t"][:, a["i"]]], {}),
        functions={"aten.index.Tensor": lambda t, at: t[tuple(slice(None) if i is None else i for i in at)].copy()},
        ranges={"i": (0, 6)},
    ),
    "kvcache.fx.txt": Case(
        lambda a: ([-a["k"]], {"cache": _stored(a), "k": a["k"], "slots": a["slots"]}),
        functions={"_C_cache_ops.reshape_and_cache": store},
        ranges={"slots": "permutation"},
    ),
    "kw.fx.txt": Case(lambda a: ([a["x"] + ord("m") * a["m"], a["x"] + ord("b") * a["m"]], {"x": a["x"], "m": a["m"]}), functions={"mine.g": lora}),
    "linear3d.fx.txt": Case(lambda a: ([a["x"] @ a["p_w"].T], {}), 1e-4),
    "mut2.txt": Case(lambda a: ([-(relu(a["arg1_1"]) + a["arg0_1"])], {})),
    "mut3.txt": Case(lambda a: ([-a["arg0_1"]], {})),
    "mutate_out.fx.txt": Case(lambda a: ([-a["x"] * a["w"]], {"x": a["x"], "w": a["w"]}), 1e-6, functions={"mylib.my_norm": my_norm}),
    "nested.fx.txt": Case(
        lambda a: ([a["x"] + 2 * a["y"] + 3 * a["z"], a["x"] + 4 * a["y"] + 5 * a["z"]], {"x": a["x"], "y": a["y"], "z": a["z"]}),
        functions={"mine.h": lambda xs, ys: (xs[0] + 2 * xs[1] + 3 * ys[0] if len(xs) == 2 else xs[0] + 4 * ys[0] + 5 * ys[1])},
    ),
    "r01_ir_rms.fx.txt": Case(lambda a: ([rms(a["arg1_1"], a["arg2_1"], 1e-5)], {}), 0.02),
    "r02_ir_add_rms.fx.txt": Case(lambda a: (list(_ir_add_rms(a)), {}), 0.02),
    "r03_group_shape.fx.txt": Case(lambda a: ([quantised(a["arg1_1"], a["arg2_1"])], {}), 0.07, quanta=(0,)),
    "r04_scale_rank0.fx.txt": Case(lambda a: ([quantised(a["arg1_1"], a["arg2_1"])], {}), 0.07, quanta=(0,)),
    "r05_rotary_args.fx.txt": Case(
        lambda a: ([rotate(a["arg1_1"], a[k], 64, a["arg4_1"], True) for k in ("arg2_1", "arg3_1")], {}), 0.02, ranges={"arg1_1": (0, 256)}
    ),
    "r06_rotary_two_symbols.fx.txt": Case(
        lambda a: ([rotate(a["arg2_1"], a[k], 64, a["arg5_1"], True) for k in ("arg3_1", "arg4_1")], {}), 0.02, ranges={"arg2_1": (0, 256)}
    ),
    "r07_rotary_rank3.fx.txt": Case(
        lambda a: ([rotate(a["arg1_1"], a[k], 64, a["arg4_1"], False) for k in ("arg2_1", "arg3_1")], {}), 0.02, ranges={"arg1_1": (0, 256)}
    ),
    "r09_neg_symbol.fx.txt": Case(lambda a: ([relu(a["arg1_1"])], {})),
    "r10_layername_annotation.fx.txt": Case(lambda a: ([relu(a["arg1_1"])], {})),
    "r11_group_quant.fx.txt": Case(lambda a: (list(groups(a["arg1_1"], 128)), {}), 0.07, quanta=(0,)),
    "r12_native_fp8_quant.fx.txt": Case(lambda a: ([quantised(a["arg1_1"], a["arg2_1"])], {}), 0.07, quanta=(0,)),
    "r13_layernorm.fx.txt": Case(lambda a: ([_layer_norm(a)], {}), 0.02),
    "r14_lowered_add_rms.fx.txt": Case(lambda a: (list(_lowered_add_rms(a)), {}), 0.02),
    "r15_cse_breaks_rms.fx.txt": Case(lambda a: ([rms(a["arg1_1"], a["arg3_1"], 1e-5), a["arg1_1"] + a["arg2_1"]], {}), 0.02),
    "r17_reciprocal_rank0.fx.txt": Case(lambda a: ([a["arg1_1"] / a["arg2_1"]], {}), 1e-6),
    "r18_scalar_times_rank0.fx.txt": Case(lambda a: ([a["arg0_1"] * 2, a["arg1_1"] + 1], {}), 0.01),
    "r19_gemma_rms.fx.txt": Case(lambda a: ([rms(a["arg1_1"], a["arg2_1"] + 1, 1e-6)], {}), 0.02),
    "rank0.fx.txt": Case(lambda a: ([a["x_1"] * 3], {})),
    "random.fx.txt": Case(lambda a: ([np.full(4, 1 / 8 + 3), np.full(4, 2 / 8 + 4)], {}), functions="dice"),
    "sum_bool_untyped.fx.txt": Case(lambda a: ([a["x"].sum(-1)], {})),
    "two_symbols.fx.txt": Case(
        lambda a: ([rotate(a["pos"], a["table"][a["ids"]], 16, a["cs"], True), rotate(a["pos"], a["k"], 16, a["cs"], True)], {}),
        0.02,
        ranges={"ids": (0, 100), "pos": (0, 64)},
    ),
    "v2view.fx.txt": Case(lambda a: ([attention(a["q"], a["k"], a["v"]).reshape(12, 64)], {}), 0.02, tokens=12),
    "r08_attention_033.fx.txt": Case(lambda a: ([attention(a["arg1_1"], a["arg2_1"], a["arg3_1"])], {}), 0.02),
    "r16_moe.fx.txt": Case(
        lambda a: ([relu(a["arg1_1"])], {}), 0.02, functions={"moe_forward": lambda hidden, *_, **__: (hidden.copy(), hidden.copy())}
    ),
    "r20_slices_for_split.fx.txt": Case(lambda a: (_qk_norm_rope(a), {}), 0.03, ranges={"arg2_1": (0, 256)}),
    "rope.txt": Case(lambda a: _rope(a), 0.02, tokens=16, ranges={"arg0_1": (0, 512)}),
}


def _stored(a):
    cache = a["cache"].copy()
    cache[a["slots"]] = a["k"]
    return cache


def _ir_add_rms(a):
    x = a["arg1_1"] + a["arg2_1"]  # the norm is of the sum before it is rounded
    return rms(x, a["arg3_1"], 1e-5), b16(x)


def _lowered_add_rms(a):
    y, r = _ir_add_rms(a)
    return y, r


def _layer_norm(a):
    x = a["arg1_1"]
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * a["arg2_1"] + a["arg3_1"]


def _qk_norm_rope(a):
    n = a["arg1_1"].shape[0]
    q, k, v = a["arg1_1"][:, :256], a["arg1_1"][:, 256:384], a["arg1_1"][:, 384:]
    qn = rms(q.reshape(n, 4, 64), a["arg3_1"], 1e-6).reshape(n, 256)
    kn = rms(k.reshape(n, 2, 64), a["arg4_1"], 1e-6).reshape(n, 128)
    return [rotate(a["arg2_1"], qn, 64, a["arg5_1"], True), rotate(a["arg2_1"], kn, 64, a["arg5_1"], True), v]


def _rope(a):
    """The rotated parts are written into the input that they are views of."""
    x = a["arg1_1"].copy()
    x[:, :128] = b16(rotate(a["arg0_1"], x[:, :128], 64, a["arg2_1"], True))
    x[:, 128:192] = b16(rotate(a["arg0_1"], x[:, 128:192], 64, a["arg2_1"], True))
    out = attention(x[:, :128].reshape(16, 2, 64), x[:, 128:192].reshape(16, 1, 64), x[:, 192:].reshape(16, 1, 64))
    return [out], {"arg1_1": x}


def _mut(a):
    y, r = add_rms(a["arg0_1"], a["arg1_1"], a["arg2_1"], 1e-5)
    total = b16(relu(r) + b16(y))
    return [total, total, y], {"arg0_1": y, "arg1_1": r}


def _alias2(a):
    h = -a["arg0_1"]
    y, r = add_rms(h[:, :256], a["arg1_1"], a["arg2_1"], 1e-5)
    whole = np.concatenate([y, h[:, 256:]], 1)
    return [relu(h), relu(whole)], {"arg1_1": r}


def _clone2(a):
    h = relu(a["arg0_1"])
    y, r = add_rms(h, a["arg1_1"], a["arg2_1"], 1e-5)
    return [h, y], {"arg1_1": r}


CASES["mut.txt"] = Case(_mut, 0.03)
CASES["alias2.txt"] = Case(_alias2, 0.02)
CASES["clone2.txt"] = Case(_clone2, 0.02)


def array_of(name, kind, case, rng):
    """Random contents for an input such as ("arg1_1", "bf16[n, 256]")."""
    dtype, dims = kind[: kind.index("[")], kind[kind.index("[") + 1 : -1]
    rows = case.ranges.get("rows", 12)
    shape = [int(d) if d.strip().isdigit() else rows for d in dims.split(",") if d.strip()]
    bounds = case.ranges.get(name)
    if bounds == "permutation":
        x = rng.permutation(16)[: shape[0]].astype(np.int64)
        return x, x
    if dtype in ("i64", "i32"):
        low, high = bounds or (-9, 9)
        x = rng.integers(low, high, shape).astype(np.int64 if dtype == "i64" else np.int32)
        return x, x
    if dtype == "b8":
        x = rng.integers(0, 2, shape).astype(bool)
        return x, x.astype(np.int64)
    if dtype == "bf16":
        bits = bf16_bits(rng.integers(-16, 17, shape) / 8)
        return bits, bf16_value(bits).astype(np.float64)
    x = np.asarray(rng.integers(1, 33, shape) / 8 if shape in ([], [1]) else rng.integers(-16, 17, shape) / 8, np.float32)
    return x, x.astype(np.float64)


def number(array, fp8):
    if array.dtype == np.uint16:
        return bf16_value(array).astype(np.float64)
    if array.dtype == np.uint8 and fp8:
        return fp8_value(array)
    return array.astype(np.float64)


def compare(what, got, wanted, tolerance, fp8):
    got = number(np.asarray(got), fp8)
    wanted = np.asarray(wanted, np.float64)
    assert got.shape == wanted.shape, f"{what}: shape {got.shape}, expected {wanted.shape}"
    bound = tolerance * np.maximum(np.abs(wanted), 1)
    worst = float(np.max(np.abs(got - wanted) - bound, initial=0))
    assert worst <= 0, f"{what}: beyond {tolerance} by {worst}"


def run(name, case, llm):
    graph = pw.load(str(FORMS / name))
    rng = np.random.default_rng(SEED)
    arrays, numbers = {}, {}
    for input_name, kind, _ in graph.inputs:
        if "[" in kind:
            arrays[input_name], numbers[input_name] = array_of(input_name, kind, case, rng)
    outputs, written = case.expected(numbers)
    for how, g in (("as it is", graph), ("after o2", graph.rewrite(llm, "o2"))):
        functions = case.functions
        if functions == "dice":
            dice = Dice()
            functions = {"aten.rand": dice.rand, "aten.bernoulli": dice.bernoulli}
        got = g.run({k: v.copy() for k, v in arrays.items()}, functions=functions, tokens=case.tokens)
        assert len(got) == len(outputs), f"{how}: {len(got)} outputs, expected {len(outputs)}"
        for i, (a, b) in enumerate(zip(got, outputs)):
            compare(f"{how}, output {i}", a, b, case.tolerance, i in case.quanta)
        for key, value in got.written.items():
            assert key in written, f"{how}: `{key}` is reported as written"
            compare(f"{how}, written {key}", value, written[key], case.tolerance, False)
        missing = [k for k, v in written.items() if k not in got.written and not np.array_equal(v, numbers[k])]
        assert not missing, f"{how}: {missing} were written"


def main():
    if not FORMS.is_dir():
        print(f"SKIPPED: {FORMS} is not there; set PW_SHARED_DATA to the folder with fx/")
        return 77
    print(f"seed {SEED}")
    llm = pw.rules("llm")
    failed = 0
    for path in sorted(FORMS.glob("*.txt")):
        case = CASES.get(path.name)
        if case is None:
            print(f"????  {path.name}: no expectation")
            failed += 1
            continue
        try:
            run(path.name, case, llm)
            print(f"ok    {path.name}")
        except Exception as problem:  # all are shown
            print(f"FAIL  {path.name}: {str(problem).strip().splitlines()[0] if str(problem).strip() else problem!r}")
            failed += 1
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
