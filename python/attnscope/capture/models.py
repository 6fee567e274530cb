"""The token layouts that are known, by class."""

from __future__ import annotations

from .layouts import Layout

LAYOUTS: dict[str, Layout] = {}
