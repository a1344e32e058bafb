"""Capture sizes of a compiled part, and the proof that a call may be padded to one of them.

Invariant: a padded call computes the elements of the exact call at the beginning of each dim. It is proved for the graph (`_piecewise.why_not_padded`), for
sizes at which PyTorch would call the same graph: its guards hold there.
"""
from __future__ import annotations

import threading
import typing as t

import torch

import _piecewise
from _piecewise import Error

from .conditions import holds, kept_condition
from .fx_import import FxImport, evaluated, expression
from .guards import Range, conditions, shape_env, symbol_range

_MOST_KNOWN = 4096  # sets of symbols whose sizes are kept


class _PaddedParts(threading.local):
    """Counts the calls of parts on this thread that run at a larger size, or above all capture sizes."""

    count = 0


padded_parts = _PaddedParts()


class Extents(t.NamedTuple):
    """Extents for which a call is recorded, and the beginnings of them that a call fills and returns."""

    symbols: t.Dict[str, int]
    inputs: t.List[t.List[int]]
    results: t.List[t.List[int]]

    def contain(self, other: Extents) -> bool:
        """Returns True if all extents are at least the other ones."""
        pairs = [*zip(self.inputs, other.inputs), *zip(self.results, other.results)]
        return all(a >= b for most, least in pairs for a, b in zip(most, least))


def _fakes(imported: FxImport) -> t.List[t.Any]:
    return [node.meta.get("val") for node in imported.graph.find_nodes(op="placeholder")]


def _counts(value: t.Any, symbol: str) -> bool:
    """Returns True if an extent of a fake tensor depends on the symbol."""
    extents = map(expression, value.shape) if isinstance(value, torch.Tensor) else ()
    return any(symbol in map(str, getattr(extent, "free_symbols", ())) for extent in extents)


class Padding:
    """The sizes that calls of a part are recorded for: those of the caller, or the next of a few sizes for the first symbol, which counts tokens."""

    def __init__(self, imported: FxImport, graph: _piecewise.Graph, static: t.Container[int], sizes: t.Optional[t.Sequence[int]]):
        """`static`: which arguments are weights. `sizes`: token counts; None: those of `pwr plan`; none of them: exact ones."""
        self._imported, self._graph, self._sizes = imported, graph, sizes
        self._fakes = _fakes(imported)
        self._inputs = [imported.arguments.get(i.name, -1) for i in graph.inputs]  # -1: a constant
        self._known: t.Dict[t.Tuple[int, ...], t.Optional[t.Tuple[Extents, Extents]]] = {}
        self._conditions: t.Optional[t.List[t.Any]] = None  # read at the first call, when PyTorch has all its guards
        self.symbol = ""  # the one that counts tokens; empty: calls are recorded at exact sizes
        self.why_exact = ""  # although sizes are wanted and the graph has symbols
        if sizes is not None and not sizes:
            return
        first = next(iter(imported.symbols), "")
        self.why_exact = self._why_exact(first, static) if first else ""
        self.symbol = "" if self.why_exact else first

    def _why_exact(self, symbol: str, static: t.Container[int]) -> str:
        if any(_counts(value, symbol) for i, value in enumerate(self._fakes) if i in static):
            return f"{symbol} is an extent of a weight"
        env = shape_env(self._imported.graph)
        for guard in env.guards if env is not None else ():
            names = {str(one) for one in env.replace(guard.expr).free_symbols}
            if symbol in names and not names <= set(self._imported.symbols):
                return f"PyTorch requires {guard.expr}, which has sizes of other parts"
        return _piecewise.why_not_padded(self._graph, symbol) or ""

    def at(self, symbols: t.Dict[str, int], extents: t.Callable[[t.Dict[str, int]], t.List[t.List[int]]]) -> t.Optional[t.Tuple[Extents, Extents]]:
        """Returns the extents of a call, and those that it is recorded for; None if it is not recorded. `extents`: of the results."""
        key = tuple(symbols.values())
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._found(symbols, extents)
        return self._known[key]

    def _found(self, symbols, extents) -> t.Optional[t.Tuple[Extents, Extents]]:
        exact = self._extents(symbols, extents)
        if not self.symbol:
            return exact, exact
        count, least_most = symbols[self.symbol], symbol_range(shape_env(self._imported.graph), self.symbol)
        for size in self._candidates(least_most):
            padded = {**symbols, self.symbol: size}
            if size < count or not self._allowed(padded):
                continue
            found = self._extents(padded, extents)
            return (exact, found) if found.contain(exact) else None
        return None

    def _candidates(self, known: Range) -> t.Sequence[int]:
        if self._sizes is None:
            return [size for size in _piecewise.default_capture_sizes(known.most, known.multiple) if size >= known.least]
        return [size for size in self._sizes if known.least <= size <= known.most]

    def _allowed(self, symbols: t.Dict[str, int]) -> bool:
        """Returns True if PyTorch's guards hold."""
        if self._conditions is None:
            try:
                env = shape_env(self._imported.graph)
                self._conditions = [kept_condition(guard) for guard in conditions(env, self._imported.symbols)]
            except Error as why:
                self._conditions, self.why_exact = [False], str(why)
        return all(holds(condition, symbols) for condition in self._conditions)

    def _extents(self, symbols, extents) -> Extents:
        inputs = [[evaluated(expression(n), symbols) for n in self._fakes[i].shape] if i >= 0 else [] for i in self._inputs]
        return Extents(symbols, inputs, extents(symbols))
