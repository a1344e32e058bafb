#!/usr/bin/python3
"""`pwr test` from outside: folders, counts put right, JUnit."""
import json
import os
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
RULES = """// One rule and its tests.
param depth: int = 1
rule merge { y = relu(relu(x)) => y = relu(x) }
pass p = greedy { merge } when depth < 3

test right {
  graph { in x: f32[n]  y = relu(relu(x))  out y }
  apply p
  expect merge == 1
}
test {name} {
  graph { in x: f32[n]  y = relu(relu(relu(x)))  out y }
  apply p
  expect merge == {count}, count(relu) == 1
}
"""


def text(name="wrong", count="12345678"):
    return RULES.replace("{name}", name).replace("{count}", count)


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def write(self, name, content):
        (self.path / name).write_text(content, encoding="utf-8")

    def read(self, name):
        return (self.path / name).read_text(encoding="utf-8")

    def pwr_test(self, *args):
        return subprocess.run(
            [BIN / "pwr", "test", *args],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )

    def test_files_of_a_folder_may_use_the_same_names(self):
        self.write("a.pwr", text(count="2"))
        self.write("b.pwr", text(count="2"))
        done = self.pwr_test(".")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("4 tests, 0 failed", done.stdout)

    def test_a_file_that_does_not_load_hides_no_other(self):
        self.write("a.pwr", "rule {")
        self.write("b.pwr", text())
        done = self.pwr_test(".")
        self.assertEqual(done.returncode, 3)
        self.assertIn("a.pwr", done.stderr)
        self.assertIn("2 tests, 1 failed", done.stdout)

    def test_update_puts_counts_right_and_nothing_else(self):
        self.write("a.pwr", text())
        done = self.pwr_test("a.pwr")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.read("a.pwr"), text())
        done = self.pwr_test("a.pwr", "--update")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("12345678 is now 2", done.stderr)
        self.assertEqual(self.read("a.pwr"), text(count="2"))
        self.assertEqual(self.pwr_test("a.pwr").returncode, 0)

    def test_update_leaves_other_failures(self):
        other = text().replace("count(relu) == 1", "count(relu) < 1")
        self.write("a.pwr", other)
        done = self.pwr_test("a.pwr", "--update")
        self.assertEqual(done.returncode, 1)
        self.assertIn("count(relu) < 1", done.stdout)
        self.assertEqual(self.read("a.pwr"), other.replace("12345678", "2"))

    def test_definitions_are_for_the_files_that_know_them(self):
        self.write("a.pwr", text(count="2"))
        self.write("b.pwr", text(count="2").replace("depth", "height"))
        self.assertEqual(self.pwr_test(".", "-D", "depth=2").returncode, 0)
        self.assertIn("2 failed", self.pwr_test(".", "-D", "depth=3").stdout)
        self.assertEqual(self.pwr_test(".", "-D", "width=3").returncode, 2)

    def test_junit_is_well_formed_whatever_the_texts_hold(self):
        odd = "`a<b>&\"'\x01é\u2028`"
        self.write("a.pwr", text(name=odd))
        data = (self.path / "a.pwr").read_bytes().replace("é".encode(), b"\xff\xed\xa0\x80")
        (self.path / "a.pwr").write_bytes(data)
        done = subprocess.run([BIN / "pwr", "test", "a.pwr", "--junit", "out.xml"], cwd=self.path, capture_output=True, timeout=3600, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        suite = ElementTree.parse(self.path / "out.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))
        cases = suite.findall("testcase")
        self.assertEqual([len(c.findall("failure")) for c in cases], [0, 1])
        name = cases[1].get("name")
        self.assertTrue(name.startswith("a<b>&\"'?"), name)
        self.assertTrue(name.endswith("\u2028"), name)
        self.assertIn("expected merge == 12345678, got 2", cases[1].find("failure").get("message"))

    def test_junit_has_an_error_for_each_file_that_does_not_load(self):
        self.write("a.pwr", "rule {")
        self.write("b.pwr", text(count="2"))
        self.write("c.counts.json", "{}")
        self.write("d.pwr", 'use "nowhere.pwr"\n')
        self.write("e.counts.json", '{"generate": "llama --layers none", "rules": ["llm"], "pipelines": {"o1": {"nodes": 1, "rewrites": {}}}}')
        done = self.pwr_test(".", "--junit", "out.xml")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("2 tests, 0 failed", done.stdout)  # of the file that loads
        suite = ElementTree.parse(self.path / "out.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("6", "0", "4"))
        errors = {case.get("classname"): case.find("error") for case in suite.findall("testcase") if case.find("error") is not None}
        self.assertEqual(sorted(errors), ["a.pwr", "c.counts.json", "d.pwr", "e.counts.json"])
        self.assertIn("there is no `nowhere.pwr`", errors["d.pwr"].get("message"))
        self.assertIn("d.pwr:1:", errors["d.pwr"].text)
        for error in errors.values():
            self.assertTrue(error.get("message"))
            self.assertIn("error", error.text)

    def test_junit_of_a_file_that_is_not_there(self):
        self.assertEqual(self.pwr_test("absent.pwr", "--junit", "out.xml").returncode, 3)
        suite = ElementTree.parse(self.path / "out.xml").getroot()
        self.assertIn("no such file", suite.find("testcase").find("error").get("message"))

    def counts(self, **changes):
        baseline = {
            "generate": "llama --layers 2 --hidden 64 --heads 4 --kv-heads 2 --ffn 128",
            "rules": ["llm"],
            "pipelines": {"o1": {"nodes": 34, "rewrites": {"add_rms": 4}}},
        }
        self.write("llama.counts.json", json.dumps({**baseline, **changes}))
        return self.pwr_test(".")

    def test_counts_of_a_generated_model(self):
        done = self.counts()  # two sums a layer, each read by the next norm
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_counts_that_differ_are_a_table_and_can_be_put_right(self):
        done = self.counts(pipelines={"o1": {"nodes": 34, "rewrites": {"add_rms": 3, "noop.detach": 7}}})
        self.assertEqual(done.returncode, 1)
        lines = [line.split() for line in done.stdout.splitlines()]
        self.assertIn(["rule", "before", "after"], lines)
        self.assertIn(["add_rms", "3", "4"], lines)
        self.assertIn(["noop.detach", "7", "0"], lines)
        self.assertNotIn("nodes", done.stdout)
        self.assertIn("--update", done.stdout)
        self.assertEqual(self.pwr_test(".", "--update").returncode, 0)
        self.assertEqual(json.loads(self.read("llama.counts.json"))["pipelines"]["o1"]["rewrites"], {"add_rms": 4})
        self.assertEqual(self.pwr_test(".").returncode, 0)

    def test_files_of_counts_that_are_wrong(self):
        for changes in (
            {"pipelines": {}},
            {"pipelines": {"o9": {}}},
            {"pipelines": {"o1": {"nodes": -1}}},
            {"pipelines": {"o1": {"rewrites": {"add_rms": "4"}}}},
            {"generate": "llama --layers none"},
            {"generate": 3},
            {"rules": "llm"},
            {"rules": ["nothing.pwr"]},
            {"params": {"tp": 2}},
            {"params": {"width": "2"}},
            {"ruels": []},
        ):
            done = self.counts(**changes)
            self.assertEqual(done.returncode, 3, changes)
            self.assertIn("error", done.stderr)
        self.write("llama.counts.json", "[" * 100000)
        self.assertEqual(self.pwr_test(".").returncode, 3)


if __name__ == "__main__":
    unittest.main()
