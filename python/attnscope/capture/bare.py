"""Calls without a model: what numbers them, and what is recorded of them."""

from __future__ import annotations

from typing import Any

from .chunks import ChunkTeller
from .dump import Dump
from .errors import CaptureError
from .facts import AS_GIVEN, bare_facts
from .grids import Grid
from .maps import MapTeller
from .options import Options
from .selection import Selection
from .tensors import Call


class BareCalls:
    """Records the calls of capture(None, …). `one`: of record(), whose q and k are whatever its caller has."""

    def __init__(
        self, options: Options, selection: Selection, chunks: ChunkTeller, maps: MapTeller, dump: Dump, one: bool
    ) -> None:
        self.step = 0
        self._timestep: float | None = None
        self._layer = 0  # of the next call
        self._options, self._selection, self._chunks = options, selection, chunks
        self._maps, self._dump, self._one = maps, dump, one

    def begin(self, step: int, layer: int, timestep: float | None) -> None:
        """The calls that follow are of this step, layers from `layer` on."""
        self.step, self._layer, self._timestep = step, layer, timestep

    def skip(self) -> int:
        """The layer of the call that came."""
        self._layer += 1
        return self._layer - 1

    def record(self, call: Call, grid: Grid | None, wanted: bool) -> None:
        """Records a call; wanted: its step is chosen. Raises CaptureError where it cannot be stored."""
        layer, where = self._layer, f"call {self._layer}"
        self.skip()
        chunk = self._chunks.of_bare()
        if not (wanted and self._selection.chunk(chunk and chunk.number) and self._selection.layer(layer)):
            return
        call = call.with_batch()
        call.check(where)
        call = call.spread(where)
        if call.exchanged:
            raise CaptureError(
                f"{where}: processes exchange parts of its keys, and nothing tells which this one holds: "
                "pass the transformer to capture()"
            )
        facts: dict[str, Any] = bare_facts(self._options, grid, self.step, layer, self._timestep, call.k.shape[2])
        if not self._one:
            facts.setdefault("q_state", AS_GIVEN)
        if chunk is not None:
            call, stated = self._maps.of_bare_chunk(where, chunk, call, grid, self._chunks)
            facts = {n: f for n, f in facts.items() if n not in ("grid", "tokens", "text_valid")} | stated
        self._dump.save(call, list(range(call.q.shape[0])), facts, None, self._options.head_offset or 0)
