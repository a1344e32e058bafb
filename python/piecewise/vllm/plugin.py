"""The general plugin: lets vLLM make Piecewise the compiler of its pieces if its config requests that."""
from __future__ import annotations

import functools
import logging
import typing as t

from . import versions

_log = logging.getLogger("vllm.piecewise")
_MARK = "piecewise_original"


def register() -> None:
    """Adds the compiler to vLLM's make_compiler. vLLM calls it in each process, possibly several times; only the first call has an effect."""
    problems = versions.problems()
    try:
        from vllm.compilation import backends
    except ImportError as why:
        _log.error("piecewise cannot be a compiler of vLLM: %s", why)
        return
    original = getattr(backends, "make_compiler", None)
    if original is None:
        _log.error("piecewise cannot be a compiler of vLLM: %s", "; ".join(problems))
    elif not hasattr(original, _MARK):
        made = functools.update_wrapper(functools.partial(_make_compiler, original, problems), original)  # with its signature
        setattr(made, _MARK, original)
        backends.make_compiler = made
        _add_rules(problems)


def _add_rules(problems: t.Sequence[str]) -> None:
    """Makes vLLM use the pass manager with rules if the environment has some."""
    from .options import RULES_VARIABLE, rules_of_environment

    if rules_of_environment() is None:
        return
    if problems:
        raise RuntimeError(f"{RULES_VARIABLE} requests rules of piecewise, but {'; '.join(problems)}")
    from vllm.platforms import current_platform

    type(current_platform).get_pass_manager_cls = classmethod(lambda cls: "piecewise.vllm.comparison.RulesPassManager")


def _make_compiler(original: t.Callable[..., t.Any], problems: t.Sequence[str], *given: t.Any, **named: t.Any) -> t.Any:
    """Returns Piecewise's compiler if vLLM's config requests it, otherwise vLLM's own."""
    if problems:
        from .options import VARIABLE, of_environment

        if of_environment() is not None:
            raise RuntimeError(f"{VARIABLE} requests piecewise as the compiler, but {'; '.join(problems)}")
        return original(*given, **named)
    from .compiler import PiecewiseCompiler, requested

    options = requested()
    if options is None:
        return original(*given, **named)
    return _ours(PiecewiseCompiler, options, original, *given, **named)


def _ours(
    kind: t.Callable[..., t.Any],
    options: t.Any,
    original: t.Callable[..., t.Any],
    compilation_config: t.Any,
    *,
    use_aot_compile: bool,
) -> t.Any:
    import vllm.envs

    if compilation_config.backend != "inductor":
        _log.warning("piecewise compiles no pieces: the backend is `%s`, not `inductor`", compilation_config.backend)
        return original(compilation_config, use_aot_compile=use_aot_compile)
    if use_aot_compile and vllm.envs.VLLM_USE_MEGA_AOT_ARTIFACT:
        raise RuntimeError("piecewise needs VLLM_USE_MEGA_AOT_ARTIFACT=0 in the environment: vLLM's combined artifact holds only Inductor's pieces")
    return kind(options, compilation_config.compile_cache_save_format, use_aot_compile=use_aot_compile)
