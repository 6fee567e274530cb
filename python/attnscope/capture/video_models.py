"""The token layouts of video transformers of diffusers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .grids import patched
from .layouts import Layout, Sequences
from .tokens import Segment, argument_count, counted, grid_segment

Given = Mapping[str, Any]
NO_FUNCTION = "it computes its attention in operations of its own"


def video_of(x: torch.Tensor, patch: Sequence[int], **more: Any) -> Segment:
    """The video tokens of latents [B, C, T, H, W]."""
    return grid_segment("video", "video", patched(x.shape[2:], patch), **more)


def text_of(given: Given, name: str = "encoder_hidden_states", mask: str | None = None) -> Segment:
    """The text tokens of the argument `name` [B, N, C], their padding as the argument `mask` [B, N] tells."""
    valid = counted(given.get(mask)) if mask is not None else None
    return Segment("text", "text", argument_count(given, name), valid=valid)


def cubes(config: Any) -> tuple[int, int, int]:
    return (getattr(config, "patch_size_t", None) or 1, config.patch_size, config.patch_size)


# ---- LTX-2: video and audio, each with its text, and each with the other


def _ltx2(model: Any, a: Given) -> Sequences:
    dims = (a.get("num_frames"), a.get("height"), a.get("width"))
    video: list[Segment] = []
    if None not in dims:
        cell = tuple(model.config.vae_scale_factors)
        video = [grid_segment("video", "video", dims, cell=cell)]  # type: ignore[arg-type]
    sound = argument_count(a, "audio_hidden_states")
    return {
        "video": video or [Segment("video", "video", argument_count(a, "hidden_states"))],
        "audio": [Segment("audio", "audio", sound, (sound, 1, 1))],
        "text": [text_of(a, mask="encoder_attention_mask")],
        "audio_text": [text_of(a, "audio_encoder_hidden_states", "audio_encoder_attention_mask")],
    }


def _ltx2_idle(model: Any, a: Given) -> list[str]:
    idle = ["* audio_to_video_attn", "* video_to_audio_attn"] if a.get("isolate_modalities") else []
    perturbed = a.get("perturbation_mask")
    skips = perturbed is None or bool((perturbed == 0).all())  # of no item the attention is needed
    if model.config.perturbed_attn and skips:
        for block in a.get("spatio_temporal_guidance_blocks") or []:
            idle += [f"*transformer_blocks.{block} attn1", f"*transformer_blocks.{block} audio_attn1"]
    return idle


LTX2 = Layout(
    ("transformer_blocks",),
    _ltx2,
    {
        "* attn1": "video",
        "* audio_attn1": "audio",
        "* attn2": "video > text",
        "* audio_attn2": "audio > audio_text",
        "* audio_to_video_attn": "video > audio",
        "* video_to_audio_attn": "audio > video",
    },
    _ltx2_idle,
    masks={
        "* attn2": ("head_row", "encoder_attention_mask"),
        "* audio_attn2": ("head_row", "audio_encoder_attention_mask"),
    },
)


# ---- HunyuanVideo 1.5: video, then three encoders' tokens, what is valid of each before the padding


def _hunyuan15(model: Any, a: Given) -> Sequences:
    image = a["image_embeds"]
    masks = {
        "image": torch.full(image.shape[:2], not bool((image == 0).all())),
        "glyph_text": a["encoder_attention_mask_2"].bool().cpu(),
        "text": a["encoder_attention_mask"].bool().cpu(),
    }
    video = video_of(a["hidden_states"], cubes(model.config))
    return {
        "joint": [video, *valid_first(masks)],
        "text": [Segment("text", "text", masks["text"].shape[1], valid=counted(masks["text"]))],
    }


def valid_first(masks: Mapping[str, torch.Tensor]) -> list[Segment]:
    """Encoders' tokens [B, N], the valid ones of all first: segments, where items have as many of each."""
    modality = {"image": "image", "glyph_text": "text", "text": "text"}
    counts = {name: mask.sum(1).tolist() for name, mask in masks.items()}
    if any(len(set(c)) > 1 for c in counts.values()):
        total = sum(m.shape[1] for m in masks.values())
        return [Segment("condition", "other", total, valid=[sum(c) for c in zip(*counts.values())])]
    valid = [Segment(name, modality[name], counts[name][0]) for name in masks]
    padding = [Segment(f"{n}_padding", "padding", m.shape[1] - counts[n][0]) for n, m in masks.items()]
    return valid + padding


HUNYUAN15 = Layout(
    ("transformer_blocks",),
    _hunyuan15,
    {"*refiner_blocks.* *": "text", "* attn": "joint"},
    masks={"*": ("pairs", None)},
)


# ---- Wan and what grew from it


def _wan(model: Any, a: Given) -> dict[str, list[Segment]]:
    image = a.get("encoder_hidden_states_image")
    video = video_of(a["hidden_states"], model.config.patch_size)
    # Two pictures come as two items of each; they are one's keys.
    pictures = 0 if image is None else image.shape[0] * image.shape[1] // a["hidden_states"].shape[0]
    return {"video": [video], "text": [text_of(a)], "image": [Segment("image", "image", pictures)]}


_WAN_CALLS = {"* attn1": "video", "* attn2.image": "video > image", "* attn2": "video > text"}

SKYREELS2 = Layout(("blocks",), _wan, _WAN_CALLS)
CHRONOEDIT = Layout(("blocks",), _wan, _WAN_CALLS, guidance="forwards")


def _anyflow(model: Any, a: Given) -> Sequences:
    x = a["hidden_states"].transpose(1, 2)  # [B, T, C, H, W]
    image = Segment("image", "image", argument_count(a, "encoder_hidden_states_image"))
    return {"video": [video_of(x, model.config.patch_size)], "condition": [image, text_of(a)]}


ANYFLOW = Layout(
    ("blocks",), _anyflow, {"* attn1": "video", "* attn2": "video > condition"}, guidance="batch"
)


def _wan_vace(model: Any, a: Given) -> Sequences:
    control = patched(a["control_hidden_states"].shape[2:], model.config.patch_size)
    sequences = _wan(model, a)
    segment = grid_segment("control", "reference", control)
    missing = sequences["video"][0].count - segment.count
    return {**sequences, "control": [segment, Segment("control_padding", "padding", missing)]}


WAN_VACE = Layout(
    ("blocks",),
    _wan_vace,
    {
        "*vace_blocks.* attn1": "control",
        "*vace_blocks.* attn2.image": "control > image",
        "*vace_blocks.* attn2": "control > text",
        **_WAN_CALLS,
    },
)


def _wan_animate(model: Any, a: Given) -> Sequences:
    t, h, w = patched(a["hidden_states"].shape[2:], model.config.patch_size)
    reference = grid_segment("reference", "reference", (1, h, w))  # the first frame, which has no pose
    video = grid_segment("video", "video", (t - 1, h, w))
    return {
        **_wan(model, a),
        "video": [reference, video],
        "frame": [grid_segment("frame", "video", (1, h, w))],
        "frames": [grid_segment("frames", "video", (t, 1, 1))],
        "face": [Segment("face", "reference", model.config.face_encoder_num_heads + 1)],
    }


WAN_ANIMATE = Layout(
    ("blocks",),
    _wan_animate,
    {"*face_adapter.* *": "frame > face", **_WAN_CALLS},
    times={"*face_adapter.* *": "frames"},
)


# ---- Kandinsky 5: with sparse attention its tokens stand in tiles


def _kandinsky5(model: Any, a: Given) -> Sequences:
    grid = patched(a["hidden_states"].shape[1:4], model.config.patch_size)  # [B, T, H, W, C]
    tiled = (a.get("sparse_params") or {}).get("to_fractal")
    order = {"tiles": [1, 8, 8]} if tiled else "raster"
    return {"video": [grid_segment("video", "video", grid, order=order)], "text": [text_of(a)]}


KANDINSKY5 = Layout(
    ("visual_transformer_blocks",),
    _kandinsky5,
    {
        "*text_transformer_blocks.* self_attention": "text",
        "* self_attention": "video",
        "* cross_attention": "video > text",
    },
    guidance="forwards",
)


# ---- Kandinsky 6: video and sound, each with its text, and each with the other


def _kandinsky6(model: Any, a: Given) -> Sequences:
    t, h, w = patched(a["hidden_states"].shape[1:4], model.config.patch_size)  # [B, T, H, W, C]
    frames = a.get("visual_token_type_ids")  # [B, T]: 1 where the frame is the picture to begin with, the last
    references = 0 if frames is None else int((frames[0] == 1).sum())
    if references and not bool((frames[:, t - references :] == 1).all()):
        raise ValueError("the frames of the reference are not the last")
    sound = argument_count(a, "audio_hidden_states")
    video = [grid_segment("video", "video", (t - references, h, w))]
    return {
        "video": [*video, grid_segment("reference", "reference", (references, h, w))],
        "audio": [Segment("audio", "audio", sound, (sound, 1, 1))],
        "text": [text_of(a, mask="encoder_attention_mask")],
    }


KANDINSKY6 = Layout(
    ("visual_transformer_blocks",),
    _kandinsky6,
    {
        "*video_text_transformer_blocks.* *": "text",
        "*audio_text_transformer_blocks.* *": "text",
        "* video_dec_block.self_attention": "video",
        "* video_dec_block.cross_attention": "video > text",
        "* audio_dec_block.self_attention": "audio",
        "* audio_dec_block.cross_attention": "audio > text",
        "* va_cross_attention": "video > audio",
        "* av_cross_attention": "audio > video",
    },
    lambda model, a: ["* audio_dec_block.*", "* ??_cross_attention"] if a.get("audio_hidden_states") is None else [],
    masks={
        pattern: ("row", "encoder_attention_mask")
        for pattern in ("*text_transformer_blocks.* *", "*_dec_block.cross_attention")
    },
)


# ---- Kandinsky 6's super-resolution: a part of the picture an item, its tokens in tiles


def _kandinsky6_sr(model: Any, a: Given) -> Sequences:
    grid = patched(a["hidden_states"].shape[1:4], model.config.patch_size)  # [B, T, H, W, C]
    return {"video": [grid_segment("video", "video", grid, order={"tiles": [1, 8, 8]})]}


KANDINSKY6_SR = Layout(
    ("visual_transformer_blocks",), _kandinsky6_sr, {"* *": "video"}, unsized="blocks that are chosen from q and k"
)


# ---- Cosmos 1, 2 and 2.5: the last attends to an image in a call of its own


def _cosmos(model: Any, a: Given) -> Sequences:
    words = a["encoder_hidden_states"]
    text, image = words if isinstance(words, tuple) else (words, None)
    return {
        "video": [video_of(a["hidden_states"], model.config.patch_size)],
        "text": [Segment("text", "text", text.shape[1], valid=counted(a.get("attention_mask")))],
        "image": [Segment("image", "image", 0 if image is None else image.shape[1])],
    }


COSMOS = Layout(
    ("transformer_blocks",),
    _cosmos,
    {"* attn1": "video", "* attn2": "video > text", "* attn2.2": "video > image"},
    guidance="forwards",
)


# ---- video and text, in one sequence or in two


def _allegro(model: Any, a: Given) -> Sequences:
    video = video_of(a["hidden_states"], cubes(model.config))
    return {"video": [video], "text": [text_of(a, mask="encoder_attention_mask")]}


ALLEGRO = Layout(
    ("transformer_blocks",),
    _allegro,
    {"* attn1": "video", "* attn2": "video > text"},
    guidance="batch",
    masks={"* attn2": ("head_row", "encoder_attention_mask")},
)


def _easyanimate(model: Any, a: Given) -> Sequences:
    t5 = Segment("t5_text", "text", argument_count(a, "encoder_hidden_states_t5"))
    return {"joint": [text_of(a), t5, video_of(a["hidden_states"], cubes(model.config))]}


EASYANIMATE = Layout(("transformer_blocks",), _easyanimate, {"* attn1": "joint"}, guidance="batch")


def _consisid(model: Any, a: Given) -> Sequences:
    x, p = a["hidden_states"], model.config.patch_size  # [B, T, C, H, W]
    video = grid_segment("video", "video", (x.shape[1], x.shape[3] // p, x.shape[4] // p))
    return {"joint": [text_of(a), video]}


CONSISID = Layout(
    ("transformer_blocks",),
    _consisid,
    {"* attn1": "joint"},
    unseen={"*local_facial_extractor.* *": NO_FUNCTION, "*perceiver_cross_attention.* *": NO_FUNCTION},
    guidance="batch",
)


def _motif(model: Any, a: Given) -> Sequences:
    video = video_of(a["hidden_states"], cubes(model.config))
    text = text_of(a, mask="encoder_attention_mask")
    sequences = {
        "joint": [video, Segment("image", "image", argument_count(a, "image_embeds")), text],
        "video": [video],
        "text": [text],
    }
    # The last blocks decode: their tokens, and in the text's place those of the encoder before them.
    encoder = grid_segment("encoder_video", "video", video.grid)  # type: ignore[arg-type]
    first = model.config.num_single_layers - model.config.num_decoder_layers
    for block in range(first, model.config.num_single_layers):
        sequences[f"*single_transformer_blocks.{block} decoder"] = [video, encoder]
    return sequences


MOTIF = Layout(
    ("transformer_blocks", "single_transformer_blocks"),
    _motif,
    {"* cross_attn": "video > text", "* attn": "decoder | joint"},
    masks={"* cross_attn": ("row", "encoder_attention_mask"), "* attn": ("row", "encoder_attention_mask")},
)


def _sana_video(model: Any, a: Given) -> Sequences:
    video = video_of(a["hidden_states"], model.config.patch_size)
    return {"video": [video], "text": [text_of(a, mask="encoder_attention_mask")]}


SANA_VIDEO = Layout(
    ("transformer_blocks",),
    _sana_video,
    {"* attn1": "video", "* attn2": "video > text"},
    unseen_compiled={"* attn1": "linear attention in operations of its own, of which compiled code tells nothing"},
    guidance="batch",
    linear={"* attn1": True},
    masks={"* attn2": ("head_row", "encoder_attention_mask")},
)

# ---- SANA-WM: softmax in some blocks, a recurrence in the others


def _sana_wm(model: Any, a: Given) -> Sequences:
    mask = a["mask"] if a.get("mask") is not None else a.get("encoder_attention_mask")
    text = Segment("text", "text", a["encoder_hidden_states"].shape[2], valid=counted(mask))  # [B, 1, N, C]
    return {"video": [video_of(a["hidden_states"], model.patch_size)], "text": [text]}


_RECURRENCE = "a gated delta rule over the frames, which no map of q and k tells"

SANA_WM = Layout(
    ("blocks",),
    _sana_wm,
    {"* attn.attn": "video", "* attn.cam_attn": "video", "* cross_attn": "video > text"},
    lambda model, a: ["* attn.cam_attn"] if a.get("camera_conditions") is None else [],
    no_maps={"SanaWMBidirectionalGDNAttention": _RECURRENCE, "SanaWMBidirectionalGDNCamAttention": _RECURRENCE},
    unsized="heads of modules without weights",
)

VIDEO_LAYOUTS = {
    "AllegroTransformer3DModel": ALLEGRO,
    "AnyFlowTransformer3DModel": ANYFLOW,
    "ChronoEditTransformer3DModel": CHRONOEDIT,
    "ConsisIDTransformer3DModel": CONSISID,
    "CosmosTransformer3DModel": COSMOS,
    "EasyAnimateTransformer3DModel": EASYANIMATE,
    "HunyuanVideo15Transformer3DModel": HUNYUAN15,
    "Kandinsky5Transformer3DModel": KANDINSKY5,
    "Kandinsky6SRTransformer3DModel": KANDINSKY6_SR,
    "Kandinsky6Transformer3DModel": KANDINSKY6,
    "LTX2VideoTransformer3DModel": LTX2,
    "MotifVideoTransformer3DModel": MOTIF,
    "SanaVideoTransformer3DModel": SANA_VIDEO,
    "SanaWMTransformer3DModel": SANA_WM,
    "SkyReelsV2Transformer3DModel": SKYREELS2,
    "WanAnimateTransformer3DModel": WAN_ANIMATE,
    "WanVACETransformer3DModel": WAN_VACE,
}
