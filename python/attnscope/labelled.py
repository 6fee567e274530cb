"""Maps as arrays of xarray, whose entries are computed where they are asked for. Imports xarray."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from .errors import make_error
from .facts import counted
from .native import free_memory
from .one_head import OneHead
from .token_places import common_places

_LEADING = ("step", "layer", "branch", "head")
_VIDEO = ("t", "y", "x")


class TokenIndex(xr.Index):
    """Selects tokens of a dimension by what its coordinates say, by all of them together: query_t=3,
    query_y=slice(2, 5), key_word="red". Labels are one value, a list of values, or a slice with both ends. A token
    outside the video has no t, y or x: no label finds it. Labels that nothing has are a KeyError."""

    def __init__(self, dim: Hashable, values: Mapping[Any, np.ndarray]) -> None:
        self.dim = dim
        self.values = dict(values)

    @classmethod
    def from_variables(cls, variables: Mapping[Any, xr.Variable], *, options: Mapping[str, Any]) -> TokenIndex:
        (dim,) = next(iter(variables.values())).dims
        return cls(dim, {name: np.asarray(variable.values) for name, variable in variables.items()})

    def create_variables(self, variables: Mapping[Any, xr.Variable] | None = None) -> dict[Any, xr.Variable]:
        return {name: xr.Variable((self.dim,), values) for name, values in self.values.items()}

    def isel(self, indexers: Mapping[Any, Any]) -> TokenIndex | None:
        indexer = indexers.get(self.dim, slice(None))
        if isinstance(indexer, xr.Variable):
            if indexer.dims != (self.dim,):
                return None
            indexer = indexer.values
        if np.ndim(indexer) == 0 and not isinstance(indexer, slice):
            return None
        return TokenIndex(self.dim, {name: values[indexer] for name, values in self.values.items()})

    def sel(self, labels: dict[Any, Any], method: Any = None, tolerance: Any = None) -> indexing.IndexSelResult:
        if method is not None or tolerance is not None:
            raise TypeError("tokens are selected exactly: method and tolerance mean nothing")
        chosen = np.ones(len(next(iter(self.values.values()))), bool)
        for name, label in labels.items():
            chosen &= _holds(self.values[name], label)
        places = np.flatnonzero(chosen)
        if not places.size:
            wanted = ", ".join(f"{name}={label!r}" for name, label in labels.items())
            raise KeyError(f"{wanted}: no token has that")
        single = {f"{self.dim}_{axis}" for axis in _VIDEO} <= set(labels)
        if single and places.size == 1 and all(_is_one(label) for label in labels.values()):
            return indexing.IndexSelResult({self.dim: int(places[0])})
        if places[-1] - places[0] + 1 == places.size:
            return indexing.IndexSelResult({self.dim: slice(int(places[0]), int(places[-1]) + 1)})
        return indexing.IndexSelResult({self.dim: places})

    def equals(self, other: xr.Index, **options: Any) -> bool:
        return (
            isinstance(other, TokenIndex)
            and other.values.keys() == self.values.keys()
            and all(np.array_equal(values, other.values[name]) for name, values in self.values.items())
        )

    def rename(self, name_dict: Mapping[Any, Hashable], dims_dict: Mapping[Any, Hashable]) -> TokenIndex:
        values = {name_dict.get(name, name): own for name, own in self.values.items()}
        return TokenIndex(dims_dict.get(self.dim, self.dim), values)


def _is_one(label: Any) -> bool:
    return not isinstance(label, slice) and np.ndim(label) == 0


def _holds(values: np.ndarray, label: Any) -> np.ndarray:
    """bool: which of the values the label means."""
    there = np.ones(len(values), bool) if values.dtype == object else values >= 0
    if not isinstance(label, slice):
        return there & np.isin(values, np.atleast_1d(np.asarray(label)))
    if label.step is not None:
        raise KeyError(f"{label!r}: a slice of labels has no step")
    if label.start is not None:
        there &= np.asarray(values >= label.start, bool)
    if label.stop is not None:
        there &= np.asarray(values <= label.stop, bool)
    return there


class LazyMaps(BackendArray):
    """float32 [*heads.shape, Nq, Nk]: the maps of heads that stand in an array. Computes what is asked for, each time
    anew. Thread-safe; pickled as its heads."""

    def __init__(self, heads: np.ndarray) -> None:
        self.heads = heads
        self.shape = (*heads.shape, *heads.flat[0].shape)
        self.dtype = np.dtype(np.float32)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._outer)

    def _outer(self, key: tuple[Any, ...]) -> np.ndarray:
        heads: Any = self.heads
        kept = 0  # of the axes in front
        for part in key[: self.heads.ndim]:
            heads = heads[(slice(None),) * kept + (part,)] if isinstance(heads, np.ndarray) else heads
            kept += not _is_place(part)
        rows, cols = key[self.heads.ndim :]
        if not isinstance(heads, np.ndarray):
            return heads.weights(rows, cols)
        counts = [_count(part, count) for part, count in zip((rows, cols), self.shape[-2:], strict=True)]
        needed, free = 4 * heads.size * int(np.prod(counts)), free_memory()
        if needed > free:
            raise make_error(f"{needed:,} bytes of maps are asked for, and {free:,} are free: select fewer", "resource")
        inner = [count for part, count in zip((rows, cols), counts, strict=True) if not _is_place(part)]
        result = np.empty((*heads.shape, *inner), np.float32)
        for place in np.ndindex(*heads.shape):
            result[place] = heads[place].weights(rows, cols)
        return result


def _is_place(part: Any) -> bool:
    return isinstance(part, (int, np.integer))


def _count(part: Any, count: int) -> int:
    if isinstance(part, slice):
        return len(range(*part.indices(count)))
    return int(np.size(part))


def _labelled(heads: np.ndarray, dims: Sequence[str], coords: dict[str, Any]) -> xr.DataArray:
    """A lazy array of these heads, whose axes are `dims`, with the tokens' coordinates."""
    first: OneHead = heads.flat[0]
    lazy = indexing.LazilyIndexedArray(LazyMaps(heads))
    attrs = {"long_name": "attention weight", "capture": first.call._call.capture_path or ""}
    array = xr.DataArray(xr.Variable((*dims, "query", "key"), lazy, attrs), coords=coords, name="weights")
    for dim, count, keys in (("query", first.shape[0], False), ("key", first.shape[1], True)):
        places = {f"{dim}_{name}": values for name, values in common_places(heads.flat, keys).items()}
        array = array.assign_coords({dim: np.arange(count), **{name: (dim, v) for name, v in places.items()}})
        if places:
            array = array.set_xindex(list(places), TokenIndex)
    return array


def head_array(head: OneHead) -> xr.DataArray:
    """Head.to_xarray()."""
    heads = np.empty((), object)
    heads[()] = head
    return _labelled(heads, (), dict(zip(_LEADING, _place(head), strict=True)))


def _place(head: OneHead) -> tuple[Any, ...]:
    """Step, layer (or the block's name), branch, number."""
    step, layer, _ = counted(head.call.facts)
    return step, head.call.facts["block"] if layer is None else layer, head.branch or "all", head.number


def maps_array(heads: Sequence[OneHead], path: str) -> xr.DataArray:
    """Capture.to_xarray() of these heads."""
    shapes = {head.shape: head for head in heads}
    if len(shapes) > 1:
        (one, first), (other, second) = list(shapes.items())[:2]
        raise make_error(
            f"{path}: maps of several shapes are no one array: {first!r} has {one}, {second!r} {other} (select fewer: "
            "layers=, kind=, slots=)",
            "usage",
        )
    places = [_place(head) for head in heads]
    labels: list[list[Any]] = [list(dict.fromkeys(axis)) for axis in zip(*places, strict=True)]
    even = len(set(places)) == len(places) == int(np.prod([len(axis) for axis in labels]))
    if not even:
        flat = np.empty(len(heads), object)
        flat[:] = heads
        coords = {name: ("map", _column(axis)) for name, axis in zip(_LEADING, zip(*places, strict=True), strict=True)}
        coords["slot"] = ("map", _column([head.call.facts["slot"] for head in heads]))
        coords["batch"] = ("map", _column([head.batch for head in heads]))
        return _labelled(flat, ("map",), coords)
    grid = np.empty([len(axis) for axis in labels], object)
    for head, place in zip(heads, places, strict=True):
        grid[tuple(axis.index(part) for axis, part in zip(labels, place, strict=True))] = head
    return _labelled(grid, _LEADING, {name: _column(axis) for name, axis in zip(_LEADING, labels, strict=True)})


def _column(values: Sequence[Any]) -> np.ndarray:
    """Numbers as int64, names as objects."""
    if all(isinstance(value, int) for value in values):
        return np.array(values, np.int64)
    column = np.empty(len(values), object)
    column[:] = values
    return column
