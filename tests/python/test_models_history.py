"""Models that see more than one video: history before it, or words, sound and actions in its sequence."""

import inspect
import json
import types
import unittest
from typing import Any

import numpy as np
import torch

from attnscope_capture import LAYOUTS, capture
from model_cases import Case, Models, Probe, cell, map_of, numbers
from support import has_program, program, read_capture

STAMP = torch.tensor([700.0])


def helios(guided: bool, history: bool = True) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = cls(
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=4,
            text_dim=12,
            freq_dim=16,
            ffn_dim=32,
            num_layers=2,
            rope_dim=(4, 6, 6),
            guidance_cross_attn=guided,
            is_amplify_history=True,
        )
        inputs = dict(
            hidden_states=numbers(1, 4, 3, 8, 12),
            timestep=STAMP,
            encoder_hidden_states=numbers(1, 7, 12),
            indices_hidden_states=torch.arange(19, 22)[None],
        )
        if history:
            inputs |= dict(
                indices_latents_history_short=torch.tensor([[0, 18]]),
                latents_history_short=numbers(1, 4, 2, 8, 12, seed=2),
                indices_latents_history_mid=torch.arange(16, 18)[None],
                latents_history_mid=numbers(1, 4, 2, 8, 12, seed=3),
                indices_latents_history_long=torch.arange(8, 16)[None],
                latents_history_long=numbers(1, 4, 8, 8, 12, seed=4),
            )
        return model, inputs

    return make


VIDEO = "video 3x4x6 @19 cell 4x16x16"
HISTORY = (
    "history_long:history 2x1x2 @8 cell 16x64x64, history_mid:history 1x2x3 @16 cell 8x32x32, "
    "history_short_0:history 1x4x6 @0 cell 4x16x16, history_short_1:history 1x4x6 @18 cell 4x16x16, "
)


def cosmos3(kinds: str) -> Any:
    """`kinds`: what the sequence has after the words: v a video, s sound, a actions."""

    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        torch.manual_seed(2)
        model = cls(
            head_dim=16,
            hidden_size=32,
            intermediate_size=32,
            latent_channel=4,
            latent_patch_size=2,
            num_attention_heads=4,
            num_hidden_layers=2,
            num_key_value_heads=2,
            patch_latent_dim=16,
            vocab_size=30,
            rope_axes_dim=(4, 2, 2),
            action_gen=True,
            action_dim=5,
            sound_gen=True,
            sound_dim=6,
        )
        words, at = 7, 7
        inputs: dict[str, Any] = dict(
            input_ids=torch.arange(words), text_indexes=torch.arange(words), und_len=words
        )
        for kind in kinds:
            if kind == "v":
                count = 2 * 3 * 4
                inputs |= dict(
                    vision_tokens=[numbers(1, 4, 2, 6, 8)],
                    vision_token_shapes=[(2, 3, 4)],
                    vision_sequence_indexes=torch.arange(at, at + count),
                    vision_mse_loss_indexes=torch.arange(at, at + count),
                    vision_timesteps=torch.full((count,), 700.0),
                    vision_noisy_frame_indexes=[torch.arange(2)],
                )
            if kind == "s":
                count = 5
                inputs |= dict(
                    sound_tokens=[numbers(6, 5)],
                    sound_token_shapes=[(5, 1, 1)],
                    sound_sequence_indexes=torch.arange(at, at + count),
                    sound_mse_loss_indexes=torch.arange(at, at + count),
                    sound_timesteps=torch.full((count,), 700.0),
                    sound_noisy_frame_indexes=[torch.arange(5)],
                )
            if kind == "a":
                count = 3
                inputs |= dict(
                    action_tokens=[numbers(3, 5)],
                    action_token_shapes=[(3, 1, 1)],
                    action_sequence_indexes=torch.arange(at, at + count),
                    action_mse_loss_indexes=torch.arange(at, at + count),
                    action_timesteps=torch.full((count,), 700.0),
                    action_noisy_frame_indexes=[torch.arange(3)],
                    action_domain_ids=[torch.tensor(0)],
                )
            at += count
        inputs |= dict(position_ids=torch.arange(at)[None].expand(3, -1), sequence_length=at)
        return model, inputs

    return make


CASES = (
    Case(
        "HeliosTransformer3DModel",
        helios(True),
        {"* attn1": HISTORY + VIDEO, "* attn2": VIDEO + " > text 7"},
        2,
        probes=[
            Probe("hidden_states", cell(1, 5, 7), "blocks.0 attn1", "video", 24 + 2 * 6 + 3),
            Probe("latents_history_short", cell(1, 0, 3), "blocks.0 attn1", "history_short_1", 1),
            Probe("latents_history_mid", cell(0, 5, 9), "blocks.0 attn1", "history_mid", 3 + 2),
            Probe("latents_history_long", cell(5, 0, 11), "blocks.0 attn1", "history_long", 2 + 1),
        ],
    ),
    Case(
        "HeliosTransformer3DModel",
        helios(False),
        {"* attn1": HISTORY + VIDEO, "* attn2": HISTORY + VIDEO + " > text 7"},
        2,
        name="text for all",
    ),
    Case(
        "HeliosTransformer3DModel",
        helios(True, history=False),
        {"* attn1": VIDEO, "* attn2": VIDEO + " > text 7"},
        2,
        name="first",
    ),
    Case(
        "Cosmos3OmniTransformer",
        cosmos3("vsa"),
        {
            "* self_attn": "text 7",
            "* self_attn.2": "video 2x3x4, audio 5x1x1, action:other 3x1x1 > "
            "text 7, video 2x3x4, audio 5x1x1, action:other 3x1x1",
        },
        2,
        masks={"* self_attn": "causal"},
        timestep="vision_timesteps",
        probes=[Probe("vision_tokens", cell(1, 3, 5), "layers.0 self_attn.2", "video", 12 + 4 + 2)],
    ),
    Case(
        "Cosmos3OmniTransformer",
        cosmos3("v"),
        {"* self_attn": "text 7", "* self_attn.2": "video 2x3x4 > text 7, video 2x3x4"},
        2,
        name="video",
        masks={"* self_attn": "causal"},
        timestep="vision_timesteps",
    ),
)


class History(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()

    @unittest.skipUnless(has_program(), "ATTNSCOPE names no program")
    def test_the_preset_of_helios_is_a_chunk_of_its_pipeline(self) -> None:
        """The preset has the layout that captures record for the default arguments of the pipeline."""
        from diffusers import HeliosPipeline, HeliosTransformer3DModel

        default = {n: p.default for n, p in inspect.signature(HeliosPipeline.__call__).parameters.items()}
        long, mid, short = default["history_sizes"]
        frames, height, width = (default[n] for n in ("num_latent_frames_per_chunk", "height", "width"))
        self.assertTrue(default["keep_first_frame"])
        first, *parts = torch.arange(1 + long + mid + short + frames).split([1, long, mid, short, frames])
        indices = dict(zip(("long", "mid", "short"), [*parts[:2], torch.cat([first, parts[2]])]))

        def latents(count: int) -> torch.Tensor:
            return torch.empty(1, 16, count, height // 8, width // 8, device="meta")

        given = {"hidden_states": latents(frames), "indices_hidden_states": parts[3]}
        given["encoder_hidden_states"] = torch.empty(1, 512, 4096, device="meta")
        for name, numbers_of in indices.items():
            given[f"latents_history_{name}"] = latents(len(numbers_of))
            given[f"indices_latents_history_{name}"] = numbers_of
        sizes = inspect.signature(HeliosTransformer3DModel.__init__).parameters
        config = types.SimpleNamespace(patch_size=sizes["patch_size"].default, guidance_cross_attn=True)
        layout = LAYOUTS["HeliosTransformer3DModel"]
        told = layout.sequences(types.SimpleNamespace(config=config), given)["joint"]
        q = self.folder / "q.npy"
        np.save(q, np.zeros((1, 1, sum(s.count for s in told), sizes["attention_head_dim"].default), np.float16))
        shown = program("info", "--q", q, "--k", q, "--preset", "helios", "--json", "--no-scan")
        (call,) = json.loads(shown.stdout)["calls"]
        found = [
            (s["name"], s["modality"], s["count"], s["grid"], s["cell"], s.get("first_frame", 0))
            for s in call["query_segments"]
        ]
        expected = [
            (s.name, s.modality, s.count, list(s.grid), list(s.cell), s.first_frame or 0) for s in told
        ]
        self.assertEqual(found, expected)

    def test_tokens_between_those_of_another_kind_are_others(self) -> None:
        """Vision whose tokens do not stand together is not called a video."""
        import diffusers

        model, inputs = cosmos3("vs")(diffusers.Cosmos3OmniTransformer)
        vision, sound = inputs["vision_sequence_indexes"].clone(), inputs["sound_sequence_indexes"].clone()
        vision[-1], sound[0] = sound[0], vision[-1].clone()
        inputs |= {"vision_sequence_indexes": vision, "sound_sequence_indexes": sound}
        with torch.no_grad(), capture(model.eval(), self.folder / "d", branch="both", layers=0) as cap:
            with cap.branch("cond"):
                model(**inputs)
        self.assertIn("the tokens of video do not stand next to each other", self.said.getvalue())
        maps = {c.facts["slot"]: map_of(c) for c in read_capture(self.folder / "d")}
        self.assertEqual({m.split(" ")[0] for m in maps.values()}, {"tokens:other"}, maps)


if __name__ == "__main__":
    unittest.main()
