"""What PyTorch's guards say of a graph's symbols: a compiled graph is called only where all of them hold."""
from __future__ import annotations

import math
import typing as t

import sympy
import torch
from torch.utils._sympy.functions import Mod, PythonMod

_MOST = 1 << 40  # the largest extent of the library
_MOST_TRIED = 512  # values of a symbol that are tried one by one


class Range(t.NamedTuple):
    """The values that a symbol can have."""

    least: int
    most: int
    multiple: int


def shape_env(graph: torch.fx.Graph) -> t.Any:
    """What knows the symbols of the graph's inputs; None: there are none."""
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for number in (value, *(value.shape if isinstance(value, torch.Tensor) else ())):
            if isinstance(number, torch.SymInt):
                return number.node.shape_env
    return None


def _guards(env: t.Any) -> t.List[t.Any]:
    return [env.replace(guard.expr) for guard in env.guards]


def _multiple(symbol: sympy.Symbol, guards: t.Iterable[t.Any]) -> int:
    """What the symbol is a multiple of."""
    out = 1
    for guard in guards:
        if isinstance(guard, sympy.Eq) and guard.rhs == 0 and isinstance(guard.lhs, (Mod, PythonMod)):
            number, by = guard.lhs.args
            if number == symbol and by.is_Integer:
                out = math.lcm(out, int(by))
    return out


def _holds(guard: t.Any, symbol: sympy.Symbol, value: int) -> bool:
    """False where the guard certainly fails."""
    return guard.xreplace({symbol: sympy.Integer(value)}) is not sympy.false


def symbol_range(env: t.Any, name: str) -> Range:
    """As the guards leave it. Of few values each is tried, so that a graph for one size alone is known to be one."""
    known = {symbol.name: (symbol, bounds) for symbol, bounds in env.var_to_range.items()}
    if name not in known:
        return Range(0, _MOST, 1)
    symbol, bounds = known[name]
    least = max(int(bounds.lower), 0) if isinstance(bounds.lower, sympy.Integer) else 0
    most = min(int(bounds.upper), _MOST) if isinstance(bounds.upper, sympy.Integer) else _MOST
    guards = [guard for guard in _guards(env) if guard.free_symbols == {symbol}]
    multiple = _multiple(symbol, guards)
    if most - least < _MOST_TRIED:
        left = [value for value in range(least, most + 1) if all(_holds(guard, symbol, value) for guard in guards)]
        if left:
            least, most = left[0], left[-1]
    return Range(least, most, multiple)


def equal_sizes(env: t.Any, names: t.Container[str]) -> t.List[t.Tuple[str, str]]:
    """Pairs of expressions of these symbols that have one value wherever the graph is called, as torch prints them."""
    out = []
    for guard in _guards(env):
        if not isinstance(guard, sympy.Eq) or not all(symbol.name in names for symbol in guard.free_symbols):
            continue
        if guard.rhs == 0 and isinstance(guard.lhs, (Mod, PythonMod)):
            number, by = guard.lhs.args
            out.append((f"({by})*(({number})//({by}))", str(number)))
        elif not guard.has(Mod, PythonMod):
            out.append((str(guard.lhs), str(guard.rhs)))
    return list(dict.fromkeys(out))
