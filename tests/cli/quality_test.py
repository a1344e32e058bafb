#!/usr/bin/python3
"""pwr compile --quality: kernels judged without a device, against the baseline in the tree, which needs no network.

What the emitter decides is compared everywhere; registers and instructions only where NVRTC is of the baseline's version (and, for instructions,
nvdisasm is there). PW_UPDATE_GOLDEN=1 rewrites the baseline, PW_QUALITY=all compares all widths and architectures."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402

BASELINE = Path("tests/baselines/kernels.quality.json").resolve()
FUNCTIONS = 16
ALL = ["--arch", "sm_80,sm_90,sm_100,sm_120"]
# What no width can change: a cause that every row which falls short has to name.
REASONS = (
    "are not a multiple of 8",
    "8 neighbouring elements have 8 bytes",
    "one by one are not kept",
    "rows share it",
    "in a later phase",
    "whole groups",
)


class Quality(ProgramTest):
    def judge(self, *options, code=0):
        """With a limit for all kernels: they take some ten minutes, on a machine that does nothing else."""
        done = self.pwr("compile", "--quality", *options, "--format", "json", code=code, seconds=3600)
        return json.loads(done.stdout), done.stderr

    def test_the_baseline_holds(self):
        if os.environ.get("PW_UPDATE_GOLDEN"):
            self.pwr("compile", "--quality", *ALL, "-o", BASELINE)
        some = ALL if os.environ.get("PW_QUALITY") == "all" else ["--arch", "sm_90", "--widths", "1024,1031,5120"]
        _, messages = self.judge(*some, "--baseline", BASELINE)
        self.assertIn("no difference from the baseline", messages)
        if "are not compared" in messages or "are not known" in messages:
            print(f"registers or instructions were not compared: {messages.splitlines()[0]}")

    def test_emitter_of_all_widths_and_architectures(self):
        _, messages = self.judge(*ALL, "--sources-only", "--baseline", BASELINE)
        self.assertIn("no difference from the baseline", messages)

    def test_a_decode_step_of_llama_1b(self):
        """Counts launches and bytes of a step of one token, with the choice of the next token."""
        sizes = {"layers": 16, "hidden": 2048, "heads": 32, "kv-heads": 8, "head": 64, "ffn": 8192, "vocab": 128256}
        options = [text for name, size in sizes.items() for text in (f"--{name}", str(size))]
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model.json"
            self.pwr("generate", "llama3", *options, "--lm-head", "greedy", "-o", model)
            plan = [model, "-r", "llm", "-p", "o2", "--arch", "sm_90", "--sources-only", "--tokens", "1", "-o", Path(folder) / "out"]
            answer, _ = self.judge(*plan, "--stream-weights", "--programmatic-edges")
        step = answer["schedule"][0]
        self.assertLessEqual(step["launches"], 37)
        self.assertGreaterEqual(step["programmatic"], 32)
        self.assertLessEqual(step["other_bytes"], 0.01 * step["weight_bytes"])
        self.assertGreaterEqual(step["before_the_wait"], 0.9)
        self.assertEqual(len(answer["edges"]), step["launches"])
        self.assertTrue(all(edge["why"] for edge in answer["edges"]))

    def test_products_of_more_rows_do_not_stream(self):
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model.json"
            sizes = "--layers 2 --hidden 2048 --heads 32 --kv-heads 8 --head 64 --ffn 8192 --vocab 512".split()
            self.pwr("generate", "llama3", *sizes, "-o", model)
            plan = [model, "-r", "llm", "-p", "o2", "--arch", "sm_90", "--sources-only", "--stream-weights", "-o", Path(folder) / "out"]
            few, many = (self.judge(*plan, "--tokens", str(tokens))[0] for tokens in (8, 16))
        self.assertNotIn("not_streamed", few)
        self.assertEqual({(row["depth"], row["columns"], row["count"]) for row in many["not_streamed"]},
                         {(2048, 3072, 2), (2048, 2048, 2), (2048, 16384, 2), (8192, 2048, 2)})  # fmt: skip
        for row in many["not_streamed"]:
            self.assertEqual(row["rows"], 16)
            self.assertIn("have at most 8 rows", row["why_not_streamed"])
            self.assertGreater(row["least_streamed_seconds"], row["depth"] * row["columns"] * 2 / 3.35e12)
            self.assertGreater(row["tensor_seconds"], row["depth"] * row["columns"] * 2 / 3.35e12)

    def test_the_baseline_is_whole(self):
        rows = json.loads(BASELINE.read_text(encoding="utf-8"))["kernels"]
        self.assertEqual(len({row["function"] for row in rows}), FUNCTIONS)
        self.assertEqual({row["arch"] for row in rows}, {"sm_80", "sm_90", "sm_100", "sm_120"})
        for row in rows:
            with self.subTest(row["function"], width=row["width"], arch=row["arch"]):
                self.assertEqual((row["spill_bytes"], row["stack_bytes"]), (0, 0))
                self.assertGreater(row["occupancy"], 0)
                self.assertGreater(row["instructions"], 0)
                if row["width"] % 256 == 0:
                    self.assertEqual(row["wide_share"], 1)

    def test_every_shortcoming_has_a_reason(self):
        answer, _ = self.judge("--sources-only", "--arch", "sm_90")
        for row in answer["shortcomings"]:
            self.assertTrue(any(reason in row["reason"] for reason in REASONS), row)
        short = {(row["function"], row["width"]) for row in answer["shortcomings"]}
        self.assertEqual(short, {(row["function"], row["width"]) for row in answer["kernels"] if row["shortcomings"]})

    def test_bytes_of_a_norm(self):
        """x and y once, the weight once: 2 bytes an element."""
        answer, _ = self.judge("--sources-only", "--arch", "sm_90", "--functions", "rms_norm", "--widths", "4096", "--tokens", "100")
        (row,) = answer["kernels"]
        self.assertEqual(row["least_bytes"], 2 * 100 * 4096 * 2 + 4096 * 2)
        self.assertEqual(row["moved_bytes"], row["least_bytes"])
        self.assertEqual((row["wide_share"], row["input_passes"]), (1, ["1", "1"]))

    def test_a_change_is_a_difference(self):
        changed = json.loads(BASELINE.read_text(encoding="utf-8"))
        for row in changed["kernels"]:
            row["moved_bytes"] -= 16
        path = self.file("changed.json", json.dumps(changed))
        _, messages = self.judge("--sources-only", "--arch", "sm_90", "--functions", "softmax", "--widths", "1024", "--baseline", path, code=1)
        self.assertIn("softmax 1024 sm_90: moved_bytes was", messages)
        self.assertIn("1 difference from the baseline", messages)

    def test_a_plan(self):
        graph = self.make(
            "llama.json", "generate", "llama", "--layers", "2", "--hidden", "256", "--heads", "4", "--kv-heads", "2", "--ffn", "512", "--vocab", "512"
        )
        folder = self.path("compiled")
        answer, _ = self.judge(graph, "-r", "llm", "-p", "o2", "--sources-only", "--tokens", "64", "-o", folder)
        (step,) = answer["step"]
        self.assertEqual(step["launches"], sum(row["uses"] for row in answer["kernels"]))
        self.assertEqual(step["saved"], step["nodes"] - step["launches"])
        self.assertGreaterEqual(step["moved_bytes"], step["least_bytes"])
        self.assertEqual(json.loads(Path(folder, "quality.json").read_text(encoding="utf-8")), answer)
        page = Path(folder, "quality.html").read_text(encoding="utf-8")
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        self.assertIn("fused_add_rms_norm", page)
        self.assertIn("On tensor cores", page)
        self.assertEqual({row["op"] for row in answer["tensor"]}, {"mm", "unified_attention"})
        for row in answer["tensor"]:
            self.assertGreaterEqual(row["model_s"], row["bound_s"])
            self.assertIsNone(row["registers"])
        (row,) = (r for r in answer["tensor"] if r["op"] == "unified_attention" and r["arch"] == "sm_90")
        self.assertEqual(row["work"], "64 of 1 after 4095, 4 heads in 2 of 64")
        # A block has a token and a group: its keys and values once, as many of the table's entries; queries and results once.
        keys = 64 * 2 * 4096
        self.assertGreaterEqual(row["read_bytes"], keys * 2 * 64 * 2 + keys * 8 * 8 + 64 * 4 * 64 * 2)
        self.assertLess(row["read_bytes"], 1.01 * (keys * 2 * 64 * 2 + keys * 8 * 8 + 64 * 4 * 64 * 2))
        # Where blocks share out the keys, each writes the sums of its part, a base and a weights' sum, and is counted; the last sets that back.
        parts = row["parts"]
        sums = 0 if parts == 1 else parts * 64 * 4 * (64 * 4 + 8) + 64 * 2 * (parts + 1) * 4
        self.assertEqual(row["written_bytes"], 64 * 4 * 64 * 2 + sums)

    def test_a_page_of_functions_is_the_same_each_time(self):
        pages = []
        for name in ("a.html", "b.html"):
            self.pwr("compile", "--quality", "--sources-only", "--functions", "rope", "--widths", "1024,1031", "-o", self.path(name))
            pages.append(Path(self.path(name)).read_bytes())
        self.assertEqual(*pages)
        self.assertIn(b"rope", pages[0])

    def test_mistakes(self):
        for options, words in (
            (["--functions", "norm"], "there is no function `norm`"),
            (["--widths", "0"], "widths"),
            (["--widths", "x"], "x"),
            (["--baseline", self.file("no.json", "[]"), "--sources-only", "--widths", "8"], "a JSON object with a list of `kernels`"),
            (["--baseline", self.path("absent.json"), "--sources-only", "--widths", "8"], "absent.json"),
            (["--baseline", self.file("half.json", '{"kernels": [{"width": 3}]}'), "--sources-only", "--widths", "8"], "lacks its `function`"),
        ):
            with self.subTest(options):
                done = self.fails("compile", "--quality", *options)
                self.assertIn(words, done.stderr)
        self.assertIn("graph is required", self.fails("compile", "-o", self.path("x")).stderr)
        self.assertIn("--output is required", self.fails("compile", self.file("g.pwg", "in x: f32[n]  y = relu(x)  out y")).stderr)

    def fails(self, *command):
        done = subprocess.run([BIN / "pwr", *command], capture_output=True, text=True, timeout=3600, check=False)
        self.assertIn(done.returncode, (1, 2, 3), done.stderr)
        return done


if __name__ == "__main__":
    unittest.main()
