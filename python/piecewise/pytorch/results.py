"""Ops whose results PyTorch's documentation leaves open: reproduces those of PyTorch on this processor.

* A floating-point number that an integer dtype cannot represent converts to the dtype's least number, as x86 does. The library saturates.
* `topk` may return any of several equal elements. PyTorch's choice depends on its sorting algorithm, so PyTorch runs the call.
"""
from __future__ import annotations

import platform
import typing as t

import torch

from .checks import LIBRARY

LIBRARY.define("topk(Tensor x, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
for _key in ("CPU", "Meta"):
    LIBRARY.impl("topk", lambda *args: tuple(torch.topk(*args)), _key)

_aten = torch.ops.aten
_CONVERSIONS = {_aten._to_copy.default: 0, torch.ops.prims.convert_element_type.default: 0, _aten.copy.default: 1}  # and the argument they convert
# What PyTorch converts to first; int8 and uint8 are the lowest bits of it.
_THROUGH = {torch.int8: torch.int32, torch.uint8: torch.int64, torch.int32: torch.int32, torch.int64: torch.int64}


def _is_clamped(node: torch.fx.Node, dtype: torch.dtype) -> bool:
    """Returns True for numbers that a clamp has brought into the range of the dtype; NaN converts to 0 in narrow ones."""
    if node.target is not _aten.clamp.default or dtype.itemsize > 1 or len(node.args) < 3:
        return False
    least, most = node.args[1:3]
    known = isinstance(least, (int, float)) and isinstance(most, (int, float))
    return known and torch.iinfo(dtype).min <= least and most <= torch.iinfo(dtype).max


def _converted(graph: torch.fx.Graph, source: torch.fx.Node, through: torch.dtype) -> torch.fx.Node:
    """Returns the numbers as integers, as x86 converts them."""

    def call(op: torch._ops.OpOverload, *args: t.Any, **kwargs: t.Any) -> torch.fx.Node:
        made = graph.call_function(op, args, kwargs)
        made.meta["val"] = op(*torch.fx.map_arg(args, lambda n: n.meta["val"]), **kwargs)
        return made

    least = torch.iinfo(through).min
    fits = call(_aten.lt.Scalar, source, -float(least))
    to = call(_aten._to_copy.default, source, dtype=through)
    return call(_aten.where.self, fits, to, call(_aten.full_like.default, to, least))


def follow_pytorch(module: torch.fx.GraphModule) -> None:
    """Rewrites calls so that their results are PyTorch's."""
    graph = module.graph
    x86 = platform.machine() in ("x86_64", "AMD64")
    for node in list(graph.nodes):
        if node.target is _aten.topk.default:
            node.target = torch.ops.piecewise.topk.default
        if node.target not in _CONVERSIONS or not x86:
            continue
        at, dtype = _CONVERSIONS[node.target], node.meta["val"].dtype
        source = node.args[at]
        if dtype not in _THROUGH or not source.meta["val"].dtype.is_floating_point or _is_clamped(source, dtype):
            continue
        with graph.inserting_before(node):
            node.update_arg(at, _converted(graph, source, _THROUGH[dtype]))
    module.recompile()
