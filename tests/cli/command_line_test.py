#!/usr/bin/python3
"""The command line: did-you-mean, help, exit codes, files that are something else, --watch, progress, pictures on standard output."""
import fcntl
import gzip
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest
import unittest.mock
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from program import BIN, RULES, ProgramTest

GRAPH = "graph g {\n  in x: f32[4]\n  y = relu(relu(x))\n  out y\n}\n"
DEMO = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0"]
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


class Mistakes(ProgramTest):
    def test_did_you_mean(self):
        for args, help_ in (
            (["tset"], "did you mean `test`?"),
            (["chekc", "x.pwr"], "did you mean `check`?"),
            (["cache", "stat"], "did you mean `stats`?"),
            (["check", "--fromat", "json", "x.pwr"], "did you mean `--format`?"),
            (["run", "g.pwg", "--token", "1"], "did you mean `--tokens`?"),
            (["run", "g.pwg", "--max-token=1"], "did you mean `--max-tokens`?"),
            (["nothing-like-it"], "`pwr --help` lists them"),
            (["check", "--nothing-like-it", "x"], "`pwr check --help` lists them"),
            ([], "`pwr --help` lists them"),
            (["opt"], "`pwr opt --help` shows its usage"),
        ):
            with self.subTest(args=args):
                done = self.pwr(*args, code=2)
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, r"\Aerror: [^\n]+\nhelp: [^\n]+\n\Z")
                self.assertIn(help_, done.stderr)
        self.assertIn("did you mean `--collapse`?", self.pwr("x.pwg", "--colapse", "none", program="pwviz", code=2).stderr)

    def test_no_test_is_an_error(self):
        rules = self.file("r.pwr", RULES)
        self.assertIn("no test has a name that contains `wrong`", self.pwr("test", rules, "--only", "wrong", code=1).stderr)
        self.assertIn("the named files have no tests", self.pwr("test", self.file("none.pwr", RULES.partition("test")[0]), code=1).stderr)
        self.assertIn("1 test, 0 failed", self.pwr("test", rules, "--only", "righ").stdout)

    def test_all_ops_without_a_kernel_are_counted_before_anything_runs(self):
        nodes, last = [], "x"
        for i, op in enumerate(["my.op", "relu", "my.op", "other.op"]):
            nodes.append({"name": f"v{i}", "op": op, "operands": [last], "results": [{"name": f"v{i}", "type": "f32[4]"}]})
            last = f"v{i}"
        graph = {
            "format": "piecewise.graph/1",
            "ops": [{"imported": "my.op"}, {"imported": "other.op"}],
            "inputs": [{"name": "x", "type": "f32[4]"}],
            "nodes": nodes,
            "outputs": [last],
        }
        path = self.file("opaque.json", json.dumps(graph))
        for backend in ("eager", "cpu", "interpreter"):
            done = self.pwr("run", path, "--backend", backend, code=5)
            self.assertIn(f"backend {backend} has no kernel for 3 of 4 nodes: my.op × 2, other.op × 1", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_names_of_shared_patterns_are_those_that_were_written(self):
        rules = self.file("inner.pwr", "pattern inner(x) -> y { h = relu(x)  y = neg(h) }\nrule r { y = inner(x)  z = exp(y) => z = sin(x) }\n")
        graph = self.file("inner.pwg", "graph g {\n  in x: f32[4]\n  h = relu(x)\n  y = neg(h)\n  z = exp(y)\n  out z, h\n}\n")
        notice = self.pwr("explain", "r", graph, "-r", rules, code=1).stdout
        self.assertIn("`h` is consumed by this rule, but it is also an output of the graph", notice)
        self.assertNotRegex(notice, r"\w#\d")

    def test_the_library_does_not_warn(self):
        model = self.make("model.json", "generate", "llama", "--layers", "1")
        for args in (["opt", model, "-r", "llm", "-p", "o2", "--stats"], ["check", "--no-proof", "llm"], ["plan", model, "-r", "llm", "-p", "o2"]):
            self.assertNotRegex(self.pwr(*args).stderr, r"warning(\[|:)", args)
        own = self.file("idle.pwr", 'use "llm"\nrule never { y = atan(atan(x)) => y = x }\npass p = greedy { never }\n')
        self.assertIn("PW1110", self.pwr("opt", model, "-r", own, "-p", "p", "--stats").stderr)  # the user's does


class ExitCodes(ProgramTest):
    def test_each_as_documented(self):
        rules, graph = self.file("r.pwr", RULES), self.file("g.pwg", GRAPH)
        other = self.file("h.pwg", GRAPH.replace("relu(relu(x))", "relu(neg(x))"))
        wrong = self.file("wrong.pwr", "rule w { y = relu(x) => y = neg(x) }\n")
        for code, args in (
            (0, ["test", rules]),
            (1, ["diff", graph, other]),
            (1, ["explain", "merge", other, "-r", rules]),
            (1, ["verify", "-r", wrong]),
            (2, ["stats"]),
            (2, ["opt", graph, "-r", rules, "-p", "absent"]),
            (3, ["stats", self.path("absent.pwg")]),
            (3, ["check", graph]),
            (4, ["run", graph, "-r", wrong, "-p", "w", "--check"]),
            (5, ["run", graph, "--ranks", "2", "--save", self.path("s"), "--backend", "eager"]),
        ):
            with self.subTest(args=args):
                self.pwr(*args, code=code)

    def test_interrupted(self):
        process = subprocess.Popen([BIN / "pwr", "check", self.file("r.pwr", RULES), "--watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=3600)
        self.assertEqual(process.returncode, 130)

    def test_they_are_those_of_the_help(self):
        notice = " ".join(self.pwr("--help").stdout.split())
        self.assertIn("0 ok, 1 negative answer, 2 usage, 3 invalid input, 4 numeric mismatch, 5 missing capability, 70 internal error, 130", notice)


class OtherFiles(ProgramTest):
    """Files that are named as rules, as a graph or as a report, and are something else."""

    def others(self):
        archive = self.path("a.zip")
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("x", "y")
        return {
            "a PNG picture": self.file("p.png", PNG),
            "a gzip file": self.file("g.gz", gzip.compress(b"rule")),
            "a zip file": archive,
            "a program or shared library (ELF)": "/bin/true",
            "a page of HTML": self.file("page.html", "<!DOCTYPE html>\n<html></html>\n"),
            "a pickle": self.file("m.pt", b"\x80\x02}q\x00."),
            "a NumPy array": self.file("a.npy", b"\x93NUMPY\x01\x00"),
            "a binary file": self.file("b.bin", b"abc\x00def" * 10),
        }

    def test_as_rules(self):
        graph = self.file("g.json", '{"format": "piecewise.graph/1", "inputs": [], "nodes": [], "outputs": []}')
        for kind, path in {
            **self.others(),
            "a JSON document of the format piecewise.graph/1": graph,
            "a JSON document": self.file("o.json", '{"a": 1}'),
            "a graph": self.file("g.pwg", GRAPH),
            "a dump of torch.fx": "examples/tiny-decoder.fx.txt",
        }.items():
            with self.subTest(kind=kind):
                notice = self.pwr("check", path, code=3).stderr
                self.assertEqual(notice.count("error["), 1, notice)
                self.assertIn(f"error[PW0464]: this is {kind}", notice)
                self.assertLess(len(notice), 300)

    def test_as_a_graph(self):
        plan = self.path("plan.json")
        self.pwr("plan", self.file("g.pwg", GRAPH), "-o", plan)
        others = self.others()
        del others["a zip file"]  # which may be a .pt2: PW0530
        for kind, path in {**others, "a JSON document of the format piecewise.plan/1": plan}.items():
            with self.subTest(kind=kind):
                notice = self.pwr("stats", path, code=3).stderr
                self.assertEqual(notice.count("error["), 1, notice)
                self.assertIn(f"error[PW0481]: this is {kind}", notice)
        notice = self.pwr("stats", self.file("r.pwr", RULES), code=3).stderr
        self.assertIn("these are rules, but a graph is expected", notice)
        self.assertEqual(notice.count("error["), 1)

    def test_as_anything_else(self):
        graph, json_graph = self.file("g.pwg", GRAPH), self.file("g.json", '{"format": "piecewise.graph/1", "inputs": []}')
        png, plain = self.file("p.png", PNG + b"\xff" * 100), self.file("o.json", "{}")
        for args in (
            ["report", "--diff", png, png],
            ["plan", "--diff", png, png],
            ["run", graph, "--steps", png],
            ["run", graph, "--plan", png],
            ["sizes", *DEMO, "--histogram", png],
            ["fmt", png],
            ["run", graph, "--weights", png],
        ):
            with self.subTest(args=args):
                notice = self.pwr(*args, code=3).stderr
                self.assertIn("this is a PNG picture", notice)
                self.assertEqual(notice.count("error["), 1, notice)
        for args in (["report", "--diff"], ["plan", "--diff"]):
            notice = self.pwr(*args, json_graph, json_graph, code=3).stderr
            self.assertIn("error[PW0005]: this is a JSON document of the format piecewise.graph/1", notice)
        self.assertIn("PW1280", self.pwr("report", "--diff", plain, plain, code=3).stderr)

    def test_mistakes_in_rules_are_still_told_at_their_place(self):
        notice = self.pwr("check", self.file("bad.pwr", "rule r { y = relu(x => y = x }\n"), code=3).stderr
        self.assertIn("bad.pwr:1:", notice)
        self.assertNotIn("PW0464", notice)


class Help(ProgramTest):
    def help_at(self, width, *args, program="pwr"):
        return subprocess.run(
            [BIN / program, *args, "--help"], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": str(width)}
        ).stdout

    def test_groups(self):
        text = self.help_at(80)
        heads = re.findall(r"^(\S.*):$", text, flags=re.M)
        for head in ("Output", "Graphs", "Rules", "Rewriting", "Plans and kernels", "Running", "This installation"):
            self.assertIn(head, heads)
        self.assertNotIn("Subcommands", heads)  # each command is in a group
        for head in ("Graph", "Rules", "Split and plan", "Execution"):
            self.assertRegex(self.help_at(80, "run"), rf"(?m)^{head}:$")

    def test_within_the_width(self):
        commands = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", self.help_at(80).partition("Example")[0], re.M)
        self.assertGreater(len(commands), 25)
        for width in (60, 80, 100):
            for args, program in [((), "pwr"), ((), "pwviz"), *(((c,), "pwr") for c in commands)]:
                before = self.help_at(width, *args, program=program).partition("\nExample")[0]
                for line in before.splitlines():
                    if len(line.split()) > 1 and max(map(len, line.split())) < width - 30:
                        self.assertLessEqual(len(line), width, (args, line))

    def test_of_the_terminal(self):
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        subprocess.run([BIN / "pwr", "--help"], stdout=follower, check=True, env={**os.environ, "COLUMNS": "120"})
        os.close(follower)
        text = b""
        while select.select([leader], [], [], 1)[0]:
            try:
                text += os.read(leader, 65536)
            except OSError:
                break
        lines = text.decode().partition("Example")[0].splitlines()
        self.assertGreater(len(lines), 60)
        self.assertLess(sum(len(line) > 50 for line in lines), 6)  # long words stay whole


class Watch(ProgramTest):
    def read_until(self, process, wanted, seconds=600):
        text, end = "", time.monotonic() + seconds
        while wanted not in text and time.monotonic() < end:
            if select.select([process.stdout], [], [], 0.2)[0]:
                text += os.read(process.stdout.fileno(), 65536).decode()
        self.assertIn(wanted, text)
        return text

    def watch(self, *args):
        process = subprocess.Popen([BIN / "pwr", *args, "--watch"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        def end():
            process.terminate()
            process.wait(600)
            process.stdout.close()

        self.addCleanup(end)
        return process

    def test_a_file_that_is_used(self):
        used = self.file("used.pwr", "rule a { y = relu(relu(x)) => y = relu(x) }\n")
        process = self.watch("check", self.file("main.pwr", 'use "used.pwr"\nrule b { y = neg(neg(x)) => y = x }\n'))
        self.read_until(process, "2 rules")
        Path(used).write_text("rule a { y = rms_nrom(x) => y = x }\n", encoding="utf-8")
        self.assertIn("used.pwr has changed", self.read_until(process, "did you mean `rms_norm`?"))
        Path(used).write_text("", encoding="utf-8")
        self.read_until(process, "1 rule")

    def test_what_other_processes_do_to_the_cache(self):
        cache, counts = self.path("cache"), Path(self.path("cache")) / "counts"
        with unittest.mock.patch.dict(os.environ, {"PWR_CACHE_DIR": cache}):
            subprocess.run([BIN / "pwr", "check", self.file("first.pwr", RULES)], check=True, capture_output=True)
            self.assertTrue(counts.exists())
            rules = self.file("main.pwr", "rule b { y = neg(neg(x)) => y = x }\n")
            process = self.watch("check", rules)
        self.read_until(process, "1 rule")
        counts.write_text("found 1\n", encoding="utf-8")
        time.sleep(1.5)
        Path(rules).write_text("rule b { y = neg(neg(x)) => y = x }\n" * 2, encoding="utf-8")
        self.assertNotIn("counts has changed", self.read_until(process, "main.pwr has changed"))

    def test_a_new_file_in_a_folder(self):
        folder = Path(self.path("tests"))
        folder.mkdir()
        (folder / "a.pwr").write_text(RULES, encoding="utf-8")
        process = self.watch("test", str(folder))
        self.read_until(process, "1 test, 0 failed")
        (folder / "b.pwr").write_text(RULES.replace("== 1", "== 2"), encoding="utf-8")
        self.read_until(process, "2 tests, 1 failed")

    def test_what_it_writes_does_not_start_it_again(self):
        graph, out = self.file("w.pwg", GRAPH), self.file("out.pwg", "old")
        process = self.watch("export", graph, "-o", out)
        self.read_until(process, "2 nodes")
        self.assertFalse(select.select([process.stdout], [], [], 1)[0])
        Path(graph).write_text(GRAPH.replace("relu(relu(x))", "relu(x)"), encoding="utf-8")
        self.read_until(process, "1 node")

    def test_standard_input_cannot_be_watched(self):
        self.assertIn("--watch", self.pwr("stats", "-", "--watch", code=2).stderr)


class Progress(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.large = cls.make("large.json", "generate", "llama", "--layers", "12000")

    def on_a_terminal(self, *args, code=0):
        """Returns the standard error of the command, which is a terminal; the command must exit with `code`."""
        leader, follower = pty.openpty()
        cache = tempfile.TemporaryDirectory()  # verdicts that are cached take no time
        self.addCleanup(cache.cleanup)
        env = {**os.environ, "PWR_CACHE_DIR": cache.name}
        process = subprocess.Popen([BIN / "pwr", *args], stdout=subprocess.DEVNULL, stderr=follower, env=env)
        os.close(follower)
        text = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
        os.close(leader)
        self.assertEqual(process.wait(600), code)
        return text.decode()

    def test_rate_and_time_left(self):
        files = [word for name in ("norm", "norm_quant", "rope") for word in ("-r", f"rules/{name}.pwr")]
        notice = self.on_a_terminal("verify", *files, code=1)  # two rules of norm.pwr may overflow
        self.assertRegex(notice, r"judging: \d+ of \d+ rules, \d+(\.\d)?/s, \d+(\.\d)? s left")
        self.assertTrue(re.split(r"\r\x1b\[K", notice)[-1].strip() == "" or notice.endswith("\r\n"), "the line is erased")

    def test_only_where_it_is_asked_for(self):
        command = ("opt", self.large, "-r", "llm", "-p", "o2", "-o", self.path("out.pwg"))
        self.assertRegex(self.on_a_terminal(*command), r"(reading|building) \S*large\.json[:,]")
        self.assertNotRegex(self.pwr(*command).stderr, "reading |building ")
        self.assertRegex(self.pwr(*command, "--progress", "always").stderr, "(reading|building) ")
        self.assertNotRegex(self.on_a_terminal(*command, "--progress", "never"), "reading |building ")
        self.assertEqual(self.on_a_terminal(*command, "-q"), "")

    def test_what_is_quick_is_silent(self):
        notices = self.on_a_terminal("stats", self.file("g.pwg", GRAPH)).split("\x1b[K")[1:]
        for notice in notices[:-1]:  # on a slow machine; the last one clears the line
            self.assertGreaterEqual(float(re.search(r", (\d+\.\d) s", notice)[1]), 0.5)


class Pictures(ProgramTest):
    def viz(self, *args, code=0):
        done = subprocess.run([BIN / "pwviz", self.file("g.pwg", GRAPH), *args], capture_output=True, timeout=3600, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_the_type_on_standard_output(self):
        for where in ((), ("-o", "-")):
            self.assertIn(b"showing 2 of 2 nodes", self.viz(*where))
            self.assertTrue(self.viz("--format", "html", *where).startswith(b"<!"))
            self.assertIn(b"digraph", self.viz("--format", "dot", *where))
            self.assertTrue(self.viz("--format", "md", *where).startswith(b"# "))
            json.loads(self.viz("--format", "me.json", *where))

    def test_the_type_of_a_path_without_one(self):
        self.viz("--format", "html", "-o", self.path("page"))
        self.assertTrue(Path(self.path("page")).read_bytes().startswith(b"<!"))
        self.viz("--format", "bmp", code=2)


class Reports(ProgramTest):
    def test_markdown_and_the_difference_that_rules_make(self):
        model = self.make("model.json", "generate", "llama", "--layers", "2")
        before, after, page = self.path("before.json"), self.path("after.json"), self.path("report.md")
        self.pwr("report", model, "-o", before)
        self.pwr("report", model, "-r", "llm", "-p", "o2", "-o", after)
        self.pwr("report", model, "-r", "llm", "-p", "o2", "-o", page)
        text = Path(page).read_text(encoding="utf-8")
        self.assertTrue(text.startswith("# "))
        self.assertRegex(text, r"(?m)^## Rewriting$")
        for line in (line for line in text.splitlines() if line.startswith("|")):
            self.assertTrue(line.endswith("|"), line)
        self.pwr("report", "--diff", before, before)
        notice = self.pwr("report", "--diff", before, after, code=1).stdout
        self.assertRegex(notice, r"(?m)^Overview: − .*38 nodes before, 38 after")
        self.assertRegex(notice, r"(?m)^Overview: \+ .*38 nodes before, 30 after")
        self.assertRegex(notice, r"(?m)^Memory.* → ")

    def test_junit_of_verify(self):
        rules = self.file("two.pwr", "rule good { y = relu(relu(x)) => y = relu(x) }\nrule bad { y = relu(x) => y = neg(x) }\n")
        out = self.path("verdicts.xml")
        self.pwr("verify", "-r", rules, "--junit", out, code=1)
        suite = ElementTree.parse(out).getroot()
        self.assertEqual({key: suite.get(key) for key in ("tests", "failures", "errors")}, {"tests": "2", "failures": "1", "errors": "0"})
        cases = {case.get("name"): case for case in suite}
        self.assertIsNone(cases["good"].find("failure"))
        self.assertEqual(cases["bad"].find("failure").get("message"), "refuted")


if __name__ == "__main__":
    unittest.main()
