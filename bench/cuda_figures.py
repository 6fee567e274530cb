#!/usr/bin/env python3
"""Figures of the CUDA backend on the GPU at hand, as fractions of what torch measures beside it.

Needs torch with CUDA; compares with FlashAttention where flash_attn is installed. For heads of
S = 17 776, d = 64 and S = 118 800, d = 128 in bf16 it runs `attnscope bench --backend cuda --profile`
(row sums, blocks, one tile, all weights, an export), reads the tables of launches, and prints
Markdown: rates beside the rate of torch's matrix product and of its copies to the host, and times
beside torch's attention and the chunked code that people write. Everything is measured in rounds, one
after the other; medians count.

    python3 bench/cuda_figures.py build/cuda/bin/attnscope
    python3 bench/cuda_figures.py build/cuda/bin/attnscope --head 17776x64 --rounds 3 --no-export
"""

import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

HEADS = ["17776x64", "118800x128"]
KERNELS_OF_PASS = ("row sums", "reductions", "combine", "queries times keys", "clear")
GEMM_SIDE = 8192
COPY_BYTES = 256 << 20


# Reading what attnscope prints.


def read_table(text):
    """The lines of a --profile table, by heading; numbers as numbers, "-" as None."""
    headings, lines = None, []
    for line in text.splitlines():
        cells = re.split(r"  +", line.rstrip())
        if cells[:3] == ["device", "kernel", "product"]:
            headings = cells
        elif headings and len(cells) == len(headings):
            lines.append({name: value_of(cell) for name, cell in zip(headings, cells)})
    if headings is None:
        raise ValueError("there is no table of launches in: " + text[:200])
    return lines


def value_of(cell):
    if cell == "-":
        return None
    try:
        return float(cell) if re.fullmatch(r"[0-9.]+(e[+-]?[0-9]+)?", cell) else cell
    except ValueError:
        return cell


def milliseconds(lines, kernels):
    """Of all launches whose kernel begins with one of these."""
    return sum(line["ms"] for line in lines if line["kernel"].startswith(tuple(kernels)))


def amount(lines, kernels, rate, unit):
    """FLOP or bytes of all launches of these kernels, from a column of rates."""
    chosen = (line for line in lines if line["kernel"].startswith(tuple(kernels)))
    return sum((line[rate] or 0) * unit * line["ms"] * 1e-3 for line in chosen)


def rate_of(lines, kernels, rate):
    """TFLOP/s or GB/s over all launches of these kernels; None where they took no time."""
    seconds = milliseconds(lines, kernels) * 1e-3
    unit = {"TFLOP/s": 1e12, "GB/s": 1e9}[rate]
    return amount(lines, kernels, rate, unit) / seconds / unit if seconds > 0 else None


def idle_launches(lines):
    """Kernels that do not fill the device, as a share of the time of all kernels."""
    total = sum(line["ms"] for line in lines if line["grid"])
    idle = sum(line["ms"] for line in lines if (line["remark"] or "").startswith("idle"))
    return idle / total if total > 0 else 0.0


# Arithmetic of the tables that are printed.


def head_size(text):
    tokens, dim = text.split("x")
    return int(tokens), int(dim)


def product_flops(tokens, dim):
    return 2.0 * tokens * tokens * dim


def weight_bytes(tokens):
    return 2.0 * tokens * tokens


def share(part, whole):
    return "-" if part is None or not whole else f"{100 * part / whole:.0f} %"


def number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}g}"


def markdown(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


class Samples:
    """Medians of what was measured, by name."""

    def __init__(self):
        self.values = {}

    def add(self, name, value):
        if value is not None:
            self.values.setdefault(name, []).append(value)

    def median(self, name):
        values = self.values.get(name)
        return statistics.median(values) if values else None


def pass_row(samples, head, case, what):
    """One pass: its kernels' rate by one product, beside the product that torch makes."""
    tokens, dim = head_size(head)
    seconds = samples.median(f"{head} {case} kernels")
    rate = product_flops(tokens, dim) / seconds / 1e12 if seconds else None
    return [
        f"{head}: {what}",
        number(seconds and seconds * 1e3),
        number(rate),
        share(rate, samples.median("gemm")),
        number(samples.median(f"{head} {case}") and samples.median(f"{head} {case}") * 1e3),
    ]


def copy_row(samples, head, case, what, size):
    """A row for results that end on the host: their rate from start to end beside that of torch's copies."""
    seconds = samples.median(f"{head} {case}")
    rate = size / seconds / 1e9 if seconds else None
    return [
        f"{head}: {what}",
        number(seconds and seconds * 1e3),
        number(rate),
        share(rate, samples.median("copy")),
    ]


def peer_rows(samples, head):
    """torch beside attnscope: (what, torch ms, attnscope ms, ratio)."""
    pairs = [
        ("SDPA forward (computes P·V too)", "sdpa", "lse kernels"),
        ("FlashAttention forward (computes P·V too)", "flash", "lse kernels"),
        ("chunked torch, LSE", "torch lse", "lse"),
        ("chunked torch, blocks of 16 x 16", "torch pyramid", "pyramid"),
        ("chunked torch, weights to the host", "torch weights", "weights"),
    ]
    rows = []
    for what, theirs, ours in pairs:
        a, b = samples.median(f"{head} {theirs}"), samples.median(f"{head} {ours}")
        if a is None or b is None:
            continue
        rows.append([f"{head}: {what}", number(a * 1e3), number(b * 1e3), f"{a / b:.2f}"])
    return rows


# Running things.


def bench(program, head, case, repeats, threads=None, folder=None):
    """Seconds of each result by name, and the table of launches."""
    command = [program, "bench", "--backend", "cuda", "--profile", "--json", "--quiet"]
    command += ["--head", head, "--case", case, "--repeats", str(repeats)]
    command += ["--threads", str(threads)] if threads else []
    command += ["--folder", folder] if folder else []
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}: {run.stderr.strip()}")
    results = {r["name"]: r["seconds"] for r in json.loads(run.stdout)["results"]}
    return results, read_table(run.stderr)


def measure_attnscope(samples, program, head, args):
    # One thread: kernels of several would share the device, and each take longer by its own clock.
    for case in ("lse", "pyramid"):
        results, lines = bench(program, head, case, args.repeats, threads=1)
        samples.add(f"{head} {case}", min(results.values()))
        kernels = milliseconds(lines, KERNELS_OF_PASS) * 1e-3 / args.repeats
        samples.add(f"{head} {case} kernels", kernels)
        samples.add(f"{head} {case} idle", idle_launches(lines))
    results, lines = bench(program, head, "tile", args.repeats, threads=1)
    samples.add(f"{head} tile", min(results.values()))
    samples.add(f"{head} tile copy", rate_of(lines, ["copy to the host"], "GB/s"))
    results, _ = bench(program, head, "weights", args.repeats)
    samples.add(f"{head} weights", min(results.values()))


def measure_exports(samples, program, head, folders):
    """Once a round, in each folder that has room for it."""
    size = weight_bytes(head_size(head)[0])
    for name, folder in folders.items():
        if folder is None or shutil.disk_usage(folder).free < 1.2 * size:
            continue
        results, _ = bench(program, head, "export", 1, folder=folder)
        for result, seconds in results.items():
            kind = "durable" if "durable" in result else "closed"
            samples.add(f"{head} export {name} {kind}", seconds)


class TorchPeers:
    """The times of torch's operations on the GPU for the same heads, by CUDA's events."""

    def __init__(self, torch, rows):
        import torch_peers

        self.torch, self.peers, self.rows = torch, torch_peers, rows
        torch.manual_seed(0)
        self.square = torch.randn(GEMM_SIDE, GEMM_SIDE, device="cuda").bfloat16()
        self.device_bytes = torch.zeros(COPY_BYTES, dtype=torch.uint8, device="cuda")
        self.host_bytes = torch.zeros(COPY_BYTES, dtype=torch.uint8).pin_memory()

    def seconds(self, action):
        action()  # warms caches, the allocator and the clocks
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        action()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3

    def measure_ceilings(self, samples):
        seconds = self.seconds(lambda: self.square @ self.square)
        samples.add("gemm", 2.0 * GEMM_SIDE**3 / seconds / 1e12)
        copy = self.seconds(lambda: self.host_bytes.copy_(self.device_bytes, non_blocking=True))
        samples.add("copy", COPY_BYTES / copy / 1e9)

    def measure_head(self, samples, head):
        tokens, dim = head_size(head)
        make = lambda: self.torch.randn(1, 1, tokens, dim, device="cuda").bfloat16()
        q, k, v = make(), make(), make()
        attention = self.torch.nn.functional.scaled_dot_product_attention
        samples.add(f"{head} sdpa", self.seconds(lambda: attention(q, k, v)))
        flash = flash_attention()
        if flash:
            bshd = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
            samples.add(f"{head} flash", self.seconds(lambda: flash(*bshd)))
        q, k = q[0, 0], k[0, 0]
        f32 = self.torch.float32
        blocks = lambda: [None for _ in self.peers.weight_blocks(q, k, self.rows, f32)]
        samples.add(f"{head} torch lse", self.seconds(lambda: self.peers.row_lse(q, k, self.rows)))
        pooled = lambda: self.peers.pooled_blocks(q, k, self.rows // 16 * 16)
        samples.add(f"{head} torch pyramid", self.seconds(pooled))
        samples.add(f"{head} torch weights", self.seconds(blocks))


def flash_attention():
    try:
        from flash_attn import flash_attn_func
    except ImportError:
        return None
    return flash_attn_func


def report(samples, heads, about, folders):
    print(about + "\n")
    gemm, copy = samples.median("gemm"), samples.median("copy")
    print(f"torch: bf16 product {number(gemm)} TFLOP/s, copies to the host {number(copy)} GB/s\n")
    rows = []
    for head in heads:
        rows.append(pass_row(samples, head, "lse", "LSE pass"))
        rows.append(pass_row(samples, head, "pyramid", "blocks of 16 x 16"))
    headings = ["", "kernels, ms", "TFLOP/s by one product", "of torch's product", "in all, ms"]
    print(markdown(headings, rows) + "\n")
    rows = []
    for head in heads:
        size = weight_bytes(head_size(head)[0])
        side = min(2048, head_size(head)[0])
        rows.append(copy_row(samples, head, "tile", f"a tile of {side} x {side}", 2.0 * side * side))
        rows.append(copy_row(samples, head, "weights", "all weights, f16, dropped", size))
        for name in folders:
            for kind in ("closed", "durable"):
                case = f"export {name} {kind}"
                rows.append(copy_row(samples, head, case, f"export to {name}, {kind}", size))
    print(markdown(["", "ms", "GB/s", "of torch's copies"], rows) + "\n")
    rows = [row for head in heads for row in peer_rows(samples, head)]
    print(markdown(["", "torch, ms", "attnscope, ms", "ratio"], rows))
    for head in heads:
        idle = samples.median(f"{head} lse idle") or 0
        if idle > 0:
            print(f"\n{head}: {100 * idle:.0f} % of the LSE pass is in launches that leave "
                  "multiprocessors idle")


def fail(text):
    print(f"cuda_figures: {text}", file=sys.stderr)
    sys.exit(1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attnscope")
    parser.add_argument("--head", action="append", help="tokens x channels, repeatable")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each within a round")
    parser.add_argument("--rows", type=int, default=1024, help="rows a block of the torch code")
    parser.add_argument("--memory-folder", default="/dev/shm", help="a file system in memory")
    parser.add_argument("--disk-folder", default=tempfile.gettempdir())
    parser.add_argument("--no-export", action="store_true")
    return parser.parse_args()


def main():
    args = parse_arguments()
    heads = args.head or HEADS
    try:
        import torch
    except ImportError:
        fail("torch is not installed")
    if not torch.cuda.is_available():
        fail("torch sees no CUDA device")
    if not os.access(args.attnscope, os.X_OK):
        fail(f"{args.attnscope} is no program")
    folders = {} if args.no_export else {"memory": args.memory_folder, "disk": args.disk_folder}
    samples = Samples()
    peers = TorchPeers(torch, args.rows)
    try:
        for _ in range(args.rounds):
            for head in heads:
                peers.measure_ceilings(samples)
                measure_attnscope(samples, args.attnscope, head, args)
                peers.measure_head(samples, head)
                measure_exports(samples, args.attnscope, head, folders)
                torch.cuda.empty_cache()
    except RuntimeError as error:
        fail(str(error).splitlines()[0])
    about = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"medians of {args.rounds} rounds:\n\n    python3 {shlex.join(sys.argv)}"
    )
    report(samples, heads, about, folders)


if __name__ == "__main__":
    main()
