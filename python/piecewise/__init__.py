"""Rewrite tensor dataflow graphs with rules, and look at what happened.

    import piecewise as pw
    s = pw.Session()
    g = s.load("model.json")
    run = s.run(g, s.rules(["llm"]), "o2", {"tp": "2"})
    run.count("add_rms"), run        # a notebook draws the run
    run.step("norm_quant")           # what one pass changed
    pw.diff(g, run.graph)            # what all did, as a table
"""
import html as _html
import json as _json

import _piecewise
from _piecewise import Error, Graph, Rules, Run

__all__ = ["Diff", "Error", "Graph", "Rules", "Run", "Session", "diff", "show"]

_CELL_LIMIT = 2 << 20  # bytes of a cell's output, as a notebook's file holds it


class Session(_piecewise.Session):
    """Graphs and rules that are used together; what they share is interned once."""

    def load(self, path, symbols=None):
        """Reads graph.json, .pwg or an FX dump; `symbols` as {"n": ["arg0_1.0"]} makes dims of a dump symbolic."""
        with open(path, encoding="utf-8") as file:
            return self.loads(file.read(), str(path), symbols)

    def loads(self, text, name="text", symbols=None):
        """The same from a string."""
        dims = {symbol: [(item.rsplit(".", 1)[0], int(item.rsplit(".", 1)[1])) for item in items]
                for symbol, items in (symbols or {}).items()}
        return self.graph_text(text, name, dims)


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
    return {"text/plain": f"{text}\nno picture: it has {_bytes(svg)} bytes, more than a cell may hold; open('picture.svg', 'wb').write(….draw('svg'))"}


def _bundle(self, include=None, exclude=None):
    return _cell(self.draw("txt").decode(), self.draw("svg").decode())


class _Frame:
    def __init__(self, page):
        self.page = page

    def _repr_html_(self):
        return (f'<iframe srcdoc="{_html.escape(self.page, quote=True)}" '
                'style="width:100%;height:36rem;border:1px solid #ccc"></iframe>')


def show(graph_or_run):
    """The interactive page in an iframe."""
    frame = _Frame(graph_or_run.draw("html").decode())
    if (size := _bytes(frame._repr_html_())) > _CELL_LIMIT:
        raise Error(f"the page takes {size} bytes, more than the {_CELL_LIMIT} a cell may hold; write it to a file: "
                    "open('page.html', 'wb').write(….draw('html'))")
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
        lines = [f"{row['change']} {row['times']} × {row['op']}  {row['first']}: {row['what']}" + (f"  ({row['where']})" if row["where"] else "")
                 for row in self.rows]
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
Graph.show = show
Run.show = show
Run.step = _step
Graph.__repr__ = lambda self: f"<Graph {self.name}: {len(self)} nodes>"
Rules.__repr__ = lambda self: f"<Rules: {len(self.names)} rules, pipelines {', '.join(self.pipelines) or 'none'}>"
