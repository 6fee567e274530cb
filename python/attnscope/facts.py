"""Facts of calls: how they are told, counted and shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def told_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as --as writes them: {"layer": 17, "branch": ["cond", "uncond"]}."""
    told = {}
    for name, value in facts.items():
        if name == "branch" and not isinstance(value, str):
            value = ",".join(map(str, value))
        told[name] = value if isinstance(value, str) else json.dumps(value)
    return told


def counted(facts: Mapping[str, Any]) -> tuple[int, int | None, list[str]]:
    """Step, layer (None outside the main stack) and branches as selections count them: what nobody recorded as 0
    and "all"."""
    layer = facts["layer"]
    if layer is None and not facts["block"]:
        layer = 0
    branches = facts["branches"] if "branches" in facts else facts["branch"] and [facts["branch"]]
    return facts["step"] or 0, layer, branches or ["all"]


def place_text(facts: Mapping[str, Any]) -> str:
    """"step 10, layer 3, cond, joint", without what is not recorded."""
    branches = facts["branches"] if "branches" in facts else facts["branch"] and [facts["branch"]]
    parts = [f"{name} {facts[name]}" for name in ("step", "layer") if facts[name] is not None]
    parts += ["+".join(branches)] if branches else []
    return ", ".join([*parts, facts["kind"]])


def stamp(path: str | None) -> tuple[int, int] | None:
    """Size and time of change of a file; None where there is none."""
    try:
        about = Path(path or "").stat()
    except OSError:
        return None
    return about.st_size, about.st_mtime_ns
