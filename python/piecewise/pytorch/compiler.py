"""The backend of torch.compile: graphs of AOT autograd, imported, rewritten and compiled."""
from __future__ import annotations

import dataclasses
import functools
import json
import logging
import pathlib
import time
import typing as t

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

import _piecewise
from _piecewise import Error

from .borrowed import lent_threads
from .calls import Call, Checked, functions, over
from .decompositions import decompositions
from .frozen import FrozenWeights
from .options import Options
from .reports import GraphReport, _graphs, origin
from .telling import Refused, Told

_log = logging.getLogger("piecewise")
_FROZEN = "frozen"  # the rules, and the pipeline of theirs, for weights that are kept


def _static_inputs() -> t.FrozenSet[int]:
    """Arguments that are parameters and buffers, as far as AOT autograd says."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return frozenset(metadata.static_input_indices if metadata is not None else ())


def pipelines(options: Options) -> t.List[str]:
    """What a graph goes through."""
    return [name for name in (options.pipeline, _FROZEN if options.frozen else "") if name]


@dataclasses.dataclass
class _Rewritten:
    """A graph after its import and the pipeline, as a text that the compile cache keeps."""

    imported: str
    graph: str
    left: t.Dict[str, int]
    reasons: t.Dict[str, int]
    rewrites: t.Dict[str, int]
    proofs: t.List[t.Dict[str, t.Any]]
    not_proved: t.List[t.Dict[str, t.Any]]

    @classmethod
    def make(cls, told: Told, session: _piecewise.Session, rules: _piecewise.Rules, options: Options) -> bytes:
        said = told.convert()
        graph, rewrites = said["graph"], {}
        proofs: t.List[t.Dict[str, t.Any]] = []
        left: t.List[t.Dict[str, t.Any]] = []
        for pipeline in pipelines(options):
            run = session.run(graph, rules, pipeline, dict(options.params))
            graph = run.graph
            rewrites.update({row["pass"]: row["rewrites"] for row in run.passes if row["rewrites"]})
            if options.prove:
                proved = run.prove()
                proofs += proved["proofs"]
                left += proved["not_proved"]
        made = cls(said["graph"].json(), graph.json(), said["opaque"], said["reasons"], rewrites, proofs, left)
        return json.dumps(vars(made)).encode()


def _rewritten(told: Told, session: _piecewise.Session, rules: _piecewise.Rules, options: Options, report: GraphReport) -> _piecewise.Graph:
    """The graph to run; made once for all processes."""
    made = []

    def make() -> bytes:
        made.append(True)
        return _Rewritten.make(told, session, rules, options)

    parts = [torch.__version__, repr((pipelines(options), options.params, options.prove)), told.text()]
    kept = _Rewritten(**json.loads(session.keep("torch", parts, make)))
    report.warm = not made
    report.left, report.reasons, report.rewrites = kept.left, kept.reasons, kept.rewrites
    report.proofs, report.not_proved = kept.proofs, kept.not_proved
    report.read = functools.partial(session.loads, kept.imported, "torch")
    return session.loads(kept.graph, "torch")


def _take(
    session: _piecewise.Session, rules: _piecewise.Rules, options: Options, module: torch.fx.GraphModule, report: GraphReport
) -> t.Callable[..., t.Any]:
    lent_threads()
    if options.frozen and report.kind != "inference":
        options = dataclasses.replace(options, frozen=False)
    told = Told(module.graph, module, session, _static_inputs() if report.kind != "backward" else (), own_attention=options.own_attention)
    report.ops = told.ops
    if not told.results:
        raise Refused("it computes nothing that it returns")
    graph = report.graph = _rewritten(told, session, rules, options, report)
    if graph.writes:
        raise Refused("it writes inputs")
    compiled = _piecewise.Compiled(graph, options.backend, functions(told), over, options.frozen)
    report.summary = compiled.summary
    call = Call(told, graph, compiled, FrozenWeights(compiled.weights, options.check) if options.frozen else None)
    return Checked(call, module) if options.check else call


def _write_page(folder: str, report: GraphReport) -> None:
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    stem = f"{len(_graphs) - 1:03d}-{report.kind}"
    left = [f"not proved: {row['rule']} at {row['node']} in {row['pass']}: {row['left_to_show']}" for row in report.not_proved]
    (path / f"{stem}.txt").write_text("\n".join([str(report), *left, *report.summary]) + "\n", encoding="utf-8")
    if report.graph is not None:
        (path / f"{stem}.html").write_bytes(report.graph.draw("html"))


def rules_of(options: Options, session: _piecewise.Session) -> _piecewise.Rules:
    """Those of the options; Error for mistakes of the user's, which are no reasons to run a graph in PyTorch."""
    rules = session.rules([*options.rules, *([_FROZEN] if options.frozen else [])])
    for what, name, names in (
        ("pipeline", options.pipeline, ["", *rules.pipelines]),
        ("backend", options.backend, [engine["name"] for engine in _piecewise.engines()]),
    ):
        if name not in names:
            raise Error(f"there is no {what} `{name}`; there are {', '.join(filter(None, names))}")
    return rules


class Backend:
    """What torch.compile calls with a graph; equal where the options are, so that nothing is compiled again for an equal one."""

    def __init__(self, **options: t.Any):
        self.options = Options.of(options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and self.options == other.options

    def __hash__(self) -> int:
        return hash(self.options)

    def __repr__(self) -> str:
        return f"piecewise.pytorch.Backend({self.options})"

    def __call__(self, module: torch.fx.GraphModule, example_inputs: t.Sequence[t.Any], **_: t.Any) -> t.Callable[..., t.Any]:
        of = origin()
        compilers = {kind: functools.partial(self._compile, of, kind) for kind in ("forward", "backward", "inference")}
        return aot_autograd(
            fw_compiler=compilers["forward"],
            bw_compiler=compilers["backward"],
            inference_compiler=compilers["inference"],
            decompositions=decompositions(),
        )(module, example_inputs)

    def _compile(
        self, of: t.Callable[[], t.Any], kind: str, module: torch.fx.GraphModule, example_inputs: t.Sequence[t.Any]
    ) -> t.Callable[..., t.Any]:
        start = time.perf_counter()
        session = _piecewise.Session()
        rules = rules_of(self.options, session)
        report = GraphReport(kind, self.options, origin=of)
        _graphs.append(report)
        try:
            return _take(session, rules, self.options, module, report)
        except (Refused, Error) as why:
            report.refused = str(why)
            report.ops = sum(node.op == "call_function" for node in module.graph.nodes)
            _log.warning("%s", report)
            return make_boxed_func(module.forward)
        finally:
            report.seconds = time.perf_counter() - start
            if self.options.report:
                _write_page(self.options.report, report)


def backend(
    module: torch.fx.GraphModule, example_inputs: t.Sequence[t.Any], *, options: t.Optional[t.Mapping[str, t.Any]] = None, mode: t.Any = None
) -> t.Callable[..., t.Any]:
    """The backend of torch.compile, as its entry point names it; for `options` see Options."""
    return Backend(**dict(options or {}))(module, example_inputs)
