"""Capture of whole graphs as CUDA graphs: which graphs can be, and PyTorch's cudagraph trees around those."""
from __future__ import annotations

import typing as t

import torch
from torch.utils._pytree import tree_leaves

from .devices import engine_of, index_of
from .partition import bodies_of
from .pieces import Piece
from .recording import Captured
from .reports import GraphReport
from .staying import attribute, memories_written, memory_of, op_of, ops_named
from .writes import written_arguments

_STRIDED = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default, torch.ops.aten.as_strided_scatter.default)


def why_launched(module: torch.fx.GraphModule, place: torch.device, static: t.Container[int], at: t.Iterable[str] = ()) -> str:
    """Returns why a graph cannot be captured; an empty text if it can. `static`: the arguments that are captured where they are. `at`: ops that may not be."""
    from torch._inductor.utils import get_first_incompatible_cudagraph_node

    arguments, named = module.graph.find_nodes(op="placeholder"), ops_named(at)
    given = {memory_of(node) for node in arguments} - {None}
    moved = {memory_of(node) for i, node in enumerate(arguments) if i not in static} - {None}
    if (unsafe := get_first_incompatible_cudagraph_node(module)) is not None:
        return f"{unsafe.target} waits for the device, or its sizes depend on numbers of its arguments"
    (output,) = module.graph.find_nodes(op="output")
    if any(node.op == "get_attr" for node in output.all_input_nodes):
        return "it returns a constant"
    for node in module.graph.nodes:
        for value in tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and (value.device.type != place.type or value.layout != torch.strided):
                return f"{node.name} is not a strided tensor on {place}"
        if isinstance(node.target, torch._ops.HigherOrderOperator) and (bodies_of(node) or node.target._name == "with_effects"):
            return f"{node.target} calls functions that are its arguments, or has effects"
        if node.target in _STRIDED and any(memory_of(source) in given for source in node.all_input_nodes):
            return f"{node.target} reads memory between the elements of an argument"
        if op_of(node) in named:
            return f"the option `at` names {node.target}"
        if memories_written(node) & moved:
            return f"{node.target} may write an argument of the graph"
    return ""


def static_inputs_of_backward(module: torch.fx.GraphModule) -> t.FrozenSet[int]:
    """Returns the arguments of a backward graph that are weights."""
    return frozenset(i for i, node in enumerate(module.graph.find_nodes(op="placeholder")) if node.meta.get("is_static_input", False))


class Capturing:
    """Captures the graphs of one function of Dynamo: if its forward graph is launched, so is its backward graph."""

    def __init__(self) -> None:
        self._device: t.Optional[int] = None  # of the forward graph that PyTorch captured
        self._launched = False  # the forward graph is

    def wrap(
        self,
        taken: t.Callable[[t.List[t.Any]], t.Any],
        module: torch.fx.GraphModule,
        why: str,
        static: t.Container[int],
        place: torch.device,
        report: GraphReport,
    ) -> t.Callable[..., t.Any]:
        """Returns a compiled graph that is captured, as the options demand. `why`: the reason against capturing it whole."""
        options = report.options
        if options.capture == "piecewise":
            in_parts = options.mode == "full_and_piecewise" and engine_of(options, place) == "cuda"
            report.in_parts, report.not_captured = (why, "") if in_parts else ("", why)
            if why or options.mode == "piecewise" or (in_parts and isinstance(taken, Piece)):
                return taken
            exact, copied = options.mode != "full", not report.returns_static
            return Captured(taken, static, written_arguments(module), place, report, exact, copied)
        if report.kind == "backward" and self._launched:
            why = why or "its forward graph is launched"
        report.not_captured = why
        if why:
            self._launched = self._launched or report.kind == "forward"
            return taken if self._device is None else _in_backward(taken, self._device)
        if place.type == "cpu":
            return Captured(taken, static, written_arguments(module), place, report)
        if report.kind == "forward":
            self._device = index_of(place)
        return in_trees(taken, module, static, place, report.kind)


def _in_backward(call: t.Callable[[t.List[t.Any]], t.Any], device: int) -> t.Callable[..., t.Any]:
    """Returns a backward graph that is launched, and that ends the generation of its captured forward graph."""
    from torch._inductor.cudagraph_trees import get_manager

    def run(args: t.List[t.Any]) -> t.Any:
        manager = get_manager(device, create_if_none_exists=False)
        if manager is not None:
            manager.set_to_running_backward()
        return call(args)

    run._boxed_call = True
    return run


def in_trees(
    call: t.Callable[[t.List[t.Any]], t.Any], module: torch.fx.GraphModule, static: t.Iterable[int], place: torch.device, kind: str
) -> t.Callable[..., t.Any]:
    """Returns a call that PyTorch captures, for each set of sizes, as it captures Inductor's."""
    from torch._inductor.compile_fx import cudagraphify
    from torch._inductor.cudagraph_utils import get_placeholder_info

    def boxed(args: t.List[t.Any]) -> t.Any:
        out = call(args)
        args.clear()  # PyTorch requires it, also of a call that PyTorch runs
        return out

    (output,) = module.graph.find_nodes(op="output")
    constants = [attribute(module, node.target) for node in module.graph.find_nodes(op="get_attr")]
    captured = cudagraphify(
        boxed,
        tuple(sorted(static)),
        device_index=index_of(place),
        stack_traces=[value.stack_trace if isinstance(value, torch.fx.Node) else None for value in output.args[0]],
        is_backward=kind == "backward",
        is_inference=kind == "inference",
        constants=tuple(x for x in constants if isinstance(x, torch.Tensor)),
        placeholders=get_placeholder_info(module.graph),
        mutated_input_idxs=tuple(written_arguments(module)),
    )
    captured._boxed_call = True
    return captured
