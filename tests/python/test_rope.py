"""--rope against the functions of diffusers: q and k that convert turned, beside theirs."""

import json
import os
import subprocess
import unittest
from collections.abc import Callable

import torch
from safetensors.torch import load_file, save_file

from support import CaptureTest, has_program, program

GRID = (3, 4, 6)
VIDEO = 3 * 4 * 6
TEXT = 5
Turn = Callable[[torch.Tensor], torch.Tensor]  # of the video tokens, [1, heads, VIDEO, d]


def places() -> torch.Tensor:
    axes = torch.meshgrid(*(torch.arange(n) for n in GRID), indexing="ij")
    return torch.stack(axes, -1).reshape(-1, 3)


def complex_turn(tables: torch.Tensor) -> Turn:
    """As the processors of models with tables of complex numbers do, [tokens, d / 2]."""

    def turn(x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * tables).flatten(-2).to(x.dtype)

    return turn


def cogvideox(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb, get_3d_rotary_pos_embed

    tables = get_3d_rotary_pos_embed(d, ((0, 0), GRID[1:]), GRID[1:], GRID[0])
    return lambda x: apply_rotary_emb(x, tables)


def hunyuan(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_hunyuan_video import HunyuanVideoRotaryPosEmbed

    tables = HunyuanVideoRotaryPosEmbed(1, 1, [d // 8, d // 16 * 7, d // 16 * 7])(torch.zeros(1, 1, *GRID))
    return lambda x: apply_rotary_emb(x, tables)


def hunyuan15(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_hunyuan_video15 import HunyuanVideo15RotaryPosEmbed

    tables = HunyuanVideo15RotaryPosEmbed(1, 1, [d // 8, d // 16 * 7, d // 16 * 7])(torch.zeros(1, 1, *GRID))
    return lambda x: apply_rotary_emb(x, tables)


def motif(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_motif_video import MotifVideoRotaryPosEmbed

    tables = MotifVideoRotaryPosEmbed(1, 1, [d // 8, d // 16 * 7, d // 16 * 7])(torch.zeros(1, 1, *GRID))
    return lambda x: apply_rotary_emb(x, tables)


def hunyuan_image(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_hunyuanimage import HunyuanImageRotaryPosEmbed

    tables = HunyuanImageRotaryPosEmbed((1, 1), [d // 2, d // 2])(torch.zeros(1, 1, *GRID[1:]))
    tables = [t.repeat(GRID[0], 1) for t in tables]
    return lambda x: apply_rotary_emb(x, tables)


def krea2(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_krea2 import Krea2RotaryPosEmbed

    tables = Krea2RotaryPosEmbed(1000, [d // 4, d // 8 * 3, d // 8 * 3])(places())
    return lambda x: apply_rotary_emb(x, tables)


def kandinsky5(d: int, scale: tuple[float, float, float]) -> Turn:
    from diffusers.models.transformers.transformer_kandinsky import Kandinsky5RoPE3D

    rope = Kandinsky5RoPE3D((d // 4, d // 8 * 3, d // 8 * 3))
    matrices = rope((1, *GRID), [torch.arange(n) for n in GRID], scale).reshape(VIDEO, d // 2, 2, 2)

    def turn(x: torch.Tensor) -> torch.Tensor:  # as Kandinsky5AttnProcessor does, which rounds to bfloat16
        pairs = x.float().unflatten(-1, (-1, 1, 2))
        return (matrices * pairs).sum(-1).flatten(-2).to(x.dtype)

    return turn


def cosmos(d: int, scale: tuple[float, float, float], fps: int | None) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_cosmos import CosmosRotaryPosEmbed

    tables = CosmosRotaryPosEmbed(d, patch_size=(1, 1, 1), rope_scale=scale)(torch.zeros(1, 1, *GRID), fps)
    return lambda x: apply_rotary_emb(x, tables, use_real=True, use_real_unbind_dim=-2)


def ltx2(d: int, heads: int, fps: float) -> Turn:
    from diffusers.models.transformers.transformer_ltx2 import LTX2AudioVideoRotaryPosEmbed, apply_split_rotary_emb

    rope = LTX2AudioVideoRotaryPosEmbed(d * heads, rope_type="split", num_attention_heads=heads)
    tables = rope(rope.prepare_video_coords(1, *GRID, device=torch.device("cpu"), fps=fps))
    return lambda x: apply_split_rotary_emb(x, tables)


def ltx2_time(d: int, heads: int, fps: float, latents: int) -> tuple[Turn, Turn]:
    """(of the video's cells, of `latents` of audio) as LTX-2 turns them where they attend to each other: by
    coordinates that the model prepares as it does for itself."""
    from diffusers.models.transformers.transformer_ltx2 import LTX2AudioVideoRotaryPosEmbed, apply_split_rotary_emb

    def rope(modality: str, **more: object) -> LTX2AudioVideoRotaryPosEmbed:
        return LTX2AudioVideoRotaryPosEmbed(
            d * heads, modality=modality, rope_type="split", num_attention_heads=heads, **more
        )

    cpu = torch.device("cpu")
    cells = rope("video").prepare_video_coords(1, *GRID, device=cpu, fps=fps)[:, 0:1]
    sound = rope("audio", scale_factors=[4]).prepare_audio_coords(1, latents, cpu)
    tables = rope("video")(cells), rope("audio")(sound)
    return lambda x: apply_split_rotary_emb(x, tables[0]), lambda x: apply_split_rotary_emb(x, tables[1])


def minimax_h3() -> Turn:
    from diffusers.models.transformers.transformer_minimax_h3 import MiniMaxH3RotaryPosEmbed, _apply_rotary_emb

    tables = MiniMaxH3RotaryPosEmbed()(places())
    return lambda x: _apply_rotary_emb(x.transpose(1, 2), *tables).transpose(1, 2)


def flux2(d: int) -> tuple[Turn, Turn]:
    from diffusers import Flux2Pipeline
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_flux2 import Flux2PosEmbed

    embed = Flux2PosEmbed(2000, [d // 4] * 4)
    words = embed(Flux2Pipeline._prepare_text_ids(torch.zeros(1, TEXT, 1))[0])
    # The pipeline has one picture; more are further t.
    cells = embed(torch.cat([places(), torch.zeros(VIDEO, 1)], 1))
    return lambda x: apply_rotary_emb(x, cells), lambda x: apply_rotary_emb(x, words)


def qwen_image(d: int) -> tuple[Turn, Turn]:
    from diffusers.models.transformers.transformer_qwenimage import QwenEmbedRope

    rope = QwenEmbedRope(10000, [d // 8, d // 16 * 7, d // 16 * 7], scale_rope=True)
    cells, words = rope(GRID, device=torch.device("cpu"), max_txt_seq_len=TEXT)
    return complex_turn(cells), complex_turn(words)


def z_image(d: int) -> tuple[Turn, Turn]:
    from diffusers.models.transformers.transformer_z_image import RopeEmbedder, ZImageTransformer2DModel

    ids = ZImageTransformer2DModel.create_coordinate_grid  # where _pad_with_ids puts words and cells
    rope = RopeEmbedder(256.0, [d // 4, d // 8 * 3, d // 8 * 3], [1536, 512, 512])
    words = rope(ids((TEXT, 1, 1), (1, 0, 0)).flatten(0, 2))
    cells = rope(ids(GRID, (TEXT + 1, 0, 0)).flatten(0, 2))
    return complex_turn(cells), complex_turn(words)


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


def skyreels(d: int) -> Turn:
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_skyreels_v2 import SkyReelsV2RotaryPosEmbed

    tables = SkyReelsV2RotaryPosEmbed(d, (1, 1, 1), 64)(torch.zeros(1, 1, *GRID))
    return lambda x: apply_rotary_emb(x, [t[0, :, 0].float() for t in tables])


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
    def check(
        self,
        rope: str,
        turn: Turn,
        d: int,
        heads: int,
        dtype: torch.dtype,
        text: str,
        turn_text: Turn | None = None,
    ) -> None:
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
            if turn_text is not None:
                words = slice(0, TEXT) if first else slice(VIDEO, VIDEO + TEXT)
                expected[:, :, words] = turn_text(before[:, :, words])
            self.assertEqual(turned[name].dtype, dtype)
            self.assertGreater((expected - before).abs().max().item(), 1)
            # float32: rounding of angles and products; bf16: now and then the next number. The
            # angles of ltx reach 15708, which diffusers' float32 knows to 0.001 or so.
            allowed = 2e-2 if rope.startswith("ltx") else 2e-5 if dtype == torch.float32 else 2**-6
            error = (turned[name].double() - expected.double()).abs().max().item()
            self.assertLess(error, allowed, f"{rope} {name} {dtype}")

    def test_bands(self) -> None:
        for name, family in (("cogvideox", cogvideox), ("hunyuan", hunyuan), ("flux", flux), ("wan", wan)):
            for dtype in (torch.float32, torch.bfloat16):
                text = "none" if name == "wan" else f"{TEXT}@end" if name == "hunyuan" else f"{TEXT}@start"
                self.check(name, family(64), 64, 2, dtype, text)

    def test_models_that_share_a_family(self) -> None:
        self.check("hunyuan", hunyuan15(64), 64, 2, torch.float32, f"{TEXT}@end")
        self.check("hunyuan", motif(64), 64, 2, torch.float32, f"{TEXT}@end")
        self.check("wan", skyreels(128), 128, 1, torch.float32, "none")
        self.check("wan", skyreels(112), 112, 1, torch.float32, "none")  # SANA-Video

    def test_bands_of_cells(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            self.check("hunyuan-image", hunyuan_image(128), 128, 2, dtype, f"{TEXT}@end")
            self.check("krea2", krea2(128), 128, 2, dtype, f"{TEXT}@start")
            self.check("kandinsky5", kandinsky5(64, (1, 3.16, 3.16)), 64, 2, dtype, "none")
            self.check("kandinsky5:scale=1x2x2", kandinsky5(64, (1, 2, 2)), 64, 2, dtype, "none")
        # In bfloat16 the model rounds the cosines as well.
        self.check("minimax-h3", minimax_h3(), 128, 2, torch.float32, "none")

    def test_positions_that_the_caller_tells(self) -> None:
        """Words, a keyframe, sound and a video, as MiniMax-H3's pipeline places them."""
        from diffusers.models.transformers.transformer_minimax_h3 import MiniMaxH3RotaryPosEmbed, _apply_rotary_emb
        from diffusers.modular_pipelines.minimax_h3.before_denoise import MiniMaxH3PrepareLayoutStep

        torch.manual_seed(4)
        words = torch.ones(5, dtype=torch.long)
        build = MiniMaxH3PrepareLayoutStep.build_packed_sequence
        positions = build(words, 7, 4, 6, 9, (1, 2, 2), 2, 2, 0, ("last",))[0].float()
        tensors = {n: torch.randn(1, 2, len(positions), 128) for n in ("q", "k")}
        path, out = self.folder / "before.safetensors", self.folder / "after.safetensors"
        save_file({**tensors, "position_ids": positions}, path, {"format": "attnscope-capture/1", "q_state": "qk_norm"})
        command = [os.environ["ATTNSCOPE"], "convert", str(path), "--rope", "minimax-h3", "-o", str(out)]
        said = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stderr
        self.assertNotIn("position_ids", said)
        turned = load_file(out)
        self.assertTrue(torch.equal(turned["position_ids"], positions))
        tables = MiniMaxH3RotaryPosEmbed()(positions)
        for name, before in tensors.items():
            expected = _apply_rotary_emb(before.transpose(1, 2), *tables).transpose(1, 2)
            self.assertGreater((expected - before).abs().max().item(), 1)
            self.assertLess((turned[name].double() - expected.double()).abs().max().item(), 2e-5)

    def test_cosmos(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            self.check("cosmos:scale=1x3x3", cosmos(128, (1, 3, 3), None), 128, 2, dtype, "none")
            self.check("cosmos:scale=1x3x3,fps=16", cosmos(128, (1, 3, 3), 16), 128, 2, dtype, "none")
            self.check("cosmos:fps=30,scale=2x1x1", cosmos(128, (2, 1, 1), 30), 128, 2, dtype, "none")

    def test_ltx2_turns_halves_by_the_middles_of_cells(self) -> None:
        self.check("ltx2", ltx2(128, 4, 24), 128, 4, torch.float32, "none")
        self.check("ltx2:fps=30,heads=5", ltx2(64, 5, 30), 64, 5, torch.float32, "none")

    def test_ltx2_audio_is_turned_by_seconds(self) -> None:
        """Audio by itself, and with video in both directions; --rope leaves keys that are words alone."""
        latents, d, heads = 17, 64, 4
        video, audio = ltx2_time(d, heads, 24, latents)
        tokens = {
            "video": {"name": "video", "modality": "video", "count": VIDEO, "grid": list(GRID)},
            "audio": {"name": "audio", "modality": "audio", "count": latents},
            "text": {"name": "text", "modality": "text", "count": latents},
        }
        turns: dict[str, Turn] = {"video": video, "audio": audio, "text": lambda x: x}
        for queries, keys in (("audio", "audio"), ("video", "audio"), ("audio", "video"), ("audio", "text")):
            torch.manual_seed(4)
            before = {n: torch.randn(1, heads, tokens[s]["count"], d) for n, s in (("q", queries), ("k", keys))}
            facts = {"format": "attnscope-capture/2", "queries": json.dumps([tokens[queries]]), "q_state": "qk_norm"}
            if keys != queries:
                facts |= {"keys": json.dumps([tokens[keys]]), "kind": "cross"}
            path, out = self.folder / "before.safetensors", self.folder / "after.safetensors"
            save_file(before, path, facts)
            said = program("convert", path, "--rope", "ltx2-audio", "-o", out, "--force").stderr
            after = load_file(out)
            words = keys == "text"
            self.assertEqual("leaves cross attention as it is" in said, words)
            for name, side in (("q", queries), ("k", keys)):
                expected = before[name] if words else turns[side](before[name])
                self.assertEqual(float((expected - before[name]).abs().max()) > 1, not words)
                # Angles reach 15708, as those of ltx.
                self.assertLess(float((after[name] - expected).abs().max()), 2e-2, (queries, keys, name))

    def test_text_that_is_turned(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            for name, family in (("flux2", flux2), ("qwen-image", qwen_image), ("z-image", z_image)):
                turn, turn_text = family(128)
                place = "end" if name == "z-image" else "start"
                self.check(name, turn, 128, 2, dtype, f"{TEXT}@{place}", turn_text)

    def test_ltx_turns_the_channels_of_all_heads(self) -> None:
        self.check("ltx", ltx(64, 4), 64, 4, torch.float32, "none")
        self.check("ltx", ltx(32, 6), 32, 6, torch.float32, "none")

    def test_frames_within_a_stream(self) -> None:
        """FramePack turns frames by their place in the stream, which the token map has."""
        from diffusers.models.embeddings import apply_rotary_emb
        from diffusers.models.transformers.transformer_hunyuan_video_framepack import (
            HunyuanVideoFramepackRotaryPosEmbed,
        )

        embed = HunyuanVideoFramepackRotaryPosEmbed(1, 1, [8, 28, 28])
        tables = embed(torch.arange(20, 20 + GRID[0]), *GRID[1:], torch.device("cpu"))
        q = torch.randn(1, 2, VIDEO, 64)
        path, out = self.folder / "before.safetensors", self.folder / "after.safetensors"
        video = {"name": "video", "modality": "video", "count": VIDEO, "grid": list(GRID), "first_frame": 20}
        facts = {"format": "attnscope-capture/2", "queries": json.dumps([video]), "q_state": "qk_norm"}
        save_file({"q": q, "k": q.clone()}, path, facts)
        program("convert", path, "--rope", "hunyuan", "-o", out, "--quiet")
        error = (load_file(out)["q"] - apply_rotary_emb(q, tables)).abs().max()
        self.assertLess(float(error), 2e-5)

    def test_mochi_takes_learnt_frequencies(self) -> None:
        frequencies = torch.randn(3, 2, 32) * 0.05
        file = self.folder / "weights.safetensors"
        save_file({"pos_frequencies": frequencies}, file)
        self.check(f"mochi:{file}", mochi(64, frequencies), 64, 2, torch.float32, f"{TEXT}@end")


if __name__ == "__main__":
    unittest.main()
