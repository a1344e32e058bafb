#!/usr/bin/env python3
"""torch.compile(backend="piecewise") beside PyTorch: numbers, training, writes, recompiles, warm starts, one's own ops and rules.

    compiled.py [--corpus FILE] [TEST …]

The corpus is a Python file whose R is {name: () -> (module, inputs, {argument: {dim: name}})}.
"""
import argparse
import copy
import importlib
import itertools
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_leaves

import piecewise
from piecewise import pytorch as front

ROOT = Path(__file__).resolve().parents[2]
CLOSE = 1e-4  # of f32, relative to the largest number


def difference(want, got):
    """The largest error of any tensor, over its largest number; AssertionError where shapes, strides or dtypes differ."""
    worst = 0.0
    for a, b in zip(tree_leaves(want), tree_leaves(got)):
        if not isinstance(a, torch.Tensor):
            assert a == b, (a, b)
            continue
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride()), (a.shape, a.dtype, a.stride(), b.shape, b.dtype, b.stride())
        if a.is_complex():
            a, b = torch.view_as_real(a), torch.view_as_real(b)
        if a.numel():
            error = (a.double() - b.double()).abs().max().item()
            worst = max(worst, error / max(1.0, a.double().abs().max().item()))
            assert a.isnan().equal(b.isnan())
    return worst


def sized(inputs, dims, size):
    """Inputs whose dynamic dims have this size."""
    out = []
    for i, x in enumerate(inputs):
        for dim in dims.get(i, {}):
            x = torch.cat([x] * -(-size // x.shape[dim]), dim).narrow(dim, 0, size)
        out.append(x.contiguous())
    return out


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        front.forget()
        torch.manual_seed(0)

    def same(self, function, *inputs, calls=2, **options):
        """The function and its copy that is compiled give the same results, arguments and buffers, call by call; its reports."""
        plain, other = copy.deepcopy(function), copy.deepcopy(function)
        compiled = torch.compile(other, backend="piecewise", options=options)
        for seed in range(calls):
            given, again = [x.clone() for x in inputs], [x.clone() for x in inputs]
            torch.manual_seed(seed)
            want = plain(*given)
            torch.manual_seed(seed)
            got = compiled(*again)
            self.assertLessEqual(difference((want, given), (got, again)), CLOSE)
            if isinstance(plain, nn.Module):
                self.assertLessEqual(difference(plain.state_dict(), other.state_dict()), CLOSE)
        return front.report(compiled)

    def options(self):
        return {}

    def same_without_gradients(self, function, *inputs, **how):
        with torch.no_grad():
            return self.same(function, *inputs, **how)


class Cache(nn.Module):
    """Keys of tokens that were seen, as a buffer, and how many they are."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(2, 16, 8))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))
        self.project = nn.Linear(8, 8)

    def forward(self, x):
        self.k[:, 3:4] = self.project(x)
        self.at.add_(1)
        return (self.k * 2).sum(1)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(32, 32)

    def forward(self, x):
        return F.dropout(self.project(x), 0.3, self.training)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


LIBRARY = torch.library.Library("pw_test", "DEF")
LIBRARY.define("scale_(Tensor(a!) x, float s) -> ()")
LIBRARY.impl("scale_", lambda x, s: (x.mul_(s), None)[1], "CompositeExplicitAutograd")
LIBRARY.define("norm(Tensor x, Tensor w) -> Tensor")
LIBRARY.impl("norm", lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w, "CPU")
LIBRARY.impl("norm", lambda x, w: torch.empty_like(x), "Meta")
LIBRARY.define("rms(Tensor x, Tensor w, float eps) -> Tensor")
LIBRARY.impl("rms", lambda x, w, eps: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w, "CPU")
LIBRARY.impl("rms", lambda x, w, eps: torch.empty_like(x), "Meta")
LIBRARY.define("pair(Tensor x) -> (Tensor, Tensor)")
LIBRARY.impl("pair", lambda x: (torch.relu(x), -x), "CPU")
LIBRARY.impl("pair", lambda x: (torch.empty_like(x), torch.empty_like(x)), "Meta")
LIBRARY.define("gate(Tensor x, Tensor z) -> (Tensor, Tensor)")
LIBRARY.impl("gate", lambda x, z: (torch.relu(x), x * z), "CPU")
LIBRARY.impl("gate", lambda x, z: (torch.empty_like(x), torch.empty_like(x)), "Meta")


class Writes(Case):
    def test_in_place(self):
        def f(x, y):
            x.add_(1)
            x.view(-1)[0:2].mul_(3)
            y[:, 1] = x[:, 0]
            return x.t(), y * 2, x

        self.assertEqual(len(self.same_without_gradients(f, torch.randn(4, 3), torch.randn(4, 3))), 1)

    def test_cache_as_a_buffer(self):
        self.same_without_gradients(Cache(), torch.randn(2, 1, 8), calls=3)

    def test_views_of_a_result(self):
        def f(x):
            y = x + 1
            return y.t(), y.view(-1), y[::2], x.view(-1), y

        self.same_without_gradients(f, torch.randn(4, 3))

    def test_custom_op_that_writes(self):
        def f(x):
            y = x * 2
            torch.ops.pw_test.scale_(y, 3.0)
            return y + 1

        (report,) = self.same_without_gradients(f, torch.randn(4, 4))
        self.assertEqual(report.left, {"pw_test.scale_.default": 1})


class Random(Case):
    def test_dropout_in_training(self):
        model = Dropping().train()
        other = copy.deepcopy(model)
        compiled = torch.compile(other, backend="piecewise")
        x = torch.randn(4, 32)
        for seed in range(3):
            for one, call in ((model, model), (other, compiled)):
                torch.manual_seed(seed)
                one.zero_grad()
                call(x).sum().backward()
            self.assertLessEqual(difference(model.project.weight.grad, other.project.weight.grad), CLOSE)

    def test_numbers_of_the_seed(self):
        self.same_without_gradients(lambda x: (x + torch.rand_like(x), torch.randn(4), torch.randperm(8)), torch.randn(4))


class Parts(Case):
    def test_empty_and_integers(self):
        self.same_without_gradients(lambda x: (x[:0].sum(0), x[:0] * 2), torch.randn(4, 3))
        self.same_without_gradients(lambda x: (x // 2, x % 3, x.float().mean(), x.max(), (x > 2).any()), torch.randint(-9, 9, (4, 5)))

    def test_dtypes_that_stay_pytorchs(self):
        with self.assertLogs("piecewise", "WARNING"):
            (report,) = self.same_without_gradients(lambda x: torch.fft.rfft(x).abs(), torch.randn(16))
        self.assertIn("complex64", report.refused)  # nothing is left to take

    def test_numbers_in_the_dtype_of_a_tensor(self):
        """PyTorch rounds a divisor, a base, and an exponent to the dtype of the tensor first."""
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            for number in (0.1, torch.tensor(0.1), torch.tensor(0.1, dtype=torch.float64)):
                with self.subTest(dtype=dtype, number=number):
                    self.setUp()
                    x = torch.tensor([100.0, 1.0, -77.0, 3e-3, 1000.0], dtype=dtype)

                    def function(x):
                        return x % number, torch.fmod(x, number), number % x, x.abs() ** number, number ** (x / 1000)

                    for want, got in zip(function(x), torch.compile(function, backend="piecewise")(x)):
                        self.assertTrue(torch.allclose(want, got, rtol=1e-2, atol=0), (want, got))

    def test_powers_and_elu_of_zeros_and_infinities(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
            with self.subTest(dtype=dtype):
                self.setUp()
                x = torch.tensor([0.0, -0.0, -torch.inf, torch.inf, 4.0, torch.nan], dtype=dtype)
                function = torch.compile(lambda x: (x**-0.5, x**0.5, F.elu(x, torch.inf)), backend="piecewise")
                for want, got in zip((x**-0.5, x**0.5, F.elu(x, torch.inf)), function(x)):
                    self.assertTrue(torch.equal(1 / want.nan_to_num(7), 1 / got.nan_to_num(7)), (want, got))

    def test_special_values_of_celu_and_addr(self):
        """Where PyTorch's decompositions give NaN: 0 times infinity, and an outer product that is infinite before its factor is applied."""

        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
            with self.subTest(dtype=dtype):
                self.setUp()
                x = torch.tensor([0.0, -0.0, 2.0, -torch.inf, torch.inf, torch.nan], dtype=dtype)
                large = torch.full((6,), torch.finfo(dtype).max, dtype=dtype)
                compiled = torch.compile(lambda x, y: (F.celu(x, torch.inf), torch.addr(y.new_ones(6, 6), y, y, alpha=0)), backend="piecewise")
                for want, got in zip((F.celu(x, torch.inf), torch.ones(6, 6, dtype=dtype)), compiled(x, large)):
                    self.assertTrue(torch.equal(want.nan_to_num(7), got.nan_to_num(7)), (want, got))

    def test_products_with_a_factor_of_zero(self):
        """PyTorch's libraries skip some of them, so that infinite products vanish."""
        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
            with self.subTest(dtype=dtype):
                self.setUp()
                x = torch.full((40, 40), torch.finfo(dtype).max, dtype=dtype)

                def function(x):
                    return torch.addmm(x, x, x, beta=0.5, alpha=0) / 2

                want, got = function(x), torch.compile(function, backend="piecewise")(x)
                self.assertTrue(torch.equal(want.nan_to_num(7), got.nan_to_num(7)), (want, got))

    def test_memory_of_the_opposite_sign(self):
        """The imaginary part of a conjugate is such a tensor; so may be the gradients that a backward graph receives."""

        def function(x):
            return x.sin() * x + 1, x[1:], x.view(3, 1)

        def written(x):
            x.add_(1)
            return x * 2

        x = torch.randn(3, dtype=torch.complex64)
        for opposite in (x.conj().imag, x.imag, torch._neg_view(x.real)):
            got = torch.compile(function, backend="piecewise", dynamic=False)(opposite)
            self.assertLessEqual(difference([y.resolve_neg() for y in function(opposite)], [y.resolve_neg() for y in got]), CLOSE)
        compiled = torch.compile(written, backend="piecewise")
        mine, theirs = (torch._neg_view(torch.arange(3.0)) for _ in range(2))
        self.assertTrue(torch.equal(compiled(mine), written(theirs)) and torch.equal(mine, theirs))
        gradients = []
        for call in (function, torch.compile(function, backend="piecewise")):
            y = torch.ones(3, requires_grad=True)
            call(y)[0].backward(torch._neg_view(torch.ones(3)))
            gradients.append(y.grad)
        self.assertLessEqual(difference(*gradients), CLOSE)

    def test_graphs_run_on_opposite_signs(self):
        """PyTorch exports the memory of such a tensor, without its signs."""
        graph = piecewise.load("graph g { in x: f32[3]  y = exp(x)  out y }")
        (y,) = graph.run({"x": torch._neg_view(torch.arange(3.0))})
        self.assertLessEqual(difference([torch.exp(-torch.arange(3.0))], [torch.from_numpy(y)]), CLOSE)

    def test_expanded_results_and_constants(self):
        self.same_without_gradients(
            lambda x: (x[:1].expand(4, 3), x.unsqueeze(0).expand(2, -1, -1).transpose(1, 2), x[:0].expand(0, 3)), torch.randn(4, 3)
        )
        self.same_without_gradients(lambda x: x * torch.tensor([1.0, 2.0, 3.0]), torch.randn(4, 3))

    def test_weights_that_change(self):
        """Weights are looked up again when they have other memory, other strides, or another module's; new contents need no look-up."""
        with torch.no_grad():
            models = [Block().eval() for _ in range(2)]
            calls = [torch.compile(model, backend="piecewise", options=self.options()) for model in models]
            x = torch.randn(5, 16)

            def check():
                for _ in range(2):
                    for model, call in zip(models, calls):
                        self.assertLessEqual(difference([model(x)], [call(x)]), CLOSE)

            check()
            models[0].up.weight.mul_(2)
            check()
            models[0].up.weight.data = torch.randn(64, 16)
            check()
            models[1].down.weight.data = torch.randn(64, 16).t()
            check()
            models[0].up.weight.data = torch.randn(64 * 16 + 1)[1:].view(64, 16)
            check()
            models[0].norm.weight = nn.Parameter(torch.randn(16))
            check()
            models[0].load_state_dict(models[1].state_dict())
            check()

    def test_results_in_any_layout(self):
        self.same_without_gradients(
            lambda x: (x.sin().permute(2, 0, 1), x.cos().transpose(0, 1), x[:1].exp().transpose(0, 2), x[:, :, :1].abs().transpose(0, 1)),
            torch.randn(2, 3, 4),
        )

    def test_copies_to_any_order_of_dims(self):
        for dtype in (torch.bool, torch.bfloat16, torch.float32, torch.int64):
            x = torch.randint(0, 2 if dtype == torch.bool else 100, (3, 17, 34, 5)).to(dtype)
            orders = list(itertools.permutations(range(4)))
            self.setUp()

            def function(x):
                return [x[:, 1:, ::2].permute(order).reshape(-1) for order in orders]

            for order, want, got in zip(orders, function(x), torch.compile(function, backend="piecewise")(x)):
                self.assertTrue(torch.equal(want, got), (dtype, order))

    def test_sizes_that_depend_on_numbers(self):
        self.same_without_gradients(lambda x: x.nonzero().sum() + 1, torch.randint(0, 2, (4, 5)))


class Borrowed(Case):
    def test_products_and_attention_have_pytorchs_bits(self):
        """Without measurements, products and attention of bf16, and batches of f32 products, run in the kernels that eager calls run in."""
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        head = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
        a, b, bias = (torch.randn(*shape, dtype=torch.bfloat16) for shape in ((48, 80), (80, 64), (64,)))
        for function, *inputs in (
            (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), head, head[:, :, :40], head[:, :, :40]),
            (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.3), head.transpose(1, 2).contiguous().transpose(1, 2)),
            (torch.mm, a, b),
            (lambda a, b: a @ b.t(), a, b.t().contiguous()),
            (torch.addmm, bias, a, b),
            (torch.bmm, a.expand(3, 48, 80), b.expand(3, 80, 64)),
            (torch.bmm, torch.randn(3, 48, 80), torch.randn(3, 64, 80).transpose(1, 2)),
        ):
            self.setUp()
            with torch.no_grad():
                want, got = function(*inputs), torch.compile(function, backend="piecewise", dynamic=False)(*inputs)
            self.assertTrue(torch.equal(want, got), difference(want, got))


class WithRules(Case):
    def rules(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "mine.pwr"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return str(path)


class Rules(WithRules):
    def test_a_custom_op_by_one_line(self):
        def f(x, w):
            return torch.ops.pw_test.norm(x + 1, w) * 2

        arguments = (torch.randn(4, 8), torch.randn(8))
        (before,) = self.same_without_gradients(f, *arguments)
        self.assertEqual(before.left, {"pw_test.norm.default": 1})
        self.setUp()
        rules = self.rules("foreign pw_test.norm(x, w) = rms_norm(x, w){eps = 1e-6}\n")
        (after,) = self.same_without_gradients(f, *arguments, rules=["llm", rules])
        self.assertEqual(after.left, {})
        self.assertIn("1 kernel", after.summary[0])

    def test_a_wrong_rule_is_found(self):
        rules = self.rules("rule r { y = relu(x)  =>  y = neg(x) }\npass p = greedy { r }\npipeline wrong { p }\n")
        compiled = torch.compile(lambda x: torch.relu(x) + 1, backend=front.Backend(rules=["llm", rules], pipeline="wrong", check=True))
        with self.assertRaisesRegex(piecewise.Error, "differs from PyTorch's"), torch.no_grad():
            compiled(torch.randn(8))

    def test_mistakes_in_rules(self):
        rules = self.rules("rule r { y = relu(x)  => }\n")
        for options, said in (
            ({"rules": rules}, r"mine.pwr:1:\d+"),
            ({"pipeline": "o7"}, "no pipeline `o7`"),
            ({"backend": "gpu"}, "no backend `gpu`"),
        ):
            torch._dynamo.reset()
            with self.subTest(options), self.assertRaisesRegex(Exception, said):
                torch.compile(lambda x: x + 1, backend="piecewise", options=options)(torch.ones(2))

    def test_explain(self):
        compiled = torch.compile(Block(), backend="piecewise")
        with torch.no_grad():
            compiled(torch.randn(4, 16))
        said = front.explain(compiled, "add_rms")
        self.assertEqual(len(said), 1)
        self.assertTrue(said[0]["near_misses"])
        with self.assertRaisesRegex(piecewise.Error, "there is no rule"):
            front.explain(compiled, "no_such_rule")

    def test_options(self):
        with self.assertRaisesRegex(Exception, "piecewise has no option `rule`"):
            torch.compile(lambda x: x + 1, backend="piecewise", options={"rule": "llm"})(torch.ones(2))
        self.assertEqual(front.Backend(params={"tp": 2}), front.Backend(params={"tp": "2"}))
        self.assertNotEqual(front.Backend(), front.Backend(pipeline=""))

    def test_prove(self):
        rules = """
        rule right { y = neg(neg(x)) => y = x }
        rule wrong { y = relu(x) => y = abs(x) }
        pipeline both { greedy { right }  greedy { wrong } }
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "own.pwr"
            file.write_text(textwrap.dedent(rules))
            for _ in range(2):  # the second is kept by the first
                torch._dynamo.reset()
                compiled = torch.compile(
                    lambda x: torch.relu(-(-x)),
                    backend="piecewise",
                    options={"rules": str(file), "pipeline": "both", "prove": True, "report": folder},
                )
                x = torch.randn(5, 3)
                self.assertTrue(compiled(x).equal(x.abs()))
                report = front.report(compiled)[-1]
                self.assertEqual({row["rule"]: row["left"] for row in report.proofs}, {"right": 0, "wrong": 1})
                self.assertEqual([row["rule"] for row in report.not_proved], ["wrong"])
                self.assertIn("proved: 1 of 2 rewrites", str(report))
            self.assertIn("not proved: wrong at ", next(Path(folder).glob("*.txt")).read_text())

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            compiled = torch.compile(Block(), backend="piecewise", options={"report": folder})
            with torch.no_grad():
                compiled(torch.randn(4, 16))
            self.assertEqual(sorted(p.suffix for p in Path(folder).iterdir()), [".html", ".txt"])
        self.assertEqual(str(front.report(compiled)).splitlines()[0].split(":")[0], "inference")
        self.assertIn("no graph was compiled", str(front.report(lambda x: x)))


class Compiles(Case):
    def test_once_for_all_batches(self):
        model = Block().eval()
        compiled = torch.compile(model, backend="piecewise", dynamic=True)
        with torch.no_grad():
            for batch in (2, 3, 17, 64, 512):
                x = torch.randn(batch, 16)
                self.assertLessEqual(difference(model(x), compiled(x)), CLOSE)
            self.assertEqual(len(front.report(compiled)), 1)
            x = torch.randn(1, 16)
            self.assertLessEqual(difference(model(x), compiled(x)), CLOSE)
        self.assertLessEqual(len(front.report(compiled)), 2)

    def test_once_for_equal_options(self):
        model = Block().eval()
        with torch.no_grad():
            for _ in range(2):
                torch.compile(model, backend=front.Backend(pipeline="o1"))(torch.ones(4, 16))
        self.assertEqual(len(front.graphs()), 1)

    PROGRAM = """
        import torch
        from piecewise import pytorch as front
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.LayerNorm(16), torch.nn.Linear(16, 48), torch.nn.GELU(), torch.nn.Softmax(-1)).eval()
        x = torch.randn(4, 16)
        with torch.no_grad():
            compiled = torch.compile(model, backend="piecewise")
            assert torch.allclose(compiled(x), model(x), atol=1e-5)
        (report,) = front.report(compiled)
        print(report.warm, report.summary[0])
    """

    def test_a_second_process_compiles_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.py"
            program.write_text(textwrap.dedent(self.PROGRAM), encoding="utf-8")
            environment = os.environ | {"PWR_CACHE_DIR": folder + "/cache"}

            def run(path):
                done = subprocess.run([sys.executable, str(program)], env=environment | {"PATH": path}, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])
                return done.stdout

            self.assertIn("False cpu:", run(os.environ["PATH"]))
            self.assertRegex(run("/nowhere"), r"True cpu: (\d+) kernels, \1 from the cache")


class Training(Case):
    options = {}

    def steps(self, model, inputs, count=3):
        """The largest difference of losses and gradients over some steps."""
        other = copy.deepcopy(model)
        compiled = torch.compile(other, backend="piecewise", options=self.options)
        runs = [(one, call, torch.optim.SGD(one.parameters(), lr=0.1)) for one, call in ((model, model), (other, compiled))]
        worst = 0.0
        for _ in range(count):
            losses = []
            for _, call, optimiser in runs:
                optimiser.zero_grad()
                losses.append(call(*inputs).float().pow(2).mean())
                losses[-1].backward()
            gradients = [[p.grad for p in one.parameters() if p.grad is not None] for one, _, _ in runs]
            self.assertEqual(*map(len, gradients))
            worst = max(worst, difference((losses[0].detach(), gradients[0]), (losses[1].detach(), gradients[1])))
            for _, _, optimiser in runs:
                optimiser.step()
        return worst

    def test_block(self):
        self.assertLessEqual(self.steps(Block(), [torch.randn(4, 16)]), CLOSE)
        self.assertEqual([graph.kind for graph in front.graphs()], ["forward", "backward"])


def of_corpus(models):
    """Test cases of a corpus of models."""

    class Corpus(Training):
        def check(self, name, dynamic, **options):
            """Checks that every op was taken; attention that may read a program's caches only if an option rules this out."""
            self.setUp()
            model, inputs, dims = models.R[name]()
            model.eval()
            compiled = torch.compile(model, backend="piecewise", dynamic=dynamic, options=options)
            with torch.no_grad():
                for size in (None, *((5, 17, 2) if dynamic and dims else ())):
                    given = inputs if size is None else sized(inputs, dims, size)
                    want = model(*[x.clone() for x in given])
                    bound = CLOSE if want.dtype == torch.float32 else 0.05
                    self.assertLessEqual(difference(want, compiled(*[x.clone() for x in given])), bound)
            self.assertEqual([graph.refused for graph in front.graphs()], [""] * len(front.graphs()))
            left = {op for graph in front.graphs() for op in graph.left}
            print(
                f"{name}{' dynamic' if dynamic else ''}: {len(front.graphs())} graphs; left to PyTorch: {', '.join(sorted(left)) or 'nothing'}",
                flush=True,
            )
            if not options and left == {"vllm.unified_attention_with_output.default"}:
                return self.check(name, dynamic, own_attention=True)
            return not left

        def count(self, dynamic):
            whole = 0
            for name in models.R:
                with self.subTest(model=name):
                    whole += self.check(name, dynamic)
            print(f"{whole} of {len(models.R)} models with every op taken")
            return whole

        def test_static(self):
            self.assertGreaterEqual(self.count(False), 0.89 * len(models.R))  # 24 of 27

        def test_dynamic(self):
            self.assertGreaterEqual(self.count(True), 0.89 * len(models.R))

        def test_training(self):
            for name in ("mlp", "swiglu", "nanogpt", "llama"):
                with self.subTest(model=name):
                    self.setUp()
                    model, inputs, _ = models.R[name]()
                    self.assertLessEqual(self.steps(model, inputs), CLOSE)

        def test_bf16(self):
            """Numbers of bf16 models are not farther from those of a run in f64 than 1.5 times as far as Inductor's."""
            for name in models.R:
                model, inputs, _ = models.R[name]()
                if all(p.dtype != torch.bfloat16 for p in model.parameters()):
                    continue
                with self.subTest(model=name), torch.no_grad():
                    truth = copy.deepcopy(model).eval().double()(*[x.double() if x.is_floating_point() else x for x in inputs])
                    errors = {}
                    for backend in ("inductor", "piecewise"):
                        self.setUp()
                        got = torch.compile(copy.deepcopy(model).eval(), backend=backend, dynamic=False)(*[x.clone() for x in inputs])
                        errors[backend] = ((got.double() - truth).norm() / truth.norm()).item()
                    print(f"{name}: RMS from f64: " + ", ".join(f"{backend} {error:.3g}" for backend, error in errors.items()), flush=True)
                    self.assertLessEqual(errors["piecewise"], 1.5 * errors["inductor"])

        def test_inside_inductor(self):
            """The library's rules, whose fused ops have generated kernels."""
            for name in ("llama", "gpt2", "vllm_llama_native"):
                with self.subTest(model=name), torch.no_grad():
                    self.setUp()
                    model, inputs, _ = models.R[name]()
                    one = front.inductor_pass("llm", "o2")
                    options = {"post_grad_custom_pre_pass": one, "fx_graph_cache": False}
                    call = torch.compile(model.eval(), dynamic=False, options=options)
                    self.assertLessEqual(difference(model(*inputs), call(*inputs)), CLOSE)
                    self.assertEqual([done.refused for done in one.done], [""])
                    self.assertIn("activation" if name != "gpt2" else "fused", one.done[0].rewrites)

        test_block = None

    return Corpus


def main(corpus=None):
    """Runs the tests of the program; `corpus`: makes more of a corpus of models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared/peers/corpus/models.py")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="Writes, Random.test_dropout_in_training, Corpus …")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    module = sys.modules["__main__"]
    if corpus is None:
        pass
    elif arguments.corpus.exists():
        sys.path.insert(0, str(arguments.corpus.parent))
        module.Corpus = corpus(importlib.import_module(arguments.corpus.stem))
    else:
        print(f"SKIPPED: the corpus of models: there is no {arguments.corpus}", file=sys.stderr)
    unittest.main(module, argv=[sys.argv[0], *arguments.tests], verbosity=2)


if __name__ == "__main__":
    main(of_corpus)
