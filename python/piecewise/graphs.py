"""The parts of a graph as plain objects: Graph.inputs, nodes, outputs, and writes."""
from __future__ import annotations

import json
from typing import Any, Dict, NamedTuple, Optional, Tuple

from _piecewise import Graph

__all__ = ["Input", "Node", "Value"]


class Value(NamedTuple):
    """A value of a graph: its `name`, and its `type` as text, "bf16[n, 256]"."""

    name: str
    type: str


class Input(NamedTuple):
    """An input of a graph; its `kind` is input, weight or buffer."""

    name: str
    type: str
    kind: str


class Node(NamedTuple):
    """A call of an op. `operands` are names of values, or None if absent; `attributes` are as in graph.json
    (docs/formats.md): numbers, texts, lists, {"dim": "n"}, {"dtype": "bf16"}; `group` and `source` are None if unknown."""

    name: str
    op: str
    operands: Tuple[Optional[str], ...]
    attributes: Dict[str, Any]
    results: Tuple[Value, ...]
    group: Optional[str]
    source: Optional[str]


def _node(row: dict) -> Node:
    results = tuple(Value(result["name"], result["type"]) for result in row["results"])
    return Node(row["name"], row["op"], tuple(row["operands"]), row.get("attributes", {}), results, row.get("group"), row.get("source"))


class _Parts(NamedTuple):
    inputs: Tuple[Input, ...]
    nodes: Tuple[Node, ...]
    outputs: Tuple[Value, ...]
    writes: Dict[str, str]


def _parts(graph: Graph) -> _Parts:
    """Returns all parts, cached: a graph never changes."""
    kept = graph.__dict__.get("_parts")
    if kept is None:
        data = json.loads(graph.json())
        inputs = tuple(Input(row["name"], row["type"], row["kind"]) for row in data["inputs"])
        nodes = tuple(_node(row) for row in data["nodes"])
        types = {value.name: value.type for value in inputs}
        types.update(result for node in nodes for result in node.results)
        outputs = tuple(Value(name, types[name]) for name in data["outputs"])
        kept = graph.__dict__["_parts"] = _Parts(inputs, nodes, outputs, data.get("writes", {}))
    return kept


def _inputs(self) -> Tuple[Input, ...]:
    """Returns the inputs in order: name, type, and kind of each."""
    return _parts(self).inputs


def _nodes(self) -> Tuple[Node, ...]:
    """Returns the nodes in order, each with name, op, operands, attributes, results, group, and source."""
    return _parts(self).nodes


def _outputs(self) -> Tuple[Value, ...]:
    """Returns the outputs in order: name and type of each."""
    return _parts(self).outputs


def _writes(self) -> Dict[str, str]:
    """Returns the writes after a run: the name of an input to the name of a value."""
    return dict(_parts(self).writes)


Graph.inputs = property(_inputs)
Graph.nodes = property(_nodes)
Graph.outputs = property(_outputs)
Graph.writes = property(_writes)
