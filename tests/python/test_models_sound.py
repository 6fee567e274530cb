"""Transformers of diffusers that make video and sound, or sound alone."""

import unittest
from typing import Any

import torch

from model_cases import Case, Models, Probe, numbers, prefix

STAMP = torch.tensor([700.0])


def kandinsky6(sound: bool, reference: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            in_visual_dim=4,
            out_visual_dim=4,
            in_text_dim=12,
            in_text_dim2=8,
            time_dim=16,
            model_dim=32,
            ff_dim=32,
            num_text_blocks=1,
            num_visual_blocks=2,
            axes_dims=(4, 6, 6),
            in_audio_dim=5,
            out_audio_dim=5,
            ca_rope=True,
            cross_gates=True,
            fix_modulation=True,
            visual_token_type_num_embeddings=2,
        )
        frames = 3 + reference
        inputs: dict[str, Any] = dict(
            hidden_states=numbers(1, frames, 4, 6, 9),
            encoder_hidden_states=numbers(1, 7, 12),
            pooled_projections=numbers(1, 8),
            timestep=STAMP,
            encoder_attention_mask=prefix(5, 7),
        )
        if sound:
            inputs["audio_hidden_states"] = numbers(1, 10, 5)
        if reference:
            inputs["visual_rope_pos"] = (torch.tensor([0, 1, 2, 0]), torch.arange(2), torch.arange(3))
            inputs["visual_token_type_ids"] = torch.tensor([[0, 0, 0, 1]])
        return model, inputs

    return make


def kandinsky6_calls(video: str, sound: bool) -> dict[str, str]:
    calls = {
        "*_text_transformer_blocks.0 *": "text 7 (5)",
        "* video_dec_block.self_attention": video,
        "* video_dec_block.cross_attention": f"{video} > text 7 (5)",
    }
    with_sound = {
        "* audio_dec_block.self_attention": "audio 10x1x1",
        "* audio_dec_block.cross_attention": "audio 10x1x1 > text 7 (5)",
        "* va_cross_attention": f"{video} > audio 10x1x1",
        "* av_cross_attention": f"audio 10x1x1 > {video}",
    }
    return {**calls, **(with_sound if sound else {})}


KANDINSKY6_MASKS = {"*_text_transformer_blocks.* *": "tensor", "*_dec_block.cross_attention": "tensor"}
KANDINSKY6_CELL = Probe(
    "hidden_states", (0, 1, 3, 0), "visual_transformer_blocks.0 video_dec_block.self_attention", "video", 9
)

CASES = (
    Case(
        "Kandinsky6Transformer3DModel",
        kandinsky6(True, False),
        kandinsky6_calls("video 3x2x3", True),
        2,
        masks=KANDINSKY6_MASKS,
        probes=[
            KANDINSKY6_CELL,
            Probe(
                "audio_hidden_states", (0, 4), "visual_transformer_blocks.0 audio_dec_block.self_attention", "audio", 4
            ),
        ],
    ),
    Case(
        "Kandinsky6Transformer3DModel",
        kandinsky6(False, True),
        kandinsky6_calls("video 3x2x3, reference 1x2x3", False),
        2,
        "of a picture, silent",
        KANDINSKY6_MASKS,
        [KANDINSKY6_CELL],
    ),
)


class Sound(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()


if __name__ == "__main__":
    unittest.main()
