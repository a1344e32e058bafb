"""CUDA graphs of compiled parts, between PyTorch's ops: inputs are copied into fixed buffers, the graph is replayed, and results are copied out.

Invariant: a replay computes what the launches would compute with these arguments. Rows of padding hold any numbers, and are not returned.
"""
from __future__ import annotations

import logging
import typing as t

import torch

from .calls import Call
from .counter import compilation_counter
from .devices import aligned, is_recording, on_device, stream_of
from .padding import Extents, Padding, padded_parts
from .recording import KeptGraphs, graph_on
from .reports import GraphReport

_log = logging.getLogger("piecewise")
_GRAPHS = 64  # sets of sizes and weights whose graphs a part keeps, for each thread
_BEGINNINGS = 256  # exact sizes whose parts of fixed memory a graph keeps


class _Beginnings(t.NamedTuple):
    """The parts of fixed memory that a call fills and returns."""

    buffers: t.List[torch.Tensor]
    results: t.List[torch.Tensor]
    padded: bool


def _buffer(extents: t.Sequence[int], dtype: torch.dtype, place: torch.device) -> torch.Tensor:
    """Returns fixed memory of an input."""
    return torch.zeros(extents, dtype=dtype, device=place)


def _beginning(memory: torch.Tensor, extents: t.Sequence[int]) -> torch.Tensor:
    return memory[tuple(slice(0, extent) for extent in extents)]


def _row_major(x: torch.Tensor) -> torch.Tensor:
    """Returns a view with the strides of a row-major tensor, or a copy; a dim of one element may have another stride before."""
    return x.view(-1).view(x.shape) if x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)


class _Recorded:
    """The recorded launches of a part, for fixed sizes and weights."""

    def __init__(self, run: t.Callable[..., None], inputs: t.Sequence[t.Any], args: t.Sequence[t.Any], padded: Extents, static: t.Container[int], of):
        """`of`: the dtypes of the results, and their device."""
        dtypes, place = of
        self._graph = graph_on(place)
        self._arguments: t.List[int] = []  # those that are copied
        self._buffers: t.List[t.Tuple[int, torch.Tensor]] = []  # with the indices of their inputs
        given = []
        for i, (at, extents) in enumerate(zip(inputs, padded.inputs)):
            tensor = args[at] if isinstance(at, int) else at
            if not isinstance(at, int) or (at in static and aligned(tensor) is tensor):
                given.append(aligned(tensor))
                continue
            self._arguments.append(at)
            self._buffers.append((i, _buffer(extents, tensor.dtype, tensor.device)))
            given.append(self._buffers[-1][1])
        self._constants = [x for x, at in zip(given, inputs) if not isinstance(at, int)]  # which may be copies
        self._results = [torch.empty(extents, dtype=dtype, device=place) for dtype, extents in zip(dtypes, padded.results)]
        self._beginnings: t.Dict[t.Tuple[int, ...], _Beginnings] = {}
        self._symbols = padded.symbols
        self._graph.record(lambda: run([x.data_ptr() for x in given], [x.data_ptr() for x in self._results], padded.symbols))

    def _begin(self, exact: Extents) -> _Beginnings:
        if len(self._beginnings) >= _BEGINNINGS:
            self._beginnings.clear()
        with torch.inference_mode(False):
            buffers = [_beginning(buffer, exact.inputs[i]) for i, buffer in self._buffers]
            results = [_beginning(result, extents) for result, extents in zip(self._results, exact.results)]
        out = self._beginnings[tuple(exact.symbols.values())] = _Beginnings(buffers, results, exact.symbols != self._symbols)
        return out

    def __call__(self, args: t.Sequence[t.Any], exact: Extents, static: bool, report: GraphReport) -> t.List[torch.Tensor]:
        begin = self._beginnings.get(tuple(exact.symbols.values())) or self._begin(exact)
        if begin.buffers:
            torch._foreach_copy_(begin.buffers, [args[i] for i in self._arguments])
        self._graph.replay()
        report.padded += begin.padded
        if static:
            return [_row_major(x) for x in begin.results]
        return [x.clone(memory_format=torch.contiguous_format) for x in begin.results]


class Piece(Call):
    """A compiled part that is launched at first, recorded the second time, and replayed from then on, for each capture size and set of weights.

    Threads and streams have graphs of their own, as these have fixed memory. A call within a capture is launched.
    """

    def __init__(self, *of: t.Any, padding: Padding, static: t.Iterable[int], static_results: bool, captured: bool, report: GraphReport):
        """`of`: the arguments of Call. `static`: which arguments are weights. `static_results`: return them without copies, and overwrite them later.
        `captured`: not only within the capture of a whole graph.
        """
        super().__init__(*of)
        self._padding, self._report, self._static_results, self._captured = padding, report, static_results, captured
        self._static = frozenset(static)
        self._kept = KeptGraphs(sorted(self._static), _GRAPHS)

    def _compute(self, args, symbols, known):
        extents = self._padding.at(symbols, self._compiled.extents)
        padded_parts.count += extents is None or extents[1].symbols != symbols
        if extents is None or not self._captured:
            return super()._compute(args, symbols, known)
        exact, padded = extents
        with on_device(self._place):
            recorded = None if is_recording(self._place) else self._recorded(args, padded)
            if recorded:
                return recorded(args, exact, self._static_results, self._report)
        return super()._compute(args, symbols, known) if padded.symbols == symbols else self._launched(args, exact, padded)

    def _launched(self, args: t.Sequence[t.Any], exact: Extents, padded: Extents) -> t.List[torch.Tensor]:
        """Launches a padded call, which has the bits of its replays: a product may depend on the number of rows."""
        given = []
        for at, wanted, extents in zip(self._inputs, padded.inputs, exact.inputs):
            tensor = args[at] if isinstance(at, int) else at
            if wanted != extents:
                larger = _buffer(wanted, tensor.dtype, tensor.device)
                _beginning(larger, extents).copy_(tensor)
                tensor = larger
            given.append(aligned(tensor))
        results = [torch.empty(extents, dtype=dtype, device=self._place) for (dtype, _), extents in zip(self._results, padded.results)]
        self._run([x.data_ptr() for x in given], [x.data_ptr() for x in results], padded.symbols)
        return [_row_major(_beginning(x, extents)) for x, extents in zip(results, exact.results)]

    def _recorded(self, args: t.Sequence[t.Any], padded: Extents) -> t.Union[_Recorded, bool, None]:
        """Returns the graph to replay, which is recorded if it is wanted the second time."""
        weights = self._kept.weights(args)
        if weights is None:
            return None
        key = (stream_of(self._place), weights, *padded.symbols.values())
        seen, known = self._kept.find(key)
        if seen and known is None:
            known = self._record(args, padded)
            self._kept.keep(key, known)
        return known

    def _record(self, args: t.Sequence[t.Any], padded: Extents) -> t.Union[_Recorded, bool]:
        """Records the launches. If that fails, they are launched, here and later, and raise their own errors."""
        compilation_counter.add("num_gpu_runner_capture_triggers")
        dtypes = [dtype for dtype, _ in self._results]
        try:
            with torch.inference_mode(False), torch.no_grad():
                made = _Recorded(self._run, self._inputs, args, padded, self._static, (dtypes, self._place))
        except Exception as why:
            self._report.not_captured = str(why)
            _log.warning("a part is launched at these sizes, because it cannot be captured: %s", why)
            return False
        self._report.captures += 1
        compilation_counter.add("num_cudagraph_captured")
        return made
