"""Transformers of diffusers that make video and sound, or sound alone."""

import types
import unittest
from collections.abc import Sequence
from typing import Any

import diffusers
import torch
from diffusers.modular_pipelines.minimax_h3 import before_denoise

import attnscope_capture
from attnscope_capture import capture
from model_cases import Case, Models, Probe, numbers, prefix
from support import read_capture

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

def minimax_h3(task: str) -> Any:
    """Rows as the pipeline's own functions pack them, of a video of 2×2×3 tokens and sound of 5 latents a channel."""

    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            num_attention_heads=2,
            attention_head_dim=16,
            hidden_size=24,
            num_layers=2,
            num_refiner_layers=1,
            ffn_dim=32,
            in_channels=2,
            audio_in_channels=5,
            text_dim=12,
            freq_dim=16,
            time_embed_hidden_dim=16,
            time_embed_dim=8,
            rope_freq_dim=2,
        )
        places, tags, video, audio, text, films, sounds = packed(task)
        stamps, rows = before_denoise.MiniMaxH3SetTimestepsStep.build_row_timesteps(
            video, audio, films, sounds, len(text), 0.25, 0.5, 0.75, 1.0
        )
        inputs = dict(
            hidden_states=numbers(1, len(video), 8),
            audio_hidden_states=numbers(1, len(audio), 5),
            encoder_hidden_states=numbers(1, len(text), 12),
            timestep=stamps,
            timestep_indices=rows,
            token_tags=tags,
            position_ids=places,
            video_indices=video,
            audio_indices=audio,
            text_indices=text,
        )
        return model, inputs

    return make


def packed(task: str) -> Any:
    tags = torch.tensor([1, 1, 0, 0, 1, 1, 1])  # within the words, a picture as the text's encoder sees it
    sizes = dict(num_latent_frames=2, latent_height=4, latent_width=6, num_audio_latents=5, patch_size=(1, 2, 2))
    kinds = dict(audio_channels=2, audio_tag=2, video_tag=0)
    if task != "references":
        build = before_denoise.MiniMaxH3PrepareLayoutStep.build_packed_sequence
        return build(tags, **sizes, **kinds, keyframe_anchors=("first", "last") if task == "keyframes" else ())
    # A picture; a video with its sound, another of its size, a picture of its size; a sound.
    references = [
        types.SimpleNamespace(kind=kind, has_audio=sound)
        for kind, sound in (("image", 0), ("video", 1), ("video", 0), ("image", 0), ("audio", 1))
    ]
    films = [torch.zeros(1, 2, *size) for size in ((1, 6, 4), (7, 4, 4), (2, 4, 4), (1, 4, 4))]
    build = before_denoise.MiniMaxH3Ref2VAPrepareLayoutStep.build_ref2va_packed_sequence
    return build(tags, references, films, [torch.zeros(2 * n, 5) for n in (23, 4)], **sizes, **kinds)


def stable_audio3(differential: bool) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            io_channels=4,
            embed_dim=32,
            depth=2,
            num_heads=2,
            cond_token_dim=12,
            global_cond_dim=12,
            local_add_cond_dim=5,
            timestep_features_dim=8,
            num_memory_tokens=3,
            use_differential_attention=differential,
        )
        inputs = dict(
            hidden_states=numbers(1, 4, 10),
            timestep=torch.tensor([0.7]),
            encoder_hidden_states=numbers(1, 7, 12),
            global_hidden_states=numbers(1, 12),
            encoder_attention_mask=prefix(5, 7),
        )
        return model, inputs

    return make


def kandinsky6_sr(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        in_visual_dim=4,
        out_visual_dim=4,
        time_dim=16,
        model_dim=32,
        ff_dim=32,
        num_visual_blocks=2,
        axes_dims=(4, 6, 6),
        nabla_window=(1, 1, 1),
    )
    return model, dict(hidden_states=numbers(1, 2, 16, 8, 9), timestep=STAMP)


def ace_step(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        in_channels=12,
        audio_acoustic_hidden_dim=4,
        sliding_window=2,
    )
    inputs = dict(
        hidden_states=numbers(1, 13, 4),
        timestep=torch.tensor([0.7]),
        timestep_r=torch.tensor([0.7]),
        encoder_hidden_states=numbers(1, 5, 32),
        context_latents=numbers(1, 13, 8),
    )
    return model, inputs


def minimax_music3(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(
        in_channels=4,
        condition_dim=6,
        num_layers=2,
        num_attention_heads=2,
        attention_head_dim=16,
        ff_inner_dim=16,
        rotary_dim=8,
        fourier_embedding_dim=8,
    )
    inputs = dict(
        hidden_states=numbers(1, 4, 10), timestep=torch.tensor([0.7]), encoder_hidden_states=numbers(1, 10, 6)
    )
    return model, inputs


def longcat_audio(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = cls(dit_dim=32, dit_depth=2, dit_heads=2, dit_text_dim=12, latent_dim=5, use_latent_condition=False)
    inputs = dict(
        hidden_states=numbers(1, 10, 5),
        encoder_hidden_states=numbers(1, 7, 12),
        encoder_attention_mask=prefix(5, 7),
        timestep=torch.tensor([0.7]),
    )
    return model, inputs


MADE = "audio_left:audio 5x1x1, audio_right:audio 5x1x1, video 2x2x3"
KEYFRAMES = "reference_1:reference 1x2x3, reference_2:reference 1x2x3"
REFERENCES = (
    "reference_1:reference 1x3x2, reference_left_2:reference 23x1x1, reference_right_2:reference 23x1x1, "
    "reference_2:reference 7x2x2, reference_3:reference 2x2x2, reference_4:reference 1x2x2, "
    "reference_left_5:reference 4x1x1, reference_right_5:reference 4x1x1"
)


def minimax_h3_case(task: str, references: str, name: str, probes: Sequence[Probe]) -> Case:
    """probes: of the main stack's first block."""
    between = f", {references}, " if references else ", "
    calls = {"token_refiner.refiner_blocks.0 *": "text 7", "transformer_blocks.* attn": f"text 7{between}{MADE}"}
    return Case("MiniMaxH3Transformer3DModel", minimax_h3(task), calls, 2, name, probes=probes)


H3_BLOCK = "transformer_blocks.0 attn"

CASES = (
    minimax_h3_case(
        "text",
        "",
        "",
        [
            Probe("hidden_states", (0, 8), H3_BLOCK, "video", 8),
            Probe("audio_hidden_states", (0, 7), H3_BLOCK, "audio_right", 2),
        ],
    ),
    minimax_h3_case(
        "keyframes", KEYFRAMES, "of keyframes", [Probe("hidden_states", (0, 8), H3_BLOCK, "reference_2", 2)]
    ),
    minimax_h3_case(
        "references",
        REFERENCES,
        "of references",
        [
            Probe("hidden_states", (0, 6 + 28 + 3), H3_BLOCK, "reference_3", 3),
            Probe("audio_hidden_states", (0, 46 + 5), H3_BLOCK, "reference_right_5", 1),
        ],
    ),
    Case(
        "StableAudio3DiTModel",
        stable_audio3(True),
        {
            "* self_attn": "memory:register 3, audio 10x1x1",
            "* self_attn.2": "memory:register 3, audio 10x1x1",
            "* cross_attn": "memory:register 3, audio 10x1x1 > text 7",
            "* cross_attn.2": "memory:register 3, audio 10x1x1 > text 7",
        },
        2,
        probes=[Probe("hidden_states", (0, slice(None), 4), "transformer_blocks.0 self_attn", "audio", 4)],
    ),
    Case(
        "StableAudio3DiTModel",
        stable_audio3(False),
        {
            "* self_attn": "memory:register 3, audio 10x1x1",
            "* cross_attn": "memory:register 3, audio 10x1x1 > text 7",
        },
        2,
        "without differences",
    ),
    Case(
        "Kandinsky6SRTransformer3DModel",
        kandinsky6_sr,
        {"* self_attention": "video 2x16x8 {'tiles': [1, 8, 8]}"},
        2,
        masks={"*": "blocks"},
        unsized="blocks that are chosen from q and k",
        probes=[
            Probe("hidden_states", (0, 1, 9, 3), "visual_transformer_blocks.0 self_attention", "video", 128 + 64 + 11)
        ],
    ),
    Case(
        "AceStepTransformer1DModel",
        ace_step,
        {"* self_attn": "audio 7x1x1", "* cross_attn": "audio 7x1x1 > condition:other 5"},
        2,
        masks={"layers.0 self_attn": "tensor"},
        unsized="masks of windows",
        probes=[Probe("hidden_states", (0, 4), "layers.0 self_attn", "audio", 2)],
    ),
    Case(
        "MiniMaxMusic3Transformer1DModel",
        minimax_music3,
        {"* attn": "time:register 1, audio 10x1x1"},
        2,
        probes=[Probe("hidden_states", (0, slice(None), 4), "transformer_blocks.0 attn", "audio", 4)],
    ),
    Case(
        "LongCatAudioDiTTransformer",
        longcat_audio,
        {"* self_attn": "audio 10x1x1", "* cross_attn": "audio 10x1x1 > text 7 (5)"},
        2,
        masks={"* cross_attn": "tensor"},
        probes=[Probe("hidden_states", (0, 4), "blocks.0 self_attn", "audio", 4)],
    ),
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
        kandinsky6(True, True),
        kandinsky6_calls("video 3x2x3, reference 1x2x3", True),
        2,
        "with sound that begins with a picture",
        KANDINSKY6_MASKS,
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

    def test_positions_travel_with_the_packed_row(self) -> None:
        model, inputs = minimax_h3("references")(diffusers.MiniMaxH3Transformer3DModel)
        with torch.no_grad(), capture(model, self.folder / "d", branch="all"):
            model(**inputs)
        calls = read_capture(self.folder / "d")
        stacks = [c.facts["block"].split(".")[0] for c in calls]
        self.assertEqual(stacks, ["token_refiner", *["transformer_blocks"] * 2])
        for call in calls:
            self.assertEqual("position_ids" in call.tensors, "layer" in call.facts)
        # Videos begin where the references end: their times are fractions.
        stored = calls[-1]["position_ids"]
        self.assertTrue(torch.equal(stored, inputs["position_ids"].float()))
        self.assertGreater(float(stored[-1, 0] % 1), 0.3)
        self.assertEqual({c.facts["timestep"] for c in calls}, {0.25})  # references have 0.75 and 1

    def test_a_transformer_for_references_alone(self) -> None:
        """One is recorded that has a name of its own, beside the other or without it."""
        torch.manual_seed(3)
        model, inputs = minimax_h3("references")(diffusers.MiniMaxH3Transformer3DModel)
        other, _ = minimax_h3("text")(diffusers.MiniMaxH3Transformer3DModel)
        both = {"transformer": other, "transformer_ref": model}
        for name, parts in (("both", both), ("one", {"transformer_ref": model})):
            pipe = types.SimpleNamespace(**parts, components=parts)
            with torch.no_grad(), capture(pipe, self.folder / name, layers="all"):
                pipe.transformer_ref(**inputs)
            calls = [c for c in read_capture(self.folder / name) if "layer" in c.facts]
            start = "transformer_ref." if len(parts) > 1 else ""
            self.assertEqual([c.facts["block"] for c in calls], [f"{start}transformer_blocks.{n}" for n in range(2)])
            self.assertEqual(calls[0].facts["queries"][1]["name"], "reference_1")
            # Of two transformers of one kind a forward runs one: what is estimated is its calls.
            size = sum(t.nbytes for c in read_capture(self.folder / name) for t in c.tensors.values())
            self.assertEqual(attnscope_capture.estimate(pipe, inputs=inputs), size)

    def test_rows_that_are_of_no_kind(self) -> None:
        model, inputs = minimax_h3("text")(diffusers.MiniMaxH3Transformer3DModel)
        inputs["audio_indices"] = inputs["audio_indices"][1:]
        inputs["audio_hidden_states"] = inputs["audio_hidden_states"][:, 1:]
        with torch.no_grad(), capture(model, self.folder / "d", layers=0):
            model(**inputs)
        self.assertIn("row 7 of the packed sequence is of no kind", self.said.getvalue())
        (call,) = (c for c in read_capture(self.folder / "d") if "layer" in c.facts)
        self.assertEqual(call.facts["queries"], [{"name": "tokens", "modality": "other", "count": 29}])


if __name__ == "__main__":
    unittest.main()
