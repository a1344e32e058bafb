#!/usr/bin/env python3
"""Random functions through torch.compile, compared with PyTorch at two sizes. Run by run.py.

    functions.py [--seed N] [--count N] [--backend NAME] [--device] [--show]

Each function has 4 to 16 statements and tensors of many dtypes and memory layouts, and a Python number that changes between calls. A statement is
kept if PyTorch runs it at both sizes. Some functions are also differentiated. Long functions amplify rounding, so each also runs in PyTorch with random
errors of one unit in the last place after each op, and with PyTorch's own decompositions: results may differ from PyTorch's by a few times as much.
A function that differs is printed without the statements that do not matter. Exit code 1 if one differs.
"""
import argparse
import contextlib
import linecache
import random
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import piecewise.pytorch  # noqa: E402, F401
from random_statements import A_, B_, F_, FLOATS, OPS, WHOLE, WRITES  # noqa: E402

SIZES = (5, 8)  # of n in the two kinds of calls
CALLS = (0, 1, 0)
ELEMENTS = 20000
SPECIAL = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1.0, -1.0, 0.5, 2.5, 1e-40, 3e38, 65504.0)
NOISY = 6  # runs with random errors
LAYOUTS = (
    "{}",
    "{}.transpose(0, -1).contiguous().transpose(0, -1)",
    "torch.stack([{0}, {0}], -1)[..., 1]",
    "torch.cat([{0}, {0}], 0)[{0}.shape[0]:]",
    "{}.flip(0)",
)


NUMBERS = ("0", "1", "2", "-1", "3", "-3", "7", "0.5", "-2.5", "2.0", "True", "1e-3", "100", "-129", "300")
SCALARS = ((2, 3), (0.5, -1.5), (1, 2.5), (True, False), (-1, 0), (3, 1))


def is_kind(tensor, kind):
    if kind == A_:
        return True
    if kind == F_:
        return tensor.is_floating_point()
    return tensor.dtype == torch.bool if kind == B_ else not tensor.is_floating_point() and tensor.dtype != torch.bool


class Errors(TorchDispatchMode):
    """Adds errors of one unit in the last place to inexact results."""

    PURE = (
        "view",
        "reshape",
        "slice",
        "clone",
        "cat",
        "where",
        "gather",
        "index",
        "flip",
        "roll",
        "constant_pad",
        "full",
        "sort",
        "topk",
        "abs",
        "neg",
    )

    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.eps = 0.0  # the largest of the dtypes

    # Errors of their terms may exceed those of their results, where terms cancel.
    SUMS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "addbmm", "addr", "dot", "convolution", "linear", "sum", "mean", "cumsum")

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        name = op._schema.name.split("::")[1].split("_backward")[0]
        if name in self.SUMS:
            args = tuple(self.moved(x) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in args)
        result = op(*args, **(kwargs or {}))
        if any(r.alias_info for r in op._schema.returns) or name.startswith(self.PURE):
            return result
        for part in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(part, torch.Tensor) and part.is_floating_point() and part.numel() and part.layout == torch.strided:
                self.eps = max(self.eps, torch.finfo(part.dtype).eps)
                part.copy_(self.moved(part))
        return result

    def moved(self, x):
        """Returns a copy with errors; small whole numbers stay."""
        whole = (x == x.round()) & (x.abs() < 2048)
        drawn = torch.rand(x.shape, generator=self.generator, dtype=torch.float64) * 2 - 1
        return torch.where(whole | ~x.isfinite(), x.double(), x.double() * (1 + drawn * torch.finfo(x.dtype).eps)).to(x.dtype)


class RandomFunction:
    """A function as text, and the arguments that it is called with."""

    def __init__(self, seed, least=4, most=16):
        self.random = random.Random(seed)
        self.seed, self.lines, self.results = seed, [], []
        self.scalars = self.random.choice(SCALARS)
        self.grad = self.random.random() < 0.4
        self.kinds = [self.argument() for _ in range(self.random.randint(1, 3))]
        self.grow(self.random.randint(least, most))

    def argument(self):
        pick = self.random
        dtype = pick.choice(FLOATS[:2] * 3 + FLOATS + WHOLE + ("int64", "bool"))
        shape = pick.choice((("n", 4), ("n", 6), (4, "n"), ("n", "n"), ("n",), (3, "n", 4), ("n", 1), (1, "n"), (2, 3, "n")))
        return dtype, shape, pick.choice(LAYOUTS[:1] * 4 + LAYOUTS), pick.choice(("plain",) * 5 + ("special", "small", "ends"))

    def arguments(self, call):
        """Returns the tensors of call 0 or 1."""
        draw = torch.Generator().manual_seed(self.seed * 2 + call)
        out = []
        for dtype, shape, layout, values in self.kinds:
            dtype, shape = getattr(torch, dtype), [SIZES[call] if extent == "n" else extent for extent in shape]
            x = torch.randn(shape, generator=draw, dtype=torch.float64) * 2
            if values == "small":
                x = x.round()
            elif values == "special" and dtype.is_floating_point:
                places = torch.randint(0, 3 * len(SPECIAL), shape, generator=draw)
                x = torch.where(places < len(SPECIAL), torch.tensor(SPECIAL, dtype=torch.float64)[places % len(SPECIAL)], x)
            if dtype.is_floating_point:
                x = x.to(dtype)
            elif dtype == torch.bool:
                x = x > 0
            else:
                info = torch.iinfo(dtype)
                x = (x * 3).round().clamp(info.min, info.max).to(dtype)
                if values == "ends":
                    x = torch.where(torch.randint(0, 3, shape, generator=draw) == 0, torch.tensor([info.min, info.max])[x.long() % 2].to(dtype), x)
            out.append(eval(layout.format("x"), {"x": x, "torch": torch}))
        return out

    def names(self):
        return [f"x{i}" for i in range(len(self.kinds))]

    def text(self, lines=None, outputs=None):
        lines = self.lines if lines is None else lines
        outputs = self.results if outputs is None else outputs
        return "\n    ".join([f"def f({', '.join(self.names())}, s):", *(line for _, line in lines), f"return {', '.join(outputs)},"])

    def function(self, lines=None, outputs=None):
        text = self.text(lines, outputs)
        space, name = {"torch": torch, "F": F}, f"<function {self.seed} {hash(text)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), space)
        return space["f"]

    def runs(self, pools, line, target):
        """Runs a statement at both sizes; returns True if PyTorch does, with results of moderate size."""
        for call, pool in enumerate(pools):
            space = {"torch": torch, "F": F, "s": self.scalars[call], **pool}
            try:
                exec(line, space)
            except Exception:
                return False
            value = space[target]
            fits = isinstance(value, torch.Tensor) and 0 < value.numel() <= ELEMENTS and value.ndim <= 5
            if not fits or value.is_complex() or (value.layout != torch.strided):
                return False
            pool[target] = value
        return True

    def grow(self, count):
        pick, pools = self.random, []
        for call in range(2):
            pools.append(dict(zip(self.names(), self.arguments(call))))
        for attempt in range(count * 12):
            if len(self.lines) >= count:
                break
            writes = pick.random() < 0.12 and not self.grad
            template, kinds = pick.choice(WRITES if writes else OPS)
            live = list(pools[0])
            chosen = []
            for kind in kinds:
                fitting = [n for n in live if is_kind(pools[0][n], kind)]
                if not fitting:
                    break
                chosen.append(pick.choice(fitting[-4:]) if pick.random() < 0.7 else pick.choice(fitting))
            if len(chosen) < len(kinds):
                continue
            fill = {"n": pick.choice(NUMBERS), "i": pick.choice(("1", "2", "-1", "3")), "d": pick.choice(("0", "-1", "1")), "s": "s"}
            fill |= {"m": pick.choice(("sum", "mean", "max")), "r": pick.choice(("mean", "sum", "none"))}
            fill |= {"b": pick.choice(("True", "False")), "q": pick.choice(("floor", "trunc"))}
            target = chosen[0] if writes else f"y{len(self.lines)}"
            expression = template.format(*chosen, **fill)
            line = expression if writes else f"{target} = {expression}"
            trial = [{n: v for n, v in pool.items()} for pool in pools]
            if writes:  # again from the arguments: a failed write may have written something
                trial = self.replay(line)
            if trial is None or not self.runs(trial, line if not writes else "pass", target):
                continue
            pools = trial
            self.lines.append((target, line))
        made = [t for t, line in self.lines if line.startswith(f"{t} = ")]
        used = pick.sample(made, min(len(made), pick.randint(1, 3)))
        self.results = sorted({*used, *made[-1:]}) or self.names()[:1]

    def replay(self, line):
        """Returns the values after the statements so far and one more, from fresh arguments."""
        pools = []
        for call in range(2):
            space = {"torch": torch, "F": F, "s": self.scalars[call], **dict(zip(self.names(), self.arguments(call)))}
            try:
                for _, earlier in (*self.lines, ("", line)):
                    exec(earlier, space)
            except Exception:
                return None
            pools.append({n: v for n, v in space.items() if isinstance(v, torch.Tensor)})
        return pools


def called(function, case, call, errors=None):
    """Returns results, arguments after the call, and gradients; or the error."""
    inputs = case.arguments(call)
    if case.grad:
        inputs = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    try:
        torch.manual_seed(1)
        with errors or contextlib.nullcontext():
            results = function(*inputs, case.scalars[call])
            gradients = gradients_of(results, [x for x in inputs if x.requires_grad])
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return [x.detach().clone() for x in (*results, *inputs, *gradients)]


def gradients_of(results, leaves):
    weighted = [(x.double() * torch.arange(x.numel()).add(1).cos().reshape(x.shape)).sum() for x in results if x.requires_grad]
    if not weighted or not leaves:
        return ()
    return torch.autograd.grad(sum(weighted), leaves, allow_unused=True, materialize_grads=True)


def wide(x):
    return x.double() if x.is_floating_point() else x


def bound_of(want, others, eps):
    """Returns how far results may differ from `want`, given other right results."""
    spread = torch.zeros(want.shape, dtype=torch.float64)
    for other in others:
        step = (other.double() - want.double()).abs()
        step[(other.double() == want.double()) | (other.isnan() & want.isnan())] = 0
        spread = torch.maximum(spread, torch.nan_to_num(step, nan=float("inf"), posinf=float("inf")))
    finite = want[want.isfinite()].double().abs()
    scale = finite.max() if finite.numel() else 0
    bound = 30 * spread + 8 * eps * want.double().abs() + eps * scale + torch.finfo(want.dtype).tiny
    return torch.nan_to_num(bound, nan=float("inf"), posinf=float("inf"))


def mismatch(got, want, noisy, eps=0.0):
    """Returns the first difference, or an empty text."""
    if isinstance(got, str):
        return f"{got}, not numbers"
    for i, (a, b) in enumerate(zip(got, want)):
        others = [n[i] for n in noisy if not isinstance(n, str) and n[i].shape == b.shape]
        dtypes = {b.dtype, *(other.dtype for other in others)}  # PyTorch's decompositions give some losses of two dtypes the wider one
        if a.shape != b.shape or a.dtype not in dtypes:
            return f"value {i}: {a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
        near = (wide(a) == wide(b)) | (a.isnan() & b.isnan())
        if b.is_floating_point():
            bound = bound_of(b, others, max(eps, torch.finfo(b.dtype).eps))
            near |= ((a.double() - b.double()).abs() <= bound) | (bound == float("inf"))
        for other in others if not b.is_floating_point() else []:
            near |= other != b
        if not near.all():
            at = (~near).flatten().nonzero()[0].item()
            return f"value {i} ({b.dtype}, {tuple(b.shape)}): {a.flatten()[at].item()}, not {b.flatten()[at].item()}, at {at}"
    return ""


def compiled_by(backend, function):
    name, options = backend if isinstance(backend, tuple) else (backend, None)
    return torch.compile(function, backend=name, options=options)


def raises_in_pytorch(case, function):
    """Returns True if PyTorch's own tracing raises in one of the three calls."""
    torch._dynamo.reset()
    traced = torch.compile(function, backend="aot_eager")
    return any(isinstance(called(traced, case, call), str) for call in CALLS)


def difference(case, backend, lines=None, outputs=None):
    """Runs three calls of a function with these statements and results. Returns the difference from PyTorch, or an empty text."""
    torch._dynamo.reset()
    function = case.function(lines, outputs)
    compiled = compiled_by(backend, function)
    for call in CALLS:
        want = called(function, case, call)
        if isinstance(want, str):
            return ""
        got = called(compiled, case, call)
        if not mismatch(got, want, []):
            continue
        errors = [Errors(seed) for seed in range(NOISY)]
        others = [called(function, case, call, error) for error in errors]
        decomposed = called(torch.compile(function, backend="aot_eager_decomp_partition"), case, call)
        if isinstance(got, str) and (isinstance(decomposed, str) or raises_in_pytorch(case, function)):  # PyTorch compiles no such function
            return ""
        others.append(decomposed)
        if found := mismatch(got, want, others, max(error.eps for error in errors)):
            return f"call {call}: {found}"
    return ""


def reduced(case, backend):
    """Returns the statements and results that still differ without any one of them."""
    lines, outputs = list(case.lines), list(case.results)
    for output in list(outputs):
        fewer = [o for o in outputs if o != output]
        if fewer and difference(case, backend, lines, fewer):
            outputs = fewer
    changed = True
    while changed:
        changed = False
        for i in range(len(lines) - 1, -1, -1):
            fewer = lines[:i] + lines[i + 1 :]
            if difference(case, backend, fewer, outputs):
                lines, changed = fewer, True
    return lines, outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the first function")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--backend", default="piecewise", help="of torch.compile; aot_eager tests this script")
    parser.add_argument("--device", action="store_true", help="run the CUDA kernels on the emulated device")
    parser.add_argument("--show", action="store_true", help="print each function")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    backend = (arguments.backend, {"backend": "cuda", "driver": "host"}) if arguments.device else arguments.backend
    found = statements = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        case = RandomFunction(seed)
        statements += len(case.lines)
        if arguments.show:
            print(f"# seed {seed}\n{case.text()}", flush=True)
        if reason := difference(case, backend):
            found += 1
            lines, outputs = reduced(case, backend)
            print(f"seed {seed}: {difference(case, backend, lines, outputs) or reason}")
            print(f"    arguments {case.kinds}, s = {case.scalars}, gradients: {case.grad}")
            print("    " + case.text(lines, outputs).replace("\n", "\n    "), flush=True)
    last = arguments.seed + arguments.count - 1
    print(f"random functions, seeds {arguments.seed} to {last}: {arguments.count} with {statements} statements, {found} differ from PyTorch")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
