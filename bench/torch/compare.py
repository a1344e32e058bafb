#!/usr/bin/env python3
"""Compares models through torch.compile: eager, Inductor, ONNX Runtime and Piecewise in one process, with alternating calls.

compare.py [--models NAME …] [--dtypes f32 bf16] [--threads N …] [--seconds S] [--output FILE]
compare.py --profile [--frozen] […]       a table of times by class of op, which names the largest loss of each model

Inductor and Piecewise are measured twice: as they are, and frozen, with weights in a form of their own, as ONNX Runtime always keeps them. Each model, dtype,
and number of threads has five processes: each peer's compilation with empty caches, each again with the caches of the first, and one with timed calls. A page
named by --output is written after each; of the part for this processor, other rows are kept, and so are other parts. A run of all models also compares pattern
matchers. Exit codes: 0 ok, 1 numbers differ, 77 PyTorch is missing.
"""
import argparse
import datetime
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/torch"))
import op_classes  # noqa: E402
from pages import part_of, processor, with_part  # noqa: E402
from run import SKIPPED, torch_python  # noqa: E402

MODELS = ["gpt2", "llama", "bert", "resnet50", "vit", "whisper", "llama_decode", "vit_tiny", "qwen3_moe", "mobilenetv3", "resnet18"]
TIMES = ["eager", "inductor", "inductor frozen", "onnxruntime", "piecewise", "piecewise frozen"]
RATIOS = [
    ("piecewise", "eager"),
    ("piecewise", "inductor"),
    ("piecewise frozen", "inductor frozen"),
    ("piecewise frozen", "onnxruntime"),
    ("piecewise frozen", "piecewise"),
]
COLUMNS = [
    *("model", "dtype", "threads", "day", "ops taken", "eager", "Inductor", "frozen", "ONNX Runtime", "Piecewise", "frozen"),
    *("× eager", "× Inductor", "frozen × frozen", "frozen × ONNX Runtime", "frozen × Piecewise"),
    *("compile: Inductor", "Piecewise", "warm: Inductor", "Piecewise", "notes"),
]
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


def ratio(row, name, peer):
    """Returns the peer's time divided by that of `name`: above 1 `name` is faster."""
    seconds = row.get("seconds", {})
    return seconds[peer] / seconds[name] if peer in seconds and name in seconds else None


def cell(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def line(row):
    cells = [row["model"], row["dtype"], row["threads"], row["day"]]
    if "failed" in row:
        cells += [row["failed"], *[""] * (len(COLUMNS) - len(cells) - 1)]
    else:
        cells.append(f"{row['taken']} of {row['ops']}")
        cells += [cell(row["seconds"].get(peer) and row["seconds"][peer] * 1e3) for peer in TIMES]
        cells += [cell(ratio(row, *names)) for names in RATIOS]
        cells += [cell(row[state].get(peer), "{:.1f}") for state in ("cold", "warm") for peer in ("inductor", "piecewise")]
        cells.append(row["notes"])
    return "| " + " | ".join(str(one).replace("|", "/") for one in cells) + " |"


def row_of(text):
    """Returns the row that a line of a page shows, or None."""
    cells = [one.strip() for one in text.strip().removeprefix("|").removesuffix("|").split("|")]
    if len(cells) != len(COLUMNS) or not re.fullmatch(r"\d{4}-\d\d-\d\d", cells[3]):
        return None
    row = {"model": cells[0], "dtype": cells[1], "threads": int(cells[2]), "day": cells[3]}
    counts = re.fullmatch(r"(\d+) of (\d+)", cells[4])
    if not counts:
        return row | {"failed": cells[4]}
    numbers = [float(one) if one else None for one in cells[5:-1]]
    times = {peer: ms / 1e3 for peer, ms in zip(TIMES, numbers) if ms is not None}
    states = {state: dict(zip(("inductor", "piecewise"), numbers[at : at + 2])) for state, at in (("cold", 11), ("warm", 13))}
    return row | {"taken": int(counts[1]), "ops": int(counts[2]), "seconds": times, "notes": cells[-1]} | states


def key_of(row):
    return row["dtype"], row["threads"], MODELS.index(row["model"]) if row["model"] in MODELS else len(MODELS), row["model"]


def mean(values):
    values = [value for value in values if value]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


def verdict(whole):
    """Returns the requirements on the counted rows, and whether they hold."""

    def least(what, bound, names):
        found, row = min(((ratio(row, *names), row) for row in whole), key=lambda pair: pair[0])
        return f"{what}, none below {bound}: {found:.2f} ({row['model']}, {row['dtype']}, {row['threads']} threads)", found >= bound

    def average(what, bound, names):
        of = mean(ratio(row, *names) for row in whole)
        return f"{what}, in the mean at least {bound}: {of:.3f}", of >= bound

    compile_ratio = mean(row["cold"]["inductor"] / row["cold"]["piecewise"] for row in whole if all(row["cold"].values()))
    eager, inductor, frozen, onnxruntime, itself = RATIOS
    requested = [
        least("Piecewise × eager", 1, eager),
        least("Piecewise × Inductor", 0.95, inductor),
        average("Piecewise × Inductor", 1.1, inductor),
        least("frozen × Inductor frozen", 0.95, frozen),
        average("frozen × Inductor frozen", 1.1, frozen),
        average("frozen × ONNX Runtime", 1, onnxruntime),
        least("frozen × Piecewise", 0.97, itself),
        (f"Inductor's compile time ÷ Piecewise's, in the mean at least 5: {compile_ratio:.2f}", compile_ratio >= 5),
    ]
    return [f"* {'holds' if holds else '**falls short**'}: {what}" for what, holds in requested]


def table(rows, version):
    whole = [row for row in rows if "seconds" in row and row["taken"] >= 0.95 * row["ops"]]
    lines = [
        f"## {processor()}",
        "",
        f"PyTorch {version} in the newest row. Random weights, batch 1; times of a call are medians of calls that took turns, in ms. × is the peer's time over that of",
        "Piecewise, so above 1 Piecewise is faster. Frozen: weights are kept in a form of the peer's own, by Inductor's option `freezing` and Piecewise's `frozen`; ONNX",
        "Runtime always does so. Compile and warm are seconds to the first result, not frozen, with empty caches and with what an earlier process has left in",
        "them, each in a process of its own.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
        *map(line, rows),
    ]
    if whole:
        lines += ["", f"Of the {len(whole)} rows with at least 95 % of the ops taken:", "", *verdict(whole)]
    return "\n".join(lines) + "\n"


def rows_of(page):
    """Returns the rows of the part of a page for this processor."""
    return [row for row in map(row_of, part_of(page, processor()).splitlines()) if row]


def profile(python, arguments, requested):
    """Prints the times of each model by class of op. Returns 1 if one has failed."""
    rows = []
    with tempfile.TemporaryDirectory() as caches:
        for words in requested:
            rows.append(run(python, arguments.build, caches, *words, "profile", *(["frozen"] if arguments.frozen else [])))
            if "failed" in rows[-1]:
                print(f"{words[0]}: {rows[-1]['failed']}", file=sys.stderr)
    text = op_classes.table([row for row in rows if "failed" not in row])
    print(text)
    if arguments.output:
        arguments.output.write_text("# Times by class of op\n\nMilliseconds of a call, by `compare.py --profile`.\n\n" + text, encoding="utf-8")
    return 1 if any("failed" in row for row in rows) else 0


def measured(python, arguments, words):
    """Returns the row of a model, dtype, and number of threads."""
    with tempfile.TemporaryDirectory() as caches:
        cold, warm = (
            {peer: run(python, arguments.build, caches, *words, peer).get("seconds") for peer in ("inductor", "piecewise")} for _ in range(2)
        )
        row = {"model": words[0], "dtype": words[1], "threads": int(words[2]), "day": str(datetime.date.today()), "cold": cold, "warm": warm}
        return row | run(python, arguments.build, caches, *words, str(arguments.seconds))


def matchers(python, build):
    """Returns the part of the page on pattern matching, and whether the bench ran."""
    with tempfile.TemporaryDirectory() as caches:
        words = [str(python), str(ROOT / "bench/torch/matcher.py")]
        done = subprocess.run(words, env=environment_of(build, caches, "1"), capture_output=True, text=True)
    return "## Pattern matching\n\n" + (done.stdout or done.stderr[-200:]), done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS)
    parser.add_argument("--dtypes", nargs="+", default=["f32"], choices=list(WRONG))
    parser.add_argument("--profile", action="store_true", help="print times by class of op instead")
    parser.add_argument("--frozen", action="store_true", help="the profile of frozen models")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=30, help="of calls, for a model and number of threads")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--env", type=Path, default=ROOT / "build/torch-env")
    parser.add_argument("--base", default="/usr/bin/python3")
    parser.add_argument("--output", type=Path, help="a page, of which the part for this processor is replaced")
    arguments = parser.parse_args()
    python, version = torch_python(arguments.env, arguments.base)
    if python is None:
        print(f"SKIPPED: no PyTorch: {version}", file=sys.stderr)
        return SKIPPED
    names = arguments.models or MODELS
    requested = [(name, dtype, str(threads)) for threads in arguments.threads for dtype in arguments.dtypes for name in names]
    if arguments.profile:
        return profile(python, arguments, requested)
    page = arguments.output.read_text(encoding="utf-8") if arguments.output and arguments.output.exists() else "# Models through torch.compile\n\n"
    rows, wrong = rows_of(page), []
    for words in requested:
        row = measured(python, arguments, words)
        print(line(row), file=sys.stderr, flush=True)
        wrong += [
            f"{row['model']}: {peer} is {error:.2g} from eager" for peer, error in row.get("error", {}).items() if not error < WRONG[row["dtype"]]
        ]
        rows = sorted([one for one in rows if key_of(one) != key_of(row)] + [row], key=key_of)
        page = with_part(page, table(rows, version))
        if arguments.output:
            arguments.output.write_text(page, encoding="utf-8")
    print(table(rows, version))
    if not arguments.models:
        matching, matched = matchers(python, arguments.build)
        print(matching)
        wrong += [] if matched else ["matcher.py"]
        if arguments.output:
            arguments.output.write_text(with_part(page, matching), encoding="utf-8")
    for one in wrong:
        print(f"WRONG: {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
