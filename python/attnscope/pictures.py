"""Pictures that show themselves in notebooks."""

from __future__ import annotations

import base64
import html
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .native import _native
from .shown import Shown

OCTAVES = 16  # below the largest value, that colours tell apart
_SIDE = 512  # pixels of a picture's longer side, about
_MOST_ENTRIES = 1 << 28  # of a map that is computed only to be shown


def png(values: np.ndarray, *, colours: str = "viridis", octaves: float = OCTAVES) -> bytes:
    """A PNG of values ≥ 0, [rows, columns], on a scale of powers of two below the largest; small ones are shown in
    squares of several pixels. NaN and 0 have the lowest colour."""
    largest = float(np.nanmax(values, initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = 1 + np.log2(values / largest) / octaves if largest > 0 else np.zeros(values.shape)
    index = (255 * np.clip(np.nan_to_num(unit, nan=0.0, neginf=0.0), 0, 1)).astype(np.uint8)
    table = np.frombuffer(_native.colours(colours), np.uint8).reshape(256, 3)
    factor = max(1, _SIDE // max(1, *index.shape))
    return _encode(table[index.repeat(factor, 0).repeat(factor, 1)])


def heat(values: np.ndarray, largest: float, colours: str = "inferno") -> bytes:
    """A PNG of values ≥ 0, [rows, columns], on a linear scale up to `largest`, a pixel each."""
    index = (255 * np.clip(np.nan_to_num(values / largest if largest > 0 else values * 0), 0, 1)).astype(np.uint8)
    return _encode(np.frombuffer(_native.colours(colours), np.uint8).reshape(256, 3)[index])


def _encode(pixels: np.ndarray) -> bytes:
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 6)),
        (b"IEND", b""),
    ]
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks:
        data += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return data


def map_picture(shape: tuple[int, int], means: Callable[[int], np.ndarray]) -> bytes | None:
    """A whole map of this shape, [queries, keys], by the means of its blocks; None where these take long to compute.

    means: the means of blocks of so many tokens a side.
    """
    rows, cols = shape
    if rows * cols > _MOST_ENTRIES or rows * cols == 0:
        return None
    block = 1
    while max(rows, cols) > _SIDE * block:
        block *= 2
    return png(means(block))


class Volume(np.ndarray):
    """float32 [T, H, W]: attention over the video, frame by frame; without a grid [tokens]. An array as any other,
    which shows its frames side by side in a notebook.

    text: float32 [text tokens]; segments: the other parts of a token map, by name. Both are of this very array, and
    pickled with it: what is computed from it has empty ones.
    """

    text: np.ndarray
    segments: dict[str, np.ndarray]

    @classmethod
    def of(cls, video: np.ndarray, text: np.ndarray, segments: dict[str, np.ndarray]) -> Volume:
        volume = video.view(cls)
        volume.text = text
        volume.segments = segments
        return volume

    def __array_finalize__(self, source: Any) -> None:
        self.text = np.empty(0, np.float32)
        self.segments = {}

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments, state = super().__reduce__()  # type: ignore[misc]
        return make, arguments, (state, self.text, self.segments)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        own, text, segments = state
        super().__setstate__(own)
        self.text, self.segments = text, segments

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """A reduction to one number is NumPy's number."""
        return array[()] if array.ndim == 0 else super().__array_wrap__(array, context)

    def show(self) -> Shown:
        """Shows the frames at once in a notebook; elsewhere a line. .save("film.png") of what it gives writes them."""
        picture = self._repr_png_()
        at = tuple(map(int, np.unravel_index(int(np.argmax(self)), self.shape))) if self.size else ()
        largest = f"largest {float(np.max(self)):.3g} at {at}" if self.size else "empty"
        line = f"<Volume {' × '.join(map(str, self.shape))}: sum {float(np.sum(self)):.3g}, {largest}>"
        data = "" if picture is None else base64.b64encode(picture).decode()
        fragment = f'<img alt="{line[1:-1]}" src="data:image/png;base64,{data}">' if data else html.escape(line)
        return Shown(line, fragment, png=picture).display()

    def _repr_png_(self) -> bytes | None:
        if self.ndim != 3 or self.size == 0:
            return None
        frames, height, width = self.shape
        strip = np.zeros((height, frames * (width + 1) - 1), np.float32)
        for t in range(frames):
            strip[:, t * (width + 1) : t * (width + 1) + width] = self[t]
        return png(strip, colours="inferno", octaves=8)


class Picture(os.PathLike[str]):
    """A file that a command drew: path. It shows itself in a notebook."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __repr__(self) -> str:
        return f"Picture({os.fspath(self.path)!r})"

    def _repr_png_(self) -> bytes | None:
        return self.path.read_bytes() if self.path.suffix == ".png" else None

    def _repr_html_(self) -> str | None:
        if self.path.suffix != ".gif":
            return None
        return f'<img src="data:image/gif;base64,{base64.b64encode(self.path.read_bytes()).decode()}">'
