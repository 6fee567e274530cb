#!/usr/bin/env python3
"""Times the rows' normalisers of one head, LSE = log sum exp(scale q k), beside PyTorch's ways to them.

Needs torch and numpy. Both work on the same shape of random bf16 Q and K, without reading or writing
anything: `attnscope bench --case lse,metrics` in a process of its own, and in this one

    float32            row blocks of a float32 product, torch.logsumexp
    bf16 product       row blocks of a bf16 product, torch.logsumexp of them in float32
    flash SDPA         the CPU's flash attention, which computes the output as well
    flex, compiled     torch.compile(flex_attention)(..., return_lse=True), the output as well

in turn, with the error of each on some rows against float64 beside it. What does not run here is named,
with the reason.

    python3 bench/lse_peers.py build/release/bin/attnscope
    python3 bench/lse_peers.py build/release/bin/attnscope --tokens 32760 --head-dim 128
"""

import argparse
import json
import os
import statistics
import subprocess
import time

import torch

from torch_peers import head_metrics, row_lse


def bf16_lse(q, k, rows):
    """Row blocks of a bf16 product; a row's terms are summed in float32."""
    dim = q.shape[1]
    blocks = []
    for begin in range(0, len(q), rows):
        logits = (q[begin : begin + rows] @ k.T).float() * dim**-0.5
        blocks.append(torch.logsumexp(logits, -1))
    return torch.cat(blocks)


def flash_lse(q, k, v):
    """The CPU's flash attention; what it returns beside the output are the normalisers."""
    function = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return function(q[None, None], k[None, None], v[None, None])[1].reshape(-1)


def compiled_flex():
    """flex_attention, compiled at its first call."""
    from torch.nn.attention.flex_attention import flex_attention

    compiled = torch.compile(flex_attention)

    def lse(q, k, v):
        return compiled(q[None, None], k[None, None], v[None, None], return_lse=True)[1].reshape(-1)

    return lse


def largest_error(lse, q, k, rows):
    """Against float64, on some rows."""
    exact = torch.logsumexp((q[rows].double() @ k.double().T) * q.shape[1] ** -0.5, -1)
    return (lse[rows].double() - exact).abs().max().item()


def attnscope_seconds(program, args):
    """Seconds of the LSE pass and of all numbers of stats."""
    command = [program, "bench", "--json", "--quiet", "--case", "lse,metrics", "--repeats", "3"]
    command += ["--head", f"{args.tokens}x{args.head_dim}", "--threads", str(args.threads)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [result["seconds"] for result in report["results"]], report["machine"]["backend"]


def torch_ways(args, q, k, v):
    """(name, what it runs, whether it gives the normalisers)."""
    ways = [
        ("float32", lambda: row_lse(q, k, args.rows), True),
        ("bf16 product", lambda: bf16_lse(q, k, args.rows), True),
        ("flash SDPA", lambda: flash_lse(q, k, v), True),
        ("metrics, float32", lambda: head_metrics(q, k, 0, 16, args.rows), False),
    ]
    if not args.no_flex:
        flex = compiled_flex()
        ways.insert(3, ("flex, compiled", lambda: flex(q, k, v), True))
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attnscope")
    parser.add_argument("--tokens", type=int, default=17776)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--rows", type=int, default=256, help="rows a block of the torch code")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--no-flex", action="store_true", help="leave the compiled one out")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    q, k, v = (torch.randn(args.tokens, args.head_dim).bfloat16() for _ in range(3))
    checked = torch.linspace(0, args.tokens - 1, 16).long()

    seconds = {"attnscope lse": [], "attnscope metrics": []}
    errors, failures = {}, {}
    ways = torch_ways(args, q, k, v)
    for run in range(args.runs + 1):
        (lse, metrics), backend = attnscope_seconds(args.attnscope, args)
        if run > 0:  # the first round warms caches, the allocator and the compiler
            seconds["attnscope lse"].append(lse)
            seconds["attnscope metrics"].append(metrics)
        for name, way, gives_lse in ways:
            if name in failures:
                continue
            start = time.perf_counter()
            try:
                result = way()
            except Exception as error:  # whatever this build of torch says
                failures[name] = str(error).strip().splitlines()[0]
                continue
            if run > 0:
                seconds.setdefault(name, []).append(time.perf_counter() - start)
            elif gives_lse:
                errors[name] = largest_error(result, q, k, checked)

    print(f"S = {args.tokens}, d = {args.head_dim}, {args.threads} threads; {backend}")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, values in seconds.items():
        ours = medians["attnscope metrics" if "metrics" in name else "attnscope lse"]
        error = f"  error {errors[name]:.1e}" if name in errors else ""
        print(f"{name:20s} {medians[name]:8.3f} s  ({min(values):.3f} to {max(values):.3f})"
              f"  x{medians[name] / ours:.2f}{error}")
    for name, failure in failures.items():
        print(f"{name:20s} not run: {failure}")


if __name__ == "__main__":
    main()
