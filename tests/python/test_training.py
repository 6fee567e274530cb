"""Captures of a model that is trained: its gradients are the same, and nothing of the recorder joins its graph."""

import unittest

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from attnscope_capture import capture, wrap
from support import TOLERANCE, CaptureTest, output_error, read_capture


@wrap
def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


class Attention(torch.nn.Module):
    def __init__(self, wrapped: bool) -> None:
        super().__init__()
        self.qkv, self.wrapped = torch.nn.Linear(16, 48), wrapped

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        function = kernel if self.wrapped else F.scaled_dot_product_attention
        return x + function(q, k, v).transpose(1, 2).flatten(2)


class Model(torch.nn.Module):
    """Two blocks; kept: their activations are computed again for gradients where this is a way to do so."""

    def __init__(self, reentrant: bool | None = None, wrapped: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(Attention(wrapped) for _ in range(2))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x) if self.reentrant is None else checkpoint(block, x, use_reentrant=self.reentrant)
        return x


class Training(CaptureTest):
    def gradients(self, model: Model) -> list[torch.Tensor]:
        """Of two steps."""
        model.zero_grad()
        x = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(1)).requires_grad_()
        for step in range(2):
            model(x, torch.tensor([9.0 - step])).square().sum().backward()
        return [x.grad, *(p.grad for p in model.parameters())]

    def test_gradients_are_the_same(self) -> None:
        for wrapped in (False, True):
            for reentrant in (None, False, True):
                with self.subTest(wrapped=wrapped, reentrant=reentrant):
                    model = Model(reentrant, wrapped)
                    plain = self.gradients(model)
                    with capture(model, self.folder / "d", force=True):
                        again = self.gradients(model)
                    for a, b in zip(plain, again, strict=True):
                        self.assertTrue(torch.equal(a, b))
                    calls = read_capture(self.folder / "d")  # what is computed again is not recorded again
                    places = [(c.facts["step"], c.facts["layer"]) for c in calls]
                    self.assertEqual(places, [(0, 0), (0, 1), (1, 0), (1, 1)])
                    for call in calls:
                        self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_checkpointing_of_a_library(self) -> None:
        import small_models

        model = small_models.cogvideox().pipe.transformer
        inputs = {
            "hidden_states": torch.randn(1, 3, 4, 8, 12),
            "encoder_hidden_states": torch.randn(1, 6, 12),
            "timestep": torch.tensor([500]),
        }

        def gradients() -> list[torch.Tensor]:
            model.zero_grad()
            model(**inputs).sample.square().sum().backward()
            return [p.grad for p in model.parameters() if p.grad is not None]

        plain = gradients()
        model.enable_gradient_checkpointing()
        with capture(model, self.folder / "d"):
            again = gradients()
        self.assertGreater(len(again), 10)
        for a, b in zip(plain, again, strict=True):
            self.assertTrue(torch.allclose(a, b, rtol=1e-4, atol=1e-6 * float(a.abs().max())))
        self.assertEqual([c.facts["layer"] for c in read_capture(self.folder / "d")], [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
