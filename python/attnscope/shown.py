"""What shows itself: as HTML in notebooks, as a line in terminals, and as a file."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

from .errors import make_error
from .progress import notebook_shell
from .saving import save_new

_FACE = "font-family:sans-serif;font-size:13px"


class Shown:
    """The result of a show(): html, a fragment for a notebook's cell; line, what a terminal has; page, a document that
    needs nothing else, or None; png, bytes of a picture, or None."""

    def __init__(
        self,
        line: str,
        fragment: str,
        *,
        page: str | None = None,
        png: bytes | None = None,
        folder: Path | None = None,
    ) -> None:
        self.line = line
        self.html = fragment
        self.page = page
        self.png = png
        self._folder = folder
        self._shown_in: int | None = None

    def __repr__(self) -> str:
        return self.line

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the page to a file that ends in .html, or the picture to one that ends in .png, and gives its path.
        `force` replaces a file that is there. Raises attnscope.Error: "usage" for another ending, or where a file is
        there, "file" where it cannot be written, or would stand in the folder of the capture that it is of."""
        path = Path(path)
        kinds = {".html": self.page and self.page.encode(), ".htm": self.page and self.page.encode(), ".png": self.png}
        data = kinds.get(path.suffix)
        if data is None:
            known = " or ".join(name for name in (".html", ".png") if kinds[name] is not None)
            raise make_error(f'{path}: the name must end in {known} (got "{path.suffix}")', "usage")
        return save_new(path, data, force, self._folder)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        shell = notebook_shell()
        if shell is not None and self._shown_in == shell.execution_count:
            return {"text/plain": self.line}  # it has shown itself in this very cell
        return {"text/html": self.html, "text/plain": self.line}

    def display(self) -> Any:
        """Shows it at once where this is a notebook; gives itself."""
        shell = notebook_shell()
        if shell is not None:
            from IPython.display import display

            display(self)
            self._shown_in = shell.execution_count
        return self


def document(title: str, body: str) -> str:
    """A page of its own around a fragment."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title></head>'
        f'<body style="margin:16px">{body}</body></html>\n'
    )


def frame(page: str, name: str, height: int) -> str:
    """The page in a frame that may run its own script and nothing else: no access to the notebook, no network."""
    return (
        f'<div><iframe sandbox="allow-scripts" title="{html.escape(name)}" '
        f'style="display:block;width:100%;height:{height}px;border:1px solid #8886" '
        f'srcdoc="{html.escape(page)}"></iframe></div>'
    )


def table(head: list[str], rows: list[list[Any]], note: str = "") -> str:
    """A table; None is an empty cell, and numbers have four digits."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(c))}</td>" for c in row) + "</tr>" for row in rows)
    said = f"<p>{html.escape(note)}</p>" if note else ""
    return f'<table style="{_FACE}"><tr>{top}</tr>{body}</table>{said}'


def _cell(value: Any) -> str:
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    return str(value)
