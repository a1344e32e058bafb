#!/usr/bin/python3
"""The wheels of a finished build, in clean environments without a compiler: the module, the programs, the rule library.

    wheel_test.py BUILD     BUILD is the folder of a finished build

All tests run with Debian's Python, and some also with every other Python found. The exit code is 77 where pip reaches no
index for the packages that build wheels, or for mypy. PW_WHEEL names a wheel for Debian's Python to test instead.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "requirements"))
from environments import environment  # noqa: E402
from wheels import DEBIAN, build_wheel, interpreters  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
DEBIAN_VERSION = "%d.%d" % sys.version_info[:2]
VERSION = re.search(r"project\(piecewise VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
# The libraries that a manylinux wheel may require of every Linux with GCC's run-time library.
LIBRARIES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0"}
NO_INDEX = re.compile(r"Could not find a version|No matching distribution|Temporary failure|Connection|Max retries|Could not fetch")


def call(*command, code=0, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **how)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def skip(reason):
    print(f"SKIPPED: {reason}", file=sys.stderr)
    sys.exit(77)


def call_or_skip(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode and NO_INDEX.search(done.stderr):
        skip("pip cannot get the packages of requirements/wheel.txt or mypy.txt:\n" + done.stderr[-1500:])
    assert done.returncode == 0, done.stdout + done.stderr


MISTAKES = """
import piecewise as pw

session = pw.Session()
graph = session.load("model.json")
print(graph.txet())  # mistake
run = session.run(graph, session.rules(["llm"]))  # mistake
picture: str = graph.draw("svg")  # mistake
print(pw.stats(graph, symbols=3)["ops"], run)  # mistake
"""
REWRITE = """
import piecewise as pw
s = pw.Session()
g = s.load("model.fx.txt", "n=arg0_1.0,arg1_1.0")
run = s.run(g, s.rules(["llm"]), "o2")
print(pw.__version__, run.count("add_rms") > 0)
"""


class Environment:
    """A virtual environment of one interpreter that holds the wheel and nothing else."""

    def __init__(self, interpreter, wheel, place):
        self.place, self.wheel, self.python = place, wheel, place / "env/bin/python"
        call(interpreter, "-m", "venv", place / "env")
        # Nothing but the environment and links to plain tools: no compiler, no CMake.
        tools = place / "tools"
        tools.mkdir()
        for tool in ("sh", "env", "uname"):
            (tools / tool).symlink_to(Path("/usr/bin", tool))
        self.variables = {"PATH": f"{place}/env/bin:{tools}", "HOME": str(place), "PWR_CACHE_DIR": str(place / "cache")}
        self.call("pip", "install", "--no-index", "--disable-pip-version-check", wheel)

    def call(self, program, *args, code=0, env=None, cwd="/"):
        return call(self.place / "env/bin" / program, *args, code=code, env={**self.variables, **(env or {})}, cwd=cwd)


def environments(folder):
    """Builds the wheels as `./dev wheel` does, and returns version → environment."""
    found, absent = interpreters()
    found = {DEBIAN_VERSION: DEBIAN} if "PW_WHEEL" in os.environ else {DEBIAN_VERSION: DEBIAN, **found}
    for version, reason in absent.items():
        print(f"SKIPPED: the wheel for Python {version}: {reason}", file=sys.stderr)
    environments = {}
    for version, interpreter in found.items():
        wheel = os.environ.get("PW_WHEEL") or build_wheel(BUILD, folder / "wheels", version, interpreter, call_or_skip)
        (folder / version).mkdir()
        environments[version] = Environment(interpreter, Path(wheel), folder / version)
    return environments


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.environments = environments(cls.folder)
        debian = cls.environments[DEBIAN_VERSION]
        cls.wheel, cls.env, cls.clean, cls.bin = debian.wheel, debian.place / "env", debian.variables, debian.call

    def python(self, code, **how):
        return self.bin("python", "-c", code, **how)

    def test_the_wheel_of_each_python_rewrites(self):
        (self.folder / "model.fx.txt").write_text((ROOT / "examples/tiny-decoder.fx.txt").read_text())
        for version, environment in self.environments.items():
            with self.subTest(version):
                self.assertEqual(environment.call("python", "-c", REWRITE, cwd=self.folder).split(), [VERSION, "True"])
                for program in ("pwr", "pwviz"):
                    self.assertEqual(environment.call(program, "--version").strip(), f"{program} {VERSION}")

    def test_mypy_finds_mistakes_with_each_wheel(self):
        script = self.folder / "mistakes.py"
        script.write_text(MISTAKES)
        expected = [number for number, line in enumerate(MISTAKES.split("\n"), 1) if line.endswith("# mistake")]
        try:
            mypy = environment("mypy", BUILD / "wheels/mypy", call_or_skip, DEBIAN)
        except SystemExit:
            self.skipTest("pip cannot get mypy")
        for version, clean in self.environments.items():
            with self.subTest(version):
                options = ("--strict", "--cache-dir", self.folder / "mypy", "--python-executable", clean.python)
                output = call(mypy, "-m", "mypy", *options, script, code=1, cwd=self.folder)
                self.assertEqual([int(line) for line in re.findall(r"mistakes\.py:(\d+): error", output)], expected, output)

    def test_the_tag_is_that_of_the_oldest_system_that_can_load_it(self):
        """The newest symbols that the binaries need are those of GCC 12, which manylinux permits from glibc 2.35 on."""
        for version, environment in self.environments.items():
            plain = version.replace(".", "")
            self.assertEqual(environment.wheel.name, f"piecewise_graphs-{VERSION}-cp{plain}-cp{plain}-manylinux_2_35_x86_64.whl")

    def test_there_is_no_compiler(self):
        for compiler in ("c++", "g++", "gcc", "clang++", "cmake", "ninja"):
            self.assertIn("not found", call("sh", "-c", f"{compiler} --version", code=127, env=self.clean))

    def test_programs_run_from_anywhere(self):
        for program in ("pwr", "pwviz"):
            self.assertEqual(self.bin(program, "--version").strip(), f"{program} {VERSION}")
            self.assertIn("Usage", self.bin(program, "--help"))
        self.assertIn("rms_norm", self.bin("pwr", "ops"))

    def test_the_first_example_of_the_readme_runs(self):
        (self.folder / "first_rule.pwr").write_text((ROOT / "examples/first_rule.pwr").read_text())
        self.assertIn("1 test, 0 failed", self.bin("pwr", "test", "first_rule.pwr", cwd=self.folder))

    def test_the_main_job_runs_with_the_library_that_is_inside(self):
        (self.folder / "model.fx.txt").write_text((ROOT / "examples/tiny-decoder.fx.txt").read_text())
        messages = self.bin(
            "pwr", "run", "model.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0", "-r", "llm", "-p", "o2", "--tokens", "1,7", "--check", cwd=self.folder
        )
        self.assertIn("all outputs of all steps pass the check", messages)

    def test_without_a_compiler_the_cpu_backend_says_so(self):
        (self.folder / "g.pwg").write_text("graph g { symbol n in 1..64 tokens  in x: f32[n, 8]\n  y = relu(x)\n  out y }\n")
        messages = self.bin("pwr", "run", "g.pwg", "--backend", "cpu", "--tokens", "3", cwd=self.folder)
        self.assertIn("no C++ compiler was found, so everything runs on eager: put c++, g++ or clang++ on PATH", messages)
        self.assertIn("not found", next(line for line in self.bin("pwr", "doctor").splitlines() if "C++ compiler" in line))
        for backend in ("eager", "interpreter"):
            self.bin("pwr", "run", "g.pwg", "--backend", backend, "--tokens", "3", cwd=self.folder)

    def test_without_graphviz_only_pictures_are_missing(self):
        (self.folder / "g.pwg").write_text("graph g { in x: f32[8]\n  y = relu(x)\n  out y }\n")
        broken = self.folder / "broken"
        broken.mkdir(exist_ok=True)
        (broken / "libgvc.so.6").write_text("what the loader finds first, and cannot load")
        without = {"LD_LIBRARY_PATH": str(broken)}
        self.assertIn("not found", next(line for line in self.bin("pwr", "doctor", env=without).splitlines() if "Graphviz" in line))
        messages = self.bin("pwviz", "g.pwg", "-o", "g.svg", env=without, cwd=self.folder, code=5)
        self.assertRegex(messages, r"error\[PW0907\]: Graphviz is missing: .*libgvc")
        self.assertIn("apt install graphviz", messages)
        self.assertFalse((self.folder / "g.svg").exists())
        for name in ("g.html", "g.dot", "g.txt", "g.md"):
            self.bin("pwviz", "g.pwg", "-o", name, env=without, cwd=self.folder)
        code = (
            "import piecewise as pw\ng = pw.load('g.pwg')\nprint(len(g.draw('html')) > 0)\n"
            "try: g.draw('svg')\nexcept pw.Error as e: print('apt install graphviz' in str(e))"
        )
        self.assertEqual(self.python(code, env=without, cwd=self.folder).split(), ["True", "True"])

    def test_nothing_is_linked_but_what_every_linux_has(self):
        found = list((self.env / "bin").glob("pw*")) + list(self.env.glob("lib/python*/site-packages/_piecewise*.so"))
        self.assertEqual(len(found), 3)
        for binary in found:
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", call("readelf", "-d", binary)))
            self.assertTrue(needed)
            self.assertEqual(needed - LIBRARIES, set(), binary.name)

    def test_pages_and_completions_are_in_the_environment(self):
        for name in ("man/man1/pwr-run.1", "man/man1/pwviz.1", "bash-completion/completions/pwr", "zsh/site-functions/_pwr"):
            self.assertTrue((self.env / "share" / name).exists(), name)

    def test_the_wheel_says_what_it_is_and_holds_nothing_else(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            metadata, entries = (
                wheel.read(next(name for name in names if name.endswith(end))).decode() for end in ("/METADATA", "/entry_points.txt")
            )
        self.assertIn("Name: piecewise-graphs\n", metadata)
        for line in (f"Version: {VERSION}", "License-Expression: Apache-2.0", "Requires-Python: >=3.10", "Description-Content-Type: text/markdown"):
            self.assertIn(f"\n{line}\n", metadata)
        self.assertIn("piecewise/py.typed", names)
        self.assertRegex(entries, r"\[torch_dynamo_backends\]\s+piecewise ?= ?piecewise.pytorch:backend")
        self.assertRegex(entries, r"\[vllm.general_plugins\]\s+piecewise ?= ?piecewise.vllm:register")
        for group in ("torch.backends", "sglang.srt.plugins"):
            self.assertRegex(entries, rf"\[{group}\]\s+piecewise_lens ?= ?piecewise_autoload:start_lens")
        tops = {re.sub(rf"^piecewise_graphs-{re.escape(VERSION)}", "P", name).split("/")[0].split(".cpython")[0] for name in names}
        self.assertEqual(tops, {"piecewise", "piecewise_autoload.py", "_piecewise", "_piecewise-stubs", "P.dist-info", "P.data"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
