"""Counts of compilation under the names of vLLM's CompilationCounter (vllm/compilation/counter.py, 0.33)."""
from __future__ import annotations

import contextlib
import dataclasses
import threading
import typing as t
import weakref

_lock = threading.Lock()


@dataclasses.dataclass
class CompilationCounter:
    """Counts since the process started, or since reset()."""

    num_models_seen: int = 0  # objects and functions marked with `support`, at their first compiled call
    num_graphs_seen: int = 0  # graphs of Dynamo
    num_piecewise_graphs_seen: int = 0  # compiled parts, and the calls that cut a graph into parts
    num_piecewise_capturable_graphs_seen: int = 0  # compiled parts
    num_backend_compilations: int = 0  # parts that a backend compiled or loaded
    num_gpu_runner_capture_triggers: int = 0  # attempts to record a call
    num_cudagraph_captured: int = 0  # recorded calls; PyTorch's own trees are not counted
    num_inductor_compiles: int = 0  # graphs of Inductor that inductor_pass rewrote
    num_eager_compiles: int = 0  # graphs that PyTorch runs as a whole
    num_cache_entries_updated: int = 0  # the same number
    num_compiled_artifacts_saved: int = 0  # rewritten graphs that were not in the compile cache
    num_compiled_artifacts_loaded: int = 0  # rewritten graphs found there
    num_aot_compiles: int = 0  # calls of compile_export
    num_aot_artifacts_saved: int = 0  # calls of Program.save
    num_aot_artifacts_loaded: int = 0  # calls of load_compiled
    stock_torch_compile_count: int = 0  # functions and models of torch.compile(backend="piecewise")

    def add(self, name: str, number: int = 1) -> None:
        """Increases a count; thread-safe."""
        with _lock:
            setattr(self, name, getattr(self, name) + number)

    def clone(self) -> "CompilationCounter":
        """Returns a copy."""
        with _lock:
            return dataclasses.replace(self)

    def reset(self) -> None:
        """Sets all counts to 0."""
        with _lock:
            for field in dataclasses.fields(self):
                setattr(self, field.name, 0)

    @contextlib.contextmanager
    def expect(self, **counts: int) -> t.Iterator[None]:
        """Checks by how much the counts increase inside a `with`. Raises AssertionError for another number, TypeError for unknown names."""
        known = {field.name for field in dataclasses.fields(self)}
        if unknown := sorted(set(counts) - known):
            raise TypeError(f"there is no count `{unknown[0]}`; counts are {', '.join(sorted(known))}")
        before = self.clone()
        yield
        after = self.clone()
        for name, want in counts.items():
            found = getattr(after, name) - getattr(before, name)
            assert found == want, f"{name} increased by {found}, not by {want}: from {getattr(before, name)} to {getattr(after, name)}"


compilation_counter = CompilationCounter()
_seen: "weakref.WeakSet[t.Any]" = weakref.WeakSet()


def note_model(model: t.Any, name: str) -> None:
    """Counts a model once, at its first compilation."""
    with _lock:
        try:
            if model in _seen:
                return
            _seen.add(model)
        except TypeError:  # without weak references or a hash
            return
    compilation_counter.add(name)


def note_decorated(function: t.Callable[..., t.Any]) -> None:
    """Excludes a function from the count of stock models."""
    with _lock:
        _seen.add(function)
