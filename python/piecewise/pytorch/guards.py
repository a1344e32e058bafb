"""Facts about a graph's symbols from PyTorch's guards: a compiled graph is called only if all guards hold."""
from __future__ import annotations

import math
import typing as t

import sympy
import torch
from torch.utils._sympy.functions import Mod, PythonMod

_MOST = 1 << 40  # the largest extent that the library supports
_MOST_TRIED = 512  # maximum values of a symbol to try individually


class Range(t.NamedTuple):
    """The range of values of a symbol."""

    least: int
    most: int
    multiple: int


def shape_env(graph: torch.fx.Graph) -> t.Any:
    """Returns the ShapeEnv of the graph's inputs; None without symbols."""
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for number in (value, *(value.shape if isinstance(value, torch.Tensor) else ())):
            if isinstance(number, torch.SymInt):
                return number.node.shape_env
    return None


def _guards(env: t.Any) -> t.List[t.Any]:
    return [env.replace(guard.expr) for guard in env.guards]


def conditions(env: t.Any, names: t.Container[str]) -> t.List[t.Any]:
    """Returns the guards on these symbols."""
    guards = _guards(env) if env is not None else []
    return [guard for guard in guards if guard.free_symbols and all(symbol.name in names for symbol in guard.free_symbols)]


def _without_remainders(number: t.Any, by: t.Any) -> t.Any:
    """Simplifies a number modulo `by`: replaces each term x % (c * by) by x."""
    terms = []
    for term in sympy.Add.make_args(number):
        factor, rest = term.as_coeff_Mul()
        inner = isinstance(rest, (Mod, PythonMod)) and rest.args[1].is_Integer and rest.args[1] % by == 0
        terms.append(factor * _without_remainders(rest.args[0], by) if inner else term)
    return sympy.Add(*terms)


def _divided(guard: t.Any) -> t.Optional[t.Tuple[t.Any, t.Any]]:
    """Returns (number, by) if the guard states that `by` divides the number."""
    if not isinstance(guard, sympy.Eq) or guard.rhs != 0 or not isinstance(guard.lhs, (Mod, PythonMod)):
        return None
    number, by = guard.lhs.args
    if by.is_Integer:
        number = _without_remainders(number, by)
    return (-number if number.could_extract_minus_sign() else number), by


def _multiple(symbol: sympy.Symbol, guards: t.Iterable[t.Any]) -> int:
    """Returns the known divisor of the symbol."""
    found = [divided[1] for guard in guards if (divided := _divided(guard)) is not None and divided[0] == symbol]
    return math.lcm(*(int(by) for by in found if by.is_Integer))


def _holds(guard: t.Any, symbol: sympy.Symbol, value: int) -> bool:
    """Returns False if the guard certainly fails."""
    return guard.xreplace({symbol: sympy.Integer(value)}) is not sympy.false


def symbol_range(env: t.Any, name: str) -> Range:
    """Returns a symbol's range under the guards. A small range is tested value by value, so that a static size is recognized."""
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
    """Returns pairs of expressions of these symbols that are equal whenever the graph is called, as torch prints them."""
    out = []
    for guard in _guards(env):
        if not isinstance(guard, sympy.Eq) or not all(symbol.name in names for symbol in guard.free_symbols):
            continue
        if (divided := _divided(guard)) is not None:
            number, by = divided
            out.append((f"({by})*(({number})//({by}))", str(number)))
        elif not guard.has(Mod, PythonMod):
            out.append((str(guard.lhs), str(guard.rhs)))
    return list(dict.fromkeys(out))
