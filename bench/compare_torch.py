#!/usr/bin/env python3
"""Times attnscope's export beside the chunked PyTorch code that people write for the same job.

Needs torch, numpy, h5py and safetensors. Both write one head of S x S weights, f16 x 2^14, to a
closed HDF5 file; runs alternate, and the medians and their ratio are printed.

    python3 bench/compare_torch.py build/release/bin/attnscope
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time

import h5py
import torch
from safetensors.torch import save_file

from torch_peers import weight_blocks


def torch_rows(q, k, path, block, logits_dtype):
    """Row blocks: logits, softmax, x 2^14, fp16, written as rows."""
    with h5py.File(path, "w") as file:
        out = file.create_dataset("weights", (len(q), len(k)), dtype="f2")
        for begin, weights in weight_blocks(q, k, block, logits_dtype):
            out[begin : begin + block] = weights.numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attnscope")
    parser.add_argument("--tokens", type=int, default=17776)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    shape = (1, 1, args.tokens, args.head_dim)
    q, k = torch.randn(shape).bfloat16(), torch.randn(shape).bfloat16()
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "head.safetensors")
        save_file({"q": q, "k": k}, capture, metadata={"format": "attnscope-capture/1"})
        out = os.path.join(folder, "out.h5")

        def ours():
            command = [args.attnscope, "export", capture, "-o", out, "--no-sync", "--quiet"]
            subprocess.run(command + ["--threads", str(args.threads)], check=True)

        ways = {
            "attnscope export (whole process)": ours,
            "torch fp32, 256 rows": lambda: torch_rows(q[0, 0], k[0, 0], out, 256, torch.float32),
            "torch bf16 logits, 64 rows": lambda: torch_rows(
                q[0, 0], k[0, 0], out, 64, torch.bfloat16
            ),
        }
        seconds = {name: [] for name in ways}
        for run in range(args.runs + 1):
            for name, way in ways.items():
                if os.path.exists(out):
                    os.unlink(out)
                start = time.perf_counter()
                way()
                if run > 0:  # the first round warms caches and the allocator
                    seconds[name].append(time.perf_counter() - start)
        first = statistics.median(seconds["attnscope export (whole process)"])
        for name, values in seconds.items():
            median = statistics.median(values)
            print(f"{name:36s} {median:7.3f} s  ({min(values):.3f} to {max(values):.3f})"
                  f"  x{median / first:.2f}")


if __name__ == "__main__":
    main()
