"""Which of PyTorch's ops are taken apart before a graph is imported."""
import functools

import torch
from torch._decomp import core_aten_decompositions


@functools.lru_cache(maxsize=None)
def decompositions():
    """Those that are not core ATen, but attention, which has a kernel here."""
    table = dict(core_aten_decompositions())
    for name in ("_scaled_dot_product_flash_attention_for_cpu",):
        for overload in getattr(torch.ops.aten, name).overloads():
            table.pop(getattr(getattr(torch.ops.aten, name), overload), None)
    return table
