#!/usr/bin/env python3
"""Runs two rewriters of torch on the decoder graph: `torch_peer.py fx|inductor OPS`; prints one line of JSON.

fx: `replace_pattern`, one call for each fusion, in the order of FUSIONS. inductor: the pattern matcher for compiled models, as two passes, because it works
from the outputs upwards and would apply rms_quant before add_rms. Ops are opaque functions, and each result of a multi-result op is a getitem node, as in
FX; neither checks dtypes or shapes here.
"""
import importlib
import json
import operator
import resource
import sys
import time

import torch
import torch.fx

import decoder

sys.setrecursionlimit(1_000_000)  # fx recurses along the graph
torch.set_num_threads(1)
NAMES = """add attention fp8_mm fused_add_rms_norm fused_add_rms_norm_static_fp8_quant mm mul reshape rms_norm
rms_norm_static_fp8_quant rotary silu silu_and_mul silu_and_mul_quant split static_scaled_fp8_quant""".split()


def opaque(name):
    def op(*operands, **attributes):
        raise NotImplementedError(name)

    op.__name__ = op.__qualname__ = name
    op.__module__ = __name__
    return op


for each in NAMES:
    globals()[each] = opaque(each)
    torch.fx.wrap(each)


def to_fx(d):
    graph, values = torch.fx.Graph(), {}
    for name, _, _ in d.inputs:
        values[name] = graph.placeholder(name)
    for op, operands, attributes, results in d.nodes:
        node = graph.call_function(globals()[op], tuple(values[x] for x in operands), attributes)
        for i, (name, _) in enumerate(results):
            values[name] = node if len(results) == 1 else graph.call_function(operator.getitem, (node, i))
    graph.output(tuple(values[x] for x in d.outputs))
    return torch.fx.GraphModule({}, graph)


# ---- replace_pattern: a traced function for each side


def halves(gu):
    parts = split(gu, dim=-1, sizes=[14336, 14336])
    return parts[0], parts[1]


def add_rms(x, res, w):
    r = add(x, res)
    return rms_norm(r, w, eps=1e-6), r


def add_rms_after(x, res, w):
    fused = fused_add_rms_norm(x, res, w, eps=1e-6)
    return fused[0], fused[1]


def add_rms_quant(x, res, w, s):
    norm = fused_add_rms_norm(x, res, w, eps=1e-6)
    return static_scaled_fp8_quant(norm[0], s), norm[1]


def add_rms_quant_after(x, res, w, s):
    fused = fused_add_rms_norm_static_fp8_quant(x, res, w, s, eps=1e-6)
    return fused[0], fused[1]


def rms_quant(x, w, s):
    return static_scaled_fp8_quant(rms_norm(x, w, eps=1e-6), s)


def rms_quant_after(x, w, s):
    return rms_norm_static_fp8_quant(x, w, s, eps=1e-6)


def silu_mul(gu):
    g, u = halves(gu)
    return mul(silu(g), u)


def silu_mul_swapped(gu):
    g, u = halves(gu)
    return mul(u, silu(g))


def silu_mul_after(gu):
    return silu_and_mul(gu)


def reshape_chain(x):
    return reshape(reshape(x, shape=[-1, 1, 4096]), shape=[-1, 4096])


def reshape_chain_after(x):
    return reshape(x, shape=[-1, 4096])


def silu_mul_quant(gu, s):
    return static_scaled_fp8_quant(silu_and_mul(gu), s)


def silu_mul_quant_after(gu, s):
    return silu_and_mul_quant(gu, s)


FUSIONS = [
    ("reshape_chain", reshape_chain, reshape_chain_after),
    ("add_rms", add_rms, add_rms_after),
    ("add_rms_quant", add_rms_quant, add_rms_quant_after),
    ("rms_quant", rms_quant, rms_quant_after),
    ("silu_mul", silu_mul, silu_mul_after),
    ("silu_mul", silu_mul_swapped, silu_mul_after),
    ("silu_mul_quant", silu_mul_quant, silu_mul_quant_after),
]


def run_fx(module):
    replace_pattern = importlib.import_module("torch.fx.subgraph_rewriter").replace_pattern
    counts = {}
    for rule, before, after in FUSIONS:
        counts[rule] = counts.get(rule, 0) + len(replace_pattern(module, before, after))
    return counts


# ---- Inductor: pattern expressions and a handler for each


def inductor_passes(counts):
    m = importlib.import_module("torch._inductor.pattern_matcher")
    call, arg, both = m.CallFunction, m.KeywordArg, m.MultiOutputPattern
    first, second = m.PatternMatcherPass("sums"), m.PatternMatcherPass("quantisations")

    def rule(name, pattern, where, op, operands, outputs=1):
        """Adds one new node for the match; the pattern's outputs become its results."""

        def handler(match, **bound):
            counts[name] = counts.get(name, 0) + 1
            graph, old = match.graph, match.output_nodes()
            attributes = {k: bound[k] for k in ("eps", "shape") if k in bound}
            at = min((n for n in match.nodes if n.target is not operator.getitem), key=lambda n: n._sort_key)
            with graph.inserting_before(at):
                new = graph.call_function(op, tuple(bound[x] for x in operands), attributes)
                made = [new] if outputs == 1 else [graph.call_function(operator.getitem, (new, i)) for i in range(outputs)]
            for a, b in zip(old, made):
                a.replace_all_uses_with(b)
            match.erase_nodes()

        m.register_graph_pattern(pattern, pass_dict=where)(handler)

    r = call(add, arg("x"), arg("res"), _users=m.MULTIPLE)
    rule("add_rms", both([call(rms_norm, r, arg("w"), eps=arg("eps")), r]), first, fused_add_rms_norm, ("x", "res", "w"), 2)
    inner = call(reshape, arg("x"), shape=m.Ignored())
    rule("reshape_chain", call(reshape, inner, shape=arg("shape")), first, reshape, ("x",))
    for swapped in (False, True):
        parts = call(split, arg("gu"), dim=-1, sizes=m.Ignored(), _users=2)
        gate, up = call(silu, call(operator.getitem, parts, 0)), call(operator.getitem, parts, 1)
        rule("silu_mul", call(mul, up, gate) if swapped else call(mul, gate, up), first, silu_and_mul, ("gu",))
    norm = call(fused_add_rms_norm, arg("x"), arg("res"), arg("w"), eps=arg("eps"), _users=2)
    quant = call(static_scaled_fp8_quant, call(operator.getitem, norm, 0), arg("s"))
    rule("add_rms_quant", both([quant, call(operator.getitem, norm, 1)]), second, fused_add_rms_norm_static_fp8_quant, ("x", "res", "w", "s"), 2)
    norm = call(rms_norm, arg("x"), arg("w"), eps=arg("eps"))
    rule("rms_quant", call(static_scaled_fp8_quant, norm, arg("s")), second, rms_norm_static_fp8_quant, ("x", "w", "s"))
    act = call(silu_and_mul, arg("gu"))
    rule("silu_mul_quant", call(static_scaled_fp8_quant, act, arg("s")), second, silu_and_mul_quant, ("gu", "s"))
    return first, second


def run_inductor(module, passes):
    for each in passes:
        each.apply(module)


def main(which, ops):
    d = decoder.Decoder(ops)
    start = time.process_time()
    module = to_fx(d)
    load_s = time.process_time() - start
    counts = {}
    passes = inductor_passes(counts) if which == "inductor" else None
    start = time.process_time()
    if which == "inductor":
        run_inductor(module, passes)
    else:
        counts = run_fx(module)
    rewrite_s = time.process_time() - start
    module.graph.lint()
    print(
        json.dumps(
            {
                "load_s": load_s,
                "rewrite_s": rewrite_s,
                "rules": counts,
                "version": torch.__version__,
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
