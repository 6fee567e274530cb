"""Maps as a store of Zarr, version 3, which computes the chunks that are read. Imports zarr."""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NoReturn

import numpy as np
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from .errors import make_error
from .one_head import OneHead
from .pyramids import BAND, TILE, Pyramid

_AXES = ["query", "key"]
_MOST_CONSOLIDATED = 1 << 14  # nodes of a store of many heads whose root names them all: 10 MB of text


class _Array:
    """An array of the store: its metadata, and its chunks."""

    def __init__(
        self,
        shape: tuple[int, ...],
        chunk: tuple[int, ...],
        axes: list[str],
        compute: Any,
        *,
        dtype: str = "float32",
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.counts = tuple(-(-count // side) for count, side in zip(shape, chunk, strict=True))
        self.compute = compute
        self.metadata: dict[str, Any] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": "NaN" if dtype == "float32" else -1,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": dict(attributes or {}),
            "dimension_names": axes,
            "storage_transformers": [],
        }

    def chunk_at(self, key: str) -> tuple[int, ...] | None:
        """The place that "c/3/0" means; None: it is no chunk of this array."""
        kind, *numbers = key.split("/")
        if kind != "c" or len(numbers) != len(self.counts) or not all(n.isdecimal() and n.isascii() for n in numbers):
            return None
        place = tuple(map(int, numbers))
        named = "/".join(map(str, place)) == "/".join(numbers)
        return place if named and all(i < count for i, count in zip(place, self.counts, strict=True)) else None


def _group(attributes: Mapping[str, Any], members: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes)}
    if members is not None:
        inline = {"kind": "inline", "must_understand": False, "metadata": dict(members)}
        metadata["consolidated_metadata"] = inline
    return metadata


def _plain(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node's metadata without that of what is below it."""
    return {name: value for name, value in node.items() if name != "consolidated_metadata"}


def _multiscales(levels: int) -> dict[str, Any]:
    """OME-Zarr 0.5: level 0 and the levels above it, by the largest and by the mean weight."""

    def dataset(level: int, pool: str) -> dict[str, Any]:
        side = float(1 << level)
        moves: list[dict[str, Any]] = [{"type": "scale", "scale": [side, side]}]
        if level:
            moves.append({"type": "translation", "translation": [(side - 1) / 2] * 2})
        return {"path": f"{level}/{pool}" if level else "tiles", "coordinateTransformations": moves}

    axes = [{"name": name, "type": "space"} for name in _AXES]
    scales = [
        {"name": pool, "type": pool, "axes": axes, "datasets": [dataset(level, pool) for level in range(levels + 1)]}
        for pool in ("max", "mean")
    ]
    return {"version": "0.5", "multiscales": scales}


def _head_arrays(pyramid: Pyramid) -> dict[str, _Array]:
    """The arrays of a head's group, by path."""
    places = pyramid.coordinates()
    named = {"coordinates": " ".join(places)} if places else {}
    shape = pyramid.head.shape
    arrays = {
        name: _Array(shape, chunk, _AXES, lambda place, chunk=chunk: pyramid.map_chunk(chunk, place), attributes=named)
        for name, chunk in (("tiles", TILE), ("rows", BAND))
    }
    for name, values in places.items():
        length = (max(1, len(values)),)
        arrays[name] = _Array(
            values.shape, length, [name.split("_")[0]], lambda _, values=values: values, dtype="int32"
        )
    for level in range(1, pyramid.levels + 1):
        for pool in ("mean", "max"):

            def compute(place: tuple[int, int], level: int = level, pool: str = pool) -> np.ndarray:
                return pyramid.pooled_chunk(level, pool, place)

            arrays[f"{level}/{pool}"] = _Array(pyramid.shape(level), TILE, _AXES, compute)
    return arrays


def _head_nodes(head: OneHead) -> tuple[dict[str, dict[str, Any]], dict[str, _Array]]:
    """Metadata of the groups and arrays of a head, and the arrays, by path."""
    pyramid = Pyramid(head)
    arrays = _head_arrays(pyramid)
    nodes = {path: array.metadata for path, array in arrays.items()}
    for level in range(1, pyramid.levels + 1):
        members = {pool: arrays[f"{level}/{pool}"].metadata for pool in ("mean", "max")}
        nodes[str(level)] = _group({"block": 1 << level}, members)
    facts = head.call.facts
    about = {name: facts[name] for name in ("step", "layer", "kind", "block", "slot", "model", "scale", "score")}
    about |= {"branch": head.branch, "batch": head.batch, "head": head.number}
    about |= {"grid": facts["grid"], "text": facts["text"]}
    members = {path: _plain(node) for path, node in nodes.items()}
    nodes[""] = _group({"attnscope": about, "ome": _multiscales(pyramid.levels)}, members)
    return nodes, arrays


class MapStore(Store):
    """A read-only store of a head's map (Head.zarr()) or of several (Capture.zarr()). Chunks are computed when they are
    read, in threads beside zarr's; reads of the same rows wait for each other. Nothing is cached but row sums. It is
    pickled as its heads. Thread-safe."""

    supports_writes = False
    supports_deletes = False
    supports_partial_writes = False
    supports_listing = True

    def __init__(self, heads: Mapping[str, OneHead]) -> None:
        """heads: by the name of their group; "" is the root itself."""
        super().__init__(read_only=True)
        self._heads = dict(heads)
        self._nodes: dict[str, dict[str, Any]] = {"": _group({}, None)}
        self._arrays: dict[str, _Array] = {}
        for name, head in self._heads.items():
            nodes, arrays = _head_nodes(head)
            self._nodes |= {_joined(name, path): node for path, node in nodes.items()}
            self._arrays |= {_joined(name, path): array for path, array in arrays.items()}
        if "" not in self._heads and len(self._nodes) <= _MOST_CONSOLIDATED:
            self._nodes[""] = _group({}, {path: _plain(node) for path, node in self._nodes.items() if path})
        self._is_open = True

    def __repr__(self) -> str:
        return f"<MapStore of {len(self._heads)} heads: {next(iter(self._heads.values()))!r}>"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return (MapStore, (self._heads,))

    def with_read_only(self, read_only: bool = False) -> Store:
        return self if read_only else self._refuse()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        whole = await asyncio.to_thread(self._content, key)
        if whole is None:
            return None
        data = whole[_bytes_of(byte_range, len(whole))]
        return (prototype or default_buffer_prototype()).buffer.from_bytes(data)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> builtins.list[Buffer | None]:
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        path, found = self._find(key)
        return path is not None and (found is None or self._arrays[path].chunk_at(found) is not None)

    def _find(self, key: str) -> tuple[str | None, str | None]:
        """The node of a key, and which chunk of it; None: its metadata."""
        path, _, last = key.rpartition("/")
        if last == "zarr.json":
            return (path, None) if path in self._nodes else (None, None)
        path, _, chunk = key.rpartition("/c/")
        return (path, f"c/{chunk}") if path in self._arrays else (None, None)

    def _content(self, key: str) -> bytes | None:
        path, chunk = self._find(key)
        if path is None:
            return None
        if chunk is None:
            return json.dumps(self._nodes[path]).encode()
        array = self._arrays[path]
        place = array.chunk_at(chunk)
        if place is None:
            return None
        values = np.asarray(array.compute(place))
        return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()

    async def list(self) -> AsyncIterator[str]:
        for key in self._keys():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in self._keys():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in self._names_in(prefix.strip("/")):
            yield name

    def _keys(self) -> Iterator[str]:
        for path in self._nodes:
            yield _joined(path, "zarr.json")
            if path in self._arrays:
                for place in product(*map(range, self._arrays[path].counts)):
                    yield _joined(path, "c/" + "/".join(map(str, place)))

    def _names_in(self, folder: str) -> Sequence[str]:
        if folder in self._nodes:
            start = folder + "/" if folder else ""
            below = {p[len(start) :].split("/")[0] for p in self._nodes if p != folder and p.startswith(start)}
            return ["zarr.json", *sorted(below), *(["c"] if folder in self._arrays else [])]
        path, _, chunk = folder.rpartition("/c")
        numbers = [part for part in chunk.split("/") if part]
        if path not in self._arrays or len(numbers) >= len(self._arrays[path].counts):
            return []
        return [str(i) for i in range(self._arrays[path].counts[len(numbers)])]

    def _refuse(self) -> NoReturn:
        raise make_error("maps are computed from q and k: nothing is written to them", "usage")

    async def set(self, key: str, value: Buffer) -> None:
        self._refuse()

    async def delete(self, key: str) -> None:
        self._refuse()


def _joined(group: str, path: str) -> str:
    return f"{group}/{path}" if group and path else group or path


def _bytes_of(request: ByteRequest | None, size: int) -> slice:
    if isinstance(request, RangeByteRequest):
        return slice(request.start, request.end)
    if isinstance(request, OffsetByteRequest):
        return slice(request.offset, size)
    if isinstance(request, SuffixByteRequest):
        return slice(max(0, size - request.suffix), size)
    return slice(0, size)


def maps_store(heads: Iterable[OneHead]) -> MapStore:
    """Capture.zarr(): a group a head, named by its place: step10_layer3_cond_head2, and by block, slot and batch item
    where that is not enough."""
    named: dict[str, OneHead] = {}
    for head in heads:
        facts = head.call.facts
        parts = [f"{name}{facts[name]}" for name in ("step", "layer") if facts[name] is not None]
        parts += [str(part) for part in (facts["block"] if facts["layer"] is None else "", head.branch) if part]
        name = "_".join([*parts, f"head{head.number}"]).replace("/", ".")
        if name in named:
            name += "".join(f"_{part}" for part in (facts["kind"], facts["slot"], f"batch{head.batch}") if part)
        while name in named:
            name += "_"
        named[name.replace("/", ".")] = head
    return MapStore(named)
