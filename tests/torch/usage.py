#!/usr/bin/env python3
"""The ways people use a backend of torch.compile: saved functions, optimizers, options, regions, and what reports say of a second model."""
import copy
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import compiled
import inductor
import piecewise
from compiled import CLOSE, ROOT, Block, Case, difference
from piecewise import pytorch as front
from piecewise.pytorch.decompositions import decompositions


class Options(Case):
    def refused(self, said, **how):
        torch._dynamo.reset()
        with self.subTest(str(how)), self.assertRaisesRegex(Exception, said):
            torch.compile(lambda x: x + 1, **({"backend": "piecewise"} | how))(torch.ones(2))

    def test_modes(self):
        for mode in ("max-autotune", "fastest"):
            self.refused(f"piecewise has no mode `{mode}`", mode=mode)
            self.refused(f"piecewise has no mode `{mode}`", mode=mode, backend=front.Backend())
        x = torch.ones(2)
        self.assertTrue(torch.compile(lambda x: x + 1, backend="piecewise", mode="default")(x).equal(x + 1))

    def test_names(self):
        self.refused("no option `pipelin`.*did you mean `pipeline`", options={"pipelin": "o2"})
        self.refused("pass them to it", options={"check": True}, backend=front.Backend())

    def test_values(self):
        for name, value, said in (
            ("check", "yes", "`check` must be True or False, not 'yes'"),
            ("frozen", 1, "`frozen` must be True or False"),
            ("prove", None, "`prove` must be True or False"),
            ("pipeline", None, "`pipeline` must be a text"),
            ("backend", 3, "`backend` must be a text"),
            ("rules", 5, "`rules` must be a path"),
            ("rules", ["llm", 5], "`rules` must be a path"),
            ("params", 5, "`params` must be a dict"),
            ("params", {"tp": [2]}, "`params` must be a dict"),
            ("report", 5, "`report` must be a path"),
            ("capture", "all", "`capture` must be none, torch or piecewise, not 'all'"),
        ):
            self.refused(said, options={name: value})
            with self.assertRaisesRegex(ValueError, said):
                front.Backend(**{name: value})
        self.assertEqual(front.Backend(rules=Path("a.pwr"), report=None), front.Backend(rules=["a.pwr"]))


class Saved(Case):
    def test_programs_are_pickled(self):
        module, x = Block().eval(), torch.randn(4, 16)
        with torch.no_grad():
            for frozen in (False, True):
                program = front.compile_export(torch.export.export(module, (x,)), frozen=frozen)
                for again in (pickle.loads(pickle.dumps(program)), copy.deepcopy(program)):
                    self.assertLessEqual(difference(module(x), again(x)), CLOSE)

    def test_aot_compile(self):
        model, x = Block().eval(), torch.randn(4, 16)
        with torch.no_grad(), torch._dynamo.config.patch(enable_aot_compile=True), tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "saved"))
            function = torch.compile(model, fullgraph=True, backend="piecewise", options={"frozen": True}).forward.aot_compile(((x,), {}))
            self.assertLessEqual(difference(model(x), function(model, x)), CLOSE)
            function.save_compiled_function(path)
            torch._dynamo.reset()
            with open(path, "rb") as file:
                again = torch.compiler.load_compiled_function(file)
            y = torch.randn(4, 16)
            self.assertLessEqual(difference(model(y), again(model, y)), CLOSE)
            self.assertEqual([report.refused for report in front.graphs()], ["", ""])
            for report in front.graphs():
                self.assertIn("2 weights packed once", " ".join(report.summary))

    def test_aot_compile_on_a_device(self):
        """Saved and loaded for the emulator, launched and captured."""
        for capture in ("none", "torch", "piecewise"):
            torch._dynamo.reset()
            options = {"backend": "cuda", "driver": "host", "capture": capture}
            model, x = Block().eval(), torch.randn(4, 16)
            with torch.no_grad(), torch._dynamo.config.patch(enable_aot_compile=True), tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder, "saved"))
                torch.compile(model, fullgraph=True, backend="piecewise", options=options).forward.aot_compile(((x,), {})).save_compiled_function(
                    path
                )
                front.forget()
                with open(path, "rb") as file:
                    again = torch.compiler.load_compiled_function(file)
                for _ in range(3):
                    y = torch.randn(4, 16)
                    self.assertLessEqual(difference(model(y), again(model, y)), CLOSE)
                (report,) = front.graphs()
                self.assertEqual((report.refused, report.captures), ("", capture != "none"))
                self.assertIn("cuda on the host", report.summary[0])

    def test_aot_compile_in_training_and_at_any_size(self):
        def f(x, w):
            return F.gelu(x @ w).softmax(-1) * x.shape[0]

        w = torch.randn(6, 5)
        with torch._dynamo.config.patch(enable_aot_compile=True), tempfile.TemporaryDirectory() as folder:
            x = torch.randn(4, 6, requires_grad=True)
            torch._dynamo.mark_dynamic(x, 0)
            path = str(Path(folder, "saved"))
            torch.compile(f, fullgraph=True, backend="piecewise").aot_compile(((x, w), {})).save_compiled_function(path)
            with open(path, "rb") as file:
                again = torch.compiler.load_compiled_function(file)
            for rows in (4, 9):
                both = []
                x = torch.randn(rows, 6)
                for call in (f, again):
                    given = x.clone().requires_grad_(True)
                    y = call(given, w)
                    y.square().sum().backward()
                    both.append((y.detach(), given.grad))
                self.assertLessEqual(difference(*both), CLOSE)

    def test_another_process(self):
        script = """
            import sys, torch
            from piecewise import pytorch as front
            def f(x):
                return torch.nn.functional.gelu(x).softmax(-1)
            torch._dynamo.config.enable_aot_compile = True
            x = torch.linspace(-1, 1, 24).view(4, 6)
            if sys.argv[2] == "save":
                torch.compile(f, fullgraph=True, backend="piecewise").aot_compile(((x,), {})).save_compiled_function(sys.argv[1])
            else:
                with open(sys.argv[1], "rb") as file:
                    again = torch.compiler.load_compiled_function(file)
                print(torch.allclose(again(x), f(x), atol=1e-6), front.graphs()[0].warm)
        """
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"PWR_CACHE_DIR": folder + "/cache"}
            for what in ("save", "load"):
                run = [sys.executable, "-c", textwrap.dedent(script), str(Path(folder, "saved")), what]
                said = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=True, env=environment).stdout
        self.assertEqual(said.split(), ["True", "True"])


class Reports(Case):
    def test_a_second_model_of_a_class(self):
        models = [Block().eval() for _ in range(3)]
        functions = [torch.compile(model, backend="piecewise") for model in models]
        x = torch.randn(4, 16)
        with torch.no_grad():
            for function, model in zip(functions[:2], models):
                self.assertLessEqual(difference(model(x), function(x)), CLOSE)
        self.assertEqual(len(front.graphs()), 1)
        for function, model in zip(functions[:2], models):
            self.assertEqual(len(front.report(function)), 1)
            self.assertEqual(len(front.report(model)), 1)
        self.assertEqual(len(front.report(functions[2])), 0)  # it was not called
        self.assertEqual(front.explain(functions[1], "add_rms"), front.explain(functions[0], "add_rms"))

    def test_models_of_other_sizes(self):
        class Stack(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.up = nn.Linear(width, width)

            def forward(self, x):
                return F.gelu(self.up(x))

        models = [Stack(width).eval() for width in (4, 8)]
        functions = [torch.compile(model, backend="piecewise", dynamic=False) for model in models]
        with torch.no_grad():
            for function, width in zip(functions, (4, 8)):
                function(torch.randn(2, width))
        self.assertEqual(len(front.graphs()), 2)
        self.assertEqual([len(front.report(function)) for function in functions], [1, 1])

    def test_in_training(self):
        models = [Block() for _ in range(2)]
        functions = [torch.compile(model, backend="piecewise") for model in models]
        for function in functions:
            function(torch.randn(4, 16)).sum().backward()
        self.assertEqual([report.kind for report in front.report(functions[1])], ["forward", "backward"])


class Optimizers(Case):
    def trained(self, make, steps=4):
        """Returns the weights after some steps, in PyTorch and compiled, and the reports of the compiled step."""
        torch._dynamo.reset()
        front.forget()
        models = [Block()]
        models.append(copy.deepcopy(models[0]))
        x = torch.randn(4, 16)
        for model, backend in zip(models, (None, "piecewise")):
            optimizer = make(list(model.parameters()))
            step = torch.compile(optimizer.step, backend=backend) if backend else optimizer.step
            for _ in range(steps):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                step()
        self.assertLessEqual(difference(models[0].state_dict(), models[1].state_dict()), CLOSE)
        return front.graphs()

    def test_on_lists_of_tensors(self):
        kinds = {
            "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, foreach=True),
            "adam": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True, amsgrad=True),
            "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
            "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, foreach=True, centered=True, momentum=0.5),
            "radam": lambda p: torch.optim.RAdam(p, lr=0.01, foreach=True),
            "nadam": lambda p: torch.optim.NAdam(p, lr=0.01, foreach=True),
            "adamax": lambda p: torch.optim.Adamax(p, lr=0.01, foreach=True),
            "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.1, foreach=True),
            "rprop": lambda p: torch.optim.Rprop(p, lr=0.01, foreach=True),
            "asgd": lambda p: torch.optim.ASGD(p, lr=0.01, foreach=True),
            "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01, foreach=True),
            "one_by_one": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
        }
        for name, make in kinds.items():
            with self.subTest(name):
                reports = self.trained(make)
                self.assertTrue(reports)
                for report in reports:
                    self.assertEqual(report.refused, "")
                    self.assertGreaterEqual(report.taken, 0.9 * report.ops, str(report))

    def test_each_op_on_lists(self):
        """Taken apart, they are PyTorch's own."""
        table = {op: f for op, f in decompositions().items() if "_foreach_" in str(op)}
        self.assertGreater(len(table), 60)
        xs = [torch.rand(3, 3) + 0.5, torch.rand(2, 2) + 0.5]
        ys = [x.flip(0) + 0.1 for x in xs]
        values = {"Tensor": torch.tensor(1.5), "List[number]": [1.5, 2.0], "bool": False, "Optional[int]": None}
        for op, function in table.items():
            arguments = []
            for argument in op._schema.arguments:
                kind = str(argument.type)
                if not argument.kwarg_only:
                    lists = sum(isinstance(a, list) and isinstance(a[0], torch.Tensor) for a in arguments)
                    arguments.append((ys if lists else xs) if kind == "List[Tensor]" else values.get(kind, 1.5))
            with self.subTest(str(op)):
                self.assertLessEqual(difference(op(*arguments), function(*arguments)), 1e-6)

    def test_clipped_gradients(self):
        def f(xs):
            norms = torch._foreach_norm(xs)
            total = torch.linalg.vector_norm(torch.stack(norms))
            return torch._foreach_mul(xs, 1 / (total + 1e-6))

        xs = [torch.randn(3), torch.randn(4, 2)]
        one = torch.compile(f, backend="piecewise")
        with torch.no_grad():
            self.assertLessEqual(difference(f(xs), one(xs)), CLOSE)
        (report,) = front.report(one)
        self.assertEqual(report.left, {})


class Layers(Case):
    """Compiled one by one: they share a graph, and each keeps its own packed weights."""

    def test_nothing_is_packed_again(self):
        model = nn.Sequential(*[Block() for _ in range(4)]).eval()
        plain = copy.deepcopy(model)
        for layer in model:
            layer.compile(backend="piecewise", options={"frozen": True})
        x = torch.randn(4, 16)
        with torch.no_grad():
            self.assertLessEqual(difference(plain(x), model(x)), CLOSE)
            self.assertEqual(len(front.graphs()), 1)
            made = []
            freeze = piecewise.pytorch.frozen.FrozenWeights._renewed
            piecewise.pytorch.frozen.FrozenWeights._renewed = lambda *a, **k: (made.append(True), freeze(*a, **k))[1]
            self.addCleanup(setattr, piecewise.pytorch.frozen.FrozenWeights, "_renewed", freeze)
            for _ in range(3):
                self.assertLessEqual(difference(plain(x), model(x)), CLOSE)
            self.assertEqual(made, [])
            for one in (plain, model):
                one[2].up.weight.mul_(0.5)
            self.assertLessEqual(difference(plain(x), model(x)), CLOSE)
            self.assertEqual(len(made), 1)


class MeasuredKernels(Case):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.image = nn.Linear(256, 768), nn.Conv2d(8, 16, 3, padding=1)

        def forward(self, x):
            q, k, v = self.up(x).view(-1, 64, 4, 3, 64).permute(3, 0, 2, 1, 4)
            return F.scaled_dot_product_attention(q, k, v), self.image(x.view(-1, 8, 64, 32))

    def test_equal_calls_have_equal_bits_and_times_are_reported(self):
        for dtype in (torch.float32, torch.bfloat16):
            torch._dynamo.reset()
            model, x = self.Mixed().eval().to(dtype), torch.randn(8, 64, 256).to(dtype)
            function = torch.compile(model, backend="piecewise")
            with torch.no_grad():
                first = function(x)
                self.assertLessEqual(difference(model(x), first), CLOSE if dtype == torch.float32 else 2e-2)
                for _ in range(3):
                    self.assertEqual(difference(first, function(x)), 0)
            kernels = front.report(function)[0].kernels
            for op in ("product of ", "attention of ", "convolution of "):
                rows = [line for line in kernels if line.startswith(op)]
                self.assertTrue(rows, kernels)
                for line in rows:
                    self.assertRegex(line, r"threads?: (\w+(, (products|packed))? [\d.e-]+ ms(, )?)+$|the processor was busy$")

    def test_frozen_products(self):
        """Later calls have other numbers of rows, for which no weight was packed."""
        model = nn.Sequential(nn.Linear(256, 700), nn.GELU(), nn.Linear(700, 300, bias=False)).eval()
        function = torch.compile(model, backend="piecewise", dynamic=True, options={"frozen": True})
        with torch.no_grad():
            for rows in (128, 40, 1, 128):
                x = torch.randn(rows, 256)
                first = function(x)
                self.assertLessEqual(difference(model(x), first), CLOSE)
                self.assertEqual(difference(first, function(x)), 0)
        kernels = "\n".join(front.report(function)[0].kernels)
        self.assertIn("frozen matrix 128 × 256 × 512, bias, gelu", kernels)

    def test_deterministic_programs_measure_nothing(self):
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        function = torch.compile(nn.Linear(256, 1000), backend="piecewise")
        with torch.no_grad():
            function(torch.randn(300, 256))
        self.assertEqual(front.report(function)[0].kernels, [])

    def test_a_second_process_measures_nothing(self):
        script = """
            import torch
            from piecewise import pytorch as front
            function = torch.compile(torch.nn.Linear(256, 512), backend="piecewise")
            with torch.no_grad():
                function(torch.ones(128, 256))
            print(*front.report(function)[0].kernels)
        """
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"PWR_CACHE_DIR": folder}
            run = [sys.executable, "-c", textwrap.dedent(script)]
            first, second = (subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=True, env=environment).stdout for _ in range(2))
        self.assertIn("product of f32 with bias 128 × 256 × 512, b by columns", first)
        if "busy" not in first:
            self.assertEqual(first, second)


class NearMisses(compiled.WithRules):
    RULES = """
        op pw_test.rms(x: T[*b, d], w: T[d]) {eps: float} -> y: T[*b, d]
        rule norm { y = w * (x * rsqrt(mean(pow(x, 2)){dim = -1, keepdim = true} + eps))  =>  y = pw_test.rms(x, w){eps = eps} }
        pass norms = greedy { norm }
        pipeline fuse { norms }
    """

    def done(self, function, *inputs):
        one = front.inductor_pass(self.rules(self.RULES), "fuse")
        compiled_one = torch.compile(function, options={"post_grad_custom_pre_pass": one, "fx_graph_cache": False})
        with torch.no_grad():
            compiled_one(*inputs)
        return one.done

    def test_a_rule_without_casts_in_bf16(self):
        def norm(x, w):
            h = x.float()
            return w * (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

        (done,) = self.done(norm, torch.randn(4, 8).bfloat16(), torch.randn(8).bfloat16())
        self.assertEqual(done.rewrites, {})
        self.assertTrue(done.near_misses["norm"])
        self.assertIn("norm: no match", str(done))
        self.assertRegex(str(done), r"the cast %\w+ is in between")

    def test_a_rule_that_matches(self):
        (done,) = self.done(inductor.Inductor.norm, torch.randn(4, 8), torch.randn(8))
        self.assertEqual((done.rewrites, done.near_misses), ({"norms": 1}, {}))


if __name__ == "__main__":
    compiled.main()
