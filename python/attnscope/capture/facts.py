"""The facts of a call: its kind, its grid and text, its tokens, what was applied to q and k."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

import torch

from .errors import CaptureError
from .families import masked_valid
from .forward import Forward
from .grids import Grid, grid_text, text_count
from .option_checks import check_words
from .options import Options
from .prompts import PromptWatch
from .slots import Model, Slot
from .tensors import Call


# q_state of q and k that were taken at the attention call itself: whatever the model applies, it had.
AS_GIVEN = "as given to attention"
# The names of arguments of forwards and of attributes of attention modules that are a cache of keys.
CACHE_NAME = re.compile(r"(^|_)(cache|caches|cached)(_|$)|^(past|pasts|layer_past|past_(kv|keys?|key_values?)s?)$")
# How arguments begin by which a model of transformers gets something else than words.
OTHER_INPUTS = ("pixel_", "image", "video", "input_features", "input_values", "audio", "speech", "mm_")
# The facts that say what the tokens of a call are, in short or as a map.
TOKEN_FACTS = ("grid", "text", "text_valid", "tokens", "axes", "queries", "keys")


class FactTeller:
    """Tells the facts of calls of one model; what is not known is left out, never guessed."""

    def __init__(self, model: Model, options: Options, watch: PromptWatch) -> None:
        self._model = model
        self._options = options
        self._watch = watch

    def kind(self, slot: Slot, forward: Forward, call: Call) -> str:
        """self, cross or joint; raises CaptureError where a cache of keys is in use."""
        kind = self._options.kind or slot.kind
        if kind is None:
            kind = "cross" if slot.crosses or call.q.shape[2] != call.k.shape[2] else "self"
            if kind == "cross" and not slot.crosses:
                self._check_no_cache(slot, forward, call)
            whole = forward.sequences is None  # a grid, and what stands beside it
            if kind == "self" and whole and forward.grid and (self._options.text or self._model.hf):
                kind = "joint"
        return kind

    def _check_no_cache(self, slot: Slot, forward: Forward, call: Call) -> None:
        """Raises CaptureError where more keys than queries may be those of a cache."""
        given = cache_of(slot.module, forward.arguments)
        if given is None and not self._model.hf:
            return
        raise CaptureError(
            f"{slot.name}: {call.q.shape[2]} queries and {call.k.shape[2]} keys: a cache of keys is in use"
            f"{f' ({given})' if given else ''}, and nothing tells where they stand in the stream: say it with "
            "cap.begin_chunk(n, query_position=…, key_positions=[…]); transformers: pass cache= (before 5.24: "
            "past_key_values=) or use_cache=True to the model's forward, or use_cache=False. Cross-attention beside "
            'it is left out by slots=, or told by kind="cross"'
        )

    def times(self, slot: Slot, forward: Forward) -> int:
        """How many batch items of a call belong to one batch item of the forward."""
        axes = self._options.axes or slot.axes
        if axes == "full":
            return 1
        if forward.grid is None:
            raise CaptureError(f"{slot.name}: {axes} attention needs grid=(T, H, W)")
        return forward.grid[0] if axes == "spatial" else forward.grid[1] * forward.grid[2]

    def call_facts(self, slot: Slot, forward: Forward, kind: str) -> dict[str, Any]:
        """Facts that do not depend on the call's tensors."""
        facts: dict[str, Any] = forward.numbers() if forward.numbered else {"step": forward.step}
        if slot.layer is not None:
            facts["layer"] = slot.layer
        facts |= {"layer_name": slot.name, "kind": kind}
        if forward.timestep is not None:
            facts["timestep"] = forward.timestep
        axes = self._options.axes or slot.axes
        if axes != "full":
            facts["axes"] = axes
        facts["q_state"] = self._state(slot, forward, kind)
        return facts

    def _state(self, slot: Slot, forward: Forward, kind: str) -> str:
        """The fact q_state: what the model applied to q and k before the call."""
        family = self._model.family
        if self._options.q_state is not None:
            return self._options.q_state
        if family is None:
            return AS_GIVEN
        norm = ["qk_norm"] if getattr(slot.module, "norm_q", None) is not None else []
        turned = kind in family.rope and not (
            "image_rotary_emb" in inspect.signature(type(forward.model).forward).parameters
            and forward.arguments.get("image_rotary_emb") is None
        )
        return ",".join(norm + (["rope"] if turned else [])) or "none"

    def text_facts(
        self,
        slot: Slot,
        forward: Forward,
        call: Call,
        kind: str,
        branches: list[str],
        times: int,
        items: list[int],
        index: int,
    ) -> dict[str, Any]:
        """grid, text, tokens and text_valid of a call, checked against its sequence.

        `items`: the forward's batch items that are recorded, `branches` their names; `index`: the
        number of the call among those of its slot in this forward.
        """
        facts = self._place_facts(forward, call, kind, times)
        count = call.k.shape[2] if facts.get("text") == "all" else text_count(facts.get("text"))
        if count and forward.numbered:
            return facts  # whose words they are is not told
        if count and not branches:
            decoding = (
                kind == "self"
                and "decoder" in slot.name
                and getattr(getattr(forward.model, "config", None), "is_encoder_decoder", False)
            )
            facts.update(self.hf_tokens(forward, count, "decoder_" if decoding else ""))
        elif count:
            facts.update(self._token_facts(forward, branches, times, items, count, index))
        return facts

    def _place_facts(self, forward: Forward, call: Call, kind: str, times: int) -> dict[str, Any]:
        """grid and text: where in the call's sequence the video and the words stand."""
        grid, family = forward.grid, self._model.family
        facts: dict[str, Any] = {"grid": "x".join(map(str, grid))} if grid else {}
        queries = call.q.shape[2]
        video = math.prod(grid) // times if grid else None
        if self._options.text is not None and not (family and kind == "self"):
            facts["text"] = self._options.text
            words = text_count(facts["text"])
            if video is not None and kind != "cross" and facts["text"] != "all" and video + words != queries:
                raise _wrong_count(queries, grid, words)
        elif kind == "cross":
            facts["text"] = "all"
        elif video is not None:
            words = queries - video
            place = family.text if family else "start" if forward.text else "none"
            expected = (forward.text or 0) if kind == "joint" else 0
            trimmed = family is not None and family.per_sample
            if words < 0 or (not trimmed and words != expected):
                raise _wrong_count(queries, grid, expected)
            facts["text"] = f"{words}@{place}" if words else "none"
        elif self._model.hf and has_words_alone(forward, "input_ids"):
            facts["text"] = "all"
        return facts

    def _token_facts(
        self, forward: Forward, branches: list[str], times: int, items: list[int], count: int, index: int
    ) -> dict[str, Any]:
        per_sample = self._model.family is not None and self._model.family.per_sample
        tokens, valid = [], []
        for place, branch in zip(items, branches):
            words, used = self.branch_tokens(branch, count)
            if forward.valid is not None:
                used = forward.valid[index if per_sample else place]
            tokens.append(words)
            valid.append(used)
        return collapsed("tokens", tokens, times) | collapsed("text_valid", valid, times)

    def branch_tokens(self, branch: str, count: int) -> tuple[list[str] | None, int | None]:
        """(strings, valid tokens) of a branch: what the user gave, else what the text encoder saw."""
        o, family = self._options, self._model.family
        words, used = self._watch.tokens(branch, count)
        if words is None and o.tokenizer is not None and (o.prompt is not None or branch == "uncond"):
            text = o.prompt if branch == "cond" else o.negative_prompt
            pieces = o.tokenizer(text, padding="max_length", max_length=count, truncation=True)
            words = o.tokenizer.convert_ids_to_tokens(pieces["input_ids"])
            used = sum(pieces["attention_mask"])
        if o.tokens is not None:
            words = one_of("tokens", o.tokens, branch)
            check_words(words, None, count, family is not None and (family.trims or family.per_sample))
            words = None if words is None else list(words)[:count]
        if o.text_valid is not None:
            used = one_of("text_valid", o.text_valid, branch)
            check_words(None, used, count)
            return words, used
        return words, used if family is None or family.counted_text else None

    def hf_tokens(self, forward: Forward, count: int, side: str) -> dict[str, Any]:
        """Tokens of a language model, one list a batch item; `side`: "decoder_" for a decoder's own."""
        o, ids = self._options, forward.arguments.get(side + "input_ids")
        facts: dict[str, Any] = {}
        mask = forward.arguments.get(side + "attention_mask")
        if o.tokens is not None:
            facts["tokens"] = o.tokens
        elif ids is not None and o.tokenizer is not None and ids.shape[1] == count:
            facts["tokens"] = [o.tokenizer.convert_ids_to_tokens(row) for row in ids.tolist()]
        check_words(o.tokens, o.text_valid, count)
        if o.text_valid is not None:
            facts["text_valid"] = o.text_valid
        elif isinstance(mask, torch.Tensor) and mask.shape[-1] == count:
            valid = masked_valid({"encoder_attention_mask": mask})
            if valid is not None:
                facts["text_valid"] = valid
        return facts


def cache_of(module: torch.nn.Module, given: Mapping[str, Any]) -> str | None:
    """Names the argument of the forward or the attribute of the attention module that is called a cache of keys."""
    for name, value in given.items():
        if CACHE_NAME.search(name) and value is not None and not isinstance(value, (bool, int, float, str)):
            return f"the forward's argument {name}"
    for name, value in {**vars(module), **vars(module).get("_buffers", {})}.items():
        if CACHE_NAME.search(name) and has_tensor(value):
            return f"the attribute {name} of {type(module).__name__}"
    return None


def has_tensor(value: Any) -> bool:
    """Is it a tensor, or does it hold one?"""
    parts = value.values() if isinstance(value, dict) else value
    return isinstance(value, torch.Tensor) or (
        isinstance(value, (dict, list, tuple)) and any(has_tensor(part) for part in parts)
    )


def is_mixed(given: Mapping[str, Any]) -> bool:
    """Do the arguments of a forward give a model of transformers something else than words?"""
    return any(name.startswith(OTHER_INPUTS) and has_tensor(value) for name, value in given.items())


def has_words_alone(forward: Forward, *names: str) -> bool:
    """Are words, as one of these arguments, all that a forward of a model of transformers is given?"""
    return not forward.mixed and any(forward.arguments.get(n) is not None for n in names)


def bare_facts(
    options: Options, grid: Grid | None, step: int, layer: int, timestep: float | None, keys: int
) -> dict[str, Any]:
    """Facts of a call of so many keys without a model: what the user stated."""
    words = keys if options.text in (None, "all") else text_count(options.text)
    for name in ("tokens", "text_valid"):
        if isinstance(getattr(options, name), Mapping):
            raise CaptureError(f"{name}: a dict by branch is for a model's branches, of which a call has none")
    check_words(options.tokens, options.text_valid, words)
    given = {
        "timestep": timestep,
        "kind": options.kind,
        "grid": grid_text(grid),
        "text": options.text,
        "axes": options.axes,
        "q_state": options.q_state,
        "tokens": options.tokens,
        "text_valid": options.text_valid,
        "branches": list(options.branches) if options.branches else None,
    }
    return {"step": step, "layer": layer, **{k: v for k, v in given.items() if v is not None}}


def _wrong_count(tokens: int, grid: Grid | None, words: int) -> CaptureError:
    return CaptureError(
        f"{tokens} tokens are not the grid {grid_text(grid)} and {words} text tokens: pass grid= and "
        "text= as they are"
    )


def one_of(name: str, given: Any, branch: str) -> Any:
    """The value that the user gave for a branch: one for all of its items."""
    value = given.get(branch) if isinstance(given, Mapping) else given
    if isinstance(value, (list, tuple)) and not any(isinstance(v, str) for v in value):
        if len(value) != 1:
            raise CaptureError(f"{name}: expected one for all items of a branch, or a dict by branch (got {value!r})")
        return value[0]
    return value


def collapsed(name: str, values: list[Any], times: int) -> dict[str, Any]:
    """One value where all items agree, a list otherwise; nothing where one is not known."""
    if not values or any(v is None for v in values):
        return {}
    if all(v == values[0] for v in values):
        return {name: values[0]}
    return {name: [v for v in values for _ in range(times)]}
