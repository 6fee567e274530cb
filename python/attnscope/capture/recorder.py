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
from .call_checks import call_items, check_any_call, check_calls, check_items, check_piece
from .choice import largest_named, parse_numbers
from .chunks import ChunkTeller
from .dump import Dump
from .errors import CaptureError, LabelError
from .facts import AS_GIVEN, FactTeller, bare_facts, is_mixed
from .forward import Forward
from .forward_watch import ForwardWatch
from .grids import Grid, as_grid
from .guidance import BranchTeller
from .hooks import CallHooks, SlotStack, watch_scheduler
from .maps import MapTeller, film_grid
from .narrator import Narrator
from .option_checks import check_options
from .options import Options
from .parallel import PartTeller, first_head
from .plan import DumpPlan
from .prompts import PromptWatch
from .ranks import this_rank
from .refusals import check_gradients, check_runnable, check_together
from .selection import Selection
from .slots import IMAGE_CALL, Model, Slot
from .steps import StepCounter, timestep_argument, timestep_key, timestep_of
from .tensors import Call
from .writer import Sink, Writer

_ACTIVE = threading.Lock()


class Capture:
    """A running or finished capture; made by capture(). Used by the thread that runs the model.

    `adds`: to the capture that is in the folder, which need not be there; `sink`: what gets the calls instead.
    """

    SPEAKER = "attnscope_capture"  # whose lines these are

    def __init__(
        self, model: Any, out: str | os.PathLike[str], options: Options, adds: bool = False, sink: Sink | None = None
    ) -> None:
        check_options(options)
        self.options = options
        self._say = Narrator(self.SPEAKER, options.quiet).say
        self._model = Model.of(model, options.modules)
        for transformer in self._model.transformers.values():
            check_runnable(transformer)
        self._step_test = parse_numbers(options.steps, "steps")
        self._chunks = ChunkTeller()
        self._selection = Selection(options)
        parse_numbers(options.heads, "heads")
        self._selection.check(self._model)
        self._branches = BranchTeller(self._model, options, self._say)
        self._counter = StepCounter(self._branches.guidance, options.branches)
        self._running = SlotStack()
        self._stack = contextlib.ExitStack()
        self._watch = PromptWatch(model, self._model.family)
        self._facts = FactTeller(self._model, options, self._watch)
        self._maps = MapTeller(self._model, options, self._facts, self._say)
        owners = (self._counter, self._chunks)
        self._forwards = ForwardWatch(self._model, self._begin, self._end, self._drop, owners)
        self._bare = [0, 0, None]  # step, next layer, timestep of calls without a model
        self._grid: Grid | None = as_grid(options.grid)
        self._first = True
        self._untried = True  # no forward has shown what the chosen ones are like
        self._mixed = False  # the stream that runs was given something else than words
        self._records_one = adds  # record(): q and k are whatever its caller has
        self._arrivals = Arrivals()
        self._parts = PartTeller(self._model, self._maps)
        self._rank = this_rank(options.rank, out)
        self.folder = Path(out) if self._rank is None else self._rank.folder(Path(out))
        separate = self._branches.guidance == "forwards"
        self._plan = DumpPlan(self._model, options, self.folder, separate, self._say)
        self._dump = Dump(self.folder, self._model, options, self._watch, self._plan, adds, self._rank, sink)
        self.finished = False

    @property
    def writer(self) -> Writer | Sink | None:
        """What writes the calls; None before the block is entered."""
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
            self._branches.watch(self._stack)
            for line in [*self._model.not_recorded(), *self._model.layers_told()]:
                self._say(line)
            if self._model.hf:
                self._chunks.watch(self._stack)
            watch_scheduler(self._stack, self._model.owner, self._counter, self._say)
            check_together(self._model)
            self._running.install(self._stack, self._model)
            self._forwards.install(self._stack)
            hooks = CallHooks(self._see, self._see_compiled)
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
        self.writer.settle(keep=refusal is None)
        self._stack.close()
        self.finished = True
        if error is not None:
            return
        self.writer.raise_error()
        if refusal is not None:
            raise refusal
        self._forwards.turns.raise_refusal()
        if not self.writer.calls:
            raise CaptureError(
                self._arrivals.why_nothing(bool(self._model.transformers), self._counter.steps, self._selection)
            )
        last = largest_named(self.options.steps)
        if self._model.transformers and last is not None and last >= self._counter.steps:
            self._say(f"step {last} was asked for, but the run had {self._counter.steps} steps")
        if self._rank is not None and self._rank.rank == 0 and not self._dump.has_sink:
            self._say(self._rank.joined_by(self.folder.parent))

    # ---- a forward of the transformer

    def _begin(self, module: torch.nn.Module, given: dict[str, Any]) -> Forward | None:
        self._running.clear()
        if given.get("skip_layers") is not None:
            self._say("a forward with skip_layers (skip-layer guidance) is not recorded")
            return None
        check_gradients(module, self._model.as_called(self._model.name_of(module)))
        with torch.no_grad():  # what is computed of its arguments is no part of the model's graph
            return self._describe(module, given)

    def _describe(self, module: torch.nn.Module, given: Mapping[str, Any]) -> Forward:
        """Step, branch, grid and text of the forward that begins."""
        stamp = timestep_argument(given)
        first = not self._counter.steps
        chunk, stream = self._chunks.of_forward(given, self._model.hf)
        if stream is not None:
            self._counter.begin_chunk(stream)
        step, branch = self._counter.next(
            timestep_key(stamp), self._branches.of_forward(module), self._branches.has_both(module)
        )
        if self._counter.began and not first:
            self._end_step()
        names = self._branches.names(module, given, branch)
        items = [i for i, n in enumerate(names or []) if self._branches.wants(n)]
        check_items(self._model, names or [], items)
        chosen = self._step_test(step) and self._selection.chunk(chunk and chunk.number) and (names is None or bool(items))
        wanted = names is None or bool(items)
        # Late steps are tried now; not pieces of streams, which are counted, nor parts, which are exchanged.
        tried = self._untried and wanted and not self._step_test(step) and chunk is None and self._rank is None
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
            module,
            given,
            step,
            timestep_of(stamp),
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
        assert self.writer is not None
        self.writer.settle(keep=True)
        if self._arrivals.end_step():
            self._say(f"nothing of the first step was recorded: {self._arrivals}; {self._selection}")

    def _end(self, forward: Forward, called: torch.nn.Module) -> None:
        if self._first:
            check_any_call(forward, called)
        self._first = False
        slots = self._model.slots[self._model.name_of(forward.model)] if forward.chosen else ()
        check_calls(self._model, [s for s in slots if self._selection.module(s)], forward)

    def _drop(self, forward: Forward) -> None:
        count = self._dump.drop(forward.files)
        self._say(
            f"step {forward.step}: a forward ended in an error, and the run went on: {count} calls that it made "
            "are left out, and it is no step"
        )

    # ---- a call

    def _see(self, call: Call) -> None:
        self._see_slot(self._running.innermost, call)

    def _see_compiled(self, number: int, call: Call) -> None:
        self._see_slot(self._running.numbered(number), call)

    def _see_slot(self, slot: Slot | None, call: Call) -> None:
        forward = self._forwards.forward
        if not self._model.transformers:
            self._record_bare(call)
        elif slot is not None and forward is not None:
            self._forwards.turns.check_call(slot.name)
            self._record_slot(slot, forward, call)

    def _record_slot(self, slot: Slot, forward: Forward, call: Call) -> None:
        self._arrivals.call(slot.name, self._selection.may_have(slot))
        index = forward.calls.get(id(slot.module), 0)
        forward.calls[id(slot.module)] = index + 1
        if not (forward.chosen or forward.tried) or not self._selection.module(slot):
            return
        names, items = forward.names, list(forward.items)
        if self._model.family and self._model.family.per_sample:
            if index not in items:
                return
            names, items = [names[index]], [0]  # type: ignore[index]
            call_name = slot.place.slot
        else:
            call_name = slot.call_name(index, self._model.calls_due(slot, forward))
        if call_name.endswith(IMAGE_CALL) and not call.k.shape[2]:
            self._say(f"{slot.name}: its call with image keys has none, and is not recorded")
            return
        if not self._selection.slot(call_name):
            return
        call.check(slot.name)
        call = call.spread(slot.name)
        whole = self._parts.whole(slot, call_name, forward, call)
        shape = whole.shape if whole is not None else call
        if forward.is_piece(slot.name):
            check_piece(slot.name, whole is not None)
            call, tokens = self._maps.of_chunk(slot, call_name, forward, call, self._chunks)
            shape = call
        else:
            tokens = self._maps.of_call(slot, call_name, forward, shape)
        kind = self.options.kind or (tokens and tokens.kind) or self._facts.kind(slot, forward, shape)
        if not self._selection.call(call_name, kind):
            return
        if whole is None:
            self._parts.check(slot, call_name, forward, call)
        tokens = tokens or self._maps.of_unknown(slot, kind, forward, shape)
        times = self._facts.times(slot, forward)
        names, items, times = call_items(self._model, slot, names, items, call.q.shape[0], times)
        branches = [names[i] for i in items] if names is not None else []
        facts = self._facts.call_facts(slot, forward, kind)
        if forward.is_piece(slot.name):
            facts["chunk"] = forward.chunk.number  # type: ignore[union-attr]
        named: dict[str, torch.Tensor] = {}
        if tokens is None:
            facts |= self._facts.text_facts(slot, forward, shape, kind, branches, times, items, index)
        expanded = [b for b in branches for _ in range(times)]
        items = [i * times + j for i in items for j in range(times)]
        if expanded:
            facts["branches"] = expanded[:1] if len(set(expanded)) == 1 else expanded
        if tokens is not None:
            stated, named = self._maps.facts(tokens, forward, items, expanded, call.q.shape[0])
            facts |= stated
        if forward.tried:
            self._dump.check(call, items)
            return
        self._arrivals.recorded()
        part = None
        if whole is not None:
            facts, part = whole.part(facts, kind)
        offset = self._offset(forward, call, slot, getattr(slot.module, "heads", None))
        self._dump.save(call, items, facts, forward, offset, slot, call_name, named, part)

    def _offset(self, forward: Forward, call: Call, slot: Slot, heads: int | None) -> int:
        """The model's number of the call's head 0."""
        if self.options.head_offset is not None:
            return self.options.head_offset
        return first_head(forward.model, call.q.shape[1], heads, slot.name)

    # ---- what the user tells while the model runs

    def begin_step(self, step: int, timestep: float | None = None, *, layer: int = 0) -> None:
        """The forwards that follow belong to `step`, counted from 0, whatever else tells steps.

        For capture(None, …): the calls that follow do, layers from `layer` on, at `timestep`.
        """
        self._bare = [step, layer, timestep]
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
        self._bare = [0, layer, None]
        if grid is not None:
            self._grid = as_grid(grid)

    def branch(self, name: str) -> contextlib.AbstractContextManager[None]:
        """For a with-block: the forwards in it are the branch `name` ("cond", "uncond" or another)."""
        return self._branches.named(None, name)

    def _record_bare(self, call: Call) -> None:
        step, layer, timestep = self._bare
        self._bare[1] += 1
        chunk = self._chunks.of_bare()
        wanted = self._step_test(step) and self._selection.chunk(chunk and chunk.number)
        if not (wanted and self._selection.layer(layer)):
            return
        call = call.with_batch()
        call.check(f"call {layer}")
        call = call.spread(f"call {layer}")
        if call.exchanged:
            raise CaptureError(
                f"call {layer}: processes exchange parts of its keys, and nothing tells which this one holds: "
                "pass the transformer to capture()"
            )
        facts = bare_facts(self.options, self._grid, step, layer, timestep, call.k.shape[2])
        if not self._records_one:
            facts.setdefault("q_state", AS_GIVEN)
        if chunk is not None:
            call, stated = self._maps.of_bare_chunk(f"call {layer}", chunk, call, self._grid, self._chunks)
            facts = {n: f for n, f in facts.items() if n not in ("grid", "tokens", "text_valid")} | stated
        self._dump.save(call, list(range(call.q.shape[0])), facts, None, self.options.head_offset or 0)

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
