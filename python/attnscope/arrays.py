"""Parts of attention maps from arrays of Q and K: NumPy's, PyTorch's, whatever speaks DLPack.

Shapes: q [Nq, d], [H, Nq, d] or [B, H, Nq, d]; k the same with Nk keys and H or fewer heads (grouped queries: head h
uses key head h / (H / Hkv)); v as k with dv channels. `layout` names other orders of the axes: "bshd", "shd". Types:
float16, bfloat16, float32 and float64 (which is rounded to float32), q and k of one type. Arrays in the memory of the
host are read where they are, whatever their strides; those of a device are copied to the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import make_error
from .heads import Call
from .native import _native, take_engine
from .places import Places
from .progress import Progress

_KCPU = 1  # DLPack's number of the host


def _host(array: Any, name: str) -> Any:
    """The array as something that lies in the host's memory and says so."""
    if hasattr(array, "detach"):
        array = array.detach()
    device = array.__dlpack_device__()[0] if hasattr(array, "__dlpack_device__") else _KCPU
    if int(device) != _KCPU:
        for method in ("cpu", "get"):  # torch; cupy
            if hasattr(array, method):
                return getattr(array, method)()
        raise make_error(
            f"{name}: lies on a device (DLPack {int(device)}) and has no way to the host", "usage"
        )
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        array = np.asarray(array)
        if array.dtype.name == "bfloat16":  # ml_dtypes'
            return array
        if array.dtype.kind not in "fb" or not array.dtype.isnative:
            raise make_error(
                f"{name}: expected float16, bfloat16, float32 or float64 in the machine's byte order "
                f"(got {array.dtype.str})",
                "usage",
            )
        if any(stride % array.itemsize for stride in array.strides):
            raise make_error(
                f"{name}: elements do not lie on multiples of their size (strides {array.strides})", "usage"
            )
    return array


def _take(array: Any, name: str, bf16: list[str]) -> Any:
    array = _host(array, name)
    if isinstance(array, np.ndarray) and array.dtype.name == "bfloat16":
        bf16.append(name)
        array = array.view(np.uint16)
    return array


def call(
    q: Any,
    k: Any,
    v: Any = None,
    *,
    scale: float | None = None,
    mask: Any = None,
    score: str = "softmax",
    layout: str = "",
    grid: tuple[int, int, int] | str | None = None,
    text: str = "",
    name: str = "arrays",
    **options: Any,
) -> Call:
    """A Call of arrays, whose heads have all that a capture's have.

    scale: logits are scale·q·k; 1/√d unless it is given. mask: "causal", "window:N", "block_causal:N", or an array
    that broadcasts to [B, H, Nq, Nk]: bool (may be attended to) or a bias. score: "softmax", "sigmoid",
    "linear:elu1", "linear:relu". grid: (T, H, W) of the video tokens, and text: "16@start", "256@end", where queries
    and keys are the same tokens. name: how messages call it. options: memory, threads, backend, vram, tf32, as
    attnscope.open(). The arrays must not change while they are used. Raises attnscope.Error.
    """
    engine = take_engine(options)
    if options:
        raise make_error(f"unknown option {next(iter(options))}", "usage")
    bf16: list[str] = []
    arrays = [_take(q, "q", bf16), _take(k, "k", bf16), None if v is None else _take(v, "v", bf16)]
    words = {"name": name, "score": score, "layout": layout, "text": text}
    if scale is not None:
        words["scale"] = repr(float(scale))
    if grid is not None:
        words["grid"] = grid if isinstance(grid, str) else "x".join(map(str, grid))
    mask_array = None
    if isinstance(mask, str):
        words["mask"] = mask
    elif mask is not None:
        mask_array = _take(mask, "mask", bf16)
    words["bf16"] = ",".join(bf16)
    return Call(_native.array_call(*arrays, mask_array, words), engine)


def _shaped(q: Any, made: Call, layout: str, result: np.ndarray) -> np.ndarray:
    """[heads of all items, …] with the axes that q has in front."""
    axes = len(layout) if layout else np.ndim(q)
    if axes == 2:
        return result[0]
    if axes == 3:
        return result
    return result.reshape(made.facts["batch"], made.facts["heads"], *result.shape[1:])


def weights(
    q: Any, k: Any, *, rows: Places = None, cols: Places = None, progress: Progress = None, **options: Any
) -> np.ndarray:
    """float32 [rows, cols], [H, rows, cols] or [B, H, rows, cols], as q has heads and batch items: each row
    normalised over all keys. Only these rows and columns are computed (attnscope.heads.Head.weights says how they are
    chosen). options: as call(). Raises attnscope.Error."""
    made = call(q, k, **options)
    return _shaped(
        q, made, options.get("layout", ""), made._entries(made._places(), rows, cols, False, progress)
    )


def logits(
    q: Any, k: Any, *, rows: Places = None, cols: Places = None, progress: Progress = None, **options: Any
) -> np.ndarray:
    """The same of scale·q·k + bias; masked entries are −inf."""
    made = call(q, k, **options)
    return _shaped(
        q, made, options.get("layout", ""), made._entries(made._places(), rows, cols, True, progress)
    )


def lse(q: Any, k: Any, *, rows: Places = None, progress: Progress = None, **options: Any) -> np.ndarray:
    """float64 [rows] with q's axes in front: the natural log of each row's sum of exp(logits)."""
    made = call(q, k, **options)
    return _shaped(q, made, options.get("layout", ""), made._lse(made._places(), rows, progress))


def output(
    q: Any, k: Any, v: Any, *, rows: Places = None, progress: Progress = None, **options: Any
) -> np.ndarray:
    """float32 [rows, dv] with q's axes in front: weights times v."""
    made = call(q, k, v, **options)
    return _shaped(q, made, options.get("layout", ""), made._outputs(made._places(), rows, progress))
