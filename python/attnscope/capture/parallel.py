"""Models that several processes run together: which part of a call this process holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .errors import CaptureError
from .facts import TOKEN_FACTS
from .forward import Forward
from .grids import text_count
from .maps import MapTeller
from .slots import Model, Slot
from .tensors import Call, output_rows
from .tokens import Segment, stated_map

Range = tuple[int, int]  # first token, how many

# Classes whose sequences of several segments are two streams that diffusers splits each by itself: the text
# (encoder_hidden_states), and the picture with what stands behind it (hidden_states).
TWO_STREAMS = ("FluxTransformer2DModel", "Flux2Transformer2DModel", "QwenImageTransformer2DModel")


@dataclass(frozen=True)
class SequenceShard:
    """Of each sequence that context parallelism splits this process holds piece `index` of `count`, all
    neighbouring tokens, for all heads."""

    index: int
    count: int
    uneven: bool  # the first pieces may have a token more than the others
    two_streams: bool  # of a sequence of several segments, the text and what stands beside it by themselves

    def of(self, tokens: int) -> Range | None:
        """The piece of `tokens` tokens; None where they cannot be split so."""
        small, more = divmod(tokens, self.count)
        if more and not self.uneven:
            return None
        return self.index * small + min(self.index, more), small + (self.index < more)


def sequence_shard(model: torch.nn.Module) -> SequenceShard | None:
    """How diffusers splits the sequences of `model` over processes; None where it does not."""
    config = getattr(getattr(model, "_parallel_config", None), "context_parallel_config", None)
    if config is None:
        return None
    mesh = config._flattened_mesh
    uneven = any(getattr(config, name, False) for name in ("ulysses_anything", "ring_anything"))
    both = {"hidden_states", "encoder_hidden_states"} <= _split_arguments(model)
    two_streams = both and type(model).__name__ in TWO_STREAMS
    return SequenceShard(torch.distributed.get_rank(mesh.get_group()), mesh.size(), uneven, two_streams)


def _split_arguments(model: torch.nn.Module) -> set[str]:
    """Names of the modules' arguments that the hooks of diffusers split."""
    names: set[str] = set()
    for module in model.modules():
        hooks = getattr(getattr(module, "_diffusers_hook", None), "hooks", {})
        for hook in hooks.values():
            if type(hook).__name__ == "ContextParallelSplitHook":
                names |= {n for n in hook.metadata if isinstance(n, str)}
    return names


def first_head(model: torch.nn.Module, call_heads: int, heads: int | None, where: str) -> int:
    """The model's number of head 0 of a call that has `call_heads` of `heads` heads (None: not known): tensor
    parallelism gives each process its own. Raises CaptureError where nothing tells; `where`: the call in the
    message."""
    if heads is None and (getattr(model, "tp_size", None) or 1) > 1:
        raise CaptureError(
            f"{where}: transformers splits its heads over processes. Say with head_offset= where this part "
            "begins"
        )
    if heads is None or call_heads == heads:
        return 0
    config = getattr(getattr(model, "_parallel_config", None), "tensor_parallel_config", None)
    mesh = getattr(config, "_mesh", None)
    if mesh is None or call_heads * mesh.size() != heads:
        raise CaptureError(
            f"{where}: the call has {call_heads} of {heads} heads: they are split over "
            "processes. Say with head_offset= where this part begins"
        )
    return mesh.get_local_rank() * call_heads


@dataclass(frozen=True)
class CallPart:
    """The part of a call's tokens that this process holds."""

    facts: dict[str, Any]  # its token map, and the fact `part` with the facts of the whole
    queries: Sequence[Range]  # where they stand in the whole sequence
    total: int  # queries of the whole
    has_keys: bool  # all that its queries attend to

    def rows(self, rows: int) -> torch.Tensor:
        """Those of the whole call's `rows` output rows that this part has, by its own numbers; at least one
        where there are any."""
        wanted = output_rows(self.total, rows)
        own, first = [], 0
        for start, count in self.queries:
            own.append(wanted[(wanted >= start) & (wanted < start + count)] - start + first)
            first += count
        found = torch.cat(own)
        return found if len(found) or not rows else torch.zeros(1, dtype=torch.int64)


@dataclass(frozen=True)
class WholeCall:
    """A call of which this process holds a part, as it would be in one process."""

    shape: Call  # the whole's: its tensors have no content
    where: str  # the call's name in messages
    shard: SequenceShard
    here: tuple[int, int]  # queries and keys of this process
    split: tuple[bool, bool]  # whether the other processes have others

    def part(self, facts: dict[str, Any], kind: str) -> tuple[dict[str, Any], CallPart]:
        """(the facts without those of the whole's tokens, the part), from the facts of the whole."""
        whole = {name: facts[name] for name in TOKEN_FACTS if name in facts}
        if whole.get("axes", "full") != "full":
            raise CaptureError(f"{self.where}: {whole['axes']} attention split over processes is not recorded")
        totals = (self.shape.q.shape[2], self.shape.k.shape[2])
        sides = _whole_segments(whole, kind, totals)
        ranges = [self._ranges(*side) for side in zip(sides, self.here, self.split)]
        cut = [_cut(segments, own) for segments, own in zip(sides, ranges)]
        same = "keys" not in whole and kind != "cross"
        stated: dict[str, Any] = {"queries": [list(r) for r in ranges[0]]}
        if not same:
            stated["keys"] = [list(r) for r in ranges[1]]
        local = stated_map(cut[0], None if same else cut[1])[0]
        rest = {name: value for name, value in facts.items() if name not in whole}
        part = {**stated, "whole": whole}
        return rest, CallPart({**local, "part": part}, ranges[0], totals[0], not self.split[1])

    def _ranges(self, segments: Sequence[Segment], here: int, split: bool) -> list[Range]:
        """Where this process' tokens stand in the sequence of `segments`, in their order."""
        if not split:
            return [(0, here)]
        found: list[Range] = []
        start = 0
        for count in self._streams(segments):
            piece = self.shard.of(count)
            if piece is None:
                raise CaptureError(
                    f"{self.where}: {count} tokens that are split by themselves are no multiple of "
                    f"{self.shard.count} processes: which of them this one holds is not known"
                )
            found.append((start + piece[0], piece[1]))
            start += count
        if sum(count for _, count in found) != here:
            raise CaptureError(
                f"{self.where}: this process holds {here} tokens, and its part of "
                f"{' and '.join(str(s) for s in self._streams(segments))} is "
                f"{sum(count for _, count in found)}: which of them it holds is not known"
            )
        return [(first, count) for first, count in found if count]

    def _streams(self, segments: Sequence[Segment]) -> list[int]:
        """Lengths of the neighbouring parts of a sequence that are split each by itself."""
        if len(segments) == 1:
            return [segments[0].count]
        if not self.shard.two_streams:
            raise CaptureError(
                f"{self.where}: which tokens of {', '.join(s.name for s in segments)} this process holds is "
                "not known in a model of this class: leave it out (kinds=, slots=), or pass neither grid= nor "
                "text="
            )
        text = [s.modality == "text" for s in segments]
        streams: list[int] = []
        for i, segment in enumerate(segments):
            if i and text[i] == text[i - 1]:
                streams[-1] += segment.count
            else:
                streams.append(segment.count)
        return streams


class PartTeller:
    """Tells which part of a call this process holds, by what diffusers does to the model."""

    def __init__(self, model: Model, maps: MapTeller) -> None:
        self._model = model
        self._maps = maps
        self._shards: dict[int, SequenceShard | None] = {}  # by id of the transformer

    def whole(self, slot: Slot, call_name: str, forward: Forward, call: Call) -> WholeCall | None:
        """The call that `call` is a part of; None where it is whole, or check() refuses it.

        Raises CaptureError where the length of the whole cannot be told.
        """
        shard = self._shard(forward.model)
        if shard is None:
            return None
        told = self._maps.lengths(slot, call_name, forward)
        here = (call.q.shape[2], call.k.shape[2])
        part = shard.of(told[0]) if told[0] is not None else None
        # Processes may also exchange what each has whole (LTX-2's audio): no weight depends on that.
        split = (
            call.exchanged and told[0] != here[0] or part is not None and part[1] == here[0],
            call.exchanged and told[1] != here[1],
        )
        if not any(split):
            return None
        totals = [
            self._total(slot, shard, own, whole) if is_split else own
            for own, whole, is_split in zip(here, told, split)
        ]
        return WholeCall(_of_lengths(call, totals), slot.name, shard, here, split)

    def check(self, slot: Slot, call_name: str, forward: Forward, call: Call) -> None:
        """Raises CaptureError where a call whose keys are not exchanged may be a part, and nothing tells."""
        queries = call.q.shape[2]
        if self._shard(forward.model) is None or self._maps.lengths(slot, call_name, forward)[0] == queries:
            return
        raise CaptureError(
            f"{slot.name}: the model's sequence is split over processes, and whether the {queries} queries "
            "of this call are a part of it is not known: leave it out (kinds=, slots=)"
        )

    def _shard(self, model: torch.nn.Module) -> SequenceShard | None:
        if id(model) not in self._shards:
            self._shards[id(model)] = sequence_shard(model)
        return self._shards[id(model)]

    def _total(self, slot: Slot, shard: SequenceShard, here: int, told: int | None) -> int:
        """Tokens of the whole sequence of which `here` are in this process."""
        if not shard.uneven:
            return here * shard.count
        if told is None:
            raise CaptureError(
                f"{slot.name}: processes hold unequal parts of a sequence (ulysses_anything, ring_anything) "
                "whose length is not known in a model of this class"
            )
        return told


def _of_lengths(call: Call, lengths: Sequence[int]) -> Call:
    """The call with other numbers of queries and keys, and no content."""

    def shape(tensor: torch.Tensor, tokens: int) -> torch.Tensor:
        return torch.empty((*tensor.shape[:2], tokens, tensor.shape[3]), dtype=tensor.dtype, device="meta")

    queries, keys = lengths
    return replace(
        call,
        q=shape(call.q, queries),
        k=shape(call.k, keys),
        v=shape(call.v, keys),
        out=shape(call.out, queries),
    )


def _whole_segments(
    whole: Mapping[str, Any], kind: str, totals: tuple[int, int]
) -> tuple[list[Segment], list[Segment]]:
    """Names, modalities and counts of the queries' and the keys' segments, from facts of either kind."""
    if "queries" in whole:
        maps = [whole["queries"], whole.get("keys", whole["queries"])]
        queries, keys = ([Segment(s["name"], s["modality"], s["count"]) for s in stated] for stated in maps)
        return queries, keys

    def picture(count: int) -> list[Segment]:
        return [Segment("video", "video", count) if "grid" in whole else Segment("tokens", "other", count)]

    text = whole.get("text", "none")
    if kind == "cross":
        known = text != "none"
        words = Segment("text", "text", totals[1]) if known else Segment("tokens", "other", totals[1])
        return picture(totals[0]), [words]
    if text == "all":
        both = [Segment("text", "text", totals[0])]
    else:
        words = Segment("text", "text", text_count(text))
        both = picture(totals[0] - words.count)
        if words.count:
            both = [words, *both] if text.endswith("@start") else [*both, words]
    return both, both


def _cut(segments: Sequence[Segment], ranges: Sequence[Range]) -> list[Segment]:
    """The parts of the segments that lie in the ranges, in their order; a part of a grid has no grid."""
    found = []
    for first, count in ranges:
        start = 0
        for segment in segments:
            begin, end = max(first, start), min(first + count, start + segment.count)
            if begin < end:
                found.append(Segment(segment.name, segment.modality, end - begin))
            start += segment.count
    return found
