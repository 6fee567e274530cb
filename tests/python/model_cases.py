"""Shared by the tests of token layouts: real classes at tiny size, and the facts that their captures must hold."""

from __future__ import annotations

import fnmatch
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import attnscope_capture
from attnscope_capture import capture
from support import TOLERANCE, CaptureTest, Recorded, Spy, has_program, output_error, program, read_capture


# A prompt, and the sizes of a language model.
TEXT = {"input_ids": torch.arange(3, 27)[None]}
SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def made(cls: str, config: str, **given: Any) -> Any:
    """A model with small random weights and the functions of its own file."""
    import transformers

    torch.manual_seed(7)
    made_of = getattr(transformers, config)(**given)
    model = getattr(transformers, cls)._from_config(made_of, attn_implementation="eager").eval()
    for name, parameter in model.named_parameters():
        if "sink" in name:  # of a model that nobody trained they are whatever memory held
            torch.nn.init.normal_(parameter, 1.0, 1.0)
        elif parameter.ndim > 1:
            torch.nn.init.normal_(parameter, 0.0, 0.25)
    return model


@dataclass
class Probe:
    """One cell of an input, and the token that it becomes: where a layout says that it stands."""

    argument: str
    index: tuple[Any, ...]  # of the cell in the argument
    call: str  # "BLOCK SLOT" of the first call whose queries have it
    segment: str
    place: int  # in the segment's raster


@dataclass
class Case:
    """A class of a library and the calls of its forward."""

    cls: str
    # Options of the constructor and the forward's inputs; a case of the class with another name beside it.
    make: Callable[[Any], tuple[Any, dict[str, Any]]]  # the class -> (model, inputs)
    # "BLOCK SLOT" with * -> its map as shown() has it: "queries" or "queries > keys".
    calls: dict[str, str]
    layers: int  # of the main stack
    name: str = ""
    masks: dict[str, str] = field(default_factory=dict)  # "BLOCK SLOT" with * -> the fact, where there is one
    probes: Sequence[Probe] = ()
    library: str = "diffusers"
    timestep: str | None = "timestep"  # None: a model without steps
    says: str = ""  # of what is not recorded
    unsized: str = ""  # what estimate() says of a class whose size only a run tells
    apart: int = 0  # calls of modules in no list of blocks, which are not recorded
    pieces: int = 1  # calls of PyTorch's function that are one call of a module


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def cell(*index: int) -> tuple[Any, ...]:
    """A latent of item 0, all channels: [B, C, …]."""
    return (0, slice(None), *index)


def picture_ids(height: int, width: int, first: int = 0, axes: int = 3) -> torch.Tensor:
    """Positions of a picture's tokens in raster order."""
    ids = torch.zeros(height * width, axes)
    ids[:, 0] = first
    ids[:, 1] = torch.arange(height * width) // width
    ids[:, 2] = torch.arange(height * width) % width
    return ids


def prefix(valid: int, count: int) -> torch.Tensor:
    """A padding mask [1, count] of one item, whose first `valid` tokens are no padding."""
    return (torch.arange(count) < valid)[None]


def shown(segments: Sequence[dict[str, Any]]) -> str:
    """One line for a list of segments: "video 3x4x6, text 8 (5)"."""
    words = []
    for s in segments:
        word = s["name"] if s["name"] == s["modality"] else f"{s['name']}:{s['modality']}"
        word += " " + ("x".join(map(str, s["grid"])) if "grid" in s else str(s["count"]))
        word += f" ({s['valid']})" if "valid" in s else ""
        word += f" @{s['first_frame']}" if "first_frame" in s else ""
        word += f" cell {'x'.join(map(str, s['cell']))}" if "cell" in s else ""
        word += f" {s['order']}" if "order" in s else ""
        words.append(word)
    return ", ".join(words)


def map_of(call: Recorded) -> str:
    line = shown(call.facts["queries"])
    return f"{line} > {shown(call.facts['keys'])}" if "keys" in call.facts else line


def tensors_of(output: Any) -> list[torch.Tensor]:
    """All tensors of a forward's result."""
    if isinstance(output, torch.Tensor):
        return [output]
    parts = (
        output.values() if hasattr(output, "values") else output if isinstance(output, (tuple, list)) else ()
    )
    return [t for part in parts for t in tensors_of(part)]


class Models(CaptureTest):
    """Runs cases; a file of tests derives from it."""

    cases: Sequence[Case] = ()
    table: list[str] = []

    @classmethod
    def tearDownClass(cls) -> None:
        print("\n" + "\n".join(cls.table))

    def run_cases(self) -> None:
        for case in self.cases:
            name = f"{case.cls} {case.name}".strip()
            library = importlib.import_module(case.library)
            if not hasattr(library, case.cls):
                self.table.append(f"{name}: not in the installed {case.library}")
                continue
            with self.subTest(name):
                self.check(case, name, getattr(library, case.cls))

    def check(self, case: Case, name: str, cls: Any) -> None:
        torch.manual_seed(3)
        model, inputs = case.make(cls)
        model = model.eval()
        out = self.folder / name.replace(" ", "_")
        spy = Spy()
        with torch.no_grad():
            with spy():
                plain = self.run_steps(case, model, inputs, None)
            with capture(model, out, branch="both") as cap:
                recorded = self.run_steps(case, model, inputs, cap)
        self.assertTrue(plain)
        for a, b in zip(plain, recorded, strict=True):
            self.assertTrue(
                torch.equal(a, b) and bool(a.isfinite().all()), "the model computed something else"
            )
        self.assertIn(case.says, self.said.getvalue())
        calls = read_capture(out)
        self.check_values(case, calls, spy)
        self.check_labels(case, calls)
        self.check_maps(case, calls, name)
        self.check_program(out, calls)
        self.check_size(case, model, inputs, calls)
        for probe in case.probes:
            self.check_probe(case, model, inputs, probe, calls)

    def run_steps(self, case: Case, model: Any, inputs: dict[str, Any], cap: Any) -> list[torch.Tensor]:
        """Two steps of two branches, as a pipeline runs them; once where there are no steps."""
        if case.timestep is None:
            return tensors_of(model(**inputs))
        out = []
        for step in range(2):
            for branch in ("cond", "uncond"):
                stamp = inputs[case.timestep] * (1 - step / 4)
                given = {**inputs, case.timestep: stamp}
                if cap is None:
                    out += tensors_of(model(**given))
                else:
                    with cap.branch(branch):
                        out += tensors_of(model(**given))
        return out

    def check_values(self, case: Case, calls: Sequence[Recorded], spy: Spy) -> None:
        """Every call of scaled_dot_product_attention is there, in its order, to the bit. Linear attention
        (test_linear_attention.py), functions of models' own (test_caps_and_sinks.py) and flex call none."""
        for call in calls:
            self.assertLess(output_error(call), 2 * TOLERANCE[call["out"].dtype], call.file)
        calls = [c for c in calls if "score" not in c.facts and "attention" not in c.facts.get("extra", {})]
        n = case.pieces
        pieces = [spy.calls[i : i + n] for i in range(0, len(spy.calls), n)]
        whole = [{**p[-1], **{name: torch.cat([part[name] for part in p], 2) for name in ("q", "out")}} for p in pieces]
        self.assertEqual(len(calls) + case.apart, len(whole))
        for call, seen in zip(calls, whole):
            for part in ("q", "k", "v"):
                self.assertTrue(torch.equal(call[part], seen[part]), (call.file, part))
            self.assertTrue(torch.equal(call["out"], seen["out"][:, :, call["out_rows"]]), call.file)

    def check_labels(self, case: Case, calls: Sequence[Recorded]) -> None:
        keys = [
            (c.facts["step"], c.facts["block"], c.facts["slot"], str(c.facts.get("branches"))) for c in calls
        ]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(len({c.file for c in calls}), len(calls))
        self.assertEqual({c.facts["format"] for c in calls}, {"attnscope-capture/2"})
        self.assertEqual({c.facts["layer"] for c in calls if "layer" in c.facts}, set(range(case.layers)))
        steps = [(c.facts["step"], c.facts.get("branches")) for c in calls]
        if case.timestep is not None:
            a_forward = len(calls) // 4
            expected = [(s, [b]) for s in range(2) for b in ("cond", "uncond") for _ in range(a_forward)]
            self.assertEqual(steps, expected)
        for call in calls:
            self.assertEqual(call.facts["layer_name"].startswith(call.facts["block"]), True)

    def check_maps(self, case: Case, calls: Sequence[Recorded], name: str) -> None:
        used: dict[str, list[str]] = {}
        for call in calls:
            where = f"{call.facts['block']} {call.facts['slot']}"
            pattern = next((p for p in case.calls if fnmatch.fnmatchcase(where, p)), None)
            self.assertIsNotNone(pattern, where)
            self.assertEqual(map_of(call), case.calls[pattern], where)
            mask = next((m for p, m in case.masks.items() if fnmatch.fnmatchcase(where, p)), "none")
            self.assertEqual(call.facts["mask"], mask, where)
            for side, count in (("queries", call["q"].shape[2]), ("keys", call["k"].shape[2])):
                segments = call.facts.get(side, call.facts["queries"])
                self.assertEqual(sum(s["count"] for s in segments), count, where)
            used.setdefault(pattern, []).append(call.facts["kind"])
        self.assertEqual(set(used), set(case.calls))
        self.table += [f"{name}"] + [f"    {p:40} {used[p][0]:6} {case.calls[p]}" for p in case.calls]

    def check_program(self, out: Path, calls: Sequence[Recorded]) -> None:
        """attnscope opens each call under its block and slot, and computes what the model did."""
        if not has_program():
            return
        listed = json.loads(program("info", out, "--json").stdout)["calls"]
        self.assertEqual(len(listed), len(calls))
        stated = {(c.facts["step"], c.facts["block"], c.facts["slot"]) for c in calls}
        self.assertEqual({(c["step"], c["block"], c["slot"]) for c in listed}, stated)
        program("verify", out)

    def check_size(self, case: Case, model: Any, inputs: dict[str, Any], calls: Sequence[Recorded]) -> None:
        """estimate() tells of one forward the bytes that the tensors of the first step have, exactly."""
        if case.unsized:
            with self.refused(case.unsized):
                attnscope_capture.estimate(model, inputs=inputs)
            return
        first = [c for c in calls if c.facts["step"] == 0 and c.facts.get("branches") in (None, ["cond"])]
        sizes = {c.file: sum(t.numel() * t.element_size() for t in c.tensors.values()) for c in first}
        self.assertEqual(attnscope_capture.estimate(model, inputs=inputs), sum(sizes.values()))
        for layer in range(case.layers):
            some = sum(sizes[c.file] for c in first if c.facts.get("layer") == layer)
            self.assertEqual(attnscope_capture.estimate(model, inputs=inputs, layers=layer), some, layer)

    def check_probe(
        self, case: Case, model: Any, inputs: dict[str, Any], probe: Probe, calls: Sequence[Recorded]
    ) -> None:
        """Changes one cell of an input: of the call, one query must change, where the map has it."""
        changed = dict(inputs)
        value = inputs[probe.argument]
        whole = list(value) if isinstance(value, (list, tuple)) else value.clone()
        if isinstance(whole, list):
            whole[0] = whole[0].clone()
            whole[0][probe.index] += 1.0
        else:
            whole[probe.index] += 1.0
        changed[probe.argument] = whole
        out = self.folder / f"probe-{case.cls}-{case.name}-{probe.argument}-{probe.segment}"
        block, slot = probe.call.split(" ")
        with torch.no_grad(), capture(model, out, steps=0, blocks=block, slots=slot):
            model(**changed)
        after = next(c for c in read_capture(out))
        before = next(c for c in calls if (c.facts["block"], c.facts["slot"]) == (block, slot))
        differ = (after["q"][0] != before["q"][0]).any(-1).any(0).nonzero().flatten().tolist()
        start = 0
        for segment in before.facts["queries"]:
            if segment["name"] == probe.segment:
                break
            start += segment["count"]
        self.assertEqual(differ, [start + probe.place], f"{case.cls}: {probe.segment}")
