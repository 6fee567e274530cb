"""An export that is interrupted, and what is said of what it leaves."""

import pathlib
import signal
import subprocess
import time

PART = "long.h5.part"


def answer(program, words):
    result = subprocess.run([program, *words], capture_output=True, text=True, timeout=120)
    return words, result.stdout, result.returncode


def interrupt(program, words, journal):
    """Runs an export until its journal has grown; its answer when it was interrupted."""
    with subprocess.Popen(
        [program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        limit = time.monotonic() + 60
        first = None
        while process.poll() is None and time.monotonic() < limit:
            size = journal.stat().st_size if journal.exists() else 0
            first = size if first is None and size > 0 else first
            if first is not None and size > first:
                process.send_signal(signal.SIGINT)
                break
            time.sleep(0.005)
        text, _ = process.communicate(timeout=60)
    return words, text, process.returncode


def interrupt_export(program):
    """Words, output, exit code and the expected one of each command."""
    words = ["export", "dump", "-o", "long.h5", "--dtype", "f32", "--threads", "1", "--json"]
    words += ["--backend", "reference", "--quiet"]
    # One that ended before the signal came to it has no answer of an interrupted run.
    for _ in range(5):
        interrupted = interrupt(program, words, pathlib.Path("long.h5.journal"))
        if interrupted[2] != 0:
            break
        for left in pathlib.Path().glob("long.h5*"):
            left.unlink()
    yield *interrupted, (4,)
    yield *answer(program, ["info", PART, "--json"]), (0,)
    yield *answer(program, ["verify", PART, "--json"]), (3,)
