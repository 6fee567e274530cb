"""How a forward's tokens are laid out: the sequences of a class, and which of them its calls attend to."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from .steps import timestep_argument
from .tokens import Segment

T = TypeVar("T")

# Segments of each sequence by its name; "PATTERN NAME" where only blocks that match the pattern have it.
Sequences = Mapping[str, Sequence[Segment]]


@dataclass(frozen=True)
class Layout:
    """The tokens of the attention calls of a class of models."""

    # Lists of blocks whose calls have layer numbers, in the order in which they run; (): the longest.
    main: tuple[str, ...]
    # (transformer, the forward's arguments) -> its sequences by name.
    sequences: Callable[[Any, Mapping[str, Any]], Sequences]
    # "BLOCK SLOT", with *, -> the call's sequence ("video"), or that of its queries and that of its keys
    # ("video > text"; "image in all": the queries' tokens are among the keys', so that it is no cross-attention). The
    # first that matches holds.
    calls: Mapping[str, str]
    # "BLOCK SLOT" of modules that make no call in a forward with these arguments.
    idle: Callable[[Any, Mapping[str, Any]], Sequence[str]] = lambda model, given: ()
    # Attention modules that call no function that is watched: "BLOCK SLOT" -> why.
    unseen: Mapping[str, str] = field(default_factory=dict)
    # Classes of modules that mix tokens and make no map of q and k -> why.
    no_maps: Mapping[str, str] = field(default_factory=dict)
    # Modules that are unseen where the model is compiled: "BLOCK SLOT" -> why.
    unseen_compiled: Mapping[str, str] = field(default_factory=dict)
    # "BLOCK SLOT" of linear attention, whose result is float32 -> is its normaliser stored?
    linear: Mapping[str, bool] = field(default_factory=dict)
    # How pipelines of the class guide: in one forward of [uncond; cond] ("batch"), in one of cond, then one
    # of uncond ("forwards"); "told": as their cache_context says, or not known.
    guidance: str = "told"
    # How the masks of calls "BLOCK SLOT" are stored: (style of mask_bytes(), the argument that has to be given
    # for there to be a mask, or None).
    masks: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    # Calls "BLOCK SLOT" whose batch has an item for each token of a sequence, times those of the forward.
    times: Mapping[str, str] = field(default_factory=dict)
    # Sequences whose tokens stand where an argument of the forward says: that argument, a tensor [tokens, axes].
    positions: Mapping[str, str] = field(default_factory=dict)
    # Why estimate() cannot tell how large the calls are, where it cannot.
    unsized: str = ""
    # (transformer, the forward's arguments) -> how many calls of an attention module are pieces of one.
    pieces: Callable[[Any, Mapping[str, Any]], int] = lambda model, given: 1
    # Is a forward with these arguments no step: one that fills a cache before the first? It is not recorded.
    aside: Callable[[Mapping[str, Any]], bool] = lambda given: False
    # The timestep of what is made, of the forward's arguments, where its timesteps are those of other tokens too.
    timestep: Callable[[Mapping[str, Any]], Any] = timestep_argument

    def rule(self, block: str, slot: str) -> tuple[str, str | None] | None:
        """(queries, keys) of a call by the names of their sequences; keys None: the same. None: not known."""
        rule = self.match(f"{block} {slot}", self.calls)
        if rule is None:
            return None
        queries, _, keys = rule.replace(" in ", " > ").partition(" > ")
        return queries, keys or None

    def crosses(self, block: str, slot: str) -> bool:
        """Are the call's keys other tokens than those that ask?"""
        return " > " in (self.match(f"{block} {slot}", self.calls) or "")

    def why_unseen(self, block: str, slot: str, compiled: bool) -> str | None:
        """Why calls of the module cannot be seen, in a model that is `compiled`; None where they can."""
        why = self.match(f"{block} {slot}", self.unseen)
        return why or (self.match(f"{block} {slot}", self.unseen_compiled) if compiled else None)

    def is_idle(self, block: str, slot: str, model: Any, given: Mapping[str, Any]) -> bool:
        """Does the module make no call in a forward of `model` with the arguments `given`?"""
        return self.match(f"{block} {slot}", dict.fromkeys(self.idle(model, given), True)) is not None

    def positions_of(self, sequence: str | None, given: Mapping[str, Any]) -> torch.Tensor | None:
        """The positions [tokens, axes] that RoPE takes of the tokens of `sequence`, as a forward is given them."""
        value = given.get(self.positions.get(sequence or "", ""))
        return value if isinstance(value, torch.Tensor) and value.ndim == 2 else None

    @staticmethod
    def match(where: str, rules: Mapping[str, T]) -> T | None:
        """The first of `rules` whose pattern "BLOCK SLOT" fits `where`; None where none does."""
        return next((r for p, r in rules.items() if fnmatch.fnmatchcase(where, p)), None)


def sequence_of(sequences: Sequences, rule: str, block: str) -> Sequence[Segment] | None:
    """The sequence of a rule ("video", or "decoder | joint": the first that the block has); None where
    nothing tells it."""
    for name in rule.split(" | "):
        if name in sequences:
            return sequences[name]
        for pattern, segments in sequences.items():
            if " " in pattern and fnmatch.fnmatchcase(f"{block} {name}", pattern):
                return segments
    return None
