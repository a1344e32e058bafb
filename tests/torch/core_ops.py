#!/usr/bin/env python3
"""The overloads that PyTorch calls core, one call a graph, with the arguments of PyTorch's own samples of its functions, beside PyTorch itself.

    core_ops.py [--only TEXT] [--samples N] [--verbose]

Every sample of torch's OpInfo database is run in every dtype that PyTorch's CPU has for it and the library has, with its gradient where it has one; each
call of a core overload in it is a case, with these arguments, and once more with edge values (NaN, infinities, zeros of both signs, the largest and the
smallest numbers) in its floating tensors. What no sample calls is called with arguments of ours (MORE). Numbers agree where they are PyTorch's within the
tolerance that torch.testing has for the dtype, or not farther than those from PyTorch's result in f64. Exit code 1 where an overload
differs, or fewer than LEAST agree throughout.
"""
import argparse
import collections
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

import _piecewise  # noqa: E402
from piecewise.pytorch.calls import Call, over  # noqa: E402
from piecewise.pytorch.hosted import HostCalls  # noqa: E402
from piecewise.pytorch.fx_import import DTYPES, FxImport, Refused  # noqa: E402

LEAST = 185
PYTORCH = "PyTorch's"
COMPLEX = "complex numbers make PyTorch run the graph"
WRITES = "it writes its argument, which no graph of AOT autograd does"
NAMED = {  # what has no case, and why
    **dict.fromkeys(("aten._fft_r2c.default", "aten._fft_c2r.default"), COMPLEX),
    "aten._local_scalar_dense.default": "a number made of data breaks a graph in two",
    **dict.fromkeys(("aten.atan2.out", "aten.resize_.default", "aten._native_batch_norm_legit.default"), WRITES),
}
aten = torch.ops.aten
X, I, B = torch.randn(3, 4, generator=torch.Generator().manual_seed(1)), torch.arange(12).reshape(3, 4), torch.arange(4) > 1
P = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))
FLOATS = (torch.float32, torch.float64, torch.bfloat16)
BITS = (aten.bitwise_and.Scalar, aten.bitwise_or.Scalar, aten.bitwise_xor.Scalar)
MODES = {"training": [True, True, True]}
MORE = [  # (overload, arguments)
    *((aten.pow.Scalar, (2.5, X.to(d))) for d in FLOATS),
    *((op, (I.to(d), 5)) for op in (*BITS, aten.fmod.Scalar, aten.gt.Scalar) for d in (torch.int64, torch.int32, torch.uint8)),
    *((op, (X.to(d), 0.75)) for op in (aten.fmod.Scalar, aten.gt.Scalar) for d in FLOATS),
    *((aten.div.Scalar_mode, (X.to(d), 0.3), {"rounding_mode": m}) for m in (None, "floor", "trunc") for d in FLOATS),
    *((aten.copy.default, (X, X.to(d))) for d in FLOATS),
    *((aten.scatter.value, (X.to(d), 1, I % 4, 2.5)) for d in FLOATS),
    *((aten.var.dim, (X.to(d), [1], unbiased, keep)) for d in FLOATS for unbiased in (True, False) for keep in (True, False)),
    *((aten.any.dims, (I.to(d) % 2, dims)) for d in (torch.bool, torch.int64) for dims in ([0, 1], [1], None)),
    *((aten.avg_pool1d.default, (P[0].to(d), [3], [2], [1])) for d in FLOATS),
    *((aten.adaptive_avg_pool1d.default, (P[0].to(d), [5])) for d in FLOATS),
    *((aten.upsample_bilinear2d.vec, (P.to(d), [11, 5], corners, None)) for d in FLOATS for corners in (True, False)),
    *((aten.upsample_nearest2d.vec, (P.to(d), [11, 5], None)) for d in FLOATS),
    *((aten._adaptive_avg_pool2d_backward.default, (torch.ones(2, 3, 5, 5, dtype=d), P.to(d))) for d in FLOATS),
    (aten.avg_pool2d_backward.default, (torch.ones(2, 3, 4, 4), P, [2, 2], [2, 2], [0, 0], False, True, None)),
    (aten.col2im.default, (torch.ones(2, 12, 16), [5, 5], [2, 2], [1, 1], [0, 0], [1, 1])),
    (aten._native_batch_norm_legit_no_training.default, (P, torch.ones(3), torch.zeros(3), torch.full((3,), 0.5), torch.full((3,), 2.0), 0.1, 1e-5)),
    (
        aten.convolution_backward.default,
        (torch.ones(2, 4, 6, 6), P, torch.ones(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, MODES["training"]),
    ),
    (aten.embedding_dense_backward.default, (X, torch.tensor([1, 0, 1]), 5, -1, False)),
    (
        aten.native_layer_norm_backward.default,
        (X, X, [4], X.mean(1, True), X.var(1, keepdim=True).rsqrt(), torch.ones(4), torch.zeros(4), MODES["training"]),
    ),
    (aten.native_group_norm_backward.default, (P, P, torch.zeros(2, 3), torch.ones(2, 3), torch.ones(3), 2, 3, 64, 3, MODES["training"])),
    (aten.native_dropout.default, (X, 0.5, True)),
    (aten.randperm.default, (7,)),
    *((op, (X, 1)) for op in (aten.sym_size.int, aten.sym_stride.int)),
    *((op, (X,)) for op in (aten.sym_numel.default, aten.sym_storage_offset.default, aten.sym_is_contiguous.default)),
]
CALLS = 6  # kept of an overload with arguments of the same dtypes
ELEMENTS = 1 << 14  # of a tensor, at most
KNOWN = frozenset(DTYPES.values())
EDGES = (1.5, float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -3.0, 1e-30, 3e38, -65504.0, 0.5)
# Where sums decide what is left of infinities and of numbers that overflow, the order of their terms does.
MILD = (1.5, float("nan"), -0.0, 0.0, -3.0, 1e-30, 0.5, 2.0)
SUMS = (
    "mm",
    "addmm",
    "bmm",
    "convolution",
    "sum",
    "mean",
    "var",
    "norm",
    "pool",
    "softmax",
    "cumsum",
    "cumprod",
    "prod",
    "dist",
    "pad2d_backward",
    "upsample",
    "grid_sampler",
    "_backward",
    "embedding",
    "scatter",
    "index_put",
)
TOLERANCE = {torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5), torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-3)}


def core_overloads():
    found = {}
    for space in ("aten", "prims"):
        for name in torch._C._dispatch_get_all_op_names():
            if name.startswith(space + "::"):
                packet, _, overload = name[len(space) + 2 :].partition(".")
                try:
                    op = getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
                except (AttributeError, RuntimeError):
                    continue
                if torch.Tag.core in op.tags:
                    found[str(op)] = op
    return found


def tensors(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def is_taken(value):
    return all(
        t.dtype in KNOWN and t.layout == torch.strided and t.device.type == "cpu" and t.numel() <= ELEMENTS and not t.is_quantized
        for t in tensors(value)
    )


class Calls(TorchDispatchMode):
    """Keeps the calls of core overloads."""

    def __init__(self, core):
        super().__init__()
        self.core, self.kept, self.seen = core, collections.defaultdict(list), collections.Counter()

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if str(op) in self.core and is_taken((args, kwargs)):
            key = (str(op), tuple(t.dtype for t in tensors((args, kwargs))), kwargs.get("dtype"))
            self.seen[key] += 1
            if self.seen[key] <= CALLS:
                self.kept[str(op)].append(tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, (args, kwargs)))
        return op(*args, **kwargs)


def sampled(core, samples, only):
    """Returns the arguments of the calls of each overload."""
    mode = Calls(core)
    for info in op_db:
        for dtype in sorted(info.supported_dtypes("cpu") & KNOWN, key=str):
            torch.manual_seed(1)
            try:
                inputs = info.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point and info.supports_autograd)
                for _, sample in zip(range(samples), inputs):
                    with mode:
                        result = info.op(sample.input, *sample.args, **sample.kwargs)
                        sum(t.float().sum() for t in tensors(result) if t.requires_grad).backward()
            except Exception:  # a sample that PyTorch itself cannot run, or that has no gradient
                continue
    for op, args, *kwargs in MORE:
        mode.kept[str(op)].append((args, kwargs[0] if kwargs else {}))
    return {name: calls for name, calls in mode.kept.items() if only in name}


def with_edges(name, call):
    """The call with edge values in its tensors of real numbers; None where it has none."""

    values = torch.tensor(MILD if any(word in name for word in SUMS) else EDGES, dtype=torch.float64)

    def edged(x):
        if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point or not x.numel():
            return x
        return values.repeat(x.numel() // len(values) + 1)[: x.numel()].reshape(x.shape).to(x.dtype)

    changed = tree_map(edged, call)
    return changed if any(t.dtype.is_floating_point and t.numel() for t in tensors(call)) else None


def graph_of(op, args, kwargs, result):
    """One call as a graph, and its inputs; of a number the graph returns a tensor filled with it."""
    graph, given = torch.fx.Graph(), []

    def place(x):
        if not isinstance(x, torch.Tensor):
            return x
        node = graph.placeholder(f"x{len(given)}")
        node.meta["val"] = x
        given.append(x)
        return node

    args, kwargs = tree_map(place, (args, kwargs))
    node = graph.call_function(op, tuple(args), kwargs)
    node.meta["val"] = result
    outputs = []
    if isinstance(result, torch.Tensor):
        outputs = [node]
    elif isinstance(result, (bool, int, float)):
        outputs = [graph.call_function(aten.full.default, ([2], node))]
        outputs[0].meta["val"] = torch.full([2], result)
    else:
        for i, part in enumerate(result):
            if isinstance(part, torch.Tensor):
                outputs.append(graph.call_function(__import__("operator").getitem, (node, i)))
                outputs[-1].meta["val"] = part
    graph.output(outputs)
    return graph, given


def wide(value):
    """Floating tensors in f64, and dtypes too."""
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        return value.double()
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value


def differs(op, args, kwargs, i, want, got):
    """Returns the difference of result i; empty if there is none."""
    if tuple(want.shape) != tuple(got.shape) or want.dtype != got.dtype:
        return f"{got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
    if str(op).startswith("aten.empty"):
        return ""  # of any contents
    if i == 1 and str(op) in ("aten.topk.default", "aten.sort.default"):  # of equal elements, any
        dim = kwargs.get("dim", args[2 if "topk" in str(op) else 1] if len(args) > (2 if "topk" in str(op) else 1) else -1)
        values = args[0] if args[0].dim() else args[0].reshape(1)
        want, got = (values.gather(dim, x.reshape(values.shape[:0] + x.shape) if args[0].dim() else x.reshape(1)) for x in (want, got))
    rtol, atol = TOLERANCE.get(want.dtype, (0.13, 0.07) if want.dtype.is_floating_point else (0, 0))
    floating = want.dtype.is_floating_point
    near = torch.isclose(wide(got), wide(want), rtol=rtol, atol=atol, equal_nan=True) if floating else got == want
    if "_to_copy" in str(op) and want.dtype != torch.bool and not floating and args[0].dtype.is_floating_point:  # what C++ leaves undefined
        least, most = torch.iinfo(want.dtype).min, torch.iinfo(want.dtype).max
        near |= ~((wide(args[0]) > float(least) - 1) & (wide(args[0]) < float(most)))
    if bool(near.all()):
        return ""
    if floating:
        try:
            truth = tensors(op(*tree_map(wide, args), **tree_map(wide, kwargs)))[i].double()
        except Exception:
            truth = wide(want)
        ours, theirs = (torch.nan_to_num((wide(x) - truth).abs(), nan=float("inf")) for x in (got, want))
        same = (wide(got) == truth) | (wide(got).isnan() & truth.isnan()) | (truth.to(want.dtype) == got)
        near |= same | ((ours <= theirs) & (ours < float("inf")))
        if bool(near.all()):
            return ""
    at = (~near).flatten().nonzero()[0].item()
    return f"{got.flatten()[at].item()}, not {want.flatten()[at].item()}, at {at}"


SESSION = _piecewise.Session()
SESSION.rules(["llm"])  # with what PyTorch's ops are


def outcome(op, args, kwargs):
    """("agrees" | "left" | "refused" | "differs" | "", the reason); empty: PyTorch does not run it."""
    if op._schema.is_mutable:
        return "", ""
    torch.manual_seed(3)
    try:
        result = op(*tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, args), **kwargs)
    except Exception:
        return "", ""
    if not is_taken(result):
        return "", ""
    graph, given = graph_of(op, args, kwargs, result)
    try:
        imported = FxImport(graph, torch.nn.Module(), SESSION)
        said_of = imported.convert()
        made = said_of["graph"]
        hosted = HostCalls.of(graph, said_of["opaque"])
        call = Call(imported, made, _piecewise.Compiled(made, "eager", hosted.functions(imported.operators), over), hosted)
        torch.manual_seed(3)
        got = call([x.clone() for x in given])
    except (Refused, _piecewise.Error) as why:
        return "refused", str(why)
    wanted = [torch.full([2], result)] if isinstance(result, (bool, int, float)) else tensors(result)
    for i, (want, one) in enumerate(zip(wanted, got)):
        if said := differs(op, args, kwargs, i, want, one):
            return "differs", f"result {i}: {said}"
    return ("left", str(dict(said_of["reasons"]))) if told_left(made) else ("agrees", "")


def told_left(graph):
    return any(name.startswith(("aten.", "prims.")) for name in graph.ops())


def shown(args, kwargs):
    def one(x):
        return f"{str(x.dtype)[6:]}{list(x.shape)}" if isinstance(x, torch.Tensor) else x

    return str(tree_map(one, (tuple(args), dict(kwargs))))[:160]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="overloads whose names have this text")
    parser.add_argument("--samples", type=int, default=12, help="of a function in a dtype")
    parser.add_argument("--verbose", action="store_true", help="every call that does not agree")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    core = core_overloads()
    calls = sampled(core, arguments.samples, arguments.only)
    table = {name: collections.Counter() for name in core if arguments.only in name}
    why = collections.defaultdict(list)
    for name, given in sorted(calls.items()):
        for args, kwargs in given:
            for variant in ((args, kwargs), with_edges(name, (args, kwargs))):
                if variant is None:
                    continue
                what, reason = outcome(core[name], *variant)
                table[name][what] += what != ""
                if what not in ("", "agrees"):
                    why[name].append(f"{what}: {shown(*variant)}: {reason}")
    groups = collections.defaultdict(list)
    for name, counts in table.items():
        kinds = {what for what, count in counts.items() if what and count}
        worst = next((k for k in ("differs", "refused") if k in kinds and name not in NAMED), "")
        groups[worst or ("NAMED" if name in NAMED else "ours" if kinds == {"agrees"} else "in part" if "agrees" in kinds else PYTORCH)].append(name)
    cases = sum(count for counts in table.values() for what, count in counts.items() if what)
    agree = sum(len(groups[kind]) for kind in ("ours", "in part", PYTORCH))
    print(f"core overloads of PyTorch {torch.__version__}: {len(table)}, of which {agree} agree in all of their cases ({cases}, seed 1):")
    print(f"  {len(groups['ours'])} are run here, {len(groups['in part'])} but for some forms, {len(groups[PYTORCH])} are PyTorch's own calls")
    for kind, title in (
        ("differs", "differs"),
        ("refused", "refused"),
        ("in part", "forms of it are PyTorch's"),
        (PYTORCH, "PyTorch's"),
        ("NAMED", "no case"),
    ):
        for name in groups[kind]:
            print(f"  {title}: {name}" + (f": {NAMED[name]}" if kind == "NAMED" else f": {dict(+table[name])}"))
            for line in why[name][: None if arguments.verbose else 1]:
                print(f"      {line}")
    return 1 if groups["differs"] or groups["refused"] or (not arguments.only and agree < LEAST) else 0


if __name__ == "__main__":
    sys.exit(main())
