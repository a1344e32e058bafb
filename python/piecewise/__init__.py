"""Rewrite tensor dataflow graphs with rules, and inspect the results.

    import piecewise as pw
    s = pw.Session()
    g = s.load("model.json")
    run = s.run(g, s.rules(["llm"]), "o2", {"tp": "2"})
    run.count("add_rms"), run        # a notebook draws the run
    run.step("norm_quant")           # what one pass changed
    pw.diff(g, run.graph)            # what all did, as a table

    g = pw.load("model.json")        # without a session of one's own
    y, = g.run({"x": x, "w": w})     # arrays in and out
    g.nodes[0].op, g.inputs          # what it is made of
    pw.explain(g, "llm", "add_rms")  # a function for each command of pwr: docs/python.md
"""
from __future__ import annotations

import html as _html
import importlib as _importlib
import json as _json
import os as _os
import typing as _t

import _piecewise
from _piecewise import Error, Graph, PieceCall, Rules, Run, Session, __version__, engines

from . import colours as _colours
from . import commands as _commands
from . import exploring as _exploring
from .commands import *  # noqa: F401,F403
from .exploring import *  # noqa: F401,F403
from .counting import counted as _counted
from .graphs import Input, Node, Value

__all__ = [
    "Diff",
    "Error",
    "Graph",
    "Input",
    "Node",
    "Outputs",
    "PieceCall",
    "Rules",
    "Run",
    "Session",
    "Value",
    "__version__",
    "diff",
    "engines",
    "from_onnx",
    "load",
    "rules",
    "show",
    *_commands.__all__,
    *_exploring.__all__,
]

_CELL_LIMIT = 2 << 20  # bytes of a cell's output, as a notebook's file holds it


def _values(params: _commands.Params) -> _t.Dict[str, str]:
    return {name: str(value) for name, value in (params or {}).items()}


def _session_load(self, path: _commands.Path, symbols: _commands.Symbols = None) -> Graph:
    """Reads graph.json, .pwg, .pwb, .pt2 or an FX dump; `symbols` as "n=arg0_1.0,arg1_1.0", a list of such texts, or {"n": ["arg0_1.0"]} makes dims of a dump symbolic."""
    return _commands._graph(self, path, symbols, None)


def _session_loads(self, text: str, name: str = "text", symbols: _commands.Symbols = None) -> Graph:
    """Reads a graph from a string; see load."""
    return self.graph_text(text, name, _commands.symbol_texts(symbols))


_rules_of_list = Session.rules
_run_with_texts = Session.run


def _session_rules(self, *files: _t.Union[_commands.Path, _t.Sequence[_commands.Path]]) -> Rules:
    """Loads rule files, or library rules by name: s.rules("llm"), s.rules("mine.pwr", "norm"), or one list of them."""
    given = files[0] if len(files) == 1 and not isinstance(files[0], (str, _os.PathLike)) else files
    return _rules_of_list(self, [str(file) for file in given])


def _session_run(self, graph: Graph, rules: Rules, pipeline: str, params: _commands.Params = None) -> Run:
    """Rewrites a copy of the graph with a pipeline, and keeps the graph after each pass; params of the rules as {"tp": 2}."""
    return _run_with_texts(self, graph, rules, pipeline, _values(params))


def _session_bind_extern(self, name: str, kinds: _t.Sequence[str], function: _t.Callable[..., _t.Any]) -> None:
    """Binds an `extern` of rules loaded later to a Python function.

    `kinds` are the types of its arguments (int, float, bool, str, dtype, …). The function must be pure. A predicate returns a bool, any other function a number
    or a string; None means unknown.
    """
    _piecewise.bind_extern(self, name, list(kinds), function)


Session.bind_extern = _session_bind_extern
Session.load = _session_load
Session.loads = _session_loads
Session.rules = _session_rules
Session.run = _session_run


def load(text_or_path: _commands.Path, symbols: _commands.Symbols = None) -> Graph:
    """Loads a graph from a file or from the text itself: graph.json, .pwg, an FX dump, or (files only) .pt2, or an ONNX model with its weights."""
    text = str(text_or_path)
    if "\n" in text or ("{" in text and not _os.path.exists(text)):
        return _commands.shared_session().loads(text, symbols=symbols)
    return _commands.shared_session().load(text, symbols)


def from_onnx(model: _t.Any, symbols: _commands.Symbols = None) -> Graph:
    """Imports an ONNX model from its path, its bytes, or onnx's ModelProto. The graph holds the model's weights, so run() needs only its inputs."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, bytes):
        return _commands.shared_session().loads(model, "<bytes>/model.onnx", symbols)  # a folder that does not exist: no external data
    return _commands.shared_session().load(model, symbols)


def rules(*files: str) -> Rules:
    """Loads rule files, or library rules by name such as llm, for graphs from load()."""
    return _commands.shared_session().rules(list(files))


def _rewrite(self, rules: _commands.RulesLike, pipeline: str, params: _commands.Params = None) -> Graph:
    """Returns the graph after a pipeline of these rules: files, names of the library, or Rules of the graph's session."""
    return self.session.run(self, _commands._rules(self.session, rules), pipeline, params).graph


class Outputs(list):
    """The arrays that a graph returns, in order; `names` of their values; `written`: the new contents of written inputs, by input."""

    def __init__(self, names: _t.List[str], arrays: _t.List[_t.Any], written: _t.Dict[str, _t.Any]):
        super().__init__(arrays)
        self.names, self.written = names, written


def _run_graph(
    self,
    inputs: _t.Mapping[str, _t.Any],
    functions: _t.Optional[_t.Mapping[str, _t.Callable[..., _t.Any]]] = None,
    backend: str = "eager",
    tokens: _t.Optional[int] = None,
    symbols: _t.Optional[_t.Mapping[str, int]] = None,
) -> Outputs:
    """Runs the graph on arrays by input name: numpy arrays, or objects with __dlpack__ in CPU memory. Returns Outputs of numpy arrays.

    backend: eager, interpreter (exact), cpu, or cuda-host (planned and captured, on the emulated device). Values of symbols come from the arrays' shapes; `symbols` sets others, `tokens` that of
    the tokens. bf16 goes in and out as uint16, fp8 as uint8: the bits (ml_dtypes arrays, and bfloat16 tensors through DLPack, are also accepted).
    functions: callables that run opaque ops, {"mine.f": callable}. A callable receives the arguments of the call, with tensors as copied arrays. It may
    write into the arrays of operands that the op writes. It returns the result, a tuple of results, or None if the op has no results.
    """
    values = dict(symbols or {})
    if tokens is not None:
        values[self.tokens] = tokens
    return Outputs(*self.compute(dict(inputs), dict(functions or {}), backend, values))


def _bytes(text):
    return len(_json.dumps(text))


def _cut(text, limit):
    """Returns the lines that fit, and the number of the rest."""
    if _bytes(text) <= limit:
        return text
    lines, size, kept = text.splitlines(), 200, 0
    while kept < len(lines) and size + _bytes(lines[kept]) <= limit:
        size += _bytes(lines[kept])
        kept += 1
    return "\n".join([*lines[:kept], f"… and {len(lines) - kept} more lines, more than a cell may hold: .draw('txt') has all of them"])


def _cell(text, svg):
    """Returns text and, if both fit into a notebook cell, the SVG; otherwise a line that explains its absence."""
    text = _cut(text, _CELL_LIMIT // 2)
    element = svg[svg.index("<svg ") :]  # nbconvert takes no declaration of XML
    svg = element.replace("<svg ", '<svg style="max-width: 100%; height: auto" ', 1)
    if _bytes(text) + _bytes(svg) <= _CELL_LIMIT:
        return {"text/plain": text, "image/svg+xml": svg}
    return {
        "text/plain": f"{text}\nno picture: it has {_bytes(svg)} bytes, more than a cell may hold; open('picture.svg', 'wb').write(….draw('svg'))"
    }


def _bundle(self, include=None, exclude=None):
    return _cell(self.draw("txt").decode(), self.draw("svg").decode())


class _Frame:
    """The interactive page, with the picture as a fallback where pages are not shown (a code host, nbconvert output)."""

    def __init__(self, drawn):
        self.page = drawn.draw("html").decode()
        self.drawn = drawn

    def _repr_html_(self):
        return f'<iframe srcdoc="{_html.escape(self.page, quote=True)}" ' 'style="width:100%;height:36rem;border:1px solid #ccc"></iframe>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        page, still = self._repr_html_(), self.drawn._repr_mimebundle_()
        room = _CELL_LIMIT - _bytes(page)
        return {"text/html": page, **(still if sum(map(_bytes, still.values())) <= room else {"text/plain": repr(self.drawn)})}


def _show(self) -> _Frame:
    """Returns the interactive page in an iframe for a notebook."""
    frame = _Frame(self)
    if (size := _bytes(frame._repr_html_())) > _CELL_LIMIT:
        raise Error(
            f"the page takes {size} bytes, more than the {_CELL_LIMIT} a cell may hold; write it to a file: "
            "open('page.html', 'wb').write(….draw('html'))"
        )
    return frame


def show(graph_or_run: _t.Union[Graph, Run]) -> _Frame:
    """Returns the interactive page of a graph or a run in an iframe for a notebook."""
    return _show(graph_or_run)


class _Step:
    """The changes of one pass: the nodes that it added, removed, or changed, and their neighbors."""

    def __init__(self, run, number):
        self.run, self.number = run, number

    def draw(self, format: str = "svg") -> bytes:
        return self.run.draw(format, after=self.number, view="changes")

    def _repr_mimebundle_(self, include=None, exclude=None):
        return _cell(*(self.draw(format).decode() for format in ("txt", "svg")))


def _step(self, pass_: _t.Union[int, str]) -> _Step:
    """Draws the changes of a pass, given by name or by index in run.versions."""
    self.after(pass_)  # raises for an unknown pass
    return _Step(self, pass_)


class Diff:
    """The difference of two graphs: `rows` (change, times, op, first, what, where). False if they are equal up to names and order."""

    def __init__(self, found: _t.Dict[str, _t.Any]):
        self.rows = found.pop("rows")
        self.counts = found  # nodes: matched, changed, removed, added

    def __bool__(self):
        return bool(self.rows)

    def __repr__(self):
        if not self.rows:
            return f"equal up to names and order ({_counted(self.counts['matched'], 'node')})"
        lines = [
            f"{row['change']} {row['times']} × {row['op']}  {row['first']}: {row['what']}" + (f"  ({row['where']})" if row["where"] else "")
            for row in self.rows
        ]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        text = _cut(repr(self), _CELL_LIMIT // 4)
        columns = ["change", "times", "op", "first", "what", "where"]
        cells = "".join("<tr>" + "".join(f"<td>{_html.escape(str(row[c]))}</td>" for c in columns) + "</tr>" for row in self.rows)
        table = "<table><thead><tr>" + "".join(f"<th>{c}</th>" for c in columns) + f"</tr></thead><tbody>{cells}</tbody></table>"
        fits = self.rows and _bytes(text) + _bytes(table) <= _CELL_LIMIT
        return {"text/plain": text, "text/html": table} if fits else {"text/plain": text}


def diff(
    before: _commands.GraphLike,
    after: _commands.GraphLike,
    fold: bool = True,
    *,
    symbols: _commands.Symbols = None,
    session: _t.Optional[Session] = None,
    log: _commands.Log = None,
) -> Diff:
    """Compares two graphs of one session, or two files, ignoring node names; `fold` merges equal changes of repeated layers into one row.

    Returns a Diff: `rows` of change, times, op, first, what and where, as `pwr diff` prints them.
    """
    context = _commands._session_of(session, before, after)
    return Diff(_piecewise.compare(*(_commands._graph(context, graph, symbols, log) for graph in (before, after)), fold))


def load_ipython_extension(shell: _t.Any) -> None:
    """Registers the cell magic %%pwr for `%load_ext piecewise`."""
    from .magic import register

    register(shell)


Error._repr_html_ = lambda self: _colours.message_html(str(self))
Graph._repr_mimebundle_ = _bundle
Run._repr_mimebundle_ = _bundle
Graph.run = _run_graph
Graph.rewrite = _rewrite
Graph.show = _show
Run.show = _show
Run.step = _step
Graph.__repr__ = lambda self: f"<Graph {self.name}: {_counted(len(self), 'node')}>"
Run.__repr__ = (
    lambda self: f"<Run of {self.graph.name}: {_counted(len(self.before()), 'node')} → {len(self.graph)}, {_counted(sum(p['rewrites'] for p in self.passes), 'rewrite')}>"
)
Rules.__repr__ = lambda self: f"<Rules: {_counted(len(self.names), 'rule')}, pipelines {', '.join(self.pipelines) or 'none'}>"

if _os.environ.get("PIECEWISE_LENS"):
    from .lens import start_from_environment as _start_lens

    _start_lens()
