"""Reports on the pieces that vLLM compiled or loaded."""
from __future__ import annotations

import dataclasses
import json
import os
import typing as t

from ..counting import counted
from ..pytorch.reports import GraphReport


@dataclasses.dataclass
class PieceReport:
    """The outcome for one piece and one range of token counts."""

    name: str  # vLLM's key
    range: t.Tuple[int, int]
    ops: int  # calls of vLLM's graph
    source: str  # compiled, loaded, shared (with an equal piece), or inductor
    reason: str = ""  # why Inductor compiled it
    not_saved: str = ""  # why a later process compiles it again
    seconds: float = 0.0
    graph: t.Optional[GraphReport] = None

    def __str__(self) -> str:
        head = f"{self.name}: {self.source} in {self.seconds:.2f} s"
        tail = [f": {self.reason}"] if self.reason else [f"; {self.graph}"] if self.graph is not None else []
        return "".join([head, *tail, f"; not saved: {self.not_saved}" if self.not_saved else ""])

    def row(self) -> t.Dict[str, t.Any]:
        """Returns the report as a JSON object."""
        row = {key: getattr(self, key) for key in ("name", "range", "ops", "source", "reason", "not_saved", "seconds")}
        if self.graph is not None:
            row |= {key: getattr(self.graph, key) for key in ("taken", "left", "reasons", "rewrites")}
            row |= {"calls": self.graph.ops, "parts": len(self.graph.parts)}
        return row


class PieceReports(t.List[PieceReport]):
    """The reports of all pieces of this process, oldest first; prints one line each and a total."""

    def __str__(self) -> str:
        counts: t.Dict[str, int] = {}
        for one in self:
            counts[one.source] = counts.get(one.source, 0) + 1
        total = ", ".join(f"{count} {source}" for source, count in sorted(counts.items()))
        return "\n".join([*map(str, self), f"{counted(len(self), 'piece')}: {total or 'vLLM compiled none yet'}"])

    __repr__ = __str__

    def save(self, path: str) -> None:
        """Writes a JSON file at once, so that a reader sees a whole one."""
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump([one.row() for one in self], file, indent=1)
            file.write("\n")
        os.replace(temporary, path)


_pieces = PieceReports()


def report() -> PieceReports:
    """Returns the reports of the pieces that vLLM compiled or loaded in this process."""
    return PieceReports(_pieces)


def forget() -> None:
    """Clears the list of report()."""
    _pieces.clear()


def add(one: PieceReport) -> None:
    _pieces.append(one)
