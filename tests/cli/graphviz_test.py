#!/usr/bin/python3
"""Programs without Graphviz: pictures report what to install, and everything else works."""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402


class WithoutGraphviz(ProgramTest):
    def without(self, program, *args):
        """Runs a program while the first library that the loader finds cannot be loaded."""
        folder = Path(self.path("broken"))
        folder.mkdir(exist_ok=True)
        (folder / "libgvc.so.6").write_text("no library")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        return subprocess.run([BIN / program, *args], capture_output=True, text=True, env=environment, check=False)

    def test_pictures_are_refused_and_nothing_is_written(self):
        graph = self.file("g.pwg", "graph g { in x: f32[8]\n  y = relu(x)\n  out y }\n")
        for kind in ("svg", "png", "pdf"):
            done = self.without("pwviz", graph, "-o", self.path(f"g.{kind}"))
            self.assertEqual(done.returncode, 5)
            self.assertRegex(done.stderr, r"error\[PW0907\]: Graphviz is missing: .*libgvc\.so\.6")
            self.assertIn("apt install graphviz", done.stderr)
            self.assertFalse(Path(self.path(f"g.{kind}")).exists())
        for kind in ("html", "dot", "txt", "md"):
            self.assertEqual(self.without("pwviz", graph, "-o", self.path(f"g.{kind}")).returncode, 0)

    def test_doctor_says_which_there_is(self):
        rows = {row["what"]: row["state"] for row in json.loads(self.pwr("--format", "json", "doctor").stdout)}
        self.assertRegex(rows["Graphviz"], r"^\d+\.\d+")
        rows = {row["what"]: row["state"] for row in json.loads(self.without("pwr", "--format", "json", "doctor").stdout)}
        self.assertIn("not found", rows["Graphviz"])


if __name__ == "__main__":
    unittest.main()
