"""A run of a transformer: its arguments, its step, its branches."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .chunks import Chunk
from .grids import Grid
from .layouts import Sequences
from .tensors import Call
from .turns import Memory


@dataclass
class Forward:
    """One run of a transformer's forward."""

    number: int  # from 0, in the order in which forwards of the capture began
    model: torch.nn.Module
    arguments: Mapping[str, Any]
    step: int | None  # None: nothing tells it
    timestep: float | None
    names: list[str] | None  # the branch of each batch item; None: no branches
    items: list[int]  # chosen batch items
    grid: Grid | None
    text: int | None  # text tokens that the transformer was given
    valid: list[int] | None  # valid ones, a batch item
    chosen: bool
    tried: bool  # nothing of it is chosen, and its calls are checked as if it were
    held: bool = False  # a later forward may show that its names are wrong
    sequences: Sequences | None = None  # of the class's token layout
    chunk: Chunk | None = None  # the piece of a stream that it is
    mixed: bool = False  # beside words it is given pictures, sound or video
    calls: dict[int, int] = field(default_factory=dict)  # id of module -> calls seen
    pieces: dict[int, list[Call]] = field(default_factory=dict)  # id of module -> those of a call that is not whole
    piece_count: int | None = None  # calls of a module that are pieces of one; None: not counted yet
    files: list[str] = field(default_factory=list)  # of the calls that were recorded
    of_step: int = 0  # its place among the forwards of its step
    numbered: bool = False  # nothing names its branch, or its step: calls state its number
    entry: dict[str, Any] = field(default_factory=dict)  # of the catalogue
    before: Memory | None = None  # what told steps and chunks before it

    def place(self) -> dict[str, Any]:
        """The facts about the forward in an entry of the catalogue's `refused`."""
        branches = {self.names[i] for i in self.items} if self.names is not None else set()
        branch = {"branch": branches.pop()} if len(branches) == 1 else {}
        step = {"step": self.step} if self.step is not None else {}
        return {"forward": self.number, **step, **branch}

    def numbers(self) -> dict[str, int]:
        """The facts of a call of it that say which forward it was, where nothing tells its branch."""
        if self.step is None:
            return {"forward": self.number}
        return {"step": self.step, "forward": self.number, "of_step": self.of_step}

    def told(self) -> dict[str, Any]:
        """The facts about it in the catalogue's `forwards` when it begins, beside its number."""
        names = list(dict.fromkeys(self.names or ()))
        return {
            **({"branch": names[0] if len(names) == 1 else self.names} if names else {}),
            **({"timestep": self.timestep} if self.timestep is not None else {}),
            "batch": batch_of(self.arguments),
            "chosen": self.chosen,
            "calls": 0,
        }

    def is_piece(self, module: str) -> bool:
        """Is a call of the attention module `module` one of a stream? An encoder's beside its decoder is not."""
        config = getattr(self.model, "config", None)
        beside = getattr(config, "is_encoder_decoder", False) and "decoder" not in module
        return self.chunk is not None and not beside


def batch_of(given: Mapping[str, Any]) -> int | None:
    """Batch items of a forward's arguments."""
    states = given.get("hidden_states")
    if isinstance(states, torch.Tensor):
        return states.shape[0]
    return next((t.shape[0] for t in given.values() if isinstance(t, torch.Tensor) and t.ndim > 1), None)


def named_arguments(
    signature: inspect.Signature, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a forward by name; what its `**` parameter takes, whatever it is called, as well."""
    given = dict(kwargs)
    with contextlib.suppress(TypeError):
        given = dict(signature.bind(module, *args, **kwargs).arguments)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                given.update(given.pop(name, {}))
    return given
