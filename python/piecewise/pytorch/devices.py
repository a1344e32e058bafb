"""Devices of graphs, and compiled graphs that run on them: on PyTorch's current stream, in memory of PyTorch's allocator.

With the driver "host", an emulator runs the kernels on CPU tensors.
"""
from __future__ import annotations

import contextlib
import functools
import threading
import typing as t

import torch

import _piecewise

from .options import Options
from .fx_import import CPU, Refused

_ALIGNED = 256  # bytes
_SIZES = 64  # sets of sizes whose launches a graph keeps at hand


def device_of(graph: torch.fx.Graph) -> torch.device:
    """Returns the device of a graph's tensors: the CPU, unless some are elsewhere. Raises Refused for tensors on two devices other than the CPU."""
    found: t.Dict[torch.device, None] = {}
    for node in graph.nodes:
        values = node.meta.get("val")
        for value in values if isinstance(values, (tuple, list)) else [values]:
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                found[value.device] = None
    if len(found) > 1:
        raise Refused(f"its tensors are on several devices: {', '.join(map(str, found))}")
    return next(iter(found), CPU)


def engine_of(options: Options, device: torch.device) -> str:
    """Returns the backend that runs a graph on this device. Raises Refused if none does."""
    if device.type == "cpu":
        engine = "cpu" if options.backend == "auto" else options.backend
        if engine == "cuda" and options.driver != "host":
            raise Refused('its tensors are in CPU memory, but the backend is `cuda`; the option "driver": "host" emulates a device')
        return engine
    if device.type != "cuda" or options.backend not in ("auto", "cuda"):
        raise Refused(f"its tensors are on {device}, where the backend `{options.backend}` does not run")
    if options.driver == "host":
        raise Refused(f'its tensors are on {device}, but the option "driver": "host" emulates a device for CPU tensors')
    return "cuda"


@functools.lru_cache(maxsize=None)
def opened(driver: str, index: int) -> _piecewise.Device:
    """Opens a device once. Raises Error if there is none."""
    return _piecewise.Device(driver, index)


def opened_on(driver: str, place: torch.device) -> _piecewise.Device:
    """Opens the device of these tensors."""
    return opened(driver, 0 if place.type == "cpu" else index_of(place))


def open_device(options: Options, device: torch.device) -> _piecewise.Device:
    """Opens the device of a graph's tensors."""
    return opened_on(options.driver, device)


def index_of(device: torch.device) -> int:
    """Returns the index of a GPU."""
    return torch.cuda.current_device() if device.index is None else device.index


_recording = threading.local()


@contextlib.contextmanager
def recording(note: t.Callable[[t.Callable[[], None], t.Any], None]) -> t.Iterator[None]:
    """Passes each launch of this thread on the emulator, with its memory, to a function."""
    _recording.note = note
    try:
        yield
    finally:
        _recording.note = None


def is_recording(place: torch.device) -> bool:
    """Returns True within a capture of the current stream."""
    return torch.cuda.is_current_stream_capturing() if place.type == "cuda" else getattr(_recording, "note", None) is not None


def on_device(place: torch.device) -> t.ContextManager[None]:
    """Makes a GPU current; does nothing on the emulator."""
    return torch.cuda._DeviceGuard(index_of(place)) if place.type == "cuda" else contextlib.nullcontext()


def stream_of(place: torch.device) -> int:
    """Returns PyTorch's current stream; 0 on the emulator."""
    return torch._C._cuda_getCurrentRawStream(index_of(place)) if place.type == "cuda" else 0


def aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor, or a row-major copy at an address that kernels can load vectors from."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone(memory_format=torch.contiguous_format)


kernel_labels: t.Dict[str, str] = {}  # of this process, by kernel, for the lens


class OnDevice:
    """A compiled graph with the interface of _piecewise.Compiled. Each call has its own arena, so calls may overlap and be captured."""

    def __init__(self, device: _piecewise.Device, place: torch.device, graph: _piecewise.Graph, sizes: t.Dict[str, int]):
        program = _piecewise.DeviceProgram(device, graph, sizes)
        self.place = place
        self.summary = program.summary
        kernel_labels.update(program.kernel_labels)
        self._at = functools.lru_cache(maxsize=_SIZES)(lambda *symbols: program.at(dict(symbols)))

    def extents(self, symbols: t.Dict[str, int]) -> t.List[t.List[int]]:
        """Returns the extents of each output."""
        return self._at(*symbols.items()).extents

    def run(self, inputs: t.Sequence[int], outputs: t.Sequence[int], symbols: t.Dict[str, int]) -> None:
        """Enqueues the graph on the current stream."""
        call = self._at(*symbols.items())
        size = call.arena_bytes
        arena = torch.empty(size + _ALIGNED, dtype=torch.uint8, device=self.place) if size else None  # lives until all is enqueued
        at = 0 if arena is None else -(-arena.data_ptr() // _ALIGNED) * _ALIGNED
        stream = stream_of(self.place)
        with on_device(self.place):
            call.run(inputs, outputs, at, stream)
        if self.place.type == "cpu" and (note := getattr(_recording, "note", None)) is not None:
            note(call.bound(inputs, outputs, at, stream), arena)
