"""The calls of a running model as a capture sees them: which are recorded, with which facts, which are refused."""

from __future__ import annotations

from typing import Any

from .arrivals import Arrivals
from .bare import BareCalls
from .call_checks import call_items, check_piece, too_many
from .chunks import ChunkTeller
from .dump import Dump
from .errors import CaptureError, DiskError
from .facts import FactTeller
from .forward import Forward
from .forward_watch import ForwardWatch
from .gaps import Gaps
from .grids import Grid
from .hooks import SlotStack
from .maps import MapTeller
from .narrator import Narrator
from .options import Options
from .parallel import PartTeller, first_head
from .pieces import joined
from .selection import Selection
from .slots import IMAGE_CALL, Model, Slot
from .tensors import Call


class SeenCalls:
    """The side of a Capture that gets calls. Its attributes are set by Capture."""

    options: Options
    _arrivals: Arrivals
    _bare: BareCalls
    _chunks: ChunkTeller
    _dump: Dump
    _facts: FactTeller
    _forwards: ForwardWatch
    _gaps: Gaps
    _grid: Grid | None
    _maps: MapTeller
    _model: Model
    _narrator: Narrator
    _parts: PartTeller
    _running: SlotStack
    _selection: Selection
    _step_test: Any

    def _see(self, call: Call) -> None:
        self._see_slot(self._running.innermost, call)

    def _see_compiled(self, number: int, call: Call) -> None:
        self._see_slot(self._running.numbered(number), call)

    def _see_slot(self, slot: Slot | None, call: Call) -> None:
        forward = self._forwards.forward
        place: dict[str, Any] = {"step": self._bare.step}
        try:
            if not self._model.transformers:
                self._bare.record(call, self._grid, self._step_test(self._bare.step))
            elif slot is not None and forward is not None and not self._forwards.is_refused:
                place = self._place(slot, None, slot.place.slot)
                self._forwards.turns.check_call(slot.name)
                place = self._place(slot, forward, self._call_name(slot, forward))
                whole = self._whole(slot, forward, call)
                if whole is not None:
                    self._record_slot(slot, forward, whole)
        except CaptureError as error:
            if isinstance(error, DiskError) and not self._dump.keeps:
                raise
            tried = forward is not None and forward.tried
            (self._gaps.tell if tried else self._gaps.refuse)(error, place)

    def _refuse_untold(self, error: CaptureError, compiled: bool) -> None:
        """A call came by that nobody could tell as one; of compiled code nobody knows whose."""
        if self._gaps.strict:
            raise error
        slot, forward = self._running.innermost, self._forwards.forward
        if not self._model.transformers:
            self._bare.skip()
            self._gaps.refuse(error, {"step": self._bare.step})
        elif compiled:
            self._gaps.refuse(error, forward.place() if forward is not None else {})
        elif slot is not None and forward is not None and self._forwards.turns.is_mine():
            name = self._call_name(slot, forward)
            self._count(slot, forward)
            if self._selection.module(slot) and self._selection.slot(name) and (forward.chosen or forward.tried):
                (self._gaps.tell if forward.tried else self._gaps.refuse)(error, self._place(slot, forward, name))

    def _call_name(self, slot: Slot, forward: Forward) -> str:
        """The slot of the call of the module that comes next in the forward."""
        if self._model.family and self._model.family.per_sample:
            return slot.place.slot
        return slot.call_name(forward.calls.get(id(slot.module), 0), self._model.calls_due(slot, forward))

    def _place(self, slot: Slot, forward: Forward | None, name: str) -> dict[str, Any]:
        """The facts about a call in an entry of the catalogue's `refused`."""
        of_forward = forward.place() if forward is not None else {}
        return {**of_forward, "block": slot.place.block, "slot": name, "layer_name": slot.name}

    def _whole(self, slot: Slot, forward: Forward, call: Call) -> Call | None:
        """The call, or that of which it is the last piece, if it is asked for; None of other pieces."""
        if not (forward.chosen or forward.tried) or not self._selection.module(slot):
            return call
        try:
            count = self._pieces(slot, forward)
            if count < 2:
                return call
            pieces = forward.pieces.setdefault(id(slot.module), [])
            pieces.append(call)
            if len(pieces) < count:
                return None
            del forward.pieces[id(slot.module)]
            return joined(slot.name, pieces)
        except CaptureError:
            self._count(slot, forward)
            raise

    def _pieces(self, slot: Slot, forward: Forward) -> int:
        """How many calls of a module are pieces of one. Raises CaptureError where the arguments do not tell."""
        layout, known = self._model.layout, forward.piece_count
        try:
            if known is None:
                known = layout.pieces(forward.model, forward.arguments) if layout is not None else 1
            forward.piece_count = known
            return known
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise CaptureError(
                f"{slot.name}: the arguments of its forward do not tell which calls are pieces of one "
                f"({type(error).__name__}: {error})"
            ) from error

    def _count(self, slot: Slot, forward: Forward) -> int:
        """Counts a call of the module. Its number within the forward, from 0."""
        self._arrivals.call(slot.name, self._selection.may_have(slot))
        index = forward.calls.get(id(slot.module), 0)
        forward.calls[id(slot.module)] = index + 1
        return index

    def _is_asked(self, slot: Slot, call_name: str, call: Call) -> bool:
        """Is a call of a chosen module, by its name within the block, to be recorded? Its kind is not known yet."""
        if call_name.endswith(IMAGE_CALL) and not call.k.shape[2]:
            self._narrator.say(f"{slot.name}: its call with image keys has none, and is not recorded")
            return False
        return self._selection.slot(call_name)

    def _record_slot(self, slot: Slot, forward: Forward, call: Call) -> None:
        index = self._count(slot, forward)
        if not (forward.chosen or forward.tried) or not self._selection.module(slot):
            return
        names, items = forward.names, list(forward.items)
        due = self._model.calls_due(slot, forward)
        self._check_count(slot, forward, index, due)
        if self._model.family and self._model.family.per_sample:
            if index not in items:
                return
            names, items = [names[index]], [0]  # type: ignore[index]
            call_name = slot.place.slot
        else:
            call_name = slot.call_name(index, due)
        if not self._is_asked(slot, call_name, call):
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
        if tokens is None:
            facts |= self._facts.text_facts(slot, forward, shape, kind, branches, times, items, index)
        expanded = [b for b in branches for _ in range(times)]
        items = [i * times + j for i in items for j in range(times)]
        if expanded:
            facts["branches"] = expanded[:1] if len(set(expanded)) == 1 else expanded
        count = call.q.shape[0]
        stated, named = self._maps.facts(tokens, forward, items, expanded, count) if tokens is not None else ({}, {})
        facts |= stated
        if forward.tried:
            self._dump.check(call, items)
            return
        self._arrivals.recorded()
        facts, part = whole.part(facts, kind) if whole is not None else (facts, None)
        named = {n: t for n, t in named.items() if part is None or n != "position_ids"}  # which are the whole's
        offset = self._offset(forward, call, slot, getattr(slot.module, "heads", None))
        self._dump.save(call, items, facts, forward, offset, slot, call_name, named, part)
        forward.entry["calls"] += 1

    def _check_count(self, slot: Slot, forward: Forward, index: int, due: int) -> None:
        if index >= due and not self._gaps.strict:
            raise too_many(slot, forward, index + 1, due)

    def _offset(self, forward: Forward, call: Call, slot: Slot, heads: int | None) -> int:
        """The model's number of the call's head 0."""
        if self.options.head_offset is not None:
            return self.options.head_offset
        return first_head(forward.model, call.q.shape[1], heads, slot.name)
