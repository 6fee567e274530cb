"""Where calls and forwards are seen: hooks that are taken back when the capture ends."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F

from .patching import replaced
from .slots import Slot
from .tensors import Call


class SlotStack(threading.local):
    """The attention modules that are running in this thread, innermost last."""

    def __init__(self) -> None:
        self._running: list[Slot] = []

    def clear(self) -> None:
        self._running.clear()

    @property
    def innermost(self) -> Slot | None:
        return self._running[-1] if self._running else None

    def install(self, stack: contextlib.ExitStack, slots: Iterable[Slot]) -> None:
        for slot in slots:
            stack.callback(slot.module.register_forward_pre_hook(self._enter(slot)).remove)
            stack.callback(slot.module.register_forward_hook(self._leave, always_call=True).remove)

    def _enter(self, slot: Slot) -> Callable[..., None]:
        return lambda module, args: self._running.append(slot)

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if self._running:
            self._running.pop()


def watch_scheduler(stack: contextlib.ExitStack, owner: Any, moved: Callable[[], None]) -> None:
    """Calls `moved` after each step() of the scheduler of the pipeline `owner`, if it has one.

    The class is watched, not the object: pipelines copy their scheduler, and a copy of an object with a
    function of its own would go on with the state of the first.
    """
    cls = type(getattr(owner, "scheduler", None))
    real = getattr(cls, "step", None)
    if not callable(real):
        return

    @functools.wraps(real)
    def step(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        moved()
        return result

    stack.enter_context(replaced(cls, "step", step))


def replace_function(
    stack: contextlib.ExitStack, slots: Iterable[Slot], seen: Callable[[Call], None]
) -> None:
    """Puts a function in the place of scaled_dot_product_attention that calls the real one with the
    same arguments and then `seen`."""
    real = F.scaled_dot_product_attention
    spy = _spy(real, seen)
    stack.enter_context(replaced(F, "scaled_dot_product_attention", spy))
    # Modules that did "from torch.nn.functional import scaled_dot_product_attention".
    names: set[str] = set()
    for slot in slots:
        for cls in {type(slot.module), type(getattr(slot.module, "processor", None))}:
            names.add(cls.__module__)
    for name in names - {"builtins", F.__name__}:
        module = sys.modules.get(name)
        for attribute in [k for k, v in vars(module).items() if v is real] if module else []:
            stack.enter_context(replaced(module, attribute, spy))


def _spy(real: Callable[..., Any], seen: Callable[[Call], None]) -> Callable[..., Any]:
    def scaled_dot_product_attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **more: Any,
    ) -> torch.Tensor:
        out = real(
            query,
            key,
            value,
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            **more,
        )
        seen(Call(query, key, value, out, attn_mask, float(dropout_p), bool(is_causal), scale))
        return out

    return scaled_dot_product_attention
