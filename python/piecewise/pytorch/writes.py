"""Writes of a graph's arguments: by ops in place, or by copies of results after the call.

AOT autograd turns `cache.index_copy_(…)` into an op that returns a changed copy of the cache, and a copy of that into the argument at the end of the graph. The
row of a step would cost two copies of the whole cache, so such ops are turned back. Invariant: no call reads an element after a write that it preceded in the
graph, or before a write that it followed: Stages treats each write of an argument as a barrier.
"""
from __future__ import annotations

import typing as t

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._pytree import tree_leaves

from .calls import arguments_of
from .staying import memories_of, memories_written

_aten = torch.ops.aten
_IN_PLACE = {  # these have the memory of the first argument, and return it
    _aten.index_copy.default: _aten.index_copy_.default,
    _aten.index_put.default: _aten.index_put_.default,
    _aten.scatter.src: _aten.scatter_.src,
}
_SLICES = {_aten.slice_scatter.default: _aten.slice.Tensor, _aten.select_scatter.default: _aten.select.int}
InPlace = t.Callable[[int, torch.fx.Node], bool]  # whether an argument may be written by an op in place


def _same_layout(x: torch.Tensor, y: torch.Tensor) -> bool:
    same = x.dtype == y.dtype and x.dim() == y.dim()
    return same and all(statically_known_true(a == b) for a, b in zip((*x.shape, *x.stride()), (*y.shape, *y.stride())))


def _inner(write: torch.fx.Node) -> t.Optional[torch.fx.Node]:
    """Returns the write whose result a slice receives, if it changes that slice and nothing else reads its result: `cache[a:b, c:d] = x` is two writes."""
    if write.target not in _SLICES or not isinstance(write.args[1], torch.fx.Node):
        return None
    inner = write.args[1]
    if inner.target not in _IN_PLACE and inner.target not in _SLICES or list(inner.users) != [write]:
        return None
    view = inner.args[0]
    same = view.target == _SLICES[write.target] and view.args == (write.args[0], *write.args[2:]) and view.kwargs == write.kwargs
    return inner if same else None


def _nest(write: torch.fx.Node) -> t.List[torch.fx.Node]:
    """Returns a write and those inside it; the last one has the source, and is where the memory changes."""
    inner = _inner(write)
    return [write] if inner is None else [write, *_nest(inner)]


def _sources(nest: t.Sequence[torch.fx.Node]) -> t.List[torch.fx.Node]:
    """Returns the tensors that nested writes read besides the one that they change."""
    read = [(*write.args[2:], write.kwargs) for write in nest[:-1]] + [(*nest[-1].args[1:], nest[-1].kwargs)]
    return [n for n in tree_leaves(read) if isinstance(n, torch.fx.Node)]


def written_arguments(module: torch.fx.GraphModule) -> t.List[int]:
    """Returns the arguments of a graph that its calls write."""
    written = set().union(*map(memories_written, module.graph.nodes))
    return [i for i, node in enumerate(module.graph.find_nodes(op="placeholder")) if memories_of(node) & written]


class Writes:
    """Changes the copies into arguments at the end of a graph of AOT autograd: into ops in place, or into results that `after` copies."""

    def __init__(self, module: torch.fx.GraphModule, in_place: InPlace):
        self.copied: t.List[int] = []  # the arguments into which the last results are copied
        self._graph, self._in_place = module.graph, in_place
        self._order = {node: i for i, node in enumerate(self._graph.nodes)}
        given = {node: i for i, node in enumerate(self._graph.find_nodes(op="placeholder"))}
        copies = [node for node in self._graph.find_nodes(op="call_function", target=_aten.copy_.default) if node.args[0] in given and not node.users]
        for node in copies:
            self._change(given[node.args[0]], *node.args[:2], node)
        if copies:
            module.recompile()

    def _change(self, at: int, to: torch.fx.Node, value: torch.fx.Node, copy: torch.fx.Node) -> None:
        writes = self._writes(to, value, copy) if self._in_place(at, to) else []
        self._graph.erase_node(copy)
        for write in writes:
            self._write(to, write)
        if not writes:
            (last,) = self._graph.find_nodes(op="output")
            last.args = ((*last.args[0], value),)
            self.copied.append(at)

    def _writes(self, to: torch.fx.Node, value: torch.fx.Node, copy: torch.fx.Node) -> t.List[torch.fx.Node]:
        """Returns the ops that change the argument into the value, in order; none if they cannot write it in place."""
        out: t.List[torch.fx.Node] = []
        if torch._debug_has_internal_overlap(to.meta["val"]) != 0 or any(n.op == "output" for n in self._readers(value)):
            return out
        while value is not to:
            if value.target not in _IN_PLACE and value.target not in _SLICES or not _same_layout(value.meta["val"], to.meta["val"]):
                return []
            base, nest = value.args[0], _nest(value)
            later = [n for n in self._readers(base) if n not in (*nest, copy) and self._order[n] > self._order[nest[-1]]]
            if later or any(memories_of(n) & memories_of(base) for n in _sources(nest)):
                return []
            out.append(value)
            value = base
        return out[::-1]

    def _readers(self, of: torch.fx.Node) -> t.List[torch.fx.Node]:
        """Returns the nodes that read a tensor or a view of it."""
        out: t.List[torch.fx.Node] = []
        for n in of.users:
            out += [n, *self._readers(n)] if memories_of(n) & memories_of(of) else [n]
        return out

    def _write(self, to: torch.fx.Node, write: torch.fx.Node) -> None:
        nest = _nest(write)
        last, at, part = nest[-1], self._order[nest[-1]], to
        with self._graph.inserting_before(last):
            for one in nest:
                if one.target in _SLICES:
                    part = self._call(_SLICES[one.target], (part, *one.args[2:]), one.kwargs, at)
            if last.target in _IN_PLACE:
                self._call(_IN_PLACE[last.target], (part, *last.args[1:]), last.kwargs, at)
            else:
                self._call(_aten.copy_.default, (part, last.args[1]), {}, at)
        write.replace_all_uses_with(to)
        for one in nest:
            self._graph.erase_node(one)

    def _call(self, op: t.Any, args: t.Tuple[t.Any, ...], kwargs: t.Dict[str, t.Any], at: int) -> torch.fx.Node:
        made = self._graph.call_function(op, args, kwargs)
        self._order[made] = at
        if op._schema.is_mutable:
            made.meta["val"] = args[0].meta["val"]
        else:
            args, kwargs = torch.fx.map_arg((args, kwargs), lambda n: n.meta["val"])
            made.meta["val"] = op(*args, **kwargs)
        return made

    def after(self, call: t.Callable[[t.List[t.Any]], t.Any]) -> t.Callable[..., t.Any]:
        """Returns a call that also copies the last results into the arguments."""
        return _Copying(call, self.copied) if self.copied else call


class _Copying:
    def __init__(self, call: t.Callable[[t.List[t.Any]], t.Any], copied: t.Sequence[int]):
        self._boxed_call = True
        self._call, self._copied = call, copied

    def __call__(self, *given):
        args = arguments_of(given)
        to = [args[i] for i in self._copied]
        results = self._call(args)
        count = len(results) - len(to)
        with torch.no_grad():
            for x, value in zip(to, results[count:]):
                x.copy_(value)
        return results[:count]
