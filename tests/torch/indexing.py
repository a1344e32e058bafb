"""One op a case: making, indexing, scanning and sorting. Imported by one_op.py."""
import torch

aten = torch.ops.aten
FLOATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
NUMBERS = FLOATS | {"i64": torch.int64, "i32": torch.int32, "u8": torch.uint8, "f64": torch.float64}
NAN, INF = float("nan"), float("inf")


def values(dtype, *shape):
    """Distinct numbers in no order, all exact in every dtype."""
    count = max(torch.Size(shape).numel(), 1)
    out = (torch.arange(count) * 37 % 101 - (0 if dtype == torch.uint8 else 50))[: torch.Size(shape).numel()]
    return out.reshape(shape).to(dtype)


def edges():
    return torch.tensor([[1.0, NAN, -0.0, 0.0, INF, NAN], [2.0, 2.0, -INF, 5.0, 5.0, -3.0]])


def ids(*numbers):
    return torch.tensor(numbers)


def making(case):
    x = values(torch.float32, 2, 3)
    forms = {
        "end": lambda: aten.arange.default(5),
        "start": lambda: aten.arange.start(3, 9),
        "step": lambda: aten.arange.start_step(3, 12, 4),
        "down": lambda: aten.arange.start_step(9, -2, -3),
        "nothing": lambda: aten.arange.start_step(4, 4, 1),
        "in_f32": lambda: aten.arange.start_step(1, 8, 2, dtype=torch.float32),
        "in_i32": lambda: aten.arange.start_step(1, 8, 2, dtype=torch.int32),
        "real": lambda: aten.arange.start_step(0.5, 3.2, 0.3),
        "real_f64": lambda: aten.arange.start_step(0.0, 1.0, 0.1, dtype=torch.float64),
        "real_bf16": lambda: aten.arange.start_step(0.0, 4.0, 0.5, dtype=torch.bfloat16),
        "real_f16": lambda: aten.arange.start_step(0.0, 4.0, 0.3, dtype=torch.float16),
    }
    for name, make in forms.items():
        case(f"arange_{name}", lambda y, make=make: (y, make()), x)
    case("empty_permuted", lambda y: aten.copy.default(aten.empty_permuted.default([2, 3], [1, 0]), y), x)
    for name, times in {"same": [1, 1], "rows": [3, 1], "more": [2, 1, 2], "none": [0, 2]}.items():
        case(f"repeat_{name}", lambda y, times=times: aten.repeat.default(y, times), x)
    case("repeat_rank0", lambda y: aten.repeat.default(y, [3]), torch.tensor(2.0))


def choosing(case):
    x = values(torch.float32, 4, 5, 6)
    i, j = ids(3, -1, 0), ids(0, -5, 4)
    for short, dtype in NUMBERS.items():
        case(f"index_{short}", lambda x, i: aten.index.Tensor(x, [i]), values(dtype, 4, 5), i)
        case(f"gather_{short}", lambda x, i: aten.gather.default(x, 1, i), values(dtype, 3, 5), torch.tensor([[0, 4], [2, 2]]))
    case("index_b8", lambda x, i: aten.index.Tensor(x, [i]), values(torch.float32, 4, 5) > 0, i)
    case("index_two", lambda x, i, j: aten.index.Tensor(x, [i, j]), x, i, j)
    case("index_last", lambda x, i: aten.index.Tensor(x, [None, None, i]), x, i)
    case("index_middle", lambda x, i: aten.index.Tensor(x, [None, i]), x, i)
    case("index_apart", lambda x, i, j: aten.index.Tensor(x, [i, None, j]), x, i, j)
    case("index_broadcast", lambda x, i, j: aten.index.Tensor(x, [i, j]), x, i.reshape(3, 1), ids(1, -2))
    case("index_rank0", lambda x, i: aten.index.Tensor(x, [None, i]), x, torch.tensor(-2))
    case("index_by_i32", lambda x, i, j: aten.index.Tensor(x, [i, j]), x, i.int(), j)
    case("index_nothing", lambda x, i: aten.index.Tensor(x, [i]), x, torch.zeros(0, dtype=torch.int64))
    case("index_of_view", lambda x, i: aten.index.Tensor(aten.permute.default(x, [2, 0, 1]), [None, i]), x, i)
    case("index_select", lambda x, i: aten.index_select.default(x, -1, i), x, ids(5, 0, 0))
    case("gather_rows", lambda x, i: aten.gather.default(x, 0, i), x, torch.randint(0, 4, (2, 5, 3)))
    case("gather_negative_dim", lambda x, i: aten.gather.default(x, -2, i), x, torch.randint(0, 5, (4, 2, 6)))
    case("gather_nothing", lambda x, i: aten.gather.default(x, 1, i), x, torch.zeros(4, 0, 6, dtype=torch.int64))
    case("flip_one", lambda x: aten.flip.default(x, [-1]), x)
    case("flip_two", lambda x: aten.flip.default(x, [0, 2]), x)
    case("flip_none", lambda x: aten.flip.default(x, []), x)
    case("flip_i64", lambda x: aten.flip.default(x, [0]), values(torch.int64, 5))
    for offset in (0, 2, -1):
        case(f"diagonal_{offset}".replace("-", "m"), lambda x, offset=offset: aten.diagonal.default(x, offset), values(torch.float32, 4, 5))
    case("diagonal_axes", lambda x: aten.diagonal.default(x, 1, -1, 0), x)


def putting(case):
    x = values(torch.float32, 4, 5, 6)
    i, j = ids(3, -3, 0), ids(0, -5, 4)
    for short, dtype in NUMBERS.items():
        case(f"index_put_{short}", lambda x, i, v: aten.index_put.default(x, [i], v), values(dtype, 4, 5), i, values(dtype, 3, 5))
        case(f"index_add_{short}", lambda x, i, v: aten.index_put.default(x, [i], v, True), values(dtype, 4, 5), ids(1, 1, -1), values(dtype, 3, 5))
        case(
            f"scatter_add_{short}",
            lambda x, i, v: aten.scatter_add.default(x, 1, i, v),
            values(dtype, 3, 5),
            torch.randint(0, 5, (3, 5)),
            values(dtype, 3, 5),
        )
        case(f"scatter_value_{short}", lambda x, i: aten.scatter.value(x, 0, i, 3), values(dtype, 3, 5), torch.randint(0, 3, (2, 4)))
    case("index_put_apart", lambda x, i, j, v: aten.index_put.default(x, [i, None, j], v), x, i, j, values(torch.float32, 3, 5))
    case("index_put_middle", lambda x, i, v: aten.index_put.default(x, [None, i], v), x, ids(3, -4, 0), values(torch.float32, 3, 1))
    case("index_put_one_value", lambda x, i, j, v: aten.index_put.default(x, [i, j], v, True), x, i, j, torch.tensor(2.5))
    case("index_put_mask", lambda x, m, v: aten.index_put.default(x, [m], v), x, values(torch.float32, 4, 5) > 0, torch.tensor(2.5))
    case("index_put_mask_rows", lambda x, m, v: aten.index_put.default(x, [m], v), x, ids(1, 0, 0, 1) > 0, values(torch.float32, 6))
    case(
        "scatter_src",
        lambda x, i, v: aten.scatter.src(x, -1, i, v),
        values(torch.float32, 3, 5),
        torch.tensor([[4, 0], [1, 2]]),
        values(torch.float32, 3, 5),
    )
    case("scatter_rank1", lambda x, i, v: aten.scatter.src(x, 0, i, v), values(torch.float32, 5), ids(4, 2), values(torch.float32, 3))
    at, src = torch.tensor([[0, 2, 0], [1, 1, 1]]), values(torch.float32, 2, 3)
    for how in ("sum", "prod", "amax", "amin", "mean"):
        for include in (True, False):
            case(
                f"scatter_{how}_{include}",
                lambda x, i, v, how=how, include=include: aten.scatter_reduce.two(x, 1, i, v, how, include_self=include),
                values(torch.float32, 3, 4),
                at,
                src,
            )
    case(
        "scatter_amax_i64",
        lambda x, i, v: aten.scatter_reduce.two(x, 1, i, v, "amax", include_self=False),
        values(torch.int64, 3, 4),
        at,
        values(torch.int64, 2, 3),
    )
    case(
        "scatter_amax_nan",
        lambda x, i, v: aten.scatter_reduce.two(x, 1, i, v, "amax"),
        values(torch.float32, 2, 6),
        torch.randint(0, 6, (2, 6)),
        edges(),
    )
    for padding in (-1, 2):
        case(
            f"embedding_backward_{padding}".replace("-", "m"),
            lambda g, i, padding=padding: aten.embedding_dense_backward.default(g, i, 5, padding, False),
            values(torch.float32, 2, 3, 4),
            torch.tensor([[1, 2, 1], [4, 2, 0]]),
        )
    mask = torch.tensor([[1, 0, 1], [0, 1, 1]]) > 0
    case("masked_scatter", lambda x, m, s: aten.masked_scatter.default(x, m, s), values(torch.float32, 2, 3), mask, values(torch.float32, 4))
    case("masked_scatter_more", lambda x, m, s: aten.masked_scatter.default(x, m, s), values(torch.int64, 2, 3), mask, values(torch.int64, 3, 5))


def padding(case):
    x = values(torch.float32, 2, 3, 4)
    for name, pad in {"last": [1, 2], "two": [1, 0, 0, 2], "cut": [-1, 2], "all": [1, 1, -1, 0, 0, 1], "none": [0, 0]}.items():
        case(f"pad_{name}", lambda x, pad=pad: aten.constant_pad_nd.default(x, pad, 1.5), x)
    case("pad_i64", lambda x: aten.constant_pad_nd.default(x, [1, 1], 7), values(torch.int64, 3))
    case("pad_infinity", lambda x: aten.constant_pad_nd.default(x, [0, 2], -INF), values(torch.bfloat16, 2, 3))
    case("pad_b8", lambda x: aten.constant_pad_nd.default(x, [1, 1], 1), values(torch.float32, 3) > 0)
    case("reflect_1", lambda x: aten.reflection_pad1d.default(x, [3, 2]), x)
    case("reflect_2", lambda x: aten.reflection_pad2d.default(x, [1, 3, 2, 0]), x)
    case("reflect_3", lambda x: aten.reflection_pad3d.default(x, [1, 3, 2, 0, 1, 1]), x.unsqueeze(0))
    case("replicate_1", lambda x: aten.replication_pad1d.default(x, [5, 2]), x)
    case("replicate_2", lambda x: aten.replication_pad2d.default(x, [1, 3, 0, 4]), x)
    case("replicate_3", lambda x: aten.replication_pad3d.default(x, [1, 3, 2, 0, 1, 3]), x.unsqueeze(0))


def scanning(case):
    for short, dtype in (NUMBERS | {"b8": torch.bool}).items():
        case(f"cumsum_{short}", lambda x: aten.cumsum.default(x, -1), values(dtype, 3, 5))
        case(f"prod_{short}", lambda x: aten.prod.dim_int(x, 0), values(dtype, 2, 5))
        case(f"any_{short}", lambda x: aten.any.dim(x, 1, True), values(dtype, 4, 3) * ids(0, 1, 0, 0).reshape(4, 1).to(dtype))
        case(f"any_all_{short}", lambda x: aten.any.default(x), values(dtype, 4, 3))
    case("cumsum_rows", lambda x: aten.cumsum.default(x, 0), values(torch.float32, 3, 5))
    case("cumsum_in_f64", lambda x: aten.cumsum.default(x, 1, dtype=torch.float64), values(torch.float32, 3, 5))
    case("cumsum_i64_in_i32", lambda x: aten.cumsum.default(x, 1, dtype=torch.int32), values(torch.int64, 3, 5))
    case("cumsum_long", lambda x: aten.cumsum.default(x, 0), torch.rand(5000))
    case("cumsum_nothing", lambda x: aten.cumsum.default(x, 1), torch.zeros(3, 0))
    case("cumsum_edges", lambda x: aten.cumsum.default(x, 1), edges())
    case("cumsum_view", lambda x: aten.cumsum.default(aten.t.default(x), 1), values(torch.float32, 3, 5))
    case("cumprod", lambda x: aten.cumprod.default(x, 1), values(torch.float32, 3, 5))
    case("prod_all", lambda x: aten.prod.default(x), values(torch.float32, 3, 2))
    case("prod_all_i32", lambda x: aten.prod.default(x), values(torch.int32, 3, 2))
    case("prod_keep_in_f64", lambda x: aten.prod.dim_int(x, -1, True, dtype=torch.float64), values(torch.float32, 3, 2))
    case("prod_nothing", lambda x: aten.prod.dim_int(x, 1), torch.zeros(3, 0))
    case("any_dims", lambda x: aten.any.dims(x, [0, -1]), values(torch.float32, 2, 3, 2) > 45)
    case("any_dims_all", lambda x: aten.any.dims(x, None, True), values(torch.float32, 2, 3) > 45)
    case("any_nothing", lambda x: aten.any.dim(x, 1), torch.zeros(3, 0, dtype=torch.bool))
    case("any_nan", lambda x: aten.any.default(x), torch.tensor([0.0, NAN]))
    case("all", lambda x: aten.all.default(x), torch.tensor([0.0, NAN]))
    case("all_dim", lambda x: aten.all.dim(x, 1), torch.tensor([[1, 2], [0, 3]]))
    case("var_all", lambda x: aten.var.correction(x), values(torch.float32, 3, 5))
    case("var_two", lambda x: aten.var.correction(x, [0, -1], correction=0, keepdim=True), values(torch.bfloat16, 3, 4, 5))
    case("var_f64", lambda x: aten.var.correction(x, [1], correction=1.5), values(torch.float64, 3, 5))
    case("var_dim", lambda x: aten.var.dim(x, [0], False), values(torch.float16, 3, 5))
    case("var_rank0", lambda x: aten.var.correction(x), torch.tensor(2.0))
    case("var_mean_two", lambda x: aten.var_mean.correction(x, [0, 2], correction=1), values(torch.float32, 3, 4, 5))
    case("var_mean_bf16", lambda x: aten.var_mean.correction(x, [0, 2], correction=0, keepdim=True), values(torch.bfloat16, 3, 4, 5))
    case("var_of_one", lambda x: aten.var.correction(x, [1], correction=1), values(torch.float32, 3, 1))
    case("var_of_too_few", lambda x: aten.var.correction(x, [1], correction=3), values(torch.float32, 3, 2))


def sorting(case):
    for short, dtype in NUMBERS.items():
        case(f"sort_{short}", lambda x: aten.sort.default(x), values(dtype, 3, 7))
        case(f"sort_down_{short}", lambda x: aten.sort.default(x, 0, True), values(dtype, 5, 3))
        case(f"argmax_{short}", lambda x: aten.argmax.default(x, 1, True), values(dtype, 3, 7))
        case(f"max_{short}", lambda x: aten.max.dim(x, -1), values(dtype, 3, 7))
        case(f"topk_{short}", lambda x: aten.topk.default(x, 2), values(dtype, 3, 7))
    case("sort_b8", lambda x: aten.sort.stable(x, stable=True), values(torch.float32, 2, 40) > 0)
    case("sort_stable", lambda x: aten.sort.stable(x, stable=True, dim=0), values(torch.int64, 40) // 20)
    case("sort_stable_down", lambda x: aten.sort.stable(x, stable=True, descending=True), values(torch.int64, 40) // 20)
    case("sort_edges", lambda x: aten.sort.stable(x, stable=True), edges())
    case("sort_edges_down", lambda x: aten.sort.stable(x, stable=True, descending=True), edges())
    case("sort_nothing", lambda x: aten.sort.default(x), torch.zeros(3, 0))
    case("topk_least", lambda x: aten.topk.default(x, 3, 0, False), values(torch.float32, 5, 3))
    case("topk_rows", lambda x: aten.topk.default(x, 2, 1), values(torch.float32, 3, 5, 4))
    case("topk_none", lambda x: aten.topk.default(x, 0), values(torch.float32, 5, 3))
    case("argmax_all", lambda x: aten.argmax.default(x), values(torch.float32, 3, 7))
    case("argmax_edges", lambda x: aten.argmax.default(x, 1), edges())
    case("argmin_edges", lambda x: aten.argmin.default(x, 1), edges())
    case("argmin", lambda x: aten.argmin.default(x, 0), values(torch.int64, 3, 7))
    case("min_edges", lambda x: aten.min.dim(x, 1, True), edges())
    case("max_edges", lambda x: aten.max.dim(x, 1), edges())


def rounding(case):
    x = torch.tensor([7.0, -7.0, 0.5, -0.5, 0.0, -0.0, INF, -INF, NAN, 1e-3, 5.0])
    y = torch.tensor([2.0, 2.0, -0.25, 3.0, -2.0, 2.0, 3.0, 2.0, 1.0, 1e-4, 0.0])
    for mode in ("trunc", "floor"):
        for short, dtype in (FLOATS | {"f64": torch.float64}).items():
            case(f"div_{mode}_{short}", lambda x, y, mode=mode: aten.div.Tensor_mode(x, y, rounding_mode=mode), x.to(dtype), y.to(dtype))
            case(f"div_{mode}_number_{short}", lambda x, mode=mode: aten.div.Tensor_mode(x, 2, rounding_mode=mode), x.to(dtype))
        for short, dtype in {"i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}.items():
            case(f"div_{mode}_number_{short}", lambda x, mode=mode: aten.div.Tensor_mode(x, 3, rounding_mode=mode), values(dtype, 4, 5))
        case(f"div_{mode}_minus_i64", lambda x, mode=mode: aten.div.Tensor_mode(x, -3, rounding_mode=mode), values(torch.int64, 4, 5))
        case(f"div_{mode}_scalar", lambda x, mode=mode: aten.div.Scalar_mode(x, 3, rounding_mode=mode), values(torch.int64, 4, 5))
        case(f"div_{mode}_real_of_i64", lambda x, mode=mode: aten.div.Tensor_mode(x, 2.5, rounding_mode=mode), values(torch.int64, 4, 5))
    case("div_none_i64", lambda x: aten.div.Tensor_mode(x, 4, rounding_mode=None), values(torch.int64, 4, 5))
    case("div_none", lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode=None), x, y)
    for short, dtype in (FLOATS | {"i64": torch.int64}).items():
        case(f"remainder_of_number_{short}", lambda x: aten.remainder.Scalar_Tensor(-7, x), values(dtype, 4, 5) * 2 + 1)
    samples = torch.tensor([0.0, 0.5, 1.0, 6.9, 7.0, 7.1, -0.1, NAN, 3.0, 3.0])
    case("histc", lambda x: aten.histc.default(x, 8, 0, 7), samples)
    case("histc_i64_as_f32", lambda x: aten.histc.default(aten._to_copy.default(x, dtype=torch.float32), 8, 0, 7), torch.randint(0, 8, (40,)))


def add_cases(case):
    for add in (making, choosing, putting, padding, scanning, sorting, rounding):
        add(case)
