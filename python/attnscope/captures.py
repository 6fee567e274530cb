"""Captures: folders and files of Q and K that were recorded."""

from __future__ import annotations

import html
import operator
import os
import pickle
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from .closing import Closable
from .errors import AbsentError, KindError, PlaceError, make_error, python_words
from .exports import Export
from .facts import counted, place_text, stamp, told_facts
from .heads import Call, Head, stats_words
from .metrics import Metrics, open_metrics
from .native import _native, selection_word, take_engine, word
from .optional import require
from .progress import Progress, Reporter
from .reports import Report, report
from .tables import CallTable, stats_table
from .words import Words, words_of_heads

if TYPE_CHECKING:
    from xarray import DataArray

    from .stores import MapStore

# The options that choose heads, among those of what measures them.
_SELECTION = frozenset(
    {"steps", "layers", "heads", "batch", "branch", "kind", "blocks", "slots", "chunks", "pick", "from_", "where"}
)

_TENSORS = ("q", "k", "v")  # options that name files of bare tensors, wherever the process works then

_Opened = TypeVar("_Opened")
Kind = Literal["capture", "export", "metrics"]


@overload
def open(
    path: str | os.PathLike[str] | None = None,
    *,
    kind: Literal["capture"],
    check: bool = True,
    progress: Progress = None,
    **options: Any,
) -> Capture: ...
@overload
def open(path: str | os.PathLike[str], *, kind: Literal["export"], progress: Progress = None) -> Export: ...
@overload
def open(path: str | os.PathLike[str], *, kind: Literal["metrics"], progress: Progress = None) -> Metrics: ...
@overload
def open(
    path: str | os.PathLike[str] | None = None,
    *,
    kind: None = None,
    check: bool = True,
    progress: Progress = None,
    **options: Any,
) -> Capture: ...
def open(  # noqa: A001 - attnscope.open, as one says it
    path: str | os.PathLike[str] | None = None,
    *,
    kind: Kind | None = None,
    check: bool = True,
    progress: Progress = None,
    **options: Any,
) -> Capture | Export | Metrics:
    """Opens a capture: a folder, or a safetensors, .npz, .pt or HDF5 file with q and k.

    path: None where q="FILE[:KEY]" and k= (and v=) name bare tensors. options: as the command line's, facts that
    override what was recorded: layout, grid=(7, 12, 12), text="16@start", scale, mask, score, preset, rope,
    pattern, cu_seqlens, cu_seqlens_k, sinks, alibi and relative_bias="FILE[:KEY]", q_scale and k_scale="FILE[:KEY]" or a number, q_dtype, k_dtype,
    links="follow", as_={"layer": 17, "model": "…"}, facts that nobody recorded,
    and ignore=["sinks"], names of what stands beside q and k and is left out; how work is computed:
    memory="512MiB" (of each piece of work; results come on top), threads, backend, vram, tf32; cache="none" or a
    folder for row sums. check: compare a few recorded outputs with what is computed, as every command does.

    kind: "capture", "export" or "metrics", by which type checkers know what this gives (a capture, unless it is
    given); a file that is another kind is a usage error. None: whatever it is. `with` closes it.

    An export (weights, rows or logits, also an unfinished one) opens as an Export, without options, and what probe()
    wrote as Metrics: a table, or the .part of a run that has not ended.

    Tensors are read when they are needed. Warns (UserWarning) of calls that could not be read, of what is not
    understood, and where outputs differ. Raises attnscope.Error: "file" for what is malformed or shapes maps
    without being understood, "usage" for options that cannot be meant.
    """
    if kind not in (None, "capture", "export", "metrics"):
        raise make_error(f'kind {kind!r}: expected "capture", "export" or "metrics"', "usage")
    if path is not None:
        name = os.fspath(path)
        if _native.holds_metrics(name):
            return _plain(name, "metrics", kind, options, lambda: open_metrics(name))
        if _native.is_export(name):
            return _plain(name, "export", kind, options, lambda: _open_export(name, progress))
    if kind not in (None, "capture"):
        raise make_error(f"{path}: is a capture, not {_article(kind)}", "usage")
    return _open_capture(path, check, progress, options)


def _article(kind: str) -> str:
    return {"capture": "a capture", "export": "an export"}.get(kind, kind)


def _plain(
    path: str, found: Kind, kind: Kind | None, options: Mapping[str, Any], make: Callable[[], _Opened]
) -> _Opened:
    """What takes no options."""
    if kind not in (None, found):
        raise make_error(f"{path}: is {_article(found)}, not {_article(kind)}", "usage")
    if options:
        holds = "holds metrics" if found == "metrics" else "is an export"
        raise make_error(f"{path}: {holds}, for which {next(iter(options))} means nothing", "usage")
    return make()


def _open_export(path: str, progress: Progress) -> Export:
    with Reporter("open", progress) as report:
        return Export(path, _native.open_export(path, report))


def _open_capture(
    path: str | os.PathLike[str] | None, check: bool, progress: Progress, options: dict[str, Any]
) -> Capture:
    tensors = {name: options[name] for name in _TENSORS if isinstance(options.get(name), (str, os.PathLike))}
    files = {name: os.path.abspath(file) for name, file in tensors.items()}
    recipe = (None if path is None else os.path.abspath(path), {**options, **files})
    engine = take_engine(options)
    cache = str(options.pop("cache", ""))
    told = told_facts(options.pop("as_", None) or {})
    ignore = options.pop("ignore", None) or []
    if isinstance(ignore, str):
        ignore = [ignore]
    words = {
        name: "x".join(map(str, v)) if name == "grid" and isinstance(v, (tuple, list)) else word(v)
        for name, v in options.items()
        if v is not None
    }
    words |= {f"as {name}": text for name, text in told.items()}
    words |= {f"ignore {name}": "" for name in ignore}
    if path is not None:
        words["capture"] = os.fspath(path)
    words["check"] = "yes" if check else "no"
    with Reporter("open", progress) as report:
        opened = _native.open_capture(words, engine, report)
    for warning in opened.warnings:
        warnings.warn(python_words(warning), stacklevel=3)
    return Capture(opened, engine, cache, recipe)


class Capture(Closable):
    """An open capture. path, calls (a table), notes (what was guessed and overridden), warnings.

    cap[step, layer, branch, slot] is a call; what is None or left out may be anything, as long as one call is left:
    cap[10, 3], cap[10, 3, "cond"], cap[None, 3, None, "attn1"], cap["cond"]. A layer outside the main stack is named
    by its block. Negative steps and layers count from the last: cap[-1, 3, "cond"] is of the last step. A negative
    number alone, cap[-1], counts calls, as cap.call(-1) does. It is pickled as its path and options.
    """

    def __init__(
        self,
        opened: _native.Capture,
        engine: _native.Engine,
        cache: str,
        recipe: tuple[str | None, dict[str, Any]],
    ) -> None:
        self._recipe = recipe  # the path, None for bare tensors, and the options that it was opened with
        self._opened = opened
        self._engine = engine
        self._cache = cache
        self.path = opened.path
        self._folder = _folder_of(Path(opened.path))
        self.notes: list[str] = [python_words(note) for note in opened.notes]
        self.warnings: list[str] = [python_words(warning) for warning in opened.warnings]
        self.calls = CallTable([opened.call(i).facts() for i in range(len(opened))])

    def __repr__(self) -> str:
        return f"<Capture {self.path}: {len(self)} calls>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{self.calls._repr_html_()}"

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return (self.call(number) for number in range(len(self)))

    def call(self, number: int) -> Call:
        """The call with this place in `calls`."""
        if not -len(self) <= number < len(self):
            raise PlaceError(f"call {number}: {self.path} has calls 0 to {len(self) - 1}")
        number %= len(self)
        return self._call(number, list(range(self.calls[number]["batch"])))

    def _call(self, number: int, items: list[int]) -> Call:
        origin = (call_of, (self, number, items))
        return Call(self._opened.call(number), self._engine, items, self._cache, self._folder, origin)

    def __reduce__(self) -> tuple[Any, ...]:
        return (capture_of, self._recipe)

    def __dir__(self) -> list[str]:
        named = {name for name in (*dir(type(self)), *vars(self)) if not name.startswith("_")}
        return sorted(named)

    def __getitem__(self, key: Any) -> Call:
        parts = key if isinstance(key, tuple) else (None, None, key) if isinstance(key, str) else (key,)
        if len(parts) > 4:
            raise make_error(f"cap[{key!r}]: expected step, layer, branch, slot", "usage")
        step, layer, branch, slot = (_part(part, key) for part in (*parts, *[None] * (4 - len(parts))))
        if not isinstance(key, tuple) and isinstance(step, int) and step < 0:
            return self.call(step)
        places = [counted(facts) for facts in self.calls]
        step = _from_last(step, [own for own, _, _ in places], "steps", self.path)
        layer = _from_last(layer, [own for _, own, _ in places if own is not None], "layers", self.path)
        found = []
        for number, facts in enumerate(self.calls):
            items = [i for i in range(facts["batch"]) if branch in (None, _branch(facts, i))]
            own_step, own_layer, _ = counted(facts)
            matches = (
                step in (None, own_step) and layer in (None, own_layer, facts["block"] or None)
                and slot in (None, facts["slot"])
            )  # fmt: skip
            if matches and items:
                found.append((number, items))
        if len(found) != 1:
            complaint = self._complaint(key, [number for number, _ in found])
            raise make_error(complaint, "usage") if found else AbsentError(complaint)
        return self._call(*found[0])

    def _complaint(self, key: Any, found: list[int]) -> str:
        asked = ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
        if not found:
            places = [counted(c) for c in self.calls]
            steps = sorted({step for step, _, _ in places})
            layers = sorted({layer for _, layer, _ in places if layer is not None})
            branches = sorted({_branch(c, i) for c in self.calls for i in range(c["batch"])})
            return (
                f"cap[{asked}]: {self.path} has no such call (steps {_list(steps)}; layers {_list(layers)}; branches "
                f"{', '.join(branches)})"
            )
        some = "; ".join(
            f"{place_text(c)} {c['slot']}".rstrip()
            for c in (self.calls[number] for number in found[:3])
        )
        return f"cap[{asked}]: {len(found)} calls are meant: {some}{' …' if len(found) > 3 else ''}"

    def select(self, **selection: Any) -> list[Call]:
        """The calls that selection words choose, as the command line's: steps="0,3-7", layers=range(3, 8), branch,
        kind, blocks="single*", slots, chunks, batch. Warns of what they name and the capture lacks. Usage error where
        nothing is left."""
        return [
            self._call(number, sorted({item for item, _ in heads}))
            for number, heads in self._chosen(selection)
        ]

    def heads(self, **selection: Any) -> list[Head]:
        """The heads that selection words choose: those of select() and heads="0-3"; of these pick=["3.1", (12, 7)]
        (layer, head), "10:3.1" (step:layer.head), "refiner.0/attn.1", from_="picked.json", a file that lists heads,
        and where="class=temporal entropy<5 layer>=10", a condition over names and numbers of stats, which are computed
        where they are not kept (docs/heads.md). Warns and raises as select()."""
        return [
            self.call(number).head(head, batch=item)
            for number, heads in self._chosen(selection)
            for item, head in heads
        ]

    def to_xarray(self, **selection: Any) -> DataArray:
        """The maps of the heads that selection words choose, as heads() has them, as an xarray.DataArray as
        Head.to_xarray() gives it: dims step, layer, branch, head, query, key where there is a map for each of them;
        where there is not, dims map, query, key, with coordinates along `map`. Coordinates of tokens that differ
        between maps are left out. Usage error where maps differ in shape."""
        require("xarray", "to_xarray()")
        from .labelled import maps_array

        return maps_array(self.heads(**selection), self.path)

    def zarr(self, **selection: Any) -> MapStore:
        """The maps of the heads that selection words choose, as heads() has them, as a read-only store of Zarr with a
        group a head, each as Head.zarr() gives it: step10_layer3_cond_head2."""
        require("zarr", "zarr()", 3)
        from .stores import maps_store

        return maps_store(self.heads(**selection))

    def words(
        self, words: str | Sequence[str] | None = None, *, progress: Progress = None, **selection: Any
    ) -> Words:
        """How much each place of the video attends to words of the prompt: a float32 [T, H, W] by word, the mean over
        the heads that heads() chooses and that have words as keys, of the finest grid, without the branch uncond where
        there is another. words: None for all of the recorded prompt that can be told apart. It shows itself in
        notebooks, over the recorded pictures. Usage error for a word that is not there, or stands there twice ("red
        circle" is a phrase), and where no call has words."""
        return words_of_heads(self.heads(**selection), words, self._folder, progress)

    def report(self, *, height: int = 900, **options: Any) -> Report:
        """The page of `attnscope report`, without showing it: show() does."""
        told, path = self._recipe[1], self._opened.path  # an error where it was closed
        return report(() if "q" in told else (path,), {**told, **options}, height, self._folder)

    def show(self, *, height: int = 900, **options: Any) -> Report:
        """The page of `attnscope report` (docs/report.md), shown at once in a notebook: every head with its class,
        those that stand out, words over the frames. Elsewhere a line; .save("page.html") of what it gives writes it.
        options: of the command: layers, steps, heads, sample, max_size, budget_time, title; height: of the frame."""
        return self.report(height=height, **options).display()

    def _chosen(self, selection: Mapping[str, Any]) -> list[tuple[int, list[tuple[int, int]]]]:
        """Numbers of calls, each with its (batch item, head); called by what the user calls."""
        words = dict(selection_word(name, value) for name, value in selection.items() if value is not None)
        with Reporter("where", None) as report:
            chosen, missing = self._opened.select({**words, "cache": self._cache}, self._engine, report)
        for line in missing:
            warnings.warn(python_words(line), stacklevel=3)
        return chosen

    def stats(self, *, progress: Progress = None, **options: Any) -> np.ndarray:
        """The numbers of every head, as `attnscope stats` (docs/metrics.md): a structured array with step, layer
        (−1 outside the main stack), branch, kind, batch, head, block, slot, chunk (−1: none), class, and a float64
        field a metric, NaN where it is not defined; rows and masked_rows are int64. pandas.DataFrame() takes it.

        options: which heads (layers="3-7", steps, heads, batch, branch, kind, blocks, slots, chunks, pick, from_,
        where, as heads() has them, where over the numbers of this very call); sample=N rows a head, evenly spread,
        which adds NAME_stderr; exact=True; band=N; threshold={"sink": 0.2}; sort="entropy" or "entropy:asc", and
        top=N of it.
        """
        return stats_table(self.records(progress=progress, **options), options)

    def records(self, *, progress: Progress = None, **options: Any) -> list[dict[str, Any]]:
        """The numbers of stats() as a dict a head, None where a number is not defined, with sinks, class_scores and
        arrays: those that arrays=["frame_frame", "entropy_rows", …] asks for (docs/metrics.md), float64."""
        # It warns of what is not there; the condition is held against the numbers that are found below.
        self._chosen({name: value for name, value in options.items() if name in _SELECTION - {"where"}})
        with Reporter("stats", progress) as report:
            words = {**stats_words(options), "cache": self._cache}
            return _native.capture_stats(self._opened, self._engine, words, report)


def _folder_of(path: Path) -> Path | None:
    """The folder that a capture is; None where it is a file."""
    if path.name == "capture.json":
        return path.parent
    return path if path.is_dir() else None


def _part(part: Any, key: Any) -> Any:
    """An element of cap[…] as a number, a name or None."""
    if part is None or isinstance(part, str):
        return part
    try:
        if isinstance(part, (bool, np.bool_)):
            raise TypeError
        return operator.index(part)
    except TypeError:
        raise KindError(
            f"cap[{key!r}]: expected a step, a layer, a branch, a slot (numbers and names; select() gives several calls)"
        ) from None


def _from_last(part: Any, numbers: Sequence[int], name: str, path: str) -> Any:
    """The number that a negative one means among those that are there."""
    if not isinstance(part, int) or part >= 0:
        return part
    there = sorted(set(numbers))
    if -part > len(there):
        raise PlaceError(f"{part}: {path} has {len(there)} {name} ({_list(there)})")
    return there[part]


def _branch(facts: Any, item: int) -> str:
    branches = counted(facts)[2]
    return str(branches[item] if item < len(branches) else branches[0])


def _list(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers[:20])) + (" …" if len(numbers) > 20 else "") or "none"


# What pickles of this process have opened, as long as anybody has it: many heads of a capture open it once.
_reopened: weakref.WeakValueDictionary[bytes, Capture] = weakref.WeakValueDictionary()


def capture_of(path: str | None, options: dict[str, Any]) -> Capture:
    """The capture as it was opened where it was pickled. What was told there of it is not told again."""
    name = pickle.dumps((path, options, stamp(path)))
    found = _reopened.get(name)
    if found is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = open(path, kind="capture", check=False, progress=False, **options)
        _reopened[name] = found
    return found


def call_of(capture: Capture, number: int, items: list[int]) -> Call:
    return capture._call(number, items)
