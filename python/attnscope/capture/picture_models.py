"""The token layouts of image transformers of diffusers from 2025 and 2026 that are no kin of Flux."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from .grids import patched
from .image_models import pictures_of
from .layouts import Layout, Sequences
from .tokens import Modality, Segment, argument_count, counted, grid_segment
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

# ---- Nucleus: the picture asks itself and the text, which asks nothing


def _nucleus(model: Any, a: Given) -> Sequences:
    image = grid_segment("image", "image", tuple(a["img_shapes"][0]))
    return {"image": [image], "all": [image, text_of(a, mask="encoder_hidden_states_mask")]}


NUCLEUS = Layout(
    ("transformer_blocks",),
    _nucleus,
    {"* attn": "image in all"},
    guidance="forwards",
    masks={"*": ("row", "encoder_hidden_states_mask")},
)

# ---- Ideogram 4: text that is padded at the left, then the picture

_IDEOGRAM_IMAGE, _IDEOGRAM_TEXT = 2, 3  # what `indicator` [B, N] calls them; padding is 0


def _ideogram4(model: Any, a: Given) -> Sequences:
    kinds = a["indicator"].cpu()
    pictures = (kinds == _IDEOGRAM_IMAGE).all(0)
    start = len(pictures) - int(pictures.sum())
    if not bool(pictures[start:].all()):
        raise ValueError("the picture is not the end of every item")
    image = pictures_of(a["position_ids"][:1, start:])
    words = (kinds == _IDEOGRAM_TEXT)[:, :start]
    counts = set(words.sum(1).tolist())
    if len(counts) > 1:
        return {"joint": [Segment("text", "text", start, valid=words), *image]}
    count = counts.pop()
    return {"joint": [Segment("padding", "padding", start - count), Segment("text", "text", count), *image]}


IDEOGRAM4 = Layout(("layers",), _ideogram4, {"* attention": "joint"}, masks={"*": ("segments", "segment_ids")})

# ---- JoyImage: the picture, pictures to edit, text


def _joyimage(model: Any, a: Given) -> Sequences:
    x, patch = a["hidden_states"], model.config.patch_size  # [B, n, C, T, H, W], the picture last; or [B, C, T, H, W]
    grid = patched(x.shape[-3:], patch)
    others = x.shape[1] - 1 if x.ndim == 6 else 0
    return {"joint": [*_numbered([grid] * (1 + others)), text_of(a)]}


def _numbered(grids: Sequence[tuple[int, int, int]]) -> list[Segment]:
    """The picture, then reference pictures, in these grids."""
    references = [grid_segment(f"reference_{n}", "reference", grid) for n, grid in enumerate(grids[1:], 1)]
    return [grid_segment("image", "image", grids[0]), *references]


def _joyimage_plus(model: Any, a: Given) -> Sequences:
    grids = a["shape_list"]
    if any(list(item) != list(grids[0]) for item in grids):
        return {}  # items of other pictures: no segments that hold for all
    pictures = _numbered([tuple(grid) for grid in grids[0]])
    missing = a["hidden_states"].shape[1] - sum(s.count for s in pictures)
    text = text_of(a, mask="encoder_hidden_states_mask")
    return {"joint": [*pictures, Segment("padding", "padding", missing), text]}


JOYIMAGE = Layout(("double_blocks",), _joyimage, {"* attn": "joint"}, guidance="forwards")
JOYIMAGE_PLUS = Layout(
    ("double_blocks",),
    _joyimage_plus,
    {"* attn": "joint"},
    guidance="batch",
    masks={"*": ("row", "encoder_hidden_states_mask")},
)

# ---- FIBO 2: the gist of the text, the picture, pictures to edit; some blocks ask the text as well


def _bria_fibo2(model: Any, a: Given) -> Sequences:
    patch, config = model.config.patch_size, model.config
    pictures = _numbered(
        [(1, x.shape[2] // patch, x.shape[3] // patch) for x in (a["hidden_states"], *(a.get("context_latents") or []))]
    )
    mask, words = a.get("encoder_attention_mask"), a["encoder_hidden_states"]  # [B, bundles, N, C]
    text = Segment("text", "text", words.shape[2], valid=counted(mask))
    lengths = [words.shape[2]] * words.shape[0] if mask is None else mask.sum(1).tolist()
    counts = [_gist_count(config, length) for length in lengths]
    gist = Segment("gist", "other", max(counts))
    if min(counts) < max(counts):
        gist = replace(gist, valid=counts)
        joint = [*pictures, gist]
    else:
        joint = [gist, *pictures]
    return {"joint": joint, "pictures": pictures, "gist": [gist], "text": [text]}


def _gist_count(config: Any, length: int) -> int:
    """How many tokens the gist of a text of `length` tokens has (compute_gist_count() of diffusers)."""
    shortest, longest = config.gist_min_text_len, config.gist_max_text_len
    share = min(1.0, max(0.0, (length - shortest) / (longest - shortest)))
    least, most = config.min_num_gist_tokens, config.max_num_gist_tokens
    count = math.ceil((least + share * (most - least)) / config.gist_step) * config.gist_step
    return max(least, min(most, count))


BRIA_FIBO2 = Layout(
    ("layers",),
    _bria_fibo2,
    {
        "*noise_refiner.* *": "pictures",
        "*perceiver.layers.* cross_attention": "gist > text",
        "*perceiver.layers.* self_attention": "gist",
        "* cross_attention": "joint > text",
        "* attention": "joint",
    },
    guidance="forwards",
    masks={"* cross_attention": ("row", "encoder_attention_mask"), "* *attention": ("uneven", None)},
)

# ---- HiDream: the picture, T5's text, the last layer of Llama's text, and that of a layer of its own for each block


def _hidream(model: Any, a: Given) -> Sequences:
    p, llama = model.config.patch_size, a["encoder_hidden_states_llama3"]
    if a.get("hidden_states_masks") is None:
        height, width = (n // p for n in a["hidden_states"].shape[2:])
        padded = height * width if height == width else model.max_seq
    else:
        sizes = torch.as_tensor(a["img_sizes"]).tolist()
        if any(size != sizes[0] for size in sizes):
            return {}  # items of other pictures: no segments that hold for all
        (height, width), padded = sizes[0], a["hidden_states"].shape[1]
    image = grid_segment("image", "image", (1, int(height), int(width)))
    t5 = Segment("t5_text", "text", argument_count(a, "encoder_hidden_states_t5"))
    words = llama[model.config.llama_layers[0]].shape[-2]
    llama_text = [Segment(name, "text", words) for name in ("llama_text", "layer_text")]
    return {"joint": [image, Segment("padding", "padding", padded - image.count), t5, *llama_text]}


HIDREAM = Layout(
    ("double_stream_blocks", "single_stream_blocks"), _hidream, {"* block.attn1": "joint"}, guidance="batch"
)

# ---- OmniGen: text with pictures in it, the time, the picture


def _omnigen(model: Any, a: Given) -> Sequences:
    p, spans = model.config.patch_size, a["input_image_sizes"] or {}
    x, ids = a["hidden_states"], a.get("input_ids")
    made = [Segment("time", "register", 1), grid_segment("image", "image", (1, x.shape[2] // p, x.shape[3] // p))]
    if ids is None:
        return {"joint": made}
    count, items = ids.shape[1], ids.shape[0]
    seen = a["attention_mask"][:, -1, :count]  # by the picture: prompts are padded at the left
    own = [[tuple(span) for span in spans.get(item, [])] for item in range(items)]
    if any(places != own[0] for places in own):
        return {"joint": [_seen_words("condition", "other", seen), *made]}
    segments: list[Segment] = []
    at = 0
    for number, (first, end) in enumerate(sorted(own[0]), 1):
        latents = a["input_img_latents"][own[0].index((first, end))]
        cells = (1, latents.shape[-2] // p, latents.shape[-1] // p)
        reference = grid_segment(f"reference_{number}", "reference", cells)
        segments += [_seen_words(f"text_{number}", "text", seen[:, at:first]), reference]
        at = end
    segments.append(_seen_words(f"text_{len(own[0]) + 1}" if own[0] else "text", "text", seen[:, at:]))
    return {"joint": [*segments, *made]}


def _seen_words(name: str, modality: Modality, seen: torch.Tensor) -> Segment:
    """Tokens with the mask `seen` [B, N]; where it has 0, they are padding."""
    return Segment(name, modality, seen.shape[1], valid=None if bool(seen.all()) else counted(seen))


OMNIGEN = Layout(("layers",), _omnigen, {"* self_attn": "joint"}, unsized="masks of words and pictures")

# ---- Qwen-Image 2.1: words with pictures in them, then the picture; without flex a call for each of these

_QWEN_SLOT = 4  # tokens of a picture for each slot that the text encoder has for it
_FLEX_MULTIPLE = 128  # to which its flex kernel pads


def _qwen_image21(model: Any, a: Given) -> Sequences:
    grids = a["img_shapes"][0]  # of all items, as the model takes it
    slots, mask = a["img_mask"][0].cpu(), a.get("encoder_hidden_states_mask")
    image, *references = _numbered([tuple(grids[-1]), *(tuple(grid) for grid in grids[:-1])])
    pictures = [*references, image]
    segments: list[Segment] = []
    at, left = 0, 0
    while at < len(slots):
        words = int(slots[at:].int().argmax())  # the picture that is made ends the row
        if words:
            valid = counted(mask[:, at : at + words]) if mask is not None else None
            segments.append(Segment(f"text_{left + 1}", "text", words, valid=valid))
            at += words
        segments.append(pictures[left])
        at += pictures[left].count // _QWEN_SLOT
        left += 1
    if sum(s.modality == "text" for s in segments) == 1:
        segments = [replace(s, name="text") if s.modality == "text" else s for s in segments]
    if a.get("kv_cache_mode") == "cached":
        return {"joint": segments, "asked": segments[-1:]}
    if _is_flex(model):
        segments.append(Segment("padding", "padding", -sum(s.count for s in segments) % _FLEX_MULTIPLE))
    return {"joint": segments, "asked": segments}


def _is_flex(model: Any) -> bool:
    return "Flex" in type(model.transformer_blocks[0].attn.processor).__name__


def _qwen_image21_pieces(model: Any, a: Given) -> int:
    if a.get("kv_cache_mode") == "cached" or _is_flex(model):
        return 1
    return len(_qwen_image21(model, a)["joint"])


QWEN_IMAGE21 = Layout(
    ("transformer_blocks",),
    _qwen_image21,
    {"* attn": "asked in joint"},
    unsized="masks of words and pictures",
    pieces=_qwen_image21_pieces,
)

PICTURE_LAYOUTS = {
    "BriaFibo2Transformer2DModel": BRIA_FIBO2,
    "CogView3PlusTransformer2DModel": COGVIEW3,
    "CogView4Transformer2DModel": COGVIEW4,
    "ErnieImageTransformer2DModel": ERNIE_IMAGE,
    "Flux3Transformer2DModel": FLUX3,
    "GlmImageTransformer2DModel": GLM_IMAGE,
    "HiDreamImageTransformer2DModel": HIDREAM,
    "HunyuanImageTransformer2DModel": HUNYUAN_IMAGE,
    "Ideogram4Transformer2DModel": IDEOGRAM4,
    "JoyImageEditPlusTransformer3DModel": JOYIMAGE_PLUS,
    "JoyImageEditTransformer3DModel": JOYIMAGE,
    "Krea2Transformer2DModel": KREA2,
    "NucleusMoEImageTransformer2DModel": NUCLEUS,
    "OmniGenTransformer2DModel": OMNIGEN,
    "PRXTransformer2DModel": PRX,
    "QwenImage21Transformer2DModel": QWEN_IMAGE21,
}
