"""Subgraphs that calls of a torch.fx graph take as arguments: bodies of branches and loops, regions, and score functions of attention.

Bodies that Piecewise can compile are replaced by modules that call the compiled graph. Such a module falls back to the original for arguments of other
types or static extents. Attention with a score function is expanded to plain ops by tracing, at the cost of its fused implementation.
"""
from __future__ import annotations

import copy
import typing as t

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from .decompositions import decompositions
from .staying import attribute

# Higher-order ops that call their bodies with exactly the traced types.
_CALL_BODIES = ("cond", "invoke_subgraph", "map_impl", "scan", "while_loop", "while_loop_stack_output")


class Given(t.NamedTuple):
    """A subgraph, and the operands that each of its calls passes."""

    module: torch.fx.GraphModule
    operands: t.List[t.Sequence[t.Any]]

    def given(self, values: t.Container[torch.fx.Node]) -> t.Set[int]:
        """Returns the indices of arguments that are among these values in every call."""
        return {
            i for i in range(min(map(len, self.operands))) if all(isinstance(one[i], torch.fx.Node) and one[i] in values for one in self.operands)
        }


def _operands(node: torch.fx.Node) -> t.Sequence[t.Any]:
    """Returns the operands that a call passes to its subgraph directly."""
    if node.target is torch.ops.higher_order.invoke_subgraph:
        return node.args[2:]
    return node.args[3] if node.target is torch.ops.higher_order.cond else ()


def bodies(module: torch.fx.GraphModule) -> t.Dict[str, Given]:
    """Returns the subgraphs that can be compiled separately, by attribute."""
    out: t.Dict[str, Given] = {}
    for node in module.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator) and node.target._name in _CALL_BODIES:
            for source in node.all_input_nodes:
                body = attribute(module, source.target) if source.op == "get_attr" else None
                if isinstance(body, torch.fx.GraphModule):
                    out.setdefault(source.target, Given(body, [])).operands.append(_operands(node))
    return out


def _output(module: torch.fx.GraphModule) -> torch.fx.Node:
    return module.graph.find_nodes(op="output")[0]


def listed(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Returns a graph whose results are a tuple, as in AOT autograd."""
    if isinstance(_output(module).args[0], (tuple, list)):
        return module
    out = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    _output(out).args = ((_output(out).args[0],),)
    out.recompile()
    return out


def _type(value: t.Any) -> t.Any:
    return (value.dtype, value.dim(), value.device.type, value.layout) if isinstance(value, torch.Tensor) else type(value) in (int, torch.SymInt)


class Body(torch.nn.Module):
    """A compiled graph that replaces a subgraph; arguments of other types are passed to the original."""

    def __init__(self, call: t.Callable[[t.List[t.Any]], t.Sequence[t.Any]], module: torch.fx.GraphModule):
        super().__init__()
        self._call, self._module = call, module
        self._single = not isinstance(_output(module).args[0], (tuple, list))
        fakes = [node.meta.get("val") for node in module.graph.find_nodes(op="placeholder")]
        self._types = [_type(fake) for fake in fakes]
        self._extents = [
            [(dim, extent) for dim, extent in enumerate(fake.shape) if isinstance(extent, int)] if isinstance(fake, torch.Tensor) else []
            for fake in fakes
        ]

    def forward(self, *args):
        if self._suits(args):
            results = self._call(list(args))
            return results[0] if self._single else tuple(results)
        return self._module(*args)

    def _suits(self, args: t.Sequence[t.Any]) -> bool:
        if len(args) != len(self._types):
            return False
        return all(_type(x) == kind and all(x.shape[dim] == n for dim, n in extents) for x, kind, extents in zip(args, self._types, self._extents))


def _dense(node: torch.fx.Node) -> t.Optional[t.Callable[..., t.Any]]:
    """Returns PyTorch's plain-op implementation of attention with a score function; None for other calls."""
    target = node.target
    if not isinstance(target, torch._ops.HigherOrderOperator) or target._name not in ("flex_attention", "flex_attention_backward"):
        return None
    return target.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)


def _traced(
    module: torch.fx.GraphModule, node: torch.fx.Node, function: t.Callable[..., t.Any]
) -> t.Tuple[torch.fx.GraphModule, t.List[torch.fx.Node]]:
    """Returns the call in plain ops, and the values that the traced graph takes as arguments."""
    flat, spec = tree_flatten((node.args, node.kwargs))
    given: t.List[torch.fx.Node] = []
    for value in flat:
        if isinstance(value, torch.fx.Node) and value.op != "get_attr" and value not in given:
            given.append(value)

    def meant(value, values):
        if not isinstance(value, torch.fx.Node):
            return value
        return attribute(module, value.target) if value.op == "get_attr" else values[given.index(value)]

    def call(*values):
        args, kwargs = tree_unflatten([meant(value, values) for value in flat], spec)
        return torch.func.functionalize(lambda: function(*args, **kwargs), remove="mutations")()

    fakes = [value.meta["val"] for value in given]
    mode = torch._guards.detect_fake_mode(fakes)
    with mode, torch.no_grad():
        return make_fx(call, decomposition_table=decompositions(), tracing_mode="real")(*fakes), given


def spell_attention(module: torch.fx.GraphModule) -> None:
    """Replaces attention with score functions by plain ops."""
    calls = [(node, function) for node in module.graph.nodes if (function := _dense(node))]
    for i, (node, function) in enumerate(calls):
        traced, given = _traced(module, node, function)
        for constant in traced.graph.find_nodes(op="get_attr"):
            name = f"piecewise_{i}_{constant.target}"
            setattr(module, name, attribute(traced, constant.target))
            constant.target = name
        places = dict(zip(traced.graph.find_nodes(op="placeholder"), given))
        with module.graph.inserting_before(node):
            results = module.graph.graph_copy(traced.graph, places)
        for user in list(node.users):
            (_, index) = user.args
            user.replace_all_uses_with(results[index])
            module.graph.erase_node(user)
        module.graph.erase_node(node)
    if calls:
        module.graph.eliminate_dead_code()
        module.recompile()
