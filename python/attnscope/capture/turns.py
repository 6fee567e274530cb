"""Whose turn it is: forwards of one thread at a time, and what a forward that failed had changed."""

from __future__ import annotations

import threading
from typing import Any

from .errors import CaptureError


class Turns:
    """The thread whose forward runs. Thread-safe.

    What another thread runs meanwhile is refused: nothing tells of which step it is. Such a refusal may stay
    in its thread, so it is kept for the end of the block.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._refusal: CaptureError | None = None

    def begin(self) -> None:
        """A forward of this thread begins. Raises CaptureError while one of another thread runs."""
        with self._lock:
            other = self._thread
            if other is not None and other.is_alive() and other is not threading.current_thread():
                raise self._refused("the model's forward began")
            self._thread = threading.current_thread()

    def is_mine(self) -> bool:
        """Does a forward of this thread run?"""
        return self._thread is threading.current_thread()

    def check_call(self, where: str) -> None:
        """Raises CaptureError where the forward that runs is another thread's; `where` made the call."""
        if not self.is_mine():
            with self._lock:
                raise self._refused(f"{where} made an attention call")

    def end(self) -> None:
        """The forward of this thread is over."""
        with self._lock:
            self._thread = None

    def raise_refusal(self) -> None:
        """Raises what another thread was refused, which nobody may have seen."""
        if self._refusal is not None:
            raise self._refusal

    def _refused(self, what: str) -> CaptureError:
        self._refusal = CaptureError(
            f"{what} in the thread {threading.current_thread().name!r} while a forward of "
            f"{self._thread.name if self._thread else 'another'!r} runs: of which step it is cannot be told. Run the "
            "model in one thread at a time, or capture each in a process of its own"
        )
        return self._refusal


class Memory:
    """Remembers the attributes of some objects, to bring them back."""

    def __init__(self, *owners: Any) -> None:
        self._kept = [
            (owner, {n: list(v) if isinstance(v, list) else v for n, v in vars(owner).items()}) for owner in owners
        ]

    def bring_back(self) -> None:
        """The attributes are what they were."""
        for owner, kept in self._kept:
            vars(owner).update(kept)
