"""Attributes that are replaced for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Sets an attribute of one object and takes it back, whatever happens."""
    attributes = vars(owner)
    had, old = name in attributes, attributes.get(name)
    attributes[name] = value
    try:
        yield
    finally:
        if attributes.get(name) is value:
            if had:
                attributes[name] = old
            else:
                del attributes[name]
