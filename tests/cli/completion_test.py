#!/usr/bin/python3
"""Completion scripts in real shells, and manual pages under what reads them: both hold every command and option of --help."""
import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402

PROGRAMS = ("pwr", "pwviz")
# Sets the words as readline splits them, completes, and prints what is offered.
ASK_BASH = """
source "$1"; shift; name=$1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_$name "$name" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def help_of(program, *command):
    return subprocess.run([BIN / program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def section(text, head):
    found = re.search(rf"^{head}:\n((?:  .*\n)+)", text, flags=re.M)
    return found[1] if found else ""


def commands_of(program, *path):
    """[path] of each command, those below it too, by --help."""
    names = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", help_of(program, *path).partition("Example")[0], flags=re.M)
    return [below for name in names for below in ([*path, name], *commands_of(program, *path, name))]


def options_of(program, *path):
    """[["-q", "--quiet"], …] by --help."""
    return [head.split(",") for head in re.findall(r"^  (-[^ \n]+)", help_of(program, *path).partition("Example")[0], flags=re.M)]


def plain(name):
    return re.sub(r"\{.*\}", "", name)  # --no-split{false}


def backends():
    """Returns the backends that `pwr doctor` lists."""
    notice = subprocess.run([BIN / "pwr", "doctor", "--format", "json"], check=True, capture_output=True, text=True).stdout
    names = {row["what"].removeprefix("backend ") for row in json.loads(notice) if row["what"].startswith("backend ")}
    assert names >= {"eager", "cpu", "cuda", "interpreter"}, names
    return names


class Completion(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for program in PROGRAMS:
            for shell in ("bash", "zsh", "fish"):
                ask = ["completion", shell] if program == "pwr" else ["--completion", shell]
                text = subprocess.run([BIN / program, *ask], check=True, capture_output=True, text=True).stdout
                Path(cls.path(f"{program}.{shell}")).write_text(text)

    def bash(self, *words, cwd=None):
        done = subprocess.run(
            ["bash", "--norc", "-c", ASK_BASH, "bash", self.path(f"{words[0]}.bash"), *words], capture_output=True, text=True, check=True, cwd=cwd
        )
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def fish(self, line):
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {self.path('pwr.fish')}; complete -C '{line}'"],
            capture_output=True,
            text=True,
            check=True,
            cwd=self.folder.name,
        )
        return [offer.split("\t")[0] for offer in done.stdout.splitlines()]

    def test_bash_completes_commands(self):
        self.assertEqual(self.bash("pwr", "ru"), ["run"])
        self.assertEqual(set(self.bash("pwr", "")), {path[0] for path in commands_of("pwr")})
        self.assertEqual(self.bash("pwr", "--color", "never", "-q", "ex"), ["export", "explain", "explore", "extract"])
        self.assertEqual(self.bash("pwr", "cache", "st"), ["stats"])
        self.assertEqual(self.bash("pwr", "completion", "z"), ["zsh"])
        self.assertEqual(self.bash("pwr", "generate", "ge"), ["gemma", "gemma2", "gemma3"])

    def test_bash_completes_options_of_the_command_and_of_the_program(self):
        self.assertEqual(self.bash("pwr", "run", "--ba"), ["--backend"])
        self.assertEqual(self.bash("pwr", "run", "model.json", "--check", "-r", "llm", "--no-p"), ["--no-pad"])
        self.assertEqual(self.bash("pwr", "run", "--col"), ["--color"])
        self.assertEqual(self.bash("pwr", "opt", "--ba"), [])
        self.assertEqual(self.bash("pwviz", "model.json", "--most"), ["--most-boxes"])

    def test_bash_completes_values(self):
        self.assertEqual(set(self.bash("pwr", "run", "--backend", "")), backends())
        self.assertEqual(self.bash("pwr", "run", "m.json", "--backend", "in"), ["interpreter"])
        self.assertEqual(set(self.bash("pwr", "run", "--backend", "=")), backends())  # run --backend=
        self.assertEqual(self.bash("pwr", "run", "--backend", "=", "ea"), ["eager"])
        self.assertEqual(self.bash("pwr", "--format", "=", "json", "ru"), ["run"])
        self.assertEqual(self.bash("pwr", "ops", "--format", "m"), ["md"])  # its own --format
        self.assertEqual(self.bash("pwr", "stats", "--format", "m"), [])
        self.assertEqual(self.bash("pwr", "run", "--seed", ""), [])
        self.assertEqual(self.bash("pwviz", "--view", "re"), ["rewrites"])

    def test_bash_completes_files_and_names_of_the_library(self):
        self.file("mine.pwr", "")
        self.file("model.json", "")
        self.assertEqual(self.bash("pwr", "run", "-r", "ll", cwd=self.folder.name), ["llm"])
        self.assertEqual(self.bash("pwr", "run", "--rules", "mi", cwd=self.folder.name), ["mine.pwr"])
        self.assertEqual(self.bash("pwr", "run", "mod", cwd=self.folder.name), ["model.json"])
        self.assertEqual(self.bash("pwr", "run", "--check", "mod", cwd=self.folder.name), ["model.json"])

    def test_fish_completes_the_same(self):
        self.assertIn("run", self.fish("pwr ru"))
        self.assertIn("--backend", self.fish("pwr run --ba"))
        self.assertEqual(set(self.fish("pwr run --backend ")), backends())
        self.assertIn("llm", self.fish("pwr run -r ll"))
        self.assertNotIn("--backend", self.fish("pwr opt --ba"))
        self.assertEqual(self.fish("pwr cache st"), ["stats"])

    def test_zsh_reads_its_script(self):
        for program in PROGRAMS:
            self.assertTrue(Path(self.path(f"{program}.zsh")).read_text().startswith(f"#compdef {program}\n"))
            subprocess.run(["zsh", "-n", self.path(f"{program}.zsh")], check=True)

    def test_every_command_and_option_is_in_every_script(self):
        for program in PROGRAMS:
            for shell in ("bash", "zsh", "fish"):
                text = Path(self.path(f"{program}.{shell}")).read_text()
                for path in [[], *commands_of(program)]:
                    for name in path:
                        self.assertIn(name, text)
                    for names in options_of(program, *path):
                        for name in map(plain, names):
                            dashes = {"fish": ("-l " if name.startswith("--") else "-s ") + name.lstrip("-")}
                            self.assertIn(dashes.get(shell, name), text, f"{shell} {program} {path}")

    def test_bash_offers_every_option_where_it_is_taken(self):
        for program in PROGRAMS:
            for path in [[], *commands_of(program)]:
                if len(path) > 1:
                    continue
                offered = self.bash(program, *path, "-")
                for names in options_of(program, *path):
                    for name in map(plain, names):
                        self.assertIn(name, offered, f"{program} {path}")

    def test_a_shell_that_is_unknown_is_refused(self):
        self.assertIn("tcsh", self.pwr("completion", "tcsh", code=2).stderr)
        self.assertIn("tcsh", self.pwr("--completion", "tcsh", program="pwviz", code=2).stderr)


class Manual(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([BIN / "pwr", "man", "-o", cls.path("man1")], check=True)
        page = subprocess.run([BIN / "pwviz", "--man"], check=True, capture_output=True, text=True).stdout
        Path(cls.path("man1/pwviz.1")).write_text(page)
        cls.pages = sorted(Path(cls.path("man1")).iterdir())

    def text(self, name):
        """Returns the page as man shows it on a wide terminal, without bold and italic."""
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-rLL=400n", "-P-cbou", self.path(f"man1/{name}.1")], capture_output=True, text=True, check=True
        )
        return done.stdout.replace("−", "-").replace("‐", "-")

    def test_each_command_has_a_page_with_all_that_it_takes(self):
        names = {"pwr", "pwviz"} | {"pwr-" + path[0] for path in commands_of("pwr")}
        self.assertEqual({page.stem for page in self.pages}, names)
        for program in PROGRAMS:
            for path in [[], *commands_of(program)]:
                shown = self.text("-".join([program, *path[:1]]))
                for names in options_of(program, *path):
                    for name in map(plain, names):
                        self.assertRegex(shown, rf"(?m)^ +(-\w, )?{re.escape(name)}\b", f"{program} {path}")

    def test_pages_name_commands_values_and_defaults(self):
        whole = self.text("pwr")
        for path in commands_of("pwr"):
            if len(path) == 1:
                self.assertRegex(whole, rf"(?m)^ +pwr {path[0]}$")
                self.assertIn(f"pwr-{path[0]}(1)", whole)
        run = self.text("pwr-run")
        self.assertRegex(run, r"--backend eager\|.*interpreter")
        self.assertRegex(run, r"(?s)--seed UINT\n[^-]*If left out: 1\.")
        self.assertIn("pwr run model.fx.txt --symbol n=arg0_1.0,arg6_1.0 -r llm -p o2", run)  # the examples, as they are typed
        self.assertRegex(self.text("pwr-cache"), r"(?s)CACHE STATS\n.*pwr cache stats \[OPTIONS\]")

    def test_pages_have_no_faults(self):
        for page in self.pages:
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", page.name)
            if shutil.which("mandoc"):
                done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
                self.assertEqual(done.stdout + done.stderr, "", page.name)
            self.assertTrue(page.read_text().isascii())

    def test_one_page_goes_to_standard_output(self):
        for command in ([], ["run"]):
            page = Path(self.path("-".join(["man1/pwr", *command]) + ".1")).read_text()
            self.assertEqual(self.pwr("man", *command).stdout, page)
        messages = self.pwr("man", "runn", code=2).stderr
        self.assertIn("there is no command `runn`", messages)
        self.assertIn("did you mean `run`?", messages)


if __name__ == "__main__":
    unittest.main()
