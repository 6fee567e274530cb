"""Shared by the tests: reading captures, float64 attention, the program."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from collections.abc import Iterator
from unittest import mock

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
                "approximation",
                "block",
                "slot",
                "q_state",
                "score",
            )
            facts[name] = text if plain else json.loads(text)
        return Recorded(path.name, facts, {n: f.get_tensor(n) for n in f.keys()})


def read_capture(folder: Path) -> list[Recorded]:
    """Calls in the order of capture.json, whose facts must be those of the files, and its version the
    latest of theirs."""
    catalogue = json.loads((folder / "capture.json").read_text())
    calls = []
    for entry in catalogue["calls"]:
        call = read_call(folder / entry["file"])
        for name, value in entry.items():
            assert name == "file" or call.facts[name] == value, (entry, call.facts)
        calls.append(call)
    assert catalogue["format"] == max(c.facts["format"] for c in calls), catalogue["format"]
    for call in calls:
        second = call.facts["mask"] not in ("none", "causal", "tensor")
        facts = ("block", "queries", "approximation", "part", "minus", "score", "forward")
        second |= any(name in call.facts for name in facts)
        second |= "sinks" in call.tensors
        assert call.facts["format"] == f"attnscope-capture/{2 if second else 1}", call.facts
    return calls


def kept_entries(call: Recorded) -> torch.Tensor:
    """Which entries the call's boolean mask keeps, as the format defines what is stated: bool, broadcastable
    to [B, H, Nq, Nk]."""
    queries, keys = call["q"].shape[2], call["k"].shape[2]
    i, j = torch.arange(queries)[:, None], torch.arange(keys)[None]
    word, _, number = call.facts["mask"].partition(":")
    if word == "none":
        return torch.ones(queries, keys, dtype=torch.bool)
    if word == "causal":
        return j <= i
    if word == "tensor":
        return call["mask"]
    if word == "window":
        before, behind = map(int, number.split(","))
        apart = j - i - (keys - queries)
        left = apart >= -before if before >= 0 else True
        return left & (apart <= behind) if behind >= 0 else left & torch.ones_like(apart, dtype=torch.bool)
    if word == "block_causal":
        return j // int(number) <= i // int(number)
    if word == "blocks":
        height, width = map(int, call.facts["mask_block"].split("x"))
        blocks = call["mask_blocks"]
        return blocks[:, :, i // height, j // width]
    if word == "spans":
        kept = torch.zeros(queries, keys, dtype=torch.bool)
        for q0, q1, k0, k1, causal in call["mask_spans"].tolist():
            kept[q0:q1, k0:k1] = (j[:, k0:k1] - k0 <= i[q0:q1] - q0) if causal else True
        return kept
    if word == "segments":
        of = call["mask_segments"].view(-1, 1, keys)
        return of[..., None] == of[:, :, None]
    valid = call["mask_valid"].view(-1, 1, 1, keys)
    assert word in ("valid", "valid_pairs"), word
    return valid & valid.transpose(2, 3) if word == "valid_pairs" else valid


def weights(call: Recorded) -> torch.Tensor:
    """softmax(scale·QKᵀ + mask), or what the score says, in float64 from what the file states,
    [B, H, Nq, Nk]; rows without keys are zeros."""
    q, k = call["q"].double(), call["k"].double()
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    if call.facts.get("score") == "linear:normaliser":
        return q @ k.transpose(2, 3) / call["normaliser"].double()[..., None]
    if call.facts.get("score") == "linear:relu":
        products = q.relu() @ k.relu().transpose(2, 3)
        return products / products.sum(-1, keepdim=True).clamp(min=1e-300)
    logits = call.facts["scale"] * q @ k.transpose(2, 3)
    word, _, cap = call.facts.get("score", "softmax").partition(":")
    assert word in ("softmax", "softcap"), word
    if cap:
        logits = float(cap) * torch.tanh(logits / float(cap))
    if call.facts["mask"] == "tensor" and call["mask"].dtype != torch.bool:
        logits = logits + call["mask"].double()
    else:
        logits = logits.masked_fill(~kept_entries(call), -torch.inf)
    sums = logits.logsumexp(-1, keepdim=True)
    if "sinks" in call.tensors:
        sums = torch.logaddexp(sums, call["sinks"].double()[..., None])
    return (logits - sums).exp().masked_fill(~logits.isfinite().any(-1, keepdim=True), 0)


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


# Lines of what a capture left out, or recorded without a label.
TOLD = re.compile("not recorded: |recorded by number: ")


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

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        """A test that expects refusals runs twice: as captures are, and with strict=True."""
        self.strict, self.refuses = False, False
        result = super().run(result)
        if not self.refuses:
            return result
        self.strict = True
        options = sys.modules[attnscope_capture.Capture.__module__].Options
        real = options.__init__

        def strictly(this: Any, *args: Any, **given: Any) -> None:
            real(this, *args, **{"strict": True, **given})

        with mock.patch.object(options, "__init__", strictly):
            return super().run(result)

    def check_restored(self) -> None:
        self.assertIs(F.scaled_dot_product_attention, self.real)
        self.assertFalse(sys.modules[attnscope_capture.Capture.__module__]._ACTIVE.locked())

    @contextlib.contextmanager
    def refused(self, *words: str) -> Iterator[None]:
        """Expects that a line or a CaptureError has all words; with strict=True, that it is the error."""
        self.refuses = True
        pattern = "(?s)" + "".join(f"(?=.*{word})" for word in words)
        before = len(self.said.getvalue())
        if self.strict:
            with self.assertRaisesRegex(attnscope_capture.CaptureError, pattern):
                yield
            return
        try:
            yield
        except attnscope_capture.CaptureError as error:
            self.assertRegex(str(error), pattern)
        else:
            told = [line for line in self.said.getvalue()[before:].splitlines() if TOLD.search(line)]
            self.assertTrue(any(re.search(pattern, line) for line in told), (words, told))
