"""Maps as lazy arrays of xarray."""

import pickle
import sys
import unittest
from importlib.util import find_spec
from unittest import mock

import numpy as np

import attnscope
from reference import GRID, SAMPLE, TEXT, random_heads


class Absent(unittest.TestCase):
    def test_packages_that_are_not_here(self) -> None:
        head = attnscope.open(SAMPLE)[10, 2].head(1)
        for package, use in (("xarray", head.to_xarray), ("zarr", head.zarr)):
            with mock.patch.dict(sys.modules, {package: None}), self.assertRaises(ImportError) as raised:
                use()
            self.assertRegex(str(raised.exception), f"needs {package}.*pip install {package}")
            self.assertEqual(raised.exception.code, "unavailable")
            self.assertNotIn("\n", str(raised.exception))
        old = mock.Mock(__version__="2.18.0")
        with mock.patch.dict(sys.modules, {"zarr": old}), self.assertRaisesRegex(ImportError, "zarr 3 or newer .got 2.18.0"):
            head.zarr()


@unittest.skipUnless(find_spec("xarray"), "no xarray")
class Labelled(unittest.TestCase):
    def setUp(self) -> None:
        self.cap = attnscope.open(SAMPLE)
        self.head = self.cap[10, 2].head(1)
        self.array = self.head.to_xarray()

    def computed(self) -> "mock._patch[mock.Mock]":
        """Counts what is computed, with its rows and columns."""
        return mock.patch.object(attnscope.Head, "weights", side_effect=self.head.weights)

    def test_only_what_is_read_is_computed(self) -> None:
        with self.computed() as weights:
            part = self.head.to_xarray()[100:300, ::7].isel(query=[5, 3])
            repr(part), part.query_t.values
            self.assertEqual(weights.call_count, 0)
            values = part.values
            ((rows, cols),) = [call.args for call in weights.mock_calls]
            self.assertEqual((len(rows), cols), (2, slice(0, 1024, 7)))
        np.testing.assert_array_equal(values, self.head[[105, 103], ::7])
        np.testing.assert_array_equal(self.array.values, self.head.weights())
        self.assertEqual(self.array.dtype, np.float32)

    def test_tokens_by_what_they_are(self) -> None:
        a = self.array
        self.assertEqual(a.dims, ("query", "key"))
        whole = self.head.weights()
        t, y, x = (axis.ravel() for axis in np.indices(GRID))
        np.testing.assert_array_equal(a.query_t.values, np.r_[[-1] * TEXT, t])
        np.testing.assert_array_equal(a.key_x.values, np.r_[[-1] * TEXT, x])
        frame = whole[TEXT:][t == 3]
        np.testing.assert_array_equal(a.sel(query_t=3).values, frame)
        np.testing.assert_array_equal(
            a.sel(query_t=3, query_y=slice(2, 4), key_t=[1, 5]).values,
            whole[TEXT:][(t == 3) & (y >= 2) & (y <= 4)][:, TEXT:][:, (t == 1) | (t == 5)],
        )
        one = a.sel(query_t=3, query_y=5, query_x=6)
        self.assertEqual(one.dims, ("key",))
        np.testing.assert_array_equal(one.sel(key_t=2).values.reshape(GRID[1:]), self.head.query(3, 5, 6)[2])
        np.testing.assert_array_equal(a.sel(query=17).values, whole[17])
        np.testing.assert_array_equal(a.sel(query_t=3)[0:7].sel(query_x=2).values, frame[2:3])
        self.assertEqual(a.sel(query_t=slice(None, 2)).sizes["query"], 3 * 144)  # the text has no frame
        np.testing.assert_array_equal(a.sel(key_text=4).values[:, 0], whole[:, 4])
        for labels in ({"query_t": 7}, {"query_t": -1}, {"query_t": 3, "query_y": 12}, {"key_word": "no such word"}):
            with self.subTest(labels=labels), self.assertRaises(KeyError):
                a.sel(labels)
        with self.assertRaisesRegex(TypeError, "exactly"):
            a.sel(query_t=3, method="nearest")

    def test_words(self) -> None:
        words = self.head.call.tokens[0]
        word = next(w for w in words if words.count(w) == 1)
        self.assertEqual(self.array.key_word.values.tolist(), [*words, *[""] * (1024 - len(words))])
        got = self.array.sel(key_word=word)
        np.testing.assert_array_equal(got.values[:, 0], self.head[:, words.index(word)])

    def test_what_xarray_does_with_it(self) -> None:
        a = self.array
        total = a.isel(query=slice(0, 64)).groupby("key_t").sum()
        self.assertAlmostEqual(float(total.sum()), 64, places=3)
        np.testing.assert_allclose((a[:4] + a[:4]).values, 2 * self.head[:4], rtol=0)
        self.assertEqual((int(a.step), int(a.layer), str(a.branch.values), int(a["head"])), (10, 2, "cond", 1))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(a)).sel(query_t=6).values, a.sel(query_t=6).values)
        with mock.patch("attnscope.labelled.free_memory", lambda: 1000), self.assertRaises(MemoryError):
            self.cap.to_xarray().values
        if find_spec("dask"):
            lazy = a.chunk(query=256)
            np.testing.assert_allclose(lazy.sum("key").compute(), 1, rtol=1e-5)

    def test_maps_of_a_capture(self) -> None:
        a = self.cap.to_xarray(layers="1-3", heads="0,2")
        self.assertEqual(a.dims, ("step", "layer", "branch", "head", "query", "key"))
        self.assertEqual(a.shape, (1, 3, 1, 2, 1024, 1024))
        one = a.sel(step=10, layer=3, branch="cond", head=2)
        np.testing.assert_array_equal(one[7:9].values, self.cap[10, 3].head(2)[7:9])
        part = a.sel(layer=[3, 1], query_t=3, query_y=5, query_x=6).isel(key=slice(0, 9), step=0, branch=0)
        self.assertEqual(part.dims, ("layer", "head", "key"))
        for i, layer in enumerate((3, 1)):
            for j, head in enumerate((0, 2)):
                np.testing.assert_array_equal(
                    part.values[i, j], self.cap[10, layer].head(head)[TEXT + 3 * 144 + 5 * 12 + 6, :9]
                )

    def test_maps_that_are_no_grid(self) -> None:
        a = self.cap.to_xarray(pick=[(1, 3), (2, 0)])
        self.assertEqual((a.dims, a.shape), (("map", "query", "key"), (2, 1024, 1024)))
        self.assertEqual((a.layer.values.tolist(), a["head"].values.tolist()), ([1, 2], [3, 0]))
        np.testing.assert_array_equal(a[1, 5].values, self.cap[10, 2].head(0)[5])

    def test_maps_without_places(self) -> None:
        q, k = random_heads((20, 8)).astype(np.float32), random_heads((30, 8)).astype(np.float32)
        a = attnscope.call(q, k).head(0).to_xarray()
        self.assertEqual(set(a.coords), {"query", "key", "step", "layer", "branch", "head"})
        np.testing.assert_array_equal(a.values, attnscope.weights(q, k))


if __name__ == "__main__":
    unittest.main()
