"""Whose forward runs: one thread's at a time, none that failed, none of a copy of the model; and no call comes
twice."""

import contextlib
import copy
import json
import threading
import unittest
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from attnscope_capture import Capture, Options, capture
from support import CaptureTest, read_capture

Hook = Callable[["Model", int], None]


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Model(torch.nn.Module):
    """Three blocks; `before` is called before each of them."""

    def __init__(self, before: Hook = lambda model, block: None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(Attention() for _ in range(3))
        self.before = before

    def forward(self, x: torch.Tensor, timestep: torch.Tensor | None = None) -> torch.Tensor:
        for number, block in enumerate(self.blocks):
            self.before(self, number)
            x = x + block(x)
        return x

    def cache_context(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


X = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(2))


class Forwards(CaptureTest):
    def labels(self) -> list[tuple[int, int, float | None]]:
        calls = read_capture(self.folder / "d")
        return [(c.facts["step"], c.facts["layer"], c.facts.get("timestep")) for c in calls]

    def beside(self, other: Callable[[Model], None]) -> list[str]:
        """Runs two steps of a model; in the first one's second block another thread does `other`. What that thread
        was told."""
        told: list[str] = []
        began: list[bool] = []

        def run(model: Model) -> None:
            try:
                other(model)
            except Exception as error:
                told.append(str(error))

        def before(model: Model, block: int) -> None:
            if block == 1 and not began:
                began.append(True)
                thread = threading.Thread(target=run, args=(model,), name="second")
                thread.start()
                thread.join()

        model = Model(before)
        with torch.no_grad(), self.refused("'second'", "'MainThread' runs", "one thread at a time"):
            with capture(model, self.folder / "d"):
                for step in range(2):
                    model(X, torch.tensor([9.0 - step]))
        catalogue = json.loads((self.folder / "d" / "capture.json").read_text())
        return told if self.strict else [entry["why"] for entry in catalogue["refused"]]

    def test_a_forward_of_another_thread_is_refused(self) -> None:
        (told,) = self.beside(lambda model: model(X + 1, torch.tensor([50.0])))
        self.assertIn("the model's forward began in the thread 'second'", told)
        self.assertEqual(self.labels(), [(s, n, 9.0 - s) for s in range(2) for n in range(3)])

    def test_a_call_of_another_thread_is_refused(self) -> None:
        (told,) = self.beside(lambda model: model.blocks[2](X + 1))
        self.assertIn("blocks.2 made an attention call in the thread 'second'", told)
        self.assertEqual(self.labels(), [(s, n, 9.0 - s) for s in range(2) for n in range(3)])

    def test_forwards_of_two_threads_after_each_other(self) -> None:
        model = Model()
        with torch.no_grad(), capture(model, self.folder / "d"):
            for step in range(2):
                thread = threading.Thread(target=lambda step=step: model(X, torch.tensor([9.0 - step])))
                thread.start()
                thread.join()
        self.assertEqual(self.labels(), [(0, 0, 9.0), (0, 1, 9.0), (0, 2, 9.0), (1, 0, 8.0), (1, 1, 8.0), (1, 2, 8.0)])

    def failing(self, *at: int) -> Hook:
        """Raises where these blocks begin, of all in the order in which they do."""
        seen = iter(range(1000))

        def before(model: Model, block: int) -> None:
            if next(seen) in at:
                raise RuntimeError("out of memory")

        return before

    def test_a_forward_that_is_run_again_is_no_step(self) -> None:
        for more in ({"guidance": "batch"}, {}, {"branch": "both"}):
            model = Model(self.failing(4, 7))  # the second forward, after one call, then after two
            with torch.no_grad(), capture(model, self.folder / "d", force=True, **more):
                for stamp in (5.0, 4.0, 4.0, 4.0, 3.0):
                    with contextlib.suppress(RuntimeError):
                        model(X, torch.tensor([stamp]))
            self.assertEqual(self.labels(), [(s, n, 5.0 - s) for s in range(3) for n in range(3)])
            files = {p.name for p in (self.folder / "d").iterdir()} - {"capture.json"}
            self.assertEqual(len(files), 9, files)
            self.assertIn("step 1: a forward ended in an error, and the run went on: 1 calls", self.said.getvalue())

    def test_a_forward_that_fails_last(self) -> None:
        model = Model(self.failing(4))
        with torch.no_grad(), capture(model, self.folder / "d"):
            model(X, torch.tensor([5.0]))
            with contextlib.suppress(RuntimeError):
                model(X, torch.tensor([4.0]))
        self.assertEqual(self.labels(), [(0, 0, 5.0), (0, 1, 5.0), (0, 2, 5.0)])

    def test_an_error_that_ends_the_run_keeps_what_came(self) -> None:
        model = Model(self.failing(4))
        with torch.no_grad(), self.assertRaisesRegex(RuntimeError, "out of memory"):
            with capture(model, self.folder / "d"):
                for stamp in (5.0, 4.0):
                    model(X, torch.tensor([stamp]))
        self.assertEqual(self.labels(), [(0, 0, 5.0), (0, 1, 5.0), (0, 2, 5.0), (1, 0, 4.0)])

    def test_what_a_sink_has_taken_is_not_taken_back(self) -> None:
        class Numbers:
            def __init__(self) -> None:
                self.root: dict[str, Any] = {}
                self.calls: list[str] = []

            def open(self, stack: Any, root: dict[str, Any]) -> None:
                self.root = root

            def take(self, job: Any) -> None:
                self.calls.append(job.name)

            def settle(self, keep: bool) -> None:
                pass

            def rename(self, held: Any) -> None:
                pass

            def add(self, name: str, entry: dict[str, Any]) -> None:
                pass

            def raise_error(self) -> None:
                pass

        for at, count in ((4, 4), (3, 6)):  # after a call, before the first
            sink, model = Numbers(), Model(self.failing(at))
            taken = contextlib.nullcontext() if at == 3 else self.refused("after 1 of its calls were measured", "again")
            with torch.no_grad(), taken, Capture(model, self.folder / "d", Options(), sink=sink):
                model(X, torch.tensor([5.0]))
                with contextlib.suppress(RuntimeError):
                    model(X, torch.tensor([4.0]))
                model(X, torch.tensor([4.0]))
            self.assertEqual(len(sink.calls), count if self.strict else 6)

    def test_a_copy_of_the_model(self) -> None:
        """An average of weights, a teacher: copied and run within the block, it is another model."""
        model = Model()
        with torch.no_grad(), capture(model, self.folder / "d", branch="both"):
            other = copy.deepcopy(model)
            with model.cache_context("cond"):
                model(X, torch.tensor([5.0]))
                with other.cache_context("uncond"):
                    other(X + 1, torch.tensor([4.0]))
            with model.cache_context("uncond"):
                model(X, torch.tensor([5.0]))
        with torch.no_grad():
            other(X)  # its hooks are there and do nothing
        self.assertEqual(self.labels(), [(0, n, 5.0) for _ in range(2) for n in range(3)])
        branches = [c.facts["branches"] for c in read_capture(self.folder / "d")]
        self.assertEqual(branches, [["cond"]] * 3 + [["uncond"]] * 3)

    def test_a_step_that_is_said_twice(self) -> None:
        model = Model()
        with torch.no_grad(), self.refused("step0000_layer000_self: .* came twice", "begin_step", "a block of its own"):
            with capture(model, self.folder / "d") as cap:
                for _ in range(2):  # two runs in one block
                    for step in range(2):
                        cap.begin_step(step)
                        model(X)
        self.assertEqual(self.labels(), [(s, n, None) for s in range(2) for n in range(3)])


if __name__ == "__main__":
    unittest.main()
