#!/usr/bin/env python3
"""Compares extractors on the same e-graphs: `extraction.py --pwr BIN [--cache DIR] [--seconds S] [--output FILE]`.

Generates e-graphs in extraction-gym's format with egglog, from sums and products, Boolean formulas and matrix products, and with `pwr` from decoder layers.
Runs `pwr extract` on each with its own solver, and with COIN-OR's CBC under a time limit. Exit code 1: the own solver is more than 0.5 % above CBC's best,
or took more than 10 s.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import Unavailable, call, machine, python_with

COSTS = {"V": 1, "Add": 4, "Mul": 9, "Neg": 2, "Sub": 4, "And": 2, "Or": 2, "Not": 1, "MM": 50, "Tr": 7, "Scale": 5}
# sort, declarations and rules, leaves, binary ops, unary ops
LANGUAGES = {
    "sums": (
        "M",
        """(datatype M (Num i64) (V String) (Add M M) (Mul M M) (Neg M) (Sub M M))
        (rewrite (Add a b) (Add b a)) (rewrite (Mul a b) (Mul b a))
        (rewrite (Add (Add a b) c) (Add a (Add b c))) (rewrite (Mul (Mul a b) c) (Mul a (Mul b c)))
        (birewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)))
        (rewrite (Sub a b) (Add a (Neg b))) (rewrite (Neg (Neg a)) a)
        (rewrite (Add a (Num 0)) a) (rewrite (Mul a (Num 1)) a) (rewrite (Add a (Neg a)) (Num 0))""",
        ['(V "a")', '(V "b")', '(V "c")', '(V "d")', "(Num 1)", "(Num 2)"],
        ["Add", "Mul", "Add", "Sub"],
        ["Neg"],
    ),
    "formulas": (
        "B",
        """(datatype B (V String) (And B B) (Or B B) (Not B))
        (rewrite (And a b) (And b a)) (rewrite (Or a b) (Or b a))
        (rewrite (And (And a b) c) (And a (And b c))) (rewrite (Or (Or a b) c) (Or a (Or b c)))
        (birewrite (Or (And a b) (And a c)) (And a (Or b c))) (rewrite (Not (Not a)) a)
        (rewrite (Not (And a b)) (Or (Not a) (Not b))) (rewrite (Not (Or a b)) (And (Not a) (Not b)))
        (rewrite (And a a) a) (rewrite (Or a a) a) (rewrite (And a (Or a b)) a)""",
        [f'(V "{name}")' for name in "abcdefgh"],
        ["And", "Or"],
        ["Not"],
    ),
    "matrices": (
        "T",
        """(datatype T (V String) (MM T T) (Add T T) (Tr T) (Scale T))
        (rewrite (Tr (Tr a)) a) (birewrite (MM (MM a b) c) (MM a (MM b c))) (rewrite (Add a b) (Add b a))
        (birewrite (MM a (Add b c)) (Add (MM a b) (MM a c))) (birewrite (Tr (MM a b)) (MM (Tr b) (Tr a)))
        (rewrite (Tr (Add a b)) (Add (Tr a) (Tr b))) (birewrite (Scale (MM a b)) (MM (Scale a) b))
        (rewrite (Add (Scale a) (Scale b)) (Scale (Add a b)))""",
        [f'(V "{name}")' for name in "abcdefgh"],
        ["MM", "Add", "MM"],
        ["Tr", "Scale"],
    ),
}
# language, depth of the terms, rounds of saturation, seeds
CASES = [
    ("sums", 3, 3, 3),
    ("sums", 4, 3, 3),
    ("sums", 5, 4, 2),
    ("formulas", 3, 3, 2),
    ("formulas", 4, 3, 3),
    ("formulas", 5, 4, 2),
    ("matrices", 4, 3, 3),
    ("matrices", 6, 4, 2),
    ("matrices", 6, 5, 1),
]
RULES = """use "llm"
pass all = saturate { add_rms, rms_quant, add_rms_quant, silu_mul, silu_mul_quant, noop.*, apart, joined, grouped } cost bytes
rule apart { y = mul(x, add(a, b))  => y = add(mul(x, a), mul(x, b)) }
rule joined { y = add(mul(x, a), mul(x, b))  => y = mul(x, add(a, b)) }
rule grouped { y = add(add(a, b), c)  => y = add(a, add(b, c)) }
"""
LAYERS = [1, 4, 16, 32]
MOST_ABOVE, MOST_SECONDS = 0.005, 10


def term(draw, depth, leaves, binary, unary):
    if depth == 0 or draw.random() < 0.05:
        return draw.choice(leaves)
    parts = 1 if draw.random() < 0.2 else 2
    op = draw.choice(unary if parts == 1 else binary)
    return f"({op} {' '.join(term(draw, depth - 1, leaves, binary, unary) for _ in range(parts))})"


def saturate(language, depth, rounds, seed):
    """Generates one e-graph of two random terms below one root, in egglog's environment."""
    from egglog.bindings import EGraph

    sort, rules, leaves, binary, unary = LANGUAGES[language]
    draw = random.Random(seed)
    graph = EGraph()
    one, two = (term(draw, depth, leaves, binary, unary) for _ in range(2))
    for text in (rules, f"(datatype R (Root {sort} {sort}))", f"(Root {one} {two})", f"(run {rounds})"):
        graph.run_program(*graph.parse_program(text))
    out = json.loads(graph.serialize([]).to_json())
    out["root_eclasses"] = [node["eclass"] for node in out["nodes"].values() if node["op"] == "Root"]
    for node in out["nodes"].values():
        node["cost"] = COSTS.get(node["op"], 0)
    return out


def egraphs(pwr, cache, folder, missing):
    """Returns the files, smallest language first."""
    files = []
    try:
        python = python_with("peer-egglog", cache)
        for language, depth, rounds, seeds in CASES:
            for seed in range(1, seeds + 1):
                file = folder / f"{language}-{depth}-{rounds}-{seed}.json"
                file.write_text(call([python, __file__, "--make", language, depth, rounds, seed], 300))
                files.append(file)
    except Unavailable as reason:
        missing.append(f"egglog: {reason}")
    rules = folder / "rules.pwr"
    rules.write_text(RULES)
    for layers in LAYERS:
        model, file = folder / "model.json", folder / f"decoder-{layers}.json"
        call([pwr, "generate", "llama", "--layers", layers, "--quant", "fp8", "-o", model])
        call([pwr, "extract", model, "-r", rules, "-p", "all", "--write-egraph", file])
        files.append(file)
    return files


def extract(pwr, file, *options):
    return json.loads(call([pwr, "extract", file, "--format", "json", *options], 3600))["extractions"][0]


def line(file, own, cbc):
    above = own["cost"] / cbc["cost"] - 1 if cbc and cbc["cost"] else 0
    notice = f"{cbc['cost']:.10g} | {cbc['bound']:.10g} | {cbc['time_s']:.2f} s | {100 * above:.2f} %" if cbc else "| | | "
    return above, f"| {file.stem} | {own['nodes']} | {own['cost']:.10g} | {own['bound']:.10g} | {own['time_s']:.2f} s | {notice} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pwr", type=Path)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "piecewise-peers")
    parser.add_argument("--seconds", type=float, default=20, help="of CBC, for each part")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--make", nargs=4, metavar=("LANGUAGE", "DEPTH", "ROUNDS", "SEED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        language, *numbers = arguments.make
        json.dump(saturate(language, *map(int, numbers)), sys.stdout)
        return 0
    missing, lines, bad, sizes, farthest = [], [], [], [], 0.0
    head = machine()
    with tempfile.TemporaryDirectory() as folder:
        for file in egraphs(arguments.pwr, arguments.cache, Path(folder), missing):
            own = extract(arguments.pwr, file)
            try:
                cbc = extract(arguments.pwr, file, "--solver", "cbc", "--seconds", arguments.seconds)
            except Unavailable as reason:
                cbc = None
                missing.append(f"CBC on {file.stem}: {reason}")
            above, row = line(file, own, cbc)
            lines.append(row)
            sizes.append(own["nodes"])
            farthest = max(farthest, above)
            print(row, flush=True)
            if above > MOST_ABOVE or own["time_s"] > MOST_SECONDS:
                bad.append(file.stem)
    report = [
        "# Extraction",
        "",
        f"{head} CBC has {arguments.seconds:g} s for each independent part, and begins with what the own solver finds in 100 000 steps.",
        "",
    ]
    report += [
        "| e-graph | e-nodes | own | bound | time | CBC | bound | time | own is above |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *lines,
        "",
    ]
    report += [
        f"{len(lines)} e-graphs, the largest of {max(sizes, default=0)} e-nodes; the own solver is at most {100 * farthest:.2f} % above CBC's best.",
        f"More than {100 * MOST_ABOVE} % above it, or slower than {MOST_SECONDS} s: {', '.join(bad) if bad else 'none'}.",
    ]
    report += [f"\nNot run: {reason}" for reason in missing]
    if arguments.output:
        arguments.output.write_text("\n".join(report) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
