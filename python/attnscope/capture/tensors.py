"""The tensors of a call: which parts are stored, and how they leave the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .errors import CaptureError
from .mask_structure import StoredMask
from .masks import stored_mask

STORED_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def output_rows(queries: int, rows: int) -> torch.Tensor:
    """`rows` query rows spread over all of them, ascending, int64."""
    return torch.linspace(0, queries - 1, min(rows, queries), dtype=torch.float64).round().long()


def chosen_part(tensor: torch.Tensor, items: Sequence[int], heads: tuple[int, int]) -> torch.Tensor:
    """[B, H, …] → the chosen items and heads; a view where the items are a range."""
    if list(items) == list(range(items[0], items[-1] + 1)):
        part = tensor[items[0] : items[-1] + 1]
    else:
        part = tensor[torch.as_tensor(items, device=tensor.device)]
    return part[:, heads[0] : heads[1]]


@dataclass
class Call:
    """The arguments and the result of one call."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    mask: Any  # a tensor as PyTorch takes it, a BlockMask, or None
    dropout: float
    causal: bool
    scale: float | None
    source: str | None = None  # what made the call, where it is not scaled_dot_product_attention
    approximation: str | None = None  # its name, where it is known not to compute exactly
    exchanged: bool = False  # the queries attend to the keys of other processes as well
    answered: bool = False  # a torch function mode or a tensor's type may have answered it, as it likes
    score: str | None = None  # the fact, where weights are no softmax
    normaliser: torch.Tensor | None = None  # [B, H, N], what each query's weights were divided by
    cap: float = 0.0  # logits become cap·tanh(logit/cap) before the mask; 0: they stay
    sinks: torch.Tensor | None = None  # [1 or B, H, 1 or N], logits in the softmax's denominator alone

    def with_batch(self) -> Call:
        """The call with a batch axis: [H, N, d] is one item."""
        if self.q.ndim == 4:
            return self
        if self.q.ndim != 3:
            raise CaptureError(f"expected q [B, H, N, d] or [H, N, d] (got {list(self.q.shape)})")
        q, k, v, out = (t.unsqueeze(0) for t in (self.q, self.k, self.v, self.out))
        return replace(self, q=q, k=k, v=v, out=out)

    def spread(self, where: str) -> Call:
        """The call with a batch of one size and as many heads in v as in k, as the kernel spreads them.

        Raises CaptureError where they do not fit each other; `where`: the call's name in the message.
        """
        sizes = [t.shape[0] for t in (self.q, self.k, self.v)]
        batch, heads = max(sizes), self.q.shape[1]
        key_heads = max(self.k.shape[1], self.v.shape[1])
        if set(sizes) - {1, batch}:
            got = ", ".join(map(str, sizes))
            raise CaptureError(f"{where}: q, k and v have batches of {got}: expected one size, or 1")
        if heads == 1 < key_heads:  # PyTorch spreads the one over those of the keys
            heads = key_heads
        if any(key_heads % t.shape[1] for t in (self.k, self.v)):
            key_heads = heads
        q, k, v = (
            _spread(where, name, t, batch, n)
            for name, t, n in (("q", self.q, heads), ("k", self.k, key_heads), ("v", self.v, key_heads))
        )
        return self if (q is self.q and k is self.k and v is self.v) else replace(self, q=q, k=k, v=v)

    def check(self, where: str) -> None:
        """Raises CaptureError where a capture cannot state the call; `where`: its name in the message."""
        if self.dropout > 0:
            raise CaptureError(
                f"{where}: attention dropout {self.dropout} makes the map random: call model.eval()"
            )
        if any(t.ndim != 4 for t in (self.q, self.k, self.v)):
            shapes = ", ".join(str(list(t.shape)) for t in (self.q, self.k, self.v))
            raise CaptureError(f"{where}: expected q, k and v [B, H, N, d] (got {shapes})")
        if self.causal and self.exchanged:
            raise CaptureError(f"{where}: causal attention split over processes cannot be recorded")
        if self.causal and self.mask is not None:
            raise CaptureError(
                f"{where}: is causal and has a mask, of which a capture states one: give it a mask that has "
                "the causal part in it"
            )
        if self.out.dtype not in STORED_DTYPES:
            raise CaptureError(f"{where}: {self.q.dtype} cannot be stored")
        for name, tensor in (("q", self.q), ("k", self.k), ("v", self.v)):
            if not tensor.numel():
                raise CaptureError(f"{where}: {name} {list(tensor.shape)} is empty: there is no map to record")
        if not (math.isfinite(self.cap) and self.cap >= 0):
            raise CaptureError(f"{where}: a soft cap has to be finite and above 0 (got {self.cap})")
        if self.scale is not None and not (math.isfinite(self.scale) and self.scale > 0):
            raise CaptureError(f"{where}: the scale has to be finite and above 0 (got {self.scale})")

    def tensors(
        self,
        items: list[int],
        heads: tuple[int, int],
        key_heads: tuple[int, int],
        values: bool,
        rows: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """Views of what is stored beside the mask, with the rows `rows` of the result. Under autocast q, k
        and v are what the kernel saw: out's type. Linear attention has them as they were seen."""
        kernel = self.out.dtype if self.score is None else self.q.dtype
        parts = {
            "q": chosen_part(self.q, items, heads).to(kernel),
            "k": chosen_part(self.k, items, key_heads).to(kernel),
        }
        if self.sinks is not None:
            parts["sinks"] = chosen_part(self.sinks, items if len(self.sinks) > 1 else [0], heads).float()
        if self.normaliser is not None:
            parts["normaliser"] = chosen_part(self.normaliser, items, heads)
        if values:
            parts["v"] = chosen_part(self.v, items, key_heads).to(kernel)
        if values and len(rows):
            parts["out"] = chosen_part(self.out, items, heads)[:, :, rows.to(self.out.device)]
            parts["out_rows"] = rows
        return parts

    def stored_mask(self, items: list[int], heads: tuple[int, int], limit: int | None) -> StoredMask:
        """The stored form of the mask.

        Raises CaptureError where it has to be stored entry by entry and takes more than `limit` bytes.
        """
        if self.mask is None:
            return StoredMask({"mask": "causal" if self.causal else "none"}, {})
        lengths = (self.q.shape[2], self.k.shape[2])
        return stored_mask(self.mask, items, heads, lengths, self.out.dtype, limit)


def _spread(where: str, name: str, tensor: torch.Tensor, batch: int, heads: int) -> torch.Tensor:
    """The tensor with so many batch items and heads, each of its own repeated; itself where it has them."""
    if heads % tensor.shape[1]:
        raise CaptureError(f"{where}: {name} has {tensor.shape[1]} heads beside {heads}, which are no multiple of them")
    if tensor.shape[0] != batch:
        tensor = tensor.expand(batch, -1, -1, -1)
    return tensor if tensor.shape[1] == heads else tensor.repeat_interleave(heads // tensor.shape[1], 1)


class Snapshot:
    """Copies tensors out of the model so that later changes in place do not reach them.

    On CUDA the copy is taken on the device in the model's stream, and travels to pinned host memory
    in a stream of its own, so that the model goes on; elsewhere it is a plain copy.
    """

    def __init__(self) -> None:
        self._streams: dict[torch.device, Any] = {}

    def take(self, tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], Any]:
        """(host tensors, the event after which they are complete; None: they are)."""
        with torch.no_grad():
            own = {n: t.detach().clone(memory_format=torch.contiguous_format) for n, t in tensors.items()}
            device = next((t.device for t in own.values() if t.is_cuda), None)
            if device is None:
                return {n: t.cpu() for n, t in own.items()}, None
            stream = self._streams.setdefault(device, torch.cuda.Stream(device))
            stream.wait_stream(torch.cuda.current_stream(device))
            host = {}
            with torch.cuda.stream(stream):
                for name, tensor in own.items():
                    host[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
                    host[name].copy_(tensor, non_blocking=True)
                    if tensor.is_cuda:
                        tensor.record_stream(stream)  # its memory is not reused before the copy
                event = torch.cuda.Event()
                event.record(stream)
            return host, event
