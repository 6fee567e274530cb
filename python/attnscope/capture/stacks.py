"""Where an attention module stands in a model: its block, and its name within the block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .errors import CaptureError

# The parts of a U-Net in the order in which they run; its modules are registered in another one.
UNET_PARTS = ("down_blocks", "mid_block", "up_blocks")


@dataclass(frozen=True)
class Place:
    """A module's block ("transformer_blocks.7") and its name within the block ("attn1")."""

    block: str
    slot: str

    @property
    def stack(self) -> str:
        """The list that the block stands in ("transformer_blocks")."""
        return self.block.rpartition(".")[0]


def uncompiled(module: Any) -> Any:
    """The module that torch.compile(module) stands for; any other is itself."""
    inner = vars(module).get("_modules", {}).get("_orig_mod")
    return module if inner is None else uncompiled(inner)


def place_of(model: torch.nn.Module, name: str) -> Place:
    """The place of the module `name` of `model`.

    The block is the innermost entry of a list whose entries are all of one class, or of any list where
    there is no such; in no list, the module that holds it. A module that is a block itself is "attn" in it.
    """
    parts = name.split(".")
    entries = [i for i in range(1, len(parts)) if parts[i].isdigit()]
    uniform = [i for i in entries if len({type(uncompiled(m)) for m in _children(model, parts[:i])}) == 1]
    end = max(uniform or entries or [len(parts) - 2])
    block, slot = ".".join(parts[: end + 1]), ".".join(parts[end + 1 :])
    return Place(block or "model", slot or "attn")


def _children(model: torch.nn.Module, parts: Sequence[str]) -> Iterable[torch.nn.Module]:
    return model.get_submodule(".".join(parts)).children()


def check_place(name: str) -> None:
    """Raises CaptureError where `name`, a block's or a slot's, is none that a capture can hold."""
    if not 1 <= len(name) <= 128 or name.startswith(".") or re.search(r"[\s/\x00-\x1f\x7f]", name):
        raise CaptureError(
            f"a block or an attention module is called {name!r}: expected 1 to 128 characters without white "
            "space and slashes, the first no dot"
        )


def layer_numbers(places: Sequence[Place], main: Sequence[str] = ()) -> dict[str, int]:
    """Numbers the blocks of the model's main stack in the order in which they run: layer by block.

    main: the lists of the main stack in this order. Without it: the attention blocks of a U-Net from
    its first down to its last up block; of any other model, those of its longest list by their own numbers, of
    which those without attention have some.
    """
    blocks = list(dict.fromkeys(p.block for p in places))
    stacks: dict[str, list[str]] = {}
    for place in places:
        if place.block not in stacks.setdefault(place.stack, []):
            stacks[place.stack].append(place.block)
    if main:
        chosen = [b for stack in main for b in stacks.get(stack, [])]
    elif any(_unet_key(b) for b in blocks):
        chosen = sorted((b for b in blocks if _unet_key(b)), key=_unet_key)
    else:
        chosen = max(stacks.values(), key=_length, default=[])
        own = {block: number_of(block) for block in chosen}
        if None not in own.values():
            return own  # type: ignore[return-value]
    return {block: layer for layer, block in enumerate(chosen)}


def outermost_layers(names: Sequence[str]) -> dict[str, int | None]:
    """The layers of attention modules that stand in lists of blocks: the number in the longest of the outermost
    lists; None for those of other lists. Where there is no list, modules are counted."""
    entries = {name: re.match(r".+?\.\d+(?=\.|$)", name) for name in names}
    blocks = {name: entry[0] for name, entry in entries.items() if entry}
    if not blocks:
        return {name: layer for layer, name in enumerate(names)}
    stacks: dict[str, list[str]] = {}
    for block in blocks.values():
        stacks.setdefault(block.rpartition(".")[0], []).append(block)
    main = max(stacks.values(), key=_length)
    return {name: number_of(blocks[name]) if blocks.get(name) in main else None for name in names}


def number_of(block: str) -> int | None:
    """The block's own number in its list; None where it stands in none."""
    last = block.rpartition(".")[2]
    return int(last) if last.isdigit() else None


def _length(blocks: Sequence[str]) -> int:
    """How long a list is, as far as its blocks with attention tell."""
    numbers = [number_of(block) for block in blocks]
    return len(blocks) if None in numbers else 1 + max(numbers)  # type: ignore[type-var, operator]


def _unet_key(block: str) -> tuple[int, ...]:
    """Sorts the blocks of a U-Net by running order; () of a block that stands in none of its parts."""
    part, _, rest = block.partition(".")
    if part not in UNET_PARTS:
        return ()
    # Within a block, attention J, then motion module J, both of the entries K; temporal after spatial.
    numbers = [int(n) for n in re.findall(r"\d+", rest)] or [0]
    later = "motion_modules" in rest or "temp_attentions" in rest
    return (UNET_PARTS.index(part), *numbers[:-1], later, numbers[-1], "temporal" in rest)
