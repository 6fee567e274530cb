#!/usr/bin/env python3
"""Measures the cost of a capture: a transformer of one shape runs with and without one, in turns, in one process.

Usage: PYTHONPATH=python python3 bench/capture_overhead.py [--grid TxHxW] [--rounds N] [--device cpu|cuda] …

Needs PyTorch and safetensors. Prints, as the least of the rounds: seconds of a forward without a capture,
in a step that is not recorded (the hooks alone), and with every layer recorded, without v and with it;
processor seconds of all threads, the writing of the files included, and their ratio to those without a
capture; how much of it is copying; what the disk needs after the forward; and the bytes of a call.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F

from attnscope import capture as recorder


class Attention(torch.nn.Module):
    """Self-attention with its projections, as a video transformer has them."""

    def __init__(self, heads: int, channels: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(heads * channels, 3 * heads * channels)
        self.out = torch.nn.Linear(heads * channels, heads * channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(torch.nn.Module):
    """Attention and a feed-forward layer of four times the width."""

    def __init__(self, heads: int, channels: int) -> None:
        super().__init__()
        width = heads * channels
        self.attn = Attention(heads, channels)
        self.ff = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(F.layer_norm(x, x.shape[-1:]))
        return x + self.ff(F.layer_norm(x, x.shape[-1:]))


class Transformer(torch.nn.Module):
    def __init__(self, layers: int, heads: int, channels: int) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(heads, channels) for _ in range(layers))

    def forward(self, x: torch.Tensor, timestep: float) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Clock:
    """Seconds that a function of the recorder takes while it is replaced."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def of(self, cls: type, name: str) -> mock._patch:
        real = getattr(cls, name)

        def timed(*args: object, **kwargs: object) -> object:
            begin = time.perf_counter()
            try:
                return real(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - begin

        return mock.patch.object(cls, name, timed)


def finish(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def forward(model: torch.nn.Module, x: torch.Tensor, device: str) -> dict[str, float]:
    """Seconds of one forward, and of processor time in all threads."""
    begin, used = time.perf_counter(), time.process_time()
    model(x, 1.0)
    finish(device)
    return {"forward": time.perf_counter() - begin, "processor": time.process_time() - used}


def captured(model: torch.nn.Module, x: torch.Tensor, folder: Path, device: str, **options: object) -> dict:
    """Measures a forward under a capture; its processor seconds include the writing of the files."""
    copies = Clock()
    with copies.of(recorder.Snapshot, "take"):
        with recorder.capture(model, folder, force=True, quiet=True, **options) as cap:
            found = forward(model, x, device)
            begin, used = time.perf_counter(), time.process_time()
            cap.writer.settle(keep=True)
            cap.writer.close()
            found["processor"] += time.process_time() - used
            found["waiting"] = time.perf_counter() - begin
    return {**found, "copying": copies.seconds, "bytes": cap.writer.bytes, "calls": len(cap.writer.calls)}


def measure(args: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    torch.manual_seed(1)
    dtype = getattr(torch, args.dtype)
    model = Transformer(args.layers, args.heads, args.channels).to(args.device, dtype).eval()
    frames, height, width = (int(n) for n in args.grid.split("x"))
    x = torch.randn(1, frames * height * width, args.heads * args.channels, device=args.device, dtype=dtype)
    rounds: dict[str, list[dict]] = {"none": [], "hooks": [], "qk": [], "qkv": []}
    if args.compile:
        model = torch.compile(model, backend=args.compile, fullgraph=True)
    with torch.no_grad():
        forward(model, x, args.device)
        captured(model, x, folder / "first", args.device)  # for which code is compiled anew
        for _ in range(args.rounds):
            rounds["none"].append(forward(model, x, args.device))
            rounds["hooks"].append(hooks_alone(model, x, folder, args.device))
            rounds["qk"].append(captured(model, x, folder / "qk", args.device, values=False))
            rounds["qkv"].append(captured(model, x, folder / "qkv", args.device))
    return {
        name: {key: min(r[key] for r in found) for key in found[0]}
        for name, found in rounds.items()
    }


def hooks_alone(model: torch.nn.Module, x: torch.Tensor, folder: Path, device: str) -> dict[str, float]:
    """Measures a forward under a capture in a step that is not recorded."""
    found: dict[str, float] = {}
    with contextlib.suppress(recorder.CaptureError):  # that nothing was recorded
        with recorder.capture(model, folder / "hooks", force=True, quiet=True, steps=1):
            found = forward(model, x, device)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--grid", default="6x24x32", help="tokens: frames, rows, columns")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--channels", type=int, default=64, help="of a head")
    parser.add_argument("--dtype", default="float32", choices=["float16", "bfloat16", "float32"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--compile", metavar="BACKEND", help="torch.compile the model: inductor, eager …")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch; 0: as many as it takes")
    parser.add_argument("--out", help="folder for the dumps (default: a temporary one)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory(dir=args.out) as folder:
        found = measure(args, Path(folder))
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    base = found["none"]["processor"]
    heads = ("forward, s", "processor, s", "ratio of it", "copying, s", "disk after, s", "a call")
    print(f"{'':28}" + "".join(f" {head:>13}" for head in heads))
    for name, title in (
        ("none", "no capture"),
        ("hooks", "a step that is not recorded"),
        ("qk", "q and k of every layer"),
        ("qkv", "q, k and v of every layer"),
    ):
        row = found[name]
        line = f"{title:28} {row['forward']:13.3f} {row['processor']:13.3f} {row['processor'] / base:13.3f}"
        if "bytes" in row:
            each = recorder.readable(row["bytes"] / row["calls"])
            line += f" {row['copying']:13.3f} {row['waiting']:13.3f} {each:>13}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
