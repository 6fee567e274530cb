"""Reads exports as their users do: with h5py, and with xarray and h5netcdf where installed.

read_export.py WRITER DOCUMENT: WRITER is the program write_sample_exports, DOCUMENT is
docs/export-format.md, whose snippets are run as they stand there. Exit code 77: h5py is missing.
"""

import os
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

CALL = "calls/step0010_layer003_cond_joint"
GROUPS = {
    CALL: (1, 2, 700, 700),
    "calls/step0010_layer003_cond_cross": (1, 2, 60, 20),
    "calls/step0000_layer000_all_self": (1, 2, 33, 33),
}
AXES = ("batch", "head", "query", "key")
# What /call_index says of them; −1 and "" of the last one, of which nobody recorded anything.
CALL_INDEX = {
    "step": [10, 10, -1],
    "layer": [3, 3, -1],
    "branch": ["cond", "cond", ""],
    "block": ["", "transformer_blocks.3", ""],
    "slot": ["", "attn2", ""],
    "group": [group.split("/")[1] for group in GROUPS],
}


def expected(name, part):
    return np.fromfile(f"{name}.{part}.f32", "<f4")


def decode(dataset):
    """An export's entries as float32, as its attributes say."""
    stored = dataset[...]
    if "code_octaves" in dataset.attrs:
        step = dataset.attrs["code_octaves"] / (dataset.attrs["code_max"] - 1)
        weights = np.exp2((stored.astype("f8") - dataset.attrs["code_max"]) * step)
        return np.where(stored == 0, 0, weights).astype("f4")
    return stored.astype("f4") * dataset.attrs.get("scale_factor", np.float32(1))


def axes_of(name):
    return AXES[:3] + ("dv",) if name == "output" else AXES


def check_call_index(name):
    import xarray as xr

    with xr.open_dataset(f"{name}.h5", engine="h5netcdf", group="call_index") as index:
        assert {n: list(v.values) for n, v in index.data_vars.items()} == CALL_INDEX
        assert all(v.dims == ("call",) for v in index.data_vars.values())
        assert list(index["call"].values) == [0, 1, 2]
        assert index.attrs["not_recorded"] == "step layer branch"


def check_with_h5py(name, dataset_name, dtype):
    with h5py.File(f"{name}.h5") as f:
        assert f.attrs["format"] == "attnscope-export/1", f.attrs["format"]
        assert f["complete"][()] == 1 and f["complete"].dtype == "u1"
        assert set(f["calls"]) == {group.split("/")[1] for group in GROUPS}
        for group in GROUPS:
            for axis in ("query", "key"):
                for part in ("t", "y", "x", "segment"):
                    coordinate = f[group][f"{axis}_{part}"]
                    assert coordinate.shape == f[group][axis].shape
                    assert coordinate.dims[0][0] == f[group][axis]
        call = f[CALL]
        assert call.attrs["prompt"] == "a dog — “fast”"
        assert [t.decode() for t in call["text_tokens"][:4]] == ["[CLS]", "a", "dög", "▁runs"]
        if name != "logits":
            lse = call["lse"]
            assert lse.dtype == "<f4" and [d[0].name.split("/")[-1] for d in lse.dims] == list(
                AXES[:3]
            )
            assert np.array_equal(lse[...].ravel(), expected(name, "lse"))
            assert np.isneginf(lse[...]).any() or name == "rows"
        else:
            assert "lse" not in call
        if dataset_name is None:
            assert not {"weights", "logits", "output"} & set(call)
            return
        data = call[dataset_name]
        assert data.dtype == dtype, data.dtype
        assert [d[0].name.split("/")[-1] for d in data.dims] == list(axes_of(name))
        if name == "output":
            assert data.shape == (1, 2, 700, 5) and list(call["dv"]) == [0, 1, 2, 3, 4]
        assert np.allclose(decode(data).ravel(), expected(name, "entries"), rtol=1e-6, atol=0)
        if dtype == "<f2":
            assert data.attrs["scale_factor"] == np.float32(2**-14)
            assert data.attrs["scale_factor"].dtype == "<f4"
        sums = call["checksums"][dataset_name]
        assert sums.dtype == "<u4" and sums.size == np.prod(
            [-(-n // c) for n, c in zip(data.shape, data.chunks)]
        )


def check_with_h5netcdf(name):
    """h5netcdf must resolve every dimension of every variable, without a warning."""
    import h5netcdf

    def walk(group):
        for variable in group.variables.values():
            assert len(variable.dimensions) == len(variable.shape)
            assert not any(d.startswith("phony") for d in variable.dimensions)
        return sum(1 + walk(g) for g in group.groups.values())

    with h5netcdf.File(f"{name}.h5", "r") as f:
        # Checksums, or in their place the two lists of a thresholded call.
        within = {"gzip": 0, "topk": 0, "threshold": 2}.get(name, 1)
        masters = 1 if "shards" in f.groups else 0
        assert walk(f) == 2 + masters + len(GROUPS) * (1 + within)
        for group, shape in GROUPS.items():
            dims = f[group].dimensions
            if name == "maps":
                assert tuple(dims[a].size for a in AXES) == shape


def check_with_xarray(name, dataset_name):
    import xarray as xr

    for group in GROUPS:
        with xr.open_dataset(f"{name}.h5", engine="h5netcdf", group=group) as call:
            data = call[dataset_name]
            assert data.dims == axes_of(name), data.dims
            assert data.dtype == ("uint8" if name == "u8" else "float32"), data.dtype
            last = "dv" if name == "output" else "key_t"
            assert {last, "query_segment", "batch"} <= set(data.coords)
            allowed = {dataset_name, "lse", "text_tokens"}
            if name == "output":
                # The places and segments of keys belong to no axis of the outputs.
                allowed |= {"key_t", "key_y", "key_x", "key_segment"}
            assert set(call.data_vars) <= allowed, set(call.data_vars)
            if group == CALL and name != "u8":
                assert np.array_equal(data.values.ravel(), expected(name, "entries"))


def check_shard_values(name, call):
    """Checks the values of the first call of a sharded export, given by its group as a mapping of arrays."""
    entries = expected(name, "entries").reshape(2, 700, 700)
    if name == "gzip":
        assert call["weights"].shape == (1, 2, 700, 700)
        assert np.array_equal(np.asarray(call["weights"], "f4")[0], entries)
    elif name == "topk":
        keys = np.argsort(-entries, axis=-1, kind="stable")[..., :5]
        largest = np.take_along_axis(entries, keys, -1)
        assert np.array_equal(call["topk_weights"][0], largest)
        # A row without weights keeps its first keys.
        assert np.array_equal(call["topk_keys"][0], keys)
        assert np.allclose(call["topk_mass"][0], largest.sum(-1))


def check_shards_with_h5py(name):
    """Through the virtual datasets of the master."""
    entries = expected(name, "entries").reshape(2, 700, 700)
    with h5py.File(f"{name}.h5") as f:
        assert set(f["calls"]) == {group.split("/")[1] for group in GROUPS}
        call = f[CALL]
        if name == "threshold":
            for head in range(2):
                rows, keys = np.nonzero(entries[head] >= 0.25)
                kept = call[f"b00_h{head:03}"]
                assert np.array_equal(np.diff(kept["indptr"]), np.bincount(rows, minlength=700))
                assert np.array_equal(kept["indices"], keys)
                assert np.array_equal(kept["data"], entries[head][rows, keys])
            return
        values = {n: call[n][...] for n in call if isinstance(call[n], h5py.Dataset)}
        if name == "gzip":
            values["weights"] = decode(call["weights"])
        check_shard_values(name, values)


def check_shards_with_xarray(name):
    """Through the virtual datasets of the master."""
    import xarray as xr

    # h5netcdf reads float16, of which netCDF's own library knows nothing.
    with xr.open_dataset(f"{name}.h5", engine="h5netcdf", group=CALL) as call:
        check_shard_values(name, {n: call[n].values for n in call.variables})
        assert list(call["head"].values) == [0, 1]


def check_list_snippet(document):
    """As the document says of the lists of --threshold."""
    import xarray as xr

    [source] = [s for s in snippets(document) if "kept_mass" in s]
    names = {"xr": xr}
    code = source.replace("kept.h5", "threshold.h5")
    exec(compile(code, f"{document}: lists", "exec"), names)
    entries = expected("threshold", "entries").reshape(2, 700, 700)[1]
    kept = np.where(entries >= 0.25, entries, 0)
    [keys] = np.nonzero(kept[300])
    assert np.array_equal(names["keys"], keys)
    assert np.array_equal(names["weights"], entries[300, keys])
    assert np.allclose(names["mass"].values, kept.sum(1, dtype="f8"), rtol=1e-6, atol=0)


def check_shards_with_h5grove():
    """The library that servers of h5web read with."""
    from h5grove import create_content

    for name, dataset in {"gzip": "weights", "topk": "topk_keys"}.items():
        with h5py.File(f"{name}.h5") as f:
            content = create_content(f, f"/{CALL}/{dataset}")
            assert np.array_equal(content.data(), f[CALL][dataset][...])
            listed = create_content(f, "/calls").metadata()["children"]
            assert {c["kind"] for c in listed} == {"group"} and len(listed) == len(GROUPS)


def check_volumes_with_xarray():
    import xarray as xr

    with xr.open_dataset("volumes.h5", engine="h5netcdf") as volumes:
        assert volumes["volume"].dims == ("item", "t", "y", "x")
        assert volumes["volume"].dtype == "float32"
        assert list(volumes["head"].values) == [2, 5]
        assert volumes["volume"].values[1, 1, 2, 3] == 23 * 5
        assert volumes["text"].dims == ("item", "text_index")
        assert list(volumes["text_tokens"].values) == ["a", "dög"]


def snippets(document):
    with open(document, encoding="utf-8") as f:
        return re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)


def run_snippet(document, first_import):
    found = [s for s in snippets(document) if s.startswith(f"import {first_import}")]
    assert len(found) == 1, f"{document}: {len(found)} snippets start with import {first_import}"
    names = {}
    exec(compile(found[0], f"{document}: {first_import} snippet", "exec"), names)
    return names


def check_h5py_snippets(document):
    names = run_snippet(document, "h5py")
    maps = expected("maps", "entries").reshape(2, 700, 700)
    assert names["row"].dtype == np.float32
    assert np.array_equal(names["row"], maps[1, 300])
    assert names["lse"] == expected("maps", "lse").reshape(2, 700)[1, 300]
    assert names["volume"].shape == (3, 10, 23)
    assert np.array_equal(names["volume"].ravel(), maps[1, 300, 10:])
    [source] = [s for s in snippets(document) if s.startswith("def decode")]
    names = {"np": np}
    exec(compile(source, f"{document}: decode", "exec"), names)
    with h5py.File("u8.h5") as f:
        decoded = names["decode"](f[CALL]["weights"][...])
    assert np.allclose(decoded.ravel(), expected("u8", "entries"), rtol=1e-5, atol=0)


def check_xarray_snippet(document):
    names = run_snippet(document, "xarray")
    maps = expected("maps", "entries").reshape(2, 700, 700)
    assert names["row"].dtype == np.float32
    assert np.array_equal(names["row"].values, maps[1, 300])
    frames = maps[1, 300, 10:].reshape(3, -1).sum(axis=1)
    assert np.allclose(names["frame_mass"].values, frames, rtol=1e-4), (
        names["frame_mass"].values,
        frames,
    )
    names["call"].close()


def check_checksum_snippet(document):
    names = run_snippet(document, "xxhash")
    with h5py.File("maps.h5") as f:
        data, sums = f[CALL]["weights"], f[CALL]["checksums/weights"]
        for place in np.ndindex(sums.shape):
            offset = tuple(i * c for i, c in zip(place, data.chunks))
            assert names["chunk_checksum"](data, offset) == sums[place], place


def importable(*modules):
    for module in modules:
        try:
            __import__(module)
        except ImportError as error:
            print(f"without {module}: {error}")
            return False
    return True


def main():
    writer, document = map(os.path.abspath, sys.argv[1:])
    files = {
        "maps": ("weights", "<f2"),
        "f32": ("weights", "<f4"),
        "u8": ("weights", "u1"),
        "logits": ("logits", "<f4"),
        "lse": (None, None),
        "crop": ("weights", "<f2"),
        "rows": ("weights", "<f2"),
        "output": ("output", "<f4"),
    }
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([writer, folder], check=True)
        os.chdir(folder)
        for name, (dataset, dtype) in files.items():
            check_with_h5py(name, dataset, dtype)
        check_h5py_snippets(document)
        sharded = ("gzip", "topk", "threshold")
        for name in sharded:
            check_shards_with_h5py(name)
        print(
            f"h5py {h5py.__version__}: {len(files) + len(sharded)} exports and the snippet are right"
        )
        if importable("h5grove"):
            check_shards_with_h5grove()
            print("h5grove: the same of exports in shards")
        if importable("xxhash"):
            check_checksum_snippet(document)
        if importable("h5netcdf", "xarray"):
            import xarray

            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for name in (*files, *sharded):
                    check_with_h5netcdf(name)
            for name in (*files, *sharded):
                check_call_index(name)
            for name, (dataset, _) in files.items():
                if dataset:
                    check_with_xarray(name, dataset)
            for name in ("gzip", "topk"):
                check_shards_with_xarray(name)
            check_list_snippet(document)
            check_volumes_with_xarray()
            check_xarray_snippet(document)
            print(f"xarray {xarray.__version__}: the same")
        os.chdir("/")


main()
