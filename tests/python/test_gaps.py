"""Runs that are not lost: what cannot be recorded is a gap, told and listed, and the model computes the same."""

import json
import types
import unittest
from typing import Any
from unittest import mock

import shutil

import torch
import torch.nn.functional as F

from attnscope_capture import CaptureError, capture
from support import WRITER, CaptureTest, has_program, program, read_call, read_capture

X = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(2))


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)

    def forward(self, x: torch.Tensor, dropout: float) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout).transpose(1, 2).flatten(2)


class Model(torch.nn.Module):
    """Three blocks, of which `left_out` do not attend; block 1 drops attention in the steps `random`."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(Attention() for _ in range(3))
        self.random: set[float] = set()
        self.left_out: dict[float, int] = {}

    def forward(self, x: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        stamp = float(timestep)
        for n, block in enumerate(self.blocks):
            if self.left_out.get(stamp) != n:
                x = x + block(x, 0.5 if n == 1 and stamp in self.random else 0.0)
        return x


def run(model: Model) -> list[torch.Tensor]:
    torch.manual_seed(3)
    with torch.no_grad():
        return [model(X, torch.tensor([stamp])) for stamp in (9.0, 8.0, 7.0, 6.0)]


class Gaps(CaptureTest):
    def kept(self, model: Any, run: Any = run, **options: Any) -> dict[str, Any]:
        """The catalogue of a run, which computes what it does without a capture."""
        plain = run(model)
        with capture(model, self.folder / "d", force=True, **options):
            seen = run(model)
        for one, other in zip(plain, seen, strict=True):
            self.assertTrue(torch.equal(one, other))
        read_capture(self.folder / "d")
        return json.loads((self.folder / "d" / "capture.json").read_text())

    def test_a_call_that_is_refused(self) -> None:
        model = Model()
        model.random = {8.0, 7.0}
        catalogue = self.kept(model)
        self.assertEqual(
            [(r["forward"], r["step"], r["block"], r["slot"], r["layer_name"]) for r in catalogue["refused"]],
            [(n, n, "blocks.1", "attn", "blocks.1") for n in (1, 2)],
        )
        self.assertEqual({r["why"] for r in catalogue["refused"]}, {
            "blocks.1: attention dropout 0.5 makes the map random: call model.eval()"
        })
        self.assertEqual([(c["step"], c["layer"]) for c in catalogue["calls"]], [
            (s, n) for s in range(4) for n in range(3) if n != 1 or s not in (1, 2)
        ])
        self.assertEqual([(f["forward"], f["step"], f["calls"], f["chosen"]) for f in catalogue["forwards"]], [
            (0, 0, 3, True), (1, 1, 2, True), (2, 2, 2, True), (3, 3, 3, True)
        ])
        said = self.said.getvalue()
        self.assertEqual(said.count("not recorded: "), 1)
        self.assertIn("recorded 10 of 12 calls; 2 refused: blocks.1: attention dropout 0.5", said)
        with self.assertRaisesRegex(CaptureError, "dropout 0.5"):
            self.kept(model, strict=True)

    def numbered(self, stamps: list[float], batch: int = 1, **options: Any) -> dict[str, Any]:
        """The catalogue of layer 0 of forwards at these timesteps; the last has one batch item."""

        def steps(model: Model) -> list[torch.Tensor]:
            with torch.no_grad():
                last = len(stamps) - 1
                inputs = [X.expand(1 if n == last else batch, -1, -1) * t for n, t in enumerate(stamps)]
                return [model(x, torch.tensor([t])) for x, t in zip(inputs, stamps)]

        catalogue = self.kept(Model(), steps, layers=0, branch="both", **options)
        self.assertEqual(self.said.getvalue().count("recorded by number: "), 1)
        self.assertNotIn("not recorded: ", self.said.getvalue())
        told = {f["forward"]: f for f in catalogue["forwards"]}
        for call in catalogue["calls"]:  # the two lists say the same
            if "forward" in call:
                self.assertNotIn("branch", told[call["forward"]])
                self.assertEqual(call.get("of_step"), told[call["forward"]].get("of_step"))
        return catalogue

    def labels(self, catalogue: dict[str, Any]) -> list[Any]:
        return [(c.get("step"), *c.get("branches", ["-"]), c.get("of_step")) for c in catalogue["calls"]]

    def test_guidance_that_ends(self) -> None:
        stamps = [9.0, 9.0, 8.0, 8.0, 7.0]
        catalogue = self.numbered(stamps, branches=["cond", "uncond"], guidance="forwards")
        self.assertEqual(self.labels(catalogue), [
            (0, "cond", None), (0, "uncond", None), (1, "cond", None), (1, "uncond", None), (2, "-", 0)
        ])

    def test_a_third_forward_of_a_step(self) -> None:
        stamps = [9.0, 9.0, 8.0, 8.0, 8.0]
        catalogue = self.numbered(stamps, branches=["cond", "uncond"], guidance="forwards")
        self.assertEqual(self.labels(catalogue), [
            (0, "cond", None), (0, "uncond", None), (1, "-", 0), (1, "-", 1), (1, "-", 2)
        ])

    def test_a_batch_that_halves(self) -> None:
        catalogue = self.numbered([9.0, 8.0, 7.0], batch=2, branches=["uncond", "cond"])
        self.assertEqual(self.labels(catalogue), [
            (0, "uncond", "cond", None), (1, "uncond", "cond", None), (2, "-", 0)
        ])

    def test_a_forward_that_is_run_again(self) -> None:
        """The second forward of a step fails; the one in its place is the second, as if nothing had been."""

        class Failing(Model):
            ran = 0

            def forward(self, x: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
                result = super().forward(x, timestep)
                self.ran += 1
                if self.ran == 2:
                    raise MemoryError
                return result

        model = Failing()
        with torch.no_grad(), capture(model, self.folder / "d", layers=0):
            for stamp in (9.0, None, 9.0, 8.0):
                if stamp is None:
                    with self.assertRaises(MemoryError):
                        model(X * 9.0, torch.tensor([9.0]))
                else:
                    model(X * stamp, torch.tensor([stamp]))
        catalogue = json.loads((self.folder / "d" / "capture.json").read_text())
        self.assertEqual(self.labels(catalogue), [(0, "-", 0), (0, "-", 1), (1, "-", 0)])

    def test_a_run_without_a_gap(self) -> None:
        catalogue = self.kept(Model())
        self.assertNotIn("refused", catalogue)
        self.assertFalse(any("partial" in f for f in catalogue["forwards"]))
        self.assertNotIn("refused", self.said.getvalue())

    def test_a_step_that_is_not_whole(self) -> None:
        model = Model()
        model.left_out = {7.0: 2}
        catalogue = self.kept(model)
        self.assertEqual([f.get("partial", False) for f in catalogue["forwards"]], [False, False, True, False])
        self.assertEqual([f["calls"] for f in catalogue["forwards"]], [3, 3, 2, 3])
        self.assertIn("step 2: blocks.2 made 0 attention calls instead of 1", self.said.getvalue())
        self.assertIn("1 forward made fewer or other calls than the model has: 2", self.said.getvalue())

    def test_forwards_that_nothing_names(self) -> None:
        """Two a step with the same latents, of which the last step has one: numbers, and each step is its own."""

        class Named(Model):
            def forward(self, hidden_states: Any, timestep: Any, encoder_hidden_states: Any) -> Any:
                return super().forward(hidden_states + encoder_hidden_states, timestep)

        def guided(model: Model) -> list[torch.Tensor]:
            with torch.no_grad():
                pairs = [(9.0, 0), (9.0, 1), (8.0, 0), (8.0, 1), (7.0, 0)]
                return [model(X * t, torch.tensor([t]), torch.full((1, 6, 16), float(n))) for t, n in pairs]

        catalogue = self.kept(Named(), guided, layers=0)
        told = [(0, 0, 0), (0, 1, 1), (1, 2, 0), (1, 3, 1), (2, 4, 0)]
        self.assertEqual([(c["step"], c["forward"], c["of_step"]) for c in catalogue["calls"]], told)
        self.assertFalse(any("branches" in c for c in catalogue["calls"]))
        numbers = [(f["latents"], f["text"]) for f in catalogue["forwards"]]
        self.assertEqual(numbers, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)])
        self.assertEqual(len({c["file"] for c in catalogue["calls"]}), 5)
        self.assertEqual(list((self.folder / "d").glob("*.held")), [])
        self.told_afterwards([c["file"] for c in catalogue["calls"]])

    def told_afterwards(self, files: list[str]) -> None:
        """`relabel` finds room in the headers, so that no file is made anew."""
        if not has_program():
            return
        before = [(self.folder / "d" / file).stat() for file in files]
        program("relabel", self.folder / "d", "--branches", "f0=unconditional,f1=conditional")
        after = [(self.folder / "d" / file).stat() for file in files]
        self.assertEqual([(s.st_ino, s.st_size) for s in after], [(s.st_ino, s.st_size) for s in before])
        calls = [read_call(self.folder / "d" / file) for file in files]
        told = [(c.facts["step"], c.facts["branches"]) for c in calls]
        branches = ["unconditional", "conditional"]
        self.assertEqual(told, [(n // 2, [branches[n % 2]]) for n in range(5)])

    def test_nothing_at_all(self) -> None:
        model = Model()
        model.random = {9.0, 8.0, 7.0, 6.0}
        with self.assertRaisesRegex(CaptureError, "blocks.1: attention dropout 0.5"):
            self.kept(model, layers=1)
        self.assertEqual(list((self.folder / "d").iterdir()), [])

    def test_a_disk_that_fills_up_later(self) -> None:
        real, written = WRITER.save_call, []

        def save(*args: Any) -> None:
            if len(written) == 5:
                raise OSError("no space left")
            written.append(args[1])
            real(*args)

        with mock.patch.object(WRITER, "save_call", save):
            catalogue = self.kept(Model())
        self.assertEqual(len(catalogue["calls"]), 5)
        self.assertEqual(len(catalogue["refused"]), 7)
        self.assertIn("writing failed: no space left", catalogue["refused"][-1]["why"])
        self.assertIn("recorded 5 of 12 calls; 7 refused", self.said.getvalue())

    def test_a_disk_that_fills_up_while_labels_change(self) -> None:
        """The last step has one of two named forwards, whose three calls are written again with numbers."""
        stamps = [9.0, 9.0, 8.0, 8.0, 7.0]

        def steps(model: Model) -> list[torch.Tensor]:
            with torch.no_grad():
                return [model(X, torch.tensor([stamp])) for stamp in stamps]

        with mock.patch.object(WRITER, "restate", side_effect=OSError("no space left")):
            catalogue = self.kept(Model(), steps, branch="both", branches=["cond", "uncond"], guidance="forwards")
        self.assertEqual((len(catalogue["calls"]), len(catalogue["refused"])), (12, 3))
        self.assertEqual({r["step"] for r in catalogue["refused"]}, {2})
        self.assertIn("recorded 12 of 15 calls; 3 refused", self.said.getvalue())
        self.assertEqual(list((self.folder / "d").glob("*.held")), [])

    def test_room_that_ends_later(self) -> None:
        usage = iter([10**9] * 6)
        free = lambda _: types.SimpleNamespace(free=next(usage, 10))  # noqa: E731
        with mock.patch.object(shutil, "disk_usage", free):
            catalogue = self.kept(Model())
        self.assertGreater(len(catalogue["calls"]), 0)
        self.assertEqual(len(catalogue["calls"]) + len(catalogue["refused"]), 12)
        self.assertIn("do not fit", catalogue["refused"][0]["why"])


if __name__ == "__main__":
    unittest.main()
