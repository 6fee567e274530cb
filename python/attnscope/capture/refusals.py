"""Models whose calls cannot be recorded, refused before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import torch

from .errors import CaptureError
from .slots import Slot


def check_runnable(model: torch.nn.Module) -> None:
    """Refuses models whose calls would not come by, or would come twice."""
    if hasattr(model, "_orig_mod"):
        raise CaptureError(
            "the transformer is compiled: its attention calls cannot be seen. Capture "
            "with the model as it was before torch.compile (its _orig_mod)"
        )
    for name, module in model.named_modules():
        if getattr(module, "_compiled_call_impl", None) is not None:
            raise CaptureError(
                f"{name or type(model).__name__} is compiled (compile()): its attention "
                "calls cannot be seen. Capture before compiling"
            )
    if getattr(model, "is_cache_enabled", False) is True:
        raise CaptureError(
            "a caching accelerator is on, which skips attention calls: call "
            "transformer.disable_cache() before the capture"
        )
    wanted = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if wanted not in (None, "sdpa"):
        raise CaptureError(
            f'the model uses attention "{wanted}", which does not pass '
            'scaled_dot_product_attention: load it with attn_implementation="sdpa" or '
            'call model.set_attn_implementation("sdpa")'
        )


def _diffusers_backend(slot: Slot) -> str | None:
    """The attention backend of diffusers that the module will use; None where it cannot be told."""
    processor = getattr(slot.module, "processor", None)
    if processor is None or not hasattr(processor, "_attention_backend"):
        return None
    chosen = processor._attention_backend
    if chosen is None:
        dispatch = sys.modules.get("diffusers.models.attention_dispatch")
        try:
            chosen = dispatch._AttentionBackendRegistry.get_active_backend()[0]  # type: ignore[union-attr]
        except Exception:  # its private parts may change: the count of calls tells instead
            return None
    return str(getattr(chosen, "value", chosen))


def check_backend(slots: Iterable[Slot]) -> None:
    for slot in slots:
        backend = _diffusers_backend(slot)
        if backend not in (None, "native", "_native_math"):
            raise CaptureError(
                f'{slot.name} uses the attention backend "{backend}", which does not pass '
                'scaled_dot_product_attention: call transformer.set_attention_backend("native"), or '
                "unset DIFFUSERS_ATTN_BACKEND"
            )
