"""Which denoising step a forward belongs to, and which branch of it, as the run tells them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .errors import LabelError

# The names that forwards give the timestep, the most common first.
TIMESTEP_NAMES = (
    "timestep",
    "timesteps",
    "t",
    "sigma",
    "sigmas",
    "time",
    "times",
    "time_step",
    "noise_level",
    "noise_labels",
    "vision_timesteps",
)
# How pipelines spell the two branches of guidance; other names are kept as they are.
BRANCH_NAMES = {
    "cond": "cond",
    "conditional": "cond",
    "positive": "cond",
    "pos": "cond",
    "uncond": "uncond",
    "unconditional": "uncond",
    "negative": "uncond",
    "neg": "uncond",
    "null": "uncond",
}
HOW_TO_NAME = (
    'name the forwards of a step in their order with branches=["cond", "uncond"], guidance="forwards", '
    'or run each in `with cap.branch("cond"):`'
)
HOW_TO_COUNT = "call cap.begin_step(n) at the beginning of each step"


def timestep_argument(given: Mapping[str, Any]) -> Any:
    """The timestep among a forward's arguments: a number, a tensor or a list of these; else None."""
    for name in TIMESTEP_NAMES:
        value = given.get(name)
        if isinstance(value, (list, tuple)) and value and all(_tensor(v) is not None for v in value):
            return torch.stack([_tensor(v).reshape(-1).max() for v in value])  # type: ignore[union-attr]
        if _tensor(value) is not None:
            return value
    return None


def _tensor(value: Any) -> torch.Tensor | None:
    """Numbers as a tensor of doubles in host memory; None for anything else."""
    if isinstance(value, torch.Tensor):
        real = value.numel() and not value.is_complex() and value.dtype != torch.bool
        return value.detach().double().cpu() if real else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return torch.tensor(float(value), dtype=torch.float64)
    return None


def timestep_of(value: Any) -> float | None:
    """The timestep of a forward: a number, a tensor, or one a token (then the largest)."""
    tensor = _tensor(value)
    return None if tensor is None else float(tensor.max())


def timestep_key(value: Any) -> tuple[float, ...] | None:
    """The key that forwards at one timestep share, whatever their batch; None: no timestep."""
    tensor = _tensor(value)
    if tensor is None:
        return None
    if bool((tensor == tensor.reshape(-1)[0]).all()):
        return (float(tensor.reshape(-1)[0]),)
    rows = tensor.reshape(1, -1) if tensor.ndim < 2 else tensor.flatten(1)
    return tuple(torch.unique(rows, dim=0).reshape(-1).tolist())


def context_branch(name: str) -> str | None:
    """The branch that a cache_context's name tells; None where its batch has both ("cond_uncond")."""
    words = [w for w in re.findall(r"[a-z0-9]+", name.lower()) if w not in ("pred", "noise", "prediction")]
    known = {BRANCH_NAMES.get(w) for w in words}
    if len(words) == 2 and known == {"cond", "uncond"}:
        return None
    return (BRANCH_NAMES.get(words[0]) if len(words) == 1 else None) or name


class StepCounter:
    """Numbers the denoising steps and names the branch of each forward of the transformer(s).

    guidance "batch": each forward is a step. "forwards": a forward is a branch of a step; `branches`
    names them in their order, and without it they are cond, then uncond. "told": a forward is a branch
    where its context names one, and has all branches of a step where none does.

    A step ends where the timestep changes, the scheduler moves on or the user says so, never because
    a forward came. Raises LabelError where that does not tell step and branch of a forward.
    """

    def __init__(self, guidance: str, branches: Sequence[str] | None) -> None:
        self._guidance = guidance
        self._named = bool(branches) and guidance == "forwards"  # by the user, who may be wrong
        self._in_batch = bool(branches) and guidance == "told"
        self._order = list(branches or ("cond", "uncond")) if guidance == "forwards" else []
        self._context_order: list[str] = []  # in which contexts came in a step, without timesteps
        self._step = -1
        self._count = 0
        self._seen: list[str | None] = []  # branches of the step, in the order of their forwards
        self._forwards = 0  # of the step
        self._timestep: Any = None
        self._announced: int | None = None  # by begin_step(), before its first forward
        self._told = False  # steps are announced
        self._begins = False  # a chunk does: whatever comes is a step
        self._moved = False  # the scheduler moved on since the last forward
        self._moves = False  # and has before
        self.doubt: Callable[[LabelError], None] = _raise  # gets why labels of the step that ends are in doubt

    @property
    def steps(self) -> int:
        """How many steps have begun: one more than the largest number."""
        return self._count

    @property
    def tells(self) -> bool:
        """Is it the user or the scheduler that tells steps apart, also where timesteps do not?"""
        return self._told or self._moves

    @property
    def by_timestep(self) -> bool:
        """Is it the timestep alone that tells steps apart?"""
        return not self.tells and self._timestep is not None and self._guidance != "batch"

    @property
    def step(self) -> int:
        """That of the latest forward; -1 before the first."""
        return self._step

    @property
    def began(self) -> bool:
        """Was the last forward the first of its step?"""
        return self._forwards <= 1

    def begin(self, step: int) -> None:
        """The forwards that follow belong to `step`."""
        self._announced, self._told = step, True

    def begin_chunk(self, step: int = 0) -> None:
        """The forwards that follow are another piece of a stream, whose steps are counted from `step`."""
        self.finish()
        self._step, self._seen, self._forwards = step - 1, [], 0
        self._begins, self._timestep, self._moved, self._announced = True, None, False, None

    def move_on(self) -> None:
        """The scheduler has taken its step: what follows is another one."""
        self._moved = self._moves = True

    def next(self, timestep: Any, context: str | None, both: bool = False) -> tuple[int, str | None]:
        """(step, branch) of the forward that begins; branch None where the batch decides it.

        timestep: compared with that of the forward before, None where there is none; context: the
        branch that the forward was said to be; both: it was said to be a batch of uncond and cond.
        """
        if self._guidance == "batch" and not self._told:
            self._start(self._step + 1)
            return self._step, None
        said = "cond" if both and context is None else context
        if self._is_new(timestep, said):
            self.finish()
            self._start(self._step + 1 if self._announced is None else self._announced)
        branch = self._branch(context)
        of_forward = ["uncond", "cond"] if both and branch is None else [branch]
        for name in of_forward:
            if self._seen and (name is None or name in self._seen or None in self._seen):
                raise LabelError(self._twice(timestep, name))
        self._seen += of_forward
        self._forwards += 1
        if of_forward[-1] is not None and of_forward[-1] not in self._context_order:
            self._context_order.append(of_forward[-1])
        self._timestep, self._moved, self._announced, self._begins = timestep, False, None, False
        return self._step, branch

    def finish(self) -> None:
        """The step has no more forwards; where fewer came than were named, `doubt` gets a LabelError."""
        came = len(self._seen)
        if self._named and 0 < came < len(self._order):
            error = LabelError(
                f"step {self._step} had {came} of the {len(self._order)} forwards that branches= names: "
                f"nothing tells which. Run each in `with cap.branch({self._order[0]!r}):`"
            )
            self._seen = []
            self.doubt(error)

    def _start(self, step: int) -> None:
        self._step = step
        self._count = max(self._count, step + 1)
        self._seen, self._forwards = [], 0

    def _is_new(self, timestep: Any, context: str | None) -> bool:
        """Does the forward begin a step?"""
        if self._begins:
            return True
        if self._told:
            return self._announced is not None and self._announced != self._step
        if self._step < 0 or self._moved or timestep != self._timestep:
            return True
        if timestep is not None or self._moves:
            return False
        if context is not None and not self._named:  # an order that comes again is another step
            order = self._context_order
            return context in order and order.index(context) <= order.index(self._seen[-1] or context)
        if self._named:
            return len(self._seen) == len(self._order)
        if self._in_batch:
            return True
        raise LabelError(
            "a second forward came, and neither a timestep (an argument named "
            f"{', '.join(TIMESTEP_NAMES[:5])} …) nor a scheduler tells whether it is another step: "
            f'{HOW_TO_COUNT}; pass guidance="batch" where each forward is a step; '
            f"where it is a branch of the same step, {HOW_TO_NAME}"
        )

    def _branch(self, context: str | None) -> str | None:
        if context is not None and not self._named:
            return context
        if not self._order:
            return None
        place = len(self._seen)
        if place < len(self._order):
            return self._order[place]
        raise LabelError(
            f"step {self._step}: more than {len(self._order)} forwards at one timestep: {HOW_TO_NAME}; "
            f"where they are steps, {HOW_TO_COUNT}"
        )

    def _twice(self, timestep: Any, branch: str | None) -> str:
        at = f" at timestep {timestep[0]:g}" if isinstance(timestep, tuple) else ""
        what = f"the branch {branch!r}" if branch is not None else "a forward whose branch is not told"
        return (
            f"step {self._step}: {what} came twice{at}. Where the forwards are branches, {HOW_TO_NAME}; "
            f"where they are steps, {HOW_TO_COUNT}"
        )


def _raise(error: LabelError) -> None:
    raise error


def batch_branches(batch: int, given: Sequence[str] | None, guided: bool | None) -> list[str]:
    """The branch of each item of a forward's batch; `guided`: is it [uncond; cond], None: not known."""
    if given:
        if batch % len(given):
            raise LabelError(f"branches: {list(given)} does not divide a batch of {batch}")
        return [name for name in given for _ in range(batch // len(given))]
    if guided is False or (guided is None and batch == 1):
        return ["cond"] * batch
    if batch % 2:
        raise LabelError(
            f"a batch of {batch} is not [uncond; cond]: name its branches with "
            'branches=["…"], one a batch item'
        )
    return ["uncond"] * (batch // 2) + ["cond"] * (batch // 2)
