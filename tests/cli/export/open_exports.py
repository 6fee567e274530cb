"""Opens exports of every form with xarray, and compares names, coordinates and values with float64.

open_exports.py ATTNSCOPE CAPTURE: CAPTURE is samples/moving-shapes, softmax over all of 1024 keys,
16 of text and 7x12x12 of video. Exit code 77: xarray or h5netcdf is missing. With ENGINE behind them it
checks the files of the current folder: h5netcdf's and netCDF4's HDF5 libraries are apart, since both
in one process were seen to crash.
"""

import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings

ENGINES = {"h5netcdf": "h5netcdf", "netcdf4": "netCDF4"}
SCRIPT = os.path.abspath(__file__)
ENGINE = sys.argv[3] if len(sys.argv) > 3 else None
if ENGINE:
    for other in set(ENGINES) - {ENGINE}:
        sys.modules[ENGINES[other]] = None
missing = [m for m in ("xarray", "h5netcdf") if importlib.util.find_spec(m) is None]
if missing and not ENGINE:
    print(f"skipped: without {' and '.join(missing)}")
    sys.exit(77)
import numpy as np  # noqa: E402
import xarray as xr  # noqa: E402

LAYERS, HEADS = (1, 2), (0, 1, 3)
SELECTION = ["--layers", "1,2", "--heads", "0,1,3"]
TEXT, GRID = 16, (7, 12, 12)
TOKENS = TEXT + 7 * 12 * 12
KEPT, LEAST, SIDE = 8, 0.01, 16


def group_of(layer):
    return f"step0010_layer{layer:03}_cond_joint"


class Reference:
    """A call in float64: logits and weights [head, query, key], lse [head, query], output."""

    def __init__(self, capture, layer):
        with open(f"{capture}/step10_layer{layer:02}.safetensors", "rb") as f:
            length = struct.unpack("<Q", f.read(8))[0]
            header = json.loads(f.read(length))
            data = f.read()

        def tensor(name):
            begin, end = header[name]["data_offsets"]
            bits = np.frombuffer(data[begin:end], "<u2").astype("u4") << 16
            return bits.view("f4").astype("f8").reshape(header[name]["shape"])[0, list(HEADS)]

        scale = float(header["__metadata__"]["scale"])
        self.logits = scale * tensor("q") @ tensor("k").transpose(0, 2, 1)
        largest = self.logits.max(-1, keepdims=True)
        terms = np.exp(self.logits - largest)
        self.lse = np.log(terms.sum(-1)) + largest[..., 0]
        self.weights = terms / terms.sum(-1, keepdims=True)
        self.output = self.weights @ tensor("v")


def close(found, wanted, relative, absolute=0.0):
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    found = np.asarray(found, "f8")
    # NaN is close to nothing.
    worst = np.abs(found - wanted) - relative * np.abs(wanted)
    assert (worst <= absolute).all(), (float(worst.max()), float(np.isnan(found).mean()))


def check_axes(call, data, last="key", queries=None):
    """Names, indices and coordinates of a (batch, head, query, …) variable."""
    assert data.dims[:3] == ("batch", "head", "query"), data.dims
    assert list(call["batch"].values) == [0] and list(call["head"].values) == list(HEADS)
    queries = np.arange(TOKENS) if queries is None else queries
    places = np.full((TOKENS, 3), -1)
    places[TEXT:] = np.stack(np.unravel_index(np.arange(TOKENS - TEXT), GRID), -1)
    for axis, tokens in {"query": queries, "key": np.arange(TOKENS)}.items():
        if axis == "key" and last != "key":
            continue
        assert np.array_equal(data.coords[axis], tokens)
        for n, name in enumerate("tyx"):
            assert np.array_equal(data.coords[f"{axis}_{name}"], places[tokens, n])
        segment = data.coords[f"{axis}_segment"].values
        assert np.array_equal(segment == 1, tokens >= TEXT), segment
    assert list(call["text_tokens"].values[:4]) == ["[CLS]", "a", "red", "circle"]


def check_maps(relative, absolute, quantity="weights", queries=None, codes=False):
    def check(call, reference):
        wanted = getattr(reference, "weights" if quantity == "rows" else quantity)
        data = call["weights" if quantity == "rows" else quantity]
        rows = slice(None) if queries is None else queries
        last = "dv" if quantity == "output" else "key"
        assert data.dims[3] == last
        check_axes(call, data, last, queries)
        values = data.values[0]
        if codes:
            octaves, most = data.attrs["code_octaves"], data.attrs["code_max"]
            exact = np.exp2((values.astype("f8") - most) * octaves / (most - 1))
            values = np.where(values == 0, 0, exact)
        close(values, wanted[:, rows], relative, absolute)
        if quantity != "logits":
            close(call["lse"].values[0], reference.lse[:, rows], 1e-6, 1e-5)
        assert call.attrs["kind"] == "joint" and call.attrs["grid"] == "7x12x12"

    return check


def check_lse(call, reference):
    check_axes(call, call["lse"], "none")
    close(call["lse"].values[0], reference.lse, 1e-6, 1e-5)


def check_topk(call, reference):
    check_axes(call, call["topk_weights"], "k")
    assert call["topk_weights"].dims[3] == "k" and list(call["k"].values) == list(range(KEPT))
    largest = -np.sort(-reference.weights, -1)[..., :KEPT]
    keys = call["topk_keys"].values[0]
    close(call["topk_weights"].values[0], largest, 1e-5)
    # Weights that are equal in float32 may change places.
    close(np.take_along_axis(reference.weights, keys.astype("i8"), -1), largest, 1e-5)
    close(call["topk_mass"].values[0], largest.sum(-1), 1e-5)


def check_blocks(call, reference):
    side = call["weights_max"].attrs["block"]
    assert side == SIDE and call["weights_max"].dims[2:] == ("query_block", "key_block")
    assert np.array_equal(call["query_block"], np.arange(0, TOKENS, side))
    tiles = reference.weights.reshape(len(HEADS), TOKENS // side, side, TOKENS // side, side)
    close(call["weights_max"].values[0], tiles.max((2, 4)), 1e-5)
    close(call["weights_mean"].values[0], tiles.mean((2, 4)), 1e-5)


def check_threshold(call, reference):
    check_axes(call, call["kept_mass"], "none")
    # Those beside the threshold may fall on either side in float32.
    sure = np.where(reference.weights > LEAST * (1 + 1e-5), reference.weights, 0).sum(-1)
    perhaps = np.where(reference.weights > LEAST * (1 - 1e-5), reference.weights, 0).sum(-1)
    mass = call["kept_mass"].values[0].astype("f8")
    assert (mass >= sure * (1 - 1e-5)).all() and (mass <= perhaps * (1 + 1e-5)).all()


def check_lists(path, layer, reference):
    for place, head in enumerate(HEADS):
        group = f"calls/{group_of(layer)}/b00_h{head:03}"
        with xr.open_dataset(path, engine=ENGINE, group=group) as kept:
            assert set(kept.data_vars) == {"indptr", "indices", "data", "kept_mass"}
            assert kept["kept_mass"].dims == ("query",) and kept["data"].dims == ("kept",)
            assert kept["indices"].dims == ("kept",) and kept["indptr"].dims == ("row_edge",)
            starts = kept["indptr"].values
            rows = np.repeat(np.arange(TOKENS), np.diff(starts))
            assert len(rows) == kept.sizes["kept"] > TOKENS
            close(
                kept["data"].values,
                reference.weights[place][rows, kept["indices"].values],
                1e-5,
            )
            assert (kept["data"].values >= np.float32(LEAST)).all()
            sums = np.bincount(rows, kept["data"].values.astype("f8"), TOKENS)
            close(kept["kept_mass"].values, sums, 1e-5)


# What `export` is told, and how a call of the file is checked.
QUERIES = np.array([3, TEXT + (3 * 12 + 8) * 12 + 7])
FORMS = {
    "plain": (["--dtype", "f32"], check_maps(1e-5, 1e-12)),
    "half": ([], check_maps(2**-11 + 1e-5, 2**-38)),
    "codes": (["--dtype", "u8"], check_maps(0.034, 2**-24, codes=True)),
    "logits": (
        ["--product", "logits", "--dtype", "f32"],
        check_maps(1e-5, 1e-4, "logits"),
    ),
    "output": (["--product", "output"], check_maps(1e-5, 1e-5, "output")),
    "rows": (
        ["--product", "rows", "--dtype", "f32", "--index", "3", "--query", "3,8,7"],
        check_maps(1e-5, 1e-12, "rows", QUERIES),
    ),
    "gzip": (["--dtype", "f32", "--compress", "gzip"], check_maps(1e-5, 1e-12)),
    "gzip-half": (["--compress", "gzip"], check_maps(2**-11 + 1e-5, 2**-38)),
    "lse": (["--product", "lse"], check_lse),
    "topk": (["--topk", str(KEPT)], check_topk),
    "threshold": (["--threshold", str(LEAST)], check_threshold),
    "blocks": (["--block", str(SIDE)], check_blocks),
}


def check_index(path):
    with xr.open_dataset(path, engine=ENGINE, group="call_index") as index:
        assert all(v.dims == ("call",) for v in index.data_vars.values())
        table = {name: list(v.values) for name, v in index.data_vars.items()}
    assert table == {
        "step": [10] * len(LAYERS),
        "layer": list(LAYERS),
        "branch": ["cond"] * len(LAYERS),
        "block": [""] * len(LAYERS),
        "slot": [""] * len(LAYERS),
        "group": [group_of(layer) for layer in LAYERS],
    }, table


def check_file(form, path, references):
    # netCDF's own library knows no float16, and crashes where such a dataset has a fill value.
    if form in ("half", "gzip-half") and ENGINE == "netcdf4":
        return
    check_index(path)
    for layer, reference in zip(LAYERS, references):
        group = f"calls/{group_of(layer)}"
        with xr.open_dataset(path, engine=ENGINE, group=group) as call:
            FORMS[form][1](call, reference)
        if form == "threshold":
            check_lists(path, layer, reference)


def check_lost_shard(path):
    """What stood in it is missing, not zero; what the other call has is there."""
    with xr.open_dataset(path, engine=ENGINE, group=f"calls/{group_of(2)}") as call:
        for name, data in call.data_vars.items():
            if name == "topk_keys":
                assert (data.values == -1).all()
            elif data.dims[:2] == ("batch", "head"):
                assert np.isnan(data.values).all(), name
        assert list(call["head"].values) == list(HEADS)
    with xr.open_dataset(path, engine=ENGINE, group=f"calls/{group_of(1)}") as call:
        floats = [data for data in call.data_vars.values() if data.dtype.kind == "f"]
        assert floats and not any(np.isnan(data.values).any() for data in floats)


def check_all(capture):
    warnings.simplefilter("error")
    references = [Reference(capture, layer) for layer in LAYERS]
    for form in FORMS:
        check_file(form, f"{form}.h5", references)
        check_file(form, merged_name(form), references)
    for form in SHARDED:
        if ENGINE != "netcdf4" or form != "gzip-half":
            check_lost_shard(f"lost-{form}.h5")
    print(f"xarray {xr.__version__} with {ENGINE}: {len(FORMS)} forms, also merged")


SHARDED = ("gzip", "gzip-half", "topk", "threshold")


def merged_name(form):
    # A name that the HDF5 library would take as a format of names.
    return f"{form}-100%d.h5"


def write_all(program, capture):
    def run(*words):
        subprocess.run([program, *words, "--quiet"], check=True)

    for form, (words, _) in FORMS.items():
        run("export", capture, "-o", f"{form}.h5", *SELECTION, *words)
        name = form + "-part%-{shard}.h5"
        for part in range(2):
            shard = ["--shard", f"{part}/2"]
            run("export", capture, "-o", name, *SELECTION, *words, *shard)
        parts = [name.replace("{shard}", f"{part}-of-2") for part in range(2)]
        run("merge", *parts, "-o", merged_name(form))
    for form in SHARDED:
        run("export", capture, "-o", f"lost-{form}.h5", *SELECTION, *FORMS[form][0])
        [lost] = [n for n in os.listdir(f"lost-{form}.h5.d") if n.startswith(group_of(2))]
        os.remove(f"lost-{form}.h5.d/{lost}")


def main():
    program, capture = map(os.path.abspath, sys.argv[1:3])
    if ENGINE:
        return check_all(capture)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_all(program, capture)
        for engine, module in ENGINES.items():
            if importlib.util.find_spec(module) is None:
                print(f"without {module}")
                continue
            script = [sys.executable, "-B", SCRIPT, program, capture, engine]
            subprocess.run(script, check=True)
        os.chdir("/")


main()
