#!/usr/bin/env python3
"""Writes of arguments through torch.compile: by ops in place where nothing else needs the old elements, or else by copies of results.

    writes.py [TEST …]
"""
import unittest
from unittest import mock

import torch

from compiled import CLOSE, Case, difference

from piecewise import pytorch as front
from piecewise.pytorch import compiler
from piecewise.pytorch.writes import Writes as Changed

EMULATED = {"backend": "cuda", "driver": "host"}
WAYS = ({}, {"check": True}, EMULATED, {**EMULATED, "check": True}, {**EMULATED, "capture": "torch"}, {**EMULATED, "capture": "piecewise"})

COPY_ROWS, PUT, COPY, SCATTER = "aten.index_copy_.default", "aten.index_put_.default", "aten.copy_.default", "aten.scatter_.src"


def copied_rows(cache, at, x):
    cache.index_copy_(0, at, x)
    return cache.sum(0), cache * 2


def rows(cache, at, x):
    cache[at] = x
    return (cache * 2).sum(0)


def scattered(cache, at, x):
    cache.scatter_(0, at[:, None].expand(2, 4), x)
    return cache * 2


def added(cache, at, x):
    cache.index_put_((at,), x, accumulate=True)
    return cache * 2


def sliced(cache, at, x):
    cache[2:4] = x
    return cache @ cache.t()


def selected(cache, at, x):
    cache[3] = x[0]
    return cache * 2


def slices_of_slices(cache, at, x):
    cache[:5, 1:3] = x[:1, :2]
    cache[:5, 1:3] = x[1:, :2]
    return cache[:4] * 3


def rows_of_a_slice(cache, at, x):
    part = cache[1:5]
    part[at] = x
    return part * 3, cache + 1


def source_changes_later(cache, at, x):
    part = cache[1:5]
    part[at] = x
    x[:1] = part[3:] * 2
    return cache * 2


def read_before_its_slice(cache, at, x):
    part = cache[1:5]
    flat = cache * 3
    part[at] = x
    return flat + 1, part.relu()


def reads_itself(cache, at, x):
    cache[at] = cache[at] + x
    return cache * 2


def reads_before_and_after(cache, at, x):
    before = cache * 2
    cache[at] = x
    return before + cache


def twice(cache, at, x):
    cache[at] = x
    total = cache.sum(1)
    cache[at + 2] = x * 2
    return total + cache.sum(1)


def views(cache, at, x):
    flat = cache.view(-1)
    cache[at] = x
    return flat * 2, flat.relu()


def two_arguments(cache, at, x):
    cache[at] = x
    x.copy_(cache[at + 1])
    return cache + x.sum()


def returned(cache, at, x):
    """The result is not the argument, so it cannot have its memory."""
    y = cache.index_copy(0, at, x)
    cache.copy_(y)
    return y


def returned_view(cache, at, x):
    cache[at] = x
    return cache.view(-1), cache


def swapped(cache, at, x):
    old = cache[:2].clone()
    cache[:2].copy_(x)
    x.copy_(old)
    return cache.sum(), x.sum()


def all_elements(cache, at, x):
    cache.add_(1)
    cache[at] = x
    return cache * 2


def nothing_else(cache, at, x):
    cache[at] = x


# The ops in place of each function on a device.
IN_PLACE = {
    copied_rows: {COPY_ROWS: 1},
    rows: {PUT: 1},
    scattered: {SCATTER: 1},
    added: {PUT: 1},
    sliced: {COPY: 1},
    selected: {COPY: 1},
    slices_of_slices: {COPY: 2},
    rows_of_a_slice: {PUT: 1},
    source_changes_later: {PUT: 1, COPY: 1},
    read_before_its_slice: {PUT: 1},
    reads_itself: {PUT: 1},
    reads_before_and_after: {PUT: 1},
    twice: {PUT: 2},
    views: {PUT: 1},
    two_arguments: {PUT: 1},
    returned: {},
    returned_view: {},
    swapped: {COPY: 1},
    all_elements: {},
    nothing_else: {},  # PyTorch runs the whole graph
}


class Writes(Case):
    def setUp(self):
        super().setUp()
        large = mock.patch.object(compiler, "_LARGE", 0)  # on the CPU, small arguments are copied
        large.start()
        self.addCleanup(large.stop)

    def compared(self, function, options, dynamic, static):
        """Calls a function and its compiled form on equal tensors, which they change; returns the report."""
        super().setUp()
        call = torch.compile(lambda *given: function(*given), backend="piecewise", dynamic=dynamic, options=options)
        tensors = torch.randn(6, 4), torch.tensor([1, 2]), torch.randn(2, 4)
        again = [x.clone() for x in tensors]
        if static:
            torch._dynamo.mark_static_address(again[0])
        with torch.no_grad():
            for _ in range(4):
                want, got = function(*tensors), call(*again)
                self.assertLessEqual(difference((want, tensors), (got, again)), CLOSE)
                for x, at, _ in (tensors, again):
                    at.add_(1).remainder_(4)
        return front.report(call)[-1]

    def test_all_ways(self):
        for function, ops in IN_PLACE.items():
            for options in WAYS:
                for dynamic, static in ((None, False), (None, True), (True, True)):
                    with self.subTest(function=function.__name__, options=options, dynamic=dynamic, static=static):
                        report = self.compared(function, options, dynamic, static)
                        if options == EMULATED and not report.refused:
                            self.assertEqual({op: count for op, count in report.left.items() if "_." in op}, ops)

    def test_order(self):
        """A slice of a slice is written where the inner one is, as its source may be written before the outer one; not if the slice is read in between."""
        for reads_cache in (False, True):
            module, values = self.late_slice(reads_cache)
            want, got = [v.clone() for v in values], [v.clone() for v in values]
            results = module(*want)
            self.assertEqual(Changed(module, lambda i, node: True).copied, [0] if reads_cache else [])
            (*changed,) = module(*got)
            if reads_cache:
                got[0].copy_(changed.pop())
            self.assertEqual(difference((list(results), want), (changed, got)), 0)

    @staticmethod
    def late_slice(reads_cache):
        """Returns a graph whose write of a slice's rows is followed by one of their source, and by that of the slice; and its arguments."""
        aten, graph = torch.ops.aten, torch.fx.Graph()
        values = torch.randn(6, 4), torch.tensor([1, 2]), torch.randn(2, 4)
        cache, at, x = map(graph.placeholder, ("cache", "at", "x"))
        for node, value in zip((cache, at, x), values):
            node.meta["val"] = value

        def call(op, *args):
            node = graph.call_function(op, args)
            given = torch.fx.map_arg(args, lambda n: n.meta["val"])
            node.meta["val"] = given[0] if op is aten.copy_.default else op(*given)
            return node

        rows = call(aten.index_put.default, call(aten.slice.Tensor, cache, 0, 1, 5), [at], x)
        source = call(aten.mul.Tensor, call(aten.select.int, cache if reads_cache else x, 0, 1), 2)
        row = call(aten.select_scatter.default, x, source, 0, 0)
        whole = call(aten.slice_scatter.default, cache, rows, 0, 1, 5)
        double = call(aten.mul.Tensor, whole, 2)
        call(aten.copy_.default, x, row)
        call(aten.copy_.default, cache, whole)
        graph.output((double,))
        return torch.fx.GraphModule({}, graph), values

    def test_captured(self):
        """A captured call writes arguments whose addresses are fixed, and copies into others."""
        for capture in ("torch", "piecewise"):
            for static in (True, False):
                report = self.compared(rows, {**EMULATED, "capture": capture}, None, static)
                self.assertEqual((report.not_captured, report.left.get(PUT, 0)), ("", int(static)))
                self.assertGreater(report.captures, 0)

    def test_strides(self):
        """An argument whose rows are not dense is copied into, as a result has dense rows."""
        call = torch.compile(rows, backend="piecewise", options=EMULATED)
        for step in (1, 2):
            large = torch.randn(6, 4 * step)
            other = large.clone()
            with torch.no_grad():
                want, got = (function(x[:, ::step], torch.tensor([1, 2]), torch.ones(2, 4)) for function, x in ((rows, large), (call, other)))
            self.assertLessEqual(difference((want, large), (got, other)), CLOSE)

    def test_small_arguments_on_the_cpu(self):
        for least, count in ((6 * 4 * 4, 1), (6 * 4 * 4 + 1, 0)):
            with mock.patch.object(compiler, "_LARGE", least):
                self.assertEqual(self.compared(rows, {}, None, False).left.get(PUT, 0), count)

    def test_wrong_index(self):
        """PyTorch's error is raised, and later calls are right."""
        for options in ({}, EMULATED):
            super().setUp()
            call = torch.compile(rows, backend="piecewise", options=options)
            cache, x = torch.zeros(6, 4), torch.ones(2, 4)
            with torch.no_grad():
                for at in (1, 9, 2):
                    if at == 9:
                        self.assertRaisesRegex(IndexError, "out of bounds", call, cache, torch.tensor([1, at]), x)
                    else:
                        self.assertEqual(call(cache, torch.tensor([0, at]), x).sum().item(), 2 * 4 * (at + 1))

    def test_failed_recording(self):
        """A call that cannot be recorded changes its arguments once."""

        def function(cache, at, x):
            cache.index_put_((at,), x, accumulate=True)
            return cache + float(cache.is_contiguous())

        from piecewise.pytorch import recording

        again = recording.EmulatedGraph.record

        def fail(self, call):
            again(self, call)
            raise recording.NotCapturable("planted")

        with mock.patch.object(recording.EmulatedGraph, "record", fail), self.assertLogs("piecewise", "WARNING"):
            report = self.compared(function, {**EMULATED, "capture": "torch"}, None, True)
        self.assertEqual(report.not_captured, "planted")


if __name__ == "__main__":
    unittest.main()
