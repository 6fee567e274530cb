"""One call from a pipeline to what it looks at: look()."""

from __future__ import annotations

import atexit
import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .budgets import BudgetCapture, size_of
from .capture import CaptureError, Options
from .capture.slots import Model
from .captures import Capture
from .captures import open as open_capture
from .errors import make_error
from .reports import Report
from .shown import Shown
from .words import Words

_MOST_LAYERS = 8  # where nobody chooses
_STEPS = ("num_inference_steps", "num_steps", "steps")  # a pipeline's names for how many it has


class Look(Shown):
    """What look() found. It shows itself in a notebook: words over the frames, then the page of `attnscope report`,
    with heads by class and those that stand out; .save("page.html") writes the page.

    capture: the open capture; report: the page and its numbers; words: those that were asked for, or None; result: what
    the pipeline gave.
    """

    def __init__(self, capture: Capture, page: Report, words: Words | None, result: Any) -> None:
        self.capture = capture
        self.report = page
        self.words = words
        self.result = result
        body = (words._repr_html_() if words is not None else "") + page.html
        line = page.line.replace("<Report of", "<Look at", 1)
        super().__init__(line, body, page=page.page, folder=capture._folder)


def look(
    pipe: Any,
    prompt: Any = None,
    /,
    words: str | Sequence[str] | None = None,
    *,
    layers: Any = None,
    steps: Any = None,
    out: str | os.PathLike[str] | None = None,
    disk: str | int = "4GiB",
    memory: str | int = "2GiB",
    record: Mapping[str, Any] | None = None,
    report: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Look:
    """Runs a pipeline of diffusers, records its attention, and shows what it looks at, at once in a notebook.

        attnscope.look(pipe, "a red dog runs", words=["red", "dog"], num_inference_steps=30)

    prompt and arguments: of the pipeline. words: of the prompt, drawn over the frames; the page has those of the whole
    prompt. layers, steps: as of capture(); without them eight layers that are evenly spread, and the step in the middle
    of the run. out: a folder for the capture; without it one that is removed when the process ends. disk: bytes of
    tensors that are recorded at most: where all would take more, fewer attention modules are, evenly spread, which a
    line says. memory: of what waits for the disk, and of measuring. record, report: further options of capture() and of
    `attnscope report`, such as dict(branch="both") and dict(sample=256); a page begins nothing after two minutes
    (budget_time).

    An error and Ctrl-C are raised when the capture has been closed; what was recorded then opens, and a line says
    where. Raises CaptureError and attnscope.Error, of one line each: where a capture runs already, before the pipeline
    runs for options that cannot be meant, for a pipeline without weights (the device meta), and for calls that disk=
    has no room for.
    """
    given = dict(record or {})
    taken = inspect.signature(type(pipe).__call__).parameters if callable(pipe) else {}
    if isinstance(prompt, str):
        given.setdefault("prompt", prompt)
    given["layers"] = layers if layers is not None else _some_layers(pipe, given.get("modules"))
    given["steps"] = steps if steps is not None else _middle_step(taken, arguments)
    options = _options(given)
    sizes = size_of(disk, "disk"), size_of(memory, "memory")
    _check_weights(pipe)
    _check_words(words)
    folder = Path(tempfile.mkdtemp(prefix="attnscope-look-") if out is None else out)
    if out is None:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if prompt is not None:
        arguments["prompt"] = prompt
    recorder: BudgetCapture | None = None
    try:
        recorder = BudgetCapture(pipe, folder, options, *sizes)
        with recorder:
            result = pipe(**arguments)
        _add_pictures(recorder, result, options.quiet)
        capture = open_capture(recorder.folder, memory=f"{sizes[1]}B")
        found = capture.words(words) if words is not None else None
        page = capture.report(**{"budget_time": "2min", **(report or {})})
    except BaseException as error:
        _tell_left(folder, error, recorder, out is None)
        raise
    return Look(capture, page, found, result).display()


def _options(given: Mapping[str, Any]) -> Options:
    odd = sorted(set(given) - set(Options.__dataclass_fields__))
    if odd:
        raise make_error(f"look: record={{{odd[0]!r}: …}}: is no option of capture()", "usage")
    return Options(**given)


def _some_layers(pipe: Any, modules: str | None) -> Any:
    """Of the main stack, evenly spread, the first and the last among them."""
    numbers = sorted({slot.layer for slot in Model.of(pipe, modules).all_slots() if slot.layer is not None})
    if len(numbers) <= _MOST_LAYERS:
        return numbers or "all"
    return [numbers[round(n * (len(numbers) - 1) / (_MOST_LAYERS - 1))] for n in range(_MOST_LAYERS)]


def _middle_step(taken: Mapping[str, inspect.Parameter], arguments: Mapping[str, Any]) -> int:
    for name in ("timesteps", "sigmas"):
        if arguments.get(name) is not None:
            return len(arguments[name]) // 2
    for name in _STEPS:
        count = arguments.get(name, taken[name].default if name in taken else None)
        if isinstance(count, int):
            return count // 2
    return 0


def _check_weights(pipe: Any) -> None:
    for name, model in Model.of(pipe, None).transformers.items():
        if any(p.is_meta for p in model.parameters()):
            raise make_error(f"look: {name} has weights on the device meta, where there are no numbers", "usage")


def _check_words(words: Any) -> None:
    listed = [words] if isinstance(words, str) else [] if words is None else list(words)
    if any(not isinstance(word, str) or not word for word in listed) or (words is not None and not listed):
        raise make_error(f"words: expected words of the prompt (got {words!r})", "usage")


def _add_pictures(recorder: BudgetCapture, result: Any, quiet: bool) -> None:
    """The pipeline's frames or picture, where it gave such."""
    video = getattr(result, "frames", None)
    video = getattr(result, "images", None) if video is None else video
    if video is None and isinstance(result, tuple):
        video = result[0]
    try:
        recorder.add_video(video[0])  # type: ignore[index]
    except (CaptureError, ImportError, TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        if not quiet:
            print(f"attnscope.look: no pictures of the frames: {error}", file=sys.stderr)


def _tell_left(folder: Path, error: BaseException, recorder: BudgetCapture | None, ours: bool) -> None:
    """Where what was recorded before the error is."""
    entered = recorder is not None and recorder.writer is not None
    if entered and recorder.writer.calls:  # type: ignore[union-attr]
        kept = "until the process ends" if ours else "there"
        print(
            f"attnscope.look: {type(error).__name__}: what was recorded stays {kept}: "
            f"attnscope.open({os.fspath(recorder.folder)!r})",  # type: ignore[union-attr]
            file=sys.stderr,
        )
    elif ours:
        shutil.rmtree(folder, ignore_errors=True)
