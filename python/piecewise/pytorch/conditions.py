"""Checks of a program of torch.export that its graph would lose: conditions on its sizes, and asserts on numbers of its tensors.

A condition is stored as a number, the name of a symbol, or a list of an operation and its operands, so that a file contains no code.
"""
from __future__ import annotations

import copy
import math
import operator
import typing as t

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from _piecewise import Error

from .checks import keep_checks

_OPERATIONS: t.Dict[str, t.Callable[..., t.Any]] = {
    "Add": lambda *numbers: sum(numbers),
    "Mul": lambda *numbers: math.prod(numbers),
    "Pow": operator.pow,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Max": max,
    "Min": min,
    "Equality": operator.eq,
    "Unequality": operator.ne,
    "StrictLessThan": operator.lt,
    "LessThan": operator.le,
    "StrictGreaterThan": operator.gt,
    "GreaterThan": operator.ge,
    "And": lambda *terms: all(terms),
    "Or": lambda *terms: any(terms),
    "Not": operator.not_,
}
_ASSERT, _ASSERT_TEXT = torch.ops.aten._assert_async.default, torch.ops.aten._assert_async.msg
_NOT_ZERO = "Expected Tensor with single nonzero value, but got zero"  # PyTorch's words for an assert without any
_RANGES = (torch.ops.aten.sym_constrain_range.default, torch.ops.aten.sym_constrain_range_for_size.default)


def kept_condition(condition: t.Any) -> t.Any:
    """Returns the stored form of a condition. Raises Error for an unsupported operation."""
    if isinstance(condition, (bool, int)):
        return condition
    if condition.is_Integer:
        return int(condition)
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    if condition.is_Symbol:
        return condition.name
    name = type(condition).__name__
    if name not in _OPERATIONS:
        raise Error(f"the program requires {condition}: {name} is unsupported in conditions")
    return [name, *map(kept_condition, condition.args)]


def holds(kept: t.Any, symbols: t.Mapping[str, int]) -> t.Any:
    """Evaluates a stored condition."""
    if isinstance(kept, list):
        return _OPERATIONS[kept[0]](*(holds(operand, symbols) for operand in kept[1:]))
    return symbols[kept] if isinstance(kept, str) else kept


def with_checks(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Returns a program that keeps its checks when it is decomposed; shares everything else."""
    module = torch.fx.GraphModule(program.graph_module, copy.deepcopy(program.graph))
    module.meta.update(program.graph_module.meta)
    for node in module.graph.find_nodes(op="call_function", target=_ASSERT):  # PyTorch removes it as dead code
        node.target, node.args = _ASSERT_TEXT, (node.args[0], _NOT_ZERO)
    keep_checks(module)
    out = copy.copy(program)
    out._graph_module = module
    return out


def _required(node: torch.fx.Node) -> t.Any:
    """Returns the condition of an assert on a number, as a sympy expression or a bool."""
    value = node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) else node.args[0]
    if free_unbacked_symbols(value):
        raise Error(f"{node.name}: the program requires {value}, which depends on numbers of its tensors")
    return value.node.expr if isinstance(value, torch.SymBool) else bool(value)


def _check_metadata(node: torch.fx.Node) -> None:
    """Raises Error unless the tensor is known to have the asserted properties."""
    wanted = dict(zip(("size", "stride", "dtype"), node.args[1:])) | node.kwargs
    fake = node.args[0].meta["val"]
    for name, value in wanted.items():
        if value is not None and (name not in ("dtype", "device", "layout") or getattr(fake, name) != value):
            raise Error(f"{node.name}: the program requires a tensor with the {name} {value}")


def take_asserts(module: torch.fx.GraphModule) -> t.List[t.Tuple[t.Any, str]]:
    """Removes the asserts from a program's graph; returns a condition, or None for the value of an additional result, and the message of each."""
    out: t.List[t.Tuple[t.Any, str]] = []
    (last,) = module.graph.find_nodes(op="output")
    for node in list(module.graph.nodes):
        if node.target is _ASSERT_TEXT:
            last.args = ((*last.args[0], node.args[0]),)
            out.append((None, node.args[1]))
        elif node.target is torch.ops.aten._assert_scalar.default:
            out.append((kept_condition(_required(node)), node.args[1]))
        elif node.target is torch.ops.aten._assert_tensor_metadata.default:
            _check_metadata(node)
        elif node.target in _RANGES:
            raise Error(f"{node.name}: the program requires a range of numbers of its tensors")
        else:
            continue
        module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()
    return out
