#!/usr/bin/env python3
"""Runs onnxscript's rewriter on the decoder graph: `onnx_peer.py OPS`; prints one line of JSON.

The ops are in a domain of their own, opaque to ONNX. Each pass is one rule set, run to its fixpoint of one sweep, in the order that add_rms requires.
Patterns check no dtypes or shapes here.
"""
import json
import resource
import sys
import time

import onnx_ir as ir
import onnxscript
from onnxscript.rewriter import pattern

import decoder

DOMAIN = "decoder"
COUNTS = {}


def attribute(name, value):
    if isinstance(value, bool):
        return ir.AttrInt64(name, int(value))
    if isinstance(value, list):
        return ir.AttrInt64s(name, value)
    if isinstance(value, str):
        return ir.AttrString(name, value)
    return ir.AttrFloat32(name, value) if isinstance(value, float) else ir.AttrInt64(name, value)


def to_model(d):
    values = {name: ir.Value(name=name) for name, _, _ in d.inputs}
    nodes = []
    for op, operands, attributes, results in d.nodes:
        outs = [ir.Value(name=name) for name, _ in results]
        values.update((value.name, value) for value in outs)
        nodes.append(ir.Node(DOMAIN, op, [values[x] for x in operands], [attribute(k, v) for k, v in attributes.items()], outputs=outs))
    graph = ir.Graph(
        [values[name] for name, _, _ in d.inputs], [values[x] for x in d.outputs], nodes=nodes, opset_imports={"": 20, DOMAIN: 1}, name="decoder"
    )
    return ir.Model(graph, ir_version=10)


def rule(name, before, after):
    def counted(op, **bound):
        COUNTS[name] = COUNTS.get(name, 0) + 1
        return after(op, **bound)

    return pattern.RewriteRule(before, counted, name=name)


def call(op, name, *operands, **attributes):
    return getattr(op, name)(*operands, _domain=DOMAIN, **attributes)


def add_rms(op, x, res, w, eps):
    r = call(op, "add", x, res)
    return call(op, "rms_norm", r, w, eps=eps), r


def add_rms_after(op, x, res, w, eps, **_):
    return call(op, "fused_add_rms_norm", x, res, w, eps=eps, _outputs=2)


def add_rms_quant(op, x, res, w, s, eps):
    y, r = call(op, "fused_add_rms_norm", x, res, w, eps=eps, _outputs=2)
    return call(op, decoder.QUANT, y, s), r


def add_rms_quant_after(op, x, res, w, s, eps, **_):
    return call(op, "fused_add_rms_norm_static_fp8_quant", x, res, w, s, eps=eps, _outputs=2)


def rms_quant(op, x, w, s, eps):
    return call(op, decoder.QUANT, call(op, "rms_norm", x, w, eps=eps), s)


def rms_quant_after(op, x, w, s, eps, **_):
    return call(op, "rms_norm_static_fp8_quant", x, w, s, eps=eps)


def silu_mul(op, gu):
    g, u = call(op, "split", gu, dim=-1, _outputs=2)
    return call(op, "mul", call(op, "silu", g), u)


def silu_mul_swapped(op, gu):
    g, u = call(op, "split", gu, dim=-1, _outputs=2)
    return call(op, "mul", u, call(op, "silu", g))


def silu_mul_after(op, gu, **_):
    return call(op, "silu_and_mul", gu)


def reshape_chain(op, x, shape):
    return call(op, "reshape", call(op, "reshape", x), shape=shape)


def reshape_chain_after(op, x, shape, **_):
    return call(op, "reshape", x, shape=shape)


def silu_mul_quant(op, gu, s):
    return call(op, decoder.QUANT, call(op, "silu_and_mul", gu), s)


def silu_mul_quant_after(op, gu, s, **_):
    return call(op, "silu_and_mul_quant", gu, s)


def rule_sets():
    def one(name, before, after):
        return rule(name, before, after)

    first = [
        one("add_rms", add_rms, add_rms_after),
        one("silu_mul", silu_mul, silu_mul_after),
        one("silu_mul", silu_mul_swapped, silu_mul_after),
        one("reshape_chain", reshape_chain, reshape_chain_after),
    ]
    second = [
        one("add_rms_quant", add_rms_quant, add_rms_quant_after),
        one("rms_quant", rms_quant, rms_quant_after),
        one("silu_mul_quant", silu_mul_quant, silu_mul_quant_after),
    ]
    return [pattern.RewriteRuleSet(first), pattern.RewriteRuleSet(second)]


def main(ops):
    d = decoder.Decoder(ops)
    start = time.process_time()
    model = to_model(d)
    load_s = time.process_time() - start
    sets = rule_sets()
    start = time.process_time()
    for each in sets:
        each.apply_to_model(model)
    rewrite_s = time.process_time() - start
    print(
        json.dumps(
            {
                "load_s": load_s,
                "rewrite_s": rewrite_s,
                "rules": COUNTS,
                "version": onnxscript.__version__,
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
