"""Every family's pipeline: what is recorded is what the model computed, and it computed the same."""

import json
import unittest

import torch

import attnscope_capture
import small_models
from support import TOLERANCE, CaptureTest, Spy, output_error, read_capture, weights

STEPS = 3
# kinds, text, branches of a file, q_state, layers; recorded with branch="both" over STEPS steps
FACTS = {
    "cogvideox": ({"joint": ("6@start", "qk_norm,rope")}, ["uncond", "cond"], 3, 9),
    "wan": ({"self": ("none", "qk_norm,rope"), "cross": ("all", "qk_norm")}, None, 2, 24),
    "hunyuan": ({"joint": ("8@end", "qk_norm,rope")}, None, 3, 18),
    "ltx": ({"self": ("none", "qk_norm,rope"), "cross": ("all", "qk_norm")}, ["uncond", "cond"], 2, 12),
    "mochi": ({"joint": (None, "qk_norm,rope")}, None, 2, 12),
    "flux": ({"joint": ("8@start", "qk_norm,rope")}, None, 3, 18),
    "sd3": ({"joint": ("9@end", "qk_norm"), "self": ("none", "qk_norm")}, ["uncond", "cond"], 3, 12),
    "latte": ({"self": ("none", "none"), "cross": ("all", "none")}, "factorised", 4, 18),
}
KINDS = {"wan": "self", "ltx": "cross", "latte": ["cross"]}  # one of several
VALID = {
    "hunyuan": {"cond": 5, "uncond": 3},
    "ltx": {"cond": 5, "uncond": 1},
    "mochi": {"cond": 5, "uncond": 2},
    "wan": {"cond": 5, "uncond": 2},
}


class Families(CaptureTest):
    def check_family(self, name: str, dtype: torch.dtype = torch.float32) -> None:
        small = small_models.FAMILIES[name](dtype)
        spy = Spy()
        with spy():
            plain = small.run(STEPS)
        state = torch.get_rng_state()
        with attnscope_capture.capture(small.pipe, self.folder / name, branch="both") as cap:
            recorded = small.run(STEPS)
        self.assertTrue(torch.equal(plain, recorded), "the model computed something else")
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        self.assertTrue(bool(plain.isfinite().all()))
        calls = read_capture(self.folder / name)
        self.check_values(calls, spy, dtype)
        self.check_facts(name, small, calls)
        self.assertEqual(cap.writer.bytes, cap.planned)  # the size told at the first call

    def check_values(self, calls, spy, dtype) -> None:  # type: ignore[no-untyped-def]
        sharp = 0.0
        for call in calls:
            error = output_error(call)
            self.assertLess(error, TOLERANCE[dtype], call.file)
            p = weights(call)
            self.assertLess(float((p.sum(-1) - 1).abs().max()), 1e-12)
            sharp = max(sharp, float(p.max()) * p.shape[-1])
            # The spy saw the token refiner's calls too: exactly one of all must be this one.
            same = [
                c
                for c in spy.calls
                if c["q"].shape == call["q"].shape
                and torch.equal(c["q"], call["q"])
                and torch.equal(c["k"], call["k"])
                and torch.equal(c["v"], call["v"])
            ]
            # Before it meets the text, the unconditional forward computes what the other one did.
            twins = 2 if call.facts["layer_name"] == "blocks.0.attn1" else 1
            self.assertEqual(len(same), twins, call.file)
            for one in same:
                self.assertTrue(torch.equal(one["out"][:, :, call["out_rows"]], call["out"]))
                self.assertEqual(one["mask"] is not None, "mask" in call.tensors)
        self.assertGreater(sharp, 2.0, "a map that is nearly uniform shows nothing")

    def check_facts(self, name, small, calls) -> None:  # type: ignore[no-untyped-def]
        kinds, branches, layers, count = FACTS[name]
        self.assertEqual(len(calls), count)
        self.assertEqual({c.facts["step"] for c in calls}, set(range(STEPS)))
        self.assertEqual({c.facts["layer"] for c in calls}, set(range(layers)))
        seen = set()
        stamps: dict[int, set[float]] = {}
        for call in calls:
            facts = call.facts
            text, state = kinds[facts["kind"]]
            self.assertEqual(facts["q_state"], state)
            self.assertEqual(facts["grid"], "x".join(map(str, small.grid)))
            valid = VALID.get(name, {})
            if facts["kind"] != "self":
                wanted = text or f"{valid[facts['branches'][0]]}@end"
                self.assertEqual(facts["text"], wanted)
                used = [valid.get(b) for b in facts["branches"]]
                if valid:
                    self.assertEqual(facts["text_valid"], used[0] if len(used) == 1 else used)
            if isinstance(branches, list):
                self.assertEqual(facts["branches"], branches)
            for branch in set(facts["branches"]):
                key = (facts["step"], facts["layer"], branch, facts["kind"])
                self.assertNotIn(key, seen)
                seen.add(key)
            stamps.setdefault(facts["step"], set()).add(facts["timestep"])
            self.assertEqual(facts["scale"], call["q"].shape[-1] ** -0.5)
            self.assertIn(f".{'attn2' if facts['kind'] == 'cross' else 'attn'}", "." + facts["layer_name"])
        self.assertTrue(all(len(s) == 1 for s in stamps.values()))
        self.assertEqual(len(set.union(*stamps.values())), STEPS)
        self.assertEqual({k[2] for k in seen}, {"cond", "uncond"})

    def test_cogvideox(self) -> None:
        self.check_family("cogvideox")

    def test_cogvideox_in_bfloat16(self) -> None:
        self.check_family("cogvideox", torch.bfloat16)

    def test_wan(self) -> None:
        self.check_family("wan")

    def test_hunyuan(self) -> None:
        self.check_family("hunyuan")
        for call in read_capture(self.folder / "hunyuan"):
            self.assertEqual(call.facts["mask"], "tensor")
            used = 72 + VALID["hunyuan"][call.facts["branches"][0]]
            self.assertEqual(call["mask"].dtype, torch.bool)
            self.assertEqual(call["mask"].flatten().tolist(), [True] * used + [False] * (80 - used))
            self.assertEqual(float(weights(call)[..., used:].max()), 0.0)

    def test_ltx(self) -> None:
        self.check_family("ltx")
        for call in read_capture(self.folder / "ltx"):
            if call.facts["kind"] == "cross":
                self.assertEqual(float(call["mask"].min()), -10000.0)
                self.assertEqual(list(call["mask"].shape), [2, 3, 1, 8])
            else:
                self.assertEqual(call.facts["mask"], "none")

    def test_mochi(self) -> None:
        self.check_family("mochi")
        lengths = {c.facts["branches"][0]: c["q"].shape[2] for c in read_capture(self.folder / "mochi")}
        self.assertEqual(lengths, {"cond": 77, "uncond": 74})

    def test_several_videos_of_mochi(self) -> None:
        """Each has calls of its own, so two of a branch are told apart by names or not at all."""
        small = small_models.mochi()
        two = {n: torch.cat([t, t]) for n, t in small.arguments.items() if "prompt" in n}
        with self.refused("MochiTransformer3DModel: 2 videos of the branch 'cond'", "one at a time"):
            with attnscope_capture.capture(small.pipe, self.folder / "two", steps=1):
                small.run(2, **two)
        self.assertFalse(list((self.folder / "two").glob("*.safetensors*")))
        names = ["uncond", "uncond.2", "cond", "cond.2"]
        spy = Spy()
        with spy(), attnscope_capture.capture(small.pipe, self.folder / "named", branches=names, branch="all", steps=0):
            small.run(2, **two)
        calls = read_capture(self.folder / "named")
        blocks = len(small.pipe.transformer.transformer_blocks)
        self.assertEqual([c.facts["branches"] for c in calls], [[n] for n in names] * blocks)
        joint = [seen for seen in spy.calls if seen["q"].shape[2] > 72]  # without those that pool the text
        for call, seen in zip(calls, joint):
            self.assertTrue(torch.equal(call["q"], seen["q"]), call.file)

    def test_flux(self) -> None:
        self.check_family("flux")

    def test_sd3(self) -> None:
        self.check_family("sd3")

    def test_latte(self) -> None:
        self.check_family("latte")
        for call in read_capture(self.folder / "latte"):
            spatial = call.facts["layer"] % 2 == 0
            self.assertEqual(call.facts["axes"], "spatial" if spatial else "temporal")
            half = 3 if spatial else 24
            self.assertEqual(call.facts["branches"], ["uncond"] * half + ["cond"] * half)
            self.assertEqual(list(call["q"].shape), [2 * half, 2, 24 if spatial else 3, 16])
            self.assertTrue(
                call.facts["layer_name"].startswith(
                    f"{'' if spatial else 'temporal_'}transformer_blocks.{call.facts['layer'] // 2}."
                )
            )


class Variants(CaptureTest):
    def test_cogvideox_without_rope_and_with_patches_in_time(self) -> None:
        for options, grid, state in (
            ({"rope": False}, "3x4x6", "qk_norm"),
            ({"patch_t": 2}, "2x4x6", "qk_norm,rope"),
        ):
            small = small_models.cogvideox(**options)
            out = self.folder / state
            with attnscope_capture.capture(small.pipe, out, steps=0, layers=1):
                small.run(1)
            (call,) = read_capture(out)
            self.assertEqual((call.facts["grid"], call.facts["q_state"]), (grid, state))
            self.assertEqual(call.facts["branches"], ["cond"])
            self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_both_transformers_of_wan_22(self) -> None:
        small = small_models.wan(two=True)
        with attnscope_capture.capture(small.pipe, self.folder / "d", branch="both") as cap:
            small.run(STEPS)
        calls = read_capture(self.folder / "d")
        self.assertEqual(cap.writer.bytes, cap.planned)
        names = {(c.facts["step"], c.facts["extra"]["transformer"]) for c in calls}
        self.assertEqual({n for _, n in names}, {"transformer", "transformer_2"})
        self.assertEqual(len(names), STEPS)  # each step uses one of them
        for call in calls:
            self.assertTrue(call.facts["layer_name"].startswith(call.facts["extra"]["transformer"] + "."))
            high = call.facts["timestep"] >= 875
            self.assertEqual(call.facts["extra"]["transformer"], "transformer" if high else "transformer_2")

    def test_a_timestep_a_token(self) -> None:
        small = small_models.wan(expand=True)
        with attnscope_capture.capture(small.pipe, self.folder / "d", layers=0) as cap:
            small.run(STEPS)
        stamps = [c.facts["timestep"] for c in read_capture(self.folder / "d")]
        self.assertEqual(stamps, sorted(stamps, reverse=True))
        self.assertEqual(len(set(stamps)), STEPS)
        self.assertEqual(cap.steps, STEPS)

    def test_latte_without_temporal_attention(self) -> None:
        small = small_models.latte()
        with attnscope_capture.capture(small.pipe, self.folder / "d", steps=0) as cap:
            small.run(1, enable_temporal_attentions=False)
        self.assertEqual({c.facts["axes"] for c in read_capture(self.folder / "d")}, {"spatial"})
        self.assertEqual(cap.writer.bytes, cap.planned)

    def test_the_size_is_known_before(self) -> None:
        for name, text in (
            ("cogvideox", 6),
            ("wan", 8),
            ("hunyuan", 8),
            ("ltx", 8),
            ("flux", 8),
            ("sd3", 9),
            ("latte", 8),
            ("mochi", 5),
        ):
            small = small_models.FAMILIES[name]()
            for options in (
                {},
                {"layers": "1-", "heads": "0-1", "steps": "1,2", "values": False},
                {"rows": 7, "steps": [0], "kinds": KINDS.get(name, "joint")},
            ):
                out = self.folder / f"{name}{len(options)}"
                given = {k: v for k, v in options.items()}
                size = attnscope_capture.estimate(
                    small.pipe, grid=small.grid, text=text, num_steps=2, **given
                )
                with attnscope_capture.capture(small.pipe, out, **options) as cap:
                    small.run(2)
                written = sum(
                    t.numel() * t.element_size() for c in read_capture(out) for t in c.tensors.values()
                )
                self.assertEqual(size if "steps" in options else size * 2, written, (name, options))
                self.assertEqual(cap.writer.bytes, written)

    def test_sizes_from_pixels(self) -> None:
        small = small_models.cogvideox(torch.bfloat16)
        size = attnscope_capture.estimate(small.pipe, num_frames=9, height=64, width=96, text=6, layers=0)
        one = 3 * 78 * 16 * 2
        self.assertEqual(size, 3 * one + 3 * 64 * 16 * 2 + 64 * 8)
        with self.refused("height and width"):
            attnscope_capture.estimate(small.pipe, text=6)
        with self.refused("num_steps"):
            attnscope_capture.estimate(small.pipe, grid="3x4x6", text=6, steps="all")

    def test_the_catalogue_tells_the_model(self) -> None:
        small = small_models.cogvideox()
        with attnscope_capture.capture(
            small.pipe, self.folder / "d", steps=0, model="a/b", prompt="dog", extra={"seed": 7}
        ):
            small.run(1)
        root = json.loads((self.folder / "d" / "capture.json").read_text())
        self.assertEqual((root["model"], root["prompt"], root["extra"]["seed"]), ("a/b", "dog", 7))


if __name__ == "__main__":
    unittest.main()
