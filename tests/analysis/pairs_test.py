#!/usr/bin/python3
"""Each way in which rules can go wrong together is found, with a graph that shows it and runs as a test."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

PWR = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve() / "pwr"
PAIRS = Path(__file__).resolve().parent / "pairs"


def pwr(*args):
    done = subprocess.run([PWR, *map(str, args)], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "NO_COLOR": "1"})
    return done.returncode, done.stdout, done.stderr


class Pairs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.found = Path(folder.name, "found.pwr")

    def finds(self, file, kind, names, code, expected):
        """Checks the only warning of a file and its test, which passes with the stated count and with no other."""
        status, _, messages = pwr("check", "--no-proof", PAIRS / file, "--tests", self.found)
        self.assertEqual((status, messages.count("warning[")), (0, 1), messages)
        self.assertIn(f"warning[{code}]", messages)
        _, listed, _ = pwr("check", "--no-proof", PAIRS / file, "--format", "json")
        rows = [row for row in json.loads(listed) if row["kind"] == kind]
        self.assertEqual([sorted(row["name"].split(", ")) for row in rows], [sorted(names)])
        self.assertIn(rows[0]["test"], self.found.read_text(encoding="utf-8"))
        text = self.found.read_text(encoding="utf-8")
        self.assertIn(expected, text)
        self.assertIn(expected, messages)
        status, out, _ = pwr("test", self.found)
        self.assertEqual(status, 0, out)
        self.assertIn("1 test, 0 failed", out)
        return text

    def fails_with(self, text, old, new):
        self.assertIn(old, text)
        self.found.write_text(text.replace(old, new), encoding="utf-8")
        self.assertEqual(pwr("test", self.found)[0], 1)

    def test_an_overlap_without_over(self):
        text = self.finds("overlap.pwr", "overlap", ["sum_then_relu", "product_then_sum"], "PW1150", "product_then_sum == 1")
        self.assertIn("sum_then_relu == 0", text)
        self.fails_with(text, "sum_then_relu == 0", "sum_then_relu == 1")

    def test_over_decides_an_overlap(self):
        text = (PAIRS / "overlap.pwr").read_text(encoding="utf-8")
        self.found.write_text(text.replace("rule sum_then_relu {", "rule sum_then_relu over product_then_sum {"), encoding="utf-8")
        status, _, messages = pwr("check", "--no-proof", self.found)
        self.assertEqual((status, messages.count("warning[")), (0, 0), messages)

    def test_a_rule_in_the_shadow(self):
        text = self.finds("shadow.pwr", "shadow", ["any_silu", "silu_of_halves"], "PW1151", "any_silu == 1, silu_of_halves == 0")
        self.fails_with(text, "silu_of_halves == 0", "silu_of_halves == 1")

    def test_out_of_the_shadow(self):
        text = (PAIRS / "shadow.pwr").read_text(encoding="utf-8")
        self.found.write_text(text.replace("rule silu_of_halves {", "rule silu_of_halves over any_silu {"), encoding="utf-8")
        status, _, messages = pwr("check", "--no-proof", self.found)
        self.assertEqual((status, messages.count("warning[")), (0, 0), messages)

    def test_a_pass_that_loops(self):
        text = self.finds("loop.pwr", "loop", ["sum", "twice"], "PW1152", " > 8")
        self.fails_with(text, " > 8", " <= 8")

    def test_a_result_that_depends_on_order(self):
        status, table, messages = pwr("fuzz-order", PAIRS / "order.pwg", "-r", PAIRS / "order.pwr", "-p", "readers", "--all", "-o", self.found)
        self.assertEqual(status, 1, messages)
        self.assertIn("neg_and_exp", table)
        self.assertIn("has 3 of 11 nodes", messages)
        text = self.found.read_text(encoding="utf-8")
        status, out, _ = pwr("test", self.found)
        self.assertEqual(status, 0, out)
        self.fails_with(text, "relu_and_neg == 1", "relu_and_neg == 2")

    def test_no_order_matters(self):
        status, table, messages = pwr("fuzz-order", PAIRS / "order.pwg", "-r", PAIRS / "loop.pwr", "-p", "twice", "--orders", "7", "--format", "json")
        self.assertEqual(status, 0, messages)
        self.assertEqual(len(json.loads(table)["orders"]), 8)


class Library(unittest.TestCase):
    def test_the_rules_are_without_a_warning(self):
        _, _, messages = pwr("check", "--no-proof", "rules/llm.pwr")
        self.assertNotIn("warning[PW115", messages)


if __name__ == "__main__":
    unittest.main()
