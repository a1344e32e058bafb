"""One op a case: what Inductor's dumps hold beside ATen (prims), shifts, products of quantised numbers, windows and scatters. Imported by one_op.py."""
import torch

aten, prims = torch.ops.aten, torch.ops.prims
FLOATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}
WHOLE = {"i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64}
NAN, INF = float("nan"), float("inf")
KIND = {"device": torch.device("cpu"), "requires_grad": False}


def values(dtype, *shape):
    """Distinct numbers in no order, all exact in every dtype."""
    count = torch.Size(shape).numel()
    out = torch.arange(count) * 37 % 101 - (0 if dtype == torch.uint8 else 50)
    return out.reshape(shape).to(dtype)


def small(dtype, *shape):
    return values(dtype, *shape) / 16 if dtype.is_floating_point else values(dtype, *shape)


def ids(*numbers):
    return torch.tensor(numbers)


def corners(dtype):
    """Both ends of a type of integers, and numbers around 0."""
    info = torch.iinfo(dtype)
    return torch.tensor([info.min, info.max, 0, 1, 2, 5, 100, *([-1, -2, -100] if info.min < 0 else [200, 255, 254])], dtype=dtype)


def edges():
    return torch.tensor([1.5, NAN, INF, -INF, -0.0, 0.0, -3.0, 1e-30])


def shifts(case):
    amounts = (0, 1, 3, 7, 8, 31, 32, 63, 64, 100, -1, -9)
    for short, dtype in WHOLE.items():
        by = torch.tensor([b for b in amounts if b >= 0 or dtype != torch.uint8], dtype=dtype).reshape(-1, 1)
        for side in ("left", "right"):
            for form in (f"bitwise_{side}_shift", f"__{side[0]}shift__"):
                case(f"{form}_{short}", lambda x, b, form=form: getattr(aten, form).Tensor(x, b), corners(dtype), by)
            for amount in (3, 9):
                op = getattr(aten, f"bitwise_{side}_shift").Tensor_Scalar
                case(f"shift_{side}_{amount}_{short}", lambda x, op=op, amount=amount: op(x, amount), corners(dtype))
    case("shift_left_i8_by_i64", lambda x, b: aten.bitwise_left_shift.Tensor(x, b), corners(torch.int8), ids(1).reshape(1, 1))
    case("shift_of_number", lambda b: aten.bitwise_left_shift.Scalar_Tensor(5, b), ids(0, 1, 62, 64))
    case("lshift_number", lambda x: aten.__lshift__.Scalar(x, 2), corners(torch.int32))
    case("rshift_number", lambda x: aten.__rshift__.Scalar(x, 2), corners(torch.int64))
    case("shift_in_place", lambda x: aten.bitwise_left_shift_.Tensor_Scalar(x.clone(), 2), corners(torch.int32))
    case("prims_shift_left", lambda x, y: prims.shift_left.default(x, y), ids(1, -5, 7), ids(3, 1, 64))
    case("prims_shift_right", lambda x, y: prims.shift_right_arithmetic.default(x, y), ids(100, -5, 7), ids(3, 1, 64))


def pointwise(case):
    one = "abs ceil cos cosh exp expm1 floor log1p neg round rsqrt sign sin sinh sqrt tan tanh trunc atan asinh erf exp2 log log2 log10 isfinite reciprocal"
    for op in one.split():
        positive = op in ("log", "log1p", "log2", "log10", "rsqrt", "sqrt")
        x = small(torch.float32, 4, 5)
        case(f"prims_{op}", lambda x, op=op: getattr(prims, op).default(x), x.abs() + 0.25 if positive else x + 0.03)
    case("prims_acos", lambda x: prims.acos.default(x), small(torch.float32, 4, 5) / 4)
    case("prims_asin", lambda x: prims.asin.default(x), small(torch.float32, 4, 5) / 4)
    case("prims_atanh", lambda x: prims.atanh.default(x), small(torch.float32, 4, 5) / 4)
    case("prims_acosh", lambda x: prims.acosh.default(x), small(torch.float32, 4, 5).abs() + 1)
    case("prims_isfinite_edges", lambda x: prims.isfinite.default(x), edges())
    two = "add sub mul div maximum minimum eq ne lt le gt ge fmod remainder atan2 fmax fmin pow"
    for op in two.split():
        x, y = small(torch.float32, 4, 5), small(torch.float32, 4, 5).flip(0) + 0.06
        case(f"prims_{op}", lambda x, y, op=op: getattr(prims, op).default(x, y), x.abs() if op == "pow" else x, y)
    for op in ("add", "sub", "mul", "div", "maximum", "minimum", "eq", "lt", "fmod", "remainder", "bitwise_and", "bitwise_or", "bitwise_xor"):
        x, y = corners(torch.int32), torch.tensor([3, -3, 7, 2, -1, 1, 9, 4, -5, 6], dtype=torch.int32)
        case(f"prims_{op}_i32", lambda x, y, op=op: getattr(prims, op).default(x, y), x, y)
    case("prims_bitwise_not", lambda x: prims.bitwise_not.default(x), corners(torch.int64))
    for op in ("fmax", "fmin"):
        case(f"{op}_edges", lambda x, y, op=op: getattr(aten, op).default(x, y), edges(), edges().flip(0))
    case(
        "prims_where",
        lambda m, x, y: prims.where.default(m, x, y),
        values(torch.int64, 4, 5) > 0,
        small(torch.float32, 4, 5),
        small(torch.float32, 4, 5) + 1,
    )
    case("isfinite_edges", lambda x: aten.isfinite.default(x), edges())
    for short, dtype in FLOATS.items():
        case(f"prims_mul_{short}", lambda x, y: prims.mul.default(x, y), small(dtype, 4, 5), small(dtype, 4, 5) + 1)


def triangles(case):
    for short, dtype in (FLOATS | WHOLE | {"b8": torch.bool}).items():
        x = values(torch.int64, 2, 3, 4).to(dtype)
        case(f"triu_{short}", lambda x: aten.triu.default(x, 1), x)
        case(f"tril_{short}", lambda x: aten.tril.default(x), x)
    case("triu_far", lambda x: aten.triu.default(x, -9), values(torch.float32, 3, 4))


def more(case):
    for short, dtype in {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}.items():
        for op in ("exp2", "frac", "softplus", "mish"):
            case(f"{op}_{short}", lambda x, op=op: getattr(aten, op).default(x), small(dtype, 4, 5) * 8)
    case("softplus_scaled", lambda x: aten.softplus.default(x, 2, 5), small(torch.float32, 4, 5))
    case("softplus_edges", lambda x: aten.softplus.default(x), edges())
    case("exp2_i64", lambda x: aten.exp2.default(x), values(torch.int64, 4, 5))


def axes(case):
    x = small(torch.float32, 2, 3, 4)
    for short, dtype in {"i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}.items():
        case(f"prims_iota_{short}", lambda y, d=dtype: (y, prims.iota.default(5, start=0, step=1, dtype=d, **KIND)), x)
        case(f"prims_iota_steps_{short}", lambda y, d=dtype: (y, prims.iota.default(5, start=3, step=2, dtype=d, **KIND)), x)
    case("prims_iota_down", lambda y: (y, prims.iota.default(6, start=3, step=-2, dtype=torch.int64, **KIND)), x)
    case("prims_iota_nothing", lambda y: (y, prims.iota.default(0, start=3, step=1, dtype=torch.int64, **KIND)), x)
    case("prims_broadcast_in_dim", lambda x: prims.broadcast_in_dim.default(x, [2, 5, 3, 4], [0, 2, 3]), x)
    case("prims_broadcast_in_dim_ones", lambda x: prims.broadcast_in_dim.default(x, [4, 2, 3], [1, 2]), small(torch.float32, 2, 1))
    case("prims_broadcast_in_dim_rank0", lambda x: prims.broadcast_in_dim.default(x, [4, 2], []), torch.tensor(2.5))
    case("prims_squeeze", lambda x: prims.squeeze.default(x, [0, 2]), small(torch.float32, 1, 3, 1))
    case("prims_transpose", lambda x: prims.transpose.default(x, [2, 0, 1]), x)
    case("prims_reshape", lambda x: prims.reshape.default(x, [4, 6]), x)
    case("prims_split_dim", lambda x: prims.split_dim.default(x, 2, 2), x)
    case("prims_collapse", lambda x: prims.collapse.default(x, 0, 1), x)
    case("prims_collapse_view", lambda x: prims.collapse_view.default(x, 1, 2), x)
    case("prims_rev", lambda x: prims.rev.default(x, [0, 2]), x)
    case("prims_cat", lambda x, y: prims.cat.default([x, y], 1), x, small(torch.float32, 2, 1, 4))
    case("prims_view_of", lambda x: prims.neg.default(prims.view_of.default(x)), x)
    case("prims_device_put", lambda x: prims.neg.default(prims.device_put.default(x, torch.device("cpu"))), x)
    for op in ("sum", "amax", "amin", "prod"):
        for name, dims in {"one": [1], "two": [0, 2], "all": [0, 1, 2]}.items():
            case(f"prims_{op}_{name}", lambda x, op=op, dims=dims: getattr(prims, op).default(x, dims), small(torch.float32, 2, 3, 4) / 2)
    case("prims_sum_i64", lambda x: prims.sum.default(x, [0]), values(torch.int64, 4, 5))
    for correction in (0.0, 1.0):
        case(f"prims_var_{int(correction)}", lambda x, c=correction: prims.var.default(x, [0, 2], c), x)
    case("prims_full", lambda x: prims.add.default(x, prims.full.default([2, 3, 4], 1.5, dtype=torch.float32, **KIND)), x)
    for name, moved in {"one": (0, 2), "back": (-1, 0), "lists": ([0, 2], [2, 0])}.items():
        form = aten.movedim.intlist if isinstance(moved[0], list) else aten.movedim.int
        case(f"movedim_{name}", lambda x, form=form, moved=moved: form(x, *moved), x)


def windows(case):
    x = small(torch.float32, 3, 7, 2)
    for name, at in {"one": (1, 3, 2), "steps": (1, 2, 3), "last": (-1, 1, 1), "all": (1, 7, 1)}.items():
        case(f"unfold_{name}", lambda x, at=at: aten.unfold.default(x, *at), x)
    flat = small(torch.float32, 4, 6)
    for name, at in {"turned": ([6, 4], [1, 6]), "windows": ([5, 3], [2, 1], 3), "repeated": ([3, 4], [0, 1], 2), "point": ([], [], 5)}.items():
        case(f"as_strided_{name}", lambda x, at=at: aten.as_strided.default(x, *at), flat)
    case("as_strided_of_a_view", lambda x: aten.as_strided.default(aten.slice.Tensor(x, 0, 1, 3), [2, 3], [6, 2], 7), flat)
    for name, at in {"main": (), "above": (2,), "below": (-1,), "axes": (0, 2, 0)}.items():
        x = small(torch.float32, 3, 4, 5) if name == "axes" else flat
        part = torch.ones_like(aten.diagonal.default(x, *at)).mul(7.5)
        case(f"diagonal_scatter_{name}", lambda x, y, at=at: aten.diagonal_scatter.default(x, y, *at), x, part)


def scatters(case):
    at = ids(2, 0, 2)
    for short, dtype in (FLOATS | WHOLE).items():
        x, rows, columns = values(dtype, 4, 3), values(dtype, 3, 3), values(dtype, 4, 3)
        case(f"index_add_{short}", lambda x, i, y: aten.index_add.default(x, 0, i, y), x, at, rows)
        case(f"index_copy_{short}", lambda x, i, y: aten.index_copy.default(x, 1, i, y), x, ids(1, 0, 2), columns)
        case(f"index_fill_{short}", lambda x, i: aten.index_fill.int_Scalar(x, 1, i, 7), x, at)
    case(
        "index_add_scaled",
        lambda x, i, y: aten.index_add.default(x, -1, i, y, alpha=0.5),
        values(torch.float32, 4, 3),
        at,
        values(torch.float32, 4, 3),
    )
    case(
        "index_add_scaled_i64", lambda x, i, y: aten.index_add.default(x, 0, i, y, alpha=3), values(torch.int64, 4, 3), at, values(torch.int64, 3, 3)
    )
    case("index_add_i32_at", lambda x, i, y: aten.index_add.default(x, 0, i, y), values(torch.float32, 4, 3), at.int(), values(torch.float32, 3, 3))
    case("index_fill_tensor", lambda x, i, v: aten.index_fill.int_Tensor(x, 0, i, v), values(torch.float32, 4, 3), at, torch.tensor(2.5))
    case(
        "index_add_in_place",
        lambda x, i, y: aten.index_add_.default(x.clone(), 0, i, y),
        values(torch.float32, 4, 3),
        at,
        values(torch.float32, 3, 3),
    )
    case("index_fill_in_place", lambda x, i: aten.index_fill_.int_Scalar(x.clone(), 0, i, 2.5), values(torch.float32, 4, 3), at)
    case(
        "index_add_expanded",
        lambda x, i, y: aten.index_add.default(aten.expand.default(x, [4, 3]), 0, i, y),
        values(torch.float32, 1, 3),
        at,
        values(torch.float32, 3, 3),
    )


def divisions(case):
    for short, dtype in FLOATS.items():
        x, y = small(dtype, 4, 5), small(dtype, 4, 5).flip(0) + 0.0625
        case(f"floor_divide_{short}", lambda x, y: aten.floor_divide.default(x, y), x, y)
        case(f"floor_divide_number_{short}", lambda x: aten.floor_divide.Scalar(x, 3), x)
    case("floor_divide_edges", lambda x, y: aten.floor_divide.default(x, y), edges().repeat(8), edges().repeat_interleave(8))
    case("floor_divide_i64_f32", lambda x, y: aten.floor_divide.default(x, y), values(torch.int64, 4, 5), small(torch.float32, 4, 5) + 0.0625)
    case("floor_divide_i64_number", lambda x: aten.floor_divide.Scalar(x, -3), values(torch.int64, 4, 5))


def products(case):
    case("bmm_i8", lambda x, y: aten.bmm.default(x, y), values(torch.int8, 2, 3, 4), values(torch.int8, 2, 4, 5))
    case("bmm_i64", lambda x, y: aten.bmm.default(x, y), values(torch.int64, 2, 3, 4), values(torch.int64, 2, 4, 5))
    case("int_mm", lambda x, y: aten._int_mm.default(x, y), values(torch.int8, 32, 32), values(torch.int8, 32, 32).t().contiguous())
    equations = {
        "ij,kj->ik": ((4, 8), (5, 8)),
        "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
        "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
        "i,j->ij": ((3,), (4,)),
        "ij->ji": ((3, 4),),
        "ij->": ((3, 4),),
        "ij,j": ((3, 4), (4,)),
        "...ij,...jk->...ik": ((2, 3, 4), (4, 5)),
        "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
        "bij,b->ij": ((2, 3, 4), (2,)),
        "bi,bi->b": ((3, 4), (3, 4)),
        "abc,cd->abd": ((2, 3, 4), (4, 5)),
        "bnd,ednf->bef": ((2, 3, 4), (5, 4, 3, 6)),
        "ijk,ilj->kl": ((1, 3, 4), (2, 5, 3)),
    }
    for equation, shapes in equations.items():
        name = "".join(c if c.isalpha() else "_" for c in equation)
        case(f"einsum_{name}", lambda *x, equation=equation: written("einsum", equation, x), *(small(torch.float32, *s) for s in shapes))
    case("einsum_bf16", lambda *x: written("einsum", "bij,bkj->bik", x), small(torch.bfloat16, 2, 3, 4), small(torch.bfloat16, 2, 5, 4))


def norms(case):
    x = small(torch.float32, 3, 4, 2)
    for name, order in {"two": 2, "one": 1, "three": 3.5, "most": INF, "least": -INF, "count": 0}.items():
        for dims in (None, [1], [0, -1]):
            case(f"vector_norm_{name}_{dims}", lambda x, order=order, dims=dims: aten.linalg_vector_norm.default(x, order, dims, True), x)
    case("vector_norm_bf16", lambda x: aten.linalg_vector_norm.default(x, 2, [1]), small(torch.bfloat16, 3, 4))
    case("vector_norm_wide", lambda x: aten.linalg_vector_norm.default(x, 2, [1], dtype=torch.float32), small(torch.bfloat16, 3, 4))


def written(*_):
    raise NotImplementedError("replaced where dumps are written: a composite op, which no trace keeps")


def add_cases(case):
    for add in (shifts, pointwise, triangles, more, axes, windows, scatters, divisions, norms):
        add(case)
    products(lambda name, *rest: None if name.startswith("einsum") else case(name, *rest))
