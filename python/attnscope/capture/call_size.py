"""The bytes of one call's tensors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CallSize:
    """The sizes that decide the bytes of a call's tensors; `mask` is bytes."""

    items: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    channels: int
    itemsize: int
    mask: int = 0

    def payload(self, values: bool, rows: int) -> int:
        """Bytes of q, k, the mask and, with `values`, v and `rows` rows of the result."""
        q = self.items * self.heads * self.queries * self.channels
        k = self.items * self.key_heads * self.keys * self.channels
        n = min(rows, self.queries) if values else 0
        out = self.items * self.heads * n * self.channels
        return (q + k + (k if values else 0) + out) * self.itemsize + 8 * n + self.mask


def mask_bytes(style: str | None, items: int, heads: int, keys: int, itemsize: int) -> int:
    """Bytes of what is stored of a call's mask.

    style: "row", "pairs", "uneven": one row of bools for each of `items`; "segments": of numbers; "head_row": one of
    biases an item and head; "dense": bools of all queries, as many as keys, an item and head; None: no mask.
    """
    if style is None:
        return 0
    if style == "dense":
        return items * heads * keys * keys
    if style == "segments":
        return items * keys * 8
    return items * heads * keys * itemsize if style == "head_row" else items * keys
