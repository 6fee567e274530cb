"""Encoders of transformers: each call has its block and slot, and its tokens are what they are."""

import json
import unittest
from typing import Any

import torch
import transformers

from attnscope_capture import capture
from model_cases import Case, Models, Probe, numbers
from support import TOLERANCE, CaptureTest, output_error, read_capture

IDS = torch.tensor([[1, 5, 6, 7, 2]])
VISION = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    image_size=12,
    patch_size=4,
    attn_implementation="sdpa",
)


def configured(cls: Any, **options: Any) -> Any:
    return cls(cls.config_class(**options))


def whisper(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = configured(
        cls,
        vocab_size=20,
        num_mel_bins=4,
        d_model=32,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_source_positions=11,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        attn_implementation="sdpa",
    )
    return model, dict(input_features=numbers(1, 4, 22), decoder_input_ids=IDS, use_cache=False)


def clip(cls: Any) -> tuple[Any, dict[str, Any]]:
    text = dict(
        vocab_size=20,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        eos_token_id=2,
    )
    model = configured(cls, text_config=text, vision_config=VISION, attn_implementation="sdpa")
    return model, dict(input_ids=IDS, pixel_values=numbers(1, 3, 12, 12))


def pictures(**more: Any) -> Any:
    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        return configured(cls, **{**VISION, **more}), dict(pixel_values=numbers(1, 3, 12, 12))

    return make


def videomae(cls: Any) -> tuple[Any, dict[str, Any]]:
    model = configured(cls, **VISION, num_frames=4, tubelet_size=2)
    return model, dict(pixel_values=numbers(1, 4, 3, 12, 12))


def vjepa2(**more: Any) -> Any:
    """more: options of the configuration that begin with num_, else inputs."""

    def make(cls: Any) -> tuple[Any, dict[str, Any]]:
        model = configured(
            cls,
            patch_size=4,
            crop_size=12,
            frames_per_clip=4,
            tubelet_size=2,
            hidden_size=24,
            num_attention_heads=2,
            num_hidden_layers=2,
            mlp_ratio=1,
            pred_hidden_size=24,
            pred_num_attention_heads=2,
            pred_num_hidden_layers=1,
            pred_num_mask_tokens=1,
            attn_implementation="sdpa",
            **{k: v for k, v in more.items() if k.startswith("num_")},
        )
        given = {k: v for k, v in more.items() if not k.startswith("num_")}
        return model, dict(pixel_values_videos=numbers(1, 4, 3, 12, 12), **given)

    return make


def video_prism(cls: Any) -> tuple[Any, dict[str, Any]]:
    layers = {"num_spatial_layers": 2, "num_temporal_layers": 1, "num_auxiliary_layers": 1}
    vision = {**VISION, **layers, "tubelet_size": [1, 4, 6], "num_frames": 3, "attn_implementation": "eager"}
    inputs = dict(pixel_values_videos=numbers(1, 3, 3, 12, 12))
    if "Clip" not in cls.__name__ and "Text" not in cls.__name__:
        return configured(cls, **vision), inputs
    text = {name: VISION[name] for name in ("hidden_size", "num_attention_heads", "intermediate_size")}
    text |= {"vocab_size": 20, "num_hidden_layers": 1}
    if "Text" in cls.__name__:
        return configured(cls, **text, attn_implementation="eager"), {"input_ids": IDS}
    model = configured(cls, text_config=text, vision_config=vision, attn_implementation="eager")
    return model, {**inputs, "input_ids": IDS}


def encoder(cls: str, make: Any, calls: dict[str, str], layers: int, name: str = "", **more: Any) -> Case:
    return Case(cls, make, calls, layers, name, library="transformers", timestep=None, **more)


PATCHES = "class:register 1, image 1x3x3 cell 1x4x4"
REGISTERS = "class:register 1, registers:register 2, image 1x3x3 cell 1x4x4"
WHISPER = {
    "*encoder.layers.* self_attn": "audio 11x1x1",
    "*decoder.layers.* self_attn": "text 5",
    "*decoder.layers.* encoder_attn": "text 5 > audio 11x1x1",
}
DISTILLED = "class:register 1, distillation:register 1, image 1x3x3 cell 1x4x4"
PIXEL = (0, slice(None), 6, 9)  # of the patch (1, 2)
PRISM = {"*spatial_layers.*": "frame:video 1x3x2 cell 1x4x6", "*temporal_layers.*": "frames:video 3x1x1"}
AUXILIARY = {"*auxiliary_layers.*": "video 3x3x2 cell 1x4x6"}
FIRST_PATCHES = Probe("pixel_values", PIXEL, "layers.0 attention", "image", 5)

CASES = (
    encoder("WhisperModel", whisper, WHISPER, 3, masks={"*decoder.layers.* self_attn": "causal"}),
    encoder(
        "WhisperForConditionalGeneration",
        whisper,
        WHISPER,
        3,
        masks={"*decoder.layers.* self_attn": "causal"},
    ),
    encoder(
        "CLIPModel",
        clip,
        {"*text_model.*": "text 5", "*vision_model.*": PATCHES},
        2,
        masks={"*text_model.*": "causal"},
    ),
    encoder("CLIPVisionModel", pictures(), {"* self_attn": PATCHES}, 2),
    encoder("CLIPVisionModelWithProjection", pictures(), {"* self_attn": PATCHES}, 2),
    encoder(
        "CLIPForImageClassification",
        lambda cls: (configured(cls, vision_config=VISION, attn_implementation="sdpa"), pictures()(cls)[1]),
        {"* self_attn": PATCHES},
        2,
    ),
    encoder("ViTModel", pictures(), {"*layers.* *": PATCHES}, 2, probes=[FIRST_PATCHES]),
    encoder("ViTForImageClassification", pictures(), {"*layers.* *": PATCHES}, 2),
    encoder("DeiTModel", pictures(), {"*layers.* *": DISTILLED}, 2, probes=[FIRST_PATCHES]),
    encoder("DeiTForImageClassification", pictures(), {"*layers.* *": DISTILLED}, 2),
    encoder("DeiTForImageClassificationWithTeacher", pictures(), {"*layers.* *": DISTILLED}, 2),
    encoder("Dinov2Model", pictures(), {"*layer.* *": PATCHES}, 2),
    encoder("Dinov2ForImageClassification", pictures(), {"*layer.* *": PATCHES}, 2),
    encoder("Dinov2WithRegistersModel", pictures(num_register_tokens=2), {"*layer.* *": REGISTERS}, 2),
    encoder(
        "Dinov2WithRegistersForImageClassification",
        pictures(num_register_tokens=2),
        {"*layer.* *": REGISTERS},
        2,
    ),
    encoder("DINOv3ViTModel", pictures(num_register_tokens=2), {"*layer.* *": REGISTERS}, 2),
    encoder("VideoMAEModel", videomae, {"encoder.layer.* *": "video 2x3x3 cell 2x4x4"}, 2),
    encoder("VideoMAEForVideoClassification", videomae, {"*encoder.layer.* *": "video 2x3x3 cell 2x4x4"}, 2),
    encoder(
        "VJEPA2Model",
        vjepa2(),
        {"encoder.layer.* *": "video 2x3x3 cell 2x4x4", "predictor.layer.* *": "tokens:other 36"},
        2,
        unsized="predictor.layer.0.attention: its tokens are not known without running",
    ),
    encoder(
        "VJEPA2ForVideoClassification",
        vjepa2(num_pooler_layers=1),
        {
            "vjepa2.encoder.layer.* *": "video 2x3x3 cell 2x4x4",
            "pooler.self_attention_layers.0 *": "video 2x3x3 cell 2x4x4",
        },
        2,
        apart=1,
    ),
    encoder(
        "VJEPA2Model",
        vjepa2(skip_predictor=True),
        {"encoder.layer.* *": "video 2x3x3 cell 2x4x4"},
        2,
        "alone",
        probes=[
            Probe("pixel_values_videos", (0, 3, slice(None), 6, 9), "encoder.layer.0 attention", "video", 14)
        ],
    ),
)


for prism, further, count in (("VisionModel", {}, 3), ("ForVideoClassification", {}, 3), ("VideoModel", AUXILIARY, 4)):
    CASES += (encoder(f"VideoPrism{prism}", video_prism, {**PRISM, **further}, count),)
PRISM_OF_WORDS = {**PRISM, **AUXILIARY, "text_model.*": "text 5, class:register 1"}
CASES += (encoder("VideoPrismClipModel", video_prism, PRISM_OF_WORDS, 4),)
CASES += (encoder("VideoPrismTextModel", video_prism, {"layers.*": "text 5, class:register 1"}, 1),)


class Encoders(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()

    def test_the_film_of_video_prism(self) -> None:
        """A film of the grid of all its patches fits; that of a frame's is another."""
        model, inputs = video_prism(transformers.VideoPrismVideoModel)
        with torch.no_grad(), capture(model.eval(), self.folder / "d") as cap:
            model(**inputs)
        cap.add_video(torch.zeros(3, 12, 12, 3), frames_per_latent=1)
        frames = json.loads((self.folder / "d" / "capture.json").read_text())["frames"]
        self.assertEqual([frame["t"] for frame in frames], [0, 1, 2])
        with self.refused("1 frames are 1 latent frames", "the capture has 3"):
            cap.add_video(torch.zeros(1, 12, 12, 3), frames_per_latent=1)

    def test_tokens_that_nobody_told_are_not_joint(self) -> None:
        from transformers import VJEPA2Model

        torch.manual_seed(1)
        model, inputs = vjepa2()(VJEPA2Model)
        with torch.no_grad(), capture(model.eval(), self.folder / "d", blocks="predictor.*"):
            model(**inputs)
        self.assertEqual({c.facts["kind"] for c in read_capture(self.folder / "d")}, {"self"})


class Words:
    """A tokenizer as far as it is used."""

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"w{i}" for i in ids]


class Texts(CaptureTest):
    def test_the_words_of_whisper(self) -> None:
        from transformers import WhisperModel

        torch.manual_seed(1)
        model, inputs = whisper(WhisperModel)
        with torch.no_grad(), capture(model.eval(), self.folder / "d", tokenizer=Words()):
            model(**inputs)
        words = ["w1", "w5", "w6", "w7", "w2"]
        for call in read_capture(self.folder / "d"):
            for segment in [*call.facts["queries"], *call.facts.get("keys", [])]:
                self.assertEqual(segment.get("words"), [words] if segment["name"] == "text" else None)

    def test_t5_is_text_alone(self) -> None:
        """The first format says it of the longer list, the encoder; the decoder's calls go by name beside it."""
        from transformers import T5Config, T5Model

        torch.manual_seed(1)
        config = T5Config(
            vocab_size=20,
            d_model=32,
            d_kv=16,
            d_ff=16,
            num_layers=2,
            num_decoder_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
            attn_implementation="sdpa",
        )
        model = T5Model(config).eval()
        inputs = dict(input_ids=IDS, decoder_input_ids=IDS[:, :3], use_cache=False)
        with torch.no_grad():
            plain = model(**inputs)[0]
            with capture(model, self.folder / "d"):
                again = model(**inputs)[0]
        self.assertTrue(torch.equal(plain, again))
        calls = read_capture(self.folder / "d")
        place = [c.facts.get("layer", c.facts.get("block")) for c in calls]
        self.assertEqual(place, [0, 1, "decoder.block.0", "decoder.block.0"])
        seen = [(c.facts["kind"], c.facts["text"], c.facts["format"][-1]) for c in calls]
        kinds = [("self", "1"), ("self", "1"), ("self", "2"), ("cross", "2")]
        self.assertEqual(seen, [(kind, "all", form) for kind, form in kinds])
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])


if __name__ == "__main__":
    unittest.main()
