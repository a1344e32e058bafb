#!/usr/bin/env python3
"""torch.compile on a device, compared with PyTorch: the emulator runs the kernels on CPU tensors, through the code that runs on a GPU.

    device.py [--corpus FILE] [TEST …]

The corpus is that of compiled.py. With PW_GPU_DRIVER=cuda, everything runs on a GPU, where tensors are then made by default.
"""
import concurrent.futures
import gc
import os
import resource
import unittest

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import compiled
from compiled import CLOSE, Block, Case, difference, sized

import _piecewise
from piecewise import pytorch as front
from piecewise.pytorch.devices import device_of, engine_of
from piecewise.pytorch.fx_import import FxImport, Refused
from piecewise.pytorch.options import Options

PLACE = torch.device("cuda" if os.environ.get("PW_GPU_DRIVER") == "cuda" else "cpu")
EMULATED = {"backend": "cuda", "driver": "host"}
ON_DEVICE = {"backend": "cuda", "driver": "cuda"} if PLACE.type == "cuda" else EMULATED


class OnDevice:
    """Runs the tests of a case on the device."""

    def options(self):
        return ON_DEVICE

    def same(self, function, *inputs, **how):
        return super().same(function, *inputs, **ON_DEVICE, **how)


class Writes(OnDevice, compiled.Writes):
    def test_custom_op_that_writes(self):
        """The report names the wrapper that PyTorch puts around the op."""
        x = torch.randn(4, 3)
        self.same_without_gradients(lambda x: torch.ops.pw_test.scale_(x, 2.0) or x + 1, x)


class Random(OnDevice, compiled.Random):
    pass


class Parts(OnDevice, compiled.Parts):
    pass


class Calls(OnDevice, Case):
    def test_every_op_but_the_embedding(self):
        model = nn.Sequential(nn.Embedding(10, 16), Block()).eval()
        (graph,) = self.same_without_gradients(model, torch.randint(0, 10, (3, 5)))
        self.assertEqual((graph.left, graph.refused), ({"aten.embedding.default": 1}, ""))
        self.assertIn("launch", graph.summary[0])

    def test_arguments_in_any_layout(self):
        def f(x, y):
            return x * 2 + y, (x + y).t(), y.sum(0)

        x = torch.randn(64, 66)
        for y in (x[:, 1:65], x.t()[1:65], torch.randn(64).expand(64, 64), torch.randn(64 * 64 + 1)[1:].view(64, 64)):
            self.same_without_gradients(f, torch.randn(64, 64), y)

    def test_empty_and_scalar(self):
        self.same_without_gradients(lambda x, y: (x + y, x.sum(), y * 2), torch.randn(0, 4), torch.randn(()))

    @unittest.skipIf(PLACE.type == "cuda", "PyTorch's own kernel fails an assertion, after which the process cannot use the GPU")
    def test_bad_index(self):
        model = nn.Sequential(nn.Embedding(10, 16), Block()).eval()
        with torch.no_grad(), self.assertRaises(IndexError):
            torch.compile(model, backend="piecewise", options=ON_DEVICE)(torch.tensor([3, 10]))

    def test_threads_and_sizes(self):
        """Two threads with changing sizes and two models of one class get their own numbers."""
        models = [Block().eval() for _ in range(2)]
        calls = [torch.compile(model, backend="piecewise", dynamic=True, options=ON_DEVICE) for model in models]

        def run(thread):
            torch.manual_seed(thread)
            with torch.no_grad():
                for i in range(40):
                    x, at = torch.randn(2 + (7 * i + thread) % 13, 16, device=PLACE), (i + thread) % 2
                    self.assertLessEqual(difference(models[at](x), calls[at](x)), CLOSE)

        with torch.no_grad():
            for call in calls:
                call(torch.randn(3, 16)), call(torch.randn(5, 16))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(run, range(2)))

    def test_memory_does_not_grow(self):
        call, x = torch.compile(Block().eval(), backend="piecewise", options=ON_DEVICE), torch.randn(4096, 16)
        with torch.no_grad():
            for i in range(120):
                if i == 20:
                    gc.collect()
                    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                call(x)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 20_000)  # KiB; one result has 256

    def test_exception_in_the_middle(self):
        library = torch.library.Library("pw_device_test", "DEF")
        library.define("odd(Tensor x) -> Tensor")
        library.impl("odd", self._odd, PLACE.type.upper())
        library.impl("odd", lambda x: torch.empty_like(x), "Meta")
        call = torch.compile(lambda x: torch.ops.pw_device_test.odd(x * 2) + 1, backend="piecewise", options=ON_DEVICE)
        x = torch.ones(8)
        for i in range(4):
            if i % 2:
                with self.assertRaisesRegex(ValueError, "planted"):
                    call(-x)
            else:
                self.assertTrue(call(x).equal(torch.full((8,), 5.0)))

    @staticmethod
    def _odd(x):
        if x[0] < 0:
            raise ValueError("planted")
        return x * 2


@unittest.skipUnless(PLACE.type == "cuda", "needs a GPU")
class Graphs(Case):
    def test_capture_by_pytorch(self):
        """A call on the stream of a capture is captured, and its replay gives the bits of the launches."""
        call = torch.compile(Block().eval(), backend="piecewise", options=ON_DEVICE)
        x, other = torch.randn(8, 16), torch.randn(8, 16)
        with torch.no_grad():
            want = [call(one).clone() for one in (x, other)]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = call(x)
            for inputs, expected in zip((x.clone(), other), want):
                x.copy_(inputs)
                graph.replay()
                self.assertTrue(y.equal(expected))


class Refusals(Case):
    def test_cpu_tensors_without_the_emulator(self):
        with torch.device("cpu"):
            reports = self.same_without_gradients(Block().eval(), torch.randn(3, 16), backend="cuda")
        self.assertIn('"driver": "host"', reports[0].refused)

    def test_values_of_options(self):
        with self.assertRaisesRegex(ValueError, "`driver` must be cuda or host"):
            Options.of({"driver": "vulkan"})

    def test_no_driver(self):
        with self.assertRaisesRegex(_piecewise.Error, "libnone.so"):
            _piecewise.Device("libnone.so")


class Imports(Case):
    """Graphs of fake tensors on GPUs, which need no GPU."""

    @staticmethod
    def traced(function, *devices):
        with FakeTensorMode():
            inputs = [torch.empty(4, 8, device=device) if device else torch.empty((), device="cpu") for device in devices]
            return make_fx(function)(*inputs)

    def imported(self, module):
        return FxImport(module.graph, module, _piecewise.Session(), place=device_of(module.graph)).convert()["graph"]

    def test_device(self):
        module = self.traced(lambda x: torch.relu(x) + torch.ones(8, device="cuda:1"), "cuda:1")
        self.assertEqual(device_of(module.graph), torch.device("cuda:1"))
        self.assertEqual(engine_of(Options(), device_of(module.graph)), "cuda")
        self.assertIn("relu", self.imported(module).text())

    def test_two_devices(self):
        module = self.traced(lambda x, y: (x + 1, y + 1), "cuda:0", "cuda:1")
        with self.assertRaisesRegex(Refused, "several devices: cuda:0, cuda:1"):
            device_of(module.graph)

    def test_scalar_in_cpu_memory(self):
        module = self.traced(lambda x, y: torch.relu(x) * y, "cuda:0", None)
        with self.assertRaisesRegex(Refused, "only strided tensors on cuda:0"):
            self.imported(module)

    def test_backend_of_a_device(self):
        with self.assertRaisesRegex(Refused, "cuda:0, where the backend `eager` does not run"):
            engine_of(Options(backend="eager"), torch.device("cuda:0"))
        with self.assertRaisesRegex(Refused, "emulates a device for CPU tensors"):
            engine_of(Options(driver="host"), torch.device("cuda:0"))


class Training(OnDevice, compiled.Training):
    options = ON_DEVICE


def of_corpus(models):
    def made(name):
        with torch.device("cpu"):  # generators of the corpus are the CPU's
            model, inputs, dims = models.R[name]()
        return model.to(PLACE), [x.to(PLACE) for x in inputs], dims

    class Corpus(compiled.Training):
        options = ON_DEVICE

        def check(self, name, dynamic):
            """Compares a model; returns the number of ops, and how many Piecewise runs."""
            self.setUp()
            model, inputs, dims = made(name)
            model.eval()
            call = torch.compile(model, backend="piecewise", dynamic=dynamic, options=ON_DEVICE)
            with torch.no_grad():
                for size in (None, *((5, 2) if dynamic and dims else ())):
                    given = inputs if size is None else sized(inputs, dims, size)
                    want = model(*[x.clone() for x in given])
                    bound = CLOSE if want.dtype == torch.float32 else 0.05
                    self.assertLessEqual(difference(want, call(*[x.clone() for x in given])), bound)
            graphs = front.graphs()
            self.assertEqual([graph.refused for graph in graphs], [""] * len(graphs))
            left = sorted({op for graph in graphs for op in graph.left})
            print(f"{name}{' dynamic' if dynamic else ''}: left to PyTorch: {', '.join(left) or 'nothing'}", flush=True)
            return sum(graph.ops for graph in graphs), sum(graph.taken for graph in graphs)

        def count(self, dynamic):
            ops = taken = 0
            for name in models.R:
                with self.subTest(model=name):
                    here = self.check(name, dynamic)
                    ops, taken = ops + here[0], taken + here[1]
            print(f"{taken} of {ops} ops of {len(models.R)} models run on the device")
            self.assertGreaterEqual(taken, 0.8 * ops)

        def test_static(self):
            self.count(False)

        def test_dynamic(self):
            self.count(True)

        def test_training(self):
            for name in ("mlp", "swiglu", "nanogpt", "llama"):
                with self.subTest(model=name):
                    self.setUp()
                    model, inputs, _ = made(name)
                    self.assertLessEqual(self.steps(model, inputs), CLOSE)

        test_block = None

    return Corpus


if __name__ == "__main__":
    if PLACE.type == "cuda":
        torch.set_default_device(PLACE)
    compiled.main(of_corpus)
