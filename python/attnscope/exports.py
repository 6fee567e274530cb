"""Exports in a capture's place: maps that stand in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import make_error
from .facts import counted, place_text
from .places import Places, choose
from .progress import Progress, Reporter
from .closing import Closable
from .views import HeadView, show_stored

if TYPE_CHECKING:
    from . import _native


class Export(Closable):
    """An open export (also an unfinished one). path; heads: a dict of facts a head: step, layer, branch, kind, block,
    slot, batch, head, product, dtype (how entries are stored), lse (whether it is there), mask, rows (how many),
    keys (the capture's, half-open). ex[step, layer, branch, slot] is the list of heads that this means; what is None
    or left out may be anything. Facts that nobody recorded are None, and chosen as 0 and "all"."""

    def __init__(self, path: str, opened: _native.Export) -> None:
        self._opened = opened
        self.path = path
        self.heads: list[dict[str, Any]] = [opened.facts(number) for number in range(len(opened))]

    def __repr__(self) -> str:
        return f"<Export {self.path}: {self.heads[0]['product'] if self.heads else 'nothing'}, {len(self)} heads>"

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[StoredHead]:
        return (StoredHead(self, number) for number in range(len(self)))

    def __getitem__(self, key: Any) -> list[StoredHead]:
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) > 4:
            raise make_error(f"ex[{key!r}]: expected step, layer, branch, slot", "usage")
        found = [
            number
            for number, facts in enumerate(self.heads)
            if all(value in (None, own) for value, own in zip(parts, _counted(facts), strict=False))
        ]
        if not found:
            raise make_error(f"ex[{', '.join(map(repr, parts))}]: {self.path} has no such heads", "usage")
        return [StoredHead(self, number) for number in found]

    def head(self, number: int, *key: Any, batch: int | None = None) -> StoredHead:
        """The one head with this number (of the model) among ex[key]."""
        among = self[key] if key else list(self)
        found = [
            head for head in among if head.facts["head"] == number and batch in (None, head.facts["batch"])
        ]
        if len(found) != 1:
            raise make_error(f"head {number}: {self.path} has {len(found)} that this means", "usage")
        return found[0]


class StoredHead:
    """A head of an export. facts: see Export.heads; queries: int64, the capture's query of each row that is there."""

    def __init__(self, export: Export, number: int) -> None:
        self._opened = export._opened
        self._number = number
        self.path = export.path
        self.facts = export.heads[number]
        self.queries: np.ndarray = self._opened.rows(number)

    def __repr__(self) -> str:
        f = self.facts
        return (
            f"<StoredHead {f['head']}: {place_text(f)}, {f['product']}>"
        )

    def entries(self, rows: Places = None, cols: Places = None, *, progress: Progress = None) -> np.ndarray:
        """float32 [rows, cols] as they were stored: weights, or logits where the product is that. rows and cols count
        within the file, from 0; `queries` and facts["keys"] tell what they are. NaN where an unfinished
        export has nothing yet. Raises attnscope.Error of code "file" where a tile is not what was written."""
        first, past = self.facts["keys"]
        chosen, among = choose(rows, len(self.queries), "rows"), choose(cols, past - first, "cols")
        with Reporter("entries", progress) as report:
            whole = self._opened.entries(self._number, _positions(chosen.wanted), report)
        picked = whole[:, slice(*among.wanted) if isinstance(among.wanted, tuple) else among.wanted]
        return chosen.ordered(among.ordered(picked, 1), 0)

    def show(self) -> HeadView:
        """A picture of the map, which shows itself in a notebook: of up to 512 rows that are spread evenly. (A page
        needs queries and keys: attnscope.Head.show().)"""
        return show_stored(self)

    def lse(self, rows: Places = None) -> np.ndarray:
        """float64 [rows]; NaN where the file has none."""
        chosen = choose(rows, len(self.queries), "rows")
        return chosen.ordered(self._opened.lse(self._number, _positions(chosen.wanted)), 0)


def _counted(facts: dict[str, Any]) -> tuple[Any, ...]:
    """Step, layer, branch, slot, as they are chosen by."""
    step, layer, branches = counted(facts)
    return step, layer, branches[0], facts["slot"]


def _positions(wanted: Any) -> np.ndarray:
    return np.arange(*wanted, dtype=np.int64) if isinstance(wanted, tuple) else wanted
