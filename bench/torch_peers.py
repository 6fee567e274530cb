"""The PyTorch code that people write for what attnscope computes; on whatever device q and k are."""

import torch
import torch.nn.functional as F


def weight_blocks(q, k, block, logits_dtype):
    """Row blocks of one head's weights x 2^14 in fp16, on the CPU: (first row, [rows, keys])."""
    size, dim = q.shape
    q, k = q.to(logits_dtype), k.to(logits_dtype)
    for begin in range(0, size, block):
        logits = (q[begin : begin + block] @ k.T).float() * dim**-0.5
        weights = torch.softmax(logits, -1) * 16384.0
        yield begin, weights.to(torch.float16).cpu()


def head_metrics(q, k, text, frames, rows):
    """Row blocks in float32: every number from the block's softmax."""
    count, dim = q.shape
    size = len(k)
    q, k = q.float(), k.float()
    frame_keys = (size - text) // frames
    columns = torch.zeros(size, device=q.device)
    entropy, largest, masses, maxima, means = [], [], [], [], []
    for begin in range(0, count, rows):
        weights = torch.softmax((q[begin : begin + rows] @ k.T) * dim**-0.5, -1)
        columns += weights.sum(0)
        entropy.append(-torch.special.xlogy(weights, weights).sum(-1))
        largest.append(weights.amax(-1))
        video = weights[:, text : text + frames * frame_keys]
        video = video.reshape(len(weights), frames, frame_keys).sum(-1)
        masses.append(torch.cat([weights[:, :text].sum(-1, keepdim=True), video], 1))
        pooled = weights[None, None]
        maxima.append(F.max_pool2d(pooled, 16, ceil_mode=True))
        means.append(F.avg_pool2d(pooled, 16, ceil_mode=True))
    return torch.cat(entropy).mean(), torch.cat(largest).mean(), columns / size, torch.cat(masses)


def pooled_blocks(q, k, rows, side=16):
    """Largest and mean weight of side x side blocks, row blocks in float32."""
    dim = q.shape[1]
    q, k = q.float(), k.float()
    maxima, means = [], []
    for begin in range(0, len(q), rows):
        weights = torch.softmax((q[begin : begin + rows] @ k.T) * dim**-0.5, -1)[None, None]
        maxima.append(F.max_pool2d(weights, side, ceil_mode=True))
        means.append(F.avg_pool2d(weights, side, ceil_mode=True))
    return torch.cat(maxima, 2), torch.cat(means, 2)


def row_lse(q, k, rows):
    """The normalisers of all rows, row blocks in float32."""
    dim = q.shape[1]
    q, k = q.float(), k.float()
    return torch.cat(
        [
            torch.logsumexp((q[begin : begin + rows] @ k.T) * dim**-0.5, -1)
            for begin in range(0, len(q), rows)
        ]
    )
