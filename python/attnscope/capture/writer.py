"""Writes calls while the model goes on."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from .errors import CaptureError
from .files import FORMAT, replace_file

QUEUED_CALLS = 4  # calls that may wait for the disk before the model has to


@dataclass
class Job:
    """One call on its way to the disk: tensors in host memory once `ready` has come."""

    name: str
    tensors: dict[str, torch.Tensor]
    facts: dict[str, Any]
    ready: Any = None  # torch.cuda.Event


class Writer:
    """Writes calls in a thread of its own; capture.json lists a call once its file is complete.

    Thread-safe. An error of the thread is raised by the next put() or by close(). `old`: the
    catalogue of the capture that the calls are added to.
    """

    def __init__(self, folder: Path, old: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.root: dict[str, Any] = {"format": FORMAT}
        self.calls: list[dict[str, Any]] = list(old["calls"]) if old else []
        self.frames: list[dict[str, Any]] = list(old.get("frames", [])) if old else []
        self.bytes = 0
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._jobs: queue.Queue[Job | None] = queue.Queue(QUEUED_CALLS)
        self._thread = threading.Thread(target=self._run, name="attnscope-writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        self.raise_error()
        self._jobs.put(job)

    def raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise CaptureError(f"{self.folder}: writing failed: {error}") from error

    def close(self) -> None:
        """Waits until everything is on disk."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def write_catalogue(self) -> None:
        with self._lock:
            text = json.dumps(
                {**self.root, **({"frames": self.frames} if self.frames else {}), "calls": self.calls},
                indent=1,
                ensure_ascii=False,
            )
            replace_file(self.folder / "capture.json", lambda p: p.write_text(text, encoding="utf-8"))

    def _run(self) -> None:
        failed = False
        while (job := self._jobs.get()) is not None:
            if failed:
                continue
            try:
                self._write(job)
            except BaseException as error:  # reaches the caller through raise_error()
                self._error, failed = error, True

    def _write(self, job: Job) -> None:
        if job.ready is not None:
            job.ready.synchronize()
        facts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in job.facts.items()}
        replace_file(self.folder / job.name, lambda p: save_file(job.tensors, str(p), facts))
        self.bytes += sum(t.numel() * t.element_size() for t in job.tensors.values())
        short = ("step", "layer", "kind", "branches")
        self.calls.append({"file": job.name, **{k: job.facts[k] for k in short if k in job.facts}})
        self.write_catalogue()
