#!/usr/bin/env python3
"""Times `attnscope stats` beside the PyTorch code that people write for the same numbers.

Needs torch and safetensors. Both take entropy, largest weight, column mass, mass by frame and the
16 x 16 block maxima and means of one head from bf16 Q and K; runs alternate, and medians and ratios
are printed. attnscope runs as a whole process and computes more besides (see docs/metrics.md); the
blocks are a second process, which is counted too.

    python3 bench/peers.py build/release/bin/attnscope
    python3 bench/peers.py build/release/bin/attnscope --grid 33x45x80 --text 256 --head-dim 128 \\
        --torch-rows 5888
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time

import torch
from safetensors.torch import save_file

from torch_peers import head_metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attnscope")
    parser.add_argument("--grid", default="13x30x45")
    parser.add_argument("--text", type=int, default=226)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--rows", type=int, default=256, help="rows a block of the torch code")
    parser.add_argument("--torch-rows", type=int, help="time torch on the first N rows and scale")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    frames, height, width = map(int, args.grid.split("x"))
    size = args.text + frames * height * width
    shape = (1, 1, size, args.head_dim)
    q, k = torch.randn(shape).bfloat16(), torch.randn(shape).bfloat16()
    torch_rows = min(args.torch_rows or size, size)
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "head.safetensors")
        facts = {"format": "attnscope-capture/1", "grid": args.grid}
        facts["text"] = f"{args.text}@start" if args.text else "none"
        save_file({"q": q, "k": k}, capture, metadata=facts)
        common = ["--quiet", "--threads", str(args.threads)]
        pooled = os.path.join(folder, "pooled.h5")

        def stats():
            command = [args.attnscope, "stats", capture, "--json"]
            subprocess.run(command + common, check=True, stdout=subprocess.DEVNULL)

        def blocks():
            command = [args.attnscope, "export", capture, "--block", "16", "-o", pooled, "--force"]
            subprocess.run(command + ["--no-sync"] + common, check=True)

        ways = {
            "attnscope stats": stats,
            "attnscope export --block 16": blocks,
            "torch fp32": lambda: head_metrics(
                q[0, 0, :torch_rows], k[0, 0], args.text, frames, args.rows
            ),
        }
        scale = {"torch fp32": size / torch_rows}
        seconds = {name: [] for name in ways}
        for run in range(args.runs + 1):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                if run > 0:  # the first round warms caches and the allocator
                    seconds[name].append((time.perf_counter() - start) * scale.get(name, 1))
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        print(f"S = {size}, d = {args.head_dim}, {args.threads} threads")
        for name, values in seconds.items():
            print(f"{name:30s} {medians[name]:8.3f} s  ({min(values):.3f} to {max(values):.3f})")
        print(f"torch / stats                  {medians['torch fp32'] / medians['attnscope stats']:8.2f}")


if __name__ == "__main__":
    main()
