"""Models whose calls cannot be recorded, refused before anything runs."""

from __future__ import annotations

import torch

from .calls import EAGER
from .compiled import is_compiled
from .errors import CaptureError
from .hooks import attention_interface, transformers_functions
from .slots import Model


def check_runnable(model: torch.nn.Module) -> None:
    """Refuses models whose calls would not come by, or would come twice."""
    if getattr(model, "is_cache_enabled", False) is True:
        raise CaptureError(
            "a caching accelerator is on, which skips attention calls: call "
            "transformer.disable_cache() before the capture"
        )
    wanted = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if wanted == EAGER and hasattr(attention_interface(), "get_interface"):
        return
    if wanted is not None and (wanted not in transformers_functions() or wanted.startswith("paged")):
        raise CaptureError(
            f'the model uses attention "{wanted}", which passes no function that can be watched: load it '
            'with attn_implementation="sdpa" or call model.set_attn_implementation("sdpa")'
        )


def check_together(model: Model) -> None:
    """Refuses what several processes run of a model together where its code is compiled."""
    for name, transformer in model.transformers.items():
        config = getattr(getattr(transformer, "_parallel_config", None), "context_parallel_config", None)
        if config is not None and is_compiled(model.as_called(name)):
            raise CaptureError(
                "the model is compiled and its sequences are split over processes: which part a call of a "
                "graph has is not known. Capture it before compiling, or in one process"
            )


def no_calls(model: torch.nn.Module, modules: str | None) -> CaptureError:
    """For a model, as it is called, whose first forward made no attention call that was seen; `modules`: the pattern
    that names those which do, where the user gave one."""
    if modules is not None:
        return CaptureError(f"modules={modules!r}: no attention call came from the modules that it names")
    if is_compiled(model):
        return CaptureError(
            "no attention call came from the compiled model: it calls a kernel of its own, or the code that "
            "ran was compiled before the capture and torch.compile's guards, which notice a capture, were "
            "switched off. Wrap the function with attnscope.capture.wrap(function), or call "
            "torch.compiler.reset() before the capture"
        )
    if hasattr(model, "_supports_sdpa"):  # of transformers
        return _no_calls_of_transformers(model)
    return CaptureError(
        "no scaled_dot_product_attention call came from the model's attention, nor one of another function "
        'that is watched: it calls a kernel of its own. diffusers: transformer.set_attention_backend("native") '
        'and the default processors; PyTorch\'s MultiheadAttention: '
        "need_weights=False and torch.backends.mha.set_fastpath_enabled(False); your own function: "
        "attnscope.capture.wrap(function)"
    )


def _no_calls_of_transformers(model: torch.nn.Module) -> CaptureError:
    name, wanted = type(model).__name__, getattr(model.config, "_attn_implementation", None)
    if model._supports_sdpa and wanted != "sdpa":
        return CaptureError(
            f'no attention call came from {name}: with attention "{wanted}" it calls no function that is watched: '
            'load it with attn_implementation="sdpa"'
        )
    return CaptureError(
        f"no attention call came from {name}: it computes its attention in operations of its own, and none of "
        "transformers' functions, so nothing of it can be recorded as it is. Where its code makes the result of q, k "
        "and v, call a function of these that attnscope.capture.wrap(function) made, or hand them to "
        "attnscope.capture.record(q, k, v, …)"
    )


def check_gradients(model: torch.nn.Module, called: torch.nn.Module) -> None:
    """Refuses a forward of compiled code that runs attention twice; `called`: the model as it is called.

    Of other code the second time, for gradients, is after the forward, and not recorded.
    """
    checkpoints = any(getattr(m, "gradient_checkpointing", False) for m in model.modules())
    if torch.is_grad_enabled() and checkpoints and is_compiled(called):
        raise CaptureError(
            "gradient checkpointing runs attention of the compiled model twice, in one graph: run under "
            "torch.no_grad(), call disable_gradient_checkpointing(), or capture it before it is compiled"
        )
