#!/usr/bin/python3
"""Names and files of strangers: they steer no terminal, break no file name, and nothing of foreign files is shown."""
import json
import os
import re
import subprocess
import unittest
from pathlib import Path

from program import BIN, ProgramTest

SECRET = "root:x:0:0:secret of the first line"
RULE = "rule merge { y = relu(relu(x)) => y = relu(x) }\npass p = greedy { merge }\n"
# Escape sequences, their one-byte and UTF-8 forms, a line end, and an override of the direction of text.
EVIL = ["a\nb", "\x1b]0;pwn\x07\x1b[31mred", "\u009b31mred", "x\u202ey", "\x7f\x08", "../../etc/x", "n" * 300]


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def evil_graph():
    inputs = [{"name": f"{name} in", "type": "f32[n, 8]"} for name in EVIL]
    nodes = [
        {"name": name, "op": "neg" if i % 2 else "exp", "operands": [f"{name} in"], "group": name, "source": name + ":1", "results": [{"name": name}]}
        for i, name in enumerate(EVIL)
    ]
    return json.dumps(
        {
            "format": "piecewise.graph/1",
            "name": EVIL[1],
            "symbols": {"n": {"max": 64, "role": "tokens"}},
            "inputs": inputs,
            "nodes": nodes,
            "outputs": EVIL,
        }
    )


class Terminal(ProgramTest):
    def clean(self, done):
        """Lines of text: no control characters but line ends and tabs."""
        for text in (done.stdout, done.stderr):
            self.assertNotRegex(text, CONTROLS)
        return done

    def test_no_command_prints_control_characters(self):
        evil = self.file("evil.json", evil_graph())
        other = self.file("other.json", evil_graph().replace('"exp"', '"abs"'))
        rules = self.file("r.pwr", "rule merge { y = neg(neg(x)) => y = x }\nrule swap { y = neg(x) => y = 0 - x }\npass p = greedy { swap }\n")
        for args, code in (
            (["match", "y=neg(x)", evil], 0),
            (["stats", evil], 0),
            (["import", evil], 0),
            (["export", evil], 0),
            (["explain", "merge", evil, "-r", rules], 1),
            (["opt", evil, "-r", rules, "-p", "p", "--stats"], 0),
            (["report", evil], 0),
            (["report", evil, "--run", "--tokens", "3"], 0),
            (["run", evil, "--tokens", "3"], 0),
            (["split", evil], 0),
            (["plan", evil], 0),
            (["plan", evil, "--memory"], 0),
            (["diff", evil, other], 1),
            (["compile", evil, "--sources-only", "-o", self.path("out")], 0),
            (["fuzz-order", evil, "-r", rules, "-p", "p"], 0),
            (["sizes", evil], 0),
        ):
            for shape in ("table", "csv", "json"):
                done = self.clean(self.pwr(*args, "--format", shape, code=code))
                if shape == "json":
                    json.loads(done.stdout)
                if args[0] == "match" and shape == "table":
                    self.assertIn("\\x1b]0;pwn\\x07", done.stdout)

    def test_pictures_as_text_hold_none(self):
        evil = self.file("evil.json", evil_graph())
        self.clean(self.pwr(evil, program="pwviz"))
        for name in ("a.txt", "a.md", "a.dot"):
            self.pwr(evil, "-o", self.path(name), program="pwviz")
            self.assertNotRegex(Path(self.path(name)).read_text(encoding="utf-8"), CONTROLS)

    def test_a_terminal_gets_no_bytes_of_a_file(self):
        evil = self.file("evil.json", evil_graph())
        for args in (["export", evil], ["run", evil, "--tokens", "3", "--save", "-"], ["report", evil]):
            leader, follower = os.openpty()
            process = subprocess.Popen([BIN / "pwr", *args], stdout=follower, stderr=subprocess.DEVNULL)
            os.close(follower)
            shown = b""
            try:
                while part := os.read(leader, 65536):
                    shown += part
            except OSError:  # the other end is closed
                pass
            os.close(leader)
            self.assertEqual(process.wait(60), 0)
            self.assertTrue(shown)
            self.assertNotRegex(shown.decode().replace("\r\n", "\n"), CONTROLS)

    def test_messages_are_escaped_too(self):
        for args in (
            ["match", "y=\x1b[31m(x)", self.file("g.pwg", "graph g { in x: f32[4]\n  y = relu(x)\n  out y }\n")],
            ["stats", "absent\x1b[31m.json"],
            ["opt", "--\x1b[31m"],
        ):
            self.clean(self.pwr(*args, code=2 if args[0] == "opt" else 3))

    def test_a_table_has_a_line_a_row(self):
        done = self.pwr("match", "y=exp(x)", self.file("evil.json", evil_graph()))
        self.assertEqual(len(done.stdout.splitlines()), 1 + sum(1 for i in range(len(EVIL)) if i % 2 == 0))

    def test_long_names_make_short_file_names(self):
        long = "n" * 300
        graph = {
            "format": "piecewise.graph/1",
            "name": long,
            "symbols": {"n": {"max": 64, "role": "tokens"}},
            "inputs": [{"name": long, "type": "f32[n, 8]"}],
            "nodes": [{"name": long + "y", "op": "neg", "operands": [long], "results": [{"name": long + "y"}]}],
            "outputs": [long + "y"],
        }
        path = self.file("long.json", json.dumps(graph))
        rules = self.file(
            "long.pwr",
            f"rule {long} {{ y = neg(x) => y = 0 - x }}\npass {long}p = greedy {{ {long} }}\npass {long}q = greedy {{ {long} }}\n"
            f"pipeline {long}r {{\n  {long}p\n  {long}q\n}}\n",
        )
        trace = self.path("trace")
        self.pwr("opt", path, "-r", rules, "-p", long + "r", "-o", self.path("out.pwg"), "--trace", trace)
        self.assertEqual(len({f.split("-", 1)[1] for f in os.listdir(trace) if f.endswith(".pwg")}), 3)  # distinct without their numbers too
        self.pwr("run", path, "-r", rules, "-p", long + "r", "--tokens", "3", "--dump", self.path("dump"), "--report", self.path("report"))
        self.pwr("compile", path, "--sources-only", "-o", self.path("compiled"), "--dump", self.path("dump2"))
        self.pwr("split", path, "-o", self.path("pieces"))


class ForeignFiles(ProgramTest):
    def setUp(self):
        self.secret = self.file("passwd", SECRET + "\nsecond line\n")
        self.inner = Path(self.path("inner"))
        self.inner.mkdir(exist_ok=True)

    def rules(self, text):
        return self.file("inner/a.pwr", text)

    def test_nothing_of_a_foreign_file_is_shown(self):
        if not (self.inner / "link.pwr").is_symlink():
            os.symlink(self.secret, self.inner / "link.pwr")
        for used in (self.secret, "../passwd", "link.pwr"):
            for command in (["check"], ["verify", "-r"], ["test"]):
                done = self.pwr(*command, self.rules(f'use "{used}"\n{RULE}'), code=3)
                for text in (done.stdout, done.stderr):
                    self.assertNotIn("secret", text)
                    self.assertNotIn("root", text)
                self.assertIn("PW0463", done.stderr)
                self.assertIn("a.pwr:1:", done.stderr)
                self.assertIn("help: ", done.stderr)

    def test_nor_of_a_graph_that_a_test_names(self):
        for used in (self.secret, "../passwd"):
            done = self.pwr(
                "test", self.rules(RULE + f'test t {{\n  graph "{used}"\n  apply p\n  expect merge == 1\n}}\n'), "--junit", self.path("j.xml"), code=1
            )
            for text in (done.stdout, done.stderr, Path(self.path("j.xml")).read_text()):
                self.assertNotIn("secret", text)
            self.assertIn("PW1310", done.stdout)

    def test_own_files_are_shown_and_foreign_rules_are_read(self):
        self.file("inner/deeper.pwr", "rule {\n")
        self.assertIn("deeper.pwr:1:", self.pwr("check", self.rules(f'use "deeper.pwr"\n{RULE}'), code=3).stderr)
        self.file("shared.pwr", "rule shared { y = neg(neg(x)) => y = x }\n")
        self.assertIn("shared", self.pwr("check", self.rules(f'use "../shared.pwr"\n{RULE}')).stdout)
        self.file("shared.pwr", "rule shared {\n")  # named by the user too: its folder is the user's
        self.assertIn("shared.pwr:", self.pwr("check", self.rules(f'use "../shared.pwr"\n{RULE}'), self.path("shared.pwr"), code=3).stderr)


class Streams(ProgramTest):
    def test_a_file_on_standard_output_stands_alone(self):
        graph = self.file("g.pwg", "graph g { in x: f32[4]\n  y = relu(relu(x))\n  out y }\n")
        rules = self.file("r.pwr", RULE + "test t { graph { in x: f32[n]  y = relu(relu(x))  out y }  apply p  expect merge == 1 }\n")
        for args, option in (
            (["run", graph], "--save"),
            (["test", rules], "--junit"),
            (["opt", graph, "-r", rules, "-p", "p", "--stats"], "-o"),
            (["plan", graph, "--stats"], "-o"),
            (["check", rules], "--tests"),
        ):
            path = self.path("alone.pwg")
            separate = self.pwr_bytes(*args, option, path)
            for name in ("-", "/dev/stdout"):
                done = self.pwr_bytes(*args, option, name)
                self.assertEqual(self.masked(done.stdout), self.masked(Path(path).read_bytes()), args)
                self.assertGreaterEqual(len(done.stderr.splitlines()), len(separate.stdout.splitlines()), args)

    @staticmethod
    def masked(data):
        return re.sub(rb'time="[0-9.]+"', b"", data)

    def pwr_bytes(self, *args):
        done = subprocess.run([BIN / "pwr", *args], capture_output=True, timeout=3600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


if __name__ == "__main__":
    unittest.main()
