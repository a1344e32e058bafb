"""vLLM's own passes and rules on the same graphs, side by side; and the pass manager that runs both."""
from __future__ import annotations

import copy
import dataclasses
import logging
import os
import typing as t

import torch
from vllm.compilation.passes.inductor_pass import get_pass_context
from vllm.compilation.passes.pass_manager import PostGradPassManager
from vllm.platforms import current_platform

from ..pytorch.inductor import Rewritten
from .options import rules_of_environment
from .rules import RulesPass, family_of, of_environment, rank

_log = logging.getLogger("vllm.piecewise")

# The rules of the library that match what a pass of vLLM matches.
FAMILIES = {
    "RMSNormQuantFusionPass": ("rms_quant", "add_rms_quant", "rms_quant_dyn", "add_rms_quant_dyn"),
    "ActivationQuantFusionPass": ("silu_mul_quant", "silu_mul_quant_dyn"),
    "AllReduceFusionPass": ("all_reduce_rms", "all_reduce_add_rms"),
    "QKNormRoPEFusionPass": ("qk_norm_rope",),
}
_OTHERS = "(no pass of vLLM)"


@dataclasses.dataclass(frozen=True)
class Row:
    """One pass of vLLM and the rules for the same fusions, on one graph."""

    graph: int
    range: t.Tuple[int, int]
    name: str  # of vLLM's pass
    theirs: int
    ours: int
    rules: t.Mapping[str, int]


class Table(t.List[Row]):
    """Matches of vLLM's passes and of rules; prints as a table."""

    def __str__(self) -> str:
        rows = [("graph", "tokens", "pass of vLLM", "vLLM", "rules", "by rule")]
        for row in self:
            by_rule = ", ".join(f"{rule} {count}" for rule, count in row.rules.items())
            rows.append((str(row.graph), f"{row.range[0]}-{row.range[1]}", row.name, str(row.theirs), str(row.ours), by_rule))
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows)

    __repr__ = __str__


def rows(graph: int, theirs: t.Mapping[str, int], done: Rewritten) -> t.List[Row]:
    """Returns the rows of one graph: the matches of vLLM's passes by name, and what the rules did."""
    sizes = get_pass_context().compile_range
    span, left, out = (sizes.start, sizes.end), dict(done.rules), []
    for name, count in theirs.items():
        own = {rule: left.pop(rule) for rule in list(left) if family_of(rule) in FAMILIES.get(name, ())}
        out.append(Row(graph, span, name, count, sum(own.values()), own))
    if left:
        out.append(Row(graph, span, _OTHERS, 0, sum(left.values()), left))
    return out


def copied(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Returns a copy of a graph with the same owner."""
    return torch.fx.GraphModule(graph.owning_module or torch.nn.Module(), copy.deepcopy(graph)).graph


def matches(passes: t.Iterable[t.Any]) -> t.Dict[str, int]:
    """Returns the matches of passes of vLLM that count them, after they ran."""
    return {type(one).__name__: one.matched_count for one in passes if hasattr(one, "matched_count") and type(one).__name__ in FAMILIES}


class RulesPassManager(PostGradPassManager):
    """vLLM's pass manager with rules: after its own passes, before them, or on a copy of each graph, which only fills `table`."""

    table = Table()  # of the process

    def configure(self, config: t.Any) -> None:
        super().configure(config)
        given = rules_of_environment()
        self._place = given[1] if given is not None else "after"
        self._folder = given[0].report if given is not None else ""
        option = config.compilation_config.inductor_compile_config.get(current_platform.pass_key)
        if isinstance(option, RulesPass):  # vLLM adds it
            self._rules, self._place = option, "option"
            return
        self._rules = of_environment()
        if self._place == "before":
            self.passes.insert(0, self._rules)
        elif self._place == "after":
            self.passes.append(self._rules)

    def __call__(self, graph: torch.fx.Graph) -> None:
        if self._place == "compare":
            self._rules(copied(graph))
        super().__call__(graph)
        done = self._rules.report[-1].done if self._rules.report else None
        if done is None:
            return
        self.table += rows(len(self._rules.report) - 1, matches(self.passes), done)
        if self._folder:
            with open(os.path.join(self._folder, f"side-by-side-rank{rank()}.txt"), "w", encoding="utf-8") as file:
                file.write(f"{self.table}\n")
