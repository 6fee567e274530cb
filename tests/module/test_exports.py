"""Exports in a capture's place."""

import tempfile
import unittest
from pathlib import Path

import numpy as np

import attnscope
from reference import SAMPLE, check_weights, logits, sample_head, softmax


class Exports(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def export(self, name: str, **options: object) -> attnscope.Export:
        made = attnscope.export(SAMPLE, out=self.folder / name, quiet=True, **options)
        opened = attnscope.open(made)
        self.assertIsInstance(opened, attnscope.Export)
        return opened

    def test_weights_that_stand_in_a_file(self) -> None:
        ex = self.export("w.h5", layers="1-2", heads="0,3", dtype="f32")
        self.assertEqual(len(ex), 4)
        head = ex.head(3, 10, 2, "cond")
        mine = attnscope.open(SAMPLE)[10, 2].head(3)
        np.testing.assert_array_equal(head.entries(), mine.weights())
        np.testing.assert_array_equal(
            head.entries([900, 3, 3], slice(5, 700)), mine.weights([900, 3, 3], slice(5, 700))
        )
        np.testing.assert_array_equal(head.entries(7), mine.weights(7))
        np.testing.assert_allclose(head.lse([4, 2]), mine.lse([4, 2]), rtol=1e-6)
        self.assertEqual([h.facts["layer"] for h in ex[10]], [1, 1, 2, 2])

    def test_crops_and_smaller_types(self) -> None:
        ex = self.export("u.h5", layers=1, heads=2, rows="100:400", cols="16:1024")
        (head,) = ex
        np.testing.assert_array_equal(head.queries, np.arange(100, 400))
        self.assertEqual(head.facts["keys"], (16, 1024))
        one = sample_head(1, 2)
        p = softmax(logits(one["q"], one["k"]))[0][100:400, 16:]
        check_weights(head.entries(), p, 1024) if head.facts[
            "dtype"
        ] == "f32" else np.testing.assert_allclose(head.entries(), p, rtol=2e-3, atol=1e-6)

    def test_what_is_wrong(self) -> None:
        ex = self.export("l.h5", layers=0, heads=0, product="logits", rows="0:64")
        one = sample_head(0, 0)
        np.testing.assert_allclose(
            ex.head(0).entries(), logits(one["q"][:64], one["k"]), atol=2e-2, rtol=1e-3
        )
        for make, words in (
            (lambda: ex[11], "no such heads"),
            (lambda: ex.head(5), "head 5: .* has 0"),
            (lambda: ex.head(0).entries(rows=64), "rows: 64 is outside .valid 0 to 63"),
            (lambda: attnscope.open(self.folder / "l.h5", grid=(7, 12, 12)), "is an export, for which grid"),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(attnscope.Error, words):
                make()
        pooled = attnscope.export(SAMPLE, out=self.folder / "p.h5", block=64, layers=0, quiet=True)
        with self.assertRaises(attnscope.Error):
            attnscope.open(pooled)
        # A tile that is not what was written.
        data = bytearray((self.folder / "l.h5").read_bytes())
        values = ex.head(0).entries(0)
        at = data.find(values[:8].astype(np.float16).tobytes())
        at = at if at >= 0 else data.find(values[:8].astype(np.float32).tobytes())
        self.assertGreaterEqual(at, 0)
        data[at] ^= 1
        (self.folder / "l.h5").write_bytes(data)
        with self.assertRaises(attnscope.Error) as raised:
            attnscope.open(self.folder / "l.h5").head(0).entries()
        self.assertEqual(raised.exception.code, "file")


if __name__ == "__main__":
    unittest.main()
