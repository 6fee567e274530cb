"""Runs one file of tests: run_tests.py [--one-file] FILE. Exits 77, which CTest shows as skipped, where
the interpreter lacks a package or the file skips all of its tests, and says why.

--one-file: the recorder is the file that scripts/one-file-capture makes, not the package."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NEEDED = ("torch", "numpy", "h5py", "safetensors", "diffusers", "transformers", "PIL")
SKIPPED = 77


def main() -> int:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"skipped: {sys.executable} has no {', '.join(missing)} (scripts/python-venv makes an "
            "environment that has)"
        )
        return SKIPPED
    file = Path(sys.argv[-1]).resolve()
    root = file.parents[2]
    sys.path[:0] = [str(file.parent), str(root / "samples" / "capture")]
    with tempfile.TemporaryDirectory() as folder:
        if "--one-file" in sys.argv[1:-1]:
            copy = Path(folder) / "attnscope_capture.py"
            subprocess.run([sys.executable, root / "scripts" / "one-file-capture", "-o", copy], check=True)
            sys.path.insert(0, folder)
        suite = unittest.defaultTestLoader.loadTestsFromName(file.stem)
        result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    if not result.wasSuccessful():
        return 1
    for _, reason in result.skipped:
        print(f"skipped: {reason}")
    # A skipped module or class counts as one skip and no test that ran.
    return SKIPPED if result.testsRun <= sum("setUp" not in str(t) for t, _ in result.skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
