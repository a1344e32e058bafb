#!/usr/bin/env python3
"""Captured calls of torch.compile on the emulated device: the same bits as launched calls, whatever the caller does between them.

    capture.py [--corpus FILE] [--seed N] [--sequences N] [--models [NAME …]] [--kinds KIND …] [TEST …]

The corpus is that of compiled.py.
"""
import argparse
import contextlib
import copy
import gc
import importlib
import random
import resource
import sys
import threading
import unittest
import unittest.mock
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import compiled
from compiled import Block, sized
from piecewise import pytorch as front
from piecewise.pytorch import padding, pieces, recording
from piecewise.pytorch.calls import Call
from piecewise.pytorch.options import Options

EMULATED = {"backend": "cuda", "driver": "host"}
KINDS = ("torch", "piecewise", "parts")  # parts: with the mode `piecewise`
SETTINGS = argparse.Namespace(seed=1, sequences=100, models=("mlp", "swiglu", "nanogpt", "llama"), kinds=KINDS)

LIBRARY = torch.library.Library("pw_capture_test", "DEF")
LIBRARY.define("odd(Tensor x) -> Tensor")
LIBRARY.define("waits(Tensor x) -> Tensor", tags=(torch.Tag.cudagraph_unsafe,))


def odd(x):
    if x.numel() and x.flatten()[0] < 0:
        raise ValueError("planted")
    return x * 2


LIBRARY.impl("odd", odd, "CPU")
LIBRARY.impl("odd", lambda x: torch.empty_like(x), "Meta")
LIBRARY.impl("waits", lambda x: x * 2, "CPU")
LIBRARY.impl("waits", lambda x: torch.empty_like(x), "Meta")


class Case(compiled.Case):
    def setUp(self):
        super().setUp()
        change = torch._dynamo.config.patch(recompile_limit=1000, accumulated_recompile_limit=1000, fail_on_recompile_limit_hit=True)
        change.__enter__()  # beyond the limit, eager PyTorch would be compared
        self.addCleanup(change.__exit__, None, None, None)


def same_bits(want, got):
    """True if both are equal bit for bit, with equal shapes, strides and dtypes."""
    pairs = list(zip(tree_leaves(want), tree_leaves(got)))
    return all(
        a == b
        if not isinstance(a, torch.Tensor)
        else (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride()) and a.flatten().view(torch.uint8).equal(b.flatten().view(torch.uint8))
        for a, b in pairs
    )


def captured_as(kind):
    """The options of a kind."""
    return {"capture": "piecewise", "mode": "piecewise"} if kind == "parts" else {"capture": kind}


def on_device(function, kind, dynamic=None, **options):
    return torch.compile(function, backend="piecewise", dynamic=dynamic, options={**EMULATED, **captured_as(kind), **options})


def is_of(report, kind):
    return captured_as(kind).items() <= vars(report.options).items() and (kind != "piecewise" or report.options.mode != "piecewise")


@contextlib.contextmanager
def launching():
    """Launches calls at the sizes of their graphs."""
    with unittest.mock.patch.object(pieces, "is_recording", lambda _: True), unittest.mock.patch.object(recording, "is_recording", lambda _: True):
        yield


class Captured:
    """Runs the tests of a case with captures, which the third call of a size replays."""

    def same(self, function, *inputs, calls=2, **how):
        return super().same(function, *inputs, calls=calls + 3, **EMULATED, **captured_as(self.kind), **how)


def cases(kind):
    """The cases of compiled.py whose calls a device runs."""

    class Writes(Captured, compiled.Writes):
        def test_custom_op_that_writes(self):
            x = torch.randn(4, 3)
            self.same_without_gradients(lambda x: torch.ops.pw_test.scale_(x, 2.0) or x + 1, x)

    class Random(Captured, compiled.Random):
        pass

    class Parts(Captured, compiled.Parts):
        pass

    class Training(compiled.Training):
        options = {**EMULATED, **captured_as(kind)}

    made = {one.__name__ + kind.capitalize(): one for one in (Writes, Random, Parts, Training)}
    for name, one in made.items():
        one.kind, one.__name__, one.__qualname__ = kind, name, name
    return made


globals().update({name: one for kind in KINDS for name, one in cases(kind).items()})


class Replays(Case):
    def captured(self, function, kind, *inputs):
        """Calls a function often; returns its reports."""
        call = on_device(function, kind)
        with torch.no_grad():
            for _ in range(4):
                self.assertTrue(same_bits(function(*inputs), call(*inputs)))
        return front.report(call)

    def test_python_does_not_run_again(self):
        for kind in KINDS:
            self.setUp()
            runs, original = [], Call._compute
            with unittest.mock.patch.object(Call, "_compute", autospec=True, side_effect=lambda *of: (runs.append(of), original(*of))[1]):
                (report,) = self.captured(lambda x: (x + 1) * 2, kind, torch.randn(4, 4))
            self.assertEqual((len(runs), report.captures, report.not_captured), (2 if kind == "torch" else 1, 1, ""))
            self.assertIn("1 capture", str(report))

    def test_results_are_the_callers(self):
        """A later call does not change an earlier result; views of one result, and of an argument, stay views."""
        for kind in KINDS:
            self.setUp()
            call = on_device(lambda x: ((y := x * 2).t(), y.view(-1), y, x.view(-1), x), kind)
            with torch.no_grad():
                for i in range(5):
                    x = torch.full((3, 4), float(i))
                    t, flat, y, view, whole = call(x)
                    y[0, 1] = 100
                    view[2] = 50
                    self.assertEqual((t[1, 0].item(), flat[1].item(), x[0, 2].item()), (100, 100, 50))
                    self.assertIs(whole, x)
                    if i:
                        self.assertTrue(last.equal(torch.full((4,), 2.0 * (i - 1))))
                    last = y[1]

    def test_weights(self):
        """Changed and replaced weights, and other models of a class, are seen."""
        for kind in KINDS:
            self.setUp()
            models = [Block().eval() for _ in range(2)]
            calls = [on_device(model, kind) for model in models]
            plain = [on_device(model, "none") for model in models]
            with torch.no_grad():
                for i in range(24):
                    at, x = i % 2 if i < 12 else 0, torch.randn(3, 16)
                    self.assertTrue(same_bits(plain[at](x), calls[at](x)), i)
                    if i % 3 == 0:
                        models[at].up.weight.mul_(1.5)
                    if i % 5 == 0:
                        models[at].down.weight.data = torch.randn(16, 64)

    def test_random_numbers(self):
        for kind in KINDS:
            self.setUp()
            model = compiled.Dropping().train()
            call, plain = on_device(model, kind), on_device(model, "none")
            with torch.no_grad():
                for seed in range(5):
                    outs = []
                    for one in (plain, call):
                        torch.manual_seed(seed)
                        outs += [one(torch.ones(4, 32)), one(torch.ones(4, 32))]
                    self.assertTrue(same_bits(outs[:2], outs[2:]))

    def test_exception_while_recording(self):
        """The second call of a size, which would be recorded, raises; later ones are recorded."""
        for kind in KINDS:
            self.setUp()
            call = on_device(lambda x: torch.ops.pw_capture_test.odd(x * 2) + 1, kind)
            x = torch.ones(8)
            with torch.no_grad():
                for sign in (1, -1, 1, -1, -1, 1, 1):
                    if sign < 0:
                        with self.assertRaisesRegex(ValueError, "planted"):
                            call(-x)
                    else:
                        self.assertTrue(call(x).equal(torch.full((8,), 5.0)))
            (report,) = front.report(call)
            self.assertEqual(report.not_captured, "")
            self.assertGreater(report.captures, 0)

    def test_inference_mode(self):
        """Inference mode and other modes have graphs of their own, and results of each."""
        for kind in KINDS:
            self.setUp()
            model = Block().eval()
            call, plain = on_device(model, kind), on_device(model, "none")
            for i in range(8):
                x = torch.randn(3, 16)
                with torch.inference_mode() if i % 2 else torch.no_grad():
                    want, got = plain(x), call(x)
                self.assertTrue(same_bits(want, got))
                self.assertEqual(want.is_inference(), got.is_inference())

    def test_checked(self):
        for kind in KINDS:
            self.setUp()
            model = nn.Sequential(nn.Embedding(10, 16), Block()).eval()
            call = torch.compile(model, backend="piecewise", options={**EMULATED, **captured_as(kind), "check": True})
            with torch.no_grad():
                for _ in range(4):
                    x = torch.randint(0, 10, (3, 5))
                    self.assertLessEqual(compiled.difference(model(x), call(x)), compiled.CLOSE)

    @torch._functorch.config.patch(donated_buffer=False)  # otherwise no graph can be retained
    def test_training(self):
        """Gradients of launched and captured steps are equal bit for bit, also with accumulation, a second backward and other sizes."""
        for kind in KINDS:
            self.setUp()
            models = [Block() for _ in range(2)]
            models[1].load_state_dict(models[0].state_dict())
            calls = on_device(models[0], "none", dynamic=True), on_device(models[1], kind, dynamic=True)
            for step in range(10):
                x, losses = torch.randn(3 + step % 2, 16), []
                for model, call in zip(models, calls):
                    given = x.clone().requires_grad_()
                    loss = call(given).square().sum()
                    loss.backward(retain_graph=step % 3 == 0)
                    if step % 3 == 0:
                        loss.backward()
                    losses.append([loss.detach(), given.grad, [p.grad.clone() for p in model.parameters()]])
                    with torch.no_grad():
                        for p in model.parameters():
                            p.sub_(p.grad, alpha=1e-4)
                    if step % 2:
                        model.zero_grad()
                self.assertTrue(same_bits(losses[0], losses[1]), (kind, step))

    def test_graphs_are_bounded(self):
        for kind in KINDS:
            self.setUp()
            most = recording._GRAPHS if kind == "torch" else pieces._GRAPHS
            call = on_device(lambda x: x * 2 + 1, kind, dynamic=True, **({} if kind == "torch" else {"sizes": []}))
            with torch.no_grad():
                for _ in range(3):
                    for n in range(2, 2 + 2 * most):
                        self.assertTrue(call(torch.ones(n)).equal(torch.full((n,), 3.0)))
                self.assertEqual(sum(report.captures for report in front.report(call)), 0)  # each was dropped before its second call
                for n in range(2, 2 + most):
                    for _ in range(3):
                        self.assertTrue(call(torch.ones(n)).equal(torch.full((n,), 3.0)))
            self.assertEqual(sum(report.captures for report in front.report(call)), most)

    def test_memory_does_not_grow(self):
        for kind in KINDS:
            self.setUp()
            call = on_device(Block().eval(), kind, dynamic=True)
            inputs = [torch.randn(n, 16) for n in (512, 1024, 2048)]
            with torch.no_grad():
                for i in range(500):
                    if i == 30:
                        gc.collect()
                        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    call(inputs[i % 3 if i % 10 == 0 else 0])
            self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 8_000)  # KiB; 470 results of 32 KiB have 15 000


class Refusals(Case):
    def refusal(self, function, *inputs, capture="torch", **options):
        call = torch.compile(function, backend="piecewise", options={**EMULATED, "capture": capture, **options})
        with torch.no_grad():
            for _ in range(3):
                got = [x.clone() for x in inputs]
                want = [x.clone() for x in inputs]
                self.assertTrue(same_bits((function(*want), want), (call(*got), got)))
        (report,) = front.report(call)
        return report.not_captured

    def test_reasons(self):
        self.assertIn("waits.default waits for the device", self.refusal(lambda x: torch.ops.pw_capture_test.waits(x + 1) * 2, torch.randn(8)))
        self.setUp()
        self.assertIn("between the elements", self.refusal(lambda x: x.as_strided((2, 2), (4, 2)) + 1, torch.randn(3, 4)))

    def test_on_the_cpu(self):
        for how in ({"mode": "reduce-overhead"}, {"options": {"capture": "torch"}}, {"options": {"capture": "piecewise"}}):
            self.setUp()
            call = torch.compile(lambda x: x + 1, backend="piecewise", **how)
            self.assertTrue(call(torch.ones(2)).equal(torch.full((2,), 2.0)))
            (report,) = front.report(call)
            self.assertEqual(report.not_captured, "it runs on the CPU")

    def test_mode(self):
        call = torch.compile(lambda x: x + 1, backend=front.Backend(**EMULATED), mode="reduce-overhead")
        for _ in range(3):
            self.assertTrue(call(torch.ones(2)).equal(torch.full((2,), 2.0)))
        self.assertEqual(front.graphs()[0].captures, 1)
        with self.assertRaisesRegex(ValueError, "leave out one of them"):
            Options.of({"capture": "piecewise"}).with_mode("reduce-overhead")

    def test_values_of_options(self):
        for given, message in (
            ({"capture": "all"}, "`capture` must be none, torch or piecewise, not 'all'"),
            ({"capture": "torch", "backend": "cpu"}, "not the backend `cpu`"),
            ({"capture": "torch", "frozen": True}, "frozen weights"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                Options.of(given)
        program = torch.export.export(Block().eval(), (torch.randn(2, 16),))
        with self.assertRaisesRegex(ValueError, "captures no CUDA graphs"):
            front.compile_export(program, capture="torch")


class Scores(nn.Module):
    """Rows of tokens, and operands without rows."""

    def __init__(self):
        super().__init__()
        self.block, self.places = Block(), nn.Parameter(torch.randn(64, 16))

    def forward(self, x):
        return self.block(x + self.places[: x.shape[0]])


PADDED = {
    "pointwise": (lambda x: torch.relu(x) * 2 + 1, ""),
    "softmax of rows": (lambda x: torch.softmax(x, -1), ""),
    "transposed": (lambda x: (x * 2).t(), ""),
    "product": (lambda x: x @ torch.full((16, 8), 0.5), ""),
    "reshaped": (lambda x: (x + 1).view(-1, 4) * 3, ""),
    "split heads": (lambda x: (x + 1).view(x.shape[0], 4, 4).transpose(0, 1) * 2, ""),
    "without the last": (lambda x: x[:-1] * 2, ""),
    "every other": (lambda x: x[::2] * 2, ""),
    "positions": (lambda x: x * torch.arange(x.shape[0])[:, None], ""),
    "after rows of a weight": (lambda x: torch.cat([torch.ones(3, 16), x * 2]), ""),
    "two results": (lambda x: (x.sum(-1), x.amax(-1, keepdim=True)), ""),
    "a size": (lambda x: (x * 2, x.shape[0] + 1), ""),
    "sum": (lambda x: x.sum(0), "reduces over dim"),
    "softmax over tokens": (lambda x: torch.softmax(x, 0), "reduces over dim"),
    "product over tokens": (lambda x: x.t() @ x, "sums over dim"),
    "before other rows": (lambda x: torch.cat([x * 2, torch.ones(3, 16)]), "appends to dim"),
    "the last": (lambda x: x[-1:] * 2, "starts at row"),
    "other rows": (lambda x: (x * 2).t().reshape(-1) + 1, "forms other rows"),
}


class Sizes(Case):
    """Calls at capture sizes: the rows of launched calls, whatever the rows of padding contain."""

    def run(self, result=None):
        """Fills padding with NaN."""
        with unittest.mock.patch.object(
            pieces, "_buffer", lambda extents, dtype, place: torch.full(extents, torch.nan if dtype.is_floating_point else 7, dtype=dtype)
        ):
            return super().run(result)

    def calls(self, function, counts=(5, 6, 7, 8, 3, 8, 4, 5), sizes=(4, 8), dynamic=True, width=16, **options):
        """Compares captured and launched calls; returns the report."""
        call, launched = (on_device(function, kind, dynamic, **more) for kind, more in (("piecewise", {"sizes": sizes, **options}), ("none", {})))
        with torch.no_grad():
            for n in counts:
                x = torch.randn(n, width)
                self.assertTrue(same_bits(launched(x), call(x)), n)
        return self.reported(call)

    @staticmethod
    def reported(call):
        """The report of the captured call, without that of the launched one, which has the same code."""
        return [report for report in front.report(call) if report.options.capture == "piecewise"][-1]

    def test_proved_and_not(self):
        for name, (function, why) in PADDED.items():
            with self.subTest(name):
                self.setUp()
                report = self.calls(function)
                self.assertIn(why, str(report))
                self.assertEqual(bool(report.not_padded), bool(why), report)
                self.assertEqual((report.captures > 0, report.not_captured), (True, ""), report)
                self.assertEqual(report.padded, 0 if why else 3, report)  # 6, 7, 5

    def test_without_the_proof(self):
        """The rows of padding are not rows of zeros: unproved graphs would return other numbers."""
        with unittest.mock.patch.object(padding._piecewise, "why_not_padded", lambda *_: None):
            for name in ("sum", "softmax over tokens", "product over tokens", "before other rows", "other rows"):
                self.setUp()
                with self.assertRaises(AssertionError, msg=name):
                    self.calls(PADDED[name][0])

    def test_default_sizes(self):
        """They are those of `pwr plan`; above the largest, calls are launched."""
        report = self.calls(lambda x: x * 2 + 1, (3, 4, 9, 15, 16, 100, 101, 512, 511, 600, 600, 600), None)
        self.assertEqual((report.captures, report.padded), (4, 3), report)  # 4, 16, 104, 512

    def test_guards(self):
        """Sizes at which PyTorch would call another graph are not used."""
        report = self.calls(Scores().eval(), (40, 50, 60, 60, 60), (48, 128))
        self.assertEqual((report.captures, report.padded), (0, 0), report)
        self.setUp()
        report = self.calls(lambda x: x * 2 if x.shape[0] % 4 == 0 else x * 3, (4, 8, 8, 12, 12), (10, 12), width=3)
        self.assertEqual((report.captures, report.padded), (1, 2), report)  # 12 only

    def test_beginning_of_a_longer_tensor(self):
        """A slice that the next size would read beyond the end is not padded."""
        call, launched = (
            on_device(lambda x, y: x + y[: x.shape[0]], kind, True, **more) for kind, more in (("piecewise", {"sizes": [8]}), ("none", {}))
        )
        with torch.no_grad():
            for n, m in ((5, 7), (5, 7), (5, 7), (5, 9), (6, 9), (7, 9), (7, 9)):
                x, y = torch.randn(n, 4), torch.randn(m, 4)
                self.assertTrue(same_bits(launched(x, y), call(x, y)), (n, m))
        report = self.reported(call)
        self.assertEqual((report.captures, report.padded, report.not_padded), (1, 3, {}), report)

    def test_several_symbols(self):
        call, launched = (
            on_device(lambda x: torch.softmax(x * 2, -1), kind, True, **more) for kind, more in (("piecewise", {"sizes": [8]}), ("none", {}))
        )
        with torch.no_grad():
            for n, m in ((5, 4), (6, 4), (7, 4), (7, 5), (5, 5), (4, 6)):
                x = torch.randn(n, m)
                self.assertTrue(same_bits(launched(x), call(x)), (n, m))
        report = self.reported(call)
        self.assertEqual((report.captures, report.padded, report.not_padded), (2, 3, {}), report)

    def test_at(self):
        report = self.calls(lambda x: torch.relu(x * 2) + x, at=["aten.relu"])
        self.assertEqual((report.left, len(report.parts)), ({"aten.relu.default": 1}, 2), report)
        self.assertEqual(report.reasons, {"aten.relu.default: the option `at` names it": 1})
        self.assertEqual((report.captures, report.padded), (4, 6), report)
        for names, message in ((["aten.tanhh"], "`aten.tanhh`, which is not an op"), (["tanh"], "`tanh`, which is not an op")):
            with self.assertRaisesRegex(Exception, message):
                on_device(lambda x: x + 1, "piecewise", at=names)(torch.ones(2))

    def test_static_results(self):
        call = on_device(lambda x: (x * 2, (x + 1).t()), "piecewise", True, sizes=[8], outputs="static")
        with torch.no_grad():
            call(torch.ones(5, 4))
            first, second = call(torch.ones(6, 4))
            self.assertTrue(first.equal(torch.full((6, 4), 2.0)) and second.equal(torch.full((4, 6), 2.0)))
            again, _ = call(torch.zeros(7, 4))
            self.assertEqual(first.data_ptr(), again.data_ptr())
            self.assertTrue(first.equal(torch.zeros(6, 4)))
            self.assertTrue(call(again)[0].equal(torch.zeros(7, 4)))
        (report,) = front.report(call)
        self.assertEqual((report.captures, report.padded), (1, 3))

    def test_strides_of_one_element(self):
        """A dim of one element has the stride of a tensor without padding, in launched, static, and copied results."""
        for outputs in ("copied", "static"):
            self.setUp()
            call = on_device(lambda x: x * 2, "piecewise", sizes=[8], outputs=outputs)
            with torch.no_grad():
                for n in (5, 6, 7, 7):
                    x = torch.randn(1, n, 4)
                    torch._dynamo.mark_dynamic(x, 1)
                    self.assertTrue(same_bits(x * 2, call(x)))

    def test_results_that_gradients_need(self):
        """A forward graph copies its results: a second forward does not change the first one's gradients."""
        model = Block()
        call = on_device(model, "piecewise", outputs="static")
        xs = [torch.randn(3, 16) for _ in range(5)]
        losses = [call(x).square().sum() for x in xs]
        for x, loss in zip(xs, losses):
            want = torch.autograd.grad(model(x).square().sum(), model.up.weight)[0]
            self.assertLessEqual(compiled.difference(want, torch.autograd.grad(loss, model.up.weight)[0]), compiled.CLOSE)

    def test_random_sizes(self):
        rng = random.Random(SETTINGS.seed)
        print(f"--seed {SETTINGS.seed}", flush=True)
        counts = [rng.randrange(2, 41) for _ in range(60)]
        report = self.calls(Block().eval(), counts, tuple(sorted(rng.sample(range(2, 41), 5))))
        self.assertGreater(report.padded, 5)

    def test_values_of_options(self):
        for given, message in (
            ({"sizes": [4]}, '`sizes` needs "capture": "piecewise"'),
            ({"capture": "torch", "at": "aten.mm"}, '`at` needs "capture": "piecewise"'),
            ({"capture": "none", "outputs": "static"}, '`outputs` needs "capture": "piecewise"'),
            ({"capture": "piecewise", "sizes": [0]}, "`sizes` must be a list of positive token counts"),
            ({"capture": "piecewise", "sizes": 8}, "`sizes` must be a list of positive token counts"),
            ({"capture": "torch", "mode": "full"}, '`mode` needs "capture": "piecewise"'),
            ({"capture": "piecewise", "mode": "none"}, "`mode` must be piecewise, full, full_decode_only or full_and_piecewise, not 'none'"),
            ({"capture": "piecewise", "outputs": "all"}, "`outputs` must be copied or static, not 'all'"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                Options.of(given)
        self.assertEqual(Options.of({"capture": "piecewise", "sizes": [8, 4, 8]}).sizes, (4, 8))


class Whole(Case):
    """Graphs that are captured with PyTorch's ops in them."""

    COUNTS = (8, 5, 8, 5, 8, 6, 9, 9, 9)

    @staticmethod
    def function(x):
        return torch.ops.pw_capture_test.odd(x * 2).relu() + x

    def calls(self, counts=COUNTS, function=function, **options):
        """Compares launched calls with captured ones; returns the report, and the Python calls of parts at each size."""
        call, launched = on_device(function, "piecewise", True, sizes=[4, 8], **options), on_device(function, "none", True)
        runs, original, at = {}, Call.__call__, None

        def counting(part, *given):
            if at is not None:
                runs[at] = runs.get(at, 0) + 1
            return original(part, *given)

        with torch.no_grad(), unittest.mock.patch.object(Call, "__call__", counting):
            for n in counts:
                x, at = torch.rand(n, 16), None
                want = launched(x)
                at = n
                self.assertTrue(same_bits(want, call(x)), n)
        return Sizes.reported(call), runs

    def test_modes(self):
        for mode, captures, padded, runs in (
            ("piecewise", 2, 6, {8: 6, 5: 4, 6: 2, 9: 6}),
            ("full_and_piecewise", 3, 6, {8: 4, 5: 4, 6: 2, 9: 6}),
            ("full_decode_only", 1, 0, {8: 4, 5: 4, 6: 2, 9: 6}),
            ("full", 3, 0, {8: 4, 5: 4, 6: 2, 9: 4}),
        ):
            self.setUp()
            report, counted = self.calls(mode=mode)
            self.assertEqual((report.captures, report.padded, counted), (captures, padded, runs), mode)
            self.assertEqual((report.in_parts, report.not_captured), ("", ""))

    def test_reasons(self):
        """A graph that cannot be captured whole is captured in parts, or launched."""
        for mode, in_parts, captures in (("full_and_piecewise", True, 2), ("full", False, 0), ("full_decode_only", False, 0)):
            for op, options, why in (
                ("waits", {}, "waits.default waits for the device"),
                ("odd", {"at": "pw_capture_test.odd"}, "the option `at` names pw_capture_test.odd.default"),
            ):
                self.setUp()
                of = getattr(torch.ops.pw_capture_test, op)
                report, _ = self.calls(function=lambda x: of(x + 1) * 2, counts=(8, 8, 8), mode=mode, **options)
                for text, expected in ((report.in_parts, in_parts), (report.not_captured, not in_parts)):
                    self.assertEqual(why in text, expected, report)
                self.assertIn("captured in parts: " if in_parts else "not captured: ", str(report))
                self.assertEqual(report.captures, captures)

    def test_static_results(self):
        call = on_device(self.function, "piecewise", outputs="static")
        with torch.no_grad():
            results = [call(torch.full((2, 3), float(i))) for i in range(1, 5)]
        self.assertEqual(results[2].data_ptr(), results[3].data_ptr())
        self.assertTrue(results[2].equal(torch.full((2, 3), 20.0)))
        self.assertTrue(results[0].equal(torch.full((2, 3), 5.0)))


class Decoder(nn.Module):
    """A layer with a cache that it writes, and an op of one's own that may raise."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(32, 8))
        self.block, self.narrow, self.wide = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 16)

    def forward(self, x, other, sign):
        rows = x.shape[0]
        y = torch.relu(self.block(x)) + other * 0.5
        self.seen[:rows] += y
        y = torch.ops.pw_capture_test.odd(y.abs() * sign)
        y = torch.softmax(self.wide(y), -1)[:, :8] * self.narrow(y)
        return y, y.t(), self.seen.sum(0), x, y[:1]


def laid_out(rng, n):
    """A tensor of n rows of 8 in one of several layouts."""
    kind = rng.randrange(5)
    if kind == 0:
        return torch.randn(8, n).t()
    if kind == 1:
        return torch.randn(n, 11)[:, 2:10]
    if kind == 2:
        return torch.randn(8 * n + 1)[1:].view(n, 8)
    if kind == 3:
        return torch.randn(1, 8).expand(n, 8)
    return torch.randn(n, 8)


class Sequences(Case):
    """Random sequences of calls."""

    def sequence(self, seed, kind, steps=8):
        rng = random.Random(seed)
        model = self.model
        state = copy.deepcopy(model.state_dict())
        torch.manual_seed(seed)
        for step in range(steps):
            n = rng.randrange(1, 6) if rng.randrange(3) else 3
            x = laid_out(rng, n)
            other = x if rng.randrange(4) == 0 else x.flip(0)[:n] if rng.randrange(4) == 0 else laid_out(rng, n)
            sign = torch.tensor(-1.0 if rng.randrange(6) == 0 else 1.0)
            message = f"--seed {seed}, {kind}, step {step}, {n} rows"
            outcomes = []
            for call in (self.launched, self.calls[kind]):
                with torch.no_grad():
                    for name, value in state.items():
                        model.state_dict()[name].copy_(value)
                    try:
                        out = call(x, other, sign)
                    except ValueError as why:
                        out = str(why)
                    outcomes.append((out, copy.deepcopy(model.state_dict())))
            if isinstance(outcomes[0][0], str) or isinstance(outcomes[1][0], str):
                self.assertEqual(outcomes[0][0], outcomes[1][0], message)
            else:
                self.assertTrue(same_bits(outcomes[0], outcomes[1]), message)
                self.assertTrue(outcomes[1][0][3] is x, message)
            state = outcomes[0][1]
            if rng.randrange(8) == 0:
                with torch.no_grad():
                    state["wide.weight"].mul_(0.9)

    def setUp(self):
        super().setUp()
        self.model = Decoder().eval()
        self.launched = on_device(self.model, "none", dynamic=True)
        self.calls = {kind: on_device(self.model, kind, dynamic=True) for kind in KINDS}

    def test_sequences(self):
        print(f"--seed {SETTINGS.seed}", flush=True)
        for i in range(SETTINGS.sequences):
            self.sequence(SETTINGS.seed + i, KINDS[(SETTINGS.seed + i) % len(KINDS)])
        for kind in KINDS if SETTINGS.sequences > 20 else ():
            reports = front.report(self.calls[kind])
            self.assertGreater(sum(report.captures for report in reports if is_of(report, kind)), 3)

    def test_threads(self):
        """Two threads with changing sizes get their own numbers."""
        print(f"--seed {SETTINGS.seed}", flush=True)
        model = Block().eval()
        launched, calls = on_device(model, "none", dynamic=True), [on_device(model, kind, dynamic=True) for kind in KINDS]
        inputs = [torch.randn(n, 16) for n in range(2, 9)]
        with torch.no_grad():
            want = [launched(x) for x in inputs]
            for call in calls:
                call(inputs[0]), call(inputs[1])
        errors = []

        def run(thread):
            rng = random.Random(SETTINGS.seed + thread)
            torch._dynamo.config.recompile_limit = 1000  # a thread has settings of its own
            try:
                with torch.no_grad():
                    for i in range(150):
                        at = rng.randrange(len(inputs))
                        got = rng.choice(calls)(inputs[at])
                        assert same_bits(want[at], got), (SETTINGS.seed, thread, i, at)
            except BaseException as error:  # noqa: B036 (raised again)
                errors.append(error)

        threads = [threading.Thread(target=run, args=(thread,)) for thread in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


def of_corpus(models):
    class Corpus(compiled.Training):
        test_block = None

        def check(self, name, dynamic):
            """Compares launched and captured calls of a model, some of them with other sizes."""
            model, inputs, dims = models.R[name]()
            model.eval()
            for kind in SETTINGS.kinds:
                self.setUp()
                launched, call = on_device(model, "none", dynamic), on_device(model, kind, dynamic)
                for size in (None, 5, None, 5, None, 5, 2) if dynamic and dims else (None, None, None):
                    given = inputs if size is None else sized(inputs, dims, size)
                    with torch.no_grad():
                        want, got = launched(*[x.clone() for x in given]), call(*[x.clone() for x in given])
                        with launching():
                            padded = call(*[x.clone() for x in given])
                    self.assertTrue(same_bits(padded, got), (name, kind, size))
                    if kind == "torch" or not dynamic:
                        self.assertTrue(same_bits(want, got), (name, kind, size))
                    else:  # a product of other rows
                        self.assertLessEqual(max(map(compiled.difference, tree_leaves(want), tree_leaves(got))), compiled.CLOSE)
                graphs = [graph for graph in front.graphs() if is_of(graph, kind)]
                self.assertEqual([graph.not_captured for graph in graphs], [""] * len(graphs), name)
                self.assertGreater(sum(graph.captures for graph in graphs), 0, name)

        def test_models(self):
            for name in SETTINGS.models or models.R:
                for dynamic in (False, True):
                    with self.subTest(model=name, dynamic=dynamic):
                        self.check(name, dynamic)

        def test_training(self):
            for name in ("mlp", "swiglu", "nanogpt", "llama"):
                for kind in SETTINGS.kinds:
                    with self.subTest(model=name, kind=kind):
                        self.setUp()
                        model, inputs, _ = models.R[name]()
                        self.options = {**EMULATED, **captured_as(kind)}
                        self.assertLessEqual(self.steps(model, inputs), compiled.CLOSE)

    return Corpus


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=compiled.ROOT.parent / "shared/peers/corpus/models.py")
    parser.add_argument("--seed", type=int, default=SETTINGS.seed)
    parser.add_argument("--sequences", type=int, default=SETTINGS.sequences)
    parser.add_argument("--models", nargs="*", default=SETTINGS.models, help="of the corpus; without a name: all")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="for the corpus")
    parser.add_argument("tests", nargs="*", metavar="TEST")
    arguments = parser.parse_args()
    vars(SETTINGS).update(vars(arguments))
    warnings.filterwarnings("ignore")
    if arguments.corpus.exists():
        sys.path.insert(0, str(arguments.corpus.parent))
        sys.modules["__main__"].Corpus = of_corpus(importlib.import_module(arguments.corpus.stem))
    else:
        print(f"SKIPPED: the corpus of models: there is no {arguments.corpus}", file=sys.stderr)
    unittest.main(argv=[sys.argv[0], *arguments.tests], verbosity=2)


if __name__ == "__main__":
    main()
