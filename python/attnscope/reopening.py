"""What is opened and closed: captures that a pickle opens again elsewhere, and `with` around what was opened."""

from __future__ import annotations

import os
import pickle
import uuid
import warnings
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .errors import make_error

if TYPE_CHECKING:
    from .captures import Capture
    from .heads import Call

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


# What pickles of this process have opened, as long as anybody has it: many heads of a capture open it once.
_reopened: weakref.WeakValueDictionary[bytes, Capture] = weakref.WeakValueDictionary()


def capture_of(path: str | None, options: dict[str, Any]) -> Capture:
    """The capture as it was opened where it was pickled. What was told there of it is not told again."""
    from .captures import open as open_capture

    name = pickle.dumps((path, options, _stamp(path)))
    found = _reopened.get(name)
    if found is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = open_capture(path, kind="capture", check=False, progress=False, **options)
        _reopened[name] = found
    return found


def call_of(capture: Capture, number: int, items: list[int]) -> Call:
    return capture._call(number, items)


def arrays_call(q: Any, k: Any, v: Any, options: dict[str, Any]) -> Call:
    from .arrays import call

    return call(q, k, v, **options)


def content_name(call: Call) -> tuple[Any, ...]:
    """A name of what the call is made of, for caches: of captures path, options and times of change; of arrays, which
    may be written to, one of this object's own."""
    maker, arguments = call._origin or (None, ())
    if maker is not call_of:
        if call._name is None:
            call._name = uuid.uuid4().hex
        return ("attnscope", call._name)
    capture, number, items = arguments
    path, options = capture._recipe
    stamps = [_stamp(path), _stamp(os.path.join(path or "", call.facts["file"]))]
    return ("attnscope", path, sorted(map(repr, options.items())), stamps, number, items)


def _stamp(path: str | None) -> tuple[int, int] | None:
    """Size and time of change of a file; None where there is none."""
    try:
        about = Path(path or "").stat()
    except OSError:
        return None
    return about.st_size, about.st_mtime_ns
