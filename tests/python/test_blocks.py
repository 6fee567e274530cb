"""Calls that step, layer, branch and kind do not tell apart: their blocks and slots, and choosing by them."""

import json
import unittest
from typing import Any

import torch
import torch.nn.functional as F

from attnscope_capture import capture
from support import TOLERANCE, CaptureTest, Recorded, Spy, output_error, read_capture


class BareAttention(torch.nn.Module):
    """Self-attention, or with other tokens cross-attention; `times` calls a forward."""

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.q, self.times = torch.nn.Linear(8, 8), times

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        k = (x if other is None else other)[:, None]
        for _ in range(self.times):
            x = F.scaled_dot_product_attention(self.q(x)[:, None], k, k)[:, 0]
        return x


def own_function(x: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x)


class Block(torch.nn.Module):
    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.attn1, self.audio_attn1 = BareAttention(times), BareAttention()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.audio_attn1(self.attn1(x))


class Single(torch.nn.Module):
    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.attn = BareAttention(times)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attn(x)


class Stacks(torch.nn.Module):
    """A class that nobody knows, of lists of blocks that run one after the other."""

    def __init__(self, **lists: list[torch.nn.Module]) -> None:
        super().__init__()
        for name, blocks in lists.items():
            setattr(self, name, torch.nn.ModuleList(blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for blocks in self.children():
            for block in blocks:
                x = block(x)
        return x


class Unknown(CaptureTest):
    def run_model(self, model: torch.nn.Module, name: str = "d", **options: Any) -> list[Recorded]:
        x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(1))
        spy = Spy()
        with torch.no_grad():
            with spy():
                plain = model(x)
            with capture(model, self.folder / name, **options):
                again = model(x)
        self.assertTrue(torch.equal(plain, again))
        calls = read_capture(self.folder / name)
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
            self.assertTrue(any(torch.equal(call["q"], seen["q"]) for seen in spy.calls))
        return calls

    def places(self, calls: list[Recorded]) -> list[tuple]:
        return [(c.facts.get("layer"), c.facts.get("block"), c.facts.get("slot")) for c in calls]

    def test_two_of_a_kind_in_a_block(self) -> None:
        model = Stacks(refiner=[Block()], blocks=[Block(), Block()])
        calls = self.run_model(model)
        self.assertEqual(
            self.places(calls),
            [
                (None, "refiner.0", "attn1"),
                (None, "refiner.0", "audio_attn1"),
                (0, "blocks.0", "attn1"),
                (0, "blocks.0", "audio_attn1"),
                (1, "blocks.1", "attn1"),
                (1, "blocks.1", "audio_attn1"),
            ],
        )
        self.assertEqual(calls[2].file, "step0000_blocks.0_attn1.safetensors")
        self.assertEqual({c.facts["format"] for c in calls}, {"attnscope-capture/2"})
        unknown = [{"name": "tokens", "modality": "other", "count": 6}]
        self.assertEqual(calls[0].facts["queries"], unknown)
        entry = json.loads((self.folder / "d" / "capture.json").read_text())["calls"][0]
        self.assertEqual((entry["block"], entry["slot"]), ("refiner.0", "attn1"))

    def test_choosing_by_name(self) -> None:
        model = Stacks(refiner=[Block()], blocks=[Block(), Block()])
        whole = {c.file: c for c in self.run_model(model, "all")}
        for name, options, expected in (
            ("a", {"blocks": "refiner.*"}, [("refiner.0", "attn1"), ("refiner.0", "audio_attn1")]),
            ("b", {"blocks": ["blocks.1"], "slots": "attn1"}, [("blocks.1", "attn1")]),
            ("c", {"layers": 0, "slots": ["audio_*"]}, [("blocks.0", "audio_attn1")]),
        ):
            calls = self.run_model(model, name, **options)
            self.assertEqual([(c.facts["block"], c.facts["slot"]) for c in calls], expected)
            for call in calls:
                self.assertTrue(torch.equal(call["k"], whole[call.file]["k"]))
        with self.refused("has refiner.0 to blocks.1", r"asked for 'vace_blocks\.\*'"):
            self.run_model(model, "d", blocks="vace_blocks.*")
        with self.refused("the model has attn1, audio_attn1", "asked for 'attn7'"):
            self.run_model(model, "e", slots="attn7")
        with self.refused("nothing was recorded", "slots 'attn1.2'"):
            self.run_model(model, "e", slots="attn1.2")
        with self.refused("blocks: expected names"):
            self.run_model(model, "f", blocks=[])
        with self.refused("without a model"), capture(None, self.folder / "g", slots="attn1"):
            pass

    def test_a_module_that_calls_twice(self) -> None:
        calls = self.run_model(Stacks(blocks=[Single(2)]))
        self.assertEqual(self.places(calls), [(0, None, None), (0, "blocks.0", "attn.2")])
        self.assertEqual([c.facts["format"][-1] for c in calls], ["1", "2"])
        self.assertEqual(len({c.file for c in calls}), 2)

    def test_what_the_first_format_says_stays_in_it(self) -> None:
        calls = self.run_model(Stacks(blocks=[Single(), Single()]))
        self.assertEqual(self.places(calls), [(n, None, None) for n in range(2)])
        self.assertEqual({c.facts["format"] for c in calls}, {"attnscope-capture/1"})
        self.assertEqual(calls[1].file, "step0000_layer001_self.safetensors")
        self.assertNotIn("queries", calls[0].facts)
        beside = self.run_model(Stacks(refiner=[Single()], blocks=[Single(), Single()]), "beside")
        self.assertEqual(self.places(beside), [(None, "refiner.0", "attn"), (0, None, None), (1, None, None)])
        self.assertEqual([c.file for c in beside[1:]], [c.file for c in calls])
        self.assertEqual([c.facts["format"] for c in beside], [f"attnscope-capture/{n}" for n in (2, 1, 1)])

    def test_modules_that_are_not_called_attention(self) -> None:
        """They are found by what their code calls; modules= names those of which that cannot be seen."""

        class Mixer(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.mixed(x[:, None])[:, 0]

            def mixed(self, x: torch.Tensor) -> torch.Tensor:
                return F.scaled_dot_product_attention(x, x, x)

        class Hidden(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return own_function(x[:, None])[:, 0]

        class Holder(torch.nn.Module):
            def __init__(self, mixer: torch.nn.Module) -> None:
                super().__init__()
                self.mixer, self.norm = mixer, torch.nn.LayerNorm(8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.norm(x + self.mixer(x))

        calls = self.run_model(Stacks(blocks=[Holder(Mixer()) for _ in range(2)]))
        self.assertEqual([c.facts["layer_name"] for c in calls], ["blocks.0.mixer", "blocks.1.mixer"])
        with self.refused("no attention modules were found", "modules="):
            self.run_model(Stacks(blocks=[Holder(Hidden())]), "hidden")
        calls = self.run_model(Stacks(blocks=[Holder(Hidden())]), "named", modules="mixer$")
        self.assertEqual([c.facts["layer_name"] for c in calls], ["blocks.0.mixer"])

    def test_a_name_that_no_capture_can_hold(self) -> None:
        model = Stacks(blocks=[Block()])
        model.blocks[0]._modules["white space"] = model.blocks[0]._modules.pop("attn1")
        model.blocks[0].forward = lambda x: model.blocks[0].audio_attn1(
            model.blocks[0]._modules["white space"](x)
        )
        with self.refused("'white space'", "1 to 128 characters"):
            self.run_model(model)


class Crossing(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cross_attn = BareAttention()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cross_attn(x, x[:, :5])


class Keys(CaptureTest):
    def test_keys_that_nobody_named_are_no_text(self) -> None:
        x = torch.randn(1, 6, 8)
        for name, options, text, format in (
            ("untold", {}, None, "2"),
            ("grid", {"grid": (1, 2, 3)}, None, "2"),
            ("told", {"text": "all"}, "all", "1"),
            ("words", {"tokens": list("abcde"), "branches": ["cond"]}, "all", "1"),
        ):
            model = Stacks(blocks=[Crossing()])
            with torch.no_grad(), capture(model, self.folder / name, **options):
                model(x)
            (call,) = read_capture(self.folder / name)
            self.assertEqual((call.facts.get("text"), call.facts["format"][-1]), (text, format))
            if text is None:
                self.assertEqual(call.facts["keys"], [{"name": "tokens", "modality": "other", "count": 5}])
                self.assertEqual(call.facts["queries"][0].get("grid"), [1, 2, 3] if options else None)
            else:
                self.assertNotIn("keys", call.facts)


class UNets(CaptureTest):
    def test_the_layers_of_a_unet_run_down_and_up(self) -> None:
        from diffusers import UNet2DConditionModel

        torch.manual_seed(1)
        model = UNet2DConditionModel(
            sample_size=8,
            block_out_channels=(8, 16),
            layers_per_block=1,
            norm_num_groups=4,
            down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
            transformer_layers_per_block=(1, 2),
            cross_attention_dim=12,
            attention_head_dim=4,
        ).eval()
        order: list[str] = []
        for name, module in model.named_modules():
            if name.endswith(".attn1"):
                module.register_forward_pre_hook(lambda m, a, n=name: order.append(n.removesuffix(".attn1")))
        x, words = torch.randn(2, 4, 16, 8), torch.randn(2, 5, 12)
        with torch.no_grad(), capture(model, self.folder / "d"):
            model(x, torch.tensor(3.0), words)
        calls = read_capture(self.folder / "d")
        blocks = {c.facts["layer"]: c.facts["block"] for c in calls}
        self.assertEqual([blocks[i] for i in range(len(order))], order)
        self.assertEqual({c.facts["slot"] for c in calls}, {"attn1", "attn2"})
        self.assertEqual(len(calls), 2 * len(order))


if __name__ == "__main__":
    unittest.main()
