"""Attention maps of video diffusion transformers, from Python.

    import attnscope

    cap = attnscope.open("dump/")
    head = cap[10, 3, "cond"].head(2)
    head.weights(rows=slice(0, 256))                    # numpy float32, exact: only these rows are computed
    head.query(3, 5, 6)                                 # one token's attention over the video, [T, H, W]
    cap.stats(layers="3-7")                             # a structured array, a line a head
    attnscope.weights(q, k, rows=[0, 5])                # numpy, torch, anything with DLPack
    with attnscope.probe(pipe, "metrics.h5"):           # numbers of every head while the model runs
        pipe(prompt)

Importing this package imports nothing else. attnscope.capture, which records captures while a model runs, needs
torch and safetensors and nothing compiled; everything else needs the compiled part, which `pip install` brings
(docs/python.md), and NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arrays import call as call
    from .arrays import logits as logits
    from .arrays import lse as lse
    from .arrays import output as output
    from .arrays import weights as weights
    from .captures import Capture as Capture
    from .captures import open as open
    from .errors import Error as Error
    from .exports import Export as Export
    from .exports import StoredHead as StoredHead
    from .heads import Call as Call
    from .heads import Head as Head
    from .looks import Look as Look
    from .looks import look as look
    from .metrics import Metrics as Metrics
    from .pictures import Picture as Picture
    from .pictures import Volume as Volume
    from .probes import Probe as Probe
    from .probes import probe as probe
    from .program import command as command
    from .program import export as export
    from .program import render as render
    from .program import view as view
    from .reports import Report as Report
    from .views import HeadView as HeadView
    from .words import Words as Words

    __version__: str

# Where each name comes from, which is imported when it is asked for.
_HOMES = {
    "Call": "heads",
    "Capture": "captures",
    "Error": "errors",
    "Export": "exports",
    "Head": "heads",
    "HeadView": "views",
    "Look": "looks",
    "Metrics": "metrics",
    "Picture": "pictures",
    "Probe": "probes",
    "Report": "reports",
    "StoredHead": "exports",
    "Volume": "pictures",
    "Words": "words",
    "__version__": "native",
    "call": "arrays",
    "command": "program",
    "export": "program",
    "logits": "arrays",
    "look": "looks",
    "lse": "arrays",
    "open": "captures",
    "output": "arrays",
    "probe": "probes",
    "render": "program",
    "view": "program",
    "weights": "arrays",
}
__all__ = sorted(name for name in _HOMES if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", *(["capture"] if "capture" in globals() else [])])
