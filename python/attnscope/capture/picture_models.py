"""The token layouts of image transformers of diffusers from 2025 and 2026 that are no kin of Flux."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .image_models import pictures_of
from .layouts import Layout, Sequences
from .tokens import Segment, grid_segment
from .video_models import Given, text_of, valid_first

# ---- HunyuanImage 2.1: the picture, then what is valid of two encoders, the glyphs first, then their padding


def _hunyuan_image(model: Any, a: Given) -> Sequences:
    sizes, patch = a["hidden_states"].shape[2:], model.config.patch_size
    cells = [n // p for n, p in zip(sizes, patch)]
    image = grid_segment("image", "image", (1, *cells)[-3:])  # type: ignore[arg-type]
    text = text_of(a, mask="encoder_attention_mask")
    words = [text]
    if a.get("encoder_hidden_states_2") is not None:
        masks = {"glyph_text": a["encoder_attention_mask_2"], "text": a["encoder_attention_mask"]}
        words = valid_first({name: mask.bool().cpu() for name, mask in masks.items()})
    return {"joint": [image, *words], "text": [text]}


HUNYUAN_IMAGE = Layout(
    ("transformer_blocks", "single_transformer_blocks"),
    _hunyuan_image,
    {"*refiner_blocks.* *": "text", "* attn": "joint"},
    masks={
        "*refiner_blocks.* *": ("dense", "encoder_attention_mask"),
        "* attn": ("row", "encoder_attention_mask"),
    },
)

# ---- Krea 2: text of which each token's states, one a layer of the encoder, attend to each other first


def _krea2(model: Any, a: Given) -> Sequences:
    text = text_of(a, mask="encoder_attention_mask")
    layers = Segment("text_layers", "other", a["encoder_hidden_states"].shape[2])
    pictures = pictures_of(a["position_ids"][text.count :])
    return {"joint": [text, *pictures], "text": [text], "layers": [layers]}


KREA2 = Layout(
    ("transformer_blocks",),
    _krea2,
    {"*layerwise_blocks.* *": "layers", "*refiner_blocks.* *": "text", "* attn": "joint"},
    guidance="forwards",
    masks={
        "*refiner_blocks.* *": ("row", "encoder_attention_mask"),
        "*transformer_blocks.* *": ("row", "encoder_attention_mask"),
    },
    times={"*layerwise_blocks.* *": "text"},
    positions={"joint": "position_ids"},
)

# ---- FLUX.3: text, the picture and references in blocks of their own, then all of them


def _flux3(model: Any, a: Given) -> Sequences:
    parts = [ids for ids in (a["img_ids"], a.get("image_cond_ids")) if ids is not None]
    # Positions are (t, row, column, picture); neighbouring rows and columns are a half apart.
    image, *references = pictures_of(torch.cat(parts)[:, [3, 1, 2]] * 2)
    return {"joint": [text_of(a), image, *references], "text": [text_of(a)], "image": [image], "references": references}


FLUX3 = Layout(
    ("single_transformer_blocks",),
    _flux3,
    {
        "*txt_mode_blocks.* *": "text",
        "*mode_blocks.image.* *": "image",
        "*mode_blocks.image_cond.* *": "references",
        "*single_transformer_blocks.* *": "joint",
    },
    lambda model, a: ["*mode_blocks.image_cond.* *"] if a.get("image_cond_hidden_states") is None else [],
)

# ---- ERNIE-Image, PRX, CogView, GLM-Image: a picture of latents [B, C, H, W], and text


def _picture_and_text(model: Any, a: Given, **of_text: Any) -> tuple[Segment, Segment]:
    x, p = a["hidden_states"], model.config.patch_size
    return grid_segment("image", "image", (1, x.shape[2] // p, x.shape[3] // p)), text_of(a, **of_text)


def _ernie_image(model: Any, a: Given) -> Sequences:
    image, _ = _picture_and_text(model, a)
    return {"joint": [image, Segment("text", "text", a["text_bth"].shape[1], valid=a["text_lens"].tolist())]}


def _prx(model: Any, a: Given) -> Sequences:
    image, text = _picture_and_text(model, a, mask="attention_mask")
    return {"image": [image], "all": [text, image]}


def _cogview(model: Any, a: Given) -> Sequences:
    image, text = _picture_and_text(model, a)
    return {"joint": [text, image]}


ERNIE_IMAGE = Layout(
    ("layers",), _ernie_image, {"* self_attention": "joint"}, guidance="batch", masks={"*": ("row", None)}
)
PRX = Layout(
    ("blocks",), _prx, {"* attention": "image in all"}, guidance="batch", masks={"*": ("row", "attention_mask")}
)
COGVIEW3 = Layout(("transformer_blocks",), _cogview, {"* attn1": "joint"}, guidance="batch")
COGVIEW4 = Layout(("transformer_blocks",), _cogview, {"* attn1": "joint"})


def _writes_cache(a: Given) -> bool:
    caches = a.get("kv_caches")
    return caches is not None and caches[0].mode == "write"


GLM_IMAGE = replace(COGVIEW4, aside=_writes_cache)  # references are cached keys

PICTURE_LAYOUTS = {
    "CogView3PlusTransformer2DModel": COGVIEW3,
    "CogView4Transformer2DModel": COGVIEW4,
    "ErnieImageTransformer2DModel": ERNIE_IMAGE,
    "Flux3Transformer2DModel": FLUX3,
    "GlmImageTransformer2DModel": GLM_IMAGE,
    "HunyuanImageTransformer2DModel": HUNYUAN_IMAGE,
    "Krea2Transformer2DModel": KREA2,
    "PRXTransformer2DModel": PRX,
}
