"""Batches of guidance that are not [uncond; cond], run by pipelines of diffusers: refused, or named by the user."""

import contextlib
import types
import unittest
from typing import Any

import torch

import small_models
import test_models_image
from attnscope_capture import capture
from support import CaptureTest, read_capture

WORDS = torch.randn(2, 1, 7, 12, generator=torch.Generator().manual_seed(1))
PARTS = {"vae": None, "text_encoder": None, "tokenizer": None, "safety_checker": None, "feature_extractor": None}


def unet(**more: Any) -> Any:
    from diffusers import UNet2DConditionModel

    torch.manual_seed(1)
    return test_models_image.unet(lambda **sizes: UNet2DConditionModel(**{**sizes, **more}))[0].eval()


def pipeline(name: str, model: Any, **more: Any) -> Any:
    import diffusers

    scheduler = diffusers.DDIMScheduler(clip_sample=False)
    made = {**PARTS, "unet": model, "scheduler": scheduler, "requires_safety_checker": False, **more}
    pipe = getattr(diffusers, name)(**made)
    pipe.set_progress_bar_config(disable=True)
    return pipe


class Batches(CaptureTest):
    def record(self, pipe: Any, name: str = "d", given: dict[str, Any] | None = None, **options: Any) -> list[Any]:
        given = {"height": 32, "width": 48, "num_inference_steps": 3, **(given or {})}
        words = {"prompt_embeds": WORDS[0], "negative_prompt_embeds": WORDS[1]}
        options = {"branch": "all", "layers": 0, "slots": "attn2", "values": False, **options}
        with capture(pipe, self.folder / name, **options):
            pipe(**words, output_type="latent", **{k: v for k, v in given.items() if v is not None})
        return read_capture(self.folder / name)

    def test_a_third_part_for_perturbed_attention(self) -> None:
        pipe = pipeline("StableDiffusionPAGPipeline", unet(), pag_applied_layers=["mid"])
        for guidance, parts in ((7.5, 3), (0.0, 2)):
            for images in (1, 2):  # of two, a batch of six has halves that look like two branches
                given = {"guidance_scale": guidance, "num_images_per_prompt": images}
                batch = parts * images
                with self.refused("do_perturbed_attention_guidance", f"batch of {batch}", r'branches=\['):
                    self.record(pipe, f"{guidance}-{images}", given)
        names = ["uncond", "cond", "perturbed"]
        calls = self.record(pipe, "named", {"num_images_per_prompt": 2}, branches=names)
        self.assertEqual([c.facts["branches"] for c in calls], [[n for n in names for _ in range(2)]] * 3)
        calls = self.record(pipe, "off", {"num_images_per_prompt": 2, "pag_scale": 0.0})
        self.assertEqual([c.facts["branches"] for c in calls], [["uncond"] * 2 + ["cond"] * 2] * 3)

    def test_guidance_by_a_picture_as_well(self) -> None:
        """InstructPix2Pix runs [cond; no words; neither]."""
        from diffusers import AutoencoderKL

        sizes = {"block_out_channels": (4, 4), "norm_num_groups": 2}
        blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
        vae = AutoencoderKL(**sizes, **blocks)
        pipe = pipeline("StableDiffusionInstructPix2PixPipeline", unet(in_channels=8), vae=vae)
        given = {"image": torch.rand(1, 4, 6, 10), "num_images_per_prompt": 2, "height": None, "width": None}
        with self.refused("image_guidance_scale", "batch of 6"):
            self.record(pipe, given=given)

    def test_latents_tell_the_parts(self) -> None:
        """Whatever a pipeline says: three runs of the same latents are no two, and other latents no branches."""
        model = unet()
        x = torch.randn(2, 4, 6, 10)
        owner = types.SimpleNamespace(unet=model, do_classifier_free_guidance=True)
        for name, batch, word in (("three", x.repeat(3, 1, 1, 1), "3 of the same"), ("own", x, "its own latents")):
            with self.subTest(name), torch.no_grad(), self.refused(word, f"batch of {len(batch)}"):
                with capture(owner, self.folder / name):
                    model(batch, 5.0, WORDS[0].repeat(len(batch), 1, 1))
        alone = small_models.cogvideox().pipe.transformer
        videos = {"hidden_states": torch.randn(2, 3, 4, 8, 12), "encoder_hidden_states": torch.randn(2, 6, 12)}
        with torch.no_grad(), self.refused("its own latents", "batch of 2"):
            with capture(alone, self.folder / "alone"):
                alone(**videos, timestep=torch.tensor([5, 5]))

    def test_channels_of_a_picture_may_differ(self) -> None:
        """Stable Video Diffusion's unconditional half has none."""
        model = unet(in_channels=8)
        x = torch.randn(1, 4, 6, 10).repeat(2, 1, 1, 1)
        picture = torch.stack([torch.zeros(4, 6, 10), torch.randn(4, 6, 10)])
        owner = types.SimpleNamespace(unet=model, do_classifier_free_guidance=True)
        with torch.no_grad(), capture(owner, self.folder / "d", branch="both", layers=0, slots="attn2"):
            model(torch.cat([x, picture], 1), 5.0, WORDS[:, 0])
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(call.facts["branches"], ["uncond", "cond"])

    def test_guidance_that_stops(self) -> None:
        """By a callback, as diffusers' documentation has it: what is left is half of the batch."""
        pipe = pipeline("StableDiffusionPipeline", unet())

        def stopped(images: int, change: float) -> list[Any]:
            """Steps and branches of a run whose text is that of the prompt, times `change`, after the first step."""

            def stop(pipe: Any, step: int, timestep: Any, given: dict[str, Any]) -> dict[str, Any]:
                if step == 0:
                    pipe._guidance_scale = 0.0
                    given["prompt_embeds"] = change * given["prompt_embeds"].chunk(2)[1]
                return given

            given = {"callback_on_step_end": stop, "callback_on_step_end_tensor_inputs": ["prompt_embeds"]}
            name = f"{images} {change}"
            told = contextlib.nullcontext()
            if change != 1:  # nothing tells whose text that is
                told = self.refused(f"batch of {images} after one of {2 * images}", "cap.branch")
            with told:
                self.record(pipe, name, {**given, "num_images_per_prompt": images})
            calls = read_capture(self.folder / name)
            return [(c.facts["step"], c.facts.get("branches"), c.facts.get("of_step")) for c in calls]

        for images in (1, 2):
            half = [(0, [n for n in ("uncond", "cond") for _ in range(images)], None)]
            self.assertEqual(stopped(images, 1), half + [(s, ["cond"], None) for s in (1, 2)])
            later = [] if self.strict else [(s, None, 0) for s in (1, 2)]
            self.assertEqual(stopped(images, 1.5), half + later)

    def test_both_branches_where_the_class_runs_one_a_forward(self) -> None:
        """A loop of one's own around Wan that runs both in a batch."""
        model = small_models.wan().pipe.transformer
        one = {"hidden_states": torch.randn(1, 4, 3, 8, 12), "encoder_hidden_states": torch.randn(2, 9, 12)}
        given = {"hidden_states": one["hidden_states"].repeat(2, 1, 1, 1, 1), "timestep": torch.tensor([5.0, 5.0])}
        given["encoder_hidden_states"] = one["encoder_hidden_states"]
        pair = torch.randn(2, 4, 3, 8, 12)
        four = {**given, "hidden_states": pair.repeat(2, 1, 1, 1, 1), "timestep": torch.full((4,), 5.0)}
        four["encoder_hidden_states"] = torch.randn(4, 9, 12)
        for doubled in (given, four):
            with torch.no_grad(), self.refused("2 of the batch's items have the same latents", 'guidance="batch"'):
                with capture(model, self.folder / "d", layers=0, force=True):
                    model(**doubled)
        options = {"branches": ["uncond", "cond"], "guidance": "batch", "branch": "both", "kinds": "cross"}
        with torch.no_grad(), capture(model, self.folder / "named", layers=0, **options):
            model(**given)
        (call,) = read_capture(self.folder / "named")
        self.assertEqual(call.facts["branches"], ["uncond", "cond"])
        two = {**given, "hidden_states": torch.randn(2, 4, 3, 8, 12)}  # two videos
        with torch.no_grad(), capture(model, self.folder / "two", layers=0, kinds="self"):
            model(**two)
        (call,) = read_capture(self.folder / "two")
        self.assertEqual((call.facts["branches"], call["q"].shape[0]), (["cond"], 2))


if __name__ == "__main__":
    unittest.main()
