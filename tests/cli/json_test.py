#!/usr/bin/python3
"""`--format json`: every command prints one document, which its schema in docs/answers.schema.json accepts."""
import json
import os
import re
import subprocess
import unittest
from pathlib import Path

import jsonschema

from program import BIN, ProgramTest

SCHEMA = json.loads(Path("docs/answers.schema.json").read_text(encoding="utf-8"))
DEMO = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0"]
LLM = ["-r", "llm", "-p", "o2"]
RULES = """rule merge { y = relu(relu(x)) => y = relu(x) }
rule other { y = relu(x) => y = maximum(x, 0) }
pass p = greedy { merge }
pass both = greedy { merge, other }
pipeline few { for tokens in ranges(4) { p } }
test right {
  graph { in x: f32[n]  y = relu(relu(x))  out y }
  apply p
  expect merge == 1
}
test wrong {
  graph { in x: f32[n]  y = relu(x)  out y }
  apply p
  expect merge == 1
}
"""
GRAPH = """graph g {
  symbol n in 1..64 tokens
  in x: f32[n, 8]
  y = relu(relu(x))
  out y
}
"""
BACKENDS = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
QUANTITY = re.compile(r"[-+]?\d+(\.\d+)? ?(ns|µs|us|ms|s|B|KiB|MiB|GiB|%)")


def accept(document, name):
    """Raises where the schema of that name does not accept it."""
    jsonschema.Draft202012Validator({**SCHEMA, "$ref": "#/$defs/" + name}).validate(document)


def texts(value):
    if isinstance(value, str):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(below)


EGRAPH = '{"nodes": {"a": {"op": "f", "children": ["b"], "eclass": "0", "cost": 2}, "b": {"op": "x", "eclass": "1"}}, "root_eclasses": ["0"]}'


class Schema(unittest.TestCase):
    def test_it_is_one(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_it_refuses(self):
        good = [{"what": "good objects", "number": 3}]
        accept(good, "cache")
        for bad in ([{"what": "good objects", "number": "3"}], [{"what": "x"}], [{**good[0], "more": 1}], {}):
            with self.assertRaises(jsonschema.ValidationError):
                accept(bad, "cache")

    def test_the_page_names_each_schema(self):
        page = Path("docs/formats.md").read_text(encoding="utf-8")
        answers = page.partition("## Answers of commands")[2].partition("\n## ")[0]
        named = set(re.findall(r"\| `([^`]+)` \|$", answers, flags=re.M))
        helpers = {"pass", "rule", "proofs", "not_proved", "place", "file_place", "judgement", "rule_verdicts", "memory", "dispatch"}
        self.assertEqual(named, set(SCHEMA["$defs"]) - helpers)


class Answers(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.put("r.pwr", RULES)
        cls.put("odd.pwr", RULES.replace("rule merge {", "rule merge{"))
        cls.put("oops.pwr", RULES.replace("maximum(", "maximun("))
        cls.put("orders.pwr", RULES.replace("relu(relu(x)) => y = relu(x)", "relu(x) => y = neg(x)"))
        cls.put("wrong.pwr", RULES.replace("=> y = relu(x)", "=> y = neg(x)"))
        cls.put("g.pwg", GRAPH)
        cls.put("h.pwg", GRAPH.replace("relu(relu(x))", "neg(x)"))
        cls.put("counts.csv", "1 10\n7 3\n")

    @classmethod
    def put(cls, name, text):
        Path(cls.path(name)).write_text(text, encoding="utf-8")

    def answer(self, schema, *args, code=0):
        done = subprocess.run(
            [BIN / "pwr", *args, "--format", "json"],
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
            env={**BACKENDS, "PWR_CACHE_DIR": self.path("cache")},
        )
        self.assertEqual(done.returncode, code, (args, done.stderr))
        document = json.loads(done.stdout)  # one, or it fails
        accept(document, schema)
        return document

    def commands(self):
        """(schema, exit code, command) for each command of `pwr --help`, with the options that change what it answers."""
        g, h, r, out = self.path("g.pwg"), self.path("h.pwg"), self.path("r.pwr"), self.path("out")
        return [
            ("graph", 0, "import", *DEMO),
            ("import", 0, "import", *DEMO, "-o", out + ".json"),
            ("graph", 0, "export", g),
            ("export", 0, "export", g, "-o", out + ".onnx"),
            ("graph", 0, "generate", "llama", "--layers", "1"),
            ("generate", 0, "generate", "llama", "--layers", "1", "-o", out + ".pwg"),
            ("stats", 0, "stats", g),
            ("diff", 1, "diff", g, h),
            ("diff", 0, "diff", g, g),
            ("equal", 0, "equal", g, g),
            ("equal", 1, "equal", g, h),
            ("discover", 0, "discover", "--ops", "relu,cat,split", "--nodes", "2", "--inputs", "1"),
            ("check", 0, "check", r),
            ("check", 3, "check", self.path("oops.pwr")),
            ("check --order", 0, "check", r, "--order"),
            ("fmt", 1, "fmt", "--check", self.path("odd.pwr")),
            ("test", 1, "test", r),
            ("verify", 0, "verify", "-r", r),
            ("prove", 0, "prove", "-r", r),
            ("fuzz-order", 1, "fuzz-order", g, "-r", self.path("orders.pwr"), "-p", "both"),
            ("bisect", 0, "bisect", g, "-r", self.path("wrong.pwr"), "-p", "p"),
            ("bisect", 1, "bisect", g, "-r", r, "-p", "p"),
            ("reduce", 0, "reduce", g, "-r", self.path("wrong.pwr"), "-p", "p"),
            ("reduce", 1, "reduce", g, "-r", r, "-p", "p"),
            ("explore", 0, "explore", g, "-r", self.path("orders.pwr"), "--passes", "p,both", "--by", "nodes,bytes"),
            ("explore", 0, "explore", g, "-r", r, "-p", "p"),
            (
                "explore",
                0,
                "explore",
                g,
                "-r",
                r,
                "-p",
                "p",
                "--by",
                "launches,peak_bytes,modelled_us,measured_us,compile_ms",
                "--token-ranges",
                "1..2,3..4",
            ),
            ("explore --study", 0, "explore", g, h, "-r", r, "-p", "p", "--study", self.path("study.db")),
            ("explore --rows", 0, "explore", "--study", self.path("study.db"), "--rows"),
            ("extract", 0, "extract", self.file("egraph.json", EGRAPH)),
            ("run", 4, "run", g, "-r", self.path("wrong.pwr"), "-p", "p", "--tokens", "3", "--check-each"),
            ("opt", 0, "opt", g, "-r", r, "-p", "p"),
            ("opt", 0, "opt", *DEMO, *LLM, "--stats"),
            ("opt", 0, "opt", g, "-r", r, "-p", "few", "--stats", "-o", out + ".pwg"),
            ("opt", 0, "opt", *DEMO, *LLM, "--prove"),
            ("opt", 0, "opt", g, "-r", self.path("wrong.pwr"), "-p", "p", "--prove"),
            ("run", 0, "run", g, "-r", self.path("wrong.pwr"), "-p", "p", "--tokens", "3", "--prove"),
            ("check", 0, "check", r, "--no-proof"),
            ("explain", 0, "explain", "merge", g, "-r", r),
            ("explain", 1, "explain", "merge", h, "-r", r, "-p", "p"),
            ("explain CODE", 0, "explain", "PW0220"),
            ("explain CODE", 0, "explain", "N16"),
            ("explain --codes", 0, "explain", "--codes"),
            ("match", 0, "match", "y = relu(x)", g),
            ("match", 1, "match", "y = exp(x)", g),
            ("split", 0, "split", *DEMO),
            ("plan", 0, "plan", *DEMO),
            ("plan tables", 0, "plan", *DEMO, "-o", out + ".plan.json"),
            ("plan tables", 0, "plan", *DEMO, "--memory", "--stats", "--explain-dispatch", "3"),
            ("plan tables", 0, "plan", g, "-r", r, "-p", "few", "--memory"),
            ("plan --diff", 0, "plan", "--diff", out + ".plan.json", out + ".plan.json"),
            ("sizes", 0, "sizes", *DEMO, "--histogram", self.path("counts.csv")),
            ("sizes --list", 0, "sizes", *DEMO, "--histogram", "uniform", "--list"),
            ("compile", 0, "compile", *DEMO, *LLM, "--sources-only", "-o", out),
            ("compile --quality", 0, "compile", *DEMO, *LLM, "--quality", "--sources-only", "-o", out),
            ("compile --quality", 0, "compile", "--quality", "--sources-only", "--widths", "1031,1024", "--arch", "sm_90"),
            ("run", 0, "run", *DEMO, *LLM, "--tokens", "1,7", "--check", "--save", out + ".safetensors"),
            ("run", 0, "run", g, "-r", r, "-p", "few", "--tokens", "1,7"),
            ("run", 0, "run", *DEMO, "--tokens", "1,7", "--expect", out + ".safetensors"),
            ("report", 0, "report", *DEMO, *LLM),
            ("report files", 0, "report", *DEMO, "-o", out + ".before.json"),
            ("report files", 0, "report", *DEMO, *LLM, "--run", "--tokens", "1", "-o", out + ".after.json"),
            ("report --diff", 1, "report", "--diff", out + ".before.json", out + ".after.json"),
            ("report --diff", 0, "report", "--diff", out + ".after.json", out + ".after.json"),
            ("bench", 0, "bench", g, "--tokens", "1", "--sizes", "1", "--repeats", "1", "--pieces"),
            ("bench", 0, "bench", g, "--histogram", self.path("counts.csv"), "--repeats", "1"),
            ("cache", 0, "cache", "stats"),
            ("cache", 0, "cache", "verify"),
            ("cache why", 0, "cache", "why"),
            ("cache", 0, "cache", "clear"),
            ("ops", 0, "ops"),
            ("doctor", 0, "doctor"),
            ("trust", 0, "trust", "--list"),
            ("grammar classes", 0, "grammar", "classes", self.path("r.pwr")),
        ]

    def test_every_command(self):
        walked = set()
        for schema, code, *command in self.commands():
            with self.subTest(command=" ".join(command[:2]), schema=schema):
                document = self.answer(schema, *command, code=code)
                walked.add(command[0])
                # The report is made of the texts of its tables, and names of traffic are the user's.
                if schema not in ("report", "report --diff"):
                    self.assertEqual([text for text in texts(document) if QUANTITY.fullmatch(text)], [], "a number with its unit is a text")
        text = self.pwr("--help").stdout
        listed = set(re.findall(r"^  ([a-z][a-z-]*) {2,}\S", text.partition("Example")[0], re.M))
        self.assertGreater(len(listed), 25)
        # Scripts, pages of the manual, two servers, and schedules where there is a compiler: no JSON, or not here.
        self.assertEqual(listed - walked, {"completion", "lsp", "man", "serve", "tune"})

    def test_tune(self):
        done = subprocess.run([BIN / "pwr", "tune", self.path("g.pwg"), "--format", "json"], capture_output=True, text=True, check=False)
        if done.returncode == 5:
            self.skipTest("NVRTC is absent")
        accept(json.loads(done.stdout), "tune")

    def test_what_has_no_json_says_so(self):
        for command in (
            ["completion", "bash"],
            ["man"],
            ["grammar", "emacs"],
            ["fmt", "--stdout", self.path("r.pwr")],
            ["opt", self.path("g.pwg"), "--emit", "matcher"],
        ):
            done = self.pwr(*command, "--format", "json", code=2)
            self.assertEqual(done.stdout, "", command)
            self.assertIn("no JSON output is available", done.stderr)

    def test_values_are_numbers(self):
        steps = self.answer("run", "run", self.path("g.pwg"), "--tokens", "4")["graphs"][0]["steps"]
        self.assertTrue(0 < steps[0]["time_s"] < 60)
        whole = self.answer("stats", "stats", self.path("g.pwg"))
        self.assertEqual((whole["nodes"], whole["ops"]), (2, [{"op": "relu", "nodes": 2, "meaning": "body"}]))

    def test_csv_has_the_same_keys_and_values(self):
        lines = self.pwr("run", self.path("g.pwg"), "--tokens", "4", "--format", "csv").stdout.splitlines()
        at = lines.index("tokens,runs_as,mode,time_s,why")
        self.assertLess(float(lines[at + 1].split(",")[3]), 60)


if __name__ == "__main__":
    unittest.main()
