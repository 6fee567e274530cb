"""The table of classes in docs/capture.md is what captures of these classes hold."""

import fnmatch
import importlib
import unittest
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import diffusers
import torch

import small_models
import test_models_encoders
import test_models_flux
import test_models_history
import test_models_image
import test_models_language
import test_models_pictures
import test_models_sound
import test_models_video
import test_models_wan
import test_models_worlds
from attnscope_capture import FAMILIES, LAYOUTS, capture
from model_cases import Case
from support import CaptureTest, Recorded, read_capture

PAGE = Path(__file__).resolve().parents[2] / "docs" / "capture.md"
HEAD = ["| class | calls (block and slot) | tokens |", "|---|---|---|"]
CASES: Sequence[Case] = [
    *test_models_video.CASES,
    *test_models_history.CASES,
    *test_models_image.CASES,
    *test_models_encoders.CASES,
    *test_models_wan.CASES,
    *test_models_flux.CASES,
    *test_models_sound.CASES,
    *test_models_pictures.CASES,
    *test_models_language.CASES,
    *test_models_worlds.CASES,
]


def words(segments: Sequence[Mapping[str, Any]]) -> str:
    """The names of segments, with what they are where the name is another; those of a numbered row once."""
    shown: dict[str, None] = {}
    for s in segments:
        base, _, number = s["name"].rpartition("_")
        name = "padding" if s["modality"] == "padding" else base if number.isdigit() else s["name"]
        shown[name if name == s["modality"] else f"{name} ({s['modality']})"] = None
    return ", ".join(shown)


def tokens_of(call: Recorded) -> str:
    """The kinds of a call's query and key tokens, by its token map or by the short facts."""
    facts = call.facts
    if "queries" in facts:
        return words(facts["queries"]) + (f" > {words(facts['keys'])}" if "keys" in facts else "")
    film = "image" if facts["grid"].startswith("1x") else "video"
    axes = {"spatial": f"{film}, a frame an item", "temporal": f"{film}, a place an item"}
    film = axes.get(facts.get("axes", ""), film)
    if facts["kind"] != "joint":
        return film if facts["kind"] == "self" else f"{film} > text"
    return f"text, {film}" if facts["text"].endswith("@start") else f"{film}, text"


def shown_place(rule: str) -> str:
    """"BLOCK SLOT" of a layout's rule as the table has it."""
    block, slot = rule.split(" ")
    if rule == "* *":
        return "all"
    block = block.lstrip("*")
    return f"`{block}`" if slot == "*" else f"`{slot}`" if not block else f"`{block} {slot}`"


def place_of(call: Recorded, rules: Sequence[str]) -> str:
    """The rule that the call follows; its block with * for numbers where there is none."""
    slot = call.facts.get("slot", call.facts["layer_name"].rpartition(".")[2])
    where = f"{call.facts.get('block', 'blocks')} {slot}"
    rule = next((r for r in rules if fnmatch.fnmatchcase(where, r)), None)
    block = ".".join("*" if part.isdigit() else part for part in where.split(" ")[0].split("."))
    return shown_place(rule or f"{block} *")


def flux_with_references() -> tuple[Any, dict[str, Any]]:
    ids = torch.zeros(60, 3)
    ids[:48, 1], ids[:48, 2] = torch.arange(48) // 8, torch.arange(48) % 8
    ids[48:, 0] = 1
    inputs = dict(
        hidden_states=torch.randn(1, 60, 16),
        timestep=torch.tensor([0.5]),
        guidance=torch.tensor([3.5]),
        pooled_projections=torch.randn(1, 8),
        img_ids=ids,
        encoder_hidden_states=torch.randn(1, 8, 12),
        txt_ids=torch.zeros(8, 3),
    )
    return small_models.flux().pipe.transformer, inputs


def wan_of_a_picture() -> tuple[Any, dict[str, Any]]:
    model = diffusers.WanTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        out_channels=4,
        text_dim=12,
        freq_dim=16,
        ffn_dim=32,
        num_layers=1,
        rope_max_seq_len=32,
        added_kv_proj_dim=32,
        image_dim=10,
    )
    inputs = dict(
        hidden_states=torch.randn(1, 4, 3, 8, 12),
        timestep=torch.tensor([5.0]),
        encoder_hidden_states=torch.randn(1, 512, 12),
        encoder_hidden_states_image=torch.randn(1, 9, 10),
    )
    return model, inputs


class ClassTable(CaptureTest):
    def recorded(self, model: Any, inputs: Mapping[str, Any]) -> list[Recorded]:
        with torch.no_grad(), capture(model, self.folder / "d", branch="both", force=True) as cap:
            with cap.branch("cond"):
                model(**inputs)
        return read_capture(self.folder / "d")

    def rows(self) -> dict[str, dict[str, dict[str, None]]]:
        """Class -> calls -> what their tokens are, of real runs with random weights."""
        found: dict[str, dict[str, dict[str, None]]] = {}

        def add(cls: str, calls: Sequence[Recorded], rules: Sequence[str]) -> None:
            for call in calls:
                found.setdefault(cls, {}).setdefault(place_of(call, rules), {})[tokens_of(call)] = None

        for make in small_models.FAMILIES.values():
            small = make()
            with capture(small.pipe, self.folder / "d", branch="both", force=True):
                small.run(2)
            cls = type(small.pipe.transformer).__name__
            add(cls, read_capture(self.folder / "d"), [f"* {name}" for name in FAMILIES[cls].attention])
        more: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
            "WanTransformer3DModel": wan_of_a_picture,
            "FluxTransformer2DModel": flux_with_references,
        }
        for cls, build in more.items():
            slots = [f"* {slot}{end}" for slot in FAMILIES[cls].attention for end in (".image", "")]
            add(cls, self.recorded(*build()), slots)
        for case in CASES:
            cls = getattr(importlib.import_module(case.library), case.cls, None)
            self.assertIsNotNone(cls, f"{case.cls} is not in the installed {case.library}")
            model, inputs = case.make(cls)
            add(case.cls, self.recorded(model.eval(), inputs), list(LAYOUTS[case.cls].calls))
        return found

    def test_the_table_of_the_page(self) -> None:
        torch.manual_seed(3)
        rows = self.rows()
        self.assertEqual(set(rows), set(FAMILIES) | set(LAYOUTS))
        same: dict[str, list[str]] = {}  # lines -> the classes that have them
        for cls, calls in rows.items():
            lines = [f" | {place} | {'; or '.join(tokens)} |" for place, tokens in calls.items()]
            same.setdefault("\n".join(lines), []).append(cls)
        table = list(HEAD)
        for lines, classes in same.items():
            first, *rest = lines.split("\n")
            table += [f"| {', '.join(classes)}{first}", *(f"|{line}" for line in rest)]
        print("\n" + "\n".join(table))
        page = PAGE.read_text().splitlines()
        begin = page.index(HEAD[0])
        end = next(i for i in range(begin, len(page)) if not page[i].startswith("|"))
        self.assertEqual(page[begin:end], table, "docs/capture.md: the table has to be the one above")


if __name__ == "__main__":
    unittest.main()
