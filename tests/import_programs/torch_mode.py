"""Runs the text of a program in PyTorch, eagerly."""
import torch

SCHEMAS = {
    "mylib.flip_": "(Tensor(a!) x) -> ()",
    "mylib.shift": "(Tensor(a!) x, Tensor y) -> ()",
    "mylib.swap": "(Tensor(a!) x, Tensor(b!) y) -> ()",
    "mylib.take": "(Tensor x, Tensor(a!) y) -> Tensor",
    "mylib.step": "(Tensor(a!) x, *, Scalar scale=1, Tensor? mask=None) -> ()",
    "mylib.accumulate": "(Tensor(a!) out, Tensor[] xs, Tensor? bias=None) -> ()",
    "mylib.twice": "(Tensor x) -> Tensor",
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64, "b8": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def flip_(x):
    x.copy_(2 - x)


def shift(x, y):
    x.add_(y)


def swap(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


def take(x, y):
    taken = x - y
    y.copy_(x)
    return taken


def step(x, *, scale=1, mask=None):
    x.copy_(x * scale + (1 if mask is None else mask))


def accumulate(out, xs, bias=None):
    for x in xs:
        out.add_(x)
    if bias is not None:
        out.add_(bias)


def twice(x):
    return x * 2


def define():
    library = torch.library.Library("mylib", "DEF")
    for name, schema in SCHEMAS.items():
        base = name.removeprefix("mylib.")
        library.define(base + schema)
        library.impl(base, globals()[base], "CompositeExplicitAutograd")
    return library


LIBRARY = define()


def run(program):
    """The outputs and the inputs afterwards, as lists of numpy arrays with their types."""
    scope = {"torch": torch, "device": torch.device}
    exec(program.text().replace("<lambda>", "Program"), scope)
    inputs = [torch.tensor(t.array.tolist(), dtype=DTYPES[t.dtype]).reshape(t.shape) for t in program.start.values()]
    outputs = scope["Program"]().forward(*inputs)
    return [(plain(t), NAMES[t.dtype]) for t in outputs], [(plain(t), NAMES[t.dtype]) for t in inputs]


def plain(tensor):
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
