"""What the calls of a forward have to be: how many, and of which batch items."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import CaptureError
from .forward import Forward
from .slots import Model, Slot


def check_any_call(forward: Forward) -> None:
    """Raises CaptureError where no call of the forward came by."""
    if any(forward.calls.values()):
        return
    raise CaptureError(
        "no scaled_dot_product_attention call came from the model's attention, nor one of "
        "another function that is watched: it calls a kernel of its own. diffusers: transformer."
        'set_attention_backend("native") and the default processors; transformers: '
        'attn_implementation="sdpa"; your own function: attnscope.capture.wrap(function)'
    )


def check_calls(model: Model, slots: Iterable[Slot], forward: Forward) -> None:
    """Raises CaptureError where one of the slots made another number of calls than a forward of its model
    has."""
    for slot in slots:
        due, came = model.calls_due(slot, forward), forward.calls.get(id(slot.module), 0)
        if came != due:
            raise CaptureError(
                f"step {forward.step}: {slot.name} made {came} attention calls instead of "
                f"{due}: a caching accelerator skips layers, or another backend is set for "
                "it. Switch them off (transformer.disable_cache(), "
                'set_attention_backend("native")) or leave the layer out'
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
