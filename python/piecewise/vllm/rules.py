"""Rules as a pass of vLLM, in its pass manager or by its option `inductor_passes`, with a report by rule, graph, and range."""
from __future__ import annotations

import dataclasses
import json
import os
import sys
import typing as t

import torch
from vllm.compilation.passes.inductor_pass import InductorPass as VllmPass
from vllm.compilation.passes.inductor_pass import get_pass_context

from ..counting import counted
from ..pytorch.inductor import InductorPass, Rewritten
from .options import rules_of_environment

_NEAREST = 3  # near misses of a rule in the printed report
_CLOSE = 2  # nodes of a pattern that a near miss must match to be printed


@dataclasses.dataclass(frozen=True)
class RuleRow:
    """The matches of a rule in one graph: it fired at `fired` of `places`, which include near misses."""

    rule: str
    graph: int
    range: t.Tuple[int, int]
    fired: int
    places: int
    nearest: t.Tuple[t.Mapping[str, t.Any], ...]  # near misses as piecewise.explain returns them, the closest first

    def __str__(self) -> str:
        lines = [f"{self.rule}: fired {self.fired} of {self.places}"]
        return "\n".join([*lines, *(f"    {miss['code']} at {miss['at']}, {miss['count']} ×: {_text(miss)}" for miss in self.nearest[:_NEAREST])])


def _text(miss: t.Mapping[str, t.Any]) -> str:
    return "; ".join([miss["message"], *miss["notes"]])


@dataclasses.dataclass
class GraphRows:
    """The pass on one graph. Rows are made when they are first read, because explaining takes longer than rewriting."""

    graph: int
    range: t.Tuple[int, int]
    done: Rewritten

    def rows(self, rules: t.Optional[t.Sequence[str]] = None) -> t.List[RuleRow]:
        """Returns the rows of rules: by default of those that fired or nearly matched."""
        wanted = [*dict.fromkeys([*self.done.rules, *self.done.near_misses])] if rules is None else rules
        out = []
        for explained in self.done.explained(wanted) if wanted else ():
            nearest = tuple(sorted(explained["near_misses"], key=lambda miss: -max(miss["matched"], 0)))
            fired = _sum(self.done.rules, explained["rule"])
            places = fired + sum(miss["count"] for miss in nearest)
            if places or rules is not None:
                out.append(RuleRow(explained["rule"], self.graph, self.range, fired, places, nearest))
        return out

    def __str__(self) -> str:
        head = f"graph {self.graph}, {self.range[0]} to {self.range[1]} tokens"
        if self.done.refused:
            return f"{head}: stays as it is: {self.done.refused}"
        rows = self.rows()
        close = [row for row in rows if row.fired or any(miss["matched"] >= _CLOSE for miss in row.nearest)]
        lines = [f"  {line}" for row in close for line in str(row).splitlines()]
        more = len(rows) - len(close)
        return "\n".join([head, *lines, *([f"  and {counted(more, 'rule')} that matched a single node at most"] if more else [])])


def family_of(rule: str) -> str:
    """Returns the name of a rule without the brackets and number of its instance."""
    return rule.split("[")[0].split("#")[0]


def rank() -> int:
    """Returns the rank of this process; 0 without torch.distributed."""
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _sum(fired: t.Mapping[str, int], rule: str) -> int:
    """Returns the rewrites of a rule, or of all instances of a family."""
    return sum(count for name, count in fired.items() if rule in (name, family_of(name)))


class RulesReport(t.List[GraphRows]):
    """The graphs that the pass saw; prints each rule that fired or nearly matched."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "the pass saw no graph"

    __repr__ = __str__

    def data(self) -> t.List[t.Dict[str, t.Any]]:
        """Returns the report as JSON objects."""
        return [
            {
                "graph": graph.graph,
                "range": graph.range,
                "refused": graph.done.refused,
                "rules": [{"rule": row.rule, "fired": row.fired, "places": row.places, "nearest": list(row.nearest)} for row in graph.rows()],
            }
            for graph in self
        ]


class RulesPass(VllmPass):
    """A pass of vLLM that applies the rules of a pipeline. `report` has an entry for each graph and range.

    Copies of a graph that vLLM makes share the pass, so the report is that of the process.
    """

    def __init__(
        self, rules: t.Union[str, t.Sequence[str]] = "llm", pipeline: str = "o2", params: t.Optional[t.Mapping[str, t.Any]] = None, folder: str = ""
    ):
        """`folder`: where to write the report after each graph. Raises Error for mistakes in the rules."""
        self.report = RulesReport()
        self._made_of = ([rules] if isinstance(rules, str) else list(rules), pipeline, dict(params or {}), folder)
        self._pass = InductorPass(self._made_of[0], pipeline, self._made_of[2])
        self._folder = folder

    def __call__(self, graph: torch.fx.Graph) -> None:
        self._pass(graph)
        sizes = get_pass_context().compile_range
        self.report.append(GraphRows(len(self.report), (sizes.start, sizes.end), self._pass.done[-1]))
        if self._folder:
            self._write()

    def uuid(self) -> str:
        """Returns an identifier of the rules' texts, the pipeline, the params, and this build, for Inductor's cache."""
        return self._pass.uuid()

    def is_applicable_for_range(self, compile_range: t.Any) -> bool:
        """Returns True: rules hold for all numbers of tokens."""
        return True

    def __deepcopy__(self, _: t.Any) -> "RulesPass":
        return self

    def __reduce__(self):
        return RulesPass, self._made_of

    def _write(self) -> None:
        """Adds the last graph to the report of this rank."""
        os.makedirs(self._folder, exist_ok=True)
        last = RulesReport(self.report[-1:])
        mode = "w" if len(self.report) == 1 else "a"
        with open(os.path.join(self._folder, f"rules-rank{rank()}.txt"), mode, encoding="utf-8") as file:
            file.write(f"{last}\n")
        with open(os.path.join(self._folder, f"rules-rank{rank()}.jsonl"), mode, encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in last.data())

    def __str__(self) -> str:
        return f"piecewise rules, {counted(len(self.report), 'graph')}"


def of_environment() -> RulesPass:
    """Returns the pass that PIECEWISE_VLLM_RULES describes."""
    given = rules_of_environment()
    options = given[0] if given is not None else None
    if options is None:
        return RulesPass()
    return RulesPass(options.rules, options.pipeline, dict(options.params), options.report)


# vLLM reads the option `inductor_passes` as an attribute of the top-level package: it imports `piecewise.vllm.rules` for the name
# "piecewise.vllm.rules.vllm_rules", but looks for `vllm_rules` in `piecewise`.
sys.modules[__name__.split(".")[0]].vllm_rules = of_environment()
