#!/usr/bin/env python3
"""Time that the lens adds to a process that captures 51 graphs of 500 nodes; exit code 1 above 10 %.

    lens.py [--graphs N] [--nodes N] [--rounds N]

Two programs alternate, one with PIECEWISE_LENS. Each imports PyTorch, runs a model once for each graph, as engines warm up a
size before they capture it, and captures a graph of that many kernels of the library in libcuda's place. Needs PyTorch 2.14
and a C++ compiler. The elapsed time decides; where other programs load the machine, processor time is steadier.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys, time
import torch
import piecewise
sys.path.insert(0, {tests!r})
from lens import CapturedGraph
sizes, kernels = {graphs}, [i % 2 for i in range({nodes})]
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(24)])
kept = []
with torch.no_grad():
    for size in range(1, sizes + 1):
        model(torch.zeros(8 * size, 512))
        kept.append(CapturedGraph().capture(kernels, fill=False, copy=False))
if "piecewise.lens" in sys.modules:
    piecewise.lens.stop()
print(time.thread_time())
"""


def seconds(program, variables):
    """Returns the elapsed time of a process, and the processor time of its first thread and of all threads."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **variables}, check=True, stdout=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = float(done.stdout.splitlines()[-1])
    return time.perf_counter() - began, first, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=51)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    program = PROGRAM.format(tests=str(ROOT / "tests/torch"), graphs=arguments.graphs, nodes=arguments.nodes)
    sys.path.insert(0, str(ROOT / "tests/torch"))
    import lens

    os.environ["PW_STAND_IN"] = str(lens.LIBRARY)  # compiled once, and not measured
    without, recorded, shares = [], [], []
    for _ in range(arguments.rounds):
        without.append(seconds(program, {"PIECEWISE_LENS": ""}))
        with tempfile.TemporaryDirectory() as folder:
            recorded.append(seconds(program, {"PIECEWISE_LENS": folder}))
            pages = len(list(Path(folder, "process_0001").glob("graph_*.html")))
        assert pages == arguments.graphs, pages
    print(f"{arguments.graphs} graphs of {arguments.nodes} nodes")
    for number, what in enumerate(("elapsed", "first thread", "all threads")):
        base, with_lens = (min(times[number] for times in runs) for runs in (without, recorded))
        shares.append(with_lens / base - 1)
        print(f"{what}: {base:.2f} s, with the lens {with_lens:.2f} s: {100 * shares[-1]:+.1f} %")
    return 1 if shares[0] > 0.1 else 0


if __name__ == "__main__":
    sys.exit(main())
