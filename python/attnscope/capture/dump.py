"""The dump that a capture makes: the names of its files, what all calls share, its catalogue."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .choice import head_range, key_head_range
from .differential import subtracted
from .errors import CaptureError
from .files import (
    FORMAT,
    FORMAT_2,
    NEW_FACTS,
    FolderLock,
    clear_folder,
    make_folder,
    read_catalogue,
    replace_file,
)
from .forward import Forward
from .options import Options
from .parallel import CallPart
from .pictures import as_pictures, picture_places
from .plan import DumpPlan
from .prompts import PromptWatch
from .ranks import Rank
from .selfcheck import check_result
from .slots import Model, Slot
from .stacks import check_place
from .steps import timestep_argument
from .tensors import Call, Snapshot, output_rows
from .writer import LISTS, Job, Sink, Writer


class Dump:
    """Takes the calls of one capture to the disk. `adds`: to the capture that is in the folder; `rank`: of
    this process, where several run the model together; `sink`: what gets the calls instead.

    Used by the thread that runs the model. Raises CaptureError where a call cannot be stored.
    """

    def __init__(
        self,
        folder: Path,
        model: Model,
        options: Options,
        watch: PromptWatch,
        plan: DumpPlan,
        adds: bool,
        rank: Rank | None,
        sink: Sink | None = None,
    ) -> None:
        self.writer: Writer | Sink | None = None  # from open() on
        self._sink = sink
        self._folder = folder
        self._model = model
        self._options = options
        self._watch = watch
        self._plan = plan
        self._adds = adds
        self._rank = rank
        self._names: dict[str, str] = {}  # of files, without their endings -> the module that made the call
        self._snapshot = Snapshot()
        self._before = 0  # calls that were in the folder
        self._held: dict[str, Any] = {}  # by file: facts, forward, slot, call's name

    @property
    def has_sink(self) -> bool:
        """True where a sink gets the calls and no folder is written."""
        return self._sink is not None

    @property
    def recorded(self) -> int:
        """Calls of this capture that are in the folder, or that the sink has."""
        return len(self.writer.calls) - self._before if self.writer is not None else 0

    @property
    def keeps(self) -> bool:
        """Has something of this capture reached the disk, or is it on its way?"""
        return self.recorded > 0 or (isinstance(self.writer, Writer) and self.writer.keeps)

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """Puts an entry into the list `name` of the catalogue, or of the sink."""
        if self.writer is not None:
            self.writer.add(name, entry)

    def open(self, stack: contextlib.ExitStack) -> None:
        """Makes and locks the folder; `stack` closes it."""
        if self.writer is not None:
            raise CaptureError("a capture runs once: make another one with capture()")
        if self._sink is not None:
            self.writer = self._sink
            self._sink.open(stack, self._root_facts())
            return
        make_folder(self._folder)
        stack.callback(FolderLock(self._folder).release)
        old = read_catalogue(self._folder) if self._adds and not self._options.force else None
        self._adds = old is not None
        if old is None:
            clear_folder(self._folder, self._options.force)
        self.writer = Writer(self._folder, old)
        stack.callback(self.writer.close)
        self.writer.root.update(self._root_facts())
        if old is not None:
            self._add_to(self.writer.root, old)
        self._before = len(self.writer.calls)

    def save(
        self,
        call: Call,
        items: list[int],
        facts: Mapping[str, Any],
        forward: Forward | None,
        offset: int,
        slot: Slot | None = None,
        call_name: str = "",
        named: Mapping[str, torch.Tensor] | None = None,
        part: CallPart | None = None,
    ) -> None:
        """Stores the chosen heads of the batch items `items` of the call.

        facts: what is known of the call; offset: the model's number of the call's head 0; slot: the module
        that made it, call_name: what the call is named within the block, named: tensors that facts name;
        part: what of the call's tokens is here, where other processes have the others.
        """
        assert self.writer is not None
        heads, key_heads = call.q.shape[1], call.k.shape[1]
        first, end = head_range(self._options.heads, heads)
        keys = key_head_range(first, end, heads, key_heads)
        o = self._options
        rows = part.rows(o.rows) if part is not None else output_rows(call.q.shape[2], o.rows)
        mask = call.stored_mask(items, (first, end), o.mask_limit)
        tensors = {
            **call.tensors(items, (first, end), keys, o.values, rows),
            **mask.tensors,
            **(named or {}),
        }
        if (call.source is not None or call.answered) and (part is None or part.has_keys):
            check_result(call, items, (first, end))
        facts = {
            **self._head_facts(self.writer.root),
            **facts,
            "layout": "bhsd",
            "scale": float(call.scale) if call.scale is not None else call.q.shape[-1] ** -0.5,
            **mask.facts,
            **self._part_facts(part),
            **_kernel_facts(call, part),
        }
        minus = subtracted(slot.module, slot.place.slot, call_name, offset + first) if slot is not None else None
        facts |= {"minus": minus} if minus is not None else {}
        name = self._name(facts, slot, call_name)
        if mask.second_format or call.sinks is not None or any(n in facts for n in NEW_FACTS):
            facts["format"] = FORMAT_2
        if offset + first:
            facts["head_offset"] = offset + first
        extra = self._call_extra(forward)
        if call.source is not None:
            extra["attention"] = call.source
        if extra:
            facts["extra"] = extra
        self._hand_over(Job(name, tensors, facts, held=forward is not None and forward.held), forward)
        if forward is not None and forward.held:
            self._held[name] = (facts, forward, slot, call_name)
        if forward is not None:
            forward.files.append(name)

    def settle(self, keep: bool) -> None:
        """The calls that are held belong to the capture, or do not."""
        assert self.writer is not None
        self._held.clear()
        self.writer.settle(keep)

    def number_held(self) -> None:
        """The calls that are held belong to the capture, and state numbers instead of a branch."""
        assert self.writer is not None
        renamed = {}
        for name, (facts, forward, slot, call_name) in self._held.items():
            kept = {n: f for n, f in facts.items() if n not in ("step", "branches", "tokens", "text_valid")}
            stated = {**forward.numbers(), **kept, "format": FORMAT_2}
            del self._names[Path(name).stem]
            renamed[name] = (self._name(stated, slot, call_name), stated)
            forward.files = [renamed[name][0] if file == name else file for file in forward.files]
        self._held.clear()
        self.writer.rename(renamed)

    def check(self, call: Call, items: list[int]) -> None:
        """Raises CaptureError where the first of the chosen heads of the batch items could not be stored."""
        first, end = head_range(self._options.heads, call.q.shape[1])
        key_head_range(first, end, call.q.shape[1], call.k.shape[1])
        call.stored_mask(items, (first, end), self._options.mask_limit)
        if call.source is not None or call.answered:
            check_result(call, items[:1], (first, first + 1))

    def files_of(self, slot: Slot, forward: Forward) -> list[str]:
        """The files of the calls that the module made in the forward."""
        return [name for name in forward.files if self._names[Path(name).stem] == slot.name]

    def drop(self, files: list[str]) -> int:
        """The calls of these files are no part of the capture; how many they were."""
        if files and self._sink is not None:
            raise CaptureError(
                f"a forward ended in an error after {len(files)} of its calls were measured, and the run went on: "
                "what was measured of it cannot be taken back. Start the run again"
            )
        for name in files:
            del self._names[Path(name).stem]
        if files:
            assert isinstance(self.writer, Writer)
            self.writer.drop(files)
        return len(files)

    def add_video(self, video: Any, tokens: int, frames_per_latent: int | None) -> None:
        """Adds pictures of the video, one for each of `tokens` token frames, to the catalogue."""
        assert isinstance(self.writer, Writer)
        pictures = as_pictures(video)
        entries = []
        for t, frame in enumerate(picture_places(self._model, len(pictures), tokens, frames_per_latent)):
            name = f"frame{t:03d}.png"
            replace_file(self._folder / name, lambda p, frame=frame: pictures[frame].save(p, format="PNG"))
            entries.append({"file": name, "t": t})
        self.writer.frames = entries
        self.writer.write_catalogue()

    def _hand_over(self, job: Job, forward: Forward | None) -> None:
        if self._sink is not None:
            self._sink.take(job)
            return
        assert isinstance(self.writer, Writer)
        size = sum(t.numel() * t.element_size() for t in job.tensors.values())
        self._plan.announce(size, forward if self._rank is None else None)
        self._plan.check_room(size)
        job.tensors, job.ready = self._snapshot.take(job.tensors)
        self.writer.put(job)

    def _add_to(self, root: dict[str, Any], old: Mapping[str, Any]) -> None:
        """Goes on with a capture: what holds for all of its calls stays where it holds for ours."""
        self._names = {Path(c["file"]).stem: "" for c in old["calls"]}
        if self._options.prompt is not None:
            root["prompt"] = self._options.prompt
        for name in ("model", "prompt"):
            if name in old and root.setdefault(name, old[name]) != old[name] or name not in old:
                root.pop(name, None)
        for name, value in old.items():
            if name not in ("format", "model", "prompt", "calls", "frames", *LISTS):
                root[name] = value

    def _root_facts(self) -> dict[str, Any]:
        extra = {"recorder": "attnscope_capture", "torch": torch.__version__}
        if self._model.transformers:
            extra["class"] = type(self._model.first).__name__
            numbers = [s.layer for s in next(iter(self._model.slots.values())) if s.layer is not None]
            extra["layers"] = 1 + max(numbers, default=-1)
        return {"model": self._model_name(), "extra": {**extra, **(self._options.extra or {})}}

    def _model_name(self) -> str:
        return self._options.model if self._options.model is not None else self._model.title()

    def _head_facts(self, root: dict[str, Any]) -> dict[str, Any]:
        """Facts that all calls share; the catalogue gets the prompt as well."""
        head: dict[str, Any] = {"format": FORMAT, "model": self._model_name()}
        prompt = self._options.prompt or self._watch.prompt.get("cond")
        if prompt is not None:
            head["prompt"] = prompt
            if not self._adds:
                root.setdefault("prompt", prompt)
        return head

    def _part_facts(self, part: CallPart | None) -> dict[str, Any]:
        """The facts of the whole that the call is a part of: what several processes have, and the tokens."""
        facts = dict(part.facts) if part is not None else {}
        if self._rank is not None:
            facts["part"] = {**self._rank.facts(), **facts.get("part", {})}
        elif part is not None:
            raise CaptureError("rank=: the model's sequence is split over several processes, not one")
        return facts

    def _call_extra(self, forward: Forward | None) -> dict[str, Any]:
        extra = dict(self._options.extra or {})
        if forward is not None and len(self._model.transformers) > 1:
            extra["transformer"] = self._model.name_of(forward.model)
        stamp = timestep_argument(forward.arguments) if forward is not None else None
        if isinstance(stamp, torch.Tensor) and stamp.ndim > 1:
            extra["timestep_lowest"] = float(stamp.min())
        return extra

    def _name(self, facts: dict[str, Any], slot: Slot | None, call_name: str) -> str:
        """The name of the call's file. The facts get block and slot where layer and kind do not tell it."""
        name, module = self._short_name(facts), slot.name if slot is not None else ""
        if slot is not None:
            taken = self._names.get(name, module) != module  # by another module of the block
            alone = slot.alone and call_name == slot.place.slot and not taken
            if slot.named or not alone:
                facts |= {"block": slot.place.block, "slot": call_name}
                check_place(slot.place.block)
                check_place(call_name)
            if not alone:
                name = _file_word(f"{_moment(facts)}_{slot.place.block}_{call_name}")
                name += self._branch_suffix(facts)
        if name in self._names:
            raise CaptureError(
                f"{name}: this step, layer, kind and branch came twice: give every step of the run a number of its "
                "own (cap.begin_step(n)), and capture each run of the model in a block of its own"
                if not self._adds
                else f"{name}: {self._folder} holds this step, layer and kind already: give another step= "
                "or layer="
            )
        self._names[name] = module
        return name + ".safetensors"

    def _short_name(self, facts: Mapping[str, Any]) -> str:
        name = f"{_moment(facts)}_layer{facts.get('layer', 0):03d}"
        name += f"_{facts['kind']}" if "kind" in facts else ""
        return name + self._branch_suffix(facts)

    def _branch_suffix(self, facts: Mapping[str, Any]) -> str:
        branches = facts.get("branches", [])
        if len(branches) == 1 and self._options.branch != branches[0] and self._model.transformers:
            return "_" + _file_word(branches[0])
        return ""


def _kernel_facts(call: Call, part: CallPart | None) -> dict[str, Any]:
    """How the call's weights are made, where that is no exact softmax."""
    special = call.score is not None or call.cap or call.sinks is not None
    if special and part is not None:
        what = "linear attention" if call.score is not None else "attention with a soft cap or sinks"
        raise CaptureError(f"{call.source}: {what} split over processes cannot be recorded: run the model in one")
    score = f"softcap:{call.cap!r}" if call.cap else call.score
    facts = {"approximation": call.approximation, "score": score}
    return {name: value for name, value in facts.items() if value is not None}


def _moment(facts: Mapping[str, Any]) -> str:
    """Step and chunk as a file's name begins with them."""
    moment = f"step{facts['step']:04d}" if "step" in facts else f"forward{facts['forward']:04d}"
    moment += f"_f{facts['of_step']}" if "of_step" in facts else ""
    return moment + (f"_chunk{facts['chunk']:04d}" if "chunk" in facts else "")


def _file_word(text: str) -> str:
    """`text` with underscores for what a file's name had better not have."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)
