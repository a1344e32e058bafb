"""What PyTorch has and Piecewise takes: its BLAS, oneDNN's kernels and its threads."""
from __future__ import annotations

import functools
import logging
import typing as t

import torch

import _piecewise
from _piecewise import Error

_log = logging.getLogger("piecewise")


def _libraries() -> t.Iterator[str]:
    """Paths of what this process has loaded, some of them often."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            _, slash, path = line.rstrip("\n").partition("/")
            if slash:
                yield slash + path


@functools.lru_cache(maxsize=None)
def _lend() -> str:
    """Lends PyTorch's BLAS, and oneDNN's kernels, to products and convolutions; returns the path of its OpenMP runtime, empty where it has none."""
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
    """As many threads as PyTorch uses, of its own runtime: two pools would be in each other's way."""
    _piecewise.use_threads(torch.get_num_threads(), _lend())
