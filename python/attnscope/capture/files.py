"""The folder of a capture: files that are never half there, and who may write them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from .errors import CaptureError

try:
    import fcntl
except ImportError:  # not Unix
    fcntl = None  # type: ignore[assignment]

FORMAT = "attnscope-capture/1"
FORMAT_2 = "attnscope-capture/2"  # of what the first cannot say, and of a folder that has such a call
# Which the first does not have.
NEW_FACTS = ("block", "slot", "queries", "keys", "approximation", "part", "minus", "chunk", "score", "forward")
PART = ".part"  # behind the name of a file that is not complete
ROOM = 256  # bytes behind a header
_ROOM = "room"  # the fact that keeps them until the header is written
HELD = ".held"  # behind the name of a call that may not belong to the capture


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Writes under a temporary name, syncs, renames: `path` is never half a file."""
    part = path.with_name(path.name + PART)
    try:
        part.touch()
        mode = part.stat().st_mode  # the user's; safetensors would make it private
        write(part)
        os.chmod(part, mode & 0o777)
        with open(part, "rb") as f:
            os.fsync(f.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def save_call(path: Path, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, str]) -> None:
    """A safetensors file with room behind its header for facts that are changed later, without copying tensors."""
    room = {_ROOM: " " * ROOM}
    save_file(dict(tensors), str(path), {**facts, **room})
    with open(path, "r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        del header["__metadata__"][_ROOM]
        text = _header_text(header)
        file.seek(8)
        file.write(text + b" " * (length - len(text)))


def _header_text(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()


def restate(source: Path, target: Path, facts: Mapping[str, str]) -> None:
    """Makes a safetensors file of the tensors of another one, byte for byte, with other metadata."""
    with open(source, "rb") as old:
        header = json.loads(old.read(int.from_bytes(old.read(8), "little")))
        header["__metadata__"] = dict(facts)
        text = _header_text(header)
        text += b" " * (ROOM + -len(text) % 8)

        def write(path: Path) -> None:
            with open(path, "wb") as new:
                new.write(len(text).to_bytes(8, "little") + text)
                shutil.copyfileobj(old, new, 1 << 20)

        replace_file(target, write)


class FolderLock:
    """Keeps other recorders out of a folder, whatever process they run in, until release()."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "capture.json.lock"
        self._file: Any = None
        if fcntl is None:
            return
        while True:
            self._file = open(self._path, "a")
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise CaptureError(
                        f"{folder}: another recorder writes here: give each a folder of its own"
                    ) from None
                raise CaptureError(f"{folder}: cannot be locked against other recorders: {error}") from error
            # Who held the lock before may have removed the file that was opened.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno())):
                    return
            self._file.close()

    def release(self) -> None:
        """Lets other recorders in."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None


def make_folder(folder: Path) -> None:
    """Raises CaptureError where something else has the folder's name."""
    if folder.exists() and not folder.is_dir():
        raise CaptureError(f"{folder}: is no folder")
    folder.mkdir(parents=True, exist_ok=True)


def clear_folder(folder: Path, force: bool) -> None:
    """With `force`, removes the capture that is in the folder; without it, there must be none."""
    old = folder / "capture.json"
    if not old.exists() and not any(folder.glob("*.safetensors*")):
        return
    if not force:
        raise CaptureError(f"{folder}: already holds a capture; choose another folder or pass force=True")
    # A recorder that was killed has left files called .held or .part.
    calls = ("step*.safetensors*", "forward*.safetensors*")
    for pattern in (*calls, "frame*.png*", "capture.json", "capture.json" + PART):
        for file in folder.glob(pattern):
            file.unlink(missing_ok=True)


def read_catalogue(folder: Path) -> dict[str, Any] | None:
    """The capture.json of a folder that calls are added to; None where there is none yet."""
    path = folder / "capture.json"
    if not path.exists():
        return None
    try:
        root = json.loads(path.read_text(encoding="utf-8"))
        listed = root["format"] in (FORMAT, FORMAT_2) and all(
            isinstance(c["file"], str) for c in root["calls"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CaptureError(f"{path}: is no catalogue that a call can be added to: {error!r}") from error
    if not listed:
        raise CaptureError(f"{path}: is no catalogue that a call can be added to (format {root['format']!r})")
    return root
