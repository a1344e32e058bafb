#!/usr/bin/env python3
"""Measures each core overload of PyTorch as a compiled function of one call, with eager PyTorch as the baseline, and prints a table.

    ops.py [--only TEXT] [--least RATIO] [--sizes small,medium,large] [--dtype float32] [--seconds S] [--output FILE]

A row has one overload with one form of its arguments. A ratio is the CPU time of the compiled call over that of eager's call: medians of calls in turns, on
one thread. `extra` is the largest difference of a small call in microseconds, which is mostly the fixed cost of a compiled call. A ratio above 2 has a reason;
exit code 1 if one has none, or if an overload fails, which is listed with its error.
"""
import argparse
import collections
import datetime
import math
import pathlib
import sys
import time
import warnings

warnings.filterwarnings("ignore")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "torch"))
import torch  # noqa: E402
from pages import processor, with_part  # noqa: E402
from core_ops import NAMED, core_overloads  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils._pytree import tree_flatten, tree_unflatten  # noqa: E402

import piecewise.pytorch  # noqa: E402, F401

SIZES = {"small": 1 << 10, "medium": 1 << 16, "large": 1 << 22}
IMAGES = {1 << 10: (1, 4, 16, 16), 1 << 16: (4, 16, 32, 32), 1 << 22: (8, 32, 128, 128)}
DEPTH = (2, 2, 2)
UNARY = (
    "abs acos acosh alias asin asinh atan atanh ceil clone cos cosh elu erf exp expm1 floor gelu hardtanh isinf isnan leaky_relu log log10 log1p log2 "
    "logical_not neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
BINARY = "add atan2 div eq fmod ge gt le logical_and logical_or logical_xor lt maximum minimum mul ne pow remainder sub"
COMPARED = "add div eq fmod ge gt le lt mul ne pow remainder sub"


PAGE = """# Core overloads of PyTorch

The CPU time of a compiled call over that of eager PyTorch's call, by `bench/torch/ops.py`. Below 1 Piecewise is faster.

"""
MOST = 2  # times eager's CPU time
REASONS = {}  # by the start of a row's name


class Samples:
    """Arguments of each overload with about n elements; `forms` maps a name to (the callable, its arguments)."""

    def __init__(self, n, dtype, core):
        self.n, self.dtype, self.core, self.forms = n, dtype, core, {}
        self.side = math.isqrt(n)
        self.x, self.y = (self.real(self.side, self.side) for _ in range(2))
        self.image, self.volume = self.real(*IMAGES[n]), self.real(*IMAGES[n][:2], IMAGES[n][2], 4, IMAGES[n][3] // 4)
        self.places = torch.randint(self.side, (self.side, self.side))
        for family in (
            self.pointwise,
            self.integers,
            self.reductions,
            self.products,
            self.windows,
            self.norms,
            self.indexing,
            self.layouts,
            self.functions,
        ):
            family()

    def real(self, *shape):
        return (torch.rand(*shape) + 0.25).to(self.dtype)

    def add(self, name, *args, form="", **kwargs):
        packet, _, overload = name.partition(".")
        op = f"aten.{packet}.{overload or 'default'}"
        if op in self.core:
            self.forms[op + form] = (self.core[op], args, kwargs)

    def pointwise(self):
        for name in UNARY.split():
            self.add(name, self.x)
        for name in BINARY.split():
            for overload in (name, f"{name}.Tensor", f"{name}.Tensor_Tensor"):
                self.add(overload, self.x, self.y)
            self.add(f"{name}.Tensor", self.x, self.y[0], form=" (a row)")
        for name in COMPARED.split():
            self.add(f"{name}.Scalar", *((2.0, self.x) if name == "pow" else (self.x, 0.75)))
        self.add("pow.Tensor_Scalar", self.x, 2.5)
        for mode in ("floor", "trunc"):
            self.add("div.Tensor_mode", self.x, self.y, form=f" ({mode})", rounding_mode=mode)
            self.add("div.Scalar_mode", self.x, 0.3, form=f" ({mode})", rounding_mode=mode)
        self.add("clamp", self.x, 0.5, 1.0)
        self.add("clamp.Tensor", self.x, self.y, self.y + 0.5)
        self.add("where.self", self.x > 0.75, self.x, self.y)
        for name in ("fill.Scalar", "full_like"):
            self.add(name, self.x, 0.5)
        self.add("copy", self.x, self.y)
        for to in (torch.float64, torch.bfloat16, torch.int32):
            self.add("_to_copy", self.x, form=f" ({str(to)[6:]})", dtype=to)
        self.add("native_dropout", self.x, 0.5, True)

    def integers(self):
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            self.add(f"{name}.Tensor", self.places, self.places.t().contiguous())
            self.add(f"{name}.Scalar", self.places, 5)
        self.add("bitwise_not", self.places)
        self.add("nonzero", self.x > 1.0)
        shape, more = (self.side, self.side), {"dtype": self.dtype}
        for name in ("rand", "randn", "empty.memory_format"):
            self.add(name, shape, **more)
        self.add("full", shape, 0.5, **more)
        self.add("empty_strided", shape, (self.side, 1), **more)
        self.add("arange.start_step", 0, self.n, 1)
        self.add("randperm", self.n)
        self.add("scalar_tensor", 0.5, **more)

    def reductions(self):
        cube = self.x.reshape(self.side // 16, 16, self.side)
        for form, x, dim in ((" (rows)", self.x, 1), (" (columns)", self.x, 0), (" (middle)", cube, 1)):
            for name in ("amax", "amin", "mean.dim", "sum.dim_IntList", "var.correction", "var.dim"):
                self.add(name, x, [dim], form=form)
            for name in ("argmax", "argmin", "cumsum", "max.dim", "min.dim", "prod.dim_int", "sort"):
                self.add(name, x, dim, form=form)
            self.add("any.dim", x > 1.3, dim, form=form)
            self.add("any.dims", x > 1.3, [dim], form=form)
            self.add("topk", x, 5, dim, form=form)
            for name in ("_softmax", "_log_softmax"):
                self.add(name, x, dim, False, form=form)
        for name in ("mean", "prod"):
            self.add(name, self.x)
        self.add("any", self.x > 2.0)
        self.add("sum.dim_IntList", self.x, [0, 1], form=" (all)")

    def products(self):
        side = min(self.side, 1024)
        a, b = self.real(side, side), self.real(side, side)
        self.add("mm", a, b)
        self.add("mm", a, b.t(), form=" (transposed)")
        self.add("addmm", b[0], a, b)
        batch = self.real(16, self.side // 8, self.side // 4)
        self.add("bmm", batch, batch.transpose(1, 2))
        points = self.real(side, 16)
        self.add("_cdist_forward", points, points + 0.5, 2.0, None)
        self.add("_pdist_forward", points, 2.0)
        channels = IMAGES[self.n][1]
        kernel = (self.image, self.real(channels, channels, 3, 3))
        geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        self.add("convolution", *kernel, self.real(channels), *geometry)
        self.add("convolution_backward", self.image, *kernel, [channels], *geometry, [True] * 3)

    def windows(self):
        image, volume, line, size = self.image, self.volume, self.image[0], self.image.shape[2]
        self.add("avg_pool1d", line, [2], [2])
        self.add("adaptive_avg_pool1d", line, [7])
        self.add("avg_pool2d", image, [3, 3], [2, 2], [1, 1])
        self.add("avg_pool3d", volume, DEPTH, DEPTH)
        for places in (1, 7):
            self.add("_adaptive_avg_pool2d", image, [places, places], form=f" ({places})")
            self.add("_adaptive_avg_pool2d_backward", self.real(*image.shape[:2], places, places), image, form=f" ({places})")
        self.add("_adaptive_avg_pool3d", volume, [3, 3, 3])
        self.add("avg_pool2d_backward", self.real(*image.shape[:2], size // 2, size // 2), image, [2, 2], [2, 2], [0, 0], False, True, None)
        pooled = ([3, 3], [2, 2], [1, 1], [1, 1], False)
        self.add("max_pool2d_with_indices", image, *pooled)
        most, index = torch.ops.aten.max_pool2d_with_indices(image, *pooled)
        self.add("max_pool2d_with_indices_backward", most, image, *pooled, index)
        self.add("max_pool3d_with_indices", volume, DEPTH, DEPTH)
        self.add("upsample_bilinear2d.vec", image, [size + size // 2] * 2, False, None)
        self.add("upsample_nearest2d.vec", image, [size * 2] * 2, None)
        self.add("grid_sampler_2d", image, self.real(image.shape[0], size, size, 2) - 0.75, 0, 0, False)
        self.add("col2im", self.real(image.shape[0], image.shape[1] * 4, (size // 2) ** 2), [size, size], [2, 2], [1, 1], [0, 0], [2, 2])
        for name in ("constant_pad_nd", "reflection_pad2d", "replication_pad2d"):
            self.add(name, image, [1, 2, 2, 1])
        self.add("reflection_pad1d", line, [3, 2])
        for name in ("reflection_pad3d", "replication_pad3d"):
            self.add(name, volume, [1, 1, 1, 1, 1, 1])

    def norms(self):
        row, (batch, channels, *_) = self.x[0], self.image.shape
        one, zero = torch.ones(channels, dtype=self.dtype), torch.zeros(channels, dtype=self.dtype)
        self.add("native_layer_norm", self.x, [self.side], row, row, 1e-5)
        mean, scale = self.x.mean(1, True), self.x.var(1, keepdim=True).rsqrt()
        self.add("native_layer_norm_backward", self.y, self.x, [self.side], mean, scale, row, row, [True] * 3)
        group = (batch, channels, self.image[0, 0].numel(), 2)
        self.add("native_group_norm", self.image, one, zero, *group, 1e-5)
        moments = (self.real(batch, 2), self.real(batch, 2))
        self.add("native_group_norm_backward", self.image, self.image, *moments, one, *group, [True] * 3)
        self.add("_native_batch_norm_legit.no_stats", self.image, one, zero, True, 0.1, 1e-5)
        self.add("_native_batch_norm_legit_no_training", self.image, one, zero, zero, one, 0.1, 1e-5)

    def indexing(self):
        row = self.places[0]
        self.add("embedding", self.x, row)
        self.add("embedding_dense_backward", self.x, row, self.side, -1, False)
        self.add("_embedding_bag", self.x, row, torch.arange(0, self.side, 4))
        self.add("index.Tensor", self.x, [row])
        self.add("index.Tensor", self.x, [self.places, row], form=" (elements)")
        self.add("index_put", self.x, [row], self.y)
        self.add("index_put", self.x, [row], self.y, True, form=" (sum)")
        self.add("index_put", self.x, [self.places, row], self.y, True, form=" (sum of elements)")
        for dim in (0, 1):
            form = f" ({dim})"
            self.add("index_select", self.x, dim, row, form=form)
            self.add("gather", self.x, dim, self.places, form=form)
            self.add("scatter.src", self.x, dim, self.places, self.y, form=form)
            self.add("scatter.value", self.x, dim, self.places, 0.5, form=form)
            self.add("scatter_add", self.x, dim, self.places, self.y, form=form)
            self.add("scatter_reduce.two", self.x, dim, self.places, self.y, "amax", form=form)
            self.add("slice_scatter", self.x, self.y.narrow(dim, 0, self.side // 2), dim, 0, self.side // 2, form=form)
            self.add("select_scatter", self.x, self.y.select(dim, 0), dim, 3, form=form)
        self.add("masked_scatter", self.x, self.x > 0.75, self.y)

    def layouts(self):
        half = self.side // 2
        for dim in (0, 1):
            self.add("cat", [self.x, self.y], dim, form=f" ({dim})")
            self.add("flip", self.x, [dim], form=f" ({dim})")
        self.add("repeat", self.x, [2, 2])
        self.add("as_strided", self.x, (half, half), (self.side, 2))
        self.add("diagonal", self.x)
        self.add("expand", self.x[:1], (self.side, self.side))
        self.add("permute", self.x, [1, 0])
        self.add("select.int", self.x, 0, 1)
        self.add("slice.Tensor", self.x, 0, 1, half)
        self.add("split_with_sizes", self.x, [half, half])
        self.add("squeeze.dim", self.x[None], 0)
        self.add("squeeze.dims", self.x[None], [0])
        self.add("unsqueeze", self.x, 0)
        self.add("view", self.x, [self.n])

    def functions(self):
        """Adds functions that programs call and that are not core overloads."""
        row, heads = self.places[0], self.real(1, 8, max(self.side // 4, 8), 64)
        attention = F.scaled_dot_product_attention
        self.forms |= {
            "einsum bij,bjk": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), [self.real(8, self.side // 4, self.side // 4)] * 2, {}),
            "einsum bqhd,bkhd": (lambda a, b: torch.einsum("bqhd,bkhd->bhqk", a, b), [self.real(4, max(self.side // 16, 4), 8, 64)] * 2, {}),
            "einsum ij,kj": (lambda a, b: torch.einsum("ij,kj->ik", a, b), [self.x[:512, :512]] * 2, {}),
            "index_add (0)": (torch.index_add, (self.x, 0, row, self.y), {}),
            "index_add (1)": (torch.index_add, (self.x, 1, row, self.y), {}),
            "scaled_dot_product_attention": (attention, (heads,) * 3, {}),
            "scaled_dot_product_attention (causal)": (attention, (heads,) * 3, {"is_causal": True}),
            "linear": (F.linear, (self.x[:128], self.y[:1024], self.x[0, :1024]), {}),
            "add (a transpose)": (lambda x, y: x.t() + y, (self.x, self.y), {}),
            "softmax (a transpose)": (lambda x: torch.softmax(x.t() * 0.5, 1), (self.x,), {}),
            "add (channels last)": (lambda x, y: x + y.permute(0, 3, 1, 2), (self.image, self.image.permute(0, 2, 3, 1).contiguous()), {}),
            "layer_norm (columns)": (lambda x: F.layer_norm(x.t(), (x.shape[0],)), (self.x,), {}),
        }


def function_of(call):
    """Returns the call as a function of its tensors, and these tensors."""
    op, args, kwargs = call
    leaves, spec = tree_flatten((tuple(args), kwargs))
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors):
        given = list(leaves)
        for i, tensor in zip(at, tensors):
            given[i] = tensor
        args, kwargs = tree_unflatten(given, spec)
        return op(*args, **kwargs)

    return function, [leaves[i] for i in at]


def seconds_of(function, tensors, times):
    start = time.process_time()
    for _ in range(times):
        function(*tensors)
    return (time.process_time() - start) / times


def measured(call, seconds):
    """Returns the medians of eager's call and of the compiled call, in seconds."""
    eager, tensors = function_of(call)
    torch._dynamo.reset()
    compiled = torch.compile(eager, backend="piecewise", dynamic=False, fullgraph=True)
    with torch.no_grad():
        for function in (compiled, eager):
            function(*tensors)
        slower = max(seconds_of(function, tensors, 1) for function in (compiled, eager))
        times = max(1, int(0.0005 / slower))
        taken, end = ([], []), time.perf_counter() + seconds
        while time.perf_counter() < end or len(taken[0]) < 5:
            for function, kept in zip((eager, compiled), taken):
                kept.append(seconds_of(function, tensors, times))
    return [sorted(kept)[len(kept) // 2] for kept in taken]


def reason_of(name, ratios, extra, fixed):
    """Returns why a row exceeds MOST: "" if it does not, None if nobody has stated it."""
    larger = max((ratio for size, ratio in ratios.items() if size != "small"), default=0)
    if max(ratios.values()) <= MOST:
        return ""
    if larger <= MOST and extra <= 2 * fixed:
        return "the fixed cost of a call"
    return next((why for start, why in REASONS.items() if name.startswith(start)), None)


def table(rows, extra, sizes, dtype, least):
    """Returns the lines of the table, and the rows whose reason nobody has stated."""
    fixed = sorted(extra.values())[len(extra) // 2] if "small" in sizes and extra else 0
    lines = [f"| op ({dtype}) | {' | '.join(sizes)} | extra, µs | reason |", f"|---|{'---:|' * (len(sizes) + 1)}---|"]
    open_rows = []
    for name, ratios in sorted(rows.items(), key=lambda row: -max(ratio for size, ratio in row[1].items() if size != "small" or len(row[1]) == 1)):
        why = reason_of(name, ratios, extra[name], fixed)
        if why is None:
            open_rows.append(name)
        if max(ratios.values()) >= least:
            cells = " | ".join(f"{ratios[size]:.2f}" if size in ratios else "–" for size in sizes)
            lines.append(f"| `{name}` | {cells} | {extra[name]:.0f} | {'**none stated**' if why is None else why} |")
    if fixed:
        lines += ["", f"The median of `extra`, {fixed:.0f} µs, is the fixed cost of a call."]
    return lines, open_rows


def measure(arguments, core):
    """Returns the ratios of each form by size, the extra microseconds of its small call, and the errors of what failed."""
    rows, failed, extra = collections.defaultdict(dict), {}, {}
    for size in arguments.sizes.split(","):
        torch.manual_seed(0)
        for name, call in Samples(SIZES[size], getattr(torch, arguments.dtype), core).forms.items():
            if arguments.only not in name:
                continue
            try:
                eager, compiled = measured(call, arguments.seconds)
                rows[name][size] = compiled / eager
                extra[name] = max(extra.get(name, 0), (compiled - eager) * 1e6 if size == "small" else 0)
            except Exception as why:
                failed[f"{name} ({size})"] = f"{type(why).__name__}: {(str(why).splitlines() or [''])[0]}"
    return rows, extra, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="overloads whose names have this text")
    parser.add_argument("--least", type=float, default=0, help="print rows with a ratio of at least this")
    parser.add_argument("--sizes", default=",".join(SIZES), help="some of small, medium, and large")
    parser.add_argument("--dtype", default="float32", help="dtype of the floating tensors")
    parser.add_argument("--seconds", type=float, default=0.1, help="of calls, for each form and size")
    parser.add_argument("--output", type=pathlib.Path, help="a page, of which the part for this processor is replaced")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    core = core_overloads()
    rows, extra, failed = measure(arguments, core)
    lines, open_rows = table(rows, extra, arguments.sizes.split(","), arguments.dtype, arguments.least)
    covered = {name.partition(" ")[0] for name in rows}
    lines.append("")
    for name in sorted(core):
        if arguments.only in name and name not in covered:
            lines.append(f"* not measured: {name}" + (f": {NAMED[name]}" if name in NAMED else ": its result is a number" if ".sym_" in name else ""))
    lines += [f"* failed: {name}: {why}" for name, why in failed.items()]
    print("\n".join(lines))
    if arguments.output:
        page = arguments.output.read_text(encoding="utf-8") if arguments.output.exists() else PAGE
        sizes = ", ".join(f"{size} {SIZES[size]:,}" for size in arguments.sizes.split(","))
        head = f"## {processor()}\n\nPyTorch {torch.__version__}, {datetime.date.today()}. Elements of the first tensor, about: {sizes}.\n\n"
        arguments.output.write_text(with_part(page, head + "\n".join(lines)), encoding="utf-8")
    for name in open_rows:
        print(f"more than {MOST} × eager, for no stated reason: {name}", file=sys.stderr)
    return 1 if open_rows or failed else 0


if __name__ == "__main__":
    sys.exit(main())
