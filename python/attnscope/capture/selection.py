"""Which calls of a model a user chose."""

from __future__ import annotations

from .choice import kind_test, largest_named, name_test, parse_numbers
from .errors import CaptureError
from .options import Options
from .slots import IMAGE_CALL, Model, Slot

# The endings that names of calls add to their module's.
FURTHER = ("", IMAGE_CALL, *(f"{IMAGE_CALL}.{n}" for n in range(2, 10)), *(f".{n}" for n in range(2, 100)))


class Selection:
    """Tests for the layers, blocks, slots and kinds of calls that the options choose.

    Raises CaptureError where an option is none.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._all_layers = options.layers is None or options.layers == "all"
        self._layer = parse_numbers(options.layers, "layers")
        self._chunk = parse_numbers(options.chunks, "chunks")
        self._block = name_test(options.blocks, "blocks")
        self._slot = name_test(options.slots, "slots")
        self._kind = kind_test(options.kinds)

    def layer(self, number: int) -> bool:
        """Is the layer one of the chosen?"""
        return self._layer(number)

    def module(self, slot: Slot) -> bool:
        """May calls of the attention module be? Blocks without a layer may where no layers are named."""
        numbered = self._all_layers if slot.layer is None else self._layer(slot.layer)
        return numbered and self._block(slot.place.block)

    def may_have(self, slot: Slot) -> bool:
        """May any call of the attention module be? Its kind is not always known before."""
        kinds = [slot.kind] if slot.kind else ["cross"] if slot.crosses else ["self", "cross", "joint"]
        names = (slot.place.slot + more for more in FURTHER)
        return self.module(slot) and any(map(self._kind, kinds)) and any(map(self._slot, names))

    def chunk(self, number: int | None) -> bool:
        """Is the piece of a stream one of the chosen? What is none (None) is where all are."""
        return self._options.chunks == "all" if number is None else self._chunk(number)

    def slot(self, name: str) -> bool:
        """May a call of this name within its block be?"""
        return self._slot(name)

    def call(self, name: str, kind: str) -> bool:
        """Is a call of a chosen module, by its name within the block and its kind?"""
        return self._slot(name) and self._kind(kind)

    def check(self, model: Model) -> None:
        """Raises CaptureError where the model has nothing of what is chosen."""
        o, slots = self._options, model.all_slots()
        if not model.transformers:
            if o.blocks != "all" or o.slots != "all":
                raise CaptureError("blocks, slots: calls without a model have none")
            return
        if not slots:
            raise CaptureError(
                "no attention modules were found in the model: no class of its lists of blocks has Attention in its "
                "name or calls an attention function itself. Name the modules that do with modules=, a regular "
                "expression for their names; capture(None, …) records every call in a block"
            )
        count = 1 + max((s.layer for s in slots if s.layer is not None), default=-1)
        last = largest_named(o.layers)
        if last is not None and last >= count:
            stacks = dict.fromkeys(s.place.stack or s.place.block for s in slots if s.layer is None)
            more = f"; attention in {', '.join(stacks)} is chosen by blocks=" if stacks else ""
            raise CaptureError(f"layers: the model has layers 0 to {count - 1} (asked for {last}){more}")
        with_attention = sorted({s.layer for s in slots if s.layer is not None})
        if with_attention and not self._all_layers and not any(map(self._layer, with_attention)):
            raise CaptureError(
                f"layers: of layers 0 to {count - 1} attention that can be recorded is in "
                f"{', '.join(map(str, with_attention))} (asked for {o.layers!r})"
            )
        names = list(dict.fromkeys(s.place.slot for s in slots))
        if not any(self._slot(name + more) for name in names for more in FURTHER):
            raise CaptureError(f"slots: the model has {', '.join(names)} (asked for {o.slots!r})")
        if not any(self._block(s.place.block) for s in slots):
            blocks = list(dict.fromkeys(s.place.block for s in slots))
            raise CaptureError(f"blocks: the model has {blocks[0]} to {blocks[-1]} (asked for {o.blocks!r})")

    def __str__(self) -> str:
        """The choice that was asked for, as a message says it."""
        o = self._options
        names = (("blocks", o.blocks), ("slots", o.slots))
        more = "".join(f", {what} {value!r}" for what, value in names if value != "all")
        return (
            f"asked for steps {o.steps!r}, layers {o.layers!r}, branch {o.branch!r}, kinds {o.kinds!r}{more}"
        )
