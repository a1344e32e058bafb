"""Feeds a torch.fx graph to the importer node by node."""
from __future__ import annotations

import contextlib
import functools
import typing as t

import sympy
import torch
from torch._guards import detect_fake_mode
from torch._library.fake_class_registry import FakeScriptObject
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.node import _get_qualified_name
from torch.utils._dtype_abbrs import dtype_abbrs
from torch.utils._sympy.functions import CeilToInt, FloatTrueDiv, FloorDiv, FloorToInt, ToFloat

import _piecewise
from _piecewise import Ref

from ..torch_schemas import line_of
from .guards import equal_sizes, shape_env, symbol_range

DTYPES = {
    "b8": torch.bool,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
}
_NAMES = {dtype: dtype_abbrs[dtype] for dtype in DTYPES.values()}


# The functions in sizes that types can state.
_OF_SIZES = frozenset(
    "Add Mul Pow Mod PythonMod FloorDiv CleanDiv Max Min ModularIndexing Identity ToFloat CeilToInt FloorToInt IntTrueDiv FloatTrueDiv TrueDiv floor ceiling".split()
)
_aten = torch.ops.aten
_NORMS = (
    _aten.native_layer_norm.default,
    _aten.native_group_norm.default,
    _aten.native_batch_norm.default,
    _aten._native_batch_norm_legit.no_stats,
    _aten._native_batch_norm_legit_functional.default,
    _aten._native_batch_norm_legit_no_training.default,
)


def _computed_statistics(node: torch.fx.Node) -> t.Any:
    """Returns the values of a norm in bf16 or f16 with weights in f32: PyTorch traces its statistics like the input, but computes them in f32."""
    dtypes = {n.meta["val"].dtype for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)}
    if node.args[0].meta["val"].dtype.itemsize > 2 or torch.float32 not in dtypes:
        return None
    y, mean, scale, *more = node.meta["val"]
    return (y, mean.float(), scale.float(), *more)


def correct_statistics(graph: torch.fx.Graph) -> None:
    """Sets the dtypes that statistics of norms really have, and infers those of what is computed from them again."""
    changed: t.Set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.target in _NORMS and (values := _computed_statistics(node)) is not None:
            node.meta["val"] = values
            changed.add(node)
        elif node.op == "call_function" and not changed.isdisjoint(node.all_input_nodes):
            before, (args, kwargs) = node.meta.get("val"), torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
            with detect_fake_mode(args) or contextlib.nullcontext():
                node.meta["val"] = node.target(*args, **kwargs)
            if not isinstance(before, torch.Tensor) or before.dtype != node.meta["val"].dtype:
                changed.add(node)


class Refused(Exception):
    """The reason why a graph cannot be imported."""


CPU = torch.device("cpu")


def is_on(device: torch.device, place: torch.device) -> bool:
    """Returns True if a device that a call or tensor names is the graph's; a device without an index is the current one."""
    return device.type == place.type and (device.type == "cpu" or device.index in (None, place.index))


def _as_quotient(size: t.Any) -> t.Any:
    """Returns a rounded quotient of whole numbers, which PyTorch computes in floats, as a quotient of integers; equal below 2^53."""
    whole = {number: sympy.Integer(int(number)) for number in size.atoms(sympy.Float) if float(number).is_integer()}
    above, below = (part.xreplace(whole).replace(ToFloat, lambda of: of) for part in size.args[0].args)
    if not (above.is_integer and below.is_integer):
        return size
    if below.is_negative:
        above, below = -above, -below
    if not below.is_positive:
        return size
    return FloorDiv(above if isinstance(size, FloorToInt) else above + below - 1, below)


@functools.lru_cache(maxsize=4096)
def _in_integers(size: t.Any) -> t.Any:
    """Returns a size without the floats in which `arange` with a float step computes it."""
    return size.replace(lambda e: isinstance(e, (CeilToInt, FloorToInt)) and isinstance(e.args[0], FloatTrueDiv), _as_quotient)


@functools.lru_cache(maxsize=4096)
def _is_whole(size: t.Any) -> bool:
    """Returns True if a symbolic size is computed in whole numbers, or by rounding a quotient of them."""
    names = {type(part).__name__ for part in sympy.preorder_traversal(size) if part.args}
    return not size.has(sympy.Float) and names <= _OF_SIZES


def _size_text(size: t.Any) -> str:
    if not isinstance(size, torch.SymInt):
        return str(size)
    whole = _in_integers(size.node.expr)
    if not _is_whole(whole):
        raise Refused(f"the size {size} is computed in fractions")
    return str(whole)


def type_text(value: t.Any, place: torch.device = CPU) -> str:
    """Formats a type as torch prints it: f32[s0, 64], Sym(s0); empty for anything but a tensor or a number. `place`: the graph's device."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or not is_on(value.device, place):
            where = "in CPU memory" if place.type == "cpu" else f"on {place}"
            raise Refused(f"a tensor is {value.layout} on {value.device}: only strided tensors {where} are supported")
        dtype = _NAMES.get(value.dtype)
        if dtype is None:
            raise Refused(f"a tensor has the dtype {value.dtype}, which Piecewise lacks")
        return f"{dtype}[{', '.join(map(_size_text, value.shape))}]"
    if isinstance(value, torch.SymInt):
        return f"Sym({_size_text(value)})"
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        raise Refused("a number of the graph is a symbolic float or bool")
    return ""


@functools.lru_cache(maxsize=4096)
def _target_text(target: t.Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"torch.ops.higher_order.{target._name}"
    return _get_qualified_name(target).replace("_operator.", "operator.")


class _Torch:
    """Callbacks from FxGraph to torch; `ops` records the overloads that were resolved."""

    node, tensor, strided, dtypes = torch.fx.Node, torch.Tensor, torch.strided, _NAMES

    def __init__(self, place: torch.device = CPU):
        self.ops: t.Dict[torch._ops.OpOverload, None] = {}
        self._place = place
        self.type = functools.partial(type_text, place=place)

    def target(self, target: t.Any) -> str:
        if isinstance(target, torch._ops.OpOverload):
            self.ops[target] = None
        return _target_text(target)

    def purity(self, target: t.Any) -> str:
        """Classifies an op that writes nothing as "core" (PyTorch's) or "other"; all others as ""."""
        if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
            return ""
        return "core" if target.namespace in ("aten", "prims") else "other"

    def schemas(self) -> t.Dict[str, str]:
        """Returns the schemas of the recorded ops that are not PyTorch's own, by target."""
        out = {}
        for op in self.ops:
            if op.namespace != "aten":
                line = line_of(op.name(), op)
                out.update({name: line for name in (str(op), str(op).removesuffix(".default"))})
        return out

    def leaf(self, value: t.Any) -> t.Any:
        """Returns a placeholder for an argument that is neither a node, a number, a text, nor a list."""
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return Ref(str(value))
        if isinstance(value, torch.device):
            if not is_on(value, self._place):
                raise Refused(f"a call names the device {value}")
            return Ref("torch.device")
        if isinstance(value, torch._ops.OpOverload):
            return Ref(self.target(value))
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise Refused("an argument is a symbolic number that no node computes")
        return value


def expression(number: t.Any) -> t.Any:
    """Returns a number of a fake tensor: an int, or an expression of symbols."""
    if not isinstance(number, torch.SymInt):
        return int(number)
    size = number.node.expr
    return int(size) if size.is_Integer else size  # a guard may have fixed it


def evaluated(number: t.Any, symbols: t.Mapping[str, int]) -> int:
    if isinstance(number, int):
        return number
    return int(number.subs({s: symbols[s.name] for s in number.free_symbols}))


def seen(graph: torch.fx.Graph, session: _piecewise.Session, rules: _piecewise.Rules, pipeline: str) -> t.Optional[t.Dict[str, t.Any]]:
    """Imports the part of a graph that the pipeline's rules can see: the result of FxGraph.convert, or None if the whole graph is required."""
    return _piecewise.import_seen(session, graph.nodes, rules, pipeline, _Torch())


class FxImport:
    """An import of a torch.fx graph in progress: inputs, calls, and the origins of outputs."""

    def __init__(
        self,
        graph: torch.fx.Graph,
        owner: t.Optional[torch.nn.Module],
        session: _piecewise.Session,
        static: t.Container[int] = (),
        own_attention: bool = False,
        views: t.Optional[t.Callable[[torch.fx.Graph], t.Mapping[torch.fx.Node, t.Any]]] = None,
        guarded: bool = True,
        place: torch.device = CPU,
        keep_idle: bool = False,
    ):
        """`owner` has the attributes that the graph reads; `static`: which arguments are weights. See Options.own_attention. `views`: see storage.shared_outputs. `guarded`: the graph is called only if PyTorch's guards hold. `place`: the device of its tensors. `keep_idle`: import calls without an effect too, and those that no output reads."""
        self.graph = graph
        self._owner = owner
        self.symbols: t.Dict[str, t.Tuple[int, int]] = {}  # by symbol: the argument, and its dim; -1: the argument itself
        self.arguments: t.Dict[str, int] = {}  # by input
        self._lengths: t.Dict[str, int] = {}  # by argument that is the length of a nested tensor's rows, which no tensor has
        self.constants: t.Dict[str, torch.Tensor] = {}  # by input
        self.outputs: t.List[
            t.Any
        ] = (
            []
        )  # ("argument", i), ("result", k), ("number", expression), ("value", v), or ("view", (argument or result, place, that of its base, dtype))
        self.results: t.List[torch.Tensor] = []  # fake tensors of computed results
        self._count = 0  # of arguments so far
        self._torch = _Torch(place)
        self._graph = _piecewise.FxGraph(session, "torch", not own_attention, keep_idle, self._torch)
        self._static = static
        self._guarded = guarded
        self._returned: t.Dict[torch.fx.Node, int] = {}
        self._views = views(graph) if views is not None else {}
        handlers = {"call_function": self._graph.call}
        for op in ("placeholder", "get_attr", "call_method", "call_module", "output"):
            handlers[op] = getattr(self, "_" + op)
        for node in graph.nodes:
            handlers[node.op](node)
        for target, line in self._torch.schemas().items():
            self._graph.schema(target, line)
        self._add_ranges()

    def weights(self) -> t.Set[int]:
        """Returns which arguments are weights of fixed sizes."""
        fakes = [node.meta.get("val") for node in self.graph.find_nodes(op="placeholder")]
        return {
            i
            for i, fake in enumerate(fakes)
            if i in self._static and isinstance(fake, torch.Tensor) and all(isinstance(size, int) for size in fake.shape)
        }

    def run(self, *args: t.Any) -> t.List[t.Any]:
        """Runs the graph in PyTorch."""
        return list(self._module.forward(*args))

    @functools.cached_property
    def _module(self) -> torch.fx.GraphModule:
        return torch.fx.GraphModule(self._owner, self.graph)

    def convert(self) -> t.Dict[str, t.Any]:
        """Returns the result of FxGraph.convert; call it once."""
        return self._graph.convert(tuple(Ref(node.name) for node in self._returned))

    @property
    def ops(self) -> int:
        """Returns the number of calls that compute tensors."""
        return self._graph.ops

    def text(self) -> str:
        """Returns the imported graph as text."""
        return f"{self._graph.text()} {[node.name for node in self._returned]}"

    @property
    def operators(self) -> t.Iterable[torch._ops.OpOverload]:
        """Returns the operators that its calls name."""
        return self._torch.ops

    def _placeholder(self, node):
        index, self._count = self._count, self._count + 1
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            size = expression(value)
            if isinstance(value.node.hint, torch.SymInt):
                self._lengths[node.name] = index
                return
            if isinstance(size, sympy.Symbol):
                self.symbols[size.name] = (index, -1)
            self._graph.input(node.name, f"Sym({value})", "")
            return
        if isinstance(value, FakeScriptObject):
            self._graph.input(node.name, "", "")  # an object, such as the name of a layer, as in a dump
            return
        if not isinstance(value, torch.Tensor):
            if node.users:
                raise Refused(f"the argument {node.name} is a {type(value).__name__}")
            return
        self.arguments[node.name] = index
        for dim, extent in enumerate(value.shape):
            size = expression(extent)
            if isinstance(size, sympy.Symbol):
                self.symbols.setdefault(size.name, (index, dim))
        self._graph.input(node.name, self._torch.type(value), "weight" if index in self._static else "input")

    def _get_attr(self, node):
        value = self._owner
        for part in node.target.split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            raise Refused(f"the attribute {node.target} is a {type(value).__name__}")
        with unset_fake_temporarily():
            self.constants[node.name] = value.detach().resolve_neg().contiguous()
        self._graph.input(node.name, self._torch.type(value), "weight")

    def _call_method(self, node):
        raise Refused(f"it calls the method {node.target}")

    def _call_module(self, node):
        raise Refused(f"it calls the module {node.target}")

    def _output(self, node):
        values = node.args[0]
        for value in values if isinstance(values, (tuple, list)) else [values]:
            if not isinstance(value, torch.fx.Node):
                self.outputs.append(("value", value))
                continue
            fake = value.meta.get("val")
            if (given := self.arguments.get(value.name, self._lengths.get(value.name))) is not None:
                self.outputs.append(("argument", given))
            elif value.name in self.constants:
                self.outputs.append(("value", self.constants[value.name]))
            elif isinstance(fake, torch.SymInt):
                self.outputs.append(("number", expression(fake)))
            elif isinstance(fake, torch.Tensor):
                self.outputs.append(self._tensor(value, fake))
            else:
                raise Refused(f"it returns a {type(fake).__name__}")

    def _tensor(self, value: torch.fx.Node, fake: torch.Tensor) -> t.Tuple[str, t.Any]:
        """Returns the origin of a returned tensor."""
        if value in self._views:
            root, *how = self._views[value]
            if root.name in self.arguments:
                return "view", (("argument", self.arguments[root.name]), *how)
            return "view", (self._tensor(root, root.meta["val"]), *how)
        if value not in self._returned:
            self._returned[value] = len(self.results)
            self.results.append(fake)
        return "result", self._returned[value]

    def _add_ranges(self):
        env = shape_env(self.graph)
        for name in self.symbols if env is not None else ():
            self._graph.symbol(name, *symbol_range(env, name))
        for a, b in equal_sizes(env, self.symbols) if env is not None and self._guarded else ():
            self._graph.equal(a, b)
