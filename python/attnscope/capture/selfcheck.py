"""A few rows of a call's result, computed again from what is about to be stored."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .errors import CaptureError
from .masks import mask_rows
from .tensors import Call

ROUNDED = 2.0**-6  # of the largest value: what a kernel in bfloat16 may be away, or one that rounds its products so
TOLERANCE = {torch.float16: 2.0**-8, torch.bfloat16: ROUNDED}  # by the result's type
EXACT = 1e-3  # of other types
LINEAR = 0.1  # of linear attention, whose sums are in the model's type
APPROXIMATION = 0.5  # of a kernel that is known to approximate
DOUBLES = 2**25  # numbers of keys and values that are looked at at once


def check_result(call: Call, items: Sequence[int], heads: tuple[int, int]) -> None:
    """Raises CaptureError where rows of the result are not softmax(scale·QKᵀ + mask)·V, or what the call's score
    says.

    Three rows of each of the heads [first, end) of the batch items; of linear attention and of kernels that
    approximate, which may be far off in some head and are measured afterwards, those of the first head.
    """
    queries, first = call.q.shape[2], heads[0]
    rows = torch.tensor(sorted({0, queries // 2, queries - 1}), device=call.q.device)
    if call.score is not None:
        return _check_linear(call, items[0], first, rows)
    if call.approximation is not None:
        items, heads = items[:1], (first, first + 1)
    parts = [(item, part) for item in items for part in _parts(call, heads)]
    errors = torch.cat([_errors(call, item, part, rows) for item, part in parts])
    error = float(errors.max())  # NaN, where there is one
    if not error <= _tolerance(call):
        places = [(item, head) for item, part in parts for head in range(*part)]
        raise _no_softmax(call, error, *places[int(errors.argmax())])


def _parts(call: Call, heads: tuple[int, int]) -> list[tuple[int, int]]:
    """Heads that are looked at at once: whole groups that share keys, or what is chosen of one."""
    (first, end), (_, key_heads, keys, channels) = heads, call.k.shape
    group = call.q.shape[1] // key_heads
    if first % group:
        return [heads]
    at_once = max(1, DOUBLES // (keys * (channels + call.v.shape[3]))) * group
    return [(head, min(head + at_once, end)) for head in range(first, end, at_once)]


def _tolerance(call: Call) -> float:
    if call.approximation is not None:
        return APPROXIMATION
    rounds = call.out.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
    return ROUNDED if rounds else TOLERANCE.get(call.out.dtype, EXACT)


def _errors(call: Call, item: int, heads: tuple[int, int], rows: torch.Tensor) -> torch.Tensor:
    """Of each head [first, end) of a batch item: the largest difference, as a share of its largest value. The heads
    are whole groups that share keys, or stand in one."""
    (first, end), keys = heads, call.k.shape[2]
    group = call.q.shape[1] // call.k.shape[1]
    shared = slice(first // group, (end - 1) // group + 1)
    q = call.q[item, first:end][:, rows].to(call.out.dtype).double()
    k, v = (t[item, shared].to(call.out.dtype).double() for t in (call.k, call.v))
    scale = call.q.shape[3] ** -0.5 if call.scale is None else call.scale
    logits = (scale * q.reshape(len(k), -1, q.shape[2]) @ k.mT).view(end - first, len(rows), keys)
    if call.cap:
        logits = call.cap * torch.tanh(logits / call.cap)
    if call.causal:
        later = torch.arange(keys, device=k.device) > rows[:, None]
        logits = logits.masked_fill(later, -torch.inf)
    if call.mask is not None:
        mask = mask_rows(call.mask, item, heads, rows, (call.q.shape[2], keys)).to(logits.device)
        logits = logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask.double()
    lowest = torch.finfo(call.out.dtype).min / 2  # masks of numbers have no -inf
    largest = logits.amax(-1, keepdim=True)
    used = largest > lowest  # what a kernel makes of a row without keys says nothing
    logits = logits - torch.where(used, largest, 0)
    sums = logits.logsumexp(-1, keepdim=True)
    if call.sinks is not None:
        sinks = call.sinks[item if len(call.sinks) > 1 else 0, first:end]
        sinks = sinks[:, rows] if sinks.shape[1] > 1 else sinks
        sums = torch.logaddexp(sums, sinks.double()[..., None].to(sums.device) - torch.where(used, largest, 0))
    weights = torch.where(used, (logits - sums).exp(), 0)
    expected = (weights.reshape(len(k), -1, keys) @ v).view(end - first, len(rows), -1)
    got = call.out[item, first:end][:, rows].double()
    away = torch.where(used, expected - got, 0).abs().amax((1, 2))
    return away / torch.where(used, got, 0).abs().amax((1, 2)).clamp(min=1e-30)


def _no_softmax(call: Call, error: float, item: int, head: int) -> CaptureError:
    given = (
        "its result is not softmax(scale·QKᵀ + mask)·V of the q, k, v, scale and mask that it was given "
        f"(batch item {item}, head {head}: {error:.1%} of the largest value away, {_tolerance(call):.1%} allowed)"
    )
    if call.source is None:
        return CaptureError(
            f"scaled_dot_product_attention: {given}: something answers in its place (a TorchFunctionMode, as "
            "guidance by perturbed attention has). Leave such forwards or modules out with branch=, blocks= "
            "or slots="
        )
    return CaptureError(
        f"{call.source}: {given}: another layout of the axes "
        '(wrap(…, layout="bshd")), a bias of its own, a soft cap, a sink, or no softmax attention. A kernel that '
        'only rounds more than that: wrap(…, approximation="NAME")'
    )


def _check_linear(call: Call, item: int, head: int, rows: torch.Tensor) -> None:
    """check_result() of linear attention, of one head."""
    group = call.q.shape[1] // call.k.shape[1]
    k, v = (t[item, head // group].double() for t in (call.k, call.v))
    products = call.q[item, head, rows].double() @ k.T
    if call.normaliser is not None:
        sums = call.normaliser[item, head, rows].double()
    else:
        sums = products.sum(-1)
    used = sums > 0
    expected = (products[used] / sums[used, None]) @ v
    got = call.out[item, head, rows][used].double()
    if not used.any():
        return
    error = _error(expected, got)
    if not error <= LINEAR:
        raise CaptureError(
            f"{call.source}: its result is not that of score {call.score} of the q, k, v and normaliser that "
            f"were seen ({error:.1%} of the largest value away)"
        )


def _error(expected: torch.Tensor, got: torch.Tensor) -> float:
    """The largest difference, as a share of the largest value."""
    return float((expected - got).abs().max() / got.abs().max().clamp(min=1e-30))
