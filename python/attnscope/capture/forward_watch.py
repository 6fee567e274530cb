"""The forwards of a model's transformers while they run: which one does, whose it is, which have failed."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import threading
from collections.abc import Callable
from typing import Any

import torch

from .compiled import COMPILED_MEANWHILE, hook_around, refuse_compiled
from .errors import CaptureError
from .forward import Forward, named_arguments
from .slots import Model
from .turns import Memory, Turns


class ForwardWatch:
    """Watches the forwards of `model`. Those of one thread at a time; what a copy of the model runs is none.

    begin: from a forward's number, its transformer and its arguments by name to the forward that begins, None where it
    is not recorded; refuse: gets why one cannot be, and its number;
    end: gets a forward that has ended well and the module as it was called; drop: one that has failed, where the
    run went on after it; owners: of what begin() changes and a forward that fails has not.
    """

    def __init__(
        self,
        model: Model,
        begin: Callable[[int, torch.nn.Module, dict[str, Any]], Forward | None],
        refuse: Callable[[CaptureError, int], None],
        end: Callable[[Forward, torch.nn.Module], None],
        drop: Callable[[Forward], None],
        owners: tuple[Any, ...],
    ) -> None:
        self.forward: Forward | None = None  # the one that runs
        self.turns = Turns()
        self._model = model
        self._begin, self._refuse, self._end, self._drop = begin, refuse, end, drop
        self._numbers = itertools.count()
        self._refused = threading.local()  # .here: the forward of this thread that runs was refused
        self._owners = owners
        self._failed: Forward | None = None  # it ended in an error, and no other has begun

    def install(self, stack: contextlib.ExitStack) -> None:
        """Watches until `stack` is closed."""
        for name, transformer in self._model.transformers.items():
            called = self._model.as_called(name)
            hook_around(stack, called, self._before(transformer, called), self._after(called), self._leave(called))

    @property
    def is_refused(self) -> bool:
        """Does a forward run in this thread that was refused, since one of another thread runs?"""
        return getattr(self._refused, "here", False)

    def drop_failed(self) -> None:
        """Takes a failed forward's calls out of the capture, where the run goes on after it."""
        forward, self._failed = self._failed, None
        if forward is not None:
            self._drop(forward)

    # Functions, since copy.deepcopy() of the model takes methods apart, and their owner with them.
    def _before(self, transformer: torch.nn.Module, watched: torch.nn.Module) -> Callable[..., None]:
        signature = inspect.signature(type(transformer).forward)

        def before(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if torch.compiler.is_compiling():
                refuse_compiled(COMPILED_MEANWHILE)
                return
            if called is not watched:  # a copy of the model has its hooks
                return
            number = next(self._numbers)
            try:
                self.turns.begin()
            except CaptureError as error:
                self._refused.here = True
                self._refuse(error, number)
                return
            self.forward = None
            self.drop_failed()
            remembered = Memory(*self._owners)
            self.forward = self._begin(number, transformer, named_arguments(signature, transformer, args, kwargs))
            if self.forward is not None:
                self.forward.before = remembered

        return before

    def _after(self, watched: torch.nn.Module) -> Callable[..., None]:
        def after(called: Any, args: Any, output: Any) -> None:
            if self._is_mine(called, watched):
                forward, self.forward = self.forward, None
                if forward is not None:
                    self._end(forward, called)

        return after

    def _leave(self, watched: torch.nn.Module) -> Callable[[Any], None]:
        def leave(called: Any) -> None:
            if self.is_refused:
                self._refused.here = False
            elif self._is_mine(called, watched):
                forward, self.forward = self.forward, None
                if forward is not None and forward.before is not None:
                    forward.before.bring_back()
                    self._failed = forward
                self.turns.end()

        return leave

    def _is_mine(self, called: Any, watched: torch.nn.Module) -> bool:
        return not torch.compiler.is_compiling() and called is watched and self.turns.is_mine()
