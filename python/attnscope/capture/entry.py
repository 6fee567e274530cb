"""The functions that users call: capture() for a model that runs, record() for one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F

from .errors import CaptureError
from .options import Options
from .recorder import Capture


def capture(model: Any, out: str | os.PathLike[str], /, **options: Any) -> Capture:
    """A context manager that records the attention calls of `model` into the folder `out`.

    model: a diffusers pipeline or transformer, a transformers model with sdpa attention, any module,
    or None: every call in the block. Options, all by name:

    layers, steps, heads   "0,3-7", "8-", "0-39:5", "all", a number or a list; heads: one range
    chunks                 the same, of the pieces of a stream (a language model that generates with a cache,
                           begin_chunk())
    kinds                  all, self, cross, joint, or a list of these
    blocks, slots          names, with * and ?, or a list of these: of blocks in the model
                           (transformer_blocks.7, vace_blocks.*), of attention within a block (attn1)
    branch                 cond (default), uncond, both, or a list of names: what to record
    branches               the names, where they are not [uncond; cond] in a batch or cond, uncond in
                           separate forwards: one a batch item, or one a forward of a step
    guidance               of models that are not known: batch where each forward is a step, forwards
                           where a forward is a branch of a step
    mask_limit             bytes of a call's mask that are stored entry by entry (256 MiB); None: any size
    values, rows           store v and `rows` rows of the result, to check the capture by
    model, prompt, negative_prompt, tokenizer, tokens, text_valid, grid, text, kind, axes, q_state,
    head_offset, extra     facts, where the model does not tell or tells otherwise; tokens and
                           text_valid: for all branches, or a dict by branch
    modules                of a model that is not known: a regular expression for the names of its
                           attention modules
    rank                   (rank, ranks) of several processes that run the model together, where neither
                           torch.distributed nor torchrun's environment tells; each writes a folder of its
                           own in `out`
    force                  replace the capture in `out`
    quiet                  nothing on standard error
    strict                 what cannot be recorded ends the run with an error, where it comes by

    Of a model that runs, what cannot be recorded truthfully is left out: a line tells it, capture.json lists it
    (`refused`), and the model goes on. Raises CaptureError for options that cannot be meant, for a disk that is full
    before anything was written and, at the end of the block, where nothing was recorded; with strict=True wherever
    something cannot be recorded, LabelError (a CaptureError) where nothing tells the step or the branch of a forward.
    """
    return Capture(model, out, _options(options))


def _options(given: Mapping[str, Any]) -> Options:
    known = {f.name for f in Options.__dataclass_fields__.values()}
    odd = sorted(set(given) - known)
    if odd:
        raise CaptureError(f"capture: unknown option {odd[0]} (known: {', '.join(sorted(known))})")
    return Options(**given)


def record(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: str | os.PathLike[str],
    /,
    *,
    mask: torch.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    step: int = 0,
    layer: int = 0,
    timestep: float | None = None,
    **options: Any,
) -> torch.Tensor:
    """Computes one attention call, records it in the folder `out` and returns its result.

    q [B, H, Nq, d] or [H, Nq, d]; options as for capture(). A capture that is in the folder is added
    to, unless force=True replaces it; a step, layer and kind that it holds already is refused.
    """
    more = {"enable_gqa": True} if enable_gqa else {}
    with Capture(None, out, _options(options), adds=True) as cap:
        cap.begin_step(step, timestep, layer=layer)
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=is_causal, scale=scale, **more
        )
