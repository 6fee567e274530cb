"""The token map of a call: from the layout of the model's class, checked against the call's shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .facts import FactTeller
from .forward import Forward
from .grids import Grid
from .layouts import Sequences, sequence_of
from .options import Options
from .slots import IMAGE_CALL, Model, Slot
from .tensors import Call
from .tokens import Segment, grid_segment, kind_of, other, stated_map


@dataclass(frozen=True)
class TokenMap:
    """What the tokens of a call are; keys None: as the queries."""

    queries: Sequence[Segment]
    keys: Sequence[Segment] | None
    kind: str | None = None  # what the map says of the call, where the class told it


def film_grid(sequences: Sequences) -> Grid | None:
    """The grid of the video that a model makes: the first of a video or an image."""
    segments = [s for sequence in sequences.values() for s in sequence]
    return next((s.grid for s in segments if s.grid and s.modality in ("video", "image")), None)


class MapTeller:
    """Tells the token maps of the calls of one model. `say` gets what a user should know.

    What nobody stated is one segment "other"; nothing is told where the short facts grid and text say all.
    """

    def __init__(
        self, model: Model, options: Options, facts: FactTeller, say: Callable[[str], None]
    ) -> None:
        self._model = model
        self._options = options
        self._facts = facts
        self._say = say
        self._stated = options.grid is not None or options.text is not None  # by the user, in short facts

    def sequences(self, module: torch.nn.Module, given: Mapping[str, Any]) -> Sequences | None:
        """The sequences of a forward with the arguments `given`; None where the class has no layout."""
        layout = self._model.layout
        if layout is None or self._stated:
            return None
        try:
            return layout.sequences(module, given)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            self._say(
                f"{type(module).__name__}: its forward has other arguments than its token layout expects "
                f"({type(error).__name__}: {error}): its tokens are recorded as other"
            )
            return {}

    def of_call(self, slot: Slot, call_name: str, forward: Forward, call: Call) -> TokenMap | None:
        """The map that the class of the model tells; None where it has no layout."""
        queries, keys = call.q.shape[2], call.k.shape[2]
        if call_name.endswith(IMAGE_CALL) and self._model.family and forward.grid and not self._stated:
            return TokenMap(
                [grid_segment("video", "video", forward.grid)], [Segment("image", "image", keys)], "cross"
            )
        if forward.sequences is None or self._model.layout is None:
            return None
        rule = self._model.layout.rule(slot.place.block, call_name)
        names = (None, None) if rule is None else rule
        own = self._fitting(slot, forward.sequences, names[0], queries, "queries")
        if names[1] is None and queries == keys:
            return TokenMap(own, None, kind_of(own, None) if rule else None)
        if names[1] is None and self._model.hf:
            return None  # a cache of keys
        return TokenMap(own, self._fitting(slot, forward.sequences, names[1], keys, "keys"), "cross")

    def of_unknown(self, slot: Slot, kind: str, forward: Forward, call: Call) -> TokenMap | None:
        """The map of a call of a class without a layout, where the short facts cannot say that nobody told
        what its tokens are: keys of cross-attention, calls that state block and slot."""
        o, family = self._options, self._model.family
        told = o.text is not None or o.tokens is not None or o.tokenizer is not None
        words = self._model.hf and forward.arguments.get("input_ids") is not None
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
        self, tokens: TokenMap, items: Sequence[int], branches: Sequence[str], batch: int
    ) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """(facts, tensors that they name) of the batch items `items` of a call with `batch` of them;
        branches: theirs."""
        sides = (None if s is None else [p.of_items(items, batch) for p in s] for s in (tokens.queries, tokens.keys))
        queries, keys = (None if s is None else self._with_words(s, branches) for s in sides)
        return stated_map(queries or [], keys)

    def _with_words(self, segments: Sequence[Segment], branches: Sequence[str]) -> Sequence[Segment]:
        """The same with the words that the user gave, where one segment is text."""
        text = [s for s in segments if s.modality == "text"]
        if len(text) != 1 or not branches:
            return segments
        told = [self._facts.branch_tokens(b, text[0].count) for b in branches]
        words = [w for w, _ in told if w is not None and len(w) == text[0].count]
        if len(words) != len(branches):
            return segments
        same = all(w == words[0] for w in words)
        known = replace(text[0], words=words[0] if same else words)
        return [known if s is text[0] else s for s in segments]
