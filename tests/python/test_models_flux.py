"""Flux's kin among the image transformers of diffusers: text, a picture, reference pictures in one row."""

import unittest
from typing import Any

import torch

from model_cases import Case, Models, Probe, numbers, picture_ids, prefix

STAMP = torch.tensor([0.7])
SMALL = {"num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 8, "joint_attention_dim": 12}
BLOCKS = {"num_layers": 1, "num_single_layers": 2, "axes_dims_rope": (4, 6, 6)}


def kin(img_ids: torch.Tensor, given: dict[str, Any] | None = None, **options: Any) -> Any:
    """A class of Flux's kin; img_ids: of its pictures; given: further inputs; options: of the constructor."""

    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(**SMALL, **BLOCKS, **options)
        inputs = dict(
            hidden_states=numbers(1, len(img_ids), 8),
            encoder_hidden_states=numbers(1, 7, 12),
            timestep=STAMP,
            img_ids=img_ids,
            txt_ids=torch.zeros(7, 3),
        )
        return model, {**inputs, **(given or {})}

    return make


ONE = picture_ids(3, 4)
# As LongCat's pipelines number pictures: 1 and 2, rows and columns behind the longest text.
TWO = torch.cat([picture_ids(3, 4, 1), picture_ids(2, 3, 2)]) + torch.tensor([0, 512, 512])
IMAGE = [Probe("hidden_states", (0, 7), "transformer_blocks.0 attn", "image", 7)]

CASES = (
    Case(
        "LongCatImageTransformer2DModel",
        kin(TWO, pooled_projection_dim=12),
        {"* attn": "text 7, image 1x3x4, reference_1:reference 1x2x3"},
        3,
        probes=[*IMAGE, Probe("hidden_states", (0, 16), "transformer_blocks.0 attn", "reference_1", 4)],
    ),
    Case("OvisImageTransformer2DModel", kin(ONE, out_channels=8), {"* attn": "text 7, image 1x3x4"}, 3, probes=IMAGE),
    Case("BriaTransformer2DModel", kin(ONE), {"* attn": "text 7, image 1x3x4"}, 3, probes=IMAGE),
    Case(
        "BriaFiboTransformer2DModel",
        kin(ONE, {"text_encoder_layers": [numbers(1, 7, 10)] * 3}, text_encoder_dim=10),
        {"* attn": "text 7, image 1x3x4"},
        3,
        probes=IMAGE,
    ),
    Case(
        "BriaFiboTransformer2DModel",
        kin(TWO, {"text_encoder_layers": [numbers(1, 7, 10)] * 3}, text_encoder_dim=10),
        {"* attn": "text 7, image 1x3x4, reference_1:reference 1x2x3"},
        3,
        "of an edit",
        probes=IMAGE,
    ),
    Case(
        "BriaFiboTransformer2DModel",
        kin(
            ONE,
            {
                "text_encoder_layers": [numbers(1, 7, 10)] * 3,
                "joint_attention_kwargs": {
                    "attention_mask": torch.cat([prefix(5, 7), torch.ones(1, 12, dtype=torch.bool)], 1)[:, None, None]
                },
            },
            text_encoder_dim=10,
        ),
        {"* attn": "text 7 (5), image 1x3x4"},
        3,
        "with padding",
        {"* attn": "tensor"},
        IMAGE,
    ),
)


class FluxKin(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()


if __name__ == "__main__":
    unittest.main()
