#!/usr/bin/python3
"""`pwr compile -o model.pwx` and `pwr run model.pwx`, as on a machine without a compiler; and backends of a plugin."""
import os
import subprocess
import unittest

from program import BIN, ProgramTest

MODEL = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0"]
RULES = ["-r", "rules/llm.pwr", "-p", "o2"]


class Artifact(ProgramTest):
    def alone(self, *words):
        """With nothing on the path, and no cache, toolkit or home to be found."""
        environment = {"PATH": "", "HOME": self.folder.name, "PWR_CACHE_DIR": self.path("no-cache"), "CUDA_HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
        done = subprocess.run([BIN / "pwr", *words], capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def artifact(self, backend, *more):
        path = self.path(f"{backend}.pwx")
        self.pwr("compile", *MODEL, *RULES, "--backend", backend, *more, "-o", path)
        return path

    def test_it_runs_where_no_compiler_is(self):
        for backend, more in (("cpu", []), ("cuda", ["--driver", "host"])):
            with self.subTest(backend):
                path = self.artifact(backend, *more)
                done = self.alone("run", path, "--tokens", "1,7,16", "--check")
                self.assertIn("all outputs of all steps pass the check", done.stderr)
                wanted = self.pwr("run", *MODEL, *RULES, "--backend", backend, *more, "--tokens", "1,7,16", "--check")
                numbers = [line for line in wanted.stdout.splitlines() if line.endswith("ok")]
                self.assertEqual(len(numbers), 6)
                for line in numbers:
                    self.assertIn(line, done.stdout)

    def test_a_changed_rule_file_is_noticed(self):
        text = "rule r { y = relu(x)  =>  y = maximum(x, 0) }\npass p = greedy { r }\n"
        rules, path = self.file("mine.pwr", text), self.path("mine.pwx")
        self.pwr("compile", *MODEL, "-r", rules, "-p", "p", "-o", path)
        self.pwr("run", path, "--tokens", "3")
        self.file("mine.pwr", text + "# changed\n")
        done = self.pwr("run", path, "--tokens", "3", code=5)
        self.assertIn("mine.pwr (rules) has changed since", done.stderr)
        os.unlink(rules)
        self.pwr("run", path, "--tokens", "3")

    def test_what_is_none_is_refused(self):
        self.assertIn("none.pwx", self.pwr("run", self.file("none.pwx", "no artifact"), code=3).stderr)
        done = self.pwr("run", self.artifact("eager"), *RULES, code=3)
        self.assertIn("rewritten and planned already", done.stderr)


class Plugins(ProgramTest):
    def test_a_backend_of_a_shared_library_runs_and_is_found_wrong(self):
        zeros = ["run", *MODEL, *RULES, "--backend", "zeros", "--tokens", "3", "--check"]
        self.pwr("--plugin", os.environ["PW_TEST_PLUGIN"], *zeros, code=4)
        self.assertIn("there is no backend `zeros`", self.pwr(*zeros, code=2).stderr)
        self.assertIn("PW1217", self.pwr("--plugin", "README.md", "ops", code=3).stderr)


if __name__ == "__main__":
    unittest.main()
