"""The size of a dump, told at its first call, and the room that the disk has for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import torch

from .choice import head_range, largest_named, parse_numbers
from .errors import DiskError
from .forward import Forward
from .options import Options
from .selection import Selection
from .sizes import readable, slot_sizes
from .slots import Model


class DumpPlan:
    """Says once what the dump will take; raises DiskError where it does not fit.

    `say` gets the line; `separate`: the forwards of a step are one a branch.
    """

    def __init__(
        self, model: Model, options: Options, folder: Path, separate: bool, say: Callable[[str], None]
    ) -> None:
        self.planned: int | None = None  # bytes that were told
        self._model = model
        self._options = options
        self._folder = folder
        self._separate = separate
        self._say = say
        self._selection = Selection(options)

    def announce(self, size: int, forward: Forward | None) -> None:
        """At the first call, of `size` bytes."""
        if self.planned is not None:
            return
        steps = self._steps_to_come()
        a_step = self._bytes_a_step(forward)
        total = a_step * steps if a_step is not None and steps is not None else None
        text = (
            f"{readable(total)} ({readable(a_step or 0)} a step, {steps} steps)"
            if total is not None
            else f"{readable(a_step)} a step"
            if a_step is not None
            else f"{readable(size)} a call"
        )
        self._say(f"{self._folder}: the dump takes {text}; the first call {readable(size)}")
        self.planned = total if total is not None else size
        self.check_room(self.planned)

    def check_room(self, size: int) -> None:
        """Raises DiskError where `size` bytes are not free."""
        free = shutil.disk_usage(self._folder).free
        if size > free:
            raise DiskError(
                f"{self._folder}: {readable(size)} do not fit, {readable(free)} are free: "
                "choose fewer layers, steps or heads, or values=False"
            )

    def _bytes_a_step(self, forward: Forward | None) -> int | None:
        """Tensor bytes of a step; None where the model's calls are not known."""
        family = self._model.family
        if forward is None or family is None or forward.grid is None:
            return None
        items = [0] if self._separate else forward.items
        text = [forward.text or 0]
        if family.per_sample and forward.valid:
            text = [forward.valid[i] for i in items]
        total = 0
        for slot in self._model.slots[self._model.name_of(forward.model)]:
            if self._selection.module(slot) and self._model.calls_due(slot, forward):
                heads = head_range(self._options.heads, slot.module.heads)
                dtype = next(slot.module.parameters()).dtype
                image = self._image_tokens(forward)
                calls = slot_sizes(family, slot, forward.grid, text, len(items), heads, dtype, image)
                for i, c in enumerate(calls):
                    name = slot.place.slot if family.per_sample else slot.call_name(i, len(calls))
                    if self._selection.call(name, slot.kind or ""):
                        total += c.payload(self._options.values, self._options.rows)
        branch = self._options.branch
        both = self._separate and (not isinstance(branch, str) or branch in ("both", "all"))
        return total * 2 if both else total

    def _image_tokens(self, forward: Forward) -> int:
        """Image tokens a batch item; two pictures (first and last frame) come as two items of each."""
        image = forward.arguments.get("encoder_hidden_states_image")
        batch = forward.arguments["hidden_states"].shape[0]
        return image.shape[0] * image.shape[1] // batch if isinstance(image, torch.Tensor) else 0

    def _steps_to_come(self) -> int | None:
        """How many chosen steps the run has; None where nobody knows."""
        wanted = parse_numbers(self._options.steps, "steps")
        last = largest_named(self._options.steps)
        timesteps = getattr(getattr(self._model.owner, "scheduler", None), "timesteps", None)
        if timesteps is not None and not isinstance(self._model.owner, torch.nn.Module):
            count = len(timesteps)
        elif last is not None:
            count = last + 1
        else:
            return None
        return sum(wanted(s) for s in range(count))
