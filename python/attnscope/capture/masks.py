"""Masks as the calls give them, and what is stored of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def chosen_mask(mask: torch.Tensor, items: Sequence[int], heads: tuple[int, int]) -> torch.Tensor:
    """A mask as PyTorch takes it → [1 or B, 1 or H, 1 or Nq, Nk] of the chosen items and heads.

    Axes along which it is only expanded (stride 0) shrink to 1.
    """
    while mask.ndim < 4:
        mask = mask.unsqueeze(0)
    for axis in range(3):
        if mask.shape[axis] > 1 and mask.stride(axis) == 0:
            mask = mask.narrow(axis, 0, 1)
    if mask.shape[0] > 1:
        mask = mask[torch.as_tensor(items, device=mask.device)]
    return mask if mask.shape[1] == 1 else mask[:, heads[0] : heads[1]]
