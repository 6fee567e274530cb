"""How a forward's tokens are laid out: the sequences of a class, and which of them its calls attend to."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .tokens import Segment

Sequences = Mapping[str, Sequence[Segment]]


@dataclass(frozen=True)
class Layout:
    """What a class of models says about the tokens of its attention calls."""

    # Lists of blocks whose calls have layer numbers, in the order in which they run; (): the longest.
    main: tuple[str, ...]
    # (transformer, the forward's arguments) -> its sequences by name.
    sequences: Callable[[Any, Mapping[str, Any]], Sequences]
    # "BLOCK SLOT", with *, -> the call's sequence ("video"), or that of its queries and that of its keys
    # ("video > text"). The first that matches holds.
    calls: Mapping[str, str]
    # "BLOCK SLOT" of modules that make no call in a forward with these arguments.
    idle: Callable[[Mapping[str, Any]], Sequence[str]] = lambda given: ()
    doubles: bool = False  # pipelines of the class run a batch of [uncond; cond] for guidance

    def rule(self, block: str, slot: str) -> tuple[str, str | None] | None:
        """(queries, keys) of a call by the names of their sequences; keys None: the same. None: not known."""
        where = f"{block} {slot}"
        rule = next((r for p, r in self.calls.items() if fnmatch.fnmatchcase(where, p)), None)
        if rule is None:
            return None
        queries, _, keys = rule.partition(" > ")
        return queries, keys or None

    def is_idle(self, block: str, slot: str, given: Mapping[str, Any]) -> bool:
        """Does the module make no call in a forward with the arguments `given`?"""
        return any(fnmatch.fnmatchcase(f"{block} {slot}", p) for p in self.idle(given))
