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
    "may_overflow": "rule narrow { y = f16(bf16(x: f16)) => y = x }",
    "refuted": "rule coarse { y = neg(neg(x: f32)) => y = f32(bf16(x)) }",
    "no_instance": "rule never { y = relu(x: T[n, d]) where d == 8, d == 16 => y = x }",
    "cannot_run": "op secret(x: T[*s]) -> y: T[*s]  rule unknown { y = relu(secret(x)) => y = secret(relu(x)) }",
}
EXIT = {"same_bits": 0, "rounds": 0, "differs_only_for": 1, "may_overflow": 1, "refuted": 1, "no_instance": 3, "cannot_run": 5}


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def verify(self, *verdicts, options=()):
        (self.path / "rules.pwr").write_text("\n".join(RULES[v] for v in verdicts), encoding="utf-8")
        return subprocess.run(
            [BIN / "pwr", *options, "verify", "-r", "rules.pwr"], cwd=self.path, capture_output=True, text=True, timeout=3600, check=False
        )

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
        self.assertEqual(rows["narrow"]["by_dtype"]["f16"]["verdict"], "may_overflow")
        self.assertEqual(rows["coarse"]["by_dtype"]["f32"]["verdict"], "refuted")
        self.assertEqual(rows["coarse"]["drawn"]["dtypes"], ["f32"])
        special = rows["thirds"]["drawn"]["special_values"]["f32"]
        self.assertEqual(special["least"], special["of"])
        self.assertRegex(rows["narrow"]["reason"], r"x(\[i0\])? = ")
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

    def pwr(self, *args, code=0):
        done = subprocess.run([BIN / "pwr", *args], cwd=self.path, capture_output=True, text=True, timeout=3600, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def write(self, name, text):
        (self.path / name).write_text(text, encoding="utf-8")

    def test_no_command_believes_a_false_trait(self):
        body = "op mine(x: f32[*s], z: f32[*s]) -> y: f32[*s] commutative {{ y = x {} z }}\n"
        graph = "graph g {{\n{}in x: f32[4], z: f32[4]\na = mine(x, z)\nb = mine(z, x)\nout a, b\n}}\n"
        for sign, code in (("-", 3), ("+", 0)):
            self.write("g.pwg", graph.format(body.format(sign)))
            for args in (["opt", "g.pwg", "-r", "noop", "-p", "clean"], ["run", "g.pwg"], ["stats", "g.pwg"]):
                done = self.pwr(*args, code=code)
                self.assertEqual("PW1320" in done.stderr, code != 0)
                self.assertEqual("is declared `commutative` but is not: " in done.stderr, code != 0)
            done = self.pwr("--format", "json", "verify", "--graph", "g.pwg", code=1 if code else 0)
            rows = {row["rule"]: row["verdict"] for row in json.loads(done.stdout)}
            self.assertEqual(rows, {"commutative mine": "refuted" if code else "same_bits"})
            self.write("r.pwr", body.format(sign))
            self.write("plain.pwg", graph.format(""))
            self.pwr("opt", "plain.pwg", "-r", "r.pwr", "-r", "noop", "-p", "clean", code=code)

    def test_what_ops_write_is_compared(self):
        op = "op step(mut c: f32[m, d], x: f32[m, d]) -> (o: f32[m, d] from c, s: f32[m, d]) { o = c + x  s = relu(x) }\n"
        self.write("g.pwg", "graph g {\n" + op + "in buffer c: f32[4, 2]\nin x: f32[4, 2]\no, s = step(c, x)\nz = exp(s)\nout z\n}\n")
        self.pwr("export", "g.pwg", "-o", "g.json")
        for rule, code in (("o, s = step(c, x) => o = c  s = relu(x)", 4), ("o, s = step(c, x) => o = x + c  s = relu(x)", 0)):
            self.write("r.pwr", op + "rule r { " + rule + " }\n")
            for graph in ("g.pwg", "g.json"):
                done = self.pwr("--format", "json", "run", graph, "-r", "r.pwr", "-p", "r", "--check", code=code)
                self.assertIn('"c"', done.stdout)
            self.pwr("verify", "-r", "r.pwr", code=1 if code else 0)

    def test_text_names_the_sample(self):
        done = self.verify("refuted")
        self.assertIn("refuted: y", done.stdout)
        self.assertIn("where x = ", done.stdout)
        self.assertIn("1 refuted", done.stderr)


if __name__ == "__main__":
    unittest.main()
