"""Metrics while a model runs: those of a capture that is measured afterwards, to the bit, and what ends a run."""

import os
import signal
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
import torch.nn.functional as F

import attnscope
import small_models
from attnscope import probes
from attnscope.capture import CaptureError, capture, recorder, wrap
from probe_case import ARRAYS, PRODUCTS, ProbeTest, same


class SelfAttention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Equality(ProbeTest):
    def test_all_products_of_a_pipeline(self) -> None:
        small = small_models.cogvideox()
        plain = small.run(3)
        chosen: dict[str, Any] = {"layers": "0,2", "steps": "1-", "branch": "both"}
        with attnscope.probe(small.pipe, self.out, PRODUCTS, sample=20, arrays=ARRAYS, run="a", **chosen) as probe:
            self.assertTrue(torch.equal(small.run(3), plain))
        self.assertEqual((probe.run, probe.heads, sorted(probe.overhead)), ("a", 24, [1, 2]))
        self.assertTrue(0 < sum(probe.overhead.values()) < probe.seconds)
        self.assertRegex(self.said.getvalue(), r"24 heads of 4 calls in 2 steps, run 'a'; measuring took \S+ s a step")
        with capture(small.pipe, self.folder / "dump", quiet=True, **chosen):
            small.run(3)
        table = attnscope.open(self.out)
        self.check_equal(table, attnscope.open(self.folder / "dump"), {"sample": 20})
        # The command line's files, too: numbers, and the layout around them.
        attnscope.command("stats", self.folder / "dump", out=self.folder / "stats.h5", sample=20, quiet=True)
        with h5py.File(self.folder / "stats.h5") as theirs, h5py.File(self.out) as ours:
            self.assertEqual(set(theirs["calls"]), set(ours["calls"]))
            self.assertEqual(dict(theirs.attrs)["format"], dict(ours.attrs)["format"])
            for name, group in theirs["calls"].items():
                mine = ours["calls"][name]
                self.assertEqual(set(group.attrs) - set(mine.attrs), set())
                for variable, values in group.items():
                    if variable in ("batch", "head", "sink_rank"):
                        self.assertTrue(same(values[...], mine[variable][...]))
                        continue
                    self.assertTrue(same(values[...], mine[variable][0]), variable)
                    axes = [d.keys()[0] for d in mine[variable].dims]
                    self.assertEqual(axes, ["run", *(d.keys()[0] for d in values.dims)], variable)

    def test_forwards_that_nothing_names(self) -> None:
        """They are measured under their numbers, and the numbers are those of a capture."""

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.blocks = torch.nn.ModuleList([SelfAttention()])

            def forward(self, hidden_states: Any, timestep: Any, encoder_hidden_states: Any) -> Any:
                return self.blocks[0](hidden_states + encoder_hidden_states)

        def run(model: Model) -> None:
            x = torch.randn(1, 40, 16, generator=torch.Generator().manual_seed(2))
            for stamp in (9.0, 8.0):
                for text in (0.0, 1.0):
                    model(stamp * x, torch.tensor([stamp]), torch.full((1, 40, 16), text))

        torch.manual_seed(0)
        model = Model()
        with torch.no_grad(), attnscope.probe(model, self.out, grid=(2, 4, 5)):
            run(model)
        with torch.no_grad(), capture(model, self.folder / "dump", grid=(2, 4, 5)):
            run(model)
        table, cap = attnscope.open(self.out), attnscope.open(self.folder / "dump")
        self.check_equal(table, cap, {})
        told = [(r["step"], r["forward"], r["of_step"]) for r in table.stats() if r["head"] == 0]
        self.assertEqual(told, [(0, 0, 0), (0, 1, 1), (1, 2, 0), (1, 3, 1)])
        self.assertEqual([(call.forward, call.of_step) for call in cap], [(0, 0), (1, 1), (2, 0), (3, 1)])
        attnscope.command("merge", self.out, out=self.folder / "m.csv", quiet=True)
        lines = (self.folder / "m.csv").read_bytes().split(b"\r\n")
        self.assertTrue(lines[0].startswith(b"run,prompt,seed,step,layer,branch,kind,batch,head,block,slot,chunk,forward,of_step,"))
        self.assertEqual(len(lines), 1 + 8 + 1)

    def test_models_with_forwards_of_their_own_and_token_maps(self) -> None:
        for family, options in (("wan", {"kinds": "self"}), ("hunyuan", {}), ("latte", {})):
            with self.subTest(family=family):
                small = getattr(small_models, family)()
                out = self.folder / f"{family}.h5"
                options = {"layers": "0-1", "steps": "0", **options}
                with attnscope.probe(small.pipe, out, ["stats", "pooled:16"], arrays=ARRAYS[:1], **options):
                    result = small.run(2)
                with capture(small.pipe, self.folder / family, quiet=True, **options):
                    self.assertTrue(torch.equal(small.run(2), result))
                self.check_equal(attnscope.open(out), attnscope.open(self.folder / family), {})

    def test_a_compiled_model(self) -> None:
        small = small_models.cogvideox()
        small.pipe.transformer = torch.compile(small.pipe.transformer, backend="eager")
        options: dict[str, Any] = {"layers": 1, "steps": 0}
        with attnscope.probe(small.pipe, self.out, **options):
            result = small.run(1)
        with capture(small.pipe, self.folder / "dump", quiet=True, **options):
            self.assertTrue(torch.equal(small.run(1), result))
        self.check_equal(attnscope.open(self.out), attnscope.open(self.folder / "dump"), {})

    def test_masks_and_groups_of_heads(self) -> None:
        """Calls whose facts stand in tensors of their own."""
        q, k, v = (torch.randn(2, h, 40, 16) for h in (4, 2, 2))
        valid = torch.ones(2, 1, 1, 40, dtype=torch.bool)
        valid[1, ..., 30:] = False
        cases: dict[str, dict[str, Any]] = {
            "causal": {"is_causal": True},
            "valid": {"attn_mask": valid},
            "bias": {"attn_mask": torch.randn(2, 4, 40, 40)},
            "scale": {"scale": 0.5},
        }
        for name, given in cases.items():
            with self.subTest(case=name):
                out = self.folder / f"{name}.h5"
                with self.probe(out, ["stats", "pooled:16", "mask:topk:keep=0.2"], exact=True):
                    F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **given)
                with capture(None, self.folder / name, grid=(2, 4, 5), quiet=True):
                    F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **given)
                self.check_equal(attnscope.open(out), attnscope.open(self.folder / name), {"exact": True})

    def test_types_and_layouts(self) -> None:
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            out, dump = self.folder / f"{dtype}.h5", self.folder / str(dtype)
            spread = [torch.randn(1, 40, 3, 16, dtype=torch.float64).to(dtype).transpose(1, 2) for _ in range(3)]
            with self.probe(out):
                F.scaled_dot_product_attention(*spread)
            with capture(None, dump, grid=(2, 4, 5), quiet=True):
                F.scaled_dot_product_attention(*spread)
            self.check_equal(attnscope.open(out), attnscope.open(dump), {})


class Limits(ProbeTest):
    def test_every_nth_step_and_sampled_rows(self) -> None:
        small = small_models.cogvideox()
        with attnscope.probe(small.pipe, self.out, every=2, sample=10, layers=1) as probe:
            small.run(5)
        self.assertEqual(sorted(probe.overhead), [0, 2, 4])
        table = attnscope.open(self.out).stats()
        self.assertEqual(sorted(set(table["step"].tolist())), [0, 2, 4])
        self.assertTrue((table["rows"] == 10).all())
        self.assertTrue(np.isfinite(table["entropy_stderr"]).all())

    def test_words_that_mean_nothing(self) -> None:
        for options, words in (
            ({"products": []}, "products: expected some"),
            ({"products": ["stats", "pooled"]}, r'products: expected "stats", "pooled:N" .*\(got \'pooled\'\)'),
            ({"products": ["pooled:8", "pooled:8"]}, "none twice"),
            ({"products": "pooled:8", "sample": 4}, 'sample: is of "stats"'),
            ({"mask_block": 4}, "mask_block, mask_exact"),
            ({"every": 0}, "every: expected a whole number from 1"),
            ({"sample": 0}, "sample 0: expected a whole number of at least 1"),
            ({"arrays": ["frame"]}, "no such name"),
            ({"seed": "x"}, "seed: expected a whole number"),
            ({"values": True}, "unknown option values"),
            ({"layer": 1}, "unknown option layer .*layers"),
            ({"backend": "none"}, "none"),
            ({"steps": "x"}, "steps: expected numbers"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(Exception, words) as raised:
                attnscope.probe(None, self.out, **options)
            self.assertIsInstance(raised.exception, (attnscope.Error, CaptureError))
        with self.assertRaisesRegex(attnscope.Error, "must end in .h5"):
            attnscope.probe(None, self.folder / "metrics.csv")
        self.assertEqual(list(self.folder.iterdir()), [])


class Endings(ProbeTest):
    def test_a_kill_costs_the_call_that_was_under_way(self) -> None:
        def kill(name: str) -> int:
            def run() -> None:
                with self.probe(run=name) as probe:
                    for step in range(3):
                        probe.begin_step(step)
                        self.call()
                    os.kill(os.getpid(), signal.SIGKILL)

            return self.child(run)

        with self.probe(run="whole"):
            self.call()
        self.assertEqual(kill("killed"), -signal.SIGKILL)
        part = self.out.with_name("metrics.h5.part")
        left = attnscope.open(part)
        self.assertEqual((len(left.stats()), left.runs[0]["complete"]), (6, False))
        self.assertIn("run killed (was cut off)", attnscope.command("info", part))
        self.assertEqual(len(attnscope.open(self.out).stats()), 2)
        # A line that was not written to its end is none.
        part.write_bytes(part.read_bytes()[:-100])
        self.assertEqual(len(attnscope.open(part).stats()), 4)
        attnscope.command("merge", self.out, part, out=self.folder / "both.h5", quiet=True)
        self.assertEqual([r["run"] for r in attnscope.open(self.folder / "both.h5").runs], ["whole", "killed"])
        # The next run keeps it, also where that is killed itself.
        self.assertEqual(kill("again"), -signal.SIGKILL)
        with self.probe(run="last"):
            self.call()
        self.assertIn("5 calls of a run that was cut off are kept", self.said.getvalue())
        table = attnscope.open(self.out)
        self.assertEqual([r["run"] for r in table.runs], ["whole", "killed", "again", "last"])
        self.assertEqual([r["complete"] for r in table.runs], [True, False, False, True])
        self.assertEqual(np.unique(table.stats()["run"], return_counts=True)[1].tolist(), [6, 4, 2, 2])
        self.assertFalse(part.exists())
        # Lines that are damaged are no cut.
        self.assertEqual(kill("damaged"), -signal.SIGKILL)
        text = part.read_bytes()
        part.write_bytes(text.replace(b'"group"', b'"grOup"', 1))
        with self.assertRaisesRegex(attnscope.Error, r"metrics.h5.part: line 3: is damaged: its checksum is wrong$"):
            attnscope.open(part)
        with self.assertRaisesRegex(attnscope.Error, r"wrong \(force=True gives it up\)"), self.probe():
            pass
        # Nor is what somebody else left beside the table given up.
        part.unlink()
        journal = self.out.with_name("metrics.h5.journal")
        journal.write_text("mine\n")
        with self.assertRaisesRegex(attnscope.Error, "metrics.h5.journal: has the name of"), self.probe():
            pass
        self.assertEqual(journal.read_text(), "mine\n")

    def test_errors_and_ctrl_c_close_the_table(self) -> None:
        for error in (RuntimeError("the model"), KeyboardInterrupt()):
            with self.subTest(error=error):
                out = self.folder / f"{type(error).__name__}.h5"
                with self.assertRaises(type(error)), self.probe(out):
                    self.call()
                    raise error
                self.check_restored()
                table = attnscope.open(out)
                self.assertEqual((len(table.stats()), table.runs[0]["complete"]), (2, False))

    def test_ctrl_c_while_a_head_is_measured(self) -> None:
        real = probes._native.measure

        def measure(*given: Any) -> Any:
            """After which a second head is under way for long enough."""
            if given[0].facts()["heads"] > 1:
                threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            return real(*given)

        def run() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            probes._native.measure = measure
            with attnscope.probe(None, self.out, ["mask:topk:keep=0.5"], mask_exact=True, threads=1):
                F.scaled_dot_product_attention(*torch.randn(3, 1, 1, 64, 16))
                F.scaled_dot_product_attention(*torch.randn(3, 1, 6, 3000, 16))

        self.assertEqual(self.child(run), 130)
        self.assertEqual([run["complete"] for run in attnscope.open(self.out).runs], [False])
        self.assertEqual([call.heads for call in attnscope.open(self.out).calls], [[0]])

    def test_a_call_that_cannot_be_measured_is_told(self) -> None:
        with self.assertRaisesRegex(attnscope.Error, "NaN") as raised, self.probe(strict=True):
            self.call()
            F.scaled_dot_product_attention(*torch.full((3, 1, 2, 40, 16), torch.nan))
        self.assertEqual(raised.exception.code, "value")
        table = attnscope.open(self.out)
        self.assertEqual((len(table.stats()), table.runs[0]["complete"]), (2, False))

    def test_a_call_that_cannot_be_measured_is_a_gap(self) -> None:
        with self.probe():
            self.call()
            F.scaled_dot_product_attention(*torch.full((3, 1, 2, 40, 16), torch.nan))
            self.call(seed=1)
        table = attnscope.open(self.out)
        self.assertEqual((len(table.stats()), table.runs[0]["complete"]), (4, True))
        (refused,) = table.runs[0]["refused"]
        self.assertIn("NaN", refused["why"])
        self.assertIn("recorded 2 of 3 calls; 1 refused", self.said.getvalue())
        self.assertIn("1 calls or forwards refused: ", attnscope.command("info", self.out))

    def test_a_call_that_the_recorder_refuses(self) -> None:
        q = torch.randn(1, 2, 40, 16)
        wrong = wrap(lambda q, k, v: 3 * v)

        def dropout() -> None:
            F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)

        for call in (dropout, lambda: wrong(q, q, q)):
            texts = []
            for block in (self.probe(), capture(None, self.folder / "dump", grid=(2, 4, 5), force=True)):
                with self.assertRaises(CaptureError) as raised, block:
                    call()
                texts.append(str(raised.exception))
            self.assertEqual(texts[0], texts[1])
        self.assertFalse(self.out.exists())
        # Nothing of what was asked for came.
        with self.assertRaisesRegex(CaptureError, "no attention call came by"), self.probe():
            pass
        self.assertEqual([p.name for p in self.folder.iterdir() if ".h5" in p.name and ".lock" not in p.name], [])

    def test_a_table_that_cannot_be_written(self) -> None:
        """The run stays in the journal, and the error is told."""
        with self.assertRaisesRegex(attnscope.Error, "metrics.h5"), self.probe():
            self.call()
            self.out.mkdir()
        self.out.rmdir()
        self.assertEqual(len(attnscope.open(self.out.with_name("metrics.h5.part")).stats()), 2)
        with self.assertRaisesRegex(RuntimeError, "the model"), self.probe():
            self.call()
            self.out.mkdir()
            raise RuntimeError("the model")
        self.assertIn("the run is in", self.said.getvalue())
        self.out.rmdir()
        with self.probe():
            self.call()
        self.assertEqual(len(attnscope.open(self.out).runs), 3)


class Package(unittest.TestCase):
    def test_names_and_words(self) -> None:
        self.assertIs(attnscope.probe, probes.probe)
        self.assertIn("probe", attnscope.__all__)
        self.assertNotIn("attnscope.probes", os.environ)

    def test_a_probe_waits_for_the_capture_that_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with capture(None, Path(folder) / "dump", quiet=True):
                F.scaled_dot_product_attention(*torch.randn(3, 1, 1, 4, 8))
                with self.assertRaisesRegex(CaptureError, "captures cannot be nested"):
                    with attnscope.probe(None, Path(folder) / "m.h5"):
                        self.fail("entered")
            self.assertEqual([p.name for p in Path(folder).iterdir() if p.suffix != ".lock"], ["dump"])


if __name__ == "__main__":
    unittest.main()
