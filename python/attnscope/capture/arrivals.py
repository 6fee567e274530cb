"""The branches and modules that came by in a run's first step, for users whose choice missed it."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 4  # modules that are named


class Arrivals:
    """The branches of the first step's forwards and the attention modules that made calls in it."""

    def __init__(self) -> None:
        self._open = True  # the first step is running
        self._branches: dict[str, None] = {}  # in the order in which they came
        self._modules: dict[str, None] = {}
        self._wanted = False  # a branch that came is asked for
        self._chosen = False  # and so is the step
        self._recorded = False
        self._possible = False  # a module that made a call is asked for

    def forward(self, names: Iterable[str] | None, wanted: bool, chosen: bool) -> None:
        """A forward begins; `wanted`: its branch is asked for, `chosen`: its step is as well."""
        if self._open:
            self._branches.update(dict.fromkeys(names or ()))
            self._wanted |= wanted
            self._chosen |= chosen

    def call(self, module: str, possible: bool) -> None:
        """An attention module made a call; `module`: its name, `possible`: it may be asked for."""
        if self._open:
            self._modules[module] = None
            self._possible |= possible

    def recorded(self) -> None:
        """A call was recorded."""
        self._recorded = True

    def end_step(self) -> bool:
        """The first step is over, if it was not. Has nothing been recorded that should have been?"""
        unmet = self._chosen or not self._wanted or bool(self._modules and not self._possible)
        missed = self._open and not self._recorded and unmet
        self._open = False
        return missed

    def why_nothing(self, modelled: bool, steps: int, asked: object) -> str:
        """Why a run of so many steps has left no call; modelled: of a model, asked: what was asked for."""
        if not modelled:
            return (
                "no attention call came by: nothing in the block called "
                "torch.nn.functional.scaled_dot_product_attention"
            )
        if not steps:
            return "the model did not run inside the block"
        return f"nothing was recorded: the run had steps 0 to {steps - 1}, {self}; {asked}"

    def __str__(self) -> str:
        branches = ", ".join(self._branches) or "no names"
        modules = list(self._modules)
        more = f" and {len(modules) - SHOWN} more" if len(modules) > SHOWN else ""
        shown = ", ".join(modules[:SHOWN]) or "no module"
        return f"its first step had branches {branches}; attention in {shown}{more}"
