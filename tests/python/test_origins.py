"""Branches that the pipeline itself tells: by the text that it made, by its guider's states, by a component's name."""

import types
import unittest
from collections.abc import Callable
from typing import Any

import torch

from attnscope_capture import Capture, capture
from support import read_capture
from test_steps import STAMPS, LoopTest, Own, Scheduler, tokens

WORDS = {
    name: torch.randn(1, 5, 6, generator=torch.Generator().manual_seed(i)) for i, name in enumerate(("cond", "uncond"))
}


class WithText(Own):
    def forward(self, x: torch.Tensor, timestep: Any = None, text: Any = None) -> torch.Tensor:
        return self.run(x)


class Pipeline:
    """Encodes both prompts at once."""

    def __init__(self, **words: torch.Tensor) -> None:
        self.transformer = WithText()
        self.scheduler = Scheduler()
        self.words = {**WORDS, **words}

    def encode_prompt(self, prompt: str, negative_prompt: str | None = None) -> tuple[Any, ...]:
        mask = torch.ones(1, 5)
        return self.words["cond"], mask, self.words["uncond"], mask

    def encode(self) -> dict[str, torch.Tensor]:
        cond, _, uncond, _ = self.encode_prompt("a cat", negative_prompt="a dog")
        return {"cond": cond, "uncond": uncond}

    def run(self, change: Callable[[torch.Tensor], Any], order: tuple[str, ...] = ("uncond", "cond")) -> None:
        texts = self.encode()
        for i, stamp in enumerate(STAMPS):
            for branch in order:
                self.transformer(tokens(i, branch), stamp, change(texts[branch]))
            self.scheduler.step(torch.zeros(1))


class OneByOne(Pipeline):
    """Encodes a prompt a call."""

    def encode_prompt(self, prompt: str) -> tuple[Any, ...]:  # type: ignore[override]
        return self.words["cond" if prompt == "a cat" else "uncond"], torch.zeros(5, 3)

    def encode(self) -> dict[str, torch.Tensor]:
        return {"cond": self.encode_prompt("a cat")[0], "uncond": self.encode_prompt("a dog")[0]}


class Listed(OneByOne):
    """Texts are lists of one tensor a batch item, as long as their words."""

    def encode_prompt(self, prompt: str) -> Any:
        return list(super().encode_prompt(prompt)[0])


class Texts(LoopTest):
    def branches(self, name: str = "d") -> set[tuple[int | None, str | None]]:
        return {(step, names[0] if names else None) for step, names in self.recorded(name)}

    def test_text_of_encode_prompt_tells_the_branch(self) -> None:
        changes = {"itself": lambda t: t, "in bfloat16": lambda t: t if isinstance(t, list) else t.bfloat16()}
        for cls in (Pipeline, OneByOne, Listed):
            for word, change in changes.items():
                for order in (("uncond", "cond"), ("cond", "uncond"), ("cond",)):
                    with self.subTest(f"{cls.__name__} {word} {order}"):
                        name = f"{cls.__name__}{word}{order}"
                        pipe = cls()
                        with torch.no_grad(), capture(pipe, self.folder / name, branch="all", strict=True):
                            pipe.run(change, order)
                        self.assertEqual(self.branches(name), {(i, b) for i in range(3) for b in order})

    def test_only_the_branch_that_is_asked_for(self) -> None:
        pipe = Pipeline()
        with torch.no_grad(), capture(pipe, self.folder / "d", branch="uncond", steps="1", strict=True):
            pipe.run(lambda text: text)
        self.assertEqual(self.branches(), {(1, "uncond")})

    def test_equal_prompts_tell_nothing(self) -> None:
        pipe = Pipeline(uncond=WORDS["cond"].clone())
        with torch.no_grad(), capture(pipe, self.folder / "d", branch="all"):
            pipe.run(lambda text: text)
        calls = read_capture(self.folder / "d")
        self.assertEqual({c.facts["forward"] for c in calls}, set(range(6)))
        self.assertFalse(any("branches" in c.facts for c in calls))

    def test_a_forward_that_comes_again_goes_by_its_number(self) -> None:
        """Skip-layer guidance runs the conditional text twice."""
        pipe = Pipeline()
        with torch.no_grad(), capture(pipe, self.folder / "d", branch="all"):
            pipe.run(lambda text: text, ("uncond", "cond", "cond"))
        calls = [c for c in read_capture(self.folder / "d") if c.facts["layer"] == 0]
        told = [(c.facts["step"], *c.facts.get("branches", [c.facts.get("of_step")])) for c in calls]
        expected = [(i, b) for i in range(3) for b in ("uncond", "cond", 2)]
        self.assertEqual(sorted(told, key=str), sorted(expected, key=str))

    def test_text_that_may_be_of_both_branches_tells_nothing(self) -> None:
        class Joined(Pipeline):
            def encode_prompt(self, prompt: str, negative_prompt: str | None = None) -> Any:
                return torch.cat([self.words["uncond"], self.words["cond"]])

            def run_joined(self) -> None:
                text = self.encode_prompt("a cat", "a dog")
                for i, stamp in enumerate(STAMPS):
                    self.transformer(tokens(i, "uncond", "cond"), stamp, text)
                    self.scheduler.step(torch.zeros(1))

        pipe = Joined()
        with torch.no_grad(), capture(pipe, self.folder / "d", branch="all"):
            pipe.run_joined()
        self.assertEqual(self.branches(), {(i, None) for i in range(3)})


class Guiders(LoopTest):
    def run_guided(self, guider: Any, out: str, **options: Any) -> None:
        """Runs the loop of a modular pipeline that enters no cache_context."""
        model = WithText()
        owner = types.SimpleNamespace(
            transformer=model, scheduler=Scheduler(), guider=guider, components={"transformer": model, "guider": guider}
        )

        def step(i: int, stamp: float, cap: Capture) -> None:
            guider.set_state(step=i, num_inference_steps=len(STAMPS), timestep=torch.tensor(stamp))
            states = guider.prepare_inputs({"text": (WORDS["cond"], WORDS["uncond"]), "latents": torch.ones(1, 3, 8)})
            for state in states:
                guider.prepare_models(model)
                branch = "cond" if torch.equal(state.text, WORDS["cond"]) else "uncond"
                state.noise_pred = model(tokens(i, branch), stamp, state.text)
                guider.cleanup_models(model)
            guider(states)
            owner.scheduler.step(torch.zeros(1))

        self.run_loop(model, step, owner, out, strict=True, **options)

    def test_states_of_a_guider(self) -> None:
        from diffusers.guiders import ClassifierFreeGuidance

        self.run_guided(ClassifierFreeGuidance(guidance_scale=3.0), "d", branch="all")
        self.assertEqual(self.recorded(), [(i, [b]) for i in range(3) for b in ("cond", "uncond")])

    def test_guidance_that_ends_before_the_run(self) -> None:
        from diffusers.guiders import ClassifierFreeGuidance

        self.run_guided(ClassifierFreeGuidance(guidance_scale=3.0, stop=0.5), "d", branch="all")
        self.assertEqual(self.recorded(), [(0, ["cond"]), (0, ["uncond"]), (1, ["cond"]), (2, ["cond"])])
        self.run_guided(ClassifierFreeGuidance(guidance_scale=3.0, stop=0.5), "one")
        self.assertEqual(self.recorded("one"), [(i, ["cond"]) for i in range(3)])


class Components(LoopTest):
    def pipeline(self) -> Any:
        """A small Ideogram 4 with a transformer for each branch."""
        from diffusers import Ideogram4Transformer2DModel

        torch.manual_seed(1)
        sizes = dict(num_layers=2, attention_head_dim=16, num_attention_heads=2, intermediate_size=32, adaln_dim=8)
        parts = {
            name: Ideogram4Transformer2DModel(
                in_channels=4, llm_features_dim=12, mrope_section=(4, 2, 2), **sizes
            ).eval()
            for name in ("transformer", "unconditional_transformer")
        }
        return types.SimpleNamespace(**parts, components=parts, scheduler=Scheduler())

    def run_steps(self, pipe: Any) -> None:
        for stamp in STAMPS:
            for name, text in (("transformer", 3), ("unconditional_transformer", 0)):
                count = text + 6
                roles = torch.tensor([[3] * text + [2] * 6])
                getattr(pipe, name)(
                    hidden_states=torch.randn(1, count, 4),
                    timestep=torch.tensor([stamp / 1000]),
                    encoder_hidden_states=torch.randn(1, count, 12),
                    position_ids=torch.arange(count)[None, :, None].expand(1, count, 3),
                    segment_ids=torch.zeros(1, count, dtype=torch.long),
                    indicator=roles,
                )
            pipe.scheduler.step(torch.zeros(1))

    def test_a_transformer_for_each_branch(self) -> None:
        pipe = self.pipeline()
        with torch.no_grad(), capture(pipe, self.folder / "both", branch="all", strict=True):
            self.run_steps(pipe)
        calls = read_capture(self.folder / "both")
        rows = {
            (c.facts["step"], c.facts["branches"][0], c.facts["extra"]["transformer"], c["q"].shape[2])
            for c in calls
        }
        names = (("cond", "transformer", 9), ("uncond", "unconditional_transformer", 6))
        self.assertEqual(rows, {(i, *name) for i in range(3) for name in names})
        with torch.no_grad(), capture(pipe, self.folder / "one", steps="1", layers=0, strict=True):
            self.run_steps(pipe)
        (call,) = read_capture(self.folder / "one")
        self.assertEqual((call.facts["branches"], call["q"].shape[2]), (["cond"], 9))


if __name__ == "__main__":
    unittest.main()
