"""Masks as the calls give them, and what is stored of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .errors import CaptureError

MASK_LIMIT = 256 * 2**20  # bytes of a call's mask that are stored without being asked for


def is_block_mask(mask: Any) -> bool:
    """Is it a BlockMask of torch.nn.attention.flex_attention?"""
    return type(mask).__name__ == "BlockMask" and hasattr(mask, "mask_mod")


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


def stored_mask(
    mask: Any,
    items: Sequence[int],
    heads: tuple[int, int],
    lengths: tuple[int, int],
    dtype: torch.dtype,
    limit: int | None,
) -> torch.Tensor:
    """What is stored of a call's mask: bool, or `dtype` added to the logits.

    mask: a tensor as PyTorch takes it, or a BlockMask, which becomes the same mask entry by entry;
    lengths: (Nq, Nk); limit: bytes. Raises CaptureError above them.
    """
    if is_block_mask(mask):
        batch, count = int(mask.kv_num_blocks.shape[0]), int(mask.kv_num_blocks.shape[1])
        _check_size(batch * count * lengths[0] * lengths[1], limit, "a BlockMask of ")
        return chosen_mask(_entries(mask, lengths), items, heads)
    chosen = chosen_mask(mask, items, heads)
    size = 1 if chosen.dtype == torch.bool else torch.empty(0, dtype=dtype).element_size()
    _check_size(chosen.numel() * size, limit, "")
    return chosen if chosen.dtype == torch.bool else chosen.to(dtype)


def _check_size(size: int, limit: int | None, what: str) -> None:
    if limit is not None and size > limit:
        raise CaptureError(
            f"the call's mask, {what}{size / 2**20:.0f} MiB as a dense tensor, is above the limit of "
            f"{limit / 2**20:.0f} MiB: a mask of every query and key is stored entry by entry. "
            "mask_limit=None (or a number of bytes) stores it"
        )


def _entries(mask: Any, lengths: tuple[int, int]) -> torch.Tensor:
    """A BlockMask [B, H] as bool [B, H, Nq, Nk]: a key counts in full blocks, and in the others of its
    blocks where mask_mod says so."""
    from torch.nn.attention.flex_attention import create_mask

    batch, heads = mask.kv_num_blocks.shape[:2]
    device = mask.kv_num_blocks.device
    inside = create_mask(mask.mask_mod, batch, heads, *lengths, device=device)
    keep = inside & _blocks(mask, mask.kv_num_blocks, mask.kv_indices, lengths)
    if mask.full_kv_num_blocks is not None:
        keep |= _blocks(mask, mask.full_kv_num_blocks, mask.full_kv_indices, lengths)
    return keep


def _blocks(mask: Any, counts: torch.Tensor, indices: torch.Tensor, lengths: tuple[int, int]) -> torch.Tensor:
    """The entries of the blocks that each row of blocks lists first: bool [B, H, Nq, Nk]."""
    height, width = mask.BLOCK_SIZE
    columns = -(-lengths[1] // width)
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    width_in_blocks = max(columns, indices.shape[-1])
    blocks = torch.zeros(*indices.shape[:-1], width_in_blocks, dtype=torch.int32, device=indices.device)
    blocks.scatter_add_(-1, indices.long(), listed.int())
    rows = (blocks > 0).repeat_interleave(height, -2)[..., : lengths[0], :]
    return rows.repeat_interleave(width, -1)[..., : lengths[1]]
