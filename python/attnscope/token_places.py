"""Where the queries and keys of a call are: frame, row and column of the video, words of the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .one_head import OneHead


def token_places(head: OneHead, keys: bool) -> dict[str, np.ndarray]:
    """By name, an array a token: t, y, x of the video (int32), text, its number there (int32), −1 where a token has
    none; word, "" likewise, and segment, of a token map, as objects. What no token has is left out."""
    told = head.call._call.tokens(keys)
    places = {name: told[name] for name in ("t", "y", "x", "text") if (told[name] >= 0).any()}
    words = head.call.facts["tokens"]
    if "text" in places and words:
        own = words[head.batch if head.batch < len(words) else 0]
        numbers = places["text"]
        table = np.array([*own[: numbers.max() + 1], ""], object)
        places["word"] = table[np.where((numbers >= 0) & (numbers < len(table) - 1), numbers, -1)]
    if told["segments"]:
        places["segment"] = np.array(told["segments"], object)[told["segment"]]
    return places


def common_places(heads: Iterable[OneHead], keys: bool) -> dict[str, np.ndarray]:
    """Those of token_places() that are equal for all heads."""
    common: dict[str, np.ndarray] | None = None
    seen = set()
    for head in heads:
        if (id(head.call._call), head.batch) in seen:
            continue
        seen.add((id(head.call._call), head.batch))
        own = token_places(head, keys)
        if common is None:
            common = own
        common = {name: v for name, v in common.items() if name in own and np.array_equal(v, own[name])}
    return common or {}
