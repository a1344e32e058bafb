#!/usr/bin/env python3
"""Runs all rewriters on one graph: `run.py --piecewise BIN [--sizes N …] [--only NAME …] [--output FILE]`.

Prepares each peer (virtual environments and the MLIR driver, kept in --cache), runs it in separate processes with a time limit, compares its counts with the
expected ones, and prints a table with the ratio to Piecewise. Peers that cannot run are listed with the reason. Exit code 1: a count is wrong, or Piecewise
is less far ahead than required.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from environment import Unavailable, call, machine, one_thread, python_with

HERE = Path(__file__).resolve().parent
RUNS = 3
LIMIT_S = 300
# peer, size: minimum multiple of Piecewise's rewrite time
MUST = [("MLIR", 10_000, 1.0), ("MLIR", 1_000_000, 6.0), ("torch.fx", 10_000, 1000.0)]
DERIVED = {
    "add_rms": ("add", -1),
    "silu_mul": ("silu", -1),
    "reshape_chain": ("reshape", -1),
    "add_rms_quant": ("fused_add_rms_norm_static_fp8_quant", 1),
    "rms_quant": ("rms_norm_static_fp8_quant", 1),
    "silu_mul_quant": ("silu_and_mul_quant", 1),
}


@dataclass
class Peer:
    name: str
    largest: int
    what: str
    exact: bool = True  # its counts must be the expected ones
    failed: list = field(default_factory=list)

    def prepare(self, cache):
        pass

    def measure(self, size, folder):
        """Returns one run as a dictionary: load_s, rewrite_s, rules, peak_mib."""
        raise NotImplementedError


class Piecewise(Peer):
    def __init__(self, binary):
        super().__init__("Piecewise", 10**7, "graph.json; rules matched by the compiled engine, journal on")
        self.binary = binary

    def measure(self, size, folder):
        out = call([self.binary, "--graph", graph_file(size, "graph", folder), "--rules", HERE / "peers.pwr"], LIMIT_S)
        return json.loads(out)


class Mlir(Peer):
    def __init__(self):
        super().__init__("MLIR", 10**7, "generic text; greedy driver, PDL bytecode, top down")

    def prepare(self, cache):
        config = "llvm-config-16"
        self.version = call([config, "--version"]).strip()
        libraries = call([config, "--libdir"]).strip()
        self.patterns, self.driver = cache / "fusions.mlir", cache / "mlir_driver"
        self.patterns.write_text(call([f"{libraries}/../bin/mlir-pdll", "-x", "mlir", HERE / "fusions.pdll"]))
        source = HERE / "mlir_driver.cpp"
        if not self.driver.exists() or self.driver.stat().st_mtime < source.stat().st_mtime:
            call(
                [
                    "g++",
                    "-std=c++17",
                    "-O2",
                    "-DNDEBUG",
                    "-fno-rtti",
                    source,
                    "-o",
                    self.driver,
                    *call([config, "--cppflags"]).split(),
                    f"-L{libraries}",
                    f"-Wl,-rpath,{libraries}",
                    "-lMLIR",
                    "-lLLVM-16",
                ]
            )

    def measure(self, size, folder):
        out = json.loads(call([self.driver, self.patterns, graph_file(size, "mlir", folder)], LIMIT_S))
        if not out["ok"]:
            raise Unavailable("the rewritten graph is not valid, or the driver did not converge")
        before, after = out["before"], out["after"]
        out["rules"] = {rule: sign * (after.get(op, 0) - before.get(op, 0)) for rule, (op, sign) in DERIVED.items()}
        return out


class Script(Peer):
    """A peer that is a Python script in an environment of its own."""

    def __init__(self, name, largest, what, script, lock, exact=True):
        super().__init__(name, largest, what, exact)
        self.script, self.lock = script, lock

    def prepare(self, cache):
        self.python = python_with(self.lock, cache)

    def measure(self, size, folder):
        out = call([self.python, HERE / self.script[0], *self.script[1:], size], LIMIT_S, env=one_thread(), cwd=HERE)
        return json.loads(out.splitlines()[-1])


def peers(binary):
    return [
        Piecewise(binary),
        Mlir(),
        Script("torch.fx", 10_000, "Python objects; `replace_pattern`, a call a fusion", ["torch_peer.py", "fx"], "peer-torch"),
        Script("Inductor", 100_000, "Python objects; its pattern matcher, two passes", ["torch_peer.py", "inductor"], "peer-torch"),
        Script("onnxscript", 100_000, "Python objects; two rule sets", ["onnx_peer.py"], "peer-onnx"),
        Script("egglog", 100_000, "text; saturation only, nothing is replaced or read back", ["egglog_peer.py"], "peer-egglog", exact=False),
    ]


def graph_file(size, form, folder):
    """Generates the graph in a separate process, because memory of this one counts in the peak of its children."""
    path = folder / f"{size}.{form}"
    if not path.exists():
        with path.open("w") as file:
            subprocess.run([sys.executable, HERE / "decoder.py", str(size), "--form", form], stdout=file, check=True)
    return path


def median_run(peer, size, folder, runs):
    samples = [peer.measure(size, folder)]
    while len(samples) < runs and samples[0]["rewrite_s"] < 30:
        samples.append(peer.measure(size, folder))
    return {key: statistics.median(sample[key] for sample in samples) if isinstance(value, float) else value for key, value in samples[0].items()}


def run_all(arguments, folder, cache):
    """Returns {(peer, size): row}, the peers that could not run, and wrong counts."""
    rows, missing, wrong = {}, [], []
    for peer in peers(arguments.piecewise):
        if arguments.only and peer.name not in (*arguments.only, "Piecewise"):
            continue
        try:
            peer.prepare(cache)
        except Unavailable as reason:
            missing.append(f"{peer.name}: {reason}")
            continue
        for size in arguments.sizes:
            if size > peer.largest:
                missing.append(f"{peer.name} at {size}: would take too long (largest tried: {peer.largest})")
                continue
            print(f"{peer.name} at {size} …", file=sys.stderr, flush=True)
            try:
                row = median_run(peer, size, folder, arguments.runs)
            except Unavailable as reason:
                missing.append(f"{peer.name} at {size} and above: {reason}")
                break
            expected = json.loads(graph_file(size, "expect", folder).read_text())["rules"]
            row["right"] = {rule: row["rules"].get(rule, 0) for rule in expected} == expected
            if peer.exact and not row["right"]:
                wrong.append(f"{peer.name} at {size}: {row['rules']}, expected {expected}")
            rows[peer.name, size] = row
    return rows, missing, wrong


def shown(seconds):
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def times(number):
    return f"{number:.2f}×" if number < 10 else f"{number:.0f}×"


def table(rows, sizes, order):
    lines = [
        "| ops | rewriter | load | rewrite | × Piecewise | load + rewrite | × Piecewise | rewrites | peak MiB |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for size in sizes:
        base = rows.get(("Piecewise", size))
        for peer in order:
            row = rows.get((peer.name, size))
            if row is None or base is None:
                continue
            both, mine = row["load_s"] + row["rewrite_s"], base["load_s"] + base["rewrite_s"]
            count = f"{sum(row['rules'].values()):,}".replace(",", " ")
            note = "" if row["right"] else " (matches)" if not peer.exact else " **wrong**"
            lines.append(
                f"| {size:,} | {peer.name} | {shown(row['load_s'])} | {shown(row['rewrite_s'])} | "
                f"{times(row['rewrite_s'] / base['rewrite_s'])} | {shown(both)} | {times(both / mine)} | "
                f"{count}{note} | {row['peak_mib']:.0f} |".replace(",", " ")
            )
    return lines


def promises(rows):
    lines, kept = ["| must hold | measured | at least | |", "|---|---:|---:|---|"], True
    request = [(peer, size, least, "rewrite", lambda r: r["rewrite_s"]) for peer, size, least in MUST]
    request += [("MLIR", size, 1.0, "load and rewrite", lambda r: r["load_s"] + r["rewrite_s"]) for size in (10_000, 1_000_000)]
    for peer, size, least, what, cost in request:
        row, base = rows.get((peer, size)), rows.get(("Piecewise", size))
        if row is None or base is None:
            lines.append(f"| {peer} at {size}, {what} | not run | {least:g}× | |")
            continue
        ratio = cost(row) / cost(base)
        kept = kept and ratio >= least
        lines.append(f"| {peer} at {size}, {what} | {times(ratio)} | {least:g}× | {'ok' if ratio >= least else '**short**'} |")
    return lines, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--piecewise", required=True, help="the program pw_bench_rewrite")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="+", help="only these peers, and Piecewise")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "piecewise-peers")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Peers",
        "",
        f"{machine()} Processor time, medians of {arguments.runs} processes (one where a rewrite takes more "
        "than 30 s). Only the ratios carry over to other machines.",
        "",
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows, missing, wrong = run_all(arguments, Path(folder), arguments.cache)
    order = peers(arguments.piecewise)
    lines += table(rows, arguments.sizes, order) + [""]
    lines += [f"* {peer.name}{version(rows, peer)}: {peer.what}" for peer in order] + [""]
    must, kept = promises(rows)
    lines += ["## What must hold", "", *must, ""]
    if missing:
        lines += ["## Not run", "", *(f"* {line}" for line in missing), ""]
    if wrong:
        lines += ["## Wrong counts", "", *(f"* {line}" for line in wrong), ""]
    print("\n".join(lines))
    if arguments.output:
        arguments.output.write_text("\n".join(lines))
    sys.exit(0 if kept and not wrong else 1)


def version(rows, peer):
    found = getattr(peer, "version", "") or next((r["version"] for (n, _), r in rows.items() if n == peer.name and "version" in r), "")
    return f" {found}" if found else ""


if __name__ == "__main__":
    main()
