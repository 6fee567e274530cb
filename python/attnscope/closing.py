"""`with` around what was opened."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NoReturn, TypeVar

from .errors import make_error

_Self = TypeVar("_Self", bound="Closable")


class _Closed:
    """In the place of the compiled part's object of something that was closed."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> NoReturn:
        raise make_error(f"{self._path}: is closed", "usage")


class Closable:
    """with attnscope.open(…) as it: behind the block nothing more is read through `it`. Calls and heads that were
    taken from it keep their files open and can still be used."""

    path: str
    _opened: Any

    def close(self) -> None:
        """What is asked for afterwards is a usage Error (a ValueError). Again: nothing."""
        self._opened = _Closed(self.path)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
