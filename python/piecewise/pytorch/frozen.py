"""Prepacked weights of compiled graphs, and the detection of changes to the originals."""
from __future__ import annotations

import dataclasses
import typing as t
import weakref

import torch

import _piecewise
from _piecewise import Error


@dataclasses.dataclass
class _Known:
    """The weights at one call, by index; immutable."""

    marks: t.List[t.Tuple[t.Any, ...]]
    held: t.List[torch.Tensor]  # row-major, kept until the weights change, so that their addresses are not reused
    copies: t.List[int]  # indices of weights held as copies
    compared: t.List[int]  # copies of weights whose writes PyTorch does not count
    run_arguments: t.Tuple[_piecewise.Frozen, t.List[int]]  # their prepacked forms, and the inputs that are compared
    alive: t.List[weakref.ref]


def marks_of(weights: t.Sequence[torch.Tensor]) -> t.List[t.Tuple[t.Any, ...]]:
    """Returns the memory, version, and strides of weights, which change when PyTorch counts a write."""
    try:
        return [(w.data_ptr(), w._version, w.stride()) for w in weights]
    except RuntimeError:  # a tensor from inference mode has no version
        return [(w.data_ptr(), None if w.is_inference() else w._version, w.stride()) for w in weights]


class FrozenWeights:
    """The prepacked weights of one compiled graph, as of the last call with them; one set for each layer that shares the graph.

    A weight has changed if it has other memory, or if PyTorch has counted a write since: in place, by load_state_dict, or by an optimizer's step.
    PyTorch does not count writes to weights made in inference mode, so these are compared at each call.

    Thread-safe: each call replaces the shared state as a whole, and continues with its own.
    """

    def __init__(self, compiled: _piecewise.Compiled, check: bool):
        self._compiled = compiled
        self._indices = list(compiled.weights)
        self._check = check
        self._known: t.Dict[t.Tuple[int, ...], _Known] = {}  # by the tensors' identities, while all of them are alive
        self._last: t.Optional[_Known] = None

    def place(self, given: t.List[torch.Tensor]) -> t.Tuple[_piecewise.Frozen, t.List[int]]:
        """Replaces weights by their row-major forms. Returns the last arguments of run()."""
        weights = [given[i] for i in self._indices]
        known = self._known.get(tuple(map(id, weights)))
        marks = marks_of(weights)
        if known is None or known.marks != marks:
            known = self._renewed(weights, marks, known)
        elif known.compared:
            written = [at for at in known.compared if not torch.equal(weights[at], known.held[at])]
            if written:
                known = self._renewed(weights, marks, known, written)
        for at in known.copies:
            given[self._indices[at]] = known.held[at]
        return known.run_arguments

    def run(self, inputs: t.List[int], outputs: t.List[int], symbols: t.Dict[str, int], kept: _piecewise.Frozen, compared: t.List[int]) -> None:
        """Runs Compiled.run; after an Error the prepacked weights are rebuilt, because they may be stale."""
        try:
            self._compiled.run(inputs, outputs, symbols, kept, compared)
        except Error:
            self._forget(kept)
            raise

    def _renewed(self, weights, marks, before: t.Optional[_Known], written: t.Sequence[int] = ()) -> _Known:
        if before is None and self._last is not None and any(ref() is None for ref in self._last.alive):
            before = self._last  # the tensors may have been made for one call
        changed, kept = range(len(weights)), None
        if before is not None:
            kept = before.run_arguments[0]
            changed = [at for at in changed if before.marks[at] != marks[at] or at in written]
        held = list(before.held) if before is not None else [None] * len(weights)
        for at in changed:
            held[at] = weights[at].detach().resolve_neg().contiguous()
        copies = [at for at, w in enumerate(weights) if not w.is_contiguous() or w.is_neg()]
        compared = [at for at, w in enumerate(weights) if self._check or w.is_inference()]
        run_arguments = self._compiled.freeze(kept, [self._indices[at] for at in changed]), [self._indices[at] for at in compared]
        key, all_known = tuple(map(id, weights)), self._known
        alive = [weakref.ref(w, lambda _: all_known.pop(key, None)) for w in weights]
        known = self._last = all_known[key] = _Known(marks, held, copies, [at for at in compared if at in copies], run_arguments, alive)
        return known

    def _forget(self, kept: _piecewise.Frozen) -> None:
        for key, known in list(self._known.items()):
            if known.run_arguments[0] is kept:
                self._known.pop(key, None)
        if self._last is not None and self._last.run_arguments[0] is kept:
            self._last = None
