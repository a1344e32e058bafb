#!/usr/bin/env python3
"""Compares models through torch.compile: eager, Inductor, ONNX Runtime and Piecewise in one process, with alternating calls.

compare.py [--models NAME …] [--dtypes f32 bf16] [--threads N …] [--seconds S] [--open] [--output FILE]
compare.py --profile […]                  a table of times by class of op, which names the largest loss of each model

Inductor and Piecewise may keep weights in a form of their own, as ONNX Runtime always does: Inductor's `freezing`, Piecewise's `frozen`; with --open neither
does. Each model and number of threads has five processes: each peer's compilation with empty caches, each again with the caches of the first, and one with
timed calls. --output keeps the parts of other processors. Exit codes: 0 ok, 1 numbers differ, 77 PyTorch is missing.
"""
import argparse
import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/torch"))
import op_classes  # noqa: E402
from run import SKIPPED, torch_python  # noqa: E402

NAMES = ["gpt2", "llama", "bert", "resnet50", "vit", "whisper"]  # by default
SMALLER = ["llama_decode", "vit_tiny", "qwen3_moe", "mobilenetv3", "resnet18"]
WRONG = {"f32": 1e-3, "bf16": 3e-2}  # relative RMS error


def environment_of(build, caches, threads):
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (build / "python", ROOT / "python"))),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHINDUCTOR_CACHE_DIR": caches + "/inductor",
        "PWR_CACHE_DIR": caches + "/piecewise",
        "OMP_NUM_THREADS": threads,
    }


def run(python, build, caches, *words):
    environment = environment_of(build, caches, words[2])
    done = subprocess.run([str(python), str(ROOT / "bench/torch/one.py"), *words], env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def ratio(row, peer):
    """Returns the peer's time divided by Piecewise's: above 1 Piecewise is faster."""
    seconds = row.get("seconds", {})
    return seconds[peer] / seconds["piecewise"] if peer in seconds and "piecewise" in seconds else None


def cell(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def line(row):
    if "failed" in row:
        return f"| {row['model']} | {row['dtype']} | {row['threads']} | {row['failed']} |" + " |" * 11
    seconds, cold, warm = row["seconds"], row["cold"], row["warm"]
    cells = [row["model"], row["dtype"], row["threads"], f"{row['taken']} of {row['ops']}"]
    cells += [cell(seconds.get(peer) and seconds[peer] * 1e3, "{:.1f}") for peer in ("eager", "inductor", "onnxruntime", "piecewise")]
    cells += [cell(ratio(row, peer)) for peer in ("eager", "inductor", "onnxruntime")]
    cells += [cell(cold.get(peer), "{:.1f}") for peer in ("inductor", "piecewise")]
    cells += [cell(warm.get(peer), "{:.1f}") for peer in ("inductor", "piecewise")]
    return "| " + " | ".join(map(str, cells)) + " |"


def mean(values):
    values = [value for value in values if value]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def verdict(whole):
    """Returns the requirements on the counted rows, and whether they hold."""
    least = min(whole, key=lambda row: ratio(row, "inductor") or math.inf, default=None)
    of = {peer: mean(ratio(row, peer) for row in whole) or 0 for peer in ("inductor", "onnxruntime")}
    slowest = ratio(least, "inductor") or 0 if least else 0
    slowest_eager = min((ratio(row, "eager") or 0 for row in whole), default=0)
    named = f" ({least['model']}, {least['dtype']}, {least['threads']} threads)" if least else ""
    requested = [
        (f"{len({row['model'] for row in whole})} models count, of at least 5", len({row["model"] for row in whole}) >= 5),
        (f"{of['inductor']:.3f} × Inductor, of at least 1.1", of["inductor"] >= 1.1),
        (f"none below 0.95 × Inductor: {slowest:.2f}{named}", slowest >= 0.95),
        (f"none below 1 × eager: {slowest_eager:.2f}", slowest_eager >= 1),
        (f"{of['onnxruntime']:.3f} × ONNX Runtime, of at least 1", of["onnxruntime"] >= 1),
    ]
    return [f"* {'holds' if holds else '**falls short**'}: {what}" for what, holds in requested]


def processor():
    """Returns the name, family, and model of the processor, and the number of cores."""
    words = dict(map(str.strip, line.split(":", 1)) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    numbers = ", ".join(f"{key} {words[name]}" for key, name in (("family", "cpu family"), ("model", "model")) if name in words)
    name = words.get("model name", platform.machine())
    return f"{name}{f' ({numbers})' if numbers else ''}, {os.cpu_count()} cores"


def with_part(page, part):
    """Returns a page with a part, in place of the part with the same title if there is one."""
    head, *parts = re.split(r"^(?=## )", page, flags=re.M)
    title = part.partition("\n")[0]
    at = next((i for i, one in enumerate(parts) if one.partition("\n")[0] == title), len(parts))
    parts[at : at + 1] = [part.rstrip() + "\n\n"]
    return (head + "".join(parts)).rstrip() + "\n"


def table(rows, version, frozen):
    whole = [row for row in rows if "seconds" in row and row["taken"] >= 0.95 * row["ops"]]
    lines = [
        f"## {processor()}",
        "",
        f"PyTorch {version}, {datetime.date.today()}. Random weights, batch 1; times of a call are medians of calls that",
        "took turns, in ms; × is the peer's time over Piecewise's, so above 1 Piecewise is faster. Compile and warm are seconds to the first result, with empty",
        "caches and with what an earlier process has left in them, each in a process of its own. "
        + (
            "All three keep weights in a form of their own: Inductor by its option `freezing`, Piecewise by `frozen`, ONNX Runtime always."
            if frozen
            else "Inductor and Piecewise read the weights at each call; ONNX Runtime keeps them in a form of its own."
        ),
        "",
        "| model | dtype | threads | ops taken | eager | Inductor | ONNX Runtime | Piecewise | × eager | × Inductor | × ONNX Runtime | compile: Inductor | Piecewise "
        "| warm: Inductor | Piecewise |",
        "|---" * 15 + "|",
        *map(line, rows),
        "",
        f"Geometric means over the {len(whole)} rows with at least 95 % of the ops taken: "
        + ", ".join(f"{cell(mean(ratio(row, peer) for row in whole))} × {peer}" for peer in ("eager", "inductor", "onnxruntime"))
        + f"; compile {cell(mean(row['cold']['inductor'] / row['cold']['piecewise'] for row in whole))} × Inductor's speed.",
    ]
    lines += ["", *verdict(whole)]
    for row in rows:
        if row.get("left"):
            lines.append(f"\n{row['model']}: left to PyTorch: {', '.join(f'{n} × {op}' for op, n in row['left'].items())}")
        if row.get("onnxruntime"):
            lines.append(f"\n{row['model']}: ONNX Runtime: {row['onnxruntime']}")
    return "\n".join(lines) + "\n"


def profile(python, arguments, requested):
    """Prints the times of each model by class of op. Returns 1 if one has failed."""
    rows = []
    with tempfile.TemporaryDirectory() as caches:
        for words in requested:
            rows.append(run(python, arguments.build, caches, *words, "0", "0" if arguments.open else "1", "profile"))
            if "failed" in rows[-1]:
                print(f"{words[0]}: {rows[-1]['failed']}", file=sys.stderr)
    text = op_classes.table([row for row in rows if "failed" not in row])
    print(text)
    if arguments.output:
        arguments.output.write_text("# Times by class of op\n\nMilliseconds of a call, by `compare.py --profile`.\n\n" + text, encoding="utf-8")
    return 1 if any("failed" in row for row in rows) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=NAMES + SMALLER)
    parser.add_argument("--dtypes", nargs="+", default=["f32"], choices=list(WRONG))
    parser.add_argument("--profile", action="store_true", help="print times by class of op instead; by default of the smaller models too")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=30, help="of calls, for a model and number of threads")
    parser.add_argument("--open", action="store_true", help="nobody but ONNX Runtime keeps weights in a form of its own")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--env", type=Path, default=ROOT / "build/torch-env")
    parser.add_argument("--base", default="/usr/bin/python3")
    parser.add_argument("--output", type=Path, help="a page, of which the part for this processor is replaced")
    arguments = parser.parse_args()
    python, version = torch_python(arguments.env, arguments.base)
    if python is None:
        print(f"SKIPPED: no PyTorch: {version}", file=sys.stderr)
        return SKIPPED
    names = arguments.models or (NAMES + SMALLER if arguments.profile else NAMES)
    requested = [(name, dtype, str(threads)) for threads in arguments.threads for dtype in arguments.dtypes for name in names]
    if arguments.profile:
        return profile(python, arguments, requested)
    rows, wrong = [], []
    for name, dtype, threads in requested:
        with tempfile.TemporaryDirectory() as caches:
            words = (name, dtype, threads, str(arguments.seconds), "0" if arguments.open else "1")
            cold, warm = (
                {peer: run(python, arguments.build, caches, *words, peer).get("seconds") for peer in ("inductor", "piecewise")} for _ in range(2)
            )
            row = {"model": name, "dtype": dtype, "threads": threads, "cold": cold, "warm": warm} | run(python, arguments.build, caches, *words)
        rows.append(row)
        print(line(row), file=sys.stderr, flush=True)
        wrong += [f"{name}: {peer} is {error:.2g} from eager" for peer, error in row.get("error", {}).items() if not error < WRONG[dtype]]
    text = table(rows, version, not arguments.open)
    with tempfile.TemporaryDirectory() as caches:
        matcher = [str(python), str(ROOT / "bench/torch/matcher.py")]
        done = subprocess.run(matcher, env=environment_of(arguments.build, caches, "1"), capture_output=True, text=True)
    matching = "## Pattern matching\n\n" + (done.stdout or done.stderr[-200:])
    wrong += ["matcher.py"] if done.returncode else []
    print(text + "\n" + matching)
    if arguments.output:
        page = arguments.output.read_text(encoding="utf-8") if arguments.output.exists() else "# Models through torch.compile\n\n"
        arguments.output.write_text(with_part(with_part(page, text), matching), encoding="utf-8")
    for one in wrong:
        print(f"WRONG: {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
