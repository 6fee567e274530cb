"""Image transformers of diffusers from 2025 and 2026: each call has its block and slot, and its tokens."""

import dataclasses
import unittest
from typing import Any
from unittest import mock

import diffusers
import torch

import attnscope_capture
from attnscope.capture import seen
from attnscope_capture import CaptureError, capture
from model_cases import Case, Models, Probe, cell, map_of, numbers, picture_ids, prefix
from support import TOLERANCE, has_program, output_error, program, read_capture

STAMP = torch.tensor([0.7])
SMALL = {"num_attention_heads": 2, "attention_head_dim": 16}


def hunyuan_image(glyphs: bool, words: int = 5) -> Any:
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
            encoder_attention_mask=prefix(words, 7),
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


def nucleus(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        **SMALL,
        in_channels=8,
        num_layers=2,
        num_key_value_heads=1,
        joint_attention_dim=12,
        axes_dims_rope=(4, 6, 6),
        moe_enabled=False,
    )
    inputs = dict(
        hidden_states=numbers(1, 12, 8),
        img_shapes=[(1, 3, 4)],
        encoder_hidden_states=numbers(1, 7, 12),
        encoder_hidden_states_mask=prefix(5, 7),
        timestep=STAMP,
    )
    return model, inputs


def ideogram4(padding: int) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            in_channels=8,
            num_layers=2,
            **SMALL,
            intermediate_size=32,
            adaln_dim=16,
            llm_features_dim=12,
            mrope_section=(4, 2, 2),
        )
        kinds = torch.tensor([0] * padding + [3] * 5 + [2] * 12)[None]
        places = torch.zeros(1, padding + 17, 3, dtype=torch.long)
        places[0, padding : padding + 5] = torch.arange(5)[:, None]
        places[0, padding + 5 :] = 65536 + picture_ids(3, 4).long()
        inputs = dict(
            hidden_states=numbers(1, padding + 17, 8),
            timestep=STAMP,
            encoder_hidden_states=numbers(1, padding + 17, 12),
            position_ids=places,
            segment_ids=torch.where(kinds == 0, -1, 1),
            indicator=kinds,
        )
        return model, inputs

    return make


JOYIMAGE = {"hidden_size": 32, "num_attention_heads": 2, "text_dim": 12, "num_layers": 2, "in_channels": 4}


def joyimage(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(**JOYIMAGE, rope_dim_list=[4, 6, 6])
    inputs = dict(
        hidden_states=numbers(1, 3, 4, 1, 6, 8), timestep=STAMP * 1000, encoder_hidden_states=numbers(1, 7, 12)
    )
    return model, inputs


def joyimage_plus(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(**JOYIMAGE, rope_dim_list=[4, 6, 6])
    inputs = dict(
        hidden_states=numbers(1, 20, 4, 1, 2, 2),
        timestep=STAMP * 1000,
        encoder_hidden_states=numbers(1, 7, 12),
        encoder_hidden_states_mask=prefix(5, 7).float(),
        shape_list=[[(1, 3, 4), (1, 2, 3)]],
    )
    return model, inputs


def bria_fibo2(items: int, references: bool) -> Any:
    """items: prompts of 5 and of 7 tokens, whose gists have other counts."""

    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            in_channels=4,
            dim=32,
            n_layers=3,
            n_refiner_layers=1,
            n_heads=2,
            cap_feat_dim=12,
            injection_layer_ids=(1,),
            perceiver_num_layers=1,
            min_num_gist_tokens=2,
            max_num_gist_tokens=6,
            gist_step=2,
            gist_min_text_len=5,
            gist_max_text_len=8,
            axes_dims=(4, 6, 6),
            axes_lens=(32, 16, 16),
        )
        masks = torch.cat([prefix(5, 7), prefix(7, 7)])[:items]
        inputs: dict[str, Any] = dict(
            hidden_states=numbers(items, 4, 6, 8),
            timestep=STAMP.repeat(items),
            encoder_hidden_states=numbers(items, 2, 7, 12),
            encoder_attention_mask=masks,
        )
        if references:
            inputs["context_latents"] = [numbers(items, 4, 4, 6)]
        return model, inputs

    return make


def hidream(wide: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            **SMALL,
            patch_size=2,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            caption_channels=[12, 10],
            text_emb_dim=8,
            num_routed_experts=0,
            axes_dims_rope=(8, 4, 4),
            max_resolution=(8, 8),
            llama_layers=[0, 1],
        )
        inputs = dict(
            hidden_states=numbers(1, 4, 6, 8 if wide else 6),
            timesteps=STAMP * 1000,
            encoder_hidden_states_t5=numbers(1, 4, 12),
            encoder_hidden_states_llama3=numbers(2, 1, 5, 10),
            pooled_embeds=numbers(1, 8),
        )
        return model, inputs

    return make


def omnigen(cls: Any) -> tuple[Any, dict[str, Any]]:
    head = 16
    model = cls(
        in_channels=4,
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=16,
        num_layers=2,
        pad_token_id=0,
        vocab_size=20,
        rope_scaling={"short_factor": [1.0] * (head // 2), "long_factor": [1.0] * (head // 2)},
        pos_embed_max_size=8,
        time_step_dim=8,
    )
    seen = torch.ones(22, 22).tril()
    seen[2:6, 2:6] = 1
    seen[10:] = 1
    inputs = dict(
        hidden_states=numbers(1, 4, 6, 8),
        timestep=STAMP,
        input_ids=torch.arange(1, 10)[None],
        input_img_latents=[numbers(1, 4, 4, 4)],
        input_image_sizes={0: [[2, 6]]},
        attention_mask=seen[None],
        position_ids=torch.arange(22)[None],
    )
    return model, inputs


def qwen_image21(cls: Any) -> tuple[Any, dict[str, Any]]:
    """Three runs of words, a picture after each; the text encoder has a slot for four tokens of a picture."""
    model = cls(
        in_channels=8,
        out_channels=8,
        num_layers=2,
        **SMALL,
        context_in_dim=12,
        axes_dims_rope=(4, 6, 6),
    )
    inputs = dict(
        hidden_states=numbers(1, 4 + 12 + 12, 8),
        encoder_hidden_states=numbers(1, 11, 12),
        timestep=STAMP,
        img_shapes=[[(1, 2, 2), (1, 4, 3), (1, 3, 4)]],
        img_mask=torch.tensor([[0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1]]).bool(),
    )
    return model, inputs


WORDS_AND_PICTURES = (
    "text_1:text 3, reference_1:reference 1x2x2, text_2:text 2, reference_2:reference 1x4x3, text_3:text 2, image 1x3x4"
)
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
        "HunyuanImageTransformer2DModel",
        hunyuan_image(True, 7),
        {
            "*refiner_blocks.0 *": "text 7 (7)",
            "* attn": "image 1x3x4, glyph_text:text 3, text 7, glyph_text_padding:padding 1",
        },
        3,
        "of a long text",
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
    Case(
        "NucleusMoEImageTransformer2DModel",
        nucleus,
        {"* attn": "image 1x3x4 > image 1x3x4, text 7 (5)"},
        2,
        masks={"*": "tensor"},
        probes=[Probe("hidden_states", (0, 7), "transformer_blocks.0 attn", "image", 7)],
    ),
    Case(
        "QwenImage21Transformer2DModel",
        qwen_image21,
        {"* attn": WORDS_AND_PICTURES},
        2,
        masks={"*": "spans"},
        unsized="masks of words and pictures",
        probes=[
            Probe("hidden_states", (0, 16 + 7), "transformer_blocks.0 attn", "image", 7),
            Probe("hidden_states", (0, 4 + 7), "transformer_blocks.0 attn", "reference_2", 7),
        ],
        pieces=6,
    ),
    Case(
        "Ideogram4Transformer2DModel",
        ideogram4(3),
        {"* attention": "padding 3, text 5, image 1x3x4"},
        2,
        masks={"*": "segments"},
        probes=[Probe("hidden_states", (0, 8 + 7), "layers.0 attention", "image", 7)],
    ),
    Case(
        "Ideogram4Transformer2DModel",
        ideogram4(0),
        {"* attention": "text 5, image 1x3x4"},
        2,
        "of one prompt",
        masks={"*": "tensor"},
    ),
    Case(
        "JoyImageEditTransformer3DModel",
        joyimage,
        {"* attn": "image 1x3x4, reference_1:reference 1x3x4, reference_2:reference 1x3x4, text 7"},
        2,
        probes=[
            Probe("hidden_states", (0, 2, slice(None), 0, 3, 5), "double_blocks.0 attn", "image", 6),
            Probe("hidden_states", (0, 1, slice(None), 0, 3, 5), "double_blocks.0 attn", "reference_2", 6),
        ],
    ),
    Case(
        "JoyImageEditPlusTransformer3DModel",
        joyimage_plus,
        {"* attn": "image 1x3x4, reference_1:reference 1x2x3, padding 2, text 7 (5)"},
        2,
        masks={"*": "tensor"},
        probes=[Probe("hidden_states", (0, 15), "double_blocks.0 attn", "reference_1", 3)],
    ),
    Case(
        "BriaFibo2Transformer2DModel",
        bria_fibo2(1, True),
        {
            "noise_refiner.0 *": "image 1x3x4, reference_1:reference 1x2x3",
            "perceiver.layers.0 cross_attention": "gist:other 2 > text 7 (5)",
            "perceiver.layers.0 self_attention": "gist:other 2",
            "layers.* cross_attention": "gist:other 2, image 1x3x4, reference_1:reference 1x2x3 > text 7 (5)",
            "layers.* attention": "gist:other 2, image 1x3x4, reference_1:reference 1x2x3",
        },
        3,
        masks={"* cross_attention": "tensor"},
        probes=[Probe("hidden_states", cell(3, 5), "noise_refiner.0 attention", "image", 6)],
    ),
    Case(
        "HiDreamImageTransformer2DModel",
        hidream(False),
        {"* block.attn1": "image 1x3x3, t5_text:text 4, llama_text:text 5, layer_text:text 5"},
        2,
        timestep="timesteps",
        probes=[Probe("hidden_states", cell(3, 5), "double_stream_blocks.0 block.attn1", "image", 5)],
    ),
    Case(
        "HiDreamImageTransformer2DModel",
        hidream(True),
        {"* block.attn1": "image 1x3x4, padding 4, t5_text:text 4, llama_text:text 5, layer_text:text 5"},
        2,
        "of a wide picture",
        timestep="timesteps",
    ),
    Case(
        "OmniGenTransformer2DModel",
        omnigen,
        {"* self_attn": "text_1:text 2, reference_1:reference 1x2x2, text_2:text 3, time:register 1, image 1x3x4"},
        2,
        masks={"*": "tensor"},
        unsized="masks of words and pictures",
        probes=[Probe("hidden_states", cell(3, 5), "layers.0 self_attn", "image", 6)],
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

    def test_items_of_other_lengths(self) -> None:
        """The gist stands last where prompts have gists of other lengths, and text of other lengths is padded."""
        torch.manual_seed(3)
        runs = {"BriaFibo2": bria_fibo2(2, False), "Ideogram4": ideogram4(0), "OmniGen": omnigen}
        for cls, make in runs.items():
            model, inputs = make(getattr(diffusers, f"{cls}Transformer2DModel"))
            if cls != "BriaFibo2":
                inputs = {n: v.repeat(2, *[1] * (v.ndim - 1)) if torch.is_tensor(v) else v for n, v in inputs.items()}
            if cls == "OmniGen":
                inputs |= {"input_img_latents": [], "input_image_sizes": {}}
                inputs["attention_mask"][0, :, :4], inputs["attention_mask"][0, :4] = 0, 1
            if cls == "Ideogram4":
                inputs["indicator"][0, :2], inputs["segment_ids"][0, :2] = 0, -1
            with torch.no_grad(), capture(model.eval(), self.folder / cls, branch="all") as cap, cap.branch("cond"):
                model(**inputs)
            calls = read_capture(self.folder / cls)
            maps = {c.facts["slot"]: map_of(c) for c in calls}
            if has_program():
                program("verify", self.folder / cls)
            tensors = [t for c in calls for name, t in c.tensors.items() if not name.startswith("queries_")]
            size = sum(t.numel() * t.element_size() for t in tensors)
            if cls != "OmniGen":  # whose masks are not known
                self.assertEqual(attnscope_capture.estimate(model, inputs=inputs), size, cls)
            if cls == "BriaFibo2":
                self.assertEqual(maps["attention"], "image 1x3x4, gist:other 6 ([2, 6])")
                self.assertEqual(maps["cross_attention"], "image 1x3x4, gist:other 6 ([2, 6]) > text 7 ([5, 7])")
            elif cls == "OmniGen":
                text = "text 9 ({'tensor': 'queries_text_valid'})"
                self.assertEqual(maps["self_attn"], f"{text}, time:register 1, image 1x3x4")
                valid = torch.stack([torch.arange(9) >= 4, torch.ones(9).bool()])
                self.assertTrue(all(torch.equal(c["queries_text_valid"].bool(), valid) for c in calls))
            else:
                self.assertEqual(maps["attention"], "text 5 ({'tensor': 'queries_text_valid'}), image 1x3x4")

    def test_the_cache_and_the_kernel_of_qwen_image(self) -> None:
        """With its cache the words are keys alone after the first step; a flex kernel makes one call, of padded rows; a
        padded prompt's mask is stored as it is."""
        from diffusers.models.transformers import transformer_qwenimage21 as own

        torch.manual_seed(3)
        model, inputs = qwen_image21(diffusers.QwenImage21Transformer2DModel)
        model, cache, plain = model.eval(), own.QwenImage21KVCache(2), {}
        with torch.no_grad():
            for mode in ("extract", "cached"):
                plain[mode] = model(**inputs, kv_cache=cache, kv_cache_mode=mode)[0]
            cache = own.QwenImage21KVCache(2)
            with capture(model, self.folder / "cached", branch="all", layers=0) as cap:
                for step, mode in enumerate(("extract", "cached")):
                    cap.begin_step(step)
                    with cap.branch("cond"):
                        same = model(**inputs, kv_cache=cache, kv_cache_mode=mode)[0]
                    self.assertTrue(torch.equal(same, plain[mode]), mode)
            padded = {**inputs, "encoder_hidden_states_mask": (torch.arange(11) < 10)[None]}
            with capture(model, self.folder / "padded", branch="all", layers=0) as cap, cap.branch("cond"):
                model(**padded)
            for block in model.transformer_blocks:
                block.attn.processor = own.QwenImage21FlexAttnProcessor()
            with capture(model, self.folder / "flex", branch="all", layers=0) as cap, cap.branch("cond"):
                model(**inputs)
        calls = {name: read_capture(self.folder / name) for name in ("cached", "padded", "flex")}
        maps = {name: [(c.facts["kind"], c.facts["mask"], map_of(c)) for c in calls[name]] for name in calls}
        image = "image 1x3x4"
        first = ("joint", "spans", WORDS_AND_PICTURES)
        self.assertEqual(maps["cached"], [first, ("joint", "none", f"{image} > {WORDS_AND_PICTURES}")])
        text = WORDS_AND_PICTURES.replace("text 3,", "text 3 (3),").replace("text 2, ref", "text 2 (2), ref")
        self.assertEqual(maps["padded"], [("joint", "tensor", text.replace("text 2, im", "text 2 (1), im"))])
        self.assertEqual(maps["flex"], [("joint", "spans", f"{WORDS_AND_PICTURES}, padding 93")])
        for name in calls:
            for call in calls[name]:
                self.assertLess(output_error(call), TOLERANCE[torch.float32])
            if has_program():
                program("verify", self.folder / name)

    def test_pictures_of_qwen_image_that_differ(self) -> None:
        """The model takes the first item's pictures for all; calls of pictures that nothing tells are refused, and it
        runs on."""
        torch.manual_seed(3)
        model, inputs = qwen_image21(diffusers.QwenImage21Transformer2DModel)
        two = {n: v.repeat(2, *[1] * (v.ndim - 1)) if torch.is_tensor(v) else v * 2 for n, v in inputs.items()}
        two["img_shapes"] = [inputs["img_shapes"][0], [(1, 2, 2), (1, 3, 4), (1, 3, 4)]]
        model = model.eval()
        with torch.no_grad():
            plain = model(**two)[0]
            with capture(model, self.folder / "two", branch="all") as cap, cap.branch("cond"):
                self.assertTrue(torch.equal(model(**two)[0], plain))
            calls = read_capture(self.folder / "two")
            self.assertEqual([map_of(call) for call in calls], [WORDS_AND_PICTURES] * 2)
            for call in calls:
                self.assertLess(output_error(call), TOLERANCE[torch.float32])
            fault = mock.Mock(side_effect=KeyError("joint"))
            layout = dataclasses.replace(attnscope_capture.LAYOUTS[type(model).__name__], pieces=fault)
            names = {type(model).__name__: layout}
            with mock.patch.dict(attnscope_capture.LAYOUTS, names), self.assertRaises(CaptureError) as caught:
                with capture(model, self.folder / "untold", branch="all") as cap, cap.branch("cond"):
                    self.assertTrue(torch.equal(model(**two)[0], plain))
        why = str(caught.exception)
        self.assertIn("transformer_blocks.0.attn: the arguments of its forward do not tell which calls are pieces", why)
        self.assertIn("(KeyError: 'joint')", why)
        self.assertNotIn("no attention call", why)

    def test_pieces_that_nobody_asked_for(self) -> None:
        """Pieces are joined of chosen layers and steps alone, and counted once a forward."""
        torch.manual_seed(3)
        model, inputs = qwen_image21(diffusers.QwenImage21Transformer2DModel)
        name = type(model).__name__
        own = attnscope_capture.LAYOUTS[name]
        count = mock.Mock(side_effect=own.pieces)
        names = {name: dataclasses.replace(own, pieces=count)}
        joins = mock.Mock(side_effect=seen.joined)
        watched = mock.patch.object(seen, "joined", joins)
        with mock.patch.dict(attnscope_capture.LAYOUTS, names), watched, torch.no_grad():
            with capture(model.eval(), self.folder / "d", branch="all", layers=1, steps="0,2") as cap:
                for step in range(4):
                    cap.begin_step(step)
                    with cap.branch("cond"):
                        model(**inputs)
        calls = read_capture(self.folder / "d")
        self.assertEqual([(c.facts["step"], map_of(c)) for c in calls], [(step, WORDS_AND_PICTURES) for step in (0, 2)])
        self.assertEqual([call.args[0] for call in joins.call_args_list], [c.facts["layer_name"] for c in calls])
        self.assertEqual(count.call_count, 2)

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
