"""Parts of attention maps from arrays of Q and K: NumPy's, PyTorch's, whatever speaks DLPack.

Shapes: q [Nq, d], [H, Nq, d] or [B, H, Nq, d]; k the same with Nk keys and H or fewer heads (grouped queries: head h
uses key head h / (H / Hkv)); v as k with dv channels. `layout` names other orders of the axes: "bshd", "shd". Types:
float16, bfloat16, float32 and float64 (which is rounded to float32), q and k of one type. Arrays in the memory of the
host are read where they are, whatever their strides. So are those of a CUDA device where the CUDA backend computes:
it takes q and k from there, and waits for what their library had queued to make them. Those of other devices, and
where another backend computes, are copied to the host.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .errors import KindError, make_error
from .heads import Call
from .native import _native, take_engine
from .places import Places
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._native import Engine

Check = Literal["rows", "all"]

_KCPU = 1  # DLPack's number of the host
_KCUDA = 2  # of CUDA devices
_LEGACY_STREAM = 1  # DLPack's number of CUDA's default stream, which producers are to order their work before


def _device(array: Any) -> int:
    return int(array.__dlpack_device__()[0]) if hasattr(array, "__dlpack_device__") else _KCPU


def _way_to_host(array: Any) -> Any:
    """The array's own method that copies it to the host's memory: torch's, CuPy's; None: it has none."""
    return getattr(array, "cpu", getattr(array, "get", None))


def in_device_memory(array: Any, engine: Engine) -> bool:
    """True where the array is to be taken from a CUDA device's memory: where it is computed on there, or where
    it has no other way."""
    if _device(array) != _KCUDA:
        return False
    return engine.takes_device_arrays or (_way_to_host(array) is None and _native.reads_device_memory())


def as_stored(array: Any) -> Any:
    """torch's views that read their memory negated (`z.conj().imag`) as a copy: DLPack does not say what they are."""
    return array.resolve_neg() if hasattr(array, "resolve_neg") else array


def device_capsule(array: Any, name: str) -> Any:
    """DLPack's capsule of an array of a CUDA device: whoever waits for the default stream finds its content."""
    current: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        # It hands out tensors of its current device alone.
        current = torch.cuda.device(array.device)
    try:
        with current:
            return array.__dlpack__(stream=_LEGACY_STREAM)
    except BufferError as error:
        raise make_error(f"{name}: {error}", "usage") from error


def _host(array: Any, name: str) -> Any:
    """The array as something that lies in the host's memory and says so."""
    device = _device(array)
    if device != _KCPU:
        way = _way_to_host(array)
        if way is not None:
            return way()
        raise make_error(
            f"{name}: lies on a device (DLPack {device}) and has no way to the host", "usage"
        )
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        try:
            array = np.asarray(array)
        except (TypeError, ValueError) as error:
            raise KindError(f"{name}: expected an array (got {type(array).__name__}: {error})") from None
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


def _require_numbers(array: Any, name: str) -> None:
    """Refuses what has no numbers in rows and columns, in the place of the errors of who made it."""
    torch = sys.modules.get("torch")
    problem = ""
    if array is None:
        problem = "nothing"
    elif torch is not None and isinstance(array, torch.Tensor):
        if array.is_meta:
            problem = "a tensor of the device meta, which has no numbers"
        elif array.is_nested or array.is_quantized:
            problem = "a nested tensor" if array.is_nested else "a quantized tensor"
        elif array.layout != torch.strided:
            problem = f"a sparse tensor ({array.layout}): .to_dense() makes an array of it"
    elif hasattr(array, "toarray") and hasattr(array, "nnz"):
        problem = f"a sparse {type(array).__name__}: .toarray() makes an array of it"
    if problem:
        raise KindError(f"{name}: expected an array (got {problem})")


def _take(array: Any, name: str, bf16: list[str], engine: Engine | None = None) -> Any:
    """The array as the compiled part takes it. engine: what computes with it; None: the host does."""
    _require_numbers(array, name)
    if hasattr(array, "detach"):
        array = array.detach()
    array = as_stored(array)
    if engine is not None and in_device_memory(array, engine):
        return device_capsule(array, name)
    array = _host(array, name)
    if isinstance(array, np.ndarray) and array.dtype.name == "bfloat16":
        bf16.append(name)
        array = array.view(np.uint16)
    return array


def _sinks(sinks: Any) -> np.ndarray:
    """A logit, or an array of them, as float32 with one axis at least."""
    if hasattr(sinks, "detach"):  # torch has bfloat16, which NumPy has not
        sinks = sinks.detach().float().cpu().numpy()
    return np.atleast_1d(np.ascontiguousarray(sinks, np.float32))


def call(
    q: Any,
    k: Any,
    v: Any = None,
    *,
    scale: float | Sequence[float] | None = None,
    mask: Any = None,
    score: str = "softmax",
    softcap: float | None = None,
    sinks: Any = None,
    layout: str = "",
    grid: tuple[int, int, int] | str | None = None,
    text: str = "",
    name: str = "arrays",
    **options: Any,
) -> Call:
    """A Call of arrays, whose heads have all that a capture's have.

    scale: logits are scale·q·k, with a number or one a head; 1/√d unless it is given. mask: "causal", "window:N",
    "window:L,R", "block_causal:N", "natten:TxHxW" (with grid), or an array that broadcasts to [B, H, Nq, Nk]: bool
    (may be attended to) or a bias. score: "softmax", "sigmoid",
    "linear:elu1", "linear:relu". softcap: logits s become softcap·tanh(s/softcap) before mask and softmax; 0 or None
    leaves them. sinks: a logit that stands in the denominator of the softmax alone: a number, [H], or what broadcasts
    to [B, H, Nq]. grid: (T, H, W) of the video tokens, and text: "16@start", "256@end", where queries
    and keys are the same tokens. name: how messages call it. options: memory, threads, backend, vram, tf32, as
    attnscope.open(). The arrays must not change while they are used. Raises attnscope.Error.
    """
    told = {**options, "scale": scale, "mask": mask, "score": score, "softcap": softcap, "sinks": sinks}
    told.update(layout=layout, grid=grid, text=text, name=name)
    engine = take_engine(options)
    if options:
        raise make_error(f"unknown option {next(iter(options))}", "usage")
    bf16: list[str] = []
    arrays = [
        None if array is None and each == "v" else _take(array, each, bf16, engine)
        for array, each in ((q, "q"), (k, "k"), (v, "v"))
    ]
    words = {"name": name, "score": score, "layout": layout, "text": text}
    if softcap:
        if score != "softmax":
            raise make_error(f"softcap: score {score} has none", "usage")
        words["score"] = f"softcap:{float(softcap)!r}"
    if scale is not None:
        words["scale"] = ",".join(repr(float(each)) for each in np.ravel(scale))
    if grid is not None:
        words["grid"] = grid if isinstance(grid, str) else "x".join(map(str, grid))
    mask_array = None
    if isinstance(mask, str):
        words["mask"] = mask
    elif mask is not None:
        mask_array = _take(mask, "mask", bf16)
    sink_array = None if sinks is None else _sinks(sinks)
    words["bf16"] = ",".join(bf16)
    made = _native.array_call(*arrays, mask_array, words, sink_array)
    return Call(made, engine, origin=(_call_again, (q, k, v, told)))


def _shaped(q: Any, made: Call, layout: str, result: np.ndarray) -> np.ndarray:
    """[heads of all items, …] with the axes that q has in front."""
    axes = len(layout) if layout else np.ndim(q)
    if axes == 2:
        return result[0]
    if axes == 3:
        return result
    return result.reshape(made.facts["batch"], made.facts["heads"], *result.shape[1:])


def _rows_alone(check: str) -> bool:
    if check not in ("rows", "all"):
        raise make_error(f'check {check!r}: expected "rows" or "all"', "usage")
    return check == "rows"


def weights(
    q: Any,
    k: Any,
    *,
    rows: Places = None,
    cols: Places = None,
    check: Check = "rows",
    progress: Progress = None,
    **options: Any,
) -> np.ndarray:
    """float32 [rows, cols], [H, rows, cols] or [B, H, rows, cols], as q has heads and batch items: each row
    normalised over all keys. Only these rows and columns are computed (attnscope.heads.Head.weights says how they are
    chosen). check: "rows": a NaN or Inf is an error where it spoils a chosen row, and need not be found where none
    of them sees it; "all": all of q and k is looked through first. options: as call(). Raises attnscope.Error."""
    alone = _rows_alone(check)
    made = call(q, k, **options)
    return _shaped(
        q, made, options.get("layout", ""), made._entries(made._places(), rows, cols, False, progress, alone)
    )


def logits(
    q: Any,
    k: Any,
    *,
    rows: Places = None,
    cols: Places = None,
    check: Check = "rows",
    progress: Progress = None,
    **options: Any,
) -> np.ndarray:
    """float32 scale·q·k + bias, in the shape and with the options of weights(); masked entries are −inf. Of logits all
    of q and k is looked through, whatever `check`."""
    alone = _rows_alone(check)
    made = call(q, k, **options)
    return _shaped(
        q, made, options.get("layout", ""), made._entries(made._places(), rows, cols, True, progress, alone)
    )


def lse(
    q: Any, k: Any, *, rows: Places = None, check: Check = "rows", progress: Progress = None, **options: Any
) -> np.ndarray:
    """float64 [rows] with q's axes in front: the natural log of each row's sum of exp(logits). check: as weights()."""
    alone = _rows_alone(check)
    made = call(q, k, **options)
    return _shaped(q, made, options.get("layout", ""), made._lse(made._places(), rows, progress, alone))


def output(
    q: Any, k: Any, v: Any, *, rows: Places = None, check: Check = "rows", progress: Progress = None, **options: Any
) -> np.ndarray:
    """float32 [rows, dv] with q's axes in front: weights times v. check: as weights(), of v as of k."""
    alone = _rows_alone(check)
    made = call(q, k, v, **options)
    return _shaped(q, made, options.get("layout", ""), made._outputs(made._places(), rows, progress, alone))


def _call_again(q: Any, k: Any, v: Any, options: dict[str, Any]) -> Call:
    """A call of arrays that was pickled."""
    return call(q, k, v, **options)
