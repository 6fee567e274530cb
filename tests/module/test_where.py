"""Heads chosen by conditions over their names and numbers."""

import tempfile
import unittest
from pathlib import Path

import attnscope
from reference import SAMPLE


class Where(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = Path(folder.name)
        self.cap = attnscope.open(SAMPLE, cache=str(self.cache))

    def places(self, where: str) -> list[tuple[int, int]]:
        return [(head.call.layer, head.number) for head in self.cap.heads(where=where)]

    def test_heads_whose_numbers_hold(self) -> None:
        table = self.cap.stats()
        narrow = float(sorted(table["entropy"])[5])
        wanted = [(int(row["layer"]), int(row["head"])) for row in table if row["entropy"] <= narrow]
        self.assertEqual(self.places(f"entropy<={narrow!r}"), wanted)
        self.assertEqual(len(wanted), 6)
        kept = list(self.cache.glob("stats-*.json"))
        self.assertEqual(len(kept), 4)
        before = [file.stat().st_mtime_ns for file in kept]
        self.assertEqual(self.places(f"entropy<={narrow!r} layer=1-2"), [p for p in wanted if p[0] in (1, 2)])
        self.assertEqual([file.stat().st_mtime_ns for file in kept], before)
        some = self.cap.stats(where=f"entropy<={narrow!r}", sort="entropy:asc", top=3)
        self.assertEqual(list(some["entropy"]), sorted(table["entropy"])[:3])

    def test_names_alone_compute_nothing(self) -> None:
        self.assertEqual(self.places("layer>=2 head=1,3"), [(2, 1), (2, 3), (3, 1), (3, 3)])
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_the_numbers_of_this_very_call(self) -> None:
        sampled = self.cap.stats(sample=8, where="rows=8")
        self.assertEqual(len(sampled), 16)
        with self.assertRaisesRegex(attnscope.Error, "holds for no head"):
            self.cap.heads(where="rows=8")

    def test_what_cannot_be_meant(self) -> None:
        for where, message in (
            ("entropyy<1", "did you mean entropy"),
            ("", "expected a condition"),
            ("(layer=1", "bracket"),
        ):
            with self.subTest(where), self.assertRaisesRegex(attnscope.Error, message):
                self.cap.heads(where=where)


if __name__ == "__main__":
    unittest.main()
