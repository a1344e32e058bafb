#!/usr/bin/python3
"""`pwr discover` from outside: what it writes is checked, tested and proved by the other commands."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()


def pwr(*arguments, code=0):
    done = subprocess.run([BIN / "pwr", *arguments], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Discover(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = os.path.join(cls.folder.name, "found.pwr")
        cls.said = pwr("discover", "--ops", "relu,cat,split", "--nodes", "2", "--inputs", "2", "-o", cls.file).stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_what_is_written_is_checked_and_tested(self):
        pwr("check", self.file)
        pwr("fmt", "--check", self.file)
        pwr("test", self.file)

    def test_all_that_is_written_is_proved(self):
        proofs = json.loads(pwr("--format", "json", "prove", "--strict", "-r", self.file).stdout)
        self.assertTrue(proofs)
        for proof in proofs:
            self.assertEqual(proof["known_by"], "proof", proof)

    def test_parts_of_what_was_joined_are_found(self):
        text = Path(self.file).read_text(encoding="utf-8")
        rules = text.split("rule ")[1:]
        joined = [rule for rule in rules if "cat(" in rule.split("=>")[0] and "y0 = x0" in rule and "y1 = x1" in rule]
        self.assertTrue(joined, text)

    def test_the_seed_decides(self):
        again = pwr("discover", "--ops", "relu,cat,split", "--nodes", "2", "--inputs", "2", "-o", "-")
        self.assertEqual(again.stdout, Path(self.file).read_text(encoding="utf-8"))
        self.assertIn("seed 1", self.said)

    def test_an_op_that_is_not_there(self):
        self.assertIn("reluu", pwr("discover", "--ops", "reluu", code=1).stderr)


if __name__ == "__main__":
    unittest.main()
