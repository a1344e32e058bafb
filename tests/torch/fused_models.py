#!/usr/bin/env python3
"""Rules with `=> fuse` inside Inductor, on stock models of transformers: generated kernels take part in Inductor's code.

    fused_models.py [TEST …]

PW_GPU_DRIVER=cuda runs the models, and the generated kernels, on a GPU. Exit codes: 0 ok, 1 something differs, 77 transformers is missing.
"""
import copy
import importlib.util
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import torch

from piecewise import pytorch as front
from stock import error, is_right
from stock_models import MODELS

PLACE = torch.device("cuda" if os.environ.get("PW_GPU_DRIVER") == "cuda" else "cpu")
RULES = """
rule add_norm {
  s = add(x: T[*b, d], r: T[*b, d])
  y = mul(w: T[d], mul(s, rsqrt(mean(pow(s, 2)){dim = -1, keepdim = true} + eps)))
  => y, s = fuse
}
rule gelu { y = mul(mul(x: T[*b, d], 0.5), add(tanh(z: T[*b, d]), 1.0))  =>  y = fuse }
pass fused = greedy { add_norm, gelu }
pipeline fuse { fused }
"""


class Models(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def passed(self, name, rules, pipeline, dtype=torch.float32):
        """Compares a model with a run in f64; returns the pass, and the names of the generated ops that Inductor's code calls."""
        model, inputs, _ = MODELS[name]()
        model, inputs = model.to(PLACE, dtype), [x.to(PLACE) for x in inputs]
        called = set()
        one = front.inductor_pass(rules, pipeline)

        def after(graph):
            called.update(str(node.target) for node in graph.nodes if str(node.target).startswith("piecewise."))

        options = {"post_grad_custom_pre_pass": one, "post_grad_custom_post_pass": after, "fx_graph_cache": False}
        call = torch.compile(model, dynamic=False, options=options)
        with torch.no_grad():
            exact = copy.deepcopy(model).double()(*inputs)
            eager, got = (error(exact, function(*inputs), 0.0) for function in (model, call))
        print(f"{name} {dtype} on {PLACE}: error {got:.1e}, PyTorch's {eager:.1e}; generated ops: {', '.join(sorted(called))}", file=sys.stderr)
        self.assertTrue(is_right(got, eager, "bf16" if dtype == torch.bfloat16 else "f32"), (got, eager))
        self.assertEqual([done.refused for done in one.done], [""])
        return one.done[0].rewrites, called

    def own_rules(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "own.pwr"
        path.write_text(RULES, encoding="utf-8")
        return str(path)

    def test_norms_of_llama(self):
        rewrites, called = self.passed("llama", self.own_rules(), "fuse")
        self.assertEqual((rewrites, len(called)), ({"fused": 4}, 1))  # each of two layers has two sums that a norm reads

    def test_activations_of_gpt2(self):
        rewrites, called = self.passed("gpt2", self.own_rules(), "fuse")
        self.assertEqual((rewrites, len(called)), ({"fused": 2}, 1))

    def test_rules_of_the_library(self):
        for name in ("llama", "qwen3"):
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(model=name, dtype=dtype):
                    self.setUp()
                    rewrites, called = self.passed(name, "llm", "o2", dtype)
                    self.assertIn("activation", rewrites)
                    self.assertTrue(called)


if __name__ == "__main__":
    if importlib.util.find_spec("transformers") is None:
        print("SKIPPED: models with fused rules: no transformers", file=sys.stderr)
        sys.exit(77)
    warnings.filterwarnings("ignore")
    unittest.main(verbosity=2)
