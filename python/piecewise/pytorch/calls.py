"""A compiled graph as PyTorch calls it, and PyTorch as a compiled graph calls it."""
from __future__ import annotations

import ctypes
import math
import typing as t

import torch

import _piecewise
from _piecewise import Error

from .telling import DTYPES, Told, evaluated, expression

_WORDS = {"torch.device": torch.device("cpu")}


def _meant(value: t.Any) -> t.Any:
    """An argument of a call that PyTorch runs, whose torch.float32 and the like are texts."""
    if isinstance(value, str):
        if value in DTYPES:
            return DTYPES[value]
        if value.startswith("torch."):
            return _WORDS[value] if value in _WORDS else getattr(torch, value[len("torch.") :])
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_meant(item) for item in value)
    if isinstance(value, dict):
        return {key: _meant(item) for key, item in value.items()}
    return value


def host_function(op: torch._ops.OpOverload) -> t.Callable[..., t.Any]:
    """What runs a call that stays PyTorch's."""

    def run(*args, **kwargs):
        with torch.no_grad():
            return op(*_meant(args), **_meant(kwargs))

    return run


def functions(told: Told) -> t.Dict[str, t.Callable[..., t.Any]]:
    """What runs the calls that stay PyTorch's, by op."""
    out = {}
    for op in told.operators:
        out[str(op)] = out[str(op).removesuffix(".default")] = host_function(op)
    return out


def over(address: int, dtype: str, extents: t.Tuple[int, ...]) -> torch.Tensor:
    """A tensor over memory of the engine's."""
    kind = DTYPES[dtype]
    count = math.prod(extents)
    if count == 0:
        return torch.empty(extents, dtype=kind)
    memory = (ctypes.c_byte * (count * kind.itemsize)).from_address(address)
    return torch.frombuffer(memory, dtype=kind).view(extents)


def _row_major(extents: t.Sequence[int], strides: t.Sequence[int]) -> bool:
    count = 1
    for extent, stride in zip(reversed(extents), reversed(strides)):
        if extent != 1 and stride != count:
            return False
        count *= max(extent, 1)
    return True


def _laid_out(tensor: torch.Tensor, strides: t.Sequence[int]) -> torch.Tensor:
    """A copy with these strides; elements along a dim of stride 0 are one, as PyTorch has expanded tensors."""
    extents = tensor.shape
    count = 1 + sum((extent - 1) * stride for extent, stride in zip(extents, strides)) if tensor.numel() else 0
    memory = torch.empty(count, dtype=tensor.dtype)
    for dim, stride in enumerate(strides):
        if stride == 0:
            tensor = tensor.narrow(dim, 0, min(1, extents[dim]))
    memory.as_strided(tensor.shape, strides).copy_(tensor)
    return memory.as_strided(extents, strides)


class Call:
    """A compiled graph as AOT autograd calls it: with a list of arguments, which it empties."""

    def __init__(self, told: Told, graph: _piecewise.Graph, compiled: _piecewise.Compiled):
        self._boxed_call = True  # of the object: wrappers copy no attributes of its class
        self._compiled = compiled
        self._outputs = told.outputs
        self._symbols = list(told.symbols.items())
        self._results = [(fake.dtype, [expression(n) for n in fake.shape], [expression(n) for n in fake.stride()]) for fake in told.results]
        self._inputs = [told.constants[i.name] if i.name in told.constants else told.arguments[i.name] for i in graph.inputs]
        self._known: t.Dict[t.Tuple[int, ...], t.Any] = {}

    def _sizes(self, key, symbols):
        """By result: dtype, extents, and strides where it is not row-major."""
        known = []
        for dtype, extents, strides in self._results:
            extents, strides = (tuple(evaluated(n, symbols) for n in numbers) for numbers in (extents, strides))
            known.append((dtype, extents, None if _row_major(extents, strides) else strides))
        extents = [tuple(e) for e in self._compiled.extents(symbols)]
        if extents != [e for _, e, _ in known]:
            raise Error(f"the graph gives tensors of {extents}, and PyTorch of {[e for _, e, _ in known]}")
        self._known[key] = known
        return known

    def __call__(self, *given):
        args = arguments_of(given)
        symbols = {name: args[index] if dim < 0 else args[index].shape[dim] for name, (index, dim) in self._symbols}
        key = tuple(symbols.values())
        sizes = self._known.get(key)
        if sizes is None:
            sizes = self._sizes(key, symbols)
        given = []
        for place in self._inputs:
            tensor = args[place] if isinstance(place, int) else place
            given.append(tensor if tensor.is_contiguous() else tensor.contiguous())
        results = [torch.empty(extents, dtype=dtype) for dtype, extents, _ in sizes]
        self._compiled.run([t.data_ptr() for t in given], [t.data_ptr() for t in results], symbols)
        for i, (dtype, extents, strides) in enumerate(sizes):
            if strides is not None:
                results[i] = _laid_out(results[i], strides)
        out = []
        for kind, what in self._outputs:
            if kind == "result":
                out.append(results[what])
            elif kind == "argument":
                out.append(args[what])
            else:
                out.append(evaluated(what, symbols) if kind == "number" else what)
        args.clear()
        return out


_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float8_e4m3fn: 0.2, torch.float8_e5m2: 0.4}


def _difference(want: torch.Tensor, got: torch.Tensor) -> float:
    """The root mean square of the error, over that of what is wanted; 0 where both are the same, infinite where only one is finite somewhere."""
    if torch.equal(want, got) or not want.numel():
        return 0.0
    if want.dtype not in _TOLERANCE:
        return math.inf
    want, got = want.double(), got.double()
    finite = want.isfinite()
    same = torch.where(finite, got.isfinite(), (want == got) | (want.isnan() & got.isnan()))
    if not bool(same.all()):
        return math.inf
    error, size = ((want - got)[finite].norm().item(), want[finite].norm().item())
    return error / size if size else (math.inf if error else 0.0)


def arguments_of(given):
    """The arguments of a boxed call, one list that the callee may empty, or of a plain one."""
    return given[0] if len(given) == 1 and isinstance(given[0], list) else list(given)


class Checked:
    """A call whose first run at each size is compared with PyTorch's; Error where the numbers differ."""

    def __init__(self, call: Call, module: torch.fx.GraphModule):
        self._boxed_call = True
        self._call, self._module = call, module
        self._seen: t.Set[t.Any] = set()

    def __call__(self, *given):
        args = arguments_of(given)
        key = tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args)
        if key in self._seen:
            return self._call(args)
        state = torch.get_rng_state()
        with torch.no_grad():
            wanted = self._module(*args)
        torch.set_rng_state(state)
        out = self._call(args)
        for i, (want, got) in enumerate(zip(wanted, out)):
            if isinstance(want, torch.Tensor):
                self._compare(i, want, got)
        self._seen.add(key)
        return out

    @staticmethod
    def _compare(i: int, want: torch.Tensor, got: torch.Tensor) -> None:
        difference, most = _difference(want.detach(), got.detach()), _TOLERANCE.get(want.dtype, 0.0)
        if difference > most:
            raise Error(
                f"result {i}, {want.dtype} of {tuple(want.shape)}, is not PyTorch's: relative RMS error {difference:.3g}, at most {most:.3g} may be; "
                'find the rule with options={"pipeline": ""} or fewer rules'
            )
