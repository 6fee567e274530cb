"""The attention function that transformers knows by the name "attnscope"."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch

from .calls import INTERFACE, sinks_of
from .errors import CaptureError

QUERIES_AT_ONCE = 256  # rows of weights that capped attention holds


def register_attention() -> bool:
    """Lets models of transformers be loaded with attn_implementation="attnscope"; False where it is not installed, or
    too old for such names.

    The function computes what "sdpa" does, by that, and where the model hands it a soft cap or sinks, which that
    cannot, by operations of its own in float32. So classes that have no sdpa (Gemma 2, gpt-oss) run with it. It
    records nothing by itself: captures see its calls as those of the others.
    """
    if importlib.util.find_spec("transformers") is None:
        return False
    from transformers import masking_utils, modeling_utils

    tables = [
        getattr(place, name, None)
        for place, name in ((modeling_utils, "AttentionInterface"), (masking_utils, "AttentionMaskInterface"))
    ]
    if None in tables:
        return False
    # Not twice: a capture that runs has a function of its own in the table.
    if INTERFACE not in tables[0]._global_mapping:  # type: ignore[union-attr]
        tables[0].register(INTERFACE, interface_attention)  # type: ignore[union-attr]
        tables[1].register(INTERFACE, masking_utils.sdpa_mask)  # type: ignore[union-attr]
    return True


def interface_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **given: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """As transformers calls its attention functions: query [B, H, Nq, d], key [B, Hkv, Nk, d], value [B, Hkv, Nk, dv];
    the result is [B, Nq, H, dv], and no weights."""
    from transformers.modeling_utils import AttentionInterface

    cap, sinks = float(given.get("softcap") or 0.0), sinks_of(given, query.shape[1])
    if cap <= 0 and sinks is None:
        # Of the table, where captures put one that sees it.
        sdpa = AttentionInterface._global_mapping["sdpa"]
        named = {"dropout": dropout, "scaling": scaling, "is_causal": is_causal, **given, "softcap": None}
        return sdpa(module, query, key, value, attention_mask, **named)
    if dropout:
        raise CaptureError(
            'attn_implementation="attnscope": dropout beside a soft cap or sinks is not computed: model.eval()'
        )
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and query.shape[2] > 1 and attention_mask is None
    bias = given.get("position_bias")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    out = capped_attention(query, key, value, attention_mask, bias, causal, scale, cap, sinks)
    return out.transpose(1, 2).contiguous(), None


def capped_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
    causal: bool,
    scale: float,
    cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """[B, H, Nq, dv] in q's type: softmax(cap·tanh(scale·QKᵀ/cap) + bias, mask)·V, rows with the sink's logit in
    their sums, in float32; a cap of 0 is none. mask: bool (may be attended to) or a bias, [B or 1, H or 1, Nq or 1,
    Nk]; sinks: [B or 1, H, Nq or 1]. Of a row without keys and sink the result is 0."""
    group = q.shape[1] // k.shape[1]
    k, v = (t.float().repeat_interleave(group, 1) for t in (k, v))
    keys = torch.arange(k.shape[2], device=q.device)
    parts = []
    for begin in range(0, q.shape[2], QUERIES_AT_ONCE):
        rows = slice(begin, min(begin + QUERIES_AT_ONCE, q.shape[2]))
        logits = scale * q[:, :, rows].float() @ k.transpose(2, 3)
        logits = cap * torch.tanh(logits / cap) if cap > 0 else logits
        for part in (bias, mask):
            if part is None:
                continue
            part = part[..., : k.shape[2]]
            part = part[:, :, rows] if part.shape[2] > 1 else part
            logits = logits.masked_fill(~part, -torch.inf) if part.dtype == torch.bool else logits + part.float()
        if causal:
            own = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
            logits = logits.masked_fill(keys > own, -torch.inf)
        parts.append(_with_sinks(logits, sinks, rows) @ v)
    return torch.cat(parts, 2).to(q.dtype)


def _with_sinks(logits: torch.Tensor, sinks: torch.Tensor | None, rows: slice) -> torch.Tensor:
    """The weights of rows."""
    if sinks is not None:
        sinks = sinks[:, :, rows] if sinks.shape[2] > 1 else sinks
        logits = torch.cat([logits, sinks[..., None].float().expand(*logits.shape[:3], 1)], 3)
    weights = logits.softmax(-1).nan_to_num(0.0)  # of a row without keys
    return weights if sinks is None else weights[..., :-1]
