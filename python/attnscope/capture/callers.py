"""Modules that call an attention function themselves, by what the code of their classes names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType

import torch

# Names in code that calls attention: functions of PyTorch, of diffusers' dispatcher, of transformers' table.
FUNCTIONS = {"scaled_dot_product_attention", "flex_attention", "dispatch_attention_fn", "ALL_ATTENTION_FUNCTIONS"}


def calls_attention(module: torch.nn.Module) -> bool:
    """Does a method of the module's class, or of one that it is made from, name an attention function?"""
    for cls in type(module).__mro__:
        if cls is torch.nn.Module:
            return False
        for member in vars(cls).values():
            code = getattr(inspect.unwrap(member) if callable(member) else member, "__code__", None)
            if code is not None and any(FUNCTIONS & set(part.co_names) for part in _with_inner(code)):
                return True
    return False


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """The code and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)
