"""Attention calls of ComfyUI's models, recorded as they come by its override of attention functions."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from attnscope.capture import CaptureError, parse_numbers, readable, record

OVERRIDE = "optimized_attention_override"  # of transformer_options: what is called instead of the attention function
COND = 0  # of cond_or_uncond
# Latent cells a token, frames by rows by columns, the likeliest first.
PATCHES = ((1, 2, 2), (1, 1, 1), (2, 2, 2), (1, 4, 4))


class Recording:
    """Records the calls of the cond branch that are chosen into a folder. What cannot be recorded is a line, and
    sampling goes on. Used by the thread that samples.

    layers, steps: as of attnscope.capture.capture(); layers count blocks in the order in which they run. grid: "TxHxW"
    in tokens, or "auto": from `latent`, the shape [B, C, H, W] or [B, C, T, H, W] of the latents. text: "N@start", "N@end",
    or "auto": what is beside the grid stands at the start. tokens: the strings of the text's tokens. limit: bytes.
    """

    def __init__(
        self,
        folder: str,
        layers: str,
        steps: str,
        *,
        grid: str = "auto",
        text: str = "auto",
        latent: Sequence[int] | None = None,
        prompt: str | None = None,
        tokens: list[str] | None = None,
        limit: int = 4 << 30,
    ) -> None:
        if not folder.strip():
            raise CaptureError("Attention capture: expected a folder")
        self.folder = Path(folder).expanduser()
        self._layers, self._steps = parse_numbers(layers, "layers"), parse_numbers(steps, "steps")
        self._grid, self._text, self._latent = grid, text, latent
        self._facts = {"prompt": prompt or None, "tokens": tokens or None}
        self._left = limit
        self._numbers: dict[Hashable, int] = {}  # of blocks
        self._sigmas: list[float] = []  # where no schedule tells steps
        self._said: set[str] = set()
        self._begun = False

    def override(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """In the place of an attention function of ComfyUI: its result, to the bit."""
        result = function(*args, **kwargs)
        try:
            self._see(kwargs.get("transformer_options") or {}, *args, **kwargs)
        except (CaptureError, RuntimeError, ValueError, TypeError, OSError) as error:
            self._tell(str(error).split("\n")[0])
        return result

    def beside(self, before: Callable[..., Any] | None) -> Callable[..., Any]:
        """The override where the model has one already, which goes on computing."""
        if before is None:
            return self.override
        return lambda function, *args, **kwargs: self.override(
            lambda *a, **k: before(function, *a, **k), *args, **kwargs
        )

    def _see(
        self, options: Mapping[str, Any], q: Any, k: Any, v: Any, heads: int, mask: Any = None, *_: Any, **given: Any
    ) -> None:
        layer, step, sigma = self._layer(options), *self._step(options)
        if not self._layers(layer) or not self._steps(step):
            return
        if not given.get("skip_reshape"):
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
        items = self._items(options, q.shape[0])
        if not items:
            return
        q, k, v = (t[items].detach() for t in (q, k, v))
        size = sum(t.numel() * t.element_size() for t in (q, k, v))
        if size > self._left:
            left = readable(self._left)
            raise CaptureError(f"layer {layer}: a call takes {readable(size)}, {left} are left: not recorded")
        if mask is not None:
            mask = mask[items] if mask.ndim > 2 and mask.shape[0] > 1 else mask
            mask = mask[:, None] if mask.ndim == 3 else mask
        facts = self._facts_of(q.shape[2], k.shape[2])
        with torch.no_grad():
            record(
                q, k, v, self.folder, mask=mask, step=step, layer=layer, timestep=sigma, force=not self._begun,
                quiet=True, q_state="as given to attention", **facts,
            )  # fmt: skip
        self._begun = True
        self._left -= size

    def _layer(self, options: Mapping[str, Any]) -> int:
        place = tuple(_hashable(options.get(name)) for name in ("block_type", "block", "block_index"))
        if place == (None, None, None):
            raise CaptureError("the model tells no block (block_index of transformer_options): not recorded")
        return self._numbers.setdefault(place, len(self._numbers))

    def _step(self, options: Mapping[str, Any]) -> tuple[int, float | None]:
        sigmas = options.get("sigmas")
        if sigmas is None:
            raise CaptureError("the model tells no step (sigmas of transformer_options): not recorded")
        sigma = float(torch.as_tensor(sigmas).flatten()[0])
        schedule = options.get("sample_sigmas")
        if schedule is not None:
            return int((torch.as_tensor(schedule).float().cpu() - sigma).abs().argmin()), sigma
        if sigma not in self._sigmas:
            self._sigmas.append(sigma)
        return self._sigmas.index(sigma), sigma

    def _items(self, options: Mapping[str, Any], batch: int) -> list[int]:
        """The batch items of the cond branch: the batch has a part for each entry of cond_or_uncond."""
        kinds = list(options.get("cond_or_uncond") or [COND])
        if batch % len(kinds):
            raise CaptureError(f"a batch of {batch} items has {len(kinds)} parts: not recorded")
        part = batch // len(kinds)
        return [n * part + i for n, kind in enumerate(kinds) if kind == COND for i in range(part)]

    def _facts_of(self, queries: int, keys: int) -> dict[str, Any]:
        grid = self._grid_of(queries)
        facts: dict[str, Any] = {name: fact for name, fact in self._facts.items() if fact is not None}
        places = math.prod(int(n) for n in grid.split("x")) if grid is not None else queries
        if queries != keys:
            facts |= {"kind": "cross", "text": "all" if self._text == "auto" else self._text}
        elif queries > places:
            facts |= {"kind": "joint", "text": f"{queries - places}@start" if self._text == "auto" else self._text}
        else:
            facts |= {"kind": "self", "text": "none"}
        if facts["kind"] == "self":
            facts.pop("tokens", None)
        elif "tokens" in facts:
            count = keys if queries != keys else queries - places
            facts["tokens"] = facts["tokens"][:count]
        return {**facts, "grid": grid} if grid is not None else facts

    def _grid_of(self, queries: int) -> str | None:
        """The grid whose places are the queries, or most of them, beside text."""
        if self._grid != "auto":
            return self._grid
        if self._latent is None:
            return None
        frames = self._latent[2] if len(self._latent) == 5 else 1
        sizes = (frames, *self._latent[-2:])
        grids = [tuple(-(-n // p) for n, p in zip(sizes, patch, strict=True)) for patch in PATCHES]
        exact = [grid for grid in grids if math.prod(grid) == queries]
        fitting = exact or [grid for grid in grids if math.prod(grid) < queries < 2 * math.prod(grid)]
        return "x".join(map(str, fitting[0])) if fitting else None

    def _tell(self, line: str) -> None:
        if line not in self._said:
            print(f"Attention capture: {line}", file=sys.stderr)
        self._said.add(line)


def _hashable(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value
