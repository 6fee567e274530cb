"""The nodes of ComfyUI, with stand-ins for its model patcher and its attention functions: what they are given is as
ComfyUI gives it (docs/comfyui.md tells that it was not run itself)."""

import contextlib
import functools
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import attnscope
from attnscope.capture import CaptureError
from reference import ROOT

GRID, TEXT, HEADS = (2, 3, 4), 5, 2
SIGMAS = torch.tensor([1.0, 0.7, 0.3, 0.0])


def load_nodes() -> Any:
    """The folder as ComfyUI loads one of its custom_nodes: by its place, under a name that no import has."""
    folder = ROOT / "python" / "comfyui"
    name = str(folder).replace(".", "_x_")
    places = [str(folder)]
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=places)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module, sys.modules[f"{name}.recording"]


comfyui, recording_module = load_nodes()
OVERRIDE, Recording = recording_module.OVERRIDE, recording_module.Recording


def overridable(function: Any) -> Any:
    """As ComfyUI lets nodes stand in the place of its attention functions."""

    @functools.wraps(function)
    def attention(*args: Any, **kwargs: Any) -> Any:
        options = kwargs.get("transformer_options") or {}
        if OVERRIDE in options:
            return options[OVERRIDE](function, *args, **kwargs)
        return function(*args, **kwargs)

    return attention


@overridable
def attention(q: Any, k: Any, v: Any, heads: int, mask: Any = None, skip_reshape: bool = False, **_: Any) -> Any:
    """[B, N, H·d], or [B, H, N, d] with skip_reshape; the result is [B, N, H·d]."""
    if not skip_reshape:
        q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    if mask is not None and mask.ndim == 3:
        mask = mask[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


class Patcher:
    """A model patcher, as far as nodes use it; sample() runs blocks of self- and cross-attention."""

    def __init__(self) -> None:
        self.model_options: dict[str, Any] = {"transformer_options": {}}

    def clone(self) -> "Patcher":
        made = Patcher()
        made.model_options = {**self.model_options}
        return made

    def sample(self, seed: int = 0, joint: bool = False, kinds: tuple[int, ...] = (1, 0)) -> list[torch.Tensor]:
        make = torch.Generator().manual_seed(seed)
        places = GRID[0] * GRID[1] * GRID[2]
        results = []
        for sigma in SIGMAS[:-1]:
            options = {**self.model_options["transformer_options"], "sigmas": sigma[None], "sample_sigmas": SIGMAS}
            options |= {"cond_or_uncond": list(kinds), "block_type": "double"}
            for block in range(3):
                options["block_index"] = block
                for keys in (places + TEXT,) if joint else (places, TEXT):
                    queries = keys if joint else places
                    shapes = ((len(kinds), n, HEADS * 8) for n in (queries, keys, keys))
                    q, k, v = (torch.randn(shape, generator=make) for shape in shapes)
                    results.append(attention(q, k, v, HEADS, transformer_options=options))
        return results


class Clip:
    """Tells tokens as ComfyUI's CLIP does: pairs of a number and a weight, in batches, by encoder."""

    WORDS = ("a", "red", "dog", "</s>", "</s>")

    def __init__(self) -> None:
        self.tokenizer = self

    def tokenize(self, text: str) -> dict[str, Any]:
        return {"umt5xxl": [[(n, 1.0) for n in range(len(self.WORDS))]]}

    def untokenize(self, pairs: Any) -> Any:
        return [(pair, self.WORDS[pair[0]]) for pair in pairs]


class Nodes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.said = io.StringIO()
        quiet = contextlib.redirect_stderr(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def patched(self, **options: Any) -> tuple[Any, str]:
        given = {"folder": str(self.folder / "dump"), "layers": "0,2", "steps": "1", "limit_mib": 64, **options}
        given.setdefault("latent", {"samples": torch.zeros(1, 16, 2, 6, 8)})
        node = comfyui.NODE_CLASS_MAPPINGS["AttnscopeCapture"]()
        return node.patch(Patcher(), clip=Clip(), prompt="a red dog", **given)

    def test_a_capture_of_what_was_sampled(self) -> None:
        plain = Patcher().sample()
        model, path = self.patched()
        for a, b in zip(model.sample(), plain, strict=True):
            self.assertTrue(torch.equal(a, b))
        self.assertEqual(self.said.getvalue(), "")
        cap = attnscope.open(path)
        self.assertEqual([(c.step, c.layer, c.kind) for c in cap], [
            (1, 0, "self"), (1, 0, "cross"), (1, 2, "self"), (1, 2, "cross")
        ])  # fmt: skip
        self.assertEqual({tuple(c.grid) for c in cap}, {GRID})
        self.assertEqual(cap.call(0).batch, 1)  # of cond alone
        self.assertAlmostEqual(cap.call(0).timestep, 0.7, places=6)
        # The second item is cond: its output is that of its weights.
        output = cap.call(0).head(1).output()
        np.testing.assert_allclose(output, plain[6][1].unflatten(-1, (HEADS, -1))[:, 1].numpy(), atol=1e-5)
        self.assertEqual(cap.call(1).tokens[0], list(Clip.WORDS))
        model.sample(seed=1)  # the same patched model again: what it has stays
        self.assertEqual(len(attnscope.open(path)), 4)
        self.assertIn("already", self.said.getvalue())

    def test_words_over_the_frames(self) -> None:
        model, path = self.patched()
        model.sample()
        images = torch.rand(5, 24, 32, 3)
        node = comfyui.NODE_CLASS_MAPPINGS["AttnscopeWords"]()
        drawn, told = node.draw(path, images, "red, dog", "all", 0.6)
        self.assertEqual(tuple(drawn.shape), (10, 24, 32, 3))
        self.assertTrue(0 <= float(drawn.min()) <= float(drawn.max()) <= 1)
        self.assertRegex(told, "^<Words over 2 × 3 × 4, mean of 4 heads: red .*, dog ")
        volume = attnscope.open(path).words("red", layers=2)["red"]
        alone, _ = node.draw(path, torch.zeros(5, 24, 32, 3), "red", "2", 1.0)
        at = np.unravel_index(int(np.argmax(volume)), volume.shape)
        bright = alone[1 if at[0] else 0].sum(-1)
        self.assertEqual(float(bright.max()), float(bright[8 * at[1] + 4, 8 * at[2] + 4]))
        self.assertEqual(node.draw(path, images, "", "all", 0.5)[0].shape[0], 15)  # a, red, dog
        with self.assertRaisesRegex(attnscope.Error, "cat"):
            node.draw(path, images, "cat", "all", 0.5)

    def test_joint_attention_has_its_text_at_the_start(self) -> None:
        model, path = self.patched()
        model.sample(joint=True, kinds=(0,))
        cap = attnscope.open(path)
        self.assertEqual({(c.kind, c.text, tuple(c.grid)) for c in cap}, {("joint", f"{TEXT}@start", GRID)})
        self.assertEqual(cap.call(0).tokens[0], list(Clip.WORDS))

    def test_what_cannot_be_recorded_is_a_line_and_sampling_goes_on(self) -> None:
        model, path = self.patched(limit_mib=1)
        model.sample(kinds=(1,))  # nothing of cond
        self.assertFalse(Path(path).exists())
        recording = Recording(str(self.folder / "x"), "all", "all", limit=1)
        q = torch.randn(1, 4, 16)
        place = {"block_index": 0, "sigmas": torch.ones(1)}
        for options, words in (
            ({}, "tells no block"),
            ({"block_index": 0}, "tells no step"),
            (place, "a call takes"),
            ({**place, "cond_or_uncond": [0, 1, 0]}, "a batch of 1 items has 3 parts"),
        ):
            options = {**options, OVERRIDE: recording.override}
            self.assertTrue(torch.equal(attention(q, q, q, 2, transformer_options=options), attention(q, q, q, 2)))
            self.assertIn(words, self.said.getvalue().splitlines()[-1])
        for wrong in ({"layers": "x"}, {"steps": "3-1"}, {"folder": " "}):
            with self.assertRaises(CaptureError):
                self.patched(**wrong)

    def test_another_override_goes_on_and_masks_are_recorded(self) -> None:
        seen: list[int] = []

        def before(function: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(1)
            return function(*args, **kwargs)

        recording = Recording(str(self.folder / "m"), "all", "all", grid="1x2x2")
        options = {"block_index": 0, "sigmas": torch.ones(1), OVERRIDE: recording.beside(before)}
        q = torch.randn(1, 2, 4, 8)
        mask = torch.tensor([[[True, True, False, True]]]).expand(1, 4, 4)
        given = {"mask": mask, "skip_reshape": True}
        got = attention(q, q, q, 2, **given, transformer_options=options)
        self.assertTrue(torch.equal(got, attention(q, q, q, 2, **given)))
        self.assertEqual(len(seen), 1)
        self.assertEqual(attnscope.open(self.folder / "m").call(0).head(0).weights()[:, 2].max(), 0)


if __name__ == "__main__":
    unittest.main()
