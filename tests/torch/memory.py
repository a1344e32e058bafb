#!/usr/bin/env python3
"""How tensors lie in memory, and which share it: random chains of views, writes and custom ops, compiled, beside eager PyTorch.

    memory.py [--count N] [--seed S] [--only I] [--backends eager,cpu]

Every chain is compared in what it returns, in what its arguments hold then, in the strides of both, in which of them share memory, and in what a custom op
was given: strides, contents, and contents of what it kept once the call is over. Where PyTorch's own tracing (aot_eager) differs from eager PyTorch in the
same chain, it is counted and passed over. Every chain is a function of the seed and its number. Exit code 1 where one differs.
"""
import argparse
import random
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402

from piecewise import pytorch as front  # noqa: E402

MOST_ELEMENTS = 256
GIVEN = []  # what custom ops were given: op, strides, contents, the tensor itself


def note(op, *tensors):
    GIVEN.append((op, [(strides(x), x.clone(), x) for x in tensors]))


LIBRARY = torch.library.Library("pw_memory", "DEF")
LIBRARY.define("keep(Tensor x, Tensor[] ys) -> Tensor")
LIBRARY.define("turned(Tensor x) -> Tensor")
LIBRARY.define("write_(Tensor(a!) x, Tensor y) -> ()")
LIBRARY.define("two_(Tensor(a!) x, Tensor(b!) y, Tensor z) -> Tensor")


def keep(x, ys):
    note("keep", x, *ys)
    return x + len(ys)


def turned(x):
    note("turned", x)
    return (x * 2).permute(*reversed(range(x.dim()))).contiguous().permute(*reversed(range(x.dim())))


def write_(x, y):
    note("write_", x, y)
    x.mul_(2).add_(y.sum())


def two_(x, y, z):
    note("two_", x, y, z)
    x.add_(1)
    y.sub_(z.max())
    return z.clone()


def turned_like(x):
    return torch.empty([*reversed(x.shape)]).permute(*reversed(range(x.dim())))


LIBRARY.impl("keep", keep, "CPU")
LIBRARY.impl("keep", lambda x, ys: x + 1, "Meta")
LIBRARY.impl("turned", turned, "CPU")
LIBRARY.impl("turned", lambda x: x.new_empty([*reversed(x.shape)]).permute(*reversed(range(x.dim()))), "Meta")
LIBRARY.impl("write_", write_, "CPU")
LIBRARY.impl("write_", lambda x, y: None, "Meta")
LIBRARY.impl("two_", two_, "CPU")
LIBRARY.impl("two_", lambda x, y, z: torch.empty_like(z), "Meta")


def strides(x):
    """Returns the strides of the dims with more than one element."""
    return [stride for size, stride in zip(x.shape, x.stride()) if size > 1] if x.numel() else []


# ---- chains: steps are texts of a program, which is run as it is made, so that each is legal


class Maker:
    def __init__(self, draw):
        self.draw = draw
        self.values = {}
        self.lines = []
        self.inputs = []

    def input(self):
        draw, n = self.draw, self.draw.randint(1, 3)
        shape = [draw.randint(1, 4) for _ in range(n)]
        text = f"torch.arange({torch.Size(shape).numel() * 4}.0)[{draw.choice(['', '2'])}:].as_strided({shape}, {self.dense(shape)})"
        if draw.random() < 0.3:
            text = f"torch.arange({4 ** (n + 1)}.0).view({[4] * (n + 1)})[1, {', '.join(f'{draw.randint(0, 1)}:' for _ in range(n))}]"
        name = f"a{len(self.inputs)}"
        self.inputs.append(text)
        self.values[name] = eval(text)

    def dense(self, shape):
        order = list(range(len(shape)))
        if self.draw.random() < 0.5:
            self.draw.shuffle(order)
        out, count = [0] * len(shape), 1
        for dim in reversed(order):
            out[dim] = count
            count *= shape[dim]
        return out

    def pick(self):
        return self.draw.choice(list(self.values))

    def apart(self, names):
        """Values that share no memory with these: what an op writes is read by none of its other arguments."""
        used = {self.values[name].untyped_storage().data_ptr() for name in names}
        return [name for name, x in self.values.items() if x.untyped_storage().data_ptr() not in used]

    def step(self):
        draw, name = self.draw, self.pick()
        x, y = self.values[name], self.pick()
        n, dim = x.dim(), draw.randrange(max(x.dim(), 1))
        dims = list(range(n))
        draw.shuffle(dims)
        size = x.shape[dim] if n else 1
        start = draw.randint(0, size - 1) if size else 0
        views = [
            f"{name}.permute({dims})",
            f"{name}.transpose({dim}, {n - 1})",
            f"{name}.narrow({dim}, {start}, {draw.randint(1, max(size - start, 1))})",
            f"{name}[{':, ' * dim}{start}::{draw.randint(1, 2)}]",
            f"{name}.select({dim}, {start})",
            f"{name}.unsqueeze({draw.randint(0, n)})",
            f"{name}.reshape(-1)",
            f"{name}.view(-1)",
            f"{name}.expand(2, {', '.join(['-1'] * n)})",
            f"{name}.unfold({dim}, {draw.randint(1, max(size, 1))}, {draw.randint(1, 2)})",
            f"{name}.split(1, {dim})[{draw.randrange(max(size, 1))}]",
            f"{name}.diagonal()",
            f"{name}.squeeze()",
            self.strided(x, name),
        ]
        computed = [
            f"{name} + 1",
            f"{name} * 2 - {y}.sum()",
            f"{name} + {y}",
            f"{name}.relu()",
            f"{name}.clone()",
            f"{name}.contiguous()",
            f"torch.cat([{name}, {name}], {dim})",
            f"{name}.cumsum({dim})",
            f"torch.ops.pw_memory.keep({name}, [{y}, {self.pick()}])",
            f"torch.ops.pw_memory.turned({name})",
        ]
        written = [
            f"{name}.add_(1)",
            f"{name}.mul_({y})",
            f"{name}.copy_({y})",
            f"{name}[{start}] = 3",
            f"{name}.select({dim}, {start}).sub_({y}.max())",
        ]
        if others := self.apart([name]):
            written.append(f"torch.ops.pw_memory.write_({name}, {draw.choice(others)})")
            second = draw.choice(others)
            if third := self.apart([name, second]):
                written.append(f"torch.ops.pw_memory.two_({name}, {second}, {draw.choice(third)})")
        kind = draw.random()
        text = draw.choice(views if kind < 0.45 else computed if kind < 0.75 else written)
        self.try_line(text if kind >= 0.75 else f"v{len(self.lines)} = {text}")

    def strided(self, x, name):
        draw, n = self.draw, self.draw.randint(1, 3)
        count = x.untyped_storage().nbytes() // 4
        sizes, steps = [draw.randint(1, 3) for _ in range(n)], [draw.choice([1, 2, 3, 4, 6]) for _ in range(n)]
        return f"{name}.as_strided({sizes}, {steps}, {draw.randint(0, max(count // 3, 0))})"

    def try_line(self, line):
        """A step that eager PyTorch refuses is skipped."""
        kept = {name: x.untyped_storage().clone() for name, x in self.values.items()}
        try:
            exec(line, {"torch": torch}, self.values)
        except Exception:
            for name, contents in kept.items():
                self.values[name].untyped_storage().copy_(contents)
            return
        made = self.values.get(line.split(" = ")[0])
        if isinstance(made, torch.Tensor) and (made.numel() > MOST_ELEMENTS or made.abs().max().nan_to_num() > 1e6 if made.numel() else False):
            del self.values[line.split(" = ")[0]]
            return
        self.lines.append(line)

    def text(self):
        names = list(self.values)
        returned = self.draw.sample(names, min(len(names), self.draw.randint(1, 4)))
        head = [f"def f({', '.join(f'a{i}' for i in range(len(self.inputs)))}):"]
        return "\n    ".join([*head, *self.lines, f"return {', '.join(returned)},"]) + "\n"


def chain(seed, number):
    """The text of a function, and those of its arguments."""
    draw = random.Random(f"{seed} {number}")
    maker = Maker(draw)
    for _ in range(draw.randint(1, 2)):
        maker.input()
    for _ in range(draw.randint(3, 10)):
        maker.step()
    GIVEN.clear()
    return maker.text(), maker.inputs


# ---- comparison


def observe(function, inputs):
    """Returns the effects of a call, as text and numbers; "raises" alone where it does."""
    GIVEN.clear()
    arguments = [eval(text) for text in inputs]
    with torch.no_grad():
        out = function(*arguments)
    given = []
    for op, tensors in GIVEN:
        for told, contents, tensor in tensors:
            written = op in ("write_", "two_")  # what is kept of these may be a copy
            given.append((op, told, contents, None if written else tensor.clone()))
    tensors = [*out, *arguments]
    shared = [[a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for b in tensors] for a in tensors]
    return {"results": [(strides(x), x.clone()) for x in tensors], "shared": shared, "given": given}


def same(a, b):
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def differences(want, got):
    """In words. What an op has kept is as it was when it was given, or, where the same memory was written later, as that left it."""
    out = [what for what in ("results", "shared") if not same(want[what], got[what])]
    calls = iter(want["given"])  # those that nothing reads need not run
    for call in got["given"]:
        eager = next((one for one in calls if same(one[:3], call[:3])), None)
        if eager is None:
            return [*out, "given"]
        if not same(eager[3], call[3]) and not same(eager[2], call[3]):
            return [*out, "kept"]
    return out


def compiled(function, **how):
    torch._dynamo.reset()
    front.forget()
    return torch.compile(function, dynamic=False, fullgraph=True, **how)


def check(text, inputs, backend):
    """ "ok", "PyTorch's" where its own tracing differs, or what differs."""
    space = {"torch": torch}
    exec(text, space)
    want = observe(space["f"], inputs)
    try:
        function = compiled(space["f"], backend="piecewise", options={"backend": backend})
        for _ in range(2):
            found = differences(want, observe(function, inputs))
            if found:
                break
        refused = " ".join(report.refused for report in front.report(function))
    except Exception as error:
        found, refused = [f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"], ""
    if not found:
        return "refused" if refused else "ok"
    try:
        if differences(want, observe(compiled(space["f"], backend="aot_eager"), inputs)):
            return "PyTorch's"
    except Exception:
        return "PyTorch's"
    return f"other {', '.join(found)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the chain of this number, and its text")
    parser.add_argument("--backends", default="eager,cpu", help="each of them on its share of the chains; generated kernels take a compiler's time")
    arguments = parser.parse_args()
    backends = arguments.backends.split(",")
    counts, start = {}, time.time()
    for number in range(arguments.count) if arguments.only is None else [arguments.only]:
        text, inputs = chain(arguments.seed, number)
        backend = backends[-1] if number % 5 == 0 else backends[0]
        said = check(text, inputs, backend)
        counts[said.split()[0]] = counts.get(said.split()[0], 0) + 1
        if said.startswith("other") or arguments.only is not None:
            print(f"chain {number} of seed {arguments.seed} on {backend}: {said}\n{text}    # of {'; '.join(inputs)}\n", flush=True)
    print(f"seed {arguments.seed}: {counts} in {time.time() - start:.0f} s")
    return 1 if counts.get("other") or counts.get("PyTorch's", 0) > 0.1 * arguments.count else 0


if __name__ == "__main__":
    sys.exit(main())
