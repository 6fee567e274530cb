"""--rope against the functions of diffusers: q and k that convert turned, beside theirs."""

import os
import subprocess
import unittest
from collections.abc import Callable

import torch
from safetensors.torch import load_file, save_file

from support import CaptureTest, has_program

GRID = (3, 4, 6)
VIDEO = 3 * 4 * 6
TEXT = 5
Turn = Callable[[torch.Tensor], torch.Tensor]  # of the video tokens, [1, heads, VIDEO, d]


def places() -> torch.Tensor:
    axes = torch.meshgrid(*(torch.arange(n) for n in GRID), indexing="ij")
    return torch.stack(axes, -1).reshape(-1, 3)


def cogvideox(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb, get_3d_rotary_pos_embed

    tables = get_3d_rotary_pos_embed(d, ((0, 0), GRID[1:]), GRID[1:], GRID[0])
    return lambda x: apply_rotary_emb(x, tables)


def hunyuan(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_hunyuan_video import HunyuanVideoRotaryPosEmbed

    tables = HunyuanVideoRotaryPosEmbed(1, 1, [d // 8, d // 16 * 7, d // 16 * 7])(torch.zeros(1, 1, *GRID))
    return lambda x: apply_rotary_emb(x, tables)


def flux(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_flux import FluxPosEmbed

    tables = FluxPosEmbed(10000, [d // 8, d // 16 * 7, d // 16 * 7])(places())
    return lambda x: apply_rotary_emb(x, tables)


def wan(d: int) -> Turn:
    from diffusers.models.transformers.transformer_wan import WanRotaryPosEmbed

    cos, sin = WanRotaryPosEmbed(d, (1, 1, 1), 64)(torch.zeros(1, 1, *GRID))
    cos, sin = (t[0, :, 0][None, None] for t in (cos, sin))

    def turn(x: torch.Tensor) -> torch.Tensor:  # as WanAttnProcessor does, heads before tokens
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        out = torch.empty_like(x)
        out[..., 0::2] = a * cos[..., 0::2] - b * sin[..., 1::2]
        out[..., 1::2] = a * sin[..., 1::2] + b * cos[..., 0::2]
        return out

    return turn


def ltx(d: int, heads: int) -> Turn:
    from diffusers.models.transformers.transformer_ltx import LTXVideoRotaryPosEmbed, apply_rotary_emb

    tables = LTXVideoRotaryPosEmbed(d * heads)(
        torch.zeros(1, VIDEO, 1), *GRID, rope_interpolation_scale=(8 / 25, 32, 32)
    )

    def turn(x: torch.Tensor) -> torch.Tensor:  # over the channels of all heads
        flat = apply_rotary_emb(x.transpose(1, 2).flatten(2), tables)
        return flat.unflatten(2, (heads, d)).transpose(1, 2)

    return turn


def mochi(d: int, frequencies: torch.Tensor) -> Turn:
    from diffusers.models.transformers.transformer_mochi import MochiRoPE

    cos, sin = MochiRoPE()(frequencies, *GRID, dtype=torch.float32)
    cos, sin = (t.transpose(0, 1)[None] for t in (cos, sin))

    def turn(x: torch.Tensor) -> torch.Tensor:  # as MochiAttnProcessor2_0 does, heads before tokens
        a, b = x[..., 0::2].float(), x[..., 1::2].float()
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)

    return turn


@unittest.skipUnless(has_program(), "ATTNSCOPE names no program")
class Rope(CaptureTest):
    def check(self, rope: str, turn: Turn, d: int, heads: int, dtype: torch.dtype, text: str) -> None:
        torch.manual_seed(4)
        count = 0 if text == "none" else TEXT
        tensors = {n: torch.randn(1, heads, count + VIDEO, d).to(dtype) for n in ("q", "k")}
        path, out = self.folder / "before.safetensors", self.folder / "after.safetensors"
        facts = {"format": "attnscope-capture/1", "grid": "x".join(map(str, GRID)), "text": text, "q_state": "qk_norm"}
        save_file(tensors, path, facts)
        subprocess.run(
            [os.environ["ATTNSCOPE"], "convert", str(path), "--rope", rope, "-o", str(out), "--force", "--quiet"],
            check=True,
            timeout=60,
        )
        turned = load_file(out)
        first = TEXT if text.endswith("@start") else 0
        for name, before in tensors.items():
            expected = before.clone()
            expected[:, :, first : first + VIDEO] = turn(before[:, :, first : first + VIDEO])
            self.assertEqual(turned[name].dtype, dtype)
            self.assertGreater((expected - before).abs().max().item(), 1)
            # float32: rounding of angles and products; bf16: now and then the next number. The
            # angles of ltx reach 15708, which diffusers' float32 knows to 0.001 or so.
            allowed = 2e-2 if rope == "ltx" else 2e-5 if dtype == torch.float32 else 2**-6
            error = (turned[name].double() - expected.double()).abs().max().item()
            self.assertLess(error, allowed, f"{rope} {name} {dtype}")

    def test_bands(self) -> None:
        for name, family in (("cogvideox", cogvideox), ("hunyuan", hunyuan), ("flux", flux), ("wan", wan)):
            for dtype in (torch.float32, torch.bfloat16):
                text = "none" if name == "wan" else f"{TEXT}@end" if name == "hunyuan" else f"{TEXT}@start"
                self.check(name, family(64), 64, 2, dtype, text)

    def test_ltx_turns_the_channels_of_all_heads(self) -> None:
        self.check("ltx", ltx(64, 4), 64, 4, torch.float32, "none")
        self.check("ltx", ltx(32, 6), 32, 6, torch.float32, "none")

    def test_mochi_takes_learnt_frequencies(self) -> None:
        frequencies = torch.randn(3, 2, 32) * 0.05
        file = self.folder / "weights.safetensors"
        save_file({"pos_frequencies": frequencies}, file)
        self.check(f"mochi:{file}", mochi(64, frequencies), 64, 2, torch.float32, f"{TEXT}@end")


if __name__ == "__main__":
    unittest.main()
