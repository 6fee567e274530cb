"""Layers, steps, heads, branches and rows: what is chosen is recorded, and nothing else."""

import unittest
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F

import small_models
from attnscope_capture import (
    CallSize,
    StepCounter,
    capture,
    estimate,
    head_range,
    key_head_range,
    largest_named,
    parse_numbers,
)
from support import TOLERANCE, CaptureTest, has_program, output_error, program, read_capture


class Numbers(CaptureTest):
    def test_what_is_chosen(self) -> None:
        for spec, numbers in (
            ("0,3-5", [0, 3, 4, 5]),
            ("7-", [7, 8, 9]),
            ("0-9:4", [0, 4, 8]),
            ("1-:3", [1, 4, 7]),
            ("all", list(range(10))),
            (3, [3]),
            ([2, 4], [2, 4]),
            (None, list(range(10))),
            (" 1 , 2", [1, 2]),
            (range(3), [0, 1, 2]),
        ):
            test = parse_numbers(spec, "layers")
            self.assertEqual([n for n in range(10) if test(n)], numbers, spec)
        for spec in ("", "a", "-1", "1,,2", "3-2", "1-5:0", [], [-1], "1.5"):
            with self.refused("layers"):
                parse_numbers(spec, "layers")
        self.assertEqual(
            [largest_named(s) for s in ("0,3-5", "7-", "1-:3", "all", 4, [2, 9], "0-9:4")],
            [5, None, None, None, 4, 9, 9],
        )

    def test_heads_that_share_keys(self) -> None:
        self.assertEqual(head_range("1-2", 4), (1, 3))
        self.assertEqual(head_range("2-", 4), (2, 4))
        self.assertEqual(key_head_range(2, 4, 8, 4), (1, 2))
        self.assertEqual(key_head_range(3, 4, 8, 4), (1, 2))  # one head of a group
        self.assertEqual(key_head_range(0, 8, 8, 4), (0, 4))
        with self.refused("share a key head", "1-3"):
            key_head_range(1, 4, 8, 4)
        with self.refused("no multiple"):
            key_head_range(0, 4, 4, 3)


class Sizes(unittest.TestCase):
    def test_the_manuals_table(self) -> None:
        """Bytes of q and k in bf16 are those of the calls' shapes."""
        manual = (Path(__file__).resolve().parents[2] / "docs" / "capture.md").read_text()
        table = manual[manual.index("| model | tokens |") :].split("\n\n")[0].splitlines()[2:]
        text = {"Wan": 512, "LTX": 128}
        units = {"MB": 1e6, "GB": 1e9}
        self.assertEqual(len(table), 13)
        for row in table:
            name, tokens, shape, *told = (cell.strip() for cell in row.strip("|").split("|"))
            n = int(tokens.replace("\u00a0", "").replace(" ", ""))
            layers, heads, d = (int(x) for x in shape.split("×"))
            words = next((w for k, w in text.items() if name.startswith(k)), 0)
            size = CallSize(1, heads, heads, n, n, d, 2)
            cross = CallSize(1, heads, heads, n, words, d, 2).payload(False, 0) if words else 0
            call = size.payload(False, 0)
            expected = [call / heads, call, size.payload(True, 0), cross, layers * (call + cross)]
            for shown, value in zip(told, expected, strict=True):
                if not value:
                    self.assertEqual(shown, "")
                    continue
                number, unit = shown.split()
                digits = len(number.split(".")[1]) if "." in number else 0
                self.assertEqual(number, f"{value / units[unit]:.{digits}f}", (name, shown, value))


class Steps(CaptureTest):
    def run_counter(self, counter: StepCounter, forwards: list[tuple[float, str | None]]) -> list[tuple]:
        return [counter.next(*f) for f in forwards]

    def test_one_forward_a_step(self) -> None:
        self.assertEqual(
            self.run_counter(StepCounter("batch", None), [(9, None), (9, None), (5, None)]),
            [(0, None), (1, None), (2, None)],
        )

    def test_separate_forwards(self) -> None:
        counter = StepCounter("forwards", None)
        self.assertEqual(
            self.run_counter(counter, [(9, None), (9, None), (5, None), (5, None), (1, None)]),
            [(0, "cond"), (0, "uncond"), (1, "cond"), (1, "uncond"), (2, "cond")],
        )
        self.assertEqual(counter.steps, 3)

    def test_the_context_decides(self) -> None:
        counter = StepCounter("forwards", None)
        self.assertEqual(
            self.run_counter(counter, [(9, "uncond"), (9, "cond"), (5, "cond"), (1, "cond")]),
            [(0, "uncond"), (0, "cond"), (1, "cond"), (2, "cond")],
        )
        with self.refused("'cond' came twice"):  # the same timestep again is no other step
            counter.next(1, "cond")

    def test_given_branches(self) -> None:
        counter = StepCounter("forwards", ["cond", "no_image", "uncond"])
        forwards = self.run_counter(counter, [(9, None)] * 3 + [(5, None)])
        self.assertEqual(forwards, [(0, "cond"), (0, "no_image"), (0, "uncond"), (1, "cond")])
        counter = StepCounter("forwards", ["cond", "no_image", "uncond"])  # nothing but the order
        self.assertEqual(self.run_counter(counter, [(None, None)] * 4), forwards)


class Choices(CaptureTest):
    def test_heads_are_those_of_the_whole_capture(self) -> None:
        small = small_models.cogvideox()
        for name, options in (("all", {}), ("some", {"heads": "1-2", "layers": "0,2", "steps": "1-"})):
            with capture(small.pipe, self.folder / name, **options):
                small.run(3)
        whole = {c.file: c for c in read_capture(self.folder / "all")}
        some = read_capture(self.folder / "some")
        self.assertEqual(
            [(c.facts["step"], c.facts["layer"]) for c in some], [(1, 0), (1, 2), (2, 0), (2, 2)]
        )
        for call in some:
            self.assertEqual(call.facts["head_offset"], 1)
            for name in ("q", "k", "v", "out"):
                self.assertTrue(torch.equal(call[name], whole[call.file][name][:, 1:3]), name)
            self.assertNotIn("head_offset", whole[call.file].facts)

    def test_branches(self) -> None:
        small = small_models.cogvideox()
        for branch in ("cond", "uncond", "both"):
            with capture(small.pipe, self.folder / branch, steps=0, layers=0, branch=branch):
                small.run(1)
        both, cond, uncond = (read_capture(self.folder / b)[0] for b in ("both", "cond", "uncond"))
        self.assertTrue(torch.equal(both["q"], torch.cat([uncond["q"], cond["q"]])))
        self.assertEqual((cond.facts["branches"], uncond.facts["branches"]), (["cond"], ["uncond"]))
        # Without guidance there is one branch.
        with capture(small.pipe, self.folder / "plain", steps=0, layers=0, branch="both"):
            small.run(1, guidance_scale=1.0)
        (plain,) = read_capture(self.folder / "plain")
        self.assertEqual((plain.facts["branches"], plain["q"].shape[0]), (["cond"], 1))

    def test_guidance_that_changes_while_the_pipeline_runs(self) -> None:
        small = small_models.cogvideox()
        real = type(small.pipe).guidance_scale
        values = iter([6.0, 1.0, 1.0, 3.0] * 9)
        with mock.patch.object(type(small.pipe), "guidance_scale", property(lambda self: next(values))):
            with capture(small.pipe, self.folder / "d", layers=0, branch="both"):
                small.run(3)
        self.assertIs(type(small.pipe).guidance_scale, real)
        self.assertEqual(
            [c.facts["branches"] for c in read_capture(self.folder / "d")], [["uncond", "cond"]] * 3
        )

    def test_branches_by_name(self) -> None:
        small = small_models.cogvideox()
        with capture(small.pipe, self.folder / "d", steps=0, layers=0, branches=["b", "a"], branch=["a"]):
            small.run(1)
        with capture(small.pipe, self.folder / "cond", steps=0, layers=0):
            small.run(1)
        (a,), (cond,) = read_capture(self.folder / "d"), read_capture(self.folder / "cond")
        self.assertEqual(a.facts["branches"], ["a"])
        self.assertTrue(torch.equal(a["q"], cond["q"]))

    def test_files_of_one_layer_are_told_apart(self) -> None:
        small = small_models.wan()
        with capture(small.pipe, self.folder / "d", steps=0, layers=0, branch="both"):
            small.run(1)
        self.assertEqual(
            sorted(c.file for c in read_capture(self.folder / "d")),
            [
                f"step0000_layer000_{kind}_{branch}.safetensors"
                for kind in ("cross", "self")
                for branch in ("cond", "uncond")
            ],
        )

    def test_separate_forwards_without_a_context(self) -> None:
        """Older pipelines do not name their forwards: cond first, then uncond at the same timestep."""
        small = small_models.wan()
        transformer = small.pipe.transformer
        inputs = {
            "hidden_states": torch.randn(1, 4, 3, 8, 12),
            "encoder_hidden_states": torch.randn(1, 8, 12),
            "return_dict": False,
        }
        with torch.no_grad(), capture(transformer, self.folder / "d", layers=0, branch="uncond"):
            for stamp in (900.0, 900.0, 400.0, 400.0):
                transformer(timestep=torch.tensor([stamp]), **inputs)
        calls = read_capture(self.folder / "d")
        self.assertEqual(
            [(c.facts["step"], c.facts["timestep"]) for c in calls if c.facts["kind"] == "self"],
            [(0, 900.0), (1, 400.0)],
        )

    def test_what_a_class_has_not_is_told_before_its_step_comes(self) -> None:
        small = small_models.cogvideox()
        with self.refused("nothing was recorded", "kinds 'cross'"):
            with capture(small.pipe, self.folder / "d", kinds="cross", steps="1"):
                small.run(2)
        self.assertIn("nothing of the first step was recorded", self.said.getvalue())
        with capture(small.pipe, self.folder / "later", kinds="joint", steps="1"):
            self.said.truncate(0)
            small.run(2)
        self.assertNotIn("nothing of the first step", self.said.getvalue())

    def test_another_run_in_the_block_is_said(self) -> None:
        small = small_models.cogvideox()
        with capture(small.pipe, self.folder / "d", layers=0):
            small.run(2)
            self.assertNotIn("set anew", self.said.getvalue())
            small.run(1)
        self.assertIn("set anew after step 1", self.said.getvalue())
        self.assertEqual([c.facts["step"] for c in read_capture(self.folder / "d")], [0, 1, 2])
        self.assertEqual(type(small.pipe.scheduler).set_timesteps.__name__, "set_timesteps")
        self.assertNotIn("say", type(small.pipe.scheduler).set_timesteps.__code__.co_freevars)

    def test_a_transformer_alone(self) -> None:
        small = small_models.cogvideox()
        inputs = {
            "hidden_states": torch.randn(1, 3, 4, 8, 12).repeat(2, 1, 1, 1, 1),
            "return_dict": False,
            "encoder_hidden_states": torch.randn(2, 6, 12),
            "timestep": torch.tensor([500, 500]),
        }
        transformer = small.pipe.transformer
        with torch.no_grad(), capture(transformer, self.folder / "d", layers=0):
            transformer(**inputs)
        self.assertIn("a batch of 2 is taken as [uncond; cond]", self.said.getvalue())
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(call.facts["q_state"], "qk_norm")  # no tables were given: no rotation
        with torch.no_grad(), capture(transformer, self.folder / "two", layers=0, branches=["cond"]):
            transformer(**inputs)  # two videos
        (two,) = read_capture(self.folder / "two")
        self.assertEqual((two.facts["branches"], two["q"].shape[0]), (["cond"], 2))
        inputs = {k: v[:1] if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
        three = {
            k: v.repeat(3, *[1] * (v.ndim - 1)) if isinstance(v, torch.Tensor) else v
            for k, v in inputs.items()
        }
        with torch.no_grad(), self.refused("batch of 3", "branches"):
            with capture(transformer, self.folder / "three", layers=0):
                transformer(**three)

    def test_without_values_and_with_other_rows(self) -> None:
        small = small_models.cogvideox()
        with capture(small.pipe, self.folder / "d", steps=0, layers=0, values=False):
            small.run(1)
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(sorted(call.tensors), ["k", "q"])
        for rows, count in ((5, 5), (1000, 78)):
            with capture(small.pipe, self.folder / f"{rows}", steps=0, layers=0, rows=rows):
                small.run(1)
            (call,) = read_capture(self.folder / f"{rows}")
            self.assertEqual(call["out_rows"].tolist(), sorted(set(call["out_rows"].tolist())))
            self.assertEqual(
                (len(call["out_rows"]), int(call["out_rows"][0]), int(call["out_rows"][-1])), (count, 0, 77)
            )
            self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_skip_layer_guidance_is_left_out(self) -> None:
        small = small_models.sd3()
        with capture(small.pipe, self.folder / "d", layers=0):
            small.run(
                4, skip_guidance_layers=[1], skip_layer_guidance_start=0.0, skip_layer_guidance_stop=0.9
            )
        self.assertIn("skip-layer guidance", self.said.getvalue())
        calls = [c for c in read_capture(self.folder / "d") if c.facts["kind"] == "joint"]
        self.assertEqual([c.facts["step"] for c in calls], [0, 1, 2, 3])
        self.assertEqual(len({c.facts["timestep"] for c in calls}), 4)

    def test_image_keys_of_wan(self) -> None:
        """Image-to-video models attend to an image in a call of its own, before the text."""
        from diffusers import WanTransformer3DModel

        torch.manual_seed(1)
        transformer = WanTransformer3DModel(
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=4,
            text_dim=12,
            freq_dim=16,
            ffn_dim=32,
            num_layers=1,
            rope_max_seq_len=32,
            added_kv_proj_dim=32,
            image_dim=10,
        ).eval()
        with torch.no_grad(), capture(transformer, self.folder / "d", steps=0) as cap:
            transformer(
                torch.randn(1, 4, 3, 8, 12),
                torch.tensor([5.0]),
                torch.randn(1, 512, 12),
                torch.randn(1, 9, 10),
            )
        calls = {c.facts["slot"]: c for c in read_capture(self.folder / "d")}
        self.assertEqual(list(calls), ["attn1", "attn2.image", "attn2"])
        self.assertEqual({c.facts["block"] for c in calls.values()}, {"blocks.0"})
        self.assertEqual(calls["attn2"]["k"].shape[2], 512)
        self.assertEqual((calls["attn2"].facts["grid"], calls["attn2"].facts["text"]), ("3x4x6", "all"))
        image = calls["attn2.image"]
        self.assertEqual(image["k"].shape[2], 9)
        self.assertEqual(
            image.facts["queries"], [{"name": "video", "modality": "video", "count": 72, "grid": [3, 4, 6]}]
        )
        self.assertEqual(image.facts["keys"], [{"name": "image", "modality": "image", "count": 9}])
        self.assertEqual(len({c.file for c in calls.values()}), 3)
        self.assertEqual(cap.writer.bytes, cap.planned)
        size = estimate(transformer, grid=(3, 4, 6), text=512, image=9)
        self.assertEqual(cap.writer.bytes, size)
        for call in calls.values():
            self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_reference_images_have_no_grid_of_one_piece(self) -> None:
        small = small_models.flux()
        ids = torch.zeros(60, 3)
        ids[:48, 1], ids[:48, 2] = torch.arange(48) // 8, torch.arange(48) % 8
        ids[48:, 0] = 1
        inputs = dict(
            hidden_states=torch.randn(1, 60, 16),
            timestep=torch.tensor([0.5]),
            guidance=torch.tensor([3.5]),
            pooled_projections=torch.randn(1, 8),
            img_ids=ids,
            encoder_hidden_states=torch.randn(1, 8, 12),
            txt_ids=torch.zeros(8, 3),
        )
        with torch.no_grad(), capture(small.pipe.transformer, self.folder / "d", layers=0):
            small.pipe.transformer(**inputs)
        (call,) = read_capture(self.folder / "d")
        self.assertNotIn("grid", call.facts)
        self.assertEqual(
            call.facts["queries"],
            [
                {"name": "text", "modality": "text", "count": 8},
                {"name": "image", "modality": "image", "count": 48, "grid": [1, 6, 8]},
                {"name": "reference_1", "modality": "reference", "count": 12},
            ],
        )
        if has_program():
            program("verify", self.folder / "d")


class Changes(CaptureTest):
    def test_later_changes_in_place_do_not_reach_the_dump(self) -> None:
        small = small_models.cogvideox()
        processor = small.pipe.transformer.transformer_blocks[0].attn1.processor
        kept = {}

        class Spoils(type(processor)):  # type: ignore[misc]
            def __call__(self, *args, **more):  # type: ignore[no-untyped-def]
                real = F.scaled_dot_product_attention

                def spoiled(query, key, value, **rest):  # type: ignore[no-untyped-def]
                    kept.setdefault("q", query.clone())
                    out = real(query, key, value, **rest)
                    query.zero_()
                    key.fill_(7)
                    return out

                F.scaled_dot_product_attention = spoiled
                try:
                    return super().__call__(*args, **more)
                finally:
                    F.scaled_dot_product_attention = real

        small.pipe.transformer.transformer_blocks[0].attn1.processor = Spoils()
        with capture(small.pipe, self.folder / "d", steps=0, layers=0, branch="both"):
            small.run(1)
        (call,) = read_capture(self.folder / "d")
        self.assertTrue(torch.equal(call["q"], kept["q"]))
        self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_autocast_is_what_the_kernel_saw(self) -> None:
        q = torch.randn(1, 2, 9, 8)
        with capture(None, self.folder / "d"), torch.autocast("cpu", torch.bfloat16):
            out = F.scaled_dot_product_attention(q, q, q)
        (call,) = read_capture(self.folder / "d")
        self.assertEqual((call["q"].dtype, out.dtype), (torch.bfloat16, torch.bfloat16))
        self.assertTrue(torch.equal(call["q"], q.bfloat16()))
        self.assertLess(output_error(call), TOLERANCE[torch.bfloat16])


if __name__ == "__main__":
    unittest.main()
