"""Keeps rms_norm whole: PyTorch's dispatcher splits it on a CPU before a compiler sees it, although torch.export keeps it."""
from __future__ import annotations

import torch

_LIBRARY = torch.library.Library("piecewise", "FRAGMENT")
_LIBRARY.define(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,)
)
for _key in ("CPU", "CUDA", "Meta"):
    _LIBRARY.impl("rms_norm", torch.rms_norm, _key)


def _kept() -> torch._ops.OpOverload:
    return torch.ops.piecewise.rms_norm.default  # not stored: the namespace is replaced by that of rules' ops


def keep_norms(module: torch.fx.GraphModule) -> None:
    """Replaces rms_norm in a graph of Dynamo by an op of the same results that the dispatcher does not split; `restore_norms` is its inverse.

    Graphs with gradients are left as they are: the op has none.
    """
    graph = module.graph
    given = [node.meta.get("example_value") for node in graph.find_nodes(op="placeholder")]
    toggled = graph.find_nodes(op="call_function", target=torch._C._set_grad_enabled)
    if toggled or torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in given):
        return
    for node in graph.find_nodes(op="call_function", target=torch.rms_norm):
        node.target = _kept()
    module.recompile()


def restore_norms(module: torch.fx.GraphModule) -> None:
    """Replaces the kept ops in a graph of AOT autograd by PyTorch's, as in a graph of torch.export."""
    for node in module.graph.find_nodes(op="call_function", target=_kept()):
        node.target = torch.ops.aten.rms_norm.default
    module.recompile()
