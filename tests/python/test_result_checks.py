"""Results of kernels that are not PyTorch's own function: computed again for every recorded head."""

import unittest
from typing import Any

import torch
import torch.nn.functional as F

from attnscope_capture import Call, capture, check_result, record, wrap
from support import CaptureTest, read_capture

TYPES = (torch.float32, torch.bfloat16, torch.float16)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cap: float = 0, sink: Any = None) -> torch.Tensor:
    """softmax(QKᵀ/√d)·V as kernels compute it: in float32, rounded at the end."""
    group = q.shape[1] // k.shape[1]
    k, v = (t.float().repeat_interleave(group, 1) for t in (k, v))
    logits = q.float() @ k.mT * q.shape[-1] ** -0.5
    logits = cap * torch.tanh(logits / cap) if cap else logits
    if sink is not None:
        logits = torch.cat([logits, sink[None, :, None, None].expand(len(q), -1, q.shape[2], 1)], -1)
    return (logits.softmax(-1)[..., : k.shape[2]] @ v).to(q.dtype)


class ResultChecks(CaptureTest):
    def call(self, dtype: torch.dtype, heads: int = 4, key_heads: int = 4, **more: Any) -> Call:
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, h, 40, 16).mul(1.5).to(dtype) for h in (heads, key_heads, key_heads))
        return Call(q, k, v, attention(q, k, v, **more), None, 0.0, False, None, "kernel")

    def test_a_right_kernel(self) -> None:
        for dtype in TYPES:
            for heads, key_heads in ((4, 4), (4, 2), (4, 1)):
                check_result(self.call(dtype, heads, key_heads), [0, 1], (0, 4))
        check_result(self.call(torch.float32, 4, 1), [1], (1, 3))  # heads within a group

    def test_one_head_of_one_item(self) -> None:
        for dtype in TYPES:
            for item, head in ((0, 2), (1, 3)):
                wrong = self.call(dtype)
                wrong.out[item, head] *= 1.05
                with self.refused(f"batch item {item}, head {head}", "not softmax"):
                    check_result(wrong, [0, 1], (0, 4))
                check_result(wrong, [item], (0, head))  # what is not recorded
                check_result(wrong, [1 - item], (0, 4))

    def test_heads_that_do_not_fit_into_memory_at_once(self) -> None:
        import sys
        from unittest import mock

        module = sys.modules[check_result.__module__]
        with mock.patch.object(module, "DOUBLES", 1):
            for key_heads in (4, 2, 1):
                check_result(self.call(torch.float32, 4, key_heads), [0, 1], (0, 4))
            wrong = self.call(torch.float32, 4, 2)
            wrong.out[1, 3] *= 1.05
            with self.refused("batch item 1, head 3"):
                check_result(wrong, [0, 1], (0, 4))

    def test_a_soft_cap_and_a_sink(self) -> None:
        torch.manual_seed(1)
        q, k, v = (torch.randn(1, 2, 30, 16) * 2.5 for _ in range(3))
        sink = torch.tensor([-30.0, 10.0])  # of the first head next to nothing
        for values in (True, False):
            for name, kernel in (
                ("cap", wrap(lambda q, k, v: attention(q, k, v, cap=50.0))),
                ("sink", wrap(lambda q, k, v: attention(q, k, v, sink=sink))),
            ):
                with self.refused("a soft cap, a sink"), capture(None, self.folder / f"{name}{values}", values=values):
                    kernel(q, k, v)

    def test_masks_by_the_head(self) -> None:
        """The rows of each head's own mask are taken."""
        torch.manual_seed(0)
        q = torch.randn(2, 3, 12, 8)
        mask = torch.rand(2, 3, 12, 12) < 0.5
        mask[..., 0] = True

        @wrap
        def kernel(q: Any, k: Any, v: Any, mask: Any) -> Any:
            return (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~mask, -torch.inf).softmax(-1) @ v

        with capture(None, self.folder / "d"):
            kernel(q, q, q, mask)
        (call,) = read_capture(self.folder / "d")
        self.assertTrue(torch.equal(call["mask"], mask))
        with self.refused("not softmax"), capture(None, self.folder / "wrong"):
            wrap(lambda q, k, v, mask: kernel.__wrapped__(q, k, v, mask.flip(1)))(q, q, q, mask)

    def test_a_kernel_that_rounds_its_products(self) -> None:
        """Where PyTorch may multiply in less than float32, a kernel may as well."""
        call = self.call(torch.float32)
        call.out *= 1.01
        with self.refused("1.0% of the largest value away, 0.1% allowed"):
            check_result(call, [0], (0, 4))
        torch.set_float32_matmul_precision("high")
        self.addCleanup(torch.set_float32_matmul_precision, "highest")
        check_result(call, [0], (0, 4))


class Shapes(CaptureTest):
    def recorded(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, name: str = "d", **more: Any) -> Any:
        out = record(q, k, v, self.folder / name, rows=100, **more)
        (call,) = read_capture(self.folder / name)
        group = call["q"].shape[1] // call["k"].shape[1]
        k, v = (call[n].repeat_interleave(group, 1) for n in ("k", "v"))
        again = F.scaled_dot_product_attention(call["q"], k, v)
        self.assertTrue(torch.allclose(again, out, atol=1e-5))
        self.assertTrue(torch.equal(call["out"], out))
        return call

    def test_one_batch_item_of_keys_for_all_queries(self) -> None:
        """Where PyTorch spreads one item over the batch, each item has its own in the capture."""
        torch.manual_seed(0)
        q, k = torch.randn(2, 4, 6, 8), torch.randn(1, 4, 5, 8)
        call = self.recorded(q, k, k)
        self.assertEqual(list(call["k"].shape), [2, 4, 5, 8])
        self.assertTrue(torch.equal(call["k"][0], call["k"][1]))
        call = self.recorded(q[:1], k.expand(3, -1, -1, -1), k, "queries")
        self.assertEqual((list(call["q"].shape), list(call["v"].shape)), ([3, 4, 6, 8], [3, 4, 5, 8]))

    def test_values_of_other_heads_than_keys(self) -> None:
        torch.manual_seed(0)
        q, k, v = torch.randn(1, 4, 6, 8), torch.randn(1, 1, 5, 8), torch.randn(1, 4, 5, 8)
        call = self.recorded(q, k, v)
        self.assertEqual((call["k"].shape[1], call["v"].shape[1]), (4, 4))
        call = self.recorded(q, v, k, "values")
        self.assertEqual((call["k"].shape[1], call["v"].shape[1]), (4, 4))
        self.assertTrue(torch.equal(call["v"], k.expand(-1, 4, -1, -1)))

    def test_what_does_not_fit(self) -> None:
        q = torch.randn(4, 4, 6, 8)
        kernel = wrap(lambda q, k, v: q)
        with self.refused("batches of 4, 2, 4"), capture(None, self.folder / "d"):
            kernel(q, q[:2], q)
        with self.refused("4 query heads are no multiple of 3"), capture(None, self.folder / "e"):
            kernel(q, q[:, :3], q[:, :3])
        with self.refused("v has 3 heads beside 4"), capture(None, self.folder / "f"):
            kernel(q, q[:, :2], q[:, :3])


if __name__ == "__main__":
    unittest.main()
