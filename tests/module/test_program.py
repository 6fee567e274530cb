"""The program that the package brings."""

import io
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import attnscope
from attnscope import program
from reference import ROOT, SAMPLE


class Words(unittest.TestCase):
    def test_options_become_words(self) -> None:
        self.assertEqual(
            program.words(
                "query",
                (Path("a"),),
                {
                    "out": Path("f.png"),
                    "layers": range(3, 6),
                    "heads": [0, 2],
                    "query": [(3, 5, 6), "1,0:2,3"],
                    "grid": (7, 12, 12),
                    "text_token": "dog",
                    "force": True,
                    "json": False,
                    "memory": None,
                },
            ),
            [
                "query",
                "a",
                "-o",
                "f.png",
                "--layers=3-5",
                "--heads=0,2",
                "--query=3,5,6",
                "--query=1,0:2,3",
                "--grid=7x12x12",
                "--text-token=dog",
                "--force",
            ],
        )

    def test_errors_have_the_same_text(self) -> None:
        run = subprocess.run(
            [program.PROGRAM, "stats", SAMPLE, "--layers", "9"], capture_output=True, text=True, check=False
        )
        with self.assertRaises(attnscope.Error) as raised:
            attnscope.command("stats", SAMPLE, layers=9)
        self.assertEqual(f"attnscope: {raised.exception}\n", run.stderr)
        self.assertEqual(raised.exception.code, "usage")
        with self.assertRaises(attnscope.Error) as in_process:
            attnscope.open(SAMPLE).stats(layers=9)
        self.assertEqual(str(in_process.exception), str(raised.exception).replace("--layers 9", "layers=9"))
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual(
            (str(again), again.code, type(again)), (str(raised.exception), "usage", type(raised.exception))
        )
        self.assertIsInstance(again, ValueError)

    def test_an_error_is_told_once(self) -> None:
        with mock.patch("sys.stderr", io.StringIO()) as shown, self.assertRaises(attnscope.Error) as raised:
            attnscope.command("stats", SAMPLE, layers="nonsense")
        self.assertIn("nonsense", str(raised.exception))
        self.assertNotIn("nonsense", shown.getvalue())
        with tempfile.TemporaryDirectory() as folder, mock.patch("sys.stderr", io.StringIO()) as shown:
            attnscope.command("export", SAMPLE, product="lse", layers=0, out=f"{folder}/lse.h5")
        self.assertIn("lse.h5", shown.getvalue().splitlines()[-1])  # what went well is told to the end

    def test_files_that_are_made(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = attnscope.export(SAMPLE, out=f"{folder}/lse.h5", product="lse", layers=0, quiet=True)
            self.assertGreater(made.stat().st_size, 0)
            picture = attnscope.render(
                SAMPLE, out=f"{folder}/m.png", picture="matrix", layers=0, heads=1, quiet=True
            )
            self.assertTrue(picture._repr_png_().startswith(b"\x89PNG"))
            with self.assertRaisesRegex(attnscope.Error, "m.png"):
                attnscope.render(SAMPLE, out=f"{folder}/m.png", picture="matrix", layers=0, heads=1)

    def test_the_command(self) -> None:
        code = "from attnscope.program import main; import sys; sys.argv = ['attnscope', '--version']; main()"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertTrue(run.stdout.startswith(f"attnscope {attnscope.__version__} "), run.stdout)


class Checkout(unittest.TestCase):
    def test_without_the_compiled_part(self) -> None:
        """The sources alone: the recorder's package is there, and what is missing is said."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(
                ROOT / "python" / "attnscope",
                f"{folder}/attnscope",
                ignore=shutil.ignore_patterns("*.so", "bin"),
            )
            code = (
                f"import sys; sys.path.insert(0, {folder!r})\n"
                "import attnscope.capture\nprint(attnscope.capture.capture.__name__)\n"
                "try: attnscope.weights\nexcept ImportError as e: print(e)\n"
                "try: attnscope.nothing\nexcept AttributeError as e: print(e)"
            )
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        first, second, third = run.stdout.splitlines()
        self.assertEqual(first, "capture")
        for word in ("compiled part", "pip install .", "attnscope.capture works without"):
            self.assertIn(word, second)
        self.assertIn("no attribute 'nothing'", third)


if __name__ == "__main__":
    unittest.main()
