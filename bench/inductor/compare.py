#!/usr/bin/env python3
"""Compares row kernels of the backend cpu with Inductor's, on the same graphs and inputs, in one run:
`compare.py --piecewise BIN [--only CASE …] [--output FILE]`.

Each side waits in a process of its own on the same core, and runs in turn on request; the table has medians of processor time. Exit code 1: outputs differ,
or Piecewise is slower than its limit.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

import graphs

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
from environment import Unavailable, call, machine, one_thread, python_with, write_section  # noqa: E402

SAMPLE_S = 4e-3
MEAN, LEAST, CASES = 1.4, 1.0, 6  # required ratios, and the minimum number of graphs that reach them


class Side:
    """A process that prints lines of JSON, and then a time for each line of numbers that it receives."""

    def __init__(self, command, core, described=1, **options):
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), *map(str, command)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        self.described = [json.loads(self.line()) for _ in range(described)]

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            messages = self.process.communicate()[1].strip().splitlines() or ["no output"]
            raise Unavailable(f"ended with {self.process.returncode}: {messages[-1][:160]}")
        return text

    def seconds(self, *request):
        print(*request, file=self.process.stdin, flush=True)
        return float(self.line())

    def close(self):
        if self.process.poll() is None:
            self.process.communicate()


def sample(ask, repeats):
    """Returns the processor time of one run, from caches that the other side has not evicted."""
    ask(1)
    return ask(repeats)


def medians(requests, samples):
    """Returns the medians of each `ask(runs)`, called in turns."""
    repeats = []
    for ask in requests:
        ask(2)
        repeats.append(max(1, round(SAMPLE_S / max(ask(2), 1e-7))))
    times = [[] for _ in requests]
    for _ in range(samples):
        for i, ask in enumerate(requests):
            times[i].append(sample(ask, repeats[i]))
    return [statistics.median(t) for t in times]


def measure(case, arguments, python, folder, core):
    """Returns a row of the table, or None, and the differences of outputs."""
    graph = folder / "graph.pwg"
    graph.write_text(case.text)
    # Freed memory is kept, so that the system does not zero it again.
    kept = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(1 << 26)}
    with closing(Side([arguments.piecewise, graph, folder], core)) as ours:
        (folder / "tensors.json").write_text(json.dumps(ours.described[0]))
        lines = 1 + 2 * len(case.functions)
        with closing(Side([python, HERE / "peer.py", case.name, folder], core, lines, env=one_thread() | kept)) as theirs:
            return compared(case, ours, theirs, arguments.samples)


def compared(case, ours, theirs, samples):
    """Returns a row of the table, or None, and the differences of outputs."""
    variants, versions = theirs.described[:-1], theirs.described[-1]
    right = [i for i, variant in enumerate(variants) if not variant["wrong"]]
    wrong = [f"{case.name}, {v['function']}, {v['options']}: {w}" for v in variants for w in v["wrong"]]
    if not right:
        return None, wrong
    mine, *others = medians([ours.seconds, *(partial(theirs.seconds, i) for i in right)], samples)
    best = min(range(len(right)), key=others.__getitem__)
    return {
        "ours": mine,
        "theirs": others[best],
        "variant": variants[right[best]],
        "versions": versions,
        "kernels": ours.described[0]["kernels"],
    }, wrong


def table(rows):
    lines = ["| graph | kernels | Piecewise µs | Inductor µs | ratio | its fastest form |", "|---|---:|---:|---:|---:|---|"]
    for case in graphs.CASES:
        if row := rows.get(case.name):
            lines.append(
                f"| {case.what} | {row['kernels']} | {row['ours'] * 1e6:.1f} | {row['theirs'] * 1e6:.1f} | "
                f"{row['theirs'] / row['ours']:.2f} | `{row['variant']['function']}`, {row['variant']['options']} |"
            )
    return lines


def promises(rows):
    ratios = [row["theirs"] / row["ours"] for row in rows.values()]
    query = [("graphs measured", len(ratios), CASES, "d")]
    if ratios:
        query += [
            ("geometric mean of the ratios", math.exp(statistics.fmean(map(math.log, ratios))), MEAN, ".2f"),
            ("smallest ratio", min(ratios), LEAST, ".2f"),
        ]
    lines = ["| must hold | measured | at least | |", "|---|---:|---:|---|"]
    for what, measured, least, form in query:
        lines.append(f"| {what} | {measured:{form}} | {least:g} | {'ok' if measured >= least else '**short**'} |")
    return lines, all(measured >= least for _, measured, least, _ in query)


def described(rows):
    versions = next(iter(rows.values()))["versions"] if rows else {"torch": "?", "isa": "?"}
    compiler = call(["g++", "--version"]).splitlines()[0]
    return (
        f"{machine()} PyTorch {versions['torch']}, its vectors {versions['isa']}; {compiler} for both. Processor time, medians "
        "of runs in turns on one core, caches warm. ratio: Inductor's time over Piecewise's."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--piecewise", required=True, type=Path, help="the program pw_bench_on_request")
    parser.add_argument("--only", nargs="+", help="only these cases")
    parser.add_argument("--samples", type=int, default=31)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "piecewise-peers")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    core = max(os.sched_getaffinity(0))
    rows, missing, wrong = {}, [], []
    try:
        python = python_with("peer-torch", arguments.cache)
        for case in graphs.CASES:
            if arguments.only and case.name not in arguments.only:
                continue
            print(f"{case.name} …", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    row, differing = measure(case, arguments, python, Path(folder), core)
                except Unavailable as reason:
                    missing.append(f"{case.name}: {reason}")
                    continue
            wrong += differing
            if row:
                rows[case.name] = row
    except Unavailable as reason:
        missing.append(f"PyTorch: {reason}")
    must, kept = promises(rows)
    lines = [described(rows), "", *table(rows), "", *must, ""]
    if missing:
        lines += ["### Not run", "", *(f"* {line}" for line in missing), ""]
    if wrong:
        lines += ["### Wrong outputs", "", *(f"* {line}" for line in wrong), ""]
    print("\n".join(lines))
    if arguments.output:
        write_section(arguments.output, "Row kernels compared with Inductor's", lines)
    sys.exit(0 if kept and not wrong else 1)


if __name__ == "__main__":
    main()
