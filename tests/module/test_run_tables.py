"""Tables of several runs: many prompts and seeds, processes, and tables against each other."""

import csv
import json
import os
import sys
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
from attnscope.capture import CaptureError, recorder
from probe_case import PRODUCTS, ProbeTest, same

SAMPLE = Path(__file__).parents[2] / "samples" / "moving-shapes"


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
            self.assertAlmostEqual(summary["entropy_ci95"][head], 3.182446305284263 * values.std(ddof=1) / 2, 9)
        # Stand-ins, for not every environment has the libraries.
        pandas = SimpleNamespace(DataFrame=lambda columns: columns)
        arrow = SimpleNamespace(Table=SimpleNamespace(from_pydict=lambda columns: columns))
        with mock.patch.dict(sys.modules, {"pandas": pandas, "pyarrow": arrow}):
            for columns in (table.to_pandas(), table.to_arrow()):
                self.assertEqual(list(columns), list(stats.dtype.names))
                self.assertTrue(same(columns["entropy"], stats["entropy"]))
        # The picture shows the means.
        drawn = {"picture": "heatmap", "metric": "entropy", "out": self.folder / "e.png"}
        told = json.loads(attnscope.command("render", self.out, json=True, quiet=True, **drawn))
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
            self.assertAlmostEqual(pair["entropy_ci95"], 4.302652729911275 * differences.std(ddof=1) / 3**0.5, 9)
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
            ((self.out, SAMPLE), {}, "is no table of metrics"),
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
            with self.assertRaisesRegex(attnscope.Error, f"metrics.h5: step 0 layer 0 self: {words}"):
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
        # The launcher of the processes tells which runs are one: here, too, where their names are the same.
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
        attnscope.command("stats", SAMPLE, out=self.folder / "s.h5", sample=4, layers=0, quiet=True)
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


if __name__ == "__main__":
    unittest.main()
