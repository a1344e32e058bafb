"""Results that depend on weights alone: computed once on their device, and again after PyTorch counts a change of a weight."""
from __future__ import annotations

import dataclasses
import typing as t
import weakref

import torch

import _piecewise

from ..counting import counted
from .devices import OnDevice, aligned, is_recording, stream_of
from .frozen import marks_of
from .fx_import import DTYPES


@dataclasses.dataclass
class _Known:
    """The prepared tensors for the weights at one call; immutable."""

    marks: t.List[t.Tuple[t.Any, ...]]
    results: t.List[torch.Tensor]
    alive: t.List[weakref.ref]


class PreparedWeights:
    """The results of a graph's weight-only part, computed once for each set of weights and stream; with the interface of FrozenWeights.

    Within a capture, that part is launched with the rest, so that a replay reads the weights. So it is if PyTorch counts no writes to a weight.
    """

    def __init__(self, device: _piecewise.Device, place: torch.device, graph: _piecewise.Graph, sizes: t.Dict[str, int], check: bool):
        """`check`: prepare at each call."""
        found = _piecewise.at_load(graph)
        self._place, self._check = place, check
        first, rest = found if found is not None else (None, graph)
        self.compiled = OnDevice(device, place, rest, sizes)
        self.summary = self.compiled.summary
        self._known: t.Dict[t.Tuple[int, ...], _Known] = {}  # by stream and the tensors' identities, while all of them are alive
        self._first: t.Optional[OnDevice] = None
        self._read: t.List[int] = []  # the inputs of the graph that the weight-only part reads
        inputs = {value.name: i for i, value in enumerate(graph.inputs)}
        made: t.Dict[str, int] = {}
        if first is not None:
            self._first = OnDevice(device, place, first, {})
            self._read = [inputs[value.name] for value in first.inputs]
            made = {value.name: i for i, value in enumerate(first.outputs)}
            self._results = [DTYPES[value.type.partition("[")[0]] for value in first.outputs], self._first.extents({})
            self.summary = [f"prepared: {counted(len(made), 'tensor')} from {counted(len(self._read), 'weight')}, computed once", *self.summary]
        self._order = [(value.name in made, made.get(value.name, inputs.get(value.name, 0))) for value in rest.inputs]

    def place(self, given: t.List[torch.Tensor]) -> t.Tuple[t.List[torch.Tensor]]:
        """Returns the last argument of run()."""
        if self._first is None:
            return ([],)
        weights = [given[i] for i in self._read]
        if self._check or is_recording(self._place) or any(weight.is_inference() for weight in weights):
            return (self._prepared(weights),)
        key, marks = (stream_of(self._place), *map(id, weights)), marks_of(weights)
        known = self._known.get(key)
        if known is None or known.marks != marks:
            everything = self._known
            alive = [weakref.ref(weight, lambda _: everything.pop(key, None)) for weight in weights]
            known = self._known[key] = _Known(marks, self._prepared(weights), alive)
        return (known.results,)

    def _prepared(self, weights: t.Sequence[torch.Tensor]) -> t.List[torch.Tensor]:
        dtypes, extents = self._results
        given = [aligned(weight) for weight in weights]
        out = [torch.empty(shape, dtype=dtype, device=self._place) for dtype, shape in zip(dtypes, extents)]
        self._first.run([x.data_ptr() for x in given], [x.data_ptr() for x in out], {})
        return out

    def run(self, inputs: t.Sequence[int], outputs: t.Sequence[int], symbols: t.Dict[str, int], prepared: t.Sequence[torch.Tensor]) -> None:
        """Enqueues the graph on the current stream."""
        self.compiled.run([prepared[i].data_ptr() if made else inputs[i] for made, i in self._order], outputs, symbols)
