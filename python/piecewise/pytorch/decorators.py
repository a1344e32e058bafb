"""Decorators that compile classes and functions."""
from __future__ import annotations

import functools
import inspect
import typing as t

import torch

from .compiler import Backend

_IGNORED = "_piecewise_ignored"

Dims = t.Union[int, t.Sequence[int]]


def _tensors(value: t.Any) -> t.Iterator[torch.Tensor]:
    """Returns a tensor, or the tensors of a list or dict."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, t.Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _said(signature: inspect.Signature, dynamic: t.Optional[t.Mapping[str, Dims]]) -> t.Dict[str, t.Tuple[int, ...]]:
    """Returns the dynamic dims by parameter; by default dim 0 of all parameters annotated as tensors. Raises ValueError for unknown names."""
    names = [name for name in signature.parameters if name != "self"]
    if dynamic is None:
        tensors = (torch.Tensor, "torch.Tensor", t.Optional[torch.Tensor], "Optional[torch.Tensor]", "torch.Tensor | None")
        return {name: (0,) for name in names if signature.parameters[name].annotation in tensors}
    for name in dynamic:
        if name not in names:
            raise ValueError(f"there is no parameter `{name}`; parameters are {', '.join(names)}")
    return {name: (dims,) if isinstance(dims, int) else tuple(dims) for name, dims in dynamic.items()}


def _compiled(function: t.Callable[..., t.Any], dynamic, enable_if, options) -> t.Callable[..., t.Any]:
    signature = inspect.signature(function)
    dims = _said(signature, dynamic)
    method = "self" in signature.parameters
    compiled = torch.compile(function, backend=Backend(**options))

    @functools.wraps(function)
    def call(*args: t.Any, **kwargs: t.Any) -> t.Any:
        of = args[:1] if method else ()
        ignored = any(getattr(type(one), _IGNORED, False) for one in of)
        if ignored or torch.compiler.is_compiling() or not (enable_if is None or enable_if(*of)):
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        for name, varying in dims.items():
            for tensor in _tensors(given.get(name)):
                for dim in varying:
                    if tensor.shape[dim] > 1:  # PyTorch specializes on size 1
                        torch._dynamo.mark_dynamic(tensor, dim % tensor.dim())
        return compiled(*args, **kwargs)

    return call


def support(
    target: t.Any = None,
    *,
    dynamic: t.Optional[t.Mapping[str, Dims]] = None,
    enable_if: t.Optional[t.Callable[..., bool]] = None,
    **options: t.Any,
) -> t.Any:
    """Compiles a class's forward, or a function; a decorator with or without arguments.

        @piecewise.pytorch.support(dynamic={"x": 0}, enable_if=lambda self: self.large, pipeline="o2")
        class Model(torch.nn.Module): ...

    `dynamic`: for each parameter of forward, the dims that vary from call to call, so that new sizes need no compilation; by default, dim 0 of
    each parameter that is annotated as a tensor. `enable_if` is called at each call, with the object for a class. The others are torch.compile's
    options of this backend, see Options. A subclass with the same forward is compiled too, unless it is marked with `ignore`. A call inside a
    function that is being compiled is not compiled separately. Raises ValueError for unknown parameters and options.
    """
    if target is None:
        return functools.partial(support, dynamic=dynamic, enable_if=enable_if, **options)
    if inspect.isclass(target):
        target.forward = _compiled(target.forward, dynamic, enable_if, options)
        return target
    return _compiled(target, dynamic, enable_if, options)


def ignore(cls: t.Type[t.Any]) -> t.Type[t.Any]:
    """Excludes a class from compilation, although a base class is marked with `support`."""
    setattr(cls, _IGNORED, True)
    return cls
