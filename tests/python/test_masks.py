"""Masks of every query and key: what is stored of them says the same of each entry."""

import math
import unittest
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

from attnscope_capture import capture, record, stored_mask, wrap
from attnscope.capture import mask_entries  # after attnscope_capture, which knows where the package is
from support import (
    TOLERANCE,
    CaptureTest,
    Recorded,
    Spy,
    has_program,
    kept_entries,
    output_error,
    program,
    read_capture,
)

N = 300
I, J = torch.arange(N)[:, None], torch.arange(N)[None]
VALID = (torch.arange(N) < 230) & (torch.arange(N) % 50 != 7)


def pairs(valid: torch.Tensor) -> torch.Tensor:
    """[..., N] → [..., N, N]"""
    return valid[..., None] & valid[..., None, :]


def spread(blocks: torch.Tensor, size: int) -> torch.Tensor:
    """The entries of blocks [..., n, m], N x N of them."""
    return blocks.repeat_interleave(size, -2).repeat_interleave(size, -1)[..., :N, :N]


def some_blocks(*shape: int) -> torch.Tensor:
    blocks = torch.rand(*shape, generator=torch.Generator().manual_seed(4)) > 0.5
    blocks[..., 0] = True  # each row has keys
    blocks[..., 0, 1] = False
    return blocks


# Each mask with the form that it is stored in.
STRUCTURES: dict[str, tuple[str, torch.Tensor]] = {
    "causal": ("causal", J <= I),
    "causal blocks": ("block_causal:75", J // 75 <= I // 75),
    "causal blocks, the last short": ("block_causal:64", J // 64 <= I // 64),
    "valid tokens": ("valid_pairs", pairs(VALID)),
    "the first token is padding": ("valid_pairs", pairs(I[:, 0] >= 20)),
    "valid tokens of two items": ("valid_pairs", pairs(torch.stack([VALID, I[:, 0] < 99]))[:, None]),
    "no valid token in one item": ("valid_pairs", pairs(torch.stack([VALID, VALID & False]))[:, None]),
    "two segments": ("segments", VALID[:, None] == VALID),
    "packed": ("segments", I // 70 == J // 70),
    "alternating": ("segments", I % 7 == J % 7),
    "segments of two items": ("segments", torch.stack([I // 70 == J // 70, I % 3 == J % 3])[:, None]),
    "words around a picture": ("spans", (J <= I) | ((I >= 40) & (I < 90) & (J < 90))),
    "words, then a picture": ("spans", (J <= I) | (I >= 123)),
    "blocks of 128": ("blocks", spread(some_blocks(3, 3), 128)),
    "blocks of 64": ("blocks", spread(some_blocks(5, 5), 64)),
    "blocks of each item and head": ("blocks", spread(some_blocks(2, 4, 5, 5), 64)),
    "all rows alike": ("tensor", VALID.repeat(N, 1)),
    "a window": ("window:19,19", (I - J).abs() < 20),
    "a sliding window": ("window:19,0", (J <= I) & (I - J < 20)),
    "a window that is open": ("window:-1,30", J <= I + 30),
    "each token itself": ("window:0,0", I == J),
    "a window beside the token": ("tensor", (J < I) & (I - J < 20) | (J == 0)),
    "anything": ("tensor", torch.rand(N, N, generator=torch.Generator().manual_seed(1)) > 0.5),
}


class Structures(CaptureTest):
    def recorded(self, mask: torch.Tensor, name: str = "d", **options: Any) -> Recorded:
        """One call with the mask, as recorded; its output rows are those that were computed."""
        q, k = torch.randn(2, 4, N, 8), torch.randn(2, 2, mask.shape[-1], 8)
        with capture(None, self.folder / name, force=True, branches=["a", "b"], branch="both", **options):
            F.scaled_dot_product_attention(q, k, k, attn_mask=mask, enable_gqa=True)
        (call,) = read_capture(self.folder / name)
        if has_program():
            program("verify", self.folder / name)
        return call

    def check_same(self, call: Recorded, mask: torch.Tensor) -> None:
        whole = (2, 4, N, mask.shape[-1])
        self.assertTrue(torch.equal(kept_entries(call).expand(whole), mask.expand(whole)))

    def test_what_a_mask_is(self) -> None:
        for name, (fact, mask) in STRUCTURES.items():
            with self.subTest(name):
                call = self.recorded(mask)
                self.assertEqual(call.facts["mask"], fact)
                self.check_same(call, mask)

    def test_less_is_stored_than_entries(self) -> None:
        for name, (fact, mask) in STRUCTURES.items():
            if fact == "tensor" and name != "all rows alike":
                continue
            with self.subTest(name):
                call = self.recorded(mask, mask_limit=1000)
                size = sum(t.nbytes for n, t in call.tensors.items() if n.startswith("mask"))
                self.assertLessEqual(size, 8 * 2 * N)

    def test_one_entry_makes_another_mask(self) -> None:
        for name, (_, mask) in STRUCTURES.items():
            for at in ((0, 0), (0, N - 1), (N - 1, 0), (N - 1, N - 1), (150, 151), (151, 150), (37, 200)):
                with self.subTest(name, at=at):
                    other = mask.clone()
                    other[..., at[0], at[1]] ^= True
                    self.check_same(self.recorded(other), other)

    def test_one_head_or_item_makes_another_mask(self) -> None:
        for name, (_, mask) in STRUCTURES.items():
            for at in ((1, 3), (0, 1), (1, 0)):
                with self.subTest(name, at=at):
                    other = mask.expand(2, 4, N, N).clone()
                    other[at][40, 60] ^= True
                    self.check_same(self.recorded(other), other)

    def test_chosen_items_and_heads(self) -> None:
        mask = torch.rand(2, 4, N, N) > 0.5
        mask[1, 2:] = J // 75 <= I // 75
        self.assertEqual(
            stored_mask(mask, [1], (2, 4), (N, N), torch.float32, 0).facts, {"mask": "block_causal:75"}
        )
        with self.refused("above the limit"):
            stored_mask(mask, [1], (1, 4), (N, N), torch.float32, 0)
        with self.refused("above the limit"):
            stored_mask(mask, [0, 1], (2, 4), (N, N), torch.float32, 0)

    def test_windows_of_more_keys_than_queries(self) -> None:
        """Those are counted from the last token of both, whose place the query's is."""
        apart = torch.arange(N + 60)[None] - I - 60
        for fact, mask in (
            ("window:50,0", (apart >= -50) & (apart <= 0)),
            ("window:-1,0", apart <= 0),
            ("window:7,-1", apart >= -7),
            ("window:3,4", (apart >= -3) & (apart <= 4)),
        ):
            call = self.recorded(mask)
            self.assertEqual(call.facts["mask"], fact)
            self.check_same(call, mask)

    def test_other_numbers_of_keys(self) -> None:
        keys = torch.arange(170)[None]
        for fact, mask in (
            ("block_causal:60", keys // 60 <= I // 60),
            ("causal", keys <= I),
            ("tensor", (I - 30 <= keys) & (keys <= I)),
            ("tensor", pairs(VALID)[:, :170]),
            ("blocks", spread(some_blocks(5, 5), 64)[:, :170]),
        ):
            call = self.recorded(mask)
            self.assertEqual(call.facts["mask"], fact)
            self.check_same(call, mask)

    def test_pieces_are_bounded(self) -> None:
        seen: list[int] = []
        real = mask_entries.TensorEntries.rows

        def watched(entries: Any, item: int, head: int, first: int, end: int) -> torch.Tensor:
            seen.append((end - first) * entries.shape[3])
            return real(entries, item, head, first, end)

        with (
            mock.patch.object(mask_entries, "PIECE_ENTRIES", 130 * N),
            mock.patch.object(mask_entries.TensorEntries, "rows", watched),
        ):
            for name, (fact, mask) in STRUCTURES.items():
                with self.subTest(name):
                    call = self.recorded(mask)
                    self.assertEqual(call.facts["mask"], fact)
                    self.check_same(call, mask)
        self.assertLessEqual(max(seen), 130 * N)

    def test_numbers_stay_numbers(self) -> None:
        bias = torch.where(J <= I, 0.0, -10000.0)
        call = self.recorded(bias)
        self.assertEqual((call.facts["mask"], call["mask"].dtype), ("tensor", torch.float32))

    def test_a_folder_has_the_version_of_its_latest_call(self) -> None:
        q = torch.randn(1, 2, N, 8)
        folder = self.folder / "d"
        for step, mask in enumerate((None, STRUCTURES["packed"][1], None)):
            record(q, q, q, folder, step=step, mask=mask)
            formats = [c.facts["format"][-1] for c in read_capture(folder)]
            self.assertEqual(formats, ["1", "2", "1"][: step + 1])

    def test_causal_and_a_mask(self) -> None:
        def both(q: Any, k: Any, v: Any, attn_mask: Any, is_causal: bool) -> Any:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask & (J <= I))

        q = torch.randn(1, 2, N, 8)
        with self.refused("is causal and has a mask"), capture(None, self.folder / "d"):
            wrap(both)(q, q, q, attn_mask=VALID[None], is_causal=True)

    def test_a_mask_of_another_library(self) -> None:
        class LowerTriangularMask:
            def materialize(self) -> torch.Tensor:
                return torch.zeros(N, N).masked_fill(J > I, -math.inf)

        def attention(q: Any, k: Any, v: Any, attn_bias: Any = None) -> Any:
            bias = None if attn_bias is None else attn_bias.materialize()
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)

        q = torch.randn(1, 2, N, 8)
        with self.refused("LowerTriangularMask, expected a tensor or a BlockMask"), capture(None, self.folder / "d"):
            wrap(attention)(q, q, q, attn_bias=LowerTriangularMask())


class Blocks(CaptureTest):
    """BlockMasks of flex attention."""

    def stored(self, mask: Any, queries: int = N, keys: int = N) -> Recorded:
        from torch.nn.attention.flex_attention import flex_attention

        q, k = torch.randn(1, 2, queries, 16), torch.randn(1, 2, keys, 16)
        with capture(None, self.folder / "d", force=True):
            wrap(flex_attention)(q, k, k, block_mask=mask)
        (call,) = read_capture(self.folder / "d")
        self.assertLess(output_error(call), TOLERANCE[torch.float32])
        if has_program():
            program("verify", self.folder / "d")
        return call

    def test_what_a_function_makes(self) -> None:
        from torch.nn.attention.flex_attention import create_block_mask, create_mask

        bound = VALID.clone()
        for fact, heads, function in (
            ("causal", None, lambda b, h, i, j: j <= i),
            ("block_causal:75", None, lambda b, h, i, j: j // 75 <= i // 75),
            ("segments", None, lambda b, h, i, j: i // 70 == j // 70),
            ("valid_pairs", None, lambda b, h, i, j: bound[i] & bound[j]),
            ("blocks", None, lambda b, h, i, j: (i // 128 + 2 * (j // 128)) % 3 != 1),
            ("blocks", 2, lambda b, h, i, j: (i // 128 + 2 * (j // 128) + h) % 3 != 1),
            ("blocks", None, lambda b, h, i, j: (i // 64 + j // 64) % 3 != 1),
            ("window:20,20", None, lambda b, h, i, j: (i - j).abs() <= 20),
            ("tensor", 2, lambda b, h, i, j: (i - j).abs() <= 20 + h),
        ):
            mask = create_block_mask(function, None, heads, N, N, device="cpu")
            call = self.stored(mask)
            self.assertEqual(call.facts["mask"], fact)
            expected = create_mask(function, 1, heads or 1, N, N, device="cpu")
            self.assertTrue(torch.equal(kept_entries(call).expand(1, 2, N, N), expected.expand(1, 2, N, N)))

    def test_full_blocks_alone_ask_no_function(self) -> None:
        from torch.nn.attention.flex_attention import BlockMask

        def nobody(*_: Any) -> Any:
            raise AssertionError("was asked")

        counts = torch.tensor([[[1, 2, 1, 3]]], dtype=torch.int32)
        indices = torch.tensor([[[[0, 1, 2], [0, 2, 1], [1, 0, 2], [0, 1, 2]]]], dtype=torch.int32)
        none = torch.zeros_like(counts)
        mask = BlockMask.from_kv_blocks(
            none, indices, counts, indices, BLOCK_SIZE=(32, 64), mask_mod=nobody, seq_lengths=(100, 190)
        )
        kept = stored_mask(mask, [0], (0, 2), (100, 190), torch.float32, 0)
        self.assertEqual(kept.facts, {"mask": "blocks", "mask_block": "32x64"})
        blocks = torch.tensor([[1, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1]], dtype=torch.bool)
        self.assertTrue(torch.equal(kept.tensors["mask_blocks"], blocks[None, None]))


class Models(CaptureTest):
    """Transformers of diffusers with masks of every query and key, small and random."""

    def run_model(self, model: Any, arguments: dict[str, Any], **options: Any) -> list[Recorded]:
        torch.manual_seed(5)
        spy = Spy()
        with torch.no_grad(), spy(), capture(model, self.folder / "d", **options):
            model(**arguments)
        calls = read_capture(self.folder / "d")
        for call in calls:
            one = next(c for c in spy.calls if torch.equal(c["q"], call["q"]))
            if one["mask"] is not None:
                whole = (*call["q"].shape[:3], call["k"].shape[2])
                self.assertTrue(torch.equal(kept_entries(call).expand(whole), one["mask"].expand(whole)))
        if has_program():
            program("verify", self.folder / "d")
        return calls

    def test_hunyuan_video_15_masks_what_is_no_token(self) -> None:
        from diffusers import HunyuanVideo15Transformer3DModel

        torch.manual_seed(0)
        model = HunyuanVideo15Transformer3DModel(
            in_channels=4,
            out_channels=4,
            num_attention_heads=2,
            attention_head_dim=16,
            num_layers=2,
            num_refiner_layers=1,
            text_embed_dim=12,
            text_embed_2_dim=12,
            image_embed_dim=12,
            rope_axes_dim=(4, 6, 6),
        ).eval()
        words, glyphs = torch.zeros(2, 8, dtype=torch.long), torch.zeros(2, 6, dtype=torch.long)
        words[0, :5] = words[1, :3] = 1
        glyphs[:, :2] = 1
        arguments = dict(
            hidden_states=torch.randn(2, 4, 3, 4, 6),
            timestep=torch.tensor([500.0, 500.0]),
            encoder_hidden_states=torch.randn(2, 8, 12),
            encoder_attention_mask=words,
            encoder_hidden_states_2=torch.randn(2, 6, 12),
            encoder_attention_mask_2=glyphs,
            image_embeds=torch.zeros(2, 3, 12),
        )
        calls = self.run_model(model, arguments, branches=["uncond", "cond"], branch="both")
        joint = [c for c in calls if c["q"].shape[2] == 72 + 17]
        self.assertEqual(len(joint), 2)
        for call in joint:
            self.assertEqual(call.facts["mask"], "valid_pairs")
            # The valid text comes first: two glyphs, then words.
            tokens = torch.arange(89)
            self.assertTrue(torch.equal(call["mask_valid"][0], tokens < 72 + 2 + 5))
            self.assertTrue(torch.equal(call["mask_valid"][1], tokens < 72 + 2 + 3))

    def test_skyreels_v2_masks_later_blocks_of_frames(self) -> None:
        from diffusers import SkyReelsV2Transformer3DModel

        torch.manual_seed(0)
        model = SkyReelsV2Transformer3DModel(
            patch_size=(1, 2, 2),
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=4,
            text_dim=16,
            ffn_dim=32,
            num_layers=2,
            rope_max_seq_len=32,
            num_frame_per_block=2,
        ).eval()
        arguments = dict(
            hidden_states=torch.randn(1, 4, 6, 8, 6),
            timestep=torch.tensor([500.0]),
            encoder_hidden_states=torch.randn(1, 5, 16),
        )
        calls = self.run_model(model, arguments, guidance="forwards", branches=["cond"])
        kinds = [c.facts["mask"] for c in calls if c["k"].shape[2] == 72]
        self.assertEqual(kinds, ["block_causal:24"] * 2)


if __name__ == "__main__":
    unittest.main()
