#!/usr/bin/env python3
"""Runs egglog on the decoder graph: `egglog_peer.py OPS`; prints one line of JSON.

Equality saturation only adds: overlapping fusions are all made, and a rule cannot require that a consumed value has no other user. The counts are therefore
matches, not the rewrites of the other peers. The time covers saturation alone, without extracting a graph. A multi-result op is a tuple with projections.
"""
import json
import resource
import sys
import time
from importlib.metadata import version

from egglog.bindings import EGraph

import decoder

RULES = """
(rule ((= r (add x res)) (= y (rms_norm r w e)))
      ((let f (fused_add_rms_norm x res w e)) (union y (proj f 0)) (union r (proj f 1))) :name "add_rms")
(rule ((= n (fused_add_rms_norm x res w e)) (= q (static_scaled_fp8_quant (proj n 0) s)) (= r (proj n 1)))
      ((let f (fused_add_rms_norm_static_fp8_quant x res w s e)) (union q (proj f 0)) (union r (proj f 1)))
      :name "add_rms_quant")
(rule ((= q (static_scaled_fp8_quant (rms_norm x w e) s))) ((union q (rms_norm_static_fp8_quant x w s e)))
      :name "rms_quant")
(rule ((= p (split gu sizes)) (= y (mul (silu (proj p 0)) (proj p 1)))) ((union y (silu_and_mul gu)))
      :name "silu_mul")
(rule ((= p (split gu sizes)) (= y (mul (proj p 1) (silu (proj p 0))))) ((union y (silu_and_mul gu)))
      :name "silu_mul_swapped")
(rule ((= y (reshape (reshape x inner) shape))) ((union y (reshape x shape))) :name "reshape_chain")
(rule ((= q (static_scaled_fp8_quant (silu_and_mul gu) s))) ((union q (silu_and_mul_quant gu s)))
      :name "silu_mul_quant")
"""
SORTS = {str: "String", float: "f64"}
CHUNK = 10
MADE = {"fused_add_rms_norm_static_fp8_quant": "(V V V V f64) P", "rms_norm_static_fp8_quant": "(V V V f64) V", "silu_and_mul_quant": "(V V) V"}


def literal(value):
    return repr(value) if isinstance(value, float) else json.dumps(json.dumps(value))


def given(op, attributes):
    """Returns the attributes that the rules inspect, and the rest as one text."""
    if op in ("rms_norm", "fused_add_rms_norm"):
        return [attributes["eps"]]
    return [json.dumps(attributes)] if attributes else []


def to_chunks(d):
    """Returns the graph as short texts, because parsing copies its whole text for each term."""
    signatures, numbers = dict(MADE), {}

    def value(name):
        return f"(value {numbers.setdefault(name, len(numbers))})"

    lines = [f'(set {value(n)} (input "{n}"))' for n, _, _ in d.inputs]
    for op, operands, attributes, results in d.nodes:
        values = given(op, attributes)
        sorts = ["V"] * len(operands) + [SORTS[type(v)] for v in values]
        signatures[op] = f"({' '.join(sorts)}) {'V' if len(results) == 1 else 'P'}"
        term = f"({op} {' '.join([value(x) for x in operands] + [literal(v) for v in values])})"
        for i, (name, _) in enumerate(results):
            lines.append(f"(set {value(name)} {term if len(results) == 1 else f'(proj {term} {i})'})")
    head = ["(sort V)", "(sort P)", "(constructor input (String) V)", "(constructor proj (P i64) V)", "(function value (i64) V :no-merge)"]
    head += [f"(constructor {op} {signature})" for op, signature in signatures.items()]
    return ["\n".join(head)] + ["\n".join(lines[i : i + CHUNK]) for i in range(0, len(lines), CHUNK)]


def main(ops):
    chunks = to_chunks(decoder.Decoder(ops))
    graph = EGraph()
    start = time.process_time()
    for chunk in chunks:
        graph.run_program(*graph.parse_program(chunk))
    load_s = time.process_time() - start
    graph.run_program(*graph.parse_program(RULES))
    start = time.process_time()
    out = graph.run_program(*graph.parse_program("(run-schedule (saturate (run)))"))
    rewrite_s = time.process_time() - start
    report = next(o.report for o in out if hasattr(o, "report"))
    counts = dict(report.num_matches_per_rule)
    counts["silu_mul"] = counts.get("silu_mul", 0) + counts.pop("silu_mul_swapped", 0)
    print(
        json.dumps(
            {
                "load_s": load_s,
                "rewrite_s": rewrite_s,
                "rules": counts,
                "version": version("egglog"),
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
