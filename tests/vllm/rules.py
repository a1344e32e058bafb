#!/usr/bin/env python3
"""Rules as a pass of vLLM: by its option and in its pass manager, with reports, PyTorch's numbers, and the reasons of planted near misses.

    rules.py [TEST…]      run.py describes the environment
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import models
import torch
from vllm.compilation.passes.inductor_pass import pass_context
from vllm.config.utils import Range
from vllm.plugins import load_general_plugins

import piecewise
from piecewise.vllm.rules import RulesPass

FP8 = {"fuse_norm_quant": True, "fuse_act_quant": True}
CUSTOM = ["+quant_fp8", "+rms_norm", "+silu_and_mul", "+rotary_embedding"]
NORM = """
rule fused_sum {
  y = relu(add(mul(a: T[n, d], b: T[n, d]), c: T[n, d]))
  =>
  y = fuse
}
pass fused_pass = greedy { fused_sum }
pipeline mine { fused_pass }
"""


def traced(function, *args, pass_=None):
    """Runs a function in Inductor with the pass where vLLM runs its own; returns its result."""

    def with_range(graph):
        with pass_context(Range(1, 64)):
            pass_(graph)

    torch._dynamo.reset()
    with torch.no_grad(), torch._inductor.config.patch(post_grad_custom_post_pass=None, fx_graph_cache=False):
        return torch.compile(function, options={"post_grad_custom_post_pass": with_range, "fx_graph_cache": False})(*args)


# For each reason: a function that nearly matches NORM's rule, and the text of the report.
A = torch.randn(8, 32)
NEAR = {
    "another op": (lambda a, b, c: torch.sigmoid((a * b) + c) + 1, "no user that is `relu`"),
    "another inner op": (lambda a, b, c: torch.relu((a - b) + c), "is not `mul`"),
    "another outer op": (lambda a, b, c: torch.tanh((a * b) + c), "no user that is `relu`"),
    "an input": (lambda a, b, c: torch.relu(a + c) + b, "input of the graph, not a result of `mul`"),
    "another rank": (lambda a, b, c: torch.relu((a[:, :, None] * b[:, :, None]) + c[:, :, None]), "rank 3 does not fit"),
    "another dtype": (lambda a, b, c: torch.relu((a.half() * b.half()).float() + c), "cast"),
    "a second user": (lambda a, b, c: ((a * b), torch.relu((a * b) + c)), "fired 1 of 2"),
    "broadcasting": (lambda a, b, c: torch.relu((a * b[:1]) + c), r"\[1, 32\] is not T\[n, d\]"),
    "a number": (lambda a, b, c: torch.relu((a * 3.0) + c), r"f64\[\] is not T"),
    "a missing sum": (lambda a, b, c: torch.relu(a * b) + c, "is not `add`"),
}


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, text):
        path = self.folder / "own.pwr"
        path.write_text(text)
        return str(path)

    def test_a_fused_op_has_pytorchs_numbers(self):
        one = RulesPass(self.write(NORM), "mine", folder=str(self.folder / "report"))
        b, c = torch.randn(8, 32), torch.randn(8, 32)
        got = traced(lambda a, b, c: torch.relu(a * b + c).tanh(), A, b, c, pass_=one)
        torch.testing.assert_close(got, torch.relu(A * b + c).tanh())
        (graph,) = one.report
        (row,) = graph.rows()
        self.assertEqual((row.rule, row.fired, row.places, row.range, graph.done.refused), ("fused_sum", 1, 1, (1, 64), ""))
        self.assertIn("fused_sum: fired 1 of 1", (self.folder / "report/rules-rank0.txt").read_text())
        self.assertEqual(json.loads((self.folder / "report/rules-rank0.jsonl").read_text())["rules"][0]["fired"], 1)

    def test_near_misses_have_their_reasons(self):
        path = self.write(NORM)
        b, c = torch.randn(8, 32), torch.randn(8, 32)
        for kind, (function, message) in NEAR.items():
            with self.subTest(kind):
                one = RulesPass(path, "mine")
                traced(function, A, b, c, pass_=one)
                text = "\n".join(str(row) for row in one.report[0].rows(["fused_sum"]))
                print(f"{kind}: {text}")
                self.assertRegex(text, message)

    def test_the_identifier_covers_rules_pipeline_and_params(self):
        path = self.write(NORM)
        first = RulesPass(path, "mine").uuid()
        self.assertEqual(RulesPass(path, "mine").uuid(), first)
        self.write(NORM.replace("relu", "tanh"))
        self.assertNotEqual(RulesPass(path, "mine").uuid(), first)
        self.assertNotEqual(RulesPass("llm", "o2").uuid(), RulesPass("llm", "o1").uuid())
        self.assertNotEqual(RulesPass("llm", "o2").uuid(), RulesPass("llm", "o2", {"tp": 2}).uuid())

    def test_mistakes_are_reported(self):
        with self.assertRaisesRegex(piecewise.Error, "no pipeline `none`"):
            RulesPass(self.write(NORM), "none")
        for given, message in (
            ("[1", "PIECEWISE_VLLM_RULES must be 1 or a JSON object"),
            ('{"place": "under"}', "`place` must be after, before or compare"),
            ('{"check": true}', "has no option check"),
        ):
            done = self.process("import piecewise.vllm.rules", given)
            self.assertIn(message, done.stderr)
            self.assertNotEqual(done.returncode, 0)

    def process(self, code, rules):
        environment = os.environ | {"PIECEWISE_VLLM_RULES": rules, "VLLM_DISABLE_COMPILE_CACHE": "1", "TORCHINDUCTOR_CACHE_DIR": str(self.folder)}
        environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    def model(self, place):
        """Compiles an fp8 model in a process with rules in the pass manager; returns the two reports."""
        report = self.folder / place
        options = json.dumps({"place": place, "report": str(report)})
        done = self.process(f"import rules; rules.compile_fp8()", options)
        self.assertIn("COMPILED", done.stdout, done.stderr[-3000:])
        table = report / "side-by-side-rank0.txt"
        return [json.loads(line) for line in (report / "rules-rank0.jsonl").read_text().splitlines()], table.read_text()

    def test_side_by_side_with_vllms_passes(self):
        graphs, table = self.model("compare")
        print(table)
        self.assertEqual([graph["refused"] for graph in graphs], ["", "", ""])
        lines = [line.split() for line in table.splitlines()[1:]]
        numbers = [(line[2], line[3], line[4]) for line in lines if line[2].endswith("Pass")]
        self.assertEqual(sum(int(theirs) for _, theirs, _ in numbers), 6)
        for name, theirs, ours in numbers:
            self.assertEqual(theirs, ours, name)

    def test_rules_before_vllms_passes_take_their_matches(self):
        graphs, table = self.model("before")
        fired = {row["rule"] for graph in graphs for row in graph["rules"] if row["fired"]}
        self.assertLessEqual({"rms_quant", "add_rms_quant", "silu_mul_quant"}, fired)
        left = sum(int(line.split()[3]) for line in table.splitlines()[1:] if line.split()[2].endswith("Pass"))
        self.assertEqual(left, 0, table)

    def test_the_option_of_vllm_finds_the_pass(self):
        code = "import rules; rules.compile_by_option()"
        done = self.process(code, json.dumps({"report": str(self.folder / "option")}))
        self.assertIn("COMPILED", done.stdout, done.stderr[-3000:])
        self.assertEqual(len((self.folder / "option/rules-rank0.jsonl").read_text().splitlines()), 3)


def compile_fp8(**more):
    """Compiles a model whose kernels do not run on the CPU."""
    load_general_plugins()
    model = models.made(models.config_of("llama_fp8", custom_ops=CUSTOM, passes=FP8, **more))
    try:
        model(16)
    except NotImplementedError:
        pass
    print("COMPILED")


def compile_by_option():
    compile_fp8(inductor_passes={"post_grad_custom_post_pass": "piecewise.vllm.rules.vllm_rules"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
