"""Parsing of torch.compile's `options`."""
from __future__ import annotations

import dataclasses
import difflib
import os
import typing as t

Path = str
Paths = t.Tuple[str, ...]
Params = t.Tuple[t.Tuple[str, str], ...]
Names = t.Tuple[str, ...]
Sizes = t.Optional[t.Tuple[int, ...]]

_CHOICES = {
    "driver": ("cuda", "host"),
    "capture": ("none", "torch", "piecewise"),
    "mode": ("piecewise", "full", "full_decode_only", "full_and_piecewise"),
    "outputs": ("copied", "static"),
}
FROZEN = "frozen"  # the rules for frozen weights, and their pipeline
GROUPED = "grouped_attention"  # the rules for attention on the CPU, and their pipeline


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of the backend; two backends with equal options are equal.

    rules: files, or names of the library. pipeline: one of theirs; "" rewrites nothing. params of the rules as {"tp": 2}. backend: eager, cpu, interpreter, cuda; auto: cpu or cuda, by the
    tensors' device. driver of cuda: the CUDA driver, or host, which emulates a device on CPU tensors.
    capture: "torch" captures whole graphs on a device as PyTorch's CUDA graphs, "piecewise" also the parts between PyTorch's ops; "none" launches.
    With "piecewise": at: names of ops that stay PyTorch's. sizes: the token counts to capture, () for exact ones; None: those of `pwr plan`. mode: what to capture: "piecewise" the parts,
    "full" whole graphs, "full_decode_only" whole graphs at these sizes, "full_and_piecewise" these and the parts of other calls. outputs: "static" returns results without copies, and later
    calls overwrite them.
    own_attention: Piecewise runs calls of vLLM's attention, each as a new sequence; by default the program runs them, because it owns their caches.
    frozen: the backend prepacks weights, and computes once what depends on them alone. Changes that PyTorch counts take effect at once; others raise Error at a later call. Not for training.
    prove: prove each rewrite, by its rule or individually; the report names those that are not proved.
    check: also run the first call at each size in PyTorch, and raise Error if the numbers differ; with `frozen`, compare all weights at each call.
    report: a folder for a page for each graph.
    """

    rules: Paths = ("llm",)
    pipeline: str = "o2"
    params: Params = ()
    backend: str = "auto"
    driver: str = "cuda"
    capture: str = "none"
    at: Names = ()
    sizes: Sizes = None
    mode: str = "full_and_piecewise"
    outputs: str = "copied"
    own_attention: bool = False
    frozen: bool = False
    prove: bool = False
    check: bool = False
    report: Path = ""

    @classmethod
    def of(cls, given: t.Optional[t.Mapping[str, t.Any]]) -> "Options":
        """Parses a dict; raises ValueError for an unknown name or a value of the wrong type."""
        values = dict(given or {})
        kinds = {field.name: _KINDS[str(field.type)] for field in dataclasses.fields(cls)}
        for name in values:
            if name not in kinds:
                near = difflib.get_close_matches(str(name), kinds, 1)
                raise ValueError(
                    f"piecewise has no option `{name}`; options are {', '.join(kinds)}" + (f": did you mean `{near[0]}`?" if near else "")
                )
        for name, value in values.items():
            kind = kinds[name]
            try:
                values[name] = kind.read(value)
            except (TypeError, ValueError):
                raise ValueError(f"piecewise's option `{name}` must be {kind.words}, not {value!r}") from None
        if values.get("frozen") and values.get("backend", "auto") not in ("auto", "cpu", "cuda"):
            raise ValueError("piecewise can freeze weights only with the backends `cpu` and `cuda`: leave out `frozen`, or `backend`")
        for name, allowed in _CHOICES.items():
            if name in values and values[name] not in allowed:
                raise ValueError(f"piecewise's option `{name}` must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {values[name]!r}")
        out = cls(**values)
        if out.capture != "none":
            if out.backend not in ("auto", "cuda"):
                raise ValueError(f"piecewise captures only launches on a device, not the backend `{out.backend}`: leave out `capture`, or `backend`")
            if out.frozen:
                raise ValueError("piecewise cannot capture graphs with frozen weights: leave out `capture`, or `frozen`")
        if out.capture != "piecewise" and (
            given := [name for name in ("at", "sizes", "mode", "outputs") if getattr(out, name) != getattr(cls, name)]
        ):
            raise ValueError(f'piecewise\'s option `{given[0]}` needs "capture": "piecewise"')
        return out

    def with_mode(self, mode: t.Any) -> "Options":
        """Returns the options for a mode of torch.compile; raises ValueError for an unknown mode, or one that contradicts `capture`."""
        if mode in (None, "default"):
            return self
        if mode != "reduce-overhead":
            raise ValueError(
                f"piecewise has no mode `{mode}`, only `reduce-overhead`: leave it out, and use options instead, such as {{'frozen': True}}"
            )
        if self.capture == "piecewise":
            raise ValueError('the mode `reduce-overhead` is the option "capture": "torch", but the backend has "piecewise": leave out one of them')
        return Options.of({**{field.name: getattr(self, field.name) for field in dataclasses.fields(self)}, "capture": "torch"})


class _Kind(t.NamedTuple):
    """The type of an option's values."""

    words: str
    read: t.Callable[[t.Any], t.Any]


def _text(value: t.Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: t.Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _path(value: t.Any) -> str:
    return "" if value is None else os.fsdecode(value)


def _paths(value: t.Any) -> t.Tuple[str, ...]:
    return (os.fsdecode(value),) if isinstance(value, (str, os.PathLike)) else tuple(map(os.fsdecode, value))


def _names(value: t.Any) -> t.Tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(_text, value))


def _sizes(value: t.Any) -> t.Optional[t.Tuple[int, ...]]:
    if value is None:
        return None
    if not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in value):
        raise ValueError
    return tuple(sorted(set(value)))


def _params(value: t.Any) -> t.Tuple[t.Tuple[str, str], ...]:
    pairs = dict(value).items()
    if not all(isinstance(name, str) and isinstance(number, (int, float, str)) for name, number in pairs):
        raise TypeError
    return tuple(sorted((name, str(number)) for name, number in pairs))


_KINDS = {
    "bool": _Kind("True or False", _flag),
    "str": _Kind("a text", _text),
    "Path": _Kind("a path", _path),
    "Paths": _Kind("a path or the name of a file of the library, or a list of these", _paths),
    "Names": _Kind("the name of an op, or a list of these", _names),
    "Sizes": _Kind("a list of positive token counts, or None", _sizes),
    "Params": _Kind('a dict of numbers by name, as {"tp": 2}', _params),
}
