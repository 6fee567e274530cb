"""What came by in a run's first step, for users whose choice missed it."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 4  # modules that are named


class Arrivals:
    """The branches of the first step's forwards and the attention modules that made calls in it."""

    def __init__(self) -> None:
        self._open = True  # the first step is running
        self._branches: dict[str, None] = {}  # in the order in which they came
        self._modules: dict[str, None] = {}
        self._expected = False  # something of the step was asked for, as far as the branch tells
        self._recorded = False

    def forward(self, names: Iterable[str] | None, expected: bool) -> None:
        """A forward begins; `expected`: its step is chosen, or its branch is not."""
        if self._open:
            self._branches.update(dict.fromkeys(names or ()))
            self._expected |= expected

    def call(self, module: str) -> None:
        if self._open:
            self._modules[module] = None

    def recorded(self) -> None:
        self._recorded = True

    def end_step(self) -> bool:
        """The first step is over, if it was not. Has nothing been recorded that should have been?"""
        missed = self._open and self._expected and not self._recorded
        self._open = False
        return missed

    def __str__(self) -> str:
        branches = ", ".join(self._branches) or "no names"
        modules = list(self._modules)
        more = f" and {len(modules) - SHOWN} more" if len(modules) > SHOWN else ""
        shown = ", ".join(modules[:SHOWN]) or "no module"
        return f"its first step had branches {branches}; attention in {shown}{more}"
