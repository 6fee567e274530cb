#!/usr/bin/env python3
"""Measures the cost of a probe: a model with random weights runs with and without one, in turns, in one process.

Usage: python3 bench/probe_overhead.py [--model small|mid] [--rounds N] [--threads N] [--steps N] [--json]

Needs the installed package attnscope, PyTorch and diffusers. `small` is the CogVideoX of samples/capture, `mid` one of
4 layers, 8 heads of 64 channels and 2 026 tokens (226 of text). Prints, as the least of the rounds: seconds of a step
without a probe, in a step that is not measured (the hooks alone), and with every head of every layer measured, by
product; the ratio of each to a step without one; what the probe itself says it took; and the bytes a head in the table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import attnscope
from attnscope.capture import CaptureError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "samples" / "capture"))

import small_models  # noqa: E402

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "stats": ("stats", {"products": "stats"}),
    "sampled": ("stats, sample=256", {"products": "stats", "sample": 256}),
    "pooled": ("pooled:64", {"products": "pooled:64"}),
    "mask": ("mask:spatial:frames=1", {"products": "mask:spatial:frames=1"}),
    "all": ("all three", {"products": ["stats", "pooled:64", "mask:spatial:frames=1"]}),
    "half": ("all three, every=2", {"products": ["stats", "pooled:64", "mask:spatial:frames=1"], "every": 2}),
}


def mid_model() -> tuple[Any, Callable[[int], None]]:
    """A CogVideoX transformer of 5 frames of 18×20 tokens, and a function that runs steps of it."""
    from diffusers import CogVideoXTransformer3DModel

    model = CogVideoXTransformer3DModel(
        num_attention_heads=8,
        attention_head_dim=64,
        in_channels=16,
        out_channels=16,
        time_embed_dim=64,
        text_embed_dim=64,
        num_layers=4,
        sample_width=40,
        sample_height=36,
        sample_frames=17,
        patch_size=2,
        max_text_seq_length=226,
        use_rotary_positional_embeddings=False,
    )
    model = small_models._ready(model, torch.float32)
    latents, text = torch.randn(1, 5, 16, 36, 40), torch.randn(1, 226, 64)

    def run(steps: int) -> None:
        with torch.no_grad():
            for step in range(steps):
                model(latents, text, torch.tensor([1000 - step]))

    return model, run


def small_model() -> tuple[Any, Callable[[int], None]]:
    small = small_models.cogvideox()
    def run(steps: int) -> None:
        small.run(steps)

    return small.pipe, run


def seconds(run: Callable[[int], None], steps: int) -> float:
    begin = time.perf_counter()
    run(steps)
    return (time.perf_counter() - begin) / steps


def measure(args: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    model, run = small_model() if args.model == "small" else mid_model()
    options: dict[str, Any] = {"quiet": True, "force": True, "branch": "cond"}
    if args.engine_threads:
        options["threads"] = args.engine_threads
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in ("none", "hooks", *CASES)}
    run(1)
    for _ in range(args.rounds):
        rounds["none"].append({"step": seconds(run, args.steps)})
        with contextlib.suppress(CaptureError):  # that nothing was measured
            with attnscope.probe(model, folder / "hooks.h5", steps="1000", **options):
                rounds["hooks"].append({"step": seconds(run, args.steps)})
        for name, (_, more) in CASES.items():
            out = folder / f"{name}.h5"
            with attnscope.probe(model, out, **more, **options) as probe:
                step = seconds(run, args.steps)
            told = sum(probe.overhead.values()) / args.steps
            rounds[name].append({"step": step, "told": told, "bytes": out.stat().st_size / probe.heads})
    return {name: {key: min(r[key] for r in found) for key in found[0]} for name, found in rounds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model", default="small", choices=["small", "mid"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch; 0: as many as it takes")
    parser.add_argument("--engine-threads", type=int, default=0, help="of attnscope; 0: as many as it takes")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(args, Path(folder))
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    titles = {"none": "no probe", "hooks": "a step that is not measured", **{n: t for n, (t, _) in CASES.items()}}
    print(f"{'':30}" + "".join(f" {head:>12}" for head in ("a step, s", "ratio", "measuring, s", "bytes a head")))
    for name, row in found.items():
        line = f"{titles[name]:30} {row['step']:12.4f} {row['step'] / found['none']['step']:12.2f}"
        if "told" in row:
            line += f" {row['told']:12.4f} {row['bytes']:12.0f}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
