"""Linear attention of SANA-Video and SANA: what is recorded, against the formula and against the program."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
import unittest.mock
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import attnscope_capture
from attnscope_capture import Call, capture, check_result
from support import CaptureTest, Recorded, has_program, program, read_capture, weights
from test_models_image import sana
from test_models_video import sana_video

ITEMS = 2


def video_model(dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    from diffusers import SanaVideoTransformer3DModel

    torch.manual_seed(5)
    model, inputs = sana_video(SanaVideoTransformer3DModel)
    inputs = {n: torch.cat([x] * ITEMS) if isinstance(x, torch.Tensor) else x for n, x in inputs.items()}
    inputs["hidden_states"][1] = torch.randn_like(inputs["hidden_states"][1])
    return model.eval().to(dtype), {
        n: x.to(dtype) if torch.is_tensor(x) and x.is_floating_point() else x for n, x in inputs.items()
    }


class Log:
    """Keeps the input of the first block's attn1, and its result before its last projection."""

    def __init__(self, model: Any) -> None:
        self.attention = model.transformer_blocks[0].attn1
        self.inputs: Any = None
        self.rotary: Any = None
        self.before_out: Any = None
        self.attention.register_forward_pre_hook(self._given, with_kwargs=True)
        self.attention.to_out[0].register_forward_pre_hook(self._made)

    def _given(self, module: Any, args: Any, kwargs: Any) -> None:
        self.inputs = args[0] if args else kwargs["hidden_states"]
        self.rotary = kwargs.get("rotary_emb")

    def _made(self, module: Any, args: Any) -> None:
        self.before_out = args[0]

    def features(self) -> tuple[torch.Tensor, ...]:
        """relu(q), relu(k), their rotations and v, [B, H, N, d], in the model's type."""
        a, x = self.attention, self.inputs
        q, k, v = a.to_q(x), a.to_k(x), a.to_v(x)
        q, k = (n(t) if n is not None else t for n, t in ((a.norm_q, q), (a.norm_k, k)))
        q, k, v = (t.unflatten(2, (a.heads, -1)).transpose(1, 2) for t in (q, k, v))
        q, k = F.relu(q), F.relu(k)
        return q, k, self.turned(q), self.turned(k), v

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        cos, sin = (t.transpose(1, 2) for t in self.rotary)  # [1, 1, N, d], pairs alike
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = torch.empty_like(x)
        turned[..., 0::2] = even * cos[..., 0::2] - odd * sin[..., 1::2]
        turned[..., 1::2] = even * sin[..., 1::2] + odd * cos[..., 0::2]
        return turned


class Recording(CaptureTest):
    def record(self, dtype: torch.dtype = torch.float32, **options: Any) -> tuple[list[Recorded], Log, Path]:
        model, inputs = video_model(dtype)
        log = Log(model)
        out = self.folder / "dump"
        with torch.no_grad():
            plain = model(**inputs).sample
            with capture(model, out, branch="both", branches=["uncond", "cond"], **options):
                recorded = model(**inputs).sample
        self.assertTrue(torch.equal(plain, recorded), "the model computed something else")
        return [c for c in read_capture(out) if c.facts["slot"] == "attn1"], log, out


class Linear(Recording):
    def test_features_and_normaliser_are_the_model_s(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            calls, log, _ = self.record(dtype, force=True)
            self.assertEqual(len(calls), 2)
            call = calls[0]
            self.assertEqual(call.facts["score"], "linear:normaliser")
            self.assertEqual(call.facts["format"], "attnscope-capture/2")
            with torch.no_grad():
                q, k, turned_q, turned_k, v = log.features()
                sums = (q.double() * k.double().sum(2, keepdim=True)).sum(-1)
            for name, expected in (("q", turned_q), ("k", turned_k), ("v", v)):
                self.assertEqual(call[name].dtype, dtype)
                self.assertTrue(torch.equal(call[name], expected), (name, dtype))
            near = 1e-5 if dtype == torch.float32 else 2e-2
            torch.testing.assert_close(call["normaliser"].double(), sums, rtol=near, atol=1e-12)
            self.assertTrue(bool((weights(call) < 0).any()), "no weight is negative: the test shows nothing")
            # The result before the last projection, [B, N, H·d], is the recorded weights times v.
            made = (weights(call) @ call["v"].double()).transpose(1, 2).flatten(2)
            scale = float(made.abs().max())
            error = float((made - log.before_out.double()).abs().max()) / scale
            self.assertLess(error, 1e-5 if dtype == torch.float32 else 1e-2)

    def test_heads_and_branches_are_chosen(self) -> None:
        whole, _, _ = self.record()
        part, _, _ = self.record(heads="1", force=True)
        self.assertTrue(torch.equal(part[0]["normaliser"], whole[0]["normaliser"][:, 1:]))
        self.assertTrue(torch.equal(part[0]["q"], whole[0]["q"][:, 1:]))
        self.assertEqual(part[0].facts["head_offset"], 1)

    def test_other_operations_are_refused(self) -> None:
        model, inputs = video_model(torch.float32)
        real = torch.matmul
        for changed in (
            lambda a, b: real(a, b) * 2,
            lambda a, b: real(real(a, torch.eye(a.shape[-1])), b),
            lambda a, b: torch.einsum("bhij,bhjk->bhik", a, b),
        ):
            with unittest.mock.patch.object(torch, "matmul", changed), torch.no_grad():
                with self.refused("computes something else than the linear attention"):
                    with capture(model, self.folder / "odd", branch="both", force=True):
                        model(**inputs)

    def test_rows_that_are_not_those_of_the_score_are_refused(self) -> None:
        call = self.record()[0][0]
        q, k, v = (call[n] for n in ("q", "k", "v"))
        out = (weights(call) @ v.double()).float()
        for score, normaliser in (("linear:normaliser", call["normaliser"]), ("linear:relu", None)):
            if normaliser is None:  # SANA's: features that are not turned
                q, k = q.relu(), k.relu()
                products = q.double() @ k.double().transpose(2, 3)
                out = (products / products.sum(-1, keepdim=True) @ v.double()).float()
            good = Call(q, k, v, out, None, 0.0, False, 1.0, "test", score=score, normaliser=normaliser)
            check_result(good, [1], (1, 2))
            with self.refused("not that of score " + score):
                check_result(replace(good, out=out * 1.3), [1], (1, 2))
        wrong = replace(good, score="linear:normaliser", normaliser=call["normaliser"] * 1.5)
        with self.refused("not that of score linear:normaliser"):
            check_result(wrong, [0], (0, 1))


@unittest.skipUnless(has_program(), "ATTNSCOPE names no program")
class LinearProgram(Recording):
    def refusal(self, *arguments: Any) -> str:
        done = subprocess.run(
            [os.environ["ATTNSCOPE"], *map(str, arguments)], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr

    def test_maps_of_the_program(self) -> None:
        import h5py

        for dtype in (torch.float32, torch.bfloat16):
            calls, _, out = self.record(dtype, force=True)
            for backend in ("cpu", "reference"):
                file = self.folder / f"maps-{backend}.h5"
                program(
                    "export", out, "--slots", "attn1", "--product", "logits", "--dtype", "f32", "--backend", backend,
                    "-o", file, "--force", "--quiet",
                )  # fmt: skip
                outputs = self.folder / f"outputs-{backend}.h5"
                program(
                    "export", out, "--slots", "attn1", "--product", "output", "--backend", backend, "-o", outputs,
                    "--force", "--quiet",
                )  # fmt: skip
                with h5py.File(file) as maps, h5py.File(outputs) as made:
                    groups = list(maps["calls"].values())
                    self.assertEqual(len(groups), len(calls) * ITEMS)
                    for group in groups:
                        call = next(c for c in calls if c.facts["layer"] == group.attrs["layer"])
                        item = ["uncond", "cond"].index(group.attrs["branch"])
                        expected = weights(call)[item]
                        got = torch.from_numpy(group["logits"][()]).double().reshape(expected.shape)
                        torch.testing.assert_close(got, expected, rtol=2e-5, atol=1e-6)
                        self.assertEqual(group.attrs["score"], "linear:normaliser")
                        product = torch.from_numpy(made[group.name]["output"][()]).double()
                        wanted = expected @ call["v"][item].double()
                        torch.testing.assert_close(product.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)

    def test_sana_divides_by_the_sum_of_its_own_features(self) -> None:
        import diffusers
        import h5py

        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(5)
            model, inputs = sana(diffusers.SanaTransformer2DModel)
            inputs = {n: x.to(dtype) if x.is_floating_point() else x for n, x in inputs.items()}
            model, out = model.eval().to(dtype), self.folder / "sana"
            with torch.no_grad(), capture(model, out, branch="both", slots="attn1", force=True) as cap:
                with cap.branch("cond"):
                    model(**inputs)
            self.assertEqual(
                sum(t.numel() * t.element_size() for c in read_capture(out) for t in c.tensors.values()),
                attnscope_capture.estimate(model, inputs=inputs, kinds="self"),
            )
            file = self.folder / "sana.h5"
            program("export", out, "--dtype", "f32", "-o", file, "--force", "--quiet")
            with h5py.File(file) as maps:
                for call, group in zip(read_capture(out), maps["calls"].values(), strict=True):
                    self.assertEqual((call.facts["score"], group.attrs["score"]), ("linear:relu", "linear:relu"))
                    self.assertEqual(call["q"].dtype, dtype)
                    got = torch.from_numpy(group["weights"][()]).double().reshape(weights(call).shape)
                    torch.testing.assert_close(got, weights(call), rtol=1e-4, atol=1e-7)
                    torch.testing.assert_close(got.sum(-1), torch.ones_like(got[..., 0]), rtol=1e-5, atol=1e-5)
            self.assertIn("agrees: 2 of 2 calls", program("verify", out).stdout)
            stats = json.loads(program("stats", out, "--json").stdout)
            self.assertEqual(stats["options"]["score"], "linear:relu")

    def test_verify_agrees_and_finds_a_wrong_normaliser(self) -> None:
        from safetensors.torch import load_file, save_file

        calls, _, out = self.record()
        report = json.loads(program("verify", out, "--json").stdout)
        linear = [c for c in report["calls"] if c["slot"] == "attn1"]
        self.assertEqual({c["verdict"] for c in linear}, {"agrees"})
        self.assertEqual(len(linear), 2)
        file = out / calls[0].file
        tensors = load_file(file)
        from safetensors import safe_open

        with safe_open(str(file), "pt") as f:
            facts = f.metadata()
        save_file({**tensors, "normaliser": tensors["normaliser"] * 1.1}, file, facts)
        done = subprocess.run([os.environ["ATTNSCOPE"], "verify", str(out)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("differs", done.stdout)

    def test_copies_say_the_same(self) -> None:
        calls, _, out = self.record()
        copy = self.folder / "copy"
        program("convert", out, "--slots", "attn1", "--heads", "1", "-o", copy, "--quiet")
        for a, b in zip(calls, read_capture(copy), strict=True):
            self.assertEqual(b.facts["score"], "linear:normaliser")
            for name in ("q", "k", "v", "normaliser", "out"):
                self.assertTrue(torch.equal(a[name][:, 1:], b[name]), name)
        program("verify", copy)

    def test_what_is_not_defined_is_refused_in_a_line(self) -> None:
        _, _, out = self.record()
        one = ["--slots", "attn1", "--layers", "0", "--heads", "0", "--branch", "cond"]
        png, h5 = self.folder / "a.png", self.folder / "a.h5"
        for command in (
            ["stats", out, *one],
            ["render", out, *one, "--picture", "matrix", "-o", png],
            ["render", out, *one, "--picture", "mosaic", "-o", png],
            ["query", out, *one, "--index", "0", "-o", h5],
            ["export", out, *one, "-o", h5],
            ["export", out, *one, "--product", "pooled", "-o", h5],
            ["export", out, *one, "--product", "lse", "-o", h5],
            ["mask", out, *one, "--mask", "spatial:frames=1"],
        ):
            self.assertIn("weights of either sign", self.refusal(*command), command)
            self.assertFalse(png.exists() or h5.exists(), command)
        self.assertIn("do not sum to 1", self.refusal("rollout", out, *one, "--query", "0,0,0", "-o", h5))
        self.assertIn("was recorded with score", self.refusal("info", out, "--score", "linear:relu"))
        self.assertIn("takes no mask", self.refusal("info", out, *one, "--mask", "causal"))

    def test_the_window_shows_weights_below_zero(self) -> None:
        calls, _, out = self.record()
        script, shot = self.folder / "script", self.folder / "window.png"
        script.write_text(
            f"open {out}\nslot attn1\nbranch cond\nhead 1\nprint product\nwait exact 30\nprobe 2 7\nshot {shot}\n"
            "slot attn2\nprint product\nslot attn1\nprint product\n"
        )
        said = program("view", "--script", script).stdout.splitlines()
        self.assertEqual([x for x in said if "product" in x], [f"product {p}" for p in ("logits", "weights", "logits")])
        probed = json.loads(next(x for x in said if x.startswith("{")))
        expected = float(weights(calls[0])[1, 1, 2, 7])
        self.assertAlmostEqual(probed["weight"], expected, delta=1e-5 * abs(expected) + 1e-9)
        self.assertEqual(probed["weight"], probed["logit"])
        self.assertGreater(shot.stat().st_size, 10000)

    def test_info_and_a_picture_of_its_export(self) -> None:
        _, _, out = self.record()
        listed = json.loads(program("info", out, "--json").stdout)["calls"]
        self.assertEqual([c["score"] for c in listed if c["slot"] == "attn1"], ["linear:normaliser"] * 2)
        self.assertIn("linear:normaliser", program("info", out).stdout)
        h5, png = self.folder / "logits.h5", self.folder / "map.png"
        one = ["--slots", "attn1", "--layers", "0", "--heads", "0", "--branch", "cond"]
        program("export", out, *one, "--product", "logits", "-o", h5, "--quiet")
        program("render", h5, "--picture", "matrix", "-o", png, "--quiet")
        self.assertGreater(png.stat().st_size, 1000)


if __name__ == "__main__":
    unittest.main()
