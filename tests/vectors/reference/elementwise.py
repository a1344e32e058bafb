"""Elementwise ops, layout, and placing."""

import torch
import torch.nn.functional as F

from .common import BF16, F16, F32, case, edges, label, rows


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
