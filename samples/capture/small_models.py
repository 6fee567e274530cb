"""Diffusers pipelines of the real architectures at small size, with random weights.

Nothing is downloaded: there is no text encoder and no VAE, the prompt's embeddings are random, and
the result is the latent video. What runs is the library's own pipeline and transformer.
"""

from __future__ import annotations

from dataclasses import dataclass
from collections.abc import Callable
from typing import Any

import torch


@dataclass
class Small:
    """A pipeline and the arguments of its call, without num_inference_steps."""

    pipe: Any
    arguments: dict[str, Any]
    grid: tuple[int, int, int]  # tokens
    text: int  # text tokens

    def run(self, steps: int = 3, **more: Any) -> torch.Tensor:
        """The latents after `steps` denoising steps; the same for the same weights."""
        self.pipe.set_progress_bar_config(disable=True)
        arguments = {**self.arguments, **more, "num_inference_steps": steps}
        result = self.pipe(**arguments, generator=torch.Generator().manual_seed(7), return_dict=False)
        return result[0]


def _embeddings(count: int, channels: int, seed: int) -> torch.Tensor:
    """[1, count, channels] normal numbers."""
    return torch.randn(1, count, channels, generator=torch.Generator().manual_seed(seed))


def _ready(transformer: Any, dtype: torch.dtype) -> Any:
    """Weights of a size at which attention is neither flat nor one-hot."""
    torch.manual_seed(11)
    with torch.no_grad():
        for name, p in transformer.named_parameters():
            if p.ndim >= 2:
                p.normal_(std=1.5 * (p[0].numel() ** -0.5))
            elif "norm" in name and name.endswith("weight"):
                p.add_(0.2 * torch.randn_like(p))
    return transformer.to(dtype).eval()


def cogvideox(dtype: torch.dtype = torch.float32, rope: bool = True, patch_t: int | None = None) -> Small:
    """CogVideoX: joint attention, text first; batch [uncond; cond]."""
    from diffusers import CogVideoXDDIMScheduler, CogVideoXPipeline, CogVideoXTransformer3DModel

    transformer = CogVideoXTransformer3DModel(
        num_attention_heads=3,
        attention_head_dim=16,
        in_channels=4,
        out_channels=4,
        time_embed_dim=8,
        text_embed_dim=12,
        num_layers=3,
        sample_width=12,
        sample_height=8,
        sample_frames=9,
        patch_size=2,
        patch_size_t=patch_t,
        patch_bias=patch_t is None,
        max_text_seq_length=6,
        use_rotary_positional_embeddings=rope,
    )
    pipe = CogVideoXPipeline(
        tokenizer=None,
        text_encoder=None,
        vae=None,
        transformer=_ready(transformer, dtype),
        scheduler=CogVideoXDDIMScheduler(),
    )
    arguments = dict(
        prompt_embeds=_embeddings(6, 12, 1).to(dtype),
        negative_prompt_embeds=_embeddings(6, 12, 2).to(dtype),
        height=64,
        width=96,
        num_frames=9,
        guidance_scale=6.0,
        output_type="latent",
        max_sequence_length=6,
    )
    return Small(pipe, arguments, ((3 + (patch_t or 1) - 1) // (patch_t or 1), 4, 6), 6)


def wan(dtype: torch.dtype = torch.float32, two: bool = False, expand: bool = False) -> Small:
    """Wan: self-attention and cross-attention; separate forwards. two: high and low noise; expand:
    a timestep a token, as Wan2.2-TI2V."""
    from diffusers import FlowMatchEulerDiscreteScheduler, WanPipeline, WanTransformer3DModel

    def transformer() -> Any:
        return _ready(
            WanTransformer3DModel(
                patch_size=(1, 2, 2),
                num_attention_heads=3,
                attention_head_dim=16,
                in_channels=4,
                out_channels=4,
                text_dim=12,
                freq_dim=16,
                ffn_dim=32,
                num_layers=2,
                rope_max_seq_len=32,
            ),
            dtype,
        )

    pipe = WanPipeline(
        tokenizer=None,
        text_encoder=None,
        vae=None,
        transformer=transformer(),
        transformer_2=transformer() if two else None,
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
        boundary_ratio=0.875 if two else None,
        expand_timesteps=expand,
    )
    words = _embeddings(8, 12, 1)
    words[:, 5:] = 0  # the pipeline's padding
    other = _embeddings(8, 12, 2)
    other[:, 2:] = 0
    arguments = dict(
        prompt_embeds=words.to(dtype),
        negative_prompt_embeds=other.to(dtype),
        height=64,
        width=96,
        num_frames=9,
        guidance_scale=5.0,
        output_type="latent",
        max_sequence_length=8,
    )
    return Small(pipe, arguments, (3, 4, 6), 8)


def hunyuan(dtype: torch.dtype = torch.float32) -> Small:
    """HunyuanVideo: joint attention, text last, a mask for its padding; token refiner."""
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        HunyuanVideoPipeline,
        HunyuanVideoTransformer3DModel,
    )

    transformer = HunyuanVideoTransformer3DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=16,
        num_layers=1,
        num_single_layers=2,
        num_refiner_layers=1,
        patch_size=2,
        patch_size_t=1,
        guidance_embeds=True,
        text_embed_dim=12,
        pooled_projection_dim=8,
        rope_axes_dim=(4, 6, 6),
    )
    pipe = HunyuanVideoPipeline(
        text_encoder=None,
        tokenizer=None,
        vae=None,
        text_encoder_2=None,
        tokenizer_2=None,
        transformer=_ready(transformer, dtype),
        scheduler=FlowMatchEulerDiscreteScheduler(shift=7.0),
    )
    mask, other = torch.zeros(1, 8, dtype=torch.long), torch.zeros(1, 8, dtype=torch.long)
    mask[:, :5], other[:, :3] = 1, 1
    arguments = dict(
        prompt_embeds=_embeddings(8, 12, 1).to(dtype),
        pooled_prompt_embeds=_embeddings(1, 8, 3)[0].to(dtype),
        prompt_attention_mask=mask,
        negative_prompt_embeds=_embeddings(8, 12, 2).to(dtype),
        negative_pooled_prompt_embeds=_embeddings(1, 8, 4)[0].to(dtype),
        negative_prompt_attention_mask=other,
        height=64,
        width=96,
        num_frames=9,
        true_cfg_scale=2.0,
        output_type="latent",
    )
    return Small(pipe, arguments, (3, 4, 6), 8)


def ltx(dtype: torch.dtype = torch.float32) -> Small:
    """LTX-Video: self-attention, and cross-attention with a bias; batch [uncond; cond]."""
    from diffusers import FlowMatchEulerDiscreteScheduler, LTXPipeline, LTXVideoTransformer3DModel

    transformer = LTXVideoTransformer3DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=3,
        attention_head_dim=16,
        cross_attention_dim=48,
        num_layers=2,
        caption_channels=12,
    )
    pipe = LTXPipeline(
        text_encoder=None,
        tokenizer=None,
        vae=None,
        transformer=_ready(transformer, dtype),
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
    )
    mask, other = torch.zeros(1, 8, dtype=torch.long), torch.zeros(1, 8, dtype=torch.long)
    mask[:, :5], other[:, :1] = 1, 1
    arguments = dict(
        prompt_embeds=_embeddings(8, 12, 1).to(dtype),
        prompt_attention_mask=mask,
        negative_prompt_embeds=_embeddings(8, 12, 2).to(dtype),
        negative_prompt_attention_mask=other,
        height=128,
        width=192,
        num_frames=17,
        guidance_scale=3.0,
        output_type="latent",
        max_sequence_length=8,
    )
    return Small(pipe, arguments, (3, 4, 6), 8)


def mochi(dtype: torch.dtype = torch.float32) -> Small:
    """Mochi: joint attention, valid text last, one call a sample; batch [uncond; cond]."""
    from diffusers import FlowMatchEulerDiscreteScheduler, MochiPipeline, MochiTransformer3DModel

    transformer = MochiTransformer3DModel(
        patch_size=2,
        num_attention_heads=2,
        attention_head_dim=16,
        num_layers=2,
        pooled_projection_dim=24,
        in_channels=4,
        text_embed_dim=16,
        time_embed_dim=16,
        max_sequence_length=8,
    )
    pipe = MochiPipeline(
        text_encoder=None,
        tokenizer=None,
        vae=None,
        transformer=_ready(transformer, dtype),
        scheduler=FlowMatchEulerDiscreteScheduler(invert_sigmas=True),
    )
    mask, other = torch.zeros(1, 8, dtype=torch.bool), torch.zeros(1, 8, dtype=torch.bool)
    mask[:, :5], other[:, :2] = True, True
    arguments = dict(
        prompt_embeds=_embeddings(8, 16, 1).to(dtype),
        prompt_attention_mask=mask,
        negative_prompt_embeds=_embeddings(8, 16, 2).to(dtype),
        negative_prompt_attention_mask=other,
        height=64,
        width=96,
        num_frames=13,
        guidance_scale=4.5,
        output_type="latent",
        max_sequence_length=8,
    )
    return Small(pipe, arguments, (3, 4, 6), 8)


def flux(dtype: torch.dtype = torch.float32) -> Small:
    """FLUX.1: joint attention of two kinds of blocks, text first; separate forwards."""
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    transformer = FluxTransformer2DModel(
        in_channels=16,
        num_layers=1,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=12,
        pooled_projection_dim=8,
        guidance_embeds=True,
        axes_dims_rope=(4, 6, 6),
    )
    pipe = FluxPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=None,
        text_encoder=None,
        tokenizer=None,
        text_encoder_2=None,
        tokenizer_2=None,
        transformer=_ready(transformer, dtype),
    )
    arguments = dict(
        prompt_embeds=_embeddings(8, 12, 1).to(dtype),
        pooled_prompt_embeds=_embeddings(1, 8, 3)[0].to(dtype),
        negative_prompt_embeds=_embeddings(8, 12, 2).to(dtype),
        negative_pooled_prompt_embeds=_embeddings(1, 8, 4)[0].to(dtype),
        height=96,
        width=128,
        true_cfg_scale=2.0,
        output_type="latent",
        max_sequence_length=8,
    )
    return Small(pipe, arguments, (1, 6, 8), 8)


def sd3(dtype: torch.dtype = torch.float32) -> Small:
    """Stable Diffusion 3.5: joint attention, text last; a layer also with self-attention."""
    from diffusers import FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline

    transformer = SD3Transformer2DModel(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_layers=3,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=12,
        caption_projection_dim=32,
        pooled_projection_dim=8,
        out_channels=4,
        pos_embed_max_size=16,
        qk_norm="rms_norm",
        dual_attention_layers=(0,),
    )
    pipe = StableDiffusion3Pipeline(
        transformer=_ready(transformer, dtype),
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=None,
        text_encoder=None,
        tokenizer=None,
        text_encoder_2=None,
        tokenizer_2=None,
        text_encoder_3=None,
        tokenizer_3=None,
    )
    arguments = dict(
        prompt_embeds=_embeddings(9, 12, 1).to(dtype),
        pooled_prompt_embeds=_embeddings(1, 8, 3)[0].to(dtype),
        negative_prompt_embeds=_embeddings(9, 12, 2).to(dtype),
        negative_pooled_prompt_embeds=_embeddings(1, 8, 4)[0].to(dtype),
        height=96,
        width=128,
        guidance_scale=5.0,
        output_type="latent",
    )
    return Small(pipe, arguments, (1, 6, 8), 9)


def latte(dtype: torch.dtype = torch.float32) -> Small:
    """Latte: attention over space and over time in turn, cross-attention in the spatial blocks."""
    from diffusers import DDIMScheduler, LattePipeline, LatteTransformer3DModel

    transformer = LatteTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        cross_attention_dim=32,
        attention_bias=True,
        sample_size=16,
        patch_size=2,
        activation_fn="gelu-approximate",
        norm_type="ada_norm_single",
        norm_elementwise_affine=False,
        caption_channels=12,
        video_length=3,
    )
    pipe = LattePipeline(
        tokenizer=None,
        text_encoder=None,
        vae=None,
        transformer=_ready(transformer, dtype),
        scheduler=DDIMScheduler(),
    )
    arguments = dict(
        prompt=None,
        negative_prompt=None,
        prompt_embeds=_embeddings(8, 12, 1).to(dtype),
        negative_prompt_embeds=_embeddings(8, 12, 2).to(dtype),
        height=64,
        width=96,
        video_length=3,
        guidance_scale=7.5,
        output_type="latent",
        mask_feature=False,
        clean_caption=False,
    )
    return Small(pipe, arguments, (3, 4, 6), 8)


FAMILIES: dict[str, Callable[..., Small]] = {
    "cogvideox": cogvideox,
    "wan": wan,
    "hunyuan": hunyuan,
    "ltx": ltx,
    "mochi": mochi,
    "flux": flux,
    "sd3": sd3,
    "latte": latte,
}
