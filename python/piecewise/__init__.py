"""Rewrite tensor dataflow graphs with rules, and look at what happened.

    import piecewise as pw
    s = pw.Session()
    g = s.load("model.json")
    run = s.run(g, s.rules(["llm"]), "o2", {"tp": "2"})
    run.count("add_rms"), run        # a notebook draws the run
"""
import html as _html

import _piecewise
from _piecewise import Error, Graph, Rules, Run

__all__ = ["Error", "Graph", "Rules", "Run", "Session", "show"]

_CELL_LIMIT = 2 << 20  # bytes of a picture in a notebook's cell


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


def _bundle(self, include=None, exclude=None):
    """Text always; a folded SVG where it fits into a cell."""
    bundle = {"text/plain": self.draw("txt").decode()}
    svg = self.draw("svg").decode()
    if len(svg) <= _CELL_LIMIT:
        bundle["image/svg+xml"] = svg
    return bundle


class _Frame:
    def __init__(self, page):
        self.page = page

    def _repr_html_(self):
        return (f'<iframe srcdoc="{_html.escape(self.page, quote=True)}" '
                'style="width:100%;height:32rem;border:1px solid #ccc"></iframe>')


def show(graph_or_run):
    """The interactive page in an iframe."""
    page = graph_or_run.draw("html").decode()
    if len(page) > _CELL_LIMIT:
        raise Error(f"the page has {len(page)} bytes, more than a cell may hold; write it to a file: "
                    "open('page.html', 'wb').write(run.draw('html'))")
    return _Frame(page)


Graph._repr_mimebundle_ = _bundle
Run._repr_mimebundle_ = _bundle
Graph.show = show
Run.show = show
Graph.__repr__ = lambda self: f"<Graph {self.name}: {len(self)} nodes>"
Rules.__repr__ = lambda self: f"<Rules: {len(self.names)} rules, pipelines {', '.join(self.pipelines) or 'none'}>"
