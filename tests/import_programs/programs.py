"""Random FX programs with writes that other names observe, and their text.

`Program(seed)` is one of 5 to 40 ops; every third is functional. Values are small whole numbers, so that every order of
evaluation gives the same bits.
"""
import random

import numpy as np

from storages import CUSTOM, HIGHER, PURE, VIEWS, Call, Name, Tensor, arguments_of, fresh, run_call

LIMIT = {"f32": 1 << 20, "bf16": 128, "i64": 1 << 20, "b8": 1}  # of values: exact in the type, also after one more op
TORCH = {"f32": "torch.float32", "bf16": "torch.bfloat16", "i64": "torch.int64", "b8": "torch.bool"}
SHAPES = [(4, 6), (6, 4), (2, 3, 4), (4, 4), (6,), (4,), (3, 8), (2, 2, 6), (1, 4, 6), (12,)]
BUILTINS = ("abs", "slice", "sum")
MAKER_REST = "device = device(type='cpu'), pin_memory = False"


def memory_of(array):
    """The array that owns the memory."""
    while array.base is not None:
        array = array.base
    return array


def overlap(a, b):
    return np.shares_memory(a, b)


class Raw(str):
    """An argument that is printed unchanged."""


class Impossible(Exception):
    """The statement drawn does not fit; another is tried."""


class Program:
    def __init__(self, seed, functional=None):
        self.seed = seed
        self.rng = random.Random(seed)
        self.functional = seed % 3 == 0 if functional is None else functional
        self.calls, self.env, self.inputs, self.outputs = [], {}, {}, []
        self.returning = {}  # by op: whether its host function returns what it writes
        self.names, self.unclear = {}, set()  # of arrays by id: their layout in PyTorch is not followed here
        self.kept = []  # arrays, so that their ids stay theirs
        self.make()

    # Names and choices

    def name(self, base):
        count = self.names.get(base, int(base in BUILTINS))  # as torch.fx: what Python means by a name is left to it
        self.names[base] = count + 1
        return f"{base}_{count}" if count else base

    def tensors(self, test=lambda t: True):
        return [n for n, t in self.env.items() if t.array.size and test(t)]

    def pick(self, test=lambda t: True):
        """Returns a tensor's name; newer ones are likelier."""
        names = self.tensors(test)
        if not names:
            raise Impossible
        if self.rng.random() < 0.5:
            names = names[-6:]
        return Name(self.rng.choice(names))

    def clear(self, name):
        return id(memory_of(self.env[name].array)) not in self.unclear

    # Statements

    def emit(self, target, *args, items=None, assigned=True, **kwargs):
        """Runs the statement, or raises Impossible and leaves everything as it was."""
        base = target.split(".")[1]
        names = dict(self.names)
        call = Call(self.name(base), target, list(args), dict(kwargs))
        if items is not None:
            call.items = [self.name("getitem") if wanted else None for wanted in items]
        reads = [self.env[n] for n in names_in([call.args, call.kwargs])]
        before = [(t.array, t.array.copy()) for t in self.env.values()] if target not in VIEWS and target not in PURE else []
        env = dict(self.env)
        try:
            result = run_call(call, env)
            self.check_values(env)
        except (Impossible, ValueError, AttributeError) as reason:
            for array, old in before:
                if array.flags.writeable:
                    array[...] = old
            self.names = names
            raise Impossible from reason
        env = {n: t for n, t in env.items() if isinstance(t, Tensor)}
        for n in env.keys() - self.env.keys():
            owner = memory_of(env[n].array)
            self.kept.append(owner)
            if (target in PURE or target in HIGHER) and any(not t.array.flags.c_contiguous for t in reads):
                self.unclear.add(id(owner))
        self.env = env
        self.calls.append(call)
        if not assigned:
            self.env.pop(call.name, None)
        return result

    def check_values(self, env):
        for t in env.values():
            if isinstance(t, Tensor) and t.array.size and np.abs(t.array.astype(np.int64)).max() > LIMIT[t.dtype]:
                raise Impossible

    # Views

    def view(self, of=None):
        x = of or self.pick()
        t = self.env[x]
        rank, rng = t.array.ndim, self.rng
        kinds = ["unsqueeze", "detach", "alias"]
        if rank:
            kinds += ["slice", "slice", "step", "select", "narrow", "split", "sizes", "chunk", "squeeze", "flat", "unbind"]
        if rank > 1:
            kinds += ["transpose", "permute", "view"]
        if rank == 2:
            kinds += ["t", "view"]
        kind = rng.choice(kinds)
        dim = rng.randrange(rank) if rank else 0
        messages = dim - rank if rng.random() < 0.3 else dim
        size = t.shape[dim] if rank else 0
        if kind in ("flat", "view") and not self.clear(x):
            raise Impossible
        if kind == "unsqueeze":
            if rank > 3:
                raise Impossible
            self.emit("aten.unsqueeze.default", x, rng.randrange(-1, rank + 1))
        elif kind in ("detach", "alias"):
            self.emit(f"aten.{kind}.default", x)
        elif kind == "slice":
            start = rng.randrange(size)
            end = rng.choice([9223372036854775807, rng.randrange(start + 1, size + 1)])
            self.emit("aten.slice.Tensor", x, messages, start, end)
        elif kind == "step":
            if size < 3:
                raise Impossible
            start = rng.randrange(2)
            self.emit("aten.slice.Tensor", x, messages, start, rng.choice([9223372036854775807, size]), rng.choice([2, 2, 3]))
        elif kind == "select":
            self.emit("aten.select.int", x, messages, rng.randrange(-size, size))
        elif kind == "narrow":
            start = rng.randrange(size)
            self.emit("aten.narrow.default", x, dim, start, rng.randrange(1, size - start + 1))
        elif kind == "split":
            length = rng.randrange(1, size + 1)
            self.several("aten.split.Tensor", -(-size // length), x, length, messages)
        elif kind == "sizes":
            cut = rng.randrange(size + 1)
            self.several("aten.split_with_sizes.default", 2, x, [cut, size - cut], messages)
        elif kind == "chunk":
            count = rng.randrange(1, 4)
            length = -(-size // count)
            self.several("aten.chunk.default", -(-size // length), x, count, messages)
        elif kind == "unbind":
            if size > 4:
                raise Impossible
            self.several("aten.unbind.int", size, x, messages)
        elif kind == "squeeze":
            form = rng.randrange(3)
            if form == 0:
                self.emit("aten.squeeze.dim", x, messages)
            elif form == 1:
                self.emit("aten.squeeze.dims", x, [dim])
            else:
                self.emit("aten.squeeze.default", x)
        elif kind == "flat":
            self.emit(rng.choice(["aten.view.default", "aten.view.default", "aten.reshape.default"]), x, [-1])
        elif kind == "view":
            self.emit("aten.view.default", x, self.other_shape(t.array.size))
        elif kind == "transpose":
            self.emit("aten.transpose.int", x, messages, rng.randrange(rank))
        elif kind == "permute":
            self.emit("aten.permute.default", x, rng.sample(range(rank), rank))
        else:
            self.emit("aten.t.default", x)

    def several(self, target, count, *args):
        wanted = [self.rng.random() < 0.8 for _ in range(count)]
        if not any(wanted):
            wanted[self.rng.randrange(count)] = True
        self.emit(target, *args, items=wanted)

    def other_shape(self, size):
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        first = self.rng.choice(divisors)
        if self.rng.random() < 0.5:
            return [first, size // first]
        second = self.rng.choice([d for d in divisors if (size // first) % d == 0])
        return self.rng.choice([[first, -1], [first, second, size // first // second]])

    def expand(self):
        x = self.pick(lambda t: t.array.ndim < 4 and t.array.size <= 32)
        shape = list(self.env[x].shape)
        for i, d in enumerate(shape):
            if d == 1 and self.rng.random() < 0.7:
                shape[i] = 3
            elif self.rng.random() < 0.3:
                shape[i] = -1
        self.emit("aten.expand.default", x, [2, *shape] if self.rng.random() < 0.6 else shape)

    # Values

    def fitting(self, x, strict=False):
        """Returns an operand for x: a number, or a tensor that broadcasts with it (strict: to it)."""
        t = self.env[x]
        if self.rng.random() < 0.35:
            return self.rng.choice([1, 2, 3, -1]) if t.dtype == "i64" else self.rng.choice([1, 2, 2.0, -1, 3.0])

        def fits(other):
            try:
                shape = np.broadcast_shapes(t.shape, other.shape)
            except ValueError:
                return False
            if strict:
                return shape == t.shape and (t.dtype == other.dtype or (t.dtype, other.dtype) == ("f32", "bf16"))
            return np.prod(shape) <= 200 and other.dtype != "b8"

        return self.pick(fits)

    def pure(self):
        rng = self.rng
        x = self.pick(lambda t: t.dtype != "b8")
        kind = rng.choice(["add", "sub", "mul", "neg", "abs", "relu", "clamp", "maximum", "minimum", "where", "cat", "sum"])
        if kind in ("add", "sub"):
            alpha = {"alpha": 2} if rng.random() < 0.15 else {}
            self.emit(f"aten.{kind}.Tensor", x, self.fitting(x), **alpha)
        elif kind == "mul":
            self.emit("aten.mul.Tensor", x, self.fitting(x))
        elif kind in ("neg", "abs", "relu"):
            self.emit(f"aten.{kind}.default", x)
        elif kind == "clamp":
            self.emit("aten.clamp.default", x, *rng.choice([(-4, 9), (0, 5), (None, 7), (-3,)]))
        elif kind in ("maximum", "minimum"):
            other = self.fitting(x)
            if not isinstance(other, Name):
                raise Impossible
            self.emit(f"aten.{kind}.default", x, other)
        elif kind == "where":
            other = self.pick(lambda t: t.shape == self.env[x].shape and t.dtype == self.env[x].dtype)
            self.emit("aten.gt.Scalar", x, rng.randrange(-2, 4))
            mask = Name(self.calls[-1].name)
            self.emit("aten.where.self", mask, x, other)
        elif kind == "cat":
            t = self.env[x]
            if t.array.ndim == 0 or t.array.size > 100:
                raise Impossible
            other = self.pick(lambda o: o.dtype == t.dtype and o.shape == t.shape)
            self.emit("aten.cat.default", [x, other], rng.randrange(t.array.ndim))
        else:
            if self.env[x].dtype == "bf16" or self.env[x].array.ndim == 0:
                raise Impossible
            self.emit("aten.sum.dim_IntList", x, [rng.randrange(self.env[x].array.ndim)], *rng.choice([(), (True,)]))

    def copy(self):
        x = self.pick()
        if self.rng.random() < 0.3 and self.clear(x):
            self.emit("aten.contiguous.default", x)
        elif self.env[x].array.flags.c_contiguous and self.clear(x):
            self.emit("aten.clone.default", x)
        else:
            self.emit("aten.clone.default", x, memory_format=Raw("torch.contiguous_format"))

    def maker(self):
        dtype = self.rng.choice(["f32", "f32", "bf16", "i64"])
        shape = list(self.rng.choice(SHAPES))
        kind = self.rng.choice(["zeros", "ones", "full", "zeros_like"])
        if kind == "zeros_like":
            self.emit("aten.zeros_like.default", self.pick(lambda t: t.array.flags.c_contiguous), pin_memory=False)
        elif kind == "full":
            self.emit("aten.full.default", shape, self.rng.randrange(5), dtype=dtype)
        else:
            self.emit(f"aten.{kind}.default", shape, dtype=dtype)

    # Writes

    def writable(self, t):
        return t.array.flags.writeable and t.dtype != "b8" and not any(s == 0 and d > 1 for s, d in zip(t.array.strides, t.shape))

    def written(self):
        return self.pick(self.writable)

    def check_separate(self, x, *others):
        """Raises Impossible if the written elements overlap the read ones, unless both are the same."""
        a = self.env[x].array
        for other in others:
            if isinstance(other, Name):
                b = self.env[other].array
                same = a.shape == b.shape and a.strides == b.strides and a.__array_interface__["data"] == b.__array_interface__["data"]
                if not same and overlap(a, b):
                    raise Impossible

    def write(self, to=None):
        rng = self.rng
        x = to or self.written()
        kind = rng.choice(["add_", "sub_", "mul_", "neg_", "relu_", "abs_", "copy_", "copy_", "fill_", "zero_", "clamp_", "masked_fill_"])
        if kind in ("add_", "sub_", "mul_"):
            y = self.fitting(x, strict=True)
            self.check_separate(x, y)
            alpha = {"alpha": 2} if kind != "mul_" and rng.random() < 0.15 else {}
            self.emit(f"aten.{kind}.Tensor", x, y, **alpha)
        elif kind in ("neg_", "relu_", "abs_"):
            self.emit(f"aten.{kind}.default", x)
        elif kind == "copy_":
            y = self.fitting(x, strict=True)
            if not isinstance(y, Name):
                raise Impossible
            self.check_separate(x, y)
            self.emit("aten.copy_.default", x, y)
        elif kind == "fill_":
            self.emit("aten.fill_.Scalar", x, rng.randrange(-3, 6))
        elif kind == "zero_":
            if rng.random() < 0.6:
                raise Impossible
            self.emit("aten.zero_.default", x)
        elif kind == "clamp_":
            self.emit("aten.clamp_.default", x, *rng.choice([(-4, 9), (0, 5), (None, 7), (-3,)]))
        else:
            self.emit("aten.gt.Scalar", x, rng.randrange(-2, 4))
            self.emit("aten.masked_fill_.Scalar", x, Name(self.calls[-1].name), rng.randrange(-3, 4))

    def out_variant(self):
        rng = self.rng
        x = self.pick(lambda t: t.dtype != "b8")
        t = self.env[x]
        buffer = self.pick(lambda o: self.writable(o) and o.shape == t.shape and o.dtype == t.dtype)
        kind = rng.choice(["add", "sub", "mul", "neg", "maximum"])
        if kind == "neg":
            self.check_separate(buffer, x)
            self.emit("aten.neg.out", x, out=buffer)
            return
        y = self.pick(lambda o: o.shape == t.shape and o.dtype == t.dtype)
        self.check_separate(buffer, x, y)
        self.emit(f"aten.{kind}.out", x, y, out=buffer)

    # Unknown ops

    def unknown_arguments(self, target):
        """Returns tensors that fit, by name, and their form."""
        x = self.written()
        t = self.env[x]
        given, read = {}, []
        for name, writes, many, optional in arguments_of(target):
            if optional and self.rng.random() < 0.5:
                continue
            if not given:
                given[name] = x
                continue

            def fits(o):
                return o.shape == t.shape and o.dtype == t.dtype and (not writes or self.writable(o))

            given[name] = [self.pick(fits) for _ in range(self.rng.randrange(1, 3))] if many else self.pick(fits)
        names = names_in(given.values())
        for i, a in enumerate(names):
            for b in names[:i]:
                if overlap(self.env[a].array, self.env[b].array):
                    raise Impossible
        if any(not self.writable(self.env[n]) for n in names):
            raise Impossible
        return given

    def unknown(self):
        target = self.rng.choice([t for t in CUSTOM if t != "mylib.twice" or self.rng.random() < 0.5])
        given = self.unknown_arguments(target)
        positional, by_name = [], {}
        for word in CUSTOM[target][1].split():
            name = word.lstrip("*").rstrip("!=[]")
            if name in given and not word.startswith("*"):
                positional.append(given[name])
            elif name in given:
                by_name[name] = given[name]
        if target == "mylib.step" and self.rng.random() < 0.7:
            by_name["scale"] = self.rng.choice([1, 2, -1])
        self.emit(target + ".default", *positional, assigned=CUSTOM[target][2] > 0, **by_name)

    def functionalised(self):
        target = self.rng.choice([t for t in CUSTOM if any(a[1] for a in arguments_of(t))])
        given = self.unknown_arguments(target)
        if target == "mylib.step":
            given["scale"] = self.rng.choice([1, 2, -1])
        written = [name for name, writes, *_ in arguments_of(target) if writes]
        head = Raw(f"torch.ops.{target}.default")
        first_form = self.rng.random() < 0.5
        # The first form does not say which arguments are written: unless it is all of them, the op is a function that
        # returns what it writes.
        returns = first_form and len(names_in(given)) != len(written)
        if self.returning.setdefault(target, returns) != returns:
            raise Impossible
        if first_form:
            wanted = [CUSTOM[target][2] > 0, *[True] * len(written)]
            self.emit("higher_order.auto_functionalized", head, items=wanted, **given)
            return
        bases, views = [], {}
        for name in written:
            views[f"_{name}_base_index"] = len(bases)
            base, view = self.base_and_view(given.pop(name))
            bases.append(base)
            views |= {f"_{name}_{key}": value for key, value in view.items()}
        if len(set(bases)) < len(bases):
            raise Impossible
        wanted = [CUSTOM[target][2] > 0, *[True] * len(bases)]
        self.emit("higher_order.auto_functionalized_v2", head, items=wanted, **given, **views, _all_bases=bases)

    def base_and_view(self, name):
        """Returns a larger tensor that contains the written one, and the written part of it, or the tensor itself if no other contains it."""
        for other in self.tensors(lambda t: t.array.flags.c_contiguous):
            a, b = self.env[name].array, self.env[other].array
            if other == name or not overlap(a, b) or self.env[other].dtype != self.env[name].dtype or a.size == b.size:
                continue
            offset = (a.__array_interface__["data"][0] - b.__array_interface__["data"][0]) // a.itemsize
            last = offset + sum((d - 1) * s // a.itemsize for d, s in zip(a.shape, a.strides))
            if offset < 0 or last >= b.size or b.size != memory_of(b).size:
                continue
            return Name(other), {"size": tuple(a.shape), "stride": tuple(s // a.itemsize for s in a.strides), "storage_offset": offset}
        return name, {}

    def scatter(self):
        x = self.pick(lambda t: t.array.ndim and t.dtype != "b8")
        t, rng = self.env[x], self.rng
        dim = rng.randrange(t.array.ndim)
        size = t.shape[dim]
        if rng.random() < 0.5:
            index = rng.randrange(-size, size)
            self.emit("aten.select.int", x, dim, index)
            self.emit("aten.neg.default", Name(self.calls[-1].name))
            self.emit("aten.select_scatter.default", x, Name(self.calls[-1].name), dim, index)
            return
        start = rng.randrange(size)
        end = rng.choice([9223372036854775807, rng.randrange(start + 1, size + 1)])
        step = rng.choice([(), (), (2,)])
        self.emit("aten.slice.Tensor", x, dim, start, end, *step)
        self.emit("aten.add.Tensor", Name(self.calls[-1].name), 1)
        self.emit("aten.slice_scatter.default", x, Name(self.calls[-1].name), dim, start, end, *step)

    # Programs

    def make(self):
        rng = self.rng
        for i in range(rng.randrange(2, 5)):
            dtype = rng.choice(["f32", "f32", "f32", "bf16", "i64"])
            shape = rng.choice(SHAPES) if i == 0 or rng.random() < 0.4 else next(iter(self.env.values())).shape
            values = np.array([rng.randrange(-4, 5) for _ in range(int(np.prod(shape)))]).reshape(shape)
            self.inputs[f"arg{i}_1"] = self.env[f"arg{i}_1"] = fresh(values, dtype)
        self.start = {n: fresh(t.array, t.dtype) for n, t in self.inputs.items()}
        length = rng.randrange(5, 41)
        kinds = {self.view: 30, self.pure: 18, self.copy: 6, self.maker: 4, self.expand: 3}
        if self.functional:
            kinds |= {self.functionalised: 14, self.scatter: 10}
        else:
            kinds |= {self.write: 26, self.out_variant: 5, self.unknown: 8}
        least = 5 if self.functional else 2
        while len(self.calls) < max(least, length - 7):  # the end needs up to five, and the last one drawn may be three
            self.attempt(rng.choices(list(kinds), kinds.values())[0])
        if self.functional:
            self.finish_functional()
        else:
            self.finish()

    def attempt(self, make, tries=1):
        for _ in range(tries):
            try:
                make()
                return True
            except Impossible:
                pass
        return False

    def finish(self):
        """A view is written, its base is read, and both may be outputs."""
        for _ in range(200):
            if not self.attempt(lambda: self.view(self.written()), 20):
                continue
            last = self.calls[-1]
            view = Name(next(filter(None, last.items)) if last.items else last.name)
            if view not in self.env or not self.writable(self.env[view]) or not self.env[view].array.size:
                continue
            base = last.args[0]
            if not overlap(self.env[view].array, self.env[base].array) or not self.attempt(lambda: self.write(view), 10):
                continue
            self.attempt(lambda: self.emit("aten.add.Tensor", base, 1) if self.env[base].dtype != "b8" else None)
            self.choose_outputs([base])
            return
        raise AssertionError(f"seed {self.seed}: no write that another name sees")

    def finish_functional(self):
        """Some inputs are written at the end, as ahead-of-time tracing leaves them, and an output may be one of them."""
        self.choose_outputs([])
        for x in self.inputs:
            for _ in range(5):
                source = Name(self.rng.choice(self.tensors()))
                s, t = self.env[source], self.env[x]
                if s.shape == t.shape and s.dtype == t.dtype and not overlap(s.array, t.array):
                    self.attempt(lambda: self.emit("aten.copy_.default", Name(x), source))
                    break
        if self.rng.random() < 0.5:
            self.outputs.append(self.pick())

    def choose_outputs(self, first):
        names = self.tensors()
        self.outputs = list(first) + [self.rng.choice(names[-8:]) for _ in range(self.rng.randrange(1, 4))]
        if self.rng.random() < 0.2:
            self.outputs.append(self.outputs[0])
        self.outputs = [Name(n) for n in self.outputs]

    # Text

    def text(self):
        inputs = ", ".join(f'{n}: "{type_text(t)}"' for n, t in self.start.items())
        lines = ["class <lambda>(torch.nn.Module):", f"    def forward(self, {inputs}):"]
        env = dict(self.inputs)
        for call in self.calls:
            lines += ["        " + line for line in self.statement(call)]
        lines.append(f"        return ({', '.join(self.outputs)},)")
        return "\n".join(lines) + "\n"

    def statement(self, call):
        args = ", ".join([literal(a) for a in call.args] + [f"{k} = {keyword(k, v)}" for k, v in call.kwargs.items()])
        if call.target.split(".")[1] in ("zeros", "ones", "full", "empty"):
            args += ", " + MAKER_REST
        known = self.types.get(call.name) if not call.items else None
        typed = f': "{known}"' if known else ""
        yield f"{call.name}{typed} = torch.ops.{call.target}({args})" + ("" if known or call.items else f";  {call.name} = None")
        for i, item in enumerate(call.items):
            if item:
                yield f'{item}: "{self.types[item]}" = {call.name}[{i}]'

    @property
    def types(self):
        return {n: type_text(t) for n, t in self.env.items()}


def type_text(tensor):
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def keyword(name, value):
    return TORCH[value] if name == "dtype" else literal(value)


def literal(value):
    if isinstance(value, (Name, Raw)):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(literal, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def names_in(value):
    if isinstance(value, Name):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, (list, tuple, type({}.values()))):
        return [n for v in value for n in names_in(v)]
    return []
