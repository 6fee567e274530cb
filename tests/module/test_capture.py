"""Captures: the calls, heads and numbers of the sample, against double precision and the command line."""

import json
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

import attnscope
from reference import GRID, SAMPLE, TEXT, check_weights, logits, sample_head, softmax


class Calls(unittest.TestCase):
    def setUp(self) -> None:
        self.cap = attnscope.open(SAMPLE)

    def test_the_table(self) -> None:
        self.assertEqual(len(self.cap), 4)
        self.assertEqual(self.cap.calls.column("layer"), [0, 1, 2, 3])
        self.assertEqual(self.cap.calls[2]["grid"], GRID)
        text = repr(self.cap.calls)
        self.assertEqual(len(text.splitlines()), 5)
        self.assertIn("1024", text)
        self.assertIn("<td>bf16</td>", self.cap.calls._repr_html_())
        told = json.loads(attnscope.command("info", SAMPLE, json=True, quiet=True))["calls"]
        for call, facts in zip(self.cap.calls, told, strict=True):
            for name in (
                "step",
                "layer",
                "kind",
                "heads",
                "queries",
                "head_dim",
                "dtype",
                "scale",
                "score",
                "mask",
                "prompt",
            ):
                self.assertEqual(call[name], facts[name], name)

    def test_tables_of_other_libraries(self) -> None:
        """pandas and pyarrow are given the rows; stand-ins, for not every environment has the libraries."""
        pandas = SimpleNamespace(DataFrame=lambda rows: rows)
        arrow = SimpleNamespace(Table=SimpleNamespace(from_pylist=lambda rows: rows))
        with mock.patch.dict(sys.modules, {"pandas": pandas, "pyarrow": arrow}):
            for rows in (self.cap.calls.to_pandas(), self.cap.calls.to_arrow()):
                self.assertEqual([row["layer"] for row in rows], [0, 1, 2, 3])
                self.assertEqual((rows[0]["branches"], rows[0]["grid"]), ("cond", GRID))

    def test_a_call_by_its_coordinates(self) -> None:
        self.assertEqual(self.cap[10, 3, "cond"].layer, 3)
        self.assertEqual(self.cap[10, 3].facts, self.cap.call(3).facts)
        self.assertEqual(self.cap[None, 2].layer, 2)
        self.assertEqual([call.layer for call in self.cap], [0, 1, 2, 3])
        self.assertEqual([call.layer for call in self.cap.select(layers=range(1, 3))], [1, 2])
        for key, words in (
            ((10, 7), "has no such call .steps 10; layers 0-3; branches cond"),
            ((10, 3, "uncond"), "branches cond"),
            ((10,), "4 calls are meant"),
            ((1, 2, 3, 4, 5), "expected step, layer, branch, slot"),
        ):
            with self.subTest(key=key), self.assertRaisesRegex(attnscope.Error, words):
                self.cap[key]

    def test_heads_one_by_one(self) -> None:
        def places(**words: object) -> list[tuple[int, int, int]]:
            return [(head.call.layer, head.batch, head.number) for head in self.cap.heads(**words)]

        self.assertEqual(places(layers=1, heads="2-"), [(1, 0, 2), (1, 0, 3)])
        two = [(0, 0, 1), (2, 0, 3)]
        self.assertEqual(places(pick=[(2, 3), "0.1"]), two)
        self.assertEqual(places(pick="10:2.3,0.1"), two)
        self.assertEqual(places(pick=[(10, 2, 3), (0, 1)], layers="1-"), two[1:])
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder) / "picked.json"
            rows = [{"layer": layer, "head": head} for layer, _, head in two]
            listed.write_text(json.dumps({"format": "attnscope-heads/1", "heads": rows}))
            self.assertEqual(places(from_=listed), two)
            stats = self.cap.stats(from_=listed, sample=4)
            self.assertEqual([(int(row["layer"]), 0, int(row["head"])) for row in stats], two)
        with self.assertWarnsRegex(UserWarning, "pick: 1 of 2 heads are not in this capture: 9.1"):
            self.assertEqual(places(pick="9.1,0.1"), two[:1])
        with self.assertWarnsRegex(UserWarning, "99 does not exist"):
            self.assertEqual([call.layer for call in self.cap.select(layers=[1, 99])], [1])
        for words, message in (
            ({"pick": [3.1]}, "pick: expected"),
            ({"pick": "9.1"}, "not in this capture"),
            ({"from_": "nowhere.json"}, "nowhere.json"),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnscope.Error, message):
                places(**words)

    def test_words_that_mean_nothing(self) -> None:
        for make, words, code in (
            (lambda: attnscope.open(SAMPLE / "nowhere"), "nowhere", "file"),
            (
                lambda: attnscope.open(SAMPLE, gird=(7, 12, 12)),
                "unknown option gird; did you mean grid",
                "usage",
            ),
            (lambda: attnscope.open(SAMPLE, grid=(7, 12, 13)), "has 1108 tokens", "usage"),
            (lambda: attnscope.open(), "a CAPTURE is needed", "usage"),
            (lambda: self.cap.stats(layer=3), "unknown option layer; did you mean layers", "usage"),
            (lambda: self.cap.stats(layers="9"), "layers=9", "usage"),
            (lambda: self.cap[10, 0].head(4), "heads 0 to 3", "usage"),
            (lambda: self.cap[10, 0].head(0).query(9, 0, 0), "query=9,0,0", "usage"),
            (lambda: self.cap[10, 0].head(0).mask("spatail:frames=1"), "spatail", "usage"),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(attnscope.Error, words) as raised:
                make()
            self.assertEqual(raised.exception.code, code)
            self.assertNotIn("\n", str(raised.exception))

    def test_a_capture_that_does_not_agree_with_itself(self) -> None:
        """As every command warns."""
        from safetensors import safe_open
        from safetensors.torch import save_file

        with tempfile.TemporaryDirectory() as folder:
            with safe_open(str(SAMPLE / "step10_layer00.safetensors"), "pt") as f:
                tensors, facts = {name: f.get_tensor(name) for name in f.keys()}, f.metadata()
            tensors["k"] = tensors["k"] * 2
            save_file(tensors, f"{folder}/call.safetensors", facts)
            with self.assertWarnsRegex(UserWarning, "outputs|output rows"):
                attnscope.open(f"{folder}/call.safetensors")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                attnscope.open(f"{folder}/call.safetensors", check=False)


    def test_a_capture_that_does_not_say_what_was_applied_to_q_and_k(self) -> None:
        from safetensors.numpy import save_file

        with tempfile.TemporaryDirectory() as folder:
            q = np.random.default_rng(1).standard_normal((1, 2, 5, 8), np.float32)
            save_file({"q": q, "k": q}, f"{folder}/call.safetensors")
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                opened = attnscope.open(f"{folder}/call.safetensors")
                opened[None, None].head(0).weights()
            self.assertEqual(len(told), 1)
            self.assertIn("1 of 1 calls do not record what was applied to q and k (q_state)", str(told[0].message))
            self.assertIn('as_={"q_state": "final"} says', str(told[0].message))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                attnscope.open(f"{folder}/call.safetensors", as_={"q_state": "final"})


class Maps(unittest.TestCase):
    LAYER, HEAD = 2, 3

    @classmethod
    def setUpClass(cls) -> None:
        cls.head = attnscope.open(SAMPLE)[10, cls.LAYER].head(cls.HEAD)
        one = sample_head(cls.LAYER, cls.HEAD)
        cls.s = logits(one["q"], one["k"])
        cls.p, cls.lse = softmax(cls.s)
        cls.o = cls.p @ one["v"]

    def test_tiles(self) -> None:
        check_weights(self.head.weights(), self.p, 1024)
        check_weights(self.head.weights(slice(0, 256)), self.p[:256], 1024)
        np.testing.assert_allclose(
            self.head.logits([7, 3], slice(0, 16)), self.s[[7, 3], :16], atol=2e-5, rtol=2e-5
        )
        np.testing.assert_allclose(self.head.lse(), self.lse, atol=2e-5, rtol=2e-6)
        np.testing.assert_allclose(self.head.output([900]), self.o[[900]], atol=1e-4)

    def test_the_bits_of_an_export(self) -> None:
        import h5py

        with tempfile.TemporaryDirectory() as folder:
            made = attnscope.export(
                SAMPLE, out=Path(folder) / "w.h5", layers=self.LAYER, heads=self.HEAD, dtype="f32", quiet=True
            )
            with h5py.File(made) as f:
                (call,) = f["calls"].values()
                np.testing.assert_array_equal(self.head.weights(), call["weights"][0, 0])

    def test_a_query(self) -> None:
        row = TEXT + 144 * 3 + 12 * 5 + 6
        volume = self.head.query(3, 5, 6)
        self.assertEqual((volume.shape, volume.dtype), (GRID, np.float32))
        check_weights(np.asarray(volume).reshape(-1), self.p[row, TEXT:], 1024)
        check_weights(volume.text, self.p[row, :TEXT], 1024)
        np.testing.assert_array_equal(self.head.query(index=row), volume)
        self.assertEqual((volume * 2).text.size, 0)

    def test_a_pixel(self) -> None:
        volume = self.head.query(3, 5, 6)
        pixel = {"frame": 3, "x": 13, "y": 10, "cell": (1, 2, 2)}
        np.testing.assert_array_equal(self.head.query(at=pixel), volume)
        np.testing.assert_array_equal(self.head.query(at="frame=3,x=13,y=10,cell=1x2x2"), volume)
        with self.assertRaisesRegex(attnscope.Error, "is not known; give preset=NAME"):
            self.head.query(at={"frame": 3, "x": 13, "y": 10})
        with self.assertRaisesRegex(attnscope.Error, "expected frame=F,x=X,y=Y"):
            self.head.query(at={"frame": 3, "column": 13})

    def test_a_query_the_other_way_round(self) -> None:
        key = TEXT + 144 * 3 + 12 * 5 + 6
        volume = self.head.query(3, 5, 6, reverse=True)
        check_weights(np.asarray(volume).reshape(-1), self.p[TEXT:, key], 1024)
        words = self.head.call.tokens[0]
        dog = words.index("red")
        check_weights(
            np.asarray(self.head.query(text_token="red", reverse=True)).reshape(-1), self.p[TEXT:, dog], 1024
        )

    def test_several_and_domains(self) -> None:
        box = [TEXT + 144 * 2 + 12 * y + x for y in (0, 1) for x in (4, 5)]
        volume = self.head.query("2,0:2,4:6")
        check_weights(np.asarray(volume).reshape(-1), self.p[box].mean(0)[TEXT:], 1024)
        video = self.head.query(0, 0, 0, domain="video")
        self.assertAlmostEqual(float(video.sum()), 1.0, places=5)
        with self.assertRaisesRegex(attnscope.Error, "query needs a place"):
            self.head.query()

    def test_pooled(self) -> None:
        largest, mean = self.head.pooled(100)
        self.assertEqual((largest.shape, largest.dtype, mean.dtype), ((11, 11), np.float32, np.float32))
        for r in range(11):
            for c in range(11):
                cell = self.p[100 * r : 100 * r + 100, 100 * c : 100 * c + 100]
                self.assertAlmostEqual(largest[r, c] / cell.max(), 1, places=3)
                self.assertAlmostEqual(mean[r, c] / cell.mean(), 1, places=3)
        with self.assertRaisesRegex(attnscope.Error, "block 0"):
            self.head.pooled(0)

    def test_lab(self) -> None:
        found = self.head.lab(["sla:keep=0.2/0.4,block=16", "dense", "sla:keep=0.2,block=16"], exact=True)
        self.assertEqual([edit.edit for edit in found], ["sla:keep=0.2,block=16", "sla:keep=0.4,block=16", "none"])
        for edit, mask in zip(found, self.head.masks([edit.edit for edit in found], exact=True), strict=True):
            for name in ("density", "recall", "recall_p05", "output_error", "output_error_p95", "sampled_rows"):
                self.assertEqual(getattr(edit, name), getattr(mask, name), (edit.edit, name))
            self.assertEqual(edit.entry_oracle_recall, mask.oracle_recall)
        self.assertLess(found[0].tiles, found[1].tiles)
        self.assertGreaterEqual(found[0].block_oracle_recall or 0, found[0].recall or 1)
        self.assertIsNone(found[2].ties)
        self.assertEqual(found[0].as_dict()["edit"], found[0].edit)
        with self.assertRaisesRegex(attnscope.Error, "did you mean sla"):
            self.head.lab("slaa")
        with self.assertRaisesRegex(attnscope.Error, "FROM..TO:COUNT"):
            self.head.lab("sla:keep=0.1..0.2")

    def test_a_mask(self) -> None:
        frame = np.where(np.arange(1024) < TEXT, -1, (np.arange(1024) - TEXT) // 144)
        kept = (frame[:, None] == frame) | (frame[:, None] < 0) | (frame < 0)
        quality = self.head.mask("spatial:frames=0", exact=True)
        self.assertAlmostEqual(quality.density, kept.mean(), places=9)
        self.assertAlmostEqual(quality.recall, (self.p * kept).sum(1).mean(), places=5)
        best = [np.sort(row)[::-1][:n].sum() for row, n in zip(self.p, kept.sum(1), strict=True)]
        self.assertAlmostEqual(quality.oracle_recall, np.mean(best), places=5)
        one = sample_head(self.LAYER, self.HEAD)
        masked = softmax(np.where(kept, self.s, -np.inf))[0] @ one["v"]
        self.assertAlmostEqual(
            quality.output_error, np.linalg.norm(masked - self.o) / np.linalg.norm(self.o), places=4
        )
        both = self.head.masks(["spatial:frames=0", "causal"], exact=True)
        self.assertEqual(both[0], quality)
        self.assertEqual(both[1].mask, "causal")

    def test_pictures(self) -> None:
        from io import BytesIO

        from PIL import Image

        picture = np.asarray(Image.open(BytesIO(self.head._repr_png_())))
        self.assertEqual(picture.shape, (512, 512, 3))
        self.assertGreater(len(np.unique(picture.reshape(-1, 3), axis=0)), 30)
        strip = Image.open(BytesIO(self.head.query(3, 5, 6)._repr_png_()))
        self.assertEqual(strip.size[0] // strip.size[1], (7 * 13 - 1) // 12)

    def test_arrays_have_all_that_captures_have(self) -> None:
        one = {name: value.astype(np.float32) for name, value in sample_head(self.LAYER, self.HEAD).items()}
        head = attnscope.call(one["q"], one["k"], one["v"], grid=GRID, text="16@start").head(0)
        for mine, theirs in (
            (head.query(3, 5, 6), self.head.query(3, 5, 6)),
            (head.query(3, 5, 6, reverse=True), self.head.query(3, 5, 6, reverse=True)),
            (head.pooled(64)[1], self.head.pooled(64)[1]),
            (head.output([3]), self.head.output([3])),
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-7)
        self.assertAlmostEqual(head.stats()["entropy"], self.head.stats()["entropy"], places=5)


class Numbers(unittest.TestCase):
    def test_stats_are_the_commands(self) -> None:
        cap = attnscope.open(SAMPLE)
        told = json.loads(
            attnscope.command("stats", SAMPLE, layers="1-2", sample=100, json=True, quiet=True)
        )["heads"]
        table = cap.stats(layers="1-2", sample=100)
        self.assertEqual(len(table), 8)
        for head, line in zip(told, table, strict=True):
            self.assertEqual(
                (head["layer"], head["head"], head["class"]), (line["layer"], line["head"], line["class"])
            )
            for name in ("entropy", "text_mass", "same_frame_mass", "keys_for_90", "entropy_stderr"):
                self.assertEqual(head[name], line[name], name)

    def test_an_entropy(self) -> None:
        one = sample_head(1, 0)
        p = softmax(logits(one["q"], one["k"]))[0]
        line = attnscope.open(SAMPLE)[10, 1].head(0).stats()
        self.assertAlmostEqual(line["entropy"], -(p * np.log(p)).sum(1).mean(), places=4)

    def test_records_have_arrays(self) -> None:
        cap = attnscope.open(SAMPLE)
        (record,) = cap.records(layers=2, heads=1, arrays=["entropy_rows", "frame_frame"])
        self.assertEqual(record["arrays"]["entropy_rows"].shape, (1024,))
        self.assertEqual(record["arrays"]["frame_frame"].ndim, 2)
        self.assertAlmostEqual(record["arrays"]["entropy_rows"].mean(), record["entropy"], places=9)
        self.assertEqual(sum(len(call.stats()) for call in cap.select(layers="0-1")), 8)
        order = cap.stats(sort="entropy")["entropy"]
        np.testing.assert_array_equal(order, np.sort(order)[::-1])


class Known(unittest.TestCase):
    """A fact that nobody recorded is None, and chosen as 0; one that as_ tells is a fact."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "u.npz")
        q, k = np.random.default_rng(0).standard_normal((2, 1, 2, 12, 8)).astype("f4")
        np.savez(self.path, q=q, k=k)

    def open(self, **options: object) -> attnscope.Capture:
        return attnscope.open(self.path, grid=(1, 3, 4), text="none", **options)

    def test_what_nobody_recorded_is_none(self) -> None:
        cap = self.open()
        call = cap[0, 0, "all"]
        for name in ("step", "layer", "branches", "model", "prompt"):
            self.assertIsNone(getattr(call, name), name)
        self.assertIsNone(call.head(1).branch)
        for text in (repr(call), repr(call.head(1)), repr(cap.calls)):
            self.assertNotIn("None", text)
            self.assertNotIn("step 0", text)
        with self.assertRaisesRegex(attnscope.Error, "no such call .steps 0; layers 0; branches all"):
            cap[1]
        record = cap.records(heads="0")[0]
        self.assertEqual([record[name] for name in ("step", "layer", "branch")], [None] * 3)
        line = cap.stats(heads="0")[0]
        self.assertEqual((line["step"], line["layer"], line["branch"]), (-1, -1, ""))

    def test_arrays_have_no_place(self) -> None:
        q = np.random.default_rng(0).standard_normal((2, 12, 8)).astype("f4")
        call = attnscope.call(q, q)
        self.assertEqual((call.step, call.layer, call.branches), (None, None, None))

    def test_exports_say_it_too(self) -> None:
        out = self.path + ".h5"
        attnscope.export(self.path, out=out, grid=(1, 3, 4), text="none", dtype="f32", quiet=True)
        stored = attnscope.open(out)[0, 0, "all"][1]
        self.assertEqual([stored.facts[name] for name in ("step", "layer", "branch")], [None] * 3)
        self.assertNotIn("None", repr(stored))
        out = self.path + ".told.h5"
        attnscope.export(
            self.path, out=out, grid=(1, 3, 4), text="none", as_={"layer": 17, "branch": "cond"}, quiet=True
        )
        facts = attnscope.open(out).heads[0]
        self.assertEqual((facts["step"], facts["layer"], facts["branch"]), (None, 17, "cond"))

    def test_told_facts(self) -> None:
        call = self.open(as_={"layer": 17, "step": 25, "branch": ["cond"], "model": "m"})[25, 17]
        self.assertEqual((call.step, call.layer, call.branches, call.model), (25, 17, ["cond"], "m"))
        self.assertIsNone(call.facts["minus"])
        minus = {"slot": "attn.2", "factor": 0.5}
        self.assertEqual(self.open(as_={"minus": minus}).call(0).facts["minus"], minus)
        with self.assertRaisesRegex(attnscope.Error, "as_ layr=17: no such fact, did you mean layer"):
            self.open(as_={"layr": 17})
        with self.assertRaisesRegex(attnscope.Error, "expected a whole number"):
            self.open(as_={"layer": -1})


class Beside(unittest.TestCase):
    """Values and arrays beside q and k in somebody's file."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "dump.npz"
        rng = np.random.default_rng(3)
        self.q, self.k = (rng.standard_normal((1, 2, 24, 16)).astype(np.float32) for _ in "qk")

    def save(self, **beside: object) -> Path:
        np.savez(self.path, q=self.q, k=self.k, **beside)
        return self.path

    def test_what_shapes_maps(self) -> None:
        path = self.save(head_mask=np.float32([2, 4]))
        with self.assertRaisesRegex(attnscope.Error, "head_mask: weights of heads .* ignore head_mask") as raised:
            attnscope.open(path)
        self.assertEqual(raised.exception.code, "file")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cap = attnscope.open(path, ignore=["head_mask"], as_={"q_state": "final"})
        expected, _ = softmax(logits(self.q[0, 1], self.k[0, 1]))
        check_weights(cap.call(0).head(1).weights(), expected, 24)

    def test_what_is_not_understood(self) -> None:
        path = self.save(freqs=np.zeros((3, 3)))
        with self.assertWarnsRegex(UserWarning, "not understood: 1 name: tensor freqs"):
            attnscope.open(path)

    def test_a_value_that_cannot_be_a_fact(self) -> None:
        path = self.save(scale=np.float32([0.5, 0.25, 1]))
        with self.assertRaisesRegex(attnscope.Error, r"scale: expected a number, or one for each .* \(got 3 numbers\)"):
            attnscope.open(path)
        self.assertEqual(attnscope.open(path, scale=0.5).call(0).facts["scale"], 0.5)
        path = self.save(scale=np.float32([0.5, 0.25]))
        self.assertEqual(attnscope.open(path).call(0).facts["scale"], [0.5, 0.25])


if __name__ == "__main__":
    unittest.main()
