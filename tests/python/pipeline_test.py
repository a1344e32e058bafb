#!/usr/bin/python3
"""The main job in Python: what `pwr run` does, prints and reports, as data."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import piecewise as pw

GRAPH = """
graph block {
  symbol n in 1..512 tokens
  in x: bf16[n, 256], res: bf16[n, 256]
  in weight w: bf16[256]
  r = add(x, res)
  y = rms_norm(r, w){eps = 1e-5}
  out y, r
}
"""
PWR = str(Path(os.environ["PW_BIN"]) / "pwr")


class MainJob(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "block.pwg"
        self.path.write_text(GRAPH)

    def test_main_job(self):
        done = pw.run_model(self.path, "llm", "o2", {"tp": 2}, tokens=[1, 7], check=True)
        self.assertEqual((done["steps"], done["failed"]), (2, 0))
        (graph,) = done["graphs"]
        self.assertEqual(graph["graph"].ops(), {"fused_add_rms_norm": 1})
        self.assertEqual([row["result"] for row in graph["numbers"]], ["ok"] * 4)
        self.assertEqual([step["r"].shape for step in graph["outputs"]], [(1, 256), (7, 256)])

    def test_functions_run_opaque_ops(self):
        dump = """class M(torch.nn.Module):
    def forward(self, x: "f32[2, 3]"):
        mix: "f32[2, 3]" = torch.ops.mine.mix.default(x, 2.0)
        relu: "f32[2, 3]" = torch.ops.aten.relu.default(mix)
        return (relu,)
"""
        x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
        graph = pw.load(dump)
        done = pw.run_model(graph, given={"x": x}, functions={"mine.mix": lambda x, k: x * k}, check=True)
        np.testing.assert_array_equal(done["graphs"][0]["outputs"][0]["relu"], np.maximum(x * 2, 0))
        with self.assertRaisesRegex(KeyError, "no such"):
            pw.run_model(graph, given={"x": x}, functions={"mine.mix": lambda x, k: {}["no such"]})
        with self.assertRaisesRegex(pw.Error, "has a different shape"):
            pw.run_model(graph, given={"x": x}, functions={"mine.mix": lambda x, k: x[0]})
        with self.assertRaisesRegex(pw.Error, "PW1201"):
            pw.run_model(graph, given={"x": x})

    def test_the_command_line_does_the_same(self):
        mine = pw.run_model(self.path, "llm", "o2", tokens=[3, 300], backend="cuda", driver="host", sizes=[2, 4], check=True)["graphs"][0]
        command = [
            PWR,
            "--format",
            "json",
            "run",
            str(self.path),
            "-r",
            "llm",
            "-p",
            "o2",
            "--tokens",
            "3,300",
            "--backend",
            "cuda",
            "--driver",
            "host",
            "--sizes",
            "2,4",
            "--check",
        ]
        notice = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (theirs,) = json.loads(notice)["graphs"]

        def timeless(rows):
            return [{k: v for k, v in row.items() if k != "time_s"} for row in rows]

        self.assertEqual(timeless(mine["passes"]), timeless(theirs["passes"]))
        self.assertEqual(timeless(mine["steps"]), timeless(theirs["steps"]))
        self.assertEqual(mine["numbers"], theirs["numbers"])
        plan = subprocess.run([PWR, "plan", str(self.path), "-r", "llm", "-p", "o2", "--sizes", "2,4"], capture_output=True, text=True, check=True)
        planned = pw.run_model(self.path, "llm", "o2", sizes=[2, 4], execute=False)["graphs"][0]
        self.assertEqual(planned["plan"], plan.stdout)

    def run_tuned(self, schedules):
        return pw.run_model(self.path, "llm", "o2", tokens=[7], backend="cuda", driver="host", sizes=[8], schedules=schedules)["graphs"][0]

    def test_tuned_schedules_run_and_what_is_dumped_is_what_runs(self):
        found = self.path.with_name("found.json")
        tuned = subprocess.run(
            [PWR, "tune", str(self.path), "-r", "llm", "-p", "o2", "--tokens", "8", "-o", str(found)], capture_output=True, text=True
        )
        if tuned.returncode == 5:
            self.skipTest("NVRTC is absent: " + tuned.stderr)
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        table = json.loads(found.read_text())
        self.assertEqual(len(table["schedules"]), 1)
        table["schedules"][0]["schedule"]["block"] = 64
        chosen = self.path.with_name("chosen.json")
        chosen.write_text(json.dumps(table))
        usual, other = self.run_tuned("none"), self.run_tuned(str(chosen))
        self.assertNotEqual(usual["kernels"], other["kernels"], "another block is another kernel")
        self.assertTrue(any("__launch_bounds__(64" in text for text in other["kernels"].values()))
        for name, array in usual["outputs"][0].items():
            self.assertEqual(array.tobytes(), other["outputs"][0][name].tobytes(), "a schedule changes no bits")
        options = ["-r", "llm", "-p", "o2", "--sizes", "8", "--schedules", str(chosen)]
        for folder, command in (
            ("dump", ["run", "--backend", "cuda", "--driver", "host", "--tokens", "7", "--dump"]),
            ("compiled", ["compile", "--sources-only", "-o"]),
        ):
            to = self.path.with_name(folder)
            subprocess.run([PWR, command[0], str(self.path), *command[1:], str(to), *options], capture_output=True, check=True)
            written = {path.stem: path.read_text() for path in to.rglob("*.cu") if path.parent.name != "captured"}
            self.assertEqual(written, other["kernels"], command[0])
        captured = {path.stem: path.read_text() for path in (self.path.with_name("dump") / "kernels/captured").iterdir()}
        self.assertEqual(captured, other["kernels"])

    def test_generated_tokens(self):
        model, steps = self.path.with_name("generates.pwg"), self.path.with_name("generates.steps")
        size = "--layers 1 --hidden 64 --heads 2 --kv-heads 1 --ffn 96 --vocab 64 --lm-head greedy".split()
        subprocess.run([PWR, "generate", "llama", *size, "-o", str(model)], check=True, capture_output=True)
        steps.write_text("0:3\n1:2\n")
        options = {"backend": "cuda", "driver": "host", "sizes": [2, 4], "max_tokens": 4, "mode": "full", "steps": str(steps), "generate_steps": 6}
        (single,), (looped,) = (pw.run_model(model, "llm", "o2", steps_in_launch=most, **options)["graphs"] for most in (0, 4))
        self.assertEqual([(row["sequence"], len(row["generated_tokens"])) for row in single["generated"]], [(0, 6), (1, 6)])
        self.assertEqual(looped["generated"], single["generated"])
        self.assertEqual((single["counters"]["looped_steps"], looped["counters"]["looped_steps"], looped["counters"]["loop_replays"]), (0, 6, 2))
        end = single["generated"][0]["generated_tokens"][0]
        (ended,) = pw.run_model(model, "llm", "o2", end_tokens=[end], **options)["graphs"]
        self.assertEqual(ended["generated"][0]["generated_tokens"], [end])
        (row,) = pw.bench(model, "llm", "o2", repeats=1, steps_in_launch=4, **options)["generation"]
        self.assertEqual((row["generated_steps"], row["launches"]), (6, 2))
        for wrong, code in (
            ({"steps_in_launch": 5000}, "PW1402"),
            ({"generate_steps": 0, "end_tokens": [1]}, "PW1471"),
            ({"end_tokens": [-1]}, "PW1402"),
        ):
            with self.assertRaisesRegex(pw.Error, code):
                pw.run_model(model, "llm", "o2", **{**options, **wrong})

    def test_mistakes(self):
        for options, messages in (
            ({"backend": "gpu"}, "PW1405"),
            ({"backend": "eager", "strict": True}, "PW1406"),
            ({"backend": "cuda", "driver": "host", "ranks": 2}, "PW1201"),
            ({"max_tokens": 4, "tokens": [9]}, "PW1408"),
        ):
            with self.assertRaisesRegex(pw.Error, messages):
                pw.run_model(self.path, "llm", "o2", **options)
        with self.assertRaisesRegex(pw.Error, "PW1101.*o22"):
            pw.run_model(self.path, "llm", "o22")
        with self.assertRaisesRegex(TypeError, "no option 'token'"):
            pw.run_model(self.path, "llm", "o2", token=[1])

    def test_symbols_are_spelled_as_on_the_command_line(self):
        symbol = "n=arg0_1.0,arg1_1.0"
        for given in (symbol, [symbol], {"n": ["arg0_1.0", "arg1_1.0"]}, {"n": "arg0_1.0,arg1_1.0"}):
            self.assertEqual(pw.Session().load("examples/tiny-decoder.fx.txt", given).tokens, "n")

    def test_engines(self):
        can = {engine["name"]: engine for engine in pw.engines()}
        notice = subprocess.run([PWR, "doctor", "--format", "json"], capture_output=True, text=True, check=True).stdout
        names = [row["what"].removeprefix("backend ") for row in json.loads(notice) if row["what"].startswith("backend ")]
        self.assertEqual(list(can), names)
        self.assertEqual([name for name in can if name in ("eager", "interpreter", "cpu", "cuda")], ["eager", "interpreter", "cpu", "cuda"])
        self.assertTrue(can["cuda"]["capture"] and not can["cuda"]["ranks"])
        self.assertRegex(subprocess.run([PWR, "--version"], capture_output=True, text=True).stdout, pw.__version__)


if __name__ == "__main__":
    unittest.main()
