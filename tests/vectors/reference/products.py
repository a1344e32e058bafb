"""Matrix products, convolutions, and embeddings."""

import torch
import torch.nn.functional as F

from .common import BF16, F16, F32, F8, NAMES, case, label, rows


def products_of_one_rank():
    for dtype, n, k, m in ((F32, 3, 5, 4), (BF16, 4, 16, 8)):
        a, b = rows(dtype, n, k), torch.randn(k, m, dtype=torch.float64).to(dtype)
        y = (a.double() @ b.double()).to(dtype)
        near = {"ulps": 64 if dtype == F32 else 2, "floor": 1.0}
        case("fused_matmul_reduce_scatter", label(a), [a, b], [(y, near)], {"scatter_dim": 0, "world": 1, "group": "tp"})
        case("fused_all_gather_matmul", label(a), [a, b], [(a, {}), (y, near)], {"gather_dim": 0, "world": 1, "group": "tp"})


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
