"""The wheel of the recorder alone: in empty environments, beside the package, and after either is gone."""

import os
import shutil
import subprocess
import sys
import sysconfig
import unittest
import zipfile
from pathlib import Path

from support import CaptureTest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "capture-wheel"
RECORDS = """
import sys
import torch.nn.functional as F, torch
import attnscope.capture
from attnscope_capture import capture
from attnscope.capture.recorder import Capture
assert capture is attnscope.capture.capture and Capture is attnscope.capture.Capture
with capture(None, sys.argv[1], quiet=True) as cap:
    F.scaled_dot_product_attention(*torch.randn(3, 1, 2, 8, 16))
assert type(cap) is Capture
assert sum(n.endswith(".recorder") for n in sys.modules) == 1
print(attnscope.capture.__file__)
"""
ALONE, WHOLE = "attnscope_capture/sources/__init__.py", "attnscope/capture/__init__.py"


class RecorderWheel(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        self.wheel = self.make(self.folder / "dist")

    def make(self, folder: Path) -> Path:
        run = subprocess.run([sys.executable, SCRIPT, "-o", folder], capture_output=True, text=True, check=True)
        return Path(run.stdout.strip())

    def environment(self) -> Path:
        """An interpreter of an empty environment."""
        subprocess.run([sys.executable, "-m", "venv", self.folder / "empty"], check=True)
        return self.folder / "empty" / "bin" / "python"

    def pip(self, python: Path, *words: object) -> None:
        command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", *words]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    def records(self, python: Path, name: str, *folders: Path) -> str:
        """Records with torch from here, and no compiler to be found; where the recorder was imported from."""
        paths = [*map(str, folders), sysconfig.get_path("purelib")]
        given = {"PATH": "/nowhere", "HOME": str(self.folder), "PYTHONPATH": os.pathsep.join(paths)}
        words = [python, "-W", "error", "-c", RECORDS, self.folder / name]
        run = subprocess.run(
            list(map(str, words)), env=given, cwd=self.folder, capture_output=True, text=True, check=False
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue((self.folder / name / "capture.json").exists())
        return run.stdout.strip()

    def test_alone_with_the_package_and_after_either_is_gone(self) -> None:
        python = self.environment()
        self.pip(python, "install", "--no-deps", "--no-index", self.wheel)
        self.assertTrue(self.records(python, "alone").endswith(ALONE))
        # A checkout comes first where its folder python/ is on the path.
        self.assertTrue(self.records(python, "checkout", ROOT / "python").startswith(str(ROOT / "python")))
        (packages,) = (self.folder / "empty").glob("lib/python3*/site-packages")
        shutil.copytree(ROOT / "python" / "attnscope", packages / "attnscope", dirs_exist_ok=True)
        self.assertTrue(self.records(python, "both").endswith(WHOLE))
        self.pip(python, "uninstall", "--yes", "attnscope-capture")
        self.assertFalse((packages / "attnscope" / "capture.py").exists())
        shutil.copytree(ROOT / "samples" / "capture", self.folder / "scripts")
        self.assertTrue(self.records(python, "package", self.folder / "scripts").endswith(WHOLE))

    def test_no_file_has_the_place_of_one_of_the_package(self) -> None:
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
        for name in names:
            self.assertFalse((ROOT / "python" / name).exists(), name)
        modules = {p.name for p in (ROOT / "python" / "attnscope" / "capture").glob("*.py")}
        self.assertEqual({Path(n).name for n in names if n.startswith("attnscope_capture/sources/")}, modules)

    def test_the_same_sources_give_the_same_bytes(self) -> None:
        self.assertEqual(self.make(self.folder / "again").read_bytes(), self.wheel.read_bytes())

    def test_a_folder_that_cannot_be_is_told_in_a_line(self) -> None:
        (self.folder / "file").write_text("")
        run = subprocess.run(
            [sys.executable, SCRIPT, "-o", self.folder / "file" / "x"], capture_output=True, text=True, check=False
        )
        self.assertEqual((run.returncode, run.stderr.count("\n")), (1, 1))
        self.assertIn("capture-wheel: ", run.stderr)


if __name__ == "__main__":
    unittest.main()
