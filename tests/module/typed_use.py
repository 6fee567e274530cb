"""What type checkers know of the package: checked by test_types.py, never run."""

from typing import Any, assert_type

import numpy as np
import torch
from numpy.typing import NDArray

import attnscope

with attnscope.open("dump/", kind="capture", grid=(7, 12, 12), memory="512MiB") as cap:
    assert_type(cap, attnscope.Capture)
call = cap[10, 3, "cond"]
assert_type(call, attnscope.Call)
head = call.head(-1)
assert_type(head, attnscope.Head)
assert_type(head.weights(rows=slice(0, 256), cols=[1, 2]), "np.ndarray[Any, np.dtype[np.float32]]")
assert_type(head[3, 5], np.float32)
assert_type(head[3:5, :226], "np.ndarray[Any, np.dtype[np.float32]]")
assert_type(head.lse([3]), "np.ndarray[Any, np.dtype[np.float64]]")
assert_type(head.shape, tuple[int, int])
volume = head.query((3, 5, 6), reverse=True)
assert_type(volume, attnscope.Volume)
largest, mean = head.pooled(64)
assert_type(largest, "np.ndarray[Any, np.dtype[np.float32]]")
assert_type(cap.heads(layers="3-7"), list[attnscope.Head])
assert_type([each.number for each in call], list[int])

export = attnscope.open("maps.h5", kind="export")
assert_type(export, attnscope.Export)
assert_type(export.head(2, 10, 3), attnscope.StoredHead)
metrics = attnscope.open("metrics.h5", kind="metrics")
assert_type(metrics, attnscope.Metrics)

# A file whose kind nobody told is typed as a capture.
attnscope.open("dump/")[10, 3].head(2).weights()

q: NDArray[np.float32] = np.zeros((4, 8), np.float32)
weights = attnscope.weights(q, torch.zeros(4, 8), rows=[0], mask="causal", threads=2)
weights.sum()
try:
    attnscope.call(q, q, grid=(1, 2, 2)).head(0)
except attnscope.Error as error:
    assert_type(error.code, str)
lazy: Any = head.to_xarray()
store: Any = head.zarr()
