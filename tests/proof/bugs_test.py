#!/usr/bin/python3
"""Kinds of bugs that compilers have had, as rules: each wrong one is refuted, and the one that was meant is not."""
import json
import os
import subprocess
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
RULES = "tests/proof/bugs.pwr"


class Bugs(unittest.TestCase):
    def test_samples_tell_right_from_wrong(self):
        done = subprocess.run([BIN / "pwr", "--format", "json", "verify", "-r", RULES], capture_output=True, text=True, timeout=3600, check=False)
        rows = {row["rule"]: row for row in json.loads(done.stdout)}
        wrong = [rule for rule in rows if rule.startswith("wrong.")]
        self.assertEqual(len(wrong), 5)
        for rule in wrong:
            self.assertEqual(rows[rule]["verdict"], "refuted", rule)
        # Sums in another order differ by some steps of f32, which samples cannot distinguish from wrong ones.
        right = {rule for rule in rows if rule.startswith("right.")} - {"right.flattened"}
        self.assertEqual(len(right), 4)
        for rule in right:
            self.assertEqual(rows[rule]["verdict"], "same_bits", rule)

    def test_proofs_tell_right_from_wrong(self):
        done = subprocess.run([BIN / "pwr", "--format", "json", "prove", "-r", RULES], capture_output=True, text=True, timeout=3600, check=False)
        self.assertEqual(done.returncode, 1)  # some is refuted
        rows = {row["rule"]: row for row in json.loads(done.stdout)}
        for rule, row in rows.items():
            if rule.startswith("wrong."):
                self.assertEqual(row["verdict"], "refuted", rule)
                self.assertTrue(row["test"], rule)
            else:
                # Sums in another order overflow at other inputs.
                expected = ("may_overflow", "samples") if rule == "right.flattened" else ("same_bits", "proof")
                self.assertEqual((row["verdict"], row["known_by"]), expected, rule)


if __name__ == "__main__":
    unittest.main()
