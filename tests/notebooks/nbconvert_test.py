#!/usr/bin/python3
"""The stored notebooks: a code host can show every output, each fits its cell, and nbconvert converts all of them to pages.

Exit code 77 without nbconvert (python3-nbconvert), after all tests that do not need it passed.
"""
import json
import re
import sys
import unittest
from html.parser import HTMLParser
from pathlib import Path

NOTEBOOKS = sorted(Path("notebooks").glob("*.ipynb"))
CELL_LIMIT = 2 << 20
SHOWN = {"text/plain", "text/html", "image/svg+xml", "image/png"}
ACTIVE = re.compile(r"<(script|iframe|object|embed)\b|\bon\w+\s*=\s*[\"']|javascript:", re.IGNORECASE)


def outputs(path):
    """(cell, its output) of all code cells."""
    for index, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        for output in cell.get("outputs", []):
            yield index, output


def pictures(path):
    return ["".join(output["data"]["image/svg+xml"]) for _, output in outputs(path) if "image/svg+xml" in output.get("data", {})]


class Page(HTMLParser):
    """The pictures in a page, whether in place or as an image."""

    def __init__(self, text):
        super().__init__()
        self.pictures = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        source = dict(attrs).get("src") or ""
        self.pictures += tag == "svg" or (tag == "img" and source.startswith("data:image/svg+xml"))


class Stored(unittest.TestCase):
    def test_there_are_pictures_in_each(self):
        self.assertTrue(NOTEBOOKS)
        for path in NOTEBOOKS:
            self.assertTrue(pictures(path), f"{path}: no picture is stored")

    def test_outputs_need_no_script(self):
        for path in NOTEBOOKS:
            for index, output in outputs(path):
                data = output.get("data", {})
                self.assertLessEqual(set(data), SHOWN, f"{path}: cell {index}")
                if "text/html" in data:
                    self.assertNotRegex("".join(data["text/html"]), ACTIVE, f"{path}: cell {index}")
                if data:
                    self.assertTrue("text/plain" in data, f"{path}: cell {index} has no text")

    def test_outputs_fit_their_cells(self):
        for path in NOTEBOOKS:
            for index, output in outputs(path):
                self.assertLess(len(json.dumps(output)), CELL_LIMIT, f"{path}: cell {index}")
            for svg in pictures(path):
                self.assertRegex(svg, r'<svg [^>]*style="max-width: 100%; height: auto"')
                self.assertNotRegex(svg, ACTIVE)

    def test_nothing_of_the_machine_is_in_them(self):
        for path in NOTEBOOKS:
            text = json.dumps([output for _, output in outputs(path)])
            self.assertNotRegex(text, r"/(home|root|work)/", path)


class Converted(unittest.TestCase):
    def exporter(self, name):
        try:
            from nbconvert import get_exporter
        except ImportError as absent:
            self.skipTest(f"{absent}: install python3-nbconvert")
        return get_exporter(name)()

    def test_a_page(self):
        for path in NOTEBOOKS:
            page, _ = self.exporter("html").from_filename(str(path))
            self.assertGreaterEqual(Page(page).pictures, len(pictures(path)), path)
            self.assertIn("max-width: 100%", page)

    def test_markdown_and_its_pictures(self):
        for path in NOTEBOOKS:
            text, resources = self.exporter("markdown").from_filename(str(path))
            drawn = [name for name in resources["outputs"] if name.endswith(".svg")]
            self.assertEqual(len(drawn), len(pictures(path)), path)
            for name in drawn:
                self.assertIn(name, text)


def main():
    done = unittest.main(exit=False).result
    if done.wasSuccessful() and done.skipped:
        print(f"SKIPPED: {done.skipped[0][1]}", file=sys.stderr)
        return 77
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
