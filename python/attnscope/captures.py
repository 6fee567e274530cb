"""Captures: folders and files of Q and K that were recorded."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import make_error
from .exports import Export
from .facts import counted, place_text, told_facts
from .heads import Call, Head, stats_words
from .metrics import Metrics, open_metrics
from .native import _native, selection_word, take_engine, word
from .progress import Progress, Reporter
from .tables import CallTable, stats_table


# The options that choose heads, among those of what measures them.
_SELECTION = frozenset(
    {"steps", "layers", "heads", "batch", "branch", "kind", "blocks", "slots", "chunks", "pick", "from_", "where"}
)


def open(  # noqa: A001 - attnscope.open, as one says it
    path: str | os.PathLike[str] | None = None,
    *,
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

    An export (weights, rows or logits, also an unfinished one) opens as an Export, without options, and what probe()
    wrote as Metrics: a table, or the .part of a run that has not ended.

    Tensors are read when they are needed. Warns (UserWarning) of calls that could not be read, of what is not
    understood, and where outputs differ. Raises attnscope.Error: "file" for what is malformed or shapes maps
    without being understood, "usage" for options that cannot be meant.
    """
    if path is not None and _native.holds_metrics(os.fspath(path)):
        if options:
            raise make_error(
                f"{os.fspath(path)}: holds metrics, for which {next(iter(options))} means nothing", "usage"
            )
        return open_metrics(path)
    if path is not None and _native.is_export(os.fspath(path)):
        if options:
            raise make_error(
                f"{os.fspath(path)}: is an export, for which {next(iter(options))} means nothing", "usage"
            )
        with Reporter("open", progress) as report:
            return Export(os.fspath(path), _native.open_export(os.fspath(path), report))
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
        warnings.warn(warning, stacklevel=2)
    return Capture(opened, engine, cache)


class Capture:
    """An open capture. path, calls (a table), notes (what was guessed and overridden), warnings.

    cap[step, layer, branch, slot] is a call; what is None or left out may be anything, as long as one call is left:
    cap[10, 3], cap[10, 3, "cond"], cap[None, 3, None, "attn1"]. A number alone, cap.call(0), counts the calls.
    """

    def __init__(self, opened: _native.Capture, engine: _native.Engine, cache: str) -> None:
        self._opened = opened
        self._engine = engine
        self._cache = cache
        self.path = opened.path
        self._folder = _folder_of(Path(opened.path))
        self.notes: list[str] = opened.notes
        self.warnings: list[str] = opened.warnings
        self.calls = CallTable([opened.call(i).facts() for i in range(len(opened))])

    def __repr__(self) -> str:
        return f"<Capture {self.path}: {len(self)} calls>"

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return (self.call(number) for number in range(len(self)))

    def call(self, number: int) -> Call:
        """The call with this place in `calls`."""
        if not -len(self) <= number < len(self):
            raise make_error(f"call {number}: {self.path} has calls 0 to {len(self) - 1}", "usage")
        return Call(self._opened.call(number % len(self)), self._engine, cache=self._cache, folder=self._folder)

    def __getitem__(self, key: Any) -> Call:
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) > 4:
            raise make_error(f"cap[{key!r}]: expected step, layer, branch, slot", "usage")
        step, layer, branch, slot = (list(parts) + [None] * 4)[:4]
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
            raise make_error(self._complaint(parts, [number for number, _ in found]), "usage")
        number, items = found[0]
        return Call(self._opened.call(number), self._engine, items, self._cache, self._folder)

    def _complaint(self, parts: tuple[Any, ...], found: list[int]) -> str:
        asked = ", ".join(repr(part) for part in parts)
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
            Call(
                self._opened.call(number),
                self._engine,
                sorted({item for item, _ in heads}),
                self._cache,
                self._folder,
            )
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

    def _chosen(self, selection: Mapping[str, Any]) -> list[tuple[int, list[tuple[int, int]]]]:
        """Numbers of calls, each with its (batch item, head); called by what the user calls."""
        words = dict(selection_word(name, value) for name, value in selection.items() if value is not None)
        with Reporter("where", None) as report:
            chosen, missing = self._opened.select({**words, "cache": self._cache}, self._engine, report)
        for line in missing:
            warnings.warn(line, stacklevel=3)
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


def _branch(facts: Any, item: int) -> str:
    branches = counted(facts)[2]
    return str(branches[item] if item < len(branches) else branches[0])


def _list(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers[:20])) + (" …" if len(numbers) > 20 else "") or "none"
