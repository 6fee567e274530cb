"""The page of `attnscope report`, in notebooks and as a file."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import make_error
from .facts import place_text
from .program import command
from .shown import Shown, frame

MOST_HEIGHT = 20_000


class Report(Shown):
    """A capture as one page (docs/report.md), which shows itself in notebooks; .save("page.html") writes it.

    heads: a dict a head, with its class and the numbers of stats; stands_out: a dict a rule, with its text and the
    heads that stand out by it; lacks, problems: what the page does not have, and what could not be read; title.
    """

    def __init__(self, told: Mapping[str, Any], page: str, name: str, height: int, folder: Path | None) -> None:
        self.title: str = told["title"]
        self.heads: list[dict[str, Any]] = told["heads"]
        self.stands_out: list[dict[str, Any]] = told["stands_out"]
        self.lacks: list[str] = told["lacks"]
        self.problems: list[str] = told["problems"]
        super().__init__(self._told(name), frame(page, f"report of {name}", height), page=page, folder=folder)

    @property
    def classes(self) -> dict[str, int]:
        """How many heads have each class, most first."""
        return dict(Counter(head["class"] for head in self.heads if head["class"]).most_common())

    def _told(self, name: str) -> str:
        counts = ", ".join(f"{count} {each}" for each, count in self.classes.items()) or "no classes"
        best = [f"{rule['rule']} {_place(rule['heads'][0])}" for rule in self.stands_out]
        out = f"; stand out by {', '.join(best)}" if best else ""
        return f'<Report of {name}: {len(self.heads)} heads ({counts}){out}; .save("page.html") writes it>'


def _place(head: Mapping[str, Any]) -> str:
    return f"({place_text(head)}, head {head['head']})"


def report(inputs: tuple[Any, ...], options: Mapping[str, Any], height: int, folder: Path | None) -> Report:
    """Of inputs and options as `attnscope report` takes them."""
    if not 100 <= height <= MOST_HEIGHT:
        raise make_error(f"height {height}: expected 100 to {MOST_HEIGHT} pixels", "usage")
    for option in ("out", "json", "quiet"):
        if option in options:
            raise make_error(f'{option}: means nothing here (.save("page.html") writes the page)', "usage")
    name = Path(inputs[0]).name if inputs else "tensors"
    with tempfile.TemporaryDirectory(prefix="attnscope-report-") as work:
        page = Path(work) / "page.html"
        said = json.loads(command("report", *inputs, quiet=True, out=page, json=True, **options))
        return Report(said, page.read_text(encoding="utf-8"), name, height, folder)
