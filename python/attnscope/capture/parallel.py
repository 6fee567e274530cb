"""Models that several processes run together."""

from __future__ import annotations

import torch

from .errors import CaptureError


def parallel_offset(model: torch.nn.Module, heads_here: int) -> int | None:
    """The first head of this process where context parallelism splits heads; None: not split."""
    config = getattr(model, "_parallel_config", None)
    context = getattr(config, "context_parallel_config", None)
    if context is None:
        return None
    if (getattr(context, "ring_degree", 1) or 1) > 1:
        raise CaptureError(
            "ring attention splits the keys over processes: no process has a whole "
            "row. Capture with ulysses_degree, or in one process"
        )
    return int(context._ulysses_local_rank) * heads_here
