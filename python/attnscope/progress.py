"""How far a long piece of work is, in terminals and notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

#: None: a bar after a second where somebody may see it; True: always; False: none; or a function of the share
#: that is done, which is called about twenty times a second in the caller's thread.
Progress = bool | Callable[[float], Any] | None

_DELAY = 1.0  # seconds that work takes without a bar


def notebook_shell() -> Any:
    """IPython's shell where what is shown goes to a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    names = [each.__name__ for each in type(shell).__mro__]  # notebooks derive shells of their own
    return shell if "ZMQInteractiveShell" in names else None


class _Line:
    """A bar where there is no tqdm."""

    def __init__(self, title: str) -> None:
        self._title = title

    def show(self, share: float) -> None:
        sys.stderr.write(f"\r{self._title} {100 * share:5.1f} %")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\n")


class _Tqdm:
    def __init__(self, title: str, tqdm: Any) -> None:
        self._bar = tqdm(total=100, desc=title, bar_format="{l_bar}{bar}| {elapsed}<{remaining}")

    def show(self, share: float) -> None:
        self._bar.n = round(100 * share, 1)
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


class Reporter:
    """A context whose value is what the engine calls: a function, or None."""

    def __init__(self, title: str, progress: Progress) -> None:
        self._title = title
        self._progress = progress
        self._begin = time.monotonic()
        self._bar: _Line | _Tqdm | None = None

    def __enter__(self) -> Callable[[float], Any] | None:
        if callable(self._progress):
            return self._progress
        wanted = self._progress
        if wanted is None:
            wanted = notebook_shell() is not None or (sys.stderr is not None and sys.stderr.isatty())
        return self._show if wanted else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def _show(self, share: float) -> None:
        if self._bar is None:
            if time.monotonic() - self._begin < (0 if self._progress else _DELAY):
                return
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._bar = _Line(self._title)
            else:
                self._bar = _Tqdm(self._title, tqdm)
        self._bar.show(share)
