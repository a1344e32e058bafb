"""CUDA graphs, and calls that are captured whole, with PyTorch's ops in them: one graph for each set of sizes and weights.

On a device, PyTorch's torch.cuda.CUDAGraph records the stream. On the emulator, `EmulatedGraph` records the launches and PyTorch's ops, and replays them without
the Python code between them. Invariant: a replay computes what the call would compute with these arguments.
"""
from __future__ import annotations

import collections
import logging
import threading
import typing as t

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .calls import arguments_of
from .counter import compilation_counter
from .devices import is_recording, on_device, recording, stream_of
from .hosted import laid_out
from .padding import padded_parts
from .reports import GraphReport
from .storage import Place
from .weights import WeightSets, is_plain

_log = logging.getLogger("piecewise")
_GRAPHS = 32  # sets of sizes and weights whose graphs a call keeps, for each thread
_pools = threading.local()  # a graph's memory is free again after its replay, so graphs of a thread and stream share it
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


def graph_on(place: torch.device) -> t.Union[EmulatedGraph, TorchGraph]:
    """Returns a new graph."""
    if place.type != "cuda":
        return EmulatedGraph()
    key = place, stream_of(place)
    if key not in _pools.__dict__:
        _pools.__dict__[key] = Pool(place)
    return TorchGraph(_pools.__dict__[key])


class KeptGraphs(threading.local):
    """The graphs of one thread, which have fixed memory, by what they are recorded for: None for calls that were launched once, False for those that are not
    recorded. The least recently used are dropped.
    """

    def __init__(self, static: t.Sequence[int], most: int):
        """`static`: which arguments are weights."""
        self._most = most
        self._weights = WeightSets(static, lambda args: object()) if static else None
        self._by_key: t.OrderedDict[t.Any, t.Any] = collections.OrderedDict()
        self.running = False

    def weights(self, args: t.List[t.Any]) -> t.Any:
        """Returns what identifies a call's weights; None if graphs cannot contain them."""
        return True if self._weights is None else self._weights.of(args)

    def find(self, key: t.Hashable) -> t.Tuple[bool, t.Any]:
        """Returns whether such a call was made before, and its graph."""
        seen = key in self._by_key
        known = self._by_key.setdefault(key)
        self._by_key.move_to_end(key)
        if len(self._by_key) > self._most:
            self._by_key.popitem(last=False)
        return seen, known

    def keep(self, key: t.Hashable, graph: t.Any) -> None:
        """Sets the graph of such calls."""
        self._by_key[key] = graph


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

    def __init__(self, graph: t.Any, call: t.Callable[[t.List[t.Any]], t.Any], args: t.Sequence[t.Any], static: t.Container[int], copied: bool):
        """`copied`: results are copies of fixed memory, and belong to the caller."""
        self._graph, self._copied = graph, copied
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
        """Returns the results of the last replay: views of the arguments, and of fixed memory or copies of it."""
        copies = [memory.clone() for memory in self._memories] if self._copied else self._memories
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


class Captured:
    """A compiled call that is launched at first, recorded the second time, and replayed from then on, for each set of sizes and weights.

    Threads and streams have graphs of their own. A call within a capture, or within itself, is launched.
    """

    def __init__(
        self,
        call: t.Callable[[t.List[t.Any]], t.Any],
        static: t.Iterable[int],
        written: t.Sequence[int],
        place: torch.device,
        report: GraphReport,
        exact: bool = False,
        copied: bool = True,
    ):
        """`static`: the arguments that are weights. `written`: those of them that the call writes. `exact`: launch calls that have padded parts."""
        self._boxed_call = True
        self._call, self._written, self._place, self._report = call, written, place, report
        self._exact, self._copied = exact, copied
        self._static = frozenset(static)
        self._kept = KeptGraphs(sorted(self._static), _GRAPHS)

    def _key(self, args: t.List[t.Any]) -> t.Optional[t.Hashable]:
        """Returns what a graph is recorded for; None if none can be."""
        weights = self._kept.weights(args)
        parts = [self._part(x) for i, x in enumerate(args) if i not in self._static]
        if weights is None or None in parts:
            return None
        return stream_of(self._place), torch.is_inference_mode_enabled(), weights, *parts

    def _part(self, x: t.Any) -> t.Optional[t.Tuple[t.Any, ...]]:
        """Returns what a graph needs of an argument besides its address; None if it cannot have such an argument."""
        if isinstance(x, torch.Tensor):
            return (x.dtype, x.shape, x.stride()) if is_plain(x) and x.device == self._place else None
        if isinstance(x, float):
            return float, x.hex()  # 0 and -0 are equal
        return (type(x), x) if x is None or isinstance(x, (bool, int, str)) else None

    def __call__(self, *given):
        args, kept = arguments_of(given), self._kept
        key = None if kept.running or is_recording(self._place) else self._key(args)
        if key is None:
            return self._call(args)
        seen, known = kept.find(key)
        if not seen:
            return self._launched(key, args)
        if known is False:
            return self._call(args)
        kept.running = True
        try:
            with on_device(self._place):
                out = self._record(key, args) if known is None else known(args)
        finally:
            kept.running = False
        args.clear()
        return out

    def _launched(self, key: t.Hashable, args: t.List[t.Any]) -> t.Any:
        before = padded_parts.count
        out = self._call(args)
        if self._exact and padded_parts.count != before:
            self._kept.keep(key, False)
        return out

    def _record(self, key: t.Hashable, args: t.List[t.Any]) -> t.List[t.Any]:
        """Records a call. If that fails, it is launched and raises its own errors; if it raises none, it is launched later too."""
        compilation_counter.add("num_gpu_runner_capture_triggers")
        emulated = self._place.type != "cuda"  # where a recording runs
        state, before = torch.get_rng_state(), [(i, args[i].clone()) for i in self._written if emulated]
        try:
            made = _Recorded(graph_on(self._place), self._call, args, self._static, self._copied)
            out = made.out(args)
        except Exception as why:
            torch.set_rng_state(state)
            for i, value in before:
                args[i].copy_(value)
            out = self._call(list(args))
            self._kept.keep(key, False)
            self._report.not_captured = str(why)
            _log.warning("a call is launched at these sizes, because it cannot be captured: %s", why)
            return out
        self._kept.keep(key, made)
        self._report.captures += 1
        compilation_counter.add("num_cudagraph_captured")
        return out
