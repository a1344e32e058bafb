#!/usr/bin/python3
"""An op that `fuse` made around a product: the product stays a library call, the ops around it become row programs, and the report states this."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
RULES = """
rule gated_product { y = relu(mm(silu(neg(x)), w)) + b  =>  y = fuse }
pass p = greedy { gated_product }
"""
GRAPH = """graph g {
  symbol n in 1..64 tokens
  in x: f32[n, 64]
  in weight w: f32[64, 32], b: f32[32]
  y = relu(mm(silu(neg(x)), w)) + b
  out y
}
"""


class FusedAroundAProduct(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        (self.path / "rules.pwr").write_text(RULES, encoding="utf-8")
        (self.path / "graph.pwg").write_text(GRAPH, encoding="utf-8")

    def pwr(self, command, *args):
        done = subprocess.run(
            [BIN / "pwr", command, "graph.pwg", "-r", "rules.pwr", "-p", "p", *args],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_numbers_stay(self):
        done = self.pwr("run", "--tokens", "1,7", "--check")
        self.assertIn("all outputs of all steps pass", done.stdout + done.stderr)

    def test_the_report_says_what_is_called_and_what_is_compiled(self):
        self.pwr("compile", "-o", "out", "--sources-only")
        report = (self.path / "out" / "report.txt").read_text(encoding="utf-8")
        self.assertIn("2 kernels", report)
        self.assertRegex(report, r"y = gated_product: decomposed, op mm has no body")
        self.assertRegex(report, r"= mm: library call")
        self.assertRegex(report, r"k_\w+ neg \+ silu\(")
        self.assertRegex(report, r"k_\w+ relu \+ add\(")
        self.assertTrue(json.loads((self.path / "out" / "report.json").read_text(encoding="utf-8")))

    def test_the_op_is_written_with_the_graph_that_uses_it(self):
        self.pwr("opt", "-o", "after.pwg")
        text = (self.path / "after.pwg").read_text(encoding="utf-8")
        self.assertIn("op gated_product(x, w, b) -> y {", text)
        again = subprocess.run(
            [BIN / "pwr", "opt", "after.pwg", "-r", "rules.pwr", "-p", "p", "-o", "-"],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        self.assertEqual((again.returncode, again.stdout), (0, text))


if __name__ == "__main__":
    unittest.main()
