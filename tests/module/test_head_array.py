"""A head as an array: its indices beside NumPy's, what other libraries make of it, and how it is found."""

import copy
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import numpy as np
import torch

import attnscope
from reference import SAMPLE, check_weights, logits, random_heads, sample_head, softmax


def random_part(rng: np.random.Generator, count: int) -> object:
    """An index of an axis, of any kind that NumPy has."""
    some = tuple(rng.integers(1, 4, size=rng.integers(1, 3)))
    ends = [None if rng.random() < 0.3 else int(rng.integers(-count - 3, count + 3)) for _ in range(2)]
    return (
        lambda: int(rng.integers(-count, count)),
        lambda: slice(*ends, (None, 1, 2, -1, -3, 3)[rng.integers(0, 6)]),
        lambda: rng.integers(-count, count, size=rng.integers(0, 4)).tolist(),
        lambda: rng.integers(-count, count, size=some),
        lambda: rng.random(count) < 0.5,
        lambda: (rng.random(count) < 0.5).tolist(),
        lambda: np.int32(rng.integers(-count, count)),
        lambda: np.array(rng.integers(0, count)),
        lambda: rng.integers(0, count, size=3).astype(np.uint64),
    )[rng.integers(0, 9)]()


class Indices(unittest.TestCase):
    def setUp(self) -> None:
        self.head = attnscope.open(SAMPLE)[10, 2].head(1)
        self.whole = self.head.weights()

    def same(self, got: object, want: object) -> None:
        self.assertIs(type(got), type(want))
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        np.testing.assert_array_equal(got, want)

    def test_what_documents_show(self) -> None:
        q, k = (sample_head(2, 1)[name] for name in "qk")
        check_weights(self.head[3:5, :226], softmax(logits(q, k))[0][3:5, :226], 1024)
        for key in (
            (slice(3, 5), slice(None, 226)),
            (-1, slice(None, None, -2)),
            ([5, 5, 1],),
            ([5, 1], [7, -1]),
            (7, 9),
            (..., 3),
            (None, 4),
            (np.arange(1024) % 100 == 0, slice(0, 9)),
        ):
            with self.subTest(key=key):
                self.same(self.head[key], self.whole[key])
        self.same(self.head[self.whole > 0.3], self.whole[self.whole > 0.3])
        rows, cols = [900, 3], [5, 4, 1000]
        self.same(self.head[np.ix_(rows, cols)], self.head.weights(rows, cols))
        self.same(self.head[5:5], self.whole[5:5])

    def test_indices_of_every_kind_mean_what_they_mean_in_numpy(self) -> None:
        rng = np.random.default_rng(5)
        q, k = random_heads((13, 8), 6).astype(np.float32), random_heads((9, 8), 7).astype(np.float32)
        head = attnscope.call(q, k).head(0)
        whole, errors = head.weights(), 0
        for number in range(600):
            parts = [random_part(rng, count) for count in (13, 9)][: rng.integers(0, 3)]
            for _ in range(rng.integers(0, 3)):
                parts.insert(rng.integers(0, len(parts) + 1), None if rng.random() < 0.6 else Ellipsis)
            if number % 20 == 0:
                parts = [rng.random((13, 9)) < 0.3]
            key = parts[0] if len(parts) == 1 else tuple(parts)
            with self.subTest(key=repr(key)), mock.patch("attnscope.indexing._MOST_ENTRIES", (1 << 24, 18)[number % 2]):
                try:
                    want = whole[key]
                except IndexError:
                    errors += 1
                    with self.assertRaises(IndexError):
                        head[key]
                else:
                    self.same(head[key], want)
        self.assertGreater(errors, 20)

    def test_what_is_no_index(self) -> None:
        for key, kind, words in (
            (1024, IndexError, "index 1024 is out of bounds for axis 0 with size 1024"),
            ((0, [3, -1025]), IndexError, "index -1025 is out of bounds for axis 1 with size 1024"),
            ((1, 2, 3), IndexError, "too many indices: a head has 2 axes, and 3 were indexed"),
            (1.5, IndexError, "whole numbers or bool .got float of float64"),
            ("cond", IndexError, "got 'cond'"),
            (True, IndexError, "got bool of bool"),
            (np.ones(3, bool), IndexError, r"axis 0 has its shape \(1024,\) \(got \(3,\)\)"),
            (np.ones((3, 3), bool), IndexError, r"has its shape \(1024, 1024\)"),
            (([1, 2], [1, 2, 3]), IndexError, "in pairs.*head.weights.rows, cols. takes each row"),
            ((..., ...), IndexError, "one ellipsis"),
            ([[1, 2], [3]], IndexError, "indexed by numbers"),
            (slice(0, 1.5), TypeError, "slice indices"),
            (slice(0, 5, 0), ValueError, "zero"),
            (object(), IndexError, "got object of object"),
        ):
            with self.subTest(key=repr(key)), self.assertRaisesRegex(kind, words) as raised:
                self.head[key]
            self.assertIsInstance(raised.exception, attnscope.Error)
            self.assertNotIn("\n", str(raised.exception))

    def test_rows_one_by_one(self) -> None:
        rows = iter(self.head)
        for row in range(70):
            np.testing.assert_array_equal(next(rows), self.whole[row])
        self.assertEqual(sum(1 for _ in rows), 1024 - 70)


class Arrays(unittest.TestCase):
    def setUp(self) -> None:
        self.cap = attnscope.open(SAMPLE)
        self.head = self.cap[10, 2].head(1)

    def test_as_arrays_of_other_libraries(self) -> None:
        whole = self.head.weights()
        self.assertEqual((self.head.shape, self.head.ndim, self.head.size), (whole.shape, 2, whole.size))
        self.assertEqual((self.head.dtype, len(self.head), self.head.nbytes), (whole.dtype, 1024, whole.nbytes))
        np.testing.assert_array_equal(np.asarray(self.head), whole)
        self.assertEqual(np.asarray(self.head, np.float64).dtype, np.float64)
        self.assertEqual(float(np.sum(self.head)), float(whole.sum()))
        np.testing.assert_array_equal(np.add(self.head, 1), whole + 1)
        np.testing.assert_array_equal(torch.as_tensor(np.asarray(self.head)).numpy(), whole)
        np.testing.assert_array_equal(torch.from_dlpack(self.head).numpy(), whole)
        with self.assertRaisesRegex(ValueError, "without a copy"):
            np.array(self.head, copy=False)

    def test_a_map_that_memory_does_not_hold(self) -> None:
        with mock.patch("attnscope.heads.free_memory", lambda: 1_000_000):
            with self.assertRaisesRegex(MemoryError, r"1024 × 1024 takes 4,194,304 .* 244 rows would fit \(head\[:244\]\)"):
                np.asarray(self.head)
            self.assertEqual(self.head[:244].shape, (244, 1024))

    @unittest.skipUnless(find_spec("dask"), "no dask")
    def test_dask(self) -> None:
        import dask
        import dask.array as da

        empty = np.empty((0, 0), np.float32)
        with mock.patch.object(attnscope.Head, "weights", return_value=empty) as weights:
            lazy = da.from_array(self.head, chunks=(256, 512))
            again = da.from_array(self.cap[10, 2].head(1), chunks=(256, 512))
        for call in weights.mock_calls:  # if any, then of no rows
            self.assertEqual(len(range(1024)[call.args[0]]), 0)
        self.assertEqual((lazy.shape, lazy.dtype, lazy.name), ((1024, 1024), np.float32, again.name))
        self.assertNotEqual(lazy.name, da.from_array(self.cap[10, 2].head(2), chunks=(256, 512)).name)
        whole = self.head.weights()
        for scheduler in ("threads", "sync", "processes"):
            with self.subTest(scheduler=scheduler), dask.config.set(scheduler=scheduler):
                np.testing.assert_array_equal(lazy[100:300, ::7].compute(), whole[100:300, ::7])
        np.testing.assert_allclose(lazy.sum(1).compute(), 1, rtol=1e-5)
        q = random_heads((40, 8)).astype(np.float32)
        one, two = (da.from_array(attnscope.call(q, q).head(0)) for _ in range(2))
        self.assertNotEqual(one.name, two.name)  # arrays may be written to
        np.testing.assert_array_equal(one.compute(), attnscope.weights(q, q))

    def test_reductions_of_a_volume_are_numbers(self) -> None:
        volume = self.head.query(3, 5, 6)
        for reduce in (np.sum, np.max, np.mean, np.std, np.median, np.argmax, np.linalg.norm):
            with self.subTest(reduce=reduce.__name__):
                number = reduce(volume)
                self.assertIsInstance(number, np.generic)
                self.assertEqual(number, reduce(np.asarray(volume)))
        self.assertIsInstance(volume.sum(), np.float32)
        self.assertIsInstance(volume.sum(0), attnscope.Volume)
        self.assertIsInstance(volume * 2, attnscope.Volume)
        self.assertEqual(volume.text.shape, (16,))

    def test_a_token_as_a_tuple(self) -> None:
        one = self.head.query(3, 5, 6)
        for place in ((3, 5, 6), [3, 5, 6], np.array([3, 5, 6])):
            np.testing.assert_array_equal(self.head.query(place), one)
        both = self.head.query((3, 5, 6), (2, 0, 0))
        np.testing.assert_array_equal(both, self.head.query("3,5,6", "2,0,0"))
        self.assertFalse(np.array_equal(both, one))
        with self.assertRaisesRegex(attnscope.Error, "^query=9,0,0"):
            self.head.query((9, 0, 0))
        with self.assertRaisesRegex(attnscope.Error, "text_token") as raised:
            self.head.query(text_token="nowhere")
        self.assertNotIn("--", str(raised.exception))


class Places(unittest.TestCase):
    def setUp(self) -> None:
        self.cap = attnscope.open(SAMPLE)

    def test_calls_from_the_end(self) -> None:
        def place(call: attnscope.Call) -> tuple[int, int]:
            return call.step, call.layer

        self.assertEqual(place(self.cap[-1]), (10, 3))
        self.assertEqual(place(self.cap[-4]), (10, 0))
        self.assertEqual(place(self.cap[-1, 1]), (10, 1))
        self.assertEqual(place(self.cap[-1, -2, "cond"]), (10, 2))
        self.assertEqual(place(self.cap[np.int64(10), np.int32(3)]), (10, 3))
        self.assertEqual(self.cap[10, 2].head(-1).number, 3)
        with tempfile.TemporaryDirectory() as folder:
            one = Path(folder) / "one"
            attnscope.command("convert", SAMPLE, layers=2, out=one, quiet=True)
            self.assertEqual(place(attnscope.open(one)["cond"]), (10, 2))
        for key, kind, words in (
            (-5, IndexError, "call -5: .* has calls 0 to 3"),
            ((-2, 0), IndexError, "-2: .* has 1 steps .10."),
            ((10, -5), IndexError, "-5: .* has 4 layers .0-3."),
            ("uncond", KeyError, r"cap\['uncond'\]: .* has no such call"),
            ((10, 9), KeyError, r"cap\[10, 9\]: .* has no such call .steps 10; layers 0-3; branches cond"),
            ("cond", ValueError, r"cap\['cond'\]: 4 calls are meant"),
            (slice(0, 2), TypeError, "expected a step, a layer"),
            (1.0, TypeError, "expected a step"),
            (True, TypeError, "expected a step"),
        ):
            with self.subTest(key=key), self.assertRaisesRegex(kind, words) as raised:
                self.cap[key]
            self.assertIsInstance(raised.exception, attnscope.Error)
            self.assertFalse(str(raised.exception).startswith("'"))
        for number, kind in ((4, IndexError), (-5, IndexError), ("1", TypeError), (1.0, TypeError), (True, TypeError)):
            with self.subTest(head=number), self.assertRaises(kind):
                self.cap[10, 0].head(number)

    def test_with(self) -> None:
        with attnscope.open(SAMPLE) as cap:
            head = cap[10, 0].head(0)
            self.assertEqual(len(cap), 4)
        for use in (lambda: cap[10, 0], lambda: cap.stats(sample=2), lambda: cap.heads(), lambda: next(iter(cap))):
            with self.assertRaisesRegex(ValueError, "moving-shapes: is closed"):
                use()
        cap.close()
        self.assertEqual(head[0].shape, (1024,))
        with tempfile.TemporaryDirectory() as folder:
            made = attnscope.export(SAMPLE, out=f"{folder}/w.h5", layers=0, heads=0, quiet=True)
            with attnscope.open(made, kind="export") as ex:
                self.assertEqual(ex.head(0).entries(3).shape, (1024,))
            with self.assertRaisesRegex(ValueError, "is closed"):
                ex.head(0)
            for path, kind, words in (
                (made, "capture", "w.h5: is an export, not a capture"),
                (SAMPLE, "export", "is a capture, not an export"),
                (SAMPLE, "metrics", "is a capture, not metrics"),
                (SAMPLE, "maps", "expected .capture., .export. or .metrics."),
            ):
                with self.subTest(kind=kind), self.assertRaisesRegex(attnscope.Error, words):
                    attnscope.open(path, kind=kind)

    def test_what_the_tab_key_finds(self) -> None:
        call, head = self.cap[10, 2], self.cap[10, 2].head(0)
        self.assertLessEqual({"layer", "grid", "prompt", "facts", "head", "stats", "records"}, set(dir(call)))
        self.assertLessEqual({"number", "shape", "weights", "query", "to_xarray", "branch"}, set(dir(head)))
        self.assertLessEqual({"path", "calls", "stats", "heads"}, set(dir(self.cap)))
        self.assertLessEqual({"open", "weights", "probe", "Error"}, set(dir(attnscope)))
        for thing in (call, head, self.cap, attnscope):
            for name in dir(thing):
                getattr(thing, name)
                self.assertTrue(name == "__version__" or not name.startswith("_"), name)
        self.assertFalse({"Any", "importlib", "TYPE_CHECKING", "annotations"} & set(dir(attnscope)))


class Pickles(unittest.TestCase):
    def test_heads_and_captures_elsewhere(self) -> None:
        """Another process, in another folder, with the options that this one had."""
        cap = attnscope.open(os.path.relpath(SAMPLE), threads=1, scale=0.5, check=False)
        head = cap[10, 3].head(2)
        code = (
            "import pickle, sys\ncap, call, head = pickle.load(sys.stdin.buffer)\n"
            "assert len(cap) == 4 and call.layer == 3 and head.call.facts['scale'] == 0.5, head\n"
            "sys.stdout.buffer.write(head.weights(slice(7, 9)).tobytes())"
        )
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [sys.executable, "-c", code], input=pickle.dumps((cap, head.call, head)), capture_output=True, cwd=folder
            )
        self.assertEqual(run.stderr, b"")
        self.assertEqual(run.stdout, head.weights(slice(7, 9)).tobytes())

    def test_here(self) -> None:
        head = attnscope.open(SAMPLE)[10, 3].head(2)
        one, two = (pickle.loads(pickle.dumps(head)) for _ in range(2))
        self.assertIs(one.call._origin[1][0], two.call._origin[1][0])  # the capture was opened once
        self.assertEqual(repr(one), repr(head))
        np.testing.assert_array_equal(copy.deepcopy(head)[3], head[3])

    def test_heads_of_arrays(self) -> None:
        q, k, v = (torch.from_numpy(random_heads((2, 20, 8), seed)).bfloat16() for seed in range(3))
        call = attnscope.call(q, k, v, mask="causal", scale=[0.3, 0.4], threads=1)
        again = pickle.loads(pickle.dumps(call.head(1)))
        np.testing.assert_array_equal(again.weights(), call.head(1).weights())
        np.testing.assert_array_equal(again.output(), call.head(1).output())

    def test_files_of_bare_tensors_elsewhere(self) -> None:
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            self.addCleanup(os.chdir, before)
            os.chdir(folder)
            np.save("q.npy", random_heads((2, 20, 8), 0))
            cap = attnscope.open(q="q.npy", k="q.npy", as_={"q_state": "final"})
            row = cap.call(0).head(1)[3]
            data = pickle.dumps(cap)
            os.chdir(before)
            np.testing.assert_array_equal(pickle.loads(data).call(0).head(1)[3], row)
            self.assertEqual(len(cap.report(sample=4).heads), 2)
            self.assertEqual(len(cap.report(sample=4, as_={"q_state": "final", "layer": 5}).heads), 2)

    def test_a_volume_has_its_text(self) -> None:
        volume = attnscope.open(SAMPLE)[10, 3].head(2).query(3, 5, 6)
        again = pickle.loads(pickle.dumps(volume))
        self.assertIs(type(again), type(volume))
        np.testing.assert_array_equal(again, volume)
        self.assertGreater(again.text.sum(), 0)
        np.testing.assert_array_equal(again.text, volume.text)

    def test_a_capture_that_is_gone(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(SAMPLE, f"{folder}/dump")
            data = pickle.dumps(attnscope.open(f"{folder}/dump")[10, 3].head(2))
        with self.assertRaisesRegex(attnscope.Error, "dump"):
            pickle.loads(data)


if __name__ == "__main__":
    unittest.main()
