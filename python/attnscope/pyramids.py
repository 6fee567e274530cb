"""A head's map in chunks and levels, as viewers ask for it: computed chunk by chunk, of whose rows the sums are kept."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .one_head import OneHead
from .token_places import token_places

TILE = (512, 512)  # of every level
BAND = (64, 4096)  # of `rows`: for whole rows of the map
_POOLED = 64  # tokens a side of the blocks that coarser levels are made of, by one pass over the map
_UNIT = 64  # rows whose sums are computed together
_MOST_ENTRIES = 1 << 22  # that are held to pool them


class Pyramid:
    """Level 0 is the map, level L its blocks of 2ᴸ × 2ᴸ weights, up to the first that one chunk holds. Chunks are
    float32, all of one shape, NaN beyond the map's edges. Thread-safe: who wants rows whose sums are just computed
    waits for them. Keeps 16 bytes a row, and once a level of blocks of 64 or more was asked for, the map in blocks of
    64."""

    def __init__(self, head: OneHead) -> None:
        self.head = head
        rows, cols = head.shape
        self.levels = 0
        while max(-(-rows // self._side), -(-cols // self._side)) > TILE[0]:
            self.levels += 1
        self._lock = threading.Lock()
        self._norms = np.empty((rows, 2))
        self._known = np.zeros(-(-rows // _UNIT), bool)
        self._has_norms = True  # the score has any
        self._blocks: dict[str, np.ndarray] = {}

    @property
    def _side(self) -> int:
        return 1 << self.levels

    def shape(self, level: int) -> tuple[int, int]:
        rows, cols = self.head.shape
        return -(-rows >> level), -(-cols >> level)

    def entries(self, rows: slice, cols: slice) -> np.ndarray:
        """head.weights(rows, cols) of slices without steps, with sums that are kept."""
        call, engine = self.head.call._call, self.head.call._engine
        place = (self.head.batch, self.head.number)
        self._sum(rows)
        norms = self._norms[rows] if self._has_norms else np.empty((0, 2))
        wanted = ((rows.start, rows.stop), (cols.start, cols.stop))
        return call.known_entries(engine, *place, *wanted, np.ascontiguousarray(norms))[0]

    def _sum(self, rows: slice) -> None:
        """Makes the sums of these rows known."""
        units = slice(rows.start // _UNIT, -(-rows.stop // _UNIT))
        with self._lock:
            missing = units.start + np.flatnonzero(~self._known[units])
            if not missing.size:
                return
            begin, end = int(missing[0]) * _UNIT, min((int(missing[-1]) + 1) * _UNIT, self.head.shape[0])
            call = self.head.call
            place = (self.head.batch, self.head.number)
            norms = call._call.row_norms(call._engine, *place, (begin, end))
            self._has_norms = len(norms) > 0
            if self._has_norms:
                self._norms[begin:end] = norms
            self._known[missing[0] : missing[-1] + 1] = True

    def map_chunk(self, shape: tuple[int, int], place: tuple[int, int]) -> np.ndarray:
        """A chunk of level 0."""
        rows, cols = (
            slice(i * side, min((i + 1) * side, count))
            for i, side, count in zip(place, shape, self.head.shape, strict=True)
        )
        return _padded(self.entries(rows, cols), shape)

    def pooled_chunk(self, level: int, pool: str, place: tuple[int, int]) -> np.ndarray:
        """A chunk of a level from 1 on; pool: "max" or "mean"."""
        side = 1 << level
        rows, cols = (
            slice(i * chunk * side, min((i + 1) * chunk * side, count))
            for i, chunk, count in zip(place, TILE, self.head.shape, strict=True)
        )
        if side >= _POOLED:
            return _padded(self._of_blocks(side, pool, place), TILE)
        at_once = max(1, _MOST_ENTRIES // (side * (cols.stop - cols.start))) * side
        parts = [
            _pooled(self.entries(slice(begin, min(begin + at_once, rows.stop)), cols), side, pool)
            for begin in range(rows.start, rows.stop, at_once)
        ]
        return _padded(np.concatenate(parts), TILE)

    def _of_blocks(self, side: int, pool: str, place: tuple[int, int]) -> np.ndarray:
        """The chunk's cells, from the map in blocks of 64."""
        with self._lock:
            if not self._blocks:
                largest, mean = self.head.pooled(_POOLED, progress=False)
                self._blocks = {"max": largest, "mean": mean}
        times = side // _POOLED
        rows, cols = (slice(i * chunk * times, (i + 1) * chunk * times) for i, chunk in zip(place, TILE, strict=True))
        part = self._blocks[pool][rows, cols]
        if times == 1 or pool == "max":
            return _pooled(part, times, pool)
        sizes = [_sizes(count, _POOLED)[axis] for count, axis in zip(self.head.shape, (rows, cols), strict=True)]
        sums = _pooled(part * np.outer(*sizes), times, "sum")
        return (sums / np.outer(*(np.add.reduceat(s, range(0, len(s), times)) for s in sizes))).astype(np.float32)

    def coordinates(self) -> dict[str, np.ndarray]:
        """int32 arrays query_t, key_y, key_text …, −1 where a token has none (token_places())."""
        found = {}
        for dim, keys in (("query", False), ("key", True)):
            for name, values in token_places(self.head, keys).items():
                if values.dtype == np.int32:
                    found[f"{dim}_{name}"] = values
        return found


def _sizes(count: int, block: int) -> np.ndarray:
    """How many tokens each block has: the last may have fewer."""
    begins = np.arange(0, count, block)
    return (np.minimum(begins + block, count) - begins).astype(np.float64)


def _pooled(entries: np.ndarray, side: int, pool: str) -> np.ndarray:
    """Blocks of side × side: "max", "mean" (float32, summed in double) or "sum" (double)."""
    kind: Any = np.maximum if pool == "max" else np.add
    for axis in (0, 1):
        count = entries.shape[axis]
        options = {} if pool == "max" else {"dtype": np.float64}
        starts = np.arange(0, count, side)
        reduced = kind.reduceat(entries, starts, axis=axis, **options)
        if pool == "mean":
            reduced /= np.expand_dims(_sizes(count, side), 1 - axis)
        entries = reduced
    return entries.astype(np.float32) if pool == "mean" else entries


def _padded(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    if values.shape == shape:
        return np.ascontiguousarray(values)
    chunk = np.full(shape, np.nan, np.float32)
    chunk[: values.shape[0], : values.shape[1]] = values
    return chunk
