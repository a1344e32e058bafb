"""PyTorch's front door: torch.compile(model, backend="piecewise").

    f = torch.compile(model, backend="piecewise")                    # found through the package's entry point
    f = torch.compile(model, backend="piecewise", options={"rules": ["my.pwr"], "pipeline": "mine"})
    piecewise.pytorch.graphs()                                       # what was compiled: ops taken, ops left to PyTorch, and why

Graphs are taken as AOT autograd makes them, functional and of core ATen, call by call through the importer that reads dumps. A call of an op that Piecewise has no
meaning for stays a call of PyTorch inside the graph. A graph that cannot be taken at all runs in PyTorch, and says why.
"""
from __future__ import annotations

import ctypes as _ctypes
import dataclasses as _dataclasses
import functools as _functools
import logging as _logging
import math as _math
import time as _time
import typing as _t

import sympy as _sympy
import torch as _torch
from torch._decomp import core_aten_decompositions as _core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd as _aot_autograd
from torch._functorch.aot_autograd import make_boxed_func as _make_boxed_func
from torch.fx.node import _get_qualified_name
from torch.utils._dtype_abbrs import dtype_abbrs as _dtype_abbrs

import _piecewise
from _piecewise import Error, Ref

from .torch_schemas import line_of as _schema_line

_log = _logging.getLogger("piecewise")

_DTYPES = {
    "b8": _torch.bool,
    "i8": _torch.int8,
    "u8": _torch.uint8,
    "i32": _torch.int32,
    "i64": _torch.int64,
    "f16": _torch.float16,
    "bf16": _torch.bfloat16,
    "f32": _torch.float32,
    "f64": _torch.float64,
    "f8e4m3": _torch.float8_e4m3fn,
    "f8e5m2": _torch.float8_e5m2,
}
_MOST = 1 << 40  # the largest extent of the library


@_dataclasses.dataclass(frozen=True)
class Options:
    """What torch.compile's `options` may hold; two backends of equal options are equal.

    rules: files, or names of the library. pipeline: one of theirs; "" rewrites nothing. params of the rules as {"tp": 2}. engine: eager, cpu, interpreter.
    """

    rules: _t.Tuple[str, ...] = ("llm",)
    pipeline: str = "o2"
    params: _t.Tuple[_t.Tuple[str, str], ...] = ()
    engine: str = "cpu"

    @classmethod
    def of(cls, given: _t.Optional[_t.Mapping[str, _t.Any]]) -> "Options":
        """From a dict; Error for a name that there is none of."""
        values = dict(given or {})
        names = [field.name for field in _dataclasses.fields(cls)]
        for name in values:
            if name not in names:
                raise ValueError(f"piecewise has no option `{name}`; options are {', '.join(names)}")
        if "rules" in values:
            values["rules"] = (values["rules"],) if isinstance(values["rules"], str) else tuple(map(str, values["rules"]))
        if "params" in values:
            values["params"] = tuple(sorted((str(k), str(v)) for k, v in dict(values["params"]).items()))
        return cls(**values)


@_dataclasses.dataclass
class GraphReport:
    """What became of one graph."""

    kind: str  # forward, backward, inference
    ops: int = 0  # calls of the graph, without views of tuples and sizes
    left: _t.Dict[str, int] = _dataclasses.field(default_factory=dict)  # calls that stay PyTorch's, by op
    reasons: _t.Dict[str, int] = _dataclasses.field(default_factory=dict)  # why, where the op is known
    refused: str = ""  # why the graph runs in PyTorch as a whole; empty: it does not
    seconds: float = 0.0  # to compile it
    rewrites: _t.Dict[str, int] = _dataclasses.field(default_factory=dict)
    graph: _t.Optional[_piecewise.Graph] = None  # as it runs
    imported: _t.Optional[_piecewise.Graph] = None  # as it came

    @property
    def taken(self) -> int:
        return 0 if self.refused else self.ops - sum(self.left.values())

    def __str__(self) -> str:
        if self.refused:
            return f"{self.kind}: {self.ops} ops run in PyTorch: {self.refused}"
        left = ", ".join(f"{count} × {op}" for op, count in sorted(self.left.items()))
        return f"{self.kind}: {self.taken} of {self.ops} ops taken" + (f"; PyTorch's own: {left}" if left else "")


_graphs: _t.List[GraphReport] = []


def graphs() -> _t.List[GraphReport]:
    """Reports of the graphs compiled so far, oldest first; forget() empties the list."""
    return list(_graphs)


def forget() -> None:
    """Empties the list of graphs()."""
    _graphs.clear()


class _Refused(Exception):
    """Why a graph cannot be taken."""


def _type_text(value: _t.Any) -> str:
    """As torch prints a type: f32[s0, 64], Sym(s0); empty: it is neither a tensor nor a number."""
    if isinstance(value, _torch.Tensor):
        if value.layout != _torch.strided or value.device.type != "cpu":
            raise _Refused(f"a tensor is {value.layout} on {value.device}; strided ones in CPU memory are taken")
        if value.dtype not in _DTYPES.values():
            raise _Refused(f"a tensor is one of {value.dtype}, which Piecewise lacks")
        return f"{_dtype_abbrs[value.dtype]}[{', '.join(str(d) for d in value.shape)}]"
    if isinstance(value, _torch.SymInt):
        return f"Sym({value})"
    if isinstance(value, (_torch.SymFloat, _torch.SymBool)):
        raise _Refused("a number of the graph is a symbolic float or bool")
    return ""


def _target_text(target: _t.Any) -> str:
    if isinstance(target, _torch._ops.OpOverload):
        return f"torch.ops.{target}"
    if isinstance(target, _torch._ops.HigherOrderOperator):
        return f"torch.ops.higher_order.{target._name}"
    return _get_qualified_name(target).replace("_operator.", "operator.")


def _argument(value: _t.Any) -> _t.Any:
    """An argument of a node as the importer takes it."""
    if isinstance(value, _torch.fx.Node):
        return Ref(value.name)
    if isinstance(value, (list, tuple)):
        return [_argument(item) for item in value] if isinstance(value, list) else tuple(_argument(item) for item in value)
    if isinstance(value, dict):
        return {str(key): _argument(item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(_argument(value.start), _argument(value.stop), _argument(value.step))
    if isinstance(value, (_torch.dtype, _torch.layout, _torch.memory_format)):
        return Ref(str(value))
    if isinstance(value, _torch.device):
        if value.type != "cpu":
            raise _Refused(f"a call names the device {value}")
        return Ref("torch.device")
    if isinstance(value, _torch._ops.OpOverload):
        return Ref(_target_text(value))
    if isinstance(value, (_torch.SymInt, _torch.SymFloat, _torch.SymBool)):
        raise _Refused("an argument is a symbolic number that no node makes")
    return value


_WORDS = {"torch.device": _torch.device("cpu")}


def _meant(value: _t.Any) -> _t.Any:
    """An argument of a call that PyTorch runs, whose torch.float32 and the like are texts."""
    if isinstance(value, str):
        if value in _DTYPES:
            return _DTYPES[value]
        if value.startswith("torch."):
            return _WORDS[value] if value in _WORDS else getattr(_torch, value[len("torch.") :])
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_meant(item) for item in value)
    if isinstance(value, dict):
        return {key: _meant(item) for key, item in value.items()}
    return value


def _host_function(op: _torch._ops.OpOverload) -> _t.Callable[..., _t.Any]:
    def run(*args, **kwargs):
        with _torch.no_grad():
            return op(*_meant(args), **_meant(kwargs))

    return run


def _over(address: int, dtype: str, extents: _t.Tuple[int, ...]) -> _torch.Tensor:
    """A tensor over memory of the engine's."""
    kind = _DTYPES[dtype]
    count = _math.prod(extents)
    if count == 0:
        return _torch.empty(extents, dtype=kind)
    memory = (_ctypes.c_byte * (count * kind.itemsize)).from_address(address)
    return _torch.frombuffer(memory, dtype=kind).view(extents)


def _overloads(value: _t.Any) -> _t.Iterator[_torch._ops.OpOverload]:
    if isinstance(value, _torch._ops.OpOverload):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _overloads(item)
    elif isinstance(value, dict):
        yield from _overloads(list(value.values()))


def _expression(number: _t.Any) -> _t.Any:
    """A number of a fake tensor: an int, or an expression of symbols."""
    return number.node.expr if isinstance(number, _torch.SymInt) else int(number)


def _evaluated(number: _t.Any, symbols: _t.Mapping[str, int]) -> int:
    if isinstance(number, int):
        return number
    return int(number.subs({s: symbols[s.name] for s in number.free_symbols}))


def _row_major(extents: _t.Sequence[int], strides: _t.Sequence[int]) -> bool:
    count = 1
    for extent, stride in zip(reversed(extents), reversed(strides)):
        if extent != 1 and stride != count:
            return False
        count *= max(extent, 1)
    return True


class _Taken:
    """A graph of torch.fx, told to the importer: inputs, calls, and where outputs come from."""

    def __init__(self, module: _torch.fx.GraphModule, session: _piecewise.Session, static: _t.Container[int]):
        self.module = module
        self.symbols: _t.Dict[str, _t.Tuple[int, int]] = {}  # by symbol: the argument, and its dim; -1: the argument itself
        self.arguments: _t.Dict[str, int] = {}  # by input
        self.constants: _t.Dict[str, _torch.Tensor] = {}  # by input
        self.outputs: _t.List[_t.Any] = []  # ("argument", i), ("result", k), ("number", expression), ("value", v)
        self.results: _t.List[_torch.Tensor] = []  # fake, of what is computed
        self.ops = 0
        self._count = 0  # of arguments so far
        self._told = _piecewise.FxGraph(session, "torch")
        self._tell_schemas()
        self._static = static
        self._returned: _t.Dict[_torch.fx.Node, int] = {}
        for node in module.graph.nodes:
            getattr(self, "_" + node.op)(node)
        self._tell_ranges()

    def convert(self) -> _t.Dict[str, _t.Any]:
        return self._told.convert(tuple(Ref(node.name) for node in self._returned))

    def functions(self) -> _t.Dict[str, _t.Callable[..., _t.Any]]:
        """What runs the calls that stay PyTorch's, by op."""
        out = {}
        for op in self._operators():
            out[str(op)] = out[str(op).removesuffix(".default")] = _host_function(op)
        return out

    def _operators(self) -> _t.Iterator[_torch._ops.OpOverload]:
        for node in self.module.graph.nodes:
            yield from _overloads((node.target, node.args, node.kwargs))

    def _tell_schemas(self):
        """Of ops that are not PyTorch's own."""
        for op in self._operators():
            if op.namespace != "aten":
                line = _schema_line(op.name(), op)
                for name in (str(op), str(op).removesuffix(".default")):
                    self._told.schema(name, line)

    def _placeholder(self, node):
        index, self._count = self._count, self._count + 1
        value = node.meta.get("val")
        if isinstance(value, _torch.SymInt):
            expression = _expression(value)
            if isinstance(expression, _sympy.Symbol):
                self.symbols[expression.name] = (index, -1)
            self._told.input(node.name, f"Sym({value})", "")
            return
        if not isinstance(value, _torch.Tensor):
            if node.users:
                raise _Refused(f"the argument {node.name} is a {type(value).__name__}")
            return
        self.arguments[node.name] = index
        for dim, extent in enumerate(value.shape):
            expression = _expression(extent)
            if isinstance(expression, _sympy.Symbol):
                self.symbols.setdefault(expression.name, (index, dim))
        self._told.input(node.name, _type_text(value), "weight" if index in self._static else "input")

    def _get_attr(self, node):
        value = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        if not isinstance(value, _torch.Tensor):
            raise _Refused(f"the attribute {node.target} is a {type(value).__name__}")
        self.constants[node.name] = value.detach().contiguous()
        self._told.input(node.name, _type_text(value), "weight")

    def _call_function(self, node):
        target = _target_text(node.target)
        if target != "operator.getitem" and not isinstance(node.meta.get("val"), _torch.SymInt):
            self.ops += 1
        source = ""
        trace = node.meta.get("stack_trace")
        if trace and (lines := [line for line in trace.splitlines() if line.lstrip().startswith('File "')]):
            source = lines[-1].strip().removeprefix('File "').replace('", line ', ":").split(",")[0]
        value = node.meta.get("val")
        several = isinstance(value, (list, tuple))
        if several:
            for part in value:
                _type_text(part)
        self._told.call(node.name, target, _argument(tuple(node.args)), _argument(dict(node.kwargs)), "" if several else _type_text(value), source)

    def _call_method(self, node):
        raise _Refused(f"it calls the method {node.target}")

    def _call_module(self, node):
        raise _Refused(f"it calls the module {node.target}")

    def _output(self, node):
        for value in node.args[0]:
            if not isinstance(value, _torch.fx.Node):
                self.outputs.append(("value", value))
                continue
            fake = value.meta.get("val")
            if value.name in self.arguments:
                self.outputs.append(("argument", self.arguments[value.name]))
            elif value.name in self.constants:
                self.outputs.append(("value", self.constants[value.name]))
            elif isinstance(fake, _torch.SymInt):
                self.outputs.append(("number", _expression(fake)))
            elif isinstance(fake, _torch.Tensor):
                if value not in self._returned:
                    self._returned[value] = len(self.results)
                    self.results.append(fake)
                self.outputs.append(("result", self._returned[value]))
            else:
                raise _Refused(f"it returns a {type(fake).__name__}")

    def _tell_ranges(self):
        for name in self.symbols:
            least, most = 0, _MOST
            for node in self.module.graph.find_nodes(op="placeholder"):
                value = node.meta.get("val")
                env = None
                if isinstance(value, _torch.SymInt):
                    env = value.node.shape_env
                elif isinstance(value, _torch.Tensor):
                    env = next((d.node.shape_env for d in value.shape if isinstance(d, _torch.SymInt)), None)
                if env is None:
                    continue
                for symbol, known in env.var_to_range.items():
                    if symbol.name == name:
                        least = int(known.lower) if isinstance(known.lower, _sympy.Integer) else least
                        most = min(most, int(known.upper)) if isinstance(known.upper, _sympy.Integer) else most
                break
            self._told.symbol(name, max(least, 0), most)


class _Call:
    """A compiled graph as AOT autograd calls it: with a list of arguments, which it empties."""

    _boxed_call = True

    def __init__(self, taken: _Taken, graph: _piecewise.Graph, compiled: _piecewise.Compiled):
        self._compiled = compiled
        self._outputs = taken.outputs
        self._symbols = list(taken.symbols.items())
        self._results = [(fake.dtype, [_expression(n) for n in fake.shape], [_expression(n) for n in fake.stride()]) for fake in taken.results]
        self._inputs = [taken.constants[i.name] if i.name in taken.constants else taken.arguments[i.name] for i in graph.inputs]
        self._known: _t.Dict[_t.Tuple[int, ...], _t.Any] = {}

    def _sizes(self, key, symbols):
        """By result: dtype, extents, and strides where it is not row-major."""
        known = []
        for dtype, extents, strides in self._results:
            extents, strides = (tuple(_evaluated(n, symbols) for n in numbers) for numbers in (extents, strides))
            known.append((dtype, extents, None if _row_major(extents, strides) else strides))
        extents = [tuple(e) for e in self._compiled.extents(symbols)]
        if extents != [e for _, e, _ in known]:
            raise Error(f"the graph gives tensors of {extents}, and PyTorch of {[e for _, e, _ in known]}")
        self._known[key] = known
        return known

    def __call__(self, *given):
        args = given[0] if len(given) == 1 and isinstance(given[0], list) else list(given)
        symbols = {name: args[index] if dim < 0 else args[index].shape[dim] for name, (index, dim) in self._symbols}
        key = tuple(symbols.values())
        sizes = self._known.get(key)
        if sizes is None:
            sizes = self._sizes(key, symbols)
        given = []
        for place in self._inputs:
            tensor = args[place] if isinstance(place, int) else place
            given.append(tensor if tensor.is_contiguous() else tensor.contiguous())
        results = [_torch.empty(extents, dtype=dtype) for dtype, extents, _ in sizes]
        self._compiled.run([t.data_ptr() for t in given], [t.data_ptr() for t in results], symbols)
        for i, (dtype, extents, strides) in enumerate(sizes):
            if strides is not None:
                results[i] = _torch.empty_strided(extents, strides, dtype=dtype).copy_(results[i])
        out = []
        for kind, what in self._outputs:
            if kind == "result":
                out.append(results[what])
            elif kind == "argument":
                out.append(args[what])
            else:
                out.append(_evaluated(what, symbols) if kind == "number" else what)
        args.clear()
        return out


def _static_inputs() -> _t.FrozenSet[int]:
    """Arguments that are parameters and buffers, as far as AOT autograd says."""
    context = _torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return frozenset(metadata.static_input_indices if metadata is not None else ())


def _compile(options: Options, kind: str, module: _torch.fx.GraphModule, example_inputs: _t.Sequence[_t.Any]) -> _t.Callable[..., _t.Any]:
    start = _time.perf_counter()
    report = GraphReport(kind)
    _graphs.append(report)
    try:
        return _take(options, kind, module, report)
    except (_Refused, Error) as why:
        report.refused = str(why)
        report.ops = sum(node.op == "call_function" for node in module.graph.nodes)
        _log.warning("%s", report)
        return _make_boxed_func(module.forward)
    finally:
        report.seconds = _time.perf_counter() - start


def _take(options: Options, kind: str, module: _torch.fx.GraphModule, report: GraphReport) -> _t.Callable[..., _t.Any]:
    _borrow()
    _piecewise.use_threads(_torch.get_num_threads(), _borrow.openmp)
    session = _piecewise.Session()
    rules = session.rules(list(options.rules))
    taken = _Taken(module, session, _static_inputs() if kind != "backward" else ())
    report.ops = taken.ops
    if not taken.results:
        raise _Refused("it computes nothing that it returns")
    said = taken.convert()
    graph = report.imported = said["graph"]
    report.left, report.reasons = said["opaque"], said["reasons"]
    if options.pipeline:
        run = session.run(graph, rules, options.pipeline, dict(options.params))
        graph = run.graph
        report.rewrites = {row["pass"]: row["rewrites"] for row in run.passes if row["rewrites"]}
    report.graph = graph
    if graph.writes:
        raise _Refused("it writes inputs")
    return _Call(taken, graph, _piecewise.Compiled(graph, options.engine, taken.functions(), _over))


@_functools.lru_cache(maxsize=None)
def _borrow() -> None:
    """Products by the BLAS that PyTorch brings, and threads of its OpenMP runtime: two pools would be in each other's way."""
    for line in open("/proc/self/maps"):
        path = line.rstrip("\n").partition("/")[2]
        name = path.rpartition("/")[2]
        if name.startswith("libtorch_cpu."):
            try:
                _piecewise.lend_blas("/" + path)
            except Error as why:
                _log.info("%s", why)
        elif name.startswith("libgomp"):
            _borrow.openmp = "/" + path


_borrow.openmp = ""


@_functools.lru_cache(maxsize=None)
def _decompositions():
    table = dict(_core_aten_decompositions())
    for name in ("_scaled_dot_product_flash_attention_for_cpu",):
        for overload in getattr(_torch.ops.aten, name).overloads():
            table.pop(getattr(getattr(_torch.ops.aten, name), overload), None)
    return table


def backend(
    module: _torch.fx.GraphModule, example_inputs: _t.Sequence[_t.Any], *, options: _t.Optional[_t.Mapping[str, _t.Any]] = None, mode: _t.Any = None
):
    """The backend of torch.compile, as its entry point names it; for `options` see Options."""
    chosen = Options.of(options)
    compilers = {kind: _functools.partial(_compile, chosen, kind) for kind in ("forward", "backward", "inference")}
    return _aot_autograd(
        fw_compiler=compilers["forward"],
        bw_compiler=compilers["backward"],
        inference_compiler=compilers["inference"],
        decompositions=_decompositions(),
    )(module, example_inputs)
