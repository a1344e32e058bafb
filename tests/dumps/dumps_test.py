#!/usr/bin/python3
"""Runs PyTorch's dumps on stored inputs: with and without types, the interpreter and eager compute PyTorch's numbers.

make_cases.py, which needs PyTorch, writes cases.jsonl; this test needs only the stored results.

    dumps_test.py [NAME…]     only the cases whose names hold one of these
"""
import json
import re
import sys
from pathlib import Path

import numpy as np

import piecewise

CASES = Path(__file__).resolve().with_name("cases.jsonl")
NUMPY = {"b8": "bool", "i8": "i1", "u8": "u1", "i32": "i4", "i64": "i8", "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8", "f8e4m3": "u1"}
TOLERANCES = {"f32": 1e-5, "f64": 1e-9, "bf16": 2e-2, "f16": 2e-3}


def array_of(tensor):
    return np.frombuffer(bytes.fromhex(tensor["bytes"]), "<" + NUMPY[tensor["dtype"]] if tensor["dtype"] != "b8" else bool).reshape(tensor["shape"])


def numbers_of(array, dtype):
    if dtype == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array if array.dtype.kind in "iub" else array.astype(np.float64)


def untyped(text):
    return re.sub(r'^(\s+\w+): "[^"]*" =', r"\1 =", text, flags=re.M)


def difference(case, text, backend):
    """Returns the faults; empty if there are none."""
    try:
        graph = piecewise.load(text)
        names = {name for name, *_ in graph.inputs}
        outputs = list(graph.run({k: array_of(v) for k, v in case["inputs"].items() if k in names}, backend=backend))
    except piecewise.Error as reason:
        return str(reason)
    if len(outputs) != len(case["outputs"]):
        return f"{len(outputs)} outputs, not {len(case['outputs'])}"
    for i, (wanted, got) in enumerate(zip(case["outputs"], outputs)):
        right, dtype = array_of(wanted), wanted["dtype"]
        if got.shape != right.shape or got.dtype != right.dtype:
            return f"output {i} is {got.dtype}{got.shape}, not {right.dtype}{right.shape}"
        a, b, by = numbers_of(got, dtype), numbers_of(right, dtype), TOLERANCES.get(dtype)
        if not (np.array_equal(a, b) if by is None else np.allclose(a, b, rtol=by, atol=by, equal_nan=True)):
            return f"output {i} is {a.flatten()[:8].tolist()}, not {b.flatten()[:8].tolist()}"
    return ""


def main():
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    chosen = [case for case in cases if not sys.argv[1:] or any(part in case["name"] for part in sys.argv[1:])]
    wrong = 0
    for case in chosen:
        for form, text in (("with types", case["text"]), ("without", untyped(case["text"]))):
            for backend in ("interpreter", "eager") if form == "with types" else ("eager",):
                if found := difference(case, text, backend):
                    print(f"{case['name']} {form} on {backend}: {found}")
                    wrong += 1
    print(f"{len(chosen)} dumps, {wrong} wrong")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
