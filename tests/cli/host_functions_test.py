#!/usr/bin/python3
"""pwr run --host-functions: a Python file defines the functions that run unknown ops, and only those."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402
from weights_test import read, safetensors  # noqa: E402

try:
    import numpy  # noqa: F401: the interpreter of the functions wants it
except ImportError:
    print("SKIPPED: no numpy", file=sys.stderr)
    sys.exit(77)

# The functions run in the first python3 of PATH: this one, which has numpy.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
DUMP = """class <lambda>(torch.nn.Module):
    def forward(self, x: "f32[2, 3]", w: "f32[3]"):
        mix: "f32[2, 3]" = torch.ops.mine.mix.default(x, [w, None], 2, alpha = 0.5, mode = "a", inf = inf)
        return (mix,)
"""
WRITING = """class <lambda>(torch.nn.Module):
    def forward(self, x: "f32[2, 3]", w: "f32[3]"):
        scale_: "f32[2, 3]" = torch.ops.mine.scale_.default(x, w)
        relu: "f32[2, 3]" = torch.ops.aten.relu.default(x)
        return (relu,)
"""
X, W = [1.0, -2.0, 3.0, 4.0, 5.0, -6.0], [2.0, 3.0, 4.0]


class HostFunctions(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        given = {"x": ([2, 3], X), "w": ([3], W)}
        Path(cls.path("in.safetensors")).write_bytes(safetensors(given))

    def run_with(self, functions, *more, dump=DUMP, code=0):
        graph, ops = self.file("g.fx.txt", dump), self.file("ops.py", functions)
        given = ("--input", "x", "--input", "w", "--weights", self.path("in.safetensors"), "--save", self.path("out.safetensors"))
        return self.pwr("run", graph, "--host-functions", ops, *given, *more, code=code)

    def outputs(self):
        return read(self.path("out.safetensors"))

    def test_the_call_is_made_as_the_dump_wrote_it(self):
        self.run_with(
            "def mix(x, ws, k, alpha, mode, inf):\n"
            "    assert ws[1] is None and mode == 'a' and inf == float('inf'), (ws, mode, inf)\n"
            "    print('printed', flush=True)\n"
            "    return x * ws[0] * k + alpha\n"
            "functions = {'mine.mix': mix}\n"
        )
        self.assertEqual(list(self.outputs()["mix"][1]), [x * w * 2 + 0.5 for x, w in zip(X, W * 2)])

    def test_the_check_calls_them_too(self):
        done = self.run_with("functions = {'mine.mix': lambda x, ws, k, **_: x * ws[0] * k}", "--check")
        self.assertIn("all outputs of all steps pass the check", done.stderr)

    def test_what_is_written_is_read_later(self):
        self.run_with("def scale(x, w):\n    x *= w\nfunctions = {'mine.scale_': scale}\n", dump=WRITING)
        self.assertEqual(list(self.outputs()["relu"][1]), [max(x * w, 0) for x, w in zip(X, W * 2)])

    def test_an_exception_names_the_op_the_node_and_the_line(self):
        done = self.run_with("def mix(*_, **__):\n    raise ValueError('too warm')\nfunctions = {'mine.mix': mix}\n", code=3)
        for part in ("PW1214", "mine.mix", "node mix", "ValueError: too warm", "ops.py:2"):
            self.assertIn(part, done.stderr)

    def test_results_of_another_form_are_refused(self):
        for body, messages in {
            "x.astype('float64')": "result 0 is an array of float64, but f32 requires float32",
            "x[0]": "result 0 has the shape (3), but its type requires (2, 3)",
            "None": "it returned nothing, but the op has 1",
            "(x, x)": "it returned 2 results, but the op has 1",
            "exit(3)": "SystemExit: 3",
        }.items():
            done = self.run_with("functions = {'mine.mix': lambda x, *_, **__: " + body + "}", code=3)
            self.assertIn("PW1214", done.stderr)
            self.assertIn(messages, done.stderr)

    def test_a_process_that_ends_is_told(self):
        done = self.run_with("import os\nfunctions = {'mine.mix': lambda *_, **__: os._exit(9)}", code=3)
        self.assertIn("its process exited with 9", done.stderr)
        done = self.run_with("import os\nfunctions = {'mine.mix': lambda *_, **__: os.kill(os.getpid(), 11)}", code=3)
        self.assertIn("its process was killed by signal 11", done.stderr)

    def test_a_file_that_does_not_load_is_refused_at_once(self):
        for text, messages in {
            "x = 1\n": "it lacks `functions`",
            "functions = {'mine.mix': 3}\n": "it lacks `functions`",
            "def f(:\n": "SyntaxError",
            "\nraise KeyError('no')\n": "KeyError: 'no'",
        }.items():
            done = self.run_with(text, code=3)
            self.assertIn("PW1229", done.stderr)
            self.assertIn(messages, done.stderr)
        done = self.pwr("run", self.file("g.fx.txt", DUMP), "--host-functions", self.path("none.py"), code=3)
        self.assertIn("the file does not exist", done.stderr)

    def test_without_one_the_ops_are_named(self):
        done = self.pwr("run", self.file("g.fx.txt", DUMP), code=5)
        self.assertIn("mine.mix", done.stderr)

    def test_nothing_of_the_folder_runs(self):
        """Runs neither a file that piecewise.toml names, nor a module next to the graph with the name of one of Python's own."""
        folder = Path(self.folder.name, "stranger")
        folder.mkdir()
        mark = folder / "ran"
        evil = f"open({str(mark)!r}, 'w')\n"
        for name in ("numpy.py", "json.py", "evil.py", "sitecustomize.py"):
            (folder / name).write_text(evil + "functions = {}\n")
        (folder / "g.fx.txt").write_text(DUMP)
        ops = self.file("good.py", "functions = {'mine.mix': lambda x, *_, **__: x}")
        command = [BIN / "pwr", "run", "g.fx.txt"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run([*command, "--host-functions", ops], cwd=folder, env=environment, capture_output=True, text=True, timeout=3600)
        self.assertEqual(done.returncode, 0, done.stderr)
        (folder / "piecewise.toml").write_text("[run]\nhost-functions = 'evil.py'\n")
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertFalse(mark.exists(), done.stderr)


if __name__ == "__main__":
    unittest.main()
