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
from .turns import Memory


@dataclass
class Forward:
    """One run of a transformer's forward."""

    model: torch.nn.Module
    arguments: Mapping[str, Any]
    step: int
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
    files: list[str] = field(default_factory=list)  # of the calls that were recorded
    before: Memory | None = None  # what told steps and chunks before it

    def is_piece(self, module: str) -> bool:
        """Is a call of the attention module `module` one of a stream? An encoder's beside its decoder is not."""
        config = getattr(self.model, "config", None)
        beside = getattr(config, "is_encoder_decoder", False) and "decoder" not in module
        return self.chunk is not None and not beside


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
