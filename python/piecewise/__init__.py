"""Rewrite tensor dataflow graphs with rules, and look at what happened.

    import piecewise as pw
    s = pw.Session()
    g = s.load("model.json")
    run = s.run(g, s.rules(["llm"]), "o2", {"tp": "2"})
    run.count("add_rms"), run        # a notebook draws the run
    run.step("norm_quant")           # what one pass changed
    pw.diff(g, run.graph)            # what all did, as a table

    g = pw.load("model.json")        # without a session of one's own
    y, = g.run({"x": x, "w": w})     # numpy arrays in and out
"""
import html as _html
import json as _json

import _piecewise
from _piecewise import Error, Graph, Rules, Run, __version__, engines

__all__ = ["Diff", "Error", "Graph", "Outputs", "Rules", "Run", "Session", "__version__", "diff", "engines", "load", "rules", "run_model", "show"]

_CELL_LIMIT = 2 << 20  # bytes of a cell's output, as a notebook's file holds it


class Session(_piecewise.Session):
    """Graphs and rules that are used together; what they share is interned once."""

    def load(self, path, symbols=None):
        """Reads graph.json, .pwg or an FX dump; `symbols` as "n=arg0_1.0,arg1_1.0", a list of such texts, or {"n": ["arg0_1.0"]} makes dims of a dump symbolic."""
        with open(path, encoding="utf-8") as file:
            return self.loads(file.read(), str(path), symbols)

    def loads(self, text, name="text", symbols=None):
        """The same from a string."""
        return self.graph_text(text, name, _symbols(symbols))

    def run(self, graph, rules, pipeline, params=None):
        """Rewrites a copy of the graph with a pipeline; params of the rules as {"tp": 2}."""
        return super().run(graph, rules, pipeline, {name: str(value) for name, value in (params or {}).items()})


def _symbols(given):
    """As the command line spells them."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, dict):
        return [f"{symbol}={dims if isinstance(dims, str) else ','.join(dims)}" for symbol, dims in given.items()]
    return list(given or [])


def run_model(path, rules=(), pipeline="", params=None, *, symbols=None, session=None, **options):
    """The main job, as `pwr run` does it: load, rewrite, split, plan, build, run, and with check=True compare.

    options: backend, driver, strict, fuse, schedules, seed, tokens, steps, weights, map, plan, split_at, fold, max_tokens, ranges, sizes, mode, execute,
    check, pad, ranks; they mean what the options of `pwr run` of these names do (execute=False: as `pwr report`).
    Returns a dict: `steps` and `failed`, how many ran and how many differ by more than they may; `log`, what `pwr run` says; `graphs`, for each graph that the pipeline makes
    a dict of `graph`, `passes`, `rules`, `pieces`, `steps`, `numbers` (rows as dicts), `plan` (its JSON), `kernels` (sources by name), `counters` and `outputs` (for each step arrays by name).
    """
    return _piecewise.run_request(
        session or _session(),
        str(path),
        _symbols(symbols),
        [rules] if isinstance(rules, str) else list(rules),
        pipeline,
        [f"{name}={value}" for name, value in (params or {}).items()],
        options,
    )


_shared = None


def _session():
    """One for all graphs and rules that are loaded without a session: the op library is read once."""
    global _shared
    if _shared is None:
        _shared = Session()
    return _shared


def load(text_or_path, symbols=None):
    """A graph from a file, or from the text itself: graph.json, .pwg or an FX dump."""
    text = str(text_or_path)
    if "\n" in text or text.lstrip().startswith("{"):
        return _session().loads(text, symbols=symbols)
    return _session().load(text, symbols)


def rules(*files):
    """Rule files, or names of the library such as llm, for graphs that load() made."""
    return _session().rules(list(files))


def _rewrite(self, rules, pipeline, params=None):
    """The graph after a pipeline of these rules, which are of the graph's session: rules("llm") for graphs of load()."""
    return _session().run(self, rules, pipeline, params or {}).graph


class Outputs(list):
    """The arrays that a graph returns, in order; `names` of their values; `written`: what inputs hold afterwards, by input."""

    def __init__(self, names, arrays, written):
        super().__init__(arrays)
        self.names, self.written = names, written


def _run_graph(self, inputs, functions=None, backend="eager", tokens=None, symbols=None):
    """Runs the graph on numpy arrays, one for each input that is read, by name.

    backend: eager, interpreter (exact), cpu, or cuda-host (planned and captured, on the emulated device). Values of symbols are read off the arrays' shapes; `symbols` gives others, `tokens` that of
    the tokens. bf16 goes in and out as uint16, fp8 as uint8: the bits (ml_dtypes arrays are taken too).
    functions: what runs opaque ops, {"mine.f": callable}. A callable gets the call as it was written, tensors as arrays of its own; it may
    write into the arrays of operands that the op writes, and returns the result, a tuple of results, or None where the op has none.
    """
    values = dict(symbols or {})
    if tokens is not None:
        values[self.tokens] = tokens
    return Outputs(*self.compute(dict(inputs), dict(functions or {}), backend, values))


def _bytes(text):
    return len(_json.dumps(text))


def _cut(text, limit):
    """The lines that fit, and how many more there are."""
    if _bytes(text) <= limit:
        return text
    lines, size, kept = text.splitlines(), 200, 0
    while kept < len(lines) and size + _bytes(lines[kept]) <= limit:
        size += _bytes(lines[kept])
        kept += 1
    return "\n".join([*lines[:kept], f"… and {len(lines) - kept} more lines, more than a cell may hold: .draw('txt') has all of them"])


def _cell(text, svg):
    """Text always; the SVG where both fit into a cell, and a line that says so where not."""
    text = _cut(text, _CELL_LIMIT // 2)
    if _bytes(text) + _bytes(svg) <= _CELL_LIMIT:
        return {"text/plain": text, "image/svg+xml": svg}
    return {
        "text/plain": f"{text}\nno picture: it has {_bytes(svg)} bytes, more than a cell may hold; open('picture.svg', 'wb').write(….draw('svg'))"
    }


def _bundle(self, include=None, exclude=None):
    return _cell(self.draw("txt").decode(), self.draw("svg").decode())


class _Frame:
    def __init__(self, page):
        self.page = page

    def _repr_html_(self):
        return f'<iframe srcdoc="{_html.escape(self.page, quote=True)}" ' 'style="width:100%;height:36rem;border:1px solid #ccc"></iframe>'


def show(graph_or_run):
    """The interactive page in an iframe."""
    frame = _Frame(graph_or_run.draw("html").decode())
    if (size := _bytes(frame._repr_html_())) > _CELL_LIMIT:
        raise Error(
            f"the page takes {size} bytes, more than the {_CELL_LIMIT} a cell may hold; write it to a file: "
            "open('page.html', 'wb').write(….draw('html'))"
        )
    return frame


class _Step:
    """What one pass of a run changed."""

    def __init__(self, run, number):
        self.run, self.number = run, number

    def _repr_mimebundle_(self, include=None, exclude=None):
        return _cell(*(self.run.draw(format, after=self.number).decode() for format in ("txt", "svg")))


def _step(self, pass_):
    """A picture of what a pass changed; the pass by its name or its place among run.versions."""
    self.after(pass_)  # complains of one that there was not
    return _Step(self, pass_)


class Diff:
    """What differs between two graphs: `rows` (change, times, op, first, what, where); false where they are equal up to names and order."""

    def __init__(self, found):
        self.rows = found.pop("rows")
        self.counts = found  # nodes: matched, changed, removed, added

    def __bool__(self):
        return bool(self.rows)

    def __repr__(self):
        if not self.rows:
            return f"equal up to names and order ({self.counts['matched']} nodes)"
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


def diff(before, after, fold=True):
    """What differs between two graphs of one session, whatever their nodes are called; `fold`: equal changes of repeated layers are one row."""
    return Diff(_piecewise.compare(before, after, fold))


Graph._repr_mimebundle_ = _bundle
Run._repr_mimebundle_ = _bundle
Graph.run = _run_graph
Graph.rewrite = _rewrite
Graph.show = show
Run.show = show
Run.step = _step
Graph.__repr__ = lambda self: f"<Graph {self.name}: {len(self)} nodes>"
Rules.__repr__ = lambda self: f"<Rules: {len(self.names)} rules, pipelines {', '.join(self.pipelines) or 'none'}>"
