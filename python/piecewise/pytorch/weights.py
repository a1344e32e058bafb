"""Recognizes the weights among a call's arguments, so that what depends on them is computed once."""
from __future__ import annotations

import ctypes
import functools
import typing as t

import torch

import _piecewise

_MOST = 64  # sets of weights that are kept
Value = t.TypeVar("Value")


@functools.lru_cache(maxsize=None)
def _functions() -> t.Tuple[int, int]:
    """Returns the addresses of PyTorch's functions that read a tensor's address and strides."""
    library = ctypes.CDLL(torch._C.__file__)  # a search in it includes the libraries that it needs
    functions = library.aoti_torch_get_data_ptr, library.aoti_torch_get_strides
    return tuple(ctypes.cast(function, ctypes.c_void_p).value for function in functions)


def is_plain(x: t.Any) -> bool:
    """Returns True for a tensor that is its memory, without a conversion or a class of its own."""
    return type(x) in (torch.Tensor, torch.nn.Parameter) and x.layout == torch.strided and not x.is_conj() and not x.is_neg()


class WeightSets(t.Generic[Value]):
    """The sets of weights of recent calls, each with a value that is computed from a call's arguments."""

    def __init__(self, indices: t.Iterable[int], value: t.Callable[[t.Sequence[t.Any]], Value]):
        """`indices`: which arguments are weights."""
        self._indices, self._value = sorted(indices), value
        self._by_first: t.Dict[int, t.Tuple[_piecewise.SameTensors, t.Optional[Value]]] = {}  # by the identity of the first one

    def of(self, args: t.List[t.Any]) -> t.Optional[Value]:
        """Returns the value of the weights among the arguments: the same object for the same tensors with the same memory and strides. None if a weight is not plain."""
        first = id(args[self._indices[0]])
        known = self._by_first.get(first)
        if known is not None and known[0].are(args):
            return known[1]
        if not all(is_plain(args[i]) for i in self._indices):
            return None
        if len(self._by_first) >= _MOST:
            self._by_first.clear()
        value = self._value(args)
        self._by_first[first] = (_piecewise.SameTensors(_functions(), args, self._indices), value)
        return value
