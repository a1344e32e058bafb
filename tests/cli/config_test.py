#!/usr/bin/python3
"""piecewise.toml: found above, below the command line, strict, and harmless in a stranger's folder."""
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402

GRAPH = "graph g { symbol n in 1..64 tokens  in x: bf16[n, 8], y: bf16[n, 8]\n  z = relu(add(x, y))\n  out z }\n"
RULES = """param width: int = 1
rule twice { z = relu(add(x, y)) => z = add(relu(x), relu(y)) }
pipeline more { walk { twice } }
"""


class Config(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        root = Path(cls.folder.name)
        cls.below = root / "a" / "b"
        cls.below.mkdir(parents=True)
        (root / "g.pwg").write_text(GRAPH)
        (root / "more.pwr").write_text(RULES)

    def tearDown(self):
        Path(self.path("piecewise.toml")).unlink(missing_ok=True)

    def run_in(self, folder, *args, code=0, program="pwr", toml=None):
        if toml is not None:
            self.file("piecewise.toml", toml)
        done = subprocess.run([BIN / program, *args], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def here(self, *args, **how):
        return self.run_in(self.folder.name, *args, **how)

    def steps(self, *args, **how):
        """The token counts that pwr run runs."""
        done = self.here("--format", "json", "run", "g.pwg", *args, **how)
        return [row["tokens"] for graph in json.loads(done.stdout)["graphs"] for row in graph["steps"]]

    def test_values_stand_for_options_that_are_left_out(self):
        self.assertEqual(self.steps("--tokens", "5"), [5])
        self.assertEqual(self.steps(toml="tokens = [3, 4]\n"), [3, 4])
        self.assertEqual(self.steps(toml="[run]\ntokens = '6'\n"), [6])

    def test_a_command_wins_over_the_top_and_the_command_line_over_both(self):
        both = "tokens = 3\n[run]\ntokens = 4\n[bench]\ntokens = 5\n"
        self.assertEqual(self.steps(toml=both), [4])
        self.assertEqual(self.steps("--tokens", "7", toml=both), [7])
        self.assertEqual(self.steps("--tokens=7", toml=both), [7])
        self.assertEqual(self.steps("--no-config", "--tokens", "2", toml=both), [2])

    def test_a_value_at_the_top_is_for_the_commands_whose_option_takes_it(self):
        explain = ["explain", "twice", "g.pwg", "-r", "more.pwr"]
        self.assertEqual(self.steps(toml="tokens = [3, 4]\n"), [3, 4])
        self.here(*explain, toml="tokens = [3, 4]\n")  # there, --tokens is one number
        self.assertIn("PW1504", self.here(*explain, toml="[explain]\ntokens = [3, 4]\n", code=2).stderr)
        self.assertIn("PW1504", self.here("doctor", toml="tokens = true\n", code=2).stderr)

    def test_it_is_found_above_and_paths_in_it_are_relative_to_it(self):
        toml = "rules = 'more.pwr'\npipeline = 'more'\n"
        self.file("piecewise.toml", toml)
        for folder, graph in ((self.folder.name, "g.pwg"), (self.below, "../../g.pwg")):
            self.assertEqual(self.run_in(folder, "opt", graph, "-o", "-").stdout.count("relu("), 2)
        self.assertIn("../../piecewise.toml", self.run_in(self.below, "doctor").stdout)

    def test_doctor_says_what_is_in_force(self):
        rows = {row["what"]: row["state"] for row in json.loads(self.here("--format", "json", "doctor", toml="quiet = true\n").stdout)}
        self.assertEqual(rows["piecewise.toml"], "piecewise.toml")
        rows = {row["what"]: row["state"] for row in json.loads(self.here("--format", "json", "--no-config", "doctor").stdout)}
        self.assertNotIn("piecewise.toml", rows)

    def test_a_file_is_named(self):
        named = self.file("other.toml", "tokens = 9\n")
        self.assertEqual(self.steps("--config", named, toml="tokens = 3\n"), [9])
        self.assertIn("no-such.toml", self.here("--config", "no-such.toml", "doctor", code=2).stderr)

    def test_lists_tables_flags_and_numbers(self):
        opt = ["opt", "g.pwg", "-r", "more.pwr", "-p", "more"]
        for toml in ("define = 'width=2'", "define = ['width=2']", "define = { width = 2 }", "[opt.define]\nwidth = 2"):
            self.here(*opt, toml=toml)
            self.assertIn("widht", self.here(*opt, toml=toml.replace("width", "widht"), code=3).stderr)
        self.assertEqual(self.here("split", "g.pwg", toml="quiet = true\n").stderr, "")
        self.assertNotEqual(self.here("split", "g.pwg", toml="quiet = false\n").stderr, "")
        self.assertIn("twice", self.here(*opt, toml="[opt]\nstats = true").stdout)
        self.assertNotIn("attempts", self.here(*opt, toml="[opt]\nstats = false").stdout)
        self.assertEqual(self.steps(toml="[run]\nno-pad = true\ntokens = '3'\nseed = 7\nranks = 1"), [3])

    def test_other_programs_and_tables_of_them(self):
        self.assertEqual(self.steps(toml="tokens = 3\n[pwviz]\ncollapse = 'none'\n"), [3])
        drawn = self.here("g.pwg", program="pwviz", toml="[pwviz]\nsplit = true\n", code=2)
        self.assertIn("PW1502", drawn.stderr)
        self.here("g.pwg", program="pwviz", toml="tokens = 3\n[run]\nno-such = 1\n[pwviz]\nno-split = true\n")
        self.assertIn("not in", self.here("g.pwg", program="pwviz", toml="[pwviz]\nview = 'sideways'\n", code=2).stderr)

    def test_every_unknown_key_is_told_with_its_place_and_a_near_name(self):
        said = self.here("opt", "g.pwg", toml="# mine\nruless = 'llm'\n\n[run]\n  tokns = 3\n[runn]\n\"é\" = 1\n", code=2).stderr
        self.assertRegex(said, r"error\[PW1502\]: there is no option `ruless`\n +--> piecewise.toml:2:1")
        self.assertIn("did you mean `rules`?", said)
        self.assertRegex(said, r"there is no option `tokns` of `run`\n +--> piecewise.toml:5:3")
        self.assertIn("did you mean `tokens`?", said)
        self.assertRegex(said, r"there is no command or option `runn`\n +--> piecewise.toml:6:")
        self.assertIn("did you mean `run`?", said)

    def test_wrong_values_are_told_with_their_place(self):
        for toml, reason in (
            ("[run]\ndriver = 'metal'\n", r"`driver`: metal not in \{cuda,host\}"),
            ("[run]\nranks = 99\n", r"`ranks`: .*99"),
            ("[run]\nseed = 'x'\n", r"`seed`: .*x"),
            ("[run]\ncheck = 'yes'\n", "`check` takes true or false"),
            ("[run]\ntokens = true\n", "`tokens` takes one text or number"),
            ("[run]\nseed = [1, 2]\n", "`seed` takes one text or number"),
            ("[run]\nseed = 2024-01-01\n", "`seed` takes one text or number"),
            ("[run]\npipeline = ''\n", "`pipeline` takes no empty text"),
            ("[run]\ndefine = { tp = [{}] }\n", "`tp` takes a text or number"),
        ):
            said = self.here("run", "g.pwg", toml=toml, code=2).stderr
            self.assertRegex(said, r"error\[PW1504\]: " + reason)
            self.assertIn("--> piecewise.toml:2:", said)

    def test_no_toml_is_told_with_its_place(self):
        for toml in (
            "tokens = \n",
            "[run\n",
            "a = 1\na = 2\n",
            "\xff",
            "tokens 3",
            "[\0\0x\n",
            "\xc3\xa9 = 1\n",
            "a\xc3\xa9 = 1\n",
            "a = \xc3\xa9\n",
            "a = 1 \xc3\xa9\n",
            "a = \x1b[31m\n",
            "[" * 3000,
            "a = " + "[" * 3000,
            "x=" + "{a=" * 900,
        ):
            said = self.here("doctor", toml=toml.encode("latin-1"), code=2).stderr
            self.assertRegex(said, r"error\[PW1501\]: this is no TOML: ")
            self.assertRegex(said, r"--> piecewise.toml:[12]:")

    def test_help_and_version_need_no_good_file(self):
        for args in (["--help"], ["run", "--help"], ["--version"]):
            self.here(*args, toml="[[[")
        self.here("--no-config", "doctor", toml="[[[")

    def test_options_that_write_are_refused(self):
        written = {"output": "opt", "save": "run", "dump": "run", "report": "run", "trace": "opt", "tests": "check", "junit": "test"}
        for option, command in written.items():
            for toml in (f"[{command}]\n{option} = 'loot'\n", f"{option} = 'loot'\n"):
                said = self.here("opt", "g.pwg", toml=toml, code=2).stderr
                self.assertIn("PW1503", said)
                self.assertIn("it writes", said)
                self.assertIn(f"give --{option} on the command line", said)
                self.assertFalse(Path(self.path("loot")).exists())
        self.assertIn("PW1503", self.here("doctor", toml="[test]\nupdate = true\n", code=2).stderr)
        self.assertIn("PW1503", self.here("g.pwg", program="pwviz", toml="[pwviz]\noutput = 'loot.svg'\n", code=2).stderr)
        for key in ("config", "help", "version"):
            self.assertRegex(self.here("doctor", toml=f"{key} = true\n", code=2).stderr, "PW150[23]")

    def test_no_option_that_names_a_folder_or_says_it_writes_is_taken(self):
        """Of all options there are, as the help states them: a new one that writes has to be listed as such."""
        listing = subprocess.run([BIN / "pwr", "--help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", listing.partition("Example")[0], flags=re.M)
        writers = 0
        for command in commands:
            text = re.sub(r"\n {20,}", " ", self.pwr(command, "--help").stdout)
            for head, rest in re.findall(r"^  (?:-\w,)?--([a-z-]+)(.*)$", text, flags=re.M):
                if not re.search(r" DIR\b|\bwrite\b|to write|write the|draw time|the picture", rest) or "read" in rest.split()[:1]:
                    continue
                if head in ("times", "stdout", "schedules"):
                    continue
                writers += 1
                said = self.here("doctor", toml=f"[{command}]\n{head} = 'loot'\n", code=2).stderr
                self.assertIn("PW1503", said, f"{command} --{head}{rest}")
        self.assertGreater(writers, 10)

    def test_the_example_of_the_documents_is_one(self):
        text = Path("docs/configuration.md").read_text(encoding="utf-8")
        toml = re.search(r"(?s)```toml\n(.*?)```", text)[1]
        Path(self.path("rules")).mkdir(exist_ok=True)
        self.file("rules/mine.pwr", "")
        dump = Path("examples/tiny-decoder.fx.txt").resolve()
        plan = json.loads(self.here("plan", dump, toml=toml).stdout)
        self.assertEqual(plan["ranges"][:2], [[1, 8], [9, 32]])
        self.here(dump, program="pwviz", toml=toml)
        printed = self.here("run", dump, toml="# one\n\n\n[run]\ntokns = 3\n", code=2).stderr.strip()
        self.assertIn("\n".join("        " + line for line in printed.splitlines()), text)

    def test_what_excludes_or_needs_another_gives_way(self):
        self.here("split", "g.pwg", "--size-cap", "8", toml="[split]\nsizes = [1, 2]\n")
        self.here("run", "g.pwg", toml="tokens = 3\n[run]\nmap = 'names.json'\n")  # no --weights to map

    def test_a_report_repeats_what_was_taken(self):
        self.file("piecewise.toml", "rules = 'more.pwr'\npipeline = 'more'\n[report]\ntokens = [2]\n")
        text = self.here("report", "g.pwg").stdout
        self.assertIn("pwr report g.pwg --rules=more.pwr --pipeline=more --tokens=2", text)

    @unittest.skipUnless(os.geteuid() == 0, "only root gives files away")
    def test_another_users_file_is_not_read(self):
        os.chown(self.file("piecewise.toml", "tokens = 3\n"), 4321, 4321)
        program = lambda *args: subprocess.run([BIN / "pwr", *args], cwd=self.folder.name, capture_output=True, text=True, check=False)
        self.assertIn("belongs to another user", program("doctor").stderr)
        self.assertNotIn("belongs", program("--config", "piecewise.toml", "doctor").stderr)


if __name__ == "__main__":
    unittest.main()
