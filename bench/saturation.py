#!/usr/bin/python3
"""Times equality saturation of whole decoders with the library's rules, of a layer with rules that never end, and of two graphs of Tensat.

saturation.py [--output FILE]     exit 1 if something exceeds its time limit

The library's rules are those of the passes of `o2`. Tensat's graphs are rebuilt from its paper and its examples.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench/peers"))
from environment import processor  # noqa: E402

PWR = Path(os.environ.get("PW_BIN", ROOT / "build/release/bin"), "pwr").resolve()
ROUNDS = 5
LAYERS = (8, 16, 32, 64)
MOST_SECONDS, MOST_RATIO, MOST_ENDLESS = 1.0, 2.5, 3.0
# A scaled and summed residual stream, as in some decoders: the rules below can rewrite it without end.
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
# Seconds of search and per cent of speed-up: Yang et al., "Equality Saturation for Tensor Graph Superoptimization", MLSys 2021
# (arXiv 2101.01332), as on its authors' page.
TENSAT = {
    "BERT": (13.6, 1.4),
    "NasRNN": (177.3, 0.5),
    "ResNeXt-50": (25.3, 0.7),
    "NasNet-A": (1226, 10.6),
    "Inception-v3": (68.6, 5.1),
    "SqueezeNet": (16.4, 0.3),
    "VGG-19": (8.9, 0.4),
}
# The kinds of rules that TASO generates and Tensat uses, for the ops of these two graphs. Groupings and exchanges of `add` and `mul` need no rules here.
TENSOR_RULES = """table time(cost) {
  mm: 100000 + 2 * m * k * n
  split: 0
  cat: 0
  reshape: 0
  other: 100000 + bytes
}
rule regrouped { y = mm(mm(a, b), c)  <=>  y = mm(a, mm(b, c)) }
rule summed_right { y = mm(x, add(a: T[k, n], b: T[k, n]))  <=>  y = add(mm(x, a: T[k, n]), mm(x, b: T[k, n])) }
rule summed_left { y = mm(add(a: T[m, k], b: T[m, k]), w)  <=>  y = add(mm(a: T[m, k], w), mm(b: T[m, k], w)) }
rule apart { y = mul(x: T[*s], add(a: T[*s], b: T[*s]))  <=>  y = add(mul(x: T[*s], a: T[*s]), mul(x: T[*s], b: T[*s])) }
rule joined { y = add(mm(x: T[m, k], a: T[k, n]), mm(h: T[m, j], b: T[j, n]))  =>  y = mm(cat(x, h){dim = 1}, cat(a, b){dim = 0}) }
rule one_input { many y = mm(x, w: T[k, n])  where count(y) >= 2
  =>  z = mm(x, cat(w...){dim = 1})  y... = split(z){dim = 1, sizes = [n...]} }
rule relu_sinks { y = cat(relu(x)...){dim}  =>  y = relu(cat(x...){dim}) }
rule tanh_sinks { y = cat(tanh(x)...){dim}  =>  y = tanh(cat(x...){dim}) }
rule sigmoid_sinks { y = cat(sigmoid(x)...){dim}  =>  y = sigmoid(cat(x...){dim}) }
rule flat { y = cat(cat(a, b){dim}, c){dim}  =>  y = cat(a, b, c){dim} }
rule there_and_back { y = transpose(transpose(x){dim0, dim1}){dim0, dim1}  =>  y = x }
rule reshaped_twice { y = reshape(reshape(x){..}){shape}  =>  y = reshape(x){shape} }
pass tensors = saturate { regrouped, summed_right, summed_left, apart, joined, one_input, relu_sinks, tanh_sinks, sigmoid_sinks,
  flat, there_and_back, reshaped_twice } cost time
"""


def bert():
    """Returns eight blocks of 64 tokens, 1024 wide, with 16 heads of 64; a block reads a product of what the previous one read."""
    lines = ["in x: f32[64, 1024]", "h0 = relu(x)"]
    for i in range(8):
        lines.insert(1, f"in weight wq{i}: f32[1024, 1024], wk{i}: f32[1024, 1024], wv{i}: f32[1024, 1024], wo{i}: f32[1024, 1024]")
        for part in "qkv":
            lines.append(f"{part}{i} = mm(h{i}, w{part}{i})")
            lines.append(f"{part}p{i} = transpose(reshape({part}{i}){{shape = [64, 16, 64]}}){{dim0 = 0, dim1 = 1}}")
        lines.append(f"l{i} = bmm(qp{i}, kp{i})")
        lines.append(f"o{i} = reshape(transpose(bmm(l{i}, vp{i})){{dim0 = 0, dim1 = 1}}){{shape = [64, 1024]}}")
        lines.append(f"h{i + 1} = mm(h{i}, wo{i})")
    return "graph bert {\n  " + "\n  ".join([*lines, "out h8, " + ", ".join(f"o{i}" for i in range(8))]) + "\n}\n"


def nasrnn():
    """Returns five steps of a cell with eight sums of two products each, 512 wide."""
    lines = [f"in x{i}: f32[1, 512]" for i in range(5)] + ["in weight s0: f32[1, 512]"]
    for i in range(5):
        for k in range(8):
            lines.insert(0, f"in weight a{i}_{k}: f32[512, 512], b{i}_{k}: f32[512, 512]")
            lines.append(f"t{i}_{k} = mm(x{i}, a{i}_{k}) + mm(s{i}, b{i}_{k})")
        lines.append(f"m{i}_0 = relu(t{i}_0) + sigmoid(t{i}_3)")
        lines.append(f"m{i}_1 = sigmoid(t{i}_1) + tanh(t{i}_2)")
        lines.append(f"m{i}_2 = sigmoid(t{i}_4) * tanh(t{i}_5)")
        lines.append(f"m{i}_3 = sigmoid(t{i}_6) * relu(t{i}_7)")
        lines.append(f"m{i}_4 = sigmoid(m{i}_1) + tanh(m{i}_2)")
        lines.append(f"m{i}_5 = tanh(m{i}_0) * tanh(m{i}_3)")
        lines.append(f"s{i + 1} = tanh(tanh(m{i}_4) * tanh(m{i}_5))")
    return "graph nasrnn {\n  " + "\n  ".join([*lines, "out s5"]) + "\n}\n"


GRAPHS = {"BERT": bert, "NasRNN": nasrnn}


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
    """Returns the seconds of the pass, and the row of its saturation."""
    found = json.loads(pwr("opt", graph, "-r", rules, "-p", name, "--stats", "--format", "json").stdout)
    return found["passes"][0]["time_s"], found["saturations"][0]


def library(folder):
    """Writes a file with a pass of all rules that `o2` tries on a decoder in fp8; returns their number."""
    graph = decoder(folder, 1, "fp8")
    stats = json.loads(pwr("opt", graph, "-r", "llm", "-p", "o2", "--stats", "--format", "json").stdout)
    names = sorted({row["rule"].split("#")[0].split("[")[0] for row in stats["rules"]})
    file = folder / "library.pwr"
    file.write_text(f'use "llm"\npass all = saturate {{ {", ".join(names)} }} cost bytes\n')
    return file, len(names)


class Report:
    def __init__(self):
        self.lines, self.bad = [], []

    def say(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def show(self, text, holds):
        self.say(f"* {text}: {'holds' if holds else '**does not hold**'}")
        if not holds:
            self.bad.append(text)


def gap(row):
    return "0" if row["gap"] == 0 else f"{100 * row['gap']:.3g} %"


def decoders(report, folder):
    rules, count = library(folder)
    report.say(f"## Decoders\n\n{count} rules of the library, cost `bytes`, medians of {ROUNDS} rounds in which the graphs take turns.\n")
    report.say("| layers | quant | before | greedy | cost | gap | stop | forms | time |\n|---:|---|---:|---:|---:|---:|---|---:|---:|")
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
            cells = [
                layers,
                quant,
                row["before"],
                row["greedy"],
                row["cost"],
                gap(row),
                row["stop"],
                row["forms"],
                f"{medians[quant, layers] * 1e3:.1f} ms",
            ]
            report.say(f"| {' | '.join(map(str, cells))} |")
    report.say()
    for quant in ("none", "fp8"):
        report.show(f"32 layers, {quant}: {medians[quant, 32]:.3f} s of {MOST_SECONDS} s", medians[quant, 32] <= MOST_SECONDS)
        ratio = medians[quant, 64] / medians[quant, 32]
        report.show(f"64 layers, {quant}: {ratio:.2f} times 32, of {MOST_RATIO}", ratio <= MOST_RATIO)


def endless(report, folder):
    rules, layer = folder / "endless.pwr", folder / "layer.pwg"
    rules.write_text(ENDLESS)
    layer.write_text(LAYER)
    runs = [saturated(layer, rules, "endless") for _ in range(ROUNDS)]
    seconds, row = statistics.median(seconds for seconds, _ in runs), runs[0][1]
    report.say("\n## Rules that never end\n\nOne layer with associativity and distributivity, of sums and of products.\n")
    report.show(
        f"{seconds:.2f} s of {MOST_ENDLESS} s; ended at `{row['stop']}`, cost {row['cost']} of {row['before']}, no form is below {row['bound']}",
        seconds <= MOST_ENDLESS and row["stop"] != "complete",
    )


def tensat(report, folder):
    rules = folder / "tensors.pwr"
    rules.write_text(TENSOR_RULES)
    report.say(
        "\n## Tensat\n\nSearch times as its authors publish them (Yang et al., MLSys 2021, arXiv 2101.01332), on another machine, and ours on two of its"
        " graphs, rebuilt, with rules of the same kinds: not the same rules, and another cost.\n"
    )
    report.say(
        "| graph | TASO | Tensat | Piecewise | nodes | forms | stop | cost before | greedy | cost | gap |\n|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|"
    )
    for name, (taso, published) in TENSAT.items():
        if name not in GRAPHS:
            report.say(f"| {name} | {taso} s | {published} s | no convolutions here | | | | | | | |")
            continue
        graph = folder / f"{name}.pwg"
        graph.write_text(GRAPHS[name]())
        nodes = json.loads(pwr("stats", graph, "--format", "json").stdout)["nodes"]
        runs = [saturated(graph, rules, "tensors") for _ in range(ROUNDS)]
        seconds, row = statistics.median(seconds for seconds, _ in runs), runs[0][1]
        cells = [
            name,
            f"{taso} s",
            f"{published} s",
            f"{seconds:.2f} s",
            nodes,
            row["forms"],
            row["stop"],
            row["before"],
            row["greedy"],
            row["cost"],
            gap(row),
        ]
        report.say(f"| {' | '.join(map(str, cells))} |")


def machine():
    return f"One thread of {os.cpu_count()} cores, {processor()}, load {os.getloadavg()[0]:.1f} when it began. Time of the pass, greedy and extraction included."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    report = Report()
    report.say(f"# Equality saturation\n\n{machine()}\n")
    with tempfile.TemporaryDirectory() as folder:
        for part in (decoders, endless, tensat):
            part(report, Path(folder))
    if arguments.output:
        arguments.output.write_text("\n".join(report.lines) + "\n")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
