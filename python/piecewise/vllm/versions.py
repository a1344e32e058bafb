"""The versions of vLLM that the integration supports, and a check of the interfaces that it relies on."""
from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import typing as t

LEAST, BELOW = (0, 33), (0, 34)

# The parameters of each function that the integration calls or overrides.
_SIGNATURES = {
    "vllm.compilation.backends:make_compiler": ("compilation_config", "use_aot_compile"),
    "vllm.compilation.compiler_interface:InductorStandaloneAdaptor.__init__": ("self", "save_format", "use_aot_compile"),
    "vllm.compilation.compiler_interface:InductorStandaloneAdaptor.initialize_cache": ("self", "cache_dir", "disable_cache", "prefix"),
    "vllm.compilation.compiler_interface:InductorStandaloneAdaptor.compute_hash": ("self", "vllm_config"),
    "vllm.compilation.compiler_interface:InductorStandaloneAdaptor.compile": (
        "self",
        "graph",
        "example_inputs",
        "compiler_config",
        "compile_range",
        "key",
    ),
    "vllm.compilation.compiler_interface:InductorStandaloneAdaptor.load": (
        "self",
        "handle",
        "graph",
        "example_inputs",
        "graph_index",
        "compile_range",
    ),
    "vllm.compilation.compiler_interface:is_compile_cache_enabled": ("vllm_additional_inductor_config",),
    "vllm.compilation.passes.inductor_pass:InductorPass.uuid": ("self",),
    "vllm.compilation.passes.inductor_pass:InductorPass.is_applicable_for_range": ("self", "compile_range"),
    "vllm.compilation.passes.inductor_pass:get_pass_context": (),
    "vllm.compilation.passes.pass_manager:PostGradPassManager.configure": ("self", "config"),
    "vllm.config:get_current_vllm_config_or_none": (),
}


def _supported() -> str:
    return f"vLLM >= {'.'.join(map(str, LEAST))}, < {'.'.join(map(str, BELOW))}"


def _version(text: str) -> t.Tuple[int, ...]:
    """Returns the first two numbers of a version."""
    numbers = []
    for part in text.split("+")[0].split(".")[:2]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def _found(name: str) -> t.Any:
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _wrong_signature(name: str, wanted: t.Tuple[str, ...]) -> str:
    """Returns the difference between a function and the one that the integration was written for; empty if there is none."""
    try:
        given = tuple(inspect.signature(_found(name)).parameters)
    except (ImportError, AttributeError):
        return f"{name} does not exist"
    return "" if given == wanted else f"{name} takes ({', '.join(given)}), expected ({', '.join(wanted)})"


def problems() -> t.List[str]:
    """Returns why this vLLM is not supported: its version, or interfaces that differ. Empty if it is."""
    version = importlib.metadata.version("vllm")
    wrong = list(filter(None, (_wrong_signature(name, wanted) for name, wanted in _SIGNATURES.items())))
    inside = LEAST <= _version(version) < BELOW
    if inside and not wrong:
        return []
    return [f"this is vLLM {version}; piecewise supports {_supported()}", *wrong] if wrong or not inside else []
