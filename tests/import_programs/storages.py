"""A small interpreter of FX programs that has storages: a tensor is a numpy array, and a view of one shares its memory.

It is independent of Piecewise. `./dev test torch` compares it with PyTorch itself.
"""
from dataclasses import dataclass, field

import numpy as np

STORED = {"f32": np.float32, "bf16": np.float32, "i64": np.int64, "b8": np.bool_}
RANK = ["b8", "i64", "bf16", "f32"]  # of two, the later one is the type of their sum
KIND = {"b8": 0, "i64": 1, "bf16": 2, "f32": 2}


class Name(str):
    """A tensor of the program, as an argument of a call."""


class Tensor:
    """An array that may be a view, and the type that it represents. bf16 is stored as f32; its values are small whole numbers."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    @property
    def shape(self):
        return self.array.shape


@dataclass
class Call:
    name: str  # what the statement assigns
    target: str  # without "torch.ops."
    args: list = field(default_factory=list)
    kwargs: dict = field(default_factory=dict)
    items: list = field(default_factory=list)  # what `getitem` statements call the parts of its result; None: no statement


def fresh(array, dtype):
    return Tensor(np.array(array, dtype=STORED[dtype], order="C"), dtype)


def no_copy(array, shape):
    """`view`: fails where it would be a copy."""
    view = array.view()
    view.shape = shape
    return view


def weak(value, dtype):
    """A number does not change the type of a tensor, unless it is a float and the tensor holds integers."""
    return "f32" if isinstance(value, float) and dtype in ("i64", "b8") else dtype


def promoted(*values):
    """Tensors of rank 0 count only where they are of a higher kind."""
    types = [v.dtype for v in values if isinstance(v, Tensor) and v.array.ndim]
    single = [v.dtype for v in values if isinstance(v, Tensor) and not v.array.ndim]
    dtype = max(types or single, key=RANK.index)
    if types and single and KIND[max(single, key=RANK.index)] > KIND[dtype]:
        dtype = max(single, key=RANK.index)
    for v in values:
        if not isinstance(v, Tensor):
            dtype = weak(v, dtype)
    return dtype


def pointwise(function, dtype=None):
    def run(*operands):
        kind = dtype or promoted(*operands)
        return fresh(function(*(o.array if isinstance(o, Tensor) else o for o in operands)), kind)

    return run


def axis_of(dim, rank):
    return dim + rank if dim < 0 else dim


def parts(tensor, sizes, dim):
    dim = axis_of(dim, tensor.array.ndim)
    out, start = [], 0
    for size in sizes:
        out.append(part(tensor, dim, start, start + size))
        start += size
    return out


def part(tensor, dim=0, start=None, end=None, step=1):
    dim = axis_of(dim, tensor.array.ndim)
    at = [slice(None)] * tensor.array.ndim
    at[dim] = slice(start, end, step)
    return Tensor(tensor.array[tuple(at)], tensor.dtype)


def one(tensor, dim, index):
    """`select`: a view also where it has no dims left."""
    dim = axis_of(dim, tensor.array.ndim)
    index = axis_of(index, tensor.array.shape[dim])
    narrow = part(tensor, dim, index, index + 1)
    return Tensor(np.squeeze(narrow.array, dim), tensor.dtype)


def by_size(tensor, size, dim=0):
    length = tensor.shape[axis_of(dim, tensor.array.ndim)]
    return parts(tensor, [min(size, length - i) for i in range(0, length, size)], dim)


def chunked(tensor, count, dim=0):
    length = tensor.shape[axis_of(dim, tensor.array.ndim)]
    return by_size(tensor, -(-length // count), dim)


def resolved(shape, count):
    known = int(np.prod([d for d in shape if d != -1], dtype=np.int64))
    return [count // known if d == -1 else d for d in shape]


def squeezed(tensor, dims):
    rank = tensor.array.ndim
    chosen = tuple(d for d in {axis_of(d, rank) for d in dims} if tensor.shape[d] == 1)
    return Tensor(np.squeeze(tensor.array, chosen), tensor.dtype)


def reshaped(tensor, shape):
    """A view where it can be one, else a copy: numpy decides as PyTorch does."""
    return Tensor(tensor.array.reshape(resolved(shape, tensor.array.size)), tensor.dtype)


def expanded(tensor, shape):
    offset = len(shape) - tensor.array.ndim
    shape = [tensor.shape[i - offset] if d == -1 else d for i, d in enumerate(shape)]
    return Tensor(np.broadcast_to(tensor.array, shape), tensor.dtype)


VIEWS = {
    "aten.view.default": lambda x, shape: Tensor(no_copy(x.array, resolved(shape, x.array.size)), x.dtype),
    "aten.reshape.default": reshaped,
    "aten.unsqueeze.default": lambda x, dim: Tensor(np.expand_dims(x.array, axis_of(dim, x.array.ndim + 1)), x.dtype),
    "aten.squeeze.dim": lambda x, dim: squeezed(x, [dim]),
    "aten.squeeze.dims": squeezed,
    "aten.squeeze.default": lambda x: squeezed(x, range(x.array.ndim)),
    "aten.slice.Tensor": part,
    "aten.narrow.default": lambda x, dim, start, length: part(x, dim, start, start + length),
    "aten.select.int": one,
    "aten.transpose.int": lambda x, a, b: Tensor(np.swapaxes(x.array, a, b), x.dtype),
    "aten.t.default": lambda x: Tensor(x.array.T, x.dtype),
    "aten.permute.default": lambda x, dims: Tensor(np.transpose(x.array, dims), x.dtype),
    "aten.expand.default": expanded,
    "aten.split.Tensor": by_size,
    "aten.split_with_sizes.default": lambda x, sizes, dim=0: parts(x, sizes, dim),
    "aten.chunk.default": chunked,
    "aten.unbind.int": lambda x, dim=0: [one(x, dim, i) for i in range(x.shape[axis_of(dim, x.array.ndim)])],
    "aten.detach.default": lambda x: Tensor(x.array.view(), x.dtype),
    "aten.contiguous.default": lambda x: x if x.array.flags.c_contiguous else fresh(x.array, x.dtype),
    "aten.alias.default": lambda x: Tensor(x.array.view(), x.dtype),
}


def scaled(sign):
    def run(x, y, alpha=1):
        return pointwise(lambda a, b: a + sign * alpha * b)(x, y)

    return run


def clamped(x, low=None, high=None):
    return pointwise(lambda a: np.clip(a, low, high))(x)


def scattered(x, source, view):
    out = fresh(x.array, x.dtype)
    view(out).array[...] = source.array
    return out


def made(value):
    def run(shape, *more, dtype="f32", **_):
        return fresh(np.full(shape, more[0] if more else value), dtype)

    return run


def like(value):
    return lambda x, *more, **_: fresh(np.full(x.shape, more[0] if more else value), x.dtype)


PURE = {
    "aten.add.Tensor": scaled(1),
    "aten.sub.Tensor": scaled(-1),
    "aten.mul.Tensor": pointwise(np.multiply),
    "aten.neg.default": pointwise(np.negative),
    "aten.abs.default": pointwise(np.abs),
    "aten.relu.default": pointwise(lambda x: np.maximum(x, 0)),
    "aten.clamp.default": clamped,
    "aten.maximum.default": pointwise(np.maximum),
    "aten.minimum.default": pointwise(np.minimum),
    "aten.cat.default": lambda xs, dim=0: fresh(np.concatenate([x.array for x in xs], dim), xs[0].dtype),
    "aten.clone.default": lambda x, memory_format=None: fresh(x.array, x.dtype),
    "aten.gt.Scalar": pointwise(np.greater, "b8"),
    "aten.where.self": lambda m, x, y: fresh(np.where(m.array, x.array, y.array), promoted(x, y)),
    "aten.copy.default": lambda x, y, non_blocking=False: fresh(np.broadcast_to(y.array, x.shape), x.dtype),
    "aten.slice_scatter.default": lambda x, s, dim=0, start=None, end=None, step=1: scattered(x, s, lambda t: part(t, dim, start, end, step)),
    "aten.select_scatter.default": lambda x, s, dim, index: scattered(x, s, lambda t: one(t, dim, index)),
    "aten.full.default": made(0),
    "aten.zeros.default": made(0),
    "aten.ones.default": made(1),
    "aten.empty.memory_format": made(0),
    "aten.zeros_like.default": like(0),
    "aten.full_like.default": like(0),
    "aten.sum.dim_IntList": lambda x, dims, keepdim=False: fresh(x.array.sum(tuple(dims), keepdims=keepdim), x.dtype),
}


def write(target, source):
    target.array[...] = source.array if isinstance(source, Tensor) else source
    return target


def in_place(pure):
    return lambda x, *args, **kwargs: write(x, PURE[pure](x, *args, **kwargs))


def into(pure):
    return lambda *args, out, **kwargs: write(out, PURE[pure](*args, **kwargs))


WRITES = {
    "aten.add_.Tensor": in_place("aten.add.Tensor"),
    "aten.sub_.Tensor": in_place("aten.sub.Tensor"),
    "aten.mul_.Tensor": in_place("aten.mul.Tensor"),
    "aten.neg_.default": in_place("aten.neg.default"),
    "aten.abs_.default": in_place("aten.abs.default"),
    "aten.relu_.default": in_place("aten.relu.default"),
    "aten.clamp_.default": in_place("aten.clamp.default"),
    "aten.copy_.default": lambda x, y, non_blocking=False: write(x, y),
    "aten.fill_.Scalar": write,
    "aten.fill_.Tensor": write,
    "aten.zero_.default": lambda x: write(x, 0),
    "aten.masked_fill_.Scalar": lambda x, m, v: write(x, fresh(np.where(m.array, v, x.array), x.dtype)),
    "aten.add.out": into("aten.add.Tensor"),
    "aten.sub.out": into("aten.sub.Tensor"),
    "aten.mul.out": into("aten.mul.Tensor"),
    "aten.neg.out": into("aten.neg.default"),
    "aten.maximum.out": into("aten.maximum.default"),
}


# Ops of nobody's: what Piecewise has never heard of. Each is a function of arrays that writes some of them in place and
# returns new ones; CUSTOM states which arguments are tensors (`!`: written), and the results.


def swap(x, y):
    x[...], y[...] = y.copy(), x.copy()


def accumulate(out, xs, bias=None):
    out[...] = out + sum(xs) + (0 if bias is None else bias)


def step(x, *, scale=1, mask=None):
    x[...] = x * scale + (1 if mask is None else mask)


def take(x, y):
    taken = x - y
    y[...] = x
    return taken


CUSTOM = {
    "mylib.flip_": (lambda x: np.copyto(x, 2 - x), "x!", 0),
    "mylib.shift": (lambda x, y: np.copyto(x, x + y), "x! y", 0),
    "mylib.swap": (swap, "x! y!", 0),
    "mylib.take": (take, "x y!", 1),
    "mylib.step": (step, "x! *mask=", 0),
    "mylib.accumulate": (accumulate, "out! xs[] bias=", 0),
    "mylib.twice": (lambda x: 2 * x, "x", 1),
}


def arguments_of(target):
    """(name, is written, is a list, may be left out) of each tensor argument."""
    out = []
    for word in CUSTOM[target][1].split():
        name = word.lstrip("*").rstrip("!=[]")
        out.append((name, "!" in word, "[]" in word, "=" in word))
    return out


def custom(target, args, kwargs):
    def raw(value):
        if isinstance(value, list):
            return [raw(v) for v in value]
        return value.array if isinstance(value, Tensor) else value

    first = next(t for t in args if isinstance(t, Tensor))
    result = CUSTOM[target][0](*map(raw, args), **{k: raw(v) for k, v in kwargs.items()})
    return None if result is None else fresh(result, first.dtype)


def run_functionalised(target, kwargs):
    after = {name: fresh(kwargs[name].array, kwargs[name].dtype) for name, writes, *_ in arguments_of(target) if writes}
    result = call_by_names(target, {**kwargs, **after})
    return [result, *after.values()]


def call_by_names(target, values):
    positional, by_name = [], {}
    for word in CUSTOM[target][1].split():
        name = word.lstrip("*").rstrip("!=[]")
        if name in values and not word.startswith("*"):
            positional.append(values[name])
    by_name = {k: v for k, v in values.items() if not any(v is p for p in positional)}
    return custom(target, positional, by_name)


def view_of_base(base, spec):
    """The part of a base that auto_functionalized_v2 names."""
    if "slice_dim" in spec:
        return part(base, spec["slice_dim"], spec["slice_start"], spec["slice_end"])
    if "size" in spec:
        item = base.array.itemsize
        flat = base.array.reshape(-1)
        view = np.lib.stride_tricks.as_strided(flat[spec["storage_offset"] :], spec["size"], [s * item for s in spec["stride"]])
        return Tensor(view, base.dtype)
    return base


def run_functionalised_v2(target, kwargs):
    bases = [fresh(b.array, b.dtype) for b in kwargs["_all_bases"]]
    values = {k: v for k, v in kwargs.items() if not k.startswith("_")}
    for name, writes, *_ in arguments_of(target):
        index = kwargs.get(f"_{name}_base_index")
        if writes and index is not None:
            spec = {k[len(name) + 2 :]: v for k, v in kwargs.items() if k.startswith(f"_{name}_")}
            values[name] = view_of_base(bases[index], spec)
    result = call_by_names(target, values)
    return [result, *bases]


HIGHER = {
    "higher_order.auto_functionalized": run_functionalised,
    "higher_order.auto_functionalized_v2": run_functionalised_v2,
}


def evaluate(value, env):
    if isinstance(value, Name):
        return env[value]
    if isinstance(value, (list, tuple)):
        return [evaluate(v, env) for v in value]
    return value


def run_call(call, env):
    """Runs a statement and names its results."""
    args = [evaluate(a, env) for a in call.args]
    kwargs = {k: evaluate(v, env) for k, v in call.kwargs.items()}
    base = call.target.removesuffix(".default")
    if call.target in HIGHER:
        result = HIGHER[call.target](str(args[0]).removeprefix("torch.ops.").removesuffix(".default"), kwargs)
    elif base in CUSTOM:
        result = custom(base, args, kwargs)
    else:
        table = next(t for t in (VIEWS, PURE, WRITES) if call.target in t)
        result = table[call.target](*args, **kwargs)
    if call.items:
        for name, item in zip(call.items, result):
            if name:
                env[name] = item
    elif call.name:
        env[call.name] = result
    return result


def run(calls, inputs):
    """The environment after the program; arrays of `inputs` are written in place where the program writes them."""
    env = dict(inputs)
    for call in calls:
        run_call(call, env)
    return env
