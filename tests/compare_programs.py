#!/usr/bin/env python3
"""Holds two builds of the program against each other: a change that only moves or renames code must
change nothing for users.

compare_programs.py BEFORE AFTER [--only TEXT] [--show]

Runs a fixed list of commands on the sample and on tests/data with each program, each in a folder of
its own with the same names in it, and compares exit codes, standard output, narration and every file
byte for byte. What a clock or the disk decides is masked in text (seconds, rates, free space). Exits 1 where anything
differs, and names it; --show prints the first lines that differ. Needs nothing but Python.
"""

import argparse
import difflib
import filecmp
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
S = "moving-shapes"  # samples/moving-shapes, copied beside what is written
HEADS = "--layers 1-2 --heads 0,3"

COMMANDS = f"""
--version
--help
info {S}
info {S} --json
info dumps/attn.pt
info dumps/qk_gzip.h5 --json
info dumps/qk.npz
info --q dumps/pair.pth:q --k dumps/pair.pth:k
info nowhere
info dumps/legacy.pt
export {S} -o weights.h5 {HEADS}
export {S} -o weights32.h5 --dtype f32 --cols 0:226 --rows 3:700 --layers 1
export {S} -o u8.h5 --dtype u8 --layers 2 --heads last
export {S} -o logits.h5 --product logits --layers 0 --heads 1
export {S} -o qk.h5 --product logits --scale 1 --layers 0 --heads 1
export {S} -o lse.h5 --product lse
export {S} -o output.h5 --product output {HEADS}
export {S} -o row.h5 --query 3,8,7
export {S} -o queries.h5 --queries 0,226-300,1023 --layers 0
export {S} -o topk.h5 --topk 16 {HEADS}
export {S} -o kept.h5 --threshold 1e-3 {HEADS}
export {S} -o gzip.h5 --dtype u8 --compress gzip {HEADS}
export {S} -o pooled.h5 --block 64 --pyramid {HEADS}
export {S} -o pooled48.h5 --block 48 --layers 0
export {S} -o causal.h5 --mask causal --layers 0 --heads 0
export {S} -o window.h5 --mask window:100 --layers 0 --heads 0
export {S} -o sigmoid.h5 --score sigmoid --layers 0 --heads 0
export {S} -o elu.h5 --score linear:elu1 --layers 0 --heads 0
export {S} -o weights.h5
export {S} -o weights.h5 --resume {HEADS}
export {S} -o weights.h5 --force --layers 3 --heads 0 --json
export {S} -o nowhere/out.h5
export {S} -o reference.h5 --backend reference --layers 0 --heads 0 --rows 0:64
export {S} -o plan.h5 --dry-run
export {S} -o plan.h5 --dry-run --json
export {S} -o plan.h5 --topk 64 --dry-run --json
export {S} -o plan.h5 --block 64 --dry-run --json
export {S} -o plan.h5 --memory 1KB
export {S} -o plan.h5 --layers 9
export {S} -o plan.h5 --haeds 0
export dumps/flash_bshd.safetensors -o dump.h5
info weights.h5
info topk.h5 --json
info pooled.h5
verify weights.h5
verify gzip.h5 --json
verify pooled.h5
verify {S}
verify {S} --json
stats {S}
stats {S} --json {HEADS}
stats {S} -o heads.json --with frame_frame
stats {S} -o heads.csv --exact
stats {S} -o heads.h5 --with frame_frame,column_mass,diagonal_profile,offset_kernel
stats {S} --sort same_position_mass --layers 2
stats {S} --dry-run
stats {S} --dry-run --json
stats {S} -o sampled.json --sample 100
query {S} --query 3,8,7 --layers 2
query {S} --query 3,8,7 --json --layers 2
query {S} --query 3,8,7 -o volume.npy
query {S} --query 3,8,7 -o volume.h5 {HEADS}
query {S} --query 3,8,7 -o volume.csv --layers 1 --heads 0
query {S} --query 3,8,7 --layers 1-2 -o film.png
query {S} --query 3,8,7 --layers 1 --heads 0 -o film.gif
query {S} --query 3,8,7 --reverse --cache none -o who.npy
query {S} --query 3,8,7 --reverse --cache kept -o who2.npy {HEADS}
query {S} --query 3,8,7 --reverse --cache kept --json {HEADS}
query {S} --query 2-4,8,7 --domain video --layers 1
query {S} --query 3,8,7 --weighting value --layers 1 --json
query {S} --index 5 --index 900 --layers 0 --json
query {S} --text-token red --reverse --cache none --mean heads
query {S} --text-token 2 --layers 1 --mean layers,heads --json
query {S} --query 3,8,7 --mean heads -o mean.npy
query {S} --query 9,8,7
query {S} --query 3,8,7 --dry-run
query {S} --query 3,8,7 --dry-run --json
query {S} --query 3,8,7 --reverse --dry-run --json
query output.h5 --index 20
query row.h5 --query 3,8,7
query weights.h5 --query 3,8,7 --json
render {S} --picture matrix --layers 2 --heads 0 -o matrix.png
render {S} --picture matrix --layers 2 --heads 0 --pool mean --colormap magma --colour-scale linear -o matrix2.png
render {S} --picture mosaic -o mosaic.png
render {S} --picture frames --layers 1 --heads 3 -o frames.png
render {S} --picture text --layers 1 --heads 3 -o words.png
render {S} --picture heatmap --metric entropy -o heatmap.png
render {S} --picture filmstrip --query 3,8,7 --layers 1 --heads 0 --overlay {S} -o strip.png
render {S} --picture filmstrip --query 3,8,7 --layers 1 --heads 0 --reverse --cache none -o strip.gif
render {S} --picture mosaic --dry-run
render {S} --picture mosaic --dry-run --json -o mosaic3.png
render weights.h5 --picture matrix -o stored.png --json
render pooled.h5 --picture matrix --layers 1 --heads 0 -o pooled.png
mask {S} --mask spatial:frames=1 --mask temporal --mask topk:keep=0.1
mask {S} --mask window:100 --json --layers 1
mask {S} --mask spatial:frames=1 -o masks.csv --save blocks.npy --block 64 {HEADS}
mask {S} --mask blocks.npy --block 64 --layers 1 --heads 0
mask {S} --mask temporal --dry-run
mask {S} --mask temporal --dry-run --json
mask {S} --mask spatail
rollout {S} --query 3,8,7
rollout {S} --query 3,8,7 --json
rollout {S} --text-token 2 --reverse -o rollout.png
rollout {S} --query 3,8,7 -o rollout.npy
rollout {S} --query 3,8,7 --dry-run
rollout {S} --query 3,8,7 --dry-run --json
convert {S} --layers 2 --heads 3,1 -o two-heads
convert dumps/attn.pt -o converted.safetensors
convert {S} -o plan --dry-run
synth --grid 4x6x8 --text 16@start --head-dim 32 -o synth
synth --preset cogvideox-5b --dry-run -o synth2
info synth
stats synth --json
""".strip().splitlines()

# A line per 10 %, of runs that take long enough.
PROGRESS = re.compile(r"^attnscope: .* \d+ %")
# Texts that a clock, the machine's load or its disk decides.
MEASURED = [
    (re.compile(r"\b\d+(\.\d+)?(e[-+]\d+)? ?(h|min|s|ms|us|µs)\b"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? ?[kKMGT]?i?(B|FLOP|entries|rows|tiles|heads)/s"), "RATE"),
    (re.compile(r'"(seconds|expected_seconds|forecast_seconds|rate)": ?[0-9.e+-]+'), r'"\1":TIME'),
    (re.compile(r"\([\d.]+ [KMGT]iB free\)"), "(SPACE free)"),
    (re.compile(r'"free_bytes": ?\d+'), '"free_bytes":SPACE'),
    (re.compile(r"about [\d.]+ ?(seconds?|minutes?|hours?)"), "about TIME"),
]


def masked(text: bytes) -> list[str]:
    lines = text.decode("utf-8", "replace").replace("\r", "\n").splitlines()
    lines = [line for line in lines if not PROGRESS.search(line)]
    for pattern, word in MEASURED:
        lines = [pattern.sub(word, line) for line in lines]
    return lines


def run_all(program: Path, folder: Path, only: str) -> list[tuple[str, int, bytes, bytes]]:
    shutil.copytree(ROOT / "samples" / S, folder / S, ignore=shutil.ignore_patterns(".attnscope"))
    shutil.copytree(ROOT / "tests/data/dumps", folder / "dumps")
    results = []
    for command in COMMANDS:
        if only not in command:
            continue
        done = subprocess.run(
            [program, *command.split()], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True
        )
        results.append((command, done.returncode, done.stdout, done.stderr))
    return results


def differing_files(a: Path, b: Path) -> list[str]:
    names = {p.relative_to(f).as_posix() for f in (a, b) for p in f.rglob("*") if p.is_file()}
    found = []
    for name in sorted(names):
        if not (a / name).is_file() or not (b / name).is_file():
            found.append(f"{name}: only one of them has it")
        elif not filecmp.cmp(a / name, b / name, shallow=False):
            found.append(f"{name}: differs")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--only", default="", help="commands that have this text")
    parser.add_argument("--show", action="store_true", help="print the lines that differ")
    options = parser.parse_args()
    differences = 0
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as after:
        folders = [Path(before), Path(after)]
        results = [
            run_all(program.resolve(), folder, options.only)
            for program, folder in zip((options.before, options.after), folders)
        ]
        for old, new in zip(*results):
            what = []
            if old[1] != new[1]:
                what.append(f"exit code {old[1]} became {new[1]}")
            for index, name in ((2, "standard output"), (3, "narration")):
                lines = [masked(r[index]) for r in (old, new)]
                if lines[0] != lines[1]:
                    what.append(name)
                    if options.show:
                        what += list(difflib.unified_diff(*lines, lineterm="", n=0))[2:14]
            if what:
                differences += 1
                print(f"attnscope {old[0]}\n  " + "\n  ".join(what))
        files = differing_files(*folders)
        differences += len(files)
        print("\n".join(files), end="\n" if files else "")
    print(f"{len(results[0])} commands, {differences} differences")
    return 1 if differences or not results[0] else 0


if __name__ == "__main__":
    sys.exit(main())
