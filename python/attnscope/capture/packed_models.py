"""The token layouts of transformers whose rows are packed from videos, pictures, sounds and words by their indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .layouts import Layout, Sequences
from .tokens import Modality, Segment, grid_segment
from .video_models import Given, text_of

# ---- MiniMax-H3: words, references in the order of the request, sound, the video

# Units of the time axis: a latent of sound is one, a frame of the video 5/3. Of five latent frames the first stands for
# one frame, each other for four, and a video has 5n + 2.
_FRAME = 5 / 3
_FRAMES = (1, 4, 4, 4, 4)
_NEAR = 0.01  # positions that are as near as this are the same


def _minimax_h3(model: Any, a: Given) -> Sequences:
    places = a["position_ids"].detach().double().cpu()  # [S, (t, h, w)]
    films = [(first, grid) for run in _runs(a["video_indices"]) for first, grid in _films(places, *run)]
    sounds = [sound for run in _runs(a["audio_indices"]) for sound in _sounds(places, *run)]
    starts = [first for first, _ in films]
    words = _runs(a["text_indices"])
    names = ["text"] if len(words) == 1 else [f"text_{n}" for n in range(1, len(words) + 1)]
    found = [(run[0], [Segment(name, "text", run[1])]) for name, run in zip(names, words)]
    # The sound that is made stands before the video and begins with it; without one, all sounds are references'.
    last = sounds[-1] if sounds else (0, [])
    made = [last] if sounds and (not films or _made(places, last, starts[-1])) else []
    number = 0
    # What is made comes last.
    for start in sorted({*starts[:-1], *(first for first, _ in sounds[: len(sounds) - len(made)])}):
        film = next((grid for first, grid in films if first == start), None)
        before = next(((first, n) for first, n in sounds if first + sum(n) == start), None)
        # A sound that begins with the film behind it is the film's own.
        own = film is not None and before is not None and _coincide(places[before[0], 0], places[start, 0])
        number += not own
        if film is not None:
            found.append((start, [grid_segment(f"reference_{number}", "reference", film)]))
        else:
            counts = next(n for first, n in sounds if first == start)
            found.append((start, _channels("reference", f"_{number}", counts)))
    if films:
        found.append((films[-1][0], [grid_segment("video", "video", films[-1][1])]))
    found += [(first, _channels("audio", "", counts)) for first, counts in made]
    joint, at = [], 0
    for start, segments in sorted(found, key=lambda part: part[0]):
        if start != at:
            raise ValueError(f"row {min(start, at)} of the packed sequence is of no kind, or of two")
        joint += segments
        at += sum(s.count for s in segments)
    return {"joint": joint, "text": [text_of(a)]}


def _made(places: torch.Tensor, sound: tuple[int, list[int]], video: int) -> bool:
    first, counts = sound
    return first + sum(counts) == video and _coincide(places[first, 0], places[video, 0])


def _runs(indices: torch.Tensor) -> list[tuple[int, int]]:
    """(first row, rows) of each run of neighbouring rows among ascending ones."""
    rows = indices.detach().cpu()
    if not len(rows):
        return []
    breaks = (rows.diff() != 1).nonzero().flatten() + 1
    return [(int(part[0]), len(part)) for part in torch.tensor_split(rows, breaks)]


def _coincide(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one - other).abs() < _NEAR).all())


def _films(places: torch.Tensor, first: int, count: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """(first row, grid) of each picture or video of a run of rows."""
    own = places[first : first + count]
    again = ((own[1:, 1:] - own[:1, 1:]).abs() < _NEAR).all(1)  # back in the first corner
    moved = (own.diff(dim=0)[:, 0].abs() > _NEAR) | again
    frames = torch.tensor_split(own, moved.nonzero().flatten() + 1)
    while frames:
        length = 1
        while length < len(frames) and _follows(frames[length - 1], frames[length], length - 1):
            length += 1
        # A picture, or another video, may begin when the video before it ends.
        length -= length > 1 and length % 5 != 2 and (length - 1) % 5 == 2
        width = len(torch.unique(frames[0][:, 2]))
        yield first, (length, len(frames[0]) // width, width)
        first += length * len(frames[0])
        frames = frames[length:]


def _follows(frame: torch.Tensor, later: torch.Tensor, number: int) -> bool:
    """Is `later` the frame after the frame `number` of a video?"""
    if frame.shape != later.shape or not _coincide(frame[:, 1:], later[:, 1:]):
        return False
    return _coincide(later[0, 0] - frame[0, 0], torch.tensor(_FRAME * _FRAMES[number % 5]))


def _sounds(places: torch.Tensor, first: int, count: int) -> Iterator[tuple[int, list[int]]]:
    """(first row, latents of each channel) of each sound of a run of rows; channels stand one after the other."""
    while count:
        times = places[first : first + count, 0]
        back = ((times.diff() - 1).abs() > _NEAR).nonzero().flatten()  # the next channel begins where the first did
        length = int(back[0]) + 1 if len(back) else count
        channels = 1
        while _coincide_all(times[channels * length : (channels + 1) * length], times[:length]):
            channels += 1
        yield first, [length] * channels
        first, count = first + length * channels, count - length * channels


def _coincide_all(some: torch.Tensor, others: torch.Tensor) -> bool:
    return len(some) == len(others) and _coincide(some, others)


def _channels(name: str, number: str, counts: list[int]) -> list[Segment]:
    """A segment a channel of a sound: stereo, left and right."""
    sides = ("_left", "_right") if len(counts) == 2 else [f"_channel{n}" for n in range(len(counts))]
    modality: Modality = "audio" if name == "audio" else "reference"
    return [Segment(f"{name}{side}{number}", modality, n, (n, 1, 1)) for side, n in zip(sides, counts)]


def _minimax_h3_timestep(a: Given) -> Any:
    """That of what is made, the last rows: references have others."""
    made = a["video_indices"] if len(a["video_indices"]) else a["audio_indices"]
    return a["timestep"][a["timestep_indices"][made[-1]]]


MINIMAX_H3 = Layout(
    ("transformer_blocks",),
    _minimax_h3,
    {"*refiner_blocks.* *": "text", "* attn": "joint"},
    positions={"joint": "position_ids"},
    timestep=_minimax_h3_timestep,
)

PACKED_LAYOUTS = {"MiniMaxH3Transformer3DModel": MINIMAX_H3}
