"""Records Q and K of attention calls while a model runs: attnscope.capture, for scripts beside it.

    import attnscope_capture

    with attnscope_capture.capture(pipe, "dump/", layers="0,12-14", steps="0,10,49") as cap:
        video = pipe(prompt).frames[0]
    cap.add_video(video)

The recorder is the package attnscope.capture; where it is not installed, it is found in this checkout.
To take it to another machine as one file, make one with scripts/one-file-capture.
"""

import importlib.util
import sys
from pathlib import Path


def _find_package() -> None:
    """Lets attnscope.capture be imported from the checkout that this file lies in."""
    try:
        installed = importlib.util.find_spec("attnscope.capture") is not None
    except ModuleNotFoundError:
        installed = False
    if installed:
        return
    folder = Path(__file__).resolve().parents[2] / "python"
    if not (folder / "attnscope" / "capture" / "__init__.py").exists():
        raise ImportError(
            f"{__file__} needs attnscope.capture, which is neither installed nor in {folder}: "
            "scripts/one-file-capture of a checkout makes a file that needs nothing else"
        )
    sys.path.append(str(folder))


_find_package()

from attnscope.capture import *  # noqa: E402, F403
from attnscope.capture import Capture, CaptureError, capture, estimate, install, record, wrap  # noqa: E402

__all__ = ["Capture", "CaptureError", "capture", "estimate", "install", "record", "wrap"]
