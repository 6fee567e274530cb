"""The program attnscope, which the package brings: as a command, and for what is a file in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import make_error
from .facts import told_facts
from .pictures import Picture

PROGRAM = Path(__file__).resolve().parent / "bin" / "attnscope"
_NAME = "attnscope: "
_CODES = {1: "failure", 2: "usage", 3: "difference", 4: "interrupted"}
# Options of which several are several words; of others a list is one word with commas.
_REPEATED = frozenset({"mask", "query", "index", "text_token", "threshold", "own_mask", "as_", "ignore"})


def main() -> None:
    """The command `attnscope`."""
    _require_program()
    os.execv(PROGRAM, ["attnscope", *sys.argv[1:]])


def _require_program() -> None:
    if not PROGRAM.exists():
        raise make_error(
            f"{PROGRAM}: the program is part of the installed package (docs/install.md)", "unavailable"
        )


def _values(name: str, value: Any) -> list[str]:
    from .native import selection_word, word

    if name == "pick":
        return [selection_word(name, value)[1]]
    if name == "grid" and isinstance(value, (list, tuple)):
        return ["x".join(map(str, value))]
    if name == "as_" and isinstance(value, Mapping):
        return [f"{fact}={told}" for fact, told in told_facts(value).items()]
    if name in _REPEATED and isinstance(value, list):
        return [word(item) for item in value]
    return [word(value)]


def words(command: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> list[str]:
    """The command's words: out="maps.h5" is -o, layers=[1, 2] is --layers 1,2, resume=True is --resume;
    query=[(3, 5, 6), (3, 5, 7)] is two --query, as_={"layer": 17} is --as layer=17. None and False leave an option
    out."""
    line = [command, *(os.fspath(path) for path in inputs)]
    for name, value in options.items():
        option = "-o" if name == "out" else "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            line.append(option)
        elif value is not None and value is not False:
            for text in _values(name, os.fspath(value) if isinstance(value, os.PathLike) else value):
                line += [option, text] if name == "out" else [f"{option}={text}"]
    return line


class _Narration:
    """What a program tells on standard error, passed on line by line. Its last line, which may be the error that
    becomes an exception, waits a moment for the program's end."""

    _WAIT = 0.5  # seconds

    def __init__(self, quiet: bool) -> None:
        self.said: list[str] = []
        self._quiet = quiet
        self._held = ""
        self._lock = threading.Lock()

    def follow(self, stream: Any) -> None:
        for line in stream:
            self.pass_on()
            self.said.append(line)
            if not line.startswith(_NAME):
                self._write(line)
                continue
            with self._lock:
                self._held = line
            timer = threading.Timer(self._WAIT, self.pass_on)
            timer.daemon = True
            timer.start()

    def pass_on(self) -> None:
        with self._lock:
            held, self._held = self._held, ""
        self._write(held)

    def error(self) -> str:
        """The last thing that the program told under its name, which is not shown any more if it has not been."""
        with self._lock:
            self._held = ""
        last = next((line for line in reversed(self.said) if line.startswith(_NAME)), "")
        return last.removeprefix(_NAME).rstrip("\n")

    def _write(self, line: str) -> None:
        if not self._quiet:
            sys.stderr.write(line)


def command(name: str, *inputs: Any, quiet: bool = False, **options: Any) -> str:
    """Runs a command of the command line and gives its standard output: attnscope.command("info", "dump/",
    json=True). What it tells on standard error goes to sys.stderr, unless quiet; its error is raised alone, as
    attnscope.Error; Ctrl-C ends it as it does at a terminal, so that --resume goes on with what is kept."""
    _require_program()
    if quiet:
        options["quiet"] = True
    process = subprocess.Popen(
        [os.fspath(PROGRAM), *words(name, inputs, options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    narration = _Narration(quiet)
    narrator = threading.Thread(target=narration.follow, args=(process.stderr,), daemon=True)
    narrator.start()
    try:
        output = process.stdout.read()  # type: ignore[union-attr]
        process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    finally:
        narrator.join()
        process.stdout.close()  # type: ignore[union-attr]
        process.stderr.close()  # type: ignore[union-attr]
    if process.returncode != 0:
        text = narration.error() or f"attnscope {name} ended with {process.returncode}"
        raise make_error(text, _CODES.get(process.returncode, "failure"))
    narration.pass_on()
    return output


def export(*inputs: Any, out: str | os.PathLike[str], quiet: bool = False, **options: Any) -> Path:
    """`attnscope export`: maps, LSE, outputs, rows, blocks as HDF5 (docs/export-format.md), in the words of the
    command line: attnscope.export("dump/", out="maps.h5", layers=12, heads="0-3", dtype="f32", resume=True).
    Gives the file's path."""
    command("export", *inputs, quiet=quiet, out=out, **options)
    return Path(out)


def render(*inputs: Any, out: str | os.PathLike[str], quiet: bool = False, **options: Any) -> Picture:
    """`attnscope render`: a picture (docs/pictures.md), which shows itself in a notebook:
    attnscope.render("dump/", out="map.png", picture="matrix", layers=12, heads=3)."""
    command("render", *inputs, quiet=quiet, out=out, **options)
    return Picture(out)


def view(*inputs: Any, screenshot: str | os.PathLike[str] | None = None, **options: Any) -> Any:
    """`attnscope view`: the window, as a process of its own (a subprocess.Popen), which is not waited for. With
    screenshot="map.png", needs no display and gives the Picture."""
    if screenshot is not None:
        command("view", *inputs, screenshot=screenshot, **options)
        return Picture(screenshot)
    _require_program()
    return subprocess.Popen([os.fspath(PROGRAM), *words("view", inputs, options)], stdin=subprocess.DEVNULL)
