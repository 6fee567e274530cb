"""Attention whose result is a difference of two maps': `minus` and the calls' own results make what the model made."""

import unittest
from typing import Any

import diffusers
import torch

from attnscope_capture import capture
from model_cases import SIZES, TEXT, TOKENS, made
from support import TOLERANCE, CaptureTest, Recorded, has_program, output_error, program, read_capture
from test_models_sound import stable_audio3


class Differences(CaptureTest):
    def record(
        self, model: Any, inputs: dict[str, Any], watched: str
    ) -> tuple[list[Recorded], dict[str, torch.Tensor]]:
        """(the calls, the argument of each module whose name ends in `watched`)."""
        got: dict[str, torch.Tensor] = {}

        def keep(name: str) -> Any:
            return lambda module, args: got.update({name.rpartition(".")[0]: args[0].detach().clone()})

        for name, module in model.named_modules():
            if name.endswith(watched):
                module.register_forward_pre_hook(keep(name))
        with torch.no_grad():
            plain = model(**inputs)[0]
            with capture(model, self.folder / "d", branch="all", force=True):
                self.assertTrue(torch.equal(plain, model(**inputs)[0]))
        calls = read_capture(self.folder / "d")
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
        if has_program():
            program("verify", self.folder / "d")
        return calls, got

    def assert_near(self, one: torch.Tensor, other: torch.Tensor) -> None:
        self.assertGreater(float(other.abs().max()), 0)
        self.assertLess(float((one - other.double()).abs().max() / other.abs().max()), TOLERANCE[torch.float32])

    def test_two_calls_of_a_module(self) -> None:
        torch.manual_seed(3)
        model, inputs = stable_audio3(True)(diffusers.StableAudio3DiTModel)
        calls, made_of = self.record(model.eval(), inputs, "attn.to_out")
        by_slot = {(c.facts["block"], c.facts["slot"]): c for c in calls}
        self.assertEqual(len(by_slot), 8)
        for (block, slot), call in by_slot.items():
            minus = call.facts.get("minus")
            if slot.endswith(".2"):
                self.assertIsNone(minus)
                continue
            self.assertEqual(minus, {"slot": f"{slot}.2", "factor": 1.0})
            out = call["out"].double() - minus["factor"] * by_slot[block, minus["slot"]]["out"].double()
            self.assert_near(out.transpose(1, 2).flatten(2), made_of[f"{block}.{slot}"])

    def test_heads_of_a_map(self) -> None:
        for attention in ("eager", "sdpa"):
            model = made("DiffLlamaModel", "DiffLlamaConfig", **SIZES, **TOKENS)
            model.set_attn_implementation(attention)
            calls, made_of = self.record(model, TEXT, "self_attn.groupnorm")
            for first, second in zip(calls[::2], calls[1::2], strict=True):
                minus = first.facts["minus"]
                self.assertEqual(minus, {**second.facts["minus"], "slot": "self_attn"})
                self.assertTrue(torch.equal(first["q"], second["q"]) and torch.equal(first["k"], second["k"]))
                halves = torch.cat([first["out"], second["out"]], -1).double()
                left, taken = halves.split(minus["heads"], 1)
                out = (left - minus["factor"] * taken).transpose(1, 2)
                self.assert_near(out, made_of[first.facts["layer_name"]])

    def test_some_heads_of_a_map(self) -> None:
        """Heads are numbered as the model's; a call that has none of those that lose another says nothing."""
        model = made("DiffLlamaModel", "DiffLlamaConfig", **SIZES, **TOKENS)
        count = model.config.num_attention_heads
        for heads, offset, left in (("1", 1, count // 2), (f"{count // 2}-", count // 2, None)):
            with torch.no_grad(), capture(model, self.folder / "d", branch="all", force=True, heads=heads):
                model(**TEXT)
            calls = read_capture(self.folder / "d")
            self.assertTrue(calls)
            for call in calls:
                self.assertEqual(call.facts["head_offset"], offset)
                self.assertEqual(call.facts.get("minus", {}).get("heads"), left)


if __name__ == "__main__":
    unittest.main()
