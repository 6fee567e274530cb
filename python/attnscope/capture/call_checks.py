"""Checks of a forward's calls: how many there are, and of which batch items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from .errors import CaptureError
from .forward import Forward
from .refusals import no_calls
from .slots import Model, Slot


def check_any_call(forward: Forward, called: torch.nn.Module, modules: str | None) -> None:
    """Raises CaptureError where no call of the forward of a model, as it is called, came by; `modules`: the user's."""
    if not any(forward.calls.values()):
        raise no_calls(called, modules)


def wrong_calls(model: Model, slots: Iterable[Slot], forward: Forward) -> Iterator[tuple[Slot, CaptureError]]:
    """The slots that made another number of calls than a forward of their model has, and what to say of it."""
    for slot in slots:
        due, came = model.calls_due(slot, forward), forward.calls.get(id(slot.module), 0)
        if came > due:
            yield slot, too_many(slot, forward, came, due)
        elif came != due:
            yield slot, CaptureError(
                f"step {forward.step}: {slot.name} made {came} attention calls instead of "
                f"{due}: a caching accelerator skips layers, or another backend is set for "
                "it. Switch them off (transformer.disable_cache(), "
                'set_attention_backend("native")) or leave the layer out'
            )


def too_many(slot: Slot, forward: Forward, came: int, due: int) -> CaptureError:
    """For a slot that makes more calls in the forward than its model is known to."""
    return CaptureError(
        f"step {forward.step}: {slot.name} made {came} attention calls instead of {due}: what those "
        "beside the known ones attend to is not known (an IP adapter has such). Leave the layer out"
    )


def check_items(model: Model, names: Sequence[str], items: Iterable[int]) -> None:
    """Raises CaptureError where a model that makes a call for each batch item has several of one branch."""
    chosen = [names[i] for i in items]
    twice = next((name for name in chosen if chosen.count(name) > 1), None)
    if model.family is not None and model.family.per_sample and twice is not None:
        raise CaptureError(
            f"{type(model.first).__name__}: {chosen.count(twice)} videos of the branch {twice!r}, of which each has "
            "calls of its own: run one at a time, or name each item of the batch, as in "
            'branches=["uncond", "uncond.2", "cond", "cond.2"], branch="both"'
        )


def check_piece(where: str, in_parts: bool) -> None:
    """Raises CaptureError where several processes hold parts of a call that is a piece of a stream."""
    if in_parts:
        raise CaptureError(
            f"{where}: a piece of a stream of which several processes hold parts cannot be recorded: "
            "run the model in one process"
        )


def call_items(
    model: Model, slot: Slot, names: list[str] | None, items: list[int], batch: int, times: int
) -> tuple[list[str] | None, list[int], int]:
    """(names, chosen ones of them, the call's batch items of each) for a call with a batch of `batch`."""
    if names is None:
        return None, list(range(batch)), 1
    if model.family is None and len(set(names)) == 1:  # whatever the batch holds is this branch
        return [names[0]] * (batch // times), list(range(batch // times)), times
    if model.layout is not None and batch % len(names) == 0:  # frames or rows of an item follow it
        return names, items, batch // len(names)
    if batch != len(names) * times:
        raise CaptureError(f"{slot.name}: a batch of {batch} instead of {len(names)} items × {times}")
    return names, items, times
