"""Writes calls while the model goes on."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from .errors import CaptureError, DiskError
from .files import FORMAT, FORMAT_2, HELD, replace_file, restate, save_call

QUEUED_CALLS = 4  # calls that may wait for the disk before the model has to
# capture.json is written after each call; of more than so many calls, where others wait for the disk, in no more
# than this share of the time, of which listing thousands after each one would take all.
LISTED_AT_ONCE, CATALOGUE_SHARE = 256, 0.05
# Facts that the catalogue has of a call.
LISTED = ("step", "forward", "of_step", "chunk", "layer", "block", "slot", "call", "kind", "branches")
REFUSED_FACTS = ("forward", "step", "block", "slot", "layer_name")  # and of one that was refused
LISTS = ("forwards", "refused")  # of the catalogue, whose entries are a line each


@dataclass
class Job:
    """One call on its way to the disk: tensors in host memory once `ready` has come."""

    name: str
    tensors: dict[str, torch.Tensor]
    facts: dict[str, Any]
    ready: Any = None  # torch.cuda.Event
    held: bool = False  # until settle() it is not part of the capture


class Sink(Protocol):
    """Where a recorder's calls go instead of a folder. Used by the thread that runs the model.

    root: what all calls share, as capture.json has it; calls: what was taken, of which a recorder that has
    nothing complains.
    """

    root: dict[str, Any]
    calls: list[Any]

    def open(self, stack: contextlib.ExitStack, root: dict[str, Any]) -> None:
        """Before the first call; `stack` closes it."""

    def take(self, job: Job) -> None:
        """A call, whose tensors are the model's own: they may change when this has returned."""

    def settle(self, keep: bool) -> None:
        """The calls that are held belong to the capture, or do not."""

    def rename(self, held: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        """The calls that are held belong to the capture under other names, with other facts, by their old names."""

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """An entry of the catalogue's list `name`, which may change until the block ends."""

    def raise_error(self) -> None:
        """Raises what nobody was told yet."""


class Writer:
    """Writes calls in a thread of its own; capture.json lists a call once its file is complete.

    Calls that are held lie beside the others under names of their own (NAME.held) until settle() says
    whether they belong to the capture. Thread-safe. An error of the thread is raised by each put() after it
    and by raise_error(). `old`: the catalogue of the capture that the calls are added to.

    lists: what capture.json has beside the calls, by name; lost: facts of the calls that did not reach the disk.
    """

    def __init__(self, folder: Path, old: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.root: dict[str, Any] = {"format": old["format"] if old else FORMAT}
        self.calls: list[dict[str, Any]] = list(old["calls"]) if old else []
        self._lines = [_entry(call) for call in self.calls]  # of the catalogue: its text, made once
        self.frames: list[dict[str, Any]] = list(old.get("frames", [])) if old else []
        self.lists: dict[str, list[dict[str, Any]]] = {n: list(old.get(n, [])) if old else [] for n in LISTS}
        self.lost: list[Mapping[str, Any]] = []
        self.changed = False  # a list has something that capture.json lacks
        self.bytes = 0
        self._unlisted = False  # capture.json lacks calls that are complete
        self._next = 0.0  # when it is written again although calls wait
        self._error: BaseException | None = None
        self._handed = False
        self._lock = threading.Lock()
        self._sizes = {call["file"]: 0 for call in self.calls}  # bytes by file; of those that were there, none
        self._jobs: queue.Queue[Job | bool | frozenset[str] | dict[str, Any] | None] = queue.Queue(QUEUED_CALLS)
        self._held: list[tuple[str, Mapping[str, Any], int]] = []  # name, facts, bytes
        self._thread = threading.Thread(target=self._run, name="attnscope-writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Hands a call over; waits while QUEUED_CALLS are on their way."""
        self.raise_error()
        self._jobs.put(job)
        self._handed = True

    def settle(self, keep: bool) -> None:
        """The calls that are held become part of the capture, or are removed."""
        self._jobs.put(keep)

    def rename(self, held: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        """The calls that are held become part of the capture under other names, with other facts."""
        self._jobs.put(dict(held))

    def drop(self, names: Collection[str]) -> None:
        """The calls of these files are no part of the capture."""
        self._jobs.put(frozenset(names))

    def raise_error(self) -> None:
        """Raises what the thread failed with, as a DiskError."""
        if self._error is not None:
            raise DiskError(f"{self.folder}: writing failed: {self._error}") from self._error

    def close(self) -> None:
        """Waits until everything is on disk."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()
            self._settle(keep=False)  # what a failure of the thread has left
            self._list_lost()

    @property
    def keeps(self) -> bool:
        """Is a call of this capture beside those that are listed, or on its way to the disk?"""
        return bool(self._held) or (self._handed and self._error is None)

    @property
    def waiting(self) -> int:
        """Calls that wait for the disk, about, beside one that is being written."""
        return self._jobs.qsize() if self._thread.is_alive() else 0

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """Puts an entry into one of the lists; it may change until the capture ends."""
        self.lists[name].append(entry)
        self.changed = True

    def _list_lost(self) -> None:
        """Tells in the catalogue of what the disk did not take, if it takes that."""
        if not self.lost or not self.calls:
            return
        for facts in self.lost:
            short = {name: facts[name] for name in REFUSED_FACTS if name in facts}
            self.add("refused", {**short, "why": f"{self.folder}: writing failed: {self._error}"})
        with contextlib.suppress(OSError):  # raise_error() tells of the first
            self.write_catalogue()

    def write_catalogue(self) -> None:
        """Replaces capture.json by what is complete now."""
        begin = time.monotonic()
        with self._lock:
            self.changed = False
            head = {**self.root, **({"frames": self.frames} if self.frames else {})}
            text = json.dumps(head, indent=1, ensure_ascii=False)[: -len("\n}")]
            for name, entries in self.lists.items():
                text += _list_text(name, map(_entry, list(entries))) if entries else ""
            text += _list_text("calls", self._lines) + "\n}"
            replace_file(self.folder / "capture.json", lambda p: p.write_text(text, encoding="utf-8"))
            self._unlisted = False
        end = time.monotonic()
        self._next = end + (end - begin) / CATALOGUE_SHARE

    def _catch_up(self) -> None:
        """Writes capture.json where it lacks calls, so that a killed run has what it finished."""
        few = len(self.calls) <= LISTED_AT_ONCE or self._jobs.empty()
        if self._unlisted and (few or time.monotonic() >= self._next):
            self.write_catalogue()

    def _run(self) -> None:
        failed = False
        while (job := self._jobs.get()) is not None:
            try:
                if isinstance(job, Job):
                    if failed:
                        self.lost.append(job.facts)
                        continue
                    self._write(job)
                elif isinstance(job, frozenset):
                    self._drop(job)
                elif isinstance(job, dict):
                    self._rename(job)
                else:
                    self._settle(keep=job)
                self._catch_up()
            except BaseException as error:  # reaches the caller through raise_error()
                if isinstance(job, Job) and not self._has(job):
                    self.lost.append(job.facts)
                elif isinstance(job, dict):  # their old labels may be wrong
                    self.lost += [facts for _, facts, _ in self._held]
                    self._settle(keep=False)
                self._error, failed = self._error or error, True
        if self._unlisted or (self.changed and self.calls):
            try:
                self.write_catalogue()
            except OSError as error:
                self._error = self._error or error

    def _has(self, job: Job) -> bool:
        """Is the call on the disk, whatever came after?"""
        return job.name in self._sizes or any(name == job.name for name, _, _ in self._held)

    def _write(self, job: Job) -> None:
        if job.ready is not None:
            job.ready.synchronize()
        facts = _metadata(job.facts)
        name = job.name + HELD if job.held else job.name
        replace_file(self.folder / name, lambda p: save_call(p, job.tensors, facts))
        size = sum(t.numel() * t.element_size() for t in job.tensors.values())
        if job.held:
            self._held.append((job.name, job.facts, size))
        else:
            self._list(job.name, job.facts, size)

    def _list(self, name: str, facts: Mapping[str, Any], size: int) -> None:
        self.bytes += size
        self._sizes[name] = size
        if facts.get("format") == FORMAT_2:
            self.root["format"] = FORMAT_2
        self.calls.append({"file": name, **{k: facts[k] for k in LISTED if k in facts}})
        self._lines.append(_entry(self.calls[-1]))
        self._unlisted = True

    def _drop(self, names: frozenset[str]) -> None:
        """Takes calls out of the catalogue, then removes their files: a killed run lists none that is gone."""
        for name, _, _ in [held for held in self._held if held[0] in names]:
            (self.folder / (name + HELD)).unlink(missing_ok=True)
        self._held = [held for held in self._held if held[0] not in names]
        listed = [n for n, call in enumerate(self.calls) if call["file"] in names]
        for n in reversed(listed):
            self.bytes -= self._sizes.pop(self.calls[n]["file"])
            del self.calls[n], self._lines[n]
        if listed:
            self.write_catalogue()
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def _rename(self, names: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        while self._held:  # what a full disk leaves of them is lost
            name, facts, size = self._held[0]
            new, stated = names.get(name, (name, facts))
            restate(self.folder / (name + HELD), self.folder / new, _metadata(stated))
            (self.folder / (name + HELD)).unlink()
            del self._held[0]
            self._list(new, stated, size)

    def _settle(self, keep: bool) -> None:
        held, self._held = self._held, []
        for name, facts, size in held:
            if keep:
                os.replace(self.folder / (name + HELD), self.folder / name)
                self._list(name, facts, size)
            else:
                (self.folder / (name + HELD)).unlink(missing_ok=True)


def _metadata(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as a safetensors file has them."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in facts.items()}


def _entry(call: Mapping[str, Any]) -> str:
    """A line of one of capture.json's lists."""
    return "  " + json.dumps(dict(call), ensure_ascii=False)


def _list_text(name: str, lines: Iterable[str]) -> str:
    """A list of capture.json after what stands before it."""
    text = ",\n".join(lines)
    return f',\n "{name}": [' + (f"\n{text}\n ]" if text else "]")
