"""Parts of maps from arrays, of every type and layout, against double precision."""

import unittest
from types import SimpleNamespace

import numpy as np
import torch

import attnscope
from reference import check_weights, logits, random_heads, softmax

Q = random_heads((2, 6, 150, 40), 1)
K = random_heads((2, 3, 170, 40), 2)
V = random_heads((2, 3, 170, 24), 3)


def rounded(array: np.ndarray, dtype: object) -> tuple[object, np.ndarray]:
    """The array in a type of numpy's or torch's, and the numbers that it then holds."""
    if isinstance(dtype, torch.dtype):
        tensor = torch.from_numpy(array).to(dtype)
        return tensor, tensor.double().numpy()
    made = array.astype(dtype)
    # Values of float64 are rounded to float32, as docs/python.md says.
    return made, (made.astype(np.float32) if dtype == np.float64 else made).astype(np.float64)


class Types(unittest.TestCase):
    DTYPES = (np.float16, np.float32, np.float64, torch.float16, torch.bfloat16, torch.float32, torch.float64)

    def test_every_function_of_every_type(self) -> None:
        for dtype in self.DTYPES:
            with self.subTest(dtype=str(dtype)):
                (q, q64), (k, k64), (v, v64) = (rounded(a, dtype) for a in (Q, K, V))
                s = logits(q64, k64)
                p, lse = softmax(s)
                check_weights(attnscope.weights(q, k), p, 170)
                got = attnscope.logits(q, k, rows=slice(3, 9))
                self.assertEqual(got.dtype, np.float32)
                np.testing.assert_allclose(got, s[:, :, 3:9], atol=2e-5, rtol=2e-5)
                got = attnscope.lse(q, k)
                self.assertEqual(got.dtype, np.float64)
                np.testing.assert_allclose(got, lse, atol=2e-5, rtol=2e-6)
                got = attnscope.output(q, k, v)
                self.assertEqual(got.dtype, np.float32)
                np.testing.assert_allclose(got, p @ np.repeat(v64, 2, axis=1), atol=1e-4)

    def test_caps_and_sinks(self) -> None:
        (q, q64), (k, k64) = (rounded(a, np.float32) for a in (Q, K))
        capped = 5 * np.tanh(logits(q64, k64) / 5)
        largest = capped.max(-1, keepdims=True)
        parts = np.exp(capped - largest)

        def expected(sinks: np.ndarray) -> np.ndarray:
            return parts / (parts.sum(-1, keepdims=True) + np.exp(sinks - largest))

        by_head = np.float32([-2, 0, 1, 2.5, 4, 6])
        by_query = np.random.default_rng(4).normal(size=(2, 6, 150)).astype(np.float32)
        for sinks, shaped in (
            (by_head, by_head[None, :, None, None]),
            (torch.from_numpy(by_head).bfloat16(), by_head[None, :, None, None]),
            (0, np.float64(0)),
            (by_query, by_query[..., None]),
            (by_query[..., None], by_query[..., None]),
        ):
            got = attnscope.weights(q, k, softcap=5, sinks=sinks)
            check_weights(got, expected(np.asarray(shaped, np.float64)), 170)
        np.testing.assert_allclose(attnscope.logits(q, k, softcap=5), capped, atol=2e-5, rtol=2e-5)
        self.assertEqual(attnscope.call(q, k, softcap=5, sinks=by_head).facts["sinks"], "a logit a head")
        with self.assertRaisesRegex(attnscope.Error, "sinks: expected a logit a head .6."):
            attnscope.weights(q, k, sinks=np.float32([1, 2, 3, 4]))
        with self.assertRaisesRegex(attnscope.Error, "score sigmoid has no"):
            attnscope.weights(q, k, score="sigmoid", sinks=by_head)
        with self.assertRaisesRegex(attnscope.Error, "softcap: score sigmoid has none"):
            attnscope.weights(q, k, score="sigmoid", softcap=5)

    def test_scales_a_head_and_windows(self) -> None:
        (q, q64), (k, k64) = (rounded(a, np.float32) for a in (Q, K))
        scales = np.linspace(0.05, 0.4, 6)
        plain = logits(q64, k64) * np.sqrt(q64.shape[-1])
        scaled = plain * scales[None, :, None, None]
        np.testing.assert_allclose(attnscope.logits(q, k, scale=scales), scaled, atol=2e-5, rtol=2e-5)
        self.assertEqual(attnscope.call(q, k, scale=list(scales)).facts["scale"], list(scales))
        self.assertEqual(attnscope.call(q, k, scale=[0.25] * 6).facts["scale"], 0.25)
        with self.assertRaisesRegex(attnscope.Error, "scale: expected a number, or one for each of the 6 heads"):
            attnscope.weights(q, k, scale=[0.1, 0.2])
        queries, keys = scaled.shape[-2:]
        at = np.arange(queries)[:, None] + keys - queries
        seen = (np.arange(keys) >= at - 20) & (np.arange(keys) <= at + 3)
        got = attnscope.weights(q, k, scale=scales, mask="window:20,3")
        parts = np.where(seen, np.exp(scaled - scaled.max(-1, keepdims=True)), 0)
        check_weights(got, parts / parts.sum(-1, keepdims=True), 170)

    def test_bfloat16_of_numpy(self) -> None:
        """NumPy has no such type; ml_dtypes' is told by its name and handed on as the two bytes that it is."""
        from attnscope import arrays, native

        tensor = torch.from_numpy(Q[0, 0]).bfloat16()
        bits = tensor.view(torch.int16).numpy().view(np.uint16)
        made = attnscope.Call(
            native._native.array_call(bits, bits, None, None, {"bf16": "q,k"}), native.engine()
        )
        self.assertEqual(made.dtype, "bf16")
        np.testing.assert_array_equal(made.head(0).weights(), attnscope.weights(tensor, tensor))
        with self.assertRaisesRegex(attnscope.Error, "f32, f16, bf16 or f64 .got u16"):
            native._native.array_call(bits, bits, None, None, {})
        with self.assertRaisesRegex(attnscope.Error, "float16, bfloat16"):
            arrays.call(bits, bits)

    def test_a_gradient_does_not_matter(self) -> None:
        q = torch.from_numpy(Q[0, 0]).float().requires_grad_()
        check_weights(attnscope.weights(q, q), softmax(logits(Q[0, 0], Q[0, 0]))[0], 150)

    def test_a_view_that_negates(self) -> None:
        z = torch.complex(torch.zeros(2, 5, 40), torch.from_numpy(Q[0, :2, :5]).float())
        q = z.conj().imag  # the memory of z, and a bit that says it is read negated
        self.assertTrue(q.is_neg())
        k = torch._neg_view(torch.from_numpy(K[0, :2]).float())
        expected = attnscope.weights(q.resolve_neg().numpy(), k.resolve_neg().numpy())
        np.testing.assert_array_equal(attnscope.weights(q, k), expected)
        bias = torch._neg_view(torch.arange(5.0 * k.shape[1]).reshape(5, -1))
        np.testing.assert_array_equal(
            attnscope.weights(q, k, mask=bias), attnscope.weights(q, k, mask=bias.resolve_neg().numpy())
        )

    def test_types_that_are_none(self) -> None:
        for wrong, words in (
            (np.zeros((4, 8), np.int32), "float16, bfloat16, float32 or float64"),
            (np.zeros((4, 8), np.complex64), "float16, bfloat16, float32 or float64"),
            (np.zeros((4, 8), ">f4"), "byte order"),
            (torch.zeros((4, 8), dtype=torch.int64), "f32, f16, bf16 or f64"),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(attnscope.Error, words) as raised:
                attnscope.weights(wrong, wrong)
            self.assertEqual(raised.exception.code, "usage")
        with self.assertRaisesRegex(attnscope.Error, "q: .*f32.*k: .*f16|f16.*f32|f32.*f16"):
            attnscope.weights(np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float16))


    def test_things_without_numbers(self) -> None:
        q = torch.zeros(4, 8)
        sparse = SimpleNamespace(toarray=None, nnz=0)
        for wrong, words in (
            (q.to("meta"), "device meta, which has no numbers"),
            (q.to_sparse(), "a sparse tensor .torch.sparse_coo.: .to_dense.. makes"),
            (q.to_sparse_csr(), "sparse_csr"),
            (torch.quantize_per_tensor(q, 0.1, 0, torch.qint8), "a quantized tensor"),
            (sparse, "a sparse SimpleNamespace: .toarray"),
            (None, "got nothing"),
            (object(), r"got \|O"),
            ("q.pt", "got <U4"),
            ([[1.0, 2.0], [3.0]], "expected an array .got list"),
        ):
            for arrays, name in (((wrong, q), "q"), ((q, wrong), "k")):
                with self.subTest(words=words, name=name), self.assertRaisesRegex(attnscope.Error, words) as raised:
                    attnscope.weights(*arrays)
                self.assertTrue(str(raised.exception).startswith(f"{name}: "), raised.exception)
                self.assertNotIn("\n", str(raised.exception))
                self.assertEqual(raised.exception.code, "usage")


class Layouts(unittest.TestCase):
    def test_axes_in_front(self) -> None:
        p = softmax(logits(Q, K))[0]
        q, k = Q.astype(np.float32), K.astype(np.float32)
        check_weights(attnscope.weights(q[1], k[1]), p[1], 170)
        check_weights(attnscope.weights(q[1, 4], k[1, 2]), p[1, 4], 170)

    def test_strides(self) -> None:
        """Whatever lies between the elements, and in whatever order: the same bits."""
        q, k = Q[0].astype(np.float32), K[0].astype(np.float32)
        plain = attnscope.weights(q, k)
        wide = np.zeros((6, 300, 80), np.float32)
        wide[:, ::2, ::2] = q
        for what, other in (
            ("steps", wide[:, ::2, ::2]),
            ("fortran", np.asfortranarray(q)),
            ("backwards", np.ascontiguousarray(q[:, ::-1, ::-1])[:, ::-1, ::-1]),
            ("transposed", np.ascontiguousarray(q.transpose(2, 0, 1)).transpose(1, 2, 0)),
        ):
            with self.subTest(what=what):
                np.testing.assert_array_equal(attnscope.weights(other, k), plain)
        tensor = torch.from_numpy(q).permute(1, 0, 2).contiguous().permute(1, 0, 2)
        np.testing.assert_array_equal(attnscope.weights(tensor, torch.from_numpy(k)), plain)
        np.testing.assert_array_equal(
            attnscope.weights(q[:1].repeat(6, 0), k), attnscope.weights(np.broadcast_to(q[:1], q.shape), k)
        )

    def test_layouts_by_name(self) -> None:
        q, k = Q.astype(np.float32), K.astype(np.float32)
        np.testing.assert_array_equal(
            attnscope.weights(q.transpose(0, 2, 1, 3), k.transpose(0, 2, 1, 3), layout="bshd"),
            attnscope.weights(q, k),
        )
        with self.assertRaisesRegex(attnscope.Error, "layout bdsh"):
            attnscope.weights(q, k, layout="bdsh")

    def test_read_only_arrays(self) -> None:
        q = Q[0, 0].astype(np.float32)
        q.flags.writeable = False
        check_weights(attnscope.weights(q, q), softmax(logits(q, q))[0], 150)

    def test_other_dlpack_arrays(self) -> None:
        class Foreign:
            """Speaks DLPack and nothing else."""

            def __init__(self, array: np.ndarray) -> None:
                self.array, self.ndim = array, array.ndim

            def __dlpack__(self, **options: object) -> object:
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self) -> tuple[int, int]:
                return (1, 0)

        q = Q[0, 0].astype(np.float32)
        np.testing.assert_array_equal(attnscope.weights(Foreign(q), Foreign(q)), attnscope.weights(q, q))

    def test_shapes_that_do_not_fit(self) -> None:
        with self.assertRaisesRegex(attnscope.Error, "dimensions"):
            attnscope.weights(np.zeros(4, np.float32), np.zeros(4, np.float32))
        with self.assertRaisesRegex(attnscope.Error, "40.*39|39.*40"):
            attnscope.weights(np.zeros((4, 40), np.float32), np.zeros((4, 39), np.float32))


class Choosing(unittest.TestCase):
    """Rows and columns, as numpy understands them."""

    def setUp(self) -> None:
        self.q = random_heads((700, 32), 5).astype(np.float32)
        self.k = random_heads((1500, 32), 6).astype(np.float32)
        self.whole = attnscope.weights(self.q, self.k)
        check_weights(self.whole, softmax(logits(self.q, self.k))[0], 1500)

    def test_rows(self) -> None:
        for rows in (
            5,
            -1,
            slice(10, 90),
            slice(650, 20, -7),
            slice(0, 0),
            range(3, 30, 4),
            [699, 0, 0, 17],
            np.array([4, 5, 6]),
            np.arange(700) % 3 == 0,
            np.int64(8),
            [],
        ):
            with self.subTest(rows=rows):
                expected = self.whole[
                    list(rows)
                    if isinstance(rows, range)
                    else rows
                    if not isinstance(rows, list) or rows
                    else slice(0, 0)
                ]
                np.testing.assert_array_equal(attnscope.weights(self.q, self.k, rows=rows), expected)

    def test_columns(self) -> None:
        for cols in (3, slice(100, 1400), [1499, 2, 700, 2], slice(None, None, 300), np.arange(1500) > 1490):
            with self.subTest(cols=cols):
                np.testing.assert_array_equal(
                    attnscope.weights(self.q, self.k, cols=cols), self.whole[:, cols]
                )
                whole = attnscope.logits(self.q, self.k, rows=[9, 3])
                np.testing.assert_array_equal(
                    attnscope.logits(self.q, self.k, rows=[9, 3], cols=cols), whole[:, cols]
                )

    def test_lse_and_outputs_of_rows(self) -> None:
        v = random_heads((1500, 8), 7).astype(np.float32)
        rows = [600, 2, 3]
        np.testing.assert_array_equal(
            attnscope.lse(self.q, self.k, rows=rows), attnscope.lse(self.q, self.k)[rows]
        )
        np.testing.assert_array_equal(
            attnscope.output(self.q, self.k, v, rows=rows), attnscope.output(self.q, self.k, v)[rows]
        )

    def test_what_is_outside(self) -> None:
        for rows, words in (
            (700, "rows: 700 is outside .valid 0 to 699"),
            ([1, -701], "rows: -701 is outside"),
            ([1.5], "whole numbers"),
            (np.zeros(3, bool), "expected 700"),
        ):
            with self.subTest(rows=rows), self.assertRaisesRegex(attnscope.Error, words):
                attnscope.weights(self.q, self.k, rows=rows)


class Masks(unittest.TestCase):
    def test_masks(self) -> None:
        n = 150
        q, k = Q[0, :3, :n].astype(np.float32), K[0, :, :n].astype(np.float32)
        i, j = np.ogrid[:n, :n]
        allowed = random_heads((n, n), 8) > 0
        allowed[7] = False
        bias = random_heads((3, n, n), 9).astype(np.float32)
        keys = np.arange(n) < 100
        minus = np.float64("-inf")
        for mask, added in (
            ("causal", np.where(j <= i, 0, minus)),
            ("window:9", np.where(abs(i - j) <= 9, 0, minus)),
            ("block_causal:25", np.where(j // 25 <= i // 25, 0, minus)),
            (allowed, np.where(allowed, 0, minus)),
            (torch.from_numpy(allowed), np.where(allowed, 0, minus)),
            (keys[None, :], np.where(keys, 0, minus)),
            (bias, bias),
            (torch.from_numpy(bias).bfloat16(), torch.from_numpy(bias).bfloat16().double().numpy()),
        ):
            with self.subTest(mask=str(type(mask))):
                s = logits(q, k, bias=added)
                p, lse = softmax(s)
                check_weights(attnscope.weights(q, k, mask=mask), p, n)
                np.testing.assert_allclose(attnscope.lse(q, k, mask=mask), lse, atol=2e-5, rtol=2e-6)
                np.testing.assert_allclose(
                    attnscope.logits(q, k, mask=mask, rows=[7, 8]), s[:, 7:9], atol=2e-5, rtol=2e-5
                )

    def test_neighbourhoods_of_a_grid(self) -> None:
        q, k = Q[0, :3].astype(np.float32), K[0, :, :150].astype(np.float32)
        grid, window = (4, 5, 7), (2, 3, 4)
        near = np.ones((1, 1), bool)
        for cells, width in zip(grid, window):
            start = np.clip(np.arange(cells) - width // 2, 0, cells - width)[:, None]
            near = np.kron(near, (np.arange(cells) >= start) & (np.arange(cells) < start + width))
        seen = np.ones((150, 150), bool)  # ten tokens of text behind the grid
        seen[:140, :140] = near
        p, _ = softmax(logits(q, k, bias=np.where(seen, 0, -np.inf)))
        got = attnscope.weights(q, k, mask="natten:2x3x4", grid=grid, text="10@end")
        check_weights(got, p, 150)
        for options, words in (
            ({"mask": "natten:2x3x4"}, "natten:2x3x4: there is no token grid"),
            ({"mask": "natten:5x3x4", "grid": grid, "text": "10@end"}, "5 cells along t exceed the grid 4x5x7"),
            ({"mask": "natten:5x3"}, "expected natten:TxHxW"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(attnscope.Error, words):
                attnscope.weights(q, k, **options)

    def test_words_that_are_no_mask(self) -> None:
        for mask, words in (
            ("casual", "mask casual: expected none, causal"),
            ("window:x", "window:N"),
            (np.zeros((9, 9), bool), "mask"),
        ):
            with self.subTest(mask=str(mask)), self.assertRaisesRegex(attnscope.Error, words):
                attnscope.weights(np.zeros((5, 8), np.float32), np.zeros((5, 8), np.float32), mask=mask)

    def test_scale_and_score(self) -> None:
        q, k = Q[0, 0].astype(np.float32), K[0, 0].astype(np.float32)
        check_weights(attnscope.weights(q, k, scale=0.3), softmax(logits(q, k, 0.3))[0], 170)
        sigmoid = 1 / (1 + np.exp(-logits(q, k)))
        np.testing.assert_allclose(attnscope.weights(q, k, score="sigmoid"), sigmoid, atol=1e-5)
        with self.assertRaisesRegex(attnscope.Error, "no LSE"):
            attnscope.lse(q, k, score="sigmoid")
        for options, words in (
            ({"scale": -1.0}, "scale -1.0"),
            ({"score": "sofmax"}, "score sofmax"),
            ({"scael": 1}, "unknown option scael"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(attnscope.Error, words):
                attnscope.weights(q, k, **options)


class Values(unittest.TestCase):
    def test_what_is_not_finite_is_named(self) -> None:
        q = np.zeros((5, 8), np.float32)
        bad = q.copy()
        bad[3, 2] = np.nan
        with self.assertRaisesRegex(attnscope.Error, r"k.*(nan|NaN)") as raised:
            attnscope.weights(q, bad)
        self.assertEqual(raised.exception.code, "value")

    def test_backends_and_threads_agree(self) -> None:
        q, k = Q[0].astype(np.float32), K[0].astype(np.float32)
        one = attnscope.weights(q, k, backend="cpu", threads=1)
        np.testing.assert_array_equal(attnscope.weights(q, k, backend="cpu", threads=3), one)
        np.testing.assert_array_equal(attnscope.weights(q, k, backend="cpu", memory="3MiB"), one)
        check_weights(attnscope.weights(q, k, backend="reference"), softmax(logits(q, k))[0], 170)
        with self.assertRaisesRegex(attnscope.Error, "MiB|KiB") as raised:
            attnscope.weights(q, k, memory="1KiB")
        self.assertEqual(raised.exception.code, "resource")
        self.assertIsInstance(raised.exception, MemoryError)
        with self.assertRaisesRegex(attnscope.Error, "cpu-amx|reference") as raised:
            attnscope.weights(q, k, backend="cpuu")

    def test_a_result_that_no_memory_holds(self) -> None:
        q = np.broadcast_to(np.float32(0), (1 << 21, 8))
        with self.assertRaisesRegex(
            attnscope.Error, "arrays: the result takes .*ask for fewer rows"
        ) as raised:
            attnscope.weights(q, q)
        self.assertEqual(raised.exception.code, "resource")


if __name__ == "__main__":
    unittest.main()
