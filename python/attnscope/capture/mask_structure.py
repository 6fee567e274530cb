"""The structure of a mask of every query and key: found in its entries, all of which are looked at, so that what
is stored instead of them says the same of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from .mask_entries import MaskEntries

BLOCK_SIZES = ((128, 128), (64, 64))
MOST_SPANS = 4096

# (item, first row, end) → the entries of these rows, bool [rows, keys], in all heads.
ExpectedRows = Callable[[int, int, int], torch.Tensor]


@dataclass(frozen=True)
class StoredMask:
    """The stored form of a call's mask: facts (`mask`, `mask_block`) and the tensors that they need."""

    facts: dict[str, str]
    tensors: dict[str, torch.Tensor]

    @property
    def second_format(self) -> bool:
        """True where only attnscope-capture/2 can say it."""
        return self.facts["mask"] not in ("none", "causal", "tensor")


def find_structure(entries: MaskEntries, sizes: tuple[tuple[int, int], ...]) -> StoredMask | None:
    """The least that tells the mask exactly; None where it has to be stored entry by entry.

    sizes: (queries, keys) of the blocks that are tried.
    """
    same_rows = _same_rows(entries)
    if same_rows is not None:
        return StoredMask({"mask": "tensor"}, {"mask": same_rows})
    found = _block_causal(entries) or _window(entries)
    if found is None and entries.shape[2] == entries.shape[3]:
        found = _valid_pairs(entries) or _segments(entries)
    for height, width in sizes:
        found = found or _blocks(entries, height, width)
    return found or (_prefixes(entries) if entries.shape[2] == entries.shape[3] else None)


def _is(entries: MaskEntries, expected: ExpectedRows) -> bool:
    """True where each entry is the expected one. Three rows come first: they end most questions early."""
    last = entries.shape[2] - 1
    some = [(i, i + 1) for i in sorted({0, last // 2, last})]
    return all(
        torch.equal(entries.rows(b, h, first, end), expected(b, first, end))
        for pieces in (some, entries.pieces())
        for first, end in pieces
        for b, h in entries.planes()
    )


def _shared(lists: torch.Tensor) -> torch.Tensor:
    """[items, tokens] → [tokens] where all items have the same."""
    return lists[0] if bool((lists == lists[:1]).all()) else lists


def _same_rows(entries: MaskEntries) -> torch.Tensor | None:
    """The row that all queries have, bool [items or 1, heads or 1, 1, keys]."""
    items, heads, _, keys = entries.shape
    rows = torch.cat([entries.rows(b, h, 0, 1) for b, h in entries.planes()]).view(items, heads, 1, keys)
    last = entries.shape[2] - 1
    some = [(i, i + 1) for i in sorted({last // 2, last})]
    same = all(
        bool((entries.rows(b, h, first, end) == rows[b, h]).all())
        for pieces in (some, entries.pieces())
        for first, end in pieces
        for b, h in entries.planes()
    )
    if not same:
        return None
    for axis in (0, 1):
        first = rows.narrow(axis, 0, 1)
        rows = first if bool((rows == first).all()) else rows
    return rows


def _block_causal(entries: MaskEntries) -> StoredMask | None:
    """Keys up to the end of the query's block, of as many tokens as row 0 has keys."""
    keys = entries.shape[3]
    row = entries.rows(0, 0, 0, 1)[0]
    block = int(row.sum())
    if block == 0 or block == keys:
        return None
    places = torch.arange(keys, device=row.device) // block

    def expected(_item: int, first: int, end: int) -> torch.Tensor:
        queries = torch.arange(first, end, device=row.device) // block
        return places <= queries[:, None]

    if not _is(entries, expected):
        return None
    return StoredMask({"mask": f"block_causal:{block}" if block > 1 else "causal"}, {})


def _window(entries: MaskEntries) -> StoredMask | None:
    """The keys around the query's own place, counted from the last token: the first row tells how many are behind it,
    the last how many before it."""
    _, _, queries, keys = entries.shape
    shift = keys - queries
    first, last = entries.rows(0, 0, 0, 1)[0], entries.rows(0, 0, queries - 1, queries)[0]
    if shift < 0 or not bool(first[shift]) or not bool(last[keys - 1]):
        return None
    behind = keys - 1 - int(first.flip(0).int().argmax()) - shift
    before = keys - 1 - int(last.int().argmax())
    places = torch.arange(keys, device=first.device)

    def expected(_item: int, first: int, end: int) -> torch.Tensor:
        apart = places - torch.arange(first + shift, end + shift, device=places.device)[:, None]
        return (apart >= -before) & (apart <= behind)

    if not _is(entries, expected):
        return None
    # As many keys as there are before the last query, or behind the first, are all.
    left = -1 if before == keys - 1 else before
    return StoredMask({"mask": f"window:{left},{-1 if behind == queries - 1 else behind}"}, {})


def _valid_pairs(entries: MaskEntries) -> StoredMask | None:
    """Valid queries have the valid keys, the others none: any row that has keys tells which."""
    valid = torch.stack([_any_row(entries, b) for b in range(entries.shape[0])])

    def expected(item: int, first: int, end: int) -> torch.Tensor:
        return valid[item, first:end, None] & valid[item]

    if not _is(entries, expected):
        return None
    return StoredMask({"mask": "valid_pairs"}, {"mask_valid": _shared(valid)})


def _any_row(entries: MaskEntries, item: int) -> torch.Tensor:
    """A row that has keys, bool [keys]; of an item without such rows, its last."""
    row = entries.rows(item, 0, 0, 1)[0]
    if bool(row.any()):
        return row
    for first, end in entries.pieces():
        rows = entries.rows(item, 0, first, end)
        row = rows[rows.any(-1).int().argmax()]
        if bool(row.any()):
            break
    return row


def _segments(entries: MaskEntries) -> StoredMask | None:
    """Queries and keys of the same segment, which its first token tells: the first key of each row."""
    lists = []
    for b in range(entries.shape[0]):
        of = torch.empty(entries.shape[2], dtype=torch.int64, device=entries.rows(b, 0, 0, 1).device)
        for first, end in entries.pieces():
            rows = entries.rows(b, 0, first, end)
            of[first:end] = rows.int().argmax(-1)
            own = of[first:end]
            before = bool((own <= torch.arange(first, end, device=own.device)).all())
            if not (before and bool(rows.any(-1).all()) and torch.equal(of[own], own)):
                return None
        lists.append(of)
    segments = torch.stack(lists)

    def expected(item: int, first: int, end: int) -> torch.Tensor:
        return segments[item, first:end, None] == segments[item]

    if not _is(entries, expected):
        return None
    numbers = torch.stack([torch.unique(of, return_inverse=True)[1] for of in segments])
    return StoredMask({"mask": "segments"}, {"mask_segments": _shared(numbers)})


def _prefixes(entries: MaskEntries) -> StoredMask | None:
    """The first keys of each query, as many as the query before it has, or one more, but where pictures or other
    blocks begin: words are causal, and what stands between them is whole."""
    keys = torch.arange(entries.shape[3], device=entries.rows(0, 0, 0, 1).device)
    counts = torch.cat([entries.rows(0, 0, first, end).sum(-1) for first, end in entries.pieces()])
    if not _is(entries, lambda item, first, end: keys < counts[first:end, None]):
        return None
    spans: list[tuple[int, int, int, int, int]] = []  # queries, keys, causal
    lengths, at = counts.tolist(), 0
    while at < len(lengths):
        length, end = lengths[at], at + 1
        grows = bool(length) and end < len(lengths) and lengths[end] == length + 1
        while end < len(lengths) and lengths[end] == lengths[end - 1] + grows:
            end += 1
        whole = length - grows
        spans += [(at, end, 0, whole, 0)] if whole else []
        spans += [(at, end, whole, whole + end - at, 1)] if grows else []
        at = end
    if len(spans) > MOST_SPANS or not any(causal for *_, causal in spans):
        return None
    return StoredMask({"mask": "spans"}, {"mask_spans": torch.tensor(spans, dtype=torch.int64).view(-1, 5)})


def _blocks(entries: MaskEntries, height: int, width: int) -> StoredMask | None:
    """Blocks of which every entry is the same."""
    items, heads, queries, keys = entries.shape
    columns = -(-keys // width)
    widths = torch.full((columns,), width)
    widths[-1] = keys - (columns - 1) * width
    planes = []
    for b, h in entries.planes():
        parts = []
        for first, end in entries.pieces(height):
            rows = entries.rows(b, h, first, end)
            lines = -(-(end - first) // height)
            room = torch.nn.functional.pad(rows, (0, columns * width - keys, 0, lines * height - len(rows)))
            kept = room.view(lines, height, columns, width).sum((1, 3), dtype=torch.int64)
            heights = torch.full((lines, 1), height)
            heights[-1] = end - first - (lines - 1) * height
            whole = (heights * widths).to(kept.device)
            if not bool(((kept == 0) | (kept == whole)).all()):
                return None
            parts.append(kept > 0)
        planes.append(torch.cat(parts))
    return stored_blocks(torch.stack(planes).view(items, heads, -1, columns), height, width)


def stored_blocks(blocks: torch.Tensor, height: int, width: int) -> StoredMask:
    """Blocks bool [items or 1, heads or 1, query blocks, key blocks]; what all heads share, once."""
    if bool((blocks == blocks[:, :1]).all()):
        blocks = blocks[:, :1]
    return StoredMask({"mask": "blocks", "mask_block": f"{height}x{width}"}, {"mask_blocks": blocks})
