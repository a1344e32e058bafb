#!/usr/bin/python3
"""piecewise.toml: found above, below the command line, strict, and harmless in a stranger's folder."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402

GRAPH = "graph g { symbol n in 1..64 tokens  in x: bf16[n, 8], y: bf16[n, 8]\n  z = relu(add(x, y))\n  out z }\n"
RULES = """param width: int = 1
rule twice { z = relu(add(x, y)) => z = add(relu(x), relu(y)) }
pipeline more { walk { twice } }
"""


# What a found file sets: nothing that loads code, starts a program or writes. Think of a stranger's folder before adding one.
TAKEN = set(
    """
    active-loras all anew arch at atol backend baseline before buffer by cached-tokens check check-each code codes collapse color compile-sizes
    define derives diagnostics diff driver emit end-tokens engine eps expect expert-ffn experts explain-dispatch ffn fold format from functions generate-steps granted
    graph graph-seconds graphs group grouping head heads hidden histogram input inputs keep kv-heads kv-rank layers limit list lm-head loras map
    max-requests max-tokens measure memory mode most most-boxes no-analysis no-native no-open no-pad no-proof no-split nodes often only opaque
    ops order orders over overlay pass passes pieces pipeline plan port programmatic-edges progress prove q-rank quality quant quiet ranges rank ranks relation
    repeats replicated rows rtol rules run runs sample schedules seconds seed separate sequence-parallel set shard share-executables shuffle size-cap sizes solver
    sources-only space speculative-tokens splitting stats stdio stdout steps steps-in-launch stream-weights strict subsets symbol time-limit timeout times token-ranges tokens
    tokens-symbol topk tp type verdicts verify-each view vocab weight weights widths with
    """.split()
)


def options_of(program):
    """(path of the command, option, a value for it as TOML) of each option that a program's completion offers."""
    words = ["completion", "fish"] if program == "pwr" else ["--completion", "fish"]
    script = subprocess.run([BIN / program, *words], capture_output=True, text=True, check=True).stdout
    out = []
    for line in script.splitlines():
        found = re.match(rf"complete -c {program}(?: -n '([^']*)')? -l ([a-z-]+)( .*)$", line)
        if not found:
            continue
        condition, option, rest = found.groups()
        takes = re.match(r" (?:-s \S+ )?-(?:x|r)", rest)
        out.append((re.findall(r"__fish_seen_subcommand_from (\S+?)(?:;|$)", condition or ""), option, "'1'" if takes else "true"))
    assert len(out) > 30, script
    return out


def toml_of(rows):
    """A file that sets the options."""
    tables = {}
    for command, option, value in rows:
        tables.setdefault(".".join(command), []).append(f"{option} = {value}\n")
    return "".join((f"[{name}]\n" if name else "") + "".join(lines) for name, lines in sorted(tables.items()))


class Config(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        root = Path(cls.folder.name)
        cls.below = root / "a" / "b"
        cls.below.mkdir(parents=True)
        (root / "g.pwg").write_text(GRAPH)
        (root / "more.pwr").write_text(RULES)

    def setUp(self):
        self.file("piecewise.toml", "")
        self.files = sorted(os.listdir(self.folder.name))

    def tearDown(self):
        Path(self.path("piecewise.toml")).unlink(missing_ok=True)

    def run_in(self, folder, *args, code=0, program="pwr", toml=None):
        if toml is not None:
            self.file("piecewise.toml", toml)
        state = {"XDG_STATE_HOME": self.path("state")}
        done = subprocess.run(
            [BIN / program, *args], cwd=folder, capture_output=True, text=True, timeout=3600, check=False, env={**os.environ, **state}
        )
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
        messages = self.here("opt", "g.pwg", toml="# mine\nruless = 'llm'\n\n[run]\n  tokns = 3\n[runn]\n\"é\" = 1\n", code=2).stderr
        self.assertRegex(messages, r"error\[PW1502\]: there is no option `ruless`\n +--> piecewise.toml:2:1")
        self.assertIn("did you mean `rules`?", messages)
        self.assertRegex(messages, r"there is no option `tokns` of `run`\n +--> piecewise.toml:5:3")
        self.assertIn("did you mean `tokens`?", messages)
        self.assertRegex(messages, r"there is no command or option `runn`\n +--> piecewise.toml:6:")
        self.assertIn("did you mean `run`?", messages)

    def test_wrong_values_are_told_with_their_place(self):
        for toml, reason in (
            ("[run]\ndriver = 'metal'\n", r"`driver`: metal not in \{cuda,host\}"),
            ("[run]\nranks = 99\n", r"`ranks`: .*99"),
            ("[run]\nseed = 'x'\n", r"`seed`: .*x"),
            ("[run]\ncheck = 'yes'\n", "`check` takes true or false"),
            ("[run]\ntokens = true\n", "`tokens` takes one string or number"),
            ("[run]\nseed = [1, 2]\n", "`seed` takes one string or number"),
            ("[run]\nseed = 2024-01-01\n", "`seed` takes one string or number"),
            ("[run]\npipeline = ''\n", "`pipeline` takes a non-empty string"),
            ("[run]\ndefine = { tp = [{}] }\n", "`tp` takes a string or number"),
        ):
            messages = self.here("run", "g.pwg", toml=toml, code=2).stderr
            self.assertRegex(messages, r"error\[PW1504\]: " + reason)
            self.assertIn("--> piecewise.toml:2:", messages)

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
            messages = self.here("doctor", toml=toml.encode("latin-1"), code=2).stderr
            self.assertRegex(messages, r"error\[PW1501\]: this is not valid TOML: ")
            self.assertRegex(messages, r"--> piecewise.toml:[12]:")

    def test_help_and_version_need_no_good_file(self):
        for args in (["--help"], ["run", "--help"], ["--version"]):
            self.here(*args, toml="[[[")
        self.here("--no-config", "doctor", toml="[[[")

    def test_a_found_file_is_refused_with_its_place_and_what_to_do(self):
        messages = self.here("stats", "g.pwg", toml="quiet = true\n[bisect]\n  command = 'touch loot'\n", code=2).stderr
        self.assertRegex(messages, r"error\[PW1503\]: `command` is refused: a discovered \(not explicitly named\) piecewise.toml must not load code")
        self.assertIn("--> piecewise.toml:3:3", messages)
        self.assertIn("pass --command on the command line; if you trust it, run `pwr trust .` once, or pass --config piecewise.toml", messages)
        below = self.run_in(self.below, "stats", "../../g.pwg", code=2).stderr
        self.assertIn("`pwr trust ../../` once, or pass --config ../../piecewise.toml", below)
        for key in ("config", "help", "version", "watch"):
            for named in ([], ["--config", "piecewise.toml"]):
                self.assertRegex(self.here(*named, "doctor", toml=f"{key} = true\n", code=2).stderr, "PW150[23]")

    def test_the_text_that_is_shown_is_the_documents(self):
        printed = self.here("stats", "g.pwg", toml='plugin = "./mine.so"\n', code=2).stderr.strip()
        self.assertIn("\n".join("    " + line for line in printed.splitlines()), Path("docs/configuration.md").read_text(encoding="utf-8"))

    def test_a_plugin_is_not_loaded(self):
        self.file("evil.c", f'#include <stdio.h>\n__attribute__((constructor)) static void f(void) {{ fclose(fopen("{self.path("RAN")}", "w")); }}\n')
        subprocess.run(["cc", "-shared", "-fPIC", self.path("evil.c"), "-o", self.path("evil.so")], check=True)
        for command in (["stats", "g.pwg"], ["fmt", "--check", "more.pwr"], ["cache", "stats"], ["ops"], ["serve", "--no-open"], ["run", "g.pwg"]):
            self.assertIn("PW1503", self.here(*command, toml="plugin = './evil.so'\n", code=2).stderr)
            self.assertFalse(os.path.exists(self.path("RAN")), command)
        self.assertIn("PW1503", self.run_in(self.below, "stats", "../../g.pwg", code=2).stderr)
        self.assertFalse(os.path.exists(self.path("RAN")))
        self.here("--config", "piecewise.toml", "stats", "g.pwg", code=3)  # it is loaded, but is not a plugin
        self.assertTrue(os.path.exists(self.path("RAN")))

    def test_a_command_is_not_started(self):
        for name in ("bisect", "reduce"):
            for toml in (f"[{name}]\ncommand = 'touch loot'\n", "command = 'touch loot'\n"):
                self.assertIn("PW1503", self.here(name, "g.pwg", "-r", "more.pwr", "-p", "more", toml=toml, code=2).stderr)
                self.assertFalse(os.path.exists(self.path("loot")))
        self.here("--config", "piecewise.toml", "bisect", "g.pwg", "-r", "more.pwr", "-p", "more", toml="command = 'touch loot'\n", code=1)
        self.assertTrue(os.path.exists(self.path("loot")))
        os.unlink(self.path("loot"))

    def test_a_named_file_sets_what_is_written(self):
        self.here("--config", "piecewise.toml", "export", "g.pwg", toml="[export]\noutput = 'loot.pwg'\n")
        self.assertIn("graph g", Path(self.path("loot.pwg")).read_text())
        os.unlink(self.path("loot.pwg"))

    def test_only_what_is_listed_is_taken_from_a_found_file(self):
        """Covers all options of all commands, as the programs' completions list them."""
        rows = [row for row in options_of("pwr") if row[0] != ["trust"]]  # which reads no file
        self.assertLessEqual(TAKEN, {option for _, option, _ in rows + options_of("pwviz")}, "it lists an option that there is not")
        # Values of the running command are checked: these one by one, the others together.
        others = [row for row in rows if row[0] not in ([], ["stats"])]
        self.here("stats", "g.pwg", toml=toml_of(row for row in others if row[1] in TAKEN))
        self.here("--config", "piecewise.toml", "stats", "g.pwg", toml=toml_of(row for row in others if row[1] != "help"))
        refused = {row[1] for row in others} - TAKEN
        self.assertLessEqual({"command", "host-functions", "output", "save", "dump", "report", "trace", "tests", "junit", "update", "study"}, refused)
        for row in others:
            if row[1] not in TAKEN:
                self.assertEqual(self.is_refused("pwr", toml_of([row])), True, row)
        for option in refused | {"plugin"}:
            self.assertEqual(self.is_refused("pwr", f"{option} = 'loot'\n"), True, option)
        for row in rows:
            if row not in others:
                self.assertEqual(self.is_refused("pwr", toml_of([row])), row[1] not in TAKEN, row)
        for _, option, value in options_of("pwviz"):
            self.assertEqual(self.is_refused("pwviz", f"[pwviz]\n{option} = {value}\n"), option not in TAKEN, option)

    def is_refused(self, program, toml):
        """Whether a found file of this text is refused for what it sets; nothing is written in either case."""
        self.file("piecewise.toml", toml)
        words = [BIN / program, *(["stats"] if program == "pwr" else []), "g.pwg"]
        done = subprocess.run(words, cwd=self.folder.name, capture_output=True, text=True, timeout=3600, check=False)
        self.assertEqual(sorted(os.listdir(self.folder.name)), self.files, toml)
        return "PW1503" in done.stderr and done.returncode == 2

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
        self.assertIn("belongs to another user;", program("doctor").stderr)
        self.assertNotIn("belongs", program("--config", "piecewise.toml", "doctor").stderr)


class Trust(ProgramTest):
    def setUp(self):
        home, project = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.addCleanup(project.cleanup)
        self.home, self.project = Path(home.name).resolve(), Path(project.name).resolve()
        self.below = self.project / "below"
        self.below.mkdir()
        (self.project / "g.pwg").write_text(GRAPH)
        self.toml = self.project / "piecewise.toml"
        self.toml.write_text("[export]\noutput = 'loot.pwg'\n")

    def call(self, *args, code=0, cwd=None, **environment):
        env = {**os.environ, "XDG_STATE_HOME": str(self.home / "state"), **environment}
        done = subprocess.run([BIN / "pwr", *args], cwd=cwd or self.project, capture_output=True, text=True, timeout=3600, check=False, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def listed(self, **environment):
        return json.loads(self.call("--format", "json", "trust", "--list", **environment).stdout)

    def refused(self, **environment):
        self.assertIn("PW1503", self.call("export", "g.pwg", code=2, **environment).stderr)
        self.assertFalse((self.project / "loot.pwg").exists())

    def written(self, cwd=None):
        self.call("export", self.project / "g.pwg", cwd=cwd)
        (self.project / "loot.pwg").unlink()

    def test_a_trusted_file_sets_all_until_it_changes(self):
        self.refused()
        done = self.call("--format", "json", "trust", ".")
        digest = hashlib.sha256(self.toml.read_bytes()).hexdigest()
        row = {"folder": str(self.project), "sha256": digest, "state": "in force"}
        self.assertEqual(json.loads(done.stdout), [row])
        self.assertIn("until it changes, it sets output", done.stderr)
        self.assertEqual(self.listed(), [row])
        self.written()
        self.written(cwd=self.below)
        text = self.toml.read_text()
        self.toml.write_text(text + "# another\n")
        self.assertIn("it has changed since it was trusted", self.call("export", "g.pwg", code=2).stderr)
        self.assertEqual(self.listed()[0]["state"], "changed")
        self.toml.write_text(text)
        self.written()
        self.assertEqual(json.loads(self.call("--format", "json", "trust", "--remove", ".").stdout), [row])
        self.refused()
        self.assertEqual(self.listed(), [])
        self.assertIn("the folder is not trusted", self.call("trust", "--remove", ".", code=1).stderr)

    def test_it_is_of_the_folder_however_it_is_named(self):
        link = self.home / "link"
        link.symlink_to(self.project)
        self.call("trust", link)
        self.assertEqual([row["folder"] for row in self.listed()], [str(self.project)])
        self.written(cwd=link)
        copy = self.home / "copy"
        copy.mkdir()
        (copy / "piecewise.toml").write_text(self.toml.read_text())
        self.assertIn("PW1503", self.call("stats", self.project / "g.pwg", cwd=copy, code=2).stderr)

    def test_a_folder_that_is_gone_can_be_removed(self):
        other = self.home / "other"
        other.mkdir()
        (other / "piecewise.toml").write_text("plugin = 'x.so'\n")
        self.call("trust", other)
        shutil.rmtree(other)
        self.assertEqual(self.listed()[0]["state"], "missing")
        self.call("trust", "--remove", f"{other}/")
        self.assertEqual(self.listed(), [])

    def test_what_cannot_be_trusted(self):
        self.assertIn("PW1505", self.call("trust", self.below, code=2).stderr)
        self.toml.write_text("[opt]\noutptu = 'x'\n")
        self.assertIn("did you mean `output`?", self.call("trust", ".", code=2).stderr)
        self.assertIn("folder is required", self.call("trust", code=2).stderr)
        self.assertIn("excludes", self.call("trust", ".", "--list", code=2).stderr)

    def test_it_reads_no_file_for_itself(self):
        self.toml.write_text("[[[")
        self.assertEqual(self.listed(), [])

    def test_the_list_is_never_in_the_folder_that_it_judges(self):
        (self.project / "state/piecewise").mkdir(parents=True, mode=0o700)
        digest = hashlib.sha256(self.toml.read_bytes()).hexdigest()
        (self.project / "state/piecewise/trusted").write_text(f"{digest}  {self.project}\n")
        self.refused(XDG_STATE_HOME="state", HOME=str(self.home))
        self.refused(XDG_STATE_HOME="state", HOME="")
        self.assertIn("PW1505", self.call("trust", ".", code=2, XDG_STATE_HOME="state", HOME="").stderr)

    def test_a_list_that_others_can_write_is_ignored(self):
        self.call("trust", ".")
        state = self.home / "state/piecewise"
        self.assertEqual(state.stat().st_mode & 0o777, 0o700)
        self.written()
        state.chmod(0o777)
        self.refused()
        self.assertIn("others can write to it", self.call("trust", ".", code=2).stderr)

    def test_damaged_lines_trust_nothing(self):
        self.call("trust", ".")
        path = self.home / "state/piecewise/trusted"
        for text in ("", "x\n", path.read_text()[:70], path.read_text().replace("  /", "  "), path.read_text().upper()):
            path.write_text(text)
            self.refused()

    def test_processes_do_not_lose_each_others_entries(self):
        folders = [self.home / f"p{i}" for i in range(8)]
        for folder in folders:
            folder.mkdir()
            (folder / "piecewise.toml").write_text("")
        env = {**os.environ, "XDG_STATE_HOME": str(self.home / "state")}
        running = [subprocess.Popen([BIN / "pwr", "-q", "trust", folder], env=env, stdout=subprocess.DEVNULL) for folder in folders]
        self.assertEqual([process.wait(60) for process in running], [0] * 8)
        self.assertEqual([row["folder"] for row in self.listed()], sorted(map(str, folders)))


if __name__ == "__main__":
    unittest.main()
