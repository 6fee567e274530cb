"""Grids of tokens: (T, H, W) in tokens, row-major."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import CaptureError

Grid = tuple[int, int, int]


def patched(dims: Sequence[int], patch: Sequence[int]) -> Grid:
    return tuple(n // p for n, p in zip(dims, patch))  # type: ignore[return-value]


def as_grid(grid: Any) -> Grid | None:
    if grid is None:
        return None
    numbers = [int(n) for n in grid.split("x")] if isinstance(grid, str) else list(grid)
    if len(numbers) != 3 or min(numbers) < 1:
        raise CaptureError(f'grid: expected (T, H, W) or "TxHxW" (got {grid!r})')
    return tuple(numbers)  # type: ignore[return-value]


def grid_text(grid: Grid | None) -> str | None:
    return "x".join(map(str, grid)) if grid else None


def text_count(text: str | None) -> int:
    return int(text.split("@")[0]) if text and "@" in text else 0
