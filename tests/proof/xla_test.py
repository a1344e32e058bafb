#!/usr/bin/python3
"""The rules of XLA's algebraic simplifier in tests/proof/xla: every line of the list is there, and what `pwr verify` sees of each."""
import json
import os
import re
import subprocess
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
FOLDER = Path("tests/proof/xla")
LINES = 115

# Equal but for these, whatever the numbers: x - x, x · 0 and x >= x of NaN and infinity; -0 + 0 is 0, and so is a sum that
# begins at 0.
DIFFERS = {
    "sub.itself": {"nan", "infinity"},
    "mul.zero_behind": {"nan", "infinity", "zero_sign"},
    "mul.zero_in_front": {"nan", "infinity", "zero_sign"},
    "add.zero_behind": {"zero_sign"},
    "add.zero_in_front": {"zero_sign"},
    "compare.unequal": {"nan"},
    "compare.greater_or_equal": {"nan"},
    "compare.less_or_equal": {"nan"},
    "compare.equal": {"nan"},
    "dot.outer_product": {"zero_sign"},
    "dot.outer_products": {"zero_sign"},
    "reduce.one_element": {"zero_sign"},
    "reduce.one_element_kept": {"zero_sign"},
    "dynamic_update_slice.added": {"zero_sign"},
}
# Equal over the reals, but an intermediate of one side overflows or underflows for some finite input.
OVERFLOWS = {
    "mul.constants_of_both",
    "mul.constants_together",
    "mul.constant_into_broadcast",
    "mul.common_factor",
    "mul.exponentials",
    "divmod.by_constant",
    "divmod.quotient_of_quotients",
    "divmod.by_quotient",
    "reduce.product_of_sums",
    "reduce.constant_factor",
    "dot.to_the_left",
    "dot.to_the_left_in_batches",
    "reduce.twice",
    "reduce.of_dot",
}
# Wrong for integers that wrap around: for the largest i64, x + 3 and x have other remainders by 3.
WRAPS = {"divmod.whole_period"}
# Equal over the reals. Other roundings; where a step in the middle overflows, vanishes or cancels they are far apart, which samples
# of all magnitudes show.
REALS = {
    "add.constants_together",
    "mul.constants_of_both",
    "mul.constants_together",
    "mul.constant_into_broadcast",
    "mul.common_factor",
    "mul.exponentials",
    "divmod.by_constant",
    "divmod.quotient_of_quotients",
    "divmod.by_quotient",
    "reduce.product_of_sums",
    "reduce.sum_of_sums",
    "reduce.constant_factor",
    "reduce.twice",
    "reduce.of_dot",
    "dot.to_the_left",
    "dot.to_the_left_in_batches",
    "conv.one_window",
    "conv.one_place",
    "conv.one_place_of_images",
    "clamp.twice",
}


def plain(line):
    return re.sub(r"\s", "", line)


def written():
    """The lines above rules; the text after a colon distinguishes the rules of one line."""
    lines = set()
    for path in FOLDER.glob("*.pwr"):
        text = path.read_text(encoding="utf-8")
        assert len(re.findall(r"^  // .*→", text, re.M)) == len(re.findall(r"^  rule ", text, re.M)), path
        lines.update(plain(line.split(": ")[0]) for line in re.findall(r"^  // (.*→.*)$", text, re.M))
    return lines


def listed():
    path = Path(os.environ.get("PW_SHARED_DATA", "../shared/data")) / "xla-simplifier-rules.md"
    if not path.exists():
        return None
    rows = re.findall(r"^\w+ \(\d+\): (.*)$", path.read_text(encoding="utf-8"), re.M)
    return {plain(line.split(" // ")[0]) for row in rows for line in row.split(" · ")}


def pwr(*arguments):
    return subprocess.run([BIN / "pwr", *arguments], capture_output=True, text=True, timeout=900, check=False)


class Simplifier(unittest.TestCase):
    def test_every_line_is_written(self):
        lines, wanted = written(), listed()
        self.assertGreaterEqual(len(lines), 112)
        if wanted is None:
            self.skipTest("xla-simplifier-rules.md is not there; set PW_SHARED_DATA to its folder")
        self.assertEqual(wanted - lines, set())
        self.assertEqual(lines - wanted, set())

    def test_they_load_and_only_verdicts_are_warned_of(self):
        for path in sorted(FOLDER.glob("*.pwr")):
            with self.subTest(path.name):
                done = pwr("check", str(path))
                self.assertEqual(done.returncode, 0, done.stderr)
                warned = re.findall(r"^warning\[(PW\d+)\]: `([\w.]+)`", done.stderr, re.M)
                self.assertEqual(len(warned), done.stderr.count("warning["), done.stderr)
                for code, rule in warned:
                    self.assertIn(rule, WRAPS if code == "PW1153" else OVERFLOWS if code == "PW1154" else ())

    def test_proofs(self):
        """For all sizes and ranks; what IEEE arithmetic makes false is named, with an element."""
        rows = {}
        for path in sorted(FOLDER.glob("*.pwr")):
            done = pwr("--format", "json", "prove", "-r", str(path))
            self.assertIn(done.returncode, (0, 1), done.stderr)
            rows.update({row["rule"]: row for row in json.loads(done.stdout)})
        if not any(row["verdict"] == "differs_only_for" for row in rows.values()):
            self.skipTest("built without a solver")
        for rule, row in rows.items():
            with self.subTest(rule):
                if rule in WRAPS:
                    self.assertIn(row["verdict"], ("refuted", "unknown"), row)
                    continue
                if rule in OVERFLOWS:
                    self.assertEqual(row["verdict"], "may_overflow", row)
                    continue
                differs = DIFFERS.get(rule)
                if differs:
                    self.assertEqual((row["verdict"], set(row["only_for"])), ("differs_only_for", differs))
                else:
                    self.assertEqual(row["known_by"], "proof", row)
                    self.assertIn(row["verdict"], ("same_bits", "rounds"), row)
                if differs and row["known_by"] == "proof":
                    self.assertRegex(row["reason"], r"^for a\[[i0-9, ]*\] = (NaN|-?inf|-?0) the left is (NaN|-?inf|-?0|true|false) and the right ")

    def test_samples(self):
        seen = set()
        for path in sorted(FOLDER.glob("*.pwr")):
            for row in json.loads(pwr("--format", "json", "verify", "-r", str(path)).stdout):
                with self.subTest(row["rule"]):
                    seen.add(row["rule"])
                    if row["rule"] in DIFFERS:
                        self.assertEqual((row["verdict"], set(row["only_for"])), ("differs_only_for", DIFFERS[row["rule"]]))
                    elif row["rule"] in WRAPS:
                        self.assertEqual(row["verdict"], "refuted", row)
                    elif row["rule"] in REALS | OVERFLOWS:
                        self.assertIn(row["verdict"], ("same_bits", "rounds", "may_overflow"))
                        self.assertGreater(row["samples"], 0)
                    else:
                        self.assertEqual(row["verdict"], "same_bits", row)
        self.assertEqual((DIFFERS.keys() | REALS) - seen, set())


if __name__ == "__main__":
    unittest.main()
