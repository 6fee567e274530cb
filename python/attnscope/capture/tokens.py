"""The tokens of a sequence: its segments, in order, without gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from .grids import Grid

Modality = Literal["video", "image", "text", "audio", "reference", "history", "register", "padding", "other"]


@dataclass(frozen=True)
class Segment:
    """Neighbouring tokens of one modality. What is None is not known."""

    name: str  # unique in its sequence
    modality: Modality
    count: int  # tokens
    grid: Grid | None = None  # count is its product
    cell: tuple[int, int, int] | None = None  # frames, rows and columns of pixels that a token stands for
    first_frame: int | None = None  # the stream's latent frame that frame 0 of the grid is
    position: int | None = None  # the number in its stream of the first token
    order: str | Mapping[str, list[int]] = "raster"  # or {"tiles": [t, h, w]}: tile by tile
    # How many of the first tokens are no padding, one number or one a batch item; or bool [B, count].
    valid: int | list[int] | torch.Tensor | None = None
    words: Sequence[Any] | None = None  # strings, or one list of them a recorded batch item

    def of_items(self, items: Sequence[int], batch: int) -> Segment:
        """The segment as the items `items` of a call with `batch` of them have it; each of the forward's items is a
        run of neighbours there."""
        valid = self.valid
        if isinstance(valid, (torch.Tensor, list)):
            picked = [valid[i * len(valid) // batch] for i in items]
            same = all(
                bool((v == picked[0]).all() if isinstance(v, torch.Tensor) else v == picked[0])
                for v in picked
            )
            valid = picked[0] if same else torch.stack(picked) if isinstance(valid, torch.Tensor) else picked
        return replace(self, valid=valid)


def grid_segment(name: str, modality: Modality, grid: Grid, **more: Any) -> Segment:
    """A segment of all cells of a grid."""
    return Segment(name, modality, grid[0] * grid[1] * grid[2], grid, **more)


def other(count: int) -> list[Segment]:
    """A sequence of which nothing is known but its length."""
    return [Segment("tokens", "other", count)]


def kind_of(tokens: Sequence[Segment]) -> str:
    """The kind of attention of tokens to themselves: joint where they are of several modalities, else self."""
    return "joint" if len({s.modality for s in tokens} - {"padding", "register"}) > 1 else "self"


def stated_map(
    queries: Sequence[Segment], keys: Sequence[Segment] | None
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """(facts, tensors that they name) of a call's token map; keys None: as the queries."""
    facts: dict[str, Any] = {}
    tensors: dict[str, torch.Tensor] = {}
    for side, segments in (("queries", queries), ("keys", keys)):
        if segments is not None:
            facts[side] = [_stated(s, side, tensors) for s in segments]
    return facts, tensors


def _stated(segment: Segment, side: str, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    fact: dict[str, Any] = {"name": segment.name, "modality": segment.modality, "count": segment.count}
    for name in ("grid", "cell"):
        value = getattr(segment, name)
        if value is not None:
            fact[name] = list(value)
    for name in ("first_frame", "position"):
        if getattr(segment, name) is not None:
            fact[name] = getattr(segment, name)
    if segment.order != "raster":
        fact["order"] = segment.order
    if isinstance(segment.valid, torch.Tensor):
        fact["valid"] = {"tensor": f"{side}_{segment.name}_valid"}
        tensors[f"{side}_{segment.name}_valid"] = segment.valid.bool()
    elif segment.valid is not None:
        fact["valid"] = segment.valid
    if segment.words is not None:
        fact["words"] = list(segment.words)
    return fact


def counted(mask: Any) -> list[int] | torch.Tensor | None:
    """The tokens that a padding mask [B, N] (1 or True: no padding) leaves: counts where the padding comes last
    in every item, else the mask as bool; None of anything else."""
    if not isinstance(mask, torch.Tensor) or mask.ndim != 2:
        return None
    valid = mask.detach().bool().cpu()
    counts = valid.sum(1)
    prefix = torch.arange(valid.shape[1])[None] < counts[:, None]
    return counts.tolist() if torch.equal(valid, prefix) else valid


def argument_count(given: Mapping[str, Any], name: str) -> int:
    """Tokens of the forward's argument `name`, a tensor [B, N, C]; 0 where it is not given."""
    value = given.get(name)
    return int(value.shape[1]) if isinstance(value, torch.Tensor) else 0
