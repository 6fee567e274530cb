#!/usr/bin/env python3
"""Runs the examples of a documentation page.

test_examples.py PAGE [--show]       PAGE from the repository's root: README.md, docs/commands.md

An example is a line of an indented or a plain fenced block that begins with `attnscope`, or with `printf`, which
makes a small file for the next ones; `\\` at its end goes on in the next line. All run in order in one folder, which
has samples/ and the files of stand_ins.py in it, by bash. A line fails where it ends with another exit code than 0,
or than the one that its own comment states: "# …: exit code 3". NOT_RUN names the lines that stay out. Pages are
listed in CMakeLists.txt. --show prints each line with its seconds, and all that a line says. Needs nothing but Python.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stand_ins import write_stand_ins

ROOT = Path(__file__).resolve().parents[2]
LINE_SECONDS = 300

# Lines that begin so are not run, of all pages or of one, and why. A line that ends in a picture of the window is run all the same.
NOT_RUN = {
    "attnscope view": "opens a window",
    "attnscope serve": "serves until it is stopped",
    "attnscope bench": "measures for minutes",
    "attnscope convert --stitch": "joins what several processes or a stream recorded of a model",
    "attnscope diff dump/ --branch": "compares both branches of a model's guidance",
    "attnscope diff metrics.h5": "reads a table of attnscope.probe, which Python writes",
    "attnscope merge metrics.": "reads tables of attnscope.probe, which Python writes",
    "attnscope merge monday.h5": "reads tables of attnscope.probe, which Python writes",
    "docs/cluster.md: attnscope merge heads-*.json": "reads what the tasks of a scheduler wrote",
    "attnscope info --q run.h5": "reads tensors of an HDF5 file, which no command writes",
    "attnscope info dump.h5": "reads tensors of an HDF5 file, which no command writes",
}
WITHOUT_HANDS = ("--screenshot", "--script")
# In these words a program tells of a part that the build or the machine lacks; such a line counts as not run.
LACKING = ("this build has no window", "install libgl1", "libX11.so.6", "libegl1")


def example_lines(text):
    """The examples of a page, as shell lines, in their order."""
    lines, fence, going_on = [], None, False
    for line in text.splitlines():
        mark = re.match(r"\s*```(\w*)", line)
        if mark:
            fence = None if fence is not None else mark.group(1)
            continue
        plain = fence in ("", "sh", "bash", "console") or (fence is None and line.startswith("    "))
        words = line.strip().removeprefix("$ ")
        if going_on:
            lines[-1] += "\n" + words
        elif plain and words.startswith(("attnscope ", "printf ")):
            lines.append(words)
        else:
            continue
        going_on = words.endswith("\\")
    return lines


def why_not_run(line, page):
    if line.startswith("attnscope view") and any(option in line for option in WITHOUT_HANDS):
        return None
    if line.endswith("--shard auto"):
        return "is started by a scheduler"
    starts = (line, f"{page}: {line}")
    return next((reason for start, reason in NOT_RUN.items() if any(whole.startswith(start) for whole in starts)), None)


def expected_code(line):
    stated = re.search(r"#.*\bexit code (\d+)", line)
    return int(stated.group(1)) if stated else 0


def make_folder(folder, page):
    """Puts there all that an example may take without a line that makes it. Samples are a copy, beside which commands
    keep caches."""
    shutil.copytree(ROOT / "samples" / "moving-shapes", folder / "samples" / "moving-shapes")
    write_stand_ins(folder, page)


def environment(program, folder):
    given = dict(os.environ, HOME=str(folder / "home"), XDG_CACHE_HOME=str(folder / "home" / "cache"))
    # A launcher that started the tests would make a part of every run.
    for name in [n for n in given if n.startswith(("SLURM_", "OMPI_", "PMI", "RANK", "WORLD_SIZE"))]:
        del given[name]
    return given | {"PATH": f"{program.parent}:{given['PATH']}"}


def run_line(line, folder, given):
    """The exit code of a line, and all that it said."""
    try:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LINE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return -1, f"still runs after {LINE_SECONDS} s"
    return done.returncode, done.stdout.decode(errors="replace")


def run_page(page, program, show):
    """The failures of a page, the lines that were not run with their reasons, and how many ran."""
    failures, left_out, ran = [], [], 0
    with tempfile.TemporaryDirectory(prefix="attnscope-page-") as name:
        folder = Path(name)
        make_folder(folder, page)
        given = environment(program, folder)
        for line in example_lines((ROOT / page).read_text(encoding="utf-8")):
            reason = why_not_run(line, page)
            if reason:
                left_out.append((line, reason))
                continue
            begin = time.monotonic()
            code, said = run_line(line, folder, given)
            if show:
                print(f"{time.monotonic() - begin:6.2f} s  {line}\n{said}")
            if code == 1 and any(words in said for words in LACKING):
                left_out.append((line, said.strip().splitlines()[-1]))
                continue
            ran += 1
            if code != expected_code(line):
                failures.append(f"{page}: {line}\n  exit code {code}, expected {expected_code(line)}\n  {said.strip()}")
    return failures, left_out, ran


def main():
    words = [w for w in sys.argv[1:] if w != "--show"]
    if len(words) != 1 or "ATTNSCOPE" not in os.environ:
        sys.exit("usage: ATTNSCOPE=PROGRAM test_examples.py PAGE [--show]")
    program = Path(os.environ["ATTNSCOPE"]).resolve()
    failures, left_out, ran = run_page(words[0], program, "--show" in sys.argv)
    for line, reason in left_out:
        print(f"not run: {line}\n  {reason}")
    print("\n".join(failures))
    print(f"{words[0]}: {ran} examples ran, {len(left_out)} were left out, {len(failures)} failed")
    if ran == 0 and left_out:
        print(f"skipped: {left_out[-1][1]}")
        sys.exit(77)
    sys.exit(1 if failures or ran == 0 else 0)


if __name__ == "__main__":
    main()
