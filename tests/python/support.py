"""What the tests share: reading captures, float64 attention, the program."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from safetensors import safe_open

import attnscope_capture

# Where the writer finds what it calls: a module of the package, or the one file.
WRITER = sys.modules[attnscope_capture.Writer.__module__]

# Rounding of a kernel's result: of its type, relative to the largest value of the rows.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 8e-3, torch.float16: 1e-3}


@dataclass
class Recorded:
    """One file of a capture."""

    file: str
    facts: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.tensors[name]


def read_call(path: Path) -> Recorded:
    with safe_open(str(path), "pt") as f:
        facts = {}
        for name, text in f.metadata().items():
            plain = name in (
                "format",
                "model",
                "prompt",
                "kind",
                "axes",
                "layout",
                "grid",
                "text",
                "mask",
                "mask_block",
                "layer_name",
                "block",
                "slot",
                "q_state",
            )
            facts[name] = text if plain else json.loads(text)
        return Recorded(path.name, facts, {n: f.get_tensor(n) for n in f.keys()})


def read_capture(folder: Path) -> list[Recorded]:
    """Calls in the order of capture.json, whose facts must be those of the files."""
    catalogue = json.loads((folder / "capture.json").read_text())
    calls = []
    for entry in catalogue["calls"]:
        call = read_call(folder / entry["file"])
        for name, value in entry.items():
            assert name == "file" or call.facts[name] == value, (entry, call.facts)
        calls.append(call)
    assert catalogue["format"] == max(c.facts["format"] for c in calls)
    return calls


def kept(call: Recorded) -> torch.Tensor | None:
    """What the file's mask lets through, [B or 1, H or 1, Nq or 1, Nk]; None: all, or a bias."""
    form = call.facts["mask"]
    i, j = torch.arange(call["q"].shape[2])[:, None], torch.arange(call["k"].shape[2])[None]
    if form == "none":
        return None
    if form == "tensor":
        return call["mask"] if call["mask"].dtype == torch.bool else None
    if form == "causal":
        return (j <= i)[None, None]
    if form.startswith("block_causal:"):
        size = int(form.split(":")[1])
        return (j // size <= i // size)[None, None]
    if form == "blocks":
        height, width = map(int, call.facts["mask_block"].split("x"))
        return call["mask_blocks"][
            ..., (i // height).expand(-1, j.shape[1]), (j // width).expand(i.shape[0], -1)
        ]
    if form == "segments":
        numbers = call["mask_segments"].reshape(-1, 1, j.shape[1])
        return numbers[..., None] == numbers[..., None, :]
    valid = call["mask_valid"].reshape(-1, 1, 1, j.shape[1])
    return valid if form == "valid" else valid & valid.transpose(2, 3)


def weights(call: Recorded) -> torch.Tensor:
    """softmax(scale·QKᵀ + mask) in float64 from what the file states, [B, H, Nq, Nk]; 0 in rows without keys."""
    q, k = call["q"].double(), call["k"].double()
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    logits = call.facts["scale"] * q @ k.transpose(2, 3)
    keep = kept(call)
    if keep is not None:
        logits = logits.masked_fill(~keep, -torch.inf)
    elif call.facts["mask"] == "tensor":
        logits = logits + call["mask"].double()
    return logits.softmax(-1).nan_to_num(0.0)


def output_error(call: Recorded) -> float:
    """Largest difference of recomputed and recorded output rows, relative to the largest value."""
    v = call["v"].double()
    v = v.repeat_interleave(call["q"].shape[1] // v.shape[1], 1)
    out = (weights(call) @ v)[:, :, call["out_rows"]]
    return float((out - call["out"].double()).abs().max() / call["out"].double().abs().max())


class Spy:
    """Every scaled_dot_product_attention call in a block: an independent copy of its arguments."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        real = F.scaled_dot_product_attention

        def seen(query, key, value, **more):  # type: ignore[no-untyped-def]
            out = real(query, key, value, **more)
            self.calls.append(
                {
                    "q": query.clone(),
                    "k": key.clone(),
                    "v": value.clone(),
                    "out": out.clone(),
                    "mask": more.get("attn_mask"),
                }
            )
            return out

        F.scaled_dot_product_attention = seen
        try:
            yield
        finally:
            F.scaled_dot_product_attention = real


def program(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs attnscope and checks its exit code."""
    run = subprocess.run(
        [os.environ["ATTNSCOPE"], *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == code, (run.returncode, arguments, run.stdout, run.stderr)
    return run


def has_program() -> bool:
    return bool(os.environ.get("ATTNSCOPE"))


class CaptureTest(unittest.TestCase):
    """Tests with a folder of their own and a quiet standard error."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.said = io.StringIO()
        quiet = contextlib.redirect_stderr(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        self.real = F.scaled_dot_product_attention
        self.addCleanup(self.check_restored)

    def check_restored(self) -> None:
        self.assertIs(F.scaled_dot_product_attention, self.real)
        self.assertFalse(sys.modules[attnscope_capture.Capture.__module__]._ACTIVE.locked())

    def refused(self, *words: str) -> Any:
        """Expects a CaptureError whose message has all words."""
        return self.assertRaisesRegex(
            attnscope_capture.CaptureError, "(?s)" + "".join(f"(?=.*{word})" for word in words)
        )
