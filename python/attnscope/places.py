"""Rows and columns as they are asked for, for the engine, which takes each once and in order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from .errors import PlaceError, make_error

#: One place, a slice, a range, a list or array of places, or an array of bool; None: all.
Places = Union[int, slice, range, Sequence[int], "np.ndarray[Any, Any]", None]


@dataclass(frozen=True)
class Chosen:
    """Places of a sequence."""

    wanted: Any  # for the engine: (begin, end), or an int64 array that ascends
    back: np.ndarray | None = None  # where each place that was asked for is among those; None: as they are
    single: bool = False  # one place was asked for, whose axis is left out

    def ordered(self, result: np.ndarray, axis: int) -> np.ndarray:
        """The computed result, with its places as they were asked for."""
        if self.back is not None:
            result = np.take(result, self.back, axis=axis)
        return result[(slice(None),) * axis + (0,)] if self.single else result


def choose(places: Places, count: int, what: str) -> Chosen:
    """`what` names the places in errors: "rows", "cols"."""
    if places is None:
        return Chosen((0, count))
    if isinstance(places, slice):
        begin, end, step = places.indices(count)
        if step == 1:
            return Chosen((begin, max(begin, end)))
        return _listed(np.arange(begin, end, step, dtype=np.int64), count, what)
    if not isinstance(places, (np.ndarray, range, list, tuple)):
        try:
            place = operator.index(places)  # type: ignore[arg-type]
        except TypeError:
            places = np.asarray(places)
        else:
            at = _within(np.array([place], dtype=np.int64), count, what)[0]
            return Chosen((int(at), int(at) + 1), single=True)
    array = np.asarray(places)
    if array.dtype == bool:
        if array.shape != (count,):
            raise make_error(
                f"{what}: an array of bool has one entry a place (expected {count}, got {array.shape})",
                "usage",
            )
        return _listed(np.flatnonzero(array), count, what)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise make_error(
            f"{what}: expected whole numbers in one axis (got {array.dtype} {array.shape})", "usage"
        )
    return _listed(array.astype(np.int64), count, what)


def _within(array: np.ndarray, count: int, what: str) -> np.ndarray:
    outside = array[(array < -count) | (array >= count)]
    if outside.size:
        raise PlaceError(f"{what}: {outside[0]} is outside (valid 0 to {count - 1})")
    return np.where(array < 0, array + count, array)


def _listed(array: np.ndarray, count: int, what: str) -> Chosen:
    array = _within(array, count, what)
    if array.size == 0:
        return Chosen((0, 0))
    places, back = np.unique(array, return_inverse=True)
    inverse = None if places.size == array.size and np.array_equal(places, array) else back.reshape(-1)
    if int(places[-1]) - int(places[0]) + 1 == places.size:
        return Chosen((int(places[0]), int(places[-1]) + 1), inverse)
    return Chosen(np.ascontiguousarray(places), inverse)
