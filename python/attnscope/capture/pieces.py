"""Calls that are made in pieces: of some queries and the keys before their end, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from .errors import CaptureError
from .tensors import Call


def joined(where: str, pieces: Sequence[Call]) -> Call:
    """The call whose queries are those of the pieces, in their order, and whose keys are the last piece's.

    The mask, bool [1 or B, 1, N, N], leaves each piece the keys that it had. Raises CaptureError where the keys of a
    piece are not the first of the last one's, or where pieces differ in more than queries, keys and masks.
    """
    last = pieces[-1]
    keys, device = last.k.shape[2], last.k.device
    rows = []
    for piece in pieces:
        count = piece.k.shape[2]
        own = (piece.dropout, piece.causal, piece.scale, piece.source, piece.cap, piece.approximation)
        if own != (last.dropout, last.causal, last.scale, last.source, last.cap, last.approximation) or piece.causal:
            raise CaptureError(f"{where}: pieces of one call have other scales, masks or kernels")
        if not (torch.equal(piece.k, last.k[:, :, :count]) and torch.equal(piece.v, last.v[:, :, :count])):
            raise CaptureError(f"{where}: the keys of a piece are not the first ones of its call")
        mask = piece.mask
        if mask is not None and not (isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and mask.ndim == 4):
            raise CaptureError(f"{where}: the mask of a piece of a call is no bool [B, H, Nq, Nk]")
        kept = torch.ones(1, 1, 1, count, dtype=torch.bool, device=device) if mask is None else mask
        kept = kept.expand(-1, -1, piece.q.shape[2], -1)
        rows.append(torch.nn.functional.pad(kept, (0, keys - count)))
    items = max(part.shape[0] for part in rows)
    mask = torch.cat([part.expand(items, -1, -1, -1) for part in rows], 2)
    q, out = torch.cat([piece.q for piece in pieces], 2), torch.cat([piece.out for piece in pieces], 2)
    return replace(last, q=q, out=out, mask=mask)
