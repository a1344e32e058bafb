"""Norms, gates, and rotary embedding."""

import torch
import torch.nn.functional as F

from .common import BF16, F16, F32, NAMES, ONE, case, label, norm_tolerance, rms, rms_stored, rows, turned


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


def norms_with_gates():
    for dtype, wdtype in ((BF16, BF16), (F32, F32), (F16, F32)):
        x, gate = rows(dtype, 3, 2, 24, scale=2), rows(dtype, 3, 2, 24)
        w = (1 + 0.2 * torch.randn(24, dtype=torch.float64)).to(wdtype)
        y = rms_stored(x, w, 1e-6) * F.silu(gate.double()).to(dtype)
        near = {"ulps": 64 if dtype == F32 else 4, "floor": 1e-2}
        case("rms_norm_gated", label(x, f"weight {NAMES[wdtype]}"), [x, w, gate], [(y, near)], {"eps": 1e-6})


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
