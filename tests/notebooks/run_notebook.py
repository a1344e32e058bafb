#!/usr/bin/python3
"""Executes notebooks from their first cell to their last; a cell that raises fails, unless it is tagged `raises-exception`.

    run_notebook.py NOTEBOOK…            exit 1 on a failing cell or an oversized output, 77 without nbclient
    run_notebook.py --stored NOTEBOOK…   and where the outputs that the file holds are not those
    run_notebook.py --update NOTEBOOK…   writes the outputs into the files

A file holds what a code host shows: texts, tables and pictures. Only the picture of a page that needs its script is kept. Pictures are compared by
their words, because positions depend on the version of Graphviz.
"""
import argparse
import copy
import html
import json
import re
import sys
from pathlib import Path

try:
    import nbclient
    import nbformat
except ImportError as absent:
    print(f"SKIPPED: {absent}; install python3-nbclient and python3-ipykernel")
    sys.exit(77)

CELL_LIMIT = 2 << 20  # bytes of output a cell may leave in the file
ACTIVE = re.compile(r"<(script|iframe|object|embed)\b", re.IGNORECASE)


def kept(output):
    """An output as the file holds it: without counters, and without what no code host shows."""
    out = {key: value for key, value in output.items() if key != "execution_count"}
    data = out.get("data")
    if data and ACTIVE.search(data.get("text/html", "")):
        out["data"] = {kind: value for kind, value in data.items() if kind != "text/html"}
    if out["output_type"] == "execute_result":
        out["execution_count"] = None
    return nbformat.from_dict(out)


def joined(outputs):
    """Joins consecutive outputs of one stream."""
    out = []
    for output in map(kept, outputs):
        if out and output.output_type == "stream" and out[-1].get("name") == output.name:
            out[-1].text += output.text
        else:
            out.append(output)
    return out


def words(svg):
    """The texts of a picture, in order."""
    return sorted(html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)<", svg))


def comparable(outputs):
    """Returns the part of the outputs that is the same on every machine."""
    streams, rest = "", []
    for output in outputs:
        data = dict(output.get("data", {}))
        if "image/svg+xml" in data:
            data["image/svg+xml"] = words(data["image/svg+xml"])
        streams += output.get("text", "")
        rest.append((output["output_type"], output.get("name"), data, output.get("ename")))
    return streams, [one for one in rest if one[0] != "stream"]


def run(path, stored=False, update=False):
    """One notebook in a fresh kernel, from its own folder; returns what is wrong, or nothing."""
    notebook = nbformat.read(path, as_version=4)
    before = copy.deepcopy([cell.get("outputs", []) for cell in notebook.cells])
    client = nbclient.NotebookClient(notebook, timeout=3600, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}})
    metadata = dict(notebook.metadata)
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as error:
        return f"{path}: {error}"
    for index, cell in enumerate(notebook.cells):
        size = len(json.dumps(cell.get("outputs", [])))
        if size > CELL_LIMIT:
            return f"{path}: cell {index} leaves {size} bytes of output, more than {CELL_LIMIT}"
        if cell.cell_type != "code":
            continue
        cell.outputs = joined(cell.outputs)
        cell.execution_count = None
        cell.metadata.pop("execution", None)
        if stored and comparable(before[index]) != comparable(cell.outputs):
            return f"{path}: cell {index} holds another output than it has: run_notebook.py --update {path}"
    if update:
        notebook.metadata = nbformat.from_dict(metadata)
        nbformat.write(notebook, path)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--stored", action="store_true")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    failures = [failure for path in arguments.notebooks if (failure := run(path, arguments.stored, arguments.update))]
    print("\n".join(failures) or f"notebooks: {len(arguments.notebooks)} executed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
