#!/usr/bin/python3
"""Random programs with writes that are seen through other names: imported, optimised and run, against an interpreter that
has storages.

    check.py [--programs N] [--seed S] [--show SEED] [--torch]

--torch compares that interpreter with PyTorch itself instead.
"""
import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import storages  # noqa: E402
from programs import Program  # noqa: E402

REFUSED = 0.05  # of all programs at most


def expected(program):
    """Outputs, and the inputs after the program."""
    inputs = {n: storages.fresh(t.array, t.dtype) for n, t in program.start.items()}
    env = storages.run(program.calls, inputs)
    return [env[n] for n in program.outputs], inputs


def bits(tensor):
    """Returns the array that represents a tensor in Piecewise: bf16 is the upper half of the bits of f32."""
    if tensor.dtype == "bf16":
        return np.array(np.array(tensor.array, dtype=np.float32, order="C").view(np.uint32) >> 16, dtype=np.uint16)
    return np.array(tensor.array, order="C")  # of rank 0 too


def plain(array, dtype):
    if dtype == "bf16":
        return np.array(np.asarray(array).astype(np.uint32) << 16, dtype=np.uint32).view(np.float32)
    return np.asarray(array)


# Host functions: the ops of storages.py on arrays as Piecewise gives them.


def bound(target, returning):
    """`returning`: the new contents of what is written are results."""
    function, _, results = storages.CUSTOM[target]
    written = [(i, name) for i, (name, writes, *_) in enumerate(storages.arguments_of(target)) if writes]

    def call(*args, **kwargs):
        halves = []  # bf16 arrays, and the f32 ones that are written in their place

        def given(value):
            if isinstance(value, (list, tuple)):
                return [given(v) for v in value]
            if isinstance(value, np.ndarray) and value.dtype == np.uint16:
                halves.append((value, plain(value, "bf16")))
                return halves[-1][1]
            return value

        args, kwargs = [given(a) for a in args], {k: given(v) for k, v in kwargs.items()}
        result = function(*args, **kwargs)
        if returning:
            after = [kwargs[name] if name in kwargs else args[i] for i, name in written]
            return tuple(bits(storages.Tensor(r, "bf16")) if halves and r is not None else r for r in [result, *after])
        for kept, new in halves:
            kept[...] = bits(storages.Tensor(new, "bf16"))
        if not results:
            return None
        return bits(storages.Tensor(result, "bf16")) if halves else result

    return call


def functions(program):
    return {target: bound(target, program.returning.get(target, False)) for target in storages.CUSTOM}


class Piecewise:
    def __init__(self):
        import piecewise

        self.module = piecewise
        self.rules = piecewise.rules("llm")

    def load(self, program):
        return self.module.load(program.text())

    def run(self, graph, program):
        inputs = {n: bits(program.start[n]) for n, *_ in graph.inputs if n in program.start}
        return graph.run(inputs, functions=functions(program))


def differences(program, out):
    """Returns a description of each unexpected result."""
    outputs, inputs = expected(program)
    found = []
    if len(out) < len(outputs):
        return [f"{len(outputs)} outputs expected, {len(out)} given"]
    for i, (want, got) in enumerate(zip(outputs, out)):
        found += differing(f"output {i}, {program.outputs[i]}", want, got)
    written = getattr(out, "written", {})
    for n, want in inputs.items():
        changed = not np.array_equal(want.array, program.start[n].array)
        if n in written:
            found += differing(f"input {n} afterwards", want, written[n])
        elif changed:
            found.append(f"input {n} is written, and the graph does not say so")
    return found


def differing(what, want, got):
    got = plain(got, want.dtype)
    if got.shape != want.array.shape:
        return [f"{what}: shape {got.shape}, not {want.array.shape}"]
    if not np.array_equal(got, want.array):
        return [f"{what}: {got.reshape(-1)[:8]}…, not {want.array.reshape(-1)[:8]}…"]
    return []


def check(piecewise, program):
    """("ok" | "refused" | "wrong", the reason)."""
    error = piecewise.module.Error
    try:
        graph = piecewise.load(program)
    except error as reason:
        return "refused", f"import: {reason}"
    try:
        found = differences(program, piecewise.run(graph, program))
    except error as reason:
        return "refused", f"run: {reason}"
    except Exception as reason:  # noqa: BLE001: of a host function, which was called as it never should be
        return "wrong", f"{type(reason).__name__}: {reason}"
    if found:
        return "wrong", "; ".join(found)
    # What runs must also be optimised and run.
    try:
        found = differences(program, piecewise.run(graph.rewrite(piecewise.rules, "o2"), program))
    except error as reason:
        return "wrong", f"after o2: {reason}"
    return ("wrong", "after o2: " + "; ".join(found)) if found else ("ok", "")


def check_torch(program):
    import torch_mode

    outputs, inputs = expected(program)
    found = []
    got, after = torch_mode.run(program)
    named = [(f"output {i}", t) for i, t in enumerate(outputs)] + [(f"input {n} afterwards", t) for n, t in inputs.items()]
    for (what, want), (array, dtype) in zip(named, got + after):
        found += differing(what, storages.Tensor(want.array, "f32"), array)
        if dtype != want.dtype:
            found.append(f"{what}: {dtype}, not {want.dtype}")
    return ("wrong", "; ".join(found)) if found else ("ok", "")


def names_an_op(reason):
    return any(word in reason for word in ("aten.", "mylib.", "higher_order.", "op `"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the others follow")
    parser.add_argument("--show", type=int, metavar="SEED", help="print this program, and what comes out")
    parser.add_argument("--torch", action="store_true", help="compare the interpreter with PyTorch instead")
    arguments = parser.parse_args()
    piecewise = None if arguments.torch else Piecewise()
    one = check_torch if arguments.torch else lambda program: check(piecewise, program)
    if arguments.show is not None:
        program = Program(arguments.show)
        print(program.text())
        print(*one(program), sep=": ")
        return 0
    counts, reasons, nameless = Counter(), Counter(), []
    for seed in range(arguments.seed, arguments.seed + arguments.programs):
        verdict, reason = one(Program(seed))
        counts[verdict] += 1
        if verdict == "wrong":
            print(f"seed {seed}: {reason}"[:400])
        elif verdict == "refused":
            reasons[reason.splitlines()[0][:160]] += 1
            if not names_an_op(reason):
                nameless.append((seed, reason))
    for reason, count in reasons.most_common(20):
        print(f"refused {count}: {reason}")
    for seed, reason in nameless[:10]:
        print(f"seed {seed}: refused without the op: {reason}"[:400])
    print(
        f"seeds {arguments.seed} to {arguments.seed + arguments.programs - 1}: "
        f"{counts['ok']} as they should be, {counts['wrong']} wrong, {counts['refused']} refused"
    )
    if counts["wrong"] or nameless or counts["refused"] > REFUSED * arguments.programs:
        print("FAILED")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
