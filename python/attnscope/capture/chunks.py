"""Pieces of a stream: which piece a forward is, and where queries and keys stand in the stream."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .errors import CaptureError
from .grids import Grid
from .patching import replaced
from .tensors import Call
from .tokens import Segment, grid_segment

# The names that forwards of transformers give their cache: from 5.24 on, and before.
CACHES = ("cache", "past_key_values")
# Caches of transformers whose keys are the latest of a stream, in order; those of others may lie anywhere.
ORDERED_LAYERS = ("DynamicLayer", "DynamicSlidingWindowLayer", "StaticLayer", "StaticSlidingWindowLayer")
MASKED_BIAS = -(2.0**22)  # a bias that masks, as the capture format has it
HOW_TO_PLACE = (
    "cap.begin_chunk(n, query_position=…, key_positions=[…]) tells where they stand in the stream; "
    "use_cache=False runs the model without a cache"
)

KeyPositions = Sequence[tuple[int, int]]  # first and past the last position, in the order of K


@dataclass(frozen=True)
class Chunk:
    """A piece of a stream. Tokens of a stream are counted from 0."""

    number: int
    position: int  # of the piece's first query
    # A number: that of the first key, which the others follow. None: the queries themselves, or what a
    # cache says at each call.
    keys: KeyPositions | int | None = None
    cached: bool = False  # a cache of transformers says it


@dataclass(frozen=True)
class StreamTokens:
    """The tokens of a call in the stream; keys None: as the queries."""

    queries: Sequence[Segment]
    keys: Sequence[Segment] | None


@dataclass(frozen=True)
class _Update:
    """The latest update of a cache: keys before it, new ones, those that it gave back."""

    layer: str
    before: int
    new: int
    keys: torch.Tensor  # [B, Hkv, N, d]

    def begins_with(self, keys: torch.Tensor) -> bool:
        """Are these the keys, or the first of them (a prompt's attention leaves out what is not filled)?"""
        if self.keys.shape[2] == keys.shape[2]:
            return True
        return torch.equal(self.keys[:, :, : keys.shape[2]], keys)


class ChunkTeller:
    """Tells the chunk of each forward: what the user says, else what a cache of transformers does.

    Used by the thread that runs the model.
    """

    def __init__(self) -> None:
        self._said: Chunk | None = None  # by begin_chunk()
        self._stream = -1  # of caches: how many began before
        self._number = -1
        self._update: _Update | None = None

    # ---- which chunk

    def say(self, number: int, query_position: int, key_positions: Any) -> Chunk:
        """The forwards that follow are this chunk; key_positions: see Capture.begin_chunk()."""
        for name, value in (("the chunk", number), ("query_position", query_position)):
            if not isinstance(value, int) or value < 0:
                raise CaptureError(f"begin_chunk: {name} is a whole number from 0 (got {value!r})")
        self._said = Chunk(number, query_position, _key_ranges(key_positions))
        return self._said

    def of_bare(self) -> Chunk | None:
        """The chunk of a call without a model."""
        return self._said

    def of_forward(self, given: dict[str, Any], hf: bool) -> tuple[Chunk | None, int | None]:
        """(chunk of the forward that begins with the arguments `given`, its step where the cache tells it).

        A cache that is empty begins another stream, and each stream is a step.
        """
        self._update = None
        if self._said is not None or not hf:
            return self._said, None
        name = next((n for n in CACHES if given.get(n) is not None), CACHES[0])
        cache = given.get(name)
        if cache is None and given.get("use_cache") is not True:
            return None, None
        before = int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
        if cache is not None and not hasattr(cache, "get_seq_length"):
            raise CaptureError(
                f"{name} is a {type(cache).__name__}, of which the positions of keys are not known: "
                f"{HOW_TO_PLACE}"
            )
        if before == 0 or self._stream < 0:
            self._stream, self._number = self._stream + 1, -1
        self._number += 1
        return Chunk(self._number, before, cached=True), self._stream

    # ---- what caches say

    def watch(self, stack: contextlib.ExitStack) -> None:
        """Learns what each update of a cache of transformers gives back, until `stack` is closed."""
        cache = getattr(sys.modules.get("transformers.cache_utils"), "Cache", None)
        real = getattr(cache, "update", None)
        if not callable(real):
            return

        def update(this: Any, keys: torch.Tensor, values: torch.Tensor, index: int, *more: Any, **named: Any) -> Any:
            before = int(this.get_seq_length(index))
            result = real(this, keys, values, index, *more, **named)
            layers = this.layers
            layer = type(layers[index]).__name__ if index < len(layers) else type(this).__name__
            self._update = _Update(layer, before, keys.shape[-2], result[0])
            return result

        stack.enter_context(replaced(cache, "update", update))

    # ---- where the tokens of a call stand

    def of_call(
        self,
        where: str,
        chunk: Chunk,
        call: Call,
        own: Sequence[Segment],
        others: Sequence[Segment] | None = None,
    ) -> tuple[Call, StreamTokens]:
        """(the call without keys that no token filled, its tokens).

        own: what its queries are; others: what its keys are where they are of no stream (cross-attention).
        Raises CaptureError where the positions of its keys are not known; `where` names it.
        """
        queries = _placed(own, chunk.position)
        update, self._update = self._update, None
        if others is not None:
            return call, StreamTokens(queries, others)
        ranges = chunk.keys
        if chunk.cached:
            call, ranges = self._of_cache(where, chunk, call, update)
        if ranges is None:
            ranges = [(chunk.position, chunk.position + call.q.shape[2])]
        elif isinstance(ranges, int):
            ranges = [(ranges, ranges + call.k.shape[2])]
        count = sum(past - first for first, past in ranges)
        if count != call.k.shape[2]:
            raise CaptureError(
                f"{where}: {call.k.shape[2]} keys, but begin_chunk({chunk.number}, …) names positions of "
                f"{count}: pass key_positions= as they lie in K"
            )
        past = chunk.position + call.q.shape[2]
        if list(ranges) == [(chunk.position, past)]:
            return call, StreamTokens(queries, None)
        return call, StreamTokens(queries, _key_segments(ranges, queries, past))

    def _of_cache(
        self, where: str, chunk: Chunk, call: Call, update: _Update | None
    ) -> tuple[Call, KeyPositions]:
        """(the call with the keys that are filled, their positions) as the cache's update has them."""
        queries, keys = call.q.shape[2], call.k.shape[2]
        if update is None or update.new != queries or not update.begins_with(call.k):
            raise CaptureError(
                f"{where}: {queries} queries and {keys} keys, which are not what the latest update of a "
                f"cache gave: {HOW_TO_PLACE}"
            )
        if update.layer not in ORDERED_LAYERS:
            raise CaptureError(
                f"{where}: its cache is a {update.layer}, of which the positions of keys are not known: "
                f"use DynamicCache, or {HOW_TO_PLACE}"
            )
        if update.before != chunk.position:
            raise CaptureError(
                f"{where}: its cache held {update.before} tokens, that of the forward {chunk.position}: "
                f"{HOW_TO_PLACE}"
            )
        filled = update.before + queries
        if update.keys.shape[2] <= filled:  # the latest
            if keys == update.keys.shape[2]:
                return _filled(where, call, keys), [(filled - keys, filled)]
        elif keys >= filled:  # room for more, from the first on
            return _filled(where, call, filled), [(0, filled)]
        raise CaptureError(
            f"{where}: {keys} keys of the {update.keys.shape[2]} that its cache gave: {HOW_TO_PLACE}"
        )


def _key_ranges(given: Any) -> KeyPositions | int | None:
    """Key positions as ranges; a number and None as they are."""
    if given is None or (type(given) is int and given >= 0):
        return given
    items = [given] if isinstance(given, range) else given
    expected = (
        "expected a number (of the first key) or a list of ranges or pairs (first, past the last), in the "
        "order in which they lie in K"
    )
    if not isinstance(items, Iterable) or isinstance(items, (str, bytes)):
        raise CaptureError(f"begin_chunk: key_positions: {expected} (got {given!r})")
    ranges = []
    for item in items:
        if isinstance(item, range) and item.step == 1:
            item = (item.start, item.stop)
        whole = isinstance(item, (tuple, list)) and len(item) == 2 and all(type(n) is int for n in item)
        if not whole or not 0 <= item[0] < item[1]:
            raise CaptureError(f"begin_chunk: key_positions: {expected} (got {item!r})")
        ranges.append((item[0], item[1]))
    return ranges


def _filled(where: str, call: Call, filled: int) -> Call:
    """The call without the keys from `filled` on, which its mask must leave out."""
    mask = call.mask
    if call.k.shape[2] > filled:
        rest = mask[..., filled:] if isinstance(mask, torch.Tensor) else None
        if rest is None or mask.shape[-1] != call.k.shape[2]:
            raise CaptureError(
                f"{where}: {call.k.shape[2]} keys, of which {filled} are filled, and no mask of each key leaves "
                f"out the others: {HOW_TO_PLACE}"
            )
        masked = ~rest if rest.dtype == torch.bool else rest <= MASKED_BIAS
        if not bool(masked.all()):
            raise CaptureError(
                f"{where}: {call.k.shape[2]} keys, of which {filled} are filled, and its mask lets queries "
                f"attend to others: {HOW_TO_PLACE}"
            )
        mask = mask[..., :filled]
    if isinstance(mask, torch.Tensor) and bool((mask if mask.dtype == torch.bool else mask == 0).all()):
        mask = None  # what it left out is gone
    return replace(call, k=call.k[:, :, :filled], v=call.v[:, :, :filled], mask=mask)


def _placed(segments: Sequence[Segment], position: int) -> list[Segment]:
    """The segments with their positions in the stream, from `position` on, and the first frames that follow."""
    placed = []
    for segment in segments:
        frame = math.prod(segment.grid[1:]) if segment.grid else 0
        first = position // frame if frame and position % frame == 0 else None
        placed.append(replace(segment, position=position, first_frame=first))
        position += segment.count
    return placed


def _key_segments(ranges: KeyPositions, queries: Sequence[Segment], past: int) -> list[Segment]:
    """Segments of keys at these positions: those of the queries where they are whole, else `cached`."""
    begin = queries[0].position or 0
    segments: list[Segment] = []
    for first, end in ranges:
        for low, high in ((first, min(end, begin)), (max(first, begin), min(end, past)), (max(first, past), end)):
            if low >= high:
                continue
            if (low, high) == (begin, past):
                segments += queries
            else:
                segments.append(_cached(queries[0], low, high))
    names: dict[str, int] = {}
    for i, segment in enumerate(segments):
        names[segment.name] = names.get(segment.name, 0) + 1
        if names[segment.name] > 1:
            segments[i] = replace(segment, name=f"{segment.name}.{names[segment.name]}")
    return segments


def _cached(like: Segment, low: int, high: int) -> Segment:
    """The segment of keys that a cache holds of the stream of `like`, from position `low` to before `high`."""
    modality = "history" if like.modality in ("video", "image") else like.modality
    frame = math.prod(like.grid[1:]) if like.grid else 0
    if frame and low % frame == 0 and high % frame == 0:
        grid: Grid = ((high - low) // frame, like.grid[1], like.grid[2])  # type: ignore[index]
        return grid_segment("cached", modality, grid, position=low, first_frame=low // frame)
    return Segment("cached", modality, high - low, position=low)
