"""Where the options of the integration come from: vLLM's additional config, or an environment variable that its processes inherit."""
from __future__ import annotations

import json
import os
import typing as t

from ..pytorch.options import Options

VARIABLE = "PIECEWISE_VLLM"
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


def of_environment(variable: str = VARIABLE) -> t.Optional[Options]:
    """Returns the options of an environment variable: a JSON object, or 1 for the defaults; None without it. Raises ValueError for anything else."""
    text = os.environ.get(variable, "")
    if text in ("", "0"):
        return None
    try:
        given = {} if text == "1" else json.loads(text)
    except ValueError as why:
        raise ValueError(f'{variable} must be 1 or a JSON object such as {{"pipeline": "o2"}}: {why}') from None
    return _parsed(given, variable)


def of_config(config: t.Any) -> t.Optional[Options]:
    """Returns the options that vLLM's config requests; None if it does not request Piecewise. `config` may be None."""
    given = getattr(config, "additional_config", None)
    if isinstance(given, dict) and _KEY in given:
        return _parsed(given[_KEY], f'additional_config["{_KEY}"]')
    return of_environment()
