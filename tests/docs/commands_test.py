#!/usr/bin/python3
"""Runs every command of README.md and docs/ as written, in a fresh clone, page by page and in order.

Commands are lines of indented blocks that begin with pwr, pwviz, or source, blocks marked ```sh, and lines that begin with `$ `, whose output
is compared with the lines below. The reader supplies only a PyTorch model: this test creates model.pt2. A picture on a page must have the same
texts as the one that a command of the page draws; PW_UPDATE_GOLDEN=1 replaces it.

commands_test.py PAGE… checks only these pages.
"""
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path.cwd()
BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
sys.path.insert(0, str(ROOT / "tests/cli"))
import pt2_test  # pylint: disable=wrong-import-position

GIVEN = [Path(name) for name in sys.argv[1:] if name.endswith(".md")]
PAGES = GIVEN or [Path("README.md"), *sorted(Path("docs").glob("*.md"))]
MOST_PICTURES = 600_000  # bytes of all pictures that are checked in
CHECKED = {"README.md"}  # whose sessions tests/docs/check_readme.py compares, with the file that they need
NEGATIVE = re.compile(r"^pwr (diff|explain|plan --diff|report --diff) ")  # 1 is an answer
REFUSED = re.compile(r"^error\[|^\S+  refuted: ", re.M)  # a session that shows this ends with 1 or 3
NOT_HERE = {"pwr tune": 5, "pwr serve": 5}  # NVRTC or cpp-httplib may be absent


def blocks(text):
    """Yields (is a script, lines) of each indented block and each block marked sh."""
    for found in re.finditer(r"^```sh\n(.*?)^```$|((?:^    [^\n]*\n)+)", text, flags=re.M | re.S):
        if found[1] is not None:
            yield True, found[1].splitlines()
        else:
            yield False, [line[4:] for line in found[2].splitlines()]


def commands(page):
    """Yields (command, expected output or None)."""
    for script, lines in blocks(page.read_text(encoding="utf-8")):
        if script:
            yield "\n".join(lines), None
        elif lines[0].startswith("$ "):
            yield lines[0][2:], "\n".join(lines[1:])
        else:
            joined = "\n".join(lines).replace("\\\n", " ")
            yield from ((line, None) for line in joined.splitlines() if re.match(r"(pwr|pwviz|source) ", line))


def same(printed, expected):
    strip = lambda text: "\n".join(line.rstrip() for line in text.strip().splitlines())
    return strip(printed) == strip(expected)


def pictures(page):
    """Yields the SVG pictures of a page."""
    for name in re.findall(r"!\[[^\]]*\]\(([^)\s]+\.svg)\)", page.read_text(encoding="utf-8")):
        yield page.parent / name


def words(svg):
    """Returns the sorted texts of a picture; positions depend on the version of Graphviz."""
    return sorted(html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)<", svg.read_text(encoding="utf-8")))


def captured(kernels):
    """Returns the file of a captured graph that is a chain of kernels."""
    nodes = [{"kind": "kernel", "name": f"k{i}", "grid": [i + 1, 1, 1], "block": [128, 1, 1]} for i in range(kernels)]
    return json.dumps({"format": "piecewise.captured/1", "nodes": nodes, "edges": [[i, i + 1] for i in range(kernels - 1)]})


class Documented(unittest.TestCase):
    def clone(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name)
        for name in ("examples", "rules"):
            (path / name).symlink_to(ROOT / name)
        (path / "home").mkdir()
        for below in (".zfunc", ".config/fish/completions"):
            (path / "home" / below).mkdir(parents=True)
        (path / "model.pt2").write_bytes(pt2_test.archive())
        (path / "out/process_0001").mkdir(parents=True)
        for number, kernels in ((1, 3), (2, 4)):
            (path / f"out/process_0001/graph_000{number}.json").write_text(captured(kernels))
        return path

    def run_one(self, command, folder):
        path = f"{BIN}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "HOME": str(folder / "home"), "PWR_CACHE_DIR": str(folder / "cache"), "NO_COLOR": "1", "MANPAGER": "cat"}
        (folder / "cache").mkdir(mode=0o700, exist_ok=True)
        if command.startswith("pwr serve"):
            return self.interrupted(command, cwd=folder, env=env)
        return subprocess.run(["bash", "-ec", command], cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=env)

    def interrupted(self, command, **how):
        """Runs a server from its first line of output to Ctrl-C."""
        process = subprocess.Popen(["bash", "-ec", "exec " + command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=3600)
        return subprocess.CompletedProcess(command, process.returncode, first + rest, errors)

    def test_every_command(self):
        ran = 0
        for page in PAGES:
            folder = self.clone()
            for command, expected in commands(page):
                if expected is not None and page.name in CHECKED:
                    continue
                with self.subTest(page=str(page), command=command):
                    done = self.run_one(command, folder)
                    ran += 1
                    allowed = {0} | ({1} if NEGATIVE.match(command) else set())
                    allowed |= {code for start, code in NOT_HERE.items() if command.startswith(start)}
                    if expected is not None and REFUSED.search(expected):
                        allowed = {1, 3}
                    if done.returncode == 5 and 5 in allowed:
                        self.skipTest("NVRTC or cpp-httplib is absent")
                    self.assertIn(done.returncode, allowed, done.stdout + done.stderr)
                    if expected is not None:
                        self.assertTrue(same(done.stdout, expected) or same(done.stdout + done.stderr, expected), done.stdout + done.stderr)
            for picture in pictures(page):
                with self.subTest(page=str(page), picture=picture.name):
                    self.compare(picture, folder / picture.name)
        if not GIVEN:
            self.assertGreater(ran, 45, "commands are not found any more")

    def compare(self, picture, drawn):
        self.assertTrue(drawn.exists(), "no command of the page draws it")
        if os.environ.get("PW_UPDATE_GOLDEN"):
            shutil.copyfile(drawn, picture)
        self.assertEqual(words(picture), words(drawn), "another picture is checked in: PW_UPDATE_GOLDEN=1 replaces it")
        self.assertGreater(len(words(drawn)), 3)

    def test_pictures_are_small(self):
        sizes = {path: path.stat().st_size for kind in ("svg", "png") for path in Path("docs").rglob(f"*.{kind}")}
        self.assertLess(sum(sizes.values()), MOST_PICTURES, sizes)
        shown = {path.resolve() for page in [Path("README.md"), *Path("docs").glob("*.md")] for path in pictures(page)}
        self.assertEqual({path.resolve() for path in Path("docs").rglob("*.svg")}, shown, "pictures that no page shows, or that are not there")

    def test_blocks_of_commands_hold_nothing_else(self):
        """An indented block with a command can be pasted as a whole: output has a block of its own."""
        command = re.compile(r"(pwr|pwviz|source|\./dev|export|#) ?")
        for page in PAGES:
            for script, lines in blocks(page.read_text(encoding="utf-8")):
                joined = "\n".join(lines).replace("\\\n", " ").splitlines()
                if not script and any(re.match(r"(pwr|pwviz) ", line) for line in joined):
                    self.assertEqual([line for line in joined if not command.match(line)], [], page)

    def test_dev_has_the_commands_that_are_named(self):
        known = set(re.findall(r"^  (\w+)", subprocess.run(["./dev", "help"], capture_output=True, text=True, check=True).stdout, re.M))
        for page in PAGES + [Path("CONTRIBUTING.md")]:
            for name in re.findall(r"\./dev (\w+)", page.read_text(encoding="utf-8")):
                self.assertIn(name, known, page)

    def test_commands_in_the_text_have_their_options(self):
        """Every `pwr COMMAND … --option` in backquotes names an existing command and existing options."""
        helps = {}

        def help_of(*words):
            if words not in helps:
                done = subprocess.run([BIN / words[0], *words[1:], "--help"], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, words)
                helps[words] = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", done.stdout))
            return helps[words]

        def examples():
            for page in PAGES:
                for quoted in re.findall(r"`((?:pwr|pwviz) [^`]+)`", page.read_text(encoding="utf-8")):
                    yield page, quoted
            # and those below "Examples:" of each --help
            text = subprocess.run([BIN / "pwr", "--help"], capture_output=True, text=True, check=True).stdout
            names = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", text.partition("Example")[0], re.M)
            self.assertGreater(len(names), 25)
            for words in (["pwviz"], *(["pwr", name] for name in names)):
                printed = subprocess.run([BIN / words[0], *words[1:], "--help"], capture_output=True, text=True, check=True).stdout
                for line in re.findall(r"^  ((?:pwr|pwviz) .*)$", printed.partition("Example")[2], re.M):
                    yield " ".join(words) + " --help", re.split(r" \| | && | > |  +", line)[0]

        everywhere = help_of("pwr")
        found = 0
        for page, quoted in examples():
            words = re.sub(r"\$\([^)]*\)", "1", quoted).split()
            command = next((w for w in words[1:] if not w.startswith("-")), None)
            if words[0] == "pwr" and (command is None or not re.fullmatch(r"[a-z-]+", command)):
                continue
            known = help_of("pwviz") if words[0] == "pwviz" else help_of("pwr", command) | everywhere
            for option in (w.partition("=")[0] for w in words if w.startswith("--") and len(w) > 2):
                found += 1
                self.assertIn(option.rstrip(",."), known, f"{page}: {quoted}")
        self.assertGreater(found, 80)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(word for word in sys.argv[1:] if not word.endswith(".md"))])
