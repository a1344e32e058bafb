"""Reports on compiled graphs."""
from __future__ import annotations

import dataclasses
import functools
import sys
import typing as t
import weakref

import torch

import _piecewise

from .. import commands
from ..counting import counted
from .options import Options


@dataclasses.dataclass
class Part:
    """Report on calls that are compiled together: a whole graph, or a part between calls that remain PyTorch's."""

    graph: _piecewise.Graph  # the graph that runs
    summary: t.List[str]  # the summary of the backend
    read: t.Callable[[], _piecewise.Graph]
    chosen: t.Callable[[], t.List[t.Tuple[str, t.List[t.Tuple[str, float]]]]] = list  # the measured classes of operands: kernels and seconds

    @functools.cached_property
    def imported(self) -> _piecewise.Graph:
        """Returns the graph before any rewriting."""
        return self.read()


@dataclasses.dataclass
class GraphReport:
    """Report on one graph."""

    kind: str  # forward, backward, inference
    options: Options
    ops: int = 0  # calls of the graph and of its subgraphs, without tuple items and sizes
    left: t.Dict[str, int] = dataclasses.field(default_factory=dict)  # calls that PyTorch runs, by op
    reasons: t.Dict[str, int] = dataclasses.field(default_factory=dict)  # the reasons, if known
    refused: str = ""  # why the whole graph runs in PyTorch; empty: it does not
    seconds: float = 0.0  # to compile it
    rewrites: t.Dict[str, int] = dataclasses.field(default_factory=dict)  # by pass
    proofs: t.List[t.Dict[str, t.Any]] = dataclasses.field(
        default_factory=list
    )  # with `prove`, a row for each rule that fired, as in `pwr opt --prove`
    not_proved: t.List[t.Dict[str, t.Any]] = dataclasses.field(default_factory=list)  # with `prove`, a row for each rewrite that is not proved
    warm: bool = False  # an earlier process rewrote it
    captures: int = 0  # recorded so far; PyTorch's own are not counted
    in_parts: str = ""  # why no capture holds the whole graph, although the option `mode` allows it
    not_captured: str = ""  # why its calls are launched despite the option `capture`; for some sizes only, if there are captures
    padded: int = 0  # replays at a larger size than that of their call
    not_padded: t.Dict[str, int] = dataclasses.field(
        default_factory=dict
    )  # the reasons why parts are captured at exact sizes, with `capture`: "piecewise"
    parts: t.List[Part] = dataclasses.field(default_factory=list)  # a single part if no PyTorch call separates the calls
    origin: t.Callable[[], t.Any] = lambda: None  # the function or module it is a part of, while that is alive
    weights: t.Dict[int, weakref.ref] = dataclasses.field(default_factory=dict)  # the first one of each model that called it, by identity

    @property
    def graph(self) -> t.Optional[_piecewise.Graph]:
        """Returns the rewritten graph of the first part; None if PyTorch runs everything."""
        return self.parts[0].graph if self.parts else None

    @property
    def imported(self) -> t.Optional[_piecewise.Graph]:
        """Returns the graph of the first part before any rewriting."""
        return self.parts[0].imported if self.parts else None

    @property
    def summary(self) -> t.List[str]:
        """Returns a summary of the compiled parts."""
        return [line for part in self.parts for line in part.summary]

    @property
    def kernels(self) -> t.List[str]:
        """Returns the measurements by which kernels were chosen, one line for each class of operands; the first kernel is used."""
        chosen = dict(row for part in self.parts for row in part.chosen())
        busy = "not measured, because the processor was busy"
        return [
            f"{operands}: " + (", ".join(f"{kernel} {seconds * 1e3:.3g} ms" for kernel, seconds in times) or busy)
            for operands, times in sorted(chosen.items())
        ]

    @property
    def returns_static(self) -> bool:
        """Returns True if results may be memory that later calls overwrite."""
        return self.options.outputs == "static" and self.kind == "inference"

    @property
    def taken(self) -> int:
        """Returns the number of calls that Piecewise runs."""
        return 0 if self.refused else self.ops - sum(self.left.values())

    def __str__(self) -> str:
        if self.refused:
            return f"{self.kind}: {self.ops} ops run in PyTorch: {self.refused}"
        left = ", ".join(f"{count} × {op}" for op, count in sorted(self.left.items()))
        rewrites = ", ".join(f"{count} × {name}" for name, count in self.rewrites.items())
        return (
            f"{self.kind}: {self.taken} of {self.ops} ops taken"
            + (f" in {len(self.parts)} parts" if len(self.parts) > 1 else "")
            + (f"; PyTorch's own: {left}" if left else "")
            + (f"; rewrites: {rewrites}" if rewrites else "")
            + (f"; {self.proved}" if self.options.prove else "")
            + (f"; {counted(self.captures, 'capture')}" if self.captures else "")
            + (f", {counted(self.padded, 'padded call')}" if self.padded else "")
            + (f"; exact sizes: {', '.join(self.not_padded)}" if self.not_padded else "")
            + (f"; captured in parts: {self.in_parts}" if self.in_parts else "")
            + (f"; not captured: {self.not_captured}" if self.not_captured else "")
        )

    @property
    def proved(self) -> str:
        """Returns the number of proved rewrites as one line."""
        fired = sum(row["rewrites"] for row in self.proofs)
        left = sum(row["left"] for row in self.proofs)
        return f"proved: {fired - left} of {counted(fired, 'rewrite')} by rules"


class Reports(t.List[GraphReport]):
    """The reports of a function's graphs; prints one line each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no graph was compiled: call the function first"

    __repr__ = __str__


_graphs: t.List[GraphReport] = []


def graphs() -> Reports:
    """Returns reports of the graphs compiled so far, oldest first; forget() clears the list."""
    return Reports(_graphs)


def forget() -> None:
    """Clears the list of graphs()."""
    _graphs.clear()


def _owner(function: t.Any) -> t.Any:
    """Returns the function or module passed to torch.compile."""
    inner = getattr(function, "_torchdynamo_orig_callable", getattr(function, "__wrapped__", None))
    if inner is not None:
        return _owner(inner)
    return getattr(function, "__self__", function)


def origin() -> t.Callable[[], t.Any]:
    """Returns the function being compiled, from Dynamo's frames on this thread's stack."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("_dynamo/eval_frame.py") and frame.f_locals.get("fn") is not None:
            try:
                return weakref.ref(_owner(frame.f_locals["fn"]))
            except TypeError:
                break
        frame = frame.f_back
    return lambda: None


class Served:
    """A graph's call that records whose weights it receives: models of one class share it if Dynamo's guards allow."""

    def __init__(self, call: t.Callable[..., t.Any], weight: int, report: GraphReport):
        self._boxed_call = True
        self._call, self._weight, self._report = call, weight, report
        self._last: t.Any = None

    def __call__(self, *given):
        args = given[0] if len(given) == 1 and isinstance(given[0], list) else given
        weight = args[self._weight]
        if self._last is None or self._last() is not weight:
            self._note(weight)
        return self._call(*given)

    def _note(self, weight: torch.Tensor) -> None:
        key, known = id(weight), self._report.weights
        if key not in known or known[key]() is not weight:
            known[key] = weakref.ref(weight, lambda _: known.pop(key, None))
        self._last = known.get(key)


def _serves(graph: GraphReport, owner: t.Any) -> bool:
    """Returns True if it was compiled for a function or module, or called with its weights. Functions with the same code count as one."""
    made_for = graph.origin()
    if made_for is owner:
        return True
    if isinstance(owner, torch.nn.Module):
        weights = [*owner.parameters(), *owner.buffers()]
        return type(made_for) is type(owner) and any(id(w) in graph.weights and graph.weights[id(w)]() is w for w in weights)
    code = getattr(owner, "__code__", None)
    return code is not None and getattr(made_for, "__code__", None) is code


def report(function: t.Any) -> Reports:
    """Returns the reports of a function or module from torch.compile, including graphs compiled for another model of its class and reused."""
    owner = _owner(function)
    return Reports(graph for graph in _graphs if _serves(graph, owner))


class Explanations(t.List[t.Dict[str, t.Any]]):
    """The results of piecewise.explain for each graph; prints a line for each application and near miss."""

    def __str__(self) -> str:
        lines = []
        for explanation in self:
            lines.append(f"{explanation['rule']}: {counted(explanation['matches'], 'match')}")
            lines += [f"  applied in pass {one['pass']}, {one['count']} ×: {', '.join(one['nodes'])}" for one in explanation["applied"]]
            lines += [f"  {miss['code']} at {miss['at']}, {miss['count']} ×: {miss['message']}" for miss in explanation["near_misses"]]
        return "\n".join(lines)

    __repr__ = __str__


def explain(function: t.Any, rule: str, **how: t.Any) -> Explanations:
    """Explains a rule in the graphs of a function or module from torch.compile, part by part; `how` as in piecewise.explain.

    Graphs that run entirely in PyTorch are left out. Raises Error if there is no such rule, or no graph.
    """
    out = Explanations()
    unknown = None
    for one, part in ((one, part) for one in report(function) for part in one.parts):
        options = one.options
        try:
            out.append(commands.explain(part.imported, list(options.rules), rule, options.pipeline, dict(options.params), **how))
        except _piecewise.Error as error:  # the graph was compiled with other rules
            if error.code != "PW1420":
                raise
            unknown = error
    if not out and unknown is not None:
        raise unknown
    if not out:
        raise _piecewise.Error("no graph of it was compiled: call it first; piecewise.report describes its graphs")
    return out
