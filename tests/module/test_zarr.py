"""Maps as stores of Zarr, as zarr, xarray and dask read them."""

import asyncio
import json
import pickle
import threading
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from unittest import mock

import numpy as np

import attnscope
from reference import SAMPLE, random_heads

LACKING = [name for name in ("zarr", "xarray", "dask") if find_spec(name) is None]


def pooled(weights: np.ndarray, side: int, kind: str) -> np.ndarray:
    """Blocks of side × side in double, fewer at the far edges."""
    rows, cols = (-(-count // side) for count in weights.shape)
    wide = np.full((rows * side, cols * side), np.nan)
    wide[: weights.shape[0], : weights.shape[1]] = weights
    blocks = wide.reshape(rows, side, cols, side)
    return (np.nanmax if kind == "max" else np.nanmean)(blocks, (1, 3))


@unittest.skipIf(LACKING, f"no {', '.join(LACKING)}")
class Stores(unittest.TestCase):
    def setUp(self) -> None:
        q, k = (random_heads((count, 16), count).astype(np.float32) for count in (1500, 2100))
        self.head = attnscope.call(q, k, scale=1.0).head(0)
        self.whole = self.head.weights()
        self.store = self.head.zarr()

    def test_level_0_is_the_map(self) -> None:
        import zarr

        group = zarr.open_group(self.store, mode="r")
        self.assertEqual(sorted(dict(group.members())), ["1", "2", "3", "rows", "tiles"])
        for name, chunks in (("tiles", (512, 512)), ("rows", (64, 4096))):
            self.assertEqual((group[name].shape, group[name].chunks), (self.whole.shape, chunks))
            np.testing.assert_array_equal(group[name][:], self.whole)
            np.testing.assert_array_equal(group[name][700:702, 5:900], self.whole[700:702, 5:900])
        edge = self.store._content("tiles/c/2/4")
        chunk = np.frombuffer(edge, "<f4").reshape(512, 512)
        np.testing.assert_array_equal(chunk[: 1500 - 1024, : 2100 - 2048], self.whole[1024:, 2048:])
        self.assertTrue(np.isnan(chunk[1500 - 1024 :]).all() and np.isnan(chunk[:, 2100 - 2048 :]).all())

    def test_levels_above(self) -> None:
        import zarr

        with mock.patch("attnscope.pyramids._MOST_ENTRIES", 100_000):  # several bands a chunk
            group = zarr.open_group(self.head.zarr(), mode="r")
            for level in (1, 2, 3):
                for kind in ("max", "mean"):
                    got = group[f"{level}/{kind}"][:]
                    self.assertEqual(got.dtype, np.float32)
                    np.testing.assert_allclose(got, pooled(self.whole, 1 << level, kind), rtol=1e-6)
        np.testing.assert_array_equal(group["3/max"][:], self.head.pooled(8)[0])
        self.assertEqual(group["3"].attrs["block"], 8)

    def test_levels_of_blocks_of_64_and_more(self) -> None:
        from attnscope.pyramids import Pyramid

        pyramid = Pyramid(self.head)
        for level in (6, 7, 8):
            for kind in ("max", "mean"):
                rows, cols = pyramid.shape(level)
                got = pyramid.pooled_chunk(level, kind, (0, 0))[:rows, :cols]
                np.testing.assert_allclose(got, pooled(self.whole, 1 << level, kind), rtol=1e-6)

    def test_metadata_of_viewers(self) -> None:
        root = json.loads(self.store._content("zarr.json"))
        members = root["consolidated_metadata"]["metadata"]
        self.assertEqual(set(members), {"tiles", "rows", "1", "2", "3", *(f"{i}/{k}" for i in "123" for k in ("max", "mean"))})
        for scale in root["attributes"]["ome"]["multiscales"]:
            self.assertEqual([axis["name"] for axis in scale["axes"]], members["tiles"]["dimension_names"])
            for level, dataset in enumerate(scale["datasets"]):
                self.assertIn(dataset["path"], members)
                side = 2**level
                self.assertEqual(dataset["coordinateTransformations"][0], {"type": "scale", "scale": [side, side]})
                if level:
                    moved = dataset["coordinateTransformations"][1]["translation"]
                    self.assertEqual(moved, [(side - 1) / 2] * 2)
        below = json.loads(self.store._content("1/zarr.json"))
        self.assertEqual(set(below["consolidated_metadata"]["metadata"]), {"max", "mean"})

    def test_xarray_and_dask(self) -> None:
        import xarray

        data = xarray.open_zarr(self.store)
        self.assertEqual(data.tiles.chunksizes["query"], (512, 512, 476))
        np.testing.assert_array_equal(data.tiles[3:600, 2000:].values, self.whole[3:600, 2000:])
        np.testing.assert_allclose(data.rows.sum("key").values, self.whole.sum(1), rtol=1e-6)
        level = xarray.open_zarr(self.store, group="2")
        np.testing.assert_array_equal(level["max"].values, self.head.pooled(4)[0])
        again = pickle.loads(pickle.dumps(data))
        np.testing.assert_array_equal(again.tiles[:2, :9].values, self.whole[:2, :9])

    def test_coordinates_of_tokens(self) -> None:
        import xarray

        head = attnscope.open(SAMPLE)[10, 2].head(1)
        data = xarray.open_zarr(head.zarr())
        self.assertLessEqual({"query_t", "query_y", "key_x", "key_text"}, set(data.tiles.coords))
        labelled = head.to_xarray()
        np.testing.assert_array_equal(data.query_t.values, labelled.query_t.values)
        np.testing.assert_array_equal(
            data.tiles.where((data.query_t == 3).compute(), drop=True).values, labelled.sel(query_t=3).values
        )

    def test_rows_are_summed_once(self) -> None:
        """Many readers at once: those of the same rows wait, and nobody sums a row again."""
        summed = np.zeros(1500, int)
        call = self.head.call._call
        lock = threading.Lock()

        class Counted:
            def __getattr__(self, name: str) -> object:
                return getattr(call, name)

            def row_norms(self, engine: object, batch: int, head: int, rows: tuple[int, int]) -> np.ndarray:
                with lock:
                    summed[slice(*rows)] += 1
                return call.row_norms(engine, batch, head, rows)

        self.head.call._call = Counted()
        self.addCleanup(setattr, self.head.call, "_call", call)
        store = self.head.zarr()
        keys = [f"tiles/c/{i}/{j}" for i in range(2) for j in range(5)] + [f"rows/c/{i}/0" for i in range(12)]
        with ThreadPoolExecutor(8) as threads:
            chunks = dict(zip(keys, threads.map(store._content, keys), strict=True))
        self.assertEqual(summed[:1024].tolist(), [1] * 1024)
        self.assertEqual(summed[1024:].tolist(), [0] * 476)
        for key, data in chunks.items():
            side, (i, j) = ((512, 512) if "tiles" in key else (64, 4096)), map(int, key.split("/")[2:])
            part = self.whole[i * side[0] : (i + 1) * side[0], j * side[1] : (j + 1) * side[1]]
            got = np.frombuffer(data, "<f4").reshape(side)[: part.shape[0], : part.shape[1]]
            np.testing.assert_array_equal(got, part)

    def test_a_group_a_head(self) -> None:
        import xarray
        import zarr

        cap = attnscope.open(SAMPLE)
        group = zarr.open_group(cap.zarr(layers="1,2", heads="0,3"), mode="r")
        names = [f"step10_layer{layer}_cond_head{head}" for layer in (1, 2) for head in (0, 3)]
        self.assertEqual(sorted(dict(group.members())), names)
        np.testing.assert_array_equal(group[names[3]]["tiles"][5:9, 100:], cap[10, 2].head(3)[5:9, 100:])
        self.assertEqual(group[names[1]].attrs["attnscope"]["head"], 3)
        self.assertEqual(dict(group[names[0]]["1"].members()).keys(), {"max", "mean"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of metadata that are not consolidated
            one = xarray.open_zarr(cap.zarr(layers=2), group=names[2])
        np.testing.assert_array_equal(one.rows[7].values, cap[10, 2].head(0)[7])
        with mock.patch("attnscope.stores._MOST_CONSOLIDATED", 3):
            group = zarr.open_group(cap.zarr(layers=2), mode="r")
            self.assertEqual(len(dict(group.members())), 4)

    def test_other_scores_and_masks(self) -> None:
        import zarr

        q = random_heads((600, 16), 3).astype(np.float32)
        for options in ({"mask": "causal"}, {"score": "sigmoid"}, {"score": "linear:elu1"}, {"softcap": 3, "sinks": 0.5}):
            with self.subTest(**options):
                head = attnscope.call(q, q, **options).head(0)
                group = zarr.open_group(head.zarr(), mode="r")
                np.testing.assert_array_equal(group["tiles"][:], head.weights())
                np.testing.assert_array_equal(group["rows"][100:200], head.weights(slice(100, 200)))

    def test_a_map_of_14_billion_entries(self) -> None:
        import zarr

        q, k = (random_heads((119_056, 8), seed).astype(np.float32) for seed in (8, 9))
        head = attnscope.call(q, k).head(0)
        group = zarr.open_group(head.zarr(), mode="r")
        self.assertEqual(group["tiles"].shape, (119_056, 119_056))
        self.assertEqual(group["8/max"].shape, (466, 466))
        rows, cols = slice(118_990, 119_056), slice(118_500, 119_056)
        np.testing.assert_array_equal(group["tiles"][rows, cols], head.weights(rows, cols))
        np.testing.assert_array_equal(group["rows"][70, ::1000], head.weights(70)[::1000])
        part = head.weights(slice(118_784, 119_056), slice(118_784, 119_056))
        np.testing.assert_array_equal(group["1/max"][59_392:, 59_392:], pooled(part, 2, "max"))

    def test_it_cannot_be_written(self) -> None:
        import zarr

        group = zarr.open_group(self.store, mode="r")
        for write in (
            lambda: group["tiles"].__setitem__((0, 0), 1.0),
            lambda: zarr.open_group(self.store, mode="w"),
            lambda: zarr.create_array(self.store, name="more", shape=(2,), dtype="f4"),
            lambda: self.store.with_read_only(False),
        ):
            with self.assertRaises(ValueError):
                write()
        self.assertFalse(self.store.supports_writes or self.store.supports_deletes)

    def test_keys_that_nothing_has(self) -> None:
        for key in ("", "nothing", "zarr.json/c", "tiles/c/3/0", "tiles/c/0", "tiles/c/00/0", "tiles/c/-1/0", "9/zarr.json"):
            with self.subTest(key=key):
                self.assertIsNone(self.store._content(key))

        async def exists() -> None:
            self.assertTrue(await self.store.exists("tiles/c/2/4"))
            self.assertFalse(await self.store.exists("tiles/c/3/0"))
            self.assertEqual([name async for name in self.store.list_dir("tiles")], ["zarr.json", "c"])
            self.assertEqual([name async for name in self.store.list_dir("tiles/c")], ["0", "1", "2"])
            self.assertEqual([name async for name in self.store.list_dir("tiles/c/2/")], [*"01234"])
            keys = [key async for key in self.store.list()]
            self.assertEqual(len(set(keys)), len(keys))
            for key in keys:
                self.assertTrue(await self.store.exists(key), key)
            self.assertEqual(sum(key.startswith("tiles/c/") for key in keys), 3 * 5)

        asyncio.run(exists())


if __name__ == "__main__":
    unittest.main()
