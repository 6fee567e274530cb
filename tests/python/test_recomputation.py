"""Recorded tensors, computed a second way: from the projections, with normalisation and rotation
written here (CogVideoX, Wan); the spatial and temporal order of Latte; the branches' order."""

import unittest
from typing import Any

import torch

import attnscope_capture
import small_models
from support import CaptureTest, read_capture


def projections(module: Any) -> tuple[dict[str, list[torch.Tensor]], list[Any]]:
    """Collects the outputs of to_q and to_k of an attention module."""
    seen: dict[str, list[torch.Tensor]] = {"to_q": [], "to_k": []}
    hooks = [
        getattr(module, name).register_forward_hook(
            lambda m, a, out, name=name: seen[name].append(out.detach().clone())
        )
        for name in seen
    ]
    return seen, hooks


def angles(positions: torch.Tensor, width: int, theta: float = 10000.0) -> torch.Tensor:
    """[N] → [N, width / 2] in float64."""
    return positions.double()[:, None] * theta ** (-torch.arange(0, width, 2).double() / width)


def positions(grid: tuple[int, int, int]) -> list[torch.Tensor]:
    """t, y and x of the tokens, row-major."""
    return [p.reshape(-1) for p in torch.meshgrid(*(torch.arange(n) for n in grid), indexing="ij")]


def rotate(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Turns the pairs (x[2i], x[2i + 1]) of [..., N, d] by angle [N, d / 2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = (even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos())
    return torch.stack(pairs, -1).flatten(-2)


class Recomputation(CaptureTest):
    def close(self, a: torch.Tensor, b: torch.Tensor) -> None:
        self.assertEqual(a.shape, b.shape)
        self.assertLess(float((a.double() - b).abs().max() / b.abs().max()), 2e-6)

    def test_cogvideox(self) -> None:
        small = small_models.cogvideox()
        module = small.pipe.transformer.transformer_blocks[1].attn1
        seen, hooks = projections(module)
        with attnscope_capture.capture(small.pipe, self.folder / "d", layers=1, branch="both"):
            small.run(2)
        for hook in hooks:
            hook.remove()
        d = 16
        t, y, x = positions(small.grid)
        # Bands of the head: a quarter for time, three eighths for each of rows and columns.
        angle = torch.cat([angles(t, d // 4), angles(y, 3 * d // 8), angles(x, 3 * d // 8)], 1)
        for call in read_capture(self.folder / "d"):
            for name, norm in (("q", module.norm_q), ("k", module.norm_k)):
                raw = seen["to_" + name][call.facts["step"]].double()
                heads = raw.unflatten(2, (3, d)).transpose(1, 2)  # [B, H, S, d]
                mean, spread = heads.mean(-1, keepdim=True), heads.var(-1, keepdim=True, unbiased=False)
                heads = (heads - mean) / (spread + 1e-6).sqrt() * norm.weight.double() + norm.bias.double()
                turned = torch.cat([heads[:, :, :6], rotate(heads[:, :, 6:], angle)], 2)
                self.close(call[name], turned.detach())
                self.assertGreater(float((turned - heads).abs().max()), 0.1)

    def test_wan(self) -> None:
        small = small_models.wan()
        block = small.pipe.transformer.blocks[1]
        both = {"self": projections(block.attn1), "cross": projections(block.attn2)}
        with attnscope_capture.capture(small.pipe, self.folder / "d", layers=1, branch="both"):
            small.run(2)
        d = 16
        t, y, x = positions(small.grid)
        side = 2 * (d // 6)
        angle = torch.cat([angles(t, d - 2 * side), angles(y, side), angles(x, side)], 1)
        for call in read_capture(self.folder / "d"):
            kind, facts = call.facts["kind"], call.facts
            seen, hooks = both[kind]
            module = block.attn1 if kind == "self" else block.attn2
            forward = 2 * facts["step"] + (facts["branches"] == ["uncond"])
            for name, norm in (("q", module.norm_q), ("k", module.norm_k)):
                raw = seen["to_" + name][forward].double()
                size = (raw.square().mean(-1, keepdim=True) + norm.eps).sqrt()
                heads = (raw / size * norm.weight.double()).unflatten(2, (3, d)).transpose(1, 2)
                self.close(call[name], (rotate(heads, angle) if kind == "self" else heads).detach())
        for _, hooks in both.values():
            for hook in hooks:
                hook.remove()

    def test_hunyuan_puts_video_first(self) -> None:
        small = small_models.hunyuan()
        module = small.pipe.transformer.transformer_blocks[0].attn
        seen: list[torch.Tensor] = []
        hook = module.add_k_proj.register_forward_hook(lambda m, a, out: seen.append(out.detach().clone()))
        with attnscope_capture.capture(small.pipe, self.folder / "d", layers=0, steps=0):
            small.run(1)
        hook.remove()
        (call,) = read_capture(self.folder / "d")
        raw = seen[0].double().unflatten(2, (2, 16))
        size = (raw.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        text = (raw / size * module.norm_added_k.weight.double()).transpose(1, 2)
        self.close(call["k"][:, :, 72:], text.detach())

    def test_latte_orders_its_batch(self) -> None:
        small = small_models.latte()
        block, temporal = (
            getattr(small.pipe.transformer, n)[0]
            for n in ("transformer_blocks", "temporal_transformer_blocks")
        )
        inputs: dict[str, torch.Tensor] = {}
        block.register_forward_pre_hook(lambda m, a: inputs.update(spatial=a[0].detach().clone()))
        temporal.register_forward_pre_hook(lambda m, a: inputs.update(temporal=a[0].detach().clone()))
        block.register_forward_hook(lambda m, a, out: inputs.update(after=out.detach().clone()))
        with attnscope_capture.capture(small.pipe, self.folder / "d", layers="0,1", steps=0, branch="both"):
            small.run(1)
        calls = {c.facts["axes"]: c for c in read_capture(self.folder / "d") if c.facts["kind"] == "self"}
        # Item branch·24 + place of the temporal call holds place's tokens of frames 0, 1, 2.
        after = inputs["after"].unflatten(0, (2, 3))  # [branch, t, place, channels]
        moved = inputs["temporal"] - small.pipe.transformer.temp_pos_embed
        for branch in (0, 1):
            for place in (0, 7, 23):
                torch.testing.assert_close(
                    moved[24 * branch + place], after[branch, :, place], rtol=1e-5, atol=1e-5
                )
        self.assertEqual(calls["temporal"].facts["branches"][24], "cond")
        self.assertEqual(calls["spatial"].facts["branches"][3], "cond")

    def test_the_branches_are_what_the_pipeline_put_there(self) -> None:
        """Another prompt changes the conditional half alone; another negative prompt the other."""
        for name in small_models.FAMILIES:
            small = small_models.FAMILIES[name]()
            seen: dict[str, dict[str, torch.Tensor]] = {}
            for case, key in (
                ("as is", None),
                ("prompt", "prompt_embeds"),
                ("negative", "negative_prompt_embeds"),
            ):
                more = {} if key is None else {key: small.arguments[key] * 1.5}
                for branch in ("cond", "uncond"):
                    out = self.folder / f"{name}-{case}-{branch}"
                    with attnscope_capture.capture(small.pipe, out, steps=0, layers=1, branch=branch):
                        small.run(2, **more)  # Mochi's schedule needs two steps
                    calls = [c for c in read_capture(out) if c.facts.get("axes") != "temporal"]
                    self.assertTrue(all(set(c.facts["branches"]) == {branch} for c in calls))
                    if not calls:  # Latte's layer 1 is temporal: its input has met the text in layer 0
                        calls = read_capture(out)
                    seen.setdefault(case, {})[branch] = torch.cat([c["k"].flatten() for c in calls])
            same = {
                (case, b): torch.equal(seen[case][b], seen["as is"][b])
                for case in ("prompt", "negative")
                for b in ("cond", "uncond")
            }
            self.assertEqual(
                same,
                {
                    ("prompt", "cond"): False,
                    ("prompt", "uncond"): True,
                    ("negative", "cond"): True,
                    ("negative", "uncond"): False,
                },
                name,
            )


if __name__ == "__main__":
    unittest.main()
