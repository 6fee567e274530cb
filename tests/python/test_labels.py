"""Whatever loop runs a model: each call under its step and branch, or a refusal and nothing written."""

import contextlib
import itertools
import types
import unittest
from typing import Any

import torch

import test_models_image
import test_models_video
from attnscope_capture import LabelError, capture
from support import read_capture
from test_steps import STAMPS, LoopTest, Own, Scheduler, WithoutTimestep, own, pipeline, tokens

# How the branches of a step come: in forwards, each of one or several of them.
FORMS = {
    "a batch": [("uncond", "cond")],
    "two forwards": [("cond",), ("uncond",)],
    "two forwards, the other order": [("uncond",), ("cond",)],
    "three forwards": [("cond",), ("uncond",), ("no_image",)],
    "a batch and a forward": [("uncond", "cond"), ("no_image",)],
}
CONTEXTS = {("uncond", "cond"): "cond_uncond"}  # of others, their branch

# The facts (timestep, context, scheduler) that suffice where each forward has one branch; all others are refused.
TOLD = {(t, True, s) for t in (False, True) for s in (False, True)}


class Matrix(LoopTest):
    def run_form(
        self, form: str, stamped: bool, named: bool, scheduled: bool, name: str, strict: bool = True, **options: Any
    ) -> bool:
        """Runs three steps; False: refused."""
        model: Own = own("timestep") if stamped else WithoutTimestep()
        owner = pipeline(model, do_classifier_free_guidance=True) if scheduled else None

        def step(i: int, stamp: float, cap: Any) -> None:
            for branches in FORMS[form]:
                word = CONTEXTS.get(branches, branches[0])
                with model.cache_context(word) if named else contextlib.nullcontext():
                    model(tokens(i, *branches), *((stamp,) if stamped else ()))
            if owner is not None:
                owner.scheduler.step(0)

        try:
            self.run_loop(model, step, owner, name, strict=strict, **options)
        except LabelError:
            return False
        return True

    def test_unknown_classes(self) -> None:
        outcomes = {}
        for form, stamped, named, scheduled in itertools.product(FORMS, *[(False, True)] * 3):
            for options in ({"branch": "all"}, {"steps": "1"}):
                told = (stamped, named, scheduled)
                name = "-".join(map(str, (form, *told, *options.values())))
                with self.subTest(name):
                    done = self.run_form(form, *told, name, **options)
                    if not done:
                        self.nothing(name)
                        outcomes[form, told, str(options)] = "refused"
                        continue
                    found = self.recorded(name)  # holds steps and branches against what the loop gave
                    steps = [1] if "steps" in options else [0, 1, 2]
                    self.assertEqual(sorted({s for s, _ in found}), steps)
                    outcomes[form, told, str(options)] = "right"
                    if len(FORMS[form][0]) == 1:
                        wanted = [b for (b,) in FORMS[form] if "branch" in options or b == "cond"]
                        self.assertEqual(found, [(s, [b]) for s in steps for b in wanted])
        for (form, told, options), outcome in outcomes.items():
            if all(len(branches) == 1 for branches in FORMS[form]):
                self.assertEqual(outcome, "right" if told in TOLD else "refused", (form, told, options))
        self.assertEqual({o for (f, t, _), o in outcomes.items() if f == "a batch" and any(t)}, {"right"})

    def test_unknown_classes_lose_no_forward(self) -> None:
        """Each forward is there once, with the labels that the loop gave it or with its number."""
        for form, *told in itertools.product(FORMS, *[(False, True)] * 3):
            name = "-".join(map(str, (form, *told)))
            with self.subTest(name):
                self.assertTrue(self.run_form(form, *told, name, strict=False, branch="all"))
                self.recorded(name)  # holds what is stated against what the loop gave
                calls = [c for c in read_capture(self.folder / name) if c.facts["layer"] == 0]
                items = sorted(code for c in calls for code in c["q"][:, 0, 0, 0].tolist())
                came = [tokens(i, *b)[:, 0, 0].tolist() for i in range(3) for b in FORMS[form]]
                self.assertEqual(items, sorted(sum(came, [])))
                numbers = [c.facts["forward"] for c in calls if "forward" in c.facts]
                self.assertEqual(len(numbers), len(set(numbers)))
                for call in calls:
                    self.assertTrue("forward" in call.facts or "step" in call.facts, call.facts)

    def test_two_forwards_that_the_user_names(self) -> None:
        for form, names in (
            ("two forwards", ["cond", "uncond"]),
            ("two forwards, the other order", ["uncond", "cond"]),
            ("three forwards", ["cond", "uncond", "no_image"]),
        ):
            for stamped, scheduled in itertools.product((False, True), repeat=2):
                name = f"{form}{stamped}{scheduled}"
                options = {"branch": "all", "branches": names, "guidance": "forwards"}
                self.assertTrue(self.run_form(form, stamped, False, scheduled, name, **options))
                self.assertEqual(self.recorded(name), [(i, [b]) for i in range(3) for b in names])


class Classes(LoopTest):
    """Classes with a token layout, run as their pipelines run them."""

    def test_a_unet_takes_both_branches_in_a_batch(self) -> None:
        """Frames and places of an item stand beside each other in the batches of its calls."""
        for make, cls in (
            (test_models_image.unet, "UNet2DConditionModel"),
            (test_models_image.video_diffusion, "UNetSpatioTemporalConditionModel"),
        ):
            import diffusers

            torch.manual_seed(1)
            model, inputs = make(getattr(diffusers, cls))
            model = model.eval()
            one = {k: v[:1] for k, v in inputs.items()}
            double = {k: torch.cat([v, v]) if v.ndim > 1 else v for k, v in one.items()}
            words = one["encoder_hidden_states"]
            double["encoder_hidden_states"] = torch.cat([words - 0.25, words])
            owner = types.SimpleNamespace(unet=model, scheduler=Scheduler(), do_classifier_free_guidance=True)
            for branch in ("cond", "both"):
                with torch.no_grad(), capture(owner, self.folder / f"{cls}{branch}", branch=branch):
                    model(**double)
            one, both = (read_capture(self.folder / f"{cls}{b}") for b in ("cond", "both"))
            self.assertEqual(len(one), len(both))
            told_apart = False
            for a, b in zip(one, both, strict=True):
                half = b["q"].shape[0] // 2
                told_apart |= not torch.equal(b["q"][:half], b["q"][half:])
                self.assertEqual(a.facts["branches"], ["cond"])
                self.assertEqual(b.facts["branches"], ["uncond"] * half + ["cond"] * half)
                self.assertTrue(torch.equal(a["q"], b["q"][half:]) and torch.equal(a["k"], b["k"][half:]))
            self.assertTrue(told_apart)

    def test_a_pipeline_with_a_unet(self) -> None:
        from diffusers import DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel

        torch.manual_seed(1)
        unet, _ = test_models_image.unet(UNet2DConditionModel)
        pipe = StableDiffusionPipeline(
            vae=None,
            text_encoder=None,
            tokenizer=None,
            unet=unet.eval(),
            scheduler=DDIMScheduler(clip_sample=False),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
        pipe.set_progress_bar_config(disable=True)
        words = torch.randn(2, 1, 7, 12)
        with capture(pipe, self.folder / "d", steps="1", layers=0, slots="attn2") as cap:
            pipe(
                prompt_embeds=words[0],
                negative_prompt_embeds=words[1],
                height=64,
                width=96,
                num_inference_steps=3,
                output_type="latent",
            )
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(cap.steps, 3)
        self.assertEqual((call.facts["step"], call.facts["branches"]), (1, ["cond"]))
        self.assertEqual(call.facts["queries"][0]["grid"], [1, 8, 12])
        projected = unet.down_blocks[0].attentions[0].transformer_blocks[0].attn2.to_k(words[0])
        self.assertTrue(
            torch.allclose(call["k"][0], projected.unflatten(-1, (call["k"].shape[1], -1))[0].transpose(0, 1))
        )

    def run_chroma(self, name: str, forwards: int, **options: Any) -> list[tuple]:
        from diffusers import ChromaTransformer2DModel

        torch.manual_seed(1)
        model, inputs = test_models_image.chroma(ChromaTransformer2DModel)
        with torch.no_grad(), capture(model.eval(), self.folder / name, layers=0, **options):
            for stamp in STAMPS:
                for _ in range(forwards):
                    model(**{**inputs, "timestep": torch.tensor([stamp])})
        return [(c.facts["step"], *c.facts.get("branches", [])) for c in read_capture(self.folder / name)]

    def test_chroma_runs_a_branch_a_forward(self) -> None:
        labels = self.run_chroma("two", 2, branch="both")
        self.assertEqual(labels, [(i, b) for i in range(3) for b in ("cond", "uncond")])
        self.assertEqual(self.run_chroma("one", 1), [(i, "cond") for i in range(3)])
        with self.refused("more than 2 forwards at one timestep"):
            self.run_chroma("three", 3)

    def test_ltx2_names_its_forwards(self) -> None:
        """Both branches in a batch, then forwards of other guidance, whose blocks skip attention."""
        from diffusers import LTX2VideoTransformer3DModel

        torch.manual_seed(1)
        model, inputs = test_models_video.ltx2()(LTX2VideoTransformer3DModel)
        model = model.eval()
        double = {
            k: v.repeat(2, *[1] * (v.ndim - 1)) if isinstance(v, torch.Tensor) else v
            for k, v in inputs.items()
        }
        owner = types.SimpleNamespace(
            transformer=model, scheduler=Scheduler(), do_classifier_free_guidance=True
        )
        with torch.no_grad(), capture(owner, self.folder / "d", branch="all", layers=1, slots="*attn1"):
            for stamp in STAMPS[:2]:
                for word, given, more in (
                    ("cond_uncond", double, {}),
                    ("uncond_stg", inputs, {"spatio_temporal_guidance_blocks": [1]}),
                    ("uncond_modality", inputs, {"isolate_modalities": True}),
                ):
                    with model.cache_context(word):
                        model(
                            **{**given, **more, "timestep": torch.full((given["timestep"].shape[0],), stamp)}
                        )
                owner.scheduler.step(0)
        found = [
            (c.facts["step"], c.facts["slot"], c.facts["branches"]) for c in read_capture(self.folder / "d")
        ]
        slots = ("attn1", "audio_attn1")
        a_step = [(s, ["uncond", "cond"]) for s in slots] + [(s, ["uncond_modality"]) for s in slots]
        self.assertEqual(found, [(i, *rest) for i in range(2) for rest in a_step])


if __name__ == "__main__":
    unittest.main()
