"""Which step and which branch a forward belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .errors import CaptureError


def timestep_of(value: Any) -> float | None:
    """The timestep of a forward: a number, a tensor, or one a token (then the largest)."""
    if isinstance(value, torch.Tensor):
        return float(value.detach().max()) if value.numel() else None
    return float(value) if isinstance(value, (int, float)) else None


class StepCounter:
    """Numbers the denoising steps and names the branch of each forward of the transformer(s)."""

    def __init__(self, guidance: str, branches: Sequence[str] | None) -> None:
        self._separate = guidance == "forwards"
        self._branches = list(branches) if branches else None
        self._forwards = 0
        self._step = -1
        self._seen: set[str] = set()
        self._timestep: float | None = None

    def next(self, timestep: float | None, context: str | None) -> tuple[int, str | None]:
        """(step, branch) of the forward that begins; branch None where the batch decides it."""
        index = self._forwards
        self._forwards += 1
        if not self._separate:
            self._step = index
            return index, None
        if self._branches:
            self._step, place = divmod(index, len(self._branches))
            return self._step, self._branches[place]
        same = timestep is not None and timestep == self._timestep
        branch = context or ("uncond" if same and self._seen == {"cond"} else "cond")
        if self._step < 0 or not same or branch in self._seen:
            self._step += 1
            self._seen = set()
        self._seen.add(branch)
        self._timestep = timestep
        return self._step, branch

    @property
    def steps(self) -> int:
        return self._step + 1


def batch_branches(batch: int, given: Sequence[str] | None, guided: bool | None) -> list[str]:
    """The branch of each item of a forward's batch; `guided`: is it [uncond; cond], None: not known."""
    if given:
        if batch % len(given):
            raise CaptureError(f"branches: {list(given)} does not divide a batch of {batch}")
        return [name for name in given for _ in range(batch // len(given))]
    if guided is False or (guided is None and batch == 1):
        return ["cond"] * batch
    if batch % 2:
        raise CaptureError(
            f"a batch of {batch} is not [uncond; cond]: name its branches with "
            'branches=["…"], one a batch item'
        )
    return ["uncond"] * (batch // 2) + ["cond"] * (batch // 2)
