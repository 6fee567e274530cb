"""Pieces of a stream: language models that generate with a cache, and models of one's own that roll."""

import json
import unittest
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from attnscope_capture import CaptureError, capture
from support import TOLERANCE, CaptureTest, Recorded, has_program, output_error, program, read_capture
from test_other_models import IDS, Words, llama

PROMPT = IDS[1:]


def mistral() -> Any:
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    return MistralForCausalLM(
        MistralConfig(
            vocab_size=20,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            intermediate_size=16,
            initializer_range=0.3,
            sliding_window=5,
            attn_implementation="sdpa",
        )
    ).eval()


class Attention(torch.nn.Module):
    """Attention of a chunk to what a cache keeps and to itself, each token turned by its place."""

    def __init__(self) -> None:
        super().__init__()
        self.to_qkv = torch.nn.Linear(16, 48)
        self.cached: list[torch.Tensor] = []  # k, v of [B, H, N, d]

    def forward(self, x: torch.Tensor, positions: torch.Tensor, keep: list[slice] | None) -> torch.Tensor:
        q, k, v = (t.unflatten(2, (2, 8)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=2))
        q, k = turned(q, positions), turned(k, positions)
        if self.cached:
            k, v = (torch.cat([c, t], 2) for c, t in zip(self.cached, (k, v)))
        out = F.scaled_dot_product_attention(q, k, v)
        if keep is not None:
            self.cached = [torch.cat([t[:, :, s] for s in keep], 2) for t in (k, v)]
        return x + out.transpose(1, 2).flatten(2)


def turned(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    angle = positions[:, None] * torch.tensor([1.0, 0.3, 0.1, 0.03])
    a, b = x[..., :4], x[..., 4:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Video(torch.nn.Module):
    """Two blocks over a stream of frames of 2x3 tokens."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.blocks = torch.nn.ModuleList(torch.nn.ModuleDict({"attn": Attention()}) for _ in range(2))

    def forward(self, x: torch.Tensor, positions: torch.Tensor, keep: list[slice] | None = None) -> torch.Tensor:
        for block in self.blocks:
            x = block["attn"](x, positions, keep)
        return x

    def reset(self) -> None:
        for block in self.blocks:
            block["attn"].cached = []


FRAME = 6
TOKENS = torch.randn(1, 8 * FRAME, 16, generator=torch.Generator().manual_seed(5))


def part(first: int, past: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(tokens, positions) of the frames from `first` to before `past`."""
    places = torch.arange(first * FRAME, past * FRAME)
    return TOKENS[:, places], places.float()


@unittest.skipUnless(has_program(), "needs the program")
class Stitched(CaptureTest):
    def stitch(self, name: str, code: int = 0) -> list[Recorded]:
        done = program("convert", "--stitch", self.folder / name, "-o", self.folder / f"{name}-one", code=code)
        self.narration = done.stderr
        if not (self.folder / f"{name}-one").exists():
            return []
        program("verify", self.folder / f"{name}-one")
        calls = [c for c in read_whole(self.folder / f"{name}-one")]
        for call in calls:
            self.assertNotIn("chunk", call.facts)
        return calls

    def assert_near(self, a: torch.Tensor, b: torch.Tensor) -> None:
        self.assertEqual(a.shape, b.shape)
        self.assertLess(float((a - b).abs().max()), 2e-5 * float(b.abs().max()))

    def check_generation(self, model: Any, **more: Any) -> None:
        """A generation's chunks, joined, are the run without a cache."""
        with torch.no_grad(), capture(model, self.folder / "g", tokenizer=Words()):
            ids = model.generate(PROMPT, max_new_tokens=5, do_sample=False, eos_token_id=None, **more)
        with torch.no_grad(), capture(model, self.folder / "plain"):
            model(ids[:, :-1], use_cache=False)
        chunks = read_capture(self.folder / "g")
        self.assertEqual([c.facts["chunk"] for c in chunks], [n for n in range(5) for _ in range(2)])
        for call in chunks:
            self.assertEqual((call.facts["step"], call.facts["kind"]), (0, "self"))
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
            (own,) = call.facts["queries"]
            self.assertEqual(own["position"], 0 if call.facts["chunk"] == 0 else 6 + call.facts["chunk"])
            self.assertEqual(own["modality"], "text")
        for call, plain in zip(self.stitch("g"), read_capture(self.folder / "plain"), strict=True):
            for name in ("q", "k", "v"):
                self.assert_near(call[name], plain[name])
            self.assertEqual(call.facts["queries"][0]["words"], Words().convert_ids_to_tokens(ids[0, :-1].tolist()))
            self.assertEqual(call.facts["mask"], plain.facts["mask"] if plain.facts["mask"] == "causal" else "spans")

    def test_a_dynamic_cache(self) -> None:
        self.check_generation(llama())
        self.assertEqual(read_whole(self.folder / "g-one")[0].facts["mask"], "causal")

    def test_a_static_cache(self) -> None:
        self.check_generation(llama(), cache_implementation="static")
        self.assertEqual(read_whole(self.folder / "g-one")[0].facts["mask"], "causal")

    def test_a_sliding_window(self) -> None:
        self.check_generation(mistral())
        calls = read_capture(self.folder / "g")
        (cached, own) = calls[-1].facts["keys"]
        self.assertEqual((cached["position"], cached["count"], own["position"]), (6, 4, 10))

    def run_video(self, name: str, pieces: list[tuple[int, int]], window: int | None = None) -> None:
        """Frames piece by piece; window: the cache keeps the first frame and so many of the latest."""
        model = Video().eval()
        held: list[tuple[int, int]] = []  # frames in the cache
        with torch.no_grad(), capture(model, self.folder / name, grid=(1, 2, 3)) as cap:
            for number, (first, past) in enumerate(pieces):
                cap.begin_chunk(
                    number,
                    query_position=first * FRAME,
                    key_positions=[(a * FRAME, b * FRAME) for a, b in [*held, (first, past)]],
                    grid=(past - first, 2, 3),
                )
                count = sum(b - a for a, b in held) + past - first
                keep = [slice(0, count * FRAME)]
                held = [(0, past)]
                if window is not None and past > window + 1:
                    keep = [slice(0, FRAME), slice((count - window) * FRAME, count * FRAME)]
                    held = [(0, 1), (past - window, past)]
                model(*part(first, past), keep)

    def test_a_causal_video_model(self) -> None:
        pieces = [(0, 2), (2, 5), (5, 8)]
        self.run_video("v", pieces)
        calls = self.stitch("v")
        self.assertEqual(len(calls), 2)
        # Of the first block the uncached run: all tokens, each attending to the frames up to its piece's end.
        attention = Video().eval().blocks[0]["attn"]
        tokens, positions = part(0, 8)
        q, k, v = (t.unflatten(2, (2, 8)).transpose(1, 2) for t in attention.to_qkv(tokens).chunk(3, dim=2))
        self.assert_near(calls[0]["q"], turned(q, positions))
        self.assert_near(calls[0]["k"], turned(k, positions))
        self.assert_near(calls[0]["v"], v)
        self.assertEqual(calls[0].facts["queries"][0]["grid"], [8, 2, 3])
        self.assertNotIn("keys", calls[0].facts)
        spans = [[2 * FRAME, 5 * FRAME, 0, 5 * FRAME, 0], [5 * FRAME, 8 * FRAME, 0, 8 * FRAME, 0]]
        self.assertEqual(calls[0]["mask_spans"].tolist(), [[0, 2 * FRAME, 0, 2 * FRAME, 0], *spans])
        self.assert_rows("v", pieces)

    def test_a_rolling_window(self) -> None:
        pieces = [(0, 2), (2, 4), (4, 6), (6, 8)]
        self.run_video("w", pieces, window=2)
        calls = read_capture(self.folder / "w")
        names = [(s["name"], s["modality"], s["position"], s["grid"]) for s in calls[-1].facts["keys"]]
        self.assertEqual(
            names,
            [
                ("cached", "history", 0, [1, 2, 3]),
                ("cached.2", "history", 4 * FRAME, [2, 2, 3]),
                ("video", "video", 6 * FRAME, [2, 2, 3]),
            ],
        )
        (call, _) = self.stitch("w")
        self.assertEqual(call.facts["queries"][0]["grid"], [8, 2, 3])
        last = [[6 * FRAME, 8 * FRAME, 0, FRAME, 0], [6 * FRAME, 8 * FRAME, 4 * FRAME, 8 * FRAME, 0]]
        self.assertEqual(call["mask_spans"].tolist()[-2:], last)
        self.assert_rows("w", pieces, 1e-6)
        self.assert_hatched("w-one", pieces, call["mask_spans"].tolist())

    def assert_hatched(self, name: str, pieces: list[tuple[int, int]], spans: list[list[int]]) -> None:
        """Pictures hatch the earlier keys that a piece no longer saw, and nothing else."""
        seen = torch.zeros(8 * FRAME, 8 * FRAME, dtype=torch.bool)
        for q0, q1, k0, k1, _ in spans:
            seen[q0:q1, k0:k1] = True
        earlier = torch.zeros_like(seen)
        for first, past in pieces:
            earlier[first * FRAME : past * FRAME, : first * FRAME] = True
        evicted = earlier & ~seen
        self.assertGreater(int(evicted.sum()), 0)
        one = ["--layers", 0, "--heads", 1]
        png = self.folder / "map.png"
        facts = program(
            "render", self.folder / name, *one, "--picture", "matrix", "--block", 1, "-o", png, "--json", "--force"
        ).stdout  # fmt: skip
        self.assertEqual(json.loads(facts)["evicted_cells"], int(evicted.sum()))
        # A film of the last frame's first token: hatched lines where frames were dropped, beside one of a query
        # that has lost nothing.
        from PIL import Image

        def hatched(query: str, *more: str) -> int:
            program("query", self.folder / name, *one, *more, "--query", query, "-o", png, "--force")
            return sum(n for n, colour in Image.open(png).convert("RGB").getcolors(1 << 20) if colour == (60, 68, 77))

        self.assertGreater(hatched("7,0,0"), 1000)
        self.assertEqual(hatched("1,0,0"), 0)
        self.assertGreater(hatched("2,0,0", "--reverse"), 1000)

    def assert_rows(self, name: str, pieces: list[tuple[int, int]], rounding: float = 0) -> None:
        """Rows of the joined map are those of the chunks' calls; rounding: of their sums, where keys that were
        evicted stand between those that they saw."""
        for number, (first, _) in enumerate(pieces):
            row = self.row(f"{name}-one", first * FRAME + 1)
            chunk = self.row(name, 1, "--chunks", str(number))
            seen = [w for w in row if w]
            self.assertEqual(len(seen), len(chunk))
            for a, b in zip(sorted(seen), sorted(chunk)):
                self.assertLessEqual(abs(a - b), rounding * b)

    def row(self, name: str, index: int, *more: str) -> list[float]:
        out = self.folder / "row.csv"
        program("query", self.folder / name, "--index", index, "--layers", 0, "--heads", 1, "-o", out, "--force", *more)
        return [float(line.rsplit(",", 1)[1]) for line in out.read_text().splitlines()[1:]]

    def test_keys_that_are_turned_anew_have_no_single_map(self) -> None:
        class Turning(torch.nn.Module):
            """Keeps keys unturned, and turns them by their place in the window each time."""

            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.ModuleList([Attention()])

            def forward(self, x: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
                return self.layer[0](x, keys)

        class AnewAttention(Attention):
            def forward(self, x: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
                q = self.to_qkv(x)[..., :16].unflatten(2, (2, 8)).transpose(1, 2)
                k = self.to_qkv(keys)[..., 16:32].unflatten(2, (2, 8)).transpose(1, 2)
                places = torch.arange(k.shape[2]).float()
                k = turned(k, places)
                return F.scaled_dot_product_attention(turned(q, places[-q.shape[2] :]), k, k)

        model = Turning()
        model.layer[0] = AnewAttention()
        with torch.no_grad(), capture(model.eval(), self.folder / "t") as cap:
            for n in range(4):
                first = max(0, n - 2)
                cap.begin_chunk(n, query_position=n * FRAME, key_positions=first * FRAME)
                model(part(n, n + 1)[0], part(first, n + 1)[0])
        self.assertEqual(self.stitch("t", code=1), [])
        self.assertIn("differ between chunks", self.narration)
        self.assertIn("a model that turns cached keys anew?", self.narration)

    def test_denoising_chunks(self) -> None:
        """A step attends to noisy keys of its own chunk, and the cache keeps the clean ones: the capture has both."""
        model = Video().eval()
        with torch.no_grad(), capture(model, self.folder / "n", grid=(2, 2, 3)) as cap:
            for n in range(3):
                clean, positions = part(2 * n, 2 * n + 2)
                cap.begin_chunk(n, query_position=2 * n * FRAME, key_positions=0)
                for step in range(2):
                    cap.begin_step(step)
                    model(clean + 0.5 * (step + 1), positions)
                cap.begin_step(2)  # writes the cache
                model(clean, positions, [slice(0, None)])
        calls = self.stitch("n")
        places = [(c.facts["step"], c.facts["layer"]) for c in calls]
        self.assertEqual(places, [(step, layer) for step in range(3) for layer in (0, 1)])
        for call in calls[:4]:
            self.assertEqual([s["name"] for s in call.facts["keys"]], ["cached", "video"])
            self.assertEqual(call["k"].shape[2], (4 + 6) * FRAME)
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
        for call in calls[4:]:
            self.assertNotIn("keys", call.facts)


def read_whole(folder: Path) -> list[Recorded]:
    """Calls of a capture that the program wrote."""
    catalogue = json.loads((folder / "capture.json").read_text())
    from support import read_call

    return [read_call(folder / entry["file"]) for entry in catalogue["calls"]]


class Positions(CaptureTest):
    def test_each_generation_is_a_step_and_chunks_can_be_chosen(self) -> None:
        model = llama()
        with torch.no_grad(), capture(model, self.folder / "two", chunks="1-", layers=1):
            for count in (2, 3):
                model.generate(PROMPT, max_new_tokens=count, do_sample=False, eos_token_id=None)
        found = [(c.facts["step"], c.facts["chunk"]) for c in read_capture(self.folder / "two")]
        self.assertEqual(found, [(0, 1), (1, 1), (1, 2)])
        with torch.no_grad(), capture(model, self.folder / "first", chunks=0):
            model.generate(PROMPT, max_new_tokens=3, do_sample=False, eos_token_id=None)
        self.assertEqual(len(read_capture(self.folder / "first")), 2)

    def test_heads_that_share_keys_stay_heads_when_there_is_one_query(self) -> None:
        model = llama()
        with torch.no_grad(), capture(model, self.folder / "g", layers=0):
            model.generate(PROMPT, max_new_tokens=2, do_sample=False, eos_token_id=None, cache_implementation="static")
        call = read_capture(self.folder / "g")[-1]
        self.assertEqual((tuple(call["q"].shape[:3]), tuple(call["k"].shape[:3])), ((1, 8, 1), (1, 4, 8)))
        self.assertEqual(call.facts["mask"], "none")

    def test_a_loop_of_ones_own(self) -> None:
        model = llama()
        with torch.no_grad(), capture(model, self.folder / "l", layers=0):
            out = model(PROMPT, use_cache=True)
            model(PROMPT[:, :3], past_key_values=out.past_key_values)
        first, second = read_capture(self.folder / "l")
        self.assertEqual((first.facts["chunk"], second.facts["chunk"]), (0, 1))
        self.assertEqual(second.facts["queries"][0]["position"], 7)
        self.assertLess(output_error(second), TOLERANCE[torch.float32])

    def test_without_a_cache_nothing_is_a_chunk(self) -> None:
        model = llama()
        with torch.no_grad(), capture(model, self.folder / "p"):
            model(PROMPT)
        for call in read_capture(self.folder / "p"):
            self.assertNotIn("chunk", call.facts)
            self.assertEqual(call.facts["text"], "all")

    def test_caches_that_do_not_tell_are_refused(self) -> None:
        from transformers.cache_utils import DynamicCache, DynamicLayer

        class Odd(DynamicLayer):
            pass

        cache = DynamicCache()
        cache.layer_class_to_replicate = Odd
        model = llama()
        with torch.no_grad(), self.refused("Odd", "begin_chunk", "use_cache=False"):
            with capture(model, self.folder / "o"):
                model(PROMPT, past_key_values=cache)
        model = Video().eval()
        with torch.no_grad(), self.refused("18 keys", "names positions of 12", "key_positions="):
            with capture(model, self.folder / "c") as cap:
                cap.begin_chunk(0, query_position=0, key_positions=[range(0, 12)])
                model(*part(0, 3))

    def test_a_cache_that_a_forward_is_given_is_no_cross_attention(self) -> None:
        class Cached(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.blocks = torch.nn.ModuleList(
                    torch.nn.ModuleDict({"attn1": Attention(), "attn2": Attention()}) for _ in range(1)
                )

            def forward(self, x: torch.Tensor, kv_cache: list[torch.Tensor] | None = None) -> torch.Tensor:
                self.blocks[0]["attn1"].cached = kv_cache or []
                positions = torch.arange(x.shape[1]).float()
                return self.blocks[0]["attn2"](self.blocks[0]["attn1"](x, positions, None), positions, None)

        model, tokens, kept = Cached().eval(), part(2, 3)[0], [torch.randn(1, 2, 12, 8)] * 2
        with torch.no_grad(), self.refused("6 queries and 18 keys", "begin_chunk", "slots="):
            with capture(model, self.folder / "c"):
                model(tokens, kept)
        for name in ("cache", "past", "attention_cache"):  # whatever it is called, and where `**` takes it

            class Renamed(Cached):
                def forward(self, x: torch.Tensor, **kw: Any) -> torch.Tensor:
                    return super().forward(x, *kw.values())

            other = Renamed().eval()
            with torch.no_grad(), self.refused("6 queries and 18 keys", f"the forward's argument {name}"):
                with capture(other, self.folder / f"c-{name}"):
                    other(tokens, **{name: kept})
            with torch.no_grad(), capture(other, self.folder / f"n-{name}", slots="attn2"):
                other(tokens, **{name: None}) if name == "past" else other(tokens)
        self.assertEqual(read_capture(self.folder / "n-past")[0].facts["kind"], "self")
        with torch.no_grad(), capture(model, self.folder / "d", slots="attn1") as cap:
            cap.begin_chunk(1, query_position=12, key_positions=0)
            model(tokens, kept)
        (call,) = read_capture(self.folder / "d")
        self.assertEqual((call.facts["kind"], call.facts["chunk"], call.facts["slot"]), ("self", 1, "attn1"))

    def test_cached_references_are_no_cross_attention(self) -> None:
        """FLUX.2 with a cache of its references attends to them beside itself; which keys they are is not told."""
        import diffusers.models.transformers.transformer_flux2 as flux2_module
        from test_models_image import flux2

        model, inputs = flux2(flux2_module.Flux2Transformer2DModel)
        for module in model.eval().modules():
            if type(module).__name__ == "Flux2Attention":
                module.set_processor(flux2_module.Flux2KVAttnProcessor())
            if type(module).__name__ == "Flux2ParallelSelfAttention":
                module.set_processor(flux2_module.Flux2KVParallelSelfAttnProcessor())
        less = {**inputs, "hidden_states": inputs["hidden_states"][:, 6:], "img_ids": inputs["img_ids"][6:]}
        with torch.no_grad():
            _, cache = model(**inputs, kv_cache_mode="extract", num_ref_tokens=6, return_dict=False)
            with capture(model, self.folder / "f", branches=["cond"]):
                model(**less, kv_cache_mode="cached", kv_cache=cache)
        for call in read_capture(self.folder / "f"):
            self.assertEqual((call["q"].shape[2], call["k"].shape[2]), (19, 25))
            self.assertEqual(call.facts["kind"], "self")
            self.assertEqual([s["modality"] for s in call.facts["queries"] + call.facts["keys"]], ["other"] * 2)
            self.assertLess(output_error(call), TOLERANCE[torch.float32])

    def test_a_cache_that_an_attention_module_keeps(self) -> None:
        model = Video().eval()
        with torch.no_grad():
            model(*part(0, 2), keep=[slice(0, None)])
        with torch.no_grad(), self.refused("6 queries and 18 keys", "the attribute cached of Attention"):
            with capture(model, self.folder / "c"):
                model(*part(2, 3))

    def test_begin_chunk_refuses_what_is_no_position(self) -> None:
        model = Video().eval()
        with capture(model, self.folder / "b") as cap:
            for bad in ("12", [(3, 3)], [(5, 2)], [3], [range(0, 12, 2)], -1, [(0.0, 6.0)]):
                with self.assertRaisesRegex(CaptureError, "key_positions: expected a number"):
                    cap.begin_chunk(0, query_position=0, key_positions=bad)
            with self.assertRaisesRegex(CaptureError, "query_position is a whole number"):
                cap.begin_chunk(0, query_position=-6)
            with self.assertRaisesRegex(CaptureError, "the chunk is a whole number"):
                cap.begin_chunk("1", query_position=0)  # type: ignore[arg-type]
            with torch.no_grad():
                model(*part(0, 1))
        (call, _) = read_capture(self.folder / "b")
        self.assertNotIn("chunk", call.facts)

    def test_bare_calls_have_chunks(self) -> None:
        q = torch.randn(1, 2, 6, 8)
        with capture(None, self.folder / "bare", grid=(1, 2, 3)) as cap:
            for n in range(2):
                cap.begin_chunk(n, query_position=6 * n, key_positions=0)
                F.scaled_dot_product_attention(q, *[torch.randn(1, 2, 6 * (n + 1), 8)] * 2)
        first, second = read_capture(self.folder / "bare")
        self.assertEqual((first.facts["chunk"], second.facts["chunk"]), (0, 1))
        self.assertEqual(first.facts["queries"][0]["grid"], [1, 2, 3])
        self.assertEqual([s["name"] for s in second.facts["keys"]], ["cached", "video"])
        self.assertEqual(second.facts["kind"], "self")


if __name__ == "__main__":
    unittest.main()
