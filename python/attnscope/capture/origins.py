"""The tensors that a pipeline made for one branch of guidance: a forward that is given them tells its branch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .patching import replaced
from .steps import BRANCH_NAMES, context_branch

_ASKED = ("prepare_inputs", "prepare_inputs_from_block_state")  # of a guider of diffusers' modular pipelines


class BranchTensors:
    """The tensors of each branch: what encode_prompt returned, and what guiders prepared for the latest step."""

    def __init__(self) -> None:
        self._known: dict[Any, dict[str, list[torch.Tensor]]] = {}  # by who made them, then by branch

    def keep(self, maker: Any, tensors: Mapping[str, list[torch.Tensor]]) -> None:
        """Keeps the tensors that `maker` made for each branch, in the place of those that it had made before."""
        self._known[maker] = dict(tensors)

    def watch_guiders(self, stack: contextlib.ExitStack, pipe: Any) -> None:
        """Learns what the guiders among a pipeline's components prepare, until `stack` is closed."""
        parts = getattr(pipe, "components", None)
        parts = parts.values() if isinstance(parts, Mapping) else ()
        stack.callback(self._known.clear)
        for cls in dict.fromkeys(type(part) for part in parts if hasattr(part, "_identifier_key")):
            for name in _ASKED:
                real = getattr(cls, name, None)
                if callable(real):
                    stack.enter_context(replaced(cls, name, self._watched(real)))

    def _watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def prepare(guider: Any, *args: Any, **kwargs: Any) -> Any:
            states = real(guider, *args, **kwargs)
            self.keep(("guider", id(guider)), dict(_states(guider, states)))
            return states

        return prepare

    def branch_of(self, given: Mapping[str, Any]) -> str | None:
        """The branch whose tensors a forward is given; None: no tensor tells one, or they tell several."""
        known = [(b, t) for made in self._known.values() for b, tensors in made.items() for t in tensors]
        found = set()
        for value in given.values() if known else ():
            branches = {b for given_tensor in _tensors(value) for b, t in known if _same(t, given_tensor)}
            if len(branches) == 1:  # what several branches share tells none
                found |= branches
        return found.pop() if len(found) == 1 else None


def _states(guider: Any, states: Any) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """(branch, tensors that no other branch has) of each state that a guider has prepared."""
    named = [(getattr(s, guider._identifier_key, None), list(_tensors(list(vars(s).values())))) for s in states]
    for name, tensors in named:
        others = {id(t) for other, theirs in named if other != name for t in theirs}
        own = [t for t in tensors if id(t) not in others]
        branch = context_branch(name) if isinstance(name, str) else None
        if branch is not None:
            yield branch, own


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Tensors of real numbers with two axes or more within an argument."""
    if isinstance(value, torch.Tensor):
        if value.ndim > 1 and value.is_floating_point() and not value.is_meta:
            yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _tensors(entry)


def _same(known: torch.Tensor, given: torch.Tensor) -> bool:
    """Is it that tensor, or that one in another type or on another device?"""
    if known is given:
        return True
    if known.shape != given.shape:
        return False
    with torch.no_grad():
        return bool(torch.equal(known.detach().to(given.device, given.dtype), given.detach()))


def returned_text(parameters: Mapping[str, Any], given: Mapping[str, Any], result: Any, order: int) -> dict[str, Any]:
    """By branch, the text that encode_prompt has returned; nothing where it is not told which is whose.

    parameters: of its signature; given: its arguments; order: how often it was called before in this run. Pipelines
    whose encode_prompt takes one prompt call it again for the negative one.
    """
    items = list(result) if isinstance(result, tuple) else [result]
    texts = [t for t in map(_as_text, items) if t]
    if "prompt" not in parameters:  # other prompts (LEDITS++), in an order of their own
        return {}
    pair = "negative_prompt" in parameters or "do_classifier_free_guidance" in parameters
    guided = given.get("do_classifier_free_guidance")
    if pair and len(texts) == 2 and texts[0][0].shape[-1] == texts[1][0].shape[-1]:
        return {"cond": texts[0], "uncond": texts[1]}
    if "negative_prompt" in parameters:  # one text may be that of both branches, one behind the other
        return {"cond": texts[0]} if len(texts) == 1 and guided is False else {}
    return {("cond", "uncond")[order]: texts[0]} if texts and order < 2 else {}


def _as_text(value: Any) -> list[torch.Tensor]:
    """A text's states, [batch, tokens, channels] or a list of [tokens, channels]; else nothing."""
    listed = isinstance(value, (list, tuple))
    parts = list(_tensors(value))
    axes = 2 if listed else 3
    return parts if parts and all(p.ndim >= axes for p in parts) else []


def component_branch(name: str, others: Mapping[str, Any]) -> str | None:
    """The branch that runs in the component `name` of a pipeline whose transformers are `others`: of one that is named
    for a branch (unconditional_transformer), that one; of the transformer beside it, the other one."""

    def of(word: str) -> str | None:
        return next((BRANCH_NAMES[w] for w in re.split(r"[^a-z]+", word.lower()) if w in BRANCH_NAMES), None)

    if of(name) is not None or len(others) != 2:
        return of(name)
    beside = next((of(other) for other in others if other != name), None)
    return {"cond": "uncond", "uncond": "cond"}.get(beside or "")
