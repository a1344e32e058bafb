"""Ops of rules as ops of torch.library, `piecewise::NAME`: kernels are generated for the CPU and for GPUs, the fake kernel from the types.

Invariant: an op is a pure function of its graph's text, whose digest is a part of its name, so that code which names it (as in Inductor's cache) means the
same op in any process. The texts are in the compile cache, from which a process that has not made an op defines it.
"""
from __future__ import annotations

import ast
import functools
import hashlib
import operator
import re
import threading
import typing as t

import torch

import _piecewise
from _piecewise import Error

from .borrowed import lent_threads
from .calls import over
from .devices import OnDevice, aligned, opened
from .fx_import import DTYPES, Refused

_LIBRARY = torch.library.Library("piecewise", "FRAGMENT")
_KIND = "fused-op"  # in the compile cache
_TYPE = re.compile(r"(\w+)\[(.*)\]")
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}


class _Type(t.NamedTuple):
    """The type of a tensor; dims are expressions of integers and symbols."""

    dtype: torch.dtype
    dims: t.Tuple[ast.expr, ...]

    @classmethod
    def read(cls, text: str) -> "_Type":
        found = _TYPE.fullmatch(text)
        if found is None or found[1] not in DTYPES:
            raise Refused(f"a value of the new op has the type `{text}`")
        dims = found[2].split(", ") if found[2] else []
        return cls(DTYPES[found[1]], tuple(ast.parse(dim, mode="eval").body for dim in dims))


def _evaluated(dim: ast.expr, symbols: t.Mapping[str, t.Any]) -> t.Any:
    if isinstance(dim, ast.Constant) and isinstance(dim.value, int):
        return dim.value
    if isinstance(dim, ast.Name) and dim.id in symbols:
        return symbols[dim.id]
    if isinstance(dim, ast.BinOp) and type(dim.op) in _OPERATIONS:
        return _OPERATIONS[type(dim.op)](_evaluated(dim.left, symbols), _evaluated(dim.right, symbols))
    raise Error(f"the extent `{ast.unparse(dim)}` is not determined by the arguments")


class FusedOp:
    """The kernels of one op. Thread-safe."""

    def __init__(self, text: str):
        """Reads a graph's text. Raises Refused for an op without types, or without code for the CPU."""
        self._graph = _piecewise.Session().loads(text, "torch")
        self._inputs = [_Type.read(value.type) for value in self._graph.inputs]
        self._outputs = [_Type.read(value.type) for value in self._graph.outputs]
        self._kernels: t.Dict[torch.device, t.Any] = {}
        self._lock = threading.Lock()

    @property
    def schema(self) -> str:
        """Returns the arguments and results, as torch.library declares them."""
        tensors = ", ".join(f"Tensor x{i}" for i in range(len(self._inputs)))
        results = ", ".join(["Tensor"] * len(self._outputs))
        return f"({tensors}) -> {results if len(self._outputs) == 1 else f'({results})'}"

    def kernels(self, place: torch.device) -> t.Any:
        """Returns the compiled graph for a device, compiled on first use. Raises Error if it has no code there."""
        with self._lock:
            found = self._kernels.get(place)
            if found is None:
                found = self._kernels[place] = self._compiled(place)
        return found

    def _compiled(self, place: torch.device) -> t.Any:
        if place.type == "cpu":
            lent_threads()
            return _piecewise.Compiled(self._graph, "cpu", {}, over)
        return OnDevice(opened("cuda", place.index), place, self._graph, {})

    def _symbols(self, tensors: t.Sequence[torch.Tensor]) -> t.Dict[str, t.Any]:
        """Returns the values of symbols. Raises Error for tensors that the graph was not made for."""
        out: t.Dict[str, t.Any] = {}
        for kind, tensor in zip(self._inputs, tensors):
            if tensor.dtype != kind.dtype or tensor.dim() != len(kind.dims):
                raise Error(f"a tensor is {tensor.dtype} of {list(tensor.shape)}, but the op was made for {kind.dtype} and {len(kind.dims)} dims")
            for dim, extent in zip(kind.dims, tensor.shape):
                if isinstance(dim, ast.Name):
                    out.setdefault(dim.id, extent)
        for kind, tensor in zip(self._inputs, tensors):
            for dim, extent in zip(kind.dims, tensor.shape):
                if _evaluated(dim, out) != extent:
                    raise Error(f"an extent is {extent}, but the op was made for {ast.unparse(dim)} = {_evaluated(dim, out)}")
        return out

    def _results(self, symbols: t.Mapping[str, t.Any], place: torch.device) -> t.List[torch.Tensor]:
        return [torch.empty([_evaluated(dim, symbols) for dim in kind.dims], dtype=kind.dtype, device=place) for kind in self._outputs]

    def fake(self, *tensors: torch.Tensor) -> t.Any:
        """Returns tensors of the results' types."""
        return self._one_or_all(self._results(self._symbols(tensors), tensors[0].device))

    def __call__(self, *tensors: torch.Tensor) -> t.Any:
        symbols, place = self._symbols(tensors), tensors[0].device
        given = [aligned(tensor) for tensor in tensors]
        results = self._results(symbols, place)
        self.kernels(place).run([x.data_ptr() for x in given], [y.data_ptr() for y in results], symbols)
        return self._one_or_all(results)

    @staticmethod
    def _one_or_all(results: t.List[torch.Tensor]) -> t.Any:
        return results[0] if len(results) == 1 else tuple(results)


def _name_of(title: str, text: str) -> str:
    return re.sub(r"\W+", "_", title)[:60].strip("_") + "_" + hashlib.sha256(text.encode()).hexdigest()[:16]


def operator_of(graph: _piecewise.Graph, place: torch.device) -> torch._ops.OpOverload:
    """Returns the torch op for a graph of one call and its constants. Raises Refused or Error if the device cannot run it."""
    text = graph.json()
    name = _name_of(graph.nodes[-1].op, text)
    _defined(name, text, place)
    _piecewise.Session().keep(_KIND, name, [("name", name)], text.encode)
    return getattr(torch.ops.piecewise, name).default


_definitions = threading.RLock()
_begun: t.Set[str] = set()  # names of ops whose definition has begun: torch.library looks whether they exist
_ops: t.Dict[str, FusedOp] = {}


def _defined(name: str, text: str, place: t.Optional[torch.device] = None) -> None:
    """Defines the op, unless it exists. With a device, its kernels are compiled first."""
    with _definitions:
        op = _ops.get(name) or FusedOp(text)
        if place is not None:
            op.kernels(place)
        if name in _begun:
            return
        _begun.add(name)
        _LIBRARY.define(name + op.schema, tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            _LIBRARY.impl(name, op, key)
        torch.library.register_fake(f"piecewise::{name}", op.fake, lib=_LIBRARY)
        _ops[name] = op


class _Namespace(torch._ops._OpNamespace):
    """torch.ops.piecewise: defines ops that another process made when code names them."""

    __module__ = torch._ops._OpNamespace.__module__  # from which generated code spells the ops' names

    def __getattr__(self, name: str) -> t.Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in _begun or not re.fullmatch(r"\w+_[0-9a-f]{16}", name):
                raise
        try:
            text = _piecewise.Session().keep(_KIND, name, [("name", name)], functools.partial(_missing, name)).decode()
        except LookupError as why:
            raise AttributeError(str(why)) from None
        if not name.endswith(hashlib.sha256(text.encode()).hexdigest()[:16]):
            raise AttributeError(f"the compile cache holds another graph for torch.ops.piecewise.{name}; clear it with `pwr cache clear`")
        _defined(name, text)
        return super().__getattr__(name)


def _missing(name: str) -> bytes:
    raise LookupError(
        f"torch.ops.piecewise.{name} is not in the compile cache: clear Inductor's cache (torch._inductor.utils.fresh_cache), so that the rules run again"
    )


torch.ops.piecewise = _Namespace("piecewise")
