"""What torch.compile's `options` may hold."""
from __future__ import annotations

import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True)
class Options:
    """What torch.compile's `options` may hold; two backends of equal options are equal.

    rules: files, or names of the library. pipeline: one of theirs; "" rewrites nothing. params of the rules as {"tp": 2}. backend: eager, cpu, interpreter.
    own_attention: calls of vLLM's attention are Piecewise's, each of a new sequence; without it they are the program's, as their caches are.
    frozen: weights are kept in a form of the backend's own; changes that PyTorch counts are seen at once, others by and by, as an Error. Not in training.
    prove: each rewrite is proved, by its rule or by itself; the report names those that are left.
    check: the first call at each size runs in PyTorch too, and other numbers raise Error; with `frozen`, all weights are compared at each call. report: a folder, which gets a page for each graph.
    """

    rules: t.Tuple[str, ...] = ("llm",)
    pipeline: str = "o2"
    params: t.Tuple[t.Tuple[str, str], ...] = ()
    backend: str = "cpu"
    own_attention: bool = False
    frozen: bool = False
    prove: bool = False
    check: bool = False
    report: str = ""

    @classmethod
    def of(cls, given: t.Optional[t.Mapping[str, t.Any]]) -> "Options":
        """From a dict; ValueError for a name that there is none of."""
        values = dict(given or {})
        names = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in names:
                raise ValueError(f"piecewise has no option `{name}`; options are {', '.join(names)}")
        if "rules" in values:
            values["rules"] = (values["rules"],) if isinstance(values["rules"], str) else tuple(map(str, values["rules"]))
        if "params" in values:
            values["params"] = tuple(sorted((str(k), str(v)) for k, v in dict(values["params"]).items()))
        if values.get("frozen") and values.get("backend", "cpu") != "cpu":
            raise ValueError("piecewise freezes weights with the backend `cpu` alone: leave out `frozen`, or `backend`")
        if "report" in values:
            values["report"] = str(values["report"] or "")
        return cls(**values)
