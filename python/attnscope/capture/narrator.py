"""The lines that a recorder tells its user."""

from __future__ import annotations

import sys


class Narrator:
    """Says each line once, on standard error, unless it is to be quiet. `speaker`: whose lines these are."""

    def __init__(self, speaker: str, quiet: bool) -> None:
        self._speaker = speaker
        self._quiet = quiet
        self._said: set[str] = set()

    def say(self, line: str) -> None:
        if line not in self._said and not self._quiet:
            print(f"{self._speaker}: {line}", file=sys.stderr)
        self._said.add(line)
