"""Image transformers and U-Nets of diffusers: each call has its block and slot, and its tokens."""

import contextlib
import unittest
from typing import Any

import torch

from attnscope_capture import CaptureError, capture
from model_cases import Case, Models, Probe, cell, map_of, numbers, picture_ids, prefix
from support import read_capture

STAMP = torch.tensor([0.7])
SMALL = {"num_attention_heads": 2, "attention_head_dim": 16}


def flux2(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=8,
        num_layers=1,
        num_single_layers=2,
        joint_attention_dim=12,
        axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=False,
    )
    inputs = dict(
        hidden_states=numbers(1, 12 + 6, 8),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP,
        img_ids=torch.cat([picture_ids(3, 4, 0, 4), picture_ids(2, 3, 10, 4)]),
        txt_ids=torch.zeros(7, 4),
    )
    return model, inputs


def chroma(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=8,
        num_layers=1,
        num_single_layers=2,
        joint_attention_dim=12,
        axes_dims_rope=(4, 6, 6),
        approximator_num_channels=8,
        approximator_hidden_dim=16,
        approximator_layers=1,
    )
    inputs = dict(
        hidden_states=numbers(1, 12, 8),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP,
        img_ids=picture_ids(3, 4),
        txt_ids=torch.zeros(7, 3),
        attention_mask=torch.cat([prefix(5, 7), torch.ones(1, 12, dtype=torch.bool)], 1),
    )
    return model, inputs


def qwen(layered: bool, pictures: list[tuple[int, int, int]]) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            **SMALL,
            in_channels=8,
            out_channels=2,
            num_layers=2,
            joint_attention_dim=12,
            axes_dims_rope=(4, 6, 6),
            use_layer3d_rope=layered,
        )
        inputs = dict(
            hidden_states=numbers(1, sum(t * h * w for t, h, w in pictures), 8),
            encoder_hidden_states=numbers(1, 7, 12),
            encoder_hidden_states_mask=prefix(5, 7),
            timestep=STAMP,
            img_shapes=[pictures],
        )
        return model, inputs

    return make


def z_image(*captions: int) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            in_channels=4,
            dim=32,
            n_layers=2,
            n_refiner_layers=1,
            n_heads=2,
            n_kv_heads=2,
            cap_feat_dim=12,
            axes_dims=[4, 6, 6],
            axes_lens=[128, 32, 32],
        )
        for token in (model.x_pad_token, model.cap_pad_token):
            token.data.normal_()
        inputs = dict(
            x=[numbers(4, 1, 8, 12, seed=n) for n in range(len(captions))],
            t=STAMP.repeat(len(captions)),
            cap_feats=[numbers(n, 12) for n in captions],
        )
        return model, inputs

    return make


def lumina2(*valid: int) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            sample_size=8,
            in_channels=4,
            hidden_size=32,
            num_layers=2,
            num_refiner_layers=1,
            num_attention_heads=2,
            num_kv_heads=1,
            axes_dim_rope=(4, 6, 6),
            axes_lens=(32, 16, 16),
            cap_feat_dim=12,
        )
        batch = len(valid)
        inputs = dict(
            hidden_states=numbers(batch, 4, 6, 8),
            timestep=STAMP.repeat(batch),
            encoder_hidden_states=numbers(batch, 7, 12),
            encoder_attention_mask=torch.cat([prefix(n, 7) for n in valid]),
        )
        return model, inputs

    return make


def auraflow(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        sample_size=8,
        in_channels=4,
        num_mmdit_layers=1,
        num_single_dit_layers=2,
        joint_attention_dim=12,
        caption_projection_dim=32,
        pos_embed_max_size=64,
    )
    inputs = dict(hidden_states=numbers(1, 4, 6, 8), encoder_hidden_states=numbers(1, 7, 12), timestep=STAMP)
    return model, inputs


def pixart(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=8,
        cross_attention_dim=32,
        caption_channels=12,
        use_additional_conditions=False,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 6, 8),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP,
        encoder_attention_mask=prefix(5, 7),
    )
    return model, inputs


def sana(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        num_cross_attention_heads=2,
        cross_attention_head_dim=16,
        cross_attention_dim=32,
        caption_channels=12,
        sample_size=8,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 3, 5),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP,
        encoder_attention_mask=prefix(5, 7),
    )
    return model, inputs


UNET = dict(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)


def unet(cls: Any) -> tuple[Any, dict[str, Any]]:
    """Of the kind of SD1.5 and SDXL: several transformer blocks at the lower level."""
    model = cls(
        **UNET,
        sample_size=8,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        transformer_layers_per_block=(1, 2),
        cross_attention_dim=12,
        attention_head_dim=4,
    )
    return model, dict(
        sample=numbers(2, 4, 6, 10), timestep=STAMP * 900, encoder_hidden_states=numbers(2, 7, 12)
    )


def motion_unet(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **UNET,
        sample_size=8,
        down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"),
        up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"),
        cross_attention_dim=12,
        num_attention_heads=2,
        motion_num_attention_heads=2,
        motion_max_seq_length=8,
    )
    inputs = dict(
        sample=numbers(1, 4, 3, 6, 10),
        timestep=STAMP * 900,
        encoder_hidden_states=numbers(1, 7, 12).repeat_interleave(3, 0),
    )
    return model, inputs


def unet3d(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **UNET,
        sample_size=8,
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
        cross_attention_dim=12,
        attention_head_dim=4,
    )
    inputs = dict(
        sample=numbers(1, 4, 3, 6, 10), timestep=STAMP * 900, encoder_hidden_states=numbers(1, 7, 12)
    )
    return model, inputs


def video_diffusion(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
        up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
        block_out_channels=(32, 32),
        addition_time_embed_dim=4,
        projection_class_embeddings_input_dim=12,
        layers_per_block=1,
        cross_attention_dim=12,
        num_attention_heads=2,
        num_frames=3,
    )
    inputs = dict(
        sample=numbers(1, 3, 4, 6, 10),
        timestep=STAMP * 900,
        encoder_hidden_states=numbers(1, 1, 12),
        added_time_ids=torch.tensor([[6.0, 127.0, 0.02]]),
    )
    return model, inputs


CASES = (
    Case(
        "Flux2Transformer2DModel",
        flux2,
        {"* attn": "text 7, image 1x3x4, reference_1:reference 1x2x3"},
        3,
        probes=[
            Probe("hidden_states", (0, 7), "transformer_blocks.0 attn", "image", 7),
            Probe("hidden_states", (0, 12 + 4), "transformer_blocks.0 attn", "reference_1", 4),
            Probe("encoder_hidden_states", (0, 2), "transformer_blocks.0 attn", "text", 2),
        ],
    ),
    Case(
        "ChromaTransformer2DModel",
        chroma,
        {"* attn": "text 7 (5), image 1x3x4"},
        3,
        masks={"*": "valid_pairs"},
        probes=[Probe("hidden_states", (0, 7), "transformer_blocks.0 attn", "image", 7)],
    ),
    Case(
        "QwenImageTransformer2DModel",
        qwen(False, [(1, 3, 4), (1, 2, 3)]),
        {"* attn": "text 7 (5), image 1x3x4, reference_1:reference 1x2x3"},
        2,
        masks={"*": "tensor"},
        probes=[
            Probe("hidden_states", (0, 7), "transformer_blocks.0 attn", "image", 7),
            Probe("hidden_states", (0, 14), "transformer_blocks.0 attn", "reference_1", 2),
        ],
    ),
    Case(
        "QwenImageTransformer2DModel",
        qwen(True, [(1, 3, 4), (1, 3, 4), (1, 3, 4)]),
        {"* attn": "text 7 (5), layer_0:image 1x3x4, layer_1:image 1x3x4, reference_1:reference 1x3x4"},
        2,
        "of layers",
        {"*": "tensor"},
    ),
    Case(
        "ZImageTransformer2DModel",
        z_image(5),
        {
            "noise_refiner.0 *": "image 1x4x6, image_padding:padding 8",
            "context_refiner.0 *": "text 32 (5)",
            "layers.* *": "image 1x4x6, image_padding:padding 8, text 32 (5)",
        },
        2,
        timestep="t",
        probes=[
            Probe("x", (slice(None), 0, 3, 10), "noise_refiner.0 attention", "image", 11),
            Probe("cap_feats", (3,), "context_refiner.0 attention", "text", 3),
        ],
    ),
    Case(
        "ZImageTransformer2DModel",
        z_image(5, 40),
        {
            "noise_refiner.0 *": "image 1x4x6, image_padding:padding 8",
            "context_refiner.0 *": "text 64 ([5, 40])",
            "layers.* *": "image 1x4x6, image_padding:padding 8, text 64 ([5, 40])",
        },
        2,
        "of two captions",
        {"context_refiner.0 *": "tensor", "layers.* *": "tensor"},
        timestep="t",
    ),
    Case(
        "Lumina2Transformer2DModel",
        lumina2(5),
        {
            "noise_refiner.0 *": "image 1x3x4",
            "context_refiner.0 *": "text 7 (5)",
            "layers.* *": "text 5, image 1x3x4",
        },
        2,
        masks={"context_refiner.0 *": "tensor"},
        probes=[Probe("hidden_states", cell(3, 5), "noise_refiner.0 attn", "image", 6)],
    ),
    Case(
        "Lumina2Transformer2DModel",
        lumina2(5, 6),
        {
            "noise_refiner.0 *": "image 1x3x4",
            "context_refiner.0 *": "text 7 ([5, 6])",
            "layers.* *": "tokens:other 18",
        },
        2,
        "of two captions",
        {"context_refiner.0 *": "tensor", "layers.* *": "tensor"},
        unsized="layers.0.attn: its tokens are not known without running",
    ),
    Case(
        "AuraFlowTransformer2DModel",
        auraflow,
        {"* attn": "registers:register 8, text 7, image 1x3x4"},
        3,
        probes=[
            Probe("hidden_states", cell(3, 5), "joint_transformer_blocks.0 attn", "image", 6),
            Probe("encoder_hidden_states", (0, 1), "joint_transformer_blocks.0 attn", "text", 1),
        ],
    ),
    Case(
        "PixArtTransformer2DModel",
        pixart,
        {"* attn1": "image 1x3x4", "* attn2": "image 1x3x4 > text 7 (5)"},
        2,
        masks={"* attn2": "tensor"},
        probes=[Probe("hidden_states", cell(3, 5), "transformer_blocks.0 attn1", "image", 6)],
    ),
    Case(
        "SanaTransformer2DModel",
        sana,
        {"* attn1": "image 1x3x5", "* attn2": "image 1x3x5 > text 7 (5)"},
        2,
        masks={"* attn2": "tensor"},
        probes=[Probe("hidden_states", cell(2, 4), "transformer_blocks.0 attn1", "image", 14)],
    ),
    Case(
        "UNet2DConditionModel",
        unet,
        {
            **{f"{p} attn1": "image 1x3x5" for p in ("down_blocks.1.*", "mid_block.*", "up_blocks.0.*")},
            **{
                f"{p} attn2": "image 1x3x5 > text 7"
                for p in ("down_blocks.1.*", "mid_block.*", "up_blocks.0.*")
            },
            "* attn1": "image 1x6x10",
            "* attn2": "image 1x6x10 > text 7",
        },
        1 + 2 + 2 + 4 + 2,
    ),
    Case(
        "UNetMotionModel",
        motion_unet,
        {
            "*motion_modules.*": "frames:video 3x1x1",
            "mid_block.* attn1": "image 1x3x5",
            "mid_block.* attn2": "image 1x3x5 > text 7",
            "* attn1": "image 1x6x10",
            "* attn2": "image 1x6x10 > text 7",
        },
        1 + 1 + 1 + 2 + 4 + 2,
    ),
    Case(
        "UNet3DConditionModel",
        unet3d,
        {
            "*temp_attentions.*": "frames:video 3x1x1",
            "transformer_in.*": "frames:video 3x1x1",
            "mid_block.* attn1": "image 1x3x5",
            "mid_block.* attn2": "image 1x3x5 > text 7",
            "* attn1": "image 1x6x10",
            "* attn2": "image 1x6x10 > text 7",
        },
        8,
    ),
    Case(
        "UNetSpatioTemporalConditionModel",
        video_diffusion,
        {
            "*temporal_transformer_blocks.* attn1": "frames:video 3x1x1",
            "*temporal_transformer_blocks.* attn2": "frames:video 3x1x1 > image_embedding:image 1",
            "mid_block.* attn1": "image 1x3x5",
            "mid_block.* attn2": "image 1x3x5 > image_embedding:image 1",
            "* attn1": "image 1x6x10",
            "* attn2": "image 1x6x10 > image_embedding:image 1",
        },
        8,
    ),
)


class Images(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()

    def test_the_users_words(self) -> None:
        from diffusers import AuraFlowTransformer2DModel

        torch.manual_seed(1)
        model, inputs = auraflow(AuraFlowTransformer2DModel)
        for name, options, words, valid in (
            ("list", {"tokens": list("abcdefg")}, list("abcdefg"), None),
            ("branch", {"tokens": {"cond": list("abcdefg")}, "text_valid": {"cond": 4}}, list("abcdefg"), 4),
            ("number", {"text_valid": 3}, None, 3),
        ):
            with torch.no_grad(), capture(model, self.folder / name, layers=0, **options) as cap:
                with cap.branch("cond") if name == "branch" else contextlib.nullcontext():
                    model(**inputs)
            (call,) = read_capture(self.folder / name)
            text = call.facts["queries"][1]
            self.assertEqual((text.get("words"), text.get("valid")), (words, valid))
        with self.assertRaisesRegex(CaptureError, "tokens: 3 strings for 7 text tokens"):
            with torch.no_grad(), capture(model, self.folder / "short", layers=0, tokens=list("abc")):
                model(**inputs)

    def test_padding_that_is_not_last(self) -> None:
        from diffusers import PixArtTransformer2DModel

        torch.manual_seed(1)
        model, inputs = pixart(PixArtTransformer2DModel)
        for name, masks in (
            ("one", [[0, 0, 1, 1, 1, 1, 1]]),
            ("two", [[0] * 6 + [1], [1, 1, 1, 1, 0, 0, 0]]),
        ):
            mask = torch.tensor(masks)
            given = {k: v.repeat(len(mask), *[1] * (v.ndim - 1)) for k, v in inputs.items()}
            given["encoder_attention_mask"] = mask
            with torch.no_grad(), capture(model, self.folder / name, layers=0, kinds="cross"):
                model(**given)
            (call,) = read_capture(self.folder / name)
            (text,) = call.facts["keys"]
            stored = call[text["valid"]["tensor"]]
            self.assertEqual(stored.int().tolist(), masks if len(masks) > 1 else masks[0])

    def test_the_user_tells_otherwise(self) -> None:
        """grid= takes the grid's place in the map, text= the map's."""
        from diffusers import PixArtTransformer2DModel

        torch.manual_seed(1)
        model, inputs = pixart(PixArtTransformer2DModel)
        with torch.no_grad(), capture(model, self.folder / "d", grid=(1, 4, 3), layers=0):
            model(**inputs)
        maps = [map_of(c) for c in read_capture(self.folder / "d")]
        self.assertEqual(maps, ["image 1x4x3", "image 1x4x3 > text 7 (5)"])
        with self.refused("no video or image", "13 tokens", "text="), torch.no_grad():
            with capture(model, self.folder / "odd", grid=(1, 13, 1)):
                model(**inputs)
        with torch.no_grad(), capture(model, self.folder / "e", text="all", grid=(1, 4, 3), kinds="cross"):
            model(**inputs)
        for call in read_capture(self.folder / "e"):
            self.assertNotIn("queries", call.facts)
            self.assertEqual((call.facts["grid"], call.facts["text"]), ("1x4x3", "all"))

    def test_tokens_that_the_layout_does_not_have(self) -> None:
        from diffusers import QwenImageTransformer2DModel

        torch.manual_seed(1)
        model, inputs = qwen(False, [(1, 3, 4)])(QwenImageTransformer2DModel)
        more = {**inputs, "hidden_states": numbers(1, 15, 8), "img_shapes": [[(1, 3, 4)]]}
        model.pos_embed.forward = lambda *a, **k: (torch.ones(15, 8), torch.ones(7, 8))
        with torch.no_grad(), capture(model, self.folder / "d", layers=0):
            model(**more)
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(call.facts["queries"], [{"name": "tokens", "modality": "other", "count": 22}])
        self.assertIn("22 queries are not the 19 tokens of the joint sequence", self.said.getvalue())
        for number, shapes in enumerate((3, [torch.ones(3, 2)])):  # of the second, no number is one
            self.said.truncate(self.said.seek(0))
            with torch.no_grad(), capture(model, self.folder / f"e{number}", layers=0):
                model(**{**more, "img_shapes": shapes})
            self.assertIn("has other arguments than its token layout expects", self.said.getvalue())


if __name__ == "__main__":
    unittest.main()
