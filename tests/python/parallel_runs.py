"""Small random models of diffusers, run by several processes: what test_parallel.py has torchrun start.

parallel_runs.py OUT CASE…: CASE is MODEL:CONFIG, CONFIG "tp" or options of ContextParallelConfig ("one":
none), as flux:ring_degree=2,ulysses_degree=2; each goes into OUT/CASE. Gloo, on the CPU.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed

import test_models_image
import test_models_video
from attnscope_capture import capture


def picture_ids(rows: int, columns: int) -> torch.Tensor:
    return torch.cartesian_prod(torch.zeros(1), torch.arange(float(rows)), torch.arange(float(columns)))


def flux(rows: int = 4, columns: int = 6, text: int = 8) -> tuple[Any, dict[str, Any]]:
    from diffusers import FluxTransformer2DModel

    model = FluxTransformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=8,
        pooled_projection_dim=8,
        axes_dims_rope=(4, 4, 8),
    )
    return model, {
        "hidden_states": torch.randn(1, rows * columns, 4),
        "encoder_hidden_states": torch.randn(1, text, 8),
        "pooled_projections": torch.randn(1, 8),
        "img_ids": picture_ids(rows, columns),
        "txt_ids": torch.zeros(text, 3),
    }


def odd() -> tuple[Any, dict[str, Any]]:
    """Text and picture whose halves are no whole numbers."""
    return flux(5, 5, 7)


def kontext() -> tuple[Any, dict[str, Any]]:
    """A reference picture behind the image, which is split with it."""
    model, inputs = flux()
    reference = picture_ids(2, 4)
    reference[:, 0] = 1
    inputs["hidden_states"] = torch.randn(1, 32, 4)
    inputs["img_ids"] = torch.cat([inputs["img_ids"], reference])
    return model, inputs


def wan(**more: Any) -> tuple[Any, dict[str, Any]]:
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=4,
        attention_head_dim=12,
        in_channels=4,
        out_channels=4,
        text_dim=16,
        freq_dim=32,
        ffn_dim=32,
        num_layers=2,
        **more,
    )
    return model, {
        "hidden_states": torch.randn(1, 4, 3, 8, 8),
        "encoder_hidden_states": torch.randn(1, 512 if more else 10, 16),
    }


def wan_image() -> tuple[Any, dict[str, Any]]:
    """With image keys, in a call of their own."""
    model, inputs = wan(image_dim=8, added_kv_proj_dim=48)
    return model, {**inputs, "encoder_hidden_states_image": torch.randn(1, 5, 8)}


def qwen() -> tuple[Any, dict[str, Any]]:
    """With a padded prompt, whose mask is split as well."""
    from diffusers import QwenImageTransformer2DModel

    model = QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=16,
        out_channels=4,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=16,
        axes_dims_rope=(8, 4, 4),
    )
    return model, {
        "hidden_states": torch.randn(1, 24, 16),
        "encoder_hidden_states": torch.randn(1, 8, 16),
        "encoder_hidden_states_mask": (torch.arange(8) < 6).long()[None],
        "img_shapes": [[(1, 4, 6)]],
    }


def holes() -> tuple[Any, dict[str, Any]]:
    """With a prompt whose padding stands among its words."""
    model, inputs = qwen()
    inputs["encoder_hidden_states_mask"] = torch.tensor([[1, 1, 0, 1, 0, 0, 1, 0]])
    return model, inputs


def ltx() -> tuple[Any, dict[str, Any]]:
    from diffusers import LTXVideoTransformer3DModel

    model = LTXVideoTransformer3DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=4,
        attention_head_dim=8,
        cross_attention_dim=32,
        num_layers=2,
        caption_channels=16,
    )
    return model, {
        "hidden_states": torch.randn(1, 48, 4).repeat(2, 1, 1),
        "encoder_hidden_states": torch.randn(2, 8, 16),
        "encoder_attention_mask": None,
        "num_frames": 2,
        "height": 4,
        "width": 6,
    }


def flux2() -> tuple[Any, dict[str, Any]]:
    """With a reference picture; its halves are no whole numbers."""
    from diffusers import Flux2Transformer2DModel

    model, inputs = test_models_image.flux2(Flux2Transformer2DModel)
    return model, inputs | {n: inputs[n][None] for n in ("img_ids", "txt_ids")}


def ltx2() -> tuple[Any, dict[str, Any]]:
    """Video and audio that do not attend to each other, which diffusers cannot split; the video is split,
    the audio is not. Masks would be refused by the kernel: they have all heads, and a process some."""
    from diffusers import LTX2VideoTransformer3DModel

    make = test_models_video.ltx2(isolate_modalities=True)
    model, inputs = make(LTX2VideoTransformer3DModel)
    return model, {n: None if n.endswith("attention_mask") else v for n, v in inputs.items()}


MODELS = {f.__name__: f for f in (flux, odd, kontext, flux2, wan, wan_image, qwen, holes, ltx, ltx2)}


def record(model: Any, inputs: dict[str, Any], out: Path) -> None:
    """One step: a batch of both branches, or a forward for each."""
    options = {"branch": "both", "force": True, "quiet": True}
    hidden = inputs["hidden_states"]
    if len(hidden) == 1:
        options |= {"branches": ("cond", "uncond"), "guidance": "forwards"}
    with torch.no_grad(), capture(model, out, **options):
        for scale in (1.0, 0.5)[: 3 - len(hidden)]:
            model(**inputs | {"hidden_states": hidden * scale}, return_dict=False)


def run_case(case: str, out: Path) -> None:
    name, config = case.split(":")
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    inputs["timestep"] = torch.ones(len(inputs["hidden_states"]))
    with parallel(model.eval(), config):
        record(model, inputs, out / case)


@contextlib.contextmanager
def parallel(model: Any, config: str) -> Iterator[None]:
    """`model` as `config` shares it out. What diffusers asks of accelerators is answered for the CPU."""
    if config == "one":
        yield
        return
    from diffusers import ContextParallelConfig, TensorParallelConfig
    from diffusers.hooks import context_parallel, tensor_parallel
    from diffusers.models import attention_dispatch

    options = dict(word.split("=") for word in config.split(",") if "=" in word)
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch.accelerator, "device_count", lambda: 1))
        stack.enter_context(mock.patch.object(tensor_parallel, "_SUPPORTED_TP_DEVICES", ("cpu",)))
        if config == "tp":
            model.enable_parallelism(config=TensorParallelConfig(tp_degree=2))
        else:
            context = ContextParallelConfig(**{n: int(v) for n, v in options.items()})
            model.enable_parallelism(config=context)
        if "ring" in config:
            op = "_native_attention_forward_op"
            stack.enter_context(mock.patch.object(attention_dispatch, op, plain_kernel))
        if "anything" in config:
            stack.enter_context(mock.patch.object(context_parallel, "_all_gather_anything", gathered))
        yield


def gathered(tensor: torch.Tensor, dim: int, group: Any) -> torch.Tensor:
    """All processes' parts of the model's result, of unequal lengths, which gloo does not gather."""
    parts: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(parts, tensor, group)
    return torch.cat(parts, dim)


def plain_kernel(
    ctx: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    *_: Any,
    **__: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(result, log-sum-exp), as ring attention needs it and no kernel of PyTorch's for the CPU tells."""
    q, k, v = (t.transpose(1, 2) for t in (query, key, value))
    logits = q @ k.transpose(2, 3) * (q.shape[-1] ** -0.5 if scale is None else scale)
    logits = logits if mask is None else logits.masked_fill(~mask, -torch.inf)
    out = logits.softmax(-1) @ v
    return out.transpose(1, 2), logits.logsumexp(-1).transpose(1, 2)


def main() -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    for case in sys.argv[2:]:
        run_case(case, Path(sys.argv[1]))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
