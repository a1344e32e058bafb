#!/usr/bin/python3
"""pwviz as it is called: every form by its extension, the same bytes twice, traces, overlays, and requests that are refused."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
TINY = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0", "-q"]


def call(program, *arguments):
    return subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, check=False)


class Program(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def draw(self, name, *arguments):
        done = call("pwviz", *arguments, "-o", self.folder / name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / name).read_bytes()

    def test_every_form_and_the_same_bytes_twice(self):
        starts = {
            "svg": b"<?xml",
            "png": b"\x89PNG",
            "pdf": b"%PDF",
            "dot": b"digraph",
            "html": b"<!doctype html>",
            "txt": b"tiny_decoder",
            "md": b"# tiny",
            "me.json": b'{\n "label"',
            "sync.json": b'{\n "type": "sync_navigation"',
        }
        for extension, start in starts.items():
            drawn = self.draw("x." + extension, *TINY, "-r", "llm", "-p", "norm_quant")
            self.assertTrue(drawn.startswith(start), (extension, drawn[:40]))
            if extension not in ("pdf", "html"):  # a date; times of passes
                self.assertEqual(self.draw("y." + extension, *TINY, "-r", "llm", "-p", "norm_quant"), drawn, extension)
        self.assertEqual(self.draw("x.html", *TINY), self.draw("y.html", *TINY))

    def test_a_page_loads_nothing(self):
        page = self.draw("x.html", *TINY).decode()
        self.assertNotRegex(page, r'(src|href)\s*=\s*"')
        self.assertIn("default-src 'none'", page)

    def test_a_trace_and_its_journal_are_the_same(self):
        done = call("pwr", "opt", *TINY, "-r", "llm", "-p", "o2", "-o", self.folder / "o.json", "--trace", self.folder / "trace")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.draw("a.html", self.folder / "trace", "-r", "llm", "-q")
        self.assertEqual(self.draw("b.html", self.folder / "trace" / "journal.jsonl", "-r", "llm", "-q"), page)
        self.assertIn(b"rule add_rms_quant {", page)
        journal = self.folder / "trace" / "journal.jsonl"
        journal.write_text('{"event": "pass_begin"}\nnothing\n', encoding="utf-8")
        done = call("pwviz", self.folder / "trace", "-o", self.folder / "c.html", "-q")
        self.assertEqual(done.returncode, 3)
        self.assertIn("journal.jsonl:2", done.stderr)
        self.assertFalse((self.folder / "c.html").exists())

    def test_views(self):
        self.assertIn("boxes are whole pieces", self.draw("x.txt", *TINY, "--view", "overview").decode())
        self.assertIn("showing 59 of 59 nodes\n", self.draw("x.txt", *TINY, "--view", "all").decode())
        self.assertIn('"view":"memory"', self.draw("x.html", *TINY, "--view", "memory").decode())
        self.assertEqual(call("pwviz", *TINY, "--view", "sideways").returncode, 2)

    def test_overlays(self):
        numbers = self.folder / "ms.json"
        numbers.write_text(json.dumps({"embedding": 2.5}), encoding="utf-8")
        self.assertIn(b'"numbers":[2.5]', self.draw("x.html", *TINY, "--overlay", numbers))
        numbers.write_text(json.dumps({"embedding": 1, "scaled_mm": 3, "getitem_3": 5}), encoding="utf-8")
        dot = self.draw("x.dot", *TINY, "--overlay", numbers).decode()
        self.assertIn('fillcolor="#00204d", fontcolor="#ffffff"', dot)  # the least
        self.assertIn('fillcolor="#ffea46", fontcolor="#000000"', dot)  # the most
        self.assertRegex(dot, r"ms: 1 \(dark\) to 5 \(light\), \d nodes have a number")
        messages = call("pwviz", *TINY[:-1], "--overlay", numbers)  # not -q
        self.assertIn("the overlay is omitted: an outline has no colors", messages.stderr)
        for bad in ("", "[]", '{"a": "b"}', '{"a": 1e999}'):
            numbers.write_text(bad, encoding="utf-8")
            done = call("pwviz", *TINY, "--overlay", numbers, "-o", self.folder / "bad.html")
            self.assertEqual(done.returncode, 3, bad)
            self.assertIn("an overlay is", done.stderr)
        self.assertFalse((self.folder / "bad.html").exists())

    def test_what_is_refused(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for arguments, code in (
            ([empty], 3),
            ([self.folder / "no.json"], 3),
            ([self.folder / "no" / "journal.jsonl"], 3),
            ([*TINY, "--pass", "nowhere"], 2),
            ([*TINY, "-o", self.folder / "x.bmp"], 3),
            ([*TINY, "-o", self.folder / "x.sync.json"], 3),
        ):
            done = call("pwviz", *arguments)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertIn("error", done.stderr)


if __name__ == "__main__":
    if not (BIN / "pwviz").exists():
        print(f"SKIPPED: no pwviz in {BIN}")
        sys.exit(77)
    unittest.main()
