"""Facts about the attention calls of models, from the code of their libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .grids import Grid, patched
from .image_models import pictures_of
from .tokens import Segment
from .video_models import text_of


def _cogvideox_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    c, x = model.config, a["hidden_states"]  # [B, T, C, H, W]
    return patched((x.shape[1], x.shape[3], x.shape[4]), (c.patch_size_t or 1, c.patch_size, c.patch_size))


def _hunyuan_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    c = model.config
    return patched(a["hidden_states"].shape[2:], (c.patch_size_t, c.patch_size, c.patch_size))


def _wan_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    return patched(a["hidden_states"].shape[2:], model.config.patch_size)


def _ltx_grid(model: Any, a: Mapping[str, Any]) -> Grid | None:
    dims = (a.get("num_frames"), a.get("height"), a.get("width"))
    return None if None in dims else dims  # type: ignore[return-value]


def _flat_patch_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    p = model.config.patch_size
    return patched(a["hidden_states"].shape[2:], (1, p, p))


def _sd3_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    p = model.config.patch_size
    return patched((1, *a["hidden_states"].shape[2:]), (1, p, p))


def _flux_grid(model: Any, a: Mapping[str, Any]) -> Grid | None:
    ids = a["img_ids"]
    ids = (ids[0] if ids.ndim == 3 else ids).round().long().cpu()
    h, w = int(ids[:, 1].max()) + 1, int(ids[:, 2].max()) + 1
    rows = torch.arange(h * w)
    plain = len(ids) == h * w and bool((ids[:, 0] == ids[0, 0]).all())
    if not plain or not torch.equal(ids[:, 1] * w + ids[:, 2], rows):
        return None  # reference images beside the picture: no grid of one piece
    return 1, h, w


def masked_valid(a: Mapping[str, Any]) -> list[int] | None:
    """Valid text tokens a batch item, of a mask that is 1 for them; None if padding is not last."""
    mask = a.get("encoder_attention_mask")
    if mask is None or mask.ndim != 2:
        return None
    valid = mask.detach().bool().cpu()
    counts = valid.sum(1)
    prefix = torch.arange(valid.shape[1])[None] < counts[:, None]
    return counts.tolist() if torch.equal(valid, prefix) else None


def _wan_valid(a: Mapping[str, Any]) -> list[int] | None:
    """Wan's pipelines set the embeddings of padding to zero: where the last row is zero, it counts."""
    used = a["encoder_hidden_states"].detach().ne(0).any(-1).cpu()
    if bool(used[:, -1].any()):
        return None
    return [int(row.nonzero()[-1]) + 1 if bool(row.any()) else 0 for row in used]


@dataclass(frozen=True)
class Family:
    """The facts about a model's attention calls, from the code of its library."""

    blocks: tuple[str, ...]  # lists of blocks, in the order in which they run
    attention: Mapping[str, str]  # attribute of a block -> kind of its calls
    grid: Callable[[Any, Mapping[str, Any]], Grid | None]  # (transformer, forward's arguments)
    text: str = "none"  # where text stands in a joint call: start, end
    guidance: str = "batch"  # batch: one forward of [uncond; cond]; forwards: cond, then uncond
    rope: tuple[str, ...] = ()  # kinds whose q and k are rotated
    valid: Callable[[Mapping[str, Any]], list[int] | None] = lambda a: None
    interleaved: Mapping[str, str] = field(default_factory=dict)  # list of blocks -> its axes
    per_sample: bool = False  # one call a batch item, without its padding
    key_mask: Mapping[str, str] = field(default_factory=dict)  # kind -> row | head_row
    vae: tuple[int, int] = (4, 8)  # video frames and pixels a latent cell
    encoders: tuple[tuple[str, str], ...] = (("text_encoder", "tokenizer"),)
    trims: bool = False  # padding is cut off
    counted_text: bool = False  # padding is attended and comes last: count it from the token ids
    # (transformer, forward's arguments) -> the tokens of a joint call that are no grid of one piece
    pieces: Callable[[Any, Mapping[str, Any]], Sequence[Segment]] | None = None


_DUAL = ("transformer_blocks", "single_transformer_blocks")

FAMILIES: dict[str, Family] = {
    "CogVideoXTransformer3DModel": Family(
        ("transformer_blocks",),
        {"attn1": "joint"},
        _cogvideox_grid,
        "start",
        rope=("joint",),
        counted_text=True,
    ),
    "HunyuanVideoTransformer3DModel": Family(
        _DUAL,
        {"attn": "joint"},
        _hunyuan_grid,
        "end",
        "forwards",
        ("joint",),
        masked_valid,
        key_mask={"joint": "row"},
    ),
    "WanTransformer3DModel": Family(
        ("blocks",),
        {"attn1": "self", "attn2": "cross"},
        _wan_grid,
        guidance="forwards",
        rope=("self",),
        valid=_wan_valid,
    ),
    "LTXVideoTransformer3DModel": Family(
        ("transformer_blocks",),
        {"attn1": "self", "attn2": "cross"},
        _ltx_grid,
        rope=("self",),
        valid=masked_valid,
        key_mask={"cross": "head_row"},
        vae=(8, 32),
    ),
    "MochiTransformer3DModel": Family(
        ("transformer_blocks",),
        {"attn1": "joint"},
        _flat_patch_grid,
        "end",
        rope=("joint",),
        valid=masked_valid,
        per_sample=True,
        trims=True,
        vae=(6, 8),
    ),
    "FluxTransformer2DModel": Family(
        _DUAL,
        {"attn": "joint"},
        _flux_grid,
        "start",
        "forwards",
        ("joint",),
        vae=(1, 8),
        encoders=(("text_encoder_2", "tokenizer_2"),),
        counted_text=True,
        pieces=lambda model, a: [text_of(a), *pictures_of(a["img_ids"])],
    ),
    "SD3Transformer2DModel": Family(
        ("transformer_blocks",),
        {"attn": "joint", "attn2": "self"},
        _sd3_grid,
        "end",
        vae=(1, 8),
        encoders=(("text_encoder", "tokenizer"), ("text_encoder_3", "tokenizer_3")),
    ),
    "LatteTransformer3DModel": Family(
        ("transformer_blocks", "temporal_transformer_blocks"),
        {"attn1": "self", "attn2": "cross"},
        _flat_patch_grid,
        interleaved={"transformer_blocks": "spatial", "temporal_transformer_blocks": "temporal"},
        vae=(1, 8),
        trims=True,
        counted_text=True,
    ),
}
