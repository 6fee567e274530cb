"""Captures that the environment asks for, and transformers' attention function of that name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import attnscope_capture
from attnscope.capture import CaptureError, capture, install
from attnscope.capture.install import VARIABLE, parse_setting
from attnscope.capture.interface import capped_attention, register_attention
from model_cases import SIZES, TEXT, TOKENS, made
from support import TOLERANCE, CaptureTest, output_error, read_capture
from test_steps import WithoutTimestep, tokens

ROOT = Path(__file__).resolve().parents[2]
SERVER = """
import os, sys, time
import torch
import attnscope.capture
from test_steps import WithoutTimestep, tokens
model = WithoutTimestep()
attnscope.capture.install(model, guidance="batch")
with torch.no_grad():
    for step in range(3):
        model(tokens(step, "cond"))
"""


def asks(setting: str) -> Any:
    return mock.patch.dict(os.environ, {VARIABLE: setting})


class Grammar(CaptureTest):
    def test_what_it_says(self) -> None:
        folder, options = parse_setting("'my dump/' layers=0,12-14 steps=0-39:5 branch=cond,uncond values=no rows=8")
        self.assertEqual(folder, "my dump/")
        self.assertEqual(
            options,
            {"layers": "0,12-14", "steps": "0-39:5", "branch": ["cond", "uncond"], "values": False, "rows": 8},
        )
        self.assertEqual(parse_setting("d-{pid} kinds=self prompt='a red dog' grid=2x4x5"), (
            f"d-{os.getpid()}", {"kinds": "self", "prompt": "a red dog", "grid": "2x4x5"}
        ))  # fmt: skip

    def test_what_cannot_be_meant_is_one_line(self) -> None:
        for text, words in (
            ("layers=0", "expected a folder"),
            ("dump layer=0", r"layer=0: .*did you mean layers\?"),
            ("dump 0,3", "0,3: expected NAME=VALUE"),
            ("dump layers=", "layers=: expected a value"),
            ("dump layers=a", 'layers: expected numbers .*got "a"'),
            ("dump steps=3-1", "ends before it begins"),
            ("dump heads=x", "heads: expected"),
            ("dump steps=0 steps=1", "steps stands there twice"),
            ("dump values=maybe", "expected yes or no"),
            ("dump rows=-1", "expected a whole number"),
            ("dump kinds=selfish", "kinds: expected"),
            ("dump grid=2x4", "grid: expected"),
            ("dump text=16", "text: expected"),
            ("dump modules=(", "modules: expected"),
            ("dump prompt='a", "no closing quotation"),
        ):
            with self.subTest(text), asks(text):
                with self.assertRaisesRegex(CaptureError, f"^{VARIABLE}: .*{words}") as raised:
                    install(WithoutTimestep())
                self.assertNotIn("\n", str(raised.exception))

    def test_every_name_is_an_option(self) -> None:
        from attnscope.capture.install import _OPTIONS

        known = set(attnscope_capture.Options.__dataclass_fields__)
        self.assertEqual(set(_OPTIONS) - known, set())
        self.assertEqual(len(set(_OPTIONS)), len(_OPTIONS))


class Servers(CaptureTest):
    def run_model(self, model: Any, steps: int = 2) -> None:
        with torch.no_grad():
            for step in range(steps):
                model(tokens(step, "cond"))

    def test_without_the_variable_nothing_is_done(self) -> None:
        for setting in ("", " "):
            with asks(setting):
                self.assertIsNone(install(WithoutTimestep()))
                self.assertIsNone(install())

    def test_a_model_until_it_is_closed(self) -> None:
        model = WithoutTimestep()
        with asks(f"{self.folder / 'd'} steps=1"):
            made = install(model, guidance="batch", steps="0")  # the variable's replaces it
        self.addCleanup(made.close)
        self.run_model(model)
        self.assertIs(made.capture._model.first, model)
        made.close()
        made.close()
        self.assertEqual({c.facts["step"] for c in read_capture(self.folder / "d")}, {1})
        self.check_restored()

    def test_one_at_a_time(self) -> None:
        with asks(str(self.folder / "d")):
            made = install(WithoutTimestep(), guidance="batch")
            self.addCleanup(made.close)
            with self.assertRaisesRegex(CaptureError, "installed already: close"):
                install(WithoutTimestep())
            made.close()
        self.assertIn("the model did not run", self.said.getvalue())  # a line, and no error
        with asks(str(self.folder / "e")), capture(None, self.folder / "f", quiet=True):
            torch.nn.functional.scaled_dot_product_attention(*torch.randn(3, 1, 1, 4, 8))
            with self.assertRaisesRegex(CaptureError, "another capture is running"):
                install(WithoutTimestep())
        self.check_restored()

    def server(self, end: str, setting: str) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, VARIABLE: setting, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), *sys.path])}
        return subprocess.run(
            [sys.executable, "-c", SERVER + textwrap.dedent(end)],
            env=given, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    def test_however_a_process_ends_the_capture_opens(self) -> None:
        killed = """
            while not (os.path.exists("kill/capture.json") and open("kill/capture.json").read().count("file") > 1):
                time.sleep(0.01)
            os.kill(os.getpid(), 9)
            """
        for name, end, code in (
            ("end", "", 0),
            ("exit", "sys.exit(3)", 3),
            ("error", "raise KeyError('x')", 1),
            ("kill", killed, -signal.SIGKILL),
        ):
            with self.subTest(name):
                run = self.server(end, f"{name}/ layers=0")
                self.assertEqual(run.returncode, code, run.stderr)
                calls = read_capture(self.folder / name)
                self.assertEqual([c.facts["step"] for c in calls][:2], [0, 1])
                self.assertGreaterEqual(len(calls), 2 if name == "kill" else 3)

    def test_a_setting_that_cannot_be_meant_ends_the_server_before_it_serves(self) -> None:
        run = self.server("", "dump layer=0")
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"CaptureError: {VARIABLE}: layer=0", run.stderr.strip().splitlines()[-1])
        self.assertFalse((self.folder / "dump").exists())


class Interface(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        self.assertTrue(register_attention())

    def named(self, cls: str, **sizes: Any) -> tuple[Any, Any]:
        """The model with its own attention, and with the recorder's."""
        own = made(f"{cls}Model", f"{cls}Config", **SIZES | TOKENS | sizes)
        ours = made(f"{cls}Model", f"{cls}Config", **SIZES | TOKENS | sizes)
        ours.load_state_dict(own.state_dict())
        ours.set_attn_implementation("attnscope")
        return own, ours

    def test_models_compute_the_same_and_are_recorded(self) -> None:
        window = {"head_dim": 16, "sliding_window": 8}
        cases = {
            "Llama": {},
            "Gemma2": {**window, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 3.0},
            "GptOss": {**window, "num_local_experts": 2, "num_experts_per_tok": 1},
        }
        for cls, sizes in cases.items():
            own, ours = self.named(cls, **sizes)
            with self.subTest(cls), torch.no_grad(), asks(f"{self.folder / cls} layers=0,1"):
                expected = own(**TEXT)[0]
                made = install()
                self.addCleanup(made.close)
                own(**TEXT)  # another model is none of ours
                self.assertIsNone(made.capture)
                got = ours(**TEXT)[0]
                made.close()
                self.assertLess(float((got - expected).abs().max() / expected.abs().max()), 1e-5)
                self.assertTrue(torch.equal(ours(**TEXT)[0], got))  # the same without a capture
            calls = read_capture(self.folder / cls)
            self.assertEqual([c.facts["layer"] for c in calls], [0, 1])
            for call in calls:
                self.assertLess(output_error(call), TOLERANCE[torch.float32])
        self.assertNotIn("waiting", torch.nn.Module.__call__.__qualname__)
        self.check_restored()

    def test_one_query_of_grouped_heads(self) -> None:
        _, model = self.named("Llama", num_key_value_heads=2)
        with torch.no_grad(), capture(model, self.folder / "d", chunks="0-3"):
            model(**TEXT, use_cache=True)
            model(input_ids=TEXT["input_ids"][:, :1], use_cache=True)
        for call in read_capture(self.folder / "d"):
            self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_an_error_of_a_capture_is_no_error_of_the_server(self) -> None:
        _, model = self.named("Llama")
        (self.folder / "file").write_text("")
        with asks(f"{self.folder / 'file'}"), torch.no_grad():
            made = install()
            self.addCleanup(made.close)
            model(**TEXT)
        self.assertTrue(made.closed)
        self.assertEqual(self.said.getvalue().count("nothing is recorded: "), 1)
        self.check_restored()

    def test_capped_attention_is_that_of_float64(self) -> None:
        torch.manual_seed(0)
        q, k, v = torch.randn(2, 4, 300, 16), torch.randn(2, 2, 310, 16), torch.randn(2, 2, 310, 8)
        mask = torch.rand(2, 1, 300, 310) < 0.5
        mask[:, :, 7] = False
        sinks, bias = torch.randn(1, 4, 1), torch.randn(1, 4, 300, 310)
        earlier = torch.ones(300, 310, dtype=torch.bool).tril()
        for cap, sink, kept, causal, add in (
            (0.0, sinks, mask, False, None),
            (2.0, None, mask, False, bias),
            (2.0, sinks.expand(2, 4, 300), None, True, None),
            (1.5, None, torch.zeros(2, 1, 1, 310).masked_fill(~mask[:, :, 9:10], -torch.inf), False, None),
        ):
            got = capped_attention(q, k, v, kept, add, causal, 0.3, cap, sink).double()
            logits = 0.3 * q.double() @ k.double().repeat_interleave(2, 1).transpose(2, 3)
            logits = cap * torch.tanh(logits / cap) if cap else logits
            logits = logits + add.double() if add is not None else logits
            if kept is not None:
                logits = logits.masked_fill(~kept, -torch.inf) if kept.dtype == torch.bool else logits + kept.double()
            logits = logits.masked_fill(~earlier, -torch.inf) if causal else logits
            sums = logits.logsumexp(-1, keepdim=True)
            sums = torch.logaddexp(sums, sink.double()[..., None]) if sink is not None else sums
            weights = (logits - sums).exp().nan_to_num(0.0)
            expected = weights @ v.double().repeat_interleave(2, 1)
            self.assertLess(float((got - expected).abs().max()), 2e-6)


if __name__ == "__main__":
    unittest.main()
