"""How many parts of guidance a forward's batch has, by what the pipeline says and by what its items share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

# Attributes of pipelines whose batches have other parts than [uncond; cond] where they are true or above 0:
# perturbed attention guidance, guidance by a picture as well, edits.
OTHER_PARTS = (
    "do_perturbed_attention_guidance",
    "image_guidance_scale",
    "_image_guidance_scale",
    "enabled_editing_prompts",
)
LATENTS = ("hidden_states", "sample")


def other_guidance(owner: Any) -> str | None:
    """The attribute by which a pipeline says that its batches have other parts; None where none does."""
    if isinstance(owner, torch.nn.Module):
        return None
    for name in OTHER_PARTS:
        try:
            value = getattr(owner, name)
        except (AttributeError, TypeError):  # some are made of what the pipeline is given when it is called
            continue
        if isinstance(value, (bool, int, float)) and value > 0:
            return name
    return None


def count_parts(model: Any, given: Mapping[str, Any]) -> int | None:
    """How often the latents of a forward's batch come again: 2 for [uncond; cond], 1 where each item has
    its own; None where its arguments do not tell.

    Guidance runs the same latents once a part, so that items i and i + B / parts share them.
    """
    latents = next((given[n] for n in LATENTS if isinstance(given.get(n), torch.Tensor)), None)
    if latents is None or latents.ndim < 3:
        return None
    batch = latents.shape[0]
    periods = (p for p in range(1, batch) if batch % p == 0)
    for period in periods:
        if any(torch.equal(part[period:], part[:-period]) for part in _own_channels(model, latents)):
            return batch // period
    return 1


def _own_channels(model: Any, latents: torch.Tensor) -> Iterator[torch.Tensor]:
    """The latents, and without the channels of a picture behind them, which not all parts have."""
    yield latents
    config = getattr(model, "config", None)
    into, out = getattr(config, "in_channels", None), getattr(config, "out_channels", None)
    if isinstance(into, int) and isinstance(out, int) and out < into and latents.ndim > 3:
        yield from (latents.narrow(axis, 0, out) for axis in (1, 2) if latents.shape[axis] == into)
