#!/usr/bin/env python3
"""The overloads that PyTorch calls core, one call a graph, with the arguments of PyTorch's own samples of its functions, beside PyTorch itself.

    core_ops.py [--only TEXT] [--samples N] [--verbose]

Every sample of torch's OpInfo database is run in every dtype that PyTorch's CPU has for it and the library has; each call of a core overload in it is a
case, with these arguments, and once more with edge values (NaN, infinities, zeros of both signs, the largest and the smallest numbers) in its floating
tensors. What the seed decides is compared by shape, dtype and, for the same seed, by its numbers. Exit code 1 where an overload differs, or fewer than
LEAST agree throughout.
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
from piecewise.pytorch.calls import Call, functions, over  # noqa: E402
from piecewise.pytorch.telling import DTYPES, Refused, Told  # noqa: E402

LEAST = 185
CALLS = 6  # kept of an overload with arguments of the same dtypes
ELEMENTS = 1 << 14  # of a tensor, at most
KNOWN = frozenset(DTYPES.values())
EDGES = (1.5, float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -3.0, 1e-30, 3e38, -65504.0, 0.5)
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
        t.dtype in KNOWN and t.layout == torch.strided and t.device.type == "cpu" and t.numel() <= ELEMENTS and not t.is_quantized for t in tensors(value)
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
    """By overload the arguments of its calls."""
    mode = Calls(core)
    for info in op_db:
        for dtype in sorted(info.supported_dtypes("cpu") & KNOWN, key=str):
            torch.manual_seed(1)
            try:
                inputs = info.sample_inputs("cpu", dtype, requires_grad=False)
                for _, sample in zip(range(samples), inputs):
                    with torch.no_grad(), mode:
                        info.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:  # a sample that PyTorch itself cannot run
                continue
    return {name: calls for name, calls in mode.kept.items() if only in name}


def with_edges(call):
    """The call with edge values in its tensors of real numbers; None where it has none."""

    def edged(x):
        if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point or not x.numel():
            return x
        return torch.tensor(EDGES, dtype=torch.float64).repeat(x.numel() // len(EDGES) + 1)[: x.numel()].reshape(x.shape).to(x.dtype)

    changed = tree_map(edged, call)
    return changed if any(t.dtype.is_floating_point and t.numel() for t in tensors(call)) else None


def graph_of(op, args, kwargs, result):
    """One call as a graph, and its inputs."""
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
    else:
        for i, part in enumerate(result):
            if isinstance(part, torch.Tensor):
                outputs.append(graph.call_function(__import__("operator").getitem, (node, i)))
                outputs[-1].meta["val"] = part
    graph.output(outputs)
    return graph, given


def differs(want, got):
    if tuple(want.shape) != tuple(got.shape) or want.dtype != got.dtype:
        return f"{got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
    rtol, atol = TOLERANCE.get(want.dtype, (0.13, 0.07) if want.dtype.is_floating_point else (0, 0))
    want, got = (x.double() if x.dtype.is_floating_point else x for x in (want, got))
    if torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True) if want.dtype.is_floating_point else torch.equal(got, want):
        return ""
    at = (~torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)).flatten().nonzero()[0].item()
    return f"{got.flatten()[at].item()}, not {want.flatten()[at].item()}, at {at}"


SESSION = _piecewise.Session()
SESSION.rules(["llm"])  # with what PyTorch's ops are


def outcome(op, args, kwargs):
    """("agrees" | "left" | "refused" | "differs" | "", the reason); empty: PyTorch does not run it."""
    torch.manual_seed(3)
    try:
        result = op(*tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, args), **kwargs)
    except Exception:
        return "", ""
    if not is_taken(result) or not tensors(result):
        return "", ""
    graph, given = graph_of(op, args, kwargs, result)
    try:
        told = Told(graph, torch.nn.Module(), SESSION)
        said = told.convert()
        made = said["graph"]
        call = Call(told, made, _piecewise.Compiled(made, "eager", functions(told), over))
        torch.manual_seed(3)
        got = call([x.clone() for x in given])
    except (Refused, _piecewise.Error) as why:
        return "refused", str(why)
    for i, (want, one) in enumerate(zip(tensors(result), got)):
        if str(op).startswith("aten.empty"):
            want = one.new_empty(want.shape, dtype=want.dtype).copy_(one)  # of any contents
        if said := differs(want, one):
            return "differs", f"result {i}: {said}"
    return ("left" if told_left(made) else "agrees"), ""


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
            for variant in ((args, kwargs), with_edges((args, kwargs))):
                if variant is None:
                    continue
                what, reason = outcome(core[name], *variant)
                table[name][what] += what != ""
                if what not in ("", "agrees"):
                    why[name].append(f"{what}: {shown(*variant)}: {reason}")
    groups = collections.defaultdict(list)
    for name, counts in table.items():
        kinds = {what for what in counts if what and counts[what]}
        kind = next((k for k in ("differs", "refused", "left") if k in kinds), "agrees" if kinds else "without a case")
        groups[kind].append(name)
    cases = sum(sum(counts.values()) for counts in table.values())
    print(f"core overloads of PyTorch {torch.__version__}: {len(table)}, {cases} cases, seed 1; " + ", ".join(f"{len(v)} {k}" for k, v in sorted(groups.items())))
    for kind in ("differs", "refused", "left", "without a case"):
        for name in groups[kind]:
            print(f"  {kind}: {name}: {dict(table[name])}")
            for line in why[name][: None if arguments.verbose else 2]:
                print(f"      {line}")
    return 1 if groups["differs"] or (not arguments.only and len(groups["agrees"]) < LEAST) else 0


if __name__ == "__main__":
    sys.exit(main())
