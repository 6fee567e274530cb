"""Tables: calls, and the numbers of heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .native import _native
from .shown import table as shown_table

_COUNTS = ("rows", "masked_rows")
NUMBERS = ("forward", "of_step")  # of a call whose step or branch nobody told; else −1


_ROWS = 40  # of a table that a notebook shows


class HeadTable(np.ndarray):
    """A structured array with a record a head, which shows itself as a table in notebooks."""

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return part.view(np.ndarray) if isinstance(part, HeadTable) and part.dtype.names is None else part

    def _repr_html_(self) -> str | None:
        names = self.dtype.names
        if names is None or self.ndim != 1:
            return None
        rows = [list(record) for record in self[:_ROWS].tolist()]
        return shown_table(list(names), rows, _more(len(self) - _ROWS, "heads"))


def _more(count: int, what: str) -> str:
    return f"… {count} more {what}" if count > 0 else ""


def stats_table(records: list[dict[str, Any]], options: Mapping[str, Any]) -> np.ndarray:
    """A structured array with a record a head; −1 and "" where nobody recorded step, layer or branch."""
    columns: list[tuple[str, Any]] = [(name, np.int64) for name in ("step", "layer")]
    columns += [(name, _text_type(records, name)) for name in ("branch", "kind")]
    columns += [(name, np.int64) for name in ("batch", "head")]
    columns += [(name, _text_type(records, name)) for name in ("block", "slot")]
    columns += [("chunk", np.int64)]
    columns += [(name, np.int64) for name in NUMBERS if any(record[name] >= 0 for record in records)]
    columns += [("class", _text_type(records, "class"))]
    for name, _, is_estimate, _ in _native.HEAD_FIELDS:
        columns.append((name, np.int64 if name in _COUNTS else np.float64))
        if is_estimate and options.get("sample"):
            columns.append((f"{name}_stderr", np.float64))
    table = np.empty(len(records), dtype=columns)
    for name, _ in columns:
        missing: Any = {"i": -1, "U": ""}.get(table.dtype[name].kind, np.nan)
        table[name] = [missing if record[name] is None else record[name] for record in records]
    return table.view(HeadTable)


def _text_type(records: list[dict[str, Any]], name: str) -> str:
    width = max((len(record[name] or "") for record in records), default=1)
    return f"U{width or 1}"


def frame_of(table: np.ndarray, library: str) -> Any:
    """A structured array as a table of "pandas" or "pyarrow", which have to be there."""
    if library == "pandas":
        import pandas

        return pandas.DataFrame({name: table[name] for name in table.dtype.names or ()})
    import pyarrow

    return pyarrow.Table.from_pydict({name: table[name].tolist() for name in table.dtype.names or ()})


class CallTable(Sequence[Mapping[str, Any]]):
    """The calls of a capture, a dict of facts each (Call.facts). It prints itself as a table."""

    SHOWN = (
        "step",
        "layer",
        "branches",
        "kind",
        "slot",
        "heads",
        "queries",
        "keys",
        "head_dim",
        "dtype",
        "mask",
    )

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self._calls = calls

    def __len__(self) -> int:
        return len(self._calls)

    def __getitem__(self, number: Any) -> Any:
        return CallTable(self._calls[number]) if isinstance(number, slice) else self._calls[number]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._calls)

    def column(self, name: str) -> list[Any]:
        """One fact of all calls."""
        return [call[name] for call in self._calls]

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                name: "+".join(value) if name == "branches" and value is not None else value
                for name, value in call.items()
                if name != "tokens"
            }
            for call in self._calls
        ]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; without the words of prompts. Needs pandas."""
        import pandas

        return pandas.DataFrame(self._rows())

    def to_arrow(self) -> Any:
        """A pyarrow.Table; without the words of prompts. Needs pyarrow."""
        import pyarrow

        return pyarrow.Table.from_pylist(self._rows())

    def _cells(self, most: int) -> tuple[list[list[str]], int]:
        rows = [
            [str("" if row[name] is None else row[name]) for name in self.SHOWN]
            for row in self._rows()[:most]
        ]
        return rows, max(0, len(self) - most)

    def __repr__(self) -> str:
        rows, more = self._cells(_ROWS)
        widths = [max(len(line[i]) for line in [list(self.SHOWN), *rows]) for i in range(len(self.SHOWN))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [list(self.SHOWN), *rows]
        ]
        return "\n".join(lines + ([f"… {more} more calls"] if more else []))

    def _repr_html_(self) -> str:
        rows, more = self._cells(_ROWS)
        return shown_table(list(self.SHOWN), rows, _more(more, "calls"))


@dataclass(frozen=True)
class EditQuality:
    """The numbers of one edit for one head; None where a number is not defined. Meanings: docs/lab.md."""

    edit: str
    density: float
    tiles: float
    recall: float | None
    recall_stderr: float | None
    recall_p05: float | None
    entry_oracle_recall: float | None
    block_oracle_recall: float | None
    output_error: float | None
    output_error_mean: float | None
    output_error_stderr: float | None
    output_error_p95: float | None
    output_cosine: float | None
    forced_mass: float | None
    js: float | None
    ties: int | None
    masked_rows: int
    empty_rows: int
    sampled_rows: int
    output_error_by_segment: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class MaskQuality:
    """The numbers of one mask for one head; None where a number is not defined. Meanings: docs/lab.md."""

    mask: str
    density: float
    effective_density: float
    recall: float | None
    recall_p05: float | None
    recall_sampled: float | None
    oracle_recall: float | None
    oracle_stderr: float | None
    effective_oracle_recall: float | None
    output_error: float | None
    output_error_mean: float | None
    output_error_p95: float | None
    masked_rows: int
    empty_rows: int
    sampled_rows: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        numbers = self.as_dict()
        return shown_table(list(numbers), [list(numbers.values())])
