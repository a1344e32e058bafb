"""Compiles one piece of vLLM's graph, and saves and loads the result.

A piece is a graph of Dynamo. It passes AOT autograd, vLLM's own passes, and then the backend of torch.compile (piecewise.pytorch), which runs what it can and
leaves all other calls to PyTorch. vLLM drops Dynamo's guards, so the only facts about sizes are the ranges that vLLM promises. A saved piece is the graph
after the passes with the rewritten graph of each part: loading imports, but neither traces, nor rewrites, nor generates code that the compile cache has.
"""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import json
import time
import typing as t

import sympy
import torch
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import TracingContext, tracing
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx._graph_pickler import GraphPickler
from torch.fx._graph_pickler import Options as PickleOptions
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_symbols
from torch.utils._sympy.value_ranges import ValueRanges

import _piecewise
from _piecewise import Error

from ..pytorch.calls import Checked
from ..pytorch.compiler import rules_of
from ..pytorch.decompositions import decompositions
from ..pytorch.fx_import import Refused, correct_statistics
from ..pytorch.guards import shape_env
from ..pytorch.options import Options
from ..pytorch.reports import GraphReport
from ..pytorch.taking import Taking

_MAGIC = b"piecewise piece 1\n"
_NO_CACHES = {"enable_autograd_cache": False, "bundled_autograd_cache": False}
Passes = t.Callable[[torch.fx.Graph], None]


class Damaged(Error):
    """Raised for a saved piece that this build cannot load."""


class _Taking(Taking):
    """Taking that records the rewritten graphs of parts, or looks them up in a saved piece."""

    def __init__(self, *given: t.Any, saved: t.Optional[t.Mapping[str, str]] = None):
        super().__init__(*given)
        self.rewritten: t.Dict[str, str] = {}
        self._saved = saved

    def _kept(self, parts: t.Sequence[str], make: t.Callable[[], bytes]) -> bytes:
        key = hashlib.sha256(repr(parts).encode()).hexdigest()
        if self._saved is None:
            kept = super()._kept(parts, make)
        elif key in self._saved:
            kept = self._saved[key].encode()
        else:
            raise Damaged("the saved piece lacks the rewritten graph of a part")
        self.rewritten[key] = kept.decode()
        return kept


@dataclasses.dataclass
class Piece:
    """A compiled piece: a function of its arguments that returns a tuple, its report, and its saved form."""

    call: t.Callable[..., t.Tuple[t.Any, ...]]
    report: GraphReport
    saved: bytes = b""
    not_saved: str = ""  # why it has no saved form


def _unboxed(call: t.Callable[..., t.Any]) -> t.Callable[..., t.Tuple[t.Any, ...]]:
    return lambda *args: tuple(call(list(args)))


def _mode_of(inputs: t.Sequence[t.Any]) -> FakeTensorMode:
    """Returns the fake-tensor mode of the example inputs, which is Dynamo's for a range and vLLM's own for a single size."""
    modes = {id(value.fake_mode): value.fake_mode for value in inputs if isinstance(value, FakeTensor)}
    if len(modes) > 1:
        raise Refused("its example inputs have several fake-tensor modes")
    return next(iter(modes.values()), None) or FakeTensorMode(shape_env=ShapeEnv())


@contextlib.contextmanager
def _only_promised(module: torch.fx.GraphModule, sizes: range) -> t.Iterator[None]:
    """Replaces what Dynamo assumed about sizes by what vLLM promises: each symbol is a number of tokens in this range, and no guard is checked."""
    env = shape_env(module.graph)
    if env is None:
        yield
        return
    symbols = {s for node in module.graph.find_nodes(op="placeholder") for s in free_symbols(node.meta.get("val"))}
    ranges, guards = dict(env.var_to_range), env.guards
    env.var_to_range.update({s: ValueRanges(sizes.start, sizes.stop - 1) for s in symbols})
    env.guards = []
    try:
        yield
    finally:
        env.var_to_range.clear()
        env.var_to_range.update(ranges)
        env.guards = guards


def _check_wrapper(module: torch.fx.GraphModule, inputs: t.Sequence[t.Any]) -> None:
    """Raises Refused if AOT autograd does more than call the graph with the piece's arguments and return its results."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        raise Refused("AOT autograd described no calling convention")
    if metadata.num_mutated_inp_runtime_indices:
        raise Refused("it writes arguments in a way that PyTorch applies after the graph")
    if len(module.graph.find_nodes(op="placeholder")) != len(inputs):
        raise Refused("it owns tensors, or PyTorch passes it other arguments than vLLM")


class _Inference:
    """The inference compiler that AOT autograd calls; `piece` is the result."""

    def __init__(self, identity: str, options: Options, passes: t.Optional[Passes], sizes: range, inputs: t.Sequence[t.Any]):
        self._identity, self._options, self._passes, self._sizes, self._inputs = identity, options, passes, sizes, inputs
        self.piece: t.Optional[Piece] = None

    def __call__(self, module: torch.fx.GraphModule, _: t.Any) -> t.Callable[..., t.Any]:
        _check_wrapper(module, self._inputs)
        if self._passes is not None:
            self._passes(module.graph)
            module.graph.lint()
            module.recompile()
        correct_statistics(module.graph)
        pickled, why = _pickled(module)
        with _only_promised(module, self._sizes):
            call, report, rewritten = _take(module, self._options)
        saved = b"" if why else _file_of(self._identity, self._sizes, rewritten, pickled)
        self.piece = Piece(_unboxed(call), report, saved, why)
        return call


def _take(
    module: torch.fx.GraphModule, options: Options, saved: t.Optional[t.Mapping[str, str]] = None
) -> t.Tuple[t.Callable[..., t.Any], GraphReport, t.Dict[str, str]]:
    session = _piecewise.Session()
    rules = rules_of(options, session)
    report = GraphReport("inference", options)
    taking = _Taking(session, rules, options, report, saved=saved)
    call = taking.take(module)
    return Checked(call, module) if options.check else call, report, taking.rewritten


def _no_backward(*_: t.Any) -> t.Any:
    raise Refused("it needs a gradient")


def compiled(
    graph: torch.fx.GraphModule,
    inputs: t.Sequence[t.Any],
    options: Options,
    sizes: range,
    passes: t.Optional[Passes] = None,
    matched: bool = False,
    identity: str = "",
) -> Piece:
    """Compiles a graph of Dynamo, which it may change, for these numbers of tokens.

    `identity`: see identity_of. `passes` change the graph of AOT autograd; `matched`: patterns traced with Inductor's decompositions are among them. Raises Refused or Error if Piecewise
    can run none of the piece, or cannot keep vLLM's calling convention.
    """
    start = time.perf_counter()
    compiler = _Inference(identity, options, passes, sizes, inputs)
    with tracing(TracingContext(_mode_of(inputs))), torch.no_grad(), torch._functorch.config.patch(_NO_CACHES):
        aot_module_simplified(
            graph,
            inputs,
            fw_compiler=compiler,
            bw_compiler=_no_backward,
            inference_compiler=compiler,
            decompositions=select_decomp_table() if matched else decompositions(),
            keep_inference_input_mutations=True,
        )
    if compiler.piece is None:
        raise Refused("AOT autograd made no graph of it")
    compiler.piece.report.seconds = time.perf_counter() - start
    return compiler.piece


class _Pickler(GraphPickler):
    """PyTorch's pickler, which cannot pickle the classes of functions in its own expressions of sizes."""

    def reducer_override(self, obj: t.Any) -> t.Any:
        if isinstance(obj, type) and issubclass(obj, sympy.Function) and hasattr(obj, "_torch_unpickler"):
            return obj._torch_unpickler, (obj._torch_handler_name,)
        return super().reducer_override(obj)


def _bare(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Returns a copy whose nodes have only their source lines, and their values unless these are objects, such as the names of layers."""
    out = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    for node in out.graph.nodes:
        is_object = node.op == "placeholder" and not isinstance(node.meta.get("val"), (torch.Tensor, torch.SymInt))
        node.meta = {key: node.meta[key] for key in ("val", "stack_trace") if key in node.meta and not (key == "val" and is_object)}
    out.meta = {}
    return out


def _pickled(module: torch.fx.GraphModule) -> t.Tuple[bytes, str]:
    """Returns a graph as bytes, or why it has no such form."""
    if any(node.op in ("get_attr", "call_module") for node in module.graph.nodes):
        return b"", "it owns tensors or graphs"
    try:
        return _Pickler.dumps(_bare(module), PickleOptions(ops_filter=None)), ""
    except Exception as why:  # PyTorch's pickler raises exceptions of many types
        return b"", f"PyTorch cannot pickle its graph: {why}"


def identity_of(options: Options) -> str:
    """Returns a digest of the options, the texts of the rules, this build, and PyTorch's version: only an equal one loads a saved piece."""
    session = _piecewise.Session()
    rules_of(options, session)
    return session.digest([("pass", "vllm piece"), ("options", repr(dataclasses.replace(options, report=""))), ("torch", torch.__version__)])


def _file_of(identity: str, sizes: range, rewritten: t.Mapping[str, str], graph: bytes) -> bytes:
    body = json.dumps([sizes.start, sizes.stop, rewritten]).encode() + b"\n" + graph
    return _MAGIC + f"{identity} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def loaded(data: bytes, options: Options, identity: str = "") -> Piece:
    """Loads a saved piece. Raises Damaged for other bytes, and for a piece of another build, PyTorch, or set of options or rules."""
    start = time.perf_counter()
    if not data.startswith(_MAGIC):
        raise Damaged("it is not a saved piece of this version")
    head, _, body = data[len(_MAGIC) :].partition(b"\n")
    if head.decode("ascii", "replace") != f"{identity} {hashlib.sha256(body).hexdigest()}":
        raise Damaged("it was saved by another build or with other options, or it was damaged")
    kept, _, graph = body.partition(b"\n")
    first, stop, rewritten = json.loads(kept)
    mode = FakeTensorMode(shape_env=ShapeEnv())
    module = GraphPickler.loads(graph, mode)
    module.recompile()
    with tracing(TracingContext(mode)), _only_promised(module, range(first, stop)):
        call, report, _ = _take(module, options, rewritten)
    report.seconds, report.warm = time.perf_counter() - start, True
    return Piece(_unboxed(call), report, data)


def ops_of(graph: torch.fx.Graph) -> int:
    """Returns the number of calls of a graph of Dynamo."""
    return sum(node.op.startswith("call_") for node in graph.nodes)
