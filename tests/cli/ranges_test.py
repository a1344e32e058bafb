#!/usr/bin/python3
"""A pipeline with ranges of tokens, from outside: a graph, a table and a trace for each range."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
RULES = """
rule few  { y = relu(x: T[n, d])  where n <= 16  => y = maximum(x, 0) }
rule rest { y = relu(x: T[n, d])  where n > 16  => y = x + maximum(neg(x), 0) }
pipeline ranged { for tokens in ranges(16) { greedy { few, rest } } }
"""
ASSUMES = """
rule four { y = relu(x: T[n, d])  assume n % 4 == 0, n >= 8  => y = maximum(x, 0) }
pipeline ranged { for tokens in ranges(16) { greedy { four } } }
"""
GRAPH = "graph g { symbol n in 1..64 tokens in x: f32[n, 8]  y = relu(x)  out y }"


class Ranges(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        (self.path / "rules.pwr").write_text(RULES, encoding="utf-8")
        (self.path / "graph.pwg").write_text(GRAPH, encoding="utf-8")

    def pwr(self, command, *args):
        return subprocess.run(
            [BIN / "pwr", command, "graph.pwg", "-r", "rules.pwr", "-p", "ranged", *args],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )

    def steps(self, done):
        """Tokens and size of each step that a run took, by graph."""
        return [[(row["tokens"], row["runs_as"]) for row in graph["steps"]] for graph in json.loads(done.stdout)["graphs"]]

    def test_a_file_a_range(self):
        done = self.pwr("opt", "-o", "out.pwg", "--trace", "trace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("maximum", (self.path / "out.1-16.pwg").read_text(encoding="utf-8"))
        self.assertIn("neg", (self.path / "out.17-64.pwg").read_text(encoding="utf-8"))
        self.assertFalse((self.path / "out.pwg").exists())
        for name in ("1-16", "17-64"):
            self.assertIn(f"out.{name}.pwg", done.stderr)
            self.assertTrue((self.path / "trace" / name / "journal.jsonl").exists())

    def test_counts_of_each_range(self):
        done = self.pwr("opt", "--stats", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        passes, rules = answer["passes"], answer["rules"]
        self.assertEqual([(p["tokens"], p["rewrites"]) for p in passes], [("1-16", 1), ("17-64", 1)])
        fired = {(r["tokens"], r["rule"]): r["matches"] for r in rules}
        self.assertEqual(fired, {("1-16", "few"): 1, ("1-16", "rest"): 0, ("17-64", "few"): 0, ("17-64", "rest"): 1})

    def test_one_output_cannot_hold_several(self):
        done = self.pwr("opt", "-o", "-")
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_a_step_runs_the_graph_of_its_range(self):
        done = self.pwr("run", "--tokens", "1,16,17,40", "--check", "--sizes", "4,16,32", "--report", "report", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tokens 1-16:", done.stderr)
        self.assertIn("all outputs of all steps pass", done.stderr)
        steps = self.steps(done)
        self.assertEqual(steps, [[(1, 4), (16, 16)], [(17, 32), (40, 40)]])
        self.assertTrue((self.path / "report" / "17-64" / "report.html").exists())
        self.assertEqual(self.pwr("run", "--tokens", "65").returncode, 2)

    def test_a_plan_a_range(self):
        done = self.pwr("plan", "-o", "plan.json", "--sizes", "4,16,32")
        self.assertEqual(done.returncode, 0, done.stderr)
        sizes = [json.loads((self.path / f"plan.{name}.json").read_text(encoding="utf-8"))["capture_sizes"] for name in ("1-16", "17-64")]
        self.assertEqual(sizes, [[4, 16], [32]])
        self.assertEqual(self.pwr("plan").returncode, 2)

    def test_commands_that_take_one_graph_say_so(self):
        for command in ("split", "compile"):
            done = self.pwr(command, "-o", "out")
            self.assertEqual(done.returncode, 2, command)
            self.assertIn("token range", done.stderr)

    def assume(self):
        (self.path / "rules.pwr").write_text(ASSUMES, encoding="utf-8")

    def test_what_is_assumed_has_a_second_graph(self):
        self.assume()
        done = self.pwr("opt", "-o", "out.pwg")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tokens 1..16: valid for steps where n % 4 == 0, n >= 8;", done.stderr)
        self.assertIn("tokens 17..64: valid for steps where n % 4 == 0;", done.stderr)
        for name in ("1-16", "17-64"):
            self.assertIn("maximum", (self.path / f"out.{name}.pwg").read_text(encoding="utf-8"))
            self.assertIn("relu", (self.path / f"out.{name}.otherwise.pwg").read_text(encoding="utf-8"))

    def test_a_step_runs_the_second_graph_where_its_padded_size_does_not_meet_the_conditions(self):
        self.assume()
        done = self.pwr("run", "--tokens", "4,6,7,9,16,18,63", "--check", "--sizes", "4,6,8,12,16,20,32", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all outputs of all steps pass", done.stderr)
        steps = self.steps(done)
        # 4 and 6 are below 8; 7 and 9 are padded to what 4 divides; 63 is above the largest size and is not padded.
        self.assertEqual(steps, [[(7, 8), (9, 12), (16, 16)], [(4, 4), (6, 6)], [(18, 20)], [(63, 63)]])
        names = [line for line in done.stderr.splitlines() if line.startswith("tokens ") and line.endswith(":")]
        self.assertEqual(names, ["tokens 1-16:", "tokens 1-16.otherwise:", "tokens 17-64:", "tokens 17-64.otherwise:"])

    def test_a_decoder_in_sequence_parallelism_where_the_ranks_divide_the_tokens(self):
        made = subprocess.run(
            [
                BIN / "pwr",
                "generate",
                "llama",
                "--layers",
                "2",
                "--hidden",
                "64",
                "--heads",
                "4",
                "--kv-heads",
                "2",
                "--ffn",
                "128",
                "--vocab",
                "64",
                "--tp",
                "2",
                "-o",
                "llama.pwg",
            ],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        self.assertEqual(made.returncode, 0, made.stderr)
        command = [
            BIN / "pwr",
            "run",
            "llama.pwg",
            "-r",
            "llm",
            "-p",
            "o2",
            "-D",
            "tp=2",
            "-D",
            "sp_tokens=8",
            "--ranks",
            "2",
            "--sizes",
            "3,4,8,12",
            "--tokens",
            "3,4,7,13,14",
            "--check",
            "--format",
            "json",
        ]
        done = subprocess.run(command, cwd=self.path, capture_output=True, text=True, timeout=3600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("n % 2 == 0, n >= 8", done.stderr)
        self.assertIn("all outputs of all steps pass", done.stderr)
        steps = self.steps(done)
        # In parts: 7 as 8, and 14. As sums over ranks: too few tokens, and 13, which two ranks do not divide.
        self.assertEqual(steps, [[(7, 8), (14, 14)], [(3, 3), (4, 4), (13, 13)]])


if __name__ == "__main__":
    unittest.main()
