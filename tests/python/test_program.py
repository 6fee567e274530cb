"""The program opens every family's dump, and its maps are those of torch in float64."""

import json
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np
import torch

import small_models
from attnscope_capture import capture
from support import CaptureTest, has_program, program, read_capture, weights

FOLDER = Path(tempfile.mkdtemp())


def setUpModule() -> None:
    if not has_program():
        raise unittest.SkipTest("ATTNSCOPE names no program")
    for name, make in small_models.FAMILIES.items():
        small = make()
        with capture(small.pipe, FOLDER / name, branch="both", steps="0,1", quiet=True):
            small.run(2)


def tearDownModule() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)


class Program(CaptureTest):
    def test_info(self) -> None:
        for name in small_models.FAMILIES:
            run = program("info", FOLDER / name, "--json")
            self.assertEqual(run.stderr, "", name)
            info = json.loads(run.stdout)
            self.assertEqual(info["unknown_keys"], [])
            calls = read_capture(FOLDER / name)
            self.assertEqual(len(info["calls"]), len(calls))
            by_name = {c.file: c for c in calls}
            for told in info["calls"]:
                call = by_name[os.path.basename(told["file"])]
                self.assertEqual(told["unknown_keys"], [])
                self.assertEqual(
                    (told["kind"], told["step"], told["layer"], told["queries"], told["keys"]),
                    (
                        call.facts["kind"],
                        call.facts["step"],
                        call.facts["layer"],
                        call["q"].shape[2],
                        call["k"].shape[2],
                    ),
                )
                for fact, value in call.facts.items():
                    self.assertEqual(told["facts"][fact], {"value": value, "origin": "recorded"}, fact)

    def test_export(self) -> None:
        for name in small_models.FAMILIES:
            out = self.folder / f"{name}.h5"
            program("export", FOLDER / name, "-o", out, "--dtype", "f32", "--quiet")
            expected: dict[str, torch.Tensor] = {}
            for call in read_capture(FOLDER / name):
                p = weights(call)
                branches = call.facts["branches"]
                branches = branches * p.shape[0] if len(branches) == 1 else branches
                for branch in set(branches):
                    facts = call.facts
                    group = f"step{facts['step']:04d}_layer{facts['layer']:03d}_{branch}_{facts['kind']}"
                    expected[group] = p[[i for i, b in enumerate(branches) if b == branch]]
            with h5py.File(out) as f:
                self.assertEqual(set(f["calls"]), set(expected))
                for group, p in expected.items():
                    got = f["calls"][group]["weights"][...]
                    self.assertEqual(got.shape, tuple(p.shape))
                    self.assertLess(np.abs(got - p.numpy()).max(), 1e-5, (name, group))
                    self.assertLess(np.abs(got.sum(-1) - 1).max(), 1e-5)

    def test_query(self) -> None:
        out = self.folder / "volume.npy"
        program(
            "query",
            FOLDER / "hunyuan",
            "--query",
            "1,2,3",
            "--layers",
            "2",
            "--steps",
            "1",
            "--branch",
            "cond",
            "-o",
            out,
            "--quiet",
        )
        (call,) = [
            c
            for c in read_capture(FOLDER / "hunyuan")
            if (c.facts["step"], c.facts["layer"], c.facts["branches"]) == (1, 2, ["cond"])
        ]
        row = weights(call)[0, :, 1 * 24 + 2 * 6 + 3, :72].reshape(2, 3, 4, 6)
        self.assertLess(np.abs(np.load(out) - row.numpy()).max(), 2e-6)
        self.assertGreater(float(row.max()), 0.02)

    def test_render(self) -> None:
        out = self.folder / "heads.png"
        program(
            "render",
            FOLDER / "cogvideox",
            "--picture",
            "mosaic",
            "--branch",
            "cond",
            "--steps",
            "1",
            "-o",
            out,
            "--quiet",
        )
        self.assertEqual(out.read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    unittest.main()
