"""Where calls are seen: hooks that are taken back when the capture ends."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import has_torch_function

from .calls import EAGER, dispatched_call, is_exchanged, own_call, transformers_call
from .compiled import (
    COMPILED_MEANWHILE,
    TRACED,
    check_compiled,
    hand_out,
    is_compiled,
    number_modules,
    receive_calls,
    refuse_compiled,
)
from .errors import CaptureError
from .linear import watch_linear
from .patching import replaced, replaced_item
from .slots import Model, Slot
from .steps import StepCounter
from .tensors import Call


class SlotStack(threading.local):
    """The attention modules that are running in this thread, innermost last."""

    def __init__(self) -> None:
        self._running: list[Slot] = []
        self._numbered: list[Slot] = []  # of a model that is compiled: by the modules' numbers

    def clear(self) -> None:
        """Forgets what ran, for a forward that begins after one that was cut off."""
        self._running.clear()
        TRACED.running.clear()
        TRACED.frames.clear()

    @property
    def innermost(self) -> Slot | None:
        """The module whose forward runs; None outside of all."""
        if TRACED.running:
            return self.numbered(int(TRACED.running[-1]))
        return self._running[-1] if self._running else None

    def numbered(self, number: int) -> Slot | None:
        """The module that has the number in a compiled model; None where it is none of the slots'."""
        return self._numbered[number] if number >= 0 else None

    def install(self, stack: contextlib.ExitStack, model: Model) -> None:
        """Watches the forwards of the model's attention modules until `stack` is closed.

        Raises CaptureError where it is compiled in a way that lets no call out.
        """
        called = [model.as_called(name) for name in model.transformers]
        for module in called:
            check_compiled(module)
        slots = model.all_slots()
        if any(is_compiled(module) for module in called):
            self._numbered = slots
            number_modules(stack, [(s.name, s.module) for s in slots], model.like_slots())
            return
        for slot in slots:
            stack.callback(slot.module.register_forward_pre_hook(self._enter(slot)).remove)
            stack.callback(slot.module.register_forward_hook(self._leave(slot), always_call=True).remove)

    def _enter(self, slot: Slot) -> Callable[..., None]:
        def enter(module: torch.nn.Module, args: Any) -> None:
            if torch.compiler.is_compiling():
                refuse_compiled(COMPILED_MEANWHILE)
            elif module is slot.module:  # and no copy of it, which has its hooks
                self._running.append(slot)

        return enter

    # A function, since copy.deepcopy() of the model takes methods apart, and their owner with them.
    def _leave(self, slot: Slot) -> Callable[..., None]:
        def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
            if not torch.compiler.is_compiling() and module is slot.module and self._running:
                self._running.pop()

        return leave


def watch_scheduler(
    stack: contextlib.ExitStack, owner: Any, counter: StepCounter, say: Callable[[str], None]
) -> None:
    """Moves `counter` on after each step() of the scheduler of the pipeline `owner`, if it has one; `say` gets
    a line where it is set anew after steps.

    The class is watched, not the object: pipelines copy their scheduler, and a copy of an object with a
    function of its own would go on with the state of the first.
    """
    cls = type(getattr(owner, "scheduler", None))
    real = getattr(cls, "step", None)
    if not callable(real):
        return

    @functools.wraps(real)
    def step(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        counter.move_on()
        return result

    stack.enter_context(replaced(cls, "step", step))
    set_real = getattr(cls, "set_timesteps", None)
    if not callable(set_real):
        return

    @functools.wraps(set_real)
    def set_timesteps(*args: Any, **kwargs: Any) -> Any:
        if counter.steps:
            say(
                f"the scheduler was set anew after step {counter.steps - 1}, by another run of the pipeline or "
                f"another stage: what follows is counted from step {counter.steps}"
            )
        return set_real(*args, **kwargs)

    stack.enter_context(replaced(cls, "set_timesteps", set_timesteps))


class CallHooks:
    """Sees every attention call once, wherever it is made, and hands it to `seen` after it was computed.

    A library's function that ends in another one that is watched (a dispatcher in
    scaled_dot_product_attention) is seen there, as the kernel gets it; a user's own function is seen itself,
    whatever it calls. Thread-safe. Of code that torch.compile compiles the graph gets an operator that hands
    the call with its module's number to `compiled` whenever the graph runs. refused: gets why a call
    could not be told, and whether compiled code made it, of which nobody knows the module.
    """

    def __init__(
        self,
        seen: Callable[[Call], None],
        compiled: Callable[[int, Call], None],
        refused: Callable[[CaptureError, bool], None],
    ) -> None:
        self._seen = seen
        self._compiled = compiled
        self._refused = refused
        self._local = threading.local()

    def run(self, owns: bool, compute: Callable[[], Any], tell: Callable[[Any], Call]) -> Any:
        """compute()'s result; `tell` makes the call of it. owns: calls within are parts of this one."""
        compiling = torch.compiler.is_compiling()
        # Of calls that run: [owns, calls within].
        frames = TRACED.frames if compiling else self._local.__dict__.setdefault("frames", [])
        frame = [owns, 0]
        frames.append(frame)
        try:
            result = compute()
        finally:
            frames.pop()
        if frames:
            frames[-1][1] += 1
        if (owns or not frame[1]) and not any(outer for outer, _ in frames):
            if compiling:
                hand_out(lambda: tell(result))
            else:
                with torch.no_grad():  # what is computed of the call is no part of the model's graph
                    self._see(lambda: tell(result))
        return result

    def install(self, stack: contextlib.ExitStack, slots: Iterable[Slot]) -> None:
        """Watches scaled_dot_product_attention, the backends of diffusers' dispatcher, transformers'
        attention functions and those that wrap() made, until `stack` is closed."""
        receive_calls(stack, self._compiled, lambda error: self._refused(error, True))
        self._replace_function(stack, slots)
        dispatch = sys.modules.get("diffusers.models.attention_dispatch")
        backends = getattr(getattr(dispatch, "_AttentionBackendRegistry", None), "_backends", {})
        for name, real in list(backends.items()):
            stack.enter_context(replaced_item(backends, name, self._backend(name, real)))
        watch_linear(stack, self.run)
        for name, real in list(transformers_functions().items()):
            watched = self._transformers(name, real)
            stack.enter_context(replaced_item(transformers_functions(), name, watched))
        self._watch_eager(stack)
        _LISTENING.append(self)
        stack.callback(_LISTENING.remove, self)

    def _watch_eager(self, stack: contextlib.ExitStack) -> None:
        """Watches the functions that models hand to transformers' table as what it has for "eager"."""
        interface = attention_interface()
        real = getattr(interface, "get_interface", None)
        if real is None:
            return
        watched: dict[Callable[..., Any], Callable[..., Any]] = {}

        @functools.wraps(real)
        def get_interface(table: Any, attn_implementation: str, default: Callable[..., Any]) -> Callable[..., Any]:
            found = real(table, attn_implementation, default)
            if found is not default:
                return found
            if default not in watched:
                watched[default] = self._transformers(EAGER, default)
            return watched[default]

        stack.enter_context(replaced(interface, "get_interface", get_interface))

    def _see(self, tell: Callable[[], Call]) -> None:
        try:
            call = tell()
        except CaptureError as error:
            self._refused(error, False)
        else:
            self._seen(call)

    def _backend(self, name: Any, real: Callable[..., Any]) -> Callable[..., Any]:
        word = str(getattr(name, "value", name))

        @functools.wraps(real)
        def backend(**given: Any) -> Any:
            # Kernels get what several processes exchange in it; what each has of its own is seen here.
            owns = is_exchanged(given)
            return self.run(owns, lambda: real(**given), lambda out: dispatched_call(word, given, out))

        return backend

    def _transformers(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def attention(
            module: Any,
            query: Any,
            key: Any,
            value: Any,
            attention_mask: Any = None,
            *rest: Any,
            **given: Any,
        ) -> Any:
            named = {"query": query, "key": key, "value": value, "attention_mask": attention_mask, **given}
            # Of one query, the heads that share a key head are handed on as if they were its queries.
            packed = query.shape[2] == 1 and query.shape[1] != key.shape[1]
            return self.run(
                packed,
                lambda: real(module, query, key, value, attention_mask, *rest, **given),
                lambda out: transformers_call(name, module, named, out),
            )

        return attention

    def _replace_function(self, stack: contextlib.ExitStack, slots: Iterable[Slot]) -> None:
        real = F.scaled_dot_product_attention
        spy = self._function(real)
        stack.enter_context(replaced(F, "scaled_dot_product_attention", spy))
        # Modules that did "from torch.nn.functional import scaled_dot_product_attention".
        names: set[str] = set()
        for slot in slots:
            for cls in {type(slot.module), type(getattr(slot.module, "processor", None))}:
                names.add(cls.__module__)
        for name in names - {"builtins", F.__name__}:
            module = sys.modules.get(name)
            for attribute in [k for k, v in vars(module).items() if v is real] if module else []:
                stack.enter_context(replaced(module, attribute, spy))

    def _function(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def scaled_dot_product_attention(
            query: torch.Tensor,
            key: torch.Tensor,
            value: torch.Tensor,
            attn_mask: torch.Tensor | None = None,
            dropout_p: float = 0.0,
            is_causal: bool = False,
            scale: float | None = None,
            **more: Any,
        ) -> torch.Tensor:
            known = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
            parts = (query, key, value, attn_mask)
            # Who answers in the function's place knows it by its name in PyTorch, where it has to stand then.
            answered = not torch.compiler.is_compiling() and has_torch_function(parts)

            def compute() -> torch.Tensor:
                if not answered:
                    return real(query, key, value, **known, **more)
                with replaced(F, "scaled_dot_product_attention", real):
                    return real(query, key, value, **known, **more)

            def tell(out: torch.Tensor) -> Call:
                mask, dropout, causal = entries_of(attn_mask, query), float(dropout_p), bool(is_causal)
                return Call(query, key, value, out, mask, dropout, causal, scale, answered=answered)

            return self.run(False, compute, tell)

        return scaled_dot_product_attention


def entries_of(mask: Any, query: torch.Tensor) -> Any:
    """A mask as a tensor that has its entries: PyTorch's CausalBias only stands for them."""
    if type(mask).__name__ != "CausalBias" or not hasattr(mask, "_materialize"):
        return mask
    return mask._materialize(query.device)


_LISTENING: list[CallHooks] = []  # of the capture that runs


def transformers_functions() -> dict[str, Callable[..., Any]]:
    """The attention functions that models of transformers look up by name; empty without transformers."""
    return getattr(attention_interface(), "_global_mapping", {})


def attention_interface() -> Any:
    """The class of transformers' tables of attention functions; None without transformers."""
    return getattr(sys.modules.get("transformers.modeling_utils"), "AttentionInterface", None)


def wrap(
    function: Callable[..., Any], *, layout: str = "bhsd", approximation: str | None = None
) -> Callable[..., Any]:
    """An attention function of one's own that captures see: the same function, recorded as one call.

    Its first three arguments are q, k and v, [B, H, N, d] each, or [B, N, H, d] with layout="bshd", and so
    is its result (or the first of a tuple). mask, scale, causal and dropout are known by their usual names.
    Raises CaptureError during a capture where another argument is given, or where the result is not
    softmax(scale·QKᵀ + mask)·V; `approximation` names a kernel that is not exactly that by design (sparse,
    quantised), so that `attnscope verify` measures it instead of complaining. Without a capture the function
    is called and nothing else.
    """
    if layout not in ("bhsd", "bshd"):
        raise CaptureError(f'wrap: expected layout "bhsd" or "bshd" (got {layout!r})')

    @functools.wraps(function)
    def attention(*args: Any, **kwargs: Any) -> Any:
        if not _LISTENING:
            return function(*args, **kwargs)
        return _LISTENING[-1].run(
            True,
            lambda: function(*args, **kwargs),
            lambda out: own_call(function, layout, args, kwargs, out, approximation),
        )

    return attention
