"""Heads to look into, in notebooks and as files: what Head.show() gives."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .errors import make_error
from .pictures import png
from .progress import Progress, Reporter, notebook_shell
from .saving import save_new

_MOST_STRIDE = 1 << 20
_SIDE = 512  # pixels of a picture's longer side, about
_MOST_READ = 1 << 24  # entries of a map that are held to draw a picture


class HeadOfCall(Protocol):
    """The members that a view takes of a head of a call, heads.Head."""

    call: Any
    batch: int
    number: int
    shape: tuple[int, int]

    @property
    def branch(self) -> str | None: ...
    def weights(self, rows: Any, cols: Any, *, progress: Progress) -> np.ndarray: ...


class HeadOfExport(Protocol):
    """The members that a view takes of a head of an export, exports.StoredHead."""

    path: str
    facts: dict[str, Any]
    queries: Any

    def entries(self, rows: Any, *, progress: Progress) -> np.ndarray: ...


class HeadView:
    """A head's map to look into: the page that `attnscope figure` makes, or a picture where there can be none.

    html: the page, one document that needs nothing else, or None; reason: why there is none, one line, else "";
    png: bytes of a picture of the map. stride, queries, keys: which part of the head the page has (of a picture: every
    stride-th query). It shows itself in notebooks: the page within a frame that may run its own script and nothing
    else (no access to the notebook, no network)."""

    def __init__(
        self,
        name: str,
        picture: bytes,
        page: str | None = None,
        *,
        reason: str = "",
        note: str = "",
        stride: int = 1,
        shape: tuple[int, int] = (0, 0),
        height: int = 640,
        folder: Path | None = None,
    ) -> None:
        self.html = page
        self.png = picture
        self.reason = reason
        self.stride = stride
        self.queries, self.keys = shape
        self._name = name
        self._note = note
        self._height = height
        self._folder = folder
        self._shown_in: int | None = None

    def __repr__(self) -> str:
        if self.html is None:
            return f'<HeadView of {self._name}, a picture: {self.reason}; .save("map.png") writes it>'
        size = len(self.html) * 1e-6
        return f'<HeadView of {self._name}, {size:.2f} MB: .save("map.html") writes the page>'

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the page to a file that ends in .html, or the picture to one that ends in .png, and gives its path.
        The page contains the head's queries and keys. `force` replaces a file that is there. Raises attnscope.Error:
        "usage" where there is no page (with the reason) or a file is there, "file" where it cannot be written, or would
        stand in the folder of the capture that it is of."""
        path = Path(path)
        if path.suffix in (".html", ".htm"):
            if self.html is None:
                raise make_error(f"{path}: there is no page: {self.reason}", "usage")
            data = self.html.encode()
        elif path.suffix == ".png":
            data = self.png
        else:
            raise make_error(f'{path}: the name must end in .html or .png (got "{path.suffix}")', "usage")
        return save_new(path, data, force, self._folder)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        shell = notebook_shell()
        if shell is not None and self._shown_in == shell.execution_count:
            return {"text/plain": repr(self)}  # show() has shown it in this very cell
        picture = base64.b64encode(self.png).decode()
        return {"text/html": self._markup(picture), "image/png": picture, "text/plain": repr(self)}

    def _markup(self, picture: str) -> str:
        said = f'<div style="font-size:smaller">{html.escape(self._note)}</div>'
        name = html.escape(f"attention map of {self._name}")
        if self.html is None:
            return f'<div><img alt="{name}" src="data:image/png;base64,{picture}">{said}</div>'
        return (
            f'<div><iframe sandbox="allow-scripts" title="{name}" '
            f'style="display:block;width:100%;height:{self._height}px;border:1px solid #8886" '
            f'srcdoc="{html.escape(self.html)}"></iframe>{said}</div>'
        )

    def _display(self) -> HeadView:
        """Shows it at once where this is a notebook."""
        shell = notebook_shell()
        if shell is not None:
            from IPython.display import display

            display(self)
            self._shown_in = shell.execution_count
        return self


def show_head(
    head: HeadOfCall,
    rows: slice | str | None,
    cols: slice | str | None,
    stride: int,
    height: int,
    progress: Progress,
) -> HeadView:
    """Head.show()."""
    if not 1 <= stride <= _MOST_STRIDE:
        raise make_error(f"stride {stride}: expected 1 to {_MOST_STRIDE}", "usage")
    if not 100 <= height <= 10_000:
        raise make_error(f"height {height}: expected 100 to 10000 pixels", "usage")
    crops = {"rows": _crop(rows, head.shape[0], "rows"), "cols": _crop(cols, head.shape[1], "cols")}
    words = {**crops, "stride": stride, "command": _command(head, crops, stride)}
    with Reporter("show", progress) as report:
        made = head.call._call.figure(head.call._engine, head.batch, head.number, words, report)
    name = f"head {head.number}"
    if made["refusal"]:
        return _picture_of(head, name, made["refusal"], crops, height)._display()
    note = (
        "The wheel zooms, a click picks a query. This output contains the head’s queries and keys"
        + ("" if (made["queries"], made["keys"]) == head.shape else ", those that were chosen")
        + ". No map above? The notebook is not trusted: run the cell."
    )
    page = made["page"].decode(errors="replace")
    view = HeadView(
        name,
        png(made["base"]),
        page,
        note=note,
        stride=stride,
        shape=(made["queries"], made["keys"]),
        height=height,
        folder=head.call._folder,
    )
    return view._display()


def show_stored(head: HeadOfExport) -> HeadView:
    """StoredHead.show()."""
    first, past = head.facts["keys"]

    def read(rows: range) -> np.ndarray:
        entries = head.entries(slice(rows.start, rows.stop, rows.step), progress=False)
        if head.facts["product"] != "logits":
            return entries
        with np.errstate(invalid="ignore"):
            return np.exp(entries - entries.max(1, keepdims=True))

    picture, step = _sampled(read, range(len(head.queries)), past - first)
    reason = "an export has no queries and keys, which the page is made of: open the capture"
    shape = (-(-len(head.queries) // step), past - first)
    return HeadView(
        f"head {head.facts['head']} of {Path(head.path).name}",
        picture,
        reason=reason,
        note=_picture_note(reason, step),
        stride=step,
        shape=shape,
    )._display()


def _picture_of(head: HeadOfCall, name: str, reason: str, crops: dict[str, str], height: int) -> HeadView:
    """The picture that is shown where there can be no page: rows spread evenly over the map, of each all keys."""
    rows, cols = (
        range(count)[slice(*(int(end) if end else None for end in (text or ":").split(":")))]
        for text, count in ((crops["rows"], head.shape[0]), (crops["cols"], head.shape[1]))
    )

    def read(part: range) -> np.ndarray:
        chosen = slice(part.start, part.stop, part.step)
        return head.weights(chosen, slice(cols.start, cols.stop), progress=False)

    picture, step = _sampled(read, rows, len(cols))
    return HeadView(
        name,
        picture,
        reason=reason,
        note=_picture_note(reason, step),
        stride=step,
        shape=(-(-len(rows) // step), len(cols)),
        height=height,
        folder=head.call._folder,
    )


def _picture_note(reason: str, step: int) -> str:
    return f"A picture, not a page: {reason}." + (f" It has one query in {step}." if step > 1 else "")


def _sampled(read: Callable[[range], np.ndarray], rows: range, cols: int) -> tuple[bytes, int]:
    """A picture of rows that are spread evenly, the magnitudes of their entries in means of a few keys each; and which
    rows these are: every so many-th. read: entries [rows, cols] of rows that a slice can mean."""
    step = max(1, -(-len(rows) // _SIDE))
    block = max(1, -(-cols // _SIDE))
    chosen = rows[::step]
    at_once = max(1, _MOST_READ // max(1, cols))
    starts = np.arange(0, cols, block)
    counts = np.diff(np.append(starts, cols))
    lines = []
    for begin in range(0, len(chosen), at_once):
        entries = np.nan_to_num(np.abs(read(chosen[begin : begin + at_once])))
        lines.append(np.add.reduceat(entries, starts, axis=1, dtype=np.float64) / counts)
    return png(np.concatenate(lines)), step


def _crop(places: slice | str | None, count: int, name: str) -> str:
    """As the command line's --rows A:B."""
    if places is None:
        return ""
    if isinstance(places, str):
        return places
    if not isinstance(places, slice) or places.step not in (None, 1):
        raise make_error(
            f'{name}: expected a slice without a step, or "A:B" (stride=N leaves tokens out)', "usage"
        )
    begin, end, _ = places.indices(count)
    return f"{begin}:{end}"


def _command(head: HeadOfCall, crops: dict[str, str], stride: int) -> str:
    """The call that makes this page, with names of files alone, since pages are sent to others."""
    facts, path = head.call.facts, head.call._call.capture_path
    if path is None:
        text = f"attnscope.call(q, k).head({head.number}"
    else:
        layer = facts["layer"] if facts["layer"] is not None else facts["block"] or None
        key = [facts["step"], layer, head.branch] + ([facts["slot"]] if facts["slot"] else [])
        inside = ", ".join(map(repr, key))
        text = f"attnscope.open({Path(path).name!r})[{inside}].head({head.number}"
    if facts["batch"] > 1:
        text += f", batch={head.batch}"
    cuts = [f"{name}={value!r}" for name, value in crops.items() if value]
    if stride > 1:
        cuts.append(f"stride={stride}")
    return text + ").show(" + ", ".join(cuts) + ")"
