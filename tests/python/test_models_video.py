"""Video transformers of diffusers: each call has its block and slot, and its tokens are what they are."""

import unittest
from typing import Any
from unittest import mock

import torch

import attnscope_capture
from model_cases import Case, Models, Probe, cell, map_of, numbers
from support import TOLERANCE, has_program, output_error, program, read_capture

SMALL = {"num_attention_heads": 2, "attention_head_dim": 16}
STAMP = torch.tensor([700.0])


def prefix(valid: int, count: int) -> torch.Tensor:
    return (torch.arange(count) < valid).long()[None]


def ltx2(**more: Any) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            **SMALL,
            in_channels=6,
            out_channels=6,
            cross_attention_dim=32,
            audio_in_channels=5,
            audio_out_channels=5,
            audio_num_attention_heads=2,
            audio_attention_head_dim=8,
            audio_cross_attention_dim=16,
            num_layers=2,
            caption_channels=12,
            perturbed_attn=True,
        )
        inputs = dict(
            hidden_states=numbers(1, 24, 6),
            audio_hidden_states=numbers(1, 10, 5),
            encoder_hidden_states=numbers(1, 7, 12),
            audio_encoder_hidden_states=numbers(1, 9, 12, seed=2),
            timestep=STAMP,
            encoder_attention_mask=prefix(4, 7),
            audio_encoder_attention_mask=prefix(9, 9),
            num_frames=2,
            height=3,
            width=4,
            audio_num_frames=10,
            sigma=STAMP / 1000,
        )
        return model, {**inputs, **more}

    return make


LTX2_CALLS = {
    "* attn1": "video 2x3x4 cell 8x32x32",
    "* audio_attn1": "audio 10x1x1",
    "* attn2": "video 2x3x4 cell 8x32x32 > text 7 (4)",
    "* audio_attn2": "audio 10x1x1 > text 9 (9)",
    "* audio_to_video_attn": "video 2x3x4 cell 8x32x32 > audio 10x1x1",
    "* video_to_audio_attn": "audio 10x1x1 > video 2x3x4 cell 8x32x32",
}


def hunyuan15(picture: bool, batch: int = 1) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            **SMALL,
            in_channels=4,
            out_channels=4,
            num_layers=2,
            num_refiner_layers=1,
            text_embed_dim=12,
            text_embed_2_dim=10,
            image_embed_dim=14,
            rope_axes_dim=(4, 6, 6),
        )
        text, glyphs = prefix(3, 5), prefix(2, 4)
        if batch == 2:
            text = torch.cat([text, prefix(4, 5)])
            glyphs = glyphs.repeat(2, 1)
        inputs = dict(
            hidden_states=numbers(batch, 4, 2, 3, 4),
            timestep=STAMP.repeat(batch),
            encoder_hidden_states=numbers(batch, 5, 12),
            encoder_attention_mask=text,
            encoder_hidden_states_2=numbers(batch, 4, 10),
            encoder_attention_mask_2=glyphs,
            image_embeds=numbers(batch, 6, 14) * picture,
        )
        return model, inputs

    return make


def framepack(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=4,
        num_layers=1,
        num_single_layers=1,
        num_refiner_layers=1,
        text_embed_dim=12,
        pooled_projection_dim=8,
        rope_axes_dim=(4, 6, 6),
        has_image_proj=True,
        image_proj_dim=10,
        has_clean_x_embedder=True,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 3, 8, 8),
        timestep=STAMP,
        encoder_hidden_states=numbers(1, 6, 12),
        encoder_attention_mask=prefix(4, 6),
        pooled_projections=numbers(1, 8),
        image_embeds=numbers(1, 5, 10),
        indices_latents=torch.arange(20, 23),
        guidance=torch.tensor([6000.0]),
        latents_clean=numbers(1, 4, 2, 8, 8),
        indices_latents_clean=torch.tensor([0, 19]),
        latents_history_2x=numbers(1, 4, 2, 8, 8),
        indices_latents_history_2x=torch.tensor([17, 18]),
        latents_history_4x=numbers(1, 4, 16, 8, 8),
        indices_latents_history_4x=torch.arange(1, 17),
    )
    return model, inputs


FRAMEPACK_JOINT = (
    "history_4x:history 4x1x1 @1 cell 16x64x64, history_2x:history 1x2x2 @17 cell 8x32x32, "
    "history_1x_0:history 1x4x4 @0 cell 4x16x16, history_1x_1:history 1x4x4 @19 cell 4x16x16, "
    "video 3x4x4 @20 cell 4x16x16, image 5, text 4"
)


def kandinsky5(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        in_text_dim=12,
        in_text_dim2=8,
        time_dim=16,
        model_dim=32,
        ff_dim=32,
        num_text_blocks=1,
        num_visual_blocks=2,
        axes_dims=(4, 6, 6),
    )
    inputs = dict(
        hidden_states=numbers(1, 3, 4, 6, 4),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP,
        pooled_projections=numbers(1, 8),
        visual_rope_pos=(torch.arange(3), torch.arange(2), torch.arange(3)),
        text_rope_pos=torch.arange(7),
    )
    return model, inputs


def cosmos(image: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        more = {"img_context_dim_in": 10, "img_context_dim_out": 32} if image else {}
        model = cls(
            **SMALL,
            in_channels=4,
            out_channels=4,
            num_layers=2,
            text_embed_dim=32 if image else 12,
            adaln_lora_dim=4,
            max_size=(4, 8, 8),
            concat_padding_mask=False,
            extra_pos_embed_type=None,
            **more,
        )
        words = numbers(1, 7, 32 if image else 12)
        inputs = dict(
            hidden_states=numbers(1, 4, 2, 4, 6),
            timestep=STAMP,
            encoder_hidden_states=(words, numbers(1, 5, 10)) if image else words,
        )
        return model, inputs

    return make


def allegro(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        num_attention_heads=2,
        attention_head_dim=24,
        cross_attention_dim=48,
        caption_channels=12,
        num_layers=2,
        sample_height=4,
        sample_width=6,
        sample_frames=2,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 2, 4, 6),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP,
        encoder_attention_mask=prefix(5, 7),
    )
    return model, inputs


def easyanimate(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=4,
        patch_size=2,
        num_layers=2,
        mmdit_layers=1,
        time_embed_dim=8,
        text_embed_dim=12,
        text_embed_dim_t5=10,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 2, 4, 6),
        timestep=STAMP,
        encoder_hidden_states=numbers(1, 7, 12),
        encoder_hidden_states_t5=numbers(1, 3, 10),
    )
    return model, inputs


def consisid(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        num_attention_heads=3,
        attention_head_dim=16,
        in_channels=4,
        out_channels=4,
        time_embed_dim=8,
        text_embed_dim=12,
        num_layers=2,
        sample_width=12,
        sample_height=8,
        sample_frames=9,
        max_text_seq_length=6,
        is_train_face=True,
        cross_attn_interval=1,
        cross_attn_dim_head=8,
        cross_attn_num_heads=2,
        LFE_id_dim=6,
        LFE_vit_dim=8,
        LFE_depth=5,
        LFE_dim_head=4,
        LFE_num_heads=2,
        LFE_num_id_token=2,
        LFE_num_querie=4,
        LFE_output_dim=32,
        LFE_ff_mult=1,
    )
    inputs = dict(
        hidden_states=numbers(1, 3, 4, 8, 12),
        encoder_hidden_states=numbers(1, 6, 12),
        timestep=STAMP,
        id_cond=numbers(1, 6),
        id_vit_hidden=[numbers(1, 7, 8) for _ in range(5)],
    )
    return model, inputs


def motif(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=4,
        num_layers=1,
        num_single_layers=3,
        num_decoder_layers=1,
        text_embed_dim=12,
        image_embed_dim=10,
        rope_axes_dim=(4, 6, 6),
        enable_text_cross_attention_dual=True,
        enable_text_cross_attention_single=True,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 2, 4, 6),
        timestep=STAMP,
        encoder_hidden_states=numbers(1, 7, 12),
        encoder_attention_mask=prefix(5, 7),
        image_embeds=numbers(1, 3, 10),
    )
    return model, inputs


def sana_video(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        num_cross_attention_heads=2,
        cross_attention_head_dim=16,
        cross_attention_dim=32,
        caption_channels=12,
        sample_size=4,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 2, 4, 6),
        encoder_hidden_states=numbers(1, 7, 12),
        timestep=STAMP,
        encoder_attention_mask=prefix(5, 7),
    )
    return model, inputs


CASES = (
    Case(
        "LTX2VideoTransformer3DModel",
        ltx2(),
        LTX2_CALLS,
        2,
        masks={"* attn2": "tensor", "* audio_attn2": "tensor"},
        probes=(
            Probe("hidden_states", (0, 17), "transformer_blocks.0 attn1", "video", 17),
            Probe("audio_hidden_states", (0, 4), "transformer_blocks.0 audio_attn1", "audio", 4),
        ),
    ),
    Case(
        "LTX2VideoTransformer3DModel",
        ltx2(isolate_modalities=True, spatio_temporal_guidance_blocks=[1]),
        {k: v for k, v in LTX2_CALLS.items() if "_to_" not in k},
        2,
        "without what is skipped",
        masks={"* attn2": "tensor", "* audio_attn2": "tensor"},
    ),
    Case(
        "HunyuanVideo15Transformer3DModel",
        hunyuan15(True),
        {
            "*refiner_blocks.0 *": "text 5 (3)",
            "transformer_blocks.* attn": "video 2x3x4, image 6, glyph_text:text 2, text 3, "
            "glyph_text_padding:padding 2, text_padding:padding 2",
        },
        2,
        "of a picture",
        {"*": "valid_pairs"},
        [Probe("hidden_states", cell(1, 2, 1), "transformer_blocks.0 attn", "video", 21)],
    ),
    Case(
        "HunyuanVideo15Transformer3DModel",
        hunyuan15(False),
        {
            "*refiner_blocks.0 *": "text 5 (3)",
            "transformer_blocks.* attn": "video 2x3x4, glyph_text:text 2, text 3, image_padding:padding 6, "
            "glyph_text_padding:padding 2, text_padding:padding 2",
        },
        2,
        "of text",
        {"*": "valid_pairs"},
        [Probe("encoder_hidden_states_2", (0, 1), "transformer_blocks.0 attn", "glyph_text", 1)],
    ),
    Case(
        "HunyuanVideo15Transformer3DModel",
        hunyuan15(True, 2),
        {
            "*refiner_blocks.0 *": "text 5 ([3, 4])",
            "transformer_blocks.* attn": "video 2x3x4, condition:other 15 ([11, 12])",
        },
        2,
        "of two prompts",
        {"*": "valid_pairs"},
    ),
    Case(
        "HunyuanVideoFramepackTransformer3DModel",
        framepack,
        {
            "*refiner_blocks.0 *": "text 6 (4)",
            "* attn": FRAMEPACK_JOINT,
        },
        2,
        masks={"*refiner_blocks.*": "tensor"},
        probes=[
            Probe("hidden_states", cell(1, 2, 7), "transformer_blocks.0 attn", "video", 23),
            Probe("latents_clean", cell(1, 0, 3), "transformer_blocks.0 attn", "history_1x_1", 1),
            Probe("latents_history_2x", cell(0, 5, 1), "transformer_blocks.0 attn", "history_2x", 2),
            Probe("latents_history_4x", cell(9, 0, 0), "transformer_blocks.0 attn", "history_4x", 2),
            Probe("image_embeds", (0, 3), "transformer_blocks.0 attn", "image", 3),
        ],
    ),
    Case(
        "Kandinsky5Transformer3DModel",
        kandinsky5,
        {
            "text_transformer_blocks.0 self_attention": "text 7",
            "visual_transformer_blocks.* self_attention": "video 3x2x3",
            "visual_transformer_blocks.* cross_attention": "video 3x2x3 > text 7",
        },
        2,
        probes=[
            Probe("hidden_states", (0, 1, 3, 0), "visual_transformer_blocks.0 self_attention", "video", 9)
        ],
    ),
    Case(
        "CosmosTransformer3DModel",
        cosmos(False),
        {"* attn1": "video 2x2x3", "* attn2": "video 2x2x3 > text 7"},
        2,
        probes=[Probe("hidden_states", cell(1, 1, 5), "transformer_blocks.0 attn1", "video", 8)],
    ),
    Case(
        "CosmosTransformer3DModel",
        cosmos(True),
        {
            "* attn1": "video 2x2x3",
            "* attn2": "video 2x2x3 > text 7",
            "* attn2.2": "video 2x2x3 > image 5",
        },
        2,
        "2.5",
    ),
    Case(
        "AllegroTransformer3DModel",
        allegro,
        {"* attn1": "video 2x2x3", "* attn2": "video 2x2x3 > text 7 (5)"},
        2,
        masks={"* attn2": "tensor"},
        probes=[Probe("hidden_states", cell(1, 1, 5), "transformer_blocks.0 attn1", "video", 8)],
    ),
    Case(
        "EasyAnimateTransformer3DModel",
        easyanimate,
        {"* attn1": "text 7, t5_text:text 3, video 2x2x3"},
        2,
        probes=[
            Probe("hidden_states", cell(1, 1, 5), "transformer_blocks.0 attn1", "video", 8),
            Probe("encoder_hidden_states_t5", (0, 2), "transformer_blocks.0 attn1", "t5_text", 2),
        ],
    ),
    Case(
        "ConsisIDTransformer3DModel",
        consisid,
        {"* attn1": "text 6, video 3x4x6"},
        2,
        probes=[Probe("hidden_states", (0, 2, slice(None), 5, 1), "transformer_blocks.0 attn1", "video", 60)],
        says="not recorded: local_facial_extractor.layers.0.0 and 6 more: it computes its attention",
    ),
    Case(
        "MotifVideoTransformer3DModel",
        motif,
        {
            "single_transformer_blocks.2 attn": "video 2x2x3, encoder_video:video 2x2x3",
            "* attn": "video 2x2x3, image 3, text 7 (5)",
            "* cross_attn": "video 2x2x3 > text 7 (5)",
        },
        4,
        masks={"single_transformer_blocks.2 attn": "none", "*": "tensor"},
        probes=[
            Probe("hidden_states", cell(1, 1, 5), "transformer_blocks.0 attn", "video", 8),
            Probe("image_embeds", (0, 1), "transformer_blocks.0 attn", "image", 1),
            Probe("encoder_hidden_states", (0, 2), "transformer_blocks.0 attn", "text", 2),
        ],
    ),
    Case(
        "SanaVideoTransformer3DModel",
        sana_video,
        {"* attn1": "video 2x2x3", "* attn2": "video 2x2x3 > text 7 (5)"},
        2,
        masks={"* attn2": "tensor"},
    ),
)


class Video(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()

    def test_blocks_that_sparse_attention_chooses(self) -> None:
        """A BlockMask of 64 tokens, which a CPU does not compute: an exact kernel stands in its place."""
        from diffusers import Kandinsky5Transformer3DModel
        from diffusers.models import attention_dispatch as dispatch

        torch.manual_seed(1)
        model, inputs = kandinsky5(Kandinsky5Transformer3DModel)
        model = model.eval()
        blocks = 2 * 16 * 24 // 64
        inputs |= {
            "hidden_states": numbers(1, 2, 32, 48, 4),
            "visual_rope_pos": (torch.arange(2), torch.arange(16), torch.arange(24)),
            "sparse_params": {
                "to_fractal": True,
                "P": 0.5,
                "sta_mask": torch.eye(blocks, dtype=torch.bool)[None, None],
            },
        }
        masks = []

        def exact(query: Any, key: Any, value: Any, attn_mask: Any = None, **more: Any) -> torch.Tensor:
            q, k, v = (t.transpose(1, 2) for t in (query, key, value))
            logits = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
            if attn_mask is not None:
                masks.append(attn_mask.to_dense().bool())
                kept = masks[-1].repeat_interleave(64, 2).repeat_interleave(64, 3)
                logits = logits.masked_fill(~kept, -torch.inf)
            return (logits.softmax(-1) @ v).transpose(1, 2)

        backends = dispatch._AttentionBackendRegistry._backends
        name = dispatch.AttentionBackendName.FLEX
        with mock.patch.dict(backends, {name: exact}), dispatch.attention_backend(name):
            with torch.no_grad(), attnscope_capture.capture(model, self.folder / "d"):
                model(**inputs)
        calls = [c for c in read_capture(self.folder / "d") if c.facts["mask"] != "none"]
        self.assertEqual([c.facts["layer"] for c in calls], [0, 1])
        for call, mask in zip(calls, masks, strict=True):
            self.assertEqual((call.facts["mask"], call.facts["mask_block"]), ("blocks", "64x64"))
            self.assertTrue(torch.equal(call["mask_blocks"].expand_as(mask), mask))
            self.assertLess(int(mask.sum()), mask.numel(), "no block was left out")
            self.assertEqual(map_of(call), "video 2x16x24 {'tiles': [1, 8, 8]}")
            self.assertLess(output_error(call), 2 * TOLERANCE[torch.float32])
        if has_program():
            program("verify", self.folder / "d")

    def test_sizes_of_what_is_chosen(self) -> None:
        from diffusers import LTX2VideoTransformer3DModel

        model, inputs = ltx2()(LTX2VideoTransformer3DModel)
        model = model.eval()
        cubes = {n: t for n, t in inputs.items() if getattr(t, "ndim", 0) == 3}
        flat = {n: torch.empty_like(t, device="meta") for n, t in cubes.items()}
        for options in (
            {"kinds": "cross", "heads": "1", "rows": 5},
            {"layers": "1", "values": False, "steps": "0,2"},
        ):
            out = self.folder / str(len(options["layers"]) if "layers" in options else 0)
            with torch.no_grad(), attnscope_capture.capture(model, out, **options) as cap:
                for step in range(3):
                    model(**{**inputs, "timestep": inputs["timestep"] - 100 * step})
            steps = {} if "steps" in options else {"steps": "0-2"}
            size = attnscope_capture.estimate(model, inputs={**inputs, **flat}, **options, **steps)
            self.assertEqual(size, cap.writer.bytes)
            half = attnscope_capture.estimate(model, inputs=inputs, dtype=torch.bfloat16, **options, **steps)
            self.assertLess(half, size)

    def test_sizes_that_only_a_run_tells(self) -> None:
        from diffusers import HunyuanVideo15Transformer3DModel, Kandinsky5Transformer3DModel

        model, inputs = kandinsky5(Kandinsky5Transformer3DModel)
        with self.refused("Kandinsky5Transformer3DModel", "inputs=", "meta"):
            attnscope_capture.estimate(model)
        with self.refused("without running", "chosen from q and k"):
            attnscope_capture.estimate(model, inputs={**inputs, "sparse_params": {"to_fractal": True}})
        model, inputs = next(c for c in CASES if c.cls.startswith("HunyuanVideo15")).make(
            HunyuanVideo15Transformer3DModel
        )
        hidden = {n: t.to("meta") if isinstance(t, torch.Tensor) else t for n, t in inputs.items()}
        with self.refused("do not tell its tokens", "not on .meta."):
            attnscope_capture.estimate(model, inputs=hidden)
        with self.refused("image_embeds", "do not tell its tokens"):
            attnscope_capture.estimate(model, inputs={"hidden_states": inputs["hidden_states"]})
        with self.refused("Linear", "without running", "first call"):
            attnscope_capture.estimate(torch.nn.Linear(2, 2), inputs=inputs)

    def test_the_tiles_of_sparse_attention(self) -> None:
        """With it, Kandinsky 5 orders its tokens by tiles: as its own function has them."""
        from diffusers import Kandinsky5Transformer3DModel
        from diffusers.models.transformers.transformer_kandinsky import fractal_flatten

        torch.manual_seed(1)
        model, inputs = kandinsky5(Kandinsky5Transformer3DModel)
        latents = torch.zeros(1, 2, 32, 48, 4)
        given = {**inputs, "hidden_states": latents, "sparse_params": {"to_fractal": True}}
        (video,) = attnscope_capture.LAYOUTS["Kandinsky5Transformer3DModel"].sequences(model, given)["video"]
        self.assertEqual((video.grid, video.order), ((2, 16, 24), {"tiles": [1, 8, 8]}))
        cells = torch.arange(2 * 16 * 24).reshape(1, 2, 16, 24, 1)
        placed, _ = fractal_flatten(cells, cells, (1, 2, 16, 24), block_mask=True)
        tiles = torch.arange(2 * 16 * 24).reshape(2, 2, 8, 3, 8).permute(0, 1, 3, 2, 4)
        self.assertTrue(torch.equal(placed.flatten(), tiles.flatten()))


if __name__ == "__main__":
    unittest.main()
