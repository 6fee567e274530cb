"""Metrics while a model runs: those of a capture that is measured afterwards, to the bit, and what becomes of them."""

import contextlib
import csv
import io
import json
import os
import signal
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import h5py
import numpy as np
import torch
import torch.nn.functional as F

import attnscope
import small_models
from attnscope import probes
from attnscope.capture import CaptureError, capture, recorder, wrap

PRODUCTS = ["stats", "pooled:16", "mask:spatial:frames=1", "mask:topk:keep=0.1"]
ARRAYS = ["frame_frame", "offset_kernel", "entropy_rows"]


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


class ProbeTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "metrics.h5"
        self.said = io.StringIO()
        quiet = contextlib.redirect_stderr(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        self.real = F.scaled_dot_product_attention
        self.addCleanup(self.check_restored)

    def check_restored(self) -> None:
        self.assertIs(F.scaled_dot_product_attention, self.real)
        self.assertFalse(recorder._ACTIVE.locked())

    def child(self, run: Any) -> int:
        """How a process of its own ends that runs `run`: its exit code, or minus the signal."""
        process = os.fork()
        if process == 0:
            code = 1
            try:
                run()
                code = 0
            except KeyboardInterrupt:
                code = 130
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def call(self, heads: int = 2, tokens: int = 40, seed: int = 0) -> None:
        """One attention call of a grid 2×4×5."""
        make = torch.Generator().manual_seed(seed)
        q, k, v = (torch.randn(1, heads, tokens, 16, generator=make) for _ in range(3))
        F.scaled_dot_product_attention(q, k, v)

    def probe(self, out: Path | None = None, products: Any = "stats", **options: Any) -> Any:
        return attnscope.probe(None, out or self.out, products, grid=(2, 4, 5), **options)

    def check_equal(self, table: attnscope.Metrics, cap: Any, options: dict[str, Any], run: int = 0) -> None:
        """Everything of a run is what the capture's calls have, with the same bits."""
        expected, found = cap.stats(**options), table.stats()
        found = found[found["run"] == table.runs[run]["run"]]
        self.assertGreater(len(expected), 0)
        for name in expected.dtype.names:
            self.assertTrue(same(expected[name], found[name]), name)
        masks = table.masks() if any(p.startswith("mask") for p in table.options["products"]) else None
        names = [] if table.options["arrays"] is None else table.options["arrays"].split(",")
        for call in cap:
            records = call.records(**options, arrays=names)
            for number, head in enumerate(call):
                place = (call.step, call.layer, head.branch, call.kind, call.slot)
                (mine,) = (c for c in table.calls if (c.step, c.layer, c.branch, c.kind, c.slot) == place)
                at = (run, mine.batch.index(head.batch), mine.heads.index(head.number))
                for name in names:
                    self.assertTrue(same(records[number]["arrays"][name], mine.arrays[name][at]), name)
                if masks is None:
                    continue
                for pool, values in zip(mine.pooled(16), head.pooled(16), strict=True):
                    self.assertTrue(same(values, pool[at]))
                for place, word in enumerate(mine.labels["mask_recall"]["sparse_mask"]):
                    for name, value in head.mask(word).as_dict().items():
                        if name != "mask":
                            got = mine.arrays[f"mask_{name}"][at][place]
                            self.assertTrue(same(np.nan if value is None else value, got), (word, name))


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
            ({"arrays": ["frame"]}, "there is no such array"),
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


class Runs(ProbeTest):
    def test_many_prompts_and_seeds_in_one_table(self) -> None:
        for prompt in ("a dog", "a cat"):
            for seed in (3, 4):
                with self.probe(prompt=prompt, seed=seed):
                    self.call(seed=seed)
        with self.probe(prompt="a dog", seed=3) as again:
            self.call(seed=9)
        self.assertEqual(again.run, "a dog, seed 3 (2)")
        with self.probe(run="mine"):
            self.call()
        table = attnscope.open(self.out)
        runs = ["a dog, seed 3", "a dog, seed 4", "a cat, seed 3", "a cat, seed 4", "a dog, seed 3 (2)", "mine"]
        self.assertEqual([run["run"] for run in table.runs], runs)
        stats = table.stats()
        self.assertEqual(stats["run"].tolist(), [run for run in runs for _ in range(2)])
        self.assertEqual(stats["seed"].tolist(), [3, 3, 4, 4, 3, 3, 4, 4, 3, 3, -1, -1])
        self.assertEqual(stats["prompt"][4], "a cat")
        self.assertTrue(stats["complete"].all())
        self.assertTrue(same(stats["entropy"][0:2], stats["entropy"][4:6]))
        self.assertFalse(same(stats["entropy"][0:2], stats["entropy"][8:10]))
        self.assertIn("run a cat, seed 4", attnscope.command("info", self.out))
        self.assertEqual(len(json.loads(attnscope.command("info", self.out, json=True))["export"]["runs"]), 6)
        attnscope.command("verify", self.out, quiet=True)
        with h5py.File(self.out) as f:
            (group,) = f["calls"].values()
            self.assertEqual(group["run_name"].asstr()[...].tolist(), runs)
            self.assertEqual(f["runs/seed"][...].tolist()[:5], [3, 4, 3, 4, 3])

    def test_mean_and_spread_over_runs(self) -> None:
        for seed in range(4):
            with self.probe(seed=seed):
                self.call(seed=seed)
        table = attnscope.open(self.out)
        summary, stats = table.summary(), table.stats()
        self.assertEqual(summary["runs"].tolist(), [4, 4])
        for head in range(2):
            values = stats["entropy"][stats["head"] == head]
            self.assertAlmostEqual(summary["entropy_mean"][head], values.mean(), 14)
            self.assertAlmostEqual(summary["entropy_std"][head], values.std(ddof=1), 14)
            self.assertAlmostEqual(summary["entropy_ci95"][head], 3.182 * values.std(ddof=1) / 2, 12)
        # Stand-ins, for not every environment has the libraries.
        pandas = SimpleNamespace(DataFrame=lambda columns: columns)
        arrow = SimpleNamespace(Table=SimpleNamespace(from_pydict=lambda columns: columns))
        with mock.patch.dict(sys.modules, {"pandas": pandas, "pyarrow": arrow}):
            for columns in (table.to_pandas(), table.to_arrow()):
                self.assertEqual(list(columns), list(stats.dtype.names))
                self.assertTrue(same(columns["entropy"], stats["entropy"]))
        # The picture shows the means.
        told = json.loads(
            attnscope.command(
                "render", self.out, picture="heatmap", metric="entropy", out=self.folder / "e.png", json=True, quiet=True
            )
        )
        values = [head["entropy"] for head in told["values"]]
        self.assertTrue(np.allclose(values, summary["entropy_mean"], rtol=1e-14))

    def test_tables_against_each_other(self) -> None:
        """`attnscope diff`: over the runs of one table, heads of it against others, and two tables."""

        def diff(*paths: Path, **options: Any) -> Any:
            return json.loads(attnscope.command("diff", *paths, json=True, quiet=True, **options))

        other = self.folder / "other.h5"
        for out, shift in ((self.out, 0), (other, 50)):
            for seed in range(3):
                with self.probe(out, seed=seed) as probe:
                    for step in range(2):
                        probe.begin_step(step)
                        self.call(seed=shift + 10 * step + seed)
        stats = {path: attnscope.open(path).stats() for path in (self.out, other)}

        def values(path: Path, step: int, head: int) -> np.ndarray:
            table = stats[path]
            return table["entropy"][(table["step"] == step) & (table["head"] == head)]

        over = diff(self.out)
        summary = attnscope.open(self.out).summary()
        self.assertEqual(len(over["heads"]), 4)
        for head, mine in zip(over["heads"], summary, strict=True):
            self.assertEqual((head["step"], head["head"], head["runs"]), (mine["step"], mine["head"], 3))
            for name in ("class", "class_share"):
                self.assertEqual(head[name], mine[name])
            for name in ("entropy_mean", "entropy_std", "entropy_ci95", "sink_mass_ci95"):
                self.assertAlmostEqual(head[name], mine[name], 12)
        steps = diff(self.out, steps=0, b_step=1)
        self.assertTrue(steps["paired"])
        for pair in steps["pairs"]:
            differences = values(self.out, 0, pair["a"]["head"]) - values(self.out, 1, pair["b"]["head"])
            self.assertAlmostEqual(pair["entropy_difference"], differences.mean(), 12)
            self.assertAlmostEqual(pair["entropy_ci95"], 4.303 * differences.std(ddof=1) / 3**0.5, 12)
        tables = diff(self.out, other, heads=1)
        self.assertFalse(tables["paired"])
        for pair in tables["pairs"]:
            a, b = (values(path, pair["a"]["step"], 1) for path in (self.out, other))
            self.assertAlmostEqual(pair["entropy_difference"], a.mean() - b.mean(), 12)
            self.assertEqual(pair["b"], pair["a"])
        for name in ("d.csv", "d.h5"):
            attnscope.command("diff", self.out, out=self.folder / name, quiet=True)
        with open(self.folder / "d.csv", newline="") as file:
            means = [float(line["entropy_mean"]) for line in csv.DictReader(file)]
        with h5py.File(self.folder / "d.h5") as f:
            self.assertEqual(f["entropy_mean"][...].tolist(), means)
        self.assertEqual(means, [head["entropy_mean"] for head in over["heads"]])
        self.assertIn("same_frame_mass", attnscope.command("diff", self.out))
        for paths, options, words in (
            ((self.out,), {"b_step": 7}, "metrics.h5: has no step 7 layer 0"),
            ((self.out,), {"sample": 4}, "--sample: the numbers of a table are what they are"),
            ((self.out, Path(__file__).parents[2] / "samples/moving-shapes"), {}, "is no table of metrics"),
            ((self.out,), {"layers": 7}, "7"),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(attnscope.Error, words):
                diff(*paths, **options)

    def test_what_does_not_fit_is_refused(self) -> None:
        with self.probe(run="a", layers="0", products=["stats", "pooled:8"]):
            self.call()
        before = self.out.read_bytes()
        same_options: dict[str, Any] = {"layers": "0", "products": ["stats", "pooled:8"]}
        for options, words in (
            ({"sample": 4}, 'sample: holds metrics of other options: null .expected "4".'),
            ({"layers": "1"}, 'layers: holds metrics of other options: "0" .expected "1"'),
            ({"products": "stats"}, "products: holds metrics of other options"),
            ({"every": 2}, "every: holds metrics of other options: 1 .expected 2"),
            ({"model": "Other"}, 'model: holds metrics of other options: "" .expected "Other"'),
            ({"backend": "reference"}, "backend: holds metrics of other options"),
            ({"run": "a"}, 'has a run "a": give another run='),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(attnscope.Error, words):
                with self.probe(**{**same_options, **options}):
                    self.fail("entered")
        for grid, words in (((4, 4, 5), "the grid is 4x4x5 .expected 2x4x5"), (None, "the grid is none")):
            with self.assertRaisesRegex(attnscope.Error, f"metrics.h5: step 0 layer 0 all self: {words}"):
                with attnscope.probe(None, self.out, grid=grid, **same_options):
                    self.call(tokens=80)
        self.assertEqual(self.out.read_bytes(), before)
        self.assertEqual([p.name for p in self.folder.iterdir() if ".lock" not in p.name], ["metrics.h5"])
        other = self.folder / "text.h5"
        other.write_text("nothing of ours")
        with self.assertRaisesRegex(attnscope.Error, "exists and holds no metrics of runs"):
            with self.probe(other):
                self.fail("entered")
        self.assertEqual(other.read_text(), "nothing of ours")
        with self.probe(sample=4, force=True):
            self.call()
        self.assertEqual([run["run"] for run in attnscope.open(self.out).runs], ["run"])

    def test_one_writer_at_a_time(self) -> None:
        def other() -> None:
            with self.assertRaisesRegex(attnscope.Error, "is being written by another run"):
                self.probe().__enter__()

        with self.probe():
            self.call()
            recorder._ACTIVE.release()  # as in another process, which the child's memory is not
            try:
                self.assertEqual(self.child(other), 0)
            finally:
                recorder._ACTIVE.acquire()


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
        with self.assertRaisesRegex(attnscope.Error, "metrics.h5.part: is damaged: the line at byte"):
            attnscope.open(part)

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
        with self.assertRaisesRegex(attnscope.Error, "NaN") as raised, self.probe():
            self.call()
            F.scaled_dot_product_attention(*torch.full((3, 1, 2, 40, 16), torch.nan))
        self.assertEqual(raised.exception.code, "value")
        table = attnscope.open(self.out)
        self.assertEqual((len(table.stats()), table.runs[0]["complete"]), (2, False))

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


class Processes(ProbeTest):
    def merge(self, *parts: Path, **options: Any) -> attnscope.Metrics:
        whole = self.folder / "whole.h5"
        attnscope.command("merge", *parts, out=whole, force=True, quiet=True, **options)
        return attnscope.open(whole)

    def rank(self, rank: int, ranks: int = 2, **options: Any) -> Path:
        with self.probe(rank=(rank, ranks), **options) as probe:
            self.call(seed=rank)
        return probe.path

    def test_a_file_a_rank_and_the_whole_of_them(self) -> None:
        parts = [self.rank(rank, prompt=f"prompt {rank}") for rank in range(2)]
        self.assertEqual([p.name for p in parts], ["metrics.rank-0-of-2.h5", "metrics.rank-1-of-2.h5"])
        self.assertRegex(self.said.getvalue(), r"attnscope merge \S+metrics.rank-\*.h5 -o \S+metrics.h5 joins")
        whole = self.merge(*parts)
        self.assertEqual([run["prompt"] for run in whole.runs], ["prompt 0", "prompt 1"])
        for part, run in zip(parts, whole.runs, strict=True):
            own = attnscope.open(part).stats()
            mine = whole.stats()
            self.assertTrue(same(own["entropy"], mine["entropy"][mine["run"] == run["run"]]))

    def test_heads_of_one_run_in_several_processes(self) -> None:
        """Tensor parallelism: each process has its own heads."""
        q, k, v = torch.randn(3, 1, 4, 40, 16)
        parts = []
        for rank in range(2):
            heads = slice(2 * rank, 2 * rank + 2)
            with self.probe(rank=(rank, 2), head_offset=2 * rank, run="one", products=PRODUCTS) as probe:
                F.scaled_dot_product_attention(q[:, heads], k[:, heads], v[:, heads])
            parts.append(probe.path)
        with self.probe(run="one", products=PRODUCTS) as probe:
            F.scaled_dot_product_attention(q, k, v)
        whole, alone = self.merge(*reversed(parts)), attnscope.open(self.out)
        self.assertEqual(len(whole.runs), 1)
        for name, values in alone.calls[0].arrays.items():
            self.assertTrue(same(values, whole.calls[0].arrays[name]), name)
        with self.assertRaisesRegex(CaptureError, "give all of them the same run="):
            self.probe(rank=(0, 2), head_offset=0)
        # What starts the processes tells which runs are one: here, too, where their names are the same.
        with mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "job"}):
            for rank in range(2):
                os.environ["RANK"] = str(rank)
                for seed in range(2):
                    with self.probe(self.folder / "t.h5", head_offset=2 * rank, prompt="the same") as probe:
                        self.call(seed=seed)
        files = sorted(self.folder.glob("t.rank-?-of-2.h5"))
        whole = self.merge(*files)
        self.assertEqual([run["run"] for run in whole.runs], ["the same", "the same (2)"])
        self.assertEqual(whole.calls[0].heads, [0, 1, 2, 3])
        self.assertTrue(whole.calls[0].measured.all())
        with self.assertRaisesRegex(attnscope.Error, "the file of rank 1 of 2 is missing"):
            self.merge(files[0])

    def test_what_does_not_belong_is_named(self) -> None:
        parts = [self.rank(rank, 3, prompt=f"prompt {rank}") for rank in range(3)]
        foreign = self.folder / "foreign.h5"
        with self.probe(foreign, sample=7):
            self.call()
        for given, words in (
            (parts[:2], "the file of rank 2 of 3 is missing"),
            (parts[:1], "the files of ranks 1-2 of 3 are missing"),
            ([*parts, parts[1]], r"run prompt 1 is there 2 times \(\S+rank-1-of-3.h5, \S+rank-1-of-3.h5\)"),
            ([*parts, foreign], 'foreign.h5: sample: holds metrics of other options: "7"'),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(attnscope.Error, words) as raised:
                self.merge(*given)
            self.assertEqual(raised.exception.code, "failure")
        self.assertFalse((self.folder / "whole.h5").exists())
        attnscope.command("stats", Path(__file__).parents[2] / "samples/moving-shapes", out=self.folder / "s.h5", sample=4, layers=0, quiet=True)
        with self.assertRaisesRegex(attnscope.Error, "s.h5: is of another kind"):
            self.merge(*parts, self.folder / "s.h5")
        damaged = bytearray(parts[0].read_bytes())
        damaged[len(damaged) // 2] ^= 1
        parts[0].write_bytes(damaged)
        with self.assertRaisesRegex(attnscope.Error, "rank-0-of-3.h5"):
            self.merge(*parts)

    def test_backends_and_names(self) -> None:
        a, b = self.folder / "a.h5", self.folder / "b.h5"
        for out, backend in ((a, "cpu"), (b, "reference")):
            with self.probe(out, prompt="the same", backend=backend):
                self.call()
        with self.assertRaisesRegex(attnscope.Error, "b.h5: backend: holds metrics of other options"):
            self.merge(a, b)
        whole = self.merge(a, b, mixed_backends=True)
        self.assertEqual([run["run"] for run in whole.runs], ["the same", "the same (2)"])
        self.assertIn(" + reference", whole.options["backend"])
        self.assertIn("reference", whole.calls[0].arrays["backend"].tolist())

    def test_one_table_as_lines_of_commas(self) -> None:
        parts = [self.folder / "a.h5", self.folder / "b.h5"]
        for seed, part in enumerate(parts):
            with self.probe(part, prompt='say "hi", twice', seed=seed, products=PRODUCTS):
                self.call(seed=seed)
        said = self.said.getvalue()
        attnscope.command("merge", *parts, out=self.folder / "all.csv")
        self.assertIn("level_16/weights_max is an array", self.said.getvalue().removeprefix(said))
        with open(self.folder / "all.csv", newline="") as file:
            lines = list(csv.DictReader(file))
        stats, masks = self.merge(*parts).stats(), self.merge(*parts).masks()
        self.assertEqual(len(lines), len(stats))
        for line, head in zip(lines, stats, strict=True):
            self.assertEqual((line["run"], line["prompt"]), (head["run"], head["prompt"]))
            for name in ("seed", "step", "layer", "head", "class"):
                self.assertEqual(line[name], str(head[name]), name)
            for name in ("entropy", "same_frame_mass", "keys_for_90", "band"):
                self.assertEqual(float(line[name]), head[name], name)
            self.assertEqual(line["padding_mass"], "")
        recall = masks[masks["sparse_mask"] == "spatial:frames=1"]["recall"].tolist()
        self.assertEqual([float(line["mask_recall(spatial:frames=1)"]) for line in lines], recall)


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
