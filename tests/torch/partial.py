#!/usr/bin/env python3
"""Graphs with something in them that Piecewise lacks: that stays PyTorch's, and all else is taken."""
import copy
import itertools
import logging
import random
import unittest.mock

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops import associative_scan, map as map_over, scan, while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import compiled
from compiled import CLOSE, Case, difference
import piecewise
from piecewise import pytorch as front
from piecewise.pytorch.partition import Partition
from piecewise.pytorch.staying import Staying
from piecewise.pytorch.taking import Taking

LIBRARY = torch.library.Library("pw_partial", "DEF")
LIBRARY.define("parts(Tensor[] xs) -> (Tensor, Tensor[])")
LIBRARY.impl("parts", lambda xs: (sum(xs), [x + 1 for x in xs]), "CPU")
LIBRARY.impl("parts", lambda xs: (torch.empty_like(xs[0]), [torch.empty_like(x) for x in xs]), "Meta")
LIBRARY.define("many(Tensor x) -> Tensor[]")
LIBRARY.impl("many", lambda x: [x + 1, x * 2, x - 3], "CPU")
LIBRARY.impl("many", lambda x: [torch.empty_like(x) for _ in range(3)], "Meta")
LIBRARY.define("noise(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
LIBRARY.impl("noise", lambda x: x + torch.rand_like(x), "CPU")
LIBRARY.impl("noise", torch.empty_like, "Meta")
LIBRARY.define("complex_noise(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
LIBRARY.impl("complex_noise", lambda x: torch.complex(torch.rand_like(x), x), "CPU")
LIBRARY.impl("complex_noise", lambda x: torch.empty_like(x, dtype=torch.complex64), "Meta")
SEEN = []


@torch.library.custom_op("pw_partial::scaled_", mutates_args={"x"})
def scaled_(x: torch.Tensor, turn: torch.Tensor) -> None:
    SEEN.append(tuple(x.shape))
    x.mul_(turn.abs().sum())


@torch.library.custom_op("pw_partial::shown", mutates_args=())
def shown(x: torch.Tensor) -> None:
    SEEN.append(tuple(x.shape))


@torch.library.custom_op("pw_partial::numbered", mutates_args=())
def numbered(x: torch.Tensor, number: int) -> torch.Tensor:
    SEEN.append(number)
    return x + number


shown.register_fake(lambda x: None)
numbered.register_fake(lambda x, number: torch.empty_like(x))
torch.library._register_effectful_op("pw_partial::shown", torch._library.effects.EffectType.ORDERED)


def turned(x, angles):
    """A rotary embedding with complex numbers."""
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


class Rotary(nn.Module):
    def __init__(self, width=16, layers=2):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.queries = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.register_buffer("turns", torch.polar(torch.ones(64, width // 2), torch.randn(64, width // 2)))

    def forward(self, x):
        for norm, query in zip(self.norms, self.queries):
            q = query(norm(x))
            q = torch.view_as_real(torch.view_as_complex(q.unflatten(-1, (-1, 2))) * self.turns[: x.shape[-2]]).flatten(-2)
            x = x + F.softmax(q @ q.mT / 4, -1) @ x
        return x


class Norms(unittest.TestCase):
    """nn.RMSNorm under torch.compile is one named op, as in a graph of torch.export, and its numbers are PyTorch's."""

    CASES = (((4, 16), (16,), True), ((3, 4, 16), (16,), False), ((3, 4, 16), (4, 16), True))

    def test_forms(self):
        for (extents, shape, weighted), dtype, dynamic in itertools.product(self.CASES, (torch.float32, torch.bfloat16), (False, True)):
            norm = torch.nn.RMSNorm(shape, elementwise_affine=weighted, dtype=dtype)
            x = torch.randn(*extents, dtype=dtype)
            for given in (x, x.transpose(0, -1).contiguous().transpose(0, -1)):
                with self.subTest(extents=extents, shape=shape, dtype=dtype, dynamic=dynamic, strides=given.stride()), torch.no_grad():
                    torch._dynamo.reset()
                    front.forget()
                    got = torch.compile(norm, backend="piecewise", dynamic=dynamic)(given)
                    torch.testing.assert_close(got, norm(given))
                    self.assertEqual(got.stride(), norm(given).stride())
                    (report,) = front.graphs()
                    if weighted and len(shape) == 1:
                        self.assertEqual([graph.imported.ops()["rms_norm"] for graph in report.parts], [1])

    def test_gradients(self):
        norm = torch.nn.RMSNorm(16)
        x = torch.randn(4, 16)
        torch.compile(norm, backend="piecewise")(x).sum().backward()
        got, norm.weight.grad = norm.weight.grad, None
        norm(x).sum().backward()
        torch.testing.assert_close(got, norm.weight.grad)


class Partial(Case):
    def taken(self, function, *inputs, least, left=None, gradients=False, **how):
        """Like compiled.Case.same, with the share of calls that Piecewise takes; returns the reports."""
        reports = (self.same if gradients else self.same_without_gradients)(function, *inputs, **how)
        self.assertTrue(reports)
        for report in reports:
            self.assertEqual(report.refused, "")
            self.assertGreaterEqual(report.taken, least * report.ops, str(report))
            if left is not None:
                self.assertEqual(report.left, left)
        return reports

    def trained(self, function, *inputs, least):
        """Results and gradients are PyTorch's; the reports."""
        both = []
        compiled_one = torch.compile(function, backend="piecewise")
        for call in (function, compiled_one):
            given = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
            y = call(*given)
            y.sin().sum().backward()
            both.append((y.detach(), [x.grad for x in given]))
        self.assertLessEqual(difference(*both), CLOSE)
        reports = front.report(compiled_one)
        self.assertEqual([report.kind for report in reports], ["forward", "backward"])
        for report in reports:
            self.assertGreaterEqual(report.taken, least * report.ops, str(report))
        return reports


class Dtypes(Partial):
    def test_complex_numbers_between(self):
        self.taken(lambda x, a: turned(F.gelu(x), a).softmax(-1) * 2, torch.randn(12, 16), torch.randn(12, 8), least=0.5)

    def test_complex_arguments_and_results(self):
        def f(x, z):
            y = F.gelu(x).softmax(-1)
            w = z * torch.complex(y, y)
            return w, w.real + y, y @ y.mT

        z = torch.complex(torch.randn(4, 4), torch.randn(4, 4))
        (report,) = self.taken(f, torch.randn(4, 4), z, least=0.4)
        self.assertIn("complex64", " ".join(report.reasons))

    def test_a_complex_buffer(self):
        for how in ({}, {"frozen": True}, {"check": True}):
            self.setUp()
            (report,) = self.taken(Rotary().eval(), torch.randn(2, 12, 16), least=0.6, **how)
            self.assertEqual(len(report.parts), 3)

    def test_any_length(self):
        model = Rotary().eval()
        compiled_one = torch.compile(model, backend="piecewise", dynamic=True)
        with torch.no_grad():
            for length in (12, 7, 30):
                x = torch.randn(2, length, 16)
                self.assertLessEqual(difference(model(x), compiled_one(x)), CLOSE)
        (report,) = front.report(compiled_one)
        self.assertGreaterEqual(report.taken, 0.6 * report.ops)

    def test_a_dtype_other_than_the_traced_one(self):
        """PyTorch traces the statistics of a norm in bf16 with weights in f32 as bf16, but computes them in f32."""
        plain = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4))
        model, x, both = copy.deepcopy(plain), torch.randn(6, 8), []
        for call, one in ((plain, plain), (torch.compile(model, backend="piecewise"), model)):
            for _ in range(2):
                one.zero_grad()
                with torch.autocast("cpu", torch.bfloat16):
                    y = call(x)
                y.float().square().sum().backward()
            both.append([p.grad for p in one.parameters()])
        self.assertLessEqual(difference(*both), 2e-2)

    def test_statistics_of_another_dtype_than_the_traced_one(self):
        for norm in (nn.LayerNorm(8), nn.GroupNorm(2, 6)):
            for width in (torch.bfloat16, torch.float16):
                model, both = nn.Sequential(copy.deepcopy(norm), nn.ReLU()), []
                compiled = torch.compile(copy.deepcopy(model), backend="piecewise")
                for call in (model, compiled):
                    x = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(3)).to(width).requires_grad_()
                    y = call(x)
                    y.float().square().sum().backward()
                    both.append([y.detach(), x.grad, *(p.grad for p in call.parameters())])
                self.assertEqual([x.dtype for x in both[0]], [x.dtype for x in both[1]])
                self.assertLessEqual(difference(*both), 2e-2)
                forward = front.report(compiled)[0]
                self.assertEqual((forward.kind, forward.refused, forward.left), ("forward", "", {}))

    def test_some_of_a_list(self):
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            for item in (0, 1):
                self.taken(lambda x, n, item=item: x.split(n.tolist())[item] * 2, torch.randn(6, 4), torch.tensor([2, 4]), least=0)

    def test_short_integers(self):
        def f(x):
            y = (x.softmax(-1) * 100).to(torch.int16)
            return ((y + 3) // 2).float().tanh() @ x

        (report,) = self.taken(f, torch.randn(5, 5), least=0.5)
        self.assertIn("int16", " ".join(report.reasons))

    def test_nested_arguments(self):
        def f(x):
            return (x * 2 + 1).values().sin(), x

        x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
        got, given = torch.compile(f, backend="piecewise")(x)
        self.assertLessEqual(difference(f(x)[0], got), CLOSE)
        self.assertEqual(given.shape, x.shape)

    def test_products_into_views(self):
        def f(x, o):
            p = torch.empty(4, 4)
            return torch.mm(x, x, out=p).view(-1), torch.mm(x, x, out=o[:, 1:5])[1:], x.sin().cos()

        for report in self.same_without_gradients(f, torch.randn(4, 4), torch.randn(4, 6)):
            self.assertEqual(report.refused, "")

    def test_sparse_arguments(self):
        def f(m, x):
            return torch.sparse.mm(m, F.gelu(x)).softmax(-1) * 2

        dense = torch.randn(4, 6).relu()
        x = torch.randn(6, 3)
        one = torch.compile(f, backend="piecewise")
        with torch.no_grad():
            self.assertLessEqual(difference(f(dense.to_sparse(), x), one(dense.to_sparse(), x)), CLOSE)

    def test_training(self):
        self.trained(lambda x, a: turned(F.gelu(x), a).softmax(-1) * 2 @ x.mT, torch.randn(12, 16), torch.randn(12, 8), least=0.4)
        model, x = Rotary(), torch.randn(2, 12, 16)
        one = torch.compile(model, backend="piecewise")
        gradients = []
        for call in (model, one):
            model.zero_grad()
            call(x).square().mean().backward()
            gradients.append([p.grad.clone() for p in model.parameters()])
        self.assertLessEqual(difference(*gradients), CLOSE)

    def test_training_at_any_size(self):
        model = Rotary()
        one = torch.compile(model, backend="piecewise", dynamic=True)
        for length in (12, 7):
            x, gradients = torch.randn(2, length, 16), []
            for call in (model, one):
                model.zero_grad()
                call(x).square().mean().backward()
                gradients.append([p.grad.clone() for p in model.parameters()])
            self.assertLessEqual(difference(*gradients), CLOSE)

    def test_nothing_is_taken(self):
        with self.assertLogs("piecewise", "WARNING"):
            (report,) = self.same_without_gradients(lambda z: z * z + 1, torch.complex(torch.randn(4), torch.randn(4)))
        self.assertIn("complex64", report.refused)


class Memory(Partial):
    """Views of memory, and results that share memory."""

    def test_windows_of_a_transposed_argument(self):
        for f in (
            lambda x: x.as_strided((3, 2), (1, 5), 1) + 1,
            lambda x: (x * 2).as_strided((3, 2), (4, 1), 2),
            lambda x: x.t().as_strided((4,), (1,)) * 3,
        ):
            for x in (torch.randn(5, 4).t(), torch.randn(4, 5)):
                self.setUp()
                self.taken(f, x, least=1.0)

    def test_windows_of_a_written_part_of_memory(self):
        """The copy that stands for the argument begins where that one does."""
        for write in (
            lambda x, y: x.copy_(y),
            lambda x, y: x[0].add_(y[1]),
            lambda x, y: x[:, 1:3].mul_(y[:, 1:3]),
            lambda x, y: x.diagonal().add_(1),
            lambda x, y: x.as_strided((2, 2), (4, 2), 2).sub_(y[:, :2]),
        ):
            self.setUp()

            def f(x, y, write=write):
                write(x, y)
                return x.as_strided((2, 2), (2, 1), 3) * 2

            self.same_in_part_of_memory(f, (2, 4), torch.arange(8.0).view(2, 4) * 3)

    def same_in_part_of_memory(self, f, shape=(4, 2), *more):
        """The results, and the memory of an argument that begins at its third element, equal eager PyTorch's."""
        one, results = torch.compile(f, backend="piecewise", dynamic=False), []
        for call in (f, one):
            memory = torch.arange(40.0)
            with torch.no_grad():
                results.append((call(memory[2:10].view(shape), *more), memory))
        self.assertLessEqual(difference(*results), CLOSE)

    def test_windows_that_are_taken_before_a_write(self):
        """They read the written memory, and are returned, and given to ops that stay PyTorch's."""

        def f(x):
            window = x.as_strided((3,), (2,), 5)
            x.select(0, 1).sub_(x.max())
            parts, more = torch.ops.pw_partial.parts([window, x[1:].flatten()[:3]])
            return window, window[1:], parts, more

        self.same_in_part_of_memory(f)

    def test_a_written_window_that_begins_before_the_argument(self):
        def f(x):
            window = x.as_strided((2,), (2,), 0)
            scaled_(window, x)
            return window, x * 2

        self.same_in_part_of_memory(f)

    def test_a_part_that_a_custom_op_writes_after_another_write(self):
        def f(x):
            part = x.flatten()[2:5]
            x[0] = 3
            scaled_(part, x)
            return x[1:], x * 2

        self.same_in_part_of_memory(f)

    def test_a_written_window_whose_elements_share_memory(self):
        """A write to one of them is seen in the others."""

        def f(x):
            x.as_strided((2, 1, 2), (2, 3, 2), 2).select(0, 0).sub_(x.max())
            return x * 2

        self.same_in_part_of_memory(f)

    def test_custom_ops_keep_their_order(self):
        """One may log what it is given."""

        def f(x, memory):
            first = numbered(x, 1)
            scaled_(memory.as_strided((1, 1), (3, 3), 5), x)
            return numbered(first, 2)

        SEEN.clear()
        with torch.no_grad():
            torch.compile(f, backend="piecewise")(torch.randn(2, 3), torch.randn(4, 4)[1:, 1:])
        self.assertEqual(SEEN, [1, (1, 1), 2])

    def test_calls_that_take_the_name_of_a_copy(self):
        """Rewrites drop a copy and keep its name, as it is that of a result."""

        def f(x):
            y = torch.ops.pw_partial.parts([x, x[:1].expand(4, 2)])[0]
            z = torch.ops.pw_partial.parts([y + 1, y.t().contiguous().t()])[0]
            x.copy_(z)
            return y, x.view(-1)

        self.same_in_part_of_memory(f)

    def test_a_write_that_slices_cannot_express(self):
        """It stays PyTorch's, and what is computed beside it does not."""

        def f(x):
            scaled_(x.t()[1:], x)
            return (x + 1).softmax(-1), x[1]

        results, one = [], torch.compile(f, backend="piecewise", dynamic=False)
        for call in (f, one):
            x = torch.linspace(-1, 1, 20).view(4, 5)
            with torch.no_grad():
                results.append((call(x), x))
        self.assertLessEqual(difference(*results), CLOSE)
        (report,) = front.report(one)
        self.assertEqual((report.refused, report.left.get("auto_functionalized_v2")), ("", 1))
        self.assertGreaterEqual(report.taken, 2, str(report))

    def test_results_of_several_dtypes_that_share_memory(self):
        def f(x):
            y = x.exp()
            return y, y.view(torch.int32), y[1:].view(torch.uint8), y[2:4].view(torch.float64)

        x = torch.randn(4, 4)
        program = front.compile_export(torch.export.export(Lambda(f), (x,)))
        for call in (torch.compile(f, backend="piecewise", dynamic=False), torch.compile(f, backend="piecewise", dynamic=True), program):
            torch._dynamo.reset()
            with torch.no_grad():
                whole, numbers, some, wide = call(x)
            self.assertLessEqual(difference(f(x)[0], whole), CLOSE)
            self.assertEqual(len({y.untyped_storage().data_ptr() for y in (whole, numbers, some, wide)}), 1)
            whole.fill_(2.0)
            self.assertEqual(
                [*map(torch.equal, (numbers, some, wide), (whole.view(torch.int32), whole[1:].view(torch.uint8), whole[2:4].view(torch.float64)))],
                [True] * 3,
            )


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self._function = function

    def forward(self, *inputs):
        return self._function(*inputs)


class Lists(Partial):
    def test_a_list_among_results(self):
        def f(x):
            y = F.gelu(x) * 2
            total, more = torch.ops.pw_partial.parts([x, y])
            return (total + more[1]).softmax(-1), more[0]

        self.taken(f, torch.randn(4, 6), least=0.75, left={"pw_partial.parts.default": 1})

    def test_a_list_as_the_result(self):
        def f(x):
            one, two, three = torch.ops.pw_partial.many(x.softmax(-1))
            return (one * two).tanh() + three

        self.taken(f, torch.randn(4, 6), least=0.75, left={"pw_partial.many.default": 1})


class Branches(Partial):
    def test_branches(self):
        w = torch.randn(8, 8)

        def f(x):
            y = F.gelu(x @ w).softmax(-1) * 2
            y = torch.cond(y.sum() > 0, lambda y: (y.sin() @ w).relu(), lambda y: y.cos() + 1, (y,))
            return (y @ w).tanh() + 1

        (report,) = self.taken(f, torch.randn(4, 8), least=0.9, left={"cond": 1})
        self.assertEqual(len(report.parts), 4)

        def g(x):
            return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,)).tanh()

        for x in (torch.ones(3, 2), -torch.ones(3, 2)):
            self.setUp()
            self.taken(g, x, least=0.6)

    def test_branches_in_training(self):
        def f(x):
            return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x * 3,)).tanh()

        for x in (torch.ones(3, 2), -torch.ones(3, 2)):
            self.setUp()
            self.trained(f, x, least=0.5)

    def test_loops(self):
        def f(x):
            def body(i, y):
                return i + 1, (y * 0.5).tanh() + y

            count, y = while_loop(lambda i, y: i < 4, body, (torch.tensor(0), x.softmax(-1)))
            return y @ y.mT, count

        self.taken(f, torch.randn(4, 6), least=0.8, left={"while_loop": 1})

    def test_scans(self):
        def f(x):
            def step(carry, row):
                carry = (carry + row).tanh()
                return carry, carry * 2

            last, rows = scan(step, x[0].sin(), x)
            return last + 1, rows.softmax(-1)

        self.taken(f, torch.randn(5, 6), least=0.5)

    def test_associative_scans(self):
        def f(x):
            return associative_scan(lambda a, b: a * b + 1, x.sin(), 0, combine_mode="generic").softmax(-1)

        self.same_without_gradients(f, torch.randn(5, 6))

    def test_maps(self):
        def f(x, w):
            return map_over(lambda row, w: (row @ w).tanh(), x.sin(), w).softmax(-1)

        self.same_without_gradients(f, torch.randn(5, 6), torch.randn(6, 3))


class Regions(Partial):
    @staticmethod
    def repeated(w):
        @torch.compiler.nested_compile_region
        def layer(x):
            return torch.relu(x @ w) + x

        def f(x):
            for _ in range(3):
                x = layer(x)
            return x.softmax(-1)

        return f

    def test_a_region_is_compiled_once(self):
        (report,) = self.taken(self.repeated(torch.randn(8, 8)), torch.randn(4, 8), least=1.0)
        self.assertEqual(report.ops, 4)
        self.assertEqual(len(report.parts), 2)

    def test_in_training(self):
        self.trained(self.repeated(torch.randn(8, 8) / 4), torch.randn(4, 8), least=0.8)

    def test_weights_of_regions_are_packed_once(self):
        class Layers(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

            def forward(self, x):
                for layer in self.layers:
                    x = torch.compiler.nested_compile_region(lambda x, w, b: F.gelu(F.linear(x, w, b)) + x)(x, layer.weight, layer.bias)
                return x

        (report,) = self.taken(Layers().eval(), torch.randn(4, 16), least=1.0, frozen=True)
        self.assertIn("1 weight packed once", " ".join(report.summary))

    def test_any_size(self):
        f = self.repeated(torch.randn(8, 8))
        one = torch.compile(f, backend="piecewise", dynamic=True)
        with torch.no_grad():
            for rows in (4, 9, 17):
                x = torch.randn(rows, 8)
                self.assertLessEqual(difference(f(x), one(x)), CLOSE)


class Attention(Partial):
    """With a program for its scores: in plain ops, all of them taken."""

    @staticmethod
    def biased(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1).tanh()

    def test_scores(self):
        self.taken(self.biased, *(torch.randn(2, 2, 16, 8) for _ in range(3)), least=0.9)

    def test_a_mask(self):
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 32, 32, device="cpu", BLOCK_SIZE=16)

        def f(q, k, v):
            return flex_attention(q, k, v, block_mask=mask, enable_gqa=True) * 2

        self.taken(f, torch.randn(1, 4, 32, 8), torch.randn(1, 2, 32, 8), torch.randn(1, 2, 32, 8), least=0.9)

    def test_a_buffer(self):
        slopes = torch.rand(2)
        inputs = [torch.randn(2, 2, 16, 8) for _ in range(3)]
        self.taken(lambda q, k, v: flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * slopes[h]), *inputs, least=0.9)


class Mistaken(Partial):
    """Calls that look as if they could be taken, until they are compiled."""

    def failing(self, *names, place=True):
        compiled_part = Taking._compiled

        def fail(self, module, static):
            for node in module.graph.nodes:
                if node.op == "call_function" and any(name in node.name for name in names):
                    why = piecewise.Error(f"{node.name} cannot be compiled")
                    why.place = f"node {node.name}" if place else None
                    raise why
            return compiled_part(self, module, static)

        return unittest.mock.patch.object(Taking, "_compiled", fail)

    def test_one_call_is_left(self):
        with self.failing("tanh"):
            self.taken(lambda x: (x.sin().tanh() * 2).cos(), torch.randn(4), least=0.75, left={"aten.tanh.default": 1})

    def test_several_are_left(self):
        with self.failing("tanh", "exp"):
            left = {"aten.tanh.default": 2, "aten.exp.default": 1}
            self.taken(lambda x: ((x.sin().tanh() * 2).exp() + x).tanh().cos(), torch.randn(4), least=0.5, left=left)

    def test_a_part_is_left(self):
        def f(x, y):
            z = torch.complex(x.sin().tanh(), x)
            return (z * z).real.cos() + y

        with self.failing("tanh", place=False):
            (report,) = self.taken(f, torch.randn(4), torch.randn(4), least=0.2)
        self.assertIn("aten.sin.default", report.left)
        self.assertNotIn("aten.cos.default", report.left)

    def test_all_is_left(self):
        with self.failing("tanh", place=False), self.assertLogs("piecewise", "WARNING"):
            (report,) = self.same_without_gradients(lambda x: x.sin().tanh(), torch.randn(4))
        self.assertIn("cannot be compiled", report.refused)


class Order(Partial):
    """Visible behaviour: random numbers, effects, writes, and memory that results share."""

    def test_random_numbers(self):
        def f(x):
            a = torch.ops.pw_partial.noise(x)
            z = torch.ops.pw_partial.complex_noise(x)
            b = F.dropout(x, 0.5)
            return a.tanh() + z.real + b, torch.rand(3)

        self.same_without_gradients(f, torch.randn(4, 4))

    def test_writes(self):
        def f(x, z):
            y = F.gelu(x)
            x.add_(1)
            w = (z * torch.complex(y, x)).real
            x.mul_(2)
            x[1:].sub_(w[1:])
            return x.softmax(-1) + w

        self.same_without_gradients(f, torch.randn(4, 4), torch.complex(torch.randn(4, 4), torch.randn(4, 4)))

    def test_ops_that_write(self):
        def f(x, z):
            y = x.tanh()
            torch.ops.pw_partial.scaled_(y, z)
            return y.softmax(-1) + x

        z = torch.complex(torch.ones(2), torch.zeros(2))
        self.taken(f, torch.randn(4, 4), z, least=0.5)

    def test_results_that_share_memory(self):
        def f(x, z):
            y = x.softmax(-1)
            w = (z * torch.complex(y, y)).real
            u = w.tanh() * 2
            return y, y.t(), u.view(-1), u, w

        x, z = torch.randn(4, 4), torch.complex(torch.randn(4, 4), torch.randn(4, 4))
        one = torch.compile(f, backend="piecewise")
        with torch.no_grad():
            for call in (f, one):
                y, t, flat, u, w = call(x, z)
                self.assertEqual(y.data_ptr(), t.data_ptr())
                self.assertEqual(u.data_ptr(), flat.data_ptr())
        self.same_without_gradients(f, x, z)

    def test_effects(self):
        def f(x):
            y = x.tanh()
            torch.ops.pw_partial.shown(y)
            z = (y * 2).softmax(-1)
            torch.ops.pw_partial.shown(z[:1])
            return z @ z.mT

        SEEN.clear()
        self.taken(f, torch.randn(4, 3), least=0.5, calls=1)
        self.assertEqual(SEEN, [(4, 3), (1, 3)] * 2)

    def test_sizes_of_numbers(self):
        def f(x):
            n = x.nonzero()
            return n.float().tanh() * 2, n.shape[0]

        self.same_without_gradients(f, torch.randint(0, 2, (4, 5)))

    def test_sizes_in_fractions(self):
        def f(x):
            y = torch.nn.functional.interpolate((x.sin() * 2)[None, None], scale_factor=1.7)
            return y.relu(), (x + 1).tanh().softmax(-1)

        with torch._dynamo.config.patch(assume_static_by_default=False):
            (report,) = self.taken(f, torch.randn(5, 4), least=0.3)
        self.assertIn("is computed in fractions", " ".join(report.reasons))
        self.assertNotIn("aten.tanh.default", report.left)

    def test_ranges_with_whole_steps_in_floats(self):
        """PyTorch computes the sizes of such ranges in floats."""
        for step in (-1.0, -3.0):

            def f(x):
                places = torch.arange(x.shape[0], -x.shape[0], step)
                return (places[:, None] * x.sum(0)).sin().reshape(places.shape[0], -1) + 1

            for rows in (5, 8):
                with torch._dynamo.config.patch(assume_static_by_default=False):
                    self.taken(f, torch.randn(rows, 4), least=1)

    def test_norms_that_stay(self):
        def f(x):
            return torch.nn.functional.layer_norm(x.sin(), x.shape[-1:]).cos()

        self.taken(f, torch.randn(3, 4, dtype=torch.float64), least=0.6, left={"aten.native_layer_norm.default": 1})

    def test_numbers_of_tensors(self):
        def f(x, n):
            size = n.item()
            torch._check(size >= 1)
            torch._check(size <= 64)
            return (torch.ones(size, 4) * x).tanh().sum(0) + size

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            for n in (3, 7):
                torch._dynamo.reset()
                self.same_without_gradients(f, torch.randn(4), torch.tensor(n))

    def test_symbolic_bools(self):
        def f(x, n):
            torch._check(n.item() > 2)
            return (x.tanh() * n).softmax(-1)

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            self.taken(f, torch.randn(4, 4), torch.tensor(3), least=0.5)
            one = torch.compile(f, backend="piecewise")
            with torch.no_grad(), self.assertRaises(RuntimeError):
                one(torch.randn(4, 4), torch.tensor(1))


class Random:
    """Programs of real and complex numbers, short integers, views and writes, drawn at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.steps = [self.random.choice(list(STEPS)) for _ in range(self.random.randint(4, 14))]
        self.picks = [(self.random.random(), self.random.random()) for _ in range(99)]

    def __call__(self, x, y):
        picks = iter(self.picks)
        values = [x, y, x + y]
        for name in self.steps:
            one, two = (values[int(pick * len(values))] for pick in next(picks))
            value = STEPS[name](one, two)
            values += [] if value is None else [value]
        return [value for value in values[2:] if next(picks)[0] < 0.7] or [values[-1]]


def as_real(x):
    return x.real if x.is_complex() else x.float()


STEPS = {
    "tanh": lambda a, b: as_real(a).tanh(),
    "product": lambda a, b: as_real(a) @ as_real(b).softmax(-1),
    "sum": lambda a, b: as_real(a) + as_real(b) * 2,
    "complex": lambda a, b: torch.complex(as_real(a), as_real(b)),
    "turn": lambda a, b: a * torch.polar(torch.ones_like(as_real(b)), as_real(b).tanh()),
    "size": lambda a, b: a.abs(),
    "short": lambda a, b: (as_real(a).tanh() * 50).to(torch.int16),
    "shorts": lambda a, b: a + 3 if a.dtype == torch.int16 else (as_real(a).sigmoid() * 9).to(torch.int16) // 2,
    "turned": lambda a, b: a.t(),
    "rolled": lambda a, b: a.flip(0),
    "write": lambda a, b: a.add_(1) if a.is_floating_point() else None,
    "write_part": lambda a, b: (a[1:].mul_(as_real(b)[1:].sigmoid()), None)[1] if a.is_floating_point() else None,
}


class Programs(Partial):
    def test_random_programs(self):
        taken = 0
        for seed in range(80):
            with self.subTest(seed=seed):
                self.setUp()
                logging.disable(logging.WARNING)
                self.addCleanup(logging.disable, logging.NOTSET)
                reports = self.same_without_gradients(Random(seed), torch.randn(4, 4), torch.randn(4, 4), calls=1)
                taken += sum(report.taken for report in reports)
        self.assertGreater(taken, 300)

    def test_as_few_parts_as_can_be(self):
        """There are only as many pieces as the longest chain of taken calls with an untaken call in between requires."""
        for seed in range(40):
            module = make_fx(torch.func.functionalize(Random(seed), remove="mutations_and_views"), tracing_mode="fake")(
                torch.randn(4, 4), torch.randn(4, 4)
            )
            staying = Staying(module)
            stages = Partition(module, staying).stages
            depth = {}
            for node in module.graph.nodes:
                if node.op == "call_function" and node not in stages.free:
                    below = [depth[n] + (n in staying.reasons and node not in staying.reasons) for n in node.all_input_nodes if n in depth]
                    depth[node] = max(below, default=-1 if node in staying.reasons else 0)
            taken = [depth[node] for node in depth if node not in staying.reasons]
            with self.subTest(seed=seed):
                self.assertEqual(stages.count, len(set(taken)) and max(taken) + 1)
                for node in depth:
                    for source in node.all_input_nodes:
                        if source in depth:
                            at, before = stages.of[node], stages.of[source]
                            late = source in staying.reasons and node not in staying.reasons
                            self.assertGreaterEqual(at, before + late, (seed, node, source))


if __name__ == "__main__":
    compiled.main()
