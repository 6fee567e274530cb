"""Pipelines for the tests of look(): those of samples/capture, HunyuanVideo 1.5 and SDXL, at small size with random
weights and without text encoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import small_models
from small_models import Small


def _numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def sdxl() -> Small:
    """SDXL: a U-Net, self- and cross-attention; batch [uncond; cond]."""
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel

    torch.manual_seed(1)
    unet = UNet2DConditionModel(
        block_out_channels=(32, 32),
        layers_per_block=1,
        norm_num_groups=8,
        sample_size=8,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        transformer_layers_per_block=(1, 2),
        cross_attention_dim=12,
        attention_head_dim=4,
        addition_embed_type="text_time",
        addition_time_embed_dim=4,
        projection_class_embeddings_input_dim=8 + 6 * 4,
    )
    absent = dict.fromkeys(("vae", "text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2"))
    pipe = StableDiffusionXLPipeline(**absent, unet=unet.eval(), scheduler=EulerDiscreteScheduler())
    given = dict(
        prompt_embeds=_numbers(1, 7, 12, seed=1),
        pooled_prompt_embeds=_numbers(1, 8, seed=2),
        negative_prompt_embeds=_numbers(1, 7, 12, seed=3),
        negative_pooled_prompt_embeds=_numbers(1, 8, seed=4),
        height=64,
        width=96,
        guidance_scale=5.0,
        output_type="latent",
    )
    return Small(pipe, given, (1, 8, 12), 7)


def hunyuan15() -> Small:
    """HunyuanVideo 1.5: joint attention, text last; separate forwards, which a guider makes."""
    from diffusers import (
        AutoencoderKLHunyuanVideo15,
        ClassifierFreeGuidance,
        FlowMatchEulerDiscreteScheduler,
        HunyuanVideo15Pipeline,
        HunyuanVideo15Transformer3DModel,
    )

    torch.manual_seed(1)
    transformer = HunyuanVideo15Transformer3DModel(
        in_channels=9,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=16,
        num_layers=2,
        num_refiner_layers=1,
        patch_size=1,
        patch_size_t=1,
        text_embed_dim=12,
        text_embed_2_dim=8,
        image_embed_dim=10,
        rope_axes_dim=(4, 6, 6),
        target_size=64,
        task_type="t2v",
    )
    vae = AutoencoderKLHunyuanVideo15(latent_channels=4, block_out_channels=(32,) * 5, layers_per_block=1)
    pipe = HunyuanVideo15Pipeline(
        **dict.fromkeys(("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")),
        vae=vae.eval(),
        transformer=transformer.eval(),
        guider=ClassifierFreeGuidance(guidance_scale=3.0),
        scheduler=FlowMatchEulerDiscreteScheduler(),
    )
    given: dict[str, Any] = {"height": 64, "width": 96, "num_frames": 9, "output_type": "latent"}
    for n, name in enumerate(("", "negative_")):
        given[f"{name}prompt_embeds"] = _numbers(1, 5, 12, seed=10 + n)
        given[f"{name}prompt_embeds_mask"] = torch.tensor([[1, 1, 1, 0, 0]])
        given[f"{name}prompt_embeds_2"] = _numbers(1, 3, 8, seed=20 + n)
        given[f"{name}prompt_embeds_mask_2"] = torch.tensor([[1, 1, 0]])
    return Small(pipe, given, (3, 4, 6), 5)


MODELS: dict[str, Callable[[], Small]] = {
    **{name: getattr(small_models, name) for name in ("cogvideox", "wan", "hunyuan", "ltx", "flux", "sd3")},
    "hunyuan15": hunyuan15,
    "sdxl": sdxl,
}
