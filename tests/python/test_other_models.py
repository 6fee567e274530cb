"""Models of transformers with sdpa attention, modules nobody knows, and bare calls."""

import sys
import unittest
from typing import Any

import torch
import torch.nn.functional as F

from attnscope_capture import capture, record
from support import TOLERANCE, CaptureTest, Spy, output_error, read_capture, weights

IDS = torch.tensor([[1, 5, 6, 7, 2, 0, 0], [1, 9, 8, 7, 6, 5, 2]])


def bert() -> Any:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return BertModel(
        BertConfig(
            vocab_size=20,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            initializer_range=0.3,
            attn_implementation="sdpa",
        )
    ).eval()


def language_model(name: str) -> Any:
    """One of transformers' causal models, eight heads on four of keys."""
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, name + "Config")(
        vocab_size=20,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=8,
        intermediate_size=16,
        initializer_range=0.3,
        attn_implementation="sdpa",
    )
    return getattr(transformers, name + "ForCausalLM")(config).eval()


def llama() -> Any:
    return language_model("Llama")


class Words:
    """A tokenizer as far as it is used."""

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"w{i}" for i in ids]


class Transformers(CaptureTest):
    def run_model(
        self, model: Any, name: str = "d", spy: Spy | None = None, inputs: dict | None = None, **options: Any
    ) -> list[Any]:
        inputs = inputs or {"input_ids": IDS}
        with torch.no_grad():
            with (spy or Spy())():
                plain = model(**inputs)[0]
            with capture(model, self.folder / name, **options):
                again = model(**inputs)[0]
        self.assertTrue(torch.equal(plain, again))
        calls = read_capture(self.folder / name)
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
        return calls

    def test_bert(self) -> None:
        spy = Spy()
        calls = self.run_model(
            bert(), spy=spy, tokenizer=Words(), inputs={"input_ids": IDS, "attention_mask": (IDS != 0).long()}
        )
        self.assertEqual([c.facts["layer"] for c in calls], [0, 1])
        for call, seen in zip(calls, spy.calls):
            self.assertTrue(torch.equal(call["q"], seen["q"]))
            self.assertEqual(
                (call.facts["kind"], call.facts["text"], call.facts["mask"]), ("self", "all", "tensor")
            )
            self.assertEqual(call.facts["text_valid"], [5, 7])
            self.assertEqual(call.facts["tokens"][0], ["w1", "w5", "w6", "w7", "w2", "w0", "w0"])
            self.assertNotIn("branches", call.facts)
            self.assertEqual(float(weights(call)[0, :, :, 5:].max()), 0.0)

    def test_language_models_are_causal_and_share_keys(self) -> None:
        for name in ("Qwen2", "Qwen3", "Llama"):
            calls = self.run_model(language_model(name), name)
            self.assertEqual([c.facts["layer"] for c in calls], list(range(len(calls))), name)
            for call in calls:
                self.assertEqual(call.facts["mask"], "causal")
                self.assertEqual((call["q"].shape[1], call["k"].shape[1]), (8, 4))
                self.assertEqual(float(weights(call).triu(1).max()), 0.0)
        some = self.run_model(llama(), "some", heads="4-7", layers=1)
        (call,) = some
        self.assertEqual((call["q"].shape[1], call["k"].shape[1], call.facts["head_offset"]), (4, 2, 4))
        self.assertTrue(torch.equal(call["k"], calls[1]["k"][:, 2:4]))
        with self.refused("share a key head"):
            self.run_model(llama(), "odd", heads="1-3")

    def test_a_layer_that_runs_several_times(self) -> None:
        """ALBERT's layers share one module: its calls are told by their slots."""
        from transformers import AlbertConfig, AlbertModel

        torch.manual_seed(0)
        sizes = {"vocab_size": 20, "embedding_size": 8, "hidden_size": 32, "intermediate_size": 16}
        config = AlbertConfig(**sizes, num_hidden_layers=3, num_attention_heads=2, attn_implementation="sdpa")
        spy = Spy()
        calls = self.run_model(AlbertModel(config).eval(), spy=spy)
        slots = [c.facts.get("slot", "attention") for c in calls]
        self.assertEqual(slots, ["attention", "attention.2", "attention.3"])
        for call, seen in zip(calls, spy.calls, strict=True):
            self.assertTrue(torch.equal(call["q"], seen["q"]))

    def test_tokens_beside_a_picture_are_not_called_text(self) -> None:
        """LLaVA: a picture's encoder, and words in which the picture's tokens stand, in one forward."""
        import transformers

        torch.manual_seed(0)
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        vision = transformers.CLIPVisionConfig(**sizes, image_size=16, patch_size=4, projection_dim=16)
        words = transformers.LlamaConfig(**sizes, vocab_size=20, num_key_value_heads=2)
        config = transformers.LlavaConfig(
            vision_config=vision, text_config=words, image_token_index=3, attn_implementation="sdpa"
        )
        model = transformers.LlavaForConditionalGeneration(config).eval()
        ids = torch.cat([torch.full((1, 16), 3), IDS[1:]], 1)
        picture = {"input_ids": ids, "pixel_values": torch.randn(1, 3, 16, 16)}
        for call in self.run_model(model, "picture", inputs={**picture, "use_cache": False}, tokenizer=Words()):
            told = {n: call.facts[n] for n in ("text", "tokens", "grid", "queries") if n in call.facts}
            self.assertEqual(told, {}, call.facts["layer_name"])
        (call,) = self.run_model(model, "words", inputs={"input_ids": IDS[1:], "use_cache": False}, blocks="*language*")
        self.assertEqual(call.facts["text"], "all")
        with torch.no_grad(), capture(model, self.folder / "stream", blocks="*language_model*"):
            model.generate(**picture, max_new_tokens=3, do_sample=False)
            model.generate(input_ids=IDS[1:], max_new_tokens=2, do_sample=False)
        streams = [
            (c.facts["step"], c.facts["chunk"], {s["modality"] for s in c.facts["queries"]})
            for c in read_capture(self.folder / "stream")
        ]
        other = [(0, n, {"other"}) for n in range(3)]
        self.assertEqual(streams, [*other, (1, 0, {"text"}), (1, 1, {"text"})])

    def test_multihead_attention_of_pytorch(self) -> None:
        layer = torch.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
        x = torch.randn(2, 5, 16)
        with torch.no_grad(), self.refused("set_fastpath_enabled"), capture(model, self.folder / "fast"):
            model(x)
        torch.backends.mha.set_fastpath_enabled(False)
        self.addCleanup(torch.backends.mha.set_fastpath_enabled, True)
        with torch.no_grad(), capture(model, self.folder / "d"):
            model(x)
        calls = read_capture(self.folder / "d")
        self.assertEqual([c.facts["layer"] for c in calls], [0, 1])
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_an_encoder_and_a_decoder(self) -> None:
        from transformers import BartConfig, BartModel

        torch.manual_seed(0)
        model = BartModel(
            BartConfig(
                vocab_size=20,
                d_model=32,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=16,
                decoder_ffn_dim=16,
                attn_implementation="sdpa",
            )
        ).eval()
        for other in (IDS[:, :4] + 1, IDS + 1):  # of another length, and of the same
            calls = self.run_model(
                model,
                f"{other.shape[1]}",
                tokenizer=Words(),
                inputs={"input_ids": IDS, "decoder_input_ids": other, "use_cache": False},
            )
            places = [c.facts.get("layer", c.facts.get("block")) for c in calls]
            seen = [(p, c.facts["kind"], c.facts["tokens"][1][1]) for p, c in zip(places, calls)]
            own = f"w{int(other[1, 1])}"
            self.assertEqual(
                seen,
                [
                    (0, "self", "w9"),
                    (1, "self", "w9"),
                    ("decoder.layers.0", "self", own),
                    ("decoder.layers.0", "cross", "w9"),
                    ("decoder.layers.1", "self", own),
                    ("decoder.layers.1", "cross", "w9"),
                ],
            )

    def test_other_attention(self) -> None:
        """An eager function is seen as it is, with the mask and the keys that it was given."""
        model = bert()
        inputs = {"input_ids": IDS[:1]}
        recorded = []
        for name in ("sdpa", "eager"):
            model.set_attn_implementation(name)
            with torch.no_grad(), capture(model, self.folder / name):
                model(**inputs)
            recorded.append(read_capture(self.folder / name))
        for sdpa, eager in zip(*recorded, strict=True):
            self.assertTrue(torch.allclose(sdpa["q"], eager["q"], atol=1e-4))
            self.assertLess(output_error(eager), TOLERANCE[torch.float32])
            self.assertEqual(eager.facts["extra"]["attention"], "transformers attention eager")
        model.config._attn_implementation = "paged|sdpa"
        with self.refused("paged", "sdpa"), capture(model, self.folder / "paged"):
            pass


class Own(torch.nn.Module):
    """An attention module of somebody's own, with a function obtained earlier."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in (q, k, v))
        return scaled_dot_product_attention(q, k, v, scale=0.2).transpose(1, 2).flatten(2)


scaled_dot_product_attention = F.scaled_dot_product_attention


class Anything(CaptureTest):
    def test_a_model_of_ones_own(self) -> None:
        model = torch.nn.Sequential(Own(), Own())
        x = torch.randn(2, 26, 16)
        with (
            torch.no_grad(),
            capture(
                model,
                self.folder / "d",
                modules=r"^\d+$",
                grid="2x3x4",
                text="2@start",
                branches=["uncond", "cond"],
                q_state="none",
                kind="joint",
            ),
        ):
            model(x)
        self.assertIs(sys.modules[__name__].scaled_dot_product_attention, self.real)
        calls = read_capture(self.folder / "d")
        self.assertEqual([(c.facts["layer"], c.facts["layer_name"]) for c in calls], [(0, "0"), (1, "1")])
        for call in calls:
            self.assertEqual(
                (call.facts["scale"], call.facts["grid"], call.facts["text"], call.facts["branches"]),
                (0.2, "2x3x4", "2@start", ["cond"]),
            )
            self.assertEqual(call["q"].shape[0], 1)
            self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_every_call_in_a_block(self) -> None:
        q, k = torch.randn(1, 4, 9, 8), torch.randn(1, 2, 9, 8)
        bias = torch.randn(9, 9)
        with capture(None, self.folder / "d", model="mine", kind="self", branches=["cond"]) as cap:
            for step in (0, 3):
                cap.begin_step(step, 1000.0 - step)
                out = F.scaled_dot_product_attention(q, k, k, enable_gqa=True, is_causal=True)
                F.scaled_dot_product_attention(q, q, q, attn_mask=bias)
        calls = read_capture(self.folder / "d")
        self.assertEqual(
            [(c.facts["step"], c.facts["layer"], c.facts["timestep"], c.facts["mask"]) for c in calls],
            [
                (0, 0, 1000.0, "causal"),
                (0, 1, 1000.0, "tensor"),
                (3, 0, 997.0, "causal"),
                (3, 1, 997.0, "tensor"),
            ],
        )
        self.assertEqual(list(calls[1]["mask"].shape), [1, 1, 9, 9])
        self.assertEqual(calls[0].facts["model"], "mine")
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
        self.assertEqual(out.shape, q.shape)

    def test_record(self) -> None:
        q, k, v = (torch.randn(2, n, 8) for n in (6, 5, 5))
        out = record(
            q,
            k,
            v,
            self.folder / "d",
            step=4,
            layer=2,
            timestep=7.0,
            grid=(1, 2, 3),
            kind="cross",
            tokens=list("abcde"),
            scale=0.5,
        )
        self.assertTrue(torch.equal(out, F.scaled_dot_product_attention(q, k, v, scale=0.5)))
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(
            (call.facts["step"], call.facts["layer"], call.facts["grid"], call.facts["scale"]),
            (4, 2, "1x2x3", 0.5),
        )
        self.assertEqual(list(call["q"].shape), [1, 2, 6, 8])
        self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_masks_that_are_only_expanded(self) -> None:
        q = torch.randn(3, 2, 7, 8)
        mask = torch.zeros(7, dtype=torch.bool).index_fill(0, torch.arange(5), True)
        with capture(None, self.folder / "d"):
            F.scaled_dot_product_attention(q, q, q, attn_mask=mask[None, None, None].expand(3, 2, 7, 7))
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(list(call["mask"].shape), [1, 1, 1, 7])
        self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_what_cannot_be_stored(self) -> None:
        x = torch.randn(5, 8)
        with self.refused(r"expected q \[B, H, N, d\] or \[H, N, d\]"), capture(None, self.folder / "d"):
            F.scaled_dot_product_attention(x, x, x)


if __name__ == "__main__":
    unittest.main()
