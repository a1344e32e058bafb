"""Serialization of compiled functions for aot_compile."""
from __future__ import annotations

import copy
import dataclasses
import pickle
import typing as t

import torch
from torch._dynamo.aot_compile_types import SerializableCallable
from torch._dynamo.source import ConstantSource
from torch._subclasses import FakeTensorMode
from torch.fx._graph_pickler import GraphPickler
from torch.fx._graph_pickler import Options as PickleOptions
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from _piecewise import Error

from .options import Options


@dataclasses.dataclass
class _Input:
    """The description of an argument: a tensor without data, or a size."""

    dtype: t.Optional[torch.dtype]  # None: a size, which is `sizes[0]`
    sizes: t.List[int]
    strides: t.List[int]
    varies: t.List[bool]  # by dim
    gradient: bool

    @classmethod
    def of(cls, value: t.Any) -> "_Input":
        if isinstance(value, (int, torch.SymInt)):
            return cls(None, [_hint(value)], [], [isinstance(value, torch.SymInt)], False)
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.device.type != "cpu":
            raise Error("a function can be saved only if its arguments are strided tensors in CPU memory, and sizes")
        varies = [isinstance(extent, torch.SymInt) for extent in value.shape]
        return cls(value.dtype, list(map(_hint, value.shape)), list(map(_hint, value.stride())), varies, value.requires_grad)

    def made(self, mode: FakeTensorMode, name: str) -> t.Any:
        """Returns the argument in a fake-tensor mode; varying sizes become new symbols, and tracing determines which are equal."""
        source, dims = ConstantSource(name), [DimDynamic.DYNAMIC if varies else DimDynamic.STATIC for varies in self.varies]
        if self.dtype is None:
            if not self.varies[0]:
                return self.sizes[0]
            symbol = mode.shape_env.create_symbol(self.sizes[0], source, DimDynamic.DYNAMIC)
            return mode.shape_env.create_symintnode(symbol, hint=self.sizes[0], source=source)
        tensor = torch.empty_strided(self.sizes, self.strides, dtype=self.dtype)
        if self.gradient:
            tensor.requires_grad_(True)
        return mode.from_tensor(tensor, source=source, symbolic_context=StatelessSymbolicContext(dynamic_sizes=dims))


def _hint(number: t.Any) -> int:
    return number.node.hint if isinstance(number, torch.SymInt) else number


def _bare(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Returns a copy without Dynamo's unserializable state."""
    out = copy.copy(module)
    out.graph = copy.deepcopy(module.graph)
    for node in out.graph.nodes:
        for key in ("nn_module_stack", "source_fn_stack", "example_value"):
            node.meta.pop(key, None)
    return out


def _name_sources(module: torch.fx.GraphModule) -> None:
    """Sets the sources of arguments and weights: AOT autograd recognizes weights among arguments only if the sources are known."""
    names = [*dict(module.named_parameters(remove_duplicate=False)), *dict(module.named_buffers(remove_duplicate=False))]
    module._param_name_to_source = {name: ConstantSource(name) for name in names}
    for i, node in enumerate(module.graph.find_nodes(op="placeholder")):
        node._dynamo_source = ConstantSource(f"argument_{i}")


def saved_graph(module: torch.fx.GraphModule, inputs: t.Sequence[t.Any]) -> bytes:
    """Returns a graph of Dynamo with the descriptions of its arguments."""
    descriptions = [_Input.of(node.meta.get("example_value", value)) for node, value in zip(module.graph.find_nodes(op="placeholder"), inputs)]
    return GraphPickler.dumps((_bare(module), descriptions), PickleOptions(ops_filter=None))


class Portable(SerializableCallable):
    """A compiled graph of Dynamo in the form that aot_compile saves; on load it is recompiled from the compile cache."""

    def __init__(self, options: Options, saved: bytes, call: t.Callable[..., t.Any]):
        self._options, self._saved, self._call = options, saved, call

    def __call__(self, *args: t.Any, **kwargs: t.Any) -> t.Any:
        return self._call(*args, **kwargs)

    @classmethod
    def serialize_compile_artifacts(cls, fn: "Portable") -> bytes:
        return pickle.dumps((dataclasses.asdict(fn._options), fn._saved))

    @classmethod
    def deserialize_compile_artifacts(cls, data: bytes) -> "Portable":
        from .compiler import loaded  # which saves through this module

        options, saved = pickle.loads(data)
        mode = FakeTensorMode(shape_env=ShapeEnv())
        module, descriptions = GraphPickler.loads(saved, mode)
        module.recompile()
        _name_sources(module)
        inputs = [one.made(mode, f"argument_{i}") for i, one in enumerate(descriptions)]
        with torch._guards.tracing(torch._guards.TracingContext(mode)):
            return cls(Options.of(options), saved, loaded(options, module, inputs))
