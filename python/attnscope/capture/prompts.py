"""The prompts of a run and their tokens, learnt from what a pipeline gives its text encoders."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .compiled import hook_around
from .families import Family
from .origins import BranchTensors, returned_text
from .patching import replaced


class PromptWatch:
    """Learns the prompts and their token ids from what a pipeline gives its text encoders; `made` learns what
    encode_prompt made of them."""

    def __init__(self, pipe: Any, family: Family | None, made: BranchTensors) -> None:
        self.prompt: dict[str, str] = {}  # branch -> prompt
        self._ids: dict[tuple[str, str], tuple[torch.Tensor, torch.Tensor | None]] = {}
        self._pipe, self._encoders = pipe, family.encoders if family else ()
        self._trims = family is not None and family.trims
        self._order: list[str] | None = None  # branches that the running encode_prompt encodes
        self._calls: dict[str, int] = {}  # of each encoder in it
        self._invocations = 0
        self._made = made
        self._texts: dict[str, list[torch.Tensor]] = {}  # by branch, of what encode_prompt returned
        self._crop = 0

    def install(self, stack: contextlib.ExitStack) -> None:
        """Watches encode_prompt and the text encoders until `stack` is closed."""
        if not callable(getattr(self._pipe, "encode_prompt", None)):
            return
        for attribute, _ in self._encoders:
            encoder = getattr(self._pipe, attribute, None)
            if isinstance(encoder, torch.nn.Module):
                hook_around(stack, encoder, self._seen(attribute))
        stack.enter_context(replaced(self._pipe, "encode_prompt", self._watched_encode()))

    def _watched_encode(self) -> Callable[..., Any]:
        real = self._pipe.encode_prompt
        signature = inspect.signature(real)

        def encode_prompt(*args: Any, **kwargs: Any) -> Any:
            given: Mapping[str, Any] = kwargs
            with contextlib.suppress(TypeError):
                given = signature.bind(*args, **kwargs).arguments
                self._begin(signature, given)
            try:
                result = real(*args, **kwargs)
            finally:
                self._order = None
            self._texts |= returned_text(signature.parameters, given, result, self._invocations - 1)
            self._made.keep("encode_prompt", self._texts)
            return result

        return encode_prompt

    def _begin(self, signature: inspect.Signature, given: Mapping[str, Any]) -> None:
        """Which branches the call encodes, in order: the prompt, then the negative prompt; pipelines
        whose encode_prompt takes one prompt call it again for the negative one."""
        names = [("prompt", "prompt_embeds", "cond"), ("negative_prompt", "negative_prompt_embeds", "uncond")]
        if "negative_prompt" not in signature.parameters:
            names = [("prompt", "prompt_embeds", ("cond", "uncond")[min(self._invocations, 1)])]
        self._invocations += 1
        self._calls = {}
        self._order = [branch for _, embeds, branch in names if given.get(embeds) is None]
        self._crop = (given.get("prompt_template") or {}).get("crop_start") or 0
        for argument, _, branch in names:
            text = given.get(argument)
            text = text[0] if isinstance(text, (list, tuple)) and len(text) == 1 else text
            if isinstance(text, str):
                self.prompt[branch] = text

    def _seen(self, attribute: str) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            index = self._calls.get(attribute, 0)
            self._calls[attribute] = index + 1
            ids = args[0] if args else kwargs.get("input_ids")
            mask = args[1] if len(args) > 1 else kwargs.get("attention_mask")
            if self._order is None or index >= len(self._order) or not isinstance(ids, torch.Tensor):
                return
            key = (attribute, self._order[index])
            self._ids.pop(key, None)
            if ids.ndim == 2 and ids.shape[0] == 1:  # several prompts: which item is whose is not known
                used = mask[0].bool().cpu() if isinstance(mask, torch.Tensor) else None
                self._ids[key] = (
                    ids[0, self._crop :].cpu(),
                    used[self._crop :] if used is not None else None,
                )

        return hook

    def tokens(self, branch: str, count: int) -> tuple[list[str] | None, int | None]:
        """(strings, how many are no padding) of the branch's `count` text tokens; None: not known.

        Where the pipeline or the model drops what is padding at the end, `count` is what is left.
        """
        strings: list[str] = []
        used = None
        for attribute, tokenizer in self._encoders:
            ids, mask = self._ids.get((attribute, branch), (None, None))
            words = getattr(self._pipe, tokenizer, None)
            if ids is None or words is None:
                return None, None
            strings += words.convert_ids_to_tokens(ids.tolist())
            if mask is None and words.pad_token_id is not None:
                mask = ids != words.pad_token_id
            used = int(mask.sum()) if mask is not None else None
        if self._trims and used is not None:
            strings, used = strings[:count], min(used, count)
        if not strings or len(strings) != count:
            return None, None
        return strings, used if len(self._encoders) == 1 else None
