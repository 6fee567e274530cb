"""Grids of tokens: (T, H, W) in tokens, row-major."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import CaptureError

Grid = tuple[int, int, int]


def patched(dims: Sequence[int], patch: Sequence[int]) -> Grid:
    """Latent cells → tokens: `dims` divided by the model's `patch`, axis by axis."""
    return tuple(n // p for n, p in zip(dims, patch))  # type: ignore[return-value]


def as_grid(grid: Any) -> Grid | None:
    """(T, H, W) of what a user gives: three numbers or "TxHxW". Raises CaptureError."""
    if grid is None:
        return None
    parts = grid.split("x") if isinstance(grid, str) else list(grid) if isinstance(grid, Sequence) else []
    numbers = [int(n) if isinstance(n, str) and n.isdecimal() else n for n in parts]
    if len(numbers) != 3 or any(type(n) is not int or n < 1 for n in numbers):
        raise CaptureError(f'grid: expected (T, H, W) or "TxHxW" (got {grid!r})')
    return tuple(numbers)  # type: ignore[return-value]


def grid_text(grid: Grid | None) -> str | None:
    """"TxHxW"."""
    return "x".join(map(str, grid)) if grid else None


def text_count(text: str | None) -> int:
    """How many text tokens "226@start" or "256@end" say; 0 for "none", "all" and None."""
    return int(text.split("@")[0]) if text and "@" in text else 0
