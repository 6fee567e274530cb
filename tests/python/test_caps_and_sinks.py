"""Capped logits and sinks of real classes: what is recorded, against the models' own results and the program."""

from __future__ import annotations

import json
import unittest
from typing import Any

import torch

from attnscope_capture import CaptureError, Call, capture, check_result, wrap
from model_cases import SIZES, TEXT, TOKENS, made
from support import TOLERANCE, CaptureTest, Recorded, has_program, output_error, program, read_capture, weights

# Of HY 4: latent keys of 8 and 8 channels, of which an indexer chooses six a query.
TOP_KEYS = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "head_dim": 8,
    "v_head_dim": 16,
    "index_topk": 6,
    "index_head_dim": 16,
    "index_n_heads": 2,
    "hc_mult": 2,
    "moe_intermediate_size": 32,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "mlp_layer_types": ["dense", "sparse"],
    "max_position_embeddings": 64,
}
TURNED = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}


class Models(CaptureTest):
    def record(self, model: Any, inputs: dict[str, Any]) -> list[Recorded]:
        folder = self.folder / type(model).__name__
        with torch.no_grad():
            plain = model(**inputs)[0]
            with capture(model, folder):
                again = model(**inputs)[0]
        self.assertTrue(torch.equal(plain, again))
        calls = read_capture(folder)
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
        if has_program():
            report = json.loads(program("verify", folder, "--json").stdout)
            self.assertEqual([c["verdict"] for c in report["calls"]], ["agrees"] * len(calls))
            self.assertLess(max(c["error"] for c in report["calls"]), 1e-3)
        return calls

    def test_gpt_oss(self) -> None:
        model = made(
            "GptOssModel",
            "GptOssConfig",
            **SIZES,
            **TOKENS,
            head_dim=16,
            num_local_experts=2,
            num_experts_per_tok=1,
            sliding_window=8,
        )
        calls = self.record(model, TEXT)
        for layer, call in zip(model.layers, calls, strict=True):
            self.assertTrue(torch.equal(call["sinks"][0, :, 0], layer.self_attn.sinks.detach()))
            self.assertLess(float(weights(call).sum(-1).max()), 1)
            self.assertNotIn("score", call.facts)

    def test_gemma_2(self) -> None:
        sizes = {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 3.0}
        calls = self.record(made("Gemma2Model", "Gemma2Config", **SIZES, **TOKENS, **sizes), TEXT)
        for call in calls:
            self.assertEqual(call.facts["score"], "softcap:3.0")
            self.assertNotIn("sinks", call.tensors)
            plain = Recorded(call.file, {**call.facts, "score": "softmax"}, call.tensors)
            self.assertGreater(output_error(plain), 0.01)  # the cap is no formality

    def test_kin_of_gemma_2(self) -> None:
        sizes = {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 3.0}
        of_stack = {**SIZES, **TOKENS, **sizes}
        asks = of_stack | {"cross_attention_hidden_size": 64}
        stacks = {"encoder": of_stack, "decoder": asks, "vocab_size": 100}
        words = {**TEXT, "decoder_input_ids": torch.arange(3, 12)[None]}
        calls = self.record(made("VaultGemmaModel", "VaultGemmaConfig", **of_stack), TEXT)
        calls += self.record(made("T5GemmaModel", "T5GemmaConfig", **stacks), words)
        calls += self.record(made("T5GemmaEncoderModel", "T5GemmaConfig", **stacks, is_encoder_decoder=False), TEXT)
        self.assertEqual({call.facts["score"] for call in calls}, {"softcap:3.0"})
        self.assertEqual([call.facts["kind"] for call in calls], ["self"] * 4 + ["self", "cross"] * 2 + ["self"] * 2)

    def test_sinks_of_some_layers(self) -> None:
        calls = self.record(made("MiMoV2FlashModel", "MiMoV2FlashConfig", **SIZES, **TOKENS, head_dim=16), TEXT)
        self.assertEqual(["sinks" in call.tensors for call in calls], [False, True])

    def test_sinks_of_heads(self) -> None:
        few = {"num_local_experts": 2, "num_experts_per_tok": 1}
        mixed = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
        for cls, more in {
            "GraniteSWA": {},
            "GraniteMoeSWA": few,
            "OpenAIPrivacyFilter": {**few, "head_dim": 16, "sliding_window": 8},
            "Flint": {**mixed, "head_dim": 16, "sliding_window": 8, "shared_expert_intermediate_size": 32},
            "HYV4": TOP_KEYS,
            "HYV4VLText": {**TOP_KEYS, "rope_parameters": TURNED},
        }.items():
            with self.subTest(cls):
                calls = self.record(made(f"{cls}Model", f"{cls}Config", **SIZES | TOKENS | more), TEXT)
                self.assertEqual([tuple(call["sinks"].shape) for call in calls], [(1, 4, 1)] * 2)

    def test_sinks_of_queries(self) -> None:
        """Inkling 2 also calls the function to mix its layers, of which each token is a head: that is no attention
        of tokens."""
        sizes = SIZES | TOKENS | {"num_hidden_layers": 4, "num_experts_per_tok": 2, "n_routed_experts": 4}
        sizes |= {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 16, "head_dim": 16}
        more = {"d_rel": 4, "rel_extent": 16, "moe_intermediate_size": 32, "n_layers_per_attn_res_block": 2}
        for cls in ("Inkling2Text", "Inkling2LoopText"):
            with self.subTest(cls):
                model = made(f"{cls}Model", f"{cls}Config", **sizes, **more, sliding_window_size=8)
                calls = self.record(model, TEXT)
                self.assertEqual({call.facts["layer_name"].rpartition(".")[2] for call in calls}, {"self_attn"})
                self.assertEqual({call.facts["layer"] for call in calls}, set(range(4)))
                self.assertEqual({tuple(call["sinks"].shape) for call in calls}, {(1, 4, 24)})
                self.assertEqual({call["mask"].dtype for call in calls}, {torch.float32})  # the relative bias

    def test_video_prism(self) -> None:
        model = made(
            "VideoPrismVisionModel",
            "VideoPrismVisionConfig",
            image_size=32,
            num_frames=4,
            patch_size=16,
            hidden_size=64,
            intermediate_size=64,
            num_attention_heads=4,
            num_spatial_layers=2,
            num_temporal_layers=1,
            tubelet_size=[1, 16, 16],
        )
        calls = self.record(model, {"pixel_values_videos": torch.randn(1, 4, 3, 32, 32)})
        self.assertEqual({call.facts["score"] for call in calls}, {"softcap:50.0"})

    def test_relative_biases(self) -> None:
        sizes = {"num_layers": 2, "d_model": 64, "d_kv": 16, "d_ff": 64, "num_heads": 4, "vocab_size": 100}
        calls = self.record(made("T5EncoderModel", "T5Config", **sizes), TEXT)
        for call in calls:
            self.assertEqual((call.facts["mask"], call["mask"].dtype), ("tensor", torch.float32))
            self.assertEqual(call.facts["scale"], 1.0)


    def test_rows_without_keys(self) -> None:
        """Eager masks are numbers: a row of a padded prompt that sees no key has the lowest one for all of them."""
        model = made("LlamaModel", "LlamaConfig", **SIZES, **TOKENS)
        padded = torch.ones_like(TEXT["input_ids"])
        padded[:, :5] = 0
        with torch.no_grad(), capture(model, self.folder / "d"):
            model(**TEXT, attention_mask=padded)
        self.assertEqual(len(read_capture(self.folder / "d")), 2)
        if has_program():
            program("verify", self.folder / "d")

    def test_half_precision_is_told_to_approximate(self) -> None:
        experts = {"head_dim": 16, "num_local_experts": 2, "num_experts_per_tok": 1}
        model = made("GptOssModel", "GptOssConfig", **SIZES, **TOKENS, **experts).bfloat16()
        with torch.no_grad(), capture(model, self.folder / "d"):
            model(**TEXT)
        for call in read_capture(self.folder / "d"):
            self.assertRegex(call.facts["approximation"], "bfloat16")
        if has_program():
            self.assertIn("approximates", program("verify", self.folder / "d").stdout)


class Functions(CaptureTest):
    def call(self, **more: Any) -> Call:
        torch.manual_seed(1)
        q, k, v = (2 * torch.randn(2, 3, 9, 8) for _ in range(3))
        logits = q @ k.mT * 8**-0.5
        if more.get("cap"):
            logits = more["cap"] * torch.tanh(logits / more["cap"])
        sums = logits.logsumexp(-1, keepdim=True)
        if more.get("sinks") is not None:
            sums = torch.logaddexp(sums, more["sinks"][..., None])
        return Call(q, k, v, (logits - sums).exp() @ v, None, 0.0, False, None, "mine", **more)

    def test_results_are_checked_with_them(self) -> None:
        sinks = torch.randn(2, 3, 9)
        for more in ({"cap": 1.5}, {"sinks": sinks}, {"sinks": sinks[:1, :, :1]}, {"cap": 1.5, "sinks": sinks}):
            check_result(self.call(**more), [0, 1], (0, 3))
            for name in more:
                call = self.call(**more)
                setattr(call, name, 0.0 if name == "cap" else None)
                with self.assertRaisesRegex(CaptureError, "not softmax"):
                    check_result(call, [0, 1], (0, 3))

    def test_a_wrapped_function(self) -> None:
        made_of = self.call(cap=1.5, sinks=torch.tensor([0.5, 1.0, -1.0]).view(1, 3, 1))

        def kernel(q: Any, k: Any, v: Any, softcap: float = 0.0, s_aux: Any = None) -> torch.Tensor:
            return made_of.out

        with capture(None, self.folder / "d"):
            wrap(kernel)(made_of.q, made_of.k, made_of.v, softcap=1.5, s_aux=torch.tensor([0.5, 1.0, -1.0]))
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(call.facts["score"], "softcap:1.5")
        self.assertLess(output_error(call), TOLERANCE[torch.float32])
        with self.refused("not softmax"), capture(None, self.folder / "without"):
            wrap(kernel)(made_of.q, made_of.k, made_of.v)

    def test_a_compiled_function_says_that_they_do_not_leave_its_graph(self) -> None:
        made_of = self.call(cap=1.5)

        def kernel(q: Any, k: Any, v: Any, softcap: float) -> torch.Tensor:
            return made_of.out

        run = torch.compile(lambda q, k, v: wrap(kernel)(q, k, v, softcap=1.5), backend="eager")
        with self.refused("soft cap", "force_eager"), capture(None, self.folder / "d"):
            run(made_of.q, made_of.k, made_of.v)


if __name__ == "__main__":
    unittest.main()
