"""The branches of guidance: which forward, or which part of a batch, is conditional."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from .errors import CaptureError
from .options import Options
from .slots import Model
from .steps import batch_branches


class BranchTeller:
    """Names the branch of each batch item of a forward. `say` gets what a user should know."""

    def __init__(self, model: Model, options: Options, say: Callable[[str], None]) -> None:
        guidance = options.guidance or (model.family.guidance if model.family else "batch")
        if guidance not in ("batch", "forwards"):
            raise CaptureError(f'guidance: expected "batch" or "forwards" (got {guidance!r})')
        self.guidance = guidance  # batch | forwards
        self._model = model
        self._options = options
        self._say = say
        self._guides: bool | str | None = "unasked"

    def wants(self, branch: str) -> bool:
        wanted = self._options.branch
        if isinstance(wanted, str):
            return wanted in ("both", "all") or branch == wanted
        return branch in wanted

    def names(self, given: Mapping[str, Any], branch: str | None) -> list[str] | None:
        """The branch of each batch item of the forward; None where nothing is known of branches.

        given: the forward's arguments by name; branch: what is known of the forward as a whole.
        """
        batch = next((t.shape[0] for t in given.values() if isinstance(t, torch.Tensor) and t.ndim > 1), None)
        states = given.get("hidden_states")
        batch = states.shape[0] if isinstance(states, torch.Tensor) else batch
        if self.guidance == "forwards":
            return [branch or "cond"] * (batch or 1)
        if self._model.family is None and not self._options.branches:
            return None
        if batch is None:
            raise CaptureError("branches: the forward has no batched tensor to count")
        guided = self._guided()
        if guided is None and batch > 1 and not self._options.branches:
            self._say(f"a batch of {batch} is taken as [uncond; cond]; branches=[…] says otherwise")
        return batch_branches(batch, self._options.branches, guided)

    def _guided(self) -> bool | None:
        """Does the pipeline double the batch for guidance? None: there is no pipeline to ask.

        Asked at the first forward: some pipelines change their guidance scale while they run.
        """
        if self._guides == "unasked":
            self._guides = self._ask_guidance()
        return self._guides  # type: ignore[return-value]

    def _ask_guidance(self) -> bool | None:
        if isinstance(self._model.owner, torch.nn.Module):
            return None
        for name in ("do_classifier_free_guidance", "guidance_scale"):
            try:
                value = getattr(self._model.owner, name)
            except AttributeError:
                continue
            return value if isinstance(value, bool) else value > 1
        return None
