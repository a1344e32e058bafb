"""Selection of calls in a torch.fx graph that remain PyTorch's, with reasons."""
from __future__ import annotations

import operator
import typing as t

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._pytree import tree_leaves

from _piecewise import Error

from .checks import is_rejected
from .fx_import import CPU, Refused, is_on, type_text

# Higher-order ops that each call a single op.
_PLAIN = ("auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional")
_WORDS = (bool, int, float, str, torch.dtype, torch.layout, torch.memory_format, torch._ops.OpOverload, type(None), type(Ellipsis))


def attribute(owner: t.Any, path: str) -> t.Any:
    """Returns the attribute that a get_attr node of the owner's graph reads."""
    for part in path.split("."):
        owner = getattr(owner, part)
    return owner


def memory_of(node: torch.fx.Node) -> t.Optional[int]:
    """Returns a number that is equal for tensors that share memory; None for non-tensors."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    return value.untyped_storage()._cdata


def memories_of(node: torch.fx.Node) -> t.Set[int]:
    """Returns the numbers of memory_of for all tensors among a node's results."""
    values = tree_leaves(node.meta.get("val"))
    return {x.untyped_storage()._cdata for x in values if isinstance(x, torch.Tensor) and x.layout == torch.strided}


def memories_written(node: torch.fx.Node) -> t.Set[int]:
    """Returns the numbers of memory_of for the tensors that an op writes, by its schema."""
    out: t.Set[int] = set()
    if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
        for i, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = tree_leaves(node.args[i] if i < len(node.args) else node.kwargs.get(argument.name))
                out.update(*(memories_of(n) for n in given if isinstance(n, torch.fx.Node)))
    return out


def has_parts(node: torch.fx.Node) -> bool:
    """Returns True if the value is a tuple or a list."""
    return isinstance(node.meta.get("val"), (tuple, list))


def _reason_of_value(value: t.Any, place: torch.device, nested: bool = False) -> str:
    if isinstance(value, (tuple, list)):
        if nested:
            return "a list is among its results"
        return next(filter(None, (_reason_of_value(item, place, True) for item in value)), "")
    try:
        type_text(value, place)
    except Refused as why:
        return str(why)
    return ""


def _reason_of_argument(value: t.Any, place: torch.device) -> str:
    if isinstance(value, (tuple, list)):
        return next(filter(None, (_reason_of_argument(item, place) for item in value)), "")
    if isinstance(value, dict):
        return _reason_of_argument(list(value.values()), place)
    if isinstance(value, slice):
        return _reason_of_argument([value.start, value.stop, value.step], place)
    if isinstance(value, torch.device):
        return "" if is_on(value, place) else f"it names the device {value}"
    if isinstance(value, (torch.fx.Node, *_WORDS)):
        return ""
    return f"an argument is a {type(value).__name__}"


def _reason_of_target(node: torch.fx.Node) -> str:
    if node.op != "call_function":
        return f"it calls the {node.op.removeprefix('call_')} {node.target}"
    if isinstance(node.target, torch._ops.HigherOrderOperator) and node.target._name not in _PLAIN:
        return "it has effects" if node.target._name == "with_effects" else "it calls functions that are its arguments"
    if isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.returns and not node.target._schema.is_mutable:
        return "it returns nothing"  # a check, such as an assert's
    return ""


def _makes_sizes(node: torch.fx.Node) -> bool:
    """Returns True if the sizes of its results are known only after it ran."""
    unknown = free_unbacked_symbols(node.meta.get("val"))
    return bool(unknown) and not unknown <= set().union(*(free_unbacked_symbols(n.meta.get("val")) for n in node.all_input_nodes))


def ops_named(names: t.Iterable[str]) -> t.Set[torch._ops.OpOverload]:
    """Returns the overloads of ops such as "aten.mm", "aten::mm", or "aten.mm.default". Raises Error if there is no such op."""
    out: t.Set[torch._ops.OpOverload] = set()
    for name in names:
        found: t.Any = torch.ops
        for part in name.replace("::", ".").split("."):
            found = getattr(found, part, None)
        if isinstance(found, torch._ops.OpOverloadPacket):
            out.update(getattr(found, overload) for overload in found.overloads())
        elif isinstance(found, torch._ops.OpOverload):
            out.add(found)
        else:
            raise Error(
                f"the option `at` names `{name}`, which is not an op of this PyTorch: write it as `aten.mm`, and register ops of your own first"
            )
    return out


def op_of(node: torch.fx.Node) -> t.Any:
    """Returns the op that a node calls, possibly through a wrapper."""
    if isinstance(node.target, torch._ops.HigherOrderOperator) and node.target._name in _PLAIN and node.args:
        return node.args[0]
    return node.target


class Staying:
    """The calls of a graph that remain PyTorch's, with the reasons."""

    def __init__(self, module: torch.fx.GraphModule, place: torch.device = CPU):
        """`place`: the device of the graph's tensors."""
        self._module, self._place = module, place
        self._given = {memory_of(node) for node in module.graph.find_nodes(op="placeholder")} - {None}
        self.reasons: t.Dict[torch.fx.Node, str] = {}
        self.again: t.Set[torch.fx.Node] = set()  # calls that are also in a part
        for node in module.graph.nodes:
            reason = self._reason(node) if node.op.startswith("call_") else ""
            if reason:
                self.reasons[node] = reason

    def leave(self, reasons: t.Mapping[torch.fx.Node, str]) -> None:
        """Leaves a call to PyTorch. A call that returns a list, and those that unpack it, stay together."""
        for node, reason in reasons.items():
            node = node.args[0] if node.target is operator.getitem else node
            self.reasons[node] = reason
            if has_parts(node):
                self.reasons.update(dict.fromkeys(node.users, reason))

    def leave_named(self, names: t.Sequence[str]) -> None:
        """Leaves the calls of these ops to PyTorch; see ops_named."""
        ops = ops_named(names)
        self.leave({node: "the option `at` names it" for node in self._module.graph.nodes if node not in self.reasons and op_of(node) in ops})

    def writes_arguments(self, node: torch.fx.Node) -> bool:
        """Returns True if it writes a tensor argument of the graph."""
        return bool(memories_written(node) & self._given)

    def _reason(self, node: torch.fx.Node) -> str:
        place = self._place
        if reason := _reason_of_target(node) or _reason_of_value(node.meta.get("val"), place) or _reason_of_argument((node.args, node.kwargs), place):
            return reason
        for source in node.all_input_nodes:
            if has_parts(source):
                reason = self.reasons.get(source, "")
            elif source.op == "get_attr":
                reason = _reason_of_value(attribute(self._module, source.target), place)
            elif source.op == "placeholder" and not isinstance(source.meta.get("val"), (torch.Tensor, torch.SymInt)):
                reason = f"the argument {source.name} is a {type(source.meta.get('val')).__name__}"
            else:
                reason = _reason_of_value(source.meta.get("val"), place)
            if reason:
                return reason
        if is_rejected(node):
            return "PyTorch may reject its arguments"
        if _makes_sizes(node):
            return "sizes of its results depend on numbers of its arguments"
        return "it writes an argument of the graph" if self.writes_arguments(node) else ""
