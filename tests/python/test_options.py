"""Every option that is none is refused before the model runs, in words that say what is expected."""

import unittest
from typing import Any

import torch

import small_models
from attnscope_capture import capture, record
from support import CaptureTest, read_capture
from test_other_models import Own

WRONG: dict[str, list[Any]] = {
    "layers": ["last", [], 1.5, [0, "a"], -1, "7", True, [True]],
    "steps": ["-1", "", 1.5, [-1]],
    "heads": ["0,2", "99", 2.5, -1],
    "chunks": ["x", 0.5],
    "kinds": ["foo", [], 5, [[]]],
    "blocks": ["zzz", 5, [], [1]],
    "slots": ["zzz", 5, ["attn2"]],
    "branch": [5, [], [1]],
    "branches": ["cond", [], [1, 2], 5],
    "guidance": ["foo", 1],
    "values": ["no", None, 1],
    "rows": [-1, "x", 1.5, True],
    "mask_limit": ["abc", -1, 0.5],
    "model": [7],
    "prompt": [5, ["a"]],
    "negative_prompt": [None, 3],
    "tokenizer": [4],
    "tokens": ["abc", 5, [1, 2], [], {"cond": "abc"}],
    "text_valid": [-2, "a", 1.5, [-1], {"cond": -1}],
    "grid": ["3x4", "axbxc", (3, 4, -6), (3, 4), 5, "1.5x4x6", (3.0, 4, 6)],
    "text": ["5@middle", "6", 6, "-1@start"],
    "kind": ["foo", 1],
    "axes": ["foo", []],
    "q_state": [5],
    "head_offset": [-3, "a", 0.5],
    "rank": [(2, 1), "0/1", (0, 0), 3],
    "extra": ["x", {"a": set()}],
    "modules": ["[", 5, "attn1"],
    "force": ["maybe", None],
    "quiet": ["yes"],
    "strict": ["yes"],
}


class Options(CaptureTest):
    def test_what_is_no_value_of_an_option(self) -> None:
        pipe = small_models.cogvideox().pipe
        for name, values in WRONG.items():
            for value in values:
                later = name == "heads" and value in ("0,2", "99")  # known with the first call
                with self.subTest(f"{name}={value!r}"), self.refused(name):
                    with capture(pipe, self.folder / "d", **{name: value}):
                        self.assertTrue(later, "the model would run")
                        pipe.transformer(**CALL)
        self.assertFalse((self.folder / "d" / "capture.json").exists())

    def test_every_option_is_tried(self) -> None:
        from attnscope_capture import Options as All

        self.assertEqual(set(WRONG), set(All.__dataclass_fields__))

    def test_words_that_are_not_those_of_the_text(self) -> None:
        small = small_models.cogvideox()
        for name, value, word in (
            ("tokens", ["a"] * 8, "8 strings for 6"),
            ("tokens", {"cond": ["a"] * 7}, "7 strings for 6"),
            ("tokens", [["a"] * 6, ["b"] * 6], "one for all items of a branch"),
            ("text_valid", 7, "7 of 6"),
            ("text_valid", {"cond": 9}, "9 of 6"),
            ("text_valid", [3, 4], "one for all items of a branch"),
            ("text_valid", [], "one a batch item"),
        ):
            with self.subTest(f"{name}={value!r}"), self.refused(name, word):
                with capture(small.pipe, self.folder / "wrong", force=True, **{name: value}):
                    small.run(1)
        with capture(small.pipe, self.folder / "d", tokens=[list("abcdef")], text_valid=[4], branch="both"):
            small.run(1)
        for call in read_capture(self.folder / "d"):
            self.assertEqual((call.facts["tokens"], call.facts["text_valid"]), (list("abcdef"), 4))
        q = torch.randn(1, 2, 8, 4)
        for given in ({"tokens": ["a"] * 3}, {"text_valid": 3}):
            with self.refused("2 text tokens"):
                record(q, q, q, self.folder / "one", grid=(1, 2, 3), text="2@start", kind="joint", **given)
        self.assertFalse((self.folder / "one" / "capture.json").exists())

    def test_numbers_from_an_iterator(self) -> None:
        small = small_models.cogvideox()
        with capture(small.pipe, self.folder / "d", steps=iter([1]), layers=iter([0])):
            small.run(2)
        self.assertEqual({call.facts["step"] for call in read_capture(self.folder / "d")}, {1})

    def test_a_module_of_no_such_name(self) -> None:
        with self.refused("no attention modules"):
            capture(torch.nn.Sequential(Own()), self.folder / "d", modules="nothing")


CALL = {
    "hidden_states": torch.zeros(2, 3, 4, 8, 12),
    "encoder_hidden_states": torch.zeros(2, 6, 12),
    "timestep": torch.tensor([5, 5]),
}

if __name__ == "__main__":
    unittest.main()
