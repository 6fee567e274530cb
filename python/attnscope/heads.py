"""Calls and heads: parts of their maps as arrays, and their numbers.

Shapes: Nq queries, Nk keys, dv channels of v, a video grid (T, H, W). Rows are queries, columns keys. Everything is
computed when it is asked for, exactly, and nothing that was not asked for; every array is new and the caller's own.

All methods take `progress` (attnscope.progress.Progress) and raise attnscope.Error: "value" where q or k hold NaN
or Inf, "resource" where --memory or the system's memory do not hold what is asked for, "usage" where the call has no
such thing. Ctrl-C ends them (KeyboardInterrupt). They may be called from several threads at once, which the
interpreter's lock does not hold up.
"""

from __future__ import annotations

import operator
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from .errors import KindError, PlaceError, make_error
from .facts import counted, place_text, stamp
from .indexing import take
from .native import _native, free_memory, selection_word, word
from .optional import require
from .pictures import Volume, map_picture
from .places import Places, choose
from .progress import Progress, Reporter
from .shown import table as shown_table
from .tables import EditQuality, MaskQuality, stats_table
from .views import HeadView, show_head

if TYPE_CHECKING:
    from xarray import DataArray

    from .stores import MapStore

    Float32 = np.ndarray[Any, np.dtype[np.float32]]
    Float64 = np.ndarray[Any, np.dtype[np.float64]]


_ROWS_AT_ONCE = 64  # that iterating over a head computes

class Call:
    """One attention call: of a capture, or of arrays.

    facts: a dict of what is known of it: step, layer (None outside the main stack), branches (one a batch item),
    kind, block, slot, chunk, forward and of_step (numbers, where nobody told step or branch), batch, heads, kv_heads,
    queries, keys, head_dim, dtype, scale, score, mask, grid (T, H, W or None), key_grid, text, values (whether v is
    there), model, prompt, timestep, tokens (the words, [batch item or 1][text token]), file, name. They are attributes, too: call.layer. Step, layer, branches, model and prompt that
    nobody recorded are None.
    """

    def __init__(
        self,
        call: _native.Call,
        engine: _native.Engine,
        items: Sequence[int] | None = None,
        cache: str = "",
        folder: Path | None = None,
        origin: tuple[Callable[..., Call], tuple[Any, ...]] | None = None,
    ) -> None:
        """origin: a function and its arguments that make this call, which is pickled as these."""
        self._call = call
        self._origin = origin
        self._name: str | None = None  # of _content_name()
        self._engine = engine
        self._cache = cache
        self._folder = folder  # of its capture, where that is one
        self.facts: dict[str, Any] = call.facts()
        self._items = list(range(self.facts["batch"])) if items is None else list(items)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "facts":
            raise AttributeError(name)
        try:
            return self.facts[name]
        except KeyError:
            raise AttributeError(f"a call has no {name!r} (facts: {', '.join(self.facts)})") from None

    def __dir__(self) -> list[str]:
        return sorted({*self.facts, "facts", *_public(type(self))})

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is None:
            raise KindError(f"{self.facts['name']}: cannot be pickled: nothing tells where it is from")
        return self._origin

    def __repr__(self) -> str:
        f = self.facts
        where = place_text(f)
        if f["slot"]:
            where += f", {f['slot']}"
        return f"<Call {where}: {f['heads']} heads, {f['queries']} × {f['keys']}, {f['dtype']}>"

    def _repr_html_(self) -> str:
        told = {name: value for name, value in self.facts.items() if value is not None and name != "tokens"}
        return shown_table(["fact", "value"], [[name, value] for name, value in told.items()])

    def head(self, number: int, batch: int | None = None) -> Head:
        """A head by its number from 0, or from the last by −1. `batch`: which batch item, where the call has several
        of this branch."""
        heads, items = self.facts["heads"], self.facts["batch"]
        number = _counted(number, heads, "head", f"{self.facts['name']} has heads 0 to {heads - 1}")
        if batch is None:
            if len(self._items) != 1:
                raise make_error(
                    f"{self.facts['name']}: which batch item? (batch=0 to {self.facts['batch'] - 1}, or a branch: "
                    f"{', '.join(counted(self.facts)[2])})",
                    "usage",
                )
            batch = self._items[0]
        else:
            batch = _counted(batch, items, "batch", f"{self.facts['name']} has items 0 to {items - 1}")
        return Head(self, batch, number)

    def __iter__(self) -> Iterator[Head]:
        for item in self._items:
            for number in range(self.facts["heads"]):
                yield Head(self, item, number)

    def __len__(self) -> int:
        """Heads, of all batch items."""
        return len(self._items) * int(self.facts["heads"])

    def stats(self, *, progress: Progress = None, **options: Any) -> np.ndarray:
        """The numbers of all heads of the call, as Capture.stats()."""
        return stats_table(self._stats(self._places(), options, progress), options)

    def records(self, *, progress: Progress = None, **options: Any) -> list[dict[str, Any]]:
        """The numbers of stats() as dicts, with sinks, class_scores and arrays, as Capture.records()."""
        return self._stats(self._places(), options, progress)

    def _places(self) -> list[tuple[int, int]]:
        return [(item, number) for item in self._items for number in range(self.facts["heads"])]

    def _stats(
        self, places: list[tuple[int, int]], options: Mapping[str, Any], progress: Progress
    ) -> list[dict[str, Any]]:
        with Reporter("stats", progress) as report:
            return self._call.stats(self._engine, places, stats_words(options), report)

    def _entries(
        self,
        places: list[tuple[int, int]],
        rows: Places,
        cols: Places,
        logits: bool,
        progress: Progress,
        rows_alone: bool = False,
    ) -> np.ndarray:
        """[places, rows, cols]; an axis of a single row or column is left out. rows_alone: what check="rows" of
        attnscope.weights() says."""
        chosen_rows = choose(rows, self.facts["queries"], "rows")
        chosen_cols = choose(cols, self.facts["keys"], "cols")
        with Reporter("logits" if logits else "weights", progress) as report:
            result = self._call.entries(
                self._engine, places, chosen_rows.wanted, chosen_cols.wanted, logits, rows_alone, report
            )
        return chosen_rows.ordered(chosen_cols.ordered(result, 2), 1)

    def _lse(
        self, places: list[tuple[int, int]], rows: Places, progress: Progress, rows_alone: bool = False
    ) -> np.ndarray:
        chosen = choose(rows, self.facts["queries"], "rows")
        with Reporter("lse", progress) as report:
            return chosen.ordered(self._call.lse(self._engine, places, chosen.wanted, rows_alone, report), 1)

    def _outputs(
        self, places: list[tuple[int, int]], rows: Places, progress: Progress, rows_alone: bool = False
    ) -> np.ndarray:
        chosen = choose(rows, self.facts["queries"], "rows")
        with Reporter("output", progress) as report:
            return chosen.ordered(self._call.outputs(self._engine, places, chosen.wanted, rows_alone, report), 1)


class Head:
    """One head of one batch item of a call: call, batch, number, branch. As an array it is its weights, float32
    [Nq, Nk], of which only what an index names is computed: head[3:5, :226]. Indices mean what they mean in NumPy
    (attnscope.indexing.take), and the bits are those of weights(). It is immutable, and pickled as where it is from:
    the capture's path and options, or its arrays."""

    ndim = 2

    def __init__(self, call: Call, batch: int, number: int) -> None:
        self.call = call
        self.batch = batch
        self.number = number
        self.shape = (int(call.facts["queries"]), int(call.facts["keys"]))
        self._place = [(batch, number)]

    @property
    def dtype(self) -> np.dtype[np.float32]:
        return np.dtype(np.float32)

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Of the whole map, had it to be held."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    @overload
    def __getitem__(self, key: tuple[SupportsIndex, SupportsIndex]) -> np.float32: ...
    @overload
    def __getitem__(self, key: Any) -> Float32: ...
    def __getitem__(self, key: Any) -> Any:
        return take(lambda rows, cols: self.weights(rows, cols), self.shape, key)

    def __iter__(self) -> Iterator[Float32]:
        for begin in range(0, len(self), _ROWS_AT_ONCE):
            yield from self.weights(slice(begin, begin + _ROWS_AT_ONCE))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The whole map. ResourceError (a MemoryError) where the machine's free memory does not hold it."""
        if copy is False:
            raise make_error("a head is computed: there is no array of it without a copy", "usage")
        kind = np.dtype(np.float32 if dtype is None else dtype)
        free, row = free_memory(), self.shape[1] * (4 if kind == np.float32 else 4 + kind.itemsize)
        if len(self) * row > free:
            raise make_error(
                f"{self.call.facts['name']}: the whole map of {len(self)} × {self.shape[1]} takes "
                f"{len(self) * row:,} bytes, and {free:,} are free: {free // row} rows would fit (head[:{free // row}])",
                "resource",
            )
        return self.weights().astype(kind, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Of the whole map: torch.as_tensor(head)."""
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dir__(self) -> list[str]:
        return sorted({"batch", "call", "number", "shape", *_public(type(self))})

    def __reduce__(self) -> tuple[Any, ...]:
        return (Head, (self.call, self.batch, self.number))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What dask names arrays by: heads of the same places of the same files have one name."""
        return (*_content_name(self.call), self.batch, self.number)

    @property
    def branch(self) -> str | None:
        branches = self.call.facts["branches"]
        if branches is None:
            return None
        return str(branches[self.batch] if self.batch < len(branches) else branches[0])

    def __repr__(self) -> str:
        f = self.call.facts
        branches = None if self.branch is None else [self.branch]
        return (
            f"<Head {self.number}: {place_text({**f, 'branches': branches})}, batch {self.batch}, "
            f"{self.shape[0]} × {self.shape[1]}>"
        )

    def weights(self, rows: Places = None, cols: Places = None, *, progress: Progress = None) -> Float32:
        """float32 [rows, cols]: softmax(scale·q·kᵀ + bias) over all keys (or what the call's score is), with the
        bits of an export. rows, cols: None for all, a number (whose axis is left out), a slice, numbers in any
        order, or an array of bool; negative numbers count from the end."""
        return self.call._entries(self._place, rows, cols, False, progress)[0]

    def logits(self, rows: Places = None, cols: Places = None, *, progress: Progress = None) -> Float32:
        """float32 [rows, cols]: scale·q·k + bias; masked entries are −inf. Rows and columns as weights()."""
        return self.call._entries(self._place, rows, cols, True, progress)[0]

    def lse(self, rows: Places = None, *, progress: Progress = None) -> Float64:
        """float64 [rows]: the natural log of each row's sum of exp(logits); −inf where all keys are masked."""
        return self.call._lse(self._place, rows, progress)[0]

    def output(self, rows: Places = None, *, progress: Progress = None) -> Float32:
        """float32 [rows, dv]: weights times v. Usage error where v was not recorded."""
        return self.call._outputs(self._place, rows, progress)[0]

    def query(
        self,
        *place: Any,
        index: int | Sequence[int] | None = None,
        text_token: str | int | Sequence[str | int] | None = None,
        at: str | Mapping[str, Any] | None = None,
        reverse: bool = False,
        domain: str = "all",
        weighting: str = "none",
        segment: str = "",
        progress: Progress = None,
    ) -> Volume:
        """float32 [T, H, W]: the attention of one token over the video, the mean of several.

        place: a video token, query(3, 5, 6) or query((3, 5, 6)), or words: "5,0:30,10:12", "ref1:0,3,4"; several
        words or tuples are several tokens. index: places of the sequence; text_token: numbers within the text, or words of the
        prompt. at: a pixel of the decoded video, dict(frame=40, x=352, y=240) or "frame=40,x=352,y=240"; where nothing
        tells what a token covers, with cell=(4, 16, 16). reverse: who attends to it instead. domain: "all", "video", "text" or "frame": the keys that rows
        are normalised over. weighting: "value" multiplies by the norms of the keys' v. segment: of a token map,
        instead of its video. Without a grid the result is [tokens]. .text and .segments of the result have the
        other parts of the sequence."""
        words = _query_words(place, index, text_token, at)
        words.update(
            domain=domain, weighting=weighting, segment=segment, reverse=reverse, cache=self.call._cache
        )
        with Reporter("query", progress) as report:
            parts = self.call._call.query(self.call._engine, self._place, words, report)[0]
        return Volume.of(parts["video"], parts["text"], parts["segments"])

    def pooled(self, block: int, *, progress: Progress = None) -> tuple[Float32, Float32]:
        """(max, mean), float32 [⌈Nq / block⌉, ⌈Nk / block⌉] each, of the weights in blocks of block × block: exact,
        over the weights that exist (blocks at the far edges have fewer)."""
        with Reporter("pooled", progress) as report:
            largest, mean = self.call._call.pooled(self.call._engine, self._place, block, report)
        return largest[0], mean[0]

    def to_xarray(self) -> DataArray:
        """The map as an xarray.DataArray with dims query and key, of which what is read is computed then, each time
        (.load() keeps it). Coordinates query_t, query_y, query_x (−1 outside the video), query_text and query_word (a
        text token's number and word), query_segment of a token map, and key_… likewise, as far as tokens have them, are
        indexes: .sel(query_t=3, key_word="red"); and step, layer, branch, head. Needs xarray (MissingPackage, an
        ImportError, where it is not here)."""
        require("xarray", "to_xarray()")
        from .labelled import head_array

        return head_array(self)

    def zarr(self) -> MapStore:
        """The map as a read-only store of Zarr (version 3), whose chunks are computed when they are read:
        zarr.open_group(head.zarr()), xarray.open_zarr(head.zarr()). Arrays: `tiles` in chunks of 512 × 512, `rows` of
        64 × 4096, both weights() to the bit; 1/max, 1/mean, 2/max …: blocks of 2, 4, … tokens a side. Needs zarr 3
        (MissingPackage, an ImportError, where it is not here)."""
        require("zarr", "zarr()", 3)
        from .stores import MapStore

        return MapStore({"": self})

    def mask(
        self, mask: str, *, block: int = 0, exact: bool = False, progress: Progress = None
    ) -> MaskQuality:
        """The quality of a sparse mask for this head: recall, the best possible recall at the same density, the
        error of the output (docs/lab.md). mask: "spatial:frames=1", "topk:keep=0.1", a FILE.npy (with `block`, unless
        mask --save wrote it; one of another head warns), a FILE.json, as --mask takes them. exact: oracle and output
        errors on all rows, not on 256."""
        return self.masks([mask], block=block, exact=exact, progress=progress)[0]

    def masks(
        self, masks: Sequence[str], *, block: int = 0, exact: bool = False, progress: Progress = None
    ) -> list[MaskQuality]:
        """The quality of several masks, as mask() gives it of one, in one pass over the head."""
        with Reporter("mask", progress) as report:
            found = self.call._call.masks(
                self.call._engine, self.batch, self.number, list(masks), block, exact, False, report
            )
        return [MaskQuality(mask=mask, **quality) for mask, quality in zip(masks, found, strict=True)]

    def lab(
        self, edits: str | Sequence[str], *, block: int = 0, exact: bool = False, progress: Progress = None
    ) -> list[EditQuality]:
        """What edits of attention cost this head (docs/lab.md): "sol:tau=0.5/1/2", "vsa:keep=0.1..0.5:5", "dense" …,
        one line for each that lists and ranges stand for. block: as of mask(). exact: all rows instead of 256 spread
        ones, and the best that as many blocks could keep. Numbers of outputs are None without v."""
        texts = [edits] if isinstance(edits, str) else list(edits)
        swept = list(dict.fromkeys(one for text in texts for one in _native.swept_edits(text)))
        with Reporter("lab", progress) as report:
            found = self.call._call.masks(
                self.call._engine, self.batch, self.number, swept, block, exact, True, report
            )
        return [EditQuality(edit=edit, **quality) for edit, quality in zip(swept, found, strict=True)]

    def stats(self, *, progress: Progress = None, **options: Any) -> np.void:
        """The head's numbers, a record of Capture.stats()."""
        return stats_table(self.call._stats(self._place, options, progress), options)[0]

    def show(
        self,
        *,
        rows: slice | str | None = None,
        cols: slice | str | None = None,
        stride: int = 1,
        height: int = 640,
        progress: Progress = None,
    ) -> HeadView:
        """The map to look into: the page that `attnscope figure` makes (docs/figure.md), shown at once in a notebook.
        Elsewhere it is not shown: .save("map.html") of what this gives writes it.

        rows, cols: slices (or "A:B") of queries and keys that the page has; stride: of these every N-th. Weights stay
        those of the whole map. height: of the frame, in pixels. Where there can be no page (more than
        32 MB, biases, weights of either sign) it is a picture that says why. Errors as weights()."""
        return show_head(self, rows, cols, stride, height, progress)

    def _repr_png_(self) -> bytes | None:
        return map_picture(self.shape, lambda block: self.pooled(block, progress=False)[1])


def _public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def _counted(number: Any, count: int, name: str, valid: str) -> int:
    """A number from 0, where negative ones count from the end."""
    try:
        if isinstance(number, (bool, np.bool_)):
            raise TypeError
        found = operator.index(number)
    except TypeError:
        raise KindError(f"{name}: expected a whole number (got {number!r})") from None
    if not -count <= found < count:
        raise PlaceError(f"{name} {found}: {valid}")
    return found % count


def _query_words(
    place: tuple[Any, ...],
    index: int | Sequence[int] | None,
    text_token: str | int | Sequence[str | int] | None,
    at: str | Mapping[str, Any] | None,
) -> dict[str, Any]:
    if place and all(not isinstance(part, (str, tuple, list, np.ndarray)) for part in place):
        coords = [word(place)]
    else:
        coords = [word(part.tolist() if isinstance(part, np.ndarray) else part) for part in place]
    indices = [] if index is None else [index] if isinstance(index, (int, np.integer)) else list(index)
    texts = (
        [] if text_token is None else [text_token] if isinstance(text_token, (int, str)) else list(text_token)
    )
    pixels = [] if at is None else [at] if isinstance(at, str) else [_pixel_word(at)]
    if not (coords or indices or texts or pixels):
        raise make_error(
            "query needs a place (t, y, x), at=dict(frame=F, x=X, y=Y), index=N or text_token=N|STRING", "usage"
        )
    return {
        "coords": coords,
        "pixels": pixels,
        "indices": [int(number) for number in indices],
        "text_tokens": [str(text) for text in texts],
    }


def _pixel_word(pixel: Mapping[str, Any]) -> str:
    """{"frame": 40, "x": 352, "y": 240, "cell": (4, 16, 16)} as --at takes it."""
    return ",".join(f"{name}={word(value).replace(',', 'x')}" for name, value in pixel.items())


def stats_words(options: Mapping[str, Any]) -> dict[str, str]:
    """Options of Capture.stats() as words; `arrays` is --with."""
    words = {}
    for name, value in options.items():
        if value is None or value is False:
            continue
        if name == "threshold" and isinstance(value, Mapping):
            value = [f"{which}={least}" for which, least in value.items()]
        if value is True or name == "arrays":
            words["with" if name == "arrays" else name] = "yes" if value is True else word(value)
            continue
        key, text = selection_word(name, value)
        words[key] = text
    return words


def _content_name(call: Call) -> tuple[Any, ...]:
    """A name of what the call is made of, for caches: of captures path, options and times of change; of arrays, which
    may be written to, one of this object's own."""
    arguments = call._origin[1] if call._origin else ()
    recipe = getattr(arguments[0], "_recipe", None) if arguments else None
    if recipe is None:
        if call._name is None:
            call._name = uuid.uuid4().hex
        return ("attnscope", call._name)
    path, options = recipe
    stamps = [stamp(path), stamp(os.path.join(path or "", call.facts["file"]))]
    return ("attnscope", path, sorted(map(repr, options.items())), stamps, *arguments[1:])
