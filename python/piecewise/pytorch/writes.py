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


def _sources(write: torch.fx.Node) -> t.List[torch.fx.Node]:
    """Returns the tensors that a write reads besides the one that it changes."""
    inner = _inner(write)
    others = [n for n in tree_leaves((write.args[1:] if inner is None else write.args[2:], write.kwargs)) if isinstance(n, torch.fx.Node)]
    return others if inner is None else [*others, *_sources(inner)]


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
            base, sources = value.args[0], _sources(value)
            later = [n for n in self._readers(base) if n not in (value, copy) and self._order[n] > self._order[value]]
            if later or any(memories_of(n) & memories_of(base) for n in sources):
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
        with self._graph.inserting_before(write):
            self._write_into(to, write, self._order[write])
        write.replace_all_uses_with(to)
        done: t.Optional[torch.fx.Node] = write
        while done is not None:
            inner = _inner(done)
            self._graph.erase_node(done)
            done = inner

    def _write_into(self, to: torch.fx.Node, write: torch.fx.Node, at: int) -> None:
        if write.target in _IN_PLACE:
            self._call(_IN_PLACE[write.target], (to, *write.args[1:]), write.kwargs, at)
            return
        part = self._call(_SLICES[write.target], (to, *write.args[2:]), write.kwargs, at)
        if (inner := _inner(write)) is not None:
            self._write_into(part, inner, at)
        else:
            self._call(_aten.copy_.default, (part, write.args[1]), {}, at)

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
