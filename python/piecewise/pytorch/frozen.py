"""Weights that a compiled graph keeps in a form of its own, and how their changes are noticed."""
from __future__ import annotations

import typing as t

import torch


class FrozenWeights:
    """Weights of one compiled graph, as they were at its last call.

    A weight has changed where it is another tensor, or where PyTorch has counted a write since: in place, load_state_dict, an optimizer's step. All are held
    until then, so that no other can come to stand at their addresses. Weights whose writes PyTorch does not count, those made in inference mode, are to be
    compared at each call.
    """

    def __init__(self, indices: t.Sequence[int], check: bool):
        self.indices = list(indices)
        self._check = check
        self._marks: t.Dict[int, t.Tuple[int, ...]] = {}
        self._held: t.Dict[int, torch.Tensor] = {}

    def place(self, given: t.List[torch.Tensor]) -> t.Tuple[t.List[int], t.List[int]]:
        """Puts row-major forms in the places of the weights. Returns which have changed, and which are to be compared."""
        changed, watched = [], []
        for i in self.indices:
            tensor = given[i]
            counted = not tensor.is_inference()
            mark = (tensor.data_ptr(), tensor._version if counted else 0, *tensor.stride())
            if self._marks.get(i) != mark:
                self._marks[i] = mark
                self._held[i] = tensor.detach().contiguous()
                changed.append(i)
            elif self._check or not counted:
                watched.append(i)
            given[i] = self._held[i]
        return changed, watched
