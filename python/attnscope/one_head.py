"""A head, as modules take it that stand below heads."""

from __future__ import annotations

from typing import Any, Protocol


class OneHead(Protocol):
    """What they use of attnscope.heads.Head, which has the words for it."""

    call: Any
    batch: int
    number: int
    shape: tuple[int, int]

    @property
    def branch(self) -> str | None: ...
    def weights(self, rows: Any = None, cols: Any = None) -> Any: ...
    def pooled(self, block: int) -> tuple[Any, Any]: ...
    def query(self, *place: Any, **words: Any) -> Any: ...
