#!/usr/bin/python3
"""`cmake --install` writes programs that run, and a package that builds a program outside of the tree.

    install_test.py BUILD COMPILER     BUILD is the folder of a finished build
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, COMPILER = Path(sys.argv[1]).resolve(), sys.argv[2]
HERE = Path(__file__).resolve().parent
DUMP = "examples/tiny-decoder.fx.txt"


def call(*command, code=0, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = cls.folder / "prefix"
        call("cmake", "--install", BUILD, "--prefix", cls.prefix)

    def test_programs_run_from_anywhere(self):
        for program in ("pwr", "pwviz"):
            self.assertRegex(call(self.prefix / "bin" / program, "--version", cwd="/"), rf"{program} \d+\.\d+\.\d+")
        self.assertIn("rms_norm", call(self.prefix / "bin/pwr", "ops", cwd="/"))

    def test_manual_pages_and_completions_are_installed(self):
        for name in ("man/man1/pwr-run.1", "man/man1/pwviz.1", "bash-completion/completions/pwr", "fish/vendor_completions.d/pwviz.fish"):
            self.assertTrue((self.prefix / "share" / name).exists(), name)

    def test_a_program_outside_of_the_tree_does_the_main_job(self):
        build = self.folder / "consumer"
        call(
            "cmake",
            "-S",
            HERE / "consumer",
            "-B",
            build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}",
            "-DCMAKE_BUILD_TYPE=Release",
        )
        call("cmake", "--build", build)
        messages = call(build / "consumer", DUMP, "n=arg0_1.0,arg1_1.0")
        self.assertIn("2 steps, 0 failed", messages)
        self.assertRegex(messages, r"\d+ nodes became \d+ in \d+ pieces")
        self.assertIn("PW0001", call(build / "consumer", "no-such-file", "n=x.0", code=1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
