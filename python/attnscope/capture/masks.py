"""Masks as the calls give them, and what is stored of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class MaskForm:
    """A call's mask as it is stored: facts, and the tensors that they speak of."""

    facts: dict[str, str]
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def rows(self, rows: torch.Tensor, keys: int) -> torch.Tensor | None:
        """What the first item's first head has at the queries `rows`: [R or 1, Nk], bool or a bias; None: no
        key is masked."""
        form, device = self.facts["mask"], rows.device
        places = torch.arange(keys, device=device)
        if form == "none":
            return None
        if form == "causal":
            return places <= rows[:, None]
        if form == "tensor":
            part = self.tensors["mask"][0, 0].to(device)
            return part if part.shape[0] == 1 else part[rows]
        if form == "blocks":
            height, width = (int(n) for n in self.facts["mask_block"].split("x"))
            return self.tensors["mask_blocks"][0, 0].to(device)[rows // height][:, places // width]
        if form.startswith("block_causal:"):
            count = int(form.partition(":")[2])
            return (places // count) <= (rows[:, None] // count)
        row = next(iter(self.tensors.values())).to(device)
        row = row[0] if row.ndim == 2 else row
        if form == "segments":
            return row == row[rows][:, None]
        return row[None] if form == "valid" else row & row[rows][:, None]


def mask_form(
    mask: Any,
    causal: bool,
    items: Sequence[int],
    heads: tuple[int, int],
    lengths: tuple[int, int],
    dtype: torch.dtype,
    limit: int | None,
    second: bool,
) -> MaskForm:
    """How a call's mask is stored; the arguments of stored_mask().

    second: the call is of the second format, in which a mask is what it is: its valid keys, its segments,
    its blocks. A mask above the limit makes a call one where it has such a form. Raises CaptureError above
    the limit where it has none.
    """
    if causal or mask is None:
        return MaskForm({"mask": "causal" if causal else "none"})
    dense = _dense_size(mask, items, heads, lengths, dtype)
    if second or (limit is not None and dense > limit):
        if is_block_mask(mask):
            form = _block_form(mask, items, heads, lengths)
        else:
            form = plain_form(chosen_mask(mask, items, heads))
        if form is not None:
            return form
    return MaskForm({"mask": "tensor"}, {"mask": stored_mask(mask, items, heads, lengths, dtype, limit)})


def _dense_size(
    mask: Any, items: Sequence[int], heads: tuple[int, int], lengths: tuple[int, int], dtype: torch.dtype
) -> int:
    """Bytes of the mask entry by entry."""
    if is_block_mask(mask):
        return int(mask.kv_num_blocks.shape[0] * mask.kv_num_blocks.shape[1]) * lengths[0] * lengths[1]
    chosen = chosen_mask(mask, items, heads)
    return chosen.numel() * (1 if chosen.dtype == torch.bool else torch.empty(0, dtype=dtype).element_size())


def _block_form(
    mask: Any, items: Sequence[int], heads: tuple[int, int], lengths: tuple[int, int]
) -> MaskForm | None:
    """A BlockMask of whole blocks; None where a function decides within some of them."""
    if mask.full_kv_num_blocks is None or bool(mask.kv_num_blocks.any()):
        return None
    height, width = mask.BLOCK_SIZE
    listed = _listed(mask.full_kv_num_blocks, mask.full_kv_indices, -(-lengths[1] // width))
    blocks = chosen_mask(listed[..., : -(-lengths[0] // height), :], items, heads)
    return MaskForm({"mask": "blocks", "mask_block": f"{height}x{width}"}, {"mask_blocks": blocks})


def plain_form(mask: torch.Tensor) -> MaskForm | None:
    """The form of a bool mask [1 or B, 1, 1 or N, N] that says less than each of its entries: keys that are
    valid, pairs of valid tokens, segments, blocks of tokens that see what came before them.

    None of any other mask. Compared entry by entry, some rows at a time.
    """
    if mask.dtype != torch.bool or mask.shape[1] != 1:
        return None
    entries = mask[:, 0]
    if entries.shape[1] == 1:
        return MaskForm({"mask": "valid"}, {"mask_valid": _of_all(entries[:, 0])})
    count = entries.shape[2]
    if entries.shape[1] != count:
        return None
    valid = entries.diagonal(dim1=1, dim2=2)
    if _same(entries, lambda rows: valid[:, rows, None] & valid[:, None]):
        return MaskForm({"mask": "valid_pairs"}, {"mask_valid": _of_all(valid)})
    size = max(1, int(entries[0, 0].sum()))
    blocks = torch.arange(count, device=mask.device) // size
    if _same(entries, lambda rows: blocks[None, None] <= blocks[rows][None, :, None]):
        return MaskForm({"mask": f"block_causal:{size}" if size > 1 else "causal"})
    # The first key of each query: in a segment all have the same.
    first = torch.cat([entries[:, rows].byte().argmax(2) for rows in _parts(entries)], 1)
    if _same(entries, lambda rows: first[:, rows, None] == first[:, None]):
        return MaskForm({"mask": "segments"}, {"mask_segments": _of_all(first)})
    return None


def _of_all(rows: torch.Tensor) -> torch.Tensor:
    """[B, N], or [N] where one row is every item's."""
    return rows[0] if rows.shape[0] == 1 else rows


def _same(entries: torch.Tensor, expected: Callable[[slice], torch.Tensor]) -> bool:
    """Are the entries [B, N, N] those that `expected` has of a range of queries?"""
    return all(bool((entries[:, rows] == expected(rows)).all()) for rows in _parts(entries))


def _parts(entries: torch.Tensor) -> list[slice]:
    """Ranges of queries, of some millions of entries each."""
    step = max(1, 2**24 // (entries.shape[0] * entries.shape[2]))
    return [slice(a, min(a + step, entries.shape[1])) for a in range(0, entries.shape[1], step)]


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
    blocks = _listed(counts, indices, -(-lengths[1] // width))
    rows = blocks.repeat_interleave(height, -2)[..., : lengths[0], :]
    return rows.repeat_interleave(width, -1)[..., : lengths[1]]


def _listed(counts: torch.Tensor, indices: torch.Tensor, columns: int) -> torch.Tensor:
    """The blocks of keys that each row of blocks lists first: bool [B, H, rows, columns]."""
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    width = max(columns, indices.shape[-1])
    blocks = torch.zeros(*indices.shape[:-1], width, dtype=torch.int32, device=indices.device)
    blocks.scatter_add_(-1, indices.long(), listed.int())
    return blocks[..., :columns] > 0
