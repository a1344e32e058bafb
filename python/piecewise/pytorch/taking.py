"""Compiles a graph of AOT autograd part by part; calls that cannot be imported or compiled remain PyTorch's.

The selection is a fixed-point iteration: an error that names nodes moves these to PyTorch and the partition starts again. Each iteration moves at least
one call, so there are at most as many iterations as calls. An error that names none of the nodes of a part moves the whole part.
"""
from __future__ import annotations

import dataclasses
import functools
import json
import logging
import operator
import typing as t
import weakref

import torch

import _piecewise
from _piecewise import Error

from .calls import Call, arguments_of, over
from .counter import compilation_counter
from .devices import OnDevice, device_of, engine_of, open_device
from .frozen import FrozenWeights
from .hosted import HostCalls
from .options import FROZEN, GROUPED, Options
from .padding import Padding
from .partition import Part, Partition
from .pieces import Piece
from .prepared import PreparedWeights
from .reports import GraphReport
from .reports import Part as PartReport
from .staying import Staying
from .storage import read_memory, shared_outputs
from .subgraphs import Body, bodies, listed, spell_attention
from .fx_import import FxImport, Refused

_log = logging.getLogger("piecewise")
_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def pipelines(options: Options, engine: str) -> t.List[str]:
    """Returns the pipelines of a graph; those of grouped attention and of frozen weights make ops of the backend `cpu`."""
    if engine != "cpu":
        return [options.pipeline] if options.pipeline else []
    return [*([options.pipeline, GROUPED] if options.pipeline else []), *([FROZEN] if options.frozen else [])]


@dataclasses.dataclass
class _Rewritten:
    """A graph after import and pipeline, as a text for the compile cache."""

    imported: str
    graph: str
    left: t.Dict[str, int]
    reasons: t.Dict[str, int]
    rewrites: t.Dict[str, int]
    proofs: t.List[t.Dict[str, t.Any]]
    not_proved: t.List[t.Dict[str, t.Any]]

    @classmethod
    def make(cls, imported: FxImport, session: _piecewise.Session, rules: _piecewise.Rules, options: Options, engine: str) -> bytes:
        result = imported.convert()
        graph, rewrites = result["graph"], {}
        proofs: t.List[t.Dict[str, t.Any]] = []
        left: t.List[t.Dict[str, t.Any]] = []
        for pipeline in pipelines(options, engine):
            run = session.run(graph, rules, pipeline, dict(options.params))
            graph = run.graph
            rewrites.update({row["pass"]: row["rewrites"] for row in run.passes if row["rewrites"]})
            if options.prove:
                proved = run.prove()
                proofs += proved["proofs"]
                left += proved["not_proved"]
        made = cls(result["graph"].json(), graph.json(), result["opaque"], result["reasons"], rewrites, proofs, left)
        return json.dumps(vars(made)).encode()


class _Taken(t.NamedTuple):
    """A compiled part."""

    call: Call
    rewritten: _Rewritten
    report: PartReport
    warm: bool


class _Boxed:
    """The graph that calls parts, in AOT autograd's boxed calling convention: takes a list of arguments and empties it."""

    def __init__(self, module: torch.fx.GraphModule):
        self._boxed_call = True
        self._forward = module.forward

    def __call__(self, *given):
        return list(self._forward(arguments_of(given)))


def calls_of(graph: torch.fx.Graph) -> t.List[torch.fx.Node]:
    """Returns the calls that compute tensors."""
    calls = [node for node in graph.nodes if node.op.startswith("call_") and node.target is not operator.getitem]
    return [node for node in calls if not isinstance(node.meta.get("val"), _NUMBERS)]


class Taking:
    """Compiles graphs and the subgraphs of their calls, and accumulates the results in a report."""

    def __init__(self, session: _piecewise.Session, rules: _piecewise.Rules, options: Options, report: GraphReport):
        self._session, self._rules, self._options, self._report = session, rules, options, report
        self._inside = 0  # subgraphs around the graph that is compiled

    def take(self, module: torch.fx.GraphModule, static: t.Container[int] = ()) -> t.Callable[..., t.Any]:
        """Returns the compiled function for a graph; `static` marks weights. Raises Refused or Error if Piecewise can run none of it."""
        spell_attention(module)
        left = read_memory(module)
        staying = Staying(module, device_of(module.graph))
        staying.leave(left)
        staying.leave_named(self._options.at)
        while True:
            ops = calls_of(module.graph)
            try:
                return self._whole(module, ops, static) if not staying.reasons else self._parts(module, ops, staying, static)
            except _Culprit as found:
                staying.leave(found.reasons)

    def _whole(self, module: torch.fx.GraphModule, ops: t.List[torch.fx.Node], static: t.Container[int]) -> Call:
        try:
            taken = self._compiled(module, static)
        except _Unsupported as why:
            raise _Culprit(why.of(_by_result((node, node) for node in ops))) from None
        except Error as why:
            found = _blamed(why, {node.name: node for node in ops})
            if not found or len(ops) == 1:
                raise
            raise _Culprit(dict.fromkeys(found, str(why))) from None
        self._report.ops += len(ops)
        self._add(taken)
        return taken.call

    def _parts(self, module: torch.fx.GraphModule, ops: t.List[torch.fx.Node], staying: Staying, static: t.Container[int]) -> t.Callable[..., t.Any]:
        weights = {node for i, node in enumerate(module.graph.find_nodes(op="placeholder")) if i in static}
        partition = Partition(module, staying)
        if unread := [node for part in partition.parts if not part.gives for _, node in part.nodes]:
            raise _Culprit(dict.fromkeys(unread, "nothing reads the results of its part of the graph"))
        taken = [self._part(part, weights) for part in partition.parts]
        inside = self._bodies(module, weights)
        if not taken and not inside:
            raise Refused(next(iter(staying.reasons.values())))
        self._report.ops += len(ops)
        for one in taken:
            self._add(one)
        compilation_counter.add("num_piecewise_graphs_seen", sum(node in staying.reasons and node not in staying.again for node in ops))
        self._leave(staying, inside)
        return _Boxed(partition.whole([_PartCall(one.call) for one in taken], inside))

    def _part(self, part: Part, weights: t.Container[torch.fx.Node]) -> _Taken:
        try:
            return self._compiled(part.module, {i for i, node in enumerate(part.given) if node in weights})
        except _Unsupported as why:
            raise _Culprit(why.of(_by_result(part.nodes))) from None
        except (Refused, Error) as why:
            nodes = {copy.name: node for copy, node in part.nodes}
            found = _blamed(why, nodes) if isinstance(why, Error) else []
            raise _Culprit(dict.fromkeys(found or nodes.values(), str(why))) from None

    def _bodies(self, module: torch.fx.GraphModule, weights: t.Container[torch.fx.Node]) -> t.Dict[str, Body]:
        """Returns the compiled subgraphs, by attribute."""
        out = {}
        for name, body in bodies(module).items():
            self._inside += 1
            try:
                out[name] = Body(self.take(listed(body.module), body.given(weights)), body.module)
            except (Refused, Error) as why:
                self._leave_all(body.module, str(why))
            finally:
                self._inside -= 1
        return out

    def _leave(self, staying: Staying, inside: t.Container[str]) -> None:
        for node, reason in staying.reasons.items():
            runs_body = node.target is torch.ops.higher_order.invoke_subgraph and node.args[0].target in inside
            if node not in calls_of(node.graph) or node in staying.again:
                continue
            if runs_body:  # our own call, not one of PyTorch's
                self._report.ops -= 1
            else:
                self._leave_one(node, reason)

    def _leave_one(self, node: torch.fx.Node, reason: str) -> None:
        report, name = self._report, str(node.target)
        report.left[name] = report.left.get(name, 0) + 1
        text = f"{name}: {reason}"
        report.reasons[text] = report.reasons.get(text, 0) + 1

    def _leave_all(self, module: torch.fx.GraphModule, reason: str) -> None:
        for node in calls_of(module.graph):
            self._report.ops += 1
            self._leave_one(node, reason)

    def _add(self, taken: _Taken) -> None:
        report, made = self._report, taken.rewritten
        for name in ("num_piecewise_graphs_seen", "num_piecewise_capturable_graphs_seen", "num_backend_compilations"):
            compilation_counter.add(name)
        for name in ("num_compiled_artifacts_loaded",) if taken.warm else ("num_compiled_artifacts_saved", "num_cache_entries_updated"):
            compilation_counter.add(name)
        for to, counts in ((report.left, made.left), (report.reasons, made.reasons), (report.rewrites, made.rewrites)):
            for name, count in counts.items():
                to[name] = to.get(name, 0) + count
        report.proofs += made.proofs
        report.not_proved += made.not_proved
        report.warm = taken.warm and (report.warm or not report.parts)
        report.parts.append(taken.report)

    def _compiled(self, module: torch.fx.GraphModule, static: t.Container[int]) -> _Taken:
        options, place = self._options, device_of(module.graph)
        engine = engine_of(options, place)
        imported = FxImport(module.graph, module, self._session, static, own_attention=options.own_attention, views=shared_outputs, place=place)
        if not imported.results:
            raise Refused("it returns nothing that it computes")
        rewritten, warm = self._rewritten(imported, engine)
        graph = self._session.loads(rewritten.graph, "torch")
        if graph.writes:
            raise Refused("it writes inputs")
        if engine == "cuda":
            return self._on_device(module, imported, rewritten, graph, warm, place, static)
        hosted = HostCalls.of(module.graph, rewritten.left, graph)
        compiled = _piecewise.Compiled(graph, engine, hosted.functions(imported.operators), over, options.frozen)
        call = Call(imported, graph, compiled, hosted, FrozenWeights(compiled, options.check) if options.frozen else None)
        read = functools.partial(self._session.loads, rewritten.imported, "torch")
        return _Taken(call, rewritten, PartReport(graph, compiled.summary, read, functools.partial(_choices, weakref.ref(call))), warm)

    def _on_device(
        self,
        module: torch.fx.GraphModule,
        imported: FxImport,
        rewritten: _Rewritten,
        graph: _piecewise.Graph,
        warm: bool,
        place: torch.device,
        static: t.Container[int],
    ) -> _Taken:
        """Compiles for a device, where every op needs a kernel: raises _Unsupported for those that stay PyTorch's."""
        device = open_device(self._options, place)
        sizes = {name: hint(module.graph, at) for name, at in imported.symbols.items()}
        read = functools.partial(self._session.loads, rewritten.imported, "torch")
        before = read()
        if unsupported := device.unsupported(before, sizes):
            raise _Unsupported(dict(unsupported), before)
        if unsupported := device.unsupported(graph, sizes):
            _log.warning("the graph runs as it was before its rules, because %s: %s", *unsupported[0])
            rewritten = dataclasses.replace(rewritten, graph=rewritten.imported, rewrites={}, proofs=[], not_proved=[])
            graph = before
        hosted = HostCalls.of(module.graph, ())
        if self._options.frozen:
            prepared = PreparedWeights(device, place, graph, sizes, self._options.check)
            return _Taken(Call(imported, graph, prepared.compiled, hosted, prepared), rewritten, PartReport(graph, prepared.summary, read), warm)
        compiled = OnDevice(device, place, graph, sizes)
        of = imported, graph, compiled, hosted
        call = self._piece(*of, static) if self._options.capture == "piecewise" and self._options.mode != "full" else Call(*of)
        return _Taken(call, rewritten, PartReport(graph, compiled.summary, read), warm)

    def _piece(self, imported: FxImport, graph: _piecewise.Graph, compiled: OnDevice, hosted: HostCalls, static: t.Container[int]) -> Piece:
        """Returns a part that is captured. Its results are static only if nothing but the caller reads them before its next call."""
        padding = Padding(imported, graph, static, self._options.sizes)
        if padding.why_exact:
            self._report.not_padded[padding.why_exact] = self._report.not_padded.get(padding.why_exact, 0) + 1
        static_results = self._report.returns_static and not self._inside
        fixed = [i for i in imported.arguments.values() if i in static]
        captured = self._options.mode != "full_decode_only"
        return Piece(
            *(imported, graph, compiled, hosted),
            padding=padding,
            static=fixed,
            static_results=static_results,
            captured=captured,
            report=self._report,
        )

    def _rewritten(self, imported: FxImport, engine: str) -> t.Tuple[_Rewritten, bool]:
        """Returns the graph to run, cached across processes, and whether it was already cached."""
        made = []

        def make() -> bytes:
            made.append(True)
            return _Rewritten.make(imported, self._session, self._rules, self._options, engine)

        options = repr((pipelines(self._options, engine), self._options.params, self._options.prove))
        parts = [("torch", torch.__version__), ("options", options), ("graph", imported.text())]
        kept = _Rewritten(**json.loads(self._kept(parts, make)))
        return kept, not made

    def _kept(self, parts: t.List[t.Tuple[str, str]], make: t.Callable[[], bytes]) -> bytes:
        return self._session.keep("torch", self._report.kind, parts, make)


class _PartCall(torch.nn.Module):
    """A compiled part as a torch.fx module."""

    def __init__(self, call: Call):
        super().__init__()
        self._call = call

    def forward(self, *args):
        return self._call(list(args))


def _choices(call: weakref.ReferenceType) -> t.List[t.Tuple[str, t.List[t.Tuple[str, float]]]]:
    """Returns the measurements that a call uses, while it exists."""
    alive = call()
    return [] if alive is None else alive.choices


def hint(graph: torch.fx.Graph, at: t.Tuple[int, int]) -> int:
    """Returns a typical value of a symbol, which is an argument or one of its extents."""
    value = graph.find_nodes(op="placeholder")[at[0]].meta["val"]
    size = value if at[1] < 0 else value.shape[at[1]]
    known = size.node.hint if isinstance(size, torch.SymInt) else size
    return known if isinstance(known, int) else 1


def _by_result(nodes: t.Iterable[t.Tuple[torch.fx.Node, torch.fx.Node]]) -> t.Dict[str, torch.fx.Node]:
    """Returns the original calls by the names of their copies, and by those of the copies' results."""
    out = {}
    for copy, node in nodes:
        out[copy.name] = node
        out.update({user.name: node for user in copy.users if user.target is operator.getitem})
    return out


class _Unsupported(Exception):
    """Raised with the nodes of an imported graph that its device cannot run, and the reasons."""

    def __init__(self, reasons: t.Dict[str, str], graph: _piecewise.Graph):
        super().__init__()
        self._reasons = reasons
        self._users: t.Dict[str, t.List[str]] = {}
        made = {value.name: node.name for node in graph.nodes for value in node.results}
        for node in graph.nodes:
            for value in node.operands:
                if value in made:
                    self._users.setdefault(made[value], []).append(node.name)

    def of(self, calls: t.Mapping[str, torch.fx.Node]) -> t.Dict[torch.fx.Node, str]:
        """Returns the reasons by call; all calls if a node belongs to none."""
        out: t.Dict[torch.fx.Node, str] = {}
        for name, why in self._reasons.items():
            call = self._call(name, calls)
            out.update({call: why} if call is not None else dict.fromkeys(calls.values(), why))
        return out

    def _call(self, name: str, calls: t.Mapping[str, torch.fx.Node]) -> t.Optional[torch.fx.Node]:
        """Returns the call that a node is a part of: that of the node, or of the first of its users that has one."""
        seen, todo = {name}, [name]
        for at in todo:
            if at in calls:
                return calls[at]
            fresh = [user for user in self._users.get(at, ()) if user not in seen]
            seen.update(fresh)
            todo += fresh
        return None


class _Culprit(Exception):
    """Raised with calls that turned out to be unsupported, and the reasons."""

    def __init__(self, reasons: t.Dict[torch.fx.Node, str]):
        super().__init__()
        self.reasons = reasons


def _blamed(why: Error, nodes: t.Mapping[str, torch.fx.Node]) -> t.List[torch.fx.Node]:
    """Returns the nodes that an error names, possibly none."""
    place = why.place or ""
    named = nodes.get(place.removeprefix("node ")) if place.startswith("node ") else None
    return [named] if named is not None else []
