"""Pictures of the finished video, one a latent frame."""

from __future__ import annotations

from typing import Any

import torch

from .errors import CaptureError
from .families import Family
from .slots import Model


def frames_per_latent(owner: Any, family: Family | None) -> int:
    """Video frames a latent frame (the first latent frame is one frame)."""
    for name in ("vae_scale_factor_temporal", "vae_temporal_compression_ratio", "vae_temporal_scale_factor"):
        if isinstance(getattr(owner, name, None), int):
            return getattr(owner, name)
    return family.vae[0] if family else 1


def latent_frames(frames: int, tokens: int, factor: int, patch: int = 1) -> list[int]:
    """The video frame that shows each of `tokens` token frames.

    Latent frame 0 is one video frame, each other one `factor`; `patch` latent frames make a token
    frame, and pipelines put what is missing to a multiple of it in front.
    """
    latents = (frames - 1) // factor + 1
    front = tokens * patch - latents
    if (frames - 1) % factor or not 0 <= front < patch:
        raise CaptureError(
            f"add_video: {frames} frames are {latents} latent frames at {factor} frames "
            f"each, but the capture has {tokens * patch}; pass frames_per_latent="
        )
    places = []
    for t in range(tokens):
        latent = max(0, t * patch + patch // 2 - front)
        places.append(0 if latent == 0 else (latent - 1) * factor + 1 + factor // 2)
    return [min(p, frames - 1) for p in places]


def as_pictures(video: Any) -> list[Any]:
    """A list of PIL pictures."""
    try:
        import numpy
        from PIL import Image
    except ImportError as error:
        raise CaptureError(f"add_video needs numpy and Pillow: pip install numpy Pillow ({error})") from error
    if hasattr(video, "save"):
        return [video]
    if isinstance(video, (list, tuple)) and all(hasattr(v, "save") for v in video) and video:
        return list(video)
    if isinstance(video, torch.Tensor):
        video = video.detach().float().cpu().numpy() if video.is_floating_point() else video.cpu().numpy()
    data = numpy.asarray(video)
    data = data[0] if data.ndim == 5 else data[None] if data.ndim == 3 else data
    if data.ndim == 4 and data.shape[-1] != 3 and data.shape[1] == 3:
        data = data.transpose(0, 2, 3, 1)
    if data.ndim != 4 or data.shape[-1] != 3:
        raise CaptureError(f"add_video: expected [frames, height, width, 3] (got {list(data.shape)})")
    if data.dtype != numpy.uint8:
        data = (data.astype(numpy.float64) * 255).round().clip(0, 255).astype(numpy.uint8)
    return [Image.fromarray(frame) for frame in data]


def picture_places(model: Model, frames: int, tokens: int, factor: int | None) -> list[int]:
    """latent_frames() of a model's video; `factor`: of the VAE, where the model does not tell."""
    per_latent = factor or frames_per_latent(model.owner, model.family)
    patch = 1
    if model.family and isinstance(getattr(model.first.config, "patch_size_t", None), int):
        patch = model.first.config.patch_size_t
    return latent_frames(frames, tokens, per_latent, patch)
