"""record(): calls that are added one by one, what is refused, and recorders that meet in a folder."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import torch
import torch.nn.functional as F

import attnscope_capture
from attnscope_capture import capture, record
from support import TOLERANCE, CaptureTest, output_error, program, read_capture


class Record(CaptureTest):
    def call(self, step: int = 0, layer: int = 0, **options: object) -> torch.Tensor:
        q = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(10 * step + layer))
        return record(q, q, q, self.folder / "d", step=step, layer=layer, quiet=True, **options)

    def catalogue(self) -> dict:
        return json.loads((self.folder / "d" / "capture.json").read_text())

    def test_calls_are_added(self) -> None:
        for step, layer in ((0, 0), (0, 1), (3, 0)):
            self.call(step, layer, model="mine", prompt="a dog", extra={"run": 7})
        calls = read_capture(self.folder / "d")
        self.assertEqual([(c.facts["step"], c.facts["layer"]) for c in calls], [(0, 0), (0, 1), (3, 0)])
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
        root = self.catalogue()
        self.assertEqual((root["model"], root["prompt"], root["extra"]["run"]), ("mine", "a dog", 7))
        self.assertEqual(os.listdir(self.folder / "d").count("capture.json.lock"), 0)
        shown = json.loads(program("info", self.folder / "d", "--json").stdout)
        self.assertEqual([(c["step"], c["layer"]) for c in shown["calls"]], [(0, 0), (0, 1), (3, 0)])

    def test_calls_of_several_models(self) -> None:
        self.call(0, model="mine", prompt="a dog")
        self.call(1, model="yours", prompt="a dog")
        self.call(2, model="mine", prompt="a cat")
        root = self.catalogue()
        self.assertNotIn("model", root)
        self.assertNotIn("prompt", root)
        shown = json.loads(program("info", self.folder / "d", "--json").stdout)
        self.assertEqual([c["model"] for c in shown["calls"]], ["mine", "yours", "mine"])
        self.assertEqual([c["prompt"] for c in shown["calls"]], ["a dog", "a dog", "a cat"])

    def test_the_same_place_twice(self) -> None:
        self.call()
        before = (self.folder / "d" / "step0000_layer000.safetensors").read_bytes()
        with self.refused("holds this step, layer and kind already", "step=", "layer="):
            self.call()
        self.assertEqual((self.folder / "d" / "step0000_layer000.safetensors").read_bytes(), before)
        self.call(0, 1)
        self.assertEqual(len(read_capture(self.folder / "d")), 2)
        self.call(force=True)
        self.assertEqual(len(read_capture(self.folder / "d")), 1)

    def test_a_folder_that_cannot_be_added_to(self) -> None:
        (self.folder / "d").mkdir()
        for text in ("[]", "{", '{"format": "attnscope-capture/1"}', '{"format": "other", "calls": []}'):
            (self.folder / "d" / "capture.json").write_text(text)
            with self.refused("is no catalogue that a call can be added to"):
                self.call()
            self.assertEqual((self.folder / "d" / "capture.json").read_text(), text)

    def test_what_spoils_a_capture(self) -> None:
        self.call()
        q, none = torch.randn(2, 7, 8), torch.randn(2, 0, 8)
        for layer, scale in enumerate((0.0, -1.0, float("nan"), float("inf")), 1):
            with self.refused("the scale has to be finite and above 0", str(scale)):
                record(q, q, q, self.folder / "d", layer=layer, scale=scale, quiet=True)
        with self.refused(r"k \[1, 2, 0, 8\] is empty"):
            record(q, none, none, self.folder / "d", layer=1, quiet=True)
        with self.refused(r"q \[1, 2, 0, 8\] is empty"):
            record(none, q, q, self.folder / "d", layer=1, quiet=True)
        with self.refused("is empty"), capture(None, self.folder / "e", quiet=True):
            F.scaled_dot_product_attention(none, q, q)
        self.assertEqual(len(read_capture(self.folder / "d")), 1)
        program("info", self.folder / "d")

    def test_two_recorders_in_one_folder(self) -> None:
        code = (
            "import sys, torch, attnscope_capture as a\n"
            "q = torch.randn(2, 7, 8)\n"
            "with a.capture(None, sys.argv[1], quiet=True):\n"
            "    torch.nn.functional.scaled_dot_product_attention(q, q, q)\n"
            "    print('inside', flush=True)\n"
            "    sys.stdin.readline()\n"
        )
        out = self.folder / "d"
        path = {**os.environ, "PYTHONPATH": str(Path(attnscope_capture.__file__).parent)}
        with subprocess.Popen(
            [sys.executable, "-c", code, str(out)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=path,
        ) as other:
            assert other.stdin is not None and other.stdout is not None
            self.assertEqual(other.stdout.readline(), "inside\n")
            with self.refused("another recorder writes here", "a folder of its own"):
                self.call(1)
            with self.refused("another recorder writes here"):
                self.call(1, force=True)
            other.stdin.write("\n")
        self.assertEqual(other.returncode, 0)
        self.call(1)
        self.assertEqual([c.facts["step"] for c in read_capture(out)], [0, 1])

    def test_a_recorder_that_was_killed(self) -> None:
        self.call()
        (self.folder / "d" / "capture.json.lock").write_text("")
        self.call(1)
        self.assertEqual(len(read_capture(self.folder / "d")), 2)


if __name__ == "__main__":
    unittest.main()
