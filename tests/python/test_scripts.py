"""The scripts do what their --help says, and leave a whole capture when they are interrupted."""

import contextlib
import io
import json
import os
import runpy
import signal
import stat
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from support import TOLERANCE, CaptureTest, has_program, output_error, program, read_capture

SCRIPTS = Path(__file__).resolve().parents[2] / "samples" / "capture"


class Scripts(CaptureTest):
    def run_script(self, name: str, *arguments: object, code: int = 0) -> str:
        """Runs a script in this process, which has its imports already; what it says on standard error."""
        said, shown, ended = io.StringIO(), io.StringIO(), 0
        with mock.patch.object(sys, "argv", [name, *map(str, arguments)]):
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
                try:
                    runpy.run_path(str(SCRIPTS / name), run_name="__main__")
                except SystemExit as end:
                    ended = end.code
        self.assertEqual((ended, shown.getvalue()), (code, ""), said.getvalue())
        return said.getvalue()

    def check(self, folder: Path, count: int) -> None:
        calls = read_capture(folder)
        self.assertEqual(len(calls), count)
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.bfloat16])
        if has_program():
            self.assertEqual(program("info", folder).stderr, "")

    def test_wan_with_two_transformers(self) -> None:
        told = self.run_script(
            "capture_wan.py",
            "--random",
            "--two",
            "--num-steps",
            3,
            "--layers",
            1,
            "--steps",
            "0,2",
            "--heads",
            "1-2",
            "--out",
            self.folder / "d",
        )
        self.assertIn("the dump takes", told)
        self.check(self.folder / "d", 4)
        umask = os.umask(0)
        os.umask(umask)
        for file in (self.folder / "d").iterdir():
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o666 & ~umask, file)

    def test_hunyuan(self) -> None:
        self.run_script(
            "capture_hunyuan.py", "--random", "--num-steps", 2, "--no-values", "--out", self.folder / "d"
        )
        calls = read_capture(self.folder / "d")
        self.assertEqual([sorted(c.tensors) for c in calls], [["k", "mask", "q"]] * 6)

    def test_any(self) -> None:
        self.run_script("capture_any.py", "--random", "latte", "--num-steps", 2, "--out", self.folder / "d")
        self.check(self.folder / "d", 12)
        said = self.run_script("capture_any.py", "--random", "latte", "--out", self.folder / "d", code=1)
        self.assertIn("already holds a capture", said)

    def test_cogvideox_from_embeddings(self) -> None:
        from diffusers import CogVideoXTransformer3DModel

        torch.manual_seed(5)
        model = CogVideoXTransformer3DModel(
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=3,
            out_channels=3,
            time_embed_dim=8,
            text_embed_dim=12,
            num_layers=2,
            sample_width=8,
            sample_height=8,
            sample_frames=3,
            temporal_compression_ratio=1,
            max_text_seq_length=5,
            use_rotary_positional_embeddings=True,
        )
        model.save_pretrained(self.folder / "model")
        np.save(self.folder / "prompts.npy", np.random.default_rng(1).normal(size=(2, 5, 12)).astype("f4"))
        words = [
            {"text": "", "tokens": ["[PAD]"] * 5, "valid": 0},
            {"text": "red dog", "tokens": ["red", "dog", "[PAD]", "[PAD]", "[PAD]"], "valid": 2},
        ]
        (self.folder / "prompts.json").write_text(json.dumps({"prompts": words}))
        self.run_script(
            "capture_cogvideox.py",
            "--model",
            self.folder / "model",
            "--embeddings",
            self.folder / "prompts.npy",
            "--num-steps",
            3,
            "--branch",
            "both",
            "--out",
            self.folder / "d",
        )
        self.check(self.folder / "d", 6)
        root = json.loads((self.folder / "d" / "capture.json").read_text())
        self.assertEqual([f["t"] for f in root["frames"]], [0, 1, 2])
        self.assertEqual((root["model"], root["prompt"]), ("model", "red dog"))
        facts = read_capture(self.folder / "d")[0].facts
        self.assertEqual(
            (facts["branches"], facts["text_valid"], facts["grid"], facts["text"]),
            (["uncond", "cond"], [0, 2], "3x4x4", "5@start"),
        )
        self.assertEqual(facts["tokens"], [w["tokens"] for w in words])

    def test_an_interrupt_from_the_keyboard(self) -> None:
        out = self.folder / "d"
        process = subprocess.Popen(
            [
                sys.executable,
                str(SCRIPTS / "capture_cogvideox.py"),
                "--random",
                "--num-steps",
                "500",
                "--out",
                str(out),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            deadline = time.monotonic() + 120
            while not (out / "capture.json").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
        self.assertIn("KeyboardInterrupt", said)
        self.assertNotEqual(process.returncode, 0)
        calls = read_capture(out)
        self.assertGreater(len(calls), 0)
        self.assertLess(len(calls), 1500)
        self.assertEqual({p.name for p in out.iterdir()}, {c.file for c in calls} | {"capture.json"})
        self.check(out, len(calls))

    def test_missing_arguments(self) -> None:
        self.assertIn("--model is needed", self.run_script("capture_any.py", code=1))


if __name__ == "__main__":
    unittest.main()
