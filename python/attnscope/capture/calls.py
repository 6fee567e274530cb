"""Attention calls as other libraries make them, told as PyTorch's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from .errors import CaptureError
from .tensors import Call

# The names that functions give the arguments that shape a map, beside q, k and v.
ARGUMENTS = {
    "mask": ("attn_mask", "mask", "attention_mask", "attn_bias", "block_mask"),
    "causal": ("is_causal", "causal"),
    "scale": ("scale", "softmax_scale", "scaling", "sm_scale"),
    "dropout": ("dropout_p", "dropout"),
    "cap": ("softcap", "soft_cap", "logits_soft_cap", "attn_logit_softcapping"),
    "sinks": ("sinks", "s_aux", "learnable_sink"),
}
# Arguments that change no weight.
NEUTRAL = ("enable_gqa", "deterministic", "return_lse", "return_attn_probs", "kernel_options")
# Parts of the names of backends that quantise q, k or v.
QUANTISED = ("sage", "int8", "fp8")
# Arguments of transformers' attention functions that change no weight, or that the mask has in it. Any other one
# that is given is refused.
NEUTRAL_NAMED = (
    "position_ids",
    "cache_position",
    "use_cache",
    "layer_idx",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "return_dict",
    "num_items_in_batch",
    "cu_seq_lens_q",
    "cu_seq_lens_k",
    "max_length_q",
    "max_length_k",
    "seq_idx",
    "target_dtype",
    "sliding_window",
    *NEUTRAL,
)
# Those that transformers' own sdpa function would have to hand on; what else it does not know, it leaves out.
SHAPING = ("softcap", "s_aux", "sinks", "position_bias", "indices", "head_mask", "cache")
# Of those, what a capture can state.
STATED = ("softcap", "s_aux", "sinks", "position_bias")
# Those that transformers_call() and dispatched_call() look at.
READ_NAMED = ("query", "key", "value", "attention_mask", "is_causal", "dropout", "scaling")
READ_DISPATCHED = ("query", "key", "value", "attn_mask", "is_causal", "dropout_p", "scale", "_parallel_config")


# The functions of models' own files, which transformers takes where no other is asked for.
EAGER = "eager"
INTERFACE = "attnscope"  # the recorder's own function in transformers' table


def is_exchanged(given: Mapping[str, Any]) -> bool:
    """Does a backend of diffusers' dispatcher, given these arguments, exchange q and k with processes?"""
    return getattr(given.get("_parallel_config"), "context_parallel_config", None) is not None


def dispatched_call(backend: str, given: Mapping[str, Any], result: Any) -> Call:
    """A call of a backend of diffusers' dispatcher: q [B, Nq, H, d], k [B, Nk, Hkv, d], result as q.

    Of a call whose keys it exchanges with other processes: as it is before that. Raises CaptureError where
    its mask then says nothing of this process' keys alone.
    """
    source = f"diffusers backend {backend}"
    shaping = _unread(given, (*READ_DISPATCHED, *NEUTRAL))
    if given.get("window_size") in ((-1, -1), [-1, -1]):
        shaping.remove("window_size")
    if shaping:
        raise CaptureError(
            f"{source}: what its argument {', '.join(shaping)} does to the map cannot be recorded: choose another "
            'backend, transformer.set_attention_backend("native")'
        )
    q, k, v = (given[n].transpose(1, 2) for n in ("query", "key", "value"))
    out = (result[0] if isinstance(result, tuple) else result).transpose(1, 2)
    mask, causal = given.get("attn_mask"), bool(given.get("is_causal", False))
    tensor = isinstance(mask, torch.Tensor)
    if backend == "flex":  # it takes [B, Nq], and looks at is_causal only beside a tensor, instead of it
        mask, causal = (None, True) if tensor and causal else (mask, False)
        if tensor and mask is not None and mask.ndim == 2:
            mask = mask[:, None, :, None].expand(-1, -1, -1, k.shape[2])
    elif tensor and mask.ndim == 2 and tuple(mask.shape) == (q.shape[0], k.shape[2]):
        mask = mask[:, None, None]
    dropout = float(given.get("dropout_p") or 0.0)
    exchanged = is_exchanged(given)
    if exchanged and mask is not None:
        ring = given["_parallel_config"].context_parallel_config.ring_degree > 1
        mask = _own_mask(source, mask, k.shape[2], ring)
    scale, approximation = given.get("scale"), _approximation(backend)
    return Call(q, k, v, out, mask, dropout, causal, scale, source, approximation, exchanged)


def _unread(given: Mapping[str, Any], known: tuple[str, ...]) -> list[str]:
    """The arguments that are given and not known."""
    return [name for name, value in given.items() if value is not None and name not in known]


def _own_mask(source: str, mask: Any, keys: int, ring: bool) -> torch.Tensor | None:
    """The mask of this process' keys, [1 or B, 1 or H, 1, keys], of a call that exchanges them."""
    known = isinstance(mask, torch.Tensor) and mask.ndim == 4 and mask.shape[2] == 1
    if not known or mask.shape[3] not in (1, keys):
        got = list(mask.shape) if isinstance(mask, torch.Tensor) else type(mask).__name__
        raise CaptureError(
            f"{source}: of a call split over processes a mask of each one's own keys can be recorded, "
            f"[B, H, 1, {keys}] (got {got}): run it in one process"
        )
    if not ring:
        return mask.expand(-1, -1, -1, keys)
    # Ring attention gives the keys of every process the mask of the queries' own process.
    if bool((mask if mask.dtype == torch.bool else mask == 0).all()):
        return None
    raise CaptureError(
        f"{source}: ring attention masks the keys of all processes by the mask of one's own: it cannot be "
        "recorded. Capture with ulysses_degree, or in one process"
    )


def transformers_call(name: str, module: Any, given: Mapping[str, Any], result: Any) -> Call:
    """A call of one of transformers' attention functions: q [B, H, Nq, d], result [B, Nq, H, dv].

    Raises CaptureError where an argument changes the weights in a way that a capture cannot state.
    """
    source = f"transformers attention {name}"
    shaping = _unread(given, (*READ_NAMED, *NEUTRAL_NAMED))
    if name == "sdpa":
        shaping = [n for n in shaping if n in SHAPING]
    elif name == INTERFACE:  # what sdpa does not know it leaves out, too
        shaping = [n for n in shaping if n in SHAPING and n not in STATED]
    else:
        shaping = [n for n in shaping if n not in STATED]
    if "flash" in name and given.get("sliding_window") is not None:
        shaping.append("sliding_window")
    if shaping:
        raise CaptureError(
            f"{source}: what its argument {', '.join(shaping)} does to the map cannot be recorded: load the model with "
            f'attn_implementation="{"eager" if name == "sdpa" else "sdpa"}", where its class has it'
        )
    q, k, v, mask = (given.get(n) for n in ("query", "key", "value", "attention_mask"))
    causal = given.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    # A mask of queries and keys has the causal part in it.
    causal = bool(causal) and q.shape[2] > 1 and (mask is None or getattr(mask, "ndim", 4) == 2)
    if name in ("flex_attention", EAGER):  # these look at the mask alone
        causal = False
    if isinstance(mask, torch.Tensor) and mask.ndim == 2:
        mask = mask.bool()[:, None, None]
        if causal:
            earlier = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
            mask, causal = mask & earlier, False
    mask = _with_bias(mask, given.get("position_bias"), k.shape[2])
    dropout = float(given.get("dropout") or 0.0)
    out, scale = result[0].transpose(1, 2), given.get("scaling")
    call = Call(q, k, v, out, mask, dropout, causal, scale, source, _approximation(name, q.dtype))
    return replace(call, cap=_cap(given.get("softcap")), sinks=sinks_of(given, q.shape[1]))


def _cap(given: Any) -> float:
    """The soft cap; 0 and less say that there is none, for many kernels."""
    return max(0.0, float(given or 0.0))


def _with_bias(mask: Any, bias: Any, keys: int) -> Any:
    """The mask and the bias that an eager function adds to the logits beside it, as one mask of `keys` keys."""
    if bias is None:
        return mask
    if mask is None:
        return bias
    mask = mask[..., :keys]
    return bias.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else bias + mask


def sinks_of(given: Mapping[str, Any], heads: int) -> torch.Tensor | None:
    """[1 or B, H, 1 or N] of a sink, of those of the heads, [H] or [B, H], or of queries, [B, H, N] or [B, H, N, 1]."""
    found = given.get("sinks") if given.get("sinks") is not None else given.get("s_aux")
    if found is None:
        return None
    sinks = torch.as_tensor(found)
    if sinks.ndim == 4 and sinks.shape[3] == 1:
        return sinks[..., 0]
    if sinks.ndim < 2 and sinks.numel() in (1, heads):
        return sinks.reshape(1, -1, 1).expand(1, heads, 1)
    if sinks.ndim == 2 and sinks.shape[1] == heads:
        return sinks[..., None]
    if sinks.ndim == 3 and sinks.shape[1] in (1, heads):
        return sinks.expand(-1, heads, -1)
    raise CaptureError(f"sinks: expected [{heads}], or what broadcasts to [B, {heads}, Nq] (got {list(sinks.shape)})")


def _approximation(backend: str, dtype: torch.dtype | None = None) -> str | None:
    """The backend's name, where it does not compute exactly."""
    if backend == EAGER and dtype in (torch.bfloat16, torch.float16):
        return f"eager attention, which rounds logits to {str(dtype).removeprefix('torch.')}"
    return backend.strip("_") if any(part in backend for part in QUANTISED) else None


def own_call(
    function: Callable[..., Any],
    layout: str,
    args: tuple,
    kwargs: dict,
    result: Any,
    approximation: str | None = None,
) -> Call:
    """A call of a user's function, whose first three arguments are q, k and v in `layout`.

    Raises CaptureError where it is given an argument whose meaning is not known.
    """
    source = getattr(function, "__name__", type(function).__name__)
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    given = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            given.update(given.pop(name, {}))
    names = list(signature.parameters)[:3]
    tensors = [given.pop(n, None) for n in names] + [result[0] if isinstance(result, tuple) else result]
    if not all(isinstance(t, torch.Tensor) for t in tensors):
        raise CaptureError(f"{source}: expected q, k and v as its first three arguments, tensors")
    found: dict[str, Any] = {}
    for name, value in given.items():
        meaning = next((m for m, known in ARGUMENTS.items() if name in known), None)
        default = signature.parameters[name].default if name in signature.parameters else None
        if meaning is not None:
            if value is not None or meaning not in found:  # one of two names may be None
                found[meaning] = value
        elif name not in NEUTRAL and value is not None and value is not default and value != default:
            raise CaptureError(f"{source}: what its argument {name}={value!r} does to the map is not known")
    q, k, v, out = (t.transpose(1, 2) if layout == "bshd" else t for t in tensors)
    dropout, causal = float(found.get("dropout") or 0.0), bool(found.get("causal", False))
    mask, scale = found.get("mask"), found.get("scale")
    call = Call(q, k, v, out, mask, dropout, causal, scale, source, approximation)
    return replace(call, cap=_cap(found.get("cap")), sinks=sinks_of(found, q.shape[1]))
