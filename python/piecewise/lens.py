"""Shows every CUDA graph that a PyTorch program captures: a file and a page for each, and an overview of the process.

    import piecewise.lens
    piecewise.lens.start("out/")     # or set PIECEWISE_LENS=out/: docs/lens.md

Each process that captures graphs writes a folder of its own, out/process_0001, out/process_0002, …
"""
from __future__ import annotations

import atexit
import html
import json
import os
import queue
import sys
import threading
import time
import typing as _t
import warnings
import weakref

import _piecewise

__all__ = ["start", "stop"]

_HOOKS = {
    "register_graph_capture_start_hook": "capture_started",
    "register_graph_capture_end_hook": "capture_ended",
    "register_graph_instantiate_hook": "instantiated",
    "register_graph_replay_end_hook": "replayed",
}
_SECONDS_WITHOUT_PAGES = 0.5

_Record = _t.Dict[str, _t.Any]


def _reserved_bytes() -> int:
    """Returns the device memory that PyTorch's allocator holds."""
    import torch

    return torch.cuda.memory_reserved() if torch.cuda.is_initialized() else 0


def _labels() -> _t.Dict[str, str]:
    """Returns what kernels of this process compute, by name, as far as Piecewise has compiled them."""
    devices = sys.modules.get("piecewise.pytorch.devices")
    return devices.kernel_labels if devices is not None else {}


def _folder_of_process(folder: str) -> str:
    """Makes the first folder process_0001, process_0002, … that no process has."""
    os.makedirs(folder, exist_ok=True)
    for number in range(1, 10_000):
        path = os.path.join(folder, f"process_{number:04}")
        try:
            os.mkdir(path)
            return path
        except FileExistsError:
            pass
    raise OSError(f"{folder} holds the folders of 9999 processes; delete some")


class Lens:
    """Records the graphs of this process. Hooks write the graphs' files; a thread draws pages and the overview."""

    def __init__(self, folder: str):
        self.folder = folder
        self.handles: _t.List[_t.Any] = []
        self.forget()

    def forget(self) -> None:
        """Clears all state, as in a process that was just forked."""
        self.lock = threading.Lock()
        self.process = ""
        self.records: _t.List[_Record] = []
        self.begun: _t.MutableMapping[_t.Any, _t.Tuple[float, int]] = weakref.WeakKeyDictionary()
        self.by_graph: _t.MutableMapping[_t.Any, _Record] = weakref.WeakKeyDictionary()
        self.ended: _t.MutableMapping[_t.Any, float] = weakref.WeakKeyDictionary()
        self.pools: _t.Dict[_t.Any, int] = {}
        self.pages: "queue.Queue[_t.Optional[str]]" = queue.Queue()
        self.thread: _t.Optional[threading.Thread] = None
        self.warned = False

    def register(self) -> None:
        from torch.cuda import graphs

        for hook, method in _HOOKS.items():
            self.handles.append(getattr(graphs, hook)(getattr(self, method)))

    def close(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        if self.thread is not None:
            self.pages.put(None)
            self.thread.join()
            self.thread = None
        if self.process:
            self.write_overview()

    def warn(self, what: str, reason: Exception) -> None:
        """Reports the first failure; PyTorch drops exceptions of hooks."""
        if not self.warned:
            self.warned = True
            warnings.warn(f"piecewise.lens: {what}: {reason}", stacklevel=2)

    # ---- hooks

    def capture_started(self, graph: _t.Any) -> None:
        self.begun[graph] = (time.perf_counter(), _reserved_bytes())

    def capture_ended(self, graph: _t.Any) -> None:
        now = time.perf_counter()
        begun, reserved = self.begun.pop(graph, (None, 0))
        record: _Record = {
            "capture_s": None if begun is None else now - begun,
            "instantiate_s": None,
            "reserved_bytes": None if begun is None else _reserved_bytes() - reserved,
            "replays": 0,
        }
        try:
            with self.lock:
                if not self.process:
                    self.process = _folder_of_process(self.folder)
                record["name"] = f"graph_{len(self.records) + 1:04}"
                pool = graph.pool() if hasattr(graph, "pool") else None
                record["pool"] = self.pools.setdefault(pool, len(self.pools) + 1)
                self.records.append(record)
            record["file"] = record["name"] + ".json"
            path = os.path.join(self.process, record["file"])
            record.update(_piecewise.read_captured_graph(graph.raw_cuda_graph(), record["name"], path, _labels()))
        except Exception as reason:  # the program must go on
            record["failure"] = str(reason)
            self.warn("a captured graph was not recorded", reason)
            return
        self.by_graph[graph] = record
        self.draw(record["name"])
        record["lens_s"] = time.perf_counter() - now
        self.ended[graph] = time.perf_counter()

    def instantiated(self, graph: _t.Any) -> None:
        ended = self.ended.pop(graph, None)
        if ended is not None:
            self.by_graph[graph]["instantiate_s"] = time.perf_counter() - ended

    def replayed(self, graph: _t.Any) -> None:
        record = self.by_graph.get(graph)
        if record is not None:
            record["replays"] += 1

    # ---- files, drawn by the thread

    def draw(self, name: str) -> None:
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self.draw_pages, name="piecewise.lens", daemon=True)
                self.thread.start()
        self.pages.put(name)

    def draw_pages(self) -> None:
        """Draws pages as they come, and the overview when none came for a while."""
        stale = False
        while True:
            try:
                name = self.pages.get(timeout=_SECONDS_WITHOUT_PAGES if stale else None)
            except queue.Empty:
                name = ""
            if name is None:
                return
            try:
                if name:
                    path = os.path.join(self.process, name)
                    _piecewise.draw_captured_graph(path + ".json", path + ".html")
                else:
                    self.write_overview()
            except Exception as reason:
                self.warn("a page was not drawn", reason)
            stale = bool(name)

    def write_overview(self) -> None:
        overview = self.overview()
        _write(os.path.join(self.process, "overview.json"), json.dumps(overview, indent=1) + "\n")
        _write(os.path.join(self.process, "index.html"), _page(overview))

    def overview(self) -> _t.Dict[str, _t.Any]:
        """Returns the graphs and classes of this process as piecewise.lens/1."""
        import torch

        with self.lock:
            graphs = [dict(record) for record in self.records]
        classes: _t.Dict[str, _Record] = {}
        for graph in graphs:
            if "topology" not in graph:
                continue
            bodies = graph["kernels_in_bodies"]  # launched an unknown number of times
            kernels = graph["kinds"].get("kernel", 0) - bodies
            counts = {"graphs": 0, "kernels": kernels, "kernels_in_bodies": bodies, "replays": 0, "launches": 0}
            known = classes.setdefault(graph["topology"], {"class": len(classes) + 1, "topology": graph["topology"], **counts})
            known["graphs"] += 1
            known["replays"] += graph["replays"]
            known["launches"] += graph["replays"] * kernels
            graph["class"] = known["class"]
        return {"format": "piecewise.lens/1", "torch": torch.__version__, "graphs": graphs, "classes": list(classes.values())}


def _write(path: str, text: str) -> None:
    """Replaces a file as a whole."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


# ---- the overview as a page

_STYLE = """body { font: 14px system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: 2px 10px; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
.none { color: #a40 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } a { color: #8bf } th, td { border-color: #444 } .none { color: #fa6 } }"""


def _table(columns: _t.Sequence[str], rows: _t.Iterable[_t.Sequence[str]]) -> str:
    """Returns a table whose cells are HTML."""
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


_CLASS_COLUMNS = ["class", "graphs", "kernels a replay", "in bodies", "replays", "launches without bodies", "topology"]


def _number(value: _t.Optional[float], scale: float = 1, digits: int = 0) -> str:
    return "" if value is None else f"{value * scale:,.{digits}f}"


def _row(graph: _Record) -> _t.List[str]:
    name = html.escape(graph["name"])
    if "topology" not in graph:
        return [name, f'<span class="none">{html.escape(graph.get("failure", "it is being read"))}</span>', *[""] * 14]
    kinds = graph["kinds"]
    kernels = kinds.get("kernel", 0)
    return [
        f'<a href="{name}.html">{name}</a>',
        str(graph["class"]),
        _number(graph["nodes"]),
        _number(kernels) if kernels or graph["unknown_bodies"] else '<span class="none">no kernels</span>',
        "unknown" if graph["unknown_bodies"] else _number(graph["kernels_in_bodies"]),
        _number(kinds.get("memcpy", 0)),
        _number(kinds.get("memset", 0)),
        _number(graph["edges"]),
        _number(graph["critical_path"]),
        _number(graph["could_be_programmatic"]),
        _number(graph["known_bytes"]),
        _number(graph["reserved_bytes"]),
        str(graph["pool"]),
        _number(graph["capture_s"], 1e3, 1),
        _number(graph["instantiate_s"], 1e3, 1),
        _number(graph["replays"]),
    ]


def _page(overview: _t.Dict[str, _t.Any]) -> str:
    graphs, classes = overview["graphs"], overview["classes"]
    read = [graph for graph in graphs if "topology" in graph]
    without = sum(not graph["kinds"].get("kernel") and not graph["unknown_bodies"] for graph in read)
    total = {key: sum(graph[key] or 0 for graph in graphs) for key in ("capture_s", "instantiate_s", "reserved_bytes")}
    summary = (
        f"{len(graphs)} captured graphs in {len(classes)} classes of equal topology, {without} without kernels; "
        f"capture {total['capture_s']:.2f} s, instantiation {total['instantiate_s']:.2f} s, "
        f"{total['reserved_bytes']:,} bytes reserved while capturing; PyTorch {overview['torch']}"
    )
    columns = ["graph", "class", "nodes", "kernels", "in bodies", "memcpy", "memset", "edges", "critical path", "could be programmatic"]
    columns += ["known bytes", "reserved bytes", "pool", "capture ms", "instantiate ms", "replays"]
    rows = [[str(known[key]) for key in ("class", "graphs", "kernels", "kernels_in_bodies", "replays", "launches", "topology")] for known in classes]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Captured CUDA graphs</title>\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<style>{_STYLE}</style></head><body>\n<h1>Captured CUDA graphs</h1>\n<p>{html.escape(summary)}</p>\n"
        f"<h2>Graphs</h2>\n{_table(columns, map(_row, graphs))}\n"
        f"<h2>Classes</h2>\n{_table(_CLASS_COLUMNS, rows)}\n"
        "</body></html>\n"
    )


# ---- starting and stopping

_active: _t.Optional[Lens] = None


def start(folder: _t.Union[str, "os.PathLike[str]"]) -> None:
    """Records every CUDA graph that this process captures from now on, in a new folder inside `folder`.

    Requires PyTorch 2.14 or later. Does nothing if it already records to that folder.
    """
    global _active
    path = os.path.abspath(os.fspath(folder))
    if _active is not None:
        if _active.folder == path:
            return
        raise ValueError(f"the lens already writes to {_active.folder}; call piecewise.lens.stop() first")
    import torch
    from torch.cuda import graphs

    missing = [hook for hook in _HOOKS if not hasattr(graphs, hook)]
    if missing:
        raise RuntimeError(f"piecewise.lens requires PyTorch 2.14 or later; {torch.__version__} has no torch.cuda.graphs.{missing[0]}")
    lens = Lens(path)
    lens.register()
    _active = lens


def stop() -> None:
    """Stops recording, and returns when all pages and the overview are written."""
    global _active
    lens, _active = _active, None
    if lens is not None:
        lens.close()


def start_from_environment() -> None:
    """Starts the lens if PIECEWISE_LENS names a folder. Warns instead of raising: the variable must not break a program."""
    folder = os.environ.get("PIECEWISE_LENS")
    if not folder or _active is not None:
        return
    try:
        start(folder)
    except Exception as reason:
        warnings.warn(f"PIECEWISE_LENS is set, but nothing is recorded: {reason}", stacklevel=2)


def _forget_in_child() -> None:
    if _active is not None:
        _active.forget()


atexit.register(stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
