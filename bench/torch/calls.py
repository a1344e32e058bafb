#!/usr/bin/env python3
"""Time of a call of a compiled function on the processor, where the work itself is small: µs, and relative to eager PyTorch in the same process.

    calls.py [--against PYTHONPATH] [--rounds N] [--calls N] [--format text|json]

--against: the PYTHONPATH of another build. Both builds are called in turns, case by case, and the last columns give its µs and the ratio of this build to it
(the median of the rounds' ratios). Example, with a second clone in ../before:

    PYTHONPATH=build/release/python:python calls.py --against ../before/build/release/python:../before/python
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

WORKER = "--worker"


def cases(torch):
    """Returns functions of one tensor by name, with their arguments. The kernels cost little."""
    x = torch.randn(8, 8)
    weights = [torch.randn(8) for _ in range(100)]

    def chain(x):
        for _ in range(20):
            x = torch.softmax(x * 1.5, -1) + x
        return x

    def weighted(x):
        for weight in weights:
            x = x * weight
        return x

    def results(x):
        return tuple(x * factor for factor in range(1, 11))

    def views(x):
        y = x + 1
        return y, y.t(), y[2:], y.view(-1)

    def writes(x, y):
        y.add_(x)
        return y * 2

    index = torch.tensor([3])

    def row(x, cache):
        cache.index_copy_(0, index, x[:1])
        return cache[:8] * 2

    def left(x):
        return torch.linalg.svdvals(x + 1).sum() + x

    return {
        "one op": (lambda x: x + 1, (x,), {}),
        "60 ops": (chain, (x,), {}),
        "60 ops, dynamic": (chain, (x,), {"dynamic": True}),
        "100 weights": (weighted, (x,), {}),
        "10 results": (results, (x,), {}),
        "views of a result": (views, (x,), {}),
        "a written argument": (writes, (x, torch.zeros(8, 8)), {}),
        "a row of an 8 MiB cache": (row, (x, torch.zeros(1 << 18, 8)), {}),
        "an op of PyTorch's between": (left, (x,), {}),
    }


def training(torch):
    """Returns a forward and backward pass of a small layer."""
    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
    x = torch.randn(4, 8)

    def step(layer=layer):
        layer(x).sum().backward()

    return layer, step


def worker(calls):
    """Compiles the cases and prints their names; then measures a case for each line of stdin: µs of a call, compiled and eager."""
    import torch
    import piecewise.pytorch  # noqa: F401  (registers the backend)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    pairs = {}
    with torch.no_grad():
        for name, (function, args, options) in cases(torch).items():
            compiled = torch.compile(function, backend="piecewise", **options)
            copies = [[a.clone() for a in args] for _ in range(2)]
            torch.testing.assert_close(compiled(*copies[0]), function(*copies[1]))
            pairs[name] = (lambda f=compiled, a=args: f(*a)), (lambda f=function, a=args: f(*a))
    layer, step = training(torch)
    compiled = torch.compile(layer, backend="piecewise", dynamic=False)
    pairs["forward and backward"] = (lambda: step(compiled)), step
    print(json.dumps(list(pairs)), flush=True)
    for name in map(str.strip, sys.stdin):
        with torch.set_grad_enabled(name == "forward and backward"):
            print(json.dumps([microseconds(function, calls) for function in pairs[name]]), flush=True)


def microseconds(function, calls):
    function()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls * 1e6


class Build:
    """A worker process on a build."""

    def __init__(self, path, calls):
        environment = dict(os.environ, PYTHONPATH=path, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
        command = [sys.executable, os.path.abspath(__file__), WORKER, "--calls", str(calls)]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.cases = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"calls.py: the worker ended with exit code {self.process.wait()}")
        return json.loads(line)

    def measured(self, case):
        """Returns µs of a call, compiled and eager."""
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return self._answer()


def measured(builds, rounds):
    """Returns the times of each case: a list of rounds, each of all builds. Builds alternate within a case, as clocks change within a second."""
    out = {case: [] for case in builds[0].cases}
    for number in range(rounds):
        for case in out:
            turns = [(i, builds[i].measured(case)) for i in sorted(range(len(builds)), reverse=number % 2 == 1)]
            out[case].append([times for _, times in sorted(turns)])
    return out


def summary(times):
    """Returns a row for each case: µs, the ratio to eager, and with a second build its µs and the ratio to it, as medians."""
    rows = {}
    for case, rounds in times.items():
        rows[case] = {"us": statistics.median(r[0][0] for r in rounds), "of_eager": statistics.median(r[0][0] / r[0][1] for r in rounds)}
        if len(rounds[0]) > 1:
            rows[case] |= {"other_us": statistics.median(r[1][0] for r in rounds), "of_other": statistics.median(r[0][0] / r[1][0] for r in rounds)}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="PYTHONPATH")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument(WORKER, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args.calls)
    paths = [os.environ.get("PYTHONPATH", "")] + ([args.against] if args.against else [])
    rows = summary(measured([Build(path, args.calls) for path in paths], args.rounds))
    if args.format == "json":
        print(json.dumps(rows, indent=1))
        return
    columns = list(next(iter(rows.values())))
    print(f"{'case':28}" + "".join(f"{column:>12}" for column in columns))
    for name, row in rows.items():
        print(f"{name:28}" + "".join(f"{row[column]:12.2f}" for column in columns))


if __name__ == "__main__":
    main()
