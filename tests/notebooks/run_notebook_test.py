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
from run_notebook import nbformat, run  # noqa: E402  (exits with 77 without nbclient)


PAGE = """class Page:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/plain': 'page', 'text/html': '<iframe srcdoc=""></iframe>', 'image/svg+xml': '<svg><text>' + chr(97) + '</text></svg>'}
Page()"""


def written(*cells):
    """The file that --update writes, and the report of --stored after one of its outputs changed."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stderr(io.StringIO()):
        path = Path(scratch) / "scratch.ipynb"
        v4 = nbformat.v4
        nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells]), path)
        assert run(path, update=True) is None
        text = path.read_text(encoding="utf-8")
        same = run(path, stored=True)
        path.write_text(text.replace("<text>a<", "<text>b<").replace("seen", "unseen"), encoding="utf-8")
        return text, same, run(path, stored=True)


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

    def test_a_page_is_kept_as_its_picture(self):
        text, same, other = written(PAGE)
        self.assertNotIn('iframe srcdoc=\\"', text.partition('"outputs"')[2].partition('"source"')[0])
        self.assertIn("image/svg+xml", text)
        self.assertIsNone(same)
        self.assertIn("holds another output", other)

    def test_another_line_is_seen(self):
        text, same, other = written("print('se' + 'en')")
        self.assertIn("seen", text)
        self.assertIsNone(same)
        self.assertIn("holds another output", other)


if __name__ == "__main__":
    unittest.main()
