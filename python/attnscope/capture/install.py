"""Captures of servers, where no with-block fits: what the environment variable ATTNSCOPE_CAPTURE says."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import os
import shlex
import sys
import threading
from collections.abc import Mapping
from typing import Any

import torch

from .calls import INTERFACE
from .choice import parse_numbers
from .entry import capture
from .errors import CaptureError
from .grids import as_grid
from .interface import register_attention
from .option_checks import check_options
from .options import Options
from .patching import replaced
from .recorder import Capture
from .selection import Selection

VARIABLE = "ATTNSCOPE_CAPTURE"
_FLAGS = ("values", "force", "quiet", "strict")
_COUNTS = ("rows", "mask_limit", "head_offset")
_LISTS = ("kinds", "blocks", "slots", "branch", "branches")
_WORDS = ("layers", "steps", "chunks", "heads", "guidance", "model", "prompt", "negative_prompt", "grid", "text")
_OPTIONS = (*_WORDS, "kind", "axes", "q_state", "modules", *_LISTS, *_COUNTS, *_FLAGS)
_INSTALLED: list[Installed] = []  # at most one
_INSTALLING = threading.RLock()


def parse_setting(text: str) -> tuple[str, dict[str, Any]]:
    """(folder, options of capture()) of "dump/ layers=0,12-14 steps=0,10,49 values=no".

    Words as a shell splits them: the folder, in which {pid} is the process's number, then NAME=VALUE. A name that comes
    twice, is no option or has a value that it cannot have is a CaptureError of one line.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _wrong(f"{str(error).lower()} (got {text!r})") from None
    if not words or "=" in words[0]:
        raise _wrong(f"expected a folder, then NAME=VALUE (got {text!r})")
    options: dict[str, Any] = {}
    for word in words[1:]:
        name, is_given, value = word.partition("=")
        if not is_given or name not in _OPTIONS:
            near = difflib.get_close_matches(name, _OPTIONS, 1)
            meant = f"did you mean {near[0]}?" if near else "known: " + ", ".join(_OPTIONS)
            raise _wrong(f"{word}: expected NAME=VALUE of an option ({meant})")
        if name in options:
            raise _wrong(f"{word}: {name} stands there twice")
        options[name] = _value_of(name, value)
    try:
        made = Options(**options)
        check_options(made)
        Selection(made)
        as_grid(made.grid)
        for name in ("steps", "heads"):
            parse_numbers(getattr(made, name), name)
    except CaptureError as error:
        raise _wrong(str(error)) from None
    return words[0].replace("{pid}", str(os.getpid())), options


def _value_of(name: str, text: str) -> Any:
    if not text:
        raise _wrong(f"{name}=: expected a value")
    if name in _FLAGS:
        if text not in ("yes", "no"):
            raise _wrong(f"{name}={text}: expected yes or no")
        return text == "yes"
    if name in _COUNTS:
        if not text.isdecimal():
            raise _wrong(f"{name}={text}: expected a whole number from 0")
        return int(text)
    if name in _LISTS and ("," in text or name == "branches"):
        return text.split(",")
    return text


def _wrong(text: str) -> CaptureError:
    return CaptureError(f"{VARIABLE}: {text}")


class Installed:
    """A capture that runs until the process ends, or close(). Made by install(); thread-safe.

    capture: it, None before the model that is waited for runs for the first time; closed: no more is recorded.
    """

    def __init__(self, out: str, options: Mapping[str, Any]) -> None:
        self.out = out
        self.capture: Capture | None = None
        self.closed = False
        self._options = dict(options)
        self._waiting = contextlib.ExitStack()
        self._lock = threading.RLock()

    def begin(self, model: Any) -> None:
        """Records `model` from now on."""
        found = capture(model, self.out, **self._options)
        found.__enter__()
        self.capture = found

    def wait(self) -> None:
        """Records the first model of transformers that was loaded with the function of this package, from its first
        forward on."""
        real = torch.nn.Module.__call__

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if _is_told(module):
                self._met(module)
            return real(module, *args, **kwargs)

        self._waiting.enter_context(replaced(torch.nn.Module, "__call__", call))

    def _met(self, model: torch.nn.Module) -> None:
        with self._lock:
            if self.closed or self.capture is not None:
                return
            self._waiting.close()
            try:
                self.begin(model)
            except CaptureError as error:  # what the server was asked for goes on
                self.closed = True
                _tell(f"nothing is recorded: {error}")

    def close(self) -> None:
        """Ends the capture, so that its folder is complete. What it has to say is a line on standard error."""
        with self._lock, _INSTALLING:
            self._waiting.close()
            if self in _INSTALLED:
                _INSTALLED.remove(self)
            atexit.unregister(self.close)
            running = self.capture is not None and not self.closed
            self.closed = True
            if not running:
                return
            try:
                self.capture.__exit__(None, None, None)  # type: ignore[union-attr]
            except CaptureError as error:
                _tell(str(error))


def _is_told(module: torch.nn.Module) -> bool:
    """Was it loaded with attn_implementation="attnscope"?"""
    models = getattr(sys.modules.get("transformers.modeling_utils"), "PreTrainedModel", None)
    if models is None or not isinstance(module, models):
        return False
    return getattr(module.config, "_attn_implementation", None) == INTERFACE


def _tell(line: str) -> None:
    print(f"attnscope_capture: {line}", file=sys.stderr)


def install(model: Any = None, **options: Any) -> Installed | None:
    """Records what the environment variable ATTNSCOPE_CAPTURE says, until the process ends; where it is not set, does
    nothing and gives None.

        pipe = WanPipeline.from_pretrained(…)
        attnscope.capture.install(pipe)

        ATTNSCOPE_CAPTURE="dump/ layers=0,12-14 steps=0,10,49" python server.py

    model: as of capture(). Without one, the first model of transformers that was loaded with
    attn_implementation="attnscope" is recorded, a name that transformers knows after this call, whether the variable is
    set or not. options: of capture(), which those of the variable replace.

    The capture is complete when the process ends or the result is closed; of a process that was killed, what was
    recorded opens. Raises CaptureError, of one line, for a variable that cannot be meant, where one is installed
    already and where capture() would; then nothing is replaced.
    """
    if model is None or "transformers" in sys.modules:
        if not register_attention() and model is None:
            raise CaptureError("install: without a model it waits for one of transformers: that is not here")
    text = os.environ.get(VARIABLE, "")
    if not text.strip():
        return None
    folder, told = parse_setting(text)
    with _INSTALLING:
        if _INSTALLED:
            raise CaptureError(f"install: a capture into {_INSTALLED[0].out} is installed already: close() it before")
        made = Installed(folder, {**options, **told})
        if model is None:
            made.wait()
        else:
            made.begin(model)
        _INSTALLED.append(made)
        atexit.register(made.close)
        return made
