"""Steps that come late: what cannot be recorded of them is told at the first forward, which leaves nothing."""

import contextlib
import unittest
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import small_models
from attnscope_capture import capture, wrap
from support import CaptureTest, read_capture

X = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(2))
Kernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v)


@wrap
def capped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    logits = 40 * q @ k.transpose(-1, -2)
    return torch.softmax(2 * torch.tanh(logits / 2), -1) @ v


def dropped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    bias = torch.randn(q.shape[2], k.shape[2], generator=torch.Generator().manual_seed(1))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


class Attention(torch.nn.Module):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)
        self.kernel = kernel

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.kernel(q, k, v).transpose(1, 2).flatten(2)


class Model(torch.nn.Module):
    """Two blocks; counts its forwards."""

    def __init__(self, kernel: Kernel = plain) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(Attention(kernel) for _ in range(2))
        self.forwards = 0

    def forward(self, x: torch.Tensor, timestep: torch.Tensor | None = None) -> torch.Tensor:
        self.forwards += 1
        for block in self.blocks:
            x = x + block(x)
        return x

    def cache_context(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def run(model: torch.nn.Module, steps: int = 4) -> None:
    with torch.no_grad():
        for step in range(steps):
            model(X, torch.tensor([9.0 - step]))


class LateSteps(CaptureTest):
    def told_at_once(self, model: Model, *words: str, **options: Any) -> None:
        with self.refused(*words), capture(model, self.folder / "d", steps="3", guidance="batch", **options):
            run(model)
        self.assertEqual(model.forwards, 1 if self.strict else 4)
        self.assertEqual(list((self.folder / "d").iterdir()), [])

    def test_what_cannot_be_recorded_is_told_at_the_first_forward(self) -> None:
        self.told_at_once(Model(dropped), "dropout 0.5")

    def test_a_kernel_that_is_no_softmax(self) -> None:
        self.told_at_once(Model(capped), "softmax")

    def test_a_mask_that_takes_too_much(self) -> None:
        self.told_at_once(Model(masked), "mask", mask_limit=16)

    def test_tokens_that_do_not_add_up(self) -> None:
        self.told_at_once(Model(), "grid", grid=(1, 2, 2))

    def test_heads_that_are_not_there(self) -> None:
        self.told_at_once(Model(), "head", heads="5")

    def test_the_branch_that_is_asked_for_may_come_second(self) -> None:
        model = Model(dropped)
        with torch.no_grad(), self.refused("dropout"), capture(model, self.folder / "d", steps="3", branch="uncond"):
            for step in range(4):
                for name in ("cond", "uncond"):
                    with model.cache_context(name):
                        model(X, torch.tensor([9.0 - step]))
        self.assertEqual(model.forwards, 2 if self.strict else 8)

    def test_a_trial_leaves_nothing(self) -> None:
        """A late step is recorded alone exactly as in a capture of all steps."""
        case = small_models.cogvideox()
        for name, steps in (("all", None), ("late", "1")):
            with capture(case.pipe, self.folder / name, steps=steps):
                case.run()
        every, late = (read_capture(self.folder / name) for name in ("all", "late"))
        every = [call for call in every if call.facts["step"] == 1]
        self.assertEqual([c.facts for c in late], [c.facts for c in every])
        self.assertGreater(len(late), 0)
        for one, other in zip(late, every, strict=True):
            self.assertEqual(sorted(one.tensors), sorted(other.tensors))
            for key, tensor in one.tensors.items():
                self.assertTrue(torch.equal(tensor, other[key]), key)


if __name__ == "__main__":
    unittest.main()
