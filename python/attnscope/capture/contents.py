"""Which arguments of forwards have the same contents: what tells later which forwards were branches of one step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch

LOOKED_AT = 4096  # entries of a tensor, spread over all of it
SUMMED = {"latents": ("hidden_states", "sample"), "text": ("encoder_hidden_states",)}


class Contents:
    """Numbers the distinct contents of forwards' latents and text, from 0 in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[bytes, int]] = {name: {} for name in SUMMED}

    def of_forward(self, given: Mapping[str, Any]) -> dict[str, int]:
        """latents and text of a forward with these arguments, as far as it has them."""
        found = {}
        for name, arguments in SUMMED.items():
            value = next((given[a] for a in arguments if given.get(a) is not None), None)
            if value is None and name == "latents":  # by whatever name: what has a batch comes first
                value = next((t for t in given.values() if isinstance(t, torch.Tensor) and t.ndim > 1), None)
            total = content_sum(value)
            if total is not None:
                numbers = self._numbers[name]
                found[name] = numbers.setdefault(total, len(numbers))
        return found


def content_sum(value: Any) -> bytes | None:
    """64 bits of a tensor's shape and entries, or of a list of tensors; None of anything else.

    Of a large tensor every n-th entry is looked at, n odd, so that all of its rows and channels are.
    """
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    if not parts or not all(type(p) in (torch.Tensor, torch.nn.Parameter) and p.layout == torch.strided for p in parts):
        return None
    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        if part.is_meta or part.is_complex() or part.is_quantized:
            return None
        every = part.numel() // LOOKED_AT | 1
        entries = part.detach().reshape(-1)[::every].cpu().contiguous()
        total.update(f"{list(part.shape)} {part.dtype}".encode())
        total.update(entries.view(torch.uint8).numpy().tobytes())
    return total.digest()
