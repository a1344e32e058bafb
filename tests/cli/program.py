"""For tests that call pwr: a folder of their own, the call, and files written there."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
# A rule, a pass of it and its test.
RULES = """rule merge { y = relu(relu(x)) => y = relu(x) }
pass p = greedy { merge }
test right {
  graph { in x: f32[n]  y = relu(relu(x))  out y }
  apply p
  expect merge == 1
}
"""


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def make(cls, name, *args):
        """The path of a file that pwr writes for all tests of the class."""
        subprocess.run([BIN / "pwr", *args, "-o", cls.path(name)], check=True, capture_output=True)
        return cls.path(name)

    @classmethod
    def path(cls, name):
        return str(Path(cls.folder.name, name))

    def pwr(self, *args, code=0, program="pwr", seconds=600):
        done = subprocess.run([BIN / program, *args], capture_output=True, text=True, timeout=seconds, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def file(self, name, content):
        path = Path(self.path(name))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)
