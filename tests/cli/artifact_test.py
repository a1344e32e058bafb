#!/usr/bin/python3
"""`pwr compile -o model.pwx` and `pwr run model.pwx`, as on a machine without a compiler; and backends of a plugin."""
import hashlib
import json
import os
import random
import struct
import subprocess
import unittest
from pathlib import Path

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

    def small(self):
        """A small artifact with an object."""
        graph = self.file("g.pwg", "graph g {\n  symbol n in 1..64 tokens\n  in x: f32[n, 8]\n  y = sum(exp(x)){dim = -1}\n  out y\n}\n")
        path = self.path("small.pwx")
        self.pwr("compile", graph, "--backend", "cpu", "-o", path)
        return Path(path).read_bytes()

    def refused(self, content):
        done = self.pwr("run", self.file("mutant.pwx", content), "--tokens", "3", code=3)
        self.assertIn("PW1218", done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_a_flipped_bit_anywhere_is_refused_before_anything_runs(self):
        whole = self.small()
        self.pwr("run", self.file("mutant.pwx", whole), "--tokens", "3")
        seed = 1
        print(f"seed {seed}")
        draw = random.Random(seed)
        places = [draw.randrange(len(whole)) for _ in range(40)]
        header = struct.unpack("<Q", whole[:8])[0]
        for name, part in json.loads(whole[8 : 8 + header]).items():  # and one of each part
            places.append(8 + header + draw.randrange(*part["data_offsets"]) if part["data_offsets"][0] < part["data_offsets"][1] else 0)
        for place in places:
            mutant = bytearray(whole)
            mutant[place] ^= 1 << draw.randrange(8)
            self.refused(bytes(mutant))

    def test_a_file_that_is_cut_off_is_refused(self):
        whole = self.small()
        for length in (0, 1, 7, 8, 63, 64, 65, len(whole) // 2, len(whole) - 64, len(whole) - 1):
            self.refused(whole[:length])

    def test_a_name_that_is_no_digest_is_refused(self):
        whole = self.small()
        header = struct.unpack("<Q", whole[:8])[0]
        parts = json.loads(whole[8 : 8 + header])
        at = 8 + header + parts["manifest.json"]["data_offsets"][0]
        manifest = whole[at : 8 + header + parts["manifest.json"]["data_offsets"][1]]
        names = json.loads(manifest)["names"]
        self.assertTrue(names)
        name, key = next(iter(names.items()))
        for wrong in (f'"{name}": "x"', f'"x": "{key}"', f'"{name}": 3', f'"{name}": null'):
            changed = manifest.replace(f'"{name}": "{key}"'.encode(), wrong.encode()).ljust(len(manifest))  # white space at its end
            body = whole[:at] + changed + whole[at + len(manifest) : -64]
            messages = self.refused(body + hashlib.sha256(body).hexdigest().encode())
            self.assertIn("a name in its manifest is not a digest", messages)

    def test_it_runs_without_its_native_code(self):
        path = self.artifact("cpu")
        done = self.alone("run", path, "--no-native", "--tokens", "1,7,16", "--check")
        self.assertIn("its compiled objects are not used: its graphs run on eager", done.stderr)
        self.assertIn("all outputs of all steps pass the check", done.stderr)
        wanted = self.pwr("run", *MODEL, *RULES, "--tokens", "1,7,16", "--check")
        numbers = [line for line in wanted.stdout.splitlines() if line.endswith("ok")]
        self.assertEqual(len(numbers), 6)
        for line in numbers:
            self.assertIn(line, done.stdout)

    def test_what_is_none_is_refused(self):
        self.assertIn("none.pwx", self.pwr("run", self.file("none.pwx", "no artifact"), code=3).stderr)
        done = self.pwr("run", self.artifact("eager"), *RULES, code=3)
        self.assertIn("already rewritten and planned", done.stderr)


class Plugins(ProgramTest):
    def test_a_backend_of_a_shared_library_runs_and_is_found_wrong(self):
        zeros = ["run", *MODEL, *RULES, "--backend", "zeros", "--tokens", "3", "--check"]
        self.pwr("--plugin", os.environ["PW_TEST_PLUGIN"], *zeros, code=4)
        self.assertIn("there is no backend `zeros`", self.pwr(*zeros, code=2).stderr)
        self.assertIn("PW1217", self.pwr("--plugin", "README.md", "ops", code=3).stderr)

    def test_a_backend_of_a_shared_library_is_in_artifacts_and_the_cache(self):
        graph = self.file("g.pwg", "graph g {\n  symbol n in 1..64 tokens\n  in x: f32[n, 2]\n  y = neg(x)\n  out y\n}\n")
        path, out = self.path("filled.pwx"), self.path("out.safetensors")
        filled = [BIN / "pwr", "--plugin", os.environ["PW_TEST_PLUGIN"]]

        def run(*words, byte="1", code=0, **more):
            environment = {**os.environ, "PW_TEST_FILL": byte, "PWR_CACHE_DIR": self.path("cache"), **more}
            done = subprocess.run([*filled, *words], capture_output=True, text=True, env=environment, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            return done.stderr

        def ran(*words, **more):
            printed = run("run", *words, "--tokens", "2", "--save", out, **more)
            return printed, Path(out).read_bytes()[-16:]

        direct = (graph, "--backend", "filled")
        for loaded, byte in ((0, "1"), (1, "1"), (0, "2"), (1, "2"), (1, "1")):
            printed, numbers = ran(*direct, byte=byte)
            self.assertIn(f"filled: 1 piece, {loaded} loaded", printed)
            self.assertEqual(numbers, bytes([int(byte)]) * 16)
        printed, numbers = ran(*direct, PWR_DISABLE_CACHE="1")
        self.assertIn("filled: 1 piece, 0 loaded", printed)
        self.assertIn("1 compiled object", run("compile", *direct, "-o", path))
        for cache in ("cache", "none"):
            printed, numbers = ran(path, PWR_CACHE_DIR=self.path(cache))
            self.assertIn("filled: 1 piece, 1 loaded", printed)
            self.assertEqual(numbers, b"\x01" * 16)
        self.assertIn("PW1226", run("run", path, "--tokens", "2", byte="3", code=3))
        for kept in Path(self.path("cache"), "objects").rglob("*"):
            if kept.is_file():
                kept.write_bytes(kept.read_bytes()[:-1] + b"x")
        self.assertIn("filled: 1 piece, 0 loaded", ran(*direct)[0])


if __name__ == "__main__":
    unittest.main()
