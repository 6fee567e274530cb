"""docs/python.ipynb, cell by cell, with the sample; and the code of docs/python.md names what there is."""

import ast
import json
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import attnscope
from reference import ROOT, SAMPLE


class Notebook(unittest.TestCase):
    def test_it_runs_and_shows_pictures(self) -> None:
        cells = json.loads((ROOT / "docs" / "python.ipynb").read_text())["cells"]
        shown: list[object] = []
        space: dict[str, object] = {}
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.dict(os.environ, {"ATTNSCOPE_SAMPLE": str(SAMPLE), "ATTNSCOPE_OUT": folder}):
                for cell in cells:
                    self.assertEqual(cell.get("outputs", []), [])
                    if cell["cell_type"] != "code":
                        continue
                    tree = ast.parse("".join(cell["source"]))
                    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
                    exec(compile(tree, "cell", "exec"), space)  # noqa: S102 - what a notebook does
                    if last is not None:
                        shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), space))  # noqa: S307
            pictures = [one._repr_png_() for one in shown if hasattr(one, "_repr_png_")]
            self.assertEqual(len(pictures), 4)
            for picture in pictures:
                self.assertTrue(picture.startswith(b"\x89PNG") and len(picture) > 1000)
            self.assertTrue((Path(folder) / "mosaic.png").exists())
            self.assertEqual(sum(isinstance(one, attnscope.HeadView) for one in shown), 1)

    def test_the_page_names_what_there_is(self) -> None:
        text = (ROOT / "docs" / "python.md").read_text()
        for name in set(re.findall(r"attnscope\.(\w+)\(", text)):
            self.assertTrue(callable(getattr(attnscope, name)), name)
        for name in set(re.findall(r"head\.(\w+)\(", text)):
            self.assertTrue(hasattr(attnscope.Head, name), name)
        for name in set(re.findall(r"stored\.(\w+)\(", text)):
            self.assertTrue(hasattr(attnscope.StoredHead, name), name)
        for name in set(re.findall(r"cap\.(\w+)\(", text)):
            self.assertTrue(hasattr(attnscope.Capture, name), name)


if __name__ == "__main__":
    unittest.main()
