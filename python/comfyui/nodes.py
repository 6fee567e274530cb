"""The nodes: Attention capture, Attention words."""

from __future__ import annotations

from typing import Any

import torch

from .recording import OVERRIDE, Recording

CATEGORY = "attnscope"


class AttentionCapture:
    """A model whose attention is recorded while it samples, and the folder that the capture is written to."""

    CATEGORY = CATEGORY
    FUNCTION = "patch"
    RETURN_TYPES = ("MODEL", "STRING")
    RETURN_NAMES = ("model", "capture")
    DESCRIPTION = "Records Q and K of the chosen blocks and steps while the model samples; it computes the same."

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {
                "model": ("MODEL",),
                "folder": ("STRING", {"default": "output/attention"}),
                "layers": ("STRING", {"default": "0,10,20", "tooltip": "blocks from 0: 0,3-7 or 8- or 0-39:5 or all"}),
                "steps": ("STRING", {"default": "10"}),
                "limit_mib": ("INT", {"default": 4096, "min": 1, "max": 1 << 24}),
            },
            "optional": {
                "latent": ("LATENT", {"tooltip": "the latents that are sampled: tells the grid of tokens"}),
                "clip": ("CLIP", {"tooltip": "with the prompt: the words"}),
                "prompt": ("STRING", {"default": "", "multiline": True}),
                "grid": ("STRING", {"default": "auto", "tooltip": "TxHxW in tokens"}),
                "text": ("STRING", {"default": "auto", "tooltip": "N@start or N@end: the text's place beside a video"}),
            },
        }

    @classmethod
    def IS_CHANGED(cls, **given: Any) -> float:
        return float("nan")  # each run writes the folder anew

    def patch(
        self, model: Any, folder: str, layers: str, steps: str, limit_mib: int, latent: Any = None, clip: Any = None,
        prompt: str = "", grid: str = "auto", text: str = "auto",
    ) -> tuple[Any, str]:  # fmt: skip
        recording = Recording(
            folder, layers, steps, grid=grid, text=text, prompt=prompt, limit=limit_mib << 20,
            latent=tuple(latent["samples"].shape) if latent is not None else None,
            tokens=token_strings(clip, prompt) if clip is not None and prompt else None,
        )  # fmt: skip
        made = model.clone()
        options = made.model_options = {**made.model_options}
        inner = options["transformer_options"] = {**options.get("transformer_options", {})}
        inner[OVERRIDE] = recording.beside(inner.get(OVERRIDE))
        return made, str(recording.folder)


def token_strings(clip: Any, prompt: str) -> list[str]:
    """The strings of the prompt's tokens, of the last of the model's text encoders."""
    batches = list(clip.tokenize(prompt).values())[-1]
    pairs = [(pair[0], pair[1]) for batch in batches for pair in batch]
    return [str(string) for _, string in clip.tokenizer.untokenize(pairs)]


class AttentionWords:
    """How much each place of the video attends to words of the prompt, over its frames."""

    CATEGORY = CATEGORY
    FUNCTION = "draw"
    RETURN_TYPES = ("IMAGE", "STRING")
    RETURN_NAMES = ("images", "told")
    DESCRIPTION = "Words over the frames: for each word as many images as there are frames, one after another."

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {
                "capture": ("STRING", {"forceInput": True}),
                "images": ("IMAGE", {"tooltip": "the decoded frames: the node waits for them"}),
                "words": ("STRING", {"default": "", "tooltip": "red, red circle; empty: of the whole prompt"}),
                "layers": ("STRING", {"default": "all"}),
                "opacity": ("FLOAT", {"default": 0.6, "min": 0.0, "max": 1.0}),
            }
        }

    @classmethod
    def IS_CHANGED(cls, **given: Any) -> float:
        return float("nan")

    def draw(
        self, capture: str, images: torch.Tensor, words: str, layers: str, opacity: float
    ) -> tuple[torch.Tensor, str]:
        import attnscope

        listed = [word.strip() for word in words.split(",") if word.strip()] or None
        chosen = {} if layers.strip() in ("", "all") else {"layers": layers}
        found = attnscope.open(capture).words(listed, **chosen)
        parts = [over_frames(images, torch.from_numpy(volume.copy()), opacity) for volume in found.values()]
        return torch.cat(parts), repr(found)


def over_frames(images: torch.Tensor, volume: torch.Tensor, opacity: float) -> torch.Tensor:
    """[F, H, W, 3], 0 to 1: the frames in grey under the volume [T, h, w] in colours, on a scale from 0 to its largest
    value. The first latent frame is one frame; the others have as many of the rest each."""
    from attnscope.native import _native

    frames, height, width, _ = images.shape
    colours = torch.frombuffer(bytearray(_native.colours("inferno")), dtype=torch.uint8).view(256, 3) / 255
    rest = max(1, -(-(frames - 1) // max(1, volume.shape[0] - 1)))
    latent = [min(volume.shape[0] - 1, 0 if f == 0 else 1 + (f - 1) // rest) for f in range(frames)]
    unit = volume / volume.max().clamp(min=1e-30)
    large = torch.nn.functional.interpolate(unit[latent][:, None].float(), (height, width), mode="nearest")[:, 0]
    tint = colours[(255 * large.clamp(0, 1)).long()]
    grey = images[..., :3].float().cpu().mean(-1, keepdim=True)
    return (1 - opacity) * grey + opacity * tint


NODE_CLASS_MAPPINGS = {"AttnscopeCapture": AttentionCapture, "AttnscopeWords": AttentionWords}
NODE_DISPLAY_NAME_MAPPINGS = {"AttnscopeCapture": "Attention capture", "AttnscopeWords": "Attention words"}
