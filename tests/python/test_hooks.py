"""Calls are taken where attention is called: dispatchers, registries, functions of one's own; once each."""

import contextlib
import unittest
from typing import Any
from collections.abc import Iterator

import torch
import torch.nn.functional as F

import small_models
from attnscope_capture import capture, dispatched_call, record, stored_mask, transformers_call, wrap
from support import TOLERANCE, CaptureTest, output_error, program, read_capture, weights


def plain_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any, scale: float
) -> torch.Tensor:
    """softmax(scale·QKᵀ + mask)·V of [B, H, N, d], without the function that is watched everywhere."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    logits = scale * q @ k.transpose(2, 3)
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask
    return logits.softmax(-1) @ v


@contextlib.contextmanager
def kernel_of_its_own() -> Iterator[None]:
    """diffusers' native backend never comes to scaled_dot_product_attention."""
    from diffusers.models import attention_dispatch as dispatch

    backends = dispatch._AttentionBackendRegistry._backends
    name = dispatch.AttentionBackendName.NATIVE
    real = backends[name]

    def kernel(
        query: Any, key: Any, value: Any, attn_mask: Any = None, scale: Any = None, **more: Any
    ) -> Any:
        q, k, v = (t.transpose(1, 2) for t in (query, key, value))
        return plain_attention(q, k, v, attn_mask, scale or q.shape[-1] ** -0.5).transpose(1, 2)

    backends[name] = kernel
    try:
        yield
        assert backends[name] is kernel, "the registry was not put back"
    finally:
        backends[name] = real


class Dispatcher(CaptureTest):
    def run_family(self, name: str, out: str, backend: str | None = None, **options: Any) -> list[Any]:
        torch.manual_seed(1)  # biases are the library's own
        small = small_models.FAMILIES[name]()
        if backend is not None:
            small.pipe.transformer.set_attention_backend(backend)
        with capture(small.pipe, self.folder / out, steps=0, branch="both", **options):
            small.run(1)
        calls = read_capture(self.folder / out)
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32], (backend, call.file))
        return calls

    def test_every_backend_gives_the_same_calls(self) -> None:
        for family in ("wan", "hunyuan"):
            native = self.run_family(family, f"{family}native")
            self.assertFalse(any("extra" in c.facts for c in native))
            with kernel_of_its_own():
                own = self.run_family(family, f"{family}own")
            for a, b in zip(native, own, strict=True):
                self.assertEqual(b.facts.pop("extra"), {"attention": "diffusers backend native"})
                self.assertEqual(a.facts, b.facts)
                for name in a.tensors:
                    if name == "mask":
                        self.assertTrue(torch.equal(a[name].expand_as(b[name]), b[name]))
                    else:
                        self.assertLess(float((a[name] - b[name]).abs().max()), 1e-3, (b.file, name))
        for backend in ("_native_math", "flex"):
            calls = self.run_family("wan", backend, backend)
            files = [c.file for c in read_capture(self.folder / "wannative")]
            self.assertEqual([c.file for c in calls], files)
            source = {"attention": "diffusers backend flex"} if backend == "flex" else None
            self.assertEqual({str(c.facts.get("extra")) for c in calls}, {str(source)})



class Registry(CaptureTest):
    def model(self, attention: str) -> Any:
        from transformers import LlamaConfig, LlamaModel

        torch.manual_seed(0)
        sizes = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 4}
        config = LlamaConfig(
            vocab_size=20,
            num_hidden_layers=2,
            intermediate_size=16,
            initializer_range=0.3,
            attn_implementation=attention,
            **sizes,
        )
        return LlamaModel(config).eval()

    def run_model(self, attention: str, out: str) -> list[Any]:
        model = self.model(attention)
        with torch.no_grad(), capture(model, self.folder / out):
            model(input_ids=torch.arange(1, 10)[None], use_cache=False)
        calls = read_capture(self.folder / out)
        for call in calls:
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
            self.assertEqual(float(weights(call).triu(1).max()), 0.0)
        return calls

    def test_functions_of_the_registry(self) -> None:
        from transformers import AttentionInterface

        def mine(module: Any, q: Any, k: Any, v: Any, mask: Any, scaling: float, **more: Any) -> Any:
            keep = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
            return plain_attention(q, k, v, keep, scaling).transpose(1, 2), None

        AttentionInterface.register("mine", mine)
        self.addCleanup(AttentionInterface._global_mapping.pop, "mine")
        sdpa = self.run_model("sdpa", "sdpa")
        for name in ("mine", "flex_attention"):
            calls = self.run_model(name, name)
            sources = [c.facts["extra"]["attention"] for c in calls]
            self.assertEqual(sources, [f"transformers attention {name}"] * 2)
            for a, b in zip(sdpa, calls, strict=True):
                self.assertTrue(torch.allclose(a["q"], b["q"], atol=1e-4))
        self.assertIs(AttentionInterface._global_mapping["mine"], mine)

    def test_a_function_that_does_something_else(self) -> None:
        from transformers import AttentionInterface

        def linear(module: Any, q: Any, k: Any, v: Any, mask: Any, scaling: float, **more: Any) -> Any:
            return (q.relu() @ (k.relu().transpose(2, 3) @ v).repeat_interleave(2, 1)).transpose(1, 2), None

        AttentionInterface.register("linear", linear)
        self.addCleanup(AttentionInterface._global_mapping.pop, "linear")
        with self.refused("transformers attention linear", "not softmax"):
            self.run_model("linear", "d")
        with self.refused("something", "sdpa"):
            transformers_call("flex_attention", None, {"something": 30.0}, None)

    def test_arguments_that_nobody_knows(self) -> None:
        """Arguments are refused unless a capture states them or they are known to change no weight."""
        q = torch.randn(1, 2, 5, 8)
        tensors = {"query": q, "key": q, "value": q}
        out = F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2)
        neutral = {"position_ids": torch.arange(5)[None], "use_cache": True, "output_attentions": False, "layer_idx": 3}
        neutral |= {"cu_seq_lens_q": torch.tensor([0, 5]), "max_length_q": 5, "sliding_window": 4, "softcap": None}
        call = transformers_call("mine", None, {**tensors, **neutral}, (out, None))
        self.assertTrue(call.q is q and call.causal)
        for name in ("indices", "cache", "head_mask", "something"):
            with self.refused("transformers attention mine", f"argument {name} "):
                transformers_call("mine", None, {**tensors, name: torch.zeros(1, 2, 5, 1)}, (out, None))
        for name in ("softcap", "sinks", "position_bias"):  # sdpa itself leaves out what it does not know
            transformers_call("sdpa", None, {**tensors, "something": 1}, (out, None))
            with self.refused("transformers attention sdpa", f"argument {name} "):
                transformers_call("sdpa", None, {**tensors, "something": 1, name: q}, (out, None))
        given = {**tensors, "enable_gqa": False, "return_lse": False, "_parallel_config": None, "window_size": (-1, -1)}
        self.assertIsNone(dispatched_call("_flash_3", given, out).mask)
        for name, value in (("window_size", (16, 16)), ("softcap", 30.0), ("score_mod", len)):
            with self.refused("diffusers backend flash", f"argument {name} ", "native"):
                dispatched_call("flash", {**given, name: value}, out)


class Wrapped(CaptureTest):
    """A user's own function, which is one call whatever it calls."""

    def test_one_call_however_it_is_computed(self) -> None:
        def chunked(q: Any, k: Any, v: Any, softmax_scale: float = 0.3, causal: bool = False) -> torch.Tensor:
            parts = [t.transpose(1, 2) for t in (q, k, v)]
            rows = parts[0].split(2, dim=2)
            out = [F.scaled_dot_product_attention(r, *parts[1:], scale=softmax_scale) for r in rows]
            return torch.cat(out, 2).transpose(1, 2)

        attention = wrap(chunked, layout="bshd")
        q, k = torch.randn(2, 7, 3, 8), torch.randn(2, 5, 3, 8)
        plain = attention(q, k, k)
        with capture(None, self.folder / "d"):
            self.assertTrue(torch.equal(attention(q, k, k), plain))
        (call,) = read_capture(self.folder / "d")
        self.assertTrue(torch.equal(call["q"], q.transpose(1, 2)))
        self.assertEqual((call.facts["scale"], call.facts["extra"]), (0.3, {"attention": "chunked"}))
        self.assertLess(output_error(call), TOLERANCE[torch.float32])
        with self.refused("chunked", "not softmax", "layout"), capture(None, self.folder / "wrong"):
            wrap(chunked)(q, q, q)
        with self.refused("not softmax"), capture(None, self.folder / "causal"):
            attention(q, q, q, causal=True)  # which it ignores

    def test_kernels_that_approximate_are_measured(self) -> None:
        def int8(t: torch.Tensor) -> torch.Tensor:
            step = t.abs().amax(-1, keepdim=True) / 20  # coarser than a kernel would take
            return (t / step).round() * step

        def quantised(q: Any, k: Any, v: Any) -> torch.Tensor:
            return plain_attention(int8(q), int8(k), v, None, q.shape[-1] ** -0.5)

        torch.manual_seed(3)
        q, k, v = (4 * torch.randn(1, 2, 40, 16) for _ in range(3))
        with capture(None, self.folder / "d"):
            wrap(quantised, approximation="int8 q and k")(q, k, v)
        (call,) = read_capture(self.folder / "d")
        self.assertEqual(call.facts["approximation"], "int8 q and k")
        self.assertEqual(call.facts["format"], "attnscope-capture/2")
        result = program("verify", self.folder / "d")
        self.assertRegex(result.stdout, "approximates: .*int8 q and k: mean error 0.0")
        with self.refused("not softmax"), capture(None, self.folder / "e"):
            wrap(lambda q, k, v: 3 * quantised(q, k, v), approximation="nonsense")(q, k, v)
        # The names of diffusers' backends tell which of them quantise.
        given = {n: t.transpose(1, 2) for n, t in zip(("query", "key", "value"), (q, k, v), strict=True)}
        for backend, name in (("_sage_qk_int8_pv_fp8_cuda", "sage_qk_int8_pv_fp8_cuda"), ("flash", None)):
            self.assertEqual(dispatched_call(backend, given, given["value"]).approximation, name)

    def test_arguments_that_are_not_known(self) -> None:
        def windowed(q: Any, k: Any, v: Any, window: tuple[int, int] = (-1, -1)) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, v)

        q = torch.randn(1, 2, 7, 8)
        with capture(None, self.folder / "d"):
            wrap(windowed)(q, q, q)
        with self.refused("windowed", r"window=\(1, 1\)"), capture(None, self.folder / "e"):
            wrap(windowed)(q, q, q, window=(1, 1))
        with self.refused("bhsd", "hsd"):
            wrap(windowed, layout="hsd")

    def test_the_state_of_what_was_taken(self) -> None:
        q = torch.randn(1, 2, 7, 8)
        with capture(None, self.folder / "d"):
            F.scaled_dot_product_attention(q, q, q)
        self.assertEqual(read_capture(self.folder / "d")[0].facts["q_state"], "as given to attention")
        self.assertNotIn("q_state", program("info", self.folder / "d").stderr)
        record(q, q, q, self.folder / "r")  # whose q may be anything
        self.assertNotIn("q_state", read_capture(self.folder / "r")[0].facts)


class Masks(CaptureTest):
    def test_what_answers_in_the_functions_place_still_does(self) -> None:
        """Modes and tensors of types of their own know the function by its name in PyTorch."""
        from diffusers.hooks.layer_skip import AttentionScoreSkipFunctionMode
        from torch.nn.attention.bias import causal_lower_right, causal_upper_left

        q, k = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 9, 8)
        for name, given, expected in (
            ("upper", {"query": q, "key": q, "value": q, "attn_mask": causal_upper_left(5, 5)}, "causal"),
            ("lower", {"query": q, "key": k, "value": k, "attn_mask": causal_lower_right(5, 9)}, "window:-1,0"),
        ):
            plain = F.scaled_dot_product_attention(**given)
            with capture(None, self.folder / name):
                again = F.scaled_dot_product_attention(**given)
            self.assertTrue(torch.equal(plain, again), name)
            (call,) = read_capture(self.folder / name)
            self.assertEqual(call.facts["mask"], expected)
            self.assertLess(output_error(call), TOLERANCE[torch.float32])
        self.assertEqual(float(weights(call)[0, 0, 0, 5:].max()), 0.0)  # query 0 stands at key 4
        # Perturbed attention guidance has the values in the result's place, which is no map.
        with AttentionScoreSkipFunctionMode(), self.refused("not softmax", "answers in its place"):
            with capture(None, self.folder / "skipped"):
                F.scaled_dot_product_attention(q, q, k[:, :, :5])
        with torch.device("cpu"), capture(None, self.folder / "device"):  # a mode that changes nothing
            F.scaled_dot_product_attention(q, k, k)
        (call,) = read_capture(self.folder / "device")
        self.assertNotIn("extra", call.facts)

    def test_a_large_mask_is_asked_for(self) -> None:
        q = torch.randn(1, 1, 300, 4)
        mask = torch.rand(300, 300) > 0.5
        with self.refused("mask", "above the limit", "mask_limit"):
            with capture(None, self.folder / "d", mask_limit=300 * 300 - 1):
                F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        for limit in (300 * 300, None):
            with capture(None, self.folder / str(limit), mask_limit=limit):
                F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    def flex(self, mask: Any, name: str, **options: Any) -> Any:
        from torch.nn.attention.flex_attention import flex_attention

        q, k = (torch.randn(1, 2, n, 16) for n in (100, 90))
        with capture(None, self.folder / name, **options):
            wrap(flex_attention)(q, k, k, block_mask=mask)
        (call,) = read_capture(self.folder / name)
        self.assertLess(output_error(call), TOLERANCE[torch.float32])
        return call

    def test_a_block_mask_is_stored_entry_by_entry(self) -> None:
        from torch.nn.attention.flex_attention import create_block_mask

        def near(b: Any, h: Any, i: Any, j: Any) -> Any:
            return (i - j).abs() <= 20 + h

        mask = create_block_mask(near, None, 2, 100, 90, device="cpu", BLOCK_SIZE=32)
        call = self.flex(mask, "near")
        i, j = torch.arange(100)[:, None], torch.arange(90)[None]
        for h in range(2):
            self.assertTrue(torch.equal(call["mask"][0, h], (i - j).abs() <= 20 + h))
        with self.refused("BlockMask", "mask_limit"):
            self.flex(mask, "limit", mask_limit=1000)

    def test_blocks_that_somebody_chose(self) -> None:
        """No function tells them; what PyTorch computes without compiling looks at that function alone."""
        from torch.nn.attention.flex_attention import BlockMask

        counts = torch.tensor([[[1, 2, 1, 3]]], dtype=torch.int32)
        indices = torch.tensor([[[[0, 1, 2], [0, 2, 1], [1, 0, 2], [0, 1, 2]]]], dtype=torch.int32)
        none = torch.zeros_like(counts)
        chosen = BlockMask.from_kv_blocks(
            none, indices, counts, indices, BLOCK_SIZE=32, seq_lengths=(100, 90)
        )
        kept = stored_mask(chosen, [0], (0, 2), (100, 90), torch.float32, None)
        blocks = torch.tensor([[1, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1]], dtype=torch.bool)
        self.assertEqual(kept.facts, {"mask": "blocks", "mask_block": "32x32"})
        self.assertTrue(torch.equal(kept.tensors["mask_blocks"], blocks[None, None]))
        with self.refused("flex_attention", "not softmax"):
            self.flex(chosen, "chosen")


if __name__ == "__main__":
    unittest.main()
