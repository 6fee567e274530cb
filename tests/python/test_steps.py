"""Steps and branches: recorded as they were, or refused; never a call under another one's name."""

import contextlib
import copy
import json
import shutil
import threading
import types
import unittest
from typing import Any
from collections.abc import Callable, Iterator
from unittest import mock

import torch
import torch.nn.functional as F

from attnscope_capture import Capture, StepCounter, Writer, capture, timestep_key
from support import CaptureTest, program, read_capture

CODES = {"cond": 1.0, "uncond": 2.0, "no_image": 3.0}
STAMPS = (900.0, 600.0, 300.0)


class OwnAttention(torch.nn.Module):
    """Attention whose q is its input, so that a recorded q tells what the loop gave to the model."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        F.scaled_dot_product_attention(q, q, q)
        return x


class Own(torch.nn.Module):
    """A transformer of a class that nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.ModuleDict({"attn": OwnAttention()}) for _ in range(2)])
        self.entered: list[str] = []

    def run(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block["attn"](x)
        return x

    @contextlib.contextmanager
    def cache_context(self, name: str) -> Iterator[None]:
        self.entered.append(name)
        yield
        self.entered.pop()


class WithoutTimestep(Own):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(x)


def own(name: str) -> Own:
    """A transformer whose forward calls its timestep `name`."""
    space: dict[str, Any] = {}
    exec(f"def forward(self, x, {name}=None, extra=None): return self.run(x)", space)
    return type("Own", (Own,), {"forward": space["forward"]})()


def tokens(step: int, *branches: str) -> torch.Tensor:
    """[branches, 3, 8]: an item is 10·step + the code of its branch."""
    return torch.stack([torch.full((3, 8), 10.0 * step + CODES[b]) for b in branches])


class Scheduler:
    """Counts its steps; copies go on by themselves."""

    def __init__(self) -> None:
        self.count = 0

    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x


def pipeline(model: Own, **more: Any) -> Any:
    return types.SimpleNamespace(transformer=model, scheduler=Scheduler(), **more)


class LoopTest(CaptureTest):
    """Runs loops of steps and reads what was recorded of them."""

    def recorded(self, name: str = "d") -> list[tuple[int, list[str] | None]]:
        """(step, branches) of layer 0; what was recorded must be what the loop gave under that name."""
        found = []
        for call in read_capture(self.folder / name):
            names = call.facts.get("branches")
            items = call["q"][:, 0, 0, 0].tolist()
            for code, branch in zip(items, names or [None] * len(items)):
                self.assertEqual(code // 10, call.facts.get("step", code // 10), call.file)
                if branch is not None:
                    self.assertEqual(code % 10, CODES[branch], call.file)
            if call.facts["layer"] == 0:
                found.append((call.facts.get("step"), names))
        return found

    def nothing(self, name: str = "d") -> None:
        """With strict=True no call is there, nor what a command would take for one; else no call has a branch, and
        the step that one states is its own."""
        out = self.folder / name
        if not self.strict and (out / "capture.json").exists():
            for call in read_capture(out):
                self.assertNotIn("branches", call.facts)
                for code in call["q"][:, 0, 0, 0].tolist() if call.facts.get("kind") == "self" else []:
                    self.assertEqual(code // 10, call.facts.get("step", code // 10), call.file)
            self.assertEqual(list(out.glob("*.held")), [])
            shutil.rmtree(out, ignore_errors=True)
            return
        self.assertEqual(sorted(p.name for p in out.iterdir()) if out.exists() else [], [])

    def run_loop(
        self,
        model: Own,
        step: Callable[[int, float, Capture], None],
        owner: Any = None,
        name: str = "d",
        **options: Any,
    ) -> None:
        with torch.no_grad(), capture(owner or model, self.folder / name, **options) as cap:
            for i, stamp in enumerate(STAMPS):
                step(i, stamp, cap)


class Loops(LoopTest):
    """A step runs in forwards of one or several branches."""

    def test_contexts_of_any_spelling(self) -> None:
        for cond, uncond in (
            ("cond", "uncond"),
            ("pred_cond", "pred_uncond"),
            ("Positive", "negative"),
            ("noise_pred_cond", "noise_pred_uncond"),
        ):
            for model in (own("timestep"), WithoutTimestep()):

                def step(i: int, stamp: float, cap: Capture, model=model, cond=cond, uncond=uncond) -> None:
                    more = () if isinstance(model, WithoutTimestep) else (torch.tensor([stamp]),)
                    with model.cache_context(cond):
                        model(tokens(i, "cond"), *more)
                    with model.cache_context(uncond):
                        model(tokens(i, "uncond"), *more)

                out = f"{cond}{len(model.entered)}{type(model).__name__}"
                self.run_loop(model, step, name=out, branch="both")
                self.assertEqual(self.recorded(out), [(i, [b]) for i in range(3) for b in ("cond", "uncond")])
                self.run_loop(model, step, name=out + "1", steps="1")
                self.assertEqual(self.recorded(out + "1"), [(1, ["cond"])])

    def test_a_branch_of_another_name_keeps_it(self) -> None:
        model = own("timestep")

        def step(i: int, stamp: float, cap: Capture) -> None:
            for name in ("cond", "uncond_stg"):
                with model.cache_context(name):
                    model(tokens(i, "cond"), stamp)

        self.run_loop(model, step, branch=["uncond_stg"])
        calls = read_capture(self.folder / "d")
        self.assertEqual({tuple(c.facts["branches"]) for c in calls}, {("uncond_stg",)})

    def test_guidance_that_is_off_in_some_steps(self) -> None:
        """Without a timestep, an order of contexts that comes again is another step."""
        model = WithoutTimestep()

        def step(i: int, stamp: float, cap: Capture) -> None:
            for branch in ("uncond", "cond")[i == 1 :]:
                with model.cache_context(branch):
                    model(tokens(i, branch))

        self.run_loop(model, step, branch="both")
        self.assertEqual(
            self.recorded(), [(0, ["uncond"]), (0, ["cond"]), (1, ["cond"]), (2, ["uncond"]), (2, ["cond"])]
        )

    def test_every_name_of_the_timestep(self) -> None:
        for name in ("timestep", "timesteps", "t", "sigma", "time", "noise_level"):
            model = own(name)
            forms: list[Callable[[float], tuple[tuple, dict]]] = [
                lambda s: ((torch.tensor([s]),), {}),
                lambda s, name=name: ((), {name: torch.full((1, 3), s)}),
                lambda s, name=name: ((), {name: s}),
                lambda s, name=name: ((), {name: [torch.tensor(s)]}),
            ]
            for number, form in enumerate(forms):

                def step(i: int, stamp: float, cap: Capture, model=model, form=form) -> None:
                    args, kwargs = form(stamp)
                    for branch in ("cond", "uncond"):
                        model(tokens(i, branch), *args, **kwargs)

                out = f"{name}{number}"
                self.run_loop(
                    model, step, name=out, branch="both", branches=["cond", "uncond"], guidance="forwards"
                )
                self.assertEqual(self.recorded(out), [(i, [b]) for i in range(3) for b in ("cond", "uncond")])
                self.assertEqual({c.facts["timestep"] for c in read_capture(self.folder / out)}, set(STAMPS))

    def test_both_in_one_batch(self) -> None:
        for model in (own("t"), WithoutTimestep()):
            more = isinstance(model, WithoutTimestep)

            def step(i: int, stamp: float, cap: Capture, model=model, more=more) -> None:
                model(tokens(i, "uncond", "cond"), *(() if more else (stamp,)))

            out = f"named{more}"
            self.run_loop(model, step, name=out, branches=["uncond", "cond"])
            self.assertEqual(self.recorded(out), [(i, ["cond"]) for i in range(3)])
            # Without names nothing tells which half is which: all of it, and no name.
            if not more:
                self.run_loop(model, step, name="unnamed")
                self.assertEqual(self.recorded("unnamed"), [(i, None) for i in range(3)])
                with self.refused("branch 'uncond'", "nothing tells the branches", "branches="):
                    self.run_loop(model, step, name="asked", branch="uncond")
                self.nothing("asked")

    def test_a_batch_that_the_pipeline_names(self) -> None:
        model = own("timestep")

        def step(i: int, stamp: float, cap: Capture) -> None:
            with model.cache_context("cond_uncond"):
                model(tokens(i, "uncond", "cond"), torch.tensor([stamp, stamp]))

        owner = pipeline(model, do_classifier_free_guidance=True)
        self.run_loop(model, step, owner, branch="both")
        self.assertEqual(self.recorded(), [(i, ["uncond", "cond"]) for i in range(3)])
        self.assertNotIn("without names", self.said.getvalue())
        self.run_loop(model, step, name="alone", branch="both")  # nobody tells the halves' order: said, not guessed
        self.assertEqual(self.recorded("alone"), [(i, None) for i in range(3)])
        line = "a batch of 2 of uncond and cond, by its context 'cond_uncond', is recorded without names"
        self.assertEqual(self.said.getvalue().count(line), 1)

    def test_two_forwards_without_names_are_refused(self) -> None:
        for owner in (False, True):
            for model in (own("timestep"), own("t"), own("unheard_of"), WithoutTimestep()):
                given = not isinstance(model, WithoutTimestep)

                def step(i: int, stamp: float, cap: Capture, model=model, given=given) -> None:
                    for branch in ("uncond", "cond"):
                        model(tokens(i, branch), *((stamp,) if given else ()))

                whole = pipeline(model, do_classifier_free_guidance=True) if owner else None
                with self.refused("branches=", "begin_step"):
                    self.run_loop(model, step, whole)
                self.nothing()
                with self.refused("nothing tells the branches of the forwards", "branches="):
                    self.run_loop(model, step, whole, guidance="forwards")
                self.nothing()

    def test_a_known_transformer_in_forwards_of_its_own(self) -> None:
        """CogVideoX takes its branches in a batch; called once a branch, nothing tells which is which."""
        import small_models

        transformer = small_models.cogvideox().pipe.transformer
        inputs = {
            "hidden_states": torch.randn(1, 3, 4, 8, 12),
            "encoder_hidden_states": torch.randn(1, 6, 12),
            "timestep": torch.tensor([500]),
        }
        with self.refused("came twice at timestep 500", "branches="), torch.no_grad():
            with capture(transformer, self.folder / "d"):
                for _ in range(2):
                    transformer(**inputs)
        self.nothing()

    def test_names_in_the_order_of_the_forwards(self) -> None:
        order = ["cond", "no_image", "uncond"]
        for model in (own("sigma"), WithoutTimestep()):
            given = not isinstance(model, WithoutTimestep)

            def step(i: int, stamp: float, cap: Capture, model=model, given=given) -> None:
                for branch in order:
                    model(tokens(i, branch), *((stamp,) if given else ()))

            out = f"d{given}"
            self.run_loop(model, step, name=out, branch="both", branches=order, guidance="forwards")
            self.assertEqual(self.recorded(out), [(i, [b]) for i in range(3) for b in order])
        model = own("sigma")
        with self.refused("more than 2 forwards at one timestep"):
            self.run_loop(model, step_of(model, order), name="two", branches=order[:2], guidance="forwards")
        self.nothing("two")

    def test_steps_with_fewer_forwards_than_names(self) -> None:
        """Where guidance is off, the one forward is the conditional one, wherever it stands in the order."""
        model = own("t")
        for off in range(3):

            def step(i: int, stamp: float, cap: Capture, off=off) -> None:
                for branch in ("uncond", "cond")[i == off :]:
                    model(tokens(i, branch), stamp)

            with self.refused(f"step {off} had 1 of the 2 forwards", "cap.branch"):
                self.run_loop(
                    model,
                    step,
                    name=str(off),
                    branch="both",
                    branches=["uncond", "cond"],
                    guidance="forwards",
                )
            if off:
                kept = set(range(off if self.strict else 3))
                self.assertEqual({s for s, _ in self.recorded(str(off))}, kept)
            elif self.strict:
                self.nothing("0")
            else:
                names = [(s, b) for s, b in self.recorded("0")]
                self.assertEqual(names, [(0, None)] + [(s, [b]) for s in (1, 2) for b in ("uncond", "cond")])

    def test_the_user_tells(self) -> None:
        model = WithoutTimestep()

        def step(i: int, stamp: float, cap: Capture) -> None:
            cap.begin_step(i)
            for branch in ("uncond", "cond")[i == 1 :]:
                with cap.branch(branch):
                    model(tokens(i, branch))

        self.run_loop(model, step, branch="both")
        self.assertEqual(
            self.recorded(), [(0, ["uncond"]), (0, ["cond"]), (1, ["cond"]), (2, ["uncond"]), (2, ["cond"])]
        )
        with self.refused("came twice", "cap.branch"), capture(model, self.folder / "two") as cap:
            for branch in ("uncond", "cond"):
                cap.begin_step(0)
                model(tokens(0, branch))

    def test_the_scheduler_tells(self) -> None:
        """A sampler of second order evaluates a timestep twice; a copy of the scheduler is its own."""
        for copied in (False, True):
            model = own("timestep")
            owner = pipeline(model)
            scheduler = copy.deepcopy(owner.scheduler) if copied else owner.scheduler
            real = Scheduler.step
            x = torch.zeros(1)
            with torch.no_grad(), capture(owner, self.folder / f"d{copied}", branch="both") as cap:
                inner = copy.deepcopy(owner.scheduler)
                for i, stamp in enumerate((900.0, 600.0, 600.0)):
                    for branch in ("cond", "uncond"):
                        with model.cache_context(branch):
                            model(tokens(i, branch), stamp)
                    (inner if copied else scheduler).step(x)
                self.assertEqual((inner.count, owner.scheduler.count), (3, 0) if copied else (0, 3))
                self.assertEqual(cap.steps, 3)
            self.assertIs(Scheduler.step, real)
            self.assertEqual(
                self.recorded(f"d{copied}"), [(i, [b]) for i in range(3) for b in ("cond", "uncond")]
            )

    def test_forwards_that_are_steps(self) -> None:
        model = WithoutTimestep()
        self.run_loop(model, step_of(model, ["cond"]), guidance="batch", branches=["cond"])
        self.assertEqual(self.recorded(), [(i, ["cond"]) for i in range(3)])
        with self.refused("neither a timestep", "nor a scheduler", 'guidance="batch"'):
            self.run_loop(model, step_of(model, ["cond"]), name="e")
        self.nothing("e")

    def test_one_forward_and_no_timestep(self) -> None:
        model = WithoutTimestep()
        with torch.no_grad(), capture(model, self.folder / "d"):
            model(tokens(0, "cond"))
        self.assertEqual(self.recorded(), [(0, None)])

    def test_what_is_not_sure_yet_is_no_call(self) -> None:
        """A command that looks at the folder meanwhile sees nothing that may be taken back."""
        model = own("t")
        out = self.folder / "d"
        written = threading.Semaphore(0)
        real = Writer.write_catalogue

        def write_catalogue(writer: Writer) -> None:
            real(writer)
            written.release()

        with (
            mock.patch.object(Writer, "write_catalogue", write_catalogue),
            torch.no_grad(),
            capture(model, out),
        ):
            model(tokens(0, "cond"), 9.0)
            model(tokens(1, "cond"), 5.0)
            self.assertTrue(written.acquire(timeout=60))  # the layers of step 0
            listed = json.loads((out / "capture.json").read_text())["calls"]
            self.assertEqual([c["step"] for c in listed], [0, 0])
            shown = json.loads(program("info", out, "--json").stdout)
            self.assertEqual({c["step"] for c in shown["calls"]}, {0})
        self.assertEqual(self.recorded(), [(0, None), (1, None)])
        self.assertEqual([p for p in out.iterdir() if p.suffix == ".held"], [])

    def test_an_interrupted_run_keeps_what_is_not_sure(self) -> None:
        model = own("t")
        with self.assertRaises(KeyboardInterrupt), torch.no_grad(), capture(model, self.folder / "d"):
            model(tokens(0, "cond"), 9.0)
            raise KeyboardInterrupt
        self.assertEqual(self.recorded(), [(0, None)])

    def test_what_was_held_when_a_run_was_killed(self) -> None:
        out = self.folder / "d"
        out.mkdir()
        (out / "step0000_layer000_self.safetensors.held").write_bytes(b"x")
        model = own("t")
        with self.refused("already holds a capture", "force"), capture(model, out):
            pass
        with torch.no_grad(), capture(model, out, force=True):
            model(tokens(0, "cond"), 9.0)
        self.assertEqual(self.recorded(), [(0, None)])
        self.assertEqual([p for p in out.iterdir() if p.suffix == ".held"], [])

    def test_a_choice_that_nothing_meets_is_told_in_the_first_step(self) -> None:
        model = own("timestep")

        def step(i: int, stamp: float, cap: Capture) -> None:
            for branch in ("cond", "uncond"):
                with model.cache_context(branch):
                    model(tokens(i, branch), stamp)
                self.assertEqual("nothing of the first step" in self.said.getvalue(), i > 0)

        for options in ({"branch": "conditional"}, {"kinds": "cross"}):
            self.said.truncate(0)
            self.said.seek(0)
            words = ("nothing was recorded", "branches cond, uncond", "blocks.0.attn, blocks.1.attn")
            with self.refused(*words):
                self.run_loop(model, step, **options)
            self.assertIn("branches cond, uncond; attention in blocks.0.attn", self.said.getvalue())


def step_of(model: Own, branches: list[str]) -> Callable[[int, float, Capture], None]:
    """A step of one forward a branch."""

    def step(i: int, stamp: float, cap: Capture) -> None:
        for branch in branches:
            model(tokens(i, branch), *(() if isinstance(model, WithoutTimestep) else (stamp,)))

    return step


class SkyReels(CaptureTest):
    """A pipeline of diffusers that the recorder knows nothing of."""

    def pipe(self) -> Any:
        from diffusers import SkyReelsV2Pipeline, SkyReelsV2Transformer3DModel, UniPCMultistepScheduler

        torch.manual_seed(2)
        transformer = SkyReelsV2Transformer3DModel(
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=4,
            text_dim=12,
            freq_dim=16,
            ffn_dim=32,
            num_layers=2,
            rope_max_seq_len=32,
        ).eval()
        scheduler = UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=8.0
        )
        pipe = SkyReelsV2Pipeline(None, None, transformer, None, scheduler)
        pipe.set_progress_bar_config(disable=True)
        return pipe

    def run_pipe(self, pipe: Any, guidance: float = 6.0) -> torch.Tensor:
        return pipe(
            prompt_embeds=torch.ones(1, 8, 12),
            negative_prompt_embeds=-torch.ones(1, 8, 12),
            height=64,
            width=96,
            num_frames=9,
            num_inference_steps=3,
            guidance_scale=guidance,
            output_type="latent",
            generator=torch.Generator().manual_seed(7),
            return_dict=False,
        )[0]

    def labels(self, name: str) -> list[tuple]:
        facts = [c.facts for c in read_capture(self.folder / name)]
        first = [f for f in facts if f["layer_name"] == "blocks.0.attn1"]
        return [(f["step"], f["timestep"], *f["branches"]) for f in first]

    def test_its_steps_and_branches(self) -> None:
        pipe = self.pipe()
        plain = self.run_pipe(pipe)
        with capture(pipe, self.folder / "d", branch="both"):
            self.assertTrue(torch.equal(self.run_pipe(pipe), plain))
        stamps = [float(t) for t in pipe.scheduler.timesteps]
        self.assertEqual(self.labels("d"), [(i, stamps[i], b) for i in range(3) for b in ("cond", "uncond")])
        with capture(pipe, self.folder / "one", steps="1"):
            self.run_pipe(pipe)
        self.assertEqual(self.labels("one"), [(1, stamps[1], "cond")])
        both = {c.file: c for c in read_capture(self.folder / "d")}
        for call in read_capture(self.folder / "one"):
            name = call.file.replace(".safetensors", "_cond.safetensors")
            self.assertTrue(torch.equal(call["q"], both[name]["q"]))
        with capture(pipe, self.folder / "plain", branch="both"):
            self.run_pipe(pipe, guidance=1.0)
        self.assertEqual(self.labels("plain"), [(i, stamps[i], "cond") for i in range(3)])


class Counter(CaptureTest):
    def test_a_timestep_a_token_is_compared_as_a_whole(self) -> None:
        one = torch.tensor([[0.0, 900.0, 900.0]])
        self.assertEqual(timestep_key(one), timestep_key(one.repeat(2, 1)))
        self.assertNotEqual(timestep_key(one), timestep_key(torch.tensor([[0.0, 0.0, 900.0]])))
        self.assertEqual(timestep_key(torch.tensor([5])), timestep_key(5.0))
        self.assertIsNone(timestep_key(torch.tensor([])))
        self.assertIsNone(timestep_key("t"))
        self.assertIsNone(timestep_key(None))

    def test_a_named_branch_that_comes_again_at_the_timestep(self) -> None:
        counter = StepCounter("told", None)
        self.assertEqual([counter.next(9, b) for b in ("uncond", "cond")], [(0, "uncond"), (0, "cond")])
        with self.refused("'cond' came twice", "begin_step"):
            counter.next(9, "cond")


if __name__ == "__main__":
    unittest.main()
