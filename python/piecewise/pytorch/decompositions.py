"""Selection of PyTorch's ops to decompose before import."""
from __future__ import annotations

import functools
import math
import typing as t

import torch
from torch._decomp import core_aten_decompositions

_FOREACH = "aten::_foreach_"
# The op for each tensor, if its name differs from that of the op on lists.
_EACH = {"maximum": "clamp_min", "minimum": "clamp_max", "norm": "linalg_vector_norm", "zero": "zeros_like"}


def _of_one(op: torch._ops.OpOverload, name: str, given: t.Mapping[str, t.Any], i: int) -> t.Tuple[t.List[t.Any], t.Dict[str, t.Any]]:
    """Returns the arguments of the i-th call: for lists, the i-th item."""
    one = {word: value[i] if isinstance(value, (list, tuple)) else value for word, value in given.items()}
    named = {a.name: one.pop(a.name) for a in op._schema.arguments if a.name in one and (a.kwarg_only or a.name == "dtype")}
    if name in ("addcmul", "addcdiv"):
        scalars = one.pop("scalars", None)
        named["value"] = one.pop("value", 1) if scalars is None else scalars
    return list(one.values()), named


def _of_each(op: torch._ops.OpOverload) -> t.Optional[t.Callable[..., t.List[torch.Tensor]]]:
    """Returns an op on lists of tensors as ops on tensors; None if it writes them or has no counterpart."""
    name = op._schema.name.removeprefix(_FOREACH)
    each = getattr(torch.ops.aten, _EACH.get(name, name), None)
    if op._schema.is_mutable or each is None or any(a.name == "scalars" and str(a.type) == "Tensor" for a in op._schema.arguments):
        return None
    lists = [a.name for a in op._schema.arguments if str(a.type) == "List[Tensor]"]

    def decomposed(*args, **kwargs):
        given = {a.name: value for a, value in zip(op._schema.arguments, args)} | kwargs
        calls = [_of_one(op, name, given, i) for i in range(len(given[lists[0]]))]
        return [each(*positional, **named) for positional, named in calls]

    return decomposed


def _overload(name: str) -> torch._ops.OpOverload:
    """Returns an overload by a name such as aten::_foreach_add.List."""
    packet, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


# Attention has a kernel here. Norms and activations import by their names, as from torch.export. Decompositions of the others lose their checks, or
# the strides of their results, or differ in special values.
_WHOLE = (
    "_fused_rms_norm",
    "_scaled_dot_product_flash_attention_for_cpu",
    "addr",
    "binary_cross_entropy",
    "celu",
    "frac",
    "hardsigmoid",
    "hardswish",
    "index_add",
    "index_copy",
    "index_fill",
    "rms_norm",
    "select_scatter",
    "silu",
)


# Ops that raise for a finite number beyond the range of their tensor's dtype. Their decompositions make it infinite.
_CONVERTED = ("masked_fill", "threshold")


def _within_range(decomposed: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
    """Returns a decomposition that leaves calls with numbers beyond the range to PyTorch, which raises."""

    def decomposed_within(x, *args, **kwargs):
        numbers = [value for value in (*args, *kwargs.values()) if isinstance(value, (int, float))]
        if x.dtype.is_floating_point and any(math.isfinite(n) and abs(n) > torch.finfo(x.dtype).max for n in numbers):
            return NotImplemented
        return decomposed(x, *args, **kwargs)

    return decomposed_within


@functools.lru_cache(maxsize=None)
def decompositions():
    """Returns decompositions for ops outside core ATen, with a few exceptions, and for ops on lists of tensors, as optimizers use."""
    table = dict(core_aten_decompositions())
    for name in _WHOLE:
        for overload in getattr(torch.ops.aten, name).overloads():
            table.pop(getattr(getattr(torch.ops.aten, name), overload), None)
    for name in _CONVERTED:
        packet = getattr(torch.ops.aten, name)
        overloads = [getattr(packet, overload) for overload in packet.overloads() if overload in ("default", "Scalar")]
        table |= {overload: _within_range(table[overload]) for overload in overloads if overload in table}
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith(_FOREACH) and not name.endswith("out") and (decomposed := _of_each(_overload(name))) is not None:
            table[_overload(name)] = decomposed
    return table


def use_functional_ops(module: torch.fx.GraphModule) -> None:
    """Replaces vLLM's ops that may reuse the memory of their arguments by the same ops on functional values: nothing reads the arguments afterwards."""
    for node in module.graph.nodes:
        target = node.target
        if isinstance(target, torch._ops.OpOverload) and target.namespace == "vllm_ir" and target._overloadname == "maybe_inplace":
            node.target = target.overloadpacket.default
    module.recompile()
