"""The token layouts of image transformers of diffusers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from .layouts import Layout, Sequences
from .tokens import Segment, argument_count, counted, grid_segment
from .video_models import Given, text_of


def pictures_of(ids: torch.Tensor) -> list[Segment]:
    """The picture, then reference pictures, by the positions [N, 3 or 4] (picture, row, column …) of their
    tokens. A picture has a grid where its tokens are in raster order."""
    ids = (ids[0] if ids.ndim == 3 else ids).round().long().cpu()
    runs = torch.unique_consecutive(ids[:, 0], return_counts=True)[1].tolist()
    segments = []
    for n, part in enumerate(ids.split(runs)):
        name, modality = ("image", "image") if n == 0 else (f"reference_{n}", "reference")
        rows, columns = part[:, 1] - part[0, 1], part[:, 2] - part[0, 2]
        width = int(columns.max()) + 1
        raster = torch.equal(rows * width + columns, torch.arange(len(part)))
        grid = (1, len(part) // width, width) if raster and len(part) % width == 0 else None
        segments.append(Segment(name, modality, len(part), grid))
    return segments


# ---- Flux's kin: text, the picture, reference pictures

TWO_STACKS = ("transformer_blocks", "single_transformer_blocks")


def _text_and_pictures(model: Any, a: Given) -> Sequences:
    if a.get("kv_cache_mode") is not None:  # reference pictures are attended to in calls of their own
        return {}
    return {"joint": [text_of(a), *pictures_of(a["img_ids"])]}


FLUX2 = Layout(TWO_STACKS, _text_and_pictures, {"* attn": "joint"})  # its pipelines name branches
BRIA = Layout(TWO_STACKS, _text_and_pictures, {"* attn": "joint"}, guidance="batch")


def _bria_fibo(model: Any, a: Given) -> Sequences:
    mask = (a.get("joint_attention_kwargs") or {}).get("attention_mask")  # [B, 1, 1, N]
    text = text_of(a)
    if mask is not None and mask.is_floating_point():  # added to the scores, as pipelines before diffusers 0.42 give it
        mask = mask == 0
    valid = None if mask is None else counted(mask[:, 0, 0, : text.count])
    return {"joint": [replace(text, valid=valid), *pictures_of(a["img_ids"])]}


BRIA_FIBO = Layout(
    TWO_STACKS, _bria_fibo, {"* attn": "joint"}, guidance="batch", masks={"* attn": ("row", "joint_attention_kwargs")}
)


def _chroma(model: Any, a: Given) -> Sequences:
    mask, text = a.get("attention_mask"), text_of(a)
    valid = counted(mask[:, : text.count]) if isinstance(mask, torch.Tensor) else None
    return {"joint": [replace(text, valid=valid), *pictures_of(a["img_ids"])]}


CHROMA = Layout(
    TWO_STACKS, _chroma, {"* attn": "joint"}, guidance="forwards", masks={"* attn": ("pairs", "attention_mask")}
)


def _qwen(model: Any, a: Given) -> Sequences:
    shapes = a["img_shapes"]
    first = (
        shapes[0]
        if isinstance(shapes[0], (list, tuple)) and isinstance(shapes[0][0], (list, tuple))
        else shapes
    )
    if any(s != shapes[0] for s in shapes) and first is shapes[0]:
        return {}  # items of other pictures: no segments that hold for all
    layered = bool(model.config.use_layer3d_rope)  # its layers, and then the picture that has them
    pictures = []
    for n, grid in enumerate(first):
        last = n == len(first) - 1
        if layered:
            name, modality = ("reference_1", "reference") if last and n else (f"layer_{n}", "image")
        else:
            name, modality = ("image", "image") if n == 0 else (f"reference_{n}", "reference")
        pictures.append(grid_segment(name, modality, tuple(grid)))
    return {"joint": [text_of(a, mask="encoder_hidden_states_mask"), *pictures]}


QWEN_IMAGE = Layout(
    ("transformer_blocks",),
    _qwen,
    {"* attn": "joint"},
    masks={"* attn": ("row", "encoder_hidden_states_mask")},
)

Z_IMAGE_MULTIPLE = 32  # to which each picture and each caption is padded


def _z_image(model: Any, a: Given) -> Sequences:
    images, captions = a["x"], a["cap_feats"]
    if isinstance(images[0], list) or any(i.shape != images[0].shape for i in images):
        return {}  # several pictures an item, or items of several sizes
    patch, frames = a.get("patch_size", 2), a.get("f_patch_size", 1)
    _, t, h, w = images[0].shape
    image = grid_segment("image", "image", (t // frames, h // patch, w // patch))
    padding = Segment("image_padding", "padding", -image.count % Z_IMAGE_MULTIPLE)
    lengths = [len(c) for c in captions]
    longest = max(n + -n % Z_IMAGE_MULTIPLE for n in lengths)
    text = Segment("text", "text", longest, valid=lengths)
    return {"joint": [image, padding, text], "image": [image, padding], "text": [text]}


Z_IMAGE = Layout(
    ("layers",),
    _z_image,
    {"*noise_refiner.* *": "image", "*context_refiner.* *": "text", "*layers.* *": "joint"},
    masks={"*": ("uneven", None)},
)


def _lumina2(model: Any, a: Given) -> Sequences:
    x, p = a["hidden_states"], model.config.patch_size
    image = grid_segment("image", "image", (1, x.shape[2] // p, x.shape[3] // p))
    text = text_of(a, mask="encoder_attention_mask")
    sequences = {"image": [image], "text": [text]}
    used = a["encoder_attention_mask"].sum(1).tolist()
    if len(set(used)) == 1:  # valid text, then the picture; of items with other counts it stands elsewhere
        sequences["joint"] = [Segment("text", "text", int(used[0])), image]
    return sequences


LUMINA2 = Layout(
    ("layers",),
    _lumina2,
    {"*noise_refiner.* *": "image", "*context_refiner.* *": "text", "*layers.* *": "joint"},
    guidance="forwards",
    masks={"*context_refiner.* *": ("row", "encoder_attention_mask")},
)


def _auraflow(model: Any, a: Given) -> Sequences:
    x, p = a["hidden_states"], model.config.patch_size
    image = grid_segment("image", "image", (1, x.shape[2] // p, x.shape[3] // p))
    registers = Segment("registers", "register", model.register_tokens.shape[1])
    return {"joint": [registers, text_of(a), image]}


AURAFLOW = Layout(
    ("joint_transformer_blocks", "single_transformer_blocks"),
    _auraflow,
    {"* attn": "joint"},
    guidance="batch",
)


def _pixart(model: Any, a: Given) -> Sequences:
    x, p = a["hidden_states"], model.config.patch_size
    image = grid_segment("image", "image", (1, x.shape[2] // p, x.shape[3] // p))
    return {"image": [image], "text": [text_of(a, mask="encoder_attention_mask")]}


PIXART = Layout(
    ("transformer_blocks",),
    _pixart,
    {"* attn1": "image", "* attn2": "image > text"},
    guidance="batch",
    masks={"* attn2": ("head_row", "encoder_attention_mask")},
)

# ---- SANA: linear attention to the picture


SANA = Layout(
    ("transformer_blocks",),
    _pixart,
    {"* attn1": "image", "* attn2": "image > text"},
    unseen_compiled={"* attn1": "linear attention in operations of its own, of which compiled code tells nothing"},
    guidance="batch",
    masks={"* attn2": ("head_row", "encoder_attention_mask")},
    linear={"* attn1": False},
)

# ---- U-Nets: a level of half the resolution a down block


def _levels(model: Any, height: int, width: int) -> dict[str, tuple[int, int, int]]:
    """The grid of each part of a U-Net by its name, of latents of this size."""
    count, grids = len(model.down_blocks), {}
    for level, block in enumerate(model.down_blocks):
        grids[f"down_blocks.{level}."] = (1, height, width)
        grids[f"up_blocks.{count - 1 - level}."] = (1, height, width)
        grids["mid_block."] = (1, height, width)
        if getattr(block, "downsamplers", None) is not None:
            height, width = -(-height // 2), -(-width // 2)
    return grids


def _unet(model: Any, a: Given) -> dict[str, Sequence[Segment]]:
    x = a["sample"]  # [B, C, H, W], [B, C, F, H, W]
    grids = _levels(model, *x.shape[-2:])
    sequences = {f"*{part}* image": [grid_segment("image", "image", g)] for part, g in grids.items()}
    return {**sequences, "text": [text_of(a, mask="encoder_attention_mask")]}


# The model itself projects an IP adapter's image prompt to keys: how many there are is not told.
ADAPTED = {"* attn2.image*": "image > image_prompt"}
UNET = Layout((), _unet, {"* attn1": "image", "* attn2": "image > text", **ADAPTED}, guidance="batch")


def _framed(name: str, frames: int) -> list[Segment]:
    """The frames of one place of the picture."""
    return [grid_segment(name, "video", (frames, 1, 1))]


def _motion_unet(model: Any, a: Given) -> Sequences:
    height, width = a["sample"].shape[-2:]
    first = {"*transformer_in* image": [grid_segment("image", "image", (1, height, width))]}
    return {**first, **_unet(model, a), "frames": _framed("frames", a["sample"].shape[2])}


MOTION_UNET = Layout(
    (),
    _motion_unet,
    {
        "*motion_modules.* *": "frames",
        "*temp_attentions.* *": "frames",
        "*transformer_in.* *": "frames",
        "* attn1": "image",
        "* attn2": "image > text",
        **ADAPTED,
    },
    guidance="batch",
    times={
        "*motion_modules.* *": "image",
        "*temp_attentions.* *": "image",
        "*transformer_in.* *": "image",
        "* attn?": "frames",
    },
)


def _video_diffusion(model: Any, a: Given) -> Sequences:
    x = a["sample"]  # [B, F, C, H, W]
    pictures = {k: v for k, v in _unet(model, a).items() if k != "text"}
    words = [Segment("image_embedding", "image", argument_count(a, "encoder_hidden_states"))]
    return {**pictures, "frames": _framed("frames", x.shape[1]), "embedding": words}


VIDEO_DIFFUSION_UNET = Layout(
    (),
    _video_diffusion,
    {
        "*temporal_transformer_blocks.* attn1": "frames",
        "*temporal_transformer_blocks.* attn2": "frames > embedding",
        "* attn1": "image",
        "* attn2": "image > embedding",
    },
    guidance="batch",
    times={"*temporal_transformer_blocks.* *": "image", "* attn?": "frames"},
)

IMAGE_LAYOUTS: Mapping[str, Layout] = {
    "AuraFlowTransformer2DModel": AURAFLOW,
    "BriaFiboTransformer2DModel": BRIA_FIBO,
    "BriaTransformer2DModel": BRIA,
    "ChromaTransformer2DModel": CHROMA,
    "Flux2Transformer2DModel": FLUX2,
    "LongCatImageTransformer2DModel": FLUX2,
    "Lumina2Transformer2DModel": LUMINA2,
    "OvisImageTransformer2DModel": FLUX2,
    "PixArtTransformer2DModel": PIXART,
    "QwenImageTransformer2DModel": QWEN_IMAGE,
    "SanaTransformer2DModel": SANA,
    "UNet2DConditionModel": UNET,
    "UNet3DConditionModel": MOTION_UNET,
    "UNetMotionModel": MOTION_UNET,
    "UNetSpatioTemporalConditionModel": VIDEO_DIFFUSION_UNET,
    "ZImageTransformer2DModel": Z_IMAGE,
}
