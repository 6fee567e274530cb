"""Words over the frames: how much each place of the video attends to a word of the prompt."""

from __future__ import annotations

import base64
import html
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Error, make_error
from .pictures import Volume, heat
from .progress import Progress
from .shown import Shown, document

if TYPE_CHECKING:
    from .one_head import OneHead

_CELL = 96  # pixels of a frame's longer side


class Words(Mapping[str, Volume]):
    """By word a float32 [T, H, W], the weight that each video token gives to the word's tokens (of several their sum),
    as the mean over `heads` heads. left_out: what has none, words of the prompt or heads, with the reason. It shows
    itself in notebooks, over the recorded pictures of the video where there are some."""

    def __init__(
        self, volumes: dict[str, Volume], heads: int, left_out: dict[str, str], folder: Path | None
    ) -> None:
        self._volumes = volumes
        self.heads = heads
        self.left_out = left_out
        self._folder = folder

    def __getitem__(self, word: str) -> Volume:
        return self._volumes[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._volumes)

    def __len__(self) -> int:
        return len(self._volumes)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, next(iter(self._volumes.values())).shape))
        means = ", ".join(f"{word} {float(np.mean(volume)):.3g}" for word, volume in self._volumes.items())
        return f"<Words over {shape}, mean of {self.heads} heads: {means}>"

    def _repr_html_(self) -> str:
        pictures = frame_pictures(self._folder)
        strips = "".join(_strip(word, volume, pictures) for word, volume in self._volumes.items())
        left = "; ".join(f"{word}: {why}" for word, why in self.left_out.items())
        note = f"Mean of {self.heads} heads; each word has a scale of its own, from 0 to the number behind it."
        note += f" Without a strip: {left}." if left else ""
        return f'<div style="font-family:sans-serif;font-size:13px">{strips}<p>{html.escape(note)}</p></div>'

    def show(self) -> Shown:
        """Shows the strips at once in a notebook; .save("words.html") of what it gives writes them."""
        body = self._repr_html_()
        return Shown(repr(self), body, page=document("words", body), folder=self._folder).display()


def frame_pictures(folder: Path | None) -> dict[int, bytes]:
    """The recorded pictures of a capture's video, PNG by latent frame; empty where there are none."""
    if folder is None:
        return {}
    try:
        catalogue = json.loads((folder / "capture.json").read_text(encoding="utf-8"))
        listed = {int(entry["t"]): str(entry["file"]) for entry in catalogue.get("frames", [])}
        # Of this folder alone, whatever the catalogue names.
        return {t: (folder / os.path.basename(name)).read_bytes() for t, name in listed.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _strip(word: str, volume: Volume, pictures: Mapping[int, bytes]) -> str:
    largest = float(np.max(volume, initial=0.0))
    frames, height, width = volume.shape
    scale = _CELL / max(height, width)
    size = f"width:{width * scale:.0f}px;height:{height * scale:.0f}px"
    cells = []
    for t in range(frames):
        under = pictures.get(t)
        over = "opacity:0.6;" if under is not None else ""
        cells.append(
            f'<div style="position:relative;display:inline-block;margin-right:2px;{size}">'
            + (f'<img alt="" style="position:absolute;{size}" src="{_data(under)}">' if under is not None else "")
            + f'<img alt="frame {t}" style="position:absolute;{over}image-rendering:pixelated;{size}" '
            f'src="{_data(heat(np.asarray(volume[t]), largest))}"></div>'
        )
    head = f"<b>{html.escape(word)}</b> {largest:.3g}"
    row = "".join(cells)
    return f'<div style="margin:6px 0">{head}<div style="white-space:nowrap;overflow-x:auto">{row}</div></div>'


def _data(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def words_of_heads(
    heads: Sequence[OneHead], words: Sequence[str] | str | None, folder: Path | None, progress: Progress
) -> Words:
    """Capture.words() of the heads that were chosen."""
    asking = [head for head in heads if head.call.facts["tokens"] and head.call.facts["grid"]]
    if not asking:
        raise make_error(
            "words: no call has words as keys of a video's queries: it needs recorded token strings (attnscope convert "
            "--tokens FILE adds them) and a grid",
            "usage",
        )
    listed = _prompt_words(asking[0]) if words is None else [words] if isinstance(words, str) else list(words)
    if not listed or any(not isinstance(word, str) or not word for word in listed):
        raise make_error(f"words: expected words of the prompt (got {words!r})", "usage")
    asking = [head for head in asking if head.branch != "uncond"] or asking
    asking, left_out = _finest(asking)
    volumes = {}
    for word in dict.fromkeys(listed):
        try:
            volumes[word] = _mean(asking, word, progress)
        except Error as error:
            if words is not None or error.code != "usage":
                raise
            left_out[word] = str(error)
    if not volumes:
        raise make_error(f"words: the prompt has none that can be told apart ({', '.join(left_out)})", "usage")
    return Words(volumes, len(asking), left_out, folder)


def _prompt_words(head: OneHead) -> list[str]:
    """The words of the recorded prompt, without the marks around them."""
    prompt = head.call.facts["prompt"] or ""
    return [word for word in (part.strip(".,;:!?\"'()[]") for part in prompt.split()) if word]


def _finest(heads: Sequence[OneHead]) -> tuple[list[OneHead], dict[str, str]]:
    """The heads whose grid has most places, and why the others are left out."""
    grids = [tuple(head.call.facts["grid"]) for head in heads]
    best = max(grids, key=lambda grid: (math.prod(grid), grid))
    left = {f"heads over {' × '.join(map(str, g))}": "their grid has fewer places" for g in grids if g != best}
    return [head for head, grid in zip(heads, grids, strict=True) if grid == best], left


def _mean(heads: Sequence[OneHead], word: str, progress: Progress) -> Volume:
    total = sum(head.query(text_token=word, reverse=True, progress=progress).astype(np.float64) for head in heads)
    return Volume.of(np.asarray(total / len(heads), np.float32), np.empty(0, np.float32), {})
