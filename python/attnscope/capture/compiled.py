"""Models that torch.compile has compiled: an operator in their graphs hands the calls out.

Compiled code runs no hooks and no function of ours, so its graph gets an operator after each attention
call. Which attention module a call belongs to is no constant of the graph, since blocks share one: it is
a tensor that each module has, which the graph reads as it reads the module's weights.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .errors import CaptureError
from .patching import replaced
from .stacks import uncompiled
from .tensors import Call

NUMBER = "_attnscope_number"  # attribute of an attention module: its number, int64 [1]


class Traced:
    """The state that code reads and changes while it is compiled; calls of compiled code are taken only where `key`
    is the one that it was compiled with."""

    def __init__(self) -> None:
        self.key = ""  # tells the attention modules that have numbers; "": none have
        self.running: list[torch.Tensor] = []  # numbers of the modules that run, innermost last
        self.frames: list[list[Any]] = []  # of watched calls: [owns, calls within]
        with torch.inference_mode(False):
            self.outside = torch.tensor([-1])  # the number of a call outside of all modules
            # The operator says that it changes this, so that no compiler drops or reorders it.
            self.log = torch.zeros(1, dtype=torch.int64)


TRACED = Traced()
# Of the capture that runs: what gets a call with its module's number, and what gets a refusal.
_RECEIVERS: list[tuple[Callable[[int, Call], None], Callable[[CaptureError], None]]] = []


@torch.library.custom_op(
    "attnscope::attention_call",
    mutates_args=("log",),
    schema="(Tensor q, Tensor k, Tensor v, Tensor out, Tensor? mask, float dropout, bool causal, "
    "float? scale, str? source, str? approximation, Tensor number, str key, Tensor(a!) log) -> ()",
)
def _attention_call(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    mask: Any,
    dropout: float,
    causal: bool,
    scale: Any,
    source: Any,
    approximation: Any,
    number: Any,
    key: str,
    log: Any,
) -> None:
    """Hands a call of compiled code to the capture that runs, if one does."""
    log += 1
    if not _RECEIVERS:
        return
    receive, refuse = _RECEIVERS[-1]
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        refuse(CaptureError(CUDA_GRAPHS))
        return
    if key != TRACED.key:
        refuse(CaptureError(OTHER_CODE))
        return
    receive(int(number), Call(q, k, v, out, mask, dropout, causal, scale, source, approximation))


@torch.library.custom_op(
    "attnscope::refuse", mutates_args=("log",), schema="(str reason, Tensor(a!) log) -> ()"
)
def _refuse(reason: str, log: Any) -> None:
    """Tells the capture that runs why a call cannot be recorded."""
    log += 1
    if _RECEIVERS:
        _RECEIVERS[-1][1](CaptureError(reason))


OTHER_CODE = (
    "the compiled code that ran was made for another capture, whose attention modules are others: leave "
    "torch.compile's guards on, or call torch.compiler.reset() before the capture"
)


CUDA_GRAPHS = (
    "CUDA graphs run kernels and nothing else, so the calls of a model compiled with them cannot be copied: "
    'compile it with mode="default" or mode="max-autotune-no-cudagraphs" for the capture'
)
COMPILED_MEANWHILE = (
    "compiled code of a model ran that was not compiled when the capture began: compile it before the block, "
    "and give capture(…) what torch.compile returned"
)


def hand_out(tell: Callable[[], Call]) -> None:
    """Puts the operator that hands out the call of `tell` into the graph that is being compiled; where
    the call cannot be told, one that refuses it when it runs."""
    try:
        call = tell()
        if call.mask is not None and not isinstance(call.mask, torch.Tensor):
            raise CaptureError(
                "a BlockMask is no tensor, which is all that leaves a compiled graph: capture the model as "
                'it was before torch.compile, or under torch.compiler.set_stance("force_eager")'
            )
        if call.cap or call.sinks is not None:
            raise CaptureError(
                f"{call.source}: a soft cap or sinks do not leave a compiled graph: capture the model as it was "
                'before torch.compile, or under torch.compiler.set_stance("force_eager")'
            )
    except CaptureError as refusal:
        refuse_compiled(str(refusal))
        return
    number = TRACED.running[-1] if TRACED.running else TRACED.outside
    mask = call.mask.detach() if call.mask is not None else None
    torch.ops.attnscope.attention_call(
        call.q.detach(),
        call.k.detach(),
        call.v.detach(),
        call.out.detach(),
        mask,
        call.dropout,
        call.causal,
        call.scale,
        call.source,
        call.approximation,
        number,
        TRACED.key,
        TRACED.log,
    )


def refuse_compiled(reason: str) -> None:
    """Puts an operator into the graph that is being compiled that refuses when it runs."""
    torch.ops.attnscope.refuse(reason, TRACED.log)


def receive_calls(
    stack: contextlib.ExitStack,
    receive: Callable[[int, Call], None],
    refuse: Callable[[CaptureError], None],
) -> None:
    """Hands calls of compiled code, with the numbers of their modules, to `receive`, and what cannot be one to
    `refuse`, until `stack` closes."""
    _RECEIVERS.append((receive, refuse))
    stack.callback(_RECEIVERS.remove, (receive, refuse))


def number_modules(
    stack: contextlib.ExitStack,
    modules: Iterable[tuple[str, torch.nn.Module]],
    others: Iterable[torch.nn.Module],
) -> None:
    """Numbers the attention modules (name, module) from 0 on in their order until `stack` is closed.

    others: modules whose calls are outside of these, although they may run the same compiled code.
    """
    numbered = list(modules)
    names = "\n".join(f"{name} {type(module).__name__}" for name, module in numbered)
    stack.enter_context(replaced(TRACED, "key", hashlib.sha256(names.encode()).hexdigest()[:16]))
    TRACED.running.clear()
    TRACED.frames.clear()
    stack.callback(TRACED.running.clear)
    with torch.inference_mode(False):
        for number, (_, module) in enumerate(numbered):
            stack.enter_context(replaced(module, NUMBER, torch.tensor([number])))
        for module in others:
            stack.enter_context(replaced(module, NUMBER, torch.tensor([-1])))
    for module in [m for _, m in numbered] + list(others):
        # Compiled code tells hooks that are called after errors as well apart by their handles, and would be
        # compiled once a block.
        stack.callback(module.register_forward_pre_hook(_enter).remove)
        stack.callback(module.register_forward_hook(_leave).remove)


def _enter(module: torch.nn.Module, args: Any) -> None:
    TRACED.running.append(getattr(module, NUMBER))


def _leave(module: torch.nn.Module, args: Any, output: Any) -> None:
    if TRACED.running:
        TRACED.running.pop()


def hook_around(
    stack: contextlib.ExitStack,
    module: torch.nn.Module,
    before: Callable[[Any, tuple, dict], None],
    after: Callable[[Any, Any, Any], None] = lambda called, args, output: None,
    leave: Callable[[Any], None] = lambda called: None,
) -> None:
    """Calls before(module, args, kwargs) and after(module, args, output) around the module's forwards, and
    leave(module) after these or where a forward ended in an error, outside of its compiled code, until `stack` is
    closed. module: as it is called, compiled or not."""
    real = vars(module).get("_compiled_call_impl")
    if real is None:
        stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
        stack.callback(module.register_forward_hook(after).remove)

        def last(called: Any, args: Any, output: Any) -> None:
            leave(called)

        stack.callback(module.register_forward_hook(last, always_call=True).remove)
        return

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            before(module, args, kwargs)
            output = real(*args, **kwargs)
            after(module, args, output)
        finally:
            leave(module)
        return output

    stack.enter_context(replaced(module, "_compiled_call_impl", call))


def is_compiled(module: torch.nn.Module) -> bool:
    """Is the module, or one within it, compiled, whatever way?"""
    return any(_compiled_functions(m) for m in module.modules())


def check_compiled(module: torch.nn.Module) -> None:
    """Refuses what is compiled so that its calls cannot be handed out."""
    for name, part in module.named_modules():
        for function in _compiled_functions(part):
            config = getattr(function, "get_compiler_config", lambda: None)()
            if config and config.get("triton.cudagraphs"):
                raise CaptureError(f"{name or type(uncompiled(module)).__name__}: {CUDA_GRAPHS}")


def _compiled_functions(module: torch.nn.Module) -> list[Any]:
    """The functions that torch.compile made of the module: of itself, of its call, of its forward."""
    of_itself = [module] if uncompiled(module) is not module else []
    attributes = [vars(module).get(name) for name in ("_compiled_call_impl", "forward")]
    return of_itself + [f for f in attributes if getattr(f, "get_compiler_config", None) is not None]
