"""Every kind of loop around a transformer nobody knows: right labels or a refusal, and nothing in between."""

import contextlib
import itertools
import os
import shutil
import unittest
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch

from attnscope_capture import Capture, CaptureError, capture
from support import read_capture
from test_steps import CODES, LoopTest, Own, WithoutTimestep, own, pipeline, tokens

# The forwards of a step: the branches of each one's batch items.
GUIDANCE = {
    "no guidance": [("cond",)],
    "uncond and cond in a batch": [("uncond", "cond")],
    "cond and uncond in a batch": [("cond", "uncond")],
    "cond, then uncond": [("cond",), ("uncond",)],
    "uncond, then cond": [("uncond",), ("cond",)],
    "three forwards": [("cond",), ("no_image",), ("uncond",)],
    "a batch, then one more": [("uncond", "cond"), ("no_image",)],
}
# How a forward is given its timestep: the name in its signature, and what it gets of the stamp.
TIMESTEPS: dict[str, tuple[str | None, Callable[[float, int], tuple[tuple, dict]]]] = {
    "named timestep": ("timestep", lambda t, n: ((), {"timestep": torch.full((n,), t)})),
    "named sigma": ("sigma", lambda t, n: ((), {"sigma": t / 1000})),
    "by position": ("t", lambda t, n: ((torch.tensor(t),), {})),
    "one a token": ("timestep", lambda t, n: ((), {"timestep": torch.tensor([[0.0, t, t]] * n)})),
    "under another name": ("when", lambda t, n: ((torch.tensor(t),), {})),
    "not given": (None, lambda t, n: ((), {})),
}
# The timesteps of a loop's evaluations; a sampler of second order evaluates twice at most timesteps.
SAMPLERS = {"first order": (900.0, 600.0, 300.0), "second order": (900.0, 600.0, 600.0, 300.0)}
SCHEDULERS = ("none", "that steps", "that is not called")


@dataclass(frozen=True)
class Loop:
    """One combination."""

    guidance: str
    timestep: str
    contexts: bool  # each forward runs in a cache_context of its name
    scheduler: str
    sampler: str
    stated: str  # what the user says: nothing, the truth, or which branch to record

    @property
    def forwards(self) -> list[tuple[str, ...]]:
        return GUIDANCE[self.guidance]

    @property
    def options(self) -> dict[str, Any]:
        if self.stated != "the truth":
            return {} if self.stated == "nothing" else {"branch": self.stated}
        if len(self.forwards) == 1:
            return {"branches": list(self.forwards[0]), "branch": "both"}
        if any(len(f) > 1 for f in self.forwards):  # which no option says
            return {"branch": "both"}
        return {"branches": [f[0] for f in self.forwards], "guidance": "forwards", "branch": "both"}

    @property
    def wanted(self) -> set[str]:
        """The branches that are asked for, of forwards or batch items that have names."""
        asked = {"nothing": {"cond"}, "uncond": {"uncond"}}
        return asked.get(self.stated, set(CODES))

    @property
    def tells_steps(self) -> bool:
        """Does anything tell every step apart from the one before it?"""
        given = self.timestep not in ("under another name", "not given")
        return self.scheduler == "that steps" or (given and self.sampler == "first order")

    @property
    def tells_branches(self) -> bool:
        """Does anything name every forward's branches, or is there but one?"""
        batched = any(len(f) > 1 for f in self.forwards)
        named = self.contexts and not batched
        return named or len(self.forwards) == 1 or (self.stated == "the truth" and not batched)


def loops() -> list[Loop]:
    every = itertools.product(
        GUIDANCE, TIMESTEPS, (False, True), SCHEDULERS, SAMPLERS, ("nothing", "the truth", "uncond")
    )
    return [Loop(*parts) for parts in every]


class EveryLoop(LoopTest):
    def run_one(self, loop: Loop) -> str:
        """Runs a loop and checks what was recorded of it; the refusal, "" where there was none."""
        name, give = TIMESTEPS[loop.timestep]
        model: Own = WithoutTimestep() if name is None else own(name)
        owner: Any = pipeline(model) if loop.scheduler != "none" else model
        out = self.folder / "loop"
        try:
            with torch.no_grad(), capture(
                owner, out, layers=0, values=False, quiet=True, strict=True, **loop.options
            ):
                for i, stamp in enumerate(SAMPLERS[loop.sampler]):
                    self.step(loop, model, i, give, stamp)
                    if loop.scheduler == "that steps":
                        owner.scheduler.step(torch.zeros(1))
        except CaptureError as refusal:
            self.check(loop, refused=True)
            return str(refusal)
        else:
            self.check(loop, refused=False)
            return ""
        finally:
            shutil.rmtree(out, ignore_errors=True)

    def step(self, loop: Loop, model: Own, i: int, give: Callable, stamp: float) -> None:
        for branches in loop.forwards:
            args, kwargs = give(stamp, len(branches))
            name = "cond_uncond" if len(branches) > 1 else branches[0]
            with model.cache_context(name) if loop.contexts else contextlib.nullcontext():
                model(tokens(i, *branches), *args, **kwargs)

    def check(self, loop: Loop, refused: bool) -> None:
        """Each item that is there is what its labels say; without a refusal nothing that was asked for is
        missing, and no unnamed item stands for one of a name."""
        out = self.folder / "loop"
        calls = read_capture(out) if (out / "capture.json").exists() else []
        self.assertEqual(list(out.glob("*.held")), [])
        there: Counter[float] = Counter()
        unnamed = False
        for call in calls:
            items = call["q"][:, 0, 0, 0].tolist()
            names = call.facts.get("branches")
            unnamed |= names is None
            names = names * len(items) if names is not None and len(names) == 1 else names
            for code, name in zip(items, names or [None] * len(items), strict=True):
                self.assertEqual(code // 10, call.facts["step"], "another step's")
                if name is not None:
                    self.assertEqual(CODES[name], code % 10, "another branch's")
            there.update(items)
        self.assertLessEqual(max(there.values(), default=0), 1, "the same item twice")
        if refused:
            return
        named = loop.contexts or "branches" in loop.options
        expected = {b for f in loop.forwards for b in f if b in loop.wanted or len(f) > 1 or not named}
        steps = range(len(SAMPLERS[loop.sampler]))
        self.assertEqual(set(there), {10.0 * i + CODES[b] for i in steps for b in expected})
        self.assertFalse(unnamed and loop.stated == "uncond", "asked for by a name that nothing told")

    @mock.patch.object(os, "fsync", lambda handle: None)  # thousands of files that nobody needs tomorrow
    def test_every_loop(self) -> None:
        refusals: Counter[str] = Counter()
        worked = 0
        for loop in loops():
            with self.subTest(**vars(loop)):
                refusal = self.run_one(loop)
                refusals[refusal.split(":")[0][:60]] += 1
                worked += not refusal
                if loop.tells_steps and loop.tells_branches:
                    asked = loop.stated != "uncond" or (loop.contexts and len(loop.forwards) > 1)
                    self.assertFalse(refusal and asked, f"everything was told, yet: {refusal}")
                elif refusal:
                    told = any(w in refusal for w in ("begin_step", "branch", "nothing was recorded"))
                    self.assertTrue(told, f"does not say what to do: {refusal}")
        print(f"\n{len(loops())} loops: {worked} recorded, {len(loops()) - worked} refused")
        for words, count in refusals.most_common():
            print(f"{count:5} {words or 'no refusal'}")


if __name__ == "__main__":
    unittest.main()
