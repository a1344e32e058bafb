"""Orders of passes: `pwr explore`, and studies of many graphs."""
from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import _piecewise
from _piecewise import Session as _Session

from .commands import GraphLike, Log, Params, Path, Rows, RulesLike, Symbols, _graph, _param_texts, _rules, _session_of, _texts, _with_rules

__all__ = ["explore", "merge_studies", "read_study", "study", "study_page", "study_rows"]


_SPACE = "space passes before by subsets values token_ranges over sample seed shard backend tokens repeats most".split()


def _space_options(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns those arguments of explore or study that are options. None is omitted, so that the item of `space` applies."""
    out = {name: arguments[name] for name in _SPACE if arguments.get(name) is not None}
    for name in ("passes", "before", "by"):
        if name in out:
            out[name] = list(out[name])
    if "values" in out:
        out["values"] = [(name, [_text_of_value(value) for value in values]) for name, values in out["values"].items()]
    if "over" in out:
        out["over"] = [list(names) for names in out["over"]]
    if "token_ranges" in out:
        out["token_ranges"] = [tuple(each) for each in out["token_ranges"]]
    return out


def _text_of_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def explore(
    graph: GraphLike,
    rules: RulesLike,
    pipeline: str = "",
    params: Params = None,
    *,
    space: Optional[str] = None,
    passes: Optional[Sequence[str]] = None,
    before: Optional[Sequence[str]] = None,
    by: Optional[Sequence[str]] = None,
    subsets: Optional[bool] = None,
    values: Optional[Mapping[str, Sequence[Any]]] = None,
    token_ranges: Optional[Sequence[Tuple[int, int]]] = None,
    over: Optional[Sequence[Sequence[str]]] = None,
    backend: Optional[str] = None,
    tokens: Optional[int] = None,
    repeats: Optional[int] = None,
    most: int = 20,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, Any]:
    """Explores the orders of a pipeline's passes, or those that satisfy `before` ("a:b"): their costs, and which rules consume nodes of others' matches.

    `space` is an `explore` item of the rules; other arguments override it. `values` are of params, `over` lists of rules. Returns
    rows: `ends` (the best first, at most `most`), `thefts` and `pairs`; `settings`, if there are several; and `orders`, `graphs`,
    `runs`, `suggestion`.
    """
    options = _space_options(locals())
    return _with_rules(_piecewise.explore, graph, rules, params, symbols, session, log, pipeline, options)


def study(
    graphs: Union[Mapping[str, GraphLike], Sequence[Path]],
    rules: RulesLike,
    file: Path,
    pipeline: str = "",
    params: Params = None,
    *,
    space: Optional[str] = None,
    passes: Optional[Sequence[str]] = None,
    before: Optional[Sequence[str]] = None,
    by: Optional[Sequence[str]] = None,
    subsets: Optional[bool] = None,
    values: Optional[Mapping[str, Sequence[Any]]] = None,
    token_ranges: Optional[Sequence[Tuple[int, int]]] = None,
    over: Optional[Sequence[Sequence[str]]] = None,
    sample: Optional[int] = None,
    seed: Optional[int] = None,
    shard: str = "1/1",
    backend: Optional[str] = None,
    tokens: Optional[int] = None,
    repeats: Optional[int] = None,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, int]:
    """Explores many graphs into a SQLite file, one row for each order. Resumes an interrupted study; `shard` selects one of several parts.

    Graphs are paths, or named ones. Returns how many `units` there are, how many were `done` before, and `runs` of a pass.
    """
    options = _space_options(locals())
    named = graphs if isinstance(graphs, Mapping) else {os.fspath(path): path for path in graphs}
    context = _session_of(session, *named.values(), rules)
    loaded = _rules(context, rules)
    given = [(name, _graph(context, graph, symbols, log)) for name, graph in named.items()]
    return _piecewise.study(given, loaded, _param_texts(params), pipeline, os.fspath(file), options, log)


def merge_studies(file: Path, parts: Sequence[Path]) -> None:
    """Merges studies into one file and deduplicates equal rows. Returns nothing; read with read_study."""
    _piecewise.merge_studies(os.fspath(file), _texts(parts))


def read_study(file: Path, *, most: int = 20) -> Dict[str, Any]:
    """Returns the results of a study: rows of `blocks` (a graph under a setting), `best_orders` over all of them, and `thefts`; and `suggestion`."""
    return _piecewise.read_study(os.fspath(file), most)


def study_rows(file: Path) -> Rows:
    """Returns a row for each order of a graph: `graph`, `setting`, `unit`, `order`, `state`, its costs, and whether it ends as the `written` order does."""
    return _piecewise.study_rows(os.fspath(file))


def study_page(file: Path, *, title: str = "", most: int = 20) -> str:
    """Returns the page of `pwr explore --report`, as HTML."""
    return _piecewise.study_page(os.fspath(file), most, title or os.fspath(file))
