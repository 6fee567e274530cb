"""The token map of a call: from the layout of the model's class, checked against the call's shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .chunks import Chunk, ChunkTeller
from .errors import CaptureError
from .facts import FactTeller, collapsed, has_words_alone
from .forward import Forward
from .grids import Grid, as_grid
from .layouts import Sequences, sequence_of
from .options import Options
from .slots import IMAGE_CALL, Model, Slot
from .tensors import Call
from .tokens import Segment, grid_segment, kind_of, other, stated_map


@dataclass(frozen=True)
class TokenMap:
    """The tokens of a call's queries and keys; keys None: as the queries."""

    queries: Sequence[Segment]
    keys: Sequence[Segment] | None
    kind: str | None = None  # what the map says of the call, where the class told it
    positions: torch.Tensor | None = None  # that RoPE takes, [tokens, axes], where the forward is given them


def film_grid(sequences: Sequences) -> Grid | None:
    """The grid of the video that a model makes: the first of a video or an image."""
    segments = [s for sequence in sequences.values() for s in sequence]
    return next((s.grid for s in segments if s.grid and s.modality in ("video", "image")), None)


class MapTeller:
    """Tells the token maps of the calls of one model. `say` gets what a user should know.

    What nobody stated is one segment "other"; nothing is told where the short facts grid and text say all.
    """

    def __init__(self, model: Model, options: Options, facts: FactTeller, say: Callable[[str], None]) -> None:
        self._model = model
        self._options = options
        self._facts = facts
        self._say = say
        self._grid = as_grid(options.grid)

    def sequences(self, module: torch.nn.Module, given: Mapping[str, Any]) -> Sequences | None:
        """The sequences of a forward with the arguments `given`; None where the class has no layout."""
        layout = self._model.layout
        o = self._options
        if (
            layout is None or o.text is not None or o.axes is not None
        ):  # the short facts say what the user does
            return None
        try:
            return self._with_grid(module, layout.sequences(module, given))
        except CaptureError:
            raise
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            self._say(
                f"{type(module).__name__}: its forward has other arguments than its token layout expects "
                f"({type(error).__name__}: {error}): its tokens are recorded as other"
            )
            return {}

    def _with_grid(self, module: torch.nn.Module, sequences: Sequences) -> Sequences:
        """The sequences, with the video or image that has as many tokens as the user's grid in that grid."""
        if self._grid is None:
            return sequences
        count = math.prod(self._grid)

        def fits(segment: Segment) -> bool:
            return segment.modality in ("video", "image") and segment.count == count

        if not any(fits(s) for sequence in sequences.values() for s in sequence):
            raise CaptureError(
                f"grid: no video or image of {type(module).__name__} has {count} tokens: pass text= as well "
                "where its tokens are others"
            )
        return {
            name: [replace(s, grid=self._grid) if fits(s) else s for s in sequence]
            for name, sequence in sequences.items()
        }

    def lengths(self, slot: Slot, call_name: str, forward: Forward) -> tuple[int | None, int | None]:
        """(queries, keys) that a call has in one process, by the class of the model; None: not told."""
        family, layout = self._model.family, self._model.layout
        if family is not None and forward.grid is None and family.pieces is not None:
            total = sum(s.count for s in family.pieces(forward.model, forward.arguments))
            return total, total
        if family is not None and forward.grid is not None:
            video, words = math.prod(forward.grid), forward.text or 0
            if slot.kind != "cross":
                video += words if slot.kind == "joint" else 0
                return video, video
            return video, None if call_name.endswith(IMAGE_CALL) else words
        rule = layout.rule(slot.place.block, call_name) if layout is not None else None
        if rule is None or forward.sequences is None:
            return None, None
        sides = [sequence_of(forward.sequences, name or rule[0], slot.place.block) for name in rule]
        queries, keys = (None if side is None else sum(s.count for s in side) for side in sides)
        return queries, keys

    def of_call(self, slot: Slot, call_name: str, forward: Forward, call: Call) -> TokenMap | None:
        """The map that the class of the model tells; None where it has no layout."""
        queries, keys = call.q.shape[2], call.k.shape[2]
        if call_name.endswith(IMAGE_CALL) and self._model.family and forward.grid:
            return TokenMap(
                [grid_segment("video", "video", forward.grid)], [Segment("image", "image", keys)], "cross"
            )
        family = self._model.family
        if family and family.pieces and forward.grid is None and self._options.text is None:
            pieces = {"joint": family.pieces(forward.model, forward.arguments)}
            return TokenMap(self._fitting(slot, pieces, "joint", queries, "queries"), None, slot.kind)
        if forward.sequences is None or self._model.layout is None:
            return None
        rule = self._model.layout.rule(slot.place.block, call_name)
        names = (None, None) if rule is None else rule
        own = self._fitting(slot, forward.sequences, names[0], queries, "queries")
        if names[1] is None and queries == keys:
            positions = self._model.layout.positions_of(names[0], forward.arguments)
            if positions is not None and len(positions) != queries:
                positions = None
            return TokenMap(own, None, kind_of(own) if rule else None, positions)
        if names[1] is None and self._model.hf:
            return None  # a cache of keys
        asked = self._fitting(slot, forward.sequences, names[1], keys, "keys")
        # Of a class whose call is of one sequence, other keys are those of a cache.
        among = rule is not None and not self._model.layout.crosses(slot.place.block, call_name)
        kind = kind_of(asked if names[1] is not None else own) if among else "cross"
        return TokenMap(own, asked if asked != own else None, kind)

    def of_chunk(
        self, slot: Slot, call_name: str, forward: Forward, call: Call, chunks: ChunkTeller
    ) -> tuple[Call, TokenMap]:
        """(the call with the keys that are filled, its map) of a forward that is a piece of a stream.

        Raises CaptureError where the positions of its keys are not known, or keys are no tokens of the stream.
        """
        assert forward.chunk is not None
        if self._options.text is not None or self._options.axes is not None:
            raise CaptureError("text=, axes=: a piece of a stream has a token map, which excludes them")
        queries, keys = call.q.shape[2], call.k.shape[2]
        layout = self._model.layout
        rule = layout.rule(slot.place.block, call_name) if layout is not None else None
        if forward.sequences is not None:
            own = self._fitting(slot, forward.sequences, rule and rule[0], queries, "queries")
        elif forward.grid is not None and math.prod(forward.grid) == queries:
            own = [grid_segment("video", "video", forward.grid)]
        elif self._model.hf and has_words_alone(forward, "input_ids", "decoder_input_ids"):
            own = [Segment("text", "text", queries)]
        else:
            own = other(queries)
        others = None
        if layout is not None and layout.crosses(slot.place.block, call_name) and forward.sequences is not None:
            assert rule is not None
            others = self._fitting(slot, forward.sequences, rule[1], keys, "keys")
        elif slot.crosses:
            others = [Segment("text", "text", keys)] if self._model.family else other(keys)
        elif rule is not None and rule[1] is not None and forward.sequences is not None:
            _check_stream(slot, *(sequence_of(forward.sequences, name, slot.place.block) for name in rule))
        call, tokens = chunks.of_call(slot.name, forward.chunk, call, own, others)
        kind = "cross" if others is not None else kind_of(own)
        return call, TokenMap(tokens.queries, tokens.keys, kind)

    def of_bare_chunk(
        self, where: str, chunk: Chunk, call: Call, grid: Grid | None, chunks: ChunkTeller
    ) -> tuple[Call, dict[str, Any]]:
        """of_chunk() of a call without a model, with its facts instead of its map."""
        o, queries = self._options, call.q.shape[2]
        if o.text is not None or o.axes is not None:
            raise CaptureError("text=, axes=: a piece of a stream has a token map, which excludes them")
        fits = grid is not None and math.prod(grid) == queries
        own = [grid_segment("video", "video", grid)] if grid is not None and fits else other(queries)
        crosses = o.kind == "cross"
        call, tokens = chunks.of_call(where, chunk, call, own, other(call.k.shape[2]) if crosses else None)
        facts, _ = stated_map(tokens.queries, tokens.keys)
        return call, {"kind": o.kind or kind_of(own), "chunk": chunk.number, **facts}

    def of_unknown(self, slot: Slot, kind: str, forward: Forward, call: Call) -> TokenMap | None:
        """The map of a call of a class without a layout, where the short facts cannot say that nobody told
        what its tokens are: keys of cross-attention, calls that state block and slot."""
        o, family, hf = self._options, self._model.family, self._model.hf
        told = o.text is not None or o.tokens is not None or (o.tokenizer is not None and not hf)
        told |= o.axes is not None  # which a token map excludes
        words = hf and has_words_alone(forward, "input_ids")
        if family is not None or told or words or (kind != "cross" and not slot.named):
            return None
        if kind != "cross" and forward.grid is not None:
            return None
        queries, keys = call.q.shape[2], call.k.shape[2]
        own = other(queries)
        if forward.grid is not None and grid_segment("video", "video", forward.grid).count == queries:
            own = [grid_segment("video", "video", forward.grid)]
        return TokenMap(own, other(keys) if kind == "cross" else None)

    def _fitting(
        self, slot: Slot, sequences: Sequences, name: str | None, count: int, side: str
    ) -> Sequence[Segment]:
        """The sequence `name` without its empty segments, if it has `count` tokens, else one of other."""
        told = None if name is None else sequence_of(sequences, name, slot.place.block)
        if told is None:
            return other(count)
        found = [s for s in told if s.count]
        total = sum(s.count for s in found)
        if total != count:
            self._say(
                f"{slot.name}: {count} {side} are not the {total} tokens of the {name} sequence of "
                f"{type(self._model.first).__name__}: they are recorded as other"
            )
            return other(count)
        return found

    def facts(
        self, tokens: TokenMap, forward: Forward, items: Sequence[int], branches: Sequence[str], batch: int
    ) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """(facts, tensors that they name) of the batch items `items` of a call with `batch` of them;
        branches: theirs, if they have names."""

        def of_items(segments: Sequence[Segment]) -> Sequence[Segment]:
            return self._with_words([s.of_items(items, batch) for s in segments], forward, items, branches)

        facts, tensors = stated_map(
            of_items(tokens.queries), of_items(tokens.keys) if tokens.keys is not None else None
        )
        if tokens.positions is not None:
            tensors["position_ids"] = tokens.positions.detach().float()
        return facts, tensors

    def _with_words(
        self, segments: Sequence[Segment], forward: Forward, items: Sequence[int], branches: Sequence[str]
    ) -> Sequence[Segment]:
        """The segments with the words and the padding that the user gave, where one segment is text."""
        text = next((s for s in segments if s.modality == "text"), None)
        if text is None or sum(s.modality == "text" for s in segments) > 1:
            return segments
        if self._model.hf:
            side = "decoder_" if forward.arguments.get("decoder_input_ids") is not None else ""
            facts = self._facts.hf_tokens(forward, text.count, side)
        else:
            o = self._options
            told = [self._facts.branch_tokens(b, text.count) for b in branches or ["all"] * len(items)]
            facts = {}
            short = [w for w, _ in told if w and len(w) < text.count] if o.tokens is not None else []
            if short:
                counts = f"{len(short[0])} strings for {text.count} text tokens"
                raise CaptureError(f"tokens: {counts}: one is needed for each")
            if branches or o.tokens is not None:  # a tokenizer's words are those of a branch
                facts = collapsed("tokens", [w if w and len(w) == text.count else None for w, _ in told], 1)
            if o.text_valid is not None:
                facts |= collapsed("text_valid", [used for _, used in told], 1)
        known = replace(text, words=facts.get("tokens"), valid=facts.get("text_valid", text.valid))
        return [known if s is text else s for s in segments]


def _check_stream(slot: Slot, queries: Sequence[Segment] | None, keys: Sequence[Segment] | None) -> None:
    """Raises CaptureError where keys of a piece of a stream are made of several tokens: no position is theirs."""
    own = {s.name for s in queries or ()}
    if any(s.modality == "other" and s.name not in own for s in keys or ()):
        raise CaptureError(
            f"{slot.name}: its keys are not the stream's tokens alone: run with use_cache=False and without "
            "begin_chunk()"
        )
