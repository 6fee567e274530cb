"""How large the calls of a class with a token layout are, by the arguments of its forward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .call_size import CallSize, mask_bytes
from .choice import head_range, key_head_range
from .errors import CaptureError
from .layouts import Layout, Sequences, sequence_of
from .selection import Selection
from .slots import IMAGE_CALL, Model, Slot
from .tokens import Segment, kind_of

HEAD_COUNTS = ("heads", "num_heads", "num_attention_heads")
HEAD_DIMS = ("head_dim", "dim_heads")
PROJECTIONS = ("to_q", "to_query", "q_proj", "query")  # of queries, as libraries call them


def layout_bytes(
    model: Model,
    inputs: Mapping[str, Any],
    selection: Selection,
    heads: Any,
    values: bool,
    rows: int,
    dtype: torch.dtype | None,
) -> int:
    """Bytes of tensors of the chosen calls of one forward with the arguments `inputs`, all batch items, exactly.

    The tensors among the arguments may be on the device "meta" where only their shapes count. Raises
    CaptureError where the arguments do not tell the tokens of a call.
    """
    module, layout = model.first, model.layout
    name = type(module).__name__
    assert layout is not None and module is not None
    try:
        sequences = layout.sequences(module, inputs)
        idle = dict.fromkeys(layout.idle(module, inputs), True)
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise CaptureError(
            f"estimate: {name}: these inputs do not tell its tokens ({type(error).__name__}: {error}): give "
            'all arguments of its forward that do, masks and positions with their values, not on "meta"'
        ) from error
    chosen = "" if inputs.get("sparse_params") is None else "blocks that are chosen from q and k"
    unsized = layout.unsized or chosen
    if unsized:
        raise CaptureError(f"estimate: {name}: {unsized} are not known without running it")
    total = 0
    for slot in model.slots[model.name_of(module)]:  # of transformers of one kind, a forward runs one
        where = f"{slot.place.block} {slot.place.slot}"
        if not selection.module(slot) or layout.match(where, idle):
            continue
        for call_name in _call_names(slot, layout, sequences, idle):
            total += _call_bytes(
                slot, call_name, layout, sequences, inputs, (selection, heads, values, rows, dtype)
            )
    return total


def _call_names(slot: Slot, layout: Layout, sequences: Sequences, idle: Mapping[str, bool]) -> list[str]:
    """The names of the calls that the module makes in a forward."""
    own, block = slot.place.slot, slot.place.block
    further = [own + end for end in (IMAGE_CALL, ".2")]
    if not slot.image_keys:
        further = further[1:]
    found = []
    for name in further:
        rule = layout.rule(block, name)
        # A rule for calls of any name is no rule for a second one.
        named = rule is not None and any(pattern.endswith(f" {name}") for pattern in layout.calls)
        if not named or layout.match(f"{block} {name}", idle):
            continue
        keys = sequence_of(sequences, rule[1] or rule[0], block)  # type: ignore[index]
        found += [name] if keys is not None and _count(keys) else []
    return [*found, own]


def _call_bytes(
    slot: Slot,
    call_name: str,
    layout: Layout,
    sequences: Sequences,
    inputs: Mapping[str, Any],
    chosen: tuple[Selection, Any, bool, int, torch.dtype | None],
) -> int:
    selection, heads, values, rows, dtype = chosen
    block = slot.place.block
    where = f"{block} {call_name}"
    rule = layout.rule(block, call_name)
    queries = rule and sequence_of(sequences, rule[0], block)
    keys = queries if rule is None or rule[1] is None else sequence_of(sequences, rule[1], block)
    if queries is None or keys is None:
        raise CaptureError(f"estimate: {slot.name}: its tokens are not known without running the model")
    times_of = layout.match(where, layout.times)
    repeated = sequence_of(sequences, times_of, block) if times_of is not None else None
    items = _items_of(inputs) * (_count(repeated) if repeated is not None else 1)
    kind = "cross" if layout.crosses(block, call_name) else slot.kind or kind_of(keys)
    if not selection.call(call_name, kind):
        return 0
    count = next((int(getattr(slot.module, n)) for n in HEAD_COUNTS if hasattr(slot.module, n)), None)
    channels = next((getattr(slot.module, n) for n in HEAD_DIMS if hasattr(slot.module, n)), None)
    projection = next((getattr(slot.module, n) for n in PROJECTIONS if hasattr(slot.module, n)), None)
    if projection is not None:
        count = count or (channels and projection.weight.shape[0] // channels)
    if count is None or (channels is None and projection is None):
        raise CaptureError(
            f"estimate: {slot.name}: how many heads it has is not known without running the model"
        )
    channels = channels or projection.weight.shape[0] // count
    first, end = head_range(heads, count)
    groups = int(getattr(slot.module, "num_key_value_heads", count))
    own_keys = key_head_range(first, end, count, groups)
    stored = dtype or next(slot.module.parameters()).dtype
    itemsize = torch.empty(0, dtype=stored).element_size()
    style, argument = layout.match(where, layout.masks) or (None, None)
    absent = argument is not None and inputs.get(argument) is None
    if absent or all(s.modality in ("video", "image") for s in keys):  # no padding of text to mask
        style = None
    style, items_of_mask = _mask_of(style, keys, items)
    mask = mask_bytes(style, items_of_mask, end - first, _count(keys), itemsize)
    size = CallSize(
        items,
        end - first,
        own_keys[1] - own_keys[0],
        _count(queries),
        _count(keys),
        channels,
        itemsize,
        mask,
    )
    normalised = layout.match(where, layout.linear)
    more = 0 if normalised is None else _float32_bytes(size, normalised, values, rows)
    positions = layout.positions_of(rule[0], inputs) if rule is not None and rule[1] is None else None
    more += 4 * positions.numel() if positions is not None else 0  # float32
    return size.payload(values, rows) + more


def _float32_bytes(size: CallSize, normalised: bool, values: bool, rows: int) -> int:
    """Bytes of linear attention's normaliser, and those that rows of its result take more in float32."""
    stored = min(rows, size.queries) if values else 0
    normaliser = size.queries * 4 if normalised else 0
    return size.items * size.heads * (normaliser + stored * size.channels * (4 - size.itemsize))


def _count(segments: Sequence[Segment]) -> int:
    return sum(s.count for s in segments)


def _mask_of(style: str | None, keys: Sequence[Segment], items: int) -> tuple[str | None, int]:
    """(style of mask_bytes(), the items that it has a mask of) of a call of `items` with these keys."""
    padded = _padded_rows(keys, items, style or "")
    if style in ("segments", "dense") and not padded:  # one row tells all
        return "row", 1
    return style, padded if style in ("pairs", "uneven", "segments") else items


def _padded_rows(keys: Sequence[Segment], items: int, style: str) -> int:
    """How many rows a mask of padding has: none without padding ("uneven": where all items have as much of
    it), one where all items have the same."""
    counts = [(s.count, _counts(s.valid)) for s in keys if s.valid is not None]
    if any(len(set(valid)) > 1 for _, valid in counts):
        return items
    short = any(s.modality == "padding" and s.count for s in keys)
    short |= any(n < count for count, valid in counts for n in valid)
    return int(short and style != "uneven")


def _counts(valid: int | list[int] | torch.Tensor) -> list[int]:
    """How many tokens of a segment are no padding, an item each."""
    if isinstance(valid, torch.Tensor):
        return valid.reshape(-1, valid.shape[-1]).sum(-1).tolist()
    return [int(n) for n in valid] if isinstance(valid, list) else [int(valid)]


def _items_of(inputs: Mapping[str, Any]) -> int:
    """Batch items of a forward: of its first argument, a tensor (one without a batch axis is an item) or a list
    of tensors."""
    first = next(iter(inputs.values()))
    if isinstance(first, list):
        return len(first)
    return int(first.shape[0]) if first.ndim > 1 else 1
