"""docs/look.ipynb as Jupyter runs it, by nbconvert in a kernel of this interpreter, with nothing to download."""

import importlib.util
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import attnscope
from reference import ROOT

LACKS = [name for name in ("nbconvert", "ipykernel", "nbformat") if importlib.util.find_spec(name) is None]
SECONDS = 300  # of a cell, at most


@unittest.skipIf(LACKS, f"{sys.executable} has no {', '.join(LACKS)}: scripts/python-venv makes one that has")
class LookNotebook(unittest.TestCase):
    def run_notebook(self, out: Path) -> list[dict[str, Any]]:
        """The code cells after the run."""
        import nbformat
        from nbconvert.preprocessors import ExecutePreprocessor

        notebook = nbformat.read(ROOT / "docs" / "look.ipynb", as_version=4)
        nbformat.validate(notebook)
        self.assertFalse(any(cell.get("outputs") for cell in notebook.cells))
        package = Path(attnscope.__file__).parents[1]
        path = os.pathsep.join([str(package), *sys.path])
        given = {"ATTNSCOPE_SAMPLES": str(ROOT / "samples"), "ATTNSCOPE_OUT": str(out), "PYTHONPATH": path}
        given |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "IPYTHONDIR": str(out / "ipython")}
        with mock.patch.dict(os.environ, given):
            ExecutePreprocessor(timeout=SECONDS, kernel_name="python3").preprocess(
                notebook, {"metadata": {"path": str(out)}}
            )
        return [cell for cell in notebook.cells if cell.cell_type == "code"]

    def shown(self, cell: dict[str, Any], kind: str) -> list[str]:
        return [output.data[kind] for output in cell["outputs"] if kind in output.get("data", {})]

    def test_it_runs_and_every_cell_shows_something(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            cells = self.run_notebook(out)
            for name in ("look.html", "moving-shapes.html"):
                self.assertTrue((out / name).read_text().startswith("<!doctype html>"))
        pages = [text for cell in cells for text in self.shown(cell, "text/html") if "<iframe" in text]
        self.assertEqual(len(pages), 2)  # each once: what shows itself is no second output of its cell
        self.assertIn("<b>red</b>", pages[0])
        tables = [text for cell in cells for text in self.shown(cell, "text/html") if "<table" in text]
        self.assertEqual(len(tables), 2)
        strips = [text for cell in cells for text in self.shown(cell, "text/html") if "<b>blue</b>" in text]
        self.assertEqual(len(strips), 1)
        self.assertEqual(strips[0].count("<img"), 2 * 2 * 7)  # pictures below both words
        for cell in cells[1:]:
            self.assertTrue(cell["outputs"], cell["source"])


if __name__ == "__main__":
    unittest.main()
