"""Attributes that are replaced for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Sets an attribute of one object or class and takes it back, whatever happens."""
    had, old = name in vars(owner), vars(owner).get(name)

    # An object's own __setattr__ may do more than that (torch.nn.Module's does); a class has no other way.
    def put(new: Any) -> None:
        if isinstance(owner, type):
            setattr(owner, name, new)
        else:
            vars(owner)[name] = new

    put(value)
    try:
        yield
    finally:
        if vars(owner).get(name) is value:
            if had:
                put(old)
            elif isinstance(owner, type):
                delattr(owner, name)
            else:
                del vars(owner)[name]


@contextlib.contextmanager
def replaced_item(mapping: dict[Any, Any], key: Any, value: Any) -> Iterator[None]:
    """Sets an entry that is in `mapping` and takes it back, whatever happens."""
    old = mapping[key]
    mapping[key] = value
    try:
        yield
    finally:
        if mapping.get(key) is value:
            mapping[key] = old
