"""Partitions a torch.fx graph into parts for Piecewise and calls that remain PyTorch's.

The problem is acyclic graph partitioning: contract the taken calls into as few parts as possible without creating a cycle. Each call is assigned to the
earliest level of a longest-path layering (see Stages), which gives the minimum number of parts. Ordered calls, which may have effects or draw random numbers,
are chained so that their order is kept. A second pass moves calls to later parts where that reduces the bytes carried between parts.
"""
from __future__ import annotations

import dataclasses
import operator
import typing as t

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_symbols

from .staying import Staying, attribute, has_parts, memory_of
from .fx_import import expression

Node = torch.fx.Node
_BEFORE = -1  # the stage of calls that need no part


def bytes_of(node: Node) -> int:
    """Returns the bytes of a tensor; symbolic sizes count as their hints."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return 0
    count = value.element_size()
    for extent in value.shape:
        hint = extent.node.hint if isinstance(extent, torch.SymInt) else extent
        count *= int(hint) if isinstance(hint, int) else 1
    return count


def _tags(node: Node) -> t.Container[torch.Tag]:
    return node.target.tags if isinstance(node.target, torch._ops.OpOverload) else ()


def bodies_of(node: Node) -> t.List[torch.fx.GraphModule]:
    """Returns the graphs among a call's arguments."""
    values = [attribute(node.graph.owning_module, n.target) for n in node.all_input_nodes if n.op == "get_attr"]
    return [value for value in values if isinstance(value, torch.fx.GraphModule)]


def _is_custom(node: Node) -> bool:
    """Returns True for an operator that is not part of PyTorch: it may have effects that its schema does not state, such as a log."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.namespace not in ("aten", "prims", "prim")


def is_ordered(node: Node) -> bool:
    """Returns True if the call's order is observable: it draws random numbers, writes, or has or may have an effect."""
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return True if not (bodies := bodies_of(node)) else any(is_ordered(n) for body in bodies for n in body.graph.nodes)
    return node.op.startswith("call_") and (torch.Tag.nondeterministic_seeded in _tags(node) or node.is_impure() or _is_custom(node))


def _is_view(node: Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    return any(r.alias_info is not None and not r.alias_info.is_write for r in node.target._schema.returns)


class Stages:
    """Assigns each call to a stage. The taken calls of a stage form one part; the calls that stay run after it.

    The number of parts is the maximum, over all dependency chains, of taken segments separated by calls that stay; fewer parts are impossible. Calls that cost
    nothing (views of arguments, sizes, and constants) have no stage: each part duplicates them.
    """

    def __init__(self, module: torch.fx.GraphModule, staying: Staying):
        self.graph, self._staying = module.graph, staying
        self.stays = staying.reasons
        self.free: t.Set[Node] = set()
        self.of: t.Dict[Node, int] = {}
        self._written = any(map(staying.writes_arguments, self.stays))
        self._place()
        if not self._written:
            self._sink()

    @property
    def count(self) -> int:
        return 1 + max((stage for node, stage in self.of.items() if node not in self.stays), default=_BEFORE)

    def part(self, stage: int) -> t.List[Node]:
        return [node for node in self.graph.nodes if self.of.get(node) == stage and node not in self.stays]

    def between(self, stage: int) -> t.List[Node]:
        """Returns the calls that remain PyTorch's and run after the part of this stage."""
        return [node for node in self.graph.nodes if self.of.get(node) == stage and node in self.stays]

    def _place(self):
        last: t.Optional[Node] = None  # call whose order is observable
        barrier = _BEFORE  # the stage of the last write of an argument
        for node in self.graph.nodes:
            if not node.op.startswith("call_"):
                continue
            if self._is_free(node):
                self.free.add(node)
                continue
            sources = list(node.all_input_nodes)
            if is_ordered(node):
                sources += [last] if last is not None else []
                last = node
            stage = max([self._least(node, source) for source in sources if source in self.of], default=_BEFORE)
            if node in self.stays and self._staying.writes_arguments(node):
                barrier = stage = max([stage, *self.of.values()])
            self.of[node] = max(stage, barrier) if node in self.stays else max(stage, barrier + 1)

    def _least(self, node: Node, source: Node) -> int:
        stage = self.of[source]
        return stage if node in self.stays or source not in self.stays else stage + 1

    def _is_free(self, node: Node) -> bool:
        if node in self.stays or node.target is operator.getitem or has_parts(node) or is_ordered(node):
            return False
        if not all(source.op in ("placeholder", "get_attr") or source in self.free for source in node.all_input_nodes):
            return False
        number = isinstance(node.meta.get("val"), torch.SymInt)
        return number or _is_view(node) or not any(isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes)

    def _sink(self):
        """Moves calls to the part of their first user if that reduces the bytes carried between parts."""
        for node in reversed(self.graph.nodes):
            if node not in self.of or node in self.stays or has_parts(node) or node.target is operator.getitem or is_ordered(node):
                continue
            if any(user.op == "output" or has_parts(user) and user not in self.of for user in node.users):
                continue
            stages = [self.of[user] for user in self._users(node)]
            first = min(stages, default=self.of[node])
            carried = sum(bytes_of(source) for source in node.all_input_nodes if self.of.get(source, first) < first and len(source.users) == 1)
            if first > self.of[node] and carried < bytes_of(node):
                self.of[node] = first

    def _users(self, node: Node) -> t.Iterator[Node]:
        for user in node.users:
            if user in self.free:
                yield from self._users(user)
            elif user in self.of:
                yield user


@dataclasses.dataclass
class Part:
    """A part of a graph: its arguments, its results, and its calls paired with the original ones."""

    module: torch.fx.GraphModule
    given: t.List[Node]
    gives: t.List[Node]
    nodes: t.List[t.Tuple[Node, Node]]


class _Copy:
    """A graph under construction from copies of another graph's nodes."""

    def __init__(self, owner: torch.fx.GraphModule):
        self.owner = owner
        self.graph = torch.fx.Graph()
        self.copies: t.Dict[Node, Node] = {}
        self.attributes: t.Dict[str, t.Any] = {}

    def read(self, node: Node) -> Node:
        """Returns a copy of a get_attr node."""
        name = node.target.replace(".", "_")
        self.attributes[name] = attribute(self.owner, node.target)
        copy = self.graph.get_attr(name)
        copy.meta = dict(node.meta)
        return copy

    def call(self, node: Node, meant: t.Callable[[Node], Node]) -> Node:
        """Copies a call or the output node."""
        self.copies[node] = self.graph.node_copy(node, meant)
        return self.copies[node]


class _PartCopy(_Copy):
    """Copies the calls of one part. Operands that cost nothing are copied too; all others become arguments."""

    def __init__(self, owner: torch.fx.GraphModule, stages: Stages, nodes: t.Sequence[Node]):
        super().__init__(owner)
        self.given: t.List[Node] = []
        self._free = stages.free
        self._last_given: t.Optional[Node] = None
        self._nodes = nodes
        self._last = self.graph.output(())
        for node in nodes:
            with self.graph.inserting_before(self._last):
                self.call(node, self._meant)

    def _meant(self, node: Node) -> Node:
        if node in self.copies:
            return self.copies[node]
        if node.op == "get_attr":
            self.copies[node] = self.read(node)
        elif node in self._free and not self._is_size(node):
            self.call(node, self._meant)
        else:
            self.copies[node] = self._give(node)
        return self.copies[node]

    @staticmethod
    def _is_size(node: Node) -> bool:
        """Returns True for a number read from a tensor: the part receives the number instead of the tensor."""
        return isinstance(node.meta.get("val"), torch.SymInt) and any(isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes)

    def _give(self, node: Node) -> Node:
        first = next(iter(self.graph.nodes))
        with self.graph.inserting_after(self._last_given) if self._last_given is not None else self.graph.inserting_before(first):
            copy = self.graph.create_node("placeholder", node.name, name=node.name)
        copy.meta = dict(node.meta)
        self._last_given = copy
        self.given.append(node)
        return copy

    def symbols(self) -> t.Tuple[t.Set[t.Any], t.Set[t.Any]]:
        """Returns the symbols that the part's values need, and the symbols that its arguments determine."""
        needed, known = set(), set()
        for node in self.graph.nodes:
            needed |= free_symbols(node.meta.get("val"))
            value = node.meta.get("val") if node.op == "placeholder" else None
            numbers = value.shape if isinstance(value, torch.Tensor) else [value] if isinstance(value, torch.SymInt) else []
            known |= {expression(n) for n in numbers if isinstance(n, torch.SymInt)}
        return needed, known

    def give_symbols(self, numbers: t.Mapping[t.Any, Node]) -> None:
        needed, known = self.symbols()
        for symbol in sorted(needed - known, key=str):
            if symbol in numbers:
                self._meant(numbers[symbol])

    def finish(self, gives: t.List[Node]) -> Part:
        self._last.args = (tuple(self.copies[node] for node in gives),)
        module = torch.fx.GraphModule(self.attributes, self.graph)
        return Part(module, self.given, gives, [(self.copies[node], node) for node in self._nodes])


class Partition:
    """A graph as parts, and a graph that calls them: `parts`, `whole(functions of the parts, of subgraphs)`."""

    def __init__(self, module: torch.fx.GraphModule, staying: Staying):
        _own_views_of_outputs(module.graph, staying)
        self._module = module
        self.stages = Stages(module, staying)
        numbers = self._numbers()
        copies = [_PartCopy(module, self.stages, self.stages.part(stage)) for stage in range(self.stages.count)]
        for copy in copies:
            copy.give_symbols(numbers)
        read = self._read_outside(copies)
        self.parts = [copy.finish([n for n in self.stages.part(stage) if n in read]) for stage, copy in enumerate(copies)]

    def _numbers(self) -> t.Dict[t.Any, Node]:
        """Returns a node for each symbol; creates one that reads an argument's size if necessary."""
        out: t.Dict[t.Any, Node] = {}
        for node in self._module.graph.nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and isinstance(symbol := expression(value), sympy.Symbol):
                out.setdefault(symbol, node)
        for node in self._module.graph.find_nodes(op="placeholder"):
            value = node.meta.get("val")
            for dim, extent in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(extent, torch.SymInt) and isinstance(symbol := expression(extent), sympy.Symbol) and symbol not in out:
                    out[symbol] = self._size(node, dim, extent)
        return out

    def _size(self, node: Node, dim: int, extent: torch.SymInt) -> Node:
        last = self._module.graph.find_nodes(op="placeholder")[-1]
        with self._module.graph.inserting_after(last):
            size = self._module.graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
        size.meta["val"] = extent
        self.stages.free.add(size)
        return size

    def _read_outside(self, copies: t.Sequence[_PartCopy]) -> t.Set[Node]:
        read = {node for copy in copies for node in copy.given}
        for node in self._module.graph.nodes:
            if node in self.stages.stays or node.op == "output" or node in self.stages.free:
                read.update(node.all_input_nodes)
        return read

    def whole(self, functions: t.Sequence[t.Any], subgraphs: t.Mapping[str, t.Any]) -> torch.fx.GraphModule:
        """Returns the graph that calls the parts through these modules, with replacements for its subgraphs."""
        return _Whole(self._module, self.stages, self.parts, functions, subgraphs).made()


class _Whole(_Copy):
    def __init__(self, owner, stages: Stages, parts, functions, subgraphs):
        super().__init__(owner)
        self._stages, self._parts, self._functions, self._subgraphs = stages, parts, functions, subgraphs
        for node in owner.graph.find_nodes(op="placeholder"):
            self.copies[node] = self.graph.placeholder(node.name)
        for stage in range(_BEFORE, stages.count):
            if stage >= 0:
                self._call_part(stage)
            for node in stages.between(stage):
                self._call_torch(node)
        (last,) = owner.graph.find_nodes(op="output")
        self.call(last, self._meant)

    def made(self) -> torch.fx.GraphModule:
        self.graph.set_codegen(torch.fx.graph._BoxedCodeGen())
        return torch.fx.GraphModule(self.attributes, self.graph)

    def _meant(self, node: Node) -> Node:
        if node in self.copies:
            return self.copies[node]
        if node.op == "get_attr":
            self.copies[node] = self._read(node)
            return self.copies[node]
        assert node in self._stages.free, f"{node} is read before it is made"
        return self.call(node, self._meant)

    def _read(self, node: Node) -> Node:
        copy = self.read(node)
        if node.target in self._subgraphs:
            self.attributes[copy.target] = self._subgraphs[node.target]
        return copy

    def _call_torch(self, node: Node):
        if node.target is not torch.ops.higher_order.invoke_subgraph:
            self.call(node, self._meant)
            return
        body, _, *operands = node.args
        copy = self.graph.call_module(self._meant(body).target, tuple(torch.fx.map_arg(operands, self._meant)))
        copy.meta = dict(node.meta)
        self.copies[node] = copy

    def _call_part(self, stage: int):
        part, name = self._parts[stage], f"piecewise_part_{stage}"
        self.attributes[name] = self._functions[stage]
        results = self.graph.call_module(name, tuple(self._meant(node) for node in part.given))
        for i, node in enumerate(part.gives):
            self.copies[node] = self.graph.call_function(operator.getitem, (results, i))


def _own_views_of_outputs(graph: torch.fx.Graph, staying: Staying) -> None:
    """Makes views among the results PyTorch's, as views of computed results: a part that returned both would return separate memory."""
    (last,) = graph.find_nodes(op="output")
    outputs = [value for value in last.args[0] if isinstance(value, Node)]
    counts: t.Dict[int, t.Set[Node]] = {}
    for node in {*outputs, *graph.find_nodes(op="placeholder"), *staying.reasons}:
        memory = memory_of(node)
        if memory is not None:
            counts.setdefault(memory, set()).add(node)
    copies: t.Dict[Node, Node] = {}

    def own(node: Node) -> Node:
        base = next((n for n in node.all_input_nodes if memory_of(n) == memory_of(node)), None)
        if base is None or node in staying.reasons or not _is_view(node):
            return node
        if node not in copies:
            below = own(base)
            with graph.inserting_before(last):
                copies[node] = graph.node_copy(node, lambda n: below if n is base else n)
            staying.reasons[copies[node]] = "its result shares memory with another"
        return copies[node]

    for node in outputs:
        memory = memory_of(node)
        if memory is not None and len(counts[memory]) > 1:
            last.replace_input_with(node, own(node))
    for node, copy in reversed(copies.items()):
        if node.users:
            staying.again.add(copy)
        else:
            graph.erase_node(node)
