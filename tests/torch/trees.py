#!/usr/bin/env python3
"""Arguments of PyTorch's cudagraph trees and CUDA graphs for captured calls of torch.compile, without a GPU.

    trees.py [TEST …]
"""
import contextlib
import inspect
import unittest
import unittest.mock

import torch
from torch._inductor import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import compiled
from piecewise import pytorch as front
from piecewise.pytorch import capturing, recording
from piecewise.pytorch.options import Options


class Trees(compiled.Case):
    """Arguments of PyTorch's cudagraph trees and CUDA graphs, without a GPU."""

    def traced(self, function, *devices):
        with FakeTensorMode():
            return make_fx(function)(*[torch.empty(4, 8, device=device) for device in devices])

    def test_arguments(self):
        module = self.traced(lambda x, y: (torch.relu(x) + y, x), "cuda:1", "cuda:1")
        place, seen = torch.device("cuda:1"), {}
        signature = inspect.signature(compile_fx.cudagraphify)

        def cudagraphify(*args, **kwargs):
            seen.update(signature.bind(*args, **kwargs).arguments)
            return lambda args: ["captured", *args]

        original, compile_fx.cudagraphify = compile_fx.cudagraphify, cudagraphify
        try:
            self.assertEqual(capturing.why_launched(module, place, ()), "")
            call = capturing.in_trees(list, module, {1}, place, "backward")
        finally:
            compile_fx.cudagraphify = original
        self.assertEqual(call([1, 2]), ["captured", 1, 2])
        self.assertTrue(call._boxed_call)
        self.assertEqual((seen["static_input_idxs"], seen["device_index"]), ((1,), 1))
        self.assertEqual((seen["is_backward"], seen["is_inference"], len(seen["stack_traces"]), len(seen["placeholders"])), (True, False, 2, 2))

    def test_graph_of_a_part(self):
        """The recording of a part uses the pool and the stream of its device, and runs it once."""
        done, pool = [], unittest.mock.Mock(handle=(0, 1), stream="stream")
        signature = inspect.signature(torch.cuda.graph.__init__)

        @contextlib.contextmanager
        def graph(*args, **kwargs):
            done.append(signature.bind(None, *args, **kwargs).arguments)
            yield
            done.append("end")

        made = unittest.mock.Mock(replay=lambda: done.append("replay"))
        with unittest.mock.patch.multiple(torch.cuda, graph=graph, CUDAGraph=lambda: made):
            recorded = recording.TorchGraph(pool)
            self.assertEqual(recorded.record(lambda: done.append("call") or 3), 3)
            recorded.replay()
        self.assertEqual(done[1:], ["call", "end", "replay", "replay"])
        self.assertEqual((done[0]["cuda_graph"], done[0]["pool"], done[0]["stream"]), (made, (0, 1), "stream"))

    def test_refused(self):
        place = torch.device("cuda:0")
        for function, devices, message in (
            (lambda x: (x.add_(1),), ["cuda:0"], "may write an argument"),
            (lambda x: (x.cpu(),), ["cuda:0"], "not a strided tensor on cuda:0"),
            (lambda x, y: (torch.relu(x), y), ["cuda:0", "cpu"], "not a strided tensor on cuda:0"),
        ):
            self.assertIn(message, capturing.why_launched(self.traced(function, *devices), place, ()))

    def test_backward_of_a_launched_forward(self):
        module, capture = self.traced(lambda x: (x + 1,), "cuda:0"), capturing.Capturing()
        forward, backward = front.GraphReport("forward", Options()), front.GraphReport("backward", Options())
        self.assertIs(capture.wrap(list, module, "planted", (), torch.device("cuda:0"), forward), list)
        self.assertIs(capture.wrap(list, module, "", (), torch.device("cuda:0"), backward), list)
        self.assertEqual((forward.not_captured, backward.not_captured), ("planted", "its forward graph is launched"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
