"""The package attnscope.capture, the file beside the samples that imports it, and the one-file copy."""

import ast
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import attnscope_capture
from support import CaptureTest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "attnscope" / "capture"
SCRIPT = ROOT / "scripts" / "one-file-capture"
# The names that scripts may have imported from the recorder since it was one file.
NAMES = """CallSize Call Capture CaptureError FAMILIES FORMAT Family FolderLock Forward Grid Job Options
PromptWatch QUEUED_CALLS STORED_DTYPES Slot Snapshot StepCounter Writer batch_branches
capture chosen_mask chosen_part clear_folder estimate head_range key_head_range kind_test largest_named
latent_frames make_folder output_rows parse_numbers read_catalogue readable record replace_file""".split()


def python(*arguments: object, code: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs an interpreter that sees no package but those installed."""
    run = subprocess.run(
        [sys.executable, "-I", *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd
    )
    assert run.returncode == code, (run.returncode, arguments, run.stdout, run.stderr)
    return run


class Package(CaptureTest):
    def modules(self) -> dict[str, ast.Module]:
        return {p.stem: ast.parse(p.read_text()) for p in PACKAGE.glob("*.py")}

    def test_importing_attnscope_imports_nothing_large(self) -> None:
        told = python(
            "-c",
            f"import sys; sys.path.insert(0, {str(PACKAGE.parents[1])!r}); import attnscope\n"
            "print([m for m in ('torch', 'numpy', 'safetensors') if m in sys.modules])",
        )
        self.assertEqual(told.stdout, "[]\n")

    def test_every_module_can_be_read_at_one_sitting(self) -> None:
        for path in PACKAGE.glob("*.py"):
            self.assertLessEqual(len(path.read_text().splitlines()), 400, path)
        for name, tree in self.modules().items():
            self.assertTrue(ast.get_docstring(tree), name)
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.assertLessEqual(node.end_lineno - node.lineno, 60, f"{name}.{node.name}")

    def test_names_that_scripts_import(self) -> None:
        for name in NAMES:
            self.assertTrue(hasattr(attnscope_capture, name), name)
        self.assertEqual(
            attnscope_capture.__all__,
            ["Capture", "CaptureError", "capture", "estimate", "install", "record", "wrap"],
        )


class ThinFile(CaptureTest):
    def test_it_runs_and_says_nothing(self) -> None:
        run = python(ROOT / "samples" / "capture" / "attnscope_capture.py", cwd=self.folder)
        self.assertEqual((run.stdout, run.stderr), ("", ""))

    def test_alone_it_says_what_is_missing(self) -> None:
        shutil.copy(ROOT / "samples" / "capture" / "attnscope_capture.py", self.folder)
        run = python(self.folder / "attnscope_capture.py", code=1)
        last = run.stderr.strip().splitlines()[-1]
        for word in ("ImportError", "attnscope.capture", str(self.folder.parent), "one-file-capture"):
            self.assertIn(word, last)


class OneFile(CaptureTest):
    def make(self, name: str = "attnscope_capture.py", cwd: Path = ROOT) -> str:
        out = self.folder / name
        run = python(SCRIPT, "-o", out, cwd=cwd)
        self.assertEqual((run.stdout, run.stderr), ("", ""))
        return out.read_text()

    def test_the_same_bytes_from_everywhere(self) -> None:
        text = self.make()
        self.assertEqual(self.make("again.py", self.folder), text)
        self.assertEqual(python(SCRIPT).stdout, text)
        self.assertEqual([p.name for p in self.folder.glob("*.part")], [])

    def test_the_header_says_where_it_comes_from(self) -> None:
        head = self.make().split('"""')[0]
        self.assertIn("python/attnscope/capture", head)
        self.assertIn("scripts/one-file-capture -o attnscope_capture.py", head)

    def test_it_holds_the_whole_package_and_needs_nothing_of_it(self) -> None:
        text = self.make()
        for name in NAMES:
            self.assertRegex(text, rf"(?m)^(class |def |){name}\b")
        self.assertNotRegex(text, r"(?m)^\s*from \.|import attnscope")
        run = python(
            "-c",
            f"import sys; sys.path.insert(0, {str(self.folder)!r}); import attnscope_capture as a\n"
            "print(a.__file__, a.__all__, 'attnscope' in sys.modules)",
        )
        expected = f"{self.folder / 'attnscope_capture.py'} {attnscope_capture.__all__} False\n"
        self.assertEqual(run.stdout, expected)

    def test_what_cannot_be_one_module_is_named(self) -> None:
        """Two modules that define the same name would be one in the copy: the last would win."""
        for text, words in (
            ("import torch\n\n\ndef readable(size):\n    return size\n", "readable is defined in"),
            ("from .steps import StepCounter as Counter\n", "without `as`"),
            ("from . import steps\n", "expected `from .module import"),
            ("from .nowhere import x\n", "no module of the package"),
            ("from .entry import capture\n", ""),
        ):
            root = self.folder / "copy"
            shutil.copytree(PACKAGE, root / "python" / "attnscope" / "capture")
            (root / "scripts").mkdir()
            shutil.copy(SCRIPT, root / "scripts")
            (root / "python" / "attnscope" / "capture" / "more.py").write_text(f'"""More."""\n\n{text}')
            run = python(root / "scripts" / SCRIPT.name, code=1 if words else 0)
            self.assertIn(words, run.stderr)
            shutil.rmtree(root)

    def test_modules_of_the_package_are_in_no_circle(self) -> None:
        """Imports for type checks alone count, too."""
        above: dict[str, set[str]] = {}
        for file in PACKAGE.parent.glob("*.py"):
            nodes = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom) and n.level == 1]
            above[file.stem] = {n.module.split(".")[0] for n in nodes if n.module} - {"_native", "capture"}
        self.assertIn("views", above["heads"])
        while free := [name for name in above if not above[name] & above.keys()]:
            for name in free:
                del above[name]
        self.assertEqual(above, {})

    def test_a_circle_is_named(self) -> None:
        root = self.folder / "copy"
        shutil.copytree(PACKAGE, root / "python" / "attnscope" / "capture")
        (root / "scripts").mkdir()
        shutil.copy(SCRIPT, root / "scripts")
        errors = root / "python" / "attnscope" / "capture" / "errors.py"
        errors.write_text(errors.read_text() + "\nfrom .choice import kind_test\n")
        run = python(root / "scripts" / SCRIPT.name, code=1)
        self.assertRegex(run.stderr, "in a circle: .*(choice → errors → choice|errors → choice → errors)")


if __name__ == "__main__":
    unittest.main()
