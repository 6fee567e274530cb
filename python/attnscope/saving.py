"""Outputs that are written where the user says."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import make_error


def save_new(path: str | os.PathLike[str], data: bytes, force: bool, folder: Path | None) -> Path:
    """Writes a file and gives its path. `force` replaces one that is there. Raises attnscope.Error: "usage" where one
    is there, "file" where it cannot be written, or would stand in `folder`, a capture that is read."""
    path = Path(path)
    if folder is not None and folder.resolve() in path.resolve().parents:
        raise make_error(
            f"{path}: would stand in {folder}, which is read: nothing is written into a capture (give the "
            "output another folder)",
            "file",
        )
    try:
        with open(path, "wb" if force else "xb") as file:
            file.write(data)
    except FileExistsError:
        raise make_error(f"{path}: is there already (force=True replaces it)", "usage") from None
    except OSError as error:
        raise make_error(f"{path}: {error.strerror}", "file") from error
    return path
