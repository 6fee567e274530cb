#!/usr/bin/env python3
"""attnscope.weights() beside torch's softmax on the same rows, in one run, with the same threads.

bench/module_peers.py [--tokens N] [--channels D] [--threads N] [--repeats N]

Needs the installed package and torch. Both get the same q and k; torch multiplies in float32 (it has no fast products
of halves on most processors), so k of another type is widened first, as a user would do it. Prints the best of
the runs, and how far each is from float64.
"""

import argparse
import time

import numpy as np
import torch

import attnscope


def best(work, repeats: int) -> tuple[float, np.ndarray]:
    seconds, result = float("inf"), None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - begin)
    return seconds, np.asarray(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=17776)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    q, k = torch.randn(2, o.tokens, o.channels, dtype=torch.float64)
    scale = o.channels**-0.5
    print(f"{'type':9} {'rows':>5} {'attnscope':>10} {'torch':>10} {'error':>9} {'torch':>9}")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for rows in (1, 16, 256, 2048):
            q_, k_ = q.to(dtype), k.to(dtype)
            mine, weights = best(
                lambda: attnscope.weights(q_, k_, rows=slice(0, rows), threads=o.threads, progress=False), o.repeats
            )
            other, softmax = best(
                lambda: torch.softmax((q_[:rows].float() @ k_.float().T) * scale, 1), o.repeats
            )
            exact = torch.softmax((q_[:64].double() @ k_.double().T) * scale, 1).numpy()
            errors = [abs(part[:64] - exact[: len(part)]).max() / exact.max() for part in (weights, softmax)]
            name = str(dtype).removeprefix("torch.")
            print(f"{name:9} {rows:5} {mine:9.4f}s {other:9.4f}s {errors[0]:9.1e} {errors[1]:9.1e}")


if __name__ == "__main__":
    main()
