"""A user's choice of layers, steps, kinds and heads."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Sequence

from .errors import CaptureError


def parse_numbers(spec: str | int | Iterable[int] | None, what: str) -> Callable[[int], bool]:
    """A test for what "0,3-7", "8-", "0-39:5", "all", 3 or [0, 4] choose."""
    if spec is None or spec == "all":
        return lambda n: True
    if isinstance(spec, int) and not isinstance(spec, bool):
        spec = [spec]
    if not isinstance(spec, str):
        chosen = set(spec) if isinstance(spec, Iterable) else set()
        if not chosen or any(not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in chosen):
            raise CaptureError(f"{what}: expected whole numbers from 0 (got {spec!r})")
        return lambda n: n in chosen
    ranges = []
    for part in spec.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:(-)(\d*)(?::(\d+))?)?\s*", part)
        if not match or match[4] == "0":
            raise CaptureError(
                f'{what}: expected numbers as in "0,3-7", "8-", "0-39:5" or "all" (got "{spec}")'
            )
        first = int(match[1])
        last = first if not match[2] else int(match[3]) if match[3] else math.inf
        if last < first:
            raise CaptureError(f'{what}: the range "{part.strip()}" ends before it begins')
        ranges.append((first, last, int(match[4] or 1)))
    return lambda n: any(a <= n <= b and (n - a) % s == 0 for a, b, s in ranges)


def largest_named(spec: str | int | Iterable[int] | None) -> int | None:
    """The largest number that `spec` names itself, None where it is open."""
    if spec is None or spec == "all" or (isinstance(spec, str) and re.search(r"-\s*(?:,|:|$)", spec)):
        return None
    numbers = [spec] if isinstance(spec, int) else spec
    if isinstance(spec, str):
        numbers = [int(n) for part in spec.split(",") for n in part.split(":")[0].split("-")]
    return max(numbers)


def kind_test(kinds: str | Sequence[str]) -> Callable[[str], bool]:
    """A test for the kinds that "all", "self" or ["self", "cross"] choose."""
    chosen = [kinds] if isinstance(kinds, str) else list(kinds) if isinstance(kinds, Iterable) else []
    odd = {str(kind) for kind in chosen} - {"all", "self", "cross", "joint"}
    if odd or not chosen:
        raise CaptureError(f"kinds: expected all, self, cross or joint (got {kinds!r})")
    return lambda kind: "all" in chosen or kind in chosen


def name_test(names: str | Sequence[str], what: str) -> Callable[[str], bool]:
    """A test for the names that "all", "vace_blocks.*" or ["attn1", "audio_*"] choose."""
    if names == "all":
        return lambda name: True
    chosen = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else []
    if not chosen or any(not isinstance(n, str) or not n for n in chosen):
        raise CaptureError(f"{what}: expected names, with * and ? as you like (got {names!r})")
    return lambda name: any(fnmatch.fnmatchcase(name, pattern) for pattern in chosen)


def head_range(spec: str | int | Iterable[int] | None, count: int) -> tuple[int, int]:
    """[first, end) of the chosen heads. One contiguous range: a capture records only its start."""
    test = parse_numbers(spec, "heads")
    largest = largest_named(spec)
    if largest is not None and largest >= count:
        raise CaptureError(f"heads: the model has heads 0 to {count - 1} (asked for {largest})")
    chosen = [h for h in range(count) if test(h)]
    if not chosen or chosen != list(range(chosen[0], chosen[-1] + 1)):
        raise CaptureError(
            "heads: expected one contiguous range, since a capture records only where "
            f"it begins (got {spec!r}); record a range that holds them all"
        )
    return chosen[0], chosen[-1] + 1


def key_head_range(first: int, end: int, heads: int, key_heads: int) -> tuple[int, int]:
    """The key heads [first, end) that serve query heads [first, end)."""
    if heads % key_heads:
        raise CaptureError(f"{heads} query heads are no multiple of {key_heads} key heads")
    group = heads // key_heads
    a, b = first // group, (end - 1) // group + 1
    if b - a > 1 and (first % group or end % group):
        raise CaptureError(
            f"heads: groups of {group} query heads share a key head; choose whole "
            f"groups or heads of one group (got {first}-{end - 1})"
        )
    return a, b
