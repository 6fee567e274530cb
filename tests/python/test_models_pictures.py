"""Image transformers of diffusers from 2025 and 2026: each call has its block and slot, and its tokens."""

import unittest
from typing import Any

import torch

from attnscope_capture import capture
from model_cases import Case, Models, Probe, cell, map_of, numbers, picture_ids, prefix
from support import read_capture

STAMP = torch.tensor([0.7])
SMALL = {"num_attention_heads": 2, "attention_head_dim": 16}


def hunyuan_image(glyphs: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            **SMALL,
            in_channels=4,
            out_channels=4,
            num_layers=1,
            num_single_layers=2,
            num_refiner_layers=1,
            patch_size=(1, 1) if glyphs else (1, 1, 1),
            text_embed_dim=12,
            text_embed_2_dim=10 if glyphs else None,
            rope_axes_dim=(8, 8) if glyphs else (4, 6, 6),
        )
        inputs = dict(
            hidden_states=numbers(1, 4, 3, 4) if glyphs else numbers(1, 4, 1, 3, 4),
            timestep=STAMP * 1000,
            encoder_hidden_states=numbers(1, 7, 12),
            encoder_attention_mask=prefix(5, 7),
        )
        if glyphs:
            inputs |= dict(encoder_hidden_states_2=numbers(1, 4, 10), encoder_attention_mask_2=prefix(3, 4))
        return model, inputs

    return make


def krea2(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=8,
        num_layers=2,
        num_key_value_heads=1,
        intermediate_size=32,
        timestep_embed_dim=16,
        text_hidden_dim=12,
        num_text_layers=3,
        text_num_attention_heads=2,
        text_num_key_value_heads=2,
        text_intermediate_size=16,
        num_layerwise_text_blocks=1,
        num_refiner_text_blocks=1,
        axes_dims_rope=(4, 6, 6),
    )
    inputs = dict(
        hidden_states=numbers(1, 12, 8),
        encoder_hidden_states=numbers(1, 7, 3, 12),
        timestep=STAMP,
        position_ids=torch.cat([torch.zeros(7, 3), picture_ids(3, 4)]),
        encoder_attention_mask=prefix(5, 7),
    )
    return model, inputs


def flux3(references: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            **SMALL,
            in_channels=8,
            cond_in_channels=8,
            num_layers=1,
            num_single_layers=2,
            joint_attention_dim=12,
            timestep_channels=16,
            axes_dims_rope=(4, 4, 4, 4),
        )
        inputs = dict(
            hidden_states=numbers(1, 12, 8),
            encoder_hidden_states=numbers(1, 7, 12),
            timestep=STAMP,
            img_ids=flux3_ids(3, 4, 0),
            txt_ids=torch.zeros(7, 4),
        )
        if references:
            inputs["image_cond_hidden_states"] = numbers(1, 6 + 4, 8)
            inputs["image_cond_ids"] = torch.cat([flux3_ids(2, 3, -1), flux3_ids(2, 2, -2)])
        return model, inputs

    return make


def flux3_ids(height: int, width: int, picture: int) -> torch.Tensor:
    ids = picture_ids(height, width, 0, 4) / 2
    ids[:, 3] = picture
    return ids


def ernie_image(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        hidden_size=32,
        num_attention_heads=2,
        num_layers=2,
        ffn_hidden_size=32,
        in_channels=4,
        out_channels=4,
        text_in_dim=12,
        rope_axes_dim=(4, 6, 6),
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 3, 4), timestep=STAMP, text_bth=numbers(1, 7, 12), text_lens=torch.tensor([5])
    )
    return model, inputs


def prx(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(in_channels=4, context_in_dim=12, hidden_size=32, num_heads=2, depth=2, axes_dim=[8, 8])
    inputs = dict(
        hidden_states=numbers(1, 4, 6, 8),
        timestep=STAMP,
        encoder_hidden_states=numbers(1, 7, 12),
        attention_mask=prefix(5, 7),
    )
    return model, inputs


def cogview(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        text_embed_dim=12,
        time_embed_dim=8,
        condition_dim=8,
        **({"pos_embed_max_size": 8, "sample_size": 8} if "3" in cls.__name__ else {"rope_axes_dim": (8, 8)}),
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 6, 8),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP * 1000,
        original_size=torch.tensor([[48.0, 64.0]]),
        target_size=torch.tensor([[48.0, 64.0]]),
        crop_coords=torch.zeros(1, 2),
    )
    return model, inputs


def glm_image(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        text_embed_dim=12,
        time_embed_dim=8,
        condition_dim=8,
        prior_vq_quantizer_codebook_size=16,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 6, 8),
        encoder_hidden_states=numbers(1, 7, 12),
        prior_token_id=torch.arange(12)[None],
        prior_token_drop=torch.zeros(1, 12, dtype=torch.bool),
        timestep=STAMP * 1000,
        target_size=torch.tensor([[48.0, 64.0]]),
        crop_coords=torch.zeros(1, 2),
    )
    return model, inputs


REFERENCES = "reference_1:reference 1x2x3, reference_2:reference 1x2x2"

CASES = (
    Case(
        "HunyuanImageTransformer2DModel",
        hunyuan_image(True),
        {
            "*refiner_blocks.0 *": "text 7 (5)",
            "* attn": "image 1x3x4, glyph_text:text 3, text 5, glyph_text_padding:padding 1, text_padding:padding 2",
        },
        3,
        masks={"*": "tensor"},
        probes=[
            Probe("hidden_states", cell(1, 2), "transformer_blocks.0 attn", "image", 6),
            Probe("encoder_hidden_states_2", (0, 1), "transformer_blocks.0 attn", "glyph_text", 1),
        ],
    ),
    Case(
        "HunyuanImageTransformer2DModel",
        hunyuan_image(False),
        {"*refiner_blocks.0 *": "text 7 (5)", "* attn": "image 1x3x4, text 7 (5)"},
        3,
        "refined",
        {"*": "tensor"},
    ),
    Case(
        "Krea2Transformer2DModel",
        krea2,
        {
            "*layerwise_blocks.0 *": "text_layers:other 3",
            "*refiner_blocks.0 *": "text 7 (5)",
            "transformer_blocks.* *": "text 7 (5), image 1x3x4",
        },
        2,
        masks={"*layerwise_blocks.0 *": "none", "*": "tensor"},
        probes=[Probe("hidden_states", (0, 7), "transformer_blocks.0 attn", "image", 7)],
    ),
    Case(
        "Flux3Transformer2DModel",
        flux3(True),
        {
            "txt_mode_blocks.0 *": "text 7",
            "mode_blocks.image.0 *": "image 1x3x4",
            "mode_blocks.image_cond.0 *": REFERENCES,
            "single_transformer_blocks.* *": f"text 7, image 1x3x4, {REFERENCES}",
        },
        2,
        probes=[Probe("hidden_states", (0, 7), "mode_blocks.image.0 attn", "image", 7)],
    ),
    Case(
        "Flux3Transformer2DModel",
        flux3(False),
        {
            "txt_mode_blocks.0 *": "text 7",
            "mode_blocks.image.0 *": "image 1x3x4",
            "single_transformer_blocks.* *": "text 7, image 1x3x4",
        },
        2,
        "of text alone",
    ),
    Case(
        "ErnieImageTransformer2DModel",
        ernie_image,
        {"* self_attention": "image 1x3x4, text 7 (5)"},
        2,
        masks={"*": "tensor"},
        probes=[Probe("hidden_states", cell(1, 2), "layers.0 self_attention", "image", 6)],
    ),
    Case(
        "PRXTransformer2DModel",
        prx,
        {"* attention": "image 1x3x4 > text 7 (5), image 1x3x4"},
        2,
        masks={"*": "tensor"},
        probes=[Probe("hidden_states", cell(3, 5), "blocks.0 attention", "image", 6)],
    ),
    Case(
        "GlmImageTransformer2DModel",
        glm_image,
        {"* attn1": "text 7, image 1x3x4"},
        2,
        probes=[Probe("hidden_states", cell(3, 5), "transformer_blocks.0 attn1", "image", 6)],
    ),
    Case("CogView3PlusTransformer2DModel", cogview, {"* attn1": "text 7, image 1x3x4"}, 2),
    Case(
        "CogView4Transformer2DModel",
        cogview,
        {"* attn1": "text 7, image 1x3x4"},
        2,
        probes=[Probe("hidden_states", cell(3, 5), "transformer_blocks.0 attn1", "image", 6)],
    ),
)


class Pictures(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()

    def test_cached_keys_of_references(self) -> None:
        """Keys of GLM-Image that its references left in a cache are other; its queries are what they are."""
        from diffusers import GlmImageTransformer2DModel
        from diffusers.models.transformers.transformer_glm_image import GlmImageKVCache

        torch.manual_seed(3)
        model, inputs = glm_image(GlmImageTransformer2DModel)
        cache = GlmImageKVCache(num_layers=2)
        with torch.no_grad(), capture(model, self.folder / "d", branch="all", layers=0) as cap:
            for mode, text in (("write", 0), ("read", 7)):
                cache.set_mode(mode)
                if mode == "read":  # the forward that fills the cache is no step
                    cap.begin_step(0)
                model(**{**inputs, "encoder_hidden_states": numbers(1, text, 12)}, kv_caches=cache)
        maps = [map_of(c) for c in read_capture(self.folder / "d")]
        self.assertEqual(maps, ["text 7, image 1x3x4 > tokens:other 31"])


if __name__ == "__main__":
    unittest.main()
