#!/usr/bin/python3
"""Runs `pwr discover` on its default ops at three nodes, on what the found rules derive, and on one layer of a decoder.

discovering.py [--pwr FILE] [--output FILE]     exit 1 if something exceeds its time limit, is not proved or fails its test
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_SECONDS = 600
LAYERS = {"bf16": ["--separate"], "fp8": ["--quant", "fp8"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pwr", type=Path, default=ROOT / "build/release/bin/pwr")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    bad = []

    def pwr(*args):
        done = subprocess.run(
            [arguments.pwr.resolve(), *map(str, args), "--format", "json"], capture_output=True, text=True, timeout=3600, check=False
        )
        if done.returncode != 0:
            bad.append(" ".join(map(str, args[:2])))
        return json.loads(done.stdout or "null")

    def row(name, file, *args):
        """Finds rules; proves and tests the results."""
        start = time.perf_counter()
        found = pwr("discover", *args, "-o", file)
        seconds = time.perf_counter() - start
        proofs = pwr("prove", "--strict", "-r", file)
        tests = pwr("test", file)
        rules = len(found["rules"])
        if seconds > MOST_SECONDS:
            bad.append(name)
        proved = sum(proof["known_by"] == "proof" for proof in proofs)
        passed = sum(test["result"] == "ok" for test in tests)
        if not proved == passed == rules:
            bad.append(f"{name}: {rules} rules, {proved} proved, {passed} tests passed")
        dropped = [found["other_sizes"], found["unwritten"], found["derived"], found["unproved"]]
        cells = [name, found["graphs"], found["pairs"], rules, proved, *dropped, f"{seconds:.1f} s"]
        return found, f"| {' | '.join(map(str, cells))} |"

    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        taso = ROOT / "bench/rules/taso.pwr"
        found, line = row("default ops, at most 3 nodes", Path(folder, "default.pwr"), "--derives", taso)
        layers = []
        for name, options in LAYERS.items():
            layers += ["--from", Path(folder, f"{name}.pwg")]
            pwr("generate", "llama", "--layers", 1, *options, "-o", layers[-1])
        _, other = row(f"one layer of llama, {' and '.join(LAYERS)}", Path(folder, "layer.pwr"), *layers)
    derived = [laws["derived"] for laws in found["derives"]]
    lines = [
        "# Rules found",
        "",
        f"{os.cpu_count()} cores, load {load:.1f} when it began. Time of the whole command, once. Dropped: pairs that hold at equal sizes only; of",
        "which a side does not say what the other needs; that earlier rules derive; that are not proved or fail their test.",
        "",
        "| of | graphs | pairs | rules | proved | other sizes | not written | derived | not proved | time |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        line,
        other,
        "",
        f"Of the {len(derived)} laws of `bench/rules/taso.pwr` the first set derives {sum(derived)}, with {found['derives_with']} of its rules.",
        "",
        f"Each may take {MOST_SECONDS} s, and each rule must be proved and pass its test: {'**' + ', '.join(bad) + ' does not hold**' if bad else 'holds'}.",
    ]
    print("\n".join(lines))
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
