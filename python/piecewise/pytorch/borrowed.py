"""Resources shared with PyTorch: its BLAS, oneDNN's kernels, and its threads."""
from __future__ import annotations

import functools
import logging
import typing as t

import torch

import _piecewise
from _piecewise import Error

_log = logging.getLogger("piecewise")


def _libraries() -> t.Iterator[str]:
    """Returns the paths of loaded libraries of this process, possibly with duplicates."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            _, slash, path = line.rstrip("\n").partition("/")
            if slash:
                yield slash + path


@functools.lru_cache(maxsize=None)
def _lend() -> str:
    """Registers PyTorch's BLAS and oneDNN's kernels for matmuls and convolutions; returns the path of its OpenMP runtime, empty without one."""
    openmp = ""
    for path in sorted(set(_libraries())):
        name = path.rpartition("/")[2]
        if name.startswith("libgomp"):
            openmp = path
        elif name.startswith("libtorch_cpu."):
            for lend in (_piecewise.lend_blas, _piecewise.lend_torch):
                try:
                    lend(path)
                except Error as why:
                    _log.info("%s", why)
    return openmp


def lent_threads() -> None:
    """Runs with PyTorch's OpenMP runtime and number of threads, so that two thread pools do not compete, and with the fastest of its kernels and ours.

    Which one is fastest is measured, and may differ between machines; under torch.use_deterministic_algorithms(True) nothing is measured.
    """
    _piecewise.use_threads(torch.get_num_threads(), _lend())
    _piecewise.measure_kernels("" if torch.are_deterministic_algorithms_enabled() else f"PyTorch {torch.__version__}")
