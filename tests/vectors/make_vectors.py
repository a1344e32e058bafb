"""Writes one JSON file an op of rules/ops with a body: inputs, attributes and the results PyTorch computes on a CPU.

    "$(python3 requirements/environments.py peer-torch env)" tests/vectors/make_vectors.py

Where PyTorch has the op, it computes the result, in f64 and rounded once unless the op's meaning has a rounding point in
its middle; else a tensor expression does that shares nothing with our bodies (rotary embedding by complex numbers).
README.md in this folder states the format. The seed is fixed: running it again changes nothing.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
NAMES = {
    torch.bool: "b8",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float8_e4m3fn: "f8e4m3",
}
UNSIGNED = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
BF16, F16, F32, F8 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn

torch.manual_seed(20240229)
files = {}


def tensor_json(t):
    t = t.detach().contiguous()
    size = t.element_size()
    bits = t.view(torch.uint8) if t.dtype == torch.bool else t.view(UNSIGNED[size])
    mask = (1 << (8 * size)) - 1
    text = "".join(format(v & mask, f"0{2 * size}x") for v in bits.flatten().tolist())
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "bits": text}


def case(op, name, inputs, outputs, attributes=None):
    """outputs: (tensor, tolerance) each; a tolerance is a dict of the fields that README.md describes."""
    files.setdefault(op, []).append(
        {
            "name": name,
            "attributes": attributes or {},
            "inputs": [tensor_json(t) for t in inputs],
            "outputs": [{**tensor_json(t), **tolerance} for t, tolerance in outputs],
        }
    )


def label(t, *more):
    return " ".join([NAMES[t.dtype], "x".join(map(str, t.shape)), *more])


def rows(dtype, *shape, scale=1.0):
    """Normal numbers; the first row is zero and the last one has an outlier, where there are rows enough."""
    x = torch.randn(*shape, dtype=torch.float64) * scale
    flat = x.view(-1, shape[-1])
    if flat.shape[0] >= 3:
        flat[0] = 0
        flat[-1, -1] = 50 * scale
    return x.to(dtype)


def edges(dtype):
    """The corners of a pointwise op, as one odd-sized row."""
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 8.0, -8.0, 20.0, -20.0, 1e-3, -1e-3, 6e4, 1e-7, 2.5, -5.5, 0.1]
    return torch.tensor(values, dtype=torch.float64).to(dtype)


# Relative errors: a result that passed one rounding to T more or less than ours is one or two steps of T off. An f32 scale computed from values
# rounded to bf16 or f16 has their error: 2**16 or 2**13 steps of f32 for each of their steps.
ONE, TWO, THREE = {"ulps": 1}, {"ulps": 2}, {"ulps": 3}
FP8 = {"ulps": 1, "equal": 0.9}


def scale_tolerance(dtype):
    return {"ulps": {BF16: 2 * 2**16, F16: 2 * 2**13, F32: 16}[dtype]}


def norm_tolerance(dtype):
    return {"ulps": 16} if dtype == F32 else THREE


def rms(x, w, eps):
    """Computed by torch if it supports the dtypes, else by hand."""
    if x.dtype == w.dtype:
        return F.rms_norm(x, (x.shape[-1],), w, eps)
    return rms_stored(x, w, eps)


def rms_stored(x, w, eps):
    """Rounded to the weight's dtype before the product and to x's dtype after it, like kernels that feed a quantisation."""
    y = F.rms_norm(x.double(), (x.shape[-1],), None, eps).to(w.dtype)
    return (y.double() * w.double()).to(x.dtype)


def quant(x, s):
    return (x.double() / s.double()).clamp(-448, 448).float().to(F8)


def dynamic_quant(x):
    top = x.double().abs().amax(-1, keepdim=True)
    s = torch.clamp(top / 448, min=1 / (448 * 512)).float()
    return quant(x, s), s


def silu_mul(gu):
    g, u = gu.chunk(2, -1)
    return F.silu(g.double()).to(gu.dtype) * u


def pointwise():
    for dtype in (BF16, F16, F32):
        for x in (rows(dtype, 5, 33, scale=3), edges(dtype), rows(dtype, 2, 3, 16)):
            d = x.double()
            step = {"ulps": 1 if dtype != F32 else 8, "floor": 1e-30}
            case("silu", label(x), [x], [(F.silu(d).to(dtype), step)])
            case("sigmoid", label(x), [x], [(torch.sigmoid(d).to(dtype), step)])
            # The error of an f32 exponent E is about E steps, and so is that of its exponential. F.gelu itself cancels on the left.
            tail = step if dtype != F32 else {"ulps": 128, "floor": 1e-15}
            gelu = d / 2 * torch.special.erfc(-d / 2**0.5)
            assert torch.allclose(gelu, F.gelu(d), rtol=1e-12, atol=1e-12)
            case("gelu", label(x), [x], [(gelu.to(dtype), tail)])
            case("gelu_tanh", label(x), [x], [(F.gelu(d, approximate="tanh").to(dtype), {**tail, "floor": 1e-6})])
            case("relu", label(x), [x], [(F.relu(x), {})])
            case("detach", label(x), [x], [(x.detach(), {})])
            case("clamp", label(x), [x], [(x.clamp(-0.75, 1.5), {})], {"min": -0.75, "max": 1.5})
            mask = torch.rand(x.shape) < 0.4
            case("masked_fill", label(x), [x, mask], [(x.masked_fill(mask, 2.5), {})], {"value": 2.5})
        x = rows(dtype, 6, 40)
        column = torch.tensor([True, False, True, True, False, False])[:, None]
        case("masked_fill", label(x, "a mask a row"), [x, column], [(x.masked_fill(column, 0.0), {})], {"value": 0.0})
    ints = torch.arange(-8, 8, dtype=torch.int64).view(2, 8)
    case("relu", label(ints), [ints], [(F.relu(ints), {})])
    case("detach", label(ints), [ints], [(ints, {})])


def layout():
    for dtype, shape, dim, start, end in (
        (BF16, (4, 40), 1, 0, 24),
        (BF16, (4, 40), -1, 24, 32),
        (F16, (6, 8), 0, 2, 6),
        (F32, (2, 5, 7), 1, 1, 4),
        (F32, (3, 9), 1, 0, 9),
        (torch.int64, (4, 4), 0, 3, 4),
    ):
        make = (lambda *s: torch.randint(-99, 99, s)) if dtype == torch.int64 else (lambda *s: rows(dtype, *s))
        x = make(*shape)
        part = list(shape)
        part[dim] = end - start
        src = make(*part)
        want = torch.slice_scatter(x, src, dim, start, end)
        case("slice_scatter", label(x, f"[{start}, {end}) of axis {dim}"), [x, src], [(want, {})], {"dim": dim, "start": start, "end": end})


def placing():
    """Padding by hand into a tensor of the value; torch's flip, narrow and einsum."""
    for dtype, shape, dim, low, high, interior in (
        (BF16, (3, 5), 1, 2, 1, 0),
        (F32, (3, 5), 0, 1, 2, 2),
        (F16, (2, 4, 3), 1, -1, 3, 1),
        (F32, (2, 6), -1, 1, -4, 1),
        (F32, (2, 6), 1, -2, -3, 0),
        (BF16, (4, 1), 1, 0, 2, 3),
        (F32, (7,), 0, -3, 20, 2),
        (F32, (2, 3), 1, 9, -9, 1),
    ):
        x, value = rows(dtype, *shape), torch.tensor(-1.5, dtype=dtype)
        n, axis = shape[dim], dim % len(shape)
        spread = n + (n - 1) * interior
        whole = torch.full([spread + 40 if a == axis else e for a, e in enumerate(shape)], -1.5, dtype=dtype)
        whole.transpose(0, axis)[20 : 20 + spread : 1 + interior] = x.transpose(0, axis)
        want = whole.narrow(axis, 20 - low, spread + low + high)
        attributes = {"dim": dim, "low": low, "high": high, "interior": interior}
        case("pad", label(x, f"axis {dim}, {low} {interior} {high}"), [x, value], [(want, {})], attributes)
        if axis == len(shape) - 1:
            del attributes["dim"]
            case("pad_last", label(x, f"{low} {interior} {high}"), [x, value], [(want, {})], attributes)
    for dtype, shape, dim in ((F32, (3, 5), 1), (BF16, (4, 2, 3), 0), (F16, (2, 3, 4), -2), (torch.int64, (6,), 0), (F32, (4, 1), 1)):
        x = torch.arange(torch.Size(shape).numel()).view(shape).to(dtype)
        case("reverse", label(x, f"axis {dim}"), [x], [(torch.flip(x, [dim]), {})], {"dim": dim})
    for dtype, shape, dim, size in ((F32, (5, 3), 0, 2), (BF16, (2, 6), -1, 4), (torch.int64, (3, 4, 2), 1, 1), (F16, (4,), 0, 4)):
        x = (torch.arange(torch.Size(shape).numel()).view(shape) - 5).to(dtype)
        part = x.narrow(dim, 0, size).shape
        src = (100 + torch.arange(part.numel()).view(part)).to(dtype)
        for at, index in ((0, torch.int64), (1, torch.int32), (-3, torch.int64), (100, torch.int32)):
            first = min(max(at, 0), shape[dim] - size)
            where = torch.tensor(at, dtype=index)
            case(
                "dynamic_slice",
                label(x, f"{size} of axis {dim} from {at}"),
                [x, where],
                [(x.narrow(dim, first, size), {})],
                {"dim": dim, "size": size},
            )
            want = x.clone()
            want.narrow(dim, first, size).copy_(src)
            case("dynamic_update_slice", label(x, f"{size} of axis {dim} from {at}"), [x, src, where], [(want, {})], {"dim": dim})
    for dtype, batch, left, contract, right in (
        (F32, [2], [3, 4], [5, 6], [7]),
        (BF16, [], [3], [4], [2, 2]),
        (F16, [2, 3], [], [4], []),
        (F32, [], [], [9], []),
        (F32, [3], [2], [], [4]),
        (F32, [2], [3], [1], []),
    ):
        a, b = rows(dtype, *batch, *left, *contract), rows(dtype, *batch, *contract, *right)
        letters = iter("abcdefghij")
        bs, ls, cs, rs = ("".join(next(letters) for _ in dims) for dims in (batch, left, contract, right))
        want = torch.einsum(f"{bs}{ls}{cs},{bs}{cs}{rs}->{bs}{ls}{rs}", a.double(), b.double()).to(dtype)
        near = {"ulps": 1 if dtype != F32 else 8, "floor": 1.0}
        attributes = {"batch": batch, "left": left, "contract": contract, "right": right}
        case("dot", label(a, f"{batch} {left} {contract} {right}"), [a, b], [(want, near)], attributes)


def norms():
    for dtype, wdtype, shape, eps in (
        (BF16, BF16, (4, 64), 1e-6),
        (BF16, BF16, (3, 129), 1e-5),
        (F16, F16, (4, 40), 1e-6),
        (F32, F32, (5, 33), 1e-6),
        (BF16, F32, (4, 48), 1e-6),
        (F16, F16, (2, 3, 24), 1e-5),
        (BF16, BF16, (7,), 1e-6),
        (F32, F32, (3, 1), 1e-2),
    ):
        x, res = rows(dtype, *shape, scale=2), rows(dtype, *shape)
        w = (1 + 0.2 * torch.randn(shape[-1], dtype=torch.float64)).to(wdtype)
        attributes = {"eps": eps}
        near = norm_tolerance(dtype)
        r = x + res
        name = label(x, f"weight {NAMES[wdtype]}")
        case("rms_norm", name, [x, w], [(rms(x, w, eps), near)], attributes)
        case("fused_add_rms_norm", name, [x, res, w], [(rms(r, w, eps), near), (r, ONE)], attributes)
        group = {"group": "tp:0", "eps": eps}
        case("fused_all_reduce_rms_norm", name, [x, w], [(rms(x, w, eps), near), (x, {})], group)
        case("fused_all_reduce_add_rms_norm", name, [x, res, w], [(rms(r, w, eps), near), (r, ONE)], group)


def quantised_norms():
    for dtype, wdtype, shape, eps, scale in (
        (BF16, BF16, (6, 128), 1e-6, 0.02),
        (BF16, BF16, (3, 333), 1e-5, 1e-3),
        (F16, F16, (5, 130), 1e-6, 0.05),
        (F32, F32, (4, 128), 1e-6, 0.01),
        (BF16, F32, (2, 2, 160), 1e-6, 0.02),
    ):
        x, res = rows(dtype, *shape, scale=2), rows(dtype, *shape)
        w = (1 + 0.2 * torch.randn(shape[-1], dtype=torch.float64)).to(wdtype)
        s = torch.tensor([scale])
        r = x + res
        name = label(x, f"weight {NAMES[wdtype]}")
        y, z = rms_stored(x, w, eps), rms_stored(r, w, eps)
        near = scale_tolerance(dtype)
        e, g = {"eps": eps}, {"group": "tp:0", "eps": eps}
        static, static_add = [(quant(y, s), FP8)], [(quant(z, s), FP8), (r, ONE)]
        case("rms_norm_static_fp8_quant", name, [x, w, s], static, e)
        case("fused_add_rms_norm_static_fp8_quant", name, [x, res, w, s], static_add, e)
        case("fused_all_reduce_rms_norm_static_fp8_quant", name, [x, w, s], static + [(x, {})], g)
        case("fused_all_reduce_add_rms_norm_static_fp8_quant", name, [x, res, w, s], static_add, g)
        (q, t), (p, u) = dynamic_quant(y), dynamic_quant(z)
        dynamic, dynamic_add = [(q, FP8), (t, near)], [(p, FP8), (u, near), (r, ONE)]
        case("rms_norm_dynamic_per_token_quant", name, [x, w], dynamic, e)
        case("fused_add_rms_norm_dynamic_per_token_quant", name, [x, res, w], dynamic_add, e)
        case("fused_all_reduce_rms_norm_dynamic_per_token_quant", name, [x, w], dynamic + [(x, {})], g)
        case("fused_all_reduce_add_rms_norm_dynamic_per_token_quant", name, [x, res, w], dynamic_add, g)


def quantisations():
    """On given numbers nothing but the cast rounds, so fp8 results are equal, but for a scale one step of f32 off."""
    nearly = {"ulps": 1, "equal": 0.99}
    every = torch.arange(0, 65536, 37, dtype=torch.int32).to(torch.int16).view(BF16)
    every = every[every.isfinite()]
    for x, scale in (
        (rows(BF16, 5, 129), 0.02),
        (rows(F16, 3, 64, scale=10), 0.004),
        (rows(F32, 4, 77), 0.25),
        (every, 1.0),
        (every * 3, 3.0),
        (rows(F32, 2, 3, 40), 1e-6),
        (torch.tensor([float("nan"), 1.0, 464.0, -1e30, 2.0**-10, 0.0]), 1.0),
    ):
        s = torch.tensor([scale])
        case("static_scaled_fp8_quant", label(x, f"scale {scale}"), [x, s], [(quant(x, s), nearly)])
    for x in (rows(BF16, 5, 129), rows(F16, 3, 64, scale=10), rows(F32, 4, 77, scale=1e-9), rows(F32, 2, 3, 40), rows(BF16, 16)):
        q, s = dynamic_quant(x)
        case("dynamic_per_token_fp8_quant", label(x), [x], [(q, nearly), (s, TWO)])


def gated():
    for dtype, shape in ((BF16, (4, 128)), (BF16, (3, 258)), (F16, (5, 80)), (F32, (4, 66)), (BF16, (2, 3, 48)), (F32, (2,))):
        gu = rows(dtype, *shape, scale=2)
        y = silu_mul(gu)
        case("silu_and_mul", label(gu), [gu], [(y, {"ulps": 16 if dtype == F32 else 2})])
    for dtype, shape, scale in ((BF16, (4, 256), 0.02), (F16, (5, 130), 0.01), (F32, (3, 300), 1e-3), (BF16, (2, 3, 160), 0.05)):
        gu, s = rows(dtype, *shape, scale=2), torch.tensor([scale])
        y = silu_mul(gu)
        q, t = dynamic_quant(y)
        case("silu_and_mul_quant", label(gu), [gu, s], [(quant(y, s), FP8)])
        case("silu_and_mul_dynamic_quant", label(gu), [gu], [(q, FP8), (t, scale_tolerance(dtype))])


def turned(x, angles, head, neox):
    """Pairs as complex numbers, multiplied by those of the positions."""
    pairs = x.double().view(*x.shape[:-1], -1, head)
    if neox:
        pairs = torch.stack(pairs.chunk(2, -1), -1)
    else:
        pairs = pairs.view(*pairs.shape[:-1], head // 2, 2)
    out = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * angles.unsqueeze(-2))
    out = torch.cat(out.unbind(-1), -1) if neox else out.flatten(-2)
    return out.flatten(-2).to(x.dtype)


def rope():
    for dtype, cache, ids, batch, heads, kv_heads, head in (
        (BF16, BF16, torch.int64, (5,), 4, 2, 16),
        (F16, F16, torch.int64, (3,), 3, 1, 64),
        (F32, F32, torch.int64, (6,), 2, 2, 8),
        (BF16, F32, torch.int32, (4,), 2, 1, 32),
        (BF16, BF16, torch.int64, (2, 3), 2, 1, 8),
        (F32, F32, torch.int64, (1,), 1, 1, 2),
    ):
        frequency = 10000.0 ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
        angle = torch.arange(32, dtype=torch.float64)[:, None] * frequency
        cos_sin = torch.cat([angle.cos(), angle.sin()], -1).to(cache)
        positions = torch.randint(0, 32, batch).to(ids)
        row = cos_sin[positions.long()].double()
        unit = torch.complex(*(part.contiguous() for part in row.chunk(2, -1)))
        q = torch.randn(*batch, heads * head, dtype=torch.float64).to(dtype)
        k = torch.randn(*batch, kv_heads * head, dtype=torch.float64).to(dtype)
        near = {"ulps": 4 if dtype == F32 else 1, "floor": 1.0}
        for neox in (True, False):
            case(
                "rotary_embedding",
                label(q, f"head {head}", "neox" if neox else "interleaved"),
                [positions, q, k, cos_sin],
                [(turned(q, unit, head, neox), near), (turned(k, unit, head, neox), near)],
                {"head": head, "neox": neox},
            )


def group_quant(x, group):
    parts = x.double().unflatten(-1, (-1, group))
    s = torch.clamp(parts.abs().amax(-1, keepdim=True), min=1e-10) / 448
    return (parts / s).flatten(-2).clamp(-448, 448).float().to(F8), s.squeeze(-1).float()


def groups():
    nearly = {"ulps": 1, "equal": 0.97}
    for x, group in ((rows(BF16, 5, 128), 32), (rows(F16, 3, 64, scale=10), 64), (rows(F32, 4, 24), 8), (rows(BF16, 2, 3, 16), 4)):
        q, s = group_quant(x, group)
        case("per_token_group_fp8_quant", label(x, f"group {group}"), [x], [(q, nearly), (s, TWO)], {"group": group})
        w = torch.randn(x.shape[-1], dtype=torch.float64).to(x.dtype)
        q, s = group_quant(rms(x, w, 1e-6), group)
        case("rms_norm_per_block_quant", label(x, f"group {group}"), [x, w], [(q, FP8), (s, scale_tolerance(x.dtype))], {"eps": 1e-6, "group": group})


def norm_and_rope():
    for dtype, heads_q, heads_k, head in ((F32, 2, 1, 8), (BF16, 4, 2, 16), (F16, 3, 1, 4)):
        frequency = 10000.0 ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
        angle = torch.arange(32, dtype=torch.float64)[:, None] * frequency
        cos_sin = torch.cat([angle.cos(), angle.sin()], -1).to(dtype)
        positions = torch.randint(0, 32, (5,))
        unit = torch.complex(*(part.contiguous() for part in cos_sin[positions].double().chunk(2, -1)))
        sizes = [heads_q * head, heads_k * head, heads_k * head]
        qkv = torch.randn(5, sum(sizes), dtype=torch.float64).to(dtype)
        qw, kw = (torch.randn(head, dtype=torch.float64).to(dtype) for _ in range(2))
        q, k, v = qkv.split(sizes, -1)
        q = rms(q.unflatten(-1, (heads_q, head)), qw, 1e-6).flatten(-2)
        k = rms(k.unflatten(-1, (heads_k, head)), kw, 1e-6).flatten(-2)
        near = {"ulps": 64 if dtype == F32 else 4, "floor": 1.0}
        for neox in (True, False):
            f = torch.cat([turned(q, unit, head, neox), turned(k, unit, head, neox), v], -1)
            case(
                "fused_qk_norm_rope",
                label(qkv, f"head {head}", "neox" if neox else "interleaved"),
                [qkv, qw, kw, cos_sin, positions],
                [(f, near)],
                {"heads_q": heads_q, "heads_k": heads_k, "head": head, "eps": 1e-6, "neox": neox},
            )


def products_of_one_rank():
    for dtype, n, k, m in ((F32, 3, 5, 4), (BF16, 4, 16, 8)):
        a, b = rows(dtype, n, k), torch.randn(k, m, dtype=torch.float64).to(dtype)
        y = (a.double() @ b.double()).to(dtype)
        near = {"ulps": 64 if dtype == F32 else 2, "floor": 1.0}
        case("fused_matmul_reduce_scatter", label(a), [a, b], [(y, near)], {"scatter_dim": 0, "world": 1, "group": "tp"})
        case("fused_all_gather_matmul", label(a), [a, b], [(a, {}), (y, near)], {"gather_dim": 0, "world": 1, "group": "tp"})


def padded_rows():
    """The last row again; on one rank a part is the whole."""
    for dtype in (BF16, F32, torch.int64):
        x = torch.arange(-8, 7).view(5, 3).to(dtype)
        for multiple in (1, 4, 5, 8):
            rest = -len(x) % multiple
            y = torch.cat([x, x[-1:].repeat(rest, 1)])
            case("pad_rows", label(x, f"to a multiple of {multiple}"), [x], [(y, {})], {"multiple": multiple})
        case("shard_padded", label(x), [x], [(x, {})], {"world": 1, "group": "tp"})


def copies():
    for dtype in (BF16, F32, torch.int64):
        x = torch.arange(-8, 8).view(2, 8).to(dtype)
        case("clone", label(x), [x], [(x.clone(), {})])


def sums_in_f32():
    """Norms of x + res in f32, and layer norms."""
    for dtype, wdtype, shape, eps in (
        (BF16, BF16, (4, 64), 1e-6),
        (F16, F16, (3, 40), 1e-5),
        (F32, F32, (5, 33), 1e-6),
        (BF16, F32, (2, 3, 48), 1e-6),
    ):
        x, res = rows(dtype, *shape, scale=2), rows(dtype, *shape)
        w = (1 + 0.2 * torch.randn(shape[-1], dtype=torch.float64)).to(wdtype)
        h = (x.float() + res.float()).double()
        y = F.rms_norm(h, (shape[-1],), None, eps).to(wdtype)
        y = (y.double() * w.double()).to(dtype)
        near = norm_tolerance(dtype)
        name = label(x, f"weight {NAMES[wdtype]}")
        case("rms_norm_of_sum", name, [x, res, w], [(y, near)], {"eps": eps})
        case("fused_add_rms_norm", name + ", wide", [x, res, w], [(y, near), (x + res, ONE)], {"eps": eps, "wide": True})
        group = {8: 8, 64: 16, 40: 8, 33: 11, 48: 16}[shape[-1]]
        (q, s), (p, t) = group_quant(y, group), group_quant(rms_stored(x + res, w, eps), group)
        scale = scale_tolerance(dtype)
        case(
            "fused_add_rms_norm_per_block_quant",
            name + ", wide",
            [x, res, w],
            [(q, FP8), (s, scale), (x + res, ONE)],
            {"eps": eps, "wide": True, "group": group},
        )
        case("fused_add_rms_norm_per_block_quant", name, [x, res, w], [(p, FP8), (t, scale), (x + res, ONE)], {"eps": eps, "group": group})
        b = torch.randn(shape[-1], dtype=torch.float64).to(wdtype)
        y = F.layer_norm(x.double(), (shape[-1],), w.double(), b.double(), eps).to(dtype)
        case("layer_norm", name, [x, w, b], [(y, {"ulps": 64 if dtype == F32 else 1, "floor": 1.0})], {"eps": eps})


def powers_of_two():
    x = torch.cat(
        [
            2.0 ** torch.arange(-124, 127).float(),
            2.0 ** torch.arange(-124, 127).float() * 1.0000002,
            torch.tensor([0.0, 1e-10, 0.3, 1.5, 3.0, 447.9, 1e30]),
        ]
    )
    y = torch.exp2(torch.ceil(torch.log2(torch.clamp(x.double(), min=2.0**-125)))).float()
    case("ceil_pow2", label(x), [x], [(y, {})])


def more_quantisations():
    nearly = {"ulps": 1, "equal": 0.97}
    for x, group in ((rows(BF16, 5, 128), 32), (rows(F32, 4, 24), 8)):
        parts = x.double().unflatten(-1, (-1, group))
        s = torch.clamp(parts.abs().amax(-1, keepdim=True), min=1e-10) / 448
        s = torch.exp2(torch.ceil(torch.log2(torch.clamp(s, min=1e-10))))
        q = (parts / s).flatten(-2).clamp(-448, 448).float().to(F8)
        case(
            "per_token_group_fp8_quant",
            label(x, f"group {group}", "ue8m0"),
            [x],
            [(q, nearly), (s.squeeze(-1).float(), {})],
            {"group": group, "ue8m0": True},
        )
    for x in (rows(BF16, 5, 129), rows(F32, 4, 77), rows(F16, 3, 64, scale=10)):
        s = (x.double().abs().amax() / 448).float().reshape(1)
        case("dynamic_scaled_fp8_quant", label(x), [x], [(quant(x, s), nearly), (s, TWO)])
    for dtype, shape, group in ((BF16, (4, 256), 32), (F16, (5, 80), 8), (F32, (3, 64), 16), (BF16, (2, 3, 160), 16)):
        gu = rows(dtype, *shape, scale=2)
        q, s = group_quant(silu_mul(gu), group)
        case("silu_and_mul_per_block_quant", label(gu, f"group {group}"), [gu], [(q, FP8), (s, scale_tolerance(dtype))], {"group": group})
        g, u = gu.chunk(2, -1)
        near = {"ulps": 128 if dtype == F32 else 2, "floor": 1e-2}
        case("gelu_and_mul", label(gu), [gu], [(F.gelu(g.double()).to(dtype) * u, near)])
        tanh = F.gelu(g.double(), approximate="tanh").to(dtype) * u
        case("gelu_tanh_and_mul", label(gu), [gu], [(tanh, near)])


def error_function():
    for dtype in (BF16, F16, F32):
        for x in (rows(dtype, 5, 33, scale=2), edges(dtype)):
            case("erf", label(x), [x], [(torch.erf(x.double()).to(dtype), {"ulps": 1 if dtype != F32 else 8, "floor": 1e-30})])


def halves():
    for dtype, shape in ((F32, (3, 8)), (BF16, (1, 4, 5, 16)), (F16, (2, 64))):
        x, c, s = rows(dtype, *shape), rows(dtype, *shape[-2:]), rows(dtype, *shape[-2:])
        a, b = x.double().chunk(2, -1)
        y = (x.double() * c.double()).to(dtype) + (torch.cat((-b, a), -1) * s.double()).to(dtype)
        case("rope_by_halves", label(x), [x, c, s], [(y, {"ulps": 2, "floor": 1.0})])


def parallel_embedding():
    for dtype, ids in ((BF16, torch.randint(0, 48, (9,))), (F32, torch.randint(0, 48, (2, 5), dtype=torch.int32))):
        table = rows(dtype, 14, 6)  # rows 8..16 of a vocabulary, two of padding, then 40..44 of what was added
        row = torch.full(ids.shape, -1)
        row = torch.where((ids >= 8) & (ids < 16), ids.long() - 8, row)
        row = torch.where((ids >= 40) & (ids < 44), ids.long() - 40 + 10, row)
        y = torch.where((row >= 0)[..., None], F.embedding(row.clamp(min=0), table), torch.zeros((), dtype=dtype))
        case(
            "vocab_parallel_embedding",
            label(table, NAMES[ids.dtype]),
            [ids, table],
            [(y, {})],
            {"first": 8, "last": 16, "padding": 2, "added_first": 40, "added_last": 44},
        )


def block_products():
    for out, n, k, m, group in ((F32, 3, 8, 12, 4), (BF16, 2, 32, 16, 16)):
        a, b = rows(F32, n, k).to(F8), rows(F32, k, m).to(F8)
        sa, sb = torch.rand(n, k // group) + 0.5, torch.rand(k // group, m // group) + 0.5
        wide = sb.double().repeat_interleave(group, 0).repeat_interleave(group, 1)
        y = (a.double() * sa.double().repeat_interleave(group, 1)) @ (b.double() * wide)
        near = {"ulps": 64 if out == F32 else 1, "floor": 8.0}
        case("block_scaled_mm", label(a, f"group {group}", NAMES[out]), [a, b, sa, sb], [(y.to(out), near)], {"out": NAMES[out], "group": group})


def truths():
    for x in (torch.tensor([[0.0, -0.0, 0.0], [0.0, float("nan"), 0.0], [1.0, 2.0, -3.0]]), torch.tensor([[0, 0, 0], [0, 2, 0], [1, 1, 5]])):
        for op, of in (("any", torch.any), ("all", torch.all)):
            case(op, label(x), [x], [(of(x, -1), {})])
            case(op, label(x, "rows"), [x], [(of(x, 0, True), {})], {"dim": 0, "keepdim": True})


def quotients():
    for dtype in (F32, torch.float64):
        x = torch.tensor([7.0, -7.0, 0.5, -0.5, 0.0, -0.0, float("inf"), float("nan"), 1e-3, 5.0, -5.0], dtype=dtype)
        y = torch.tensor([2.0, 2.0, -0.25, 3.0, -2.0, 2.0, 3.0, 1.0, 1e-4, 0.0, 0.0], dtype=dtype)
        case("div_floor", label(x), [x, y], [(torch.div(x, y, rounding_mode="floor"), {})])
    for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
        ends = torch.iinfo(dtype)
        x = torch.tensor([ends.min, ends.min + 1, 1, 7, 100, ends.max], dtype=dtype)[:, None]
        y = torch.tensor([3, 7, 1, ends.max, *([ends.min, -3] if ends.min else [])], dtype=dtype)
        case("integer_div_floor", label(x), [x, y], [(torch.div(x, y, rounding_mode="floor"), {})])
        case("divisor", label(y), [y], [(y, {})])
    for dtype in (torch.int32, torch.int64):
        x = torch.tensor([[0, 4, 2], [1, 3, 4]], dtype=dtype)
        case("below", label(x), [x], [(x, {})], {"n": 5})


E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=torch.float64)


def nearest_e2m1(v):
    """The code of the nearest number, of two the even one, by distances; 8 more for what is below 0."""
    distance = (v.double().abs()[..., None] - E2M1).abs()
    odd = torch.arange(8) % 2
    best = distance.amin(-1, keepdim=True)
    code = torch.where(distance == best, odd, 9).argmin(-1)
    return code + 8 * (v < 0)


def packed(codes):
    return (codes[..., 0::2] + 16 * codes[..., 1::2]).to(torch.uint8)


def unpacked(q):
    codes = torch.stack([q.long() % 16, q.long() // 16], -1).flatten(-2)
    return E2M1[codes % 8] * torch.where(codes >= 8, -1.0, 1.0).double()


def fp4_quant(x, g):
    """In f32 and in f64, which have to agree, so that nothing depends on where it is computed."""
    both = []
    for wide in (torch.float32, torch.float64):
        parts, scale = x.to(wide).unflatten(-1, (-1, 16)), g.to(wide)
        t = (parts.abs().amax(-1, keepdim=True) / 6 * scale).float().to(F8)
        v = torch.where(t.float() == 0, torch.zeros((), dtype=wide), parts * (scale / t.to(wide)))
        both.append((packed(nearest_e2m1(v.flatten(-2))), t.squeeze(-1)))
    assert torch.equal(both[0][0], both[1][0]) and torch.equal(both[0][1].float(), both[1][1].float())
    return both[0]


def four_bits():
    v = torch.cat([torch.arange(-52, 53) / 8.0, torch.tensor([1e-9, -1e-9, 100.0, -100.0])]).float()
    case("e2m1_code", label(v), [v], [(nearest_e2m1(v).float(), {})])
    codes = torch.arange(16).float()
    numbers = torch.cat([E2M1, -E2M1]).float()
    case("e2m1_number", label(codes), [codes], [(numbers, {"floor": 1.0})])
    codes = torch.randint(0, 16, (3, 8))
    case("pack_e2m1", label(codes), [codes.float()], [(packed(codes), {})])
    q = torch.arange(256).to(torch.uint8).view(2, 128)
    case("unpack_e2m1", label(q), [q], [(unpacked(q).float(), {"floor": 1.0})])
    for x, scale in ((rows(BF16, 5, 64), 8.0), (rows(F32, 2, 3, 32), 64.0), (rows(F16, 3, 16, scale=10), 1.0)):
        g = torch.tensor([scale])
        case("scaled_fp4_quant", label(x), [x, g], [(part, {}) for part in fp4_quant(x, g)])
    for dtype, n, m, p, out in ((BF16, 3, 4, 32, BF16), (F32, 5, 8, 64, F32)):
        (a, sa), (b, sb) = (fp4_quant(rows(dtype, k, p), torch.tensor([4.0])) for k in (n, m))
        wide = [unpacked(q) * s.double().repeat_interleave(16, 1) for q, s in ((a, sa), (b, sb))]
        y = (wide[0] @ wide[1].T / 16).to(out)
        near = {"ulps": 64 if out == F32 else 1, "floor": 8.0}
        case("scaled_fp4_mm", label(a, NAMES[out]), [a, b, sa, sb, torch.tensor([1 / 16])], [(y, near)], {"out": NAMES[out]})


def before_four_bits():
    """Norms and activations with exact results, so that codes are equal."""
    g = torch.tensor([16.0])
    for dtype in (BF16, F32):
        x = torch.where(torch.rand(4, 64) < 0.5, -1.0, 1.0).to(dtype)
        w = (2.0 ** torch.randint(-3, 4, (64,))).to(dtype)
        q, s = fp4_quant(x * w, g)
        case("rms_norm_fp4_quant", label(x), [x, w, g], [(q, {}), (s, {})], {"eps": 0.0})
        a, res = x * 0.25, x * 0.75
        case("fused_add_rms_norm_fp4_quant", label(x), [a, res, w, g], [(q, {}), (s, {}), (x, {})], {"eps": 0.0})
        gate = torch.tensor([0.0, 128.0, 256.0])[torch.randint(0, 3, (4, 32))].to(dtype)
        u = rows(dtype, 4, 32)
        q, s = fp4_quant(gate * u, g)
        case("silu_and_mul_nvfp4_quant", label(u), [torch.cat([gate, u], -1), g], [(q, {}), (s, {})])


def eight_bits():
    for x in (rows(BF16, 5, 64), rows(F32, 2, 3, 96), rows(F16, 3, 32, scale=10)):
        parts = x.double().unflatten(-1, (-1, 32))
        e = torch.ceil(torch.log2(torch.clamp(parts.abs().amax(-1, keepdim=True) / 448, min=2.0**-125)))
        q = (parts / 2.0**e).clamp(-448, 448).float().to(F8).flatten(-2)
        case("mxfp8_quant", label(x), [x], [(q, {}), ((e.squeeze(-1) + 127).to(torch.uint8), {})])
        s = torch.tensor([2.0**-4])
        q = torch.round(x.double() / s.double()).clamp(-128, 127).to(torch.int8)
        case("static_scaled_int8_quant", label(x), [x, s], [(q, {})])
        s = (x.double().abs().amax(-1, keepdim=True) / 127).float()
        q = torch.where(s == 0, torch.zeros((), dtype=torch.float64), torch.round(x.double() / s.double())).to(torch.int8)
        case("dynamic_scaled_int8_quant", label(x), [x], [(q, {}), (s, TWO)])


def norms_with_gates():
    for dtype, wdtype in ((BF16, BF16), (F32, F32), (F16, F32)):
        x, gate = rows(dtype, 3, 2, 24, scale=2), rows(dtype, 3, 2, 24)
        w = (1 + 0.2 * torch.randn(24, dtype=torch.float64)).to(wdtype)
        y = rms_stored(x, w, 1e-6) * F.silu(gate.double()).to(dtype)
        near = {"ulps": 64 if dtype == F32 else 4, "floor": 1e-2}
        case("rms_norm_gated", label(x, f"weight {NAMES[wdtype]}"), [x, w, gate], [(y, near)], {"eps": 1e-6})


def three_positions():
    for dtype, head, sections in ((BF16, 16, [4, 2, 2]), (F32, 8, [2, 1, 1])):
        frequency = 10000.0 ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
        angle = torch.arange(32, dtype=torch.float64)[:, None] * frequency
        cos_sin = torch.cat([angle.cos(), angle.sin()], -1).to(dtype)
        positions = torch.randint(0, 32, (3, 5))
        units = [torch.complex(*(part.contiguous() for part in cos_sin[p].double().chunk(2, -1))) for p in positions]
        unit = torch.cat([u.split(sections, -1)[i] for i, u in enumerate(units)], -1)
        q, k = (torch.randn(5, n * head, dtype=torch.float64).to(dtype) for n in (4, 2))
        near = {"ulps": 4 if dtype == F32 else 1, "floor": 1.0}
        for neox in (True, False):
            case(
                "mrotary_embedding",
                label(q, f"head {head}", "neox" if neox else "interleaved"),
                [positions, q, k, cos_sin],
                [(turned(q, unit, head, neox), near), (turned(k, unit, head, neox), near)],
                {"head": head, "time": sections[0], "height": sections[1], "neox": neox},
            )


def followed_products():
    """Products and convolutions with what follows them; gelu by erfc, as in `pointwise`."""

    def gelu(d):
        y = d / 2 * torch.special.erfc(-d / 2**0.5)
        assert torch.allclose(y, F.gelu(d), rtol=1e-12, atol=1e-12)
        return y

    def near(dtype):
        return {"ulps": 16 if dtype == F32 else 2, "floor": 4.0}

    for dtype, n, k, m in ((BF16, 4, 16, 12), (F16, 3, 33, 7), (F32, 5, 24, 9), (F32, 1, 1, 3), (BF16, 17, 8, 33)):
        bias, a, b = rows(dtype, m), rows(dtype, n, k), rows(dtype, k, m, scale=k**-0.5)
        y = gelu(torch.addmm(bias.double(), a.double(), b.double())).to(dtype)
        case("addmm_gelu", label(a, f"by {m}"), [bias, a, b], [(y, near(dtype))])
    for dtype, shape, kernel, stride, padding, dilation, groups in (
        (F32, (2, 3, 7, 6), (4, 3, 3, 3), [1, 1], [1, 1], [1, 1], 1),
        (BF16, (1, 4, 8, 5), (6, 2, 3, 2), [2, 1], [1, 0], [1, 2], 2),
        (F16, (2, 4, 5, 5), (4, 1, 3, 3), [1, 2], [0, 1], [1, 1], 4),
        (F32, (1, 5, 4, 4), (8, 5, 1, 1), [1, 1], [0, 0], [1, 1], 1),
        (BF16, (2, 3, 11), (5, 3, 4), [3], [2], [1], 1),
        (F32, (1, 2, 4, 5, 3), (3, 2, 2, 3, 2), [1, 2, 1], [0, 1, 1], [2, 1, 1], 1),
    ):
        x, w = rows(dtype, *shape), rows(dtype, *kernel, scale=torch.Size(kernel[1:]).numel() ** -0.5)
        bias = rows(dtype, kernel[0])
        of = (F.conv1d, F.conv2d, F.conv3d)[len(stride) - 1]
        attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        for b in (bias, None):
            d = of(x.double(), w.double(), None if b is None else b.double(), stride, padding, dilation, groups)
            name = label(x, label(w), "without a bias" if b is None else "with a bias")
            operands = [x, w] if b is None else [x, w, b]
            case("convolution_relu", name, operands, [(F.relu(d).to(dtype), near(dtype))], attributes)
            case("convolution_gelu", name, operands, [(gelu(d).to(dtype), near(dtype))], attributes)
            if b is not None:
                for extents in (d.shape, (kernel[0], *[1] * len(stride))):
                    other = rows(dtype, *extents)
                    y = F.relu(d + other.double()).to(dtype)
                    case("convolution_add_relu", f"{name}, {label(other)}", [*operands, other], [(y, near(dtype))], attributes)


def philox(counter, key, rounds=range(10)):
    """Philox4x32 of Salmon and others, 2011, in whole numbers; 10 rounds from the first, or others."""
    c, mask = list(counter), 2**32 - 1
    for r in rounds:
        k = [(key[0] + r * 0x9E3779B9) & mask, (key[1] + r * 0xBB67AE85) & mask]
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & mask, first >> 32 ^ c[3] ^ k[1], first & mask]
    return c


# Inputs and results of the authors' own test (kat_vectors of Random123).
PHILOX = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]


def exponentials(seeds, places, count):
    """From the upper 24 bits of two words, in f64. Near u = 1, the rounding of u to f32 is many steps of the result."""
    out = []
    for seed, at in zip(seeds.tolist(), places.tolist()):
        key = [seed & 2**32 - 1, seed >> 32 & 2**32 - 1]
        words = [philox([i, at & 2**32 - 1, at >> 32 & 2**32 - 1, 0], key) for i in range(count)]
        out.append([-math.log1p(-((w[0] >> 8) * 2.0**-24 + ((w[1] >> 8) + 0.5) * 2.0**-48)) for w in words])
    return torch.tensor(out, dtype=torch.float64)


def nearest_with(y, w, least):
    """The distance at which the sorted weights reach the requested sum."""
    order = y.argsort(-1)
    reached = w.gather(-1, order).cumsum(-1) >= least
    sums = y.gather(-1, order).masked_fill(~reached, float("inf"))
    return sums.amin(-1, keepdim=True)


def sampling():
    expected = [philox(counter, key) for counter, key, _ in PHILOX]
    assert expected == [words for _, _, words in PHILOX]
    inputs = [torch.tensor(column) for column in zip(*([*c, *k] for c, k, _ in PHILOX))]
    case("philox", "the authors' vectors", inputs, [(torch.tensor(column), {}) for column in zip(*expected)])
    one = [philox(counter, key, [3]) for counter, key, _ in PHILOX]
    case("philox_round", "the fourth round", inputs, [(torch.tensor(column), {}) for column in zip(*one)], {"round": 3})
    seeds, places = torch.tensor([0, 1, -1, 2**40 + 5]), torch.tensor([0, 7, 2**35, 7])
    e = exponentials(seeds, places, 50)
    case("exponential", "50 a row", [seeds, places], [(e.float(), {"ulps": 256})], {"count": 50})
    for dtype in (BF16, F16, F32):
        x = rows(dtype, 4, 50)
        x[1, 3:9], x[2] = x[1].amax(), 1.0
        case("argmax_in_rows", label(x), [x], [(x.argmax(-1), {})])
        case("argmax_in_rows", label(x, "columns"), [x], [(x.argmax(0, True), {})], {"dim": 0, "keepdim": True})
        case("largest_logit", label(x), [x], [(x.amax(-1, True).float(), {})])
        z = (x.double() - x.double().amax(-1, keepdim=True)) / 0.7
        case("sample_token", label(x), [x, seeds, places], [((z - e.log()).argmax(-1), {})], {"temperature": 0.7})
        lowest = torch.tensor(-float("inf"), dtype=dtype)
        for k in (1, 5, 50, 60):
            least = x.sort(-1, descending=True).values[:, min(k, 50) - 1 :][:, :1]
            case("top_k_logits", label(x, f"k {k}"), [x], [(torch.where(x >= least, x, lowest), {})], {"k": k})
        for p in (0.01, 0.5, 0.9):
            odds = z.softmax(-1)
            larger = (odds[:, None, :] * (x[:, None, :] > x[:, :, None])).sum(-1)
            case("top_p_logits", label(x, f"p {p}"), [x], [(torch.where(larger < p, x, lowest), {})], {"p": p, "temperature": 0.7})
    y, w = rows(F32, 5, 40).abs(), torch.randint(0, 9, (5, 40))
    y[1, ::3], y[2, :20] = 0.25, 0.0
    least = (w.sum(-1, keepdim=True) * torch.tensor([[0.0], [0.3], [0.5], [1.0], [1.1]])).long().clamp(min=1)
    case("mass_within", label(y), [y, w, least], [(nearest_with(y, w, least).clamp(min=2.0**-126), {})])
    t, c = torch.full((5, 1), 0.25), torch.tensor([[0.5], [0.5], [0.25], [9.0], [1.0]])
    few = (w * (y < c)).sum(-1, keepdim=True) < least
    case("mass_within_step", label(y), [y, w, least, t, c], [(torch.where(few, c, t), {})])
    r, bit = t, torch.full((5, 1), 0.125)
    for i in range(8):
        c = r + bit * 0.5**i
        r = torch.where((w * (y < c)).sum(-1, keepdim=True) < least, c, r)
    case("mass_within_bits", label(y), [y, w, least, t, bit], [(r, {})])


def main():
    for make in (
        pointwise,
        layout,
        norms,
        quantised_norms,
        quantisations,
        gated,
        rope,
        groups,
        norm_and_rope,
        products_of_one_rank,
        copies,
        sums_in_f32,
        powers_of_two,
        more_quantisations,
        error_function,
        halves,
        parallel_embedding,
        block_products,
        truths,
        quotients,
        four_bits,
        before_four_bits,
        eight_bits,
        norms_with_gates,
        three_positions,
        padded_rows,
        placing,
        followed_products,
        sampling,
    ):
        make()
    for op, cases in files.items():
        lines = ",\n".join("  " + json.dumps(c, separators=(",", ":")) for c in cases)
        (HERE / f"{op}.json").write_text(f'{{"op":"{op}","cases":[\n{lines}\n]}}\n')
    print(f"{len(files)} ops, {sum(map(len, files.values()))} cases")


if __name__ == "__main__":
    main()
