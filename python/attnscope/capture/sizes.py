"""How large a dump will be, before it is made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from .call_size import CallSize, mask_bytes
from .choice import head_range, largest_named, parse_numbers
from .errors import CaptureError
from .families import Family
from .grids import Grid
from .layout_sizes import layout_bytes
from .options import Options
from .pictures import frames_per_latent
from .selection import Selection
from .slots import Model, Slot, family_slots


def readable(size: float) -> str:
    """Bytes as "1.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def slot_sizes(
    family: Family,
    slot: Slot,
    grid: Grid,
    text: Sequence[int],
    items: int,
    heads: tuple[int, int],
    dtype: torch.dtype,
    image: int = 0,
) -> list[CallSize]:
    """The calls of `slot` in one forward of `items` chosen items with `text` tokens each, and `image` tokens
    where it attends to them in a call of its own."""
    module = slot.module
    count, itemsize = heads[1] - heads[0], torch.empty(0, dtype=dtype).element_size()
    projection = module.to_q if hasattr(module, "to_q") else module.query
    channels = projection.out_features // module.heads
    times = {"full": 1, "spatial": grid[0], "temporal": grid[1] * grid[2]}[slot.axes]
    video = math.prod(grid) // times

    def size(n: int, words: int) -> CallSize:
        queries = video + (words if slot.kind == "joint" else 0)
        keys = words if slot.kind == "cross" else queries
        mask = mask_bytes(family.key_mask.get(slot.kind or ""), n, count, keys, itemsize)
        return CallSize(n * times, count, count, queries, keys, channels, itemsize, mask)

    if family.per_sample:
        return [size(1, text[i % len(text)]) for i in range(items)]
    return [size(items, n) for n in ([image] if slot.image_keys and image else []) + [text[0]]]


def _estimate_grid(
    owner: Any,
    model: Any,
    family: Family,
    grid: Grid | str | None,
    frames: int | None,
    height: int | None,
    width: int | None,
) -> Grid:
    if isinstance(grid, str):
        grid = tuple(int(n) for n in grid.split("x"))  # type: ignore[assignment]
    if grid is not None:
        return grid  # type: ignore[return-value]
    if height is None or width is None:
        raise CaptureError("estimate: give grid=(T, H, W) in tokens, or num_frames, height and width")
    pixels = getattr(owner, "vae_scale_factor_spatial", None) or family.vae[1]
    latent = ((frames or 1) - 1) // (frames_per_latent(owner, family)) + 1
    patch = model.config.patch_size if hasattr(model.config, "patch_size") else 1
    if isinstance(model, torch.nn.Module) and type(model).__name__ == "FluxTransformer2DModel":
        patch = 2  # its latents are packed 2 by 2 before they reach the transformer
    patch = (
        patch
        if isinstance(patch, (tuple, list))
        else (getattr(model.config, "patch_size_t", None) or 1, patch, patch)
    )
    return -(-latent // patch[0]), height // pixels // patch[1], width // pixels // patch[2]


def _step_count(steps: Any, num_steps: int | None) -> int:
    """How many of the run's steps are chosen."""
    steps = tuple(steps) if isinstance(steps, Iterator) else steps
    test, last = parse_numbers(steps, "steps"), largest_named(steps)
    count = num_steps if num_steps is not None else None if last is None else last + 1
    if count is None:
        raise CaptureError("estimate: steps are open, give num_steps")
    return sum(test(s) for s in range(count))


def estimate(
    model: Any,
    *,
    inputs: Mapping[str, Any] | None = None,
    grid: Grid | str | None = None,
    num_frames: int | None = None,
    height: int | None = None,
    width: int | None = None,
    text: int | Sequence[int] = 0,
    image: int = 257,
    layers: Any = "all",
    steps: Any = 0,
    heads: Any = "all",
    kinds: str | Sequence[str] = "all",
    num_steps: int | None = None,
    items: int = 1,
    values: bool = True,
    rows: int = 64,
    dtype: torch.dtype | None = None,
) -> int:
    """Bytes of tensors that a capture of a diffusers pipeline, a transformer or an encoder will hold.

    grid: (T, H, W) in tokens; else it follows from frames and pixels. text: text tokens (valid ones
    for Mochi: one number a recorded item). image: image tokens, of a model with calls that have them as
    keys (Wan image-to-video). num_steps: needed where `steps` is open. items: recorded
    batch items a forward (1 for one branch of one video), times the forwards if both branches of a
    model with separate forwards are wanted. inputs: of a class with a token layout, instead of all these,
    the arguments of its forward by name, for the recorded items; where only shapes count, as tensors on
    the device "meta". File headers, some KB a call, come on top.

    Raises CaptureError where the size cannot be known without running the model.
    """
    owner = Model.of(model, None)
    transformer = owner.first
    family = owner.family
    taken = _step_count(steps, num_steps)
    selection = Selection(Options(layers=layers, kinds=kinds))
    if family is None:
        if owner.layout is None:
            raise CaptureError(
                f"estimate: nothing is known about {type(transformer).__name__} without running it; the line "
                "that a capture prints at its first call tells its size"
            )
        if inputs is None:
            raise CaptureError(
                f"estimate: {type(transformer).__name__}: what its calls have follows from the arguments of "
                'its forward: give inputs={…}, by name, tensors on the device "meta" where only shapes count'
            )
        return taken * layout_bytes(owner, inputs, selection, heads, values, rows, dtype)
    where = _estimate_grid(model, transformer, family, grid, num_frames, height, width)
    words = [text] if isinstance(text, int) else list(text)
    total = 0
    for slot in family_slots(transformer, family, ""):
        if selection.module(slot) and selection.call(slot.place.slot, slot.kind or ""):
            chosen = head_range(heads, slot.module.heads)
            kind = dtype or next(slot.module.parameters()).dtype
            calls = slot_sizes(family, slot, where, words, items, chosen, kind, image)
            total += sum(call.payload(values, rows) for call in calls)
    return total * taken
