#!/usr/bin/env python3
"""Runs one graph on Inductor, timed on request: `peer.py CASE FOLDER`.

Reads FOLDER/tensors.json and the tensors it names, and compiles each function of the case with each set of options. Prints a line of JSON for each with the
differences of its outputs, and finally one with versions. After that, each line `I N` on standard input runs variant I N times and prints the processor time of
one run in seconds.

It times the function `call` of the module that Inductor wrote: no guards of Dynamo, no dispatch. It allocates its outputs from retained memory.
"""
import json
import sys
import time
from pathlib import Path

import torch
import torch._dynamo
from torch._inductor.codecache import PyCodeCache
from torch._inductor.compile_fx import compile_fx
from torch._inductor.cpu_vec_isa import pick_vec_isa

import graphs

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32, "f8e4m3": torch.float8_e4m3fn, "i64": torch.int64}
OPTIONS = {"default": {}, "fast math": {"cpp.enable_unsafe_math_opt_flag": True, "cpp.enable_floating_point_contract_flag": "fast"}}
# Tolerance per element, in units of its dtype's last place, at its size and that of its tensor.
EPSILON = {torch.bfloat16: 2.0**-8, torch.float32: 2.0**-23}
MOST = {torch.bfloat16: 2.0, torch.float32: 32.0}


def load(folder, described):
    data = bytearray((folder / described["file"]).read_bytes())
    return torch.frombuffer(data, dtype=DTYPES[described["dtype"]]).reshape(described["shape"]).clone()


def steps(x):
    """Returns fp8 numbers as ordinals, so that neighbours differ by one."""
    bits = x.view(torch.uint8).to(torch.int32)
    return torch.where(bits >= 128, 128 - bits, bits)


def difference(got, expected):
    """Returns None if the tensors agree, else the difference in words."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype} {tuple(got.shape)} instead of {expected.dtype} {tuple(expected.shape)}"
    if got.dtype == torch.float8_e4m3fn:
        off = (steps(got) - steps(expected)).abs()
        share = (off > 0).double().mean().item()
        if off.max().item() > 1 or share > 0.01:
            return f"fp8 off by up to {off.max().item()} steps, {share:.2%} differ"
        return None
    a, b, epsilon = got.double(), expected.double(), EPSILON[got.dtype]
    if not torch.isfinite(a).all():
        return "not finite"
    rms = b.square().mean().sqrt()
    # Sums of thousands of terms in another order, and the dtype's rounding of a value and of its inputs.
    far = ((a - b).abs() / (epsilon * (b.abs() + rms))).max().item()
    return f"off by {far:.1f} epsilon" if far > MOST[got.dtype] else None


def compiled(function, options, inputs):
    """Returns the `call` of the only module written for the function, and its arguments in its order."""
    taken = []

    def backend(graph, examples):
        inner = compile_fx(graph, examples, config_patches=options)

        def run(*arguments):
            taken.append(arguments)
            return inner(*arguments)

        return run

    torch._dynamo.reset()
    before = len(PyCodeCache.modules)
    torch.compile(function, fullgraph=True, dynamic=False, backend=backend)(*inputs)
    written = [module for module in PyCodeCache.modules[before:] if hasattr(module, "call")]
    if len(written) != 1:
        raise RuntimeError(f"Inductor wrote {len(written)} modules")
    return written[0].call, taken[0]


def variants(case, folder):
    described = json.loads((folder / "tensors.json").read_text())
    inputs = [load(folder, d) for d in described["inputs"]]
    expected = [load(folder, d) for d in described["outputs"]]
    calls = []
    for function in case.functions:
        for name, options in OPTIONS.items():
            line = {"function": function.__name__, "options": name}
            try:
                call, arguments = compiled(function, options, inputs)
                outputs = call(list(arguments))
                line["wrong"] = [w for w in map(difference, outputs, expected) if w]
                if len(outputs) != len(expected):
                    line["wrong"] = [f"{len(outputs)} outputs instead of {len(expected)}"]
            except Exception as error:  # any error of the compiler is reported
                call, arguments = None, ()
                line["wrong"] = [str(error).strip().splitlines()[0][:160]]
            calls.append((call, arguments))
            print(json.dumps(line), flush=True)
    print(json.dumps({"torch": torch.__version__, "isa": str(pick_vec_isa())}), flush=True)
    return calls


def main():
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    case = next(c for c in graphs.CASES if c.name == sys.argv[1])
    calls = variants(case, Path(sys.argv[2]))
    for line in sys.stdin:
        index, runs = map(int, line.split())
        call, inputs = calls[index]
        start = time.process_time()
        for _ in range(runs):
            call(list(inputs))
        print((time.process_time() - start) / runs, flush=True)


if __name__ == "__main__":
    main()
