#!/usr/bin/env python3
"""Stands for ssh over a slow line: runs the command line that ssh would run there, here, and hands bytes on no faster
than a line of so many megabits a second whose answers take so many milliseconds would.

    ATTNSCOPE_SSH=bench/slow_line.py SLOW_LINE=100,30 attnscope view ssh://anywhere/path

SLOW_LINE is the rate of each direction in Mbit/s and the time of a round trip in ms. Errors: the command's exit code."""

import os
import subprocess
import sys
import threading
import time
from collections import deque

PIECE = 16384


class SlowStart:
    """Delays bytes as TCP's slow start does on a new connection: at first ten segments may be under way, later as many
    bytes more as have been answered. Answers take `trip` seconds."""

    def __init__(self, trip):
        self.trip, self.window, self.under_way, self.sent = trip, 10 * 1460, 0, deque()

    def leave(self, due, size):
        """When a piece of `size` bytes, which could leave at `due`, leaves."""
        while self.sent and (self.sent[0][0] <= due or self.under_way + size > self.window):
            answered, count = self.sent.popleft()
            due = max(due, answered)
            self.under_way -= count
            self.window += count
        self.under_way += size
        self.sent.append((due + self.trip, size))
        return due


def relay(source, target, rate, delay, open_at=0.0, slow_start=None):
    """Bytes of `source` come out of `target` at `rate` bytes a second, `delay` seconds later, and none leaves before
    `open_at`. As many are under way as the line holds: whoever writes more waits, as with a real one; with a SlowStart
    not more than that lets."""
    pieces, changed, ended = deque(), threading.Condition(), [False]
    room = max(8 * PIECE, int(2 * rate * delay))

    def deliver():
        while True:
            with changed:
                while not pieces and not ended[0]:
                    changed.wait()
                if not pieces:
                    break
                due, piece = pieces.popleft()
                changed.notify_all()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                while piece:
                    piece = piece[os.write(target, piece) :]
            except OSError:
                break
        os.close(target)

    out = threading.Thread(target=deliver, daemon=True)
    out.start()
    free_at = open_at  # when the line has sent what it was given
    while True:
        try:
            piece = os.read(source, PIECE if slow_start is None else 8 * 1460)
        except OSError:
            break  # a connection that was cut
        if not piece:
            break
        free_at = max(free_at, time.monotonic())
        if slow_start is not None:
            free_at = slow_start.leave(free_at, len(piece))
        free_at += len(piece) / rate
        with changed:
            while sum(len(p) for _, p in pieces) > room:
                changed.wait()
            pieces.append((free_at + delay, piece))
            changed.notify_all()
    with changed:
        ended[0] = True
        changed.notify_all()
    out.join()


def main():
    megabits, milliseconds = (float(part) for part in os.environ.get("SLOW_LINE", "100,30").split(","))
    rate, delay = megabits * 1e6 / 8, milliseconds / 2e3
    child = subprocess.Popen(["sh", "-c", sys.argv[-1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    down = threading.Thread(target=relay, args=(child.stdout.fileno(), os.dup(1), rate, delay), daemon=True)
    down.start()
    up = threading.Thread(target=relay, args=(0, os.dup(child.stdin.fileno()), rate, delay), daemon=True)
    up.start()
    child.stdin.close()
    code = child.wait()
    down.join(5)
    return code


if __name__ == "__main__":
    sys.exit(main())
