"""Wan's kin among the video transformers of diffusers: SkyReels-V2, VACE, Animate, ChronoEdit, AnyFlow."""

import unittest
from typing import Any

import torch

from model_cases import Case, Models, Probe, cell, numbers

SMALL = {"num_attention_heads": 2, "attention_head_dim": 16}
STAMP = torch.tensor([700.0])


def wan(**more: Any) -> Any:
    """Wan and its kin; `more`: options of the constructor."""

    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        options = dict(
            **SMALL, in_channels=4, out_channels=4, text_dim=12, freq_dim=16, ffn_dim=32, num_layers=2
        )
        model = cls(**{**options, "rope_max_seq_len": 32, **more})
        inputs = dict(
            hidden_states=numbers(1, 4, 3, 4, 6),
            timestep=STAMP,
            encoder_hidden_states=numbers(1, 512 if "image_dim" in more else 8, 12),
        )
        if "image_dim" in more:
            inputs["encoder_hidden_states_image"] = numbers(1, 9, 10)
        return model, inputs

    return make


def diffusion_forcing(cls: Any) -> tuple[Any, dict[str, Any]]:
    model, inputs = wan(num_frame_per_block=2)(cls)
    stamps = torch.tensor([[700.0, 700.0, 900.0, 900.0]])
    frames = numbers(1, 4, 4, 4, 6)
    return model, {**inputs, "hidden_states": frames, "timestep": stamps, "enable_diffusion_forcing": True}


IMAGE_KEYS = {"added_kv_proj_dim": 32, "image_dim": 10}


def wan_vace(frames: int, **more: Any) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model, inputs = wan(vace_layers=[0], vace_in_channels=8, **more)(cls)
        return model, {**inputs, "control_hidden_states": numbers(1, 8, frames, 4, 6)}

    return make


def wan_animate(cls: Any) -> tuple[Any, dict[str, Any]]:
    model, inputs = wan(
        **IMAGE_KEYS,
        in_channels=12,
        latent_channels=4,
        motion_encoder_channel_sizes={"4": 4, "8": 4, "16": 4},
        motion_encoder_size=16,
        motion_style_dim=8,
        motion_dim=4,
        motion_encoder_dim=8,
        face_encoder_hidden_dim=8,
        face_encoder_num_heads=2,
        inject_face_latents_blocks=2,
    )(cls)
    # Its forward adds the pose to the latents that it is given, so each run needs those of its own.
    inputs["hidden_states"] = numbers(1, 12, 3, 4, 6)
    inputs["pose_hidden_states"] = torch.zeros(1, 4, 2, 4, 6)
    inputs["face_pixel_values"] = numbers(1, 3, 5, 16, 16)
    model.pose_patch_embedding.bias.data.zero_()
    return model, inputs


def anyflow(picture: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        more = {"image_dim": 10} if picture else {}
        model = cls(
            **SMALL, in_channels=4, out_channels=4, text_dim=12, freq_dim=16, ffn_dim=32, num_layers=2,
            rope_max_seq_len=32, **more,
        )
        inputs = dict(
            hidden_states=numbers(1, 3, 4, 4, 6),
            timestep=STAMP[:, None].repeat(1, 3),
            r_timestep=STAMP[:, None].repeat(1, 3) / 2,
            encoder_hidden_states=numbers(1, 8, 12),
        )
        return model, {**inputs, **({"encoder_hidden_states_image": numbers(1, 9, 10)} if picture else {})}

    return make


CASES = (
    Case(
        "SkyReelsV2Transformer3DModel",
        wan(),
        {"* attn1": "video 3x2x3", "* attn2": "video 3x2x3 > text 8"},
        2,
        probes=[Probe("hidden_states", cell(2, 3, 1), "blocks.0 attn1", "video", 15)],
    ),
    Case(
        "SkyReelsV2Transformer3DModel",
        diffusion_forcing,
        {"* attn1": "video 4x2x3", "* attn2": "video 4x2x3 > text 8"},
        2,
        "with diffusion forcing",
        {"* attn1": "block_causal:12"},
    ),
    Case(
        "SkyReelsV2Transformer3DModel",
        wan(**IMAGE_KEYS),
        {
            "* attn1": "video 3x2x3",
            "* attn2.image": "video 3x2x3 > image 9",
            "* attn2": "video 3x2x3 > text 512",
        },
        2,
        "of a picture",
    ),
    Case(
        "WanVACETransformer3DModel",
        wan_vace(3),
        {
            "vace_blocks.0 attn1": "control:reference 3x2x3",
            "vace_blocks.0 attn2": "control:reference 3x2x3 > text 8",
            "blocks.* attn1": "video 3x2x3",
            "blocks.* attn2": "video 3x2x3 > text 8",
        },
        2,
        probes=[Probe("hidden_states", cell(1, 0, 4), "blocks.0 attn1", "video", 8)],
    ),
    Case(
        "WanVACETransformer3DModel",
        wan_vace(2, **IMAGE_KEYS),
        {
            "vace_blocks.0 attn1": "control:reference 2x2x3, control_padding:padding 6",
            "vace_blocks.0 attn2.image": "control:reference 2x2x3, control_padding:padding 6 > image 9",
            "vace_blocks.0 attn2": "control:reference 2x2x3, control_padding:padding 6 > text 512",
            "blocks.* attn1": "video 3x2x3",
            "blocks.* attn2.image": "video 3x2x3 > image 9",
            "blocks.* attn2": "video 3x2x3 > text 512",
        },
        2,
        "of less control and a picture",
    ),
    Case(
        "WanAnimateTransformer3DModel",
        wan_animate,
        {
            "face_adapter.0 attn": "frame:video 1x2x3 > face:reference 3",
            "* attn1": "reference 1x2x3, video 2x2x3",
            "* attn2.image": "reference 1x2x3, video 2x2x3 > image 9",
            "* attn2": "reference 1x2x3, video 2x2x3 > text 512",
        },
        2,
        probes=[Probe("hidden_states", cell(2, 2, 5), "blocks.0 attn1", "video", 11)],
    ),
    Case(
        "ChronoEditTransformer3DModel",
        wan(**IMAGE_KEYS),
        {
            "* attn1": "video 3x2x3",
            "* attn2.image": "video 3x2x3 > image 9",
            "* attn2": "video 3x2x3 > text 512",
        },
        2,
        probes=[Probe("hidden_states", cell(2, 3, 1), "blocks.0 attn1", "video", 15)],
    ),
    Case(
        "AnyFlowTransformer3DModel",
        anyflow(False),
        {"* attn1": "video 3x2x3", "* attn2": "video 3x2x3 > text 8"},
        2,
        probes=[Probe("hidden_states", (0, 2, slice(None), 3, 1), "blocks.0 attn1", "video", 15)],
    ),
    Case(
        "AnyFlowTransformer3DModel",
        anyflow(True),
        {"* attn1": "video 3x2x3", "* attn2": "video 3x2x3 > image 9, text 8"},
        2,
        "of a picture",
    ),
)


class Wan(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()


if __name__ == "__main__":
    unittest.main()
