#!/usr/bin/env python3
"""Adapters for serving engines, against stand-ins for the interfaces that the engines' packages define."""
import importlib
import sys
import types
import unittest

import pydantic
import torch

INTERFACE = "tensorrt_llm._torch.auto_deploy.transform.interface"


def interface():
    """Returns the classes of AutoDeploy's transform interface that a transform uses, as of TensorRT-LLM 1.4."""
    module = types.ModuleType(INTERFACE)

    class TransformConfig(pydantic.BaseModel):
        model_config = {"extra": "allow"}
        stage: str
        enabled: bool = True
        skip_on_error: bool = False

    class TransformInfo(pydantic.BaseModel):
        model_config = {"frozen": True}
        skipped: bool
        num_matches: int
        is_clean: bool = False
        has_valid_shapes: bool = False

    class BaseTransform:
        def __init__(self, config):
            self.config = config if isinstance(config, self.get_config_class()) else self.get_config_class()(**config.model_dump())

        def __call__(self, gm, cm, factory, shared_config):
            gm, self.info = self._apply(gm, cm, factory, shared_config)
            return gm

    class TransformRegistry:
        known = {}

        @classmethod
        def register(cls, name):
            return lambda transform: cls.known.setdefault(name, transform)

    for one in (TransformConfig, TransformInfo, BaseTransform, TransformRegistry):
        setattr(module, one.__name__, one)
    return module


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 1.5, 64, dtype=torch.bfloat16))
        self.up = torch.nn.Linear(64, 64, bias=False, dtype=torch.bfloat16)

    def forward(self, x, residual):
        x = x + residual
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        gate, up = self.up(self.scale * normed.to(x.dtype)).chunk(2, -1)
        return torch.nn.functional.silu(gate) * up, x


class AutoDeploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        names = INTERFACE.split(".")
        for i in range(1, len(names)):
            sys.modules[".".join(names[:i])] = types.ModuleType(".".join(names[:i]))
        cls.interface = sys.modules[INTERFACE] = interface()
        cls.adapter = importlib.import_module("piecewise.autodeploy")
        torch.manual_seed(0)

    def transform(self, **options):
        config = self.interface.TransformConfig(stage="post_load_fusion", **options)
        return self.interface.TransformRegistry.known["piecewise_rules"](config)

    def exported(self, model, args):
        """Returns a graph with its parameters, without checks, as AutoDeploy exports it."""
        module = torch.export.export(model, args).module(check_guards=False)
        for node in list(module.graph.nodes):
            if "assert" in str(node.target):
                module.graph.erase_node(node)
        module.recompile()
        return module

    def test_rules_rewrite_an_exported_graph(self):
        model, args = Block().eval(), tuple(torch.randn(2, 4, 64).to(torch.bfloat16))
        module, transform = self.exported(model, args), self.transform()
        self.assertIs(transform(module, None, None, None), module)
        fired = self.adapter.done[-1].rules
        self.assertEqual((fired["add_rms"], fired["silu_mul"]), (1, 1))
        self.assertEqual(transform.info.num_matches, sum(fired.values()))
        self.assertFalse(transform.info.skipped or transform.info.is_clean or transform.info.has_valid_shapes)
        calls = [str(node.target) for node in module.graph.nodes if node.op == "call_function"]
        self.assertFalse([name for name in calls if "rsqrt" in name or "silu.default" in name], calls)
        self.assertIn("torch.ops.piecewise", module.code)
        with torch.no_grad():
            for mine, theirs in zip(module(*args), model(*args)):
                torch.testing.assert_close(mine, theirs, atol=0.02, rtol=0.02)

    def test_a_graph_without_a_match_stays_as_it_is(self):
        module = self.exported(torch.nn.Linear(4, 4).eval(), (torch.randn(2, 4),))
        before, transform = module.code, self.transform(rules=["llm"], pipeline="o2")
        transform(module, None, None, None)
        self.assertEqual(module.code, before)
        self.assertEqual((transform.info.num_matches, transform.info.skipped, transform.info.is_clean), (0, False, True))

    def test_mistakes_in_the_configuration_are_errors(self):
        import piecewise

        module = self.exported(torch.nn.Linear(4, 4).eval(), (torch.randn(2, 4),))
        with self.assertRaisesRegex(piecewise.Error, "there is no pipeline `o9`"):
            self.transform(pipeline="o9")(module, None, None, None)
        with self.assertRaises(pydantic.ValidationError):
            self.transform(rules="llm")


if __name__ == "__main__":
    unittest.main()
