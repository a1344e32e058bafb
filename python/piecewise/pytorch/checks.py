"""Runtime checks: preserves those that tracing drops, and raises PyTorch's own errors if they fail."""
from __future__ import annotations

import logging
import typing as t

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._pytree import tree_leaves, tree_map

from _piecewise import Error

_log = logging.getLogger("piecewise")
# The codes of a run that meets an unsupported size, an index outside its axis or table, or a divisor of 0.
_FAILED = ("PW1203", "PW1204")
_LIBRARY = torch.library.Library("piecewise", "DEF")
_LIBRARY.define("below(Tensor x, SymInt n) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


def _below(x: torch.Tensor, n: int) -> torch.Tensor:
    """Checks the range of classes, as one_hot does."""
    if x.numel() and int(x.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if x.numel() and int(x.max()) >= n:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return x.clone()


_LIBRARY.impl("below", _below, "CPU")
_LIBRARY.impl("below", lambda x, n: torch.empty_like(x), "Meta")


def keep_checks(module: torch.fx.GraphModule) -> None:
    """Adds the checks to a graph of Dynamo or of torch.export that PyTorch performs when it runs a call but omits when it traces it."""
    for inner in module.modules():
        if not isinstance(inner, torch.fx.GraphModule):
            continue
        for node in inner.graph.nodes:
            if node.op != "call_function" or node.target not in (torch._C._nn.one_hot, torch.ops.aten.one_hot.default):
                continue
            classes = node.args[1] if len(node.args) > 1 else node.kwargs.get("num_classes", -1)
            if classes == -1 or not node.args:
                continue
            with inner.graph.inserting_before(node):
                checked = inner.graph.call_function(torch.ops.piecewise.below.default, (node.args[0], classes))
            checked.meta = {key: value for key, value in node.args[0].meta.items() if key in ("example_value", "val")}
            node.args = (checked, *node.args[1:])
        inner.recompile()


def _fits(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, **how: t.Any) -> bool:
    """Returns True if the source of index_add has the shape of `x`, except along `dim`."""
    return (
        not x.dim()
        or x.dim() == source.dim()
        and all(i == dim % x.dim() or statically_known_true(a == b) for i, (a, b) in enumerate(zip(x.shape, source.shape)))
    )


_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def _sample(value: t.Any, number: int) -> t.Any:
    """Returns an argument with a single element, 1, and a number for a symbol."""
    if isinstance(value, torch.Tensor):
        return torch.ones((1,) * value.dim(), dtype=torch.float32).to(value.dtype)
    return number if isinstance(value, torch.SymInt) else value


def _numbers_of(values: t.Sequence[t.Any]) -> t.List[int]:
    """Returns a positive number, 0, and a negative number, as far as the symbols may be such numbers: a size is not negative, an argument may be."""
    symbols = [value for value in values if isinstance(value, torch.SymInt)]
    least = (1, 0, -1) if any(not statically_known_true(x >= 0) for x in symbols) else (1, 0)
    return list(least) if any(not statically_known_true(x > 0) for x in symbols) else [1]


def _is_implemented(op: t.Any, args: t.Sequence[t.Any], kwargs: t.Mapping[str, t.Any]) -> bool:
    """Returns False if PyTorch has no kernel of a pointwise op for these dtypes and numbers, such as `floor` of bool and negative powers of integers, or if
    a number may wrap around in a narrow dtype."""
    if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten" or torch.Tag.pointwise not in op.tags or op._schema.is_mutable:
        return True
    values = tree_leaves((args, kwargs))
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if not tensors or any(x.dtype in _FLOATS or x.layout != torch.strided for x in tensors):
        return True
    numbers = _numbers_of(values)
    if numbers[-1] < 0 and any(x.dtype not in (torch.int64, torch.bool) for x in tensors):
        return False
    with unset_fake_temporarily():
        try:
            for number in numbers:
                op(*tree_map(lambda x: _sample(x, number), args), **tree_map(lambda x: _sample(x, number), kwargs))
        except RuntimeError:
            return False
    return True


_EXTREMES = tuple(getattr(torch.ops.aten, name) for name in ("max", "min", "amax", "amin", "aminmax", "argmax", "argmin"))


def _may_be_empty(x: torch.Tensor, dim: t.Any = (), *more: t.Any, **how: t.Any) -> bool:
    """Returns True if an axis to reduce may have no elements; no dims, or None, are all of them."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    return any(not statically_known_true(x.shape[d] > 0) for d in dims if x.dim())


def is_rejected(node: torch.fx.Node) -> bool:
    """Returns True for a call whose arguments PyTorch may reject when it runs the call, although it traced it."""
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
    if getattr(node.target, "overloadpacket", None) in _EXTREMES and not isinstance((*args, None)[1], torch.Tensor):
        return _may_be_empty(*args, **kwargs)
    if node.target is torch.ops.aten.index_add.default:
        return not _fits(*args, **kwargs)
    return not _is_implemented(node.target, args, kwargs)


def is_failed(error: t.Optional[BaseException]) -> bool:
    """Returns True if the error is a failed check of a run."""
    return isinstance(error, Error) and getattr(error, "code", None) in _FAILED


def as_pytorch(run: t.Callable[[], t.Any], why: Error) -> t.Any:
    """Reruns a call with a failed check in PyTorch: raises its error or, if there is none, returns its results."""
    try:
        with torch.no_grad():
            out = run()
    except Exception as raised:
        raise raised from why
    _log.warning("a check failed in a call, but PyTorch ran the same call without an error: %s", why)
    return out


def with_eager_errors(compiled: t.Callable[..., t.Any], module: torch.fx.GraphModule) -> t.Callable[..., t.Any]:
    """Wraps a compiled graph of Dynamo so that failed checks raise the program's own errors.

    Dynamo wraps whatever a backend returns so that it is not traced. The function of AOT autograd has such a wrapper too, which is left out here.
    """
    inner = getattr(compiled, "_torchdynamo_orig_callable", compiled)

    def run(*args):
        try:
            return inner(*args)
        except Exception as raised:
            if not is_failed(raised.__cause__):
                raise
            found = raised
        module.forward(*(args[0] if len(args) == 1 and isinstance(args[0], list) else args))
        raise found

    # All attributes except those that lead Dynamo from a wrapper to the wrapped function.
    run.__dict__.update({key: value for key, value in compiled.__dict__.items() if not key.startswith(("__", "_torchdynamo"))})
    return run
