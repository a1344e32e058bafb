#!/usr/bin/python3
"""Each command of pwr and its Python function give the same answer on the same input.

The commands are those of `pwr --help`, and the functions those of the table in docs/python.md. A command that the table lacks, or that no test here
compares, fails.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import piecewise as pw

PWR = str(Path(os.environ["PW_BIN"]).resolve() / "pwr")
ROOT = Path(__file__).resolve().parents[2]
RULES = """rule a { y = relu(x) => y = maximum(x, 0) }
rule b { y = relu(x) => y = neg(x) }
pass p = greedy { a }
pass both = greedy { a, b }
test one {
  graph { in x: f32[4]  y = relu(x)  out y }
  apply p
  expect a == 1
}
test wrong {
  graph { in x: f32[4]  y = relu(x)  out y }
  apply p
  expect a == 2
}
"""
SMALL = "graph g { symbol n in 1..64 tokens  in x: f32[n, 8]  y = relu(x)  out y }\n"


def commands(*path):
    """Returns the commands that `pwr PATH --help` lists, with the commands of commands, as `cache stats`."""
    text = subprocess.run([PWR, *path, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", text.partition("Example")[0], flags=re.M)
    return [below for name in names for below in commands(*path, name) or [" ".join([*path, name])]]


def table():
    """Command → its function, or the reason why it has none."""
    rows = re.findall(r"^\| `(?:pwr )?([^`]+)` \| (.+?) \| (.*) \|$", (ROOT / "docs/python.md").read_text(encoding="utf-8"), flags=re.M)
    return {command: (re.fullmatch(r"`(\w+)`", cell)[1] if cell != "none" else None, rest) for command, cell, rest in rows}


def timeless(rows, *also):
    return [{key: value for key, value in row.items() if key not in ("time_s", *also)} for row in rows]


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.model = cls.path("model.json")
        subprocess.run(
            [
                PWR,
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
                "--quant",
                "fp8",
                "-o",
                cls.model,
            ],
            check=True,
            capture_output=True,
        )
        cls.small, cls.rules = cls.path("small.pwg"), cls.path("rules.pwr")
        Path(cls.small).write_text(SMALL)
        Path(cls.rules).write_text(RULES)

    @classmethod
    def path(cls, name):
        return str(cls.folder / name)

    def pwr(self, *args, code=0):
        done = subprocess.run([PWR, *args], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def json(self, *args, code=0):
        """The one JSON document of standard output."""
        return json.loads(self.pwr("--format", "json", *args, code=code))

    def test_each_command(self):
        functions = table()
        known = [*commands(), "pwviz"]
        self.assertIn("cache stats", known)
        self.assertEqual(sorted(functions), sorted(known), "docs/python.md has a row for each command, and no other")
        for command in known:
            function, reason = functions[command]
            with self.subTest(command=command):
                if function is None:
                    self.assertGreater(len(reason), 10, "a command without a function is listed with the reason")
                    continue
                self.assertIn(function, pw.__all__)
                self.assertTrue(getattr(pw, function).__doc__)
                compare = getattr(self, "compare_" + function, None)
                self.assertIsNotNone(compare, f"nothing compares `pwr {command}` with piecewise.{function}")
                compare()

    def test_the_walk_can_fail(self):
        self.assertGreater(len(commands()), 20)
        self.assertNotIn("no-such-command", table())
        self.assertFalse(hasattr(self, "compare_no_such"))

    def compare_import_(self):
        messages = []
        graph = pw.import_(ROOT / "examples/tiny-decoder.fx.txt", symbols="n=arg0_1.0,arg1_1.0", log=messages.append)
        done = subprocess.run(
            [PWR, "import", str(ROOT / "examples/tiny-decoder.fx.txt"), "--symbol", "n=arg0_1.0,arg1_1.0", "--all"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(graph.text(), done.stdout)
        self.assertTrue(messages)
        self.assertTrue(done.stderr.startswith("\n".join(messages)), done.stderr)

    def compare_export(self):
        self.pwr("export", self.model, "-o", self.path("theirs.pwg"))
        pw.export(self.model, self.path("mine.pwg"))
        self.assertEqual(Path(self.path("mine.pwg")).read_text(), Path(self.path("theirs.pwg")).read_text())

    def compare_stats(self):
        mine = pw.stats(self.model)
        self.assertEqual(mine, self.json("stats", self.model))
        self.assertEqual(sum(row["nodes"] for row in mine["ops"]), mine["nodes"])

    def compare_generate(self):
        options = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 128, "experts": 4, "shuffle": 7}
        args = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
        self.assertEqual(pw.generate("moe", **options).text(), self.pwr("generate", "moe", *args))

    def compare_check(self):
        for files in ([self.rules], ["views"]):
            self.assertEqual(pw.check(files), self.json("check", *files))
        self.assertIn("overlaps", {row.get("verdict") for row in pw.check(self.rules)})
        Path(self.path("bad.pwr")).write_text("rule oops { y = rms_nrom(x, w){eps} => y = x }\n")
        mine = pw.check(self.path("bad.pwr"))
        self.assertEqual(mine, self.json("check", self.path("bad.pwr"), code=3))
        self.assertEqual(mine[-1]["errors"], 1)
        self.assertEqual(pw.rule_order(self.rules), self.json("check", self.rules, "--order"))

    def compare_fuzz_order(self):
        mine = pw.fuzz_order(self.small, self.rules, "both", orders=6)
        self.assertEqual(
            {name: mine[name] for name in ("orders", "different")},
            self.json("fuzz-order", self.small, "-r", self.rules, "-p", "both", "--orders", "6", code=1),
        )
        self.assertGreater(mine["different"], 0)
        found = self.path("found.pwr")
        self.pwr("fuzz-order", self.small, "-r", self.rules, "-p", "both", "--orders", "6", "-o", found, code=1)
        self.assertTrue(Path(found).read_text().endswith(mine["difference"]["tests"]))
        self.assertIsNone(pw.fuzz_order(self.small, self.rules, "p", orders=2)["difference"])

    def compare_bisect(self):
        wrong = self.path("wrong.pwr")
        Path(wrong).write_text("rule w { y = relu(x) => y = neg(x) }\npass p = greedy { w }\n")
        mine = pw.bisect(self.small, wrong, "p", tokens=[3])
        self.assertEqual(mine, self.json("bisect", self.small, "-r", wrong, "-p", "p", "--tokens", "3"))
        self.assertEqual([row["rule"] for row in mine["culprit"]], ["w"])
        self.assertEqual(pw.bisect(self.small, self.rules, "p")["culprit"], [])

    def compare_reduce(self):
        wrong = self.path("wrong.pwr")
        Path(wrong).write_text("rule w { y = relu(x) => y = neg(x) }\npass p = greedy { w }\n")
        mine = pw.reduce(self.small, wrong, "p")
        self.assertEqual(mine, self.json("reduce", self.small, "-r", wrong, "-p", "p"))
        self.assertEqual([row["nodes"] for row in mine["reduction"]], [1])

    def compare_explore(self):
        mine = pw.explore(self.small, self.rules, passes=["p", "both"], by=["nodes", "bytes"])
        self.assertEqual(mine, self.json("explore", self.small, "-r", self.rules, "--passes", "p,both", "--by", "nodes,bytes"))
        self.assertEqual(mine["orders"], 2)
        self.compare_study()

    def compare_study(self):
        mine, theirs = self.path("mine.db"), self.path("theirs.db")
        space = {"passes": ["p", "both"], "by": ["nodes", "launches"], "sample": 2}
        self.assertEqual(pw.study([self.small], self.rules, mine, **space)["units"], 2)
        self.assertEqual(pw.study([self.small], self.rules, mine, **space, shard="2/2")["done"], 2)
        self.pwr("explore", self.small, "-r", self.rules, "--passes", "p,both", "--by", "nodes,launches", "--sample", "2", "--study", theirs)
        self.assertEqual(pw.read_study(mine), self.json("explore", "--study", theirs))
        self.assertEqual(pw.study_rows(mine), self.json("explore", "--study", theirs, "--rows"))
        self.pwr("explore", "--study", theirs, "--report", self.path("theirs.html"))
        self.assertEqual(pw.study_page(mine, title="theirs.db"), Path(self.path("theirs.html")).read_text())
        pw.merge_studies(self.path("merged.db"), [mine, theirs])
        self.assertEqual(pw.study_rows(self.path("merged.db")), pw.study_rows(mine))
        named = pw.study({"one": pw.load(self.small)}, self.rules, self.path("named.db"), passes=["p"])
        self.assertEqual(named["units"], 1)

    def compare_extract(self):
        path = self.path("egraph.json")
        nodes = {"a": {"op": "f", "children": ["b"], "eclass": "0", "cost": 2}, "b": {"op": "x", "eclass": "1"}}
        Path(path).write_text(json.dumps({"nodes": nodes, "root_eclasses": ["0"]}))
        mine = pw.extract(path)
        theirs = self.json("extract", path)
        for answer in (mine, theirs):
            answer["extractions"][0].pop("time_s")
        self.assertEqual(mine, theirs)
        self.assertEqual(mine["extractions"][0]["cost"], 3)

    def compare_fmt(self):
        ugly = self.path("ugly.pwr")
        Path(ugly).write_text("rule   a {y=relu(x)=>y=neg( x )} // c\n")
        self.assertEqual(pw.fmt([ugly, self.rules], check=True), self.pwr("fmt", "--check", ugly, self.rules, code=1).split())
        self.assertEqual(pw.format_rules(Path(ugly).read_text()), self.pwr("fmt", "--stdout", ugly))
        self.assertIn(ugly, pw.fmt(ugly))
        self.assertEqual(pw.fmt(ugly), [])

    def compare_test(self):
        mine = pw.test(self.rules)
        self.assertEqual(mine, self.json("test", self.rules, code=1))
        self.assertEqual([row["result"] == "ok" for row in mine], [True, False])
        pw.test(self.rules, junit=self.path("mine.xml"))
        self.pwr("test", self.rules, "--junit", self.path("theirs.xml"), code=1)
        mine, theirs = (re.sub(r'time="[^"]*"', "", Path(self.path(name)).read_text()) for name in ("mine.xml", "theirs.xml"))
        self.assertEqual(mine, theirs)

    def compare_verify(self):
        mine = pw.verify(self.rules)
        self.assertEqual(mine, self.json("verify", "-r", self.rules, code=1))
        self.assertEqual({row["rule"]: row["verdict"] for row in mine}["b"], "refuted")
        self.assertEqual(pw.verify(self.rules, "a"), self.json("verify", "-r", self.rules, "a"))

    def compare_prove(self):
        mine = pw.prove(self.rules)
        self.assertEqual(mine, self.json("prove", "-r", self.rules, code=1))
        self.assertEqual({row["rule"]: (row["verdict"], row["known_by"]) for row in mine}["b"], ("refuted", "samples"))
        self.assertEqual(pw.prove(self.rules, "a"), self.json("prove", "-r", self.rules, "a"))

    def compare_equal(self):
        graphs = []
        for name, last in (("one", "relu(x)"), ("other", "neg(x)")):
            graphs.append(self.path(name + ".pwg"))
            Path(graphs[-1]).write_text(f"graph {{ in x: f32[4] y = {last} out y }}\n")
        for other, verdict in ((graphs[0], "same_bits"), (graphs[1], "unknown")):
            mine = pw.equal(graphs[0], other)
            self.assertEqual(mine["verdict"], verdict)
            self.assertEqual(mine, self.json("equal", graphs[0], other, code=0 if verdict == "same_bits" else 1))

    def compare_opt(self):
        mine = pw.opt(self.model, "llm", "o2", {"tp": 1}, output=self.path("mine.json"))
        theirs = self.json("opt", self.model, "-r", "llm", "-p", "o2", "-D", "tp=1", "--stats", "-o", self.path("theirs.json"))
        for table in ("passes", "rules", "choices"):
            self.assertEqual(timeless(mine[table]), timeless(theirs[table]))
        self.assertGreater(sum(row["rewrites"] for row in mine["passes"]), 4)
        (graph,) = mine["graphs"]
        self.assertEqual(graph["graph"].json(), Path(self.path("theirs.json")).read_text())
        self.assertEqual(Path(self.path("mine.json")).read_text(), Path(self.path("theirs.json")).read_text())

    def compare_explain(self):
        for rule, pipeline in (("add_rms", ""), ("rms_quant", "o2")):
            mine = pw.explain(self.model, "llm", rule, pipeline)
            self.assertEqual(
                mine, self.json("explain", rule, self.model, "-r", "llm", *(["-p", pipeline] if pipeline else []), code=0 if mine["matches"] else 1)
            )
        self.assertGreater(pw.explain(self.model, "llm", "add_rms")["matches"], 0)
        for code in ("N08", "PW0220"):
            self.assertTrue(self.pwr("explain", code).startswith(f"{code} {pw.code_meaning(code)}\n"))
        self.assertEqual(pw.code_meaning("N99"), "")

    def compare_match(self):
        pattern = "y = mul(silu(g), u)"
        mine = pw.match(self.model, pattern)
        self.assertEqual(mine, self.json("match", pattern, self.model))
        self.assertEqual(len(mine), 2)
        self.assertEqual(pw.match(self.small, pattern), [])

    def compare_diff(self):
        other = self.path("other.pwg")
        Path(other).write_text(SMALL.replace("relu", "neg"))
        for before, after, code in ((self.small, other, 1), (self.small, self.small, 0)):
            self.assertEqual(pw.diff(before, after).rows, self.json("diff", before, after, code=code)["rows"])

    def compare_split(self):
        self.assertEqual(pw.split(self.model, "llm", "o2"), self.json("split", self.model, "-r", "llm", "-p", "o2"))
        mine, theirs = self.path("mine"), self.path("theirs")
        self.assertEqual(
            pw.split(self.model, output=mine, split_at=["silu"], fold=False),
            self.json("split", self.model, "--at", "silu", "--fold", "none", "-o", theirs),
        )
        self.assertEqual(self.texts(mine), self.texts(theirs))

    def texts(self, folder):
        return {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}

    def compare_plan(self):
        options = ["-r", "llm", "-p", "o2", "--sizes", "1,2,8", "--max-tokens", "64"]
        mine = pw.plan(self.model, "llm", "o2", sizes=[1, 2, 8], max_tokens=64, steps=["2", "1,1,5"])
        (graph,) = mine["graphs"]
        self.assertEqual(graph["plan"], self.pwr("plan", self.model, *options))
        steps = ["--explain-dispatch", "2", "--explain-dispatch", "1,1,5"]
        notice = {"variant": graph["variant"], "dispatch": graph["dispatch"], "memory": graph["memory"]}
        self.assertEqual({"graphs": [notice], "counters": mine["counters"]}, self.json("plan", self.model, *options, *steps, "--memory", "--stats"))
        first, second = self.path("first.json"), self.path("second.json")
        Path(first).write_text(graph["plan"])
        Path(second).write_text(pw.plan(self.model, sizes=[1, 4])["graphs"][0]["plan"])
        self.assertEqual(pw.plan_diff(first, second), self.pwr("plan", "--diff", first, second, code=1).splitlines())
        self.assertEqual(pw.plan_diff(first, first), [])

    def compare_sizes(self):
        mine = pw.sizes(self.model, "llm", "o2", histograms=["bimodal", "uniform"], graphs=8, output=self.path("mine.svg"))
        options = ["-r", "llm", "-p", "o2", "--graphs", "8"]
        notice = self.json("sizes", self.model, *options, "--histogram", "bimodal,uniform", "-o", self.path("theirs.svg"))
        self.assertEqual(mine, {"rows": notice["rows"], "chosen": {row["traffic"]: row["sizes"] for row in notice["chosen"]}})
        self.assertEqual(Path(self.path("mine.svg")).read_text(), Path(self.path("theirs.svg")).read_text())
        for traffic, chosen in mine["chosen"].items():
            self.assertEqual(",".join(map(str, chosen)) + "\n", self.pwr("sizes", self.model, *options, "--histogram", traffic, "--list"))

    def compare_compile(self):
        mine, theirs = self.path("my_kernels"), self.path("their_kernels")
        report = pw.compile(self.model, mine, "llm", "o2", sources_only=True, sizes=[8])
        self.assertEqual(report, self.json("compile", self.model, "-r", "llm", "-p", "o2", "--sources-only", "--sizes", "8", "-o", theirs))
        self.assertEqual(self.texts(mine), self.texts(theirs))

    def compare_tune(self):
        command = ["--format", "json", "tune", self.small, "--tokens", "8"]
        done = subprocess.run([PWR, *command], capture_output=True, text=True, check=False)
        if done.returncode == 5:
            with self.assertRaises(pw.Error) as caught:
                pw.tune(self.small, tokens=[8])
            self.assertEqual(caught.exception.code, "PW1450")
            return
        self.assertEqual(pw.tune(self.small, tokens=[8]), json.loads(done.stdout))
        measured = subprocess.run([PWR, *command, "--measure"], capture_output=True, text=True, check=False)
        if measured.returncode == 5:
            with self.assertRaises(pw.Error) as caught:
                pw.tune(self.small, tokens=[8], measure=True)
            self.assertEqual(caught.exception.code, "PW1260")

    def compare_run_model(self):
        (mine,) = pw.run_model(self.model, "llm", "o2", tokens=[1, 7], sizes=[2, 8], check=True)["graphs"]
        notice = self.json("run", self.model, "-r", "llm", "-p", "o2", "--tokens", "1,7", "--sizes", "2,8", "--check")
        (theirs,) = notice["graphs"]
        self.assertEqual(timeless(mine["passes"]), timeless(theirs["passes"]))
        self.assertEqual(timeless(mine["steps"]), timeless(theirs["steps"]))
        self.assertEqual(mine["numbers"], theirs["numbers"])

    def test_what_is_loaded_runs_as_its_file_does(self):
        graph, rules = pw.load(self.model), pw.rules("llm")
        for given in ((self.model, "llm"), (graph, "llm"), (self.model, rules), (graph, rules)):
            done = pw.run_model(*given, "o2", tokens=[3], sizes=[4])
            self.assertEqual([row["runs_as"] for row in done["graphs"][0]["steps"]], [4])
            self.assertEqual(pw.split(*given, "o2"), pw.split(self.model, "llm", "o2"))
            text = pw.report(*given, "o2", max_tokens=64, command="same")["graphs"][0]["text"]
            self.assertIn("same", text)
            self.assertEqual(len(pw.bench(*given, "o2", tokens=[4], sizes=[4], repeats=1)["steps"]), 1)
        self.assertEqual(graph.rewrite("llm", "o2").ops(), done["graphs"][0]["graph"].ops())
        other = pw.Session().rules(["llm"])
        with self.assertRaisesRegex(pw.Error, "PW1412"):
            pw.run_model(graph, other, "o2")
        with self.assertRaisesRegex(TypeError, "not as Rules"):
            pw.draw(self.model, rules=rules)

    def compare_report(self):
        options = ["-r", "llm", "-p", "o2", "--max-tokens", "64"]
        theirs = self.pwr("report", self.model, *options)
        command = re.search(r"^ *(pwr report .*)$", theirs, flags=re.M)[1]
        (mine,) = pw.report(self.model, "llm", "o2", max_tokens=64, command=command)["graphs"]
        self.assertEqual(mine["text"], theirs)
        self.assertIn("<html", pw.report(self.model, page=True, max_tokens=64)["graphs"][0]["text"])

    def compare_bench(self):
        mine = pw.bench(self.small, tokens=[4, 8], sizes=[8], repeats=1)
        theirs = self.json("bench", self.small, "--tokens", "4,8", "--sizes", "8", "--repeats", "1", "--pieces")
        for table in ("steps", "pieces", "totals"):
            self.assertEqual([list(row) for row in mine[table]], [list(row) for row in theirs[table]])
        self.assertEqual([row["tokens"] for row in mine["steps"]], [4, 8])

    def in_cache(self, name):
        """A compile cache of one's own, with some kernels."""
        before = os.environ.get("PWR_CACHE_DIR")
        os.environ["PWR_CACHE_DIR"] = self.path(name)
        self.addCleanup(lambda: os.environ.__setitem__("PWR_CACHE_DIR", before) if before is not None else os.environ.pop("PWR_CACHE_DIR"))
        os.makedirs(self.path(name), mode=0o700, exist_ok=True)
        subprocess.run([PWR, "run", self.small, "--backend", "cpu", "--tokens", "4"], capture_output=True, check=True)

    def compare_cache_stats(self):
        self.in_cache("cache")
        self.assertEqual(pw.cache_stats(), self.json("cache", "stats"))

    def compare_cache_verify(self):
        self.in_cache("cache")
        self.assertEqual(pw.cache_verify(), self.json("cache", "verify"))

    def compare_cache_why(self):
        self.in_cache("cache")
        self.assertEqual(pw.cache_why(), self.json("cache", "why"))
        key = pw.cache_why()[0]["key"]
        self.assertEqual(pw.cache_why(key), self.json("cache", "why", key))

    def compare_cache_clear(self):
        self.in_cache("cache to clear")
        held = sum(row["number"] for row in pw.cache_stats() if row["what"].startswith("objects of"))
        self.assertEqual(pw.cache_clear(), [{"what": "objects removed", "number": held}])
        self.assertEqual(self.json("cache", "clear"), [{"what": "objects removed", "number": 0}])

    def compare_ops(self):
        self.assertEqual(pw.ops(), self.json("ops"))
        self.assertEqual(pw.ops("rms_norm"), self.json("ops", "rms_norm"))
        self.assertEqual(pw.ops(backend="cuda", splitting=True), self.json("ops", "--backend", "cuda", "--splitting"))

    def compare_draw(self):
        pwviz = str(Path(PWR).with_name("pwviz"))
        options = ["-r", "llm", "-p", "o2", "--pass", "norm_quant"]
        notice = subprocess.run([pwviz, self.model, *options], capture_output=True, text=True, check=True).stdout
        self.assertEqual(pw.draw(self.model, rules="llm", pipeline="o2", after="norm_quant"), notice)
        subprocess.run([pwviz, self.model, *options, "-o", self.path("theirs.html")], capture_output=True, check=True)
        self.assertIsNone(pw.draw(self.model, self.path("mine.html"), "llm", "o2", after="norm_quant"))
        self.assertEqual(Path(self.path("mine.html")).read_bytes(), Path(self.path("theirs.html")).read_bytes())
        with self.assertRaises(pw.Error) as caught:
            pw.draw(self.model, after="nothing")
        self.assertEqual(caught.exception.code, "PW1425")

    def compare_doctor(self):
        # The MPI library is next to the program, but is searched for next to the module.
        others = [[row for row in rows if row["what"] != "MPI"] for rows in (pw.doctor(), self.json("doctor"))]
        self.assertEqual(*others)
        self.assertGreater(len(others[0]), 5)


class Page(unittest.TestCase):
    def test_examples(self):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(encoding="utf-8"), flags=re.S)
        self.assertEqual(len(blocks), 2)
        done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("PW1420 did you mean `silu_mul`?", done.stdout)
        self.assertIn("'silu_and_mul': 2", done.stdout)


class Mistakes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.small = self.file("small.pwg", SMALL)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def error(self, call, *args, **options):
        with self.assertRaises(pw.Error) as caught:
            call(*args, **options)
        return caught.exception

    def test_place_and_hint(self):
        path = self.file("bad.pwr", "\nrule oops { y = rms_nrom(x, w){eps} => y = x }\n")
        error = self.error(pw.rules, str(path))
        self.assertEqual((error.file, error.line, error.column), (str(path), 2, 17))
        self.assertRegex(error.code, r"^PW02\d\d$")
        self.assertIn("rms_norm", error.hint)
        self.assertIn(error.message, str(error))
        self.assertIn(f"[{error.code}]", str(error))
        self.assertEqual(error.diagnostics[0]["code"], error.code)

    def test_all_mistakes(self):
        path = self.file("two.pwr", "rule a { y = rms_nrom(x, w){eps} => y = x }\nrule b { y = relux(x) => y = x }\n")
        error = self.error(pw.opt, self.small, path, "a")
        self.assertEqual([each["line"] for each in error.diagnostics], [1, 2])

    def test_files(self):
        missing = str(self.folder / "none.json")
        error = self.error(pw.stats, missing)
        self.assertEqual((error.file, error.line), (missing, None))
        self.assertTrue(error.code.startswith("PW00"))
        error = self.error(pw.stats, self.file("bad.json", '{"format": "piecewise.graph/1", "nodes": 3}'))
        self.assertTrue(error.code.startswith("PW10"), error)
        self.assertEqual(error.file, str(self.folder / "bad.json"))

    def test_names(self):
        rules = self.file("rules.pwr", RULES)
        for code, call, *args in (
            ("PW1420", pw.explain, self.small, "llm", "add_rmz"),
            ("PW1420", pw.verify, rules, "nothing"),
            ("PW1440", pw.ops, "rms_nrom"),
            ("PW1425", lambda: pw.ops(backend="gpu")),
            ("PW1101", pw.opt, self.small, "llm", "o22"),
            ("PW1101", pw.fuzz_order, self.small, "llm", "o22"),
            ("PW1101", pw.bisect, self.small, "llm", "o22"),
            ("PW1101", pw.reduce, self.small, "llm", "o22"),
            ("PW1101", pw.explore, self.small, "llm", "o22"),
            ("PW1430", pw.generate, "gpt"),
            ("PW1430", lambda: pw.generate("llama", layers=0)),
            ("PW1424", lambda: pw.explain(self.small, "llm", "add_rms", at="nothing")),
            ("PW1423", lambda: pw.explain(self.small, "llm", "add_rms", before="x")),
            ("PW1422", pw.test, rules, {"tp": 2}),
            ("PW1421", pw.test, self.empty()),
            ("PW1426", pw.export, self.small, "graph.txt"),
        ):
            with self.subTest(code=code, args=args):
                self.assertEqual(self.error(call, *args).code, code)
        self.assertIn("add_rms", self.error(pw.explain, self.small, "llm", "add_rmz").hint)

    def empty(self):
        folder = self.folder / "empty"
        folder.mkdir(exist_ok=True)
        return folder

    def test_numbers(self):
        rules = self.file("rules.pwr", RULES)
        for call in (
            lambda: pw.bench(self.small, tokens=[4], repeats=0),
            lambda: pw.run_model(self.small, tokens=[4], ranks=0),
            lambda: pw.run_model(self.small, tokens=[4], ranks=65),
            lambda: pw.verify(rules, ranks=[0]),
            lambda: pw.verify(rules, ranks=[]),
            lambda: pw.fuzz_order(self.small, rules, "p", orders=0),
            lambda: pw.sizes(self.small, graph_seconds=float("nan")),
            lambda: pw.compile(self.small, self.folder / "k", tokens=-5),
            lambda: pw.tune(self.small, tokens=[0]),
            lambda: pw.plan(self.small, steps=["3"], active_loras=-2),
        ):
            self.assertEqual(self.error(call).code, "PW1402")
        for code, call in (
            ("PW1429", lambda: pw.compile(self.small, self.folder / "k", archs=["sm_1"])),
            ("PW1429", lambda: pw.tune(self.small, archs=[])),
            ("PW1405", lambda: pw.run_model(self.small, backend="cuda", driver="x")),
            ("PW1420", lambda: pw.explain(self.small, rules, "")),
            ("PW1420", lambda: pw.verify(rules, "")),
            ("PW1412", lambda: pw.opt(pw.load(SMALL), pw.Session().rules(["llm"]), "o2")),
        ):
            self.assertEqual(self.error(call).code, code)
        self.assertFalse((self.folder / "k").exists())

    def test_a_file_that_does_not_load_hides_no_other(self):
        good, bad = self.file("good.pwr", RULES), self.file("bad.pwr", "rule b { y = relux(x) => y = x }\n")
        error = self.error(pw.test, [bad, good], junit=self.folder / "all.xml")
        self.assertEqual((error.file, error.line), (str(bad), 1))
        self.assertIn('name="one"', (self.folder / "all.xml").read_text())

    def test_options(self):
        for call in (pw.split, pw.plan, pw.sizes, pw.tune, pw.run_model, pw.bench, pw.report):
            with self.assertRaisesRegex(TypeError, "no option 'max_token'; its options are .*max_tokens"):
                call(self.small, max_token=3)
        with self.assertRaisesRegex(TypeError, "option 'max_tokens' cannot be 'many'"):
            pw.plan(self.small, max_tokens="many")
        with self.assertRaisesRegex(pw.Error, "sessions"):
            pw.opt(pw.load(SMALL), pw.Session().rules(["llm"]), "o2")

    def test_sessions(self):
        graph = pw.load(SMALL)
        rules = self.file("rules.pwr", "op mine.f(x: T[n, d]) -> y: T[n, d] { y = neg(x) }\n" + RULES)
        for given in (self.small, graph, graph):  # a file that declares ops may be read again
            self.assertEqual(pw.opt(given, rules, "both")["graphs"][0]["graph"].ops(), {"constant": 1, "maximum": 1})
        rules.write_text("op mine.f(x: T[n, d]) -> y: T[n, d] { y = relu(x) }\n" + RULES)  # a path has a session of its own
        self.assertEqual(pw.opt(self.small, rules, "b")["graphs"][0]["graph"].ops(), {"neg": 1})
        self.assertEqual(pw.opt(graph, "llm", "o2")["graphs"][0]["graph"].ops(), {"relu": 1})
        self.assertIs(graph.session, pw.rules("llm").session)

    def test_error_of_python(self):
        error = pw.Error("text")
        self.assertEqual((error.code, error.line, error.diagnostics), (None, None, ()))


if __name__ == "__main__":
    unittest.main()
