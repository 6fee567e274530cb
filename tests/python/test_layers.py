"""Layers are the model's own numbers: of the longest of its lists of blocks; attention elsewhere goes by name."""

import json
import unittest
from typing import Any

import torch
import torch.nn.functional as F

from attnscope_capture import capture
from support import CaptureTest, has_program, program, read_capture

SIZES = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 16}
X = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(0))


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Block(torch.nn.Module):
    def __init__(self, attends: bool = True) -> None:
        super().__init__()
        self.mixer = Attention() if attends else torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mixer(x)


class Lists(torch.nn.Module):
    """Lists of blocks by name, of which some attend ("a") and the others do not."""

    def __init__(self, **lists: str) -> None:
        super().__init__()
        for name, blocks in lists.items():
            setattr(self, name, torch.nn.ModuleList(Block(word == "a") for word in blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for blocks in self.children():
            for block in blocks:
                x = block(x)
        return x


class Layers(CaptureTest):
    def record(self, model: Any, inputs: Any = None, **options: Any) -> list[tuple[int | str, str]]:
        """(layer or block, module) of the calls of one forward."""
        with torch.no_grad(), capture(model.eval(), self.folder / "d", force=True, **options):
            model(**inputs) if inputs is not None else model(X)
        calls = read_capture(self.folder / "d")
        return [(c.facts.get("layer", c.facts.get("block")), c.facts["layer_name"]) for c in calls]

    def test_a_hybrid(self) -> None:
        import transformers

        torch.manual_seed(0)
        kinds = ["conv", "conv", "full_attention", "conv", "full_attention", "conv"]
        sizes = {**SIZES, "num_hidden_layers": 6, "num_key_value_heads": 2, "vocab_size": 20}
        config = transformers.Lfm2Config(**sizes, layer_types=kinds, attn_implementation="sdpa")
        model = transformers.Lfm2ForCausalLM(config)
        inputs = {"input_ids": torch.arange(1, 9)[None], "use_cache": False}
        named = [(n, f"model.layers.{n}.self_attn") for n in (2, 4)]
        self.assertEqual(self.record(model, inputs), named)
        self.assertIn("attention that can be recorded is in layers 2, 4 of model.layers", self.said.getvalue())
        self.assertEqual(self.record(model, inputs, layers="3-"), named[1:])
        with self.refused("of layers 0 to 4 attention that can be recorded is in 2, 4", "asked for '0-1'"):
            self.record(model, inputs, layers="0-1")

    def test_a_vision_tower_goes_by_name(self) -> None:
        import transformers

        torch.manual_seed(0)
        vision = {**SIZES, "num_hidden_layers": 1, "image_size": 16, "patch_size": 4}
        words = {**SIZES, "num_hidden_layers": 2, "vocab_size": 20, "max_position_embeddings": 8}
        model = transformers.SiglipModel(
            transformers.SiglipConfig(text_config=words, vision_config=vision, attn_implementation="sdpa")
        )
        inputs = {"input_ids": torch.arange(1, 9)[None], "pixel_values": torch.randn(1, 3, 16, 16)}
        blocks = "vision_model.encoder.layers"
        calls = self.record(model, inputs)
        named = [(n, f"text_model.encoder.layers.{n}.self_attn") for n in (0, 1)]
        self.assertEqual(sorted(calls, key=lambda call: call[1])[:2], named)
        self.assertIn((f"{blocks}.0", f"{blocks}.0.self_attn"), calls)
        line = f'layers are the blocks of text_model.encoder.layers; attention in {blocks}'
        self.assertIn(line, self.said.getvalue())
        self.assertIn(f'blocks="{blocks}.*"', self.said.getvalue())
        self.assertEqual(self.record(model, inputs, layers="0-1"), named)
        self.assertEqual([n for n, _ in self.record(model, inputs, blocks=f"{blocks}.*")], [f"{blocks}.0"])
        with self.refused("layers 0 to 1", f"attention in {blocks}.* is chosen by blocks="):
            self.record(model, inputs, layers=2)

    @unittest.skipUnless(has_program(), "ATTNSCOPE names no program")
    def test_the_program_reads_both(self) -> None:
        self.record(Lists(front="aa", main="-a-a"))
        root = json.loads((self.folder / "d" / "capture.json").read_text())
        self.assertEqual(root["extra"]["layers"], 4)
        told = json.loads(program("info", self.folder / "d", "--json").stdout)
        places = [(call["layer"], call.get("block")) for call in told["calls"]]
        self.assertEqual(places, [(None, "front.0"), (None, "front.1"), (1, None), (3, None)])
        program("verify", self.folder / "d")
        for choice, count in ((("--layers", "3"), 1), (("--blocks", "front.*"), 2)):
            told = json.loads(program("stats", self.folder / "d", *choice, "--json").stdout)
            self.assertEqual(len({head.get("block") or head["layer"] for head in told["heads"]}), count)

    def test_lists_of_ones_own(self) -> None:
        """The longest list counts, with its blocks that do not attend; each layer is a block's own number."""
        model = Lists(front="aa", main="-a-a", back="a")
        calls = self.record(model)
        self.assertEqual([n for n, _ in calls], ["front.0", "front.1", 1, 3, "back.0"])
        said = self.said.getvalue()
        self.assertIn("layers are the blocks of main; attention in front, back goes by the names", said)
        self.assertIn("attention that can be recorded is in layers 1, 3 of main", said)
        self.assertEqual([n for n, _ in self.record(Lists(blocks="aaa"))], [0, 1, 2])
        self.assertNotIn("of blocks", self.said.getvalue().replace(said, ""))


if __name__ == "__main__":
    unittest.main()
