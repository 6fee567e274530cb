"""Models that the lines of docs/capture.md are run with where no pipeline of diffusers will do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.distributed
import torch.nn.functional as F


def language_model() -> Any:
    """Llama with sixteen layers, random weights and twenty words."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 16}
    return LlamaForCausalLM(LlamaConfig(vocab_size=20, num_hidden_layers=16, **sizes)).eval()


class Rolling(torch.nn.Module):
    """A video model of somebody's own: attends to a cache that it is given, and to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.ModuleDict({"attn": CachedAttention()})])

    def forward(self, x: torch.Tensor, t: float, kv_cache: torch.Tensor) -> torch.Tensor:
        return self.blocks[0]["attn"](x, kv_cache)


class CachedAttention(torch.nn.Module):
    """One head; the cache holds what was projected before."""

    def __init__(self) -> None:
        super().__init__()
        self.to_qkv = torch.nn.Linear(8, 24)

    def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        q, k, v = (t[:, None] for t in self.to_qkv(x).chunk(3, dim=2))
        keys, values = (torch.cat([cache[:, None], t], 2) for t in (k, v))
        return F.scaled_dot_product_attention(q, keys, values)[:, 0]


class Pipe:
    """A call is one forward of FLUX with random weights."""

    def __init__(self) -> None:
        from parallel_runs import flux

        torch.manual_seed(0)
        self.transformer, self._inputs = flux()
        self.transformer.eval()

    def __call__(self, prompt: str) -> Any:
        with torch.no_grad():
            self.transformer(**self._inputs, timestep=torch.ones(1), return_dict=False)
        return SimpleNamespace(images=[None])


@contextlib.contextmanager
def on_this_machine() -> Iterator[None]:
    """Answers questions about accelerators for the CPU, as parallel_runs.py does it."""
    from diffusers.models import attention_dispatch

    from parallel_runs import plain_kernel

    begin = torch.distributed.init_process_group
    with (
        mock.patch.object(torch.distributed, "init_process_group", lambda _: begin("gloo")),
        mock.patch.object(torch.accelerator, "device_count", lambda: 1),
        mock.patch.object(attention_dispatch, "_native_attention_forward_op", plain_kernel),
    ):
        yield
        torch.distributed.destroy_process_group()
