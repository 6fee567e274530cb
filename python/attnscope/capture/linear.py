"""Linear attention that a processor of diffusers computes in operations of its own (SANA, SANA-Video).

There is no function to replace: its matrix products are seen while it runs, with the tensors as they are
given to them, and the rows of its result are computed again of these as of every other call.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .errors import CaptureError
from .patching import replaced
from .tensors import Call

# Scores of the capture format: q·k divided by the normaliser that was recorded, and by the row's own sum.
NORMALISER, RELU = "linear:normaliser", "linear:relu"

PRODUCTS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)
INVERSES = (torch.Tensor.__rtruediv__, torch.Tensor.__rdiv__, torch.Tensor.reciprocal, torch.reciprocal)
PRODUCTS_OF_EACH = (torch.mul, torch.Tensor.mul, torch.Tensor.__mul__)
QUOTIENTS = (torch.div, torch.Tensor.div, torch.Tensor.__truediv__, torch.true_divide)


class _Operations(TorchFunctionMode):
    """Keeps the operands and results of matrix products, inverses, and of what is made of the last product."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[tuple[Any, Any, Any]] = []  # operands, result
        self.inverses: list[Any] = []
        self.results: list[Any] = []  # of products and quotients of the last matrix product

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in PRODUCTS and len(args) == 2:
            self.products.append((*args, result))
        elif func in INVERSES:
            self.inverses.append(result)
        elif func in PRODUCTS_OF_EACH + QUOTIENTS and self.products and self._is_last(args[0]):
            self.results.append(result)
        return result

    def _is_last(self, tensor: Any) -> bool:
        """Is it the last matrix product, or a view of it?"""
        last = self.products[-1][2]
        storage = last.untyped_storage().data_ptr()
        return isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() == storage


def _rotated_call(name: str, dtype: torch.dtype, seen: _Operations) -> Call:
    """SANA-Video's: (R q)·(R k) divided by Σ q·k, of features [B, H, d, N].

    Products: Σk · q, v · (R k)ᵀ, that · R q, which is multiplied by the inverse of the first.
    """
    (_, _, denominators), (v, k, scores), (again, q, _) = seen.products
    (inverse,), (out,) = seen.inverses, seen.results
    if again is not scores or inverse.shape != denominators.shape or denominators.shape[2] != 1:
        raise ValueError("its products are others")
    q, v, out = (t.transpose(2, 3) for t in (q, v, out))
    normaliser = 1 / inverse.squeeze(2).float()  # what it multiplied by, as it rounded it
    parts = [narrowed(t, dtype) for t in (q, k, v)]
    return Call(
        *parts, out, None, 0.0, False, 1.0, f"diffusers {name}", score=NORMALISER, normaliser=normaliser
    )


def _relu_call(name: str, dtype: torch.dtype, seen: _Operations) -> Call:
    """SANA's: q·k divided by Σ q·k, which a channel of ones that stands behind v's counts."""
    (padded, k, scores), (again, q, _) = seen.products
    (out,) = seen.results
    if again is not scores or out.shape[2] + 1 != padded.shape[2]:
        raise ValueError("its products are others")
    q, v, out = (t.transpose(2, 3) for t in (q, padded[:, :, :-1], out))
    parts = [narrowed(t, dtype) for t in (q, k, v)]
    return Call(*parts, out, None, 0.0, False, 1.0, f"diffusers {name}", score=RELU)


# Module and class of a processor -> how its operations are read.
PROCESSORS: dict[tuple[str, str], Callable[[str, torch.dtype, _Operations], Call]] = {
    ("diffusers.models.transformers.transformer_sana_video", "SanaLinearAttnProcessor3_0"): _rotated_call,
    ("diffusers.models.attention_processor", "SanaLinearAttnProcessor2_0"): _relu_call,
}


def narrowed(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The tensor in `dtype` where that has all of its numbers, as it has of what was widened."""
    if tensor.dtype == dtype:
        return tensor
    small = tensor.to(dtype)
    return small if torch.equal(small.to(tensor.dtype), tensor) else tensor


def watch_linear(stack: contextlib.ExitStack, run: Callable[..., Any]) -> None:
    """Has `run` (CallHooks.run) see the calls of the processors that are loaded, until `stack` is closed."""
    for (module, name), read in PROCESSORS.items():
        cls = getattr(sys.modules.get(module), name, None)
        if cls is not None:
            stack.enter_context(replaced(cls, "__call__", _watched_processor(name, cls.__call__, read, run)))


def _watched_processor(name: str, real: Callable[..., Any], read: Callable[..., Call], run: Any) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(self: Any, attn: Any, hidden_states: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return real(self, attn, hidden_states, *args, **kwargs)
        seen = _Operations()

        def compute() -> Any:
            with seen:
                return real(self, attn, hidden_states, *args, **kwargs)

        def tell(_: Any) -> Call:
            mask = kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
            if mask is not None:
                raise CaptureError(f"diffusers {name}: its mask does nothing to it, which is no call to record")
            try:
                return read(name, hidden_states.dtype, seen)
            except (ValueError, IndexError) as error:
                raise CaptureError(
                    f"diffusers {name}: computes something else than the linear attention of diffusers 0.42 "
                    f"({error}): leave it out with slots="
                ) from error

        return run(True, compute, tell)

    return call
