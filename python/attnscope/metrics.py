"""Tables of metrics: numbers of heads over several runs of a model, which probe() makes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import make_error
from .facts import place_text
from .native import _native
from .closing import Closable
from .tables import NUMBERS, frame_of

_PLACE = ("step", "layer", "branch", "kind", "batch", "head", "block", "slot", "chunk")
_MASK = "mask_"


@dataclass(frozen=True)
class MetricCall:
    """One call and branch of every run: step, layer (−1 outside the main stack), branch (None where nobody recorded
    them), kind, block, slot, chunk, forward and of_step (−1: none), facts (of the first run that has it), batch and
    heads (which), arrays.

    arrays: by name, [run, batch, head, …] ("entropy", "frame_frame", "level_64/weights_max", "mask_recall", "class"),
    or [run] ("timestep", "num_queries", "mask", "backend"); NaN, −1 or "" where a run has nothing. axes: names of the
    axes behind run, batch and head, by array; labels: what the places of such an axis are called.
    """

    step: int | None
    layer: int | None
    branch: str | None
    kind: str
    block: str
    slot: str
    chunk: int
    forward: int
    of_step: int
    facts: dict[str, Any]
    batch: list[int]
    heads: list[int]
    arrays: dict[str, np.ndarray]
    axes: dict[str, list[str]]
    labels: dict[str, dict[str, list[str]]]

    def __repr__(self) -> str:
        where = place_text(vars(self))
        return f"<MetricCall {where}{', ' + self.slot if self.slot else ''}: {len(self.heads)} heads>"

    @property
    def measured(self) -> np.ndarray:
        """bool [run, batch, head]: which heads of which run are there."""
        return self.arrays["measured"] == 1

    def pooled(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """(max, mean), float32 [run, batch, head, ⌈Nq / block⌉, ⌈Nk / block⌉] each."""
        try:
            return tuple(self.arrays[f"level_{block}/weights_{pool}"] for pool in ("max", "mean"))  # type: ignore
        except KeyError:
            sides = [name.split("/")[0][6:] for name in self.arrays if name.endswith("/weights_max")]
            raise make_error(
                f"pooled({block}): there are maps of blocks of {', '.join(sides) or 'no size'}", "usage"
            ) from None


class Metrics(Closable):
    """A table of metrics. path, options (a dict: what all runs share), runs (a dict each: run, prompt, seed, complete,
    seconds, steps …), calls (a MetricCall each).

    metrics[step, layer, branch, slot] is a call; what is None or left out may be anything, as long as one is left.
    """

    def __init__(self, path: str, found: dict[str, Any]) -> None:
        self.path = path
        self.options: dict[str, Any] = json.loads(found["options"])
        self.runs: list[dict[str, Any]] = []
        for text in found["runs"]:
            run = json.loads(text)
            run["steps"] = {int(step): seconds for step, seconds in run["steps"]}
            self.runs.append(run)
        self.calls = [_call(group) for group in found["groups"]]

    def __repr__(self) -> str:
        return f"<Metrics {self.path}: {len(self.runs)} runs, {len(self.calls)} calls>"

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, key: Any) -> MetricCall:
        parts = key if isinstance(key, tuple) else (key,)
        step, layer, branch, slot = (list(parts) + [None] * 4)[:4]
        found = [
            call
            for call in self.calls
            if step in (None, call.step or 0)
            and layer in (None, call.layer or 0, call.block or None)
            and branch in (None, call.branch or "all")
            and slot in (None, call.slot)
        ]
        if len(parts) > 4 or len(found) != 1:
            raise make_error(
                f"metrics[{', '.join(repr(part) for part in parts)}]: {len(found)} calls are meant of the "
                f"{len(self.calls)} of {self.path} (expected step, layer, branch, slot of one)",
                "usage",
            )
        return found[0]

    def stats(self) -> np.ndarray:
        """A structured array, a record a head of each run: run, prompt, seed (−1: not known), complete, and the fields
        of Capture.stats(). pandas.DataFrame() takes it. Usage error where "stats" was not measured."""
        names = [name for name, _, _, _ in _native.HEAD_FIELDS]
        if not any("entropy" in call.arrays for call in self.calls):
            raise make_error(f"{self.path}: has no stats (products {self.options['products']})", "usage")
        if self.options.get("sample"):
            for name in [name for name, _, is_estimate, _ in _native.HEAD_FIELDS if is_estimate]:
                names.insert(names.index(name) + 1, f"{name}_stderr")
        rows = []
        for call, run, item, head in self._heads():
            values = [call.arrays[n][run, item, head] if n in call.arrays else np.nan for n in names]
            rows.append((*self._named(call, run, item, head), call.arrays["class"][run, item, head], *values))
        counts = ("rows", "masked_rows")
        columns = [(n, np.int64 if n in counts else np.float64) for n in names]
        return _structured(rows, [*self._names(), ("class", str), *columns])

    def masks(self) -> np.ndarray:
        """A structured array, a record a mask of each head: the fields of stats() before class, sparse_mask, and the
        numbers of docs/lab.md. pandas.DataFrame() takes it. Usage error where no "mask:…" was measured."""
        rows, names = [], []
        for call, run, item, head in self._heads():
            names = names or [n for n in call.arrays if n.startswith(_MASK)]
            for place, mask in enumerate(call.labels.get("mask_recall", {}).get("sparse_mask", [])):
                numbers = [call.arrays[n][run, item, head, place] for n in names]
                rows.append((*self._named(call, run, item, head), mask, *numbers))
        if not names:
            raise make_error(f"{self.path}: has no masks (products {self.options['products']})", "usage")
        columns = [(n.removeprefix(_MASK), np.float64) for n in names]
        return _structured(rows, [*self._names(), ("sparse_mask", str), *columns])

    def summary(self) -> np.ndarray:
        """Over the runs: a structured array, a record a head: its place, class (the most common one), class_share (of
        the runs), runs (that have it), and NAME_mean, NAME_std (with n − 1) and NAME_ci95 (half the width of the 95 %
        interval of the mean, by Student's t) of each number; NaN of fewer than two runs."""
        table = self.stats()
        names = [n for n in table.dtype.names or () if n in _metrics()]
        places = [*_PLACE, *self._numbers()]
        _, first, place, count = np.unique(
            table[places], return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rows = []
        for group in order:
            heads = table[place.reshape(-1) == group]
            words, often = np.unique(heads["class"], return_counts=True)
            numbers: list[float] = []
            for name in names:
                numbers += _spread(heads[name].astype(np.float64))
            where = [heads[0][n] for n in places]
            rows.append((*where, words[often.argmax()], often.max() / len(heads), count[group], *numbers))
        columns = [(f"{n}_{what}", np.float64) for n in names for what in ("mean", "std", "ci95")]
        kinds = [(n, kind) for n, kind in self._names() if n in places]
        return _structured(
            rows, [*kinds, ("class", str), ("class_share", np.float64), ("runs", np.int64), *columns]
        )

    def to_pandas(self) -> Any:
        """stats() as a pandas.DataFrame. Needs pandas."""
        return frame_of(self.stats(), "pandas")

    def to_arrow(self) -> Any:
        """stats() as a pyarrow.Table. Needs pyarrow."""
        return frame_of(self.stats(), "pyarrow")

    def _heads(self) -> Iterator[tuple[MetricCall, int, int, int]]:
        """(call, run, places of batch item and head) of what was measured, run by run, in the order of
        Capture.stats()."""
        for run in range(len(self.runs)):
            found = [
                (*_order(c, b, h), number, b, h)
                for number, c in enumerate(self.calls)
                for b, h in np.argwhere(c.measured[run]).tolist()
            ]
            for *_, number, item, head in sorted(found):
                yield self.calls[number], run, item, head

    def _named(self, call: MetricCall, run: int, item: int, head: int) -> tuple[Any, ...]:
        about = self.runs[run]
        seed = -1 if about["seed"] is None else about["seed"]
        return (
            about["run"],
            about["prompt"],
            seed,
            about["complete"],
            -1 if call.step is None else call.step,
            -1 if call.layer is None else call.layer,
            call.branch or "",
            call.kind,
            call.batch[item],
            call.heads[head],
            call.block,
            call.slot,
            call.chunk,
            *(getattr(call, name) for name in self._numbers()),
        )

    def _numbers(self) -> list[str]:
        """Those of a call's forward that any call has."""
        return [name for name in NUMBERS if any(getattr(call, name) >= 0 for call in self.calls)]

    def _names(self) -> list[tuple[str, Any]]:
        """The columns that name a head of a run."""
        return [*_NAMES, *((name, np.int64) for name in self._numbers())]


_NAMES: list[tuple[str, Any]] = [
    ("run", str),
    ("prompt", str),
    ("seed", np.int64),
    ("complete", np.bool_),
    ("step", np.int64),
    ("layer", np.int64),
    ("branch", str),
    ("kind", str),
    ("batch", np.int64),
    ("head", np.int64),
    ("block", str),
    ("slot", str),
    ("chunk", np.int64),
]

def _order(c: MetricCall, item: int, head: int) -> tuple[Any, ...]:
    """The key that heads are sorted by; a number that nobody recorded counts as 0."""
    place = (c.kind, c.block, c.slot, c.chunk, c.forward, c.of_step)
    return (c.step or 0, c.layer or 0, c.batch[item], *place, c.heads[head], c.branch or "")


def _spread(values: np.ndarray) -> list[float]:
    """Mean, standard deviation and half of the 95 % interval, of what is defined."""
    values = values[~np.isnan(values)]
    if not len(values):
        return [np.nan] * 3
    if len(values) < 2:
        return [float(values.mean()), np.nan, np.nan]
    deviation = float(values.std(ddof=1))
    return [float(values.mean()), deviation, _native.student_t95(len(values) - 1) * deviation / len(values) ** 0.5]


def _metrics() -> set[str]:
    return {name for name, _, _, is_metric in _native.HEAD_FIELDS if is_metric}


def _structured(rows: list[tuple[Any, ...]], columns: list[tuple[str, Any]]) -> np.ndarray:
    """Records whose texts are as wide as the longest."""
    types = []
    for place, (name, kind) in enumerate(columns):
        width = max((len(str(row[place])) for row in rows), default=1) or 1
        types.append((name, f"U{width}" if kind is str else kind))
    return np.array(rows, dtype=types)


def _call(group: dict[str, Any]) -> MetricCall:
    variables = group["variables"]
    arrays = {}
    for name, v in variables.items():
        values = v["values"]
        if isinstance(values, list):  # texts
            values = np.array(values, dtype=str).reshape(tuple(v["shape"]))
        arrays[name] = values
    return MetricCall(
        **{n: group[n] for n in ("step", "layer", "branch", "kind", "block", "slot", "chunk", *NUMBERS)},
        facts=json.loads(group["call"]),
        batch=list(group["batch"]),
        heads=list(group["heads"]),
        arrays=arrays,
        axes={name: list(v["axes"]) for name, v in variables.items()},
        labels={name: dict(v["labels"]) for name, v in variables.items() if v["labels"]},
    )


def open_metrics(path: str | os.PathLike[str]) -> Metrics:
    """A table, or the .part of one whose run has not ended: what is there of it."""
    return Metrics(os.fspath(path), _native.read_metrics(os.fspath(path)))
