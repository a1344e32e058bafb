"""The backend of torch.compile: partitions graphs of AOT autograd, imports, rewrites, and compiles the parts.

Each graph goes through decomposition, partition (partition.py), import (fx_import.py), the pipeline, and code generation. Calls that Piecewise cannot run
remain PyTorch's. Invariant: a compiled graph runs only where all of PyTorch's guards hold. Rewritten graphs and kernels come from the compile cache.
"""
from __future__ import annotations

import dataclasses
import functools
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
from .calls import Checked
from .capturing import Capturing, static_inputs_of_backward, why_launched
from .counter import compilation_counter, note_model
from .checks import keep_checks, with_eager_errors
from .decompositions import decompositions, use_functional_ops
from .devices import device_of, engine_of
from .norms import keep_norms, restore_norms
from .options import FROZEN, GROUPED, Options
from .out_arguments import OutArguments
from .partition import bytes_of
from .reports import GraphReport, Served, _graphs, origin
from .saving import Portable, saved_graph
from .staying import ops_named
from .taking import Taking, calls_of
from .fx_import import Refused, correct_statistics
from .writes import InPlace, Writes, written_arguments

_log = logging.getLogger("piecewise")
_LARGE = 1 << 18  # bytes of an argument
_AUTOGRAD_CACHE = (
    "enable_autograd_cache",
    "force_autograd_cache",
    "strict_autograd_cache",
    "bundled_autograd_cache",
)  # it only caches Inductor's code


def _static_inputs() -> t.FrozenSet[int]:
    """Returns the arguments that AOT autograd marks as parameters and buffers."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return frozenset(metadata.static_input_indices if metadata is not None else ())


def _static_of(report: GraphReport) -> t.FrozenSet[int]:
    return _static_inputs() if report.kind != "backward" else frozenset()


def _in_place(options: Options, module: torch.fx.GraphModule, static: t.Container[int]) -> InPlace:
    """Returns which arguments may be written in place: fixed ones if the call is captured, and on the CPU large ones, as more parts cost time too."""
    engine = engine_of(options, device_of(module.graph))

    def allowed(i: int, node: torch.fx.Node) -> bool:
        return (options.capture == "none" or i in static) and (engine == "cuda" or engine == "cpu" and bytes_of(node) >= _LARGE)

    return allowed


def _take(
    session: _piecewise.Session,
    rules: _piecewise.Rules,
    options: Options,
    module: torch.fx.GraphModule,
    report: GraphReport,
    capturing: Capturing,
) -> t.Callable[..., t.Any]:
    lent_threads()
    if options.frozen and report.kind != "inference":
        options = dataclasses.replace(options, frozen=False)
    static = _static_of(report)
    why = _why_launched(options, module, static) if options.capture != "none" else ""
    call = Taking(session, rules, options, report).take(module, static)
    if options.capture != "none":
        fixed = static if report.kind != "backward" else static_inputs_of_backward(module)
        call = capturing.wrap(call, module, why, fixed, device_of(module.graph), report)
    call = Checked(call, module, written_arguments(module)) if options.check else call
    return Served(call, min(static), report) if static else call


def _why_launched(options: Options, module: torch.fx.GraphModule, static: t.Container[int]) -> str:
    """Returns why a graph is not captured. Raises Refused if no backend runs it."""
    place = device_of(module.graph)
    if engine_of(options, place) != "cuda":
        return "it runs on the CPU"
    return why_launched(module, place, static, options.at) if options.capture == "torch" or options.mode != "piecewise" else ""


def _write_page(folder: str, report: GraphReport) -> None:
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    stem = f"{len(_graphs) - 1:03d}-{report.kind}"
    left = [f"not proved: {row['rule']} at {row['node']} in {row['pass']}: {row['left_to_show']}" for row in report.not_proved]
    (path / f"{stem}.txt").write_text("\n".join([str(report), *left, *report.summary]) + "\n", encoding="utf-8")
    for i, part in enumerate(report.parts):
        name = f"{stem}.html" if len(report.parts) == 1 else f"{stem}.{i}.html"
        (path / name).write_bytes(part.graph.draw("html"))


def rules_of(options: Options, session: _piecewise.Session) -> _piecewise.Rules:
    """Returns the rules of the options. Raises Error for user mistakes, which must not cause a silent fallback to PyTorch."""
    rules = session.rules([*options.rules, GROUPED, *([FROZEN] if options.frozen else [])])
    for what, name, names in (
        ("pipeline", options.pipeline, ["", *rules.pipelines]),
        ("backend", options.backend, ["auto", *(engine["name"] for engine in _piecewise.engines())]),
    ):
        if name not in names:
            raise Error(f"there is no {what} `{name}`; there are {', '.join(filter(None, names))}")
    ops_named(options.at)
    return rules


class Backend:
    """The callable that torch.compile calls with a graph; equal if the options are, so that equal backends do not recompile."""

    def __init__(self, **options: t.Any):
        self.options = Options.of(options)

    @classmethod
    def of(cls, options: Options) -> "Backend":
        """Returns the backend with these options."""
        out = cls()
        out.options = options
        return out

    @staticmethod
    def reset() -> None:
        """Drops PyTorch's CUDA graphs; torch._dynamo.reset calls it."""
        if torch.cuda.is_available():
            from torch._inductor.cudagraph_trees import reset_cudagraph_trees

            reset_cudagraph_trees()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and self.options == other.options

    def __hash__(self) -> int:
        return hash(self.options)

    def __repr__(self) -> str:
        return f"piecewise.pytorch.Backend({self.options})"

    def __call__(
        self, module: torch.fx.GraphModule, example_inputs: t.Sequence[t.Any], *, mode: t.Any = None, options: t.Any = None, name: t.Any = None
    ) -> t.Callable[..., t.Any]:
        """Compiles a graph for torch.compile; raises ValueError for an unknown mode, or for options in addition to these."""
        if mode not in (None, "default"):
            return Backend.of(self.options.with_mode(mode))(module, example_inputs, options=options)
        if options:
            raise ValueError("piecewise.pytorch.Backend already has options: pass them to it, not to torch.compile")
        if torch._functorch.config.bundled_autograd_cache:  # for a function that will be saved
            saved = saved_graph(module, example_inputs)  # the graph that Dynamo traced
            with torch._functorch.config.patch(dict.fromkeys(_AUTOGRAD_CACHE, False)):
                return Portable(self.options, saved, self._compiled(module, example_inputs))
        return self._compiled(module, example_inputs)

    def _compiled(self, module: torch.fx.GraphModule, example_inputs: t.Sequence[t.Any]) -> t.Callable[..., t.Any]:
        made_for = {"origin": origin(), "weights": {}}  # shared by the reports of its graphs
        capturing = Capturing()
        compilers = {kind: functools.partial(self._compile, made_for, capturing, kind) for kind in ("forward", "backward", "inference")}
        compilation_counter.add("num_graphs_seen")
        if (owner := made_for["origin"]()) is not None:
            note_model(owner, "stock_torch_compile_count")
        out_arguments = OutArguments(module)
        if out_arguments.rejected is not None:
            return self._rejected(module, *out_arguments.rejected)
        keep_checks(module)
        use_functional_ops(module)
        keep_norms(module)
        compiled = aot_autograd(
            fw_compiler=compilers["forward"],
            bw_compiler=compilers["backward"],
            inference_compiler=compilers["inference"],
            decompositions=decompositions(),
            keep_inference_input_mutations=not torch.is_grad_enabled(),  # `Writes` makes them
        )(module, example_inputs)
        return out_arguments.checked(with_eager_errors(compiled, module))

    def _rejected(self, module: torch.fx.GraphModule, node: torch.fx.Node, error: Exception) -> t.Callable[..., t.Any]:
        """Leaves a graph to PyTorch, which raises the error where the program makes the call."""
        why = f"PyTorch rejects the `out=` of {node.name}: {(str(error).splitlines() or [''])[0]}"
        report = GraphReport("inference", self.options, ops=len(calls_of(module.graph)), refused=why, origin=origin())
        _graphs.append(report)
        compilation_counter.add("num_eager_compiles")
        _log.warning("%s", report)
        return module.forward

    def _compile(
        self,
        made_for: t.Dict[str, t.Any],
        capturing: Capturing,
        kind: str,
        module: torch.fx.GraphModule,
        example_inputs: t.Sequence[t.Any],
    ) -> t.Callable[..., t.Any]:
        start = time.perf_counter()
        session = _piecewise.Session()
        rules = rules_of(self.options, session)
        report = GraphReport(kind, self.options, **made_for)
        _graphs.append(report)
        restore_norms(module)
        correct_statistics(module.graph)
        after: t.Callable[..., t.Any] = lambda call: call
        try:
            after = Writes(module, _in_place(self.options, module, _static_of(report))).after
            return after(_take(session, rules, self.options, module, report, capturing))
        except (Refused, Error) as why:
            compilation_counter.add("num_eager_compiles")
            report.refused, report.parts = str(why), []
            report.ops = len(calls_of(module.graph))
            _log.warning("%s", report)
            return after(make_boxed_func(module.forward))
        finally:
            report.seconds = time.perf_counter() - start
            if self.options.report:
                _write_page(self.options.report, report)


def backend(
    module: torch.fx.GraphModule,
    example_inputs: t.Sequence[t.Any],
    *,
    options: t.Optional[t.Mapping[str, t.Any]] = None,
    mode: t.Any = None,
    name: t.Any = None,
) -> t.Callable[..., t.Any]:
    """Compiles a graph for torch.compile's entry point; for `options` see Options. Raises ValueError for an unknown mode."""
    return Backend(**dict(options or {}))(module, example_inputs, mode=mode, name=name)


backend.reset = Backend.reset


def loaded(options: t.Mapping[str, t.Any], module: torch.fx.GraphModule, inputs: t.Sequence[t.Any]) -> t.Callable[..., t.Any]:
    """Returns a saved graph of Dynamo, compiled again."""
    return Backend(**options)._compiled(module, inputs)
