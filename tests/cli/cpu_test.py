#!/usr/bin/python3
"""The backend cpu and the compile cache from outside: what is compiled, what is found again, what is refused."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
DEMO = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0", "-r", "llm", "-p", "o2"]
COMPILER = any(shutil.which(name) for name in ("c++", "g++", "clang++"))


def pwr(*args, **environment):
    done = subprocess.run([BIN / "pwr", *args], capture_output=True, text=True, timeout=3600, check=False, env={**os.environ, **environment})
    if "internal error" in done.stderr or done.returncode < 0:
        raise AssertionError(f"{args}: {done.returncode}\n{done.stderr}")
    return done


class Cpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = str(Path(self.folder.name, "cache"))

    def run_demo(self, *more, **environment):
        return pwr("run", *DEMO, "--backend", "cpu", "--tokens", "1,7", *more, **{"PWR_CACHE_DIR": self.cache, **environment})

    def stats(self):
        done = pwr("cache", "stats", "--format", "json", PWR_CACHE_DIR=self.cache)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["what"]: row["number"] for row in json.loads(done.stdout)}

    @unittest.skipUnless(COMPILER, "no C++ compiler")
    def test_a_second_run_compiles_nothing(self):
        cold, warm = self.run_demo("--check"), self.run_demo("--check")
        for done in (cold, warm):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("all outputs of all steps pass the check", done.stderr)
            self.assertIn("× scaled_mm: op scaled_mm has no body", done.stderr)
        self.assertIn("0 from the cache", cold.stderr)
        self.assertIn("0 compiled now", warm.stderr)
        report = str(Path(self.folder.name, "report"))
        self.assertEqual(self.run_demo("--report", report).returncode, 0)
        self.assertIn("ops of one kernel", Path(report, "report.txt").read_text(encoding="utf-8"))
        stats = self.stats()
        self.assertGreater(stats["objects of cpu"], 3)
        self.assertEqual(stats["objects of cpu"], stats["compiled, over all runs"])
        self.assertEqual(stats["damaged objects"], 0)

    @unittest.skipUnless(COMPILER, "no C++ compiler")
    def test_it_can_be_disabled(self):
        for _ in range(2):
            done = self.run_demo(PWR_DISABLE_CACHE="1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("0 from the cache", done.stderr)
        self.assertFalse(Path(self.cache).exists())
        self.assertIn("PWR_DISABLE_CACHE disables it", pwr("cache", "stats", PWR_CACHE_DIR=self.cache, PWR_DISABLE_CACHE="1").stderr)
        self.run_demo(PWR_DISABLE_CACHE="0")
        self.assertTrue(Path(self.cache).exists())

    @unittest.skipUnless(COMPILER, "no C++ compiler")
    def test_damage_is_found_and_repaired(self):
        self.run_demo()
        objects = [path for path in Path(self.cache, "objects").rglob("*") if path.is_file()]
        for path in objects:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 4
            path.write_bytes(data)
        self.assertEqual(self.stats()["damaged objects"], len(objects))
        done = self.run_demo()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"removed {len(objects)} damaged objects from the cache", done.stderr)
        self.assertEqual(pwr("cache", "verify", PWR_CACHE_DIR=self.cache).returncode, 0)
        objects[0].write_bytes(b"")
        self.assertEqual(pwr("cache", "verify", PWR_CACHE_DIR=self.cache).returncode, 1)
        self.assertEqual(pwr("cache", "clear", PWR_CACHE_DIR=self.cache).returncode, 0)
        self.assertNotIn("objects of cpu", self.stats())

    def why(self, *args):
        done = pwr("cache", "why", "--format", "json", *args, PWR_CACHE_DIR=self.cache)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_why_a_rule_was_judged_again(self):
        rules = Path(self.folder.name, "rules.pwr")
        for pattern in ("x / 1.0", "x * 1.0", "x * 1.0"):
            rules.write_text(f"rule unit {{\n  y = {pattern}\n  =>\n  y = x\n}}\nrule twice {{\n  y = neg(neg(x))\n  =>\n  y = x\n}}\n")
            self.assertEqual(pwr("prove", "-r", str(rules), "unit", "twice", PWR_CACHE_DIR=self.cache).returncode, 0)
        # The two proofs of the first run may have the same time: file systems count in steps of milliseconds.
        newest, *older = self.why()
        self.assertEqual((newest["kind"], newest["subject"]), ("proof", "unit"))
        self.assertEqual(sorted((row["kind"], row["subject"]) for row in older), [("proof", "twice"), ("proof", "unit")])
        self.assertEqual(len(newest["changes"]), 1)
        self.assertRegex(newest["changes"][0], r"^rule, line \d+: `  y = x / 1.0` became `  y = x \* 1.0`$")
        parts = {row["part"]: row for row in self.why(newest["key"][:20])}
        self.assertIn("x * 1.0", parts["rule"]["value"])
        self.assertIn("became", parts["rule"]["before"])
        self.assertIsNone(parts["version"]["before"])
        for key in ("0" * 64, "xyz"):
            done = pwr("cache", "why", key, PWR_CACHE_DIR=self.cache)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("0 objects in", done.stderr)
        self.assertEqual(pwr("cache", "clear", PWR_CACHE_DIR=self.cache).returncode, 0)
        self.assertEqual(self.why(), [])

    def test_a_folder_that_others_can_write_to_is_refused(self):
        os.mkdir(self.cache)
        os.chmod(self.cache, 0o777)
        done = self.run_demo()
        self.assertEqual(done.returncode, 0, done.stderr)
        if COMPILER:
            self.assertIn("others can write to it (mode 777)", done.stderr)
        self.assertEqual(list(Path(self.cache).iterdir()), [])
        self.assertEqual(pwr("cache", "stats", PWR_CACHE_DIR=self.cache).returncode, 3)

    @unittest.skipUnless(COMPILER, "no C++ compiler")
    def test_strict_is_the_interpreter_in_single_precision(self):
        for more in ([], ["--grouping", "none"]):
            done = self.run_demo("--strict", "--check", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pwr("run", *DEMO, "--strict", "--tokens", "1").returncode, 2)

    def test_without_a_compiler_everything_runs_on_eager(self):
        done = self.run_demo("--check", PATH="/nowhere", CXX="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no C++ compiler was found, so everything runs on eager", done.stderr)

    def test_help(self):
        done = pwr("cache", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("pwr cache stats", done.stdout)
        self.assertIn("PWR_CACHE_DIR", done.stdout)
        self.assertEqual(pwr("cache").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
