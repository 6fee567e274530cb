"""Prompts, token strings and numbers of valid tokens, from the text encoders of real pipelines."""

import unittest
from typing import Any

import torch

import small_models
from attnscope_capture import capture
from support import CaptureTest, read_capture

WORDS = ["<pad>", "</s>", "<unk>", "a", "dog", "runs", "on", "the", "beach", "bad", "video"]


def tokenizer() -> Any:
    """Words, then </s>, padded at the end, as T5's."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def text_encoder(kind: str) -> Any:
    from transformers import T5Config, T5EncoderModel, UMT5Config, UMT5EncoderModel

    torch.manual_seed(3)
    config, model = {"t5": (T5Config, T5EncoderModel), "umt5": (UMT5Config, UMT5EncoderModel)}[kind]
    return model(config(vocab_size=len(WORDS), d_model=12, d_kv=4, d_ff=8, num_layers=1, num_heads=2)).eval()


def with_text(small: small_models.Small, kind: str, place: str = "") -> small_models.Small:
    """Gives the pipeline a text encoder, and prompts in place of their embeddings."""
    small.pipe.register_modules(
        **{"text_encoder" + place: text_encoder(kind), "tokenizer" + place: tokenizer()}
    )
    for name in list(small.arguments):
        if "prompt" in name and "pooled" not in name:
            del small.arguments[name]
    small.arguments.update(prompt="a dog runs", negative_prompt="bad video")
    return small


def padded(words: str, count: int) -> list[str]:
    strings = words.split() + ["</s>"]
    return strings + ["<pad>"] * (count - len(strings))


class Text(CaptureTest):
    def record(self, small: small_models.Small, **options: Any) -> list[Any]:
        out = self.folder / str(len(list(self.folder.iterdir())))
        with capture(small.pipe, out, steps=0, layers=0, **{"branch": "both", **options}):
            small.run(2)
        return [c for c in read_capture(out) if c.facts["kind"] != "self"]

    def test_cogvideox(self) -> None:
        small = with_text(small_models.cogvideox(), "t5")
        (call,) = self.record(small)
        self.assertEqual(call.facts["prompt"], "a dog runs")
        self.assertEqual(call.facts["tokens"], [padded("bad video", 6), padded("a dog runs", 6)])
        self.assertEqual(call.facts["text_valid"], [3, 4])
        (call,) = self.record(small, branch="cond")
        self.assertEqual((call.facts["tokens"], call.facts["text_valid"]), (padded("a dog runs", 6), 4))

    def test_a_negative_prompt_alone_is_not_taken_for_the_prompt(self) -> None:
        small = with_text(small_models.cogvideox(), "t5")
        small.arguments.update(prompt=None, prompt_embeds=torch.randn(1, 6, 12))
        (call,) = self.record(small, branch="uncond")
        self.assertEqual(call.facts["tokens"], padded("bad video", 6))
        (call,) = self.record(small, branch="cond")
        self.assertNotIn("tokens", call.facts)
        self.assertNotIn("prompt", call.facts)

    def test_several_prompts(self) -> None:
        small = with_text(small_models.cogvideox(), "t5")
        small.arguments.update(prompt=["a dog", "the beach"], negative_prompt=["bad", "bad"])
        (call,) = self.record(small)
        self.assertEqual(call.facts["branches"], ["uncond", "uncond", "cond", "cond"])
        self.assertNotIn("tokens", call.facts)  # which item has which prompt is not told by a branch

    def test_wan(self) -> None:
        small = with_text(small_models.wan(), "umt5")
        small.arguments["max_sequence_length"] = 8
        calls = {c.facts["branches"][0]: c.facts for c in self.record(small)}
        self.assertEqual(calls["cond"]["tokens"], padded("a dog runs", 8))
        self.assertEqual(calls["uncond"]["tokens"], padded("bad video", 8))
        self.assertEqual((calls["cond"]["text_valid"], calls["uncond"]["text_valid"]), (4, 3))

    def test_ltx(self) -> None:
        small = with_text(small_models.ltx(), "t5")
        (call,) = self.record(small)
        self.assertEqual(call.facts["tokens"], [padded("bad video", 8), padded("a dog runs", 8)])
        self.assertEqual(call.facts["text_valid"], [3, 4])

    def test_mochi_keeps_the_valid_ones(self) -> None:
        small = small_models.mochi()
        arguments = dict(small.arguments)
        from transformers import T5Config, T5EncoderModel

        torch.manual_seed(3)
        encoder = T5EncoderModel(
            T5Config(vocab_size=len(WORDS), d_model=16, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
        ).eval()
        small = with_text(small, "t5")
        small.pipe.register_modules(text_encoder=encoder)
        small.arguments["max_sequence_length"] = arguments["max_sequence_length"]
        calls = {c.facts["branches"][0]: c.facts for c in self.record(small)}
        self.assertEqual(calls["cond"]["tokens"], ["a", "dog", "runs", "</s>"])
        self.assertEqual(calls["cond"]["text"], "4@end")
        self.assertEqual(calls["uncond"]["tokens"], ["bad", "video", "</s>"])

    def test_latte_cuts_both_to_the_prompts_length(self) -> None:
        small = with_text(small_models.latte(), "t5")
        small.arguments.update(mask_feature=True, negative_prompt="bad")
        (call,) = self.record(small)
        self.assertEqual(call["k"].shape[2], 4)
        self.assertEqual(
            call.facts["tokens"], [["bad", "</s>", "<pad>", "<pad>"]] * 3 + [["a", "dog", "runs", "</s>"]] * 3
        )
        self.assertEqual(call.facts["text_valid"], [2] * 3 + [4] * 3)

    def test_flux_encodes_the_prompts_one_by_one(self) -> None:
        from transformers import CLIPTextConfig, CLIPTextModel

        small = with_text(small_models.flux(), "t5", "_2")
        torch.manual_seed(2)
        clip = CLIPTextModel(
            CLIPTextConfig(vocab_size=11, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                           num_attention_heads=1, max_position_embeddings=77, eos_token_id=1)
        ).eval()  # fmt: skip
        small.pipe.register_modules(text_encoder=clip, tokenizer=tokenizer())
        small.pipe.tokenizer_max_length = 8
        for name in ("pooled_prompt_embeds", "negative_pooled_prompt_embeds"):
            del small.arguments[name]
        calls = {c.facts["branches"][0]: c.facts for c in self.record(small)}
        self.assertEqual(calls["cond"]["tokens"], padded("a dog runs", 8))
        self.assertEqual(calls["uncond"]["tokens"], padded("bad video", 8))
        self.assertEqual((calls["cond"]["text_valid"], calls["uncond"]["text_valid"]), (4, 3))
        self.assertEqual(calls["uncond"]["prompt"], "a dog runs")

    def test_hunyuan_crops_its_template(self) -> None:
        from transformers import CLIPTextConfig, CLIPTextModel, LlamaConfig, LlamaModel

        torch.manual_seed(2)
        llama = LlamaConfig(
            vocab_size=11, hidden_size=12, intermediate_size=8, num_hidden_layers=3, num_attention_heads=2
        )
        clip = CLIPTextConfig(
            vocab_size=11,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            eos_token_id=1,
        )
        small = small_models.hunyuan()
        for name in list(small.arguments):
            if "prompt" in name:
                del small.arguments[name]
        small.pipe.register_modules(
            text_encoder=LlamaModel(llama).eval(),
            tokenizer=tokenizer(),
            text_encoder_2=CLIPTextModel(clip).eval(),
            tokenizer_2=tokenizer(),
        )
        small.arguments.update(
            prompt="a dog runs",
            negative_prompt="bad",
            max_sequence_length=8,
            prompt_template={"template": "on the beach {}", "crop_start": 3},
        )
        calls = {c.facts["branches"][0]: c.facts for c in self.record(small)}
        self.assertEqual(calls["cond"]["tokens"], padded("a dog runs", 8))
        self.assertEqual(calls["uncond"]["tokens"], padded("bad", 8))
        self.assertEqual((calls["cond"]["text_valid"], calls["uncond"]["text_valid"]), (4, 2))

    def test_stable_diffusion_3_has_two_texts(self) -> None:
        from transformers import CLIPTextConfig, CLIPTextModelWithProjection

        torch.manual_seed(2)
        small = small_models.sd3()
        for name in list(small.arguments):
            if "prompt" in name:
                del small.arguments[name]
        for place in ("", "_2"):
            config = CLIPTextConfig(
                vocab_size=11,
                hidden_size=6,
                intermediate_size=8,
                num_hidden_layers=2,
                num_attention_heads=1,
                projection_dim=4,
                max_position_embeddings=77,
                eos_token_id=1,
            )
            small.pipe.register_modules(
                **{
                    "text_encoder" + place: CLIPTextModelWithProjection(config).eval(),
                    "tokenizer" + place: tokenizer(),
                }
            )
        small.pipe.register_modules(text_encoder_3=text_encoder("t5"), tokenizer_3=tokenizer())
        small.pipe.tokenizer_max_length = 5
        small.arguments.update(prompt="a dog", negative_prompt="bad video", max_sequence_length=7)
        calls = self.record(small)
        self.assertEqual(calls[0].facts["text"], "12@end")
        self.assertEqual(
            calls[0].facts["tokens"],
            [padded("bad video", 5) + padded("bad video", 7), padded("a dog", 5) + padded("a dog", 7)],
        )
        self.assertNotIn("text_valid", calls[0].facts)  # padding in the middle has no number

    def test_the_users_own(self) -> None:
        small = small_models.cogvideox()
        words = [f"w{i}" for i in range(6)]
        (call,) = self.record(
            small, prompt="p", tokens={"cond": words, "uncond": ["x"]}, text_valid={"cond": 3, "uncond": 1}
        )
        self.assertEqual(call.facts["tokens"], [["x"], words])
        self.assertEqual((call.facts["text_valid"], call.facts["prompt"]), ([1, 3], "p"))
        (call,) = self.record(small, branch="cond", tokens=words)
        self.assertEqual(call.facts["tokens"], words)

    def test_a_transformer_with_a_tokenizer(self) -> None:
        small = small_models.cogvideox()
        inputs = {
            "hidden_states": torch.randn(1, 3, 4, 8, 12).repeat(2, 1, 1, 1, 1),
            "return_dict": False,
            "encoder_hidden_states": torch.randn(2, 6, 12),
            "timestep": torch.tensor([500, 500]),
        }
        with (
            torch.no_grad(),
            capture(
                small.pipe.transformer,
                self.folder / "d",
                layers=0,
                branch="both",
                tokenizer=tokenizer(),
                prompt="the dog",
            ),
        ):
            small.pipe.transformer(**inputs)
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(call.facts["tokens"], [padded("", 6), padded("the dog", 6)])
        self.assertEqual(call.facts["text_valid"], [1, 3])

    def test_text_encoders_are_not_recorded(self) -> None:
        """Encoders with sdpa attention call the same function."""
        from transformers import BertConfig, BertModel

        small = small_models.wan()
        torch.manual_seed(0)
        bert = BertModel(
            BertConfig(
                vocab_size=11,
                hidden_size=12,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=8,
                attn_implementation="sdpa",
            )
        ).eval()
        with torch.no_grad(), capture(small.pipe, self.folder / "d", steps=0):
            before = bert(torch.tensor([[1, 2, 3]]))
            small.run(1)
            bert(torch.tensor([[1, 2, 3]]))
        self.assertEqual(len(before[0]), 1)
        self.assertEqual({c["q"].shape[2] for c in read_capture(self.folder / "d")}, {72})


if __name__ == "__main__":
    unittest.main()
