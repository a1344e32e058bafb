"""Decorators that compile classes and functions."""
from __future__ import annotations

import functools
import inspect
import typing as t

import torch

from ..counting import counted
from .compiler import Backend
from .counter import note_decorated, note_model

_IGNORED = "_piecewise_ignored"
_MARKED = "_piecewise_marked"
_DEPTH = 8  # of objects in objects

Dims = t.Union[int, t.Sequence[int]]


def _tensors(value: t.Any, path: str, seen: t.Tuple[int, ...] = ()) -> t.Iterator[t.Tuple[str, torch.Tensor]]:
    """Yields a tensor, or the tensors of a list, a dict, or an object such as vLLM's IntermediateTensors, with their paths; weights are left out."""
    if isinstance(value, torch.Tensor):
        if not isinstance(value, torch.nn.Parameter):
            yield path, value
        return
    if id(value) in seen or len(seen) == _DEPTH or isinstance(value, (type, torch.nn.Module)):
        return
    seen = (*seen, id(value))
    if isinstance(value, t.Mapping):
        for key, item in value.items():
            yield from _tensors(item, f"{path}[{key!r}]", seen)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _tensors(item, f"{path}[{i}]", seen)
    elif not callable(value):
        slots = [name for cls in type(value).__mro__ for name in t.cast(t.Sequence[str], getattr(cls, "__slots__", ())) if isinstance(name, str)]
        for name in dict.fromkeys([*getattr(value, "__dict__", ()), *slots]):
            yield from _tensors(getattr(value, name, None), f"{path}.{name}", seen)


def _holds_tensors(annotation: t.Any, depth: int = 4) -> bool:
    """Returns True for a tensor, an optional one, a collection of tensors, and a class whose fields hold tensors."""
    if isinstance(annotation, str):
        return "Tensor" in annotation
    if inspect.isclass(annotation) and issubclass(annotation, torch.Tensor):
        return not issubclass(annotation, torch.nn.Parameter)
    arguments = t.get_args(annotation)
    fields = getattr(annotation, "__annotations__", {}) if inspect.isclass(annotation) and not issubclass(annotation, torch.nn.Module) else {}
    return depth > 0 and any(_holds_tensors(one, depth - 1) for one in (*arguments, *fields.values()))


def _dynamic(names: t.Sequence[str], signature: inspect.Signature, dynamic: t.Optional[t.Mapping[str, Dims]]) -> t.Dict[str, t.Tuple[int, ...]]:
    """Returns the dynamic dims by parameter; by default dim 0 of all that are annotated as tensors. Raises ValueError for unknown names."""
    if dynamic is None:
        return {name: (0,) for name in names if _holds_tensors(signature.parameters[name].annotation)}
    for name in dynamic:
        if name not in names:
            raise ValueError(f"there is no parameter `{name}`; parameters are {', '.join(names)}")
    return {name: (dims,) if isinstance(dims, int) else tuple(dims) for name, dims in dynamic.items()}


class DynamicDims(t.Dict[str, t.Dict[int, str]]):
    """The tensors of a decorated function's calls, by path; for each declared dim, why it does not vary, or an empty string if it does."""

    def __str__(self) -> str:
        lines = []
        for path, dims in self.items():
            varying = [str(dim) for dim, why in dims.items() if not why]
            fixed = [f"dim {dim} is fixed: {why}" for dim, why in dims.items() if why]
            some = [f"{'dim' if len(varying) == 1 else 'dims'} {', '.join(varying)} may vary"] if varying else []
            lines.append(f"{path}: {'; '.join(some + fixed)}")
        return "\n".join(lines) or "no tensor of a call has a dim that may vary: name the parameters in `dynamic`"

    __repr__ = __str__

    def mark(self, path: str, tensor: torch.Tensor, dims: t.Sequence[int], stated: bool) -> None:
        """Marks dims of a tensor as dynamic. Raises ValueError for a stated dim that the tensor lacks."""
        rows = self.setdefault(path, {})
        for dim in dims:
            if not -tensor.dim() <= dim < tensor.dim():
                if stated:
                    raise ValueError(f"{path} has no dim {dim}: it has {counted(tensor.dim(), 'dim')}")
                rows[dim] = "it has no dims"
            elif tensor.shape[dim] > 1:
                torch._dynamo.mark_dynamic(tensor, dim % tensor.dim())
                rows[dim] = ""
            else:  # PyTorch specializes on these
                rows.setdefault(dim, f"its size is {tensor.shape[dim]}")


def _compiled(function: t.Callable[..., t.Any], method: bool, dynamic, enable_if, options) -> t.Callable[..., t.Any]:
    signature = inspect.signature(function)
    dims = _dynamic(list(signature.parameters)[method:], signature, dynamic)
    compiled = torch.compile(function, backend=Backend(**options))
    note_decorated(function)
    marked = DynamicDims()

    @functools.wraps(function)
    def call(*args: t.Any, **kwargs: t.Any) -> t.Any:
        of = args[:1] if method else ()
        ignored = any(getattr(type(one), _IGNORED, False) for one in of)
        if ignored or torch.compiler.is_compiling() or not (enable_if is None or enable_if(*of)):
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        for name, varying in dims.items():
            for path, tensor in _tensors(given.get(name), name):
                marked.mark(path, tensor, varying, dynamic is not None)
        note_model(of[0] if of else call, "num_models_seen")
        return compiled(*args, **kwargs)

    setattr(call, _MARKED, marked)
    return call


def dynamic_dims(target: t.Any) -> DynamicDims:
    """Returns which dims of which tensors vary, from the calls so far, of a class, an object, or a function marked with `support`. Raises ValueError for others."""
    found = getattr(target if hasattr(target, _MARKED) else getattr(target, "forward", None), _MARKED, None)
    if found is None:
        raise ValueError("it is not marked with piecewise.pytorch.support")
    return found


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
    each parameter that is annotated as a tensor, or as a collection or class with tensors. It applies to all tensors of an argument that is a list,
    a dict, or an object; `dynamic_dims` reports them. `enable_if` is called at each call, with the object for a class. The others are torch.compile's
    options of this backend, see Options. A subclass with the same forward is compiled too, unless it is marked with `ignore`. A call inside a
    function that is being compiled is not compiled separately. Raises ValueError for unknown parameters and options.
    """
    if target is None:
        return functools.partial(support, dynamic=dynamic, enable_if=enable_if, **options)
    if inspect.isclass(target):
        target.forward = _compiled(target.forward, True, dynamic, enable_if, options)
        return target
    return _compiled(target, False, dynamic, enable_if, options)


def ignore(cls: t.Type[t.Any]) -> t.Type[t.Any]:
    """Excludes a class from compilation, although a base class is marked with `support`."""
    setattr(cls, _IGNORED, True)
    return cls
