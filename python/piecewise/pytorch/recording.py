"""CUDA graphs, and an emulation of PyTorch's cudagraph trees: calls with PyTorch's ops in them, one graph for each set of sizes.

On a device, PyTorch's torch.cuda.CUDAGraph records the stream. On the emulator, `EmulatedGraph` records the launches and PyTorch's ops, and replays them without
the Python code between them. Invariant: a replay computes what the call would compute with these arguments.
"""
from __future__ import annotations

import collections
import dataclasses
import logging
import threading
import typing as t
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .calls import arguments_of
from .counter import compilation_counter
from .devices import is_recording, recording
from .hosted import laid_out
from .reports import GraphReport
from .storage import Place
from .weights import is_plain

_log = logging.getLogger("piecewise")
_GRAPHS = 32  # sets of sizes and weights whose graphs a call keeps, for each thread
_ALLOCATIONS = ("aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided", "aten::empty_permuted")
_SIZES = ("aten::sym_size", "aten::sym_stride", "aten::sym_numel", "aten::sym_storage_offset")


class NotCapturable(Exception):
    """Raised while a call is recorded, with the reason why a CUDA graph cannot contain it."""


def _tensors(value: t.Any) -> t.List[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


class EmulatedGraph(TorchDispatchMode):
    """A CUDA graph of the emulator: launches and PyTorch's ops, in order, on tensors that stay where they are."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._steps: t.List[t.Callable[[], t.Any]] = []
        self._held: t.List[t.Any] = []  # memory of the launches

    def record(self, call: t.Callable[[], t.Any]) -> t.Any:
        with recording(self._launch), self:
            return call()

    def replay(self) -> None:
        for step in self._steps:
            step()

    def _launch(self, launch: t.Callable[[], None], arena: t.Any) -> None:
        self._steps.append(launch)
        self._held.append(arena)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self._held.append((args, out))
        name = func._schema.name if isinstance(func, torch._ops.OpOverload) else str(func)
        if name in _SIZES or name in _ALLOCATIONS:
            return out
        if any(isinstance(leaf, (bool, int, float, complex)) for leaf in tree_leaves(out)):
            raise NotCapturable(f"{name} reads a number from memory")
        given = {_memory(x) for x in _tensors((args, kwargs))}
        fresh = [(i, x) for i, x in enumerate(_tensors(out)) if _memory(x) not in given]
        if any(torch._debug_has_internal_overlap(x) != 0 for _, x in fresh):
            raise NotCapturable(f"elements of a result of {name} share memory")
        if fresh or isinstance(func, torch._ops.OpOverload) and func._schema.is_mutable:  # views stay as they are
            self._steps.append(lambda: self._again(func, args, kwargs, fresh))
        return out

    @staticmethod
    def _again(func: t.Any, args: t.Any, kwargs: t.Any, fresh: t.List[t.Tuple[int, torch.Tensor]]) -> None:
        out = _tensors(func(*args, **kwargs))
        for i, to in fresh:
            to.copy_(out[i])


class Pool:
    """Memory of graphs that are replayed in order, and the stream that they are recorded on; PyTorch's own may be another device's."""

    def __init__(self, place: torch.device):
        self.handle, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(place)


class TorchGraph:
    """A CUDA graph of PyTorch."""

    def __init__(self, pool: Pool):
        self._graph, self._pool = torch.cuda.CUDAGraph(), pool

    def record(self, call: t.Callable[[], t.Any]) -> t.Any:
        with torch.cuda.graph(self._graph, pool=self._pool.handle, stream=self._pool.stream, capture_error_mode="thread_local"):
            out = call()
        self._graph.replay()  # a capture does not run
        return out

    def replay(self) -> None:
        self._graph.replay()


class _Buffer(t.NamedTuple):
    """Fixed memory for an argument, in the argument's layout."""

    argument: int
    memory: torch.Tensor
    tensor: torch.Tensor
    place: t.Optional[Place]  # None: row-major

    @classmethod
    def of(cls, argument: int, x: torch.Tensor) -> _Buffer:
        place = Place(tuple(x.shape), x.stride(), 0)
        memory = torch.empty(place.span, dtype=x.dtype, device=x.device)
        return cls(argument, memory, memory.as_strided(place.sizes, place.strides), None if x.is_contiguous() else place)

    def fill(self, x: torch.Tensor) -> None:
        if self.place is None:
            self.tensor.copy_(x)
        else:
            laid_out(x, self.place, self.memory)


class _Result(t.NamedTuple):
    """A tensor that a recorded call returns: its layout in an argument's memory, or in a copy of fixed memory."""

    argument: int  # -1: none
    memory: int  # index of the memory, if there is no argument
    dtype: torch.dtype
    sizes: t.Tuple[int, ...]
    strides: t.Tuple[int, ...]
    offset: int  # bytes from the argument's first element, or from the beginning of the memory
    whole: bool  # the argument itself


class _Recorded:
    """A recorded call for fixed sizes and weights."""

    def __init__(self, graph: t.Any, call: t.Callable[[t.List[t.Any]], t.Any], args: t.Sequence[t.Any], static: t.Container[int]):
        self._graph = graph
        self._buffers = [_Buffer.of(i, x) for i, x in enumerate(args) if isinstance(x, torch.Tensor) and i not in static]
        self._fill(args)
        given = list(args)
        for buffer in self._buffers:
            given[buffer.argument] = buffer.tensor
        results = self._graph.record(lambda: call(list(given)))
        owners = {_memory(x): i for i, x in enumerate(given) if isinstance(x, torch.Tensor)}
        memories: t.Dict[int, int] = {}
        self._memories: t.List[torch.Tensor] = []
        self._results = [self._result(x, given, owners, memories) if isinstance(x, torch.Tensor) else x for x in results]

    def _fill(self, args: t.Sequence[t.Any]) -> None:
        for buffer in self._buffers:
            buffer.fill(args[buffer.argument])

    def _result(self, x: torch.Tensor, given: t.Sequence[t.Any], owners: t.Mapping[int, int], memories: t.Dict[int, int]) -> _Result:
        if x.layout != torch.strided or x.is_conj() or x.is_neg():
            raise NotCapturable("a result is not a plain tensor")
        memory, at = _memory(x), x.storage_offset() * x.element_size()
        if memory in owners and x.numel():
            i = owners[memory]
            of = given[i]
            whole = x is of or (x.dtype, x.shape, x.stride(), at) == (of.dtype, of.shape, of.stride(), of.storage_offset() * of.element_size())
            return _Result(i, -1, x.dtype, tuple(x.shape), x.stride(), at - of.storage_offset() * of.element_size(), whole)
        if memory not in memories:
            memories[memory] = len(self._memories)
            self._memories.append(torch.empty(0, dtype=torch.uint8, device=x.device).set_(x.untyped_storage()))
        return _Result(-1, memories[memory], x.dtype, tuple(x.shape), x.stride(), at, False)

    def out(self, args: t.Sequence[t.Any]) -> t.List[t.Any]:
        """Returns the results of the last replay: views of the arguments, and of copies of fixed memory."""
        copies = [memory.clone() for memory in self._memories]
        return [self._out(x, args, copies) if isinstance(x, _Result) else x for x in self._results]

    @staticmethod
    def _out(x: _Result, args: t.Sequence[t.Any], copies: t.Sequence[torch.Tensor]) -> torch.Tensor:
        if x.whole:
            return args[x.argument]
        of, start = copies[x.memory] if x.argument < 0 else args[x.argument], 0
        if x.argument >= 0:
            start = of.storage_offset() * of.element_size()
        return torch.empty(0, dtype=x.dtype, device=of.device).set_(of.untyped_storage(), (start + x.offset) // x.dtype.itemsize, x.sizes, x.strides)

    def __call__(self, args: t.Sequence[t.Any]) -> t.List[t.Any]:
        self._fill(args)
        self._graph.replay()
        return self.out(args)


class _Key:
    """The sizes and weights of a recorded graph, with their hash."""

    def __init__(self, value: t.Hashable):
        self._value, self._hash = value, hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, _Key) and self._value == other._value


class _Weights(t.NamedTuple):
    """The weights of a call, which later calls mostly have too."""

    seen: t.List[weakref.ref]
    addresses: t.List[int]
    key: _Key

    def are(self, tensors: t.Sequence[torch.Tensor]) -> bool:
        """Returns True if these are the same tensors at the same addresses; Dynamo's guards imply that their layouts are the same."""
        return all(ref() is x for ref, x in zip(self.seen, tensors)) and self.addresses == [x.data_ptr() for x in tensors]


@dataclasses.dataclass
class _Graphs:
    """The graphs of one thread, by sizes and weights; None for those that ran once, False for those that cannot be recorded."""

    by_key: t.OrderedDict[t.Any, t.Any] = dataclasses.field(default_factory=collections.OrderedDict)
    weights: t.Optional[_Weights] = None  # of the last call
    running: bool = False


class Captured:
    """A compiled call on the emulator that is launched at first, recorded the second time, and replayed from then on, for each set of sizes.

    Threads have graphs of their own, as these have fixed memory. A call within a capture, or within itself, is launched.
    """

    def __init__(
        self,
        call: t.Callable[[t.List[t.Any]], t.Any],
        static: t.Iterable[int],
        written: t.Sequence[int],
        place: torch.device,
        report: GraphReport,
    ):
        """`static`: the arguments that are weights. `written`: those of them that the call writes."""
        self._boxed_call = True
        self._call, self._static, self._written, self._place, self._report = call, sorted(static), written, place, report
        self._is_static = frozenset(self._static)
        self._local = threading.local()

    def _key(self, graphs: _Graphs, args: t.Sequence[t.Any]) -> t.Optional[_Key]:
        """Returns what a graph is recorded for; None if none can be."""
        weights = self._key_of_weights(graphs, [args[i] for i in self._static])
        parts = [self._part(x) for i, x in enumerate(args) if i not in self._is_static]
        if weights is None or None in parts:
            return None
        return _Key((torch.is_inference_mode_enabled(), weights, *parts))

    def _key_of_weights(self, graphs: _Graphs, weights: t.Sequence[torch.Tensor]) -> t.Optional[_Key]:
        if graphs.weights is not None and graphs.weights.are(weights):
            return graphs.weights.key
        parts = [self._part(x) for x in weights]
        if None in parts or not all(isinstance(x, torch.Tensor) for x in weights):
            return None
        addresses = [x.data_ptr() for x in weights]
        graphs.weights = _Weights([weakref.ref(x) for x in weights], addresses, _Key((*addresses, *parts)))
        return graphs.weights.key

    def _part(self, x: t.Any) -> t.Optional[t.Tuple[t.Any, ...]]:
        """Returns what a graph needs of an argument besides its address; None if it cannot have such an argument."""
        if isinstance(x, torch.Tensor):
            return (x.dtype, x.shape, x.stride()) if is_plain(x) and x.device == self._place else None
        if isinstance(x, float):
            return float, x.hex()  # 0 and -0 are equal
        return (type(x), x) if x is None or isinstance(x, (bool, int, str)) else None

    def __call__(self, *given):
        return self._run(arguments_of(given))

    def _run(self, args: t.List[t.Any]) -> t.Any:
        graphs = getattr(self._local, "graphs", None)
        if graphs is None:
            graphs = self._local.graphs = _Graphs()
        key = None if graphs.running or is_recording(self._place) else self._key(graphs, args)
        if key is None:
            return self._call(args)
        seen = key in graphs.by_key
        known = graphs.by_key.setdefault(key)
        graphs.by_key.move_to_end(key)
        if len(graphs.by_key) > _GRAPHS:
            graphs.by_key.popitem(last=False)
        if not seen or known is False:
            return self._call(args)
        graphs.running = True
        try:
            out = self._record(graphs, key, args) if known is None else known(args)
        finally:
            graphs.running = False
        args.clear()
        return out

    def _record(self, graphs: _Graphs, key: _Key, args: t.List[t.Any]) -> t.List[t.Any]:
        """Records a call. If that fails, it is launched, here and later, and raises its own errors."""
        compilation_counter.add("num_gpu_runner_capture_triggers")
        state, before = torch.get_rng_state(), [args[i].clone() for i in self._written]
        try:
            made = _Recorded(EmulatedGraph(), self._call, args, self._is_static)
            out = made.out(args)
        except Exception as why:
            torch.set_rng_state(state)
            for i, value in zip(self._written, before):
                args[i].copy_(value)
            out = self._call(list(args))
            graphs.by_key[key] = False
            self._report.not_captured = str(why)
            _log.warning("a call is launched at these sizes, because it cannot be captured: %s", why)
            return out
        graphs.by_key[key] = made
        self._report.captures += 1
        compilation_counter.add("num_cudagraph_captured")
        return out
