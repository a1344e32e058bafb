"""The compiler of vLLM's pieces: Piecewise where it can, Inductor with a reason everywhere else."""
from __future__ import annotations

import copy
import logging
import os
import time
import typing as t

import torch
from vllm.compilation.compiler_interface import InductorStandaloneAdaptor, is_compile_cache_enabled
from vllm.compilation.counter import compilation_counter
from vllm.compilation.passes.pass_manager import PostGradPassManager
from vllm.compilation.passes.utility.noop_elimination import NoOpEliminationPass
from vllm.compilation.passes.vllm_inductor_pass import VllmInductorPass
from vllm.config import get_current_vllm_config_or_none
from vllm.platforms import current_platform

from _piecewise import Error

from ..pytorch.fx_import import Refused
from ..pytorch.options import Options
from . import equal_pieces, options as _options
from .pieces import Piece, compiled, identity_of, loaded, ops_of
from .reports import PieceReport, PieceReports, add

_log = logging.getLogger("vllm.piecewise")
_SUFFIX = ".piecewise"  # of saved pieces; handles without it are Inductor's
_PRE_GRAD = "pre_grad_custom_pass"


class PiecewiseCompiler(InductorStandaloneAdaptor):
    """Compiles pieces with Piecewise, and those that it refuses with Inductor. `reports` has an entry for each piece and range."""

    name = "piecewise"

    def __init__(self, options: Options, *given: t.Any, **named: t.Any):
        super().__init__(*given, **named)
        self.reports = PieceReports()
        self._options, self._identity = options, identity_of(options)
        self._disabled = True  # the cache of vLLM, until initialize_cache
        self._equal: t.Dict[t.Any, t.Tuple[t.Callable[..., t.Any], t.Any]] = {}  # compiled pieces and their handles
        self._loaded: t.Dict[str, t.Callable[..., t.Any]] = {}  # by path

    def compute_hash(self, vllm_config: t.Any) -> str:
        """Returns a digest of Inductor's state, as some pieces are Inductor's, and of the options, the rules, and this build."""
        self._options = _options.of_config(vllm_config) or self._options
        self._identity = identity_of(self._options)
        return f"{super().compute_hash(vllm_config)}{self._identity[:16]}"

    def initialize_cache(self, cache_dir: str, disable_cache: bool = False, prefix: str = "") -> None:
        super().initialize_cache(cache_dir, disable_cache, prefix)
        self._disabled = disable_cache

    def compile(
        self,
        graph: torch.fx.GraphModule,
        example_inputs: t.List[t.Any],
        compiler_config: t.Dict[str, t.Any],
        compile_range: t.Any,
        key: t.Optional[str] = None,
    ) -> t.Tuple[t.Optional[t.Callable[..., t.Any]], t.Optional[t.Any]]:
        """Returns the compiled piece and, if it was saved, the handle with which `load` finds it."""
        start = time.perf_counter()
        one = PieceReport(key or "", (compile_range.start, compile_range.end), ops_of(graph.graph), "compiled")
        digest = equal_pieces.digest(graph.graph, example_inputs)
        known = (digest, compile_range)
        try:
            if digest is not None and known in self._equal:
                one.source, one.not_saved = "shared", ""
                return self._equal[known]
            piece = self._compiled(graph, example_inputs, compiler_config, compile_range)
        except Exception as why:  # a server must start, whatever is wrong with one piece
            if not isinstance(why, (Refused, Error)):
                _log.exception("piecewise failed on %s; please report this", key)
            one.source, one.reason = "inductor", str(why) or type(why).__name__
            return super().compile(graph, example_inputs, compiler_config, compile_range, key)
        else:
            one.graph = piece.report
            made = piece.call, self._save(piece, one, key, compiler_config)
            if digest is not None:
                self._equal[known] = made
            return made
        finally:
            one.seconds = time.perf_counter() - start
            self._note(one)

    def load(self, handle: t.Any, graph: torch.fx.GraphModule, example_inputs: t.List[t.Any], graph_index: int, compile_range: t.Any) -> t.Any:
        """Loads a piece that `compile` saved. Returns None for one that this build cannot load: vLLM then compiles it again."""
        name = handle[0]
        if not name.endswith(_SUFFIX):
            return super().load(handle, graph, example_inputs, graph_index, compile_range)
        path = os.path.join(self.cache_dir, os.path.basename(name))
        one = PieceReport(name.removesuffix(_SUFFIX), (compile_range.start, compile_range.end), ops_of(graph.graph), "loaded")
        start = time.perf_counter()
        try:
            if path in self._loaded:
                one.source = "shared"
            else:
                with open(path, "rb") as file:
                    piece = loaded(file.read(), self._options, self._identity)
                one.graph = piece.report
                self._loaded[path] = piece.call
                compilation_counter.num_compiled_artifacts_loaded += 1
            return self._loaded[path]
        except (OSError, Refused, Error) as why:
            one.source, one.reason = "not loaded", str(why)
            _log.warning("piecewise compiles %s again: %s", path, why)
            return None
        finally:
            one.seconds = time.perf_counter() - start
            self._note(one)

    def _compiled(self, graph: torch.fx.GraphModule, inputs: t.List[t.Any], config: t.Dict[str, t.Any], compile_range: t.Any) -> Piece:
        if not graph.graph.output_node().args or not isinstance(graph.graph.output_node().args[0], (tuple, list)):
            raise Refused("it does not return a tuple")
        own = copy.deepcopy(graph)  # Inductor may need the original
        if (before := config.get(_PRE_GRAD)) is not None:
            before(own.graph)
            own.recompile()
        manager = config.get(current_platform.pass_key)
        if manager is not None and not isinstance(manager, PostGradPassManager):
            raise Refused(f"the pass manager is a {type(manager).__name__}, which only Inductor can run")
        passes = [p for p in manager.passes if p.is_applicable_for_range(compile_range)] if manager is not None else []
        run = None if manager is None else lambda graph: _run_passes(graph, [*passes, manager.post_cleanup])
        matched = any(not isinstance(p, NoOpEliminationPass) for p in passes)
        return compiled(own, inputs, self._options, range(compile_range.start, compile_range.end + 1), run, matched, self._identity)

    def _save(self, piece: Piece, one: PieceReport, key: t.Optional[str], config: t.Dict[str, t.Any]) -> t.Optional[t.Tuple[str, str]]:
        """Saves a piece; returns its handle, or None if it was not saved."""
        if not self.use_aot_compile or self._disabled or key is None or not is_compile_cache_enabled(config):
            one.not_saved = "vLLM's cache is off"
            return None
        if piece.not_saved:
            one.not_saved = piece.not_saved
            return None
        name = key + _SUFFIX
        path = os.path.join(self.cache_dir, name)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(piece.saved)
        os.replace(temporary, path)
        compilation_counter.num_compiled_artifacts_saved += 1
        return name, path

    def _note(self, one: PieceReport) -> None:
        add(one)
        self.reports.append(one)
        _log.info("%s", one)
        if not self._disabled:
            self.reports.save(os.path.join(self.cache_dir, "piecewise.json"))


def _run_passes(graph: torch.fx.Graph, passes: t.Sequence[t.Callable[[torch.fx.Graph], None]]) -> None:
    """Runs vLLM's passes as its pass manager does, up to those that lower its ops for Inductor: Piecewise reads a functional graph."""
    VllmInductorPass.dump_prefix = 0
    for one in passes:
        one(graph)
        VllmInductorPass.dump_prefix += 1
    VllmInductorPass.dump_prefix = None


def requested() -> t.Optional[Options]:
    """Returns the options if the current config of vLLM requests Piecewise."""
    return _options.of_config(get_current_vllm_config_or_none())
