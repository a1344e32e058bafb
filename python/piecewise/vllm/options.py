"""Where the options of the integration come from: vLLM's additional config, or an environment variable that its processes inherit."""
from __future__ import annotations

import json
import os
import typing as t

from ..pytorch.options import Options

VARIABLE = "PIECEWISE_VLLM"
RULES_VARIABLE = "PIECEWISE_VLLM_RULES"
PLACES = ("after", "before", "compare")  # of rules, relative to vLLM's passes
_KEY = "piecewise"  # in vLLM's additional config
_OWN_CACHES = 'vLLM captures its own CUDA graphs and owns the weights: leave out `{}` from the options of "piecewise"'


def _parsed(given: t.Any, origin: str) -> Options:
    if not isinstance(given, dict):
        raise ValueError(f'{origin} must be an object of options such as {{"pipeline": "o2"}}, not {given!r}')
    options = Options.of(given)
    for name in ("capture", "frozen"):
        if getattr(options, name) != getattr(Options(), name):
            raise ValueError(f"{origin}: " + _OWN_CACHES.format(name))
    return options


def _object(variable: str) -> t.Optional[t.Any]:
    """Returns the JSON value of an environment variable, {} for 1, None without it. Raises ValueError for anything else."""
    text = os.environ.get(variable, "")
    if text in ("", "0"):
        return None
    try:
        return {} if text == "1" else json.loads(text)
    except ValueError as why:
        raise ValueError(f'{variable} must be 1 or a JSON object such as {{"pipeline": "o2"}}: {why}') from None


def of_environment() -> t.Optional[Options]:
    """Returns the options of the compiler in the environment; None without them. Raises ValueError for mistakes."""
    given = _object(VARIABLE)
    return None if given is None else _parsed(given, VARIABLE)


def rules_of_environment() -> t.Optional[t.Tuple[Options, str]]:
    """Returns the options of the rules in the environment and their place; None without them. Raises ValueError for mistakes."""
    given = _object(RULES_VARIABLE)
    if given is None:
        return None
    place = given.pop("place", PLACES[0]) if isinstance(given, dict) else PLACES[0]
    if place not in PLACES:
        raise ValueError(f"{RULES_VARIABLE}: `place` must be {', '.join(PLACES[:-1])} or {PLACES[-1]}, not {place!r}")
    options = _parsed(given, RULES_VARIABLE)
    if unused := {name for name in given if name not in ("rules", "pipeline", "params", "report")}:
        raise ValueError(f"{RULES_VARIABLE}: a pass has no option {', '.join(sorted(unused))}; it has rules, pipeline, params, place, report")
    return options, place


def of_config(config: t.Any) -> t.Optional[Options]:
    """Returns the options that vLLM's config requests; None if it does not request Piecewise. `config` may be None."""
    given = getattr(config, "additional_config", None)
    if isinstance(given, dict) and _KEY in given:
        return _parsed(given[_KEY], f'additional_config["{_KEY}"]')
    return of_environment()
