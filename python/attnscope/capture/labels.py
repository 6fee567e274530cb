"""Step and branch of each forward as far as they are told, and its number where they are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from .chunks import Chunk, ChunkTeller
from .errors import CaptureError, LabelError
from .forward import Forward
from .guidance import BranchTeller
from .steps import StepCounter, timestep_argument, timestep_key


class Labels:
    """Labels the forwards in the order in which they begin.

    untold: gets why the forward that begins has no label, and may raise that; doubt: why those of its step may be
    wrong; end_step: is called when a step is over.
    """

    def __init__(
        self,
        branches: BranchTeller,
        chunks: ChunkTeller,
        counter: StepCounter,
        hf: bool,
        untold: Callable[[LabelError], None],
        doubt: Callable[[LabelError], None],
        end_step: Callable[[], None],
    ) -> None:
        self.named = True  # the branches of the forward that begins may be told
        self._branches, self._chunks, self._counter, self._hf = branches, chunks, counter, hf
        self._untold, self._doubt, self._end_step = untold, doubt, end_step
        self._latents: int | None = None  # of the forward before
        self._same = True  # it is told which step the forwards are of
        self._by_number = False  # forwards of a step came that nothing names
        self._of_step = 0

    def of_forward(
        self, module: torch.nn.Module, given: dict[str, Any], entry: dict[str, Any]
    ) -> tuple[int | None, str | None, Chunk | None]:
        """(step, branch, chunk) of the forward that begins; a step is counted whatever else is refused.

        entry: the forward's in the catalogue, which gets step and of_step as far as they are told.
        """
        self.named, context = True, None
        try:
            context = self._branches.of_forward(module, given)
        except LabelError as error:
            self._untold(error)
            self.named = False
        told = timestep_key(timestep_argument(given)), context, self._branches.has_both(module)
        try:
            chunk, stream = self._chunks.of_forward(given, self._hf)
        except CaptureError:
            self._counter.next(*told)
            raise
        if stream is not None:
            self._counter.begin_chunk(stream)
        branch = self._count(told, entry.get("latents"))
        if not self._same:  # it may be another step at this timestep, and so may what follows
            return None, None, chunk
        entry |= {"step": self._counter.step, "of_step": self._of_step}
        return self._counter.step, branch if self.named else None, chunk

    def _count(self, told: tuple[Any, str | None, bool], latents: int | None) -> str | None:
        """Counts the forward among those of its step; its branch, where that is told."""
        first, branch = not self._counter.steps, None
        try:
            _, branch = self._counter.next(*told)
        except LabelError as error:
            self._untold(error)
            self._doubt(error)
            # Guidance runs the same latents again; other ones at a timestep may be another evaluation.
            self._same &= self._counter.tells or (latents is not None and latents == self._latents)
            self.named = False
            self._of_step += 1
        else:
            if self._counter.began and not first:
                self._end_step()
            self._of_step = 0 if self._counter.began else self._of_step + 1
        self._latents = latents
        self._same |= self._counter.tells
        return branch

    def number(self, forward: Forward, entry: Mapping[str, Any]) -> None:
        """Says whether calls of the forward state its number: where its step or its branches are not told."""
        forward.of_step = entry.get("of_step", 0)
        again = self._by_number and forward.names is None and forward.held
        if not self.named or forward.step is None or again:
            self._by_number |= forward.names is None
            forward.numbered, forward.held, forward.names = True, False, None
