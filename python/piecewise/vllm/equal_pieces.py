"""Recognises pieces that are equal up to names, such as the layers of a model, so that each is compiled once."""
from __future__ import annotations

import hashlib
import typing as t

import torch


def _type(value: t.Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(map(str, value.shape))}{tuple(map(str, value.stride()))}{value.storage_offset()}{value.device}"
    return f"{type(value).__name__} {value}" if isinstance(value, (int, float, bool, str, torch.SymInt)) else type(value).__name__


def digest(graph: torch.fx.Graph, inputs: t.Sequence[t.Any]) -> t.Optional[str]:
    """Returns a text that is equal only for equal graphs with equally typed inputs; None for a graph that owns tensors or graphs.

    Tensors that share memory have equal numbers of it in the text.
    """
    numbers: t.Dict[torch.fx.Node, str] = {}
    storages: t.Dict[int, int] = {}
    lines = [f"{_type(value)} {_storage(value, storages)}" for value in inputs]
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            return None
        numbers[node] = f"%{len(numbers)}"
        given = torch.fx.map_arg((node.args, node.kwargs), lambda n: _Numbered(numbers[n]))
        target = "" if node.op in ("placeholder", "output") else _target(node.target)
        lines.append(f"{node.op} {target} {given!r}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class _Numbered(t.NamedTuple):
    """A value by its number."""

    number: str


def _storage(value: t.Any, storages: t.Dict[int, int]) -> int:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return -1
    return storages.setdefault(value.untyped_storage()._cdata, len(storages))


def _target(target: t.Any) -> str:
    if isinstance(target, str):
        return target
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', target)} {target}"
