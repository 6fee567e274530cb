"""Models that torch.compile has compiled: the same calls, labels and results, without a graph break."""

import contextlib
import os
import unittest
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch._dynamo.utils import counters

import small_models
from attnscope_capture import capture, wrap
from support import TOLERANCE, CaptureTest, Recorded, output_error, read_capture

LONG = os.environ.get("ATTNSCOPE_LONG_TESTS") == "1"
"""True: try every family; else two, of one text stream and of two."""

SEEN: list[tuple[torch.Tensor, ...]] = []


@torch.library.custom_op("attnscope_test::log", mutates_args=("order",))
def log(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, order: torch.Tensor) -> None:
    """An independent log of the calls, in the graph that is captured."""
    SEEN.append(tuple(t.clone() for t in (q, k, v, out)))
    order += 1


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """Keeps every call of scaled_dot_product_attention in SEEN, whether compiled or not."""
    SEEN.clear()
    real, order = F.scaled_dot_product_attention, torch.zeros(1, dtype=torch.int64)

    def seen(query: Any, key: Any, value: Any, **more: Any) -> Any:
        out = real(query, key, value, **more)
        torch.ops.attnscope_test.log(query, key, value, out, order)
        return out

    with mock.patch.object(F, "scaled_dot_product_attention", seen):
        yield


def made(family: str, **more: Any) -> Any:
    """A small pipeline, with the same weights each time."""
    torch.manual_seed(1)  # biases are the library's own
    return getattr(small_models, family)(**more)


def whole(small: Any, **how: Any) -> None:
    small.pipe.transformer = torch.compile(small.pipe.transformer, **how)


def method(small: Any, **how: Any) -> None:
    small.pipe.transformer.compile(**how)


def forward(small: Any, **how: Any) -> None:
    small.pipe.transformer.forward = torch.compile(small.pipe.transformer.forward, **how)


def regional(small: Any, **how: Any) -> None:
    small.pipe.transformer.compile_repeated_blocks(**how)


def attention_alone(small: Any, **how: Any) -> None:
    for block in small.pipe.transformer.blocks:
        block.attn1 = torch.compile(block.attn1, **how)


class Compiled(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        torch.compiler.reset()
        counters.clear()
        self.addCleanup(torch.compiler.reset)

    def record(self, small: Any, name: str, steps: int = 2, **options: Any) -> list[Recorded]:
        with capture(small.pipe, self.folder / name, **{"branch": "both", **options}):
            self.result = small.run(steps)
        return read_capture(self.folder / name)

    def same_as_eager(self, calls: list[Recorded], eager: list[Recorded]) -> None:
        """Files and facts are equal, tensors to rounding."""
        self.assertEqual([(c.file, c.facts) for c in calls], [(c.file, c.facts) for c in eager])
        for a, b in zip(calls, eager, strict=True):
            for part in ("q", "k"):
                self.assertLess(float((a[part] - b[part]).abs().max()), 1e-3, (a.file, part))
            self.assertLess(output_error(a), 2 * TOLERANCE[torch.float32], a.file)

    def same_as_log(self, calls: list[Recorded]) -> None:
        """Recorded calls, of one batch item each, are those of the log to the bit and in its order."""
        self.assertEqual(len(calls), len(SEEN))
        for call, (q, k, v, out) in zip(calls, SEEN, strict=True):
            for part, tensor in (("q", q), ("k", k), ("v", v), ("out", out[:, :, call["out_rows"]])):
                self.assertTrue(torch.equal(call[part], tensor), (call.file, part))

    def check(self, family: str, how: Callable[..., None], backend: str, **options: Any) -> None:
        eager = self.record(made(family), "eager", **options)
        small = made(family)
        how(small, backend=backend, fullgraph=True)
        plain = small.run(2)
        calls = self.record(small, "compiled", **options)
        self.assertTrue(torch.equal(self.result, plain), "the model computed something else")
        self.same_as_eager(calls, eager)
        with logged():
            again = self.record(small, "logged", **options)
        self.assertTrue(torch.equal(self.result, plain))
        self.same_as_eager(again, eager)
        if family in ("wan", "flux"):  # one item a call, and no attention beside the recorded
            self.same_as_log(again)
        graphs = counters["stats"]["unique_graphs"]
        self.assertTrue(torch.equal(small.run(2), plain), "what was compiled before came back changed")
        self.assertEqual(counters["stats"]["unique_graphs"], graphs, "compiled again after the capture")
        self.assertFalse(counters["graph_break"])

    def test_every_way_to_compile(self) -> None:
        for how in (whole, method, forward, regional, attention_alone):
            with self.subTest(how.__name__):
                torch.compiler.reset()
                self.folder = self.folder / how.__name__
                self.folder.mkdir()
                self.check("wan", how, "eager")

    def test_every_family(self) -> None:
        more = ("hunyuan", "ltx", "mochi", "sd3", "latte") if LONG else ()
        for family in ("cogvideox", "flux", *more):
            with self.subTest(family):
                torch.compiler.reset()
                self.folder = self.folder / family
                self.folder.mkdir()
                self.check(family, whole, "eager")

    def test_inductor(self) -> None:
        for how in (whole, regional):
            with self.subTest(how.__name__):
                self.folder = self.folder / how.__name__
                self.folder.mkdir()
                self.check("wan", how, "inductor")

    def test_blocks_that_share_their_code(self) -> None:
        """One graph for all blocks: as many as without a capture, however many captures there are."""
        small = made("wan")
        regional(small, backend="aot_eager", fullgraph=True)
        small.run(1)
        graphs = counters["stats"]["unique_graphs"]
        for i in range(12):  # more than torch.compile's limit of graphs
            self.record(small, str(i), 1)
        self.assertEqual(counters["stats"]["unique_graphs"], 2 * graphs)
        self.same_as_eager(
            read_capture(self.folder / "11"), self.record(made("wan"), "eager", 1)
        )
        # Of other attention modules, the code is other code.
        transformer = small.pipe.transformer
        with logged(), capture(transformer.blocks[1], self.folder / "block", modules="attn2$"):
            self.call_block(transformer)
        (call,) = read_capture(self.folder / "block")
        self.assertEqual(call.facts["layer_name"], "attn2")

    def call_block(self, transformer: Any) -> None:
        x, words = torch.randn(1, 72, 48), torch.randn(1, 8, 48)
        rope = transformer.rope(torch.randn(1, 4, 3, 8, 12))
        with torch.no_grad():
            transformer.blocks[1](x, words, torch.randn(1, 6, 48), rope)

    def test_compiled_after_capture_was_made(self) -> None:
        small = made("wan")
        prepared = capture(small.pipe, self.folder / "d", branch="both")
        whole(small, backend="eager", fullgraph=True)
        with prepared:
            small.run(2)
        self.same_as_eager(read_capture(self.folder / "d"), self.record(made("wan"), "eager"))

    def test_compiled_and_split_over_processes(self) -> None:
        small = made("wan")
        prepared = capture(small.pipe, self.folder / "d")
        whole(small, backend="eager")
        split = SimpleNamespace(context_parallel_config=SimpleNamespace())
        with mock.patch.object(small.pipe.transformer, "_parallel_config", split):
            with self.refused("compiled and its sequences are split over processes"), prepared:
                small.run(1)

    def test_compiled_while_a_capture_runs(self) -> None:
        for how in (whole, method, regional):
            small = made("wan")
            with self.refused("not compiled when the capture began", "before the block"):
                with capture(small.pipe, self.folder / how.__name__):
                    how(small, backend="eager", fullgraph=True)
                    small.run(1)
            self.assertEqual(list((self.folder / how.__name__).glob("*.safetensors*")), [])
            self.record(small, how.__name__, 1, force=True)

    def test_another_module_than_the_one_that_runs(self) -> None:
        small = made("wan")
        plain = small.pipe.transformer
        whole(small, backend="eager", fullgraph=True)
        small.run(1)
        with self.refused("what torch.compile returned"), capture(plain, self.folder / "d"):
            small.run(1)
        self.assertEqual(list((self.folder / "d").glob("*.safetensors*")), [])

    def test_other_sizes(self) -> None:
        small = made("wan")
        whole(small, backend="eager", fullgraph=True, dynamic=True)
        for frames in (9, 17):
            small.arguments["num_frames"] = frames
            other = made("wan")
            other.arguments["num_frames"] = frames
            eager = self.record(other, f"eager{frames}")
            self.same_as_eager(self.record(small, str(frames)), eager)
        self.assertFalse(counters["graph_break"])

    def test_a_graph_break_of_the_model_itself(self) -> None:
        small = made("wan")
        for block in small.pipe.transformer.blocks:
            processor = block.attn1.processor
            real = type(processor).__call__

            def broken(*args: Any, real=real, processor=processor, **kwargs: Any) -> Any:
                torch._dynamo.graph_break()
                out = real(processor, *args, **kwargs)
                torch._dynamo.graph_break()
                return out

            block.attn1.processor = broken
        whole(small, backend="eager")
        self.same_as_eager(self.record(small, "d"), self.record(made("wan"), "eager"))
        self.assertTrue(counters["graph_break"])

    def test_two_transformers_of_which_one_is_compiled(self) -> None:
        small = made("wan", two=True)
        eager = self.record(small, "eager", 4)
        small.pipe.transformer_2 = torch.compile(small.pipe.transformer_2, backend="eager", fullgraph=True)
        self.same_as_eager(self.record(small, "d", 4), eager)

    def test_cuda_graphs(self) -> None:
        for how in (whole, method, regional):
            for options in ({"mode": "reduce-overhead"}, {"options": {"triton.cudagraphs": True}}):
                small = made("wan")
                how(small, **options)
                with self.refused("CUDA graphs", "no-cudagraphs"):
                    with capture(small.pipe, self.folder / "d"):
                        pass
                self.assertFalse((self.folder / "d" / "capture.json").exists())

    def test_cuda_graphs_that_no_option_tells(self) -> None:
        small = made("wan")
        whole(small, backend="eager", fullgraph=True)
        self.record(small, "d", 1)
        with mock.patch.object(torch.cuda, "is_available", lambda: True):
            with mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: True):
                with self.refused("CUDA graphs"), capture(small.pipe, self.folder / "e"):
                    small.run(1)
        self.assertEqual(list((self.folder / "e").glob("*.safetensors*")), [])

    def test_guards_that_are_switched_off(self) -> None:
        small = made("wan")
        unguarded = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
        whole(small, backend="eager", fullgraph=True, options=unguarded)
        small.run(1)
        with self.refused("compiled before the capture", "reset"), capture(small.pipe, self.folder / "d"):
            small.run(1)
        self.assertEqual(list((self.folder / "d").glob("*.safetensors*")), [])
        # Code that was compiled for a capture of other modules is not taken either.
        q, number, order = torch.randn(1, 2, 5, 8), torch.tensor([0]), torch.zeros(1, dtype=torch.int64)
        more = (q, q, q, None, 0.0, False, None, None, None, number, "another", order)
        torch.ops.attnscope.attention_call(q, *more)
        with self.refused("made for another capture", "reset"), capture(small.pipe, self.folder / "e"):
            torch.ops.attnscope.attention_call(q, *more)

    def test_a_model_that_nothing_is_known_of(self) -> None:
        class Attention(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.qkv = torch.nn.Linear(8, 24)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
                return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.apart = Attention()  # in no list: recorded neither way
                self.blocks = torch.nn.ModuleList(Attention() for _ in range(3))

            def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
                x = x + self.apart(x)
                for block in self.blocks:
                    x = x + block(x) * t
                return x

        torch.manual_seed(1)
        model = Model().eval()
        x = torch.randn(1, 6, 8)

        def run(called: Any, name: str) -> list[Recorded]:
            with torch.no_grad(), capture(called, self.folder / name):
                for t in (3.0, 2.0):
                    called(x, torch.tensor(t))
            return read_capture(self.folder / name)

        eager = run(model, "eager")
        self.assertEqual(len(eager), 6)
        self.same_as_eager(run(torch.compile(model, backend="eager", fullgraph=True), "whole"), eager)
        for block in (model.apart, *model.blocks):
            block.compile(backend="eager", fullgraph=True)
        self.same_as_eager(run(model, "blocks"), eager)

    def test_a_model_of_transformers(self) -> None:
        from transformers import AttentionInterface, LlamaConfig, LlamaModel

        def mine(module: Any, q: Any, k: Any, v: Any, mask: Any, scaling: float, **more: Any) -> Any:
            keep = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
            logits = (scaling * q @ k.transpose(2, 3)).masked_fill(~keep, -torch.inf)
            return (logits.softmax(-1) @ v).transpose(1, 2), None

        AttentionInterface.register("mine", mine)
        self.addCleanup(AttentionInterface._global_mapping.pop, "mine")
        for attention in ("sdpa", "mine"):
            torch.manual_seed(0)
            sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 4}
            model = LlamaModel(
                LlamaConfig(
                    vocab_size=20,
                    num_hidden_layers=2,
                    intermediate_size=16,
                    attn_implementation=attention,
                    **sizes,
                )
            ).eval()
            calls = []
            for called in (model, torch.compile(model, backend="eager")):
                out = self.folder / f"{attention}{len(calls)}"
                with torch.no_grad(), capture(called, out):
                    called(input_ids=torch.arange(1, 10)[None], use_cache=False)
                calls.append(read_capture(out))
            self.same_as_eager(calls[1], calls[0])

    def test_functions_without_a_model(self) -> None:
        def own(q: Any, k: Any, v: Any, softmax_scale: float = 0.3) -> Any:
            return (softmax_scale * q @ k.transpose(2, 3)).softmax(-1) @ v

        attention = wrap(own)

        @torch.compile(backend="eager", fullgraph=True)
        def run(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            first = F.scaled_dot_product_attention(q, k, k, is_causal=True)
            return attention(first, k, k, softmax_scale=0.5)

        q, k = torch.randn(1, 2, 7, 8), torch.randn(1, 2, 7, 8)
        plain = run(q, k)
        with capture(None, self.folder / "d"):
            self.assertTrue(torch.equal(run(q, k), plain))
        first, second = read_capture(self.folder / "d")
        self.assertTrue(torch.equal(first["q"], q))
        self.assertEqual((first.facts["mask"], first.facts["layer"]), ("causal", 0))
        self.assertEqual((second.facts["scale"], second.facts["layer"]), (0.5, 1))
        self.assertEqual(second.facts["extra"], {"attention": "own"})
        self.assertLess(output_error(second), TOLERANCE[torch.float32])

    def test_what_a_graph_cannot_hand_out(self) -> None:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        attention = wrap(flex_attention)
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 64, 64, device="cpu", BLOCK_SIZE=32)
        q = torch.randn(1, 2, 64, 16)
        run = torch.compile(lambda q: attention(q, q, q, block_mask=mask), backend="eager")
        with self.refused("BlockMask", "force_eager"), capture(None, self.folder / "d"):
            run(q)
        with torch.compiler.set_stance("force_eager"), capture(None, self.folder / "e"):
            run(q)
        self.assertEqual(len(read_capture(self.folder / "e")), 1)

    def test_what_is_refused_of_a_call(self) -> None:
        """Refusals leave the graph as they are, and nothing is recorded."""
        run = torch.compile(
            lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.1), backend="aot_eager"
        )
        with self.refused("dropout 0.1", "eval"), capture(None, self.folder / "d"):
            run(torch.randn(1, 2, 5, 8))
        self.assertEqual(list((self.folder / "d").glob("*.safetensors*")), [])


if __name__ == "__main__":
    unittest.main()
