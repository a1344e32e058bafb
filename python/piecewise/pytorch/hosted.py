"""Calls that remain PyTorch's: reproduces the memory layout of their arguments, which they may retain."""
from __future__ import annotations

import operator
import threading
import typing as t

import torch

import _piecewise
from _piecewise import Error

from .staying import memory_of
from .storage import Place, place_of, roots, row_major
from .fx_import import DTYPES, Refused, evaluated

_WORDS = {"torch.device": torch.device("cpu")}


def meant(value: t.Any) -> t.Any:
    """Resolves an argument of a call that PyTorch runs, where torch.float32 and the like are texts."""
    if isinstance(value, str):
        if value in DTYPES:
            return DTYPES[value]
        if value.startswith("torch."):
            return _WORDS[value] if value in _WORDS else getattr(torch, value[len("torch.") :])
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(meant(item) for item in value)
    if isinstance(value, dict):
        return {key: meant(item) for key, item in value.items()}
    return value


class Layout(t.NamedTuple):
    """The layout of a tensor that a call receives."""

    memory: t.Hashable  # equal for tensors that share memory
    dtype: torch.dtype
    place: Place
    argument: t.Optional[t.Tuple[int, Place]] = None  # the graph's argument that owns the memory, and its layout


class _Site(t.NamedTuple):
    """A call site in a graph."""

    layouts: t.Dict[str, t.Any]  # by argument: a layout, None, or a list of them
    plain: bool  # tensors over the engine's memory suffice


def _leaves(layouts: t.Any) -> t.Iterator[Layout]:
    if isinstance(layouts, Layout):
        yield layouts
    elif isinstance(layouts, (list, dict)):
        for item in layouts.values() if isinstance(layouts, dict) else layouts:
            yield from _leaves(item)


def _is_core(op: torch._ops.OpOverload) -> bool:
    """Returns True for PyTorch's own ops, which never retain their arguments."""
    return op.namespace in ("aten", "prims")


def _written(op: torch._ops.OpOverload) -> t.Set[str]:
    return {a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write}


def _plain(op: torch._ops.OpOverload) -> str:
    return str(op).removesuffix(".default")


class _Sites:
    """The argument layouts of a graph's calls to ops of these names. `rewritten`: the graph that runs, whose rewrites may have renamed them."""

    def __init__(self, graph: torch.fx.Graph, ops: t.Container[str], rewritten: t.Optional[_piecewise.Graph] = None):
        self._roots = roots(graph)
        self._arguments = {node: i for i, node in enumerate(graph.find_nodes(op="placeholder"))}
        self.by_name: t.Dict[str, _Site] = {}
        names_of: t.Dict[str, t.List[t.List[str]]] = {}  # by op, of each call
        for node in graph.nodes:
            if node.op != "call_function":
                continue
            functional = getattr(node.target, "_name", "").startswith("auto_functionalized")
            op = node.args[0] if functional else node.target
            if isinstance(op, torch._ops.OpOverload) and str(op) in ops:
                site = self._functionalised(node) if functional else self._site(op, self._named(node))
                names = [user.name for user in node.users if user.target is operator.getitem]
                self.by_name.update(dict.fromkeys([node.name, *names], site))
                names_of.setdefault(_plain(op), []).append([node.name, *names])
        if rewritten is not None and not all(site.plain for site in self.by_name.values()):
            self._follow(rewritten, names_of)

    def _follow(self, rewritten: _piecewise.Graph, names_of: t.Mapping[str, t.List[t.List[str]]]) -> None:
        """Adds the name of a call that took another value's name. Raises Refused if several calls of an op did."""
        present = {node.name for node in rewritten.nodes}
        for op, calls in names_of.items():
            gone = [names for names in calls if not present.intersection(names)]
            new = [node.name for node in rewritten.nodes if node.op.removesuffix(".default") == op and node.name not in self.by_name]
            if len(new) == 1 == len(gone):
                self.by_name[new[0]] = self.by_name[gone[0][0]]
            elif new:
                raise Refused(f"several calls of {op} have other names after rewriting")

    def _named(self, node: torch.fx.Node) -> t.Dict[str, t.Any]:
        arguments = node.target._schema.arguments
        return {a.name: self._layouts(v) for a, v in zip(arguments, node.args)} | {name: self._layouts(v) for name, v in node.kwargs.items()}

    @staticmethod
    def _site(op: torch._ops.OpOverload, layouts: t.Dict[str, t.Any]) -> _Site:
        leaves = list(_leaves(layouts))
        apart = len({leaf.memory for leaf in leaves}) == len({(leaf.memory, leaf.place) for leaf in leaves})
        return _Site(layouts, _is_core(op) and apart and all(row_major(leaf.place) for leaf in leaves))

    def _layouts(self, value: t.Any) -> t.Any:
        if isinstance(value, (list, tuple)):
            return [self._layouts(item) for item in value]
        if not isinstance(value, torch.fx.Node) or memory_of(value) is None:
            return None
        fake, memory = value.meta["val"], memory_of(value)
        root = self._roots[memory]
        of = None
        if root in self._arguments and fake.dtype == root.meta["val"].dtype:
            of = self._arguments[root], place_of(root)
        return Layout(memory, fake.dtype, place_of(value), of)

    def _functionalised(self, node: torch.fx.Node) -> _Site:
        """Returns written arguments that are copies of the call's arguments, or parts of copies."""
        op, kwargs = node.args[0], node.kwargs
        layouts = {name: self._layouts(value) for name, value in kwargs.items() if not name.startswith("_")}
        for name in _written(op):
            index = kwargs.get(f"_{name}_base_index")
            value = kwargs["_all_bases"][index] if index is not None else kwargs.get(name)
            if isinstance(value, torch.fx.Node):
                layouts[name] = self._part(
                    node, name, self._layouts(value)._replace(memory=("copy", name if index is None else index), argument=None)
                )
        return self._site(op, layouts)

    def _part(self, node: torch.fx.Node, name: str, base: Layout) -> Layout:
        part = {word: node.kwargs.get(f"_{name}_{word}") for word in ("size", "stride", "storage_offset", "slice_dim", "slice_start", "slice_end")}
        if part["stride"] is not None:
            sizes, strides, offset = (self._numbers(part[word]) for word in ("size", "stride", "storage_offset"))
            return base._replace(place=Place(tuple(sizes), tuple(strides), offset))
        if part["slice_dim"] is None:
            return base
        start, end = self._numbers(part["slice_start"]), self._numbers(part["slice_end"])
        dim, place = part["slice_dim"], base.place
        if all(isinstance(n, int) for n in (start, end, place.sizes[dim])):
            start, end, _ = slice(start, end).indices(place.sizes[dim])
        sizes = [*place.sizes[:dim], end - start, *place.sizes[dim + 1 :]]
        return base._replace(place=Place(tuple(sizes), place.strides, place.offset + start * place.strides[dim]))

    def _numbers(self, value: t.Any) -> t.Any:
        if isinstance(value, (list, tuple)):
            return [self._numbers(item) for item in value]
        if isinstance(value, torch.fx.Node):
            value = value.meta["val"]
        return value.node.expr if isinstance(value, torch.SymInt) else value


def _kept_layouts(layouts: t.Any, memories: t.Dict[t.Hashable, int]) -> t.Any:
    if isinstance(layouts, Layout):
        return {"memory": memories.setdefault(layouts.memory, len(memories)), "dtype": str(layouts.dtype), "place": layouts.place.kept()}
    return [_kept_layouts(item, memories) for item in layouts] if isinstance(layouts, list) else None


def _read_layouts(kept: t.Any) -> t.Any:
    if isinstance(kept, dict):
        return Layout(kept["memory"], getattr(torch, kept["dtype"].removeprefix("torch.")), Place.read(kept["place"]))
    return [_read_layouts(item) for item in kept] if isinstance(kept, list) else None


def kept_sites(graph: torch.fx.Graph, left: t.Container[str], rewritten: _piecewise.Graph) -> t.Dict[str, t.Any]:
    """Returns the argument layouts of calls to ops of these names in serializable form, for HostCalls."""
    memories: t.Dict[t.Hashable, int] = {}
    return {
        name: [site.plain, {word: _kept_layouts(layouts, memories) for word, layouts in site.layouts.items()}]
        for name, site in _Sites(graph, left, rewritten).by_name.items()
    }


def laid_out(tensor: torch.Tensor, place: Place, memory: t.Optional[torch.Tensor] = None) -> torch.Tensor:
    """Returns a copy with this layout, in new memory or in `this`; elements along a dim of stride 0 are shared, as in PyTorch's expanded tensors."""
    memory = torch.empty(place.span, dtype=tensor.dtype, device=tensor.device) if memory is None else memory
    out = memory.as_strided(place.sizes, place.strides, place.offset)
    if not tensor.numel():
        return out
    for dim, stride in enumerate(place.strides):
        if stride == 0:
            tensor = tensor.narrow(dim, 0, 1)
    to = memory.as_strided(tensor.shape, place.strides, place.offset)
    if torch._debug_has_internal_overlap(to) == 0:
        to.copy_(tensor)
    else:  # overlapping windows: an element is at several places
        memory[torch.arange(memory.numel(), device=memory.device).as_strided(tensor.shape, place.strides, place.offset).flatten()] = tensor.flatten()
    return out


class _Given:
    """The tensors passed to one call in place of those over the engine's memory."""

    def __init__(self, layouts: t.Any, arguments: t.Sequence[t.Any], symbols: t.Mapping[str, int]):
        self._arguments, self._symbols = arguments, symbols
        self._memory: t.Dict[t.Hashable, torch.Tensor] = {}
        self._spans: t.Dict[t.Hashable, int] = {}
        self._back: t.List[t.Tuple[torch.Tensor, torch.Tensor]] = []
        for leaf in _leaves(layouts):
            key = (leaf.memory, leaf.dtype)
            self._spans[key] = max(self._spans.get(key, 0), self._place(leaf.place).span)

    def _place(self, place: Place) -> Place:
        return place.at(lambda number: evaluated(number, self._symbols))

    def tensor(self, given: t.Any, layout: t.Any, written: bool) -> t.Any:
        if isinstance(given, (list, tuple)):
            of = layout if isinstance(layout, list) else [None] * len(given)
            return type(given)(self.tensor(item, one, written) for item, one in zip(given, of))
        if not isinstance(given, torch.Tensor):
            return given
        if not isinstance(layout, Layout):
            out = given.clone()
        elif layout.argument is not None and not written:
            return self._of_argument(layout)
        else:
            out = self._copy(given, layout)
        if written:
            self._back.append((given, out))
        return out

    def _of_argument(self, layout: Layout) -> torch.Tensor:
        index, whole = layout.argument
        argument, place, whole = self._arguments[index], self._place(layout.place), self._place(whole)
        if place == whole:
            return argument
        return argument.as_strided(place.sizes, place.strides, argument.storage_offset() + place.offset - whole.offset)

    def _copy(self, given: torch.Tensor, layout: Layout) -> torch.Tensor:
        place, key = self._place(layout.place), (layout.memory, layout.dtype)
        if place.sizes != tuple(given.shape):
            raise Error(f"a call expects a tensor of {list(place.sizes)}, but was given one of {list(given.shape)}")
        if key not in self._memory:
            self._memory[key] = torch.empty(self._spans[key], dtype=layout.dtype)
        return laid_out(given, place, self._memory[key])

    def give_back(self) -> None:
        """Copies written tensors back to the engine's memory."""
        for given, copy in self._back:
            given.copy_(copy)


class HostCalls:
    """The calls of a graph that remain PyTorch's, while it runs. Thread-safe and reentrant."""

    def __init__(self, sites: t.Mapping[str, _Site]):
        self._sites = sites
        self.plain = all(site.plain for site in self._sites.values())
        self._running = threading.local()

    @classmethod
    def of(cls, graph: torch.fx.Graph, left: t.Container[str], rewritten: t.Optional[_piecewise.Graph] = None) -> HostCalls:
        """Creates the calls for ops of these names. `rewritten`: the graph that runs. Raises Refused if a call cannot be found in it."""
        return cls(_Sites(graph, left, rewritten).by_name)

    @classmethod
    def read(cls, kept: t.Mapping[str, t.Any]) -> HostCalls:
        """Restores the calls from kept_sites."""
        return cls({name: _Site({word: _read_layouts(one) for word, one in layouts.items()}, plain) for name, (plain, layouts) in kept.items()})

    def functions(self, operators: t.Iterable[torch._ops.OpOverload]) -> t.Dict[str, t.Callable[..., t.Any]]:
        """Returns host functions by op; each is called with the node's name first."""
        out = {}
        for op in operators:
            out[str(op)] = out[str(op).removesuffix(".default")] = self._function(op)
        return out

    def begin(self, arguments: t.Sequence[t.Any], symbols: t.Mapping[str, int]) -> t.Any:
        """Registers these arguments for this thread's run of the graph; returns the token for end()."""
        before = getattr(self._running, "given", ((), {}))
        self._running.given = (arguments, symbols)
        return before

    def end(self, before: t.Any) -> None:
        self._running.given = before

    def _function(self, op: torch._ops.OpOverload) -> t.Callable[..., t.Any]:
        names, written, core = [a.name for a in op._schema.arguments], _written(op), _is_core(op)

        def call(node: str, *args: t.Any, **kwargs: t.Any) -> t.Any:
            site = self._sites.get(node)
            args, kwargs = meant(args), meant(kwargs)
            with torch.no_grad():
                if site is None and not self.plain:
                    raise Error(f"`{node}` of {op} is not a call of the compiled graph: the layout of its arguments is unknown")
                if site.plain if site is not None else core:
                    return op(*args, **kwargs)
                layouts = site.layouts if site is not None else {}
                given = _Given(layouts, *getattr(self._running, "given", ((), {})))
                args = [given.tensor(value, layouts.get(name), name in written) for name, value in zip(names, args)]
                kwargs = {name: given.tensor(value, layouts.get(name), name in written) for name, value in kwargs.items()}
                out = op(*args, **kwargs)
                given.give_back()
                return out

        return call
