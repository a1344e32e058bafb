#!/usr/bin/python3
"""A notebook that raises must fail the runner, and one that does not must pass it."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from run_notebook import nbformat, run  # noqa: E402  (exits 77 by itself without nbclient)


def outcome(*cells):
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stderr(io.StringIO()):
        path = Path(scratch) / "scratch.ipynb"
        v4 = nbformat.v4
        nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells]), path)
        return run(path)


class RunNotebook(unittest.TestCase):
    def test_raising_cell_fails(self):
        self.assertIn("ZeroDivisionError", outcome("x = 0", "1 / x"))

    def test_cells_share_a_kernel(self):
        self.assertIsNone(outcome("x = 1", "assert x == 1"))

    def test_oversized_output_fails(self):
        self.assertIn("bytes of output", outcome("print('x' * (3 << 20))"))


if __name__ == "__main__":
    unittest.main()
