#!/usr/bin/python3
"""Outputs of the programs are complete, or are reported as incomplete: files of every kind, standard output, standard error."""
import os
import re
import resource
import signal
import stat
import subprocess
import threading
import time
import unittest
from pathlib import Path

from program import BIN, RULES, ProgramTest

DEMO = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0"]
NO_DEVICE = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}

EGRAPH = '{"nodes": {"a": {"op": "f", "children": ["b"], "eclass": "0", "cost": 2}, "b": {"op": "x", "eclass": "1"}}, "root_eclasses": ["0"]}'


class Files(ProgramTest):
    def setUp(self):
        self.graph = self.file("g.pwg", "graph g { in x: f32[4]\n  y = relu(x)\n  out y }\n")
        self.whole = self.pwr("export", self.graph).stdout

    def test_a_symbolic_link_is_followed(self):
        Path(self.path("inner")).mkdir(exist_ok=True)
        target = self.file("inner/target.pwg", "old")
        link = self.path("link.pwg")
        os.symlink("inner/target.pwg", link)
        self.pwr("export", self.graph, "-o", link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(Path(target).read_text(), self.whole)

    def test_a_link_to_nothing_makes_what_it_names(self):
        link = self.path("first.pwg")
        os.symlink("second.pwg", link)
        os.symlink("made.pwg", self.path("second.pwg"))
        self.pwr("export", self.graph, "-o", link)
        self.assertTrue(os.path.islink(link))
        self.assertFalse(os.path.islink(self.path("made.pwg")))
        self.assertEqual(Path(self.path("made.pwg")).read_text(), self.whole)

    def test_a_circle_of_links_is_an_error(self):
        os.symlink("b.pwg", self.path("a.pwg"))
        os.symlink("a.pwg", self.path("b.pwg"))
        self.assertIn("PW0001", self.pwr("export", self.graph, "-o", self.path("a.pwg"), code=3).stderr)
        self.assertTrue(os.path.islink(self.path("a.pwg")))

    def test_a_fifo_is_written_and_stays(self):
        fifo = self.path("out.pwg")
        os.mkfifo(fifo)
        read = []
        reader = threading.Thread(target=lambda: read.append(Path(fifo).read_text()), daemon=True)
        reader.start()
        self.pwr("export", self.graph, "-o", fifo)
        reader.join(60)
        self.assertEqual(read, [self.whole])
        self.assertTrue(stat.S_ISFIFO(os.lstat(fifo).st_mode))

    def test_a_device_is_written_and_stays(self):
        leader, follower = os.openpty()  # a character device of our own
        self.addCleanup(os.close, leader)
        self.addCleanup(os.close, follower)
        device = os.ttyname(follower)
        self.pwr("export", self.graph, "-o", device)
        self.assertTrue(stat.S_ISCHR(os.stat(device).st_mode))
        self.assertIn(b"graph g", os.read(leader, 65536))

    def test_standard_output_has_other_names(self):
        self.assertEqual(self.pwr("export", self.graph, "-o", "/dev/stdout").stdout, self.whole)
        out = self.path("redirected.pwg")
        with open(out, "w", encoding="utf-8") as file:
            subprocess.run([BIN / "pwr", "export", self.graph, "-o", "/dev/stdout"], stdout=file, check=True, capture_output=False)
        self.assertEqual(Path(out).read_text(), self.whole)

    def test_all_that_writes_one_file_follows_links(self):
        rules = self.file("r.pwr", RULES)
        for name, args in {
            "o.json": ["opt", self.graph, "-r", rules, "-p", "p", "-o"],
            "junit.xml": ["test", rules, "--junit"],
            "plan.json": ["plan", *DEMO, "-o"],
            "report.txt": ["report", *DEMO, "-o"],
            "found.pwr": ["check", rules, "--tests"],
            "out.safetensors": ["run", self.graph, "--save"],
        }.items():
            os.symlink("of-" + name, self.path(name))
            self.pwr(*args, self.path(name))
            self.assertTrue(os.path.islink(self.path(name)), args)
            self.assertTrue(os.path.getsize(self.path("of-" + name)) > 0, args)

    def mode(self, path):
        return stat.S_IMODE(os.stat(path).st_mode)

    def test_an_existing_file_keeps_its_mode(self):
        for mode in (0o600, 0o640, 0o755):
            rules = self.file("mode.pwr", "rule merge{y=relu(relu(x))=>y=relu(x)}\n")
            os.chmod(rules, mode)
            self.pwr("fmt", rules)
            self.assertIn("rule merge {", Path(rules).read_text())
            self.assertEqual(self.mode(rules), mode)

    def test_a_new_file_has_the_mode_that_the_umask_leaves(self):
        for mask in (0o022, 0o077, 0o002):
            out = self.path(f"new{mask}.pwg")
            before = os.umask(mask)
            try:
                self.pwr("export", self.graph, "-o", out)
            finally:
                os.umask(before)
            self.assertEqual(self.mode(out), 0o666 & ~mask)

    def test_fmt_keeps_a_link(self):
        target = self.file("linked.pwr", "rule merge{y=relu(relu(x))=>y=relu(x)}\n")
        os.symlink("linked.pwr", self.path("to-linked.pwr"))
        self.pwr("fmt", self.path("to-linked.pwr"))
        self.assertTrue(os.path.islink(self.path("to-linked.pwr")))
        self.assertIn("rule merge {", Path(target).read_text())

    def test_a_name_as_long_as_names_may_be(self):
        out = self.path("n" * 251 + ".pwg")
        self.pwr("export", self.graph, "-o", out)
        self.assertEqual(Path(out).read_text(), self.whole)

    def test_no_half_file_stays_when_writing_fails(self):
        old = self.file("kept.json", "old")
        model = self.make("model.json", "generate", "llama", "--layers", "4")
        self.assertGreater(os.path.getsize(model), 4096)
        before = sorted(os.listdir(self.folder.name))
        for out in (old, self.path("absent.json")):
            done = subprocess.run(
                [BIN / "pwr", "export", model, "-o", out],
                capture_output=True,
                text=True,
                timeout=3600,
                check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
            )
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("PW0001", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)
        self.assertEqual(Path(old).read_text(), "old")

    def end_while_writing(self, number, out):
        """Whether the program was ended by the signal while it wrote; it is, after a few tries at most."""
        process = subprocess.Popen([BIN / "pwr", "export", self.path("large.json"), "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # It runs for a moment at a time, so that no load of the machine decides how often this program looks.
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            if self.writes_below(process.pid, os.path.dirname(out)):
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
                break
            process.send_signal(signal.SIGCONT)
            time.sleep(0.0005)
        return process.wait(600) != 0

    @staticmethod
    def writes_below(pid, folder):
        """Whether a process has a file of the folder open."""
        try:
            return any(os.readlink(f"/proc/{pid}/fd/{fd}").startswith(folder) for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return False  # it has ended, or closed the file just now

    def test_nothing_is_left_by_a_program_that_is_killed_while_it_writes(self):
        self.make("large.json", "generate", "llama", "--layers", "100")
        Path(self.path("killed")).mkdir()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            for name, content in (("new.json", None), ("old.json", "old")):
                out = self.path("killed/" + name)
                ended = False
                for _ in range(500):
                    if content is None:
                        Path(out).unlink(missing_ok=True)
                    else:
                        Path(out).write_text(content, encoding="utf-8")
                    ended = self.end_while_writing(number, out)
                    left = set(os.listdir(self.path("killed")))
                    self.assertLessEqual(left, {"new.json", "old.json"}, number)
                    if ended:
                        break
                self.assertTrue(ended, f"{number} never came while it wrote")
                if content is not None and Path(out).read_text(encoding="utf-8") != content:
                    self.assertEqual(Path(out).read_text(encoding="utf-8")[-2:], "}\n")  # else it is whole


class Streams(ProgramTest):
    """Every command, with standard output on a full device, and with standard error on one or closed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = Path(cls.folder.name)
        rules = cls.path("r.pwr")
        (folder / "r.pwr").write_text(RULES, encoding="utf-8")
        (folder / "odd.pwr").write_text(RULES.replace("rule merge {", "rule merge{"), encoding="utf-8")
        (folder / "g.pwg").write_text("graph g { in x: f32[4]\n  y = relu(relu(x))\n  out y }\n", encoding="utf-8")
        (folder / "h.pwg").write_text("graph g { in x: f32[4]\n  y = relu(x)\n  out y }\n", encoding="utf-8")
        (folder / "egraph.json").write_text(EGRAPH, encoding="utf-8")
        (folder / "counts.csv").write_text("1 10\n7 3\n", encoding="utf-8")
        g = cls.path("g.pwg")
        cls.commands = {
            "import": [g],
            "export": [g],
            "stats": [g],
            "generate": ["llama", "--layers", "1"],
            "check": [rules],
            "fmt": ["--check", cls.path("odd.pwr")],
            "test": [rules],
            "verify": ["-r", rules],
            "prove": ["-r", rules],
            "opt": [g, "-r", rules, "-p", "p", "--stats"],
            "explain": ["N01"],
            "match": ["y = relu(x)", g],
            "diff": [g, cls.path("h.pwg")],
            "equal": [g, g],
            "discover": ["--ops", "relu", "--nodes", "2", "--inputs", "1"],
            "split": DEMO,
            "plan": DEMO,
            "sizes": [*DEMO, "--histogram", cls.path("counts.csv")],
            "compile": [*DEMO, "--sources-only", "-o", cls.path("compiled")],
            "run": [g],
            "report": [g],
            "bench": [*DEMO, "--tokens", "1", "--sizes", "1"],
            "cache": ["stats"],
            "ops": ["relu"],
            "doctor": [],
            "trust": ["--list"],
            "completion": ["bash"],
            "man": ["run"],
            "bisect": [g, "-r", rules, "-p", "p"],
            "reduce": [g, "-r", rules, "-p", "p"],
            "explore": [g, "-r", rules, "-p", "p"],
            "extract": [cls.path("egraph.json")],
            "fuzz-order": [g, "-r", rules, "-p", "p"],
            "grammar": ["textmate"],
            "lsp": None,  # prints only answers: lsp_test.py
            "serve": None,  # ends when it is interrupted: serve_test.py
            "tune": None,  # prints only where there is a device
        }
        cls.lines = [["pwr", name, *args] for name, args in cls.commands.items() if args is not None]
        cls.lines += [
            ["pwr", "--help"],
            ["pwr", "--version"],
            ["pwr", "opt", "--help"],
            ["pwr", "fmt", "--stdout", rules],
            ["pwr", "explain", "merge", g, "-r", rules],
            ["pwr", "explain", "merge", cls.path("h.pwg"), "-r", rules],
            ["pwr", "plan", *DEMO, "--memory"],
            ["pwr", "plan", *DEMO, "--explain-dispatch", "3"],
            ["pwr", "export", g, "-o", "/dev/stdout"],
            ["pwviz", g, "-o", "/dev/stdout"],
            ["pwviz", g],
            ["pwviz", "--help"],
            ["pwviz", "--man"],
            ["pwviz", "--completion", "fish"],
        ]
        cls.expected = [cls.run_line(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for line in cls.lines]

    @classmethod
    def run_line(cls, line, **streams):
        return subprocess.run(
            [BIN / line[0], *line[1:]],
            timeout=3600,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**NO_DEVICE, "PWR_CACHE_DIR": cls.path("cache")},
            **streams,
        )

    def test_every_command_is_walked_and_prints(self):
        text = self.pwr("--help").stdout
        self.assertEqual(set(re.findall(r"^  ([a-z][a-z-]*) {2,}\S", text.partition("Example")[0], re.M)), set(self.commands))
        for line, expected in zip(self.lines, self.expected):
            self.assertIn(expected.returncode, (0, 1), (line, expected.stderr))
            self.assertTrue(expected.stdout, line)

    def test_a_full_device_is_an_error(self):
        for line, expected in zip(self.lines, self.expected):
            with open("/dev/full", "wb") as full:
                done = self.run_line(line, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 3, (line, done.stderr))
            self.assertIn(b"standard output: No space left on device", done.stderr, line)
            self.assertEqual(done.stderr.count(b"PW0001"), 1, (line, done.stderr))

    def test_a_closed_standard_output_is_an_error(self):
        for line in (["export", self.path("g.pwg")], ["--help"], ["stats", self.path("g.pwg")]):
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', BIN / "pwr", *line], stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 3, line)
            self.assertIn(b"standard output", done.stderr)
        out = self.path("beside.json")
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', BIN / "pwr", "export", self.path("g.pwg"), "-o", out], check=False)
        self.assertEqual(done.returncode, 0)  # nothing was to be printed
        self.assertEqual(
            Path(out).read_text(),
            self.pwr("export", self.path("g.pwg"), "-o", "/dev/stdout").stdout
            if out.endswith(".pwg")
            else Path(self.make("again.json", "export", self.path("g.pwg"))).read_text(),
        )

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        model = self.make("large.json", "generate", "llama", "--layers", "64")
        process = subprocess.Popen([BIN / "pwr", "export", model], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        messages = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(600), -signal.SIGPIPE)
        self.assertEqual(messages, b"")

    def test_colour_is_for_the_stream_that_shows_it(self):
        leader, follower = os.openpty()  # standard error is a terminal, standard output is not
        self.addCleanup(os.close, leader)
        self.addCleanup(os.close, follower)
        for line in (["pwviz", self.path("g.pwg")], ["pwr", "explain", "merge", self.path("h.pwg"), "-r", self.path("r.pwr")]):
            env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            done = subprocess.run([BIN / line[0], *line[1:]], stdout=subprocess.PIPE, stderr=follower, env=env, timeout=3600, check=False)
            self.assertTrue(done.stdout, line)
            self.assertNotIn(b"\x1b", done.stdout, line)
            done = subprocess.run(
                [BIN / line[0], *line[1:], "--color", "always"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, timeout=3600, check=False
            )
            self.assertIn(b"\x1b", done.stdout, line)

    def test_standard_error_does_not_matter(self):
        closed = lambda: os.close(2)
        for line, expected in zip(self.lines, self.expected):
            with open("/dev/full", "wb") as full:
                on_full = self.run_line(line, stdout=subprocess.PIPE, stderr=full)
            without = self.run_line(line, stdout=subprocess.PIPE, preexec_fn=closed)
            reader, writer = os.pipe()
            os.close(reader)
            unread = self.run_line(line, stdout=subprocess.PIPE, stderr=writer)
            os.close(writer)
            for done in (on_full, without, unread):
                self.assertEqual(done.returncode, expected.returncode, line)
                self.assertEqual(len(done.stdout.splitlines()), len(expected.stdout.splitlines()), line)


if __name__ == "__main__":
    unittest.main()
