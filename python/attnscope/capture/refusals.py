"""Models whose calls cannot be recorded, refused before anything runs."""

from __future__ import annotations

import torch

from .errors import CaptureError
from .hooks import transformers_functions


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
    if wanted is not None and (wanted not in transformers_functions() or wanted.startswith("paged")):
        raise CaptureError(
            f'the model uses attention "{wanted}", which passes no function that can be watched: load it '
            'with attn_implementation="sdpa" or call model.set_attn_implementation("sdpa")'
        )


def check_gradients(model: torch.nn.Module) -> None:
    """Refuses a forward that would run attention twice."""
    checkpoints = any(getattr(m, "gradient_checkpointing", False) for m in model.modules())
    if torch.is_grad_enabled() and checkpoints:
        raise CaptureError(
            "gradient checkpointing runs attention twice: run under "
            "torch.no_grad(), or call disable_gradient_checkpointing()"
        )
