"""The options of a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .masks import MASK_LIMIT


@dataclass(frozen=True)
class Options:
    """The options that the user gave; see capture()."""

    layers: Any = "all"
    steps: Any = "all"
    chunks: Any = "all"
    heads: Any = "all"
    kinds: str | Sequence[str] = "all"
    blocks: str | Sequence[str] = "all"
    slots: str | Sequence[str] = "all"
    branch: str | Sequence[str] = "cond"
    branches: Sequence[str] | None = None
    guidance: str | None = None
    values: bool = True
    rows: int = 64
    mask_limit: int | None = MASK_LIMIT
    model: str | None = None
    prompt: str | None = None
    negative_prompt: str = ""
    tokenizer: Any = None
    tokens: Any = None
    text_valid: Any = None
    grid: Any = None
    text: str | None = None
    kind: str | None = None
    axes: str | None = None
    q_state: str | None = None
    head_offset: int | None = None
    rank: Any = None
    extra: Any = None
    modules: str | None = None
    force: bool = False
    quiet: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        # These are read several times, which an iterator cannot be.
        for name in ("layers", "steps", "chunks", "heads"):
            value = getattr(self, name)
            if isinstance(value, Iterator):
                object.__setattr__(self, name, tuple(value))
