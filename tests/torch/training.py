"""Batched products, attention, convolutions, norms, pools and their backward ops, one a case."""
import torch

aten = torch.ops.aten


def at(op, *more):
    """The op of these arguments behind those of a case."""
    return lambda *x: op(*x, *more)


def add_cases(case, each, drawn, edges, floats):
    f = lambda *shape: drawn(torch.float32, *shape)  # noqa: E731
    for add in (products, attention, convolutions, windows, norms, activations, losses):
        add(case, each, drawn, edges, floats, f)


def products(case, each, drawn, edges, floats, f):
    each(floats, "bmm", lambda x, y: aten.bmm.default(x, y), (3, 4, 6), (3, 6, 5))
    case("bmm_f64", lambda x, y: aten.bmm.default(x, y), f(3, 4, 6).double(), f(3, 6, 5).double())
    case("bmm_many", lambda x, y: aten.bmm.default(x, y), f(12, 20, 33), f(12, 33, 17))
    case("bmm_turned", lambda x, y: aten.bmm.default(x, aten.transpose.int(y, 1, 2)), f(3, 4, 6), f(3, 5, 6))
    case("bmm_empty", lambda x, y: aten.bmm.default(x, y), f(0, 4, 6), f(0, 6, 5))
    case("bmm_of_nothing", lambda x, y: aten.bmm.default(x, y), f(2, 4, 0), f(2, 0, 5))
    each(floats, "baddbmm", lambda c, x, y: aten.baddbmm.default(c, x, y, beta=0.5, alpha=2), (4, 5), (3, 4, 6), (3, 6, 5))
    nothing = torch.full((3, 4, 5), float("nan"))
    case("baddbmm_beta_0", lambda c, x, y: aten.baddbmm.default(c, x, y, beta=0, alpha=2), nothing, f(3, 4, 6), f(3, 6, 5))
    case("addmm_beta_0", lambda c, x, y: aten.addmm.default(c, x, y, beta=0), torch.full((5,), float("nan")), f(4, 6), f(6, 5))
    each(floats, "mv", lambda x, y: aten.mv.default(x, y), (4, 6), (6,))
    each(floats, "dot", lambda x, y: aten.dot.default(x, y), (6,), (6,))
    for p in (1.0, 2.0, float("inf")):
        case(f"cdist_{p}", at(aten._cdist_forward.default, p, None), f(2, 5, 3), f(2, 4, 3))

    for n in (2, 3, 17):
        case(f"pdist_{n}", at(aten._pdist_forward.default, 2.0), f(n, 3))
    ends = torch.tensor([2, 2, 7], dtype=torch.int32)
    case("grouped_mm", lambda x, w, e: aten._grouped_mm.default(x, w, e), f(7, 16), f(3, 16, 8), ends)
    case("grouped_mm_bf16", lambda x, w, e: aten._grouped_mm.default(x, w, e), f(7, 16).bfloat16(), f(3, 16, 8).bfloat16(), ends)


def attention(case, each, drawn, edges, floats, f):
    flash = aten._scaled_dot_product_flash_attention_for_cpu.default
    plane, keys = (2, 4, 7, 8), (2, 4, 9, 8)
    each(floats, "attention", lambda q, k, v: flash(q, k, v), plane, keys, keys)
    each(floats, "attention_causal", lambda q, k, v: flash(q, k, v, is_causal=True), plane, keys, keys)
    each(floats, "attention_shared", lambda q, k, v: flash(q, k, v), plane, (2, 2, 9, 8), (2, 2, 9, 8))
    case("attention_f64", lambda q, k, v: flash(q, k, v), *(f(*s).double() for s in (plane, keys, keys)))
    case("attention_scale", lambda q, k, v: flash(q, k, v, scale=0.5), f(*plane), f(*keys), f(*keys))
    seen = torch.rand(7, 9) > 0.4
    seen[2] = False
    mask = torch.zeros(7, 9).masked_fill(~seen, float("-inf"))
    case("attention_mask", lambda q, k, v, m: flash(q, k, v, attn_mask=m), f(*plane), f(*keys), f(*keys), mask)
    case("attention_bias", lambda q, k, v, m: flash(q, k, v, attn_mask=m), f(*plane), f(*keys), f(*keys), f(2, 1, 1, 9))
    long = (1, 2, 300, 8)
    case("attention_long", lambda q, k, v: flash(q, k, v, is_causal=True), f(*long), f(1, 2, 600, 8), f(1, 2, 600, 8))

    def gradients(causal, mask):
        def function(g, q, k, v, *m):
            y, lse = flash(q, k, v, is_causal=causal, attn_mask=m[0] if m else None)
            backward = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
            return backward(g, q, k, v, y, lse, 0.0, causal, attn_mask=m[0] if m else None)

        return function

    case("attention_gradient", gradients(False, None), f(*plane), f(*plane), f(*keys), f(*keys))
    case("attention_gradient_causal", gradients(True, None), f(*long), f(*long), f(*long), f(*long))
    case("attention_gradient_mask", gradients(False, mask), f(*plane), f(*plane), f(*keys), f(*keys), mask)
    each(floats, "attention_gradient_each", gradients(False, None), plane, plane, keys, keys)


def convolution(stride, padding, dilation, groups=1, transposed=False, more=None):
    more = more or [0] * len(stride)
    return lambda x, w, *b: aten.convolution.default(x, w, b[0] if b else None, stride, padding, dilation, transposed, more, groups)


def convolution_backward(stride, padding, dilation, groups=1, transposed=False, more=None):
    more = more or [0] * len(stride)
    forward = convolution(stride, padding, dilation, groups, transposed, more)

    def function(x, w):
        y = forward(x, w)
        outputs = y.shape[1]
        mask = [True, True, True]
        return aten.convolution_backward.default(aten.mul.Tensor(y, 0.01), x, w, [outputs], stride, padding, dilation, transposed, more, groups, mask)

    return function


FORMS = {
    "plain": ((2, 4, 9, 8), (6, 4, 3, 3), ([1, 1], [1, 1], [1, 1])),
    "stride": ((2, 4, 9, 8), (6, 4, 3, 3), ([2, 2], [1, 0], [1, 1])),
    "dilated": ((2, 4, 9, 11), (6, 4, 3, 3), ([1, 2], [2, 1], [2, 3])),
    "groups": ((2, 4, 9, 8), (6, 2, 3, 2), ([1, 1], [1, 1], [1, 1], 2)),
    "depthwise": ((2, 4, 9, 8), (8, 1, 3, 3), ([2, 1], [1, 1], [1, 1], 4)),
    "pointwise": ((2, 4, 9, 8), (6, 4, 1, 1), ([1, 1], [0, 0], [1, 1])),
    "one": ((2, 4, 19), (6, 4, 5), ([3], [2], [1])),
    "three": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), ([1, 2, 1], [0, 1, 1], [1, 1, 2])),
    "blocks": ((1, 40, 30, 30), (5, 40, 3, 3), ([1, 1], [1, 1], [1, 1])),
}
TRANSPOSED = {
    "plain": ((2, 4, 5, 6), (4, 3, 3, 3), ([2, 2], [1, 1], [1, 1], 1, True, [1, 0])),
    "groups": ((2, 4, 5, 6), (4, 3, 3, 2), ([1, 2], [1, 0], [2, 1], 2, True, [0, 1])),
    "one": ((2, 4, 9), (4, 3, 4), ([2], [1], [1], 1, True, [0])),
    "three": ((1, 2, 3, 4, 5), (2, 3, 2, 3, 3), ([1, 2, 1], [0, 1, 1], [1, 1, 1], 1, True, [0, 1, 0])),
}


def convolutions(case, each, drawn, edges, floats, f):
    for name, (x, w, form) in FORMS.items():
        each(floats, f"convolution_{name}", convolution(*form), x, (w, lambda v: v / 4), (w[0],))
        case(f"convolution_{name}_backward", convolution_backward(*form), f(*x), f(*w))
    for name, (x, w, form) in TRANSPOSED.items():
        outputs = w[1] * form[3]
        each(floats, f"transposed_{name}", convolution(*form), x, (w, lambda v: v / 4), (outputs,))
        case(f"transposed_{name}_backward", convolution_backward(*form), f(*x), f(*w))
    plain = convolution([1, 1], [1, 1], [1, 1])
    case("convolution_f64", plain, f(1, 2, 4, 4).double(), f(3, 2, 3, 3).double())
    case("convolution_without_bias", plain, f(1, 2, 4, 4), f(3, 2, 3, 3))
    case("convolution_of_none", plain, f(0, 2, 4, 4), f(3, 2, 3, 3))


def spread(form):
    return lambda v: aten.avg_pool2d_backward.default(aten.mul.Tensor(aten.avg_pool2d.default(v, *form), 0.5), v, *form)


def spread_adaptive(size):
    return lambda v: aten._adaptive_avg_pool2d_backward.default(aten._adaptive_avg_pool2d.default(v, size), v)


def windows(case, each, drawn, edges, floats, f):
    pool = aten.max_pool2d_with_indices.default
    x = (2, 3, 9, 10)
    each(floats, "max_pool", lambda v: pool(v, [3, 2], [2, 2], [1, 1]), x)
    case("max_pool_stride", lambda v: pool(v, [3, 3]), f(*x))
    case("max_pool_dilated", lambda v: pool(v, [3, 3], [1, 2], [1, 0], [2, 1]), f(*x))
    case("max_pool_ceil", lambda v: pool(v, [3, 3], [2, 2], [0, 1], [1, 1], True), f(*x))
    case("max_pool_image", lambda v: pool(v, [3, 3], [2, 2]), f(3, 9, 10))
    case("max_pool_edges", lambda v: pool(v, [1, 3], [1, 1], [0, 1]), edges().reshape(1, 1, 2, 4))
    case("max_pool_f64", lambda v: pool(v, [3, 3]), f(*x).double())
    case("max_pool3d", lambda v: aten.max_pool3d_with_indices.default(v, [2, 3, 2], [1, 2, 2], [1, 1, 1]), f(2, 3, 5, 6, 7))

    def unpooled(v):
        y, i = pool(v, [3, 3], [2, 2], [1, 1])
        return aten.max_pool2d_with_indices_backward.default(aten.mul.Tensor(y, 0.5), v, [3, 3], [2, 2], [1, 1], [1, 1], False, i)

    each(floats, "max_pool_backward", unpooled, x)
    average = aten.avg_pool2d.default
    forms = {
        "plain": ([3, 2], [2, 2], [1, 1]),
        "stride": ([3, 3], []),
        "ceil": ([3, 3], [2, 2], [1, 1], True),
        "inside": ([3, 3], [2, 2], [1, 1], True, False),
        "divisor": ([3, 3], [1, 2], [1, 0], False, True, 5),
    }
    for name, form in forms.items():
        each(floats, f"avg_pool_{name}", at(average, *form), x)
        full = tuple(form) + ([0, 0], False, True, None)[len(form) - 2 :]
        case(f"avg_pool_{name}_backward", spread(full), f(*x))
    case("avg_pool3d", lambda v: aten.avg_pool3d.default(v, [2, 3, 2], [1, 2, 2], [1, 1, 1]), f(2, 3, 5, 6, 7))
    for size in ([1, 1], [3, 4], [9, 10], [12, 5]):
        name = "x".join(map(str, size))
        each(floats, f"adaptive_{name}", at(aten._adaptive_avg_pool2d.default, size), x)
        case(f"adaptive_{name}_backward", spread_adaptive(size), f(*x))
    case("adaptive3d", lambda v: aten._adaptive_avg_pool3d.default(v, [2, 3, 4]), f(2, 3, 5, 6, 7))
    nearest, linear = aten.upsample_nearest2d.vec, aten.upsample_bilinear2d.vec
    each(floats, "nearest_size", lambda v: nearest(v, [13, 7], None), x)
    each(floats, "nearest_scale", lambda v: nearest(v, None, [2.0, 1.5]), x)
    for align in (False, True):
        each(floats, f"bilinear_size_{align}", at(linear, [13, 7], align, None), x)
        each(floats, f"bilinear_scale_{align}", at(linear, None, align, [2.0, 1.7]), x)
    case("bilinear_one", lambda v: linear(v, [1, 1], True, None), f(*x))
    case("bilinear_f64", lambda v: linear(v, [20, 31], False, None), f(*x).double())


def norms(case, each, drawn, edges, floats, f):
    x, c = (3, 4, 5, 6), (4,)
    frozen = aten._native_batch_norm_legit_no_training.default
    each(floats, "batch_norm", lambda v, w, b, m, r: frozen(v, w, b, m, r, 0.1, 1e-5)[0], x, c, c, c, (c, lambda v: v.abs() + 0.5))
    case("batch_norm_bare", lambda v, m, r: frozen(v, None, None, m, r, 0.1, 1e-5)[0], f(*x), f(*c), f(*c).abs() + 0.5)
    case("batch_norm_rows", lambda v, w, b, m, r: frozen(v, w, b, m, r, 0.1, 1e-5)[0], f(7, 4), f(*c), f(*c), f(*c), f(*c).abs() + 0.5)
    moving = aten._native_batch_norm_legit_functional.default
    case("batch_norm_training", lambda v, w, b, m, r: moving(v, w, b, m, r, True, 0.1, 1e-5), f(*x), f(*c), f(*c), f(*c), f(*c).abs() + 0.5)
    case("batch_norm_no_stats", lambda v, w, b: aten._native_batch_norm_legit.no_stats(v, w, b, True, 0.1, 1e-5), f(*x), f(*c), f(*c))
    back = aten.native_batch_norm_backward.default

    def trained(g, v, w):
        y, m, r = aten._native_batch_norm_legit.no_stats(v, w, w, True, 0.1, 1e-5)
        return back(g, v, w, None, None, m, r, True, 1e-5, [True, True, True])

    case("batch_norm_backward", trained, f(*x), f(*x), f(*c))
    everything = [True, True, True]
    case(
        "batch_norm_backward_frozen",
        lambda g, v, w, m, r: back(g, v, w, m, r, m, r, False, 1e-5, everything),
        f(*x),
        f(*x),
        f(*c),
        f(*c),
        f(*c).abs() + 0.5,
    )

    def layer(g, v, w):
        y, m, r = aten.native_layer_norm.default(v, [6], w, w, 1e-5)
        return (y, m, r, *aten.native_layer_norm_backward.default(g, v, [6], m, r, w, w, everything))

    # Sums of bf16 and f16 are those of f32 here, and PyTorch's are coarser: there the input's gradient alone is compared.
    case("layer_norm_backward", layer, f(*x), f(*x), f(6))
    each(floats, "layer_norm_backward_of", lambda g, v, w: layer(g, v, w)[:4], x, x, (6,))

    for axes in (2, 3):
        shape = x[-axes:]
        case(f"layer_norm_of_{axes}", lambda v, w: aten.native_layer_norm.default(v, list(w.shape), w, w, 1e-5), f(*x), f(*shape))

    def plain_layer(g, v):
        y, m, r = aten.native_layer_norm.default(v, [6], None, None, 1e-5)
        return aten.native_layer_norm_backward.default(g, v, [6], m, r, None, None, [True, False, False])[0]

    case("layer_norm_backward_bare", plain_layer, f(*x), f(*x))

    def group(g, v, w):
        y, m, r = aten.native_group_norm.default(v, w, w, 3, 4, 30, 2, 1e-5)
        return (y, *aten.native_group_norm_backward.default(g, v, m, r, w, 3, 4, 30, 2, everything))

    each(floats, "group_norm_backward", group, x, x, c)
    each(floats, "group_norm", lambda v, w: aten.native_group_norm.default(v, w, w, 3, 4, 30, 2, 1e-5), x, c)
    each(floats, "group_norm_bare", lambda v: aten.native_group_norm.default(v, None, None, 3, 4, 30, 2, 1e-5), x)


def activations(case, each, drawn, edges, floats, f):
    both = (4, 6), ((4, 6), lambda v: v * 3)
    forms = {
        "threshold": lambda g, v: aten.threshold_backward.default(g, v, 0),
        "hardtanh": lambda g, v: aten.hardtanh_backward.default(g, v, -1.0, 1.0),
        "leaky_relu": lambda g, v: aten.leaky_relu_backward.default(g, v, 0.1, False),
        "sigmoid": lambda g, v: aten.sigmoid_backward.default(g, v),
        "tanh": lambda g, v: aten.tanh_backward.default(g, v),
        "silu": lambda g, v: aten.silu_backward.default(g, v),
        "gelu": lambda g, v: aten.gelu_backward.default(g, v),
        "gelu_tanh": lambda g, v: aten.gelu_backward.default(g, v, approximate="tanh"),
        "elu": lambda g, v: aten.elu_backward.default(g, 1.5, 1.25, 0.5, False, v),
        "elu_result": lambda g, v: aten.elu_backward.default(g, 1.5, 1.25, 0.5, True, v),
        "hardsigmoid": lambda g, v: aten.hardsigmoid_backward.default(g, v),
        "hardswish": lambda g, v: aten.hardswish_backward.default(g, v),
        "softplus": lambda g, v: aten.softplus_backward.default(g, v, 1.5, 20),
        "log_sigmoid": lambda g, v: aten.log_sigmoid_backward.default(g, v, aten.exp.default(aten.neg.default(aten.abs.default(v)))),
        "mish": lambda g, v: aten.mish_backward.default(g, v),
    }
    turning = torch.tensor([-3.0, 3.0, -1.0, 1.0, 0.0, -0.0, float("nan"), 2.0])
    for name, function in forms.items():
        each(floats, f"{name}_backward", function, *both)
        case(f"{name}_backward_edges", function, torch.linspace(1, 2, 8), turning)
    case("dropout_backward", lambda g, m: aten.native_dropout_backward.default(g, m, 1.25), f(4, 6), drawn(torch.bool, 4, 6))


def nll_backward(reduction):
    return lambda g, v, t, total, *w: aten.nll_loss_backward.default(g, v, t, w[0] if w else None, reduction, -100, total)


def losses(case, each, drawn, edges, floats, f):
    for short, dtype in (floats | {"f64": torch.float64}).items():
        x, g = f(4, 6).to(dtype), f(4, 6).to(dtype)
        for name in ("softmax", "log_softmax"):
            forward, back = getattr(aten, f"_{name}").default, getattr(aten, f"_{name}_backward_data").default
            case(f"{name}_{short}", at(forward, -1, False), x)
            case(f"{name}_backward_{short}", at(back, 0, dtype), g, forward(x, 0, False))
    for reduction in (0, 2):
        case(f"mse_backward_{reduction}", at(aten.mse_loss_backward.default, reduction), f(4, 6), f(4, 6), f(4, 6))
    target = torch.tensor([2, -100, 0, 4, 5])
    rows, weight = f(5, 6), torch.rand(6)
    for reduction in (0, 1, 2):
        total = aten.nll_loss_forward.default(rows, target, None, reduction, -100)[1]
        gradient = f(5) if reduction == 0 else torch.tensor(0.5)
        case(f"nll_{reduction}", at(aten.nll_loss_forward.default, None, reduction, -100), rows, target)
        case(f"nll_backward_{reduction}", nll_backward(reduction), gradient, rows, target, total)
    case("nll_weighted", lambda v, t, w: aten.nll_loss_forward.default(v, t, w, 1, -100), rows, target, weight)
    total = aten.nll_loss_forward.default(rows, target, weight, 1, -100)[1]
    case("nll_weighted_backward", nll_backward(1), torch.tensor(0.5), rows, target, total, weight)
    ignored = torch.where(torch.arange(6) == 0, -torch.inf, rows)  # class 0 takes the place of an ignored one
    case("nll_weighted_ignored", lambda v, t, w: aten.nll_loss_forward.default(v, t, w, 1, -100), ignored, torch.tensor([2, -100, 3, 4, 5]), weight)
    case("nll_weighted_backward_of_none", nll_backward(1), torch.tensor(0.5), rows, torch.full((5,), -100), torch.tensor(0.0), weight)
