"""The attention modules of a model, and what is known of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .callers import calls_attention
from .compiled import is_compiled
from .errors import CaptureError
from .families import FAMILIES, Family
from .forward import Forward
from .layouts import Layout
from .models import LAYOUTS
from .stacks import Place, layer_numbers, outermost_layers, place_of, uncompiled
from .steps import timestep_argument, timestep_of


SHOWN_LAYERS = 12  # numbers of layers that are named
IMAGE_CALL = ".image"  # what a slot's name gains for its call with image keys


@dataclass
class Slot:
    """One attention module of the model."""

    module: torch.nn.Module
    layer: int | None  # None: its block is not of the model's main stack
    name: str
    place: Place
    kind: str | None = None  # None: decided by the shapes of the call
    axes: str = "full"
    alone: bool = True  # of its kind in its layer: step, layer and kind tell its call
    named: bool = False  # its calls state block and slot, not only where their layer and kind came before

    @property
    def crosses(self) -> bool:
        """Is it cross-attention by what the module says of itself?"""
        if self.kind is not None:
            return self.kind == "cross"
        stated = getattr(self.module, "is_cross_attention", False) is True
        return stated or bool(re.search("cross|encoder_att|encdec", self.name, re.IGNORECASE))

    def call_name(self, index: int, due: int) -> str:
        """The slot of the call `index` of `due` that the module makes in a forward: a name of its own
        for every call beside the main one, which is the last where image keys come first."""
        if self.image_keys and due > 1:
            return self.place.slot if index else self.place.slot + IMAGE_CALL
        if index and hasattr(getattr(self.module, "processor", None), "to_k_ip"):  # IP adapters, after the text
            return self.place.slot + IMAGE_CALL + (f".{index}" if index > 1 else "")
        return f"{self.place.slot}.{index + 1}" if index else self.place.slot

    @property
    def image_keys(self) -> bool:
        """Does it attend to image keys in a call of its own, before the text (Wan image-to-video)?"""
        return getattr(self.module, "add_k_proj", None) is not None and self.kind == "cross"


def transformers_of(model: Any) -> dict[str, torch.nn.Module]:
    """The modules to hook, by attribute: the model itself, or a pipeline's transformers or U-Net; of what
    torch.compile made, the module that it was made of."""
    if model is None:
        return {}
    if isinstance(model, torch.nn.Module):
        return {"model": uncompiled(model)}
    found = {n: getattr(model, n, None) for n in ("transformer", "transformer_2", "unet")}
    found = {n: uncompiled(m) for n, m in found.items() if isinstance(m, torch.nn.Module)}
    # Another of its kind beside it runs a branch of guidance (unconditional_transformer), or tasks of its own
    # (transformer_ref), and then may be alone.
    parts = getattr(model, "components", None)
    for name, part in parts.items() if isinstance(parts, Mapping) else ():
        if isinstance(part, torch.nn.Module) and "transformer" in name and name not in found:
            like = any(type(uncompiled(part)) is type(m) for m in found.values())
            if like or not found:
                found[name] = uncompiled(part)
    if not found:
        raise CaptureError(f"{type(model).__name__} has no transformer: pass the module to capture")
    return found


def _is_attention(module: torch.nn.Module) -> bool:
    """By its class's name. A processor (an IP adapter's is a module) is a part of the module that it serves, and
    residuals that attend to earlier layers (Inkling 2) mix these, not tokens."""
    name = type(module).__name__
    called_so = re.search(r"Attention|Attn", name) and not re.search(r"Processor|AttentionResidual", name)
    return bool(called_so) and (any(True for _ in module.parameters(recurse=True)) or calls_attention(module))


def family_slots(model: torch.nn.Module, family: Family, prefix: str) -> list[Slot]:
    """The attention modules of a known transformer, their layers in the order in which they run."""
    lists = [(name, getattr(model, name)) for name in family.blocks]
    if family.interleaved:  # spatial block i, temporal block i, spatial block i + 1 …
        order = [(n, i, b[i]) for i in range(len(lists[0][1])) for n, b in lists]
    else:
        order = [(n, i, block) for n, b in lists for i, block in enumerate(b)]
    slots = []
    for layer, (name, i, block) in enumerate(order):
        for attribute, kind in family.attention.items():
            module = getattr(block, attribute, None)
            if module is not None:
                slots.append(
                    Slot(
                        uncompiled(module),
                        layer,
                        f"{prefix}{name}.{i}.{attribute}",
                        Place(f"{prefix}{name}.{i}", attribute),
                        kind,
                        family.interleaved.get(name, "full"),
                    )
                )
    for slot in slots:  # calls with image keys, beside those with text, have no other name
        slot.named = any(s.image_keys for s in slots)
    return slots


def generic_slots(model: torch.nn.Module, prefix: str, pattern: str | None) -> list[Slot]:
    """Innermost attention modules inside lists of blocks, by their classes' names or, where none is called so, by
    who calls attention; or, with a pattern, the modules whose names it matches.

    A layer is an entry of the longest outermost list where entries tell the modules of a kind apart; in other
    models (with several attention modules of a kind a block, or lists within lists) it is a block of the main stack.
    """
    found = {n.replace("_orig_mod.", "").removesuffix("._orig_mod"): m for n, m in model.named_modules()}
    if pattern is not None:
        names = [n for n in found if n and re.search(pattern, n)]
    else:
        in_lists = [n for n in found if re.search(r"\.\d+(\.|$)", n)]
        names = [n for n in in_lists if _is_attention(found[n])] or [
            n for n in in_lists if calls_attention(found[n])
        ]
    inner = [n for n in names if not any(o.startswith(n + ".") for o in names)]
    layers: dict[str, int] = {}
    slots = []
    for name in inner:
        block = re.match(r".*?\.\d+(?=\.)", name)
        layer = layers.setdefault(block[0] if block else name, len(layers))
        slots.append(Slot(found[name], layer, prefix + name, place_of(model, name)))
    if all(is_alone(s, slots) for s in slots):
        own = outermost_layers(inner)
        for slot in slots:
            slot.layer = own[slot.name.removeprefix(prefix)]
            slot.alone = slot.layer is not None
    else:
        number_main_stack(slots)
    for slot in slots:
        slot.place = Place(prefix + slot.place.block, slot.place.slot)
    return slots


def number_main_stack(slots: list[Slot], main: Sequence[str] = ()) -> None:
    """Numbers the layers of slots by the blocks of the main stack; `main`: its lists, where it is known."""
    numbers = layer_numbers([s.place for s in slots], main)
    for slot in slots:
        slot.layer = numbers.get(slot.place.block)
    for slot in slots:
        slot.alone, slot.named = is_alone(slot, slots), True


def lay_out(slots: list[Slot], layout: Layout, prefix: str) -> None:
    """Gives slots the layers and the kinds that the token layout of their class tells."""
    for slot in slots:
        slot.kind = "cross" if layout.crosses(slot.place.block, slot.place.slot) else None
    number_main_stack(slots, [prefix + stack for stack in layout.main])


def is_alone(slot: Slot, slots: Iterable[Slot]) -> bool:
    """Is no other attention module of its kind in its layer?"""
    others = (s for s in slots if s is not slot and s.layer == slot.layer)
    return slot.layer is not None and not any(s.crosses == slot.crosses for s in others)


@dataclass(frozen=True)
class Model:
    """The object that is captured: a pipeline, a model, or (without transformers) nothing but calls."""

    owner: Any  # what the user gave: a pipeline, a module, None
    transformers: Mapping[str, torch.nn.Module]  # by the owner's attribute
    family: Family | None  # None: nothing is known of the class
    hf: bool  # a model of transformers
    slots: Mapping[str, list[Slot]]  # attention modules by transformer
    layout: Layout | None = None  # of the tokens, of a class without a family
    unseen: Mapping[str, list[str]] = field(
        default_factory=dict
    )  # why calls cannot be seen -> of which modules

    @classmethod
    def of(cls, owner: Any, pattern: str | None) -> Model:
        """`pattern`: a regular expression for the attention modules of a class that is not known."""
        transformers = transformers_of(owner)
        first = next(iter(transformers.values()), None)
        family = FAMILIES.get(type(first).__name__) if first is not None else None
        layout = None if family else LAYOUTS.get(type(first).__name__)
        if family is not None and pattern is not None:
            raise CaptureError(f"modules: those of {type(first).__name__} are known: choose by layers=, slots=, kinds=")
        hf = any(c.__name__ == "PreTrainedModel" for c in type(first).__mro__)
        slots = {}
        for name, transformer in transformers.items():
            prefix = name + "." if len(transformers) > 1 else ""
            slots[name] = (
                family_slots(transformer, family, prefix)
                if family
                else generic_slots(transformer, prefix, pattern)
            )
            if layout is not None:
                lay_out(slots[name], layout, prefix)
        unseen: dict[str, list[str]] = {}
        for name, transformer in transformers.items() if layout is not None and layout.no_maps else ():
            for inner, module in transformer.named_modules(prefix=name if len(transformers) > 1 else ""):
                if type(module).__name__ in layout.no_maps:
                    unseen.setdefault(layout.no_maps[type(module).__name__], []).append(inner)
        for name, found in slots.items() if layout is not None else ():
            called = owner if isinstance(owner, torch.nn.Module) else getattr(owner, name)
            compiled = is_compiled(called)
            for slot in found:
                why = layout.why_unseen(slot.place.block, slot.place.slot, compiled)
                if why is not None:
                    unseen.setdefault(why, []).append(slot.name)
            slots[name] = [s for s in found if all(s.name not in names for names in unseen.values())]
        return cls(owner, transformers, family, hf, slots, layout, unseen)

    @property
    def first(self) -> torch.nn.Module | None:
        """The transformer, or the first of two."""
        return next(iter(self.transformers.values()), None)

    def all_slots(self) -> list[Slot]:
        """Those of all transformers."""
        return [slot for found in self.slots.values() for slot in found]

    def like_slots(self) -> list[torch.nn.Module]:
        """Modules of the owner that are of a slot's class and no slots."""
        slots = {id(s.module) for s in self.all_slots()}
        classes = {type(s.module) for s in self.all_slots()}
        parts = getattr(self.owner, "components", None) or {"model": self.owner}
        found = [m for p in parts.values() if isinstance(p, torch.nn.Module) for m in p.modules()]
        return list({id(m): m for m in found if type(m) in classes and id(m) not in slots}.values())

    def name_of(self, transformer: torch.nn.Module) -> str:
        """The owner's attribute that holds `transformer`."""
        return next(n for n, t in self.transformers.items() if t is transformer)

    def calls_due(self, slot: Slot, forward: Forward) -> int:
        """How many calls the slot makes in a forward; unknown models may make any number above 0."""
        if self.layout is not None and self.layout.is_idle(
            slot.place.block, slot.place.slot, forward.model, forward.arguments
        ):
            return 0
        if self.layout is not None and slot.image_keys:
            return 2
        if self.family is None:
            return max(1, forward.calls.get(id(slot.module), 0))
        if slot.axes == "temporal" and forward.arguments.get("enable_temporal_attentions") is False:
            return 0
        if self.family.per_sample:
            return len(forward.names or [0])
        return 2 if slot.image_keys else 1

    def not_recorded(self) -> list[str]:
        """A line for each reason why calls of modules cannot be seen."""
        more = {why: f" and {len(names) - 1} more" if len(names) > 1 else "" for why, names in self.unseen.items()}
        return [f"not recorded: {names[0]}{more[why]}: {why}" for why, names in self.unseen.items()]

    def layers_told(self) -> list[str]:
        """A line for each transformer of an unknown class whose layers are not all that there is."""
        if self.family is not None or self.layout is not None:
            return []
        return [line for found in self.slots.values() for line in _layers_told(found)]

    def as_called(self, name: str) -> torch.nn.Module:
        """The transformer `name` as its owner calls it: what torch.compile made of it, or itself."""
        return self.owner if isinstance(self.owner, torch.nn.Module) else getattr(self.owner, name)

    def timestep(self, given: Mapping[str, Any]) -> float | None:
        """The timestep of a forward with the arguments `given`; of one a token, the largest."""
        try:
            return timestep_of(self.layout.timestep(given) if self.layout is not None else timestep_argument(given))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return None  # other arguments than the layout expects, which sequences() says

    def title(self) -> str:
        """The model's name as its configuration has it, else its class."""
        for owner in (self.owner, self.first):
            name = getattr(getattr(owner, "config", None), "_name_or_path", None) or ""
            if name:
                return os.path.basename(os.path.normpath(name)) if os.path.isdir(name) else name
        return type(self.first).__name__ if self.first is not None else ""


def _layers_told(slots: Sequence[Slot]) -> list[str]:
    """Lines that tell a user which blocks the numbers of layers count, which have none, and which have attention."""
    numbers = sorted({s.layer for s in slots if s.layer is not None})
    main = next((s.place.stack for s in slots if s.layer is not None), "")
    others = list(dict.fromkeys(s.place.stack or s.place.block for s in slots if s.layer is None))
    lines = []
    if others:
        lines.append(
            f"layers are the blocks of {main}; attention in {', '.join(others)} goes by the names of its blocks "
            f'(blocks="{others[0]}.*")'
        )
    if numbers and numbers != list(range(len(numbers))):
        shown = ", ".join(map(str, numbers[:SHOWN_LAYERS])) + (" …" if len(numbers) > SHOWN_LAYERS else "")
        lines.append(f"attention that can be recorded is in layers {shown} of {main}")
    return lines
