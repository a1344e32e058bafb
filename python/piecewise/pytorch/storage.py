"""Memory layout in torch.fx graphs: aliasing, strides, and calls that address memory by strides.

Engines compute on row-major tensors, but calls such as as_strided address the underlying storage. read_memory rewrites these calls to address a
row-major tensor with the same elements in storage order. Invariant: every rewritten call reads exactly the elements that PyTorch reads. A call for which
that cannot be guaranteed remains PyTorch's. Places are symbolic (sympy) in the graph's sizes. One pass over the graph.
"""
from __future__ import annotations

import operator
import typing as t

import sympy
import torch

from .staying import memory_of
from .fx_import import Refused, expression

Number = t.Any  # an int, or an expression of symbols


class Place(t.NamedTuple):
    """The layout of a tensor in its storage: sizes, strides, and offset in elements."""

    sizes: t.Tuple[Number, ...]
    strides: t.Tuple[Number, ...]
    offset: Number

    @classmethod
    def of(cls, fake: torch.Tensor) -> Place:
        return cls(tuple(map(expression, fake.shape)), tuple(map(expression, fake.stride())), expression(fake.storage_offset()))

    def relative_to(self, root: Place) -> Place:
        """Returns the place with its offset relative to `root`."""
        return self._replace(offset=self.offset - root.offset)

    def at(self, evaluate: t.Callable[[Number], int]) -> Place:
        """Returns the place with all numbers evaluated."""
        return Place(tuple(map(evaluate, self.sizes)), tuple(map(evaluate, self.strides)), evaluate(self.offset))

    def kept(self) -> t.List[t.Any]:
        """Returns the serializable form."""
        return [[*map(kept_number, self.sizes)], [*map(kept_number, self.strides)], kept_number(self.offset)]

    @classmethod
    def read(cls, kept: t.Sequence[t.Any]) -> Place:
        return cls(tuple(map(read_number, kept[0])), tuple(map(read_number, kept[1])), read_number(kept[2]))

    @property
    def span(self) -> int:
        """Returns the extent of memory in elements, from its beginning through the last element; requires concrete numbers."""
        if 0 in self.sizes:
            return 0
        return self.offset + 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides))


def kept_number(number: Number) -> t.Any:
    """Returns the serializable form of a number: an int, or coefficients with the names of symbols. Raises Refused for other expressions."""
    if isinstance(number, int):
        return number
    out = []
    for factors, coefficient in sympy.expand(number).as_coefficients_dict().items():
        names: t.List[str] = []
        for base, power in factors.as_powers_dict().items():
            if base == 1:
                continue
            if not isinstance(base, sympy.Symbol) or not power.is_Integer or power < 0:
                raise Refused(f"the stride {number} is not a sum of products of symbols")
            names += [base.name] * int(power)
        out.append([int(coefficient), names])
    return out


def read_number(kept: t.Any) -> Number:
    if isinstance(kept, int):
        return kept
    return sympy.Add(*(sympy.Mul(coefficient, *map(sympy.Symbol, names)) for coefficient, names in kept))


def roots(graph: torch.fx.Graph) -> t.Dict[int, torch.fx.Node]:
    """Returns the originating node of each storage."""
    out: t.Dict[int, torch.fx.Node] = {}
    for node in graph.nodes:
        memory = memory_of(node)
        if memory is not None:
            out.setdefault(memory, node)
    return out


def row_major(place: Place) -> bool:
    """Returns True if the elements are contiguous in row-major order, at any offset."""
    count: Number = 1
    for size, stride in zip(reversed(place.sizes), reversed(place.strides)):
        if size != 1 and not _equal(stride, count):
            return False
        count = count * _positive(size)
    return True


def dense(place: Place) -> bool:
    """Returns True if the elements fill their memory, in any order of dims, from its beginning; requires concrete numbers."""
    count = 1
    for stride, size in sorted(zip(place.strides, place.sizes)):
        if size != 1:
            if stride != count:
                return False
            count *= size
    return place.offset == 0 and 0 not in place.sizes


def _equal(a: Number, b: Number) -> bool:
    return a == b or sympy.expand(a - b) == 0


def _positive(size: Number) -> Number:
    return max(size, 1) if isinstance(size, int) else size


def _hint(number: t.Any) -> int:
    return number.node.hint if isinstance(number, torch.SymInt) else int(number)


def _order(fake: torch.Tensor) -> t.List[int]:
    """Returns the dims in memory order, outermost first."""
    strides = [_hint(n) for n in fake.stride()]
    return sorted(range(fake.dim()), key=lambda dim: (-strides[dim], dim))


def _overlaps(fake: torch.Tensor) -> bool:
    """Returns True if two elements may share memory."""
    reach = 0
    for size, stride in sorted(((_hint(n), _hint(m)) for n, m in zip(fake.shape, fake.stride())), key=lambda dim: dim[1]):
        if size > 1 and stride <= reach:
            return True
        reach += (size - 1) * stride if size else 0
    return False


def _permuted(graph: torch.fx.Graph, node: torch.fx.Node, order: t.Sequence[int]) -> torch.fx.Node:
    made = graph.call_function(torch.ops.aten.permute.default, (node, list(order)))
    made.meta["val"] = node.meta["val"].permute(order)
    return made


def _copied(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    """Returns a row-major copy in separate memory."""
    made = graph.call_function(torch.ops.aten.clone.default, (node,), {"memory_format": torch.contiguous_format})
    made.meta["val"] = node.meta["val"].clone(memory_format=torch.contiguous_format)
    return made


def _as_it_lies(graph: torch.fx.Graph, node: torch.fx.Node) -> t.Tuple[torch.fx.Node, t.List[int]]:
    """Returns a value whose row-major elements equal the node's storage, and the order of its dims; raises _Gaps if the storage has gaps."""
    fake = node.meta["val"]
    order = list(range(fake.dim()))
    if row_major(Place.of(fake)):
        return (node if _equal(expression(fake.storage_offset()), 0) else _copied(graph, node)), order
    order = _order(fake)
    if not row_major(Place.of(fake.permute(order))):
        raise _Gaps
    return _copied(graph, _permuted(graph, node, order)), order


_PARTS = tuple(getattr(torch.ops.aten, name).default for name in ("select_scatter", "slice_scatter", "diagonal_scatter"))
_COPIES = (torch.ops.aten.copy.default, torch.ops.aten.as_strided_scatter.default, *_PARTS)
_STRIDED = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default)
_BEGINS = "piecewise begins"  # in a node's meta


def _copied_from(node: torch.fx.Node) -> t.Optional[torch.fx.Node]:
    """Returns the tensor whose layout the value copies; None if it has its own."""
    if node.target in _COPIES:
        return node.args[0]
    if node.target is operator.getitem and node.args[0].target is torch.ops.higher_order.auto_functionalized_v2:
        call, index = node.args
        at = index - max(len(call.args[0]._schema.returns), 1)
        return call.kwargs["_all_bases"][at] if at >= 0 else None
    return None


def _note_begins(graph: torch.fx.Graph) -> None:
    """Notes, in the meta of each tensor, the offset of its first element when PyTorch runs the graph. Copies keep their source's layout, which fake
    tensors may not show; so offsets of parts count from there, except those that as_strided states."""
    for node in graph.nodes:
        if memory_of(node) is None:
            continue
        fake = node.meta["val"]
        begins = expression(fake.storage_offset())
        base = node.args[0] if node.args and isinstance(node.args[0], torch.fx.Node) else None
        if (source := _copied_from(node)) is not None:
            begins = source.meta.get(_BEGINS, begins)
        elif node.target in _STRIDED:
            stated = node.args[3] if len(node.args) > 3 else node.kwargs.get("storage_offset")
            begins = stated if isinstance(stated, int) and memory_of(base) == memory_of(node) else begins
        elif base is not None and memory_of(base) == memory_of(node) and fake.dtype.itemsize == base.meta["val"].dtype.itemsize:
            begins += base.meta[_BEGINS] - expression(base.meta["val"].storage_offset())
        node.meta[_BEGINS] = begins


def place_of(node: torch.fx.Node) -> Place:
    """Returns the layout of a tensor when PyTorch runs the graph."""
    place = Place.of(node.meta["val"])
    return place._replace(offset=node.meta.get(_BEGINS, place.offset))


class _Gaps(Exception):
    """Raised if no row-major tensor contains all elements that are read."""


def _reach(layout: t.Sequence[t.Sequence[t.Any]], offset: t.Any) -> t.Optional[int]:
    numbers = [*layout[0], *layout[1], offset]
    return Place(tuple(layout[0]), tuple(layout[1]), offset).span if all(isinstance(n, int) for n in numbers) else None


class _Reads:
    """Rewrites calls that address storage by offset and strides to address row-major values."""

    def __init__(self, graph: torch.fx.Graph):
        self._graph, self._roots = graph, roots(graph)
        _note_begins(graph)
        self._first = {node: node.meta[_BEGINS] for node in graph.nodes if memory_of(node) is not None}
        self.left: t.Dict[torch.fx.Node, str] = {}

    def run(self) -> None:
        for node in list(self._graph.nodes):
            if node.target in _STRIDED:
                self._strided(node)
            elif node.target == torch.ops.aten.as_strided_scatter.default:
                self._scattered(node)
            elif node.target in _PARTS and _overlaps(node.args[0].meta["val"]):
                raise Refused(f"{node.name} writes elements of {node.args[0].name} that share memory with others")
            elif node.target == torch.ops.higher_order.auto_functionalized_v2:
                self._functionalised(node)

    def _offset(self, node: torch.fx.Node, at: int, root: torch.fx.Node, first: Number) -> t.Any:
        """Returns the offset of the call, relative to `first`, in the storage of `root`."""
        offset = node.args[at] if len(node.args) > at else node.kwargs.get("storage_offset")
        if offset is None:
            offset = self._first[node.args[0]]
        if _equal(first, 0) and isinstance(offset, (int, torch.fx.Node)):
            return offset
        if isinstance(offset, int) and isinstance(first, int):
            return offset - first
        raise Refused(f"the offset of {node.name} in its storage is only known at run time")

    def _strided(self, node: torch.fx.Node) -> None:
        """Rewrites a strided read to read the value that owns the storage."""
        root = self._roots[memory_of(node.args[0])]
        fake = root.meta["val"]
        layout = node.args[1:3]
        try:
            if fake.dtype != node.meta["val"].dtype:
                raise _Gaps
            with self._graph.inserting_before(node):
                base, _ = _as_it_lies(self._graph, root)
            offset = self._offset(node, 3, root, self._first[root])
            if _leaves(fake, layout, offset):
                raise _Gaps  # the argument is a part of a larger storage
        except _Gaps:
            if root.op != "placeholder":
                raise Refused(f"{node.name} reads memory between the elements of {root.name}, whose contents are unknown here") from None
            base, offset = root, self._offset(node, 3, root, 0)
            self.left[node] = f"it reads memory between the elements of {root.name}"
        node.args, node.kwargs = (base, *layout, offset), {}

    def _scattered(self, node: torch.fx.Node) -> None:
        """Rewrites a strided write into the argument; the result keeps the argument's layout."""
        given, fake = node.args[0], node.meta["val"]
        offset = self._offset(node, 4, given, self._first[given])
        try:
            if _leaves(given.meta["val"], node.args[2:4], offset):
                raise _Gaps
            with self._graph.inserting_before(node):
                base, order = _as_it_lies(self._graph, given)
        except _Gaps:
            if given.op != "placeholder":
                raise Refused(f"{node.name} writes memory between the elements of {given.name}, whose contents are unknown here") from None
            self.left[node] = f"it writes memory between the elements of {given.name}"
            return
        node.args, node.kwargs = (base, *node.args[1:4], offset), {}
        if order != sorted(order):
            self._turn_back(node, fake, order)

    def _functionalised(self, node: torch.fx.Node) -> None:
        """Rewrites strided views so that their bases are row-major."""
        parts = [key.removesuffix("_stride").removeprefix("_") for key in node.kwargs if key.startswith("_") and key.endswith("_stride")]
        for index in sorted({node.kwargs[f"_{name}_base_index"] for name in parts}):
            base = node.kwargs["_all_bases"][index]
            first = self._first[base]
            self._check_parts(node, index, first)
            try:
                if base.op == "placeholder" and self._leaves_base(node, index, first):
                    raise _Gaps  # the argument is a part of a larger storage
                with self._graph.inserting_before(node):
                    other, order = _as_it_lies(self._graph, base)
            except _Gaps:
                if base.op != "placeholder" and not _equal(first, 0):  # at run time it begins at offset 0
                    raise Refused(f"{node.name} writes memory between the elements of {base.name}, whose contents are unknown here") from None
                self.left[node] = f"it writes memory between the elements of {base.name}"
                continue
            if other is base and _equal(first, 0):
                continue
            kwargs = self._views(node, index, first, turned := order != sorted(order))
            kwargs["_all_bases"] = [other if i == index else b for i, b in enumerate(kwargs["_all_bases"])]
            node.kwargs = kwargs
            if not turned:
                continue
            at = max(len(node.args[0]._schema.returns), 1) + index
            for user in list(node.users):
                if user.args[1] == at:
                    self._turn_back(user, user.meta["val"], order)

    def _check_parts(self, node: torch.fx.Node, index: int, first: Number) -> None:
        """Raises Refused if a view of the base reads elements outside it: PyTorch's copy of an argument may have another layout than its fake tensor."""
        base = node.kwargs["_all_bases"][index]
        if base.op != "placeholder" and self._leaves_base(node, index, first):
            raise Refused(f"{node.name} writes memory between the elements of {base.name}, whose contents are unknown here")

    @staticmethod
    def _leaves_base(node: torch.fx.Node, index: int, first: Number) -> bool:
        """Returns True if a view of the base is known to contain elements outside it."""
        base, kwargs = node.kwargs["_all_bases"][index], node.kwargs
        for name in (key.removesuffix("_base_index") for key, at in kwargs.items() if key.endswith("_base_index") and at == index):
            layout, offset = (kwargs.get(f"{name}_size"), kwargs.get(f"{name}_stride")), kwargs.get(f"{name}_storage_offset")
            if layout[1] is None or not isinstance(offset, int) or not isinstance(first, int):
                continue
            reach, span = _reach(layout, offset - first), Place.of(base.meta["val"])._replace(offset=0)
            known = all(isinstance(n, int) for n in (*span.sizes, *span.strides))
            if offset < first or (reach is not None and known and reach > span.span):
                return True
        return False

    @staticmethod
    def _views(node: torch.fx.Node, index: int, first: Number, turned: bool) -> t.Dict[str, t.Any]:
        """Returns the arguments with view offsets relative to the base's first element; `turned`: the base's dims are permuted."""
        kwargs = dict(node.kwargs)
        for key, at in node.kwargs.items():
            if not key.endswith("_base_index") or at != index:
                continue
            offset = f"{key.removesuffix('_base_index')}_storage_offset"
            if offset not in kwargs and not turned:
                continue
            if not isinstance(kwargs.get(offset), int) or not isinstance(first, int):
                raise Refused(f"{node.name} writes views of a base in several forms")
            kwargs[offset] -= first
        return kwargs

    def _turn_back(self, node: torch.fx.Node, fake: torch.Tensor, order: t.Sequence[int]) -> None:
        """Restores the dims of a value that was computed with permuted dims."""
        node.meta["val"] = fake.permute(order)
        with self._graph.inserting_after(node):
            seen = _permuted(self._graph, node, [order.index(dim) for dim in range(len(order))])
        node.replace_all_uses_with(seen, delete_user_cb=lambda user: user is not seen)
        seen.meta["val"] = fake
        self._first[seen] = seen.meta[_BEGINS] = self._first[node]


def _leaves(fake: torch.Tensor, layout: t.Sequence[t.Sequence[t.Any]], offset: t.Any) -> bool:
    """Returns True if a part of its memory is known to contain elements outside the tensor; the part's offset counts from the first element."""
    count = 1
    for size in fake.shape:
        count = count * expression(size)
    reach = _reach(layout, offset)
    return reach is not None and isinstance(count, int) and (reach > count or offset < 0)


def read_memory(module: torch.fx.GraphModule) -> t.Dict[torch.fx.Node, str]:
    """Rewrites calls that address storage so that they read row-major tensors.

    Returns the calls without a value that contains all their elements, with reasons: only PyTorch runs them correctly. Raises Refused if even that is
    unknown.
    """
    reads = _Reads(module.graph)
    reads.run()
    module.recompile()
    return reads.left


def part_of(of: torch.Tensor, place: Place, dtype: torch.dtype) -> torch.Tensor:
    """Returns a part of a tensor's storage; the offset is in elements of the dtype, from the first element."""
    if dtype != of.dtype:
        count = -(-place.span * dtype.itemsize // of.dtype.itemsize)
        of = of.as_strided((count,), (1,), of.storage_offset()).view(dtype)
    return of.as_strided(place.sizes, place.strides, of.storage_offset() + place.offset)


def _relative_place(node: torch.fx.Node, root: torch.fx.Node) -> t.Optional[Place]:
    """Returns the place relative to another tensor's first element, in its elements; None if it is not a multiple."""
    place, whole = place_of(node), place_of(root)
    dtype, of = node.meta["val"].dtype, root.meta["val"].dtype
    if dtype.itemsize == of.itemsize:
        return place.relative_to(whole)
    if _equal(whole.offset, 0):
        return place
    if not isinstance(place.offset, int) or not isinstance(whole.offset, int):
        return None
    before, rest = divmod(whole.offset * of.itemsize, dtype.itemsize)
    return place._replace(offset=place.offset - before) if rest == 0 else None


def shared_outputs(graph: torch.fx.Graph) -> t.Dict[torch.fx.Node, t.Tuple[torch.fx.Node, Place, Place, torch.dtype]]:
    """Returns, for each result that shares memory with an argument or another result: the owner, both places, and the dtype."""
    known = roots(graph)
    (output,) = graph.find_nodes(op="output")
    sharing: t.Dict[int, t.Dict[torch.fx.Node, None]] = {}
    for node in output.all_input_nodes:
        memory = memory_of(node)
        if memory is not None:
            sharing.setdefault(memory, {})[node] = None
    out = {}
    for memory, nodes in sharing.items():
        root = known[memory]
        if root.op == "get_attr" or (root.op != "placeholder" and len(nodes) == 1):
            continue
        whole = Place.of(root.meta["val"])
        for node in nodes:
            place = _relative_place(node, root)
            if node is not root and place is not None:
                out[node] = (root, place, whole, node.meta["val"].dtype)
    return out
