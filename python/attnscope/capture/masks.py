"""Masks as the calls give them, and what is stored of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .errors import CaptureError
from .mask_entries import BlockEntries, MaskEntries, TensorEntries, block_lists
from .mask_structure import BLOCK_SIZES, StoredMask, find_structure, stored_blocks

MASK_LIMIT = 256 * 2**20  # bytes of entries of a call's mask that are stored without being asked for


def is_block_mask(mask: Any) -> bool:
    """Is it a BlockMask of torch.nn.attention.flex_attention?"""
    return type(mask).__name__ == "BlockMask" and hasattr(mask, "mask_mod")


def _require_tensor(mask: Any) -> None:
    if isinstance(mask, torch.Tensor):
        return
    name = f"{type(mask).__module__}.{type(mask).__qualname__}"
    raise CaptureError(
        f"the call's mask is a {name}, expected a tensor or a BlockMask: what it leaves out of the softmax is not known"
    )


def chosen_mask(mask: torch.Tensor, items: Sequence[int], heads: tuple[int, int]) -> torch.Tensor:
    """A mask as PyTorch takes it → [1 or B, 1 or H, 1 or Nq, Nk] of the chosen items and heads.

    Axes along which it is only expanded (stride 0) shrink to 1. Raises CaptureError for what is no tensor.
    """
    _require_tensor(mask)
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
) -> StoredMask:
    """The stored form of a call's mask: the structure of a boolean one, where a capture has words for it, else
    its entries, bool or `dtype` added to the logits.

    mask: a tensor as PyTorch takes it, or a BlockMask; lengths: (Nq, Nk); limit: bytes of entries. Raises
    CaptureError above them.
    """
    if is_block_mask(mask):
        if not bool(mask.kv_num_blocks.any()) and mask.full_kv_num_blocks is not None:
            return _full_blocks(mask, items, heads, lengths)
        entries: MaskEntries = BlockEntries(mask, items, heads, lengths)
        sizes, what = (tuple(mask.BLOCK_SIZE), *BLOCK_SIZES), "a BlockMask of "
    else:
        chosen = chosen_mask(mask, items, heads)
        if chosen.dtype != torch.bool or chosen.shape[2] == 1:
            size = 1 if chosen.dtype == torch.bool else torch.empty(0, dtype=dtype).element_size()
            _check_size(chosen.numel() * size, limit, "")
            stored = chosen if chosen.dtype == torch.bool else chosen.to(dtype)
            return StoredMask({"mask": "tensor"}, {"mask": stored})
        entries = TensorEntries(chosen.expand(-1, -1, -1, lengths[1]))
        sizes, what = BLOCK_SIZES, ""
    found = find_structure(entries, sizes)
    if found is None:
        _check_size(math.prod(entries.shape), limit, what)
        found = StoredMask({"mask": "tensor"}, {"mask": entries.dense()})
    return found


def mask_rows(
    mask: Any, item: int, heads: tuple[int, int], rows: torch.Tensor, lengths: tuple[int, int]
) -> torch.Tensor:
    """Some rows of a call's mask for a batch item and the heads [first, end): bool or numbers
    [H or 1, len(rows) or 1, Nk or 1]. Nothing else of the mask is copied."""
    if is_block_mask(mask):
        entries = BlockEntries(mask, [item], heads, lengths)
        return torch.stack(
            [
                torch.cat([entries.rows(0, h, i, i + 1) for i in rows.tolist()])
                for h in range(entries.shape[1])
            ]
        )
    _require_tensor(mask)
    while mask.ndim < 4:
        mask = mask.unsqueeze(0)
    part = mask[item if mask.shape[0] > 1 else 0]
    part = part[heads[0] : heads[1]] if part.shape[0] > 1 else part
    return part if part.shape[1] == 1 else part[:, rows.to(part.device)]


def _full_blocks(
    mask: Any, items: Sequence[int], heads: tuple[int, int], lengths: tuple[int, int]
) -> StoredMask:
    """A BlockMask of full blocks alone: they tell all of it."""
    height, width = mask.BLOCK_SIZE
    rows, columns = -(-lengths[0] // height), -(-lengths[1] // width)
    blocks = block_lists(mask.full_kv_num_blocks, mask.full_kv_indices, columns)[:, :, :rows]
    return stored_blocks(chosen_mask(blocks, items, heads), height, width)


def _check_size(size: int, limit: int | None, what: str) -> None:
    if limit is not None and size > limit:
        raise CaptureError(
            f"the call's mask, {what}{size / 2**20:.0f} MiB as a dense tensor, is above the limit of "
            f"{limit / 2**20:.0f} MiB: no structure was found in it, and a mask of every query and key is "
            "stored entry by entry. mask_limit=None (or a number of bytes) stores it"
        )
