#!/usr/bin/env python3
"""Programs of torch.export beside the modules that they were exported from: numbers, weights, writes, files; and what decorators compile."""
import copy
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import typing as t
import unittest
import warnings
from pathlib import Path

import torch
from torch import nn

import piecewise
from compiled import CLOSE, ROOT, difference
from piecewise import pytorch as front

EMULATED = {"backend": "cuda", "driver": "host"}
BATCH = torch.export.Dim("batch", min=2, max=64)


class Block(nn.Module):
    """A norm, a product, a residual; keywords, a tuple and a constant in what it returns."""

    def __init__(self):
        super().__init__()
        self.norm, self.product = nn.RMSNorm(8), nn.Linear(8, 8)

    def forward(self, x, *, scale):
        return {"y": x + self.product(self.norm(x)) * scale, "rest": (x.T, 3)}


class Counts(nn.Module):
    """A buffer that each call writes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(8))

    def forward(self, x):
        self.sum += x.sum(0)
        return x * self.sum


class Sorted(nn.Module):
    """A call that PyTorch runs."""

    def forward(self, x):
        return torch.linalg.qr(x)[1] + 1


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def programs():
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    return {
        "block": (Block(), (x,), {"scale": torch.tensor(0.5)}, {"x": {0: BATCH}, "scale": None}),
        "counts": (Counts(), (x,), {}, {"x": {0: BATCH}}),
        "static": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), (x,), {}, None),
        "left": (Sorted(), (x,), {}, None),
    }


class Programs(unittest.TestCase):
    def test_numbers_and_files(self):
        """Fresh and from a file, in this process and in another, at the exported batch and at others."""
        for name, (module, args, kwargs, dims) in programs().items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder, torch.no_grad():
                program = front.compile_export(torch.export.export(module, args, kwargs, dynamic_shapes=dims))
                self.assertEqual([node["op"] for node in json.loads(program.graph.json())["nodes"] if "qr" in node["op"]] != [], name == "left")
                path = str(Path(folder, "program.pwt"))
                program.save(path)
                again = front.load_compiled(path)
                for batch in (4, 2, 64) if dims else (4, 4):
                    x = torch.randn(batch, 8)
                    want = module(x, **kwargs)
                    for one in (program, again):
                        self.assertLessEqual(difference(want, one(x, **kwargs)), CLOSE)

    def test_on_a_device(self):
        """The emulator runs a program, fresh, from a file, and pickled, and refuses what it has no kernels for."""
        for name, (module, args, kwargs, dims) in programs().items():
            exported = torch.export.export(module, args, kwargs, dynamic_shapes=dims)
            if name == "left":
                with self.assertRaisesRegex(piecewise.Error, "linalg_qr.*cannot run on the device: the device has no kernel for it"):
                    front.compile_export(exported, **EMULATED)
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder, torch.no_grad():
                program = front.compile_export(exported, **EMULATED)
                self.assertIn("cuda on the host", program.summary[0])
                path = str(Path(folder, "program.pwt"))
                program.save(path)
                again = front.load_compiled(path), copy.deepcopy(front.load_compiled(path))
                for batch in (4, 2, 64) if dims else (4, 4):
                    x = torch.randn(8 * batch + 1)[1:].view(batch, 8)  # at an address that kernels cannot load vectors from
                    want = module(x, **kwargs)
                    for one in (program, *again):
                        self.assertLessEqual(difference(want, one(x, **kwargs)), CLOSE)

    def test_frozen_on_a_device(self):
        module = Function(lambda x: x * torch.exp(module.scale))
        module.scale = nn.Parameter(torch.randn(8))
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            program = front.compile_export(torch.export.export(module, (torch.randn(4, 8),)), frozen=True, **EMULATED)
            self.assertIn("prepared: 1 tensor from 1 weight", program.summary[0])
            program.save(path := str(Path(folder, "program.pwt")))
            again = front.load_compiled(path)
            for _ in range(3):
                module.scale.mul_(1.5)  # of the program, too; the file has its own
                x = torch.randn(4, 8)
                self.assertLessEqual(difference(module(x), program(x)), CLOSE)
                self.assertGreater(difference(module(x), again(x)), CLOSE)

    def test_devices_of_programs(self):
        exported = torch.export.export(nn.Linear(8, 8), (torch.randn(2, 8),))
        with self.assertRaisesRegex(piecewise.Error, '"driver": "host" emulates a device'):
            front.compile_export(exported, backend="cuda")
        with self.assertRaisesRegex(ValueError, "freeze weights only with the backends `cpu` and `cuda`"):
            front.compile_export(exported, frozen=True, backend="eager")
        lookup = torch.export.export(nn.Embedding(8, 8), (torch.tensor([1]),))
        with self.assertRaisesRegex(piecewise.Error, "its kernel cannot report a bad index"):
            front.compile_export(lookup, **EMULATED)

    def test_another_process(self):
        """It imports no model, runs no pass, and finds its kernels in the cache."""
        module = Block()
        x = torch.randn(4, 8)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = Path(folder, "program.pwt")
            front.compile_export(torch.export.export(module, (x,), {"scale": torch.tensor(2.0)})).save(path)
            torch.save((x, module(x, scale=torch.tensor(2.0))["y"]), Path(folder, "numbers.pt"))
            script = """
                import sys, torch
                from piecewise import pytorch as front
                x, want = torch.load(sys.argv[2])
                got = front.load_compiled(sys.argv[1])(x, scale=torch.tensor(2.0))
                print((got["y"] - want).abs().max().item() < 1e-4, got["rest"][1])
            """
            run = [sys.executable, "-c", textwrap.dedent(script), str(path), str(Path(folder, "numbers.pt"))]
            said = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=True).stdout
        self.assertEqual(said.split(), ["True", "3"])

    def test_the_graph(self):
        module, args, kwargs, dims = programs()["block"]
        graph = front.from_export(torch.export.export(module, args, kwargs, dynamic_shapes=dims))
        self.assertIsInstance(graph, piecewise.Graph)
        self.assertEqual([i.kind for i in graph.inputs].count("weight"), 3)

    def test_arguments_of_another_kind(self):
        module, args, kwargs, dims = programs()["block"]
        program = front.compile_export(torch.export.export(module, args, kwargs, dynamic_shapes=dims))
        scale = torch.tensor(1.0)
        for x, why in (
            (torch.randn(4, 9), "takes"),
            (torch.randn(4, 8).double(), "float32"),
            (torch.randn(65, 8), "2 to 64"),
            (torch.randn(4, 8, 1), "rank 2"),
        ):
            with self.assertRaisesRegex(piecewise.Error, why):
                program(x, scale=scale)
        with self.assertRaisesRegex(piecewise.Error, "arguments"):
            program(torch.randn(4, 8))

    def test_checks(self):
        """Raises the errors of the exported module, here and from a file, before anything is written."""

        def asserted(x):
            x.add_(1)
            torch._assert_async((x > 0).all(), "not positive")
            return x * 2

        def asserted_of_nothing_else(x):
            torch._assert_async(x.sum() > 0)
            return x * 2

        def longer(x, y):
            torch._check(2 * x.shape[0] > y.shape[0])
            return x.sum() + y.sum()

        def some_class(x):
            return nn.functional.one_hot(x, 4) * 2

        rows, one, many = {0: torch.export.Dim.DYNAMIC}, torch.ones(3), torch.ones(9)
        for function, good, bad, dims, said in (
            (asserted, (one,), (-many[:3],), None, "not positive"),
            (asserted_of_nothing_else, (one,), (-one,), None, "Expected Tensor with single nonzero value"),
            (longer, (one, torch.ones(4)), (one, many), ((rows, rows),), "2\\*s.* > s"),
            (some_class, (torch.tensor([3]),), (torch.tensor([4]),), None, "outside its table"),
            (lambda x, times: x * times, (one, 2.0), (one, 3.0), None, "exported for 2.0"),
        ):
            with self.subTest(function.__name__), tempfile.TemporaryDirectory() as folder:
                program = front.compile_export(torch.export.export(Function(function), good, dynamic_shapes=dims))
                path = Path(folder, "program.pwt")
                program.save(path)
                for call in (program, front.load_compiled(path)):
                    given, again = copy.deepcopy(good), copy.deepcopy(good)
                    self.assertLessEqual(difference((function(*given), given), (call(*again), again)), CLOSE)
                    given = copy.deepcopy(bad)
                    with self.assertRaisesRegex((RuntimeError, piecewise.Error), said):
                        call(*given)
                    self.assertTrue(given[0].equal(bad[0]))

    def test_checks_of_numbers_of_tensors(self):
        def cut(x, count):
            n = count.item()
            torch._check(n <= 5)
            return x[:n] * 2

        with self.assertRaisesRegex(piecewise.Error, "requires u0.* depends on numbers of its tensors"):
            front.compile_export(torch.export.export(Function(cut), (torch.ones(5), torch.tensor(3))))

    def test_files_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "some.pwt")
            for content in (b"", b"no program", b"PK\x03\x04" + b"x" * 100):
                path.write_bytes(content)
                with self.assertRaisesRegex(piecewise.Error, "not a compiled program"):
                    front.load_compiled(path)
            torch.save({"format": 0}, path)
            with self.assertRaisesRegex(piecewise.Error, "of this version"):
                front.load_compiled(path)
            with self.assertRaises(FileNotFoundError):
                front.load_compiled(Path(folder, "absent.pwt"))

    def test_mistakes_in_options(self):
        program = torch.export.export(nn.Linear(8, 8), (torch.randn(4, 8),))
        with self.assertRaisesRegex(ValueError, "no option `rule`"):
            front.compile_export(program, rule="x")
        with self.assertRaisesRegex(piecewise.Error, "no_such"):
            front.compile_export(program, pipeline="no_such")


class Decorators(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        front.forget()
        torch.manual_seed(0)

    def graphs(self):
        return len(front.graphs())

    def test_a_class(self):
        @front.support(dynamic={"x": 0}, enable_if=lambda self: self.on)
        class Model(nn.Module):
            def __init__(self, on=True):
                super().__init__()
                self.on, self.norm = on, nn.RMSNorm(8)

            def forward(self, x):
                return self.norm(x) + 1

        @front.ignore
        class Other(Model):
            pass

        class Same(Model):
            pass

        with torch.no_grad():
            for cls, on, compiled in ((Model, True, True), (Model, False, False), (Other, True, False), (Same, True, True)):
                torch._dynamo.reset()
                front.forget()
                model = cls(on)
                for batch in (4, 5, 64):
                    x = torch.randn(batch, 8)
                    self.assertLessEqual(difference(nn.functional.rms_norm(x, [8], model.norm.weight) + 1, model(x)), CLOSE)
                self.assertEqual(self.graphs(), 1 if compiled else 0, (cls, on))

    def test_a_function(self):
        @front.support
        def double(x: torch.Tensor, times: int = 2):
            return x * times

        for batch in (3, 4, 5):
            x = torch.randn(batch, 2)
            self.assertLessEqual(difference(x * 2, double(x)), CLOSE)
        self.assertEqual(self.graphs(), 1)

    def test_objects_of_tensors_and_any_name(self):
        """A method as in vLLM's models: the receiver has another name, and an argument is an object with a dict of tensors."""

        class IntermediateTensors:
            def __init__(self, tensors):
                self.tensors, self.owner = tensors, self

        @dataclasses.dataclass
        class Pair:
            left: torch.Tensor
            right: t.Optional[torch.Tensor] = None
            factor: int = 2

        @front.support
        class Model(nn.Module):
            def forward(me, pair: Pair, between: "t.Optional[IntermediateTensors]" = None, *, scale: torch.Tensor = None, times: int = 1):
                x = pair.left * pair.factor
                if between is not None:
                    x = x + between.tensors["hidden"] * between.tensors["residual"]
                return (x if scale is None else x * scale) * times

        model = Model()
        for rows in (3, 5, 17):
            x, h, r = torch.randn(3, rows, 4).unbind(0)
            scale = torch.tensor(1.5)
            out = model(Pair(x), IntermediateTensors({"hidden": h, "residual": r}), scale=scale)
            self.assertLessEqual(difference((x * 2 + h * r) * 1.5, out), CLOSE)
        self.assertEqual(self.graphs(), 1)
        self.assertEqual(
            str(front.dynamic_dims(model)).splitlines(),
            [
                "pair.left: dim 0 may vary",
                "between.tensors['hidden']: dim 0 may vary",
                "between.tensors['residual']: dim 0 may vary",
                "scale: dim 0 is fixed: it has no dims",
            ],
        )
        model(Pair(x[:1]))
        self.assertEqual(front.dynamic_dims(Model)["pair.left"], {0: ""})

        @front.support(dynamic={"rest": 0, "more": -1})
        def total(*rest, **more):
            return rest[0] + rest[1] * more["by"].sum()

        for rows in (3, 4, 9):
            x, by = torch.randn(rows, 2), torch.ones(1, rows)
            self.assertLessEqual(difference(x + x * rows, total(x, x.clone(), by=by)), CLOSE)
        self.assertEqual(self.graphs(), 3)
        self.assertEqual(list(front.dynamic_dims(total)), ["rest[0]", "rest[1]", "more['by']"])
        with self.assertRaisesRegex(ValueError, "rest\\[0\\] has no dim 0: it has 0 dims"):
            total(scale, scale, by=by)
        with self.assertRaisesRegex(ValueError, "not marked"):
            front.dynamic_dims(torch.relu)

    def test_counts_under_vllms_names(self):
        @front.support(dynamic={"x": 0})
        class Model(nn.Module):
            def forward(self, x):
                return (x.tanh() + 1).cfloat().abs() * 2  # PyTorch's two calls are between two parts

        counts = front.compilation_counter
        models, unique = [Model(), Model()], torch.randn(2, 4, 4)
        with counts.expect(num_models_seen=2, num_graphs_seen=1, num_piecewise_graphs_seen=4, num_piecewise_capturable_graphs_seen=2):
            with counts.expect(num_backend_compilations=2, num_eager_compiles=0, stock_torch_compile_count=0, num_cudagraph_captured=0):
                for model in (*models, *models):
                    model(unique)
        kept = ("num_compiled_artifacts_saved", "num_compiled_artifacts_loaded")
        torch._dynamo.reset()
        with counts.expect(num_backend_compilations=2, num_models_seen=0, **dict(zip(kept, (0, 2)))):
            models[0](unique)
        with counts.expect(stock_torch_compile_count=1, num_eager_compiles=1):
            torch.compile(lambda x: x.cfloat().conj_physical(), backend="piecewise")(unique)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pwt")
            with counts.expect(num_aot_compiles=1, num_aot_artifacts_saved=1, num_aot_artifacts_loaded=1):
                front.compile_export(torch.export.export(nn.Tanh(), (unique,))).save(path)
                front.load_compiled(path)
        with self.assertRaisesRegex(AssertionError, "num_graphs_seen increased by 0, not by 1"):
            with counts.expect(num_graphs_seen=1):
                pass
        with self.assertRaisesRegex(TypeError, "no count `graphs`"):
            with counts.expect(graphs=1):
                pass

    def test_inside_of_another(self):
        inner = front.support(lambda x: x * 2)
        outer = torch.compile(lambda x: inner(x) + 1, backend="piecewise")
        x = torch.randn(4)
        self.assertLessEqual(difference(x * 2 + 1, outer(x)), CLOSE)
        self.assertEqual(self.graphs(), 1)

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "no parameter `y`; parameters are x"):
            front.support(dynamic={"y": 0})(lambda x: x)
        with self.assertRaisesRegex(ValueError, "no option"):
            front.support(pipelines="o2")(lambda x: x)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    unittest.main(verbosity=2)
