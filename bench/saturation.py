#!/usr/bin/python3
"""Equality saturation of whole decoders with the rules of the library, and where it must end at a limit.

    saturation.py [PWR]     exit 1 when something takes longer than it may

The rules are those of the passes of `o2`, without the ones that saturation does not take (PW0438).
"""
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PWR = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/bin/pwr").resolve()
ROUNDS = 5
LAYERS = (8, 16, 32, 64)
MOST_SECONDS, MOST_RATIO, MOST_ENDLESS = 1.0, 2.5, 3.0
# A residual stream scaled and summed, as some decoders write it: what the rules below can turn about without end.
ENDLESS = """rule apart { y = mul(x, add(a, b))  => y = add(mul(x, a), mul(x, b)) }
rule joined { y = add(mul(x, a), mul(x, b))  => y = mul(x, add(a, b)) }
rule grouped { y = add(add(a, b), c)  => y = add(a, add(b, c)) }
rule factors { y = mul(mul(a, b), c)  => y = mul(a, mul(b, c)) }
rule over_sums { y = mm(add(a, b), w)  => y = add(mm(a, w), mm(b, w)) }
rule under_sums { y = add(mm(a, w), mm(b, w))  => y = mm(add(a, b), w) }
pass endless = saturate { apart, joined, grouped, factors, over_sums, under_sums } cost bytes
"""
LAYER = """graph layer {
  symbol n in 1..8192 tokens
  in x: f32[n, 64]
  in weight g: f32[64], s: f32[64], b: f32[64], w: f32[64, 64], v: f32[64, 64]
  in cos: f32[n, 64], sin: f32[n, 64]
  a = (x * g + b) * s + x
  q = mm(a, w) * cos + mm(a, v) * sin
  k = mm(a, v) * cos + mm(a, w) * sin
  h = (q + k) * (a * g + b) + x
  u = mm(h, w) * (h * s + b)
  y = u * g + (h + x) * s
  out y
}
"""


def pwr(*args, code=0):
    done = subprocess.run([PWR, *map(str, args)], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != code:
        sys.exit(f"pwr {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
    return done


def decoder(folder, layers, quant):
    file = folder / f"llama-{layers}-{quant}.json"
    pwr("generate", "llama", "--layers", layers, "--quant", quant, "-o", file)
    return file


def saturated(graph, rules, name):
    """Seconds of the pass, and the row of its saturation."""
    found = json.loads(pwr("opt", graph, "-r", rules, "-p", name, "--stats", "--format", "json").stdout)
    return found["passes"][0]["time_s"], found["saturations"][0]


def library(folder):
    """A file with a pass of all rules of `o2` that saturation takes, and how many there are."""
    graph = decoder(folder, 1, "fp8")
    stats = json.loads(pwr("opt", graph, "-r", "llm", "-p", "o2", "--stats", "--format", "json").stdout)
    names = sorted({row["rule"].split("#")[0].split("[")[0] for row in stats["rules"]})
    file = folder / "library.pwr"
    while True:
        file.write_text(f'use "llm"\npass all = saturate {{ {", ".join(names)} }} cost bytes\n')
        done = subprocess.run(
            [PWR, "opt", graph, "-r", file, "-p", "all", "-o", folder / "after.json"], capture_output=True, text=True, timeout=300, check=False
        )
        refused = set(re.findall(r"PW0438\]: rule `([^`\[#]+)", done.stderr))
        if not refused:
            pwr("opt", graph, "-r", file, "-p", "all", "-o", folder / "after.json")
            return file, len(names)
        names = [name for name in names if name not in refused]


def main():
    bad = []

    def told(text, holds):
        print(f"{text}: {'holds' if holds else 'DOES NOT HOLD'}")
        if not holds:
            bad.append(text)

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rules, count = library(folder)
        print(
            f"{count} rules of the library, median of {ROUNDS} rounds\n\nlayers  quant  before        greedy        cost          bound         stop      forms   time"
        )
        medians = {}
        for quant in ("none", "fp8"):
            graphs = {layers: decoder(folder, layers, quant) for layers in LAYERS}
            runs = {layers: [] for layers in LAYERS}
            for _ in range(ROUNDS):
                for layers, graph in graphs.items():
                    runs[layers].append(saturated(graph, rules, "all"))
            for layers in LAYERS:
                row = runs[layers][0][1]
                medians[quant, layers] = statistics.median(seconds for seconds, _ in runs[layers])
                print(
                    f"{layers:6}  {quant:5}  {row['before']:<12}  {row['greedy']:<12}  {row['cost']:<12}  {row['bound']:<12}  {row['stop']:<8}  {row['forms']:<6}"
                    f"  {medians[quant, layers] * 1e3:.1f} ms"
                )
        print()
        for quant in ("none", "fp8"):
            told(f"32 layers, {quant}: {medians[quant, 32]:.3f} s, may take {MOST_SECONDS} s", medians[quant, 32] <= MOST_SECONDS)
            ratio = medians[quant, 64] / medians[quant, 32]
            told(f"64 layers, {quant}: {ratio:.2f} times as long as 32, may be {MOST_RATIO}", ratio <= MOST_RATIO)
        endless, layer = folder / "endless.pwr", folder / "layer.pwg"
        endless.write_text(ENDLESS)
        layer.write_text(LAYER)
        seconds, row = saturated(layer, endless, "endless")
        text = f"one layer with associativity and distributivity: {seconds:.2f} s, may take {MOST_ENDLESS} s; ended at {row['stop']} with cost {row['cost']} of {row['before']}, bound {row['bound']}"
        told(text, seconds <= MOST_ENDLESS and row["stop"] != "complete")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
