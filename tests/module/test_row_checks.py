"""What is looked through before rows of arrays are computed: check="rows" and check="all"."""

import itertools
import unittest

import numpy as np
import torch

import attnscope
from reference import check_weights, logits, random_heads, softmax

TYPES = (torch.float32, torch.bfloat16, torch.float16)
BAD = (float("nan"), float("inf"), float("-inf"))
ROWS = (1, 13, 36, 130)  # some of each way that the engine has for so many
Q, K, V = (random_heads((count, 40), seed) for seed, count in enumerate((150, 700, 700)))


def backends() -> list[str]:
    """Those of the machine."""
    found = []
    for name in ("cpu", "cpu-fma", "cpu-bf16", "cpu-amx", "cpu-amx-fp16", "reference"):
        try:
            attnscope.weights(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), backend=name)
        except attnscope.Error as error:
            assert error.code == "unavailable", error
        else:
            found.append(name)
    return found


class Rows(unittest.TestCase):
    def test_what_spoils_a_row_is_an_error(self) -> None:
        """NaN, and an Inf that makes logits infinite, in the first, a middle and the last key, of every type and
        backend."""
        for backend, dtype, rows in itertools.product(backends(), TYPES, ROWS):
            for bad, key in zip(BAD, (0, 333, 699), strict=True):
                with self.subTest(backend=backend, dtype=str(dtype), rows=rows, bad=bad):
                    q, k, v = (torch.from_numpy(each).to(dtype) for each in (Q, K, V))
                    k[key, 7] = bad
                    q[:, 7] = -1 if bad < 0 else 1
                    chosen = {"rows": slice(5, 5 + rows), "backend": backend}
                    for work in (
                        lambda: attnscope.weights(q, k, **chosen),
                        lambda: attnscope.weights(q, k, cols=[1, 2, 500], **chosen),
                        lambda: attnscope.weights(q, k, sinks=0.5, mask="window:1000", **chosen),
                        lambda: attnscope.lse(q, k, **chosen),
                        lambda: attnscope.output(q, k, v, **chosen),
                    ):
                        with self.assertRaisesRegex(attnscope.Error, f"k: .*{key}.*7") as raised:
                            work()
                        self.assertEqual(raised.exception.code, "value")

    def test_other_scores_are_looked_through(self) -> None:
        q, k = (torch.from_numpy(each).float() for each in (Q, K))
        k[333, 7] = float("nan")
        for options in ({"score": "linear:relu"}, {"score": "linear:elu1"}, {"score": "sigmoid"}, {"softcap": 3}):
            for rows in (1, 130):
                with self.subTest(**options, rows=rows), self.assertRaisesRegex(attnscope.Error, "k: .*333.*7"):
                    attnscope.weights(q, k, rows=slice(0, rows), **options)
        with self.assertRaisesRegex(attnscope.Error, "k: .*333.*7"):
            attnscope.logits(q, k, rows=3, cols=[3])

    def test_v_and_q(self) -> None:
        for backend, dtype, rows in itertools.product(backends(), TYPES, ROWS):
            with self.subTest(backend=backend, dtype=str(dtype), rows=rows):
                q, k, v = (torch.from_numpy(each).to(dtype) for each in (Q, K, V))
                v[600, 3] = float("nan")
                with self.assertRaisesRegex(attnscope.Error, "v: .*600.*3"):
                    attnscope.output(q, k, v, rows=slice(5, 5 + rows), backend=backend)
                q[5, 2] = float("inf")
                for work in (attnscope.weights, attnscope.lse):
                    with self.assertRaisesRegex(attnscope.Error, "q: .*5.*2"):
                        work(q, k, rows=slice(5, 5 + rows), backend=backend)
                    if backend != "reference":  # which has all looked through
                        work(q, k, rows=slice(6, 6 + rows), backend=backend)

    def test_what_no_row_sees_is_not_found(self) -> None:
        q, k = (torch.from_numpy(each).float() for each in (Q, K))
        k[400:, 0] = float("nan")
        q, k = q[:100], k[:700]
        chosen = {"mask": "causal", "rows": slice(0, 100), "backend": "cpu"}
        with self.assertRaisesRegex(attnscope.Error, "k: .*400.*0"):
            attnscope.weights(q, k, check="all", **chosen)
        got = attnscope.weights(q, k, **chosen)
        seen = np.tril(np.ones((100, 700), bool))
        with np.errstate(invalid="ignore"):
            expected = softmax(np.where(seen, logits(q, k), -np.inf))[0]
        check_weights(got, expected, 700)

    def test_the_same_bits(self) -> None:
        for backend, dtype in itertools.product(backends(), TYPES):
            q, k, v = (torch.from_numpy(each).to(dtype) for each in (Q, K, V))
            whole = attnscope.call(q, k, v, backend=backend).head(0)
            weights, lse, outputs = whole.weights(), whole.lse(), whole.output()
            scattered = np.random.default_rng(1).permutation(150)[:40]
            for rows in (*(slice(5, 5 + count) for count in ROWS), scattered, slice(0, 96, 2)):
                with self.subTest(backend=backend, dtype=str(dtype), rows=str(rows)):
                    for check in ("rows", "all"):
                        o = {"rows": rows, "check": check, "backend": backend}
                        np.testing.assert_array_equal(attnscope.weights(q, k, **o), weights[rows])
                        np.testing.assert_array_equal(
                            attnscope.weights(q, k, cols=[600, 3, 9], **o), weights[rows][:, [600, 3, 9]]
                        )
                        np.testing.assert_array_equal(attnscope.lse(q, k, **o), lse[rows])
                        np.testing.assert_array_equal(attnscope.output(q, k, v, **o), outputs[rows])

    def test_heads_and_items(self) -> None:
        q, k = random_heads((2, 3, 60, 16), 4).astype(np.float32), random_heads((2, 3, 90, 16), 5).astype(np.float32)
        whole = attnscope.weights(q, k)
        np.testing.assert_array_equal(attnscope.weights(q, k, rows=slice(3, 33)), whole[:, :, 3:33])
        np.testing.assert_array_equal(attnscope.lse(q, k, rows=slice(3, 33)), attnscope.lse(q, k)[:, :, 3:33])
        k[1, 2, 80, 1] = np.nan
        for rows in (2, 30, 60):
            with self.assertRaisesRegex(attnscope.Error, "k: .*1.*2.*80"):
                attnscope.weights(q, k, rows=slice(0, rows))

    def test_rows_of_no_keys(self) -> None:
        q, k = (each.astype(np.float32) for each in (Q, K))
        seen = np.ones((150, 700), bool)
        seen[7] = False
        self.assertEqual(attnscope.lse(q, k, mask=seen, rows=[7])[0], -np.inf)
        self.assertFalse(attnscope.weights(q, k, mask=seen, rows=[7]).any())

    def test_a_word_that_is_none(self) -> None:
        for work in (attnscope.weights, attnscope.logits, attnscope.lse):
            with self.assertRaisesRegex(ValueError, "check 'some': expected .rows. or .all."):
                work(Q, K, check="some")


if __name__ == "__main__":
    unittest.main()
