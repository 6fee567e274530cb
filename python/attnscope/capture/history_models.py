"""The token layouts of video transformers that see more than one video: history, or several kinds in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .grids import Grid, patched
from .layouts import Layout, Sequences
from .tokens import Modality, Segment, argument_count, grid_segment
from .video_models import cubes, text_of


# ---- FramePack: history of other cell sizes before the video


def _framepack(model: Any, a: Mapping[str, Any]) -> Sequences:
    patch, text = cubes(model.config), text_of(a, mask="encoder_attention_mask")
    latents = a["hidden_states"]
    if latents.shape[0] == 1 and isinstance(text.valid, list):  # padding is cut off
        text = Segment("text", "text", text.valid[0])
    joint = [
        *_history("history_4x", a.get("latents_history_4x"), a.get("indices_latents_history_4x"), (4, 8, 8)),
        *_history("history_2x", a.get("latents_history_2x"), a.get("indices_latents_history_2x"), (2, 4, 4)),
        *_history("history_1x", a.get("latents_clean"), a.get("indices_latents_clean"), (1, 2, 2)),
        *_frames("video", "video", patched(latents.shape[2:], patch), a.get("indices_latents"), patch),
        Segment("image", "image", argument_count(a, "image_embeds")),
        text,
    ]
    refined = [text_of(a, mask="encoder_attention_mask")]
    return {"joint": joint, "text": refined}


def _history(name: str, latents: Any, indices: Any, cell: Grid) -> list[Segment]:
    """History in cells of `cell` latents, the last of an axis padded to one."""
    if latents is None or indices is None:
        return []
    grid = tuple(-(-n // c) for n, c in zip(latents.shape[2:], cell))
    return _frames(name, "history", grid, indices, cell)  # type: ignore[arg-type]


def _frames(name: str, modality: Modality, grid: Grid, indices: Any, cell: Grid) -> list[Segment]:
    """A segment for each run of neighbouring frames; indices: the stream's latent frames, [B, T] or [T]."""
    pixels = (cell[0] * 4, cell[1] * 8, cell[2] * 8)  # the VAEs of HunyuanVideo and Wan
    if indices is None:
        return [grid_segment(name, modality, grid, cell=pixels)]
    every = (indices[0] if indices.ndim == 2 else indices).tolist()
    starts = [every[i * cell[0]] for i in range(grid[0])]
    breaks = [i for i in range(1, len(starts)) if starts[i] - starts[i - 1] != cell[0]]
    runs = list(zip([0, *breaks], [*breaks, len(starts)]))
    return [
        grid_segment(
            name if len(runs) == 1 else f"{name}_{n}",
            modality,
            (end - begin, *grid[1:]),
            cell=pixels,
            first_frame=int(starts[begin]),
        )
        for n, (begin, end) in enumerate(runs)
    ]


FRAMEPACK = Layout(
    ("transformer_blocks", "single_transformer_blocks"),
    _framepack,
    {"*refiner_blocks.* *": "text", "* attn": "joint"},
    guidance="forwards",
    masks={"*refiner_blocks.* *": ("dense", "encoder_attention_mask")},
)


# ---- Helios: history of other cell sizes before the video, the longest first


def _helios(model: Any, a: Mapping[str, Any]) -> Sequences:
    patch = tuple(model.config.patch_size)
    history = []
    for name, factor in (("long", 4), ("mid", 2), ("short", 1)):
        latents, indices = a.get(f"latents_history_{name}"), a.get(f"indices_latents_history_{name}")
        history += _history(f"history_{name}", latents, indices, tuple(factor * p for p in patch))
    video = _frames(
        "video", "video", patched(a["hidden_states"].shape[2:], patch), a.get("indices_hidden_states"), patch
    )
    guided = model.config.guidance_cross_attn  # history looks at no text
    return {"joint": [*history, *video], "asking": video if guided else [*history, *video], "text": [text_of(a)]}


HELIOS = Layout(("blocks",), _helios, {"* attn1": "joint", "* attn2": "asking > text"})


# ---- Cosmos 3: words, which attend to those before them; then vision, sound and actions, which attend to all


def _cosmos3(model: Any, a: Mapping[str, Any]) -> Sequences:
    words = [Segment("text", "text", a["und_len"])]
    kinds: list[tuple[int, list[Segment]]] = []
    for name, modality, shapes, places in (
        ("video", "video", a["vision_token_shapes"], a["vision_sequence_indexes"]),
        ("audio", "audio", a.get("sound_token_shapes"), a.get("sound_sequence_indexes")),
        ("action", "other", a.get("action_token_shapes"), a.get("action_sequence_indexes")),
    ):
        if shapes and places is not None and len(places):
            kinds.append((int(places[0]), _packed(name, modality, shapes)))
            if not torch.equal(places.cpu(), torch.arange(int(places[0]), int(places[0]) + len(places))):
                raise ValueError(f"the tokens of {name} do not stand next to each other")
    made = [segment for _, segments in sorted(kinds, key=lambda kind: kind[0]) for segment in segments]
    if sum(s.count for s in made) != a["sequence_length"] - a["und_len"]:
        made = [Segment("made", "other", a["sequence_length"] - a["und_len"])]
    return {"text": words, "made": made, "all": [*words, *made]}


def _packed(name: str, modality: Modality, shapes: Sequence[Sequence[int]]) -> list[Segment]:
    """The items of a kind, of these grids, one after the other."""
    names = [name] if len(shapes) == 1 else [f"{name}_{n}" for n in range(len(shapes))]
    grids = [(*(int(n) for n in shape), 1, 1)[:3] for shape in shapes]
    return [grid_segment(n, modality, grid) for n, grid in zip(names, grids)]


COSMOS3 = Layout(("layers",), _cosmos3, {"* self_attn": "text", "* self_attn.2": "made in all"})

HISTORY_LAYOUTS = {
    "Cosmos3OmniTransformer": COSMOS3,
    "HeliosTransformer3DModel": HELIOS,
    "HunyuanVideoFramepackTransformer3DModel": FRAMEPACK,
}
