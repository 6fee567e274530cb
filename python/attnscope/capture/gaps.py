"""The parts of a running model that are not recorded: said, listed in the catalogue, and no error of its run."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .errors import CaptureError

SHOWN_REASONS = 3  # reasons that the last line names


class Gaps:
    """The calls and forwards that were refused. Thread-safe.

    strict: what is refused is raised; say: gets a line for each kind of reason; listed: is called with an entry of
    the catalogue's `refused`.
    """

    def __init__(self, strict: bool, say: Callable[[str], None], listed: Callable[[dict[str, Any]], None]) -> None:
        self.strict = strict
        self._say = say
        self._listed = listed
        self._lock = threading.Lock()
        self._errors: dict[str, CaptureError] = {}  # the first of each kind
        self._counts: dict[str, int] = {}  # of entries, by kind
        self._calls = 0
        self._forwards = 0
        self.partial: set[int] = set()  # forwards that made fewer or other calls than their model has

    def refuse(self, error: CaptureError, where: Mapping[str, Any]) -> None:
        """Lists the part that `where` names (keys of an entry) as not recorded. Raises the error where strict."""
        self.tell(error, where)
        kind = _kind(str(error), where)
        with self._lock:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            one = "slot" in where or "forward" not in where
            self._calls += one
            self._forwards += not one
        self._listed({**where, "why": str(error)})

    def tell(self, error: CaptureError, where: Mapping[str, Any], what: str = "not recorded") -> None:
        """Says why something is not recorded, or not as it should be (`what`), where nobody was told. Raises the error
        where strict."""
        if self.strict:
            raise error
        kind = _kind(str(error), where)
        with self._lock:
            known = kind in self._errors
            self._errors.setdefault(kind, error)
        if not known:
            self._say(f"{what}: {error}")

    def count(self, error: CaptureError, calls: int) -> None:
        """So many calls were lost for a reason, and are listed already."""
        kind = _kind(str(error), {})
        self._errors.setdefault(kind, error)
        self._counts[kind] = self._counts.get(kind, 0) + calls
        self._calls += calls

    def nothing(self, why: str) -> CaptureError:
        """The error of a run that left nothing; `why`: as far as that is not told by what was refused."""
        errors = list(self._errors.values())
        reasons = [why] * (not self._counts) + [str(error) for error in errors[:SHOWN_REASONS]]
        cls = type(errors[0]) if self._counts else CaptureError
        return cls(reasons[0] if len(reasons) == 1 else f"nothing was recorded: {'; '.join(reasons)}")

    def summary(self, recorded: int) -> Iterator[str]:
        """The last lines of a run that recorded so many calls and where something is missing."""
        if self.partial:
            count = f"{len(self.partial)} forward{'s' if len(self.partial) > 1 else ''}"
            shown = ", ".join(map(str, sorted(self.partial)[:SHOWN_REASONS]))
            more = " …" if len(self.partial) > SHOWN_REASONS else ""
            yield f"{count} made fewer or other calls than the model has: {shown}{more}"
        if not self._counts:
            return
        parts = [f"{self._calls} refused"] if self._calls else []
        if self._forwards:
            parts.append(f"{self._forwards} forward{'s' if self._forwards > 1 else ''} refused whole")
        most = sorted(self._counts, key=lambda k: -self._counts[k])
        reasons = "; ".join(f"{self._errors[k]} ({self._counts[k]})" for k in most[:SHOWN_REASONS])
        more = f"; and {len(most) - SHOWN_REASONS} more reasons" if len(most) > SHOWN_REASONS else ""
        yield f"recorded {recorded} of {recorded + self._calls} calls; {', '.join(parts)}: {reasons}{more}"


def _kind(why: str, where: Mapping[str, Any]) -> str:
    """The text that reasons share which differ in the module and in numbers alone."""
    for name in ("layer_name", "block"):
        why = why.replace(str(where.get(name) or "\0"), "")
    return re.sub(r"\d+", "#", why)
