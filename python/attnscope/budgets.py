"""A recorder that keeps to a budget of disk and memory."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from .capture import Call, Capture, CaptureError, Options, Slot, readable
from .errors import make_error

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def size_of(value: str | int, name: str) -> int:
    """Bytes of "512MiB", "4GiB" or a number."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]?)(?:iB|B)?", str(value))
    size = int(float(found[1]) * 2 ** _UNITS[found[2]]) if found else 0
    if size < 1:
        raise make_error(f'{name}: expected a size such as "4GiB" (got {value!r})', "usage")
    return size


class BudgetCapture(Capture):
    """Of the attention modules that were chosen it records one in so many, evenly spread, so that all of them fit into
    `disk` bytes; a call that does not is left out. Calls that wait for the disk take `memory` bytes, or are one."""

    SPEAKER = "attnscope.look"

    def __init__(self, model: Any, out: Path, options: Options, disk: int, memory: int) -> None:
        super().__init__(model, out, options)
        self._disk = self._left = disk
        self._memory = memory
        self._every = 0  # not known before the first call
        chosen = [slot for slot in self._model.all_slots() if self._selection.module(slot)]
        self._modules = {id(slot): place for place, slot in enumerate(chosen)}

    def _is_asked(self, slot: Slot, call_name: str, call: Call) -> bool:
        forward = self._forwards.forward
        if not super()._is_asked(slot, call_name, call):
            return False
        if forward is None or forward.tried:
            return True
        size = self._size(call, len(forward.items))
        if not self._every:
            self._plan_modules(size)
        if self._modules.get(id(slot), 0) % self._every != self._every // 2:
            return False
        if size > self._left:
            raise CaptureError(
                f"a call takes {readable(size)}, and of disk= {readable(self._left)} are left: give more, or choose "
                "fewer layers, steps or heads"
            )
        self._left -= size
        self._wait(size)
        return True

    def _plan_modules(self, size: int) -> None:
        """At the first call, of `size` bytes."""
        if size > self._disk:
            # No CaptureError, which the run would go on after.
            raise make_error(
                f"look: the first call takes {readable(size)}, more than disk={readable(self._disk)}: give more, or "
                'record=dict(heads="0-3")',
                "resource",
            )
        branch = self.options.branch
        count = (self._plan._steps_to_come() or 1) * (1 if isinstance(branch, str) and branch != "both" else 2)
        modules = max(1, len(self._modules))
        self._every = min(modules, max(1, -(-size * modules * count // self._disk)))
        if self._every > 1:
            self._say(
                f"one in {self._every} of {modules} attention modules is recorded, for which disk="
                f"{readable(self._disk)} has room (a call takes {readable(size)}): disk=, layers= and steps= choose others"
            )

    def _size(self, call: Call, items: int) -> int:
        """Bytes of the items that are recorded."""
        parts = (call.q, call.k, call.v) if self.options.values else (call.q, call.k)
        return sum(t.numel() * t.element_size() * max(1, items) // t.shape[0] for t in parts)

    def _wait(self, size: int) -> None:
        """Until what waits for the disk leaves room for the call."""
        writer = self.writer
        while writer.waiting and (writer.waiting + 2) * size > self._memory:  # type: ignore[union-attr]
            writer.raise_error()  # type: ignore[union-attr]
            time.sleep(0.002)
