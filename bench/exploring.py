#!/usr/bin/python3
"""Tries all 40 320 orders of eight passes of the library on decoders of 32 layers, in bf16 and in fp8 on two ranks.

exploring.py [--output FILE]     exit 1 if one exceeds its time limit
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench/peers"))
from environment import processor  # noqa: E402

PWR = Path(os.environ.get("PW_BIN", ROOT / "build/release/bin"), "pwr").resolve()
PASSES = "norm,rope,norm_quant,attention_quant,activation,activation_quant,allreduce,allreduce_quant"
CASES = {"bf16": [], "fp8": ["--quant", "fp8"]}
LAYERS, ROUNDS, MOST_SECONDS = 32, 3, 10


def pwr(*args):
    done = subprocess.run([PWR, *map(str, args)], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        sys.exit(f"pwr {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def machine():
    return f"One thread of {os.cpu_count()} cores, {processor()}, load {os.getloadavg()[0]:.1f} when it began. Time of the whole command, medians of {ROUNDS}."


def measured(graph):
    spent = []
    for _ in range(ROUNDS):
        begin = time.monotonic()
        found = json.loads(pwr("explore", graph, "-r", "llm", "--passes", PASSES, "--by", "nodes,bytes", "-D", "tp=2", "--format", "json"))
        spent.append(time.monotonic() - begin)
    return statistics.median(spent), found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    lines = ["# Orders of passes", "", machine(), "", f"The passes: {PASSES.replace(',', ', ')}.", ""]
    lines += [
        "| decoder | nodes | orders | graphs | ends | best | written order | pairs that matter | thefts | time |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for name, options in CASES.items():
            graph = Path(folder, "decoder.json")
            pwr("generate", "llama", "--layers", LAYERS, "--tp", 2, *options, "-o", graph)
            nodes = json.loads(pwr("stats", graph, "--format", "json"))["nodes"]
            seconds, found = measured(graph)
            ends = found["ends"]
            written = next(row for row in ends if row["written"])
            cells = [f"{LAYERS} layers, {name}, tp 2", nodes, found["orders"], found["graphs"], len(ends), f"{ends[0]['nodes']} nodes"]
            cells += [f"{written['nodes']} nodes", len(found["pairs"]), len(found["thefts"]), f"{seconds:.2f} s"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
            if seconds > MOST_SECONDS:
                bad.append(name)
    lines += ["", f"Each may take {MOST_SECONDS} s: {'**' + ', '.join(bad) + ' does not hold**' if bad else 'holds'}."]
    print("\n".join(lines))
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
