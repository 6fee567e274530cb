"""Metrics of heads while a model runs: probe()."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from .arrays import as_stored, device_capsule, in_device_memory
from .capture import Capture, CaptureError, Forward, Job, Options, Slot
from .capture import Call as SeenCall
from .errors import Error, make_error
from .heads import stats_words
from .native import ENGINE_OPTIONS, _native, take_engine, word

# Options of capture() that say how a folder is written.
_OF_FOLDERS = frozenset({"values", "rows", "extra", "force"})
# Which calls and heads: a table's runs have the same.
_CHOICE = ("layers", "steps", "chunks", "heads", "kinds", "blocks", "slots", "branch")
_STATS = ("sample", "exact", "band", "threshold", "arrays")
_LAUNCHES: dict[str, str] = {}  # what the processes of one start share, by file


@dataclass(frozen=True)
class Products:
    """The products that are measured of each head."""

    stats: bool = False
    pooled: list[int] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)

    @staticmethod
    def parse(products: str | Sequence[str]) -> Products:
        """Of "stats", "pooled:64" and "mask:spatial:frames=1"."""
        given = [products] if isinstance(products, str) else list(products)
        stats, pooled, masks = False, [], []
        for product in given:
            name, _, words = str(product).partition(":")
            if name == "stats" and not words:
                stats = True
            elif name == "pooled" and words.isdecimal() and int(words) > 0:
                pooled.append(int(words))
            elif name == "mask" and words:
                masks.append(words)
            else:
                raise make_error(
                    f'products: expected "stats", "pooled:N" or "mask:MASK" (got {product!r})', "usage"
                )
        if not given or len(set(pooled)) < len(pooled) or len(set(masks)) < len(masks):
            raise make_error(f"products: expected some, none twice (got {given!r})", "usage")
        return Products(stats, sorted(pooled), masks)

    def words(self) -> list[str]:
        return (
            ["stats"] * self.stats
            + [f"pooled:{side}" for side in self.pooled]
            + [f"mask:{mask}" for mask in self.masks]
        )


@dataclass(frozen=True)
class _Measurement:
    """The options of a probe besides the choice of calls."""

    products: Products
    engine: _native.Engine
    words: dict[str, str]  # of stats
    mask_block: int = 0
    mask_exact: bool = False

    def of(self, job: Job) -> _native.MeasuredGroups:
        """The heads of a call, as they would be measured if its file were opened."""
        facts = {name: fact for name, fact in job.facts.items() if name != "part"}
        metadata = {name: f if isinstance(f, str) else json.dumps(f) for name, f in facts.items()}
        tensors = {name: self._taken(name, as_stored(tensor.detach())) for name, tensor in job.tensors.items()}
        call = _native.recorded_call(job.name, tensors, metadata)
        p = self.products
        return _native.measure(
            call, self.engine, p.stats, self.words, p.pooled, p.masks, self.mask_block, self.mask_exact
        )


    def _taken(self, name: str, tensor: Any) -> Any:
        """Where the engine computes on the tensor's device, q and k stay there."""
        if name in ("q", "k") and in_device_memory(tensor, self.engine):
            return device_capsule(tensor, name)
        return tensor.cpu()


class _Table:
    """The sink of a probe's recorder: measures calls as they come, and puts the numbers into the table."""

    def __init__(
        self, path: Path, measurement: _Measurement, options: dict[str, Any], force: bool, strict: bool
    ) -> None:
        self.root: dict[str, Any] = {}
        self.calls: list[str] = []  # that are in the table
        self.heads = 0  # the same
        self.taken = 0  # calls that were measured
        self.run: dict[str, Any] = {}
        self.named: str | None = None  # run=
        self.shared: str | None = None  # of a run whose heads several processes have: what tells it
        self.notes: list[str] = []
        self.path = path
        self._measurement = measurement
        self._options = options
        self._force = force
        self._strict = strict
        self._journal: _native.MetricJournal | None = None
        self._begun = False
        self._error: BaseException | None = None
        self._held: list[tuple[str, _native.MeasuredGroups]] = []
        self._refused: list[dict[str, Any]] = []  # what could not be measured

    def open(self, stack: contextlib.ExitStack, root: dict[str, Any]) -> None:
        self.root = root
        about = root.get("extra", {})
        model = {"model": root["model"], "class": about.get("class"), "model_layers": about.get("layers")}
        options = {**self._options, **model, "backend": self._measurement.engine.backend}
        self._journal = _native.MetricJournal(os.fspath(self.path), json.dumps(options), self._force)
        self.notes += self._journal.notes
        if self.named is not None and self.named in self._journal.names:
            raise make_error(f'{self.path}: has a run "{self.named}": give another run=', "file")

    def take(self, job: Job) -> None:
        if "queries" in job.facts.get("part", {}):
            raise CaptureError(
                f"{job.name}: this process has a part of the call's tokens, whose rows lack the keys of the other "
                "processes: metrics need a model whose tokens are not split (capture() records the parts)"
            )
        self.raise_error()
        try:
            groups = self._measurement.of(job)
        except Error as error:
            if self._strict or error.code not in ("value", "usage"):
                raise
            raise CaptureError(str(error)) from error  # what the model computes goes on
        self.taken += 1
        if not self._begun:
            self._begin(job)
        if job.held:
            self._held.append((job.name, groups))
        else:
            self._append(job.name, groups)

    def settle(self, keep: bool) -> None:
        held, self._held = self._held, []
        try:
            for name, groups in held if keep else ():
                self._append(name, groups)
        except BaseException as error:  # raised by raise_error(), when the hooks are gone
            self._error = error

    def rename(self, held: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        for n, (name, groups) in enumerate(self._held):
            new, facts = held[name]
            groups.number(facts["forward"], facts.get("of_step", -1), "step" in facts)
            self._held[n] = new, groups
        self.settle(keep=True)

    def add(self, name: str, entry: dict[str, Any]) -> None:
        if name == "refused":
            self._refused.append(entry)

    def raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def finish(self, complete: bool, steps: Mapping[int, float]) -> None:
        """Puts the run into the table."""
        journal, self._journal = self._journal, None
        if journal is None:
            return
        self.run.update(complete=complete, seconds=sum(steps.values()), steps=sorted(steps.items()))
        if self._refused:
            self.run["refused"] = self._refused
        if self._begun:
            journal.finish(json.dumps(self.run), self._measurement.engine)
        self.raise_error()

    def close(self) -> None:
        """Lets others write the table."""
        self._journal = None

    def _begin(self, job: Job) -> None:
        assert self._journal is not None
        self._begun = True
        run = self.run
        run["prompt"] = run["prompt"] or str(job.facts.get("prompt", ""))
        if self.named is None:
            seed = "" if run["seed"] is None else f"seed {run['seed']}"
            named = ", ".join(part for part in (run["prompt"], seed) if part) or "run"
            run["run"] = self._journal.unlike_name(named)
        if self.shared is not None:
            run["id"] = f"{self.shared}:{run['run']}"
        self._journal.begin(json.dumps({**run, "complete": False, "seconds": 0.0, "steps": []}))

    def _append(self, name: str, groups: _native.MeasuredGroups) -> None:
        assert self._journal is not None
        self._journal.append(groups)
        self.calls.append(name)
        self.heads += groups.heads


class Probe(Capture):
    """A running or finished probe; made by probe(). Used by the thread that runs the model.

    run: the name that the run has in the table; steps, heads: how many were measured; overhead: seconds that
    measuring took, a dict by step (−1: of forwards whose step nothing tells); seconds: of the whole block.
    """

    SPEAKER = "attnscope.probe"

    def __init__(
        self, model: Any, path: Path, options: Options, table: _Table, every: int, run: dict[str, Any]
    ) -> None:
        super().__init__(model, path, options, sink=table)
        self._table = table
        self.overhead: dict[int, float] = {}
        self.seconds = 0.0
        self._began = 0.0
        wanted = self._step_test
        self._step_test = lambda step: step % every == 0 and wanted(step)
        self._every_step &= every == 1
        rank = self._rank
        self._asked = self.path = path
        if rank is not None:
            self.path = path.with_name(f"{path.stem}.rank-{rank.rank}-of-{rank.ranks}{path.suffix}")
        table.path = self.path
        launch = "" if rank is None else _LAUNCHES.setdefault(os.path.abspath(path), rank.run or "")
        table.run = {
            "id": uuid.uuid4().hex,
            "run": run["run"] or "",
            "prompt": run["prompt"] or "",
            "seed": run["seed"],
            "launch": launch,
            "rank": rank.rank if rank is not None else 0,
            "ranks": rank.ranks if rank is not None else 1,
        }
        table.named = run["run"]
        if options.head_offset is not None:
            self._share("head_offset: the heads")

    @property
    def run(self) -> str:
        """The name that the run has in the table; empty before its first call."""
        return str(self._table.run["run"])

    @property
    def heads(self) -> int:
        """Heads that were measured."""
        return self._table.heads

    def __enter__(self) -> Probe:
        self._began = time.perf_counter()
        try:
            super().__enter__()
        except BaseException:
            self._table.close()
            raise
        for note in self._table.notes:
            self._say(note)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            super().__exit__(kind, error, trace)
        except BaseException:
            self._finish(complete=False, failing=True)
            raise
        self._finish(complete=error is None, failing=error is not None)

    def _finish(self, complete: bool, failing: bool) -> None:
        self.seconds = time.perf_counter() - self._began
        try:
            self._table.finish(complete, self.overhead)
        except BaseException as error:
            if not failing:
                raise
            # The error that ends the block is what its caller has to know first.
            self._say(f"{self.path}: the run is in {self.path}.part alone: {error}")
            return
        if not self._table.calls:
            return
        self._say(self._told())
        rank = self._rank
        if rank is not None and rank.rank == 0:
            parts = self._asked.with_name(f"{self._asked.stem}.rank-*{self._asked.suffix}")
            joined = f"attnscope merge {parts} -o {self._asked}"
            self._say(f"{self._asked}: {joined} joins the files of {rank.ranks} processes")

    def _told(self) -> str:
        spent = sum(self.overhead.values())
        steps = len(self.overhead)
        return (
            f"{self.path}: {self.heads} heads of {len(self._table.calls)} calls in {steps} step"
            f"{'' if steps == 1 else 's'}, run {self.run!r}; measuring took {spent / max(steps, 1):.3g} s a step, "
            f"{spent / max(self.seconds, 1e-9):.0%} of the block's {self.seconds:.3g} s"
        )

    def add_video(self, video: Any, frames_per_latent: int | None = None) -> None:
        """A table has no pictures."""
        raise CaptureError("add_video: a probe keeps numbers alone; capture() keeps pictures")

    def _see_slot(self, slot: Slot | None, call: SeenCall) -> None:
        forward = self._forwards.forward
        step = forward.step if forward is not None else self._bare.step
        step = -1 if step is None else step
        if call.q.is_cuda and (forward is None or forward.chosen):
            torch.cuda.synchronize(call.q.device)  # what the model has to compute anyway is no overhead
        before, begin = self._table.taken, time.perf_counter()
        try:
            super()._see_slot(slot, call)
        finally:
            if self._table.taken > before:
                self.overhead[step] = self.overhead.get(step, 0.0) + time.perf_counter() - begin

    def _offset(self, forward: Forward, call: SeenCall, slot: Slot, heads: int | None) -> int:
        if heads is not None and heads != call.q.shape[1]:
            self._share(f"{slot.name}: its heads")
        return super()._offset(forward, call, slot, heads)

    def _share(self, what: str) -> None:
        """Other processes have heads of the same run. Raises CaptureError where nothing tells that it is."""
        rank = self._rank
        if rank is None or self._table.shared is not None:
            return
        if rank.run is None and self._table.named is None:
            raise CaptureError(
                f"{what} are split over processes, and nothing tells that their runs are one: give all of them the "
                "same run="
            )
        self._table.shared = rank.run or "run"


def probe(
    model: Any,
    out: str | os.PathLike[str],
    /,
    products: str | Sequence[str] = ("stats",),
    *,
    run: str | None = None,
    prompt: str | None = None,
    seed: int | None = None,
    every: int = 1,
    mask_block: int = 0,
    mask_exact: bool = False,
    force: bool = False,
    **options: Any,
) -> Probe:
    """A context manager that measures the heads of `model` while it runs, and adds a run to the table `out`, an HDF5
    file that attnscope.open() reads.

    model: as of attnscope.capture.capture(): a diffusers pipeline or transformer, a transformers model, any module, or
    None. products: "stats", the numbers of `attnscope stats`; "pooled:N", largest and mean weight of blocks of N × N;
    "mask:MASK", what a sparse mask would keep, as --mask takes it. run: the run's name; its prompt and seed unless it
    is given. every: measure each n-th step.

    options: those of stats (sample=N rows a head, exact, band, threshold={"sink": 0.2}, arrays=["frame_frame"]); how
    it is computed (memory, threads, backend, vram, tf32); all others as of capture(): layers, steps, heads, kinds,
    blocks, slots, branch, branches, guidance, grid, text, tokens, modules, rank, quiet …. mask_block, mask_exact: as
    block and exact of Head.mask(). force: replaces what has the name `out`.

    The numbers are those of a capture of the same calls that is measured afterwards, to the bit. Each call is measured
    when it was made; tensors of a device are copied to the host first. What is measured is in OUT.part at once,
    whatever ends the process, and in OUT when the block ends, however it ends. What cannot be recorded or measured is
    left out, told and listed in the run (`refused`). Raises attnscope.Error where options cannot be meant or `out` has
    runs of other options, and what the recorder raises (CaptureError, LabelError).
    """
    if not (isinstance(every, int) and every > 0):
        raise make_error(f"every: expected a whole number from 1 (got {every!r})", "usage")
    if seed is not None and not isinstance(seed, int):
        raise make_error(f"seed: expected a whole number (got {seed!r})", "usage")
    if run is not None and not (isinstance(run, str) and run):
        raise make_error(f"run: expected a name (got {run!r})", "usage")
    wanted = Products.parse(products)
    engine = take_engine(options)
    stats = {name: options.pop(name) for name in _STATS if name in options}
    if stats and not wanted.stats:
        raise make_error(f'{next(iter(stats))}: is of "stats", which products lacks', "usage")
    if (mask_block or mask_exact) and not wanted.masks:
        raise make_error('mask_block, mask_exact: are of "mask:…", which products lacks', "usage")
    words = stats_words(stats)
    _native.check_metrics(words)
    chosen = Options(**_known(options), prompt=prompt, values=bool(wanted.masks), rows=0)
    content = {
        "products": wanted.words(),
        **{name: _plain(getattr(chosen, name)) for name in _CHOICE},
        "every": every,
        **{name: words.get("with" if name == "arrays" else name) for name in _STATS},
        "mask_block": mask_block,
        "mask_exact": mask_exact,
    }
    path = Path(out)
    if path.suffix != ".h5":
        raise make_error(f'{path}: the name must end in .h5 (got "{path.suffix}")', "usage")
    table = _Table(path, _Measurement(wanted, engine, words, mask_block, mask_exact), content, force, chosen.strict)
    return Probe(model, path, chosen, table, every, {"run": run, "prompt": prompt, "seed": seed})


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(Options)} - _OF_FOLDERS - {"prompt"}
    for name in options:
        if name not in known:
            every = sorted(known | {*_STATS, *ENGINE_OPTIONS})
            raise make_error(f"probe: unknown option {name} (known: {', '.join(every)})", "usage")
    return dict(options)


def _plain(value: Any) -> str:
    """A choice as one word, whatever it was given as."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return word(list(value) if not isinstance(value, (list, tuple, range)) else value)
