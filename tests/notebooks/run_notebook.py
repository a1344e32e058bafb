#!/usr/bin/python3
"""Executes notebooks from their first cell to their last; a cell that raises fails.

    run_notebook.py NOTEBOOK…     exit 1 on a failing cell or an oversized output, 77 without nbclient
"""
import json
import sys
from pathlib import Path

try:
    import nbclient
    import nbformat
except ImportError as absent:
    print(f"SKIPPED: {absent}; install python3-nbclient and python3-ipykernel")
    sys.exit(77)

CELL_LIMIT = 2 << 20  # bytes of output a cell may leave in the file


def run(path):
    """One notebook in a fresh kernel, from its own folder; returns what is wrong, or nothing."""
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}})
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as error:
        return f"{path}: {error}"
    for index, cell in enumerate(notebook.cells):
        size = len(json.dumps(cell.get("outputs", [])))
        if size > CELL_LIMIT:
            return f"{path}: cell {index} leaves {size} bytes of output, more than {CELL_LIMIT}"
    return None


def main():
    failures = [failure for name in sys.argv[1:] if (failure := run(Path(name)))]
    print("\n".join(failures) or f"notebooks: {len(sys.argv) - 1} executed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
