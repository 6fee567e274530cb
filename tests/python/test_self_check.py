"""attnscope verify on captures: right ones agree, and each wrong fact is found and named."""

import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any
from collections.abc import Callable

import torch
from safetensors.torch import save_file

import small_models
from attnscope_capture import capture
from support import CaptureTest, Recorded, has_program, read_call

FOLDER = Path(tempfile.mkdtemp())
Tensors = dict[str, torch.Tensor]
BEFORE: dict[str, Tensors] = {}  # of the CogVideoX call: "norm": outputs of to_q, "rope": of norm_q


def verify(folder: Path) -> tuple[int, dict[str, Any]]:
    run = subprocess.run(
        [os.environ["ATTNSCOPE"], "verify", str(folder), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return run.returncode, json.loads(run.stdout) if run.stdout.strip() else {}


def keep_first(key: str, tensor: str) -> Callable[..., None]:
    """A forward hook that keeps a copy of its module's first output; what a hook returns would
    replace the output."""

    def hook(module: torch.nn.Module, inputs: tuple[Any, ...], out: torch.Tensor) -> None:
        BEFORE.setdefault(key, {}).setdefault(tensor, out.detach().clone())

    return hook


def record_families(names: list[str]) -> None:
    for name in names:
        small = small_models.FAMILIES[name]()
        hooks = []
        if name == "cogvideox":
            heads = small.pipe.transformer.transformer_blocks[1].attn1
            # verify does not know learnt weights of a norm: those that every training starts from.
            for norm in (heads.norm_q, heads.norm_k):
                torch.nn.init.ones_(norm.weight)
                torch.nn.init.zeros_(norm.bias)
            for key, modules in (("norm", (heads.to_q, heads.to_k)), ("rope", (heads.norm_q, heads.norm_k))):
                for tensor, module in zip(("q", "k"), modules):
                    hooks.append(module.register_forward_hook(keep_first(key, tensor)))
        with capture(small.pipe, FOLDER / name, branch="both", steps=0, quiet=True):
            small.run(2)
        for hook in hooks:
            hook.remove()


def record_llama() -> None:
    from transformers import LlamaConfig, LlamaModel

    torch.manual_seed(0)
    llama = LlamaModel(
        LlamaConfig(
            vocab_size=20,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=16,
            initializer_range=0.3,
            attn_implementation="sdpa",
        )
    ).eval()
    with torch.no_grad(), capture(llama, FOLDER / "llama", quiet=True):
        llama(input_ids=torch.arange(1, 13)[None])


def setUpModule() -> None:
    if not has_program():
        raise unittest.SkipTest("ATTNSCOPE names no program")
    record_families(["cogvideox"])
    BEFORE["norm"] = {n: t.unflatten(2, (3, 16)).transpose(1, 2) for n, t in BEFORE["norm"].items()}
    record_families([name for name in small_models.FAMILIES if name != "cogvideox"])
    record_llama()


def tearDownModule() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)


class SelfCheck(CaptureTest):
    def test_right_captures_agree(self) -> None:
        for name in [*small_models.FAMILIES, "llama"]:
            code, told = verify(FOLDER / name)
            self.assertEqual((code, told["good"], told["format"]), (0, True, "attnscope-verify/1"), name)
            files = json.loads((FOLDER / name / "capture.json").read_text())["calls"]
            self.assertGreaterEqual(len(told["calls"]), len(files))  # a call may be told branch by branch
            for call in told["calls"]:
                self.assertEqual((call["verdict"], call["culprit"]), ("agrees", None))
                self.assertLessEqual(call["error"], call["tolerance"])
                self.assertLess(call["tolerance"], 0.05)

    def test_bfloat16_agrees(self) -> None:
        small = small_models.cogvideox(torch.bfloat16)
        with capture(small.pipe, self.folder / "d", steps=0):
            small.run(1)
        self.assertEqual(verify(self.folder / "d")[0], 0)

    def test_nothing_to_check_against(self) -> None:
        small = small_models.cogvideox()
        with capture(small.pipe, self.folder / "d", steps=0, layers=0, values=False):
            small.run(1)
        code, told = verify(self.folder / "d")
        self.assertEqual((code, told["calls"][0]["verdict"]), (0, "nothing to check against"))

    def wrong(
        self,
        name: str,
        layer: int,
        change: Callable[[Recorded], None],
        *culprits: str,
        kind: str | None = None,
    ) -> None:
        """A copy of a good capture in which one call is changed must be found out."""
        folder = self.folder / f"wrong{len(list(self.folder.iterdir()))}"
        shutil.copytree(FOLDER / name, folder)
        root = json.loads((folder / "capture.json").read_text())
        entry = next(e for e in root["calls"] if e["layer"] == layer and kind in (None, e["kind"]))
        branches = entry.get("branches", [])
        call = read_call(folder / entry["file"])
        change(call)
        facts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in call.facts.items()}
        save_file({k: t.contiguous() for k, t in call.tensors.items()}, str(folder / entry["file"]), facts)
        code, told = verify(folder)
        self.assertEqual((code, told["good"]), (3, False), culprits)
        for one in told["calls"]:
            if (
                Path(one["file"] if "file" in one else entry["file"]).name == entry["file"]
                and (one["layer"], one["kind"]) == (entry["layer"], entry["kind"])
                and one["branch"] in ("all", *branches, "+".join(branches))
            ):
                self.assertEqual(one["verdict"], "differs")
                self.assertIn(one["culprit"], culprits, one["explanation"])
                self.assertTrue(one["explanation"])
            elif one["layer"] != entry["layer"]:
                self.assertEqual(one["verdict"], "agrees")

    def test_scale(self) -> None:
        for factor in (4.0, 16.0, 0.25):  # ×√d: 1; ÷√d; 1/√d squared

            def change(call: Recorded, factor: float = factor) -> None:
                call.facts["scale"] *= factor

            self.wrong("cogvideox", 1, change, "scale")
            self.wrong("wan", 1, change, "scale", kind="self")

    def test_layout(self) -> None:
        def change(call: Recorded) -> None:  # [B, S, H, d] taken for [B, H, S, d]
            for name in ("q", "k", "v"):
                t = call.tensors[name]
                call.tensors[name] = t.transpose(1, 2).contiguous().view(t.shape)

        self.wrong("cogvideox", 1, change, "layout")

    def test_mask(self) -> None:
        def dropped(call: Recorded) -> None:
            del call.tensors["mask"]
            call.facts["mask"] = "none"

        def not_causal(call: Recorded) -> None:
            call.facts["mask"] = "none"

        def causal(call: Recorded) -> None:
            call.facts["mask"] = "causal"

        self.wrong("hunyuan", 1, dropped, "mask")
        self.wrong("llama", 1, not_causal, "mask")
        self.wrong("cogvideox", 1, causal, "mask")

    def test_before_normalisation_and_rotation(self) -> None:
        from diffusers.models.embeddings import apply_rotary_emb, get_3d_rotary_pos_embed

        tables = get_3d_rotary_pos_embed(16, ((0, 0), (4, 6)), (4, 6), 3)

        def take(key: str, rotated: bool) -> Callable[[Recorded], None]:
            def change(call: Recorded) -> None:
                for name in ("q", "k"):
                    t = BEFORE[key][name].clone()
                    if rotated:
                        t[:, :, 6:] = apply_rotary_emb(t[:, :, 6:], tables)
                    call.tensors[name] = t

            return change

        self.wrong("cogvideox", 1, take("rope", False), "rope")
        self.wrong("cogvideox", 1, take("norm", True), "norm")
        self.wrong("cogvideox", 1, take("norm", False), "norm")

    def test_the_other_half_of_the_batch(self) -> None:
        def change(call: Recorded) -> None:
            for name in ("q", "k", "v"):
                call.tensors[name] = call.tensors[name].flip(0)

        self.wrong("cogvideox", 1, change, "batch")
        self.wrong("sd3", 1, change, "batch")

    def test_token_order(self) -> None:
        for order in ((2, 1, 0), (0, 2, 1), (1, 0, 2)):

            def change(call: Recorded, order: tuple[int, ...] = order) -> None:
                q = call.tensors["q"]
                video = q[:, :, 6:].unflatten(2, (3, 4, 6)).permute(0, 1, *(2 + o for o in order), 5)
                call.tensors["q"] = torch.cat([q[:, :, :6], video.flatten(2, 4)], 2)

            self.wrong("cogvideox", 1, change, "token-order")

    def test_keys_of_another_layer(self) -> None:
        def change(call: Recorded) -> None:
            other = next((FOLDER / "cogvideox").glob("step0000_layer002*"))
            call.tensors["k"] = read_call(other)["k"]

        self.wrong("cogvideox", 1, change, "layer")

    def test_what_nobody_can_name(self) -> None:
        def change(call: Recorded) -> None:
            call.tensors["q"] = torch.randn_like(call.tensors["q"]) * math.sqrt(2)

        self.wrong("cogvideox", 1, change, "unknown")


if __name__ == "__main__":
    unittest.main()
