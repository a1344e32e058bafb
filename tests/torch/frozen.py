#!/usr/bin/env python3
"""Frozen weights: the numbers of PyTorch, also of weights that have changed since; files, a second process, and changes that nobody counts.

    frozen.py [--corpus FILE] [TEST …]     see compiled.py
"""
import copy
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
from torch import nn

import compiled
import piecewise
from compiled import CLOSE, Block, Cache, Case, Dropping, difference
from piecewise import pytorch as front
from piecewise.pytorch import prepared


class Images(nn.Module):
    """Convolutions with what follows them: norms, sums, activations; a pool, strides, dilations, groups, and channels that fill no panel."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 20, 5, 2, 2, bias=False), nn.BatchNorm2d(20), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.body = nn.Sequential(nn.Conv2d(20, 33, 3, 1, 1), nn.BatchNorm2d(33), nn.ReLU(), nn.Conv2d(33, 20, 1), nn.BatchNorm2d(20))
        self.wide = nn.Sequential(nn.Conv2d(20, 40, 3, padding=2, dilation=2), nn.GELU(), nn.Conv2d(40, 40, 3, groups=4), nn.BatchNorm2d(40))
        self.head = nn.Linear(40, 10)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.weight, -1, 2)
                nn.init.normal_(module.bias)
                nn.init.normal_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2)

    def forward(self, x):
        x = self.first(x)
        x = F.relu(x + self.body(x))
        return self.head(self.wide(x).mean((2, 3)))


class Separable(nn.Module):
    """Groups of one channel, of fewer and of more channels than a vector has lanes, between functions that keep the layout of images, and a sum."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(24, 24, 5, padding=2, groups=24, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 24, 1))
        self.last = nn.Sequential(nn.Conv2d(24, 7, 1), nn.Conv2d(7, 7, 3, 2, 1, groups=7), nn.Hardswish(), nn.Conv2d(7, 50, 1))
        self.wide = nn.Sequential(nn.Conv2d(50, 50, (3, 5), (1, 3), (4, 2), dilation=(2, 1), groups=50), nn.SiLU(), nn.Conv2d(50, 9, 1))

    def forward(self, x):
        x = self.first(x)
        y = F.hardswish(x + self.deep(x) * 0.5)
        z = self.wide(self.last(y) * torch.sigmoid(y.mean((1, 2, 3), keepdim=True)))
        return z, y, z.flatten(1).sum(1)


class Signals(nn.Module):
    """Over one axis, with a result that is a convolution's own, and over three."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = nn.Conv1d(7, 36, 3, padding=1), nn.Conv1d(36, 12, 4, stride=3), nn.Conv3d(1, 4, (1, 2, 3))

    def forward(self, x):
        y = self.two(F.gelu(self.one(x)))
        return y, self.three(y.unsqueeze(1).unsqueeze(1))


def frozen(function, **options):
    return torch.compile(function, backend="piecewise", dynamic=options.pop("dynamic", None), options={"frozen": True, **options})


class Numbers(Case):
    def test_images_and_signals(self):
        for batch in (1, 3):
            reports = self.same_without_gradients(Images().eval(), torch.randn(batch, 3, 45, 51), frozen=True)
            self.assertIn("frozen: 5 weights packed once", " ".join(reports[0].summary))
            self.same_without_gradients(Signals().eval(), torch.randn(batch, 7, 100), frozen=True)

    def test_groups_of_one_channel(self):
        for batch in (1, 3):
            reports = self.same_without_gradients(Separable().eval(), torch.randn(batch, 3, 45, 51), frozen=True)
            self.assertIn("frozen: 8 weights packed once", " ".join(reports[0].summary))
        x = torch.randn(1, 3, 40, 40)
        x[0, 0, 5, 5] = torch.nan
        self.same_without_gradients(Separable().eval(), x, frozen=True)
        one_axis = nn.Sequential(nn.Conv1d(20, 20, 4, 2, 3, groups=20), nn.ReLU(), nn.Conv1d(20, 5, 1))
        three_axes = nn.Sequential(nn.Conv3d(20, 20, (2, 3, 3), (1, 2, 1), 1, groups=20), nn.Tanh())
        self.same_without_gradients(one_axis.eval(), torch.randn(2, 20, 37), frozen=True)
        self.same_without_gradients(three_axes.eval(), torch.randn(2, 20, 5, 9, 11), frozen=True)

    def test_rewrites(self):
        (report,) = self.same_without_gradients(Images().eval(), torch.randn(2, 3, 32, 32), frozen=True)
        ops = [node["op"] for node in json.loads(report.graph.json())["nodes"]]
        self.assertEqual([ops.count(op) for op in ("convolution", "convolution_relu", "convolution_add_relu", "convolution_gelu")], [1, 2, 1, 1], ops)

    def test_writes_and_random_numbers(self):
        self.same_without_gradients(Cache(), torch.randn(2, 1, 8), calls=4, frozen=True)
        self.same(Dropping().train(), torch.randn(8, 32), frozen=True)

    def test_values_that_are_no_numbers(self):
        model = Images().eval()
        x = torch.randn(1, 3, 40, 40)
        x[0, 0, 5, 5] = torch.nan
        x[0, 1, 30, 30] = torch.inf
        self.same_without_gradients(model, x, frozen=True)

    def test_dynamic_shapes(self):
        model = Block().eval()
        function = frozen(model, dynamic=True)
        with torch.no_grad():
            for batch in (2, 3, 17, 64, 512):
                x = torch.randn(batch, 16)
                self.assertLessEqual(difference(model(x), function(x)), CLOSE)
        self.assertEqual(len(front.report(function)), 1)

    def test_a_weight_that_is_not_row_major(self):
        model = nn.Linear(24, 16).eval()
        model.weight = nn.Parameter(torch.randn(24, 16).t())
        self.same_without_gradients(model, torch.randn(5, 24), calls=3, frozen=True)

    def test_training_is_not_frozen(self):
        model, other = Block(), None
        other = copy.deepcopy(model)
        function = frozen(other)
        for one, step in ((model, model), (other, function)):
            optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
            for seed in range(3):
                torch.manual_seed(seed)
                optimizer.zero_grad()
                step(torch.randn(4, 16)).square().mean().backward()
                optimizer.step()
        self.assertLessEqual(difference(model.state_dict(), other.state_dict()), CLOSE)
        self.assertFalse(any("frozen" in line for report in front.report(function) for line in report.summary))


class Changes(Case):
    """Values computed from a weight follow its changes."""

    def check(self, model, function, *inputs):
        with torch.no_grad():
            self.assertLessEqual(difference(model(*inputs), function(*inputs)), CLOSE)

    def test_that_pytorch_counts(self):
        model, x = Images().eval(), torch.randn(2, 3, 32, 32)
        function = frozen(model)
        self.check(model, function, x)
        with torch.no_grad():
            model.head.weight.mul_(-2)
            self.check(model, function, x)
            model.first[1].running_var.add_(3)
            self.check(model, function, x)
            model.body[0].weight.detach().zero_()
            self.check(model, function, x)
        model.load_state_dict(Images().state_dict())
        self.check(model, function, x)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
        model(x).sum().backward()
        optimizer.step()
        self.check(model, function, x)
        self.assertEqual(len([r for r in front.report(function) if r.kind == "inference"]), 1)

    def test_other_tensors(self):
        model, x = nn.Linear(64, 64).eval(), torch.randn(3, 64)
        function = frozen(model)
        for _ in range(4):
            self.check(model, function, x)
            model.weight.data = torch.randn(64, 64)
            self.check(model, function, x)
            model.weight = nn.Parameter(torch.randn(64, 64))

    def test_inference_mode(self):
        with torch.inference_mode():
            model = nn.Linear(64, 64).eval()
            x = torch.randn(3, 64)
            function = frozen(model)
            for _ in range(3):
                self.assertLessEqual(difference(model(x), function(x)), CLOSE)
            model.weight.mul_(2)
            with self.assertRaisesRegex(piecewise.Error, "weight"):
                function(x)
            self.assertLessEqual(difference(model(x), function(x)), CLOSE)

    WRITES = {
        "data": lambda w: w.data.mul_(3),
        "numpy": lambda w: numpy.multiply(w.detach().numpy(), 3, out=w.detach().numpy()),
    }

    def test_that_nobody_counts(self):
        """An Error before all of the weights have had their turn; with `check` at once. Then the new numbers."""
        for how, write in self.WRITES.items():
            for check in (False, True):
                with self.subTest(how=how, check=check):
                    self.setUp()
                    model, x = nn.Sequential(*(nn.Linear(512, 512) for _ in range(3))).eval(), torch.randn(2, 512)
                    function = frozen(model, check=check)
                    self.check(model, function, x)
                    self.check(model, function, x)
                    write(model[1].weight)
                    calls = 0
                    with self.assertRaisesRegex(piecewise.Error, "PyTorch does not count"):
                        for calls in range(1 if check else 14):
                            with torch.no_grad():
                                function(x)
                    self.check(model, function, x)
                    self.check(model, function, x)


class Files(Case):
    def test_a_program(self):
        model, x = Images().eval(), torch.randn(2, 3, 32, 32)
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            program = front.compile_export(torch.export.export(model, (x,)), frozen=True)
            path = str(Path(folder, "program.pwt"))
            program.save(path)
            again = front.load_compiled(path)
            for one in (program, again, program, again):
                self.assertLessEqual(difference(model(x), one(x)), CLOSE)
            model.head.weight.mul_(2)  # the program has the model's weights, and the file those of then
            self.assertLessEqual(difference(model(x), program(x)), CLOSE)

    PROGRAM = """
        import torch
        from piecewise import pytorch as front
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv1d(4, 16, 3, padding=1), torch.nn.GELU(), torch.nn.Linear(16, 48), torch.nn.GELU(), torch.nn.Softmax(-1)).eval()
        x = torch.randn(2, 4, 16)
        with torch.no_grad():
            compiled = torch.compile(model, backend="piecewise", options={"frozen": True})
            assert torch.allclose(compiled(x), model(x), atol=1e-5)
        (report,) = front.report(compiled)
        print(report.warm, *report.summary)
    """

    def test_a_second_process_compiles_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.py"
            program.write_text(textwrap.dedent(self.PROGRAM), encoding="utf-8")

            def run(path):
                environment = os.environ | {"PWR_CACHE_DIR": folder + "/cache", "PATH": path}
                done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])
                return done.stdout

            self.assertIn("False cpu:", run(os.environ["PATH"]))
            self.assertRegex(run("/nowhere"), r"True cpu: (\d+) kernels?, \1 from the cache.* frozen: 2 weights")

    def test_another_backend(self):
        with self.assertRaisesRegex(ValueError, "cpu"):
            front.Options.of({"frozen": True, "backend": "eager"})


def of_corpus(models):
    class Corpus(Case):
        def test_frozen(self):
            for name in models.R:
                with self.subTest(model=name), torch.no_grad():
                    self.setUp()
                    model, inputs, _ = models.R[name]()
                    model.eval()
                    function = frozen(model, dynamic=False)
                    for _ in range(2):
                        want = model(*[x.clone() for x in inputs])
                        bound = CLOSE if want.dtype == torch.float32 else 0.05
                        self.assertLessEqual(difference(want, function(*[x.clone() for x in inputs])), bound)

    return Corpus


class Gated(nn.Module):
    """Rows times a function of weights alone."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift, self.product = nn.Parameter(torch.randn(16)), nn.Parameter(torch.randn(16)), nn.Linear(16, 16)

    def forward(self, x):
        return torch.relu(self.product(x) * torch.softmax(self.scale, -1) + torch.exp(self.shift))


class OnDevice(Case):
    """Results that depend on weights alone: computed once on the emulated device, and again after a change."""

    EMULATED = {"backend": "cuda", "driver": "host"}

    def setUp(self):
        super().setUp()
        self.runs = 0
        original = prepared.PreparedWeights._prepared

        def counted(weights, given):
            self.runs += 1
            return original(weights, given)

        change = unittest.mock.patch.object(prepared.PreparedWeights, "_prepared", counted)
        change.start()
        self.addCleanup(change.stop)

    def same(self, model, call, runs):
        before = self.runs
        with torch.no_grad():
            for n in (3, 5, 3):
                x = torch.randn(n, 16)
                self.assertLessEqual(difference(model(x), call(x)), CLOSE)
        self.assertEqual(self.runs - before, runs)

    def test_changes(self):
        model = Gated().eval()
        call = frozen(model, dynamic=True, **self.EMULATED)
        self.same(model, call, 1)
        self.assertIn("prepared: ", piecewise.pytorch.report(call)[0].summary[0])
        self.same(model, call, 0)
        with torch.no_grad():
            model.scale.mul_(2)
        self.same(model, call, 1)
        model.shift.data = torch.randn(16)
        self.same(model, call, 1)
        model.load_state_dict(Gated().state_dict())
        self.same(model, call, 1)
        model.scale = nn.Parameter(torch.randn(16))
        self.same(model, call, 1)

    def test_two_models(self):
        models = [Gated().eval() for _ in range(2)]
        calls = [frozen(model, dynamic=True, **self.EMULATED) for model in models]
        for i in range(4):
            self.same(models[i % 2], calls[i % 2], 1 if i < 2 else 0)

    def test_writes_that_are_not_counted(self):
        """`check`, and weights of inference mode, prepare at each call."""
        model = Gated().eval()
        self.same(model, frozen(model, dynamic=True, check=True, **self.EMULATED), 3)
        with torch.inference_mode():
            model = Gated().eval()
            self.same(model, call := frozen(model, dynamic=True, **self.EMULATED), 3)
            model.scale.mul_(2)
            self.same(model, call, 3)

    def test_without_weights(self):
        call = frozen(lambda x: x * 2 + 1, **self.EMULATED)
        self.assertTrue(call(torch.ones(4)).equal(torch.full((4,), 3.0)))
        self.assertEqual(self.runs, 0)

    def test_training(self):
        """Graphs of training freeze nothing."""
        model = Gated()
        x = torch.randn(3, 16)
        got = torch.autograd.grad(frozen(model, **self.EMULATED)(x).sum(), model.scale)[0]
        self.assertLessEqual(difference(torch.autograd.grad(model(x).sum(), model.scale)[0], got), CLOSE)
        self.assertEqual(self.runs, 0)


if __name__ == "__main__":
    compiled.main(of_corpus)
