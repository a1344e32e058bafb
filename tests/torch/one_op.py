"""One op a case: its dump as make_fx prints it, its inputs, and what PyTorch computes."""
import dumped_ops
import indexing
import torch
import training
from torch.fx.experimental.proxy_tensor import make_fx

aten, prims = torch.ops.aten, torch.ops.prims
FLOATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
NUMBERS = FLOATS | {"i64": torch.int64}
CASES = {}


def drawn(dtype, *shape):
    if dtype == torch.bool:
        return torch.rand(*shape) > 0.5
    if dtype.is_floating_point:
        return torch.randn(*shape).to(dtype)
    return torch.randint(-9, 9, shape, dtype=dtype)


def edges(dtype=torch.float32):
    return torch.tensor([1.5, float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -3.0, 1e-30], dtype=dtype)


def case(name, function, *inputs):
    assert name not in CASES, name
    CASES[name] = (function, inputs)


def each(types, name, function, *shapes):
    """A case a type; a shape may be a pair with the function that prepares the values."""
    for short, dtype in types.items():
        inputs = []
        for shape in shapes:
            shape, prepare = shape if callable(shape[-1]) else (shape, lambda x: x)
            inputs.append(prepare(drawn(dtype, *shape)))
        case(f"{name}_{short}", function, *inputs)


def of_one(op):
    return lambda x: getattr(aten, op).default(x)


def of_two(op):
    return lambda x, y: getattr(aten, op).Tensor(x, y)


def with_number(op):
    return lambda x: getattr(aten, op).Scalar(x, 1)


def scatter_at(*bounds):
    return lambda x, y: aten.slice_scatter.default(x, y, 1, *bounds)


def odd(x):
    return x * 2 + 1


def positive(x):
    return x.abs() + 1


def arithmetic():
    row, full, ones = (6,), (4, 6), (1, 6)
    each(NUMBERS, "add", lambda x, y: aten.add.Tensor(x, y), full, row)
    each(NUMBERS, "add_alpha", lambda x, y: aten.add.Tensor(x, y, alpha=2), full, full)
    each(NUMBERS, "sub_number", lambda x: aten.sub.Tensor(x, 3), full)
    each(NUMBERS, "sub", lambda x, y: aten.sub.Tensor(x, y), ones, full)
    each(NUMBERS, "rsub", lambda x: aten.rsub.Scalar(x, 3), full)
    each(NUMBERS, "mul", lambda x, y: aten.mul.Tensor(x, y), full, ones)
    each(NUMBERS, "mul_float", lambda x: aten.mul.Tensor(x, 0.25), full)
    each(NUMBERS, "div", lambda x, y: aten.div.Tensor(x, y), full, (full, positive))
    each(NUMBERS, "div_number", lambda x: aten.div.Tensor(x, 4), full)
    each(NUMBERS, "reciprocal", lambda x: aten.reciprocal.default(x), (full, positive))
    each(NUMBERS, "neg", lambda x: aten.neg.default(x), full)
    each(NUMBERS, "abs", lambda x: aten.abs.default(x), full)
    each(NUMBERS, "square", lambda x: aten.pow.Tensor_Scalar(x, 2), full)
    each(NUMBERS, "maximum", lambda x, y: aten.maximum.default(x, y), full, row)
    each(NUMBERS, "minimum", lambda x, y: aten.minimum.default(x, y), full, row)
    each(NUMBERS, "relu", lambda x: aten.relu.default(x), full)
    each(NUMBERS, "clamp", lambda x: aten.clamp.default(x, -2, 1), full)
    each(NUMBERS, "clamp_low", lambda x: aten.clamp.default(x, 0), full)
    each(NUMBERS, "clamp_high", lambda x: aten.clamp.default(x, None, 1), full)
    each(NUMBERS, "clamp_min", lambda x: aten.clamp_min.default(x, -1), full)
    each(NUMBERS, "clamp_max", lambda x: aten.clamp_max.default(x, 2), full)
    for op in ("floor", "ceil", "trunc", "round"):
        each(NUMBERS, op, of_one(op), (full, lambda x: x * 3))
        case(f"{op}_edges", of_one(op), edges())
    for op in ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log1p", "log2", "log10"):
        each(NUMBERS, op, of_one(op), (4, 6))
        case(f"{op}_edges", of_one(op), edges())
    for op in ("fmod", "remainder"):
        each(NUMBERS, op, of_two(op), full, (full, odd))
        each(NUMBERS, op + "_number", lambda x, op=op: getattr(aten, op).Scalar(x, -3), full)
    each(NUMBERS, "atan2", lambda x, y: aten.atan2.default(x, y), full, full)
    for mode in ("trunc", "floor"):
        case(
            f"div_{mode}",
            lambda x, y, mode=mode: aten.div.Tensor_mode(x, y, rounding_mode=mode),
            drawn(torch.int64, 4, 6),
            odd(drawn(torch.int64, 4, 6)),
        )
    for op in ("sign", "isinf", "elu"):
        each(FLOATS, op, of_one(op), (4, 6))
        case(f"{op}_edges", of_one(op), edges())
    for op in ("exp", "log", "sqrt", "rsqrt", "tanh", "sin", "cos", "sigmoid"):
        each(NUMBERS, op, of_one(op), (full, positive))
    for op in ("silu", "gelu"):
        each(FLOATS, op, of_one(op), full)
    each(FLOATS, "gelu_tanh", lambda x: aten.gelu.default(x, approximate="tanh"), full)
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        each(NUMBERS, op, of_two(op), full, full)
        each(NUMBERS, op + "_number", with_number(op), full)
    whole = torch.tensor([-(2**31), -5, 0, 3, 2**24 + 1, 2**25 + 3, 2**31 - 1], dtype=torch.int32)
    case("clamp_of_large_i32", lambda x: aten.clamp.default(x, 0, 2 * 10**9), whole)
    case("clamp_of_large_i64", lambda x: aten.clamp.default(x, -7, 2**53), whole.long() * 1001)
    truth = torch.tensor([True, False, True])
    case("clamp_b8", lambda x: aten.clamp.default(x, -2, 3), truth)
    case("square_b8", lambda x: aten.square.default(x), truth)
    case("add_b8_alpha", lambda x, y: aten.add.Tensor(x, y, alpha=-1), truth, torch.tensor([False, False, True]))
    case("threshold_bf16", lambda x: aten.threshold.default(x, 0.1, 20), torch.tensor([0.1, 0.2, -1, 0.0996], dtype=torch.bfloat16))
    small = torch.arange(4, dtype=torch.uint8)
    case("full_like_wraps_u8", lambda x: aten.full_like.default(x, -3), small)
    case("new_full_wraps_u8", lambda x: aten.new_full.default(x, [2, 3], -255), small)
    case("scatter_wraps_u8", lambda x, i: aten.scatter.value(x, 0, i, -3), small, torch.tensor([1, 2]))
    case("scalar_wraps_u8", lambda x: x + aten.scalar_tensor.default(-3, dtype=torch.uint8), small)
    case("masked_fill_wraps_u8", lambda x: aten.masked_fill.Scalar(x, x > 1, -3), torch.arange(4, dtype=torch.uint8))
    case("masked_fill_large_i64", lambda x: aten.masked_fill.Scalar(x, x > 1, 2**53 + 1), torch.arange(4))
    case("clamp_bounds_exclude_each_other", lambda x: aten.clamp.default(x, 5, 2), drawn(torch.int8, 4, 16))
    case("addcmul_i32", lambda x: aten.addcmul.default(x, x, x, value=3), whole)
    case("sign_u8", lambda x: aten.sign.default(x), torch.tensor([0, 1, 200, 255], dtype=torch.uint8))
    case("floor_divide_negative_i8", lambda x: aten.floor_divide.default(x, -3), torch.arange(-128, 128).to(torch.int8))
    case("pow_scalar_in_place", lambda x: aten.pow_.Scalar(aten.clone.default(x), 3), drawn(torch.float32, 4, 6))
    case("pow_tensor_in_place", lambda x, y: aten.pow_.Tensor(aten.clone.default(x), y), drawn(torch.float32, 4, 6).abs(), drawn(torch.float32, 4, 6))
    case("pow_cube", lambda x: aten.pow.Tensor_Scalar(x, 3), drawn(torch.float32, 4, 6))
    case("pow_root", lambda x: aten.pow.Tensor_Scalar(x, 0.5), drawn(torch.float32, 4, 6).abs())
    case("pow_minus_one", lambda x: aten.pow.Tensor_Scalar(x, -1), positive(drawn(torch.float32, 4, 6)))
    case("pow_float_of_i64", lambda x: aten.pow.Tensor_Scalar(x, 0.5), positive(drawn(torch.int64, 4, 6)))
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        for short, dtype in {"b8": torch.bool, "i64": torch.int64}.items():
            case(f"{op}_{short}", of_two(op), drawn(dtype, 4, 6), drawn(dtype, 6))
    case("bitwise_not", lambda x: aten.bitwise_not.default(x), drawn(torch.bool, 4, 6))
    case("logical_not", lambda x: aten.logical_not.default(x), drawn(torch.bool, 4, 6))
    case("logical_not_f32", lambda x: aten.logical_not.default(x), edges())
    case("logical_and", lambda x, y: aten.logical_and.default(x, y), drawn(torch.bool, 4, 6), drawn(torch.bool, 6))


def promotion():
    types = {"b8": torch.bool, "i32": torch.int32, "i64": torch.int64, "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    names = list(types)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            case(f"add_{a}_{b}", lambda x, y: aten.add.Tensor(x, y), drawn(types[a], 4, 6), drawn(types[b], 4, 6))
    case("mul_rank0", lambda x: aten.mul.Tensor(x, 3.0), torch.tensor(2.0))
    case("mul_rank0_bf16", lambda x: aten.mul.Tensor(x, 0.1), torch.tensor(2.0, dtype=torch.bfloat16))
    case("add_bf16_rank0_f32", lambda x, y: aten.add.Tensor(x, y), drawn(torch.bfloat16, 4, 6), torch.tensor(1.5))
    case("add_i64_rank0_f32", lambda x, y: aten.add.Tensor(x, y), drawn(torch.int64, 4, 6), torch.tensor(1.5))
    case("add_rank0_i64_bf16", lambda x, y: aten.add.Tensor(x, y), torch.tensor(3), drawn(torch.bfloat16, 4, 6))
    case("gt_half_of_i64", lambda x: aten.gt.Scalar(x, 0.5), drawn(torch.int64, 4, 6))
    case("where_promotes", lambda m, x, y: aten.where.self(m, x, y), drawn(torch.bool, 4, 6), drawn(torch.bfloat16, 4, 6), drawn(torch.float32, 6))
    mask, third = drawn(torch.bool, 4, 6), torch.tensor(1 / 3, dtype=torch.float64)
    case("where_rank0_f64", lambda m, x, y: aten.where.self(m, x, y), mask, drawn(torch.int64, 4, 6), third)
    case("where_rank0_f64_first", lambda m, x, y: aten.where.self(m, y, x), mask, drawn(torch.int32, 4, 6), third)
    case("where_rank0_i8_number", lambda m, x: aten.where.ScalarOther(m, x, 2), mask, torch.tensor(-3, dtype=torch.int8))
    case("where_i64_rank0_i32", lambda m, x, y: aten.where.self(m, x, y), mask, drawn(torch.int32, 4, 6), torch.tensor(2**40))
    case("clamp_rank0_f64", lambda x, y: aten.clamp.Tensor(x, y), drawn(torch.int64, 4, 6), third)
    case("cat_promotes", lambda x, y: aten.cat.default([x, y], -1), drawn(torch.bfloat16, 4, 6), drawn(torch.float32, 4, 2))
    case("cat_i64_f32", lambda x, y: aten.cat.default([x, y]), drawn(torch.int64, 4, 6), drawn(torch.float32, 1, 6))
    case("add_i32_number", lambda x: aten.add.Tensor(x, 2), drawn(torch.int32, 4, 6))
    case("add_u8_wraps", lambda x: aten.add.Tensor(x, 250), torch.arange(12, dtype=torch.uint8))
    case("add_i8", lambda x: aten.add.Tensor(x, 3), drawn(torch.int8, 4, 6))
    case("f64", lambda x: aten.mul.Tensor(x, 3.0), drawn(torch.float64, 4, 6))


def reductions():
    each(NUMBERS, "sum_last", lambda x: aten.sum.dim_IntList(x, [-1], True), (4, 6))
    each(NUMBERS, "sum_two", lambda x: aten.sum.dim_IntList(x, [0, -1]), (4, 6, 5))
    each(NUMBERS, "sum_all", lambda x: aten.sum.default(x), (4, 6))
    each(NUMBERS, "amax", lambda x: aten.amax.default(x, [-1]), (4, 6))
    each(NUMBERS, "amin", lambda x: aten.amin.default(x, [0], True), (4, 6))
    each(FLOATS, "mean", lambda x: aten.mean.dim(x, [-1], True), (4, 6))
    each(FLOATS, "mean_all", lambda x: aten.mean.default(x), (4, 6))
    each(FLOATS, "mean_in_f32", lambda x: aten.mean.dim(x, [0], dtype=torch.float32), (4, 6))
    for short, dtype in {"b8": torch.bool, "i32": torch.int32, "i8": torch.int8}.items():
        case(f"sum_{short}", lambda x: aten.sum.dim_IntList(x, [-1]), drawn(dtype, 4, 6))
        case(f"sum_all_{short}", lambda x: aten.sum.default(x), drawn(dtype, 4, 6))
    case("sum_i64_in_f32", lambda x: aten.sum.dim_IntList(x, [0], dtype=torch.float32), drawn(torch.int64, 4, 6))
    case("mean_i64_in_f32", lambda x: aten.mean.dim(x, [0], dtype=torch.float32), drawn(torch.int64, 4, 6))
    large = torch.tensor([[6e4, 6e4], [-6e4, -6e4]], dtype=torch.float16)  # whose sums of rows no f16 holds
    case("sum_of_large_f16", lambda x: aten.sum.dim_IntList(x, [0, 1]), large)
    case("mse_loss_default", lambda x, y: aten.mse_loss.default(x, y), drawn(torch.float32, 4, 6), drawn(torch.float32, 4, 6))
    case("logsumexp_default", lambda x: aten.logsumexp.default(x, [1]), drawn(torch.float32, 4, 6))


def products():
    a, b, w = (4, 6), (6, 5), (5, 6)
    each(FLOATS, "mm", lambda x, y: aten.mm.default(x, y), a, b)
    each(FLOATS, "addmm", lambda c, x, y: aten.addmm.default(c, x, y), (5,), a, b)
    each(FLOATS, "addmm_matrix", lambda c, x, y: aten.addmm.default(c, x, y), (4, 5), a, b)
    each(FLOATS, "addmm_row", lambda c, x, y: aten.addmm.default(c, x, y), (1, 5), a, b)
    each(FLOATS, "addmm_scaled", lambda c, x, y: aten.addmm.default(c, x, y, beta=0.5, alpha=2), (5,), a, b)
    each(FLOATS, "addmm_beta", lambda c, x, y: aten.addmm.default(c, x, y, beta=2), (5,), a, b)
    each(FLOATS, "linear", lambda x, y, c: aten.linear.default(x, y, c), a, w, (5,))
    each(FLOATS, "linear_batch", lambda x, y, c: aten.linear.default(x, y, c), (2, 4, 6), w, (5,))
    each(FLOATS, "linear_batch_without_bias", lambda x, y: aten.linear.default(x, y), (2, 4, 6), w)
    case("mm_i64", lambda x, y: aten.mm.default(x, y), drawn(torch.int64, 4, 6), drawn(torch.int64, 6, 5))


def layout():
    f = lambda *shape: drawn(torch.float32, *shape)  # noqa: E731
    case("slice_from_end", lambda x: aten.slice.Tensor(x, -1, -3, 9223372036854775807), f(4, 6))
    case("slice_to_end", lambda x: aten.slice.Tensor(x, 1, 0, -1), f(4, 6))
    case("slice_step", lambda x: aten.slice.Tensor(x, 1, 1, 6, 2), f(4, 6))
    case("slice_nothing", lambda x: aten.slice.Tensor(x, 1, 4, 2), f(4, 6))
    for name, at in {"even": (0, 6, 2), "odd": (1, 6, 2), "third": (1, 5, 3), "last": (5, 6, 4), "all": (0, 9, 1), "wide": (1, 6, 4)}.items():
        count = len(range(6)[slice(*at)])
        case(f"slice_scatter_{name}", scatter_at(*at), f(4, 6), f(4, count))
    case("slice_scatter_rows", lambda x, y: aten.slice_scatter.default(x, y, 0, 1, 9223372036854775807, 2), f(4, 6), f(2, 6))
    case("select_scatter", lambda x, y: aten.select_scatter.default(x, y, 1, -2), f(4, 6), f(4))
    case("select", lambda x: aten.select.int(x, 1, -2), f(4, 6))
    case("split_rest", lambda x: tuple(aten.split.Tensor(x, 4, -1)), f(4, 6))
    case("split_one", lambda x: aten.split.Tensor(x, 4, -1)[1], f(4, 6))
    case("split_sizes", lambda x: tuple(aten.split_with_sizes.default(x, [1, 5], 1)), f(4, 6))
    case("unbind", lambda x: tuple(aten.unbind.int(x, -1)), f(4, 3))
    case("cat_rows", lambda x, y: aten.cat.default([x, y]), f(4, 6), f(2, 6))
    case("stack", lambda x, y: aten.stack.default([x, y], -1), f(4, 6), f(4, 6))
    case("expand", lambda x: aten.expand.default(x, [3, -1, 6]), f(4, 1))
    case("view", lambda x: aten.view.default(x, [2, -1]), f(4, 6))
    case("permute", lambda x: aten.permute.default(x, [2, 0, -1, 1]), f(2, 3, 4, 5))
    case("transpose", lambda x: aten.transpose.int(x, -1, -2), f(2, 3, 4))
    case("t", lambda x: aten.t.default(x), f(3, 4))
    case("squeeze", lambda x: aten.squeeze.dims(x, [0, 2]), f(1, 3, 1, 4))
    case("squeeze_nothing", lambda x: aten.squeeze.dim(x, 1), f(1, 3, 1))
    case("unsqueeze", lambda x: aten.unsqueeze.default(x, -1), f(3, 4))
    case("embedding", lambda w, i: aten.embedding.default(w, i), f(20, 6), torch.randint(0, 20, (3, 4)))
    case("full", lambda x: aten.add.Tensor(x, aten.full.default([4, 6], 3)), f(4, 6))
    case("full_alone", lambda x: (x, aten.full.default([2, 3], 3)), f(4, 6))
    case("full_b8", lambda x: (x, aten.full.default([2, 3], True)), f(4, 6))
    case("full_f32", lambda x: (x, aten.full.default([2, 3], 0.5)), f(4, 6))
    case("zeros", lambda x: (x, aten.zeros.default([2, 3])), f(4, 6))
    case("ones", lambda x: (x, aten.ones.default([2, 3], dtype=torch.int64)), f(4, 6))
    case("full_like", lambda x: aten.full_like.default(x, 5), drawn(torch.int64, 4, 6))
    case("ones_like", lambda x: aten.ones_like.default(x, dtype=torch.int32), f(4, 6))
    case("copy", lambda x, y: aten.copy.default(x, y), f(4, 6), drawn(torch.bfloat16, 6))
    case("masked_fill", lambda x, m: aten.masked_fill.Scalar(x, m, float("-inf")), f(4, 6), drawn(torch.bool, 4, 6))
    case("masked_fill_i64", lambda x, m: aten.masked_fill.Scalar(x, m, 7), drawn(torch.int64, 4, 6), drawn(torch.bool, 4, 6))
    case("same_output_twice", lambda x: (aten.neg.default(x),) * 2, f(4, 6))
    case("input_returned", lambda x: (x, aten.neg.default(x)), f(4, 6))
    case("empty_dim", lambda x: aten.mul.Tensor(x, 3.0), torch.zeros(0, 4))
    case("add_in_place", lambda x, y: aten.add_.Tensor(x.clone(), y), f(4, 6), f(4, 6))


def casts():
    to = lambda dtype: lambda x: aten._to_copy.default(x, dtype=dtype)  # noqa: E731
    case("to_i64", to(torch.int64), drawn(torch.float32, 4, 6) * 5)
    case("to_b8", to(torch.bool), torch.tensor([0.0, 0.5, -2.0, 0.0, float("nan")]))
    case("b8_to_f32", to(torch.float32), drawn(torch.bool, 4, 6))
    case("i64_to_i32_wraps", to(torch.int32), torch.tensor([2**33 + 5, -7, 2**31]))
    case("to_f16_overflows", to(torch.float16), torch.tensor([1e6, -1e6, 1e-8, 65504.0, 65520.0]))
    case("to_bf16_ties", to(torch.bfloat16), torch.tensor([1.00390625, 1.01171875, float("nan"), 3.4e38]))
    case("to_fp8", to(torch.float8_e4m3fn), drawn(torch.float32, 4, 6) * 5)
    case("prims_convert", lambda x: prims.convert_element_type.default(x, torch.float32), drawn(torch.bfloat16, 4, 6))


def edge_values():
    for op in ("relu", "exp", "sqrt", "sigmoid", "tanh", "silu", "gelu", "abs", "neg", "rsqrt", "log"):
        case(f"edges_{op}", of_one(op), edges())
    case("edges_maximum", lambda x, y: aten.maximum.default(x, y), edges(), torch.zeros(8))
    case("edges_amax", lambda x: aten.amax.default(x, [0]), edges())
    case("edges_clamp", lambda x: aten.clamp.default(x, -1.0, 2.0), edges())
    case("edges_clamp_low", lambda x: aten.clamp.default(x, -1.0), edges())
    case("edges_eq", lambda x: aten.eq.Tensor(x, x), edges())
    case("sin_of_much", lambda x: aten.sin.default(x), torch.tensor([1e4, 1e6, -3.0, 0.1]))


def outside():
    """Types that Piecewise lacks: such a case is refused."""
    case("i16", lambda x: aten.add.Tensor(x, 3), drawn(torch.int16, 4, 6))
    case("complex", lambda x: aten.mul.Tensor(x, 3.0), torch.randn(4, dtype=torch.complex64))


def all_cases():
    torch.manual_seed(5)
    for add in (arithmetic, promotion, reductions, products, layout, casts, edge_values, outside):
        add()
    indexing.add_cases(case)
    dumped_ops.add_cases(lambda name, *rest: case(f"dumped_{name}", *rest))
    training.add_cases(case, each, drawn, edges, FLOATS)
    return CASES


def dumped(function, inputs):
    """Returns the text, the inputs by name, and the outputs in order with their names."""
    module = make_fx(lambda *given: function(*given), tracing_mode="fake")(*[x.clone() for x in inputs])
    results = module(*[x.clone() for x in inputs])
    names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    output = next(n for n in module.graph.nodes if n.op == "output")
    leaves = torch.utils._pytree.tree_leaves
    expected = {n.name: r for n, r in zip(leaves(output.args[0]), leaves(results))}
    return module.print_readable(print_output=False), dict(zip(names, inputs)), expected
