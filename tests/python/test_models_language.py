"""Language models of transformers whose keys are not the words alone: each call has its block, slot and tokens."""

import json
import unittest
from typing import Any

import torch
import transformers

from attnscope_capture import CaptureError, capture
from model_cases import SIZES, TEXT, TOKENS, Case, Models, made, map_of
from support import read_capture


def deepseek(cls: Any) -> tuple[Any, dict[str, Any]]:
    kinds = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
    sizes = SIZES | TOKENS | {"num_hidden_layers": 3, "num_key_value_heads": 1, "head_dim": 16, "q_lora_rank": 16}
    experts = {"moe_intermediate_size": 32, "n_routed_experts": 4, "num_experts_per_tok": 2}
    chosen = {"index_n_heads": 2, "index_head_dim": 16, "index_topk": 3}
    model = made(
        cls.__name__,
        "DeepseekV4Config",
        **sizes,
        **experts,
        **chosen,
        layer_types=kinds,
        mlp_layer_types=["moe"] * 3,
        compress_rates=dict(zip(kinds[1:], (4, 8))),
        sliding_window=8,
        o_groups=2,
        o_lora_rank=8,
        hc_mult=2,
        max_position_embeddings=64,
    )
    return model, TEXT


DEEPSEEK = {
    "*layers.0 self_attn": "text 24",
    "*layers.1 self_attn": "text 24 > text 24, compressed:other 6",
    "*layers.2 self_attn": "text 24 > text 24, compressed:other 3",
}


def language_model(cls: str, make: Any, calls: dict[str, str], layers: int, **more: Any) -> Case:
    return Case(cls, make, calls, layers, library="transformers", timestep=None, **more)


CASES = [
    language_model(f"DeepseekV4{end}", deepseek, DEEPSEEK, 3, masks={"*": "tensor"}, unsized="entries that are chosen")
    for end in ("Model", "ForCausalLM")
]


class LanguageModels(Models):
    cases = CASES

    def test_models(self) -> None:
        self.run_cases()

    def test_a_stream_of_compressed_keys(self) -> None:
        """Entries of several words have no position in a stream: calls of layers that make them are refused, those of
        the other are recorded."""
        model, _ = deepseek(transformers.DeepseekV4ForCausalLM)
        model, why = model.eval(), "its keys are not the stream's tokens alone: run with use_cache=False"
        words = TEXT["input_ids"]
        with torch.no_grad():
            for name, ids in (("long", words), ("of no window", words[:, :3])):
                plain = model(ids, use_cache=False).logits
                with capture(model, self.folder / name, branch="all") as cap:
                    cap.begin_chunk(0, query_position=0)
                    self.assertTrue(torch.equal(model(ids, use_cache=False).logits, plain))
                calls = read_capture(self.folder / name)
                self.assertEqual([(c.facts["layer"], map_of(c)) for c in calls], [(0, f"text {ids.shape[1]}")])
                refused = json.loads((self.folder / name / "capture.json").read_text())["refused"]
                names = [f"model.layers.{n}.self_attn" for n in (1, 2)]
                self.assertEqual([entry["layer_name"] for entry in refused], names)
                self.assertTrue(all(why in entry["why"] for entry in refused), refused)
            with self.assertRaisesRegex(CaptureError, why), capture(model, self.folder / "d", layers=1) as cap:
                cap.begin_chunk(0, query_position=0, key_positions=[(0, 30)])
                model(words, use_cache=False)


if __name__ == "__main__":
    unittest.main()
