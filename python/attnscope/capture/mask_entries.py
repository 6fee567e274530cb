"""The entries of a boolean mask, some rows at a time: a mask of every query and key may take more than
the memory that is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

PIECE_ENTRIES = 2**23  # looked at at once


class MaskEntries:
    """A boolean mask of the chosen batch items and heads.

    shape: (items or 1, heads or 1, queries, keys); what is 1 holds for all.
    """

    def __init__(self, shape: tuple[int, int, int, int]) -> None:
        self.shape = shape

    def rows(self, item: int, head: int, first: int, end: int) -> torch.Tensor:
        """bool [end - first, keys]"""
        raise NotImplementedError

    def planes(self) -> Iterator[tuple[int, int]]:
        """Every (item, head)."""
        return ((b, h) for b in range(self.shape[0]) for h in range(self.shape[1]))

    def pieces(self, multiple: int = 1) -> Iterator[tuple[int, int]]:
        """Ranges of rows that cover the queries, of about PIECE_ENTRIES; all begin at multiples."""
        queries, keys = self.shape[2:]
        step = max(1, PIECE_ENTRIES // keys // multiple) * multiple
        return ((first, min(first + step, queries)) for first in range(0, queries, step))

    def dense(self) -> torch.Tensor:
        """All of them: bool [items, heads, queries, keys]."""
        return torch.stack(
            [
                torch.stack(
                    [torch.cat([self.rows(b, h, *p) for p in self.pieces()]) for h in range(self.shape[1])]
                )
                for b in range(self.shape[0])
            ]
        )


class TensorEntries(MaskEntries):
    """Those of a tensor bool [items or 1, heads or 1, queries or 1, keys]."""

    def __init__(self, mask: torch.Tensor) -> None:
        super().__init__(tuple(mask.shape))  # type: ignore[arg-type]
        self._mask = mask

    def rows(self, item: int, head: int, first: int, end: int) -> torch.Tensor:
        return self._mask[item, head, first:end]

    def dense(self) -> torch.Tensor:
        return self._mask


class BlockEntries(MaskEntries):
    """Those of a BlockMask: a key counts in full blocks, and in the others of its blocks where mask_mod
    says so. lengths: (queries, keys)."""

    def __init__(
        self, mask: Any, items: Sequence[int], heads: tuple[int, int], lengths: tuple[int, int]
    ) -> None:
        batch, count = mask.kv_num_blocks.shape[:2]
        self._items = list(items) if batch > 1 else [0]
        self._heads = list(range(*heads)) if count > 1 else [0]
        super().__init__((len(self._items), len(self._heads), *lengths))
        self._mask = mask

    def rows(self, item: int, head: int, first: int, end: int) -> torch.Tensor:
        from torch.nn.attention.flex_attention import create_mask

        mask, b, h = self._mask, self._items[item], self._heads[head]

        def there(_b: Any, _h: Any, query: Any, key: Any) -> Any:
            return mask.mask_mod(_b + b, _h + h, query + first, key)

        keys, device = self.shape[3], mask.kv_num_blocks.device
        inside = create_mask(there, 1, 1, end - first, keys, device=device)[0, 0]
        kept = inside & self._listed(mask.kv_num_blocks, mask.kv_indices, b, h, first, end)
        if mask.full_kv_num_blocks is not None:
            kept |= self._listed(mask.full_kv_num_blocks, mask.full_kv_indices, b, h, first, end)
        return kept

    def _listed(
        self, counts: torch.Tensor, indices: torch.Tensor, b: int, h: int, first: int, end: int
    ) -> torch.Tensor:
        """The entries of the blocks that each row of blocks lists first: bool [end - first, keys]."""
        height, width = self._mask.BLOCK_SIZE
        lines = torch.arange(first, end, device=indices.device) // height
        listed = block_lists(counts[b, h], indices[b, h], -(-self.shape[3] // width))
        return listed[lines].repeat_interleave(width, -1)[:, : self.shape[3]]


def block_lists(counts: torch.Tensor, indices: torch.Tensor, columns: int) -> torch.Tensor:
    """Blocks as a BlockMask lists them, so many (`counts`) of `indices` a row → bool [rows, columns]."""
    used = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    width = max(columns, indices.shape[-1])
    blocks = torch.zeros(*indices.shape[:-1], width, dtype=torch.int32, device=indices.device)
    blocks.scatter_add_(-1, indices.long(), used.int())
    return blocks[..., :columns] > 0
