"""Every command and every line of Python in docs/capture.md runs, or needs what no test has."""

import argparse
import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import types
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from PIL import Image

import attnscope_capture
import page_models
import small_models
from support import CaptureTest, has_program, read_capture
from test_other_models import IDS, Words
from test_steps import WithoutTimestep, tokens

SEVERAL = "init_process_group"  # in the block that several processes run
SCRIPT = """import torch
from diffusers import ContextParallelConfig
import attnscope_capture, page_models
pipe, prompt = page_models.Pipe(), "a dog"
with page_models.on_this_machine():
"""

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "capture.md"
SCRIPTS = ROOT / "samples" / "capture"

# Lines that need weights, a network, a display or minutes; of our own programs the options are read anyway.
NOT_RUN = {
    "scp attnscope_capture.py gpu-server:": "another machine",
    "pip install torch safetensors numpy Pillow": "a network",
    "pip install diffusers transformers accelerate sentencepiece": "a network",
    "cd samples/capture": "the folder of the commands below it",
    "attnscope view dump": "a display",
}


def blocks() -> tuple[list[str], list[str], list[str]]:
    """(blocks of Python, lines of shell, commands in tables) of the page."""
    python, shell, tables = [], [], []
    fenced: list[str] | None = None
    for line in PAGE.read_text().splitlines():
        if line.startswith("```"):
            if fenced is not None:
                python.append("\n".join(fenced))
            fenced = [] if fenced is None else None
        elif fenced is not None:
            fenced.append(line)
        elif line.startswith("    "):
            shell.append(line.split(" #")[0].strip())
        elif line.startswith("|"):
            tables += re.findall(r"`(python \S+\.py [^`]*)`", line)
    return python, shell, tables


class Read(Exception):
    """A script has read its options."""


def read_options(command: str) -> argparse.Namespace:
    """Reads the options of one of our scripts, and runs it no further."""
    _, script, *arguments = shlex.split(command)
    path = SCRIPTS / script if (SCRIPTS / script).exists() else ROOT / script
    real = argparse.ArgumentParser.parse_args
    read: list[argparse.Namespace] = []

    def parse_args(self: Any, *args: Any, **kwargs: Any) -> argparse.Namespace:
        read.append(real(self, *args, **kwargs))
        raise Read

    with (
        mock.patch.object(sys, "argv", [str(path), *arguments]),
        mock.patch.object(argparse.ArgumentParser, "parse_args", parse_args),
        contextlib.suppress(Read),
    ):
        runpy.run_path(str(path), run_name="__main__")
    return read[0]


def ready(layers: int) -> Any:
    """CogVideoX with random weights and as many layers, which is called with a prompt and gives frames."""
    small = small_models.cogvideox()
    old = small.pipe.transformer
    transformer = type(old).from_config({**old.config, "num_layers": layers}).eval()
    base = type(small.pipe)

    class Ready(base):  # type: ignore[misc, valid-type]
        def __call__(self, prompt: str) -> Any:
            super().__call__(**small.arguments, num_inference_steps=50, return_dict=False)
            return types.SimpleNamespace(frames=[[Image.new("RGB", (96, 64), (n, 0, 0)) for n in range(9)]])

    Ready.__name__ = base.__name__
    absent = dict.fromkeys(("tokenizer", "text_encoder", "vae"))
    pipe = Ready(**absent, transformer=transformer, scheduler=small.pipe.scheduler)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def skyreels() -> Any:
    from diffusers import SkyReelsV2Transformer3DModel

    sizes = {"num_attention_heads": 2, "attention_head_dim": 16, "freq_dim": 16, "ffn_dim": 32}
    transformer = SkyReelsV2Transformer3DModel(text_dim=4096, num_layers=2, **sizes)
    return types.SimpleNamespace(transformer=transformer)


class Page(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        before = Path.cwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)

    def test_every_block_of_python(self) -> None:
        """In the order of the page, each in a folder of its own."""
        python, _, _ = blocks()
        model = WithoutTimestep()
        model.forward = lambda x, t, words: model.run(x)  # type: ignore[method-assign]
        names: dict[str, Any] = {"torch": torch, "attnscope_capture": attnscope_capture, "prompt": "a dog"}
        names |= {"model": model, "timesteps": (9.0, 5.0), "nothing": None, "x": tokens(0, "cond")}
        names |= {"tokenizer": Words(), "ids": IDS[1:], "capture": attnscope_capture.capture}
        names |= {"chunks": 1, "first": 1560, "past": 4680, "kv_cache": torch.randn(1, 0, 8)}
        self.assertEqual(len(python), 9)
        for number, block in enumerate(python):
            if SEVERAL in block:  # test_every_command has torchrun start it
                continue
            with self.subTest(block):
                folder = self.folder / str(number)
                folder.mkdir()
                os.chdir(folder)
                names["pipe"] = (
                    skyreels() if "inputs=" in block else ready(30 if "estimate(" in block else 15)
                )
                if "generate(" in block:
                    names["model"] = page_models.language_model()
                elif "kv_cache" in block:
                    names |= {"model": page_models.Rolling(), "latents": torch.randn(1, 4680, 8)}
                with torch.no_grad():
                    exec(block, names)
                names["model"] = model
                if '"dump/"' in block or '"dump"' in block:
                    self.assertTrue(read_capture(folder / "dump"))

    def test_every_command(self) -> None:
        _, shell, tables = blocks()
        self.assertGreater(len(shell), 12)
        self.assertGreater(len(tables), 7)
        unknown = [line for line in NOT_RUN if line not in shell]
        self.assertEqual(unknown, [], "lines that the page no longer has")
        for command in tables:  # with weights
            self.assertIn("--model", command)
            self.assertTrue(read_options(command).model, command)
        ran = 0
        for line in shell:
            with self.subTest(line):
                if line in NOT_RUN:
                    continue
                ran += self.run_line(line)
        self.assertGreater(ran, 6)

    def run_line(self, line: str) -> int:
        """Runs a line as it stands, in a folder with what the lines before it have made."""
        words = shlex.split(line)
        settings = {}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            settings[name] = str(ROOT / value)
        if words[0] == "torchrun":
            return self.run_together(words)
        if words[0] == "attnscope":
            if not has_program():
                return 0
            if "25" in words or "15" in words:
                self.make_large_dump()
                words[words.index("dump")] = "large"
            words[0] = os.environ["ATTNSCOPE"]
        elif words[0] == "python":
            folder = SCRIPTS if (SCRIPTS / words[1]).exists() else ROOT
            words = [sys.executable, str(folder / words[1]), *words[2:]]
            if "bench" in words[1]:
                read_options(" ".join(["python", *words[1:]]))
                words += ["--rounds", "1", "--grid", "1x8x8"]
        else:
            words[0] = str(ROOT / words[0])
        run = subprocess.run(
            words, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=300
        )
        self.assertEqual(run.returncode, 0, (line, run.stdout, run.stderr))
        return 1

    def run_together(self, words: list[str]) -> int:
        """The block of Python that several processes run; the commands below work with what it writes."""
        os.makedirs("together")
        os.chdir("together")
        block = next(each for each in blocks()[0] if SEVERAL in each)
        lines = "".join(f"    {line}\n" for line in block.splitlines())
        Path(words[-1]).write_text(SCRIPT + lines)
        run = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", *words[1:]],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        self.assertEqual(run.returncode, 0, run.stderr[-4000:])
        return 1

    def make_large_dump(self) -> None:
        """A call of layer 15 and step 25 of CogVideoX-2B's size."""
        if Path("large").exists():
            return
        q, k = torch.randn(1, 1, 226 + 13 * 30 * 45, 8), torch.randn(1, 1, 226 + 13 * 30 * 45, 8)
        with contextlib.redirect_stderr(io.StringIO()):
            attnscope_capture.record(
                q, k, k, "large", step=25, layer=15, grid=(13, 30, 45), text="226@start", kind="joint"
            )


if __name__ == "__main__":
    unittest.main()
