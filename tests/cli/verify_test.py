#!/usr/bin/python3
"""The verdicts of `pwr verify`, from outside: as text, as data, and as exit codes."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
RULES = {
    "same_bits": "rule twice { y = relu(relu(x)) => y = relu(x) }",
    "rounds": "rule thirds { y = mul(mul(x: f32, 0.1), 0.3) => y = mul(x, 0.03) }",
    "differs_only_for": "rule reflexive { y = ge(x: f32[*s], x) => y = full(){shape = [*s], value = 1.0, dtype = b8} }",
    "refuted": "rule narrow { y = f16(bf16(x: f16)) => y = x }",
    "no_instance": "rule never { y = relu(x: T[n, d]) where d == 8, d == 16 => y = x }",
    "cannot_run": "op secret(x: T[*s]) -> y: T[*s]  rule unknown { y = relu(secret(x)) => y = secret(relu(x)) }",
}
EXIT = {"same_bits": 0, "rounds": 0, "differs_only_for": 1, "refuted": 1, "no_instance": 3, "cannot_run": 5}


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def verify(self, *verdicts, options=()):
        (self.path / "rules.pwr").write_text("\n".join(RULES[v] for v in verdicts), encoding="utf-8")
        return subprocess.run([BIN / "pwr", *options, "verify", "-r", "rules.pwr"], cwd=self.path, capture_output=True, text=True,
                              timeout=600, check=False)

    def test_each_verdict_has_its_exit_code(self):
        for verdict, code in EXIT.items():
            with self.subTest(verdict):
                self.assertEqual(self.verify(verdict).returncode, code)

    def test_the_worst_decides(self):
        self.assertEqual(self.verify("same_bits", "no_instance", "cannot_run").returncode, 3)
        self.assertEqual(self.verify("cannot_run", "refuted", "no_instance").returncode, 1)

    def test_verdicts_as_data(self):
        done = self.verify(*EXIT, options=("--format", "json"))
        rows = {row["rule"]: row for row in json.loads(done.stdout)}
        self.assertEqual([row["verdict"] for row in rows.values()], list(EXIT))
        self.assertEqual(rows["reflexive"]["only_for"], ["nan"])
        self.assertEqual(rows["narrow"]["by_dtype"]["f16"]["verdict"], "refuted")
        self.assertIn("x = ", rows["narrow"]["reason"])
        self.assertGreater(rows["thirds"]["ulps"], 0)
        self.assertLessEqual(rows["thirds"]["ulps"], 16)
        self.assertIn("secret", rows["unknown"]["reason"])
        self.assertEqual(rows["never"]["samples"], 0)
        self.assertGreater(rows["twice"]["samples"], 0)

    def test_traits_are_checked_too(self):
        op = "op mine(x: f32[*s], z: f32[*s]) -> y: f32[*s] {} {{ y = x {} z }}\n"
        for traits, sign, code in (("commutative", "-", 1), ("commutative associative", "+", 0), ("associative", "-", 1)):
            with self.subTest(traits=traits, sign=sign):
                RULES["declared"] = op.format(traits, sign)
                done = self.verify("declared", options=("--format", "json"))
                rows = {row["rule"]: row["verdict"] for row in json.loads(done.stdout)}
                self.assertEqual(list(rows), [f"{trait} mine" for trait in traits.split()])
                self.assertEqual(done.returncode, code)

    def test_text_names_the_sample(self):
        done = self.verify("refuted")
        self.assertIn("refuted: y", done.stdout)
        self.assertIn("where x = ", done.stdout)
        self.assertIn("1 refuted", done.stderr)


if __name__ == "__main__":
    unittest.main()
