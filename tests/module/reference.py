"""Shared by the tests of the module: attention in double, and the heads that the sample recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "moving-shapes"
TEXT, GRID = 16, (7, 12, 12)


def random_heads(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def logits(
    q: np.ndarray, k: np.ndarray, scale: float | None = None, bias: np.ndarray | None = None
) -> np.ndarray:
    """In double. q [..., H, Nq, d], k [..., Hkv, Nk, d]."""
    q, k = np.asarray(q, np.float64), np.asarray(k, np.float64)
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    s = (q.shape[-1] ** -0.5 if scale is None else scale) * (q @ np.swapaxes(k, -1, -2))
    return s if bias is None else s + bias


def softmax(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and LSE; a row that is all masked weighs nothing."""
    largest = s.max(-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)
    e = np.exp(s - largest)
    total = e.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (largest + np.log(total))[..., 0]
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0), lse


def check_weights(got: np.ndarray, expected: np.ndarray, keys: int) -> None:
    """The bounds of docs/numerics.md, with what float32 products may lose of logits of ordinary size."""
    assert got.dtype == np.float32, got.dtype
    assert got.shape == expected.shape, (got.shape, expected.shape)
    bound = 1e-3 / keys + 2e-4 * expected
    worst = np.max(np.abs(got - expected) - bound, initial=-1.0)
    assert worst <= 0, f"weights differ by {worst} beyond the bound"
    assert got.size == 0 or got.max() > 0


def sample_head(layer: int, head: int) -> dict[str, np.ndarray]:
    """q, k, v of a head of the sample, in double."""
    from safetensors import safe_open

    with safe_open(str(SAMPLE / f"step10_layer{layer:02d}.safetensors"), "pt") as f:
        return {name: f.get_tensor(name)[0, head].double().numpy() for name in ("q", "k", "v")}
