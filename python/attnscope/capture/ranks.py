"""Which of the processes that run a model together this one is, and what their captures share."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .errors import CaptureError

_CAPTURES: Counter[str] = Counter()  # that this process began, by folder


@dataclass(frozen=True)
class Rank:
    """Process `rank` of `ranks`; `run`: what all of them call this capture, where they can agree on it."""

    rank: int
    ranks: int
    run: str | None = None

    def folder(self, out: Path) -> Path:
        """Where this process writes its part of the capture `out`."""
        return out / f"rank-{self.rank}-of-{self.ranks}"

    def joined_by(self, out: Path) -> str:
        """The line that tells the user how to join the parts."""
        return f"{out}: attnscope convert --stitch {out} -o OUT joins the parts of {self.ranks} processes"

    def facts(self) -> dict[str, Any]:
        """The beginning of the fact `part`."""
        facts: dict[str, Any] = {"rank": self.rank, "ranks": self.ranks}
        return facts if self.run is None else {**facts, "run": self.run}


def this_rank(option: Any, out: str | os.PathLike[str]) -> Rank | None:
    """The rank that `rank=` gives, else torch.distributed, else torchrun's environment; None: one process.

    Raises CaptureError where that is no rank.
    """
    if option is not None:
        return _rank(option, "rank", None)
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        numbers = (distributed.get_rank(), distributed.get_world_size())
        return _rank(numbers, "torch.distributed", out)
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return None
    words = (os.environ["RANK"], os.environ["WORLD_SIZE"])
    if not all(w.isdecimal() for w in words):
        raise CaptureError(f"RANK={words[0]} WORLD_SIZE={words[1]}: expected whole numbers, or pass rank=")
    return _rank((int(words[0]), int(words[1])), "RANK and WORLD_SIZE", None)


def _rank(numbers: Any, source: str, out: str | os.PathLike[str] | None) -> Rank | None:
    whole = isinstance(numbers, (tuple, list)) and len(numbers) == 2
    if not (whole and all(type(n) is int for n in numbers) and 0 <= numbers[0] < numbers[1]):
        raise CaptureError(f"{source}: expected (rank, ranks), such as (0, 2), ranks from 0 (got {numbers!r})")
    if numbers[1] == 1:
        return None
    return Rank(numbers[0], numbers[1], _shared_run(out) if out is not None else _launched_run())


def _launched_run() -> str | None:
    """The name of the run that torchrun gives its processes; None where it has none."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return None if name == "none" else name


def _shared_run(out: str | os.PathLike[str]) -> str | None:
    """A name that the first process to ask puts into the processes' common store, where all find it.

    It is no collective operation, so that nobody waits where only some processes capture.
    """
    get_store = getattr(torch.distributed.distributed_c10d, "_get_default_store", None)
    if get_store is None:
        return _launched_run()
    place = os.fspath(out)
    _CAPTURES[place] += 1
    key = f"attnscope_capture/{_CAPTURES[place]}/{place}"
    try:
        return get_store().compare_set(key, "", uuid.uuid4().hex).decode()
    except (NotImplementedError, RuntimeError):  # a store that cannot compare
        return _launched_run()
