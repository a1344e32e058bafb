"""Calls with `out=` that PyTorch rejects: tracing loses the checks of overlap and of some dtypes, so they are performed here."""
from __future__ import annotations

import typing as t

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_leaves, tree_map

# Bytes of memory up to which every call is tried; above, only those that share memory or change the dtype.
_SMALL = 1 << 24


def _hint(n: t.Any) -> int:
    """Returns the number that a size has in the traced call."""
    return n.node.hint if isinstance(n, torch.SymInt) else n


def _memory(x: torch.Tensor) -> int:
    return x.untyped_storage()._cdata


def _calls(module: torch.fx.GraphModule) -> t.List[torch.fx.Node]:
    """Returns the calls of PyTorch's functions with `out=`; custom ops may have effects, so they are not tried."""

    def is_pytorchs(target: t.Any) -> bool:
        return str(target).startswith("aten.") if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)) else True

    return [n for n in module.graph.nodes if n.op == "call_function" and n.kwargs.get("out") is not None and is_pytorchs(n.target)]


def _traced(arguments: t.Any) -> t.Any:
    return torch.fx.map_arg(arguments, lambda node: node.meta.get("example_value"))


def _tensors(arguments: t.Any) -> t.List[torch.Tensor]:
    return [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]


class _Zeros:
    """Makes real tensors on the CPU that have the dtypes, strides, and aliases of traced ones."""

    def __init__(self) -> None:
        self._storages: t.Dict[int, torch.UntypedStorage] = {}

    def __call__(self, value: t.Any) -> t.Any:
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return value.node.hint
        if not isinstance(value, torch.Tensor):
            return value
        key = _memory(value)
        if key not in self._storages:
            self._storages[key] = torch.UntypedStorage(_hint(value.untyped_storage().nbytes())).fill_(0)
        size, stride = ([_hint(n) for n in of] for of in (value.shape, value.stride()))
        return torch.empty(0, dtype=value.dtype).set_(self._storages[key], _hint(value.storage_offset()), size, stride)


def _is_plain(outs: t.List[torch.Tensor], inputs: t.List[torch.Tensor]) -> bool:
    """Returns True for a large call whose results share no memory and have the dtype of its inputs."""
    memories = {_memory(x) for x in (*outs, *inputs)}
    if sum(_hint(x.untyped_storage().nbytes()) for x in (*outs, *inputs)) <= _SMALL or len(memories) < len(outs) + len(inputs):
        return False
    return all(out.dtype == x.dtype for out in outs for x in inputs)


def _error(node: torch.fx.Node) -> t.Optional[Exception]:
    """Returns the error of a call that succeeds without `out=`."""
    args, kwargs = _traced((node.args, dict(node.kwargs)))
    outs, inputs = _tensors(kwargs["out"]), _tensors((args, {**kwargs, "out": None}))
    if any(x.layout != torch.strided or x.is_nested or x.is_quantized for x in (*outs, *inputs)) or _is_plain(outs, inputs):
        return None
    with unset_fake_temporarily(), torch.no_grad(), torch.random.fork_rng(devices=[]):
        args, kwargs = tree_map(_Zeros(), (args, kwargs))
        try:
            node.target(*args, **{name: value for name, value in kwargs.items() if name != "out"})
        except Exception:
            return None
        try:
            node.target(*args, **kwargs)
        except Exception as error:
            return error
    return None


def _bytes(x: torch.Tensor) -> t.Tuple[int, int]:
    """Returns the first byte of a tensor in its memory, and the end of its last one."""
    start, shape = _hint(x.storage_offset()), [_hint(n) for n in x.shape]
    if 0 in shape:
        return start * x.itemsize, start * x.itemsize
    return start * x.itemsize, (start + 1 + sum((n - 1) * _hint(stride) for n, stride in zip(shape, x.stride()))) * x.itemsize


def _overlaps(given: t.Sequence[t.Any], outs: t.Sequence[int]) -> t.Set[t.Tuple[t.Any, ...]]:
    """Returns the pairs of arguments that may share bytes, the first of which is written as `out=`, with their bytes from the first byte of the pair."""
    found = set()
    strided = [(j, _memory(x), x) for j, x in enumerate(given) if isinstance(x, torch.Tensor) and x.layout == torch.strided]
    for i, memory, out in strided:
        if i not in outs:
            continue
        for j, other, x in strided:
            if i == j or memory != other:
                continue
            (a, a_end), (b, b_end) = _bytes(out), _bytes(x)
            if max(a, b) < min(a_end, b_end):
                found.add((i, j, *(at - min(a, b) for at in (a, a_end, b, b_end))))
    return found


class OutArguments:
    """The calls with `out=` in a graph of Dynamo, before AOT autograd replaces them."""

    def __init__(self, module: torch.fx.GraphModule):
        calls = _calls(module)
        self._module = module
        self.rejected = next(((node, error) for node in calls if (error := _error(node)) is not None), None)
        given = [node.meta.get("example_value") for node in module.graph.find_nodes(op="placeholder")]
        written = {_memory(x) for node in calls for x in _tensors(_traced(node.kwargs["out"]))}
        self._outs = [i for i, x in enumerate(given) if isinstance(x, torch.Tensor) and x.layout == torch.strided and _memory(x) in written]
        self._traced = _overlaps(given, self._outs)

    def checked(self, compiled: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        """Wraps the compiled graph: a call whose arguments overlap other than the traced ones runs in PyTorch, which checks it."""
        if not self._outs:
            return compiled

        def run(*args):
            given = args[0] if len(args) == 1 and isinstance(args[0], list) else args
            return compiled(*args) if _overlaps(given, self._outs) == self._traced else self._module.forward(*given)

        run.__dict__.update({key: value for key, value in compiled.__dict__.items() if not key.startswith(("__", "_torchdynamo"))})
        return run
