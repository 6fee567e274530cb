"""A few rows of a call's result, computed again from what is about to be stored."""

from __future__ import annotations

import torch

from .errors import CaptureError
from .masks import mask_rows
from .tensors import Call

TOLERANCE = 0.1  # of the largest value: what half precision and the order of sums may do, and more
APPROXIMATION = 0.5  # the same of a kernel that is known to approximate


def check_result(call: Call, item: int, head: int) -> None:
    """Raises CaptureError where rows of a head's result are not softmax(scale·QKᵀ + mask)·V, or what the
    call's score says.

    Three rows of batch item `item`.
    """
    queries, channels = call.q.shape[2], call.q.shape[3]
    rows = torch.tensor(sorted({0, queries // 2, queries - 1}), device=call.q.device)
    group = call.q.shape[1] // call.k.shape[1]
    q = call.q[item, head, rows].double()
    k, v = (t[item, head // group].double() for t in (call.k, call.v))
    if call.score is not None:
        return _check_linear(call, item, head, rows, q @ k.T, v)
    logits = (channels**-0.5 if call.scale is None else call.scale) * q @ k.T
    if call.causal:
        later = torch.arange(k.shape[0], device=k.device) > rows[:, None]
        logits = logits.masked_fill(later, -torch.inf)
    if call.mask is not None:
        part = mask_rows(call.mask, item, head, rows, (queries, k.shape[0])).to(logits.device)
        logits = logits.masked_fill(~part, -torch.inf) if part.dtype == torch.bool else logits + part.double()
    used = logits.isfinite().any(-1)  # what a kernel makes of a row without keys says nothing
    expected, got = logits.softmax(-1)[used] @ v, call.out[item, head, rows][used].double()
    if not used.any():
        return
    error = _error(expected, got)
    if not error <= (TOLERANCE if call.approximation is None else APPROXIMATION):
        given = (
            "its result is not softmax(scale·QKᵀ + mask)·V of the q, k, v, scale and mask that it was given "
            f"({error:.1%} of the largest value away)"
        )
        if call.source is None:
            raise CaptureError(
                f"scaled_dot_product_attention: {given}: something answers in its place (a TorchFunctionMode, as "
                "guidance by perturbed attention has). Leave such forwards or modules out with branch=, blocks= "
                "or slots="
            )
        raise CaptureError(
            f"{call.source}: {given}: another layout of the axes "
            '(wrap(…, layout="bshd")), a bias of its own, or no softmax attention'
        )


def _check_linear(
    call: Call, item: int, head: int, rows: torch.Tensor, products: torch.Tensor, v: torch.Tensor
) -> None:
    """The same of linear attention with the products q·k of these rows."""
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
    if not error <= TOLERANCE:
        raise CaptureError(
            f"{call.source}: its result is not that of score {call.score} of the q, k, v and normaliser that "
            f"were seen ({error:.1%} of the largest value away)"
        )


def _error(expected: torch.Tensor, got: torch.Tensor) -> float:
    """The largest difference, as a share of the largest value."""
    return float((expected - got).abs().max() / got.abs().max().clamp(min=1e-30))
