#!/usr/bin/env python3
"""Rules inside Inductor, compared with PyTorch: ops of torch on the right, fused ops, and Inductor's caches.

    inductor.py [TEST …]
"""
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

from compiled import CLOSE, WithRules, difference, main

import _piecewise
from piecewise import pytorch as front
from piecewise.pytorch.fx_import import seen


class Inductor(WithRules):
    """Rules inside Inductor, whose patterns' right sides are ops of torch."""

    RULES = """
        op pw_test.rms(x: f32[*b, d], w: f32[d]) {eps: float} -> y: f32[*b, d]
        rule norm { y = w * (x * rsqrt(mean(pow(x, 2)){dim = -1, keepdim = true} + eps))  =>  y = pw_test.rms(x, w){eps = eps} }
        op pw_test.absent(x: T[*b]) -> y: T[*b]
        rule unknown { y = rsqrt(x)  =>  y = pw_test.absent(x) }
        op pw_test.pair(x: f32[*b]) -> (p: f32[*b], q: f32[*b])
        rule both { p = relu(x: f32[*b])  q = neg(x)  =>  p, q = pw_test.pair(x) }
        op pw_test.gate(x: f32[n, d], z: f32[n, d]) -> (p: f32[n, d], q: f32[n, d])
        rule gated { p = relu(x: f32[n, d])  q = mul(x, z: f32[n, d])  =>  p, q = pw_test.gate(x, z) }
        pass gates = greedy { gated }
        pass norms = greedy { norm }
        pass unknowns = greedy { unknown }
        pass pairs = greedy { both }
        pipeline fuse { norms }
        pipeline fail { unknowns }
        pipeline pair { pairs }
        pipeline gate { gates }
        pipeline tidy { norms dce }
    """

    def compiled(self, function, pipeline, *inputs):
        """The pass, after a call of the function that Inductor compiled with it; the numbers are the function's own."""
        one = front.inductor_pass(self.rules(self.RULES), pipeline)
        compiled = torch.compile(function, options={"post_grad_custom_pre_pass": one, "fx_graph_cache": False})
        with torch.no_grad():
            self.assertLessEqual(difference(function(*inputs), compiled(*inputs)), CLOSE)
        return one

    @staticmethod
    def norm(x, w):
        return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)) + 1

    def test_numbers_and_counts(self):
        one = self.compiled(self.norm, "fuse", torch.randn(4, 8), torch.randn(8))
        self.assertEqual([(done.rewrites, done.refused) for done in one.done], [({"norms": 1}, "")])

    def test_two_results(self):
        def f(x):
            y = x + 1
            return -y, x.sum(), torch.relu(y)

        one = self.compiled(f, "pair", torch.randn(4, 8))
        self.assertEqual([(done.rewrites, done.refused) for done in one.done], [({"pairs": 1}, "")])

    @staticmethod
    def deep(x, w, m):
        """Three norms among products, and products of elements outside of norms."""
        for _ in range(3):
            h = Inductor.norm(x, w) @ m
            x = x + h.reshape(2, 2, 8).transpose(0, 1).reshape(4, 8)
        return torch.cat([x, x], 1).cos() * m.sum() * m.sin().mean()

    def test_what_no_rule_sees(self):
        inputs = torch.randn(4, 8), torch.randn(8), torch.randn(8, 8)
        one = self.compiled(self.deep, "fuse", *inputs)
        self.assertEqual([(done.rewrites, done.refused) for done in one.done], [({"norms": 3}, "")])

    def test_a_part_is_told(self):
        """Rules see a part of the graph, and a pass may see all of it."""
        graph = make_fx(self.deep, tracing_mode="fake")(torch.randn(4, 8), torch.randn(8), torch.randn(8, 8)).graph
        session = _piecewise.Session()
        rules = session.rules([self.rules(self.RULES)])
        part = seen(graph, session, rules, "fuse")["graph"]
        ops = [node["op"] for node in json.loads(part.json())["nodes"]]
        self.assertEqual((ops.count("rsqrt"), ops.count("mm"), ops.count("cos"), ops.count("cat")), (3, 0, 0, 0))
        self.assertGreater(ops.count("unseen"), 0)
        self.assertIsNone(seen(graph, session, rules, "tidy"))

    def test_what_only_the_match_read_goes(self):
        """Operands that only the match read are removed, even if the pass never saw them."""
        rules = self.rules("rule zero { y = add(x, neg(z))  =>  y = x }\npass p = greedy { zero }\npipeline fuse { p }\n")
        graph = make_fx(lambda x, w: x + -(torch.full((4, 4), 2.0) @ w).cos(), tracing_mode="fake")(torch.randn(4, 4), torch.randn(4, 4)).graph
        front.inductor_pass(rules, "fuse")(graph)
        self.assertEqual([node.op for node in graph.nodes], ["placeholder", "placeholder", "output"])

    def test_a_functionalised_call_reads_what_replaced_its_operand(self):
        """The result of such a call is an item of it."""
        if not hasattr(torch.ops._C, "rms_norm"):  # which the corpus also declares, as vLLM does
            library = torch.library.Library("_C", "FRAGMENT")
            library.define("rms_norm(Tensor! result, Tensor input, Tensor weight, float epsilon) -> ()")
            library.impl("rms_norm", lambda result, input, weight, epsilon: None, "Meta")

        def model(x, w):
            norm = torch.ops._C.rms_norm.default
            return torch.ops.higher_order.auto_functionalized(norm, result=torch.empty_like(x), input=-(-x), weight=w, epsilon=1e-6)[1]

        rules = self.rules("rule twice { y = neg(neg(x: f32[*b]))  =>  y = x }\npass p = greedy { twice }\npipeline fuse { p }\n")
        graph = make_fx(model, tracing_mode="fake")(torch.randn(4, 4), torch.randn(4)).graph
        graph.eliminate_dead_code()
        front.inductor_pass(rules, "fuse")(graph)
        self.assertNotIn(torch.ops.aten.neg.default, [node.target for node in graph.nodes])
        graph.lint()

    def test_parts_of_calls(self):
        """Whose meaning the library has, and of an op of the user's own, which has none."""
        rules = """
            op pw_test.pair(x: f32[*b]) -> (p: f32[*b], q: f32[*b])
            rule halves { given { p, q = split(x){dim = 0, sizes = [2, 2]} }  y = mul(neg(p), q)  =>  y = neg(mul(p, q)) }
            rule twice { y = neg(neg(x: f32[*b]))  =>  y = x }
            pass h = greedy { halves }
            pass n = greedy { twice }
            pipeline parts { h }
            pipeline own { n }
        """
        told = {}
        for pipeline, function in {
            "parts": lambda x: (lambda p, q: -p * q)(*torch.split(x, 2)),
            "own": lambda x: (lambda p, q: -(-q) + p)(*torch.ops.pw_test.pair(x)),
        }.items():
            graph = make_fx(function, tracing_mode="fake")(torch.randn(4, 8)).graph
            one = front.inductor_pass(self.rules(rules), pipeline)
            self.assertIsNotNone(seen(graph, one._session, one._rules, pipeline))
            one(graph)
            told[pipeline] = [str(node.target) for node in graph.nodes if node.op == "call_function"]
            x = torch.randn(4, 8)
            self.assertLessEqual(difference(function(x), torch.fx.GraphModule(torch.nn.Module(), graph)(x)), CLOSE)
        self.assertEqual(told["parts"][-2:], ["aten.mul.Tensor", "aten.neg.default"])
        self.assertEqual([name for name in told["own"] if "neg" in name], [])

    def test_no_match_around_what_no_rule_sees(self):
        """The call would read the product, which depends on the call's own result."""
        inputs = torch.randn(8, 8), torch.randn(8, 8)
        one = self.compiled(lambda x, w: x * (torch.relu(x) @ w), "gate", *inputs)
        self.assertEqual([(done.rewrites, done.refused) for done in one.done], [({}, "")])
        one = self.compiled(lambda x, w: (x * (x @ w), torch.relu(x))[0] + torch.relu(x), "gate", *inputs)
        self.assertEqual([(done.rewrites, done.refused) for done in one.done], [({"gates": 1}, "")])

    def test_what_torch_lacks(self):
        with self.assertLogs("piecewise", "WARNING"):
            one = self.compiled(self.norm, "fail", torch.randn(4, 8), torch.randn(8))
        self.assertIn("`pw_test.absent`, which is not an op of torch", one.done[0].refused)

    FUSING = """
        rule add_norm {
          s = add(x: T[*b, d], r: T[*b, d])
          y = mul(w: T[d], mul(s, rsqrt(mean(pow(s, 2)){dim = -1, keepdim = true} + eps)))
          => y, s = fuse
        }
        rule swiglu { y = mul(silu(g: T[*b, d]), u: T[*b, d])  =>  y = fuse }
        pass p = greedy { add_norm, swiglu }
        pipeline fuse { p }
    """

    @staticmethod
    def fused(x, r, w, m):
        for _ in range(2):
            s = x + r
            y = w * (s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-6)) @ m
            x, r = F.silu(y) * (y @ m), s
        return x, r

    def test_fused_ops(self):
        """Rules that generate kernels: static, dynamic, and under aot autograd's and Inductor's own checks of the ops."""
        rules = self.rules(self.FUSING)
        for dynamic in (False, True):
            torch._dynamo.reset()
            one = front.inductor_pass(rules, "fuse")
            call = torch.compile(self.fused, dynamic=dynamic, options={"post_grad_custom_pre_pass": one, "fx_graph_cache": False})
            with torch.no_grad():
                for rows in (4, 6, 9):
                    inputs = torch.randn(rows, 8), torch.randn(rows, 8), torch.randn(8), torch.randn(8, 8)
                    self.assertLessEqual(difference(self.fused(*inputs), call(*inputs)), CLOSE)
            self.assertEqual({(str(done.rewrites), done.refused) for done in one.done}, {("{'p': 2}", "")})  # Inductor spells out silu
        graph = make_fx(self.fused, tracing_mode="fake")(*inputs).graph
        front.inductor_pass(rules, "fuse")(graph)
        ops = [node for node in graph.nodes if str(node.target).startswith("piecewise.")]
        self.assertEqual(len(ops), 4)
        for node in ops:
            given = [torch.randn(n.meta["val"].shape) for n in node.args]
            torch.library.opcheck(node.target, tuple(given), test_utils=("test_schema", "test_faketensor"))
            with self.assertRaisesRegex(_piecewise.Error, "the op was made for"):
                node.target(*[x[..., :-1] for x in given])

    def test_fused_ops_from_inductors_cache(self):
        """A second process takes Inductor's code, and the ops that it names, from the caches."""
        program = textwrap.dedent(
            """
            import sys, torch
            from piecewise import pytorch as front
            sys.path.insert(0, sys.argv[1])
            import compiled, inductor
            torch.manual_seed(0)
            one = front.inductor_pass(sys.argv[2], "fuse")
            call = torch.compile(inductor.Inductor.fused, options={"post_grad_custom_pre_pass": one})
            inputs = torch.randn(4, 8), torch.randn(4, 8), torch.randn(8), torch.randn(8, 8)
            with torch.no_grad():
                assert compiled.difference(inductor.Inductor.fused(*inputs), call(*inputs)) < 1e-4
            print(len(one.done))
            """
        )
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder + "/inductor", "PWR_CACHE_DIR": folder + "/piecewise"}
            command = [sys.executable, "-c", program, str(Path(__file__).parent), str(self.rules(self.FUSING))]
            runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=False) for _ in range(2)]
        self.assertEqual([(run.stdout, run.returncode) for run in runs], [("1\n", 0), ("0\n", 0)], runs[-1].stderr)

    def test_uuid(self):
        make = front.inductor_pass
        again = self.rules(self.RULES + "rule more { y = abs(x)  =>  y = neg(x) }\n")
        rules = self.rules(self.RULES)
        self.assertEqual(make(rules, "fuse").uuid(), make(rules, "fuse").uuid())
        self.assertEqual(len({make(rules, "fuse").uuid(), make(rules, "fail").uuid(), make(again, "fuse").uuid()}), 3)


if __name__ == "__main__":
    main()
