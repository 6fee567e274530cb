"""The token layouts of encoders of transformers: of sound, of pictures, of video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .layouts import Layout, Sequences
from .tokens import Segment, argument_count, grid_segment
from .video_models import Given


def _whisper(model: Any, a: Given) -> Sequences:
    sound = model.config.max_source_positions
    return {
        "audio": [Segment("audio", "audio", sound, (sound, 1, 1))],
        "text": [Segment("text", "text", argument_count(a, "decoder_input_ids"))],
    }


WHISPER = Layout(
    (),
    _whisper,
    {
        "*encoder.layers.* self_attn": "audio",
        "*decoder.layers.* self_attn": "text",
        "*decoder.layers.* encoder_attn": "text > audio",
    },
)


def _picture(pixels: Any, patch: int | Sequence[int], registers: int, name: str = "registers") -> list[Segment]:
    """A class token, registers by their name, and the patches of a picture [B, C, H, W]."""
    height, width = (patch, patch) if isinstance(patch, int) else patch
    grid = (1, pixels.shape[-2] // height, pixels.shape[-1] // width)
    image = grid_segment("image", "image", grid, cell=(1, height, width))
    return [Segment("class", "register", 1), Segment(name, "register", registers), image]


def _clip(model: Any, a: Given) -> Sequences:
    config = getattr(model.config, "vision_config", model.config)
    sequences = {"text": [Segment("text", "text", argument_count(a, "input_ids"))]}
    if a.get("pixel_values") is not None:
        sequences["image"] = _picture(a["pixel_values"], config.patch_size, 0)
    return sequences


def _clip_idle(model: Any, a: Given) -> list[str]:
    idle = ["*text_model.* *"] if a.get("input_ids") is None else []
    return idle + (["*vision_model.* *"] if a.get("pixel_values") is None else [])


CLIP = Layout((), _clip, {"*text_model.* *": "text", "*vision_model.* *": "image"}, _clip_idle)
CLIP_VISION = Layout((), _clip, {"* *": "image"})


def _dino(model: Any, a: Given) -> Sequences:
    registers = getattr(model.config, "num_register_tokens", 0)
    return {"image": _picture(a["pixel_values"], model.config.patch_size, registers)}


DINO = Layout((), _dino, {"* *": "image"})


def _vit(model: Any, a: Given) -> Sequences:
    return {"image": _picture(a["pixel_values"], model.config.patch_size, 0)}


def _deit(model: Any, a: Given) -> Sequences:
    return {"image": _picture(a["pixel_values"], model.config.patch_size, 1, "distillation")}


VIT = Layout((), _vit, {"* *": "image"})
DEIT = Layout((), _deit, {"* *": "image"})


def _video(pixels: Any, tubelet: int, patch: int) -> list[Segment]:
    """The patches of a video [B, T, C, H, W]; one shorter than a patch is repeated."""
    frames = max(1, pixels.shape[1] // tubelet)
    grid = (frames, pixels.shape[3] // patch, pixels.shape[4] // patch)
    return [grid_segment("video", "video", grid, cell=(tubelet, patch, patch))]


def _vjepa2(model: Any, a: Given) -> Sequences:
    c = model.config
    return {"video": _video(a["pixel_values_videos"], c.tubelet_size, c.patch_size)}


def _vjepa2_idle(model: Any, a: Given) -> list[str]:
    return ["*predictor.* *"] if a.get("skip_predictor") else []


VJEPA2 = Layout((), _vjepa2, {"*encoder.layer.* *": "video"}, _vjepa2_idle)
VJEPA2_CLASSES = Layout(
    (),
    _vjepa2,
    {"*encoder.layer.* *": "video", "*self_attention_layers.* *": "video"},
    lambda model, given: ["*predictor.* *"],
)


def _videomae(model: Any, a: Given) -> Sequences:
    c = model.config
    if a.get("bool_masked_pos") is not None:  # only what is visible of each item
        return {}
    return {"video": _video(a["pixel_values"], c.tubelet_size, c.patch_size)}


VIDEOMAE = Layout((), _videomae, {"*encoder.layer.* *": "video"})

# VideoPrism: each frame by itself, then each place over time, then (of the models with a head) all tokens


def _video_prism(model: Any, a: Given) -> Sequences:
    config = getattr(model.config, "vision_config", model.config)
    sizes, cell = a["pixel_values_videos"].shape, tuple(config.tubelet_size)  # [B, T, C, H, W]
    grid = (sizes[1] // cell[0], sizes[3] // cell[1], sizes[4] // cell[2])
    return {
        "video": [grid_segment("video", "video", grid, cell=cell)],  # first: the film's grid is its
        "frame": [grid_segment("frame", "video", (1, *grid[1:]), cell=cell)],
        "frames": [grid_segment("frames", "video", (grid[0], 1, 1))],
        **_video_prism_text(model, a),
    }


def _video_prism_text(model: Any, a: Given) -> Sequences:
    given = "input_ids" if a.get("input_ids") is not None else "inputs_embeds"
    return {"text": [Segment("text", "text", argument_count(a, given)), Segment("class", "register", 1)]}


_PRISM_OWNERS = ("", "vision_model.", "video_model.vision_model.", "video_model.")
VIDEO_PRISM = Layout(
    tuple(owner + f"{part}_layers" for owner in _PRISM_OWNERS for part in ("spatial", "temporal", "auxiliary")),
    _video_prism,
    {
        "*spatial_layers.* *": "frame",
        "*temporal_layers.* *": "frames",
        "*auxiliary_layers.* *": "video",
        "*text_model.* *": "text",
    },
    times={"*spatial_layers.* *": "frames", "*temporal_layers.* *": "frame"},
)
VIDEO_PRISM_TEXT = Layout(("layers",), _video_prism_text, {"* *": "text"})

ENCODER_LAYOUTS = {
    "CLIPForImageClassification": CLIP_VISION,
    "CLIPModel": CLIP,
    "CLIPVisionModel": CLIP_VISION,
    "CLIPVisionModelWithProjection": CLIP_VISION,
    "DINOv3ViTModel": DINO,
    "DeiTForImageClassification": DEIT,
    "DeiTForImageClassificationWithTeacher": DEIT,
    "DeiTModel": DEIT,
    "Dinov2ForImageClassification": DINO,
    "Dinov2Model": DINO,
    "Dinov2WithRegistersForImageClassification": DINO,
    "Dinov2WithRegistersModel": DINO,
    "VJEPA2ForVideoClassification": VJEPA2_CLASSES,
    "VJEPA2Model": VJEPA2,
    "ViTForImageClassification": VIT,
    "ViTModel": VIT,
    "VideoMAEForVideoClassification": VIDEOMAE,
    "VideoMAEModel": VIDEOMAE,
    "VideoPrismClipModel": VIDEO_PRISM,
    "VideoPrismForVideoClassification": VIDEO_PRISM,
    "VideoPrismTextModel": VIDEO_PRISM_TEXT,
    "VideoPrismVideoModel": VIDEO_PRISM,
    "VideoPrismVisionModel": VIDEO_PRISM,
    "WhisperForConditionalGeneration": WHISPER,
    "WhisperModel": WHISPER,
}
