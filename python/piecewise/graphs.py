"""What a graph is made of, as plain objects: Graph.inputs, nodes, outputs and writes."""
from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from _piecewise import Graph

__all__ = ["Input", "Node", "Value"]


class Value(NamedTuple):
    """What a node computes, or a graph returns: its `name` and its `type` as text, "bf16[n, 256]"."""

    name: str
    type: str


class Input(NamedTuple):
    """An input of a graph; its `kind` is input, weight or buffer."""

    name: str
    type: str
    kind: str


class Node(NamedTuple):
    """A call of an op. `operands` are names of values, None for one that is left out; `attributes` are as in graph.json
    (docs/formats.md): numbers, texts, lists, {"dim": "n"}, {"dtype": "bf16"}; `group` and `source` are None where nothing is known."""

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


def _inputs(self) -> List[Input]:
    """Its inputs in order: name, type and kind of each."""
    return [Input(row["name"], row["type"], row["kind"]) for row in json.loads(self.json())["inputs"]]


def _nodes(self) -> List[Node]:
    """Its nodes in order, each with name, op, operands, attributes, results, group and source."""
    return [_node(row) for row in json.loads(self.json())["nodes"]]


def _outputs(self) -> List[Value]:
    """What it returns, in order: name and type of each."""
    data = json.loads(self.json())
    types = {row["name"]: row["type"] for row in data["inputs"]}
    types.update((result["name"], result["type"]) for row in data["nodes"] for result in row["results"])
    return [Value(name, types[name]) for name in data["outputs"]]


def _writes(self) -> Dict[str, str]:
    """What inputs hold once it has run: the name of an input to the name of a value."""
    return json.loads(self.json()).get("writes", {})


Graph.inputs = property(_inputs)
Graph.nodes = property(_nodes)
Graph.outputs = property(_outputs)
Graph.writes = property(_writes)
