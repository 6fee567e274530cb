"""Video models of diffusers that a camera steers."""

import unittest
from typing import Any

import torch

from model_cases import Case, Models, Probe, cell, numbers, prefix


def sana_wm(camera: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            in_channels=4,
            num_layers=4,
            hidden_size=32,
            num_attention_heads=2,
            softmax_every_n=2,
            linear_head_dim=16,
            chunk_plucker_channels=6,
            caption_channels=12,
        )
        inputs = dict(
            hidden_states=numbers(1, 4, 3, 4, 6),
            timestep=torch.full((1, 1, 3), 700.0),
            encoder_hidden_states=numbers(1, 1, 7, 12),
            encoder_attention_mask=prefix(5, 7),
        )
        if camera:  # of each frame, a pose of 4 x 4 and the lens
            pose = torch.cat([torch.eye(4).flatten(), torch.tensor([4.0, 4.0, 3.0, 2.0])])
            inputs["camera_conditions"] = pose.expand(1, 3, 20).clone()
        return model, inputs

    return make


SANA_WM = {"* attn.attn": "video 3x4x6", "* cross_attn": "video 3x4x6 > text 7 (5)"}
SANA_WM_MORE: dict[str, Any] = {
    "masks": {"* cross_attn": "tensor"},
    "says": "blocks.0.attn.attn and 3 more: a gated delta rule over the frames",
    "unsized": "heads of modules without weights",
}
CASES = (
    Case(
        "SanaWMTransformer3DModel",
        sana_wm(True),
        {"* attn.cam_attn": "video 3x4x6", **SANA_WM},
        4,
        **SANA_WM_MORE,
        probes=[Probe("hidden_states", cell(1, 2, 3), "blocks.0 cross_attn", "video", 24 + 12 + 3)],
    ),
    Case("SanaWMTransformer3DModel", sana_wm(False), SANA_WM, 4, "without a camera", **SANA_WM_MORE),
)


class Worlds(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()


if __name__ == "__main__":
    unittest.main()
