"""The recorder: sees a model's calls while it runs and hands them to the writer."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .arrivals import Arrivals
from .bare import BareCalls
from .call_checks import check_any_call, check_items, wrong_calls
from .choice import largest_named, parse_numbers
from .chunks import Chunk, ChunkTeller
from .contents import Contents
from .dump import Dump
from .errors import CaptureError, DiskError, LabelError
from .facts import FactTeller, is_mixed
from .forward import Forward
from .forward_watch import ForwardWatch
from .gaps import Gaps
from .grids import Grid, as_grid
from .guidance import BranchTeller
from .hooks import CallHooks, SlotStack, watch_scheduler
from .labels import Labels
from .maps import MapTeller, film_grid
from .narrator import Narrator
from .option_checks import check_options
from .options import Options
from .origins import BranchTensors
from .parallel import PartTeller
from .plan import DumpPlan
from .prompts import PromptWatch
from .ranks import this_rank
from .refusals import check_gradients, check_runnable, check_together
from .seen import SeenCalls
from .selection import Selection
from .slots import Model, Slot
from .steps import StepCounter
from .writer import Sink, Writer

_ACTIVE = threading.Lock()
BY_NUMBER = "recorded by number"  # what is said of calls that state their forward's number


class Capture(SeenCalls):
    """A running or finished capture; made by capture(). Used by the thread that runs the model.

    `adds`: to the capture that is in the folder, which need not be there; `sink`: what gets the calls instead.
    """

    SPEAKER = "attnscope_capture"  # whose lines these are

    def __init__(
        self, model: Any, out: str | os.PathLike[str], options: Options, adds: bool = False, sink: Sink | None = None
    ) -> None:
        check_options(options)
        self.options = options
        self._narrator = Narrator(self.SPEAKER, options.quiet)
        self._say = self._narrator.say
        self._model = Model.of(model, options.modules)
        for transformer in self._model.transformers.values():
            check_runnable(transformer)
        self._step_test = parse_numbers(options.steps, "steps")
        self._every_step = options.steps == "all"
        self._chunks = ChunkTeller()
        self._selection = Selection(options)
        parse_numbers(options.heads, "heads")
        self._selection.check(self._model)
        self._made = BranchTensors()
        self._branches = BranchTeller(self._model, options, self._say, self._made)
        self._counter = StepCounter(self._branches.guidance, options.branches)
        self._running = SlotStack()
        self._stack = contextlib.ExitStack()
        self._watch = PromptWatch(model, self._model.family, self._made)
        self._facts = FactTeller(self._model, options, self._watch)
        self._maps = MapTeller(self._model, options, self._facts, self._say)
        tellers = (self._branches, self._chunks, self._counter, self._model.hf)
        self._labels = Labels(*tellers, self._cannot_name, self._doubt, self._end_step)
        owners = (self._counter, self._chunks, self._labels)
        self._forwards = ForwardWatch(self._model, self._begin, self._refuse_forward, self._end, self._drop, owners)
        self._grid: Grid | None = as_grid(options.grid)
        self._first = True
        self._untried = True  # no forward has shown what the chosen ones are like
        self._mixed = False  # the stream that runs was given something else than words
        self._arrivals = Arrivals()
        self._parts = PartTeller(self._model, self._maps)
        self._rank = this_rank(options.rank, out)
        self.folder = Path(out) if self._rank is None else self._rank.folder(Path(out))
        separate = self._branches.guidance == "forwards"
        self._plan = DumpPlan(self._model, options, self.folder, separate, self._say)
        self._dump = Dump(self.folder, self._model, options, self._watch, self._plan, adds, self._rank, sink)
        self._bare = BareCalls(options, self._selection, self._chunks, self._maps, self._dump, adds)
        self._gaps = Gaps(options.strict or adds, self._say, lambda entry: self._dump.add("refused", entry))
        if not self._gaps.strict:
            self._counter.doubt = self._doubt
        self._held: list[dict[str, Any]] = []  # entries of the step's forwards whose branch is not sure
        self._contents = Contents()
        self.finished = False

    @property
    def writer(self) -> Writer | Sink | None:
        """The writer or sink that takes the calls; None before the block is entered."""
        return self._dump.writer

    @property
    def planned(self) -> int | None:
        """Bytes of tensors that the line at the first call told; None before it."""
        return self._plan.planned

    @property
    def steps(self) -> int:
        """Denoising steps that the run has begun."""
        return self._counter.steps

    # ---- entering and leaving

    def __enter__(self) -> Capture:
        if not _ACTIVE.acquire(blocking=False):
            raise CaptureError("another capture is running in this process: captures cannot be nested")
        try:
            self._stack.callback(_ACTIVE.release)
            self._dump.open(self._stack)
            self._watch.install(self._stack)
            self._made.watch_guiders(self._stack, self._model.owner)
            self._branches.watch(self._stack)
            for line in [*self._model.not_recorded(), *self._model.layers_told()]:
                self._say(line)
            if self._model.hf:
                self._chunks.watch(self._stack)
            watch_scheduler(self._stack, self._model.owner, self._counter, self._say)
            check_together(self._model)
            self._running.install(self._stack, self._model)
            self._forwards.install(self._stack)
            hooks = CallHooks(self._see, self._see_compiled, self._refuse_untold)
            hooks.install(self._stack, self._model.all_slots())
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        refusal = error if isinstance(error, LabelError) else None
        if error is None:
            try:
                self._forwards.drop_failed()
                self._counter.finish()
            except LabelError as unfinished:
                refusal = unfinished
        assert self.writer is not None
        self._dump.settle(keep=refusal is None)
        self._stack.close()
        self.finished = True
        if error is not None:
            return
        self._check_writing()
        if refusal is not None:
            raise refusal
        if self._gaps.strict:
            self._forwards.turns.raise_refusal()
        if not self._dump.recorded:
            asked = (bool(self._model.transformers), self._counter.steps, self._selection)
            raise self._gaps.nothing(self._arrivals.why_nothing(*asked))
        for line in self._gaps.summary(self._dump.recorded):
            self._say(line)
        last = largest_named(self.options.steps)
        if self._model.transformers and last is not None and last >= self._counter.steps:
            self._say(f"step {last} was asked for, but the run had {self._counter.steps} steps")
        if self._rank is not None and self._rank.rank == 0 and not self._dump.has_sink:
            self._say(self._rank.joined_by(self.folder.parent))

    def _check_writing(self) -> None:
        """Of a disk that filled up: raises DiskError where nothing is in the capture, or strict."""
        assert self.writer is not None
        lost = getattr(self.writer, "lost", [])
        try:
            self.writer.raise_error()
        except DiskError as error:
            if self._gaps.strict or not self._dump.recorded:
                raise
            self._gaps.count(error, len(lost))

    # ---- a forward of the transformer

    def _begin(self, number: int, module: torch.nn.Module, given: dict[str, Any]) -> Forward | None:
        self._running.clear()
        entry: dict[str, Any] = {"forward": number, "transformer": self._model.name_of(module), "chosen": False}
        context = self._branches.context(module)
        entry |= {"context": context} if context is not None else {}
        self._dump.add("forwards", entry)
        if given.get("skip_layers") is not None:
            self._say("a forward with skip_layers (skip-layer guidance) is not recorded")
            return None
        if self._model.layout is not None and self._model.layout.aside(given):
            self._say("a forward that leaves keys of a reference in a cache before the steps is not recorded")
            return None
        try:
            with torch.no_grad():  # what is computed of its arguments is no part of the model's graph
                entry |= self._contents.of_forward(given)
                step, branch, chunk = self._labels.of_forward(module, given, entry)
            check_gradients(module, self._model.as_called(self._model.name_of(module)))
            with torch.no_grad():
                forward = self._describe(number, module, given, step, branch, chunk)
            self._labels.number(forward, entry)
        except CaptureError as error:
            if isinstance(error, LabelError) and not self._gaps.strict:
                self._doubt(error)
            self._gaps.refuse(error, {k: entry[k] for k in ("forward", "step") if k in entry})
            return None
        forward.entry = entry
        entry |= forward.told()
        if forward.held:
            self._held.append(entry)
        return forward

    def _describe(
        self,
        number: int,
        module: torch.nn.Module,
        given: Mapping[str, Any],
        step: int | None,
        branch: str | None,
        chunk: Chunk | None,
    ) -> Forward:
        """Batch items, grid and text of the forward that begins."""
        try:
            names = self._branches.names(module, given, branch) if self._labels.named else None
        except LabelError as error:
            self._cannot_name(error)
            names, self._labels.named = None, False
        in_step = self._step_test(step) if step is not None else self._every_step
        items = [i for i, n in enumerate(names or []) if self._branches.wants(n)]
        check_items(self._model, names or [], items)
        wanted = names is None or bool(items)
        chosen = in_step and self._selection.chunk(chunk and chunk.number) and wanted
        # Late steps are tried now; not pieces of streams, which are counted, nor parts, which are exchanged.
        tried = self._untried and wanted and not in_step and chunk is None and self._rank is None
        self._untried &= not (chosen or tried)
        self._arrivals.forward(names, wanted, chosen)
        if names is not None and not items and branch is None:
            raise CaptureError(
                f"branch {self.options.branch!r}: the batch has {', '.join(sorted(set(names)))}"
            )
        self._mixed = is_mixed(given) or bool(self._mixed and chunk and chunk.number)
        grid, text, valid = self._grid, None, None
        family = self._model.family
        if (chosen or tried) and family:
            grid = grid or family.grid(module, given)
            words = given.get("encoder_hidden_states")
            text = words.shape[1] if words is not None else None
            valid = family.valid(given)
        sequences = self._maps.sequences(module, given) if chosen or tried else None
        grid = grid or film_grid(sequences or {})
        self._grid = self._grid if tried else grid
        return Forward(
            number,
            module,
            given,
            step,
            self._model.timestep(given),
            names,
            items,
            grid,
            text,
            valid,
            chosen,
            tried,
            self._branches.in_doubt(module, branch),
            sequences,
            chunk,
            self._model.hf and self._mixed,
        )

    def _end_step(self) -> None:
        """No forward of the step before comes any more."""
        self._dump.settle(keep=True)
        self._held.clear()
        if self._counter.steps == 2 and self._counter.by_timestep and not self._model.hf:
            self._say(
                "each timestep is taken as a step, since no scheduler tells them: where the sampler evaluates a step "
                "several times, call cap.begin_step(n), or `attnscope relabel --steps` afterwards"
            )
        if self._arrivals.end_step():
            self._say(f"nothing of the first step was recorded: {self._arrivals}; {self._selection}")

    def _end(self, forward: Forward, called: torch.nn.Module) -> None:
        first, self._first = self._first, False
        try:
            if first:
                check_any_call(forward, called, self.options.modules)
        except CaptureError as error:
            self._gaps.refuse(error, forward.place())
            return
        slots = self._model.slots[self._model.name_of(forward.model)] if forward.chosen else ()
        for slot, error in wrong_calls(self._model, [s for s in slots if self._selection.module(s)], forward):
            self._gaps.tell(error, {**forward.place(), "layer_name": slot.name})
            forward.entry["partial"] = True
            self._gaps.partial.add(forward.number)
            if self._model.calls_due(slot, forward) > forward.calls.get(id(slot.module), 0) > 0:
                self._refuse_written(error, slot, forward)

    def _refuse_written(self, error: CaptureError, slot: Slot, forward: Forward) -> None:
        """Of calls that are told apart by their order some did not come: nobody knows which did."""
        files = self._dump.files_of(slot, forward)
        if not self._dump.has_sink:
            self._dump.drop(files)
            forward.entry["calls"] -= len(files)
        for _ in files:
            self._gaps.refuse(error, self._place(slot, forward, slot.place.slot))

    def _cannot_name(self, error: LabelError) -> None:
        """Nothing tells step or branch of the forward that begins: its calls state its number instead. Raises the
        error where strict."""
        self._gaps.tell(error, {}, BY_NUMBER)

    def _doubt(self, error: LabelError) -> None:
        """Takes the branches off what is held of the step, since they may be wrong: it states numbers instead."""
        for entry in self._held:
            entry.pop("branch", None)
        self._held.clear()
        self._gaps.tell(error, {}, BY_NUMBER)
        self._dump.number_held()

    def _refuse_forward(self, error: CaptureError, number: int) -> None:
        self._gaps.refuse(error, {"forward": number})

    def _drop(self, forward: Forward) -> None:
        try:
            count = self._dump.drop(forward.files)
        except CaptureError as error:
            self._gaps.refuse(error, forward.place())
            return
        forward.entry["calls"] = 0
        forward.entry.pop("step", None)
        self._say(
            f"step {forward.step}: a forward ended in an error, and the run went on: {count} calls that it made "
            "are left out, and it is no step"
        )

    # ---- what the user tells while the model runs

    def begin_step(self, step: int, timestep: float | None = None, *, layer: int = 0) -> None:
        """The forwards that follow belong to `step`, counted from 0, whatever else tells steps.

        For capture(None, …): the calls that follow do, layers from `layer` on, at `timestep`.
        """
        self._bare.begin(step, layer, timestep)
        self._counter.begin(step)

    def begin_chunk(
        self, chunk: int, *, query_position: int, key_positions: Any = None, grid: Any = None, layer: int = 0
    ) -> None:
        """The forwards that follow are the piece `chunk` of a stream, counted from 0; its steps begin at 0.

        query_position: the number in the stream, whose tokens are counted from 0, of the piece's first
        query; its others follow. key_positions: those of the keys in the order in which they lie in K, as
        ranges or pairs (first, past the last), or the number of the first where all follow it; None: keys are
        the queries. grid: the piece's own (T, H, W). layer: of the next call, for capture(None, …).

        Cross-attention's keys are of no stream. Of transformers' caches all this is known without.
        """
        self._chunks.say(chunk, query_position, key_positions)
        self._counter.begin_chunk()
        self._bare.begin(0, layer, None)
        if grid is not None:
            self._grid = as_grid(grid)

    def branch(self, name: str) -> contextlib.AbstractContextManager[None]:
        """For a with-block: the forwards in it are the branch `name` ("cond", "uncond" or another)."""
        return self._branches.named(None, name)

    # ---- afterwards

    def add_video(self, video: Any, frames_per_latent: int | None = None) -> None:
        """Adds pictures of the finished video, one a latent frame, to the capture.

        video: PIL pictures, or an array or tensor [F, H, W, 3] (uint8, or 0 to 1), or [F, 3, H, W], or
        one picture. frames_per_latent: frames of video a latent frame after the first (the VAE's
        factor), where the model does not tell.
        """
        if self.writer is None or not self.finished:
            raise CaptureError("add_video: after the with-block, when the capture is complete")
        if self._grid is None:
            raise CaptureError("add_video: the capture has no grid")
        self._dump.add_video(video, self._grid[0], frames_per_latent)
