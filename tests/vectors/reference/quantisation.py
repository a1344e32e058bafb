"""Quantisation to 8 and 4 bits, and norms and gates before it."""

import torch
import torch.nn.functional as F

from .common import (
    BF16,
    F16,
    F32,
    F8,
    FP8,
    NAMES,
    ONE,
    TWO,
    case,
    dynamic_quant,
    group_quant,
    label,
    norm_tolerance,
    quant,
    rms,
    rms_stored,
    rows,
    scale_tolerance,
    silu_mul,
)


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


def groups():
    nearly = {"ulps": 1, "equal": 0.97}
    for x, group in ((rows(BF16, 5, 128), 32), (rows(F16, 3, 64, scale=10), 64), (rows(F32, 4, 24), 8), (rows(BF16, 2, 3, 16), 4)):
        q, s = group_quant(x, group)
        case("per_token_group_fp8_quant", label(x, f"group {group}"), [x], [(q, nearly), (s, TWO)], {"group": group})
        w = torch.randn(x.shape[-1], dtype=torch.float64).to(x.dtype)
        q, s = group_quant(rms(x, w, 1e-6), group)
        case("rms_norm_per_block_quant", label(x, f"group {group}"), [x, w], [(q, FP8), (s, scale_tolerance(x.dtype))], {"eps": 1e-6, "group": group})


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
