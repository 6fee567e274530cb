"""The attention modules of a model, and what is known of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .errors import CaptureError
from .families import FAMILIES, Family
from .forward import Forward


@dataclass
class Slot:
    """One attention module of the model."""

    module: torch.nn.Module
    layer: int
    name: str
    kind: str | None = None  # None: decided by the shapes of the call
    axes: str = "full"


def transformers_of(model: Any) -> dict[str, torch.nn.Module]:
    """The modules to hook, by attribute: the model itself, or a pipeline's one or two transformers."""
    if model is None:
        return {}
    if isinstance(model, torch.nn.Module):
        return {"model": model}
    found = {n: getattr(model, n, None) for n in ("transformer", "transformer_2")}
    found = {n: m for n, m in found.items() if isinstance(m, torch.nn.Module)}
    if not found:
        raise CaptureError(f"{type(model).__name__} has no transformer: pass the module to capture")
    return found


def _is_attention(module: torch.nn.Module) -> bool:
    return bool(re.search(r"Attention|Attn", type(module).__name__)) and bool(
        any(True for _ in module.parameters(recurse=True))
    )


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
                        module,
                        layer,
                        f"{prefix}{name}.{i}.{attribute}",
                        kind,
                        family.interleaved.get(name, "full"),
                    )
                )
    return slots


def generic_slots(model: torch.nn.Module, prefix: str, pattern: str | None) -> list[Slot]:
    """Innermost attention modules inside lists of blocks; a layer is an entry of such a list.

    With a pattern, the modules whose names it matches instead.
    """
    if pattern is not None:
        names = [n for n, _ in model.named_modules() if n and re.search(pattern, n)]
    else:
        names = [n for n, m in model.named_modules() if re.search(r"\.\d+\.", n) and _is_attention(m)]
    inner = [n for n in names if not any(o.startswith(n + ".") for o in names)]
    layers: dict[str, int] = {}
    slots = []
    for name in inner:
        block = re.match(r".*?\.\d+(?=\.)", name)
        layer = layers.setdefault(block[0] if block else name, len(layers))
        slots.append(Slot(model.get_submodule(name), layer, prefix + name))
    return slots


@dataclass(frozen=True)
class Model:
    """What is captured: a pipeline, a model, or (without transformers) nothing but calls."""

    owner: Any  # what the user gave: a pipeline, a module, None
    transformers: Mapping[str, torch.nn.Module]  # by the owner's attribute
    family: Family | None  # None: nothing is known of the class
    hf: bool  # a model of transformers
    slots: Mapping[str, list[Slot]]  # attention modules by transformer

    @classmethod
    def of(cls, owner: Any, pattern: str | None) -> Model:
        """`pattern`: a regular expression for the attention modules of a class that is not known."""
        transformers = transformers_of(owner)
        first = next(iter(transformers.values()), None)
        family = FAMILIES.get(type(first).__name__) if first is not None else None
        hf = any(c.__name__ == "PreTrainedModel" for c in type(first).__mro__)
        slots = {}
        for name, transformer in transformers.items():
            prefix = name + "." if len(transformers) > 1 else ""
            slots[name] = (
                family_slots(transformer, family, prefix)
                if family
                else generic_slots(transformer, prefix, pattern)
            )
        return cls(owner, transformers, family, hf, slots)

    @property
    def first(self) -> torch.nn.Module | None:
        """The transformer, or the first of two."""
        return next(iter(self.transformers.values()), None)

    def all_slots(self) -> list[Slot]:
        """Those of all transformers."""
        return [slot for found in self.slots.values() for slot in found]

    def name_of(self, transformer: torch.nn.Module) -> str:
        """The owner's attribute that holds `transformer`."""
        return next(n for n, t in self.transformers.items() if t is transformer)

    def calls_due(self, slot: Slot, forward: Forward) -> int:
        """How many calls the slot makes in a forward; unknown models may make any number above 0."""
        if self.family is None:
            return max(1, forward.calls.get(id(slot.module), 0)) if not self.hf else 1
        if slot.axes == "temporal" and forward.arguments.get("enable_temporal_attentions") is False:
            return 0
        if self.family.per_sample:
            return len(forward.names or [0])
        return 2 if getattr(slot.module, "add_k_proj", None) is not None and slot.kind == "cross" else 1

    def title(self) -> str:
        """The model's name as its configuration has it, else its class."""
        for owner in (self.owner, self.first):
            name = getattr(getattr(owner, "config", None), "_name_or_path", None) or ""
            if name:
                return os.path.basename(os.path.normpath(name)) if os.path.isdir(name) else name
        return type(self.first).__name__ if self.first is not None else ""
