"""The branches of guidance: which forward, or which part of a batch, is conditional."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .batch_parts import count_parts, other_guidance
from .errors import CaptureError, LabelError
from .forward import batch_of
from .options import Options
from .origins import BranchTensors, component_branch
from .patching import replaced
from .slots import Model
from .steps import HOW_TO_NAME, batch_branches, context_branch


class BranchTeller:
    """Names the branch of each batch item of a forward. `say` gets what a user should know; made: what a pipeline made
    for each branch."""

    def __init__(self, model: Model, options: Options, say: Callable[[str], None], made: BranchTensors) -> None:
        if options.guidance not in (None, "batch", "forwards"):
            raise CaptureError(f'guidance: expected "batch" or "forwards" (got {options.guidance!r})')
        known = model.family or model.layout
        self._class_guidance = known.guidance if known is not None else "told"
        # told | batch | forwards: see StepCounter. A model of transformers knows no guidance.
        self.guidance = options.guidance or (
            "batch" if model.hf else "forwards" if self._class_guidance == "forwards" else "told"
        )
        self._model = model
        self._options = options
        self._say = say
        self._made = made
        self._guides: bool | str | None = "unasked"
        self._batch: int | None = None  # of the first forward whose branches its batch tells
        self._contexts: list[tuple[Any, str]] = []  # (transformer, name), innermost last

    def watch(self, stack: contextlib.ExitStack) -> None:
        """Learns the names of the cache_context that a pipeline enters before each forward."""
        # Of the class: a copy that is made of the transformer within the block would take along its attributes.
        for cls in dict.fromkeys(map(type, self._model.transformers.values())):
            real = getattr(cls, "cache_context", None)
            if callable(real):
                stack.enter_context(replaced(cls, "cache_context", self._watched_context(real)))

    def _watched_context(self, real: Callable[..., Any]) -> Callable[..., Any]:
        @contextlib.contextmanager
        def cache_context(this: Any, name: str, *args: Any, **kwargs: Any) -> Iterator[Any]:
            with self.named(this, name), real(this, name, *args, **kwargs) as value:
                yield value

        return cache_context

    @contextlib.contextmanager
    def named(self, transformer: Any, name: str) -> Iterator[None]:
        """Forwards of `transformer` (None: of any) in the block are the branch `name`."""
        self._contexts.append((transformer, name))
        try:
            yield
        finally:
            self._contexts.pop()

    def context(self, transformer: Any) -> str | None:
        names = [n for t, n in self._contexts if t is None or t is transformer]
        return names[-1] if names else None

    def of_forward(self, transformer: Any, given: Mapping[str, Any]) -> str | None:
        """The branch that a forward of `transformer` with these arguments is said to be; None: nothing is said, or
        several.

        Raises LabelError where its forwards are branches that nothing names.
        """
        context = self.context(transformer)
        branch = context_branch(context) if context is not None else self._of_pipeline(transformer, given)
        ordered = self._options.branches or self._class_guidance == "forwards"
        if self.guidance == "forwards" and branch is None and not ordered:
            raise LabelError(
                f'guidance="forwards": nothing tells the branches of the forwards: {HOW_TO_NAME}'
            )
        return branch

    def _of_pipeline(self, transformer: Any, given: Mapping[str, Any]) -> str | None:
        """The branch by the name of the component that runs, or by what the pipeline made for one of them."""
        component = component_branch(self._model.name_of(transformer), self._model.transformers)
        return component or self._made.branch_of(given)

    def has_both(self, transformer: Any) -> bool:
        """Is a forward of `transformer` said to be a batch of uncond and cond?"""
        return context_has_both(self.context(transformer))

    def wants(self, branch: str) -> bool:
        """Is `branch` one of those that are recorded?"""
        wanted = self._options.branch
        if isinstance(wanted, str):
            return wanted in ("both", "all") or branch == wanted
        return branch in wanted

    def names(self, transformer: Any, given: Mapping[str, Any], branch: str | None) -> list[str] | None:
        """The branch of each batch item of the forward; None where nothing is known of branches.

        given: the forward's arguments by name; branch: that of the forward as a whole, if it has one.
        Raises LabelError where a branch is asked for by name and the batch does not tell it.
        """
        batch = batch_of(given)
        if branch is not None:
            self._check_one_branch(transformer, given)
            return [branch] * (batch or 1)
        halves = self._guided() if self.has_both(transformer) else None
        if halves is None and self._model.layout is not None and self._class_guidance == "batch":
            halves = self._guided()
        if self._model.family is None and not self._options.branches and halves is None:
            if self._options.branch not in ("cond", "both", "all"):
                raise LabelError(
                    f"branch {self._options.branch!r}: nothing tells the branches of "
                    f'{type(transformer).__name__}: name those of a batch with branches=["…"], one an '
                    f"item; where they are forwards of their own, {HOW_TO_NAME}"
                )
            if self.has_both(transformer):
                self._say(
                    f"a batch of {batch} of uncond and cond, by its context {self.context(transformer)!r}, is "
                    'recorded without names, since nothing tells their order: branches=["uncond", "cond"] does'
                )
            return None
        if batch is None:
            raise LabelError("branches: the forward has no batched tensor to count")
        guided = self._guided()
        if not self._options.branches:
            self._check_parts(transformer, given, batch, guided)
            if guided is None and batch > 1:
                self._say(f"a batch of {batch} is taken as [uncond; cond]; branches=[…] says otherwise")
        return batch_branches(batch, self._options.branches, guided)

    def _check_one_branch(self, transformer: Any, given: Mapping[str, Any]) -> None:
        """Raises LabelError where the batch of a forward that the order alone names looks like two branches."""
        ordered = self.guidance == "forwards" and self.context(transformer) is None
        parts = count_parts(transformer, given) if ordered and not self._options.branches else None
        if parts is not None and parts > 1:
            raise LabelError(
                f"{parts} of the batch's items have the same latents: where they are [uncond; cond], pass "
                'branches=["uncond", "cond"], guidance="batch"; where they are of one branch, run each in '
                '`with cap.branch("cond"):`'
            )

    def _check_parts(self, transformer: Any, given: Mapping[str, Any], batch: int, guided: bool | None) -> None:
        """Raises LabelError where the batch is not [uncond; cond], or one branch where nothing guides."""
        names = 'name the batch\'s branches with branches=["…"], one a part'
        told = other_guidance(self._model.owner)
        if told is not None and batch > 1:
            raise LabelError(
                f"{type(self._model.owner).__name__}: by its {told} the batch of {batch} is not [uncond; cond]: "
                f"{names}"
            )
        first, self._batch = self._batch, self._batch or batch
        if first not in (None, batch) and (guided is not None or min(first or 1, batch) > 1):
            raise LabelError(
                f"a batch of {batch} after one of {first}: whether the run still guides is not told: {names}, where "
                'every forward has these; else run each in `with cap.branch("cond"):`, or capture fewer steps'
            )
        if first is None and batch > 1 and guided is not False:
            parts = count_parts(transformer, given)
            if parts not in (None, 2):
                same = "each of its own latents" if parts == 1 else f"{parts} of the same latents"
                raise LabelError(f"a batch of {batch}, {same}, is not [uncond; cond]: {names}")

    def in_doubt(self, transformer: Any, branch: str | None) -> bool:
        """May a later forward of the step show that this one was labelled wrongly?"""
        if self.guidance == "forwards":
            return bool(self._options.branches)
        told = self.guidance == "batch" or self._options.branches or branch is not None
        known = (
            self._model.family is not None or self._class_guidance == "batch" or self.has_both(transformer)
        )
        return not told and (not known or self._guided() is None)

    def _guided(self) -> bool | None:
        """Does the pipeline double the batch for guidance? None: there is no pipeline to ask.

        Asked at the first forward: some pipelines change their guidance scale while they run.
        """
        if self._guides == "unasked":
            self._guides = self._ask_guidance()
        return self._guides  # type: ignore[return-value]

    def _ask_guidance(self) -> bool | None:
        if isinstance(self._model.owner, torch.nn.Module):
            return None
        for name in ("do_classifier_free_guidance", "guidance_scale"):
            try:
                value = getattr(self._model.owner, name)
            except AttributeError:
                continue
            if isinstance(value, (bool, int, float)):
                return value if isinstance(value, bool) else value > 1
        return None


def context_has_both(name: str | None) -> bool:
    """Is it the context of one forward of [uncond; cond], as pipelines of diffusers spell it?"""
    return name is not None and context_branch(name) is None
