"""Options that say nothing a capture could hold are refused before the model runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import CaptureError
from .options import Options

AXES, KINDS = ("full", "spatial", "temporal"), ("self", "cross", "joint")


def check_options(options: Options) -> None:
    """Raises CaptureError where the value of an option is none. What has parsers of its own (layers, steps,
    heads, kinds, blocks, slots, grid, guidance, rank) is left to these."""
    for name, (test, expected) in TESTS.items():
        value = getattr(options, name)
        if not test(value):
            raise CaptureError(f"{name}: expected {expected} (got {value!r})")


def check_words(tokens: Any, valid: Any, count: int, trims: bool = False) -> None:
    """Raises CaptureError where the user's words, or those that are valid, are more than the `count` text
    tokens. `trims`: padding is cut off, so that there may be more words."""
    lists = [] if tokens is None else [tokens] if _is_words(tokens) else list(tokens)
    for words in lists:
        if len(words) > count and not trims:
            raise CaptureError(f"tokens: {len(words)} strings for {count} text tokens")
    numbers = [] if valid is None else [valid] if isinstance(valid, int) else list(valid)
    if any(n > count for n in numbers):
        raise CaptureError(f"text_valid: {max(numbers)} of {count} text tokens cannot be valid")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_words(value: Any) -> bool:
    return _is_list(value) and all(isinstance(v, str) for v in value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value) > 0


def _each(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """None, a value that passes the test, a list of such, or a dict of these by branch."""

    def one(value: Any) -> bool:
        return test(value) or (_is_list(value) and all(map(test, value)))

    return lambda value: value is None or one(value) or (
        isinstance(value, Mapping) and all(isinstance(k, str) and (v is None or one(v)) for k, v in value.items())
    )


def _is_pattern(value: Any) -> bool:
    try:
        return value is None or bool(re.compile(value))
    except (re.error, TypeError):
        return False


def _is_json(value: Any) -> bool:
    try:
        return value is None or (isinstance(value, Mapping) and bool(json.dumps(value)))
    except (TypeError, ValueError):
        return False


def _is_text(value: Any) -> bool:
    return value is None or (isinstance(value, str) and bool(re.fullmatch(r"none|all|\d+@(start|end)", value)))


_FLAG = (lambda v: isinstance(v, bool), "True or False")
_STRING = (lambda v: v is None or isinstance(v, str), "a string")
TESTS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "branch": (lambda v: isinstance(v, str) or _is_words(v), 'a name, such as "cond", or a list of names'),
    "branches": (lambda v: v is None or _is_words(v), 'a list of names, such as ["uncond", "cond"]'),
    "values": _FLAG,
    "rows": (_is_count, "a whole number from 0"),
    "mask_limit": (lambda v: v is None or _is_count(v), "bytes, a whole number from 0, or None"),
    "model": _STRING,
    "prompt": _STRING,
    "negative_prompt": (lambda v: isinstance(v, str), "a string"),
    "tokenizer": (lambda v: v is None or hasattr(v, "convert_ids_to_tokens"), "a tokenizer of transformers"),
    "tokens": (_each(_is_words), "a list of strings, one such list a batch item, or a dict of these by branch"),
    "text_valid": (_each(_is_count), "a whole number from 0, one a batch item, or a dict of these by branch"),
    "text": (_is_text, '"none", "all", or such as "226@start" or "256@end"'),
    "kind": (lambda v: v is None or v in KINDS, "self, cross or joint"),
    "axes": (lambda v: v is None or v in AXES, "full, spatial or temporal"),
    "q_state": _STRING,
    "head_offset": (lambda v: v is None or _is_count(v), "a whole number from 0"),
    "extra": (_is_json, "a dict that can be written as JSON"),
    "modules": (_is_pattern, "a regular expression"),
    "force": _FLAG,
    "quiet": _FLAG,
    "strict": _FLAG,
}
