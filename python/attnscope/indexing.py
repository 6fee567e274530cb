"""A map that is indexed as NumPy's arrays are: which rows and columns are to be computed for it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import KindError, PlaceError

#: Computes [rows, cols] of the map; what they are: attnscope.places.Places.
Compute = Callable[[Any, Any], np.ndarray]

_MOST_ENTRIES = 1 << 24  # that are computed at once to pick single ones


def take(compute: Compute, shape: tuple[int, int], key: Any) -> np.ndarray:
    """map[key]. Places are numbers, slices, lists and arrays of numbers or bool, an array of bool for the whole map,
    Ellipsis and None, and mean what they mean in NumPy: of two lists the entries at their pairs. Raises PlaceError (an
    IndexError) of what is outside, KindError (a TypeError) of what is no place.
    """
    items = [_item(part) for part in (key if isinstance(key, tuple) else (key,))]
    _both_axes(items, shape)
    axes = [number for number, item in enumerate(items) if item is not None and item is not Ellipsis]
    if all(isinstance(items[number], np.ndarray) for number in axes):
        first, second = np.broadcast_arrays(*_aligned(items, axes))
        picked = _pairs(compute, shape, first.ravel(), second.ravel())
        numbers = np.arange(picked.size).reshape(first.shape)
        for number, local in zip(axes, (numbers, np.zeros_like(numbers)), strict=True):
            items[number] = local
        return picked.reshape(-1, 1)[tuple(items)]
    wanted = []
    beside_slice = any(isinstance(items[number], slice) for number in axes)
    for number, count in zip(axes, shape, strict=True):
        places, local = _orthogonal(items[number], count)
        if beside_slice and isinstance(local, np.ndarray) and np.array_equal(local, np.arange(len(places))):
            local = slice(None)
        wanted.append(places)
        items[number] = local
    return compute(*wanted)[tuple(items)]


def _item(part: Any) -> Any:
    """An element of a key: None, Ellipsis, a slice, an int or an array."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if not isinstance(part, (bool, np.bool_, np.ndarray, list, tuple, range)):
        try:
            return operator.index(part)
        except TypeError:
            pass
    if isinstance(part, (str, bytes)):
        raise PlaceError(f"a head is indexed by numbers, slices, lists and arrays (got {part!r})")
    try:
        array = np.asarray(part)
    except ValueError as error:
        raise PlaceError(f"a head is indexed by numbers: {error}") from None
    if array.size == 0 and not isinstance(part, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype.kind not in "iub" or (array.dtype == bool and array.ndim == 0):
        raise PlaceError(
            f"a head is indexed by numbers, slices, and arrays of whole numbers or bool (got {type(part).__name__} of "
            f"{array.dtype})"
        )
    return array if array.dtype == bool else array.astype(np.intp)


def _both_axes(items: list[Any], shape: tuple[int, int]) -> None:
    """Makes the elements name both axes, each once: Ellipsis becomes slices, bool numbers, negative numbers others."""
    for number, item in enumerate(items):
        if isinstance(item, np.ndarray) and item.dtype == bool and item.ndim == 2:
            if item.shape != shape:
                raise PlaceError(f"an array of bool of a head has its shape {shape} (got {item.shape})")
            items[number : number + 1] = list(np.nonzero(item))
            break
    named = sum(item is not None and item is not Ellipsis for item in items)
    if named > 2:
        raise PlaceError(f"too many indices: a head has 2 axes, and {named} were indexed")
    dots = [number for number, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise PlaceError("an index can have one ellipsis ('...')")
    if named < 2:  # one that stands for no axis stays, since NumPy gives it a meaning beside lists
        at = dots[0] if dots else len(items)
        items[at : at + 1] = [slice(None)] * (2 - named)
    axis = 0
    for number, item in enumerate(items):
        if item is not None and item is not Ellipsis:
            items[number] = _within(item, shape[axis], axis)
            axis += 1


def _within(item: Any, count: int, axis: int) -> Any:
    if isinstance(item, slice):
        return item
    if isinstance(item, np.ndarray) and item.dtype == bool:
        if item.shape != (count,):
            raise PlaceError(f"an array of bool of axis {axis} has its shape ({count},) (got {item.shape})")
        return np.flatnonzero(item)
    numbers = np.asarray(item)
    outside = numbers[(numbers < -count) | (numbers >= count)]
    if outside.size:
        raise PlaceError(f"index {outside.flat[0]} is out of bounds for axis {axis} with size {count}")
    numbers = np.where(numbers < 0, numbers + count, numbers)
    return numbers if isinstance(item, np.ndarray) else int(numbers)


def _aligned(items: list[Any], axes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    first, second = (items[number] for number in axes)
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise PlaceError(
            f"lists of rows and of columns are taken in pairs: their shapes {first.shape} and {second.shape} do not "
            "fit (head.weights(rows, cols) takes each row with each column)"
        ) from None
    return first, second


def _orthogonal(item: Any, count: int) -> tuple[Any, Any]:
    """What is computed of an axis, and which of that the key means then."""
    if isinstance(item, np.ndarray):
        wanted, back = np.unique(item, return_inverse=True)
        return wanted.astype(np.int64), back.reshape(item.shape)
    if not isinstance(item, slice):
        return slice(item, item + 1), 0
    try:
        begin, end, step = item.indices(count)
    except TypeError as error:
        raise KindError(str(error)) from None
    except ValueError as error:
        raise PlaceError(str(error)) from None
    places = range(begin, end, step)
    if step > 0:
        return slice(begin, max(begin, end), step), slice(None)
    return slice(places[-1], places[0] + 1, -step) if places else slice(0, 0), slice(None, None, -1)


def _pairs(compute: Compute, shape: tuple[int, int], rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """The entries (rows[i], cols[i]), float32 [pairs], some rows at a time with the columns that pairs of them have."""
    result = np.empty(rows.size, np.float32)
    order = np.argsort(rows, kind="stable")
    at_once = max(1, _MOST_ENTRIES // max(1, shape[1]))
    begin = 0
    while begin < order.size:
        distinct, starts = np.unique(rows[order[begin:]], return_index=True)
        end = begin + int(starts[at_once]) if distinct.size > at_once else order.size
        part = order[begin:end]
        own_rows, row_of = np.unique(rows[part], return_inverse=True)
        own_cols, col_of = np.unique(cols[part], return_inverse=True)
        result[part] = compute(own_rows, own_cols)[row_of, col_of]
        begin = end
    return result
