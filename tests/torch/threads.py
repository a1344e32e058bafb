#!/usr/bin/env python3
"""Compiled functions called by several threads, from within themselves, and in forked processes: each call has its own numbers, symbols and errors.

    threads.py [--threads N] [--calls N] [--seed N] [TEST …]
"""
import argparse
import copy
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from compiled import CLOSE, Case, difference
from piecewise import pytorch as front

SETTINGS = argparse.Namespace(threads=8, calls=2000, seed=1)


def together(work, threads=None):
    """Runs work(i, random numbers) in threads that begin at once; raises the first error of any."""
    count = threads or SETTINGS.threads
    start, errors = threading.Barrier(count), []

    def run(i):
        # A thread has settings of its own. Guards fail now and then because another thread is at them, and eager PyTorch is not what is tested.
        torch._dynamo.config.recompile_limit = 1000
        start.wait()
        try:
            work(i, random.Random(SETTINGS.seed * 1000 + i))
        except BaseException as error:  # noqa: B036 (raised again)
            errors.append(error)

    workers = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


def inputs_of_sizes(sizes, *rest):
    return [torch.randn(size, *rest) for size in sizes]


def answers(function, inputs):
    with torch.no_grad():
        return [function(x) for x in inputs]


class Mixed(nn.Module):
    """Row kernels, products, a softmax, and a call that stays PyTorch's; wide enough that kernels run while others have the interpreter's lock."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        y = x + self.down(F.gelu(self.up(self.norm(x))))
        return torch.cumsum(y, 0), torch.softmax(y, -1)


LIBRARY = torch.library.Library("pw_threads", "DEF")
LIBRARY.define("call(Tensor x) -> Tensor")
CALLED = threading.local()


def _call(x):
    return CALLED.function(x) if getattr(CALLED, "function", None) is not None else x.clone()


LIBRARY.impl("call", _call, "CPU")
LIBRARY.impl("call", torch.empty_like, "Meta")


def calling(x):
    """The op's behaviour belongs to its thread."""
    y = x.sin()
    return torch.ops.pw_threads.call(y + 1) * 2 + y, y.cos() + x


class Numbers(Case):
    def test_two_models_of_a_class_at_changing_sizes(self):
        inputs = inputs_of_sizes([1, 2, 3, 5, 17, 40, 64, 33], 64)
        models = [Mixed(64).eval() for _ in range(2)]
        wanted = [answers(model, inputs) for model in models]
        compiled = [torch.compile(model, backend="piecewise", dynamic=True) for model in models]
        for function in compiled:
            answers(function, inputs)

        def work(i, numbers):
            for call in range(SETTINGS.calls):
                model, at = (i + call) % 2, numbers.randrange(len(inputs))
                with torch.no_grad():
                    got = compiled[model](inputs[at])
                self.assertLessEqual(difference(wanted[model][at], got), CLOSE)

        together(work)

    def test_first_calls(self):
        """Compiled by whichever thread comes first."""
        model = Mixed(32).eval()
        inputs = inputs_of_sizes([2, 9, 16], 32)
        wanted = answers(model, inputs)
        compiled = torch.compile(model, backend="piecewise", dynamic=True)

        def work(i, numbers):
            for at in numbers.sample(range(3), 3):
                with torch.no_grad():
                    self.assertLessEqual(difference(wanted[at], compiled(inputs[at])), CLOSE)

        together(work)

    def test_backward(self):
        models = [Mixed(32) for _ in range(2)]
        inputs = inputs_of_sizes([1, 7, 24], 32)

        def gradients(model, function, x):
            x = x.clone().requires_grad_()
            first, second = function(x)
            return torch.autograd.grad((first.square() + second).sum(), [x, *model.parameters()])

        wanted = [[gradients(model, model, x) for x in inputs] for model in models]
        compiled = [torch.compile(model, backend="piecewise", dynamic=True) for model in models]

        def work(i, numbers):
            for call in range(SETTINGS.calls // 40):
                model, at = (i + call) % 2, numbers.randrange(len(inputs))
                self.assertLessEqual(difference(wanted[model][at], gradients(models[model], compiled[model], inputs[at])), CLOSE)

        together(work)

    def test_while_graphs_are_read(self):
        """Reports are drawn, and other models compiled, while calls go on."""
        model = Mixed(64).eval()
        inputs = inputs_of_sizes([3, 50], 64)
        wanted = answers(model, inputs)
        compiled = torch.compile(model, backend="piecewise", dynamic=True)
        answers(compiled, inputs)
        (report,) = front.report(compiled)

        def work(i, numbers):
            if i == 0:
                for width in (8, 12, 20):
                    report.graph.draw("html")
                    report.graph.json()
                    other = torch.compile(Mixed(width).eval(), backend="piecewise", dynamic=True)
                    answers(other, [torch.randn(3, width)])
                return
            for _ in range(SETTINGS.calls // 20):
                at = numbers.randrange(2)
                with torch.no_grad():
                    self.assertLessEqual(difference(wanted[at], compiled(inputs[at])), CLOSE)

        together(work, 4)


class Within(Case):
    """Calls from an op of the function itself."""

    def compiled(self):
        function = torch.compile(calling, backend="piecewise", dynamic=True)
        CALLED.function = None
        answers(function, inputs_of_sizes([6, 7], 16))
        self.addCleanup(setattr, CALLED, "function", None)
        return function

    def halves(self, function, depth):
        """Calls it for the halves of what it is called for, down to a depth."""
        left = depth

        def call(x):
            nonlocal left
            if left == 0:
                return x.clone()
            left -= 1
            return torch.cat([function(half.clone())[0] for half in x.chunk(2)])

        return call

    def nested(self, called, x, depth):
        CALLED.function = self.halves(called, depth)
        try:
            with torch.no_grad():
                return called(x)
        finally:
            CALLED.function = None

    def test_other_sizes(self):
        function = self.compiled()
        for depth in (1, 3, 7):
            x = torch.randn(37 * depth, 16)
            self.assertLessEqual(difference(self.nested(calling, x, depth), self.nested(function, x, depth)), CLOSE)

    def test_in_threads(self):
        function = self.compiled()
        inputs = inputs_of_sizes([5, 18, 64], 16)
        wanted = [self.nested(calling, x, 3) for x in inputs]

        def work(i, numbers):
            for _ in range(SETTINGS.calls // 40):
                at = numbers.randrange(len(inputs))
                self.assertLessEqual(difference(wanted[at], self.nested(function, inputs[at], 3)), CLOSE)

        together(work)

    def test_an_op_that_waits_for_another_thread(self):
        """Which calls the function, for the first time with frozen weights too."""
        for frozen in (False, True):
            self.setUp()
            linear = nn.Linear(16, 16).eval()

            def model(x):
                return torch.ops.pw_threads.call(linear(x)) + linear(x.cos())

            function = torch.compile(model, backend="piecewise", dynamic=True, options={"frozen": frozen})

            def elsewhere(called):
                def call(x):
                    out = []

                    def work():
                        with torch.no_grad():
                            out.append(called(x[:2].clone()))

                    worker = threading.Thread(target=work)
                    worker.start()
                    worker.join()
                    return x + out[0].sum()

                return call

            x = torch.randn(9, 16)
            for _ in range(3):
                results = []
                for called in (model, function):
                    CALLED.function = elsewhere(called)
                    with torch.no_grad():
                        results.append(called(x))
                    CALLED.function = None
                self.assertLessEqual(difference(*results), CLOSE)


class Raised(Case):
    """An op's exception reaches only the call that ran the op."""

    def test_in_threads(self):
        function = torch.compile(calling, backend="piecewise", dynamic=True)
        inputs = inputs_of_sizes([4, 23], 16)
        CALLED.function = None
        wanted = answers(calling, inputs)
        answers(function, inputs)

        def work(i, numbers):
            for call in range(SETTINGS.calls // 20):
                at = numbers.randrange(2)
                fails = i % 2 == 0 and call % 3 == 0

                def fail(x):
                    raise LookupError(f"of thread {i}, call {call}")

                CALLED.function = fail if fails else None
                with torch.no_grad():
                    if fails:
                        with self.assertRaisesRegex(LookupError, f"^of thread {i}, call {call}$"):
                            function(inputs[at])
                    else:
                        self.assertLessEqual(difference(wanted[at], function(inputs[at])), CLOSE)
            CALLED.function = None

        together(work)

    def test_within_a_call(self):
        """An inner call fails, its op takes that, and the outer one goes on."""
        function = torch.compile(calling, backend="piecewise", dynamic=True)
        x = torch.randn(8, 16)
        CALLED.function = None
        answers(function, inputs_of_sizes([8, 9], 16))

        def around(called):
            def fail(_):
                raise LookupError("the inner one")

            def call(x):
                CALLED.function = fail
                try:
                    called(x[:3].clone())
                except LookupError:
                    return x * 3
                raise AssertionError("the inner call did not fail")

            return call

        results = []
        for called in (calling, function):
            CALLED.function = around(called)
            results.append(answers(called, [x]))
            CALLED.function = None
        self.assertLessEqual(difference(*results), CLOSE)

    def test_frozen_after_a_failed_first_call(self):
        """Weights cached by the failed call are not used as their current contents."""
        weight = nn.Parameter(torch.randn(16, 16))

        def model(x):
            return torch.ops.pw_threads.call(x @ weight.t().exp()) @ (weight * 2)

        function = torch.compile(model, backend="piecewise", dynamic=False, options={"frozen": True})
        x = torch.randn(5, 16)

        def fail(_):
            raise LookupError("at first")

        for _ in range(2):
            CALLED.function = fail
            with torch.no_grad(), self.assertRaisesRegex(LookupError, "at first"):
                function(x)
        CALLED.function = None
        for _ in range(3):
            self.assertLessEqual(difference(answers(model, [x]), answers(function, [x])), CLOSE)


def frozen(function, **how):
    return torch.compile(function, backend="piecewise", options={"frozen": True}, **how)


class Frozen(Case):
    def test_writes_between_calls(self):
        """Threads agree when a weight is written, and each call after that sees it."""
        model = Mixed(48).eval()
        function = frozen(model, dynamic=True)
        inputs = inputs_of_sizes([2, 30], 48)
        written = threading.Barrier(SETTINGS.threads)
        wanted = []

        def work(i, numbers):
            for turn in range(12):
                if written.wait() == 0:
                    with torch.no_grad():
                        model.up.weight.add_(0.01 * turn)
                        (model.down.weight if turn % 2 else model.norm.bias).mul_(-1)
                    wanted[:] = answers(model, inputs)
                written.wait()
                for _ in range(SETTINGS.calls // 200):
                    at = numbers.randrange(2)
                    with torch.no_grad():
                        self.assertLessEqual(difference(wanted[at], function(inputs[at])), CLOSE)

        together(work)

    def test_models_that_share_a_graph(self):
        """Each has its own packed weights, which persist."""
        layers = [nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)).eval() for _ in range(4)]
        inputs = inputs_of_sizes([3, 20], 32)
        wanted = [answers(layer, inputs) for layer in layers]
        compiled = [frozen(layer, dynamic=True) for layer in layers]

        def work(i, numbers):
            for _ in range(SETTINGS.calls // 40):
                layer, at = numbers.randrange(len(layers)), numbers.randrange(2)
                with torch.no_grad():
                    self.assertLessEqual(difference(wanted[layer][at], compiled[layer](inputs[at])), CLOSE)

        together(work)

    def test_weights_of_models_that_are_gone(self):
        """A graph does not hold the weights of every model that it has run."""

        def make():
            model = nn.Linear(16, 16).eval()
            model.compile(backend="piecewise", dynamic=False, options={"frozen": True})
            return model

        x, alive = torch.randn(3, 16), []
        for _ in range(6):
            model = make()
            plain = copy.deepcopy(model)
            with torch.no_grad():
                self.assertLessEqual(difference(F.linear(x, plain.weight, plain.bias), model(x)), CLOSE)
            alive.append(StorageWeakRef(model.weight.untyped_storage()))
        del model
        gc.collect()
        self.assertLessEqual(sum(not one.expired() for one in alive), 1)


class Programs(Case):
    def test_one_program_in_threads(self):
        model = Mixed(32).eval()
        inputs = inputs_of_sizes([2, 5, 19, 40], 32)
        wanted = answers(model, inputs)
        for keeps in (False, True):
            with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
                exported = torch.export.export(model, (inputs[1],), dynamic_shapes=({0: torch.export.Dim("n", max=64)},))
                path = str(Path(folder, "program.pwt"))
                front.compile_export(exported, frozen=keeps).save(path)
                shared = front.load_compiled(path)

                def work(i, numbers):
                    own = front.load_compiled(path) if i % 4 == 0 else shared
                    for _ in range(SETTINGS.calls // 20):
                        at = numbers.randrange(len(inputs))
                        self.assertLessEqual(difference(wanted[at], own(inputs[at])), CLOSE)

                together(work)


@unittest.skipUnless(hasattr(os, "fork"), "the system has no fork")
class Forked(Case):
    def in_child(self, work):
        """Returns the exit code of a forked process that works, at most ten minutes."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(600)
                work()
                code = 0
            except BaseException as error:  # noqa: B036 (the exit code reports it)
                print(repr(error), file=sys.stderr)
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_while_threads_call(self):
        """A worker forked in the middle of other threads' calls has the same numbers, and compiles.

        The calls are a program's: guards of Dynamo's hold a lock of their own, which a forked process may never get.
        This thread has run a parallel region of OpenMP, so a worker that enters one waits for threads it does not have.
        """
        model = Mixed(64).eval()
        inputs = inputs_of_sizes([6, 300], 64)
        wanted, waves = answers(model, inputs), torch.sin(inputs[1] * 2)
        torch.ones(1 << 20).sin()
        exported = torch.export.export(model, (inputs[0],), dynamic_shapes=({0: torch.export.Dim("n", max=512)},))
        for keeps in (False, True):
            program = front.compile_export(exported, frozen=keeps)
            over = threading.Event()

            def calls():
                while not over.is_set():
                    self.assertLessEqual(difference(wanted, answers(program, inputs)), CLOSE)

            def work():
                for _ in range(20):
                    self.assertLessEqual(difference(wanted, answers(program, inputs)), CLOSE)
                torch.set_num_threads(2)
                other = torch.compile(lambda x: (x * 2).sin(), backend="piecewise")
                self.assertLessEqual(difference(waves, other(inputs[1])), CLOSE)

            workers = [threading.Thread(target=calls) for _ in range(3)]
            for worker in workers:
                worker.start()
            try:
                codes = [self.in_child(work) for _ in range(3)]
            finally:
                over.set()
                for worker in workers:
                    worker.join()
            self.assertEqual(codes, [0] * 3)

    def test_within_the_first_call(self):
        """Which is filling in what is kept of frozen weights."""
        linear = nn.Linear(16, 16).eval()

        def model(x):
            return torch.ops.pw_threads.call(linear(x)) + linear(x.cos())

        function = torch.compile(model, backend="piecewise", dynamic=True, options={"frozen": True})
        x, codes = torch.randn(5, 16), []
        CALLED.function = None
        wanted = answers(model, [x])

        def work():
            CALLED.function = None
            for _ in range(3):
                self.assertLessEqual(difference(wanted, answers(function, [x])), CLOSE)

        def fork(y):
            codes.append(self.in_child(work))
            return y.clone()

        CALLED.function = fork
        self.assertLessEqual(difference(wanted, answers(function, [x])), CLOSE)
        CALLED.function = None
        self.assertEqual(codes, [0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=SETTINGS.threads)
    parser.add_argument("--calls", type=int, default=SETTINGS.calls, help="of each thread, in the first test; others make a part of them")
    parser.add_argument("--seed", type=int, default=SETTINGS.seed)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="Numbers, Within.test_other_sizes …")
    arguments = parser.parse_args(namespace=SETTINGS)
    warnings.filterwarnings("ignore")
    print(f"{arguments.threads} threads, {arguments.calls} calls, seed {arguments.seed}", flush=True)
    unittest.main(sys.modules["__main__"], argv=[sys.argv[0], *arguments.tests], verbosity=2)


if __name__ == "__main__":
    main()
