"""Adapters between compiled graphs and PyTorch, in both directions."""
from __future__ import annotations

import ctypes
import functools
import math
import typing as t

import torch

import _piecewise
from _piecewise import Error

from .checks import as_pytorch, is_failed
from .frozen import FrozenWeights
from .devices import OnDevice, aligned
from .hosted import HostCalls, laid_out
from .prepared import PreparedWeights
from .storage import Place, dense, part_of, row_major
from .fx_import import DTYPES, FxImport, evaluated
from .weights import WeightSets


def over(address: int, dtype: str, extents: t.Tuple[int, ...]) -> torch.Tensor:
    """Returns a tensor over memory of the engine."""
    kind = DTYPES[dtype]
    count = math.prod(extents)
    if count == 0:
        return torch.empty(extents, dtype=kind)
    memory = (ctypes.c_byte * (count * kind.itemsize)).from_address(address)
    return torch.frombuffer(memory, dtype=kind).view(extents)


def of_any_sign(ready: t.Callable[[torch.Tensor], torch.Tensor]) -> t.Callable[[torch.Tensor], torch.Tensor]:
    """Returns `ready` for tensors whose memory may have the opposite signs, such as the imaginary part of a conjugate."""
    return lambda tensor: ready(tensor.resolve_neg())


def _may_be_negated(placeholder: torch.fx.Node) -> bool:
    """Returns True if the memory of an argument may have the opposite signs. PyTorch guards this, except for the gradients that a backward graph receives."""
    fake = placeholder.meta.get("val")
    return isinstance(fake, torch.Tensor) and (fake.is_neg() or placeholder.name.startswith("tangents"))


def _empty_on(place: torch.device, extents: t.Tuple[int, ...], strides: t.Tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(extents, strides, dtype=dtype, device=place)


# The allocation of Inductor's generated code, without the dispatcher: a third of the time of torch.empty.
_empty_cpu = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", None) or functools.partial(_empty_on, torch.device("cpu"))


def _permuted(tensor: torch.Tensor, place: Place) -> torch.Tensor:
    """Returns a copy with this dense layout."""
    return torch.empty_strided(place.sizes, place.strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _weight_addresses(
    inputs: t.Sequence[t.Any], weights: t.Sequence[int], ready: t.Callable[[torch.Tensor], torch.Tensor], args: t.Sequence[t.Any]
) -> t.Optional[t.List[int]]:
    """Returns the addresses of all inputs, with 0 for those that are not weights; None if a weight has to be copied for each call."""
    addresses = [0] * len(inputs)
    for i in weights:
        tensor = args[inputs[i]]
        if ready(tensor) is not tensor:
            return None
        addresses[i] = tensor.data_ptr()
    return addresses


class _Known(t.NamedTuple):
    """Sizes and layouts that all calls with the same symbols share."""

    empties: t.List[t.Tuple[t.Tuple[int, ...], t.Tuple[int, ...], torch.dtype]]  # extents, strides, and dtype of the computed results
    laid_out: t.List[t.Tuple[int, t.Callable[[torch.Tensor, Place], torch.Tensor], Place]]  # the results that are not row-major
    views: t.Dict[int, t.Tuple[Place, Place, torch.dtype]]  # by output: a returned view's place, and that of its base


class Call:
    """A compiled graph in AOT autograd's boxed calling convention: takes a list of arguments and empties it. Thread-safe and reentrant.

    A call of a small graph costs little more than this code: whatever depends only on the graph or on the sizes is computed once.
    """

    def __init__(
        self,
        imported: FxImport,
        graph: _piecewise.Graph,
        compiled: t.Union[_piecewise.Compiled, OnDevice],
        hosted: HostCalls,
        frozen: t.Union[FrozenWeights, PreparedWeights, None] = None,
    ):
        self._boxed_call = True  # stored on the object: wrappers do not copy class attributes
        self._compiled = compiled
        self._frozen = frozen
        self._run = compiled.run if frozen is None else frozen.run
        negated = any(map(_may_be_negated, imported.graph.find_nodes(op="placeholder")))
        ready = aligned if isinstance(compiled, OnDevice) else torch.Tensor.contiguous
        self._ready = of_any_sign(ready) if negated else ready
        self._place = compiled.place if isinstance(compiled, OnDevice) else None
        self._empty = _empty_cpu if self._place is None else functools.partial(_empty_on, self._place)
        self._hosted = None if hosted.plain else hosted
        self._in_pytorch = imported.run
        self._outputs = imported.outputs
        self._symbols = list(imported.symbols.items())
        self._results = [(fake.dtype, Place.of(fake)) for fake in imported.results]
        self._only_results = self._outputs == [("result", i) for i in range(len(self._results))]
        self._inputs = [imported.constants[i.name] if i.name in imported.constants else imported.arguments[i.name] for i in graph.inputs]
        given = [node.meta.get("val") for node in imported.graph.find_nodes(op="placeholder")]
        self._dtypes = [(i, fake.dtype) for i, fake in enumerate(given) if isinstance(fake, torch.Tensor)]
        self._known: t.Dict[t.Tuple[int, ...], _Known] = {}
        fixed = imported.weights() if frozen is None else set()
        weights = [i for i, place in enumerate(self._inputs) if isinstance(place, int) and place in fixed]
        self._others = [i for i, place in enumerate(self._inputs) if not isinstance(place, int) or place not in fixed]  # that each call looks up
        # Without a reference to self: a cycle would keep the compiled graph until the garbage collector finds it.
        self._weights = (
            WeightSets([self._inputs[i] for i in weights], functools.partial(_weight_addresses, self._inputs, weights, self._ready))
            if weights
            else None
        )

    @property
    def choices(self) -> t.List[t.Tuple[str, t.List[t.Tuple[str, float]]]]:
        """Returns the measured classes of operands: kernels and seconds, the fastest first."""
        return self._compiled.choices

    def _learn(self, key: t.Tuple[int, ...], symbols: t.Dict[str, int]) -> _Known:
        at = functools.partial(evaluated, symbols=symbols)
        places = [place._replace(offset=0).at(at) for _, place in self._results]
        extents = [tuple(e) for e in self._compiled.extents(symbols)]
        if extents != [place.sizes for place in places]:
            raise Error(f"the graph returns tensors of {extents}, but PyTorch of {[place.sizes for place in places]}")
        empties = [(sizes, torch.empty(sizes, device="meta").stride(), dtype) for (sizes, *_), (dtype, _) in zip(places, self._results)]
        copied = [(i, _permuted if dense(place) else laid_out, place) for i, place in enumerate(places) if not row_major(place)]
        views = {
            i: (place.at(at), whole.at(at), dtype)
            for i, (kind, what) in enumerate(self._outputs)
            if kind == "view"
            for _, place, whole, dtype in [what]
        }
        known = self._known[key] = _Known(empties, copied, views)
        return known

    def __call__(self, *given):
        args = arguments_of(given)
        symbols = {name: args[index] if dim < 0 else args[index].shape[dim] for name, (index, dim) in self._symbols} if self._symbols else {}
        key = tuple(symbols.values())
        known = self._known.get(key)
        if known is None:
            if any(args[i].dtype != dtype for i, dtype in self._dtypes):
                with torch.no_grad():
                    return self._in_pytorch(*args)  # they come from an op that PyTorch traced with other dtypes
            known = self._learn(key, symbols)
        try:
            results = self._compute(args, symbols, known)
        except Error as why:
            if not is_failed(why):
                raise
            return as_pytorch(lambda: self._in_pytorch(*args), why)
        for i, lay_out, place in known.laid_out:
            results[i] = lay_out(results[i], place)
        out = results if self._only_results else self._outputs_of(args, results, symbols, known)
        args.clear()
        return out

    def _outputs_of(self, args: t.Sequence[t.Any], results: t.Sequence[torch.Tensor], symbols: t.Dict[str, int], known: _Known) -> t.List[t.Any]:
        out = []
        for i, (kind, what) in enumerate(self._outputs):
            if kind == "result":
                out.append(results[what])
            elif kind == "argument":
                out.append(args[what])
            elif kind == "view":
                of, base = what[0]
                out.append(_view((results if of == "result" else args)[base], *known.views[i]))
            else:
                out.append(evaluated(what, symbols) if kind == "number" else what)
        return out

    def _compute(self, args: t.Sequence[t.Any], symbols: t.Dict[str, int], known: _Known) -> t.List[torch.Tensor]:
        """Returns the computed results, row-major."""
        prepared, given = (), []  # the tensors live while the graph runs
        addresses = self._weights.of(args) if self._weights is not None else None
        if addresses is not None:
            addresses = addresses.copy()
            for i in self._others:
                place = self._inputs[i]
                given.append(self._ready(args[place] if isinstance(place, int) else place))
                addresses[i] = given[-1].data_ptr()
        else:
            given = [args[place] if isinstance(place, int) else place for place in self._inputs]
            prepared = self._frozen.place(given) if self._frozen is not None else ()
            given = [self._ready(tensor) for tensor in given]
            addresses = [tensor.data_ptr() for tensor in given]
        results = [self._empty(*what) for what in known.empties]
        before = self._hosted.begin(args, symbols) if self._hosted is not None else None
        try:
            self._run(addresses, [tensor.data_ptr() for tensor in results], symbols, *prepared)
        finally:
            if before is not None:
                self._hosted.end(before)
        return results


def _view(of: torch.Tensor, place: Place, whole: Place, dtype: torch.dtype) -> torch.Tensor:
    """Returns a part of a tensor's memory, by offset in elements of the dtype. The tensor must have the layout of `whole`."""
    for size, stride, stated in zip(whole.sizes, of.stride(), whole.strides):
        if size > 1 and stride != stated:
            raise Error(f"an argument has the strides {tuple(of.stride())}, but the graph was compiled for {whole.strides}")
    return part_of(of, place, dtype)


_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float8_e4m3fn: 0.2, torch.float8_e5m2: 0.4}


def _difference(want: torch.Tensor, got: torch.Tensor) -> float:
    """Returns the RMS error relative to the expected RMS: 0 if both are equal, infinite if only one is finite somewhere."""
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
    """Returns the arguments of a boxed call (one list, which the callee may empty) or of a plain call."""
    return given[0] if len(given) == 1 and isinstance(given[0], list) else list(given)


class Checked:
    """A call whose first run at each size is compared with PyTorch's; raises Error if the numbers differ."""

    def __init__(self, call: Call, module: torch.fx.GraphModule, written: t.Sequence[int]):
        """`written`: the arguments that the call writes."""
        self._boxed_call = True
        self._call, self._module, self._written = call, module, written
        self._seen: t.Set[t.Any] = set()

    def __call__(self, *given):
        args = arguments_of(given)
        key = tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args)
        if key in self._seen:
            return self._call(args)
        state, written, copies = torch.get_rng_state(), [args[i] for i in self._written], list(args)
        with torch.no_grad():
            for i in self._written:
                copies[i] = args[i].clone()
            wanted = self._module(*copies)
        torch.set_rng_state(state)
        out = self._call(args)
        for i, (want, got) in enumerate(zip(wanted, out)):
            if isinstance(want, torch.Tensor):
                self._compare(f"result {i}", want, got)
        for i, got in zip(self._written, written):
            self._compare(f"argument {i}", copies[i], got)
        self._seen.add(key)
        return out

    @staticmethod
    def _compare(name: str, want: torch.Tensor, got: torch.Tensor) -> None:
        difference, most = _difference(want.detach(), got.detach()), _TOLERANCE.get(want.dtype, 0.0)
        if difference > most:
            raise Error(
                f"{name}, {want.dtype} of {tuple(want.shape)}, differs from PyTorch's: relative RMS error {difference:.3g}, but at most {most:.3g} is allowed; "
                'find the rule with options={"pipeline": ""} or fewer rules'
            )
