"""One-op graphs and small models through import and run, beside what PyTorch computes: with their types, without, and
after o2. Run by run.py."""
import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models  # noqa: E402
import one_op  # noqa: E402

import piecewise  # noqa: E402

# Where Piecewise means to give something else than PyTorch, or cannot.
NAMED = {"edges_gelu": "gelu of infinity is infinity; PyTorch says NaN", "nan_gelu": "gelu of infinity is infinity; PyTorch says NaN"}
BITS = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8}
ATOL = {torch.float32: 1e-5, torch.float64: 1e-9, torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float8_e4m3fn: 0.07}
# PyTorch's attention takes exponentials of bf16 and f16 by a short polynomial: its log-sums, in f32, are off by up to 5e-5, ours by 3e-7.
ROUGH = {f"attention{kind}_{dtype}": 1e-4 for kind in ("", "_causal", "_shared") for dtype in ("bf16", "f16")}


def given(tensor):
    tensor = tensor.detach().contiguous()
    return (tensor.view(BITS[tensor.dtype]) if tensor.dtype in BITS else tensor).numpy()


def taken(array, dtype):
    tensor = torch.from_numpy(np.array(array))
    return tensor.view(dtype) if dtype in BITS else tensor


def untyped(text):
    """Without the types of results: those of inputs must be known."""
    return re.sub(r'^(\s+\w+): "[^"]*" =', r"\1 =", text, flags=re.M)


def differing(expected, outputs, rough):
    """In words; `rough`: how far f32 numbers may be apart at least."""
    for (name, want), got in zip(expected, outputs):
        if not isinstance(want, torch.Tensor):
            continue
        got = np.asarray(got)
        if tuple(got.shape) != tuple(want.shape):
            return f"{name}: shape {tuple(got.shape)}, not {tuple(want.shape)}"
        if got.dtype != given(want).dtype:
            return f"{name}: {got.dtype}, not {want.dtype}"
        got = taken(got, want.dtype)
        atol = max(ATOL.get(want.dtype, 0), rough if want.dtype == torch.float32 else 0)
        if not torch.allclose(got.double(), want.double(), atol=atol, rtol=atol, equal_nan=True):
            return f"{name}: largest difference {(got.double() - want.double()).abs().max().item():.3g}"
    return ""


def run(text, inputs, expected, rules, rough=0):
    """("ok" | "refused" | "differs", the reason)."""
    for optimise in (False, True):
        try:
            graph = piecewise.load(text)
            if optimise:
                graph = graph.rewrite(rules, "o2")
            wanted = {n for n, *_ in graph.inputs}
            outputs = graph.run({n: given(x) for n, x in inputs.items() if n in wanted})
        except piecewise.Error as reason:
            return ("differs" if optimise else "refused"), str(reason).splitlines()[0][:200]
        except (TypeError, RuntimeError) as reason:  # a dtype that numpy lacks
            return "refused", str(reason).splitlines()[0][:200]
        if len(outputs) < len(expected):
            return "differs", f"{len(outputs)} outputs, not {len(expected)}"
        if found := differing(expected, outputs, rough):
            return "differs", ("after o2: " if optimise else "") + found
    return "ok", ""


def check(title, cases, rules, most_refused):
    """`cases`: (name, text, inputs, [(name, tensor)]). Whether all is well."""
    fine = True
    for form, change in (("with types", lambda text: text), ("without", untyped)):
        counts = Counter()
        for name, text, inputs, expected in cases:
            verdict, reason = run(change(text), inputs, expected, rules, ROUGH.get(name, 0))
            if verdict == "differs" and name in NAMED:
                verdict, reason = "named", NAMED[name]
            counts[verdict] += 1
            if verdict != "ok":
                print(f"  {name}: {verdict}: {reason}")
        print(
            f"{title} {form}: of {len(cases)} {counts['ok']} agree with PyTorch, {counts['named']} differ as named, "
            f"{counts['refused']} refused, {counts['differs']} differ",
            flush=True,
        )
        fine = fine and counts["differs"] == 0 and counts["refused"] <= most_refused
    return fine


def own_cases():
    for name, (function, inputs) in one_op.all_cases().items():
        text, named, expected = one_op.dumped(function, inputs)
        yield name, text, named, list(expected.items())


def other_cases(script, folder):
    """Reads the cases of another script: one folder each, with op.fx.txt and its tensors."""
    from safetensors.torch import load_file

    subprocess.run([sys.executable, str(script), str(folder)], check=True, stdout=subprocess.DEVNULL)
    for place in sorted(p for p in Path(folder).iterdir() if p.is_dir()):
        text = (place / "op.fx.txt").read_text()
        expected = load_file(place / "op.expect.safetensors")
        names = [n.strip() for n in re.findall(r"return \(?(.*?),?\)?$", text, re.M)[-1].split(",")]
        yield place.name, text, load_file(place / "op.weights.safetensors"), [(n, expected.get(n)) for n in names if n]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path)
    arguments = parser.parse_args()
    rules = piecewise.rules("llm")
    fine = check("one-op graphs", list(own_cases()), rules, most_refused=2)
    fine = check("small models", list(models.dumped()), rules, most_refused=0) and fine
    if arguments.cases:
        with tempfile.TemporaryDirectory() as folder:
            fine = check(f"{arguments.cases.name}", list(other_cases(arguments.cases, folder)), rules, most_refused=3) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
