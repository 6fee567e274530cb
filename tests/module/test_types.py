"""The package's types, by pyright's strict rules (basedpyright, which pip has with all that it needs)."""

import json
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

import attnscope

USE = Path(__file__).with_name("typed_use.py")


@unittest.skipUnless(find_spec("basedpyright"), "no basedpyright")
class Types(unittest.TestCase):
    def problems(self, code: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "use.py").write_text(code, encoding="utf-8")
            rules = {
                "typeCheckingMode": "strict",
                "include": ["use.py"],
                "extraPaths": [str(Path(attnscope.__file__).parents[1])],
            }
            Path(folder, "pyrightconfig.json").write_text(json.dumps(rules), encoding="utf-8")
            line = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
            run = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        told = json.loads(run.stdout)
        self.assertEqual(told["summary"]["filesAnalyzed"], 1, run.stderr)
        return [
            f"{each['range']['start']['line'] + 1}: {each['message']}"
            for each in told["generalDiagnostics"]
            if each["severity"] == "error"
        ]

    def test_what_is_used_as_it_is_typed(self) -> None:
        self.assertEqual(self.problems(USE.read_text(encoding="utf-8")), [])

    def test_what_is_used_otherwise(self) -> None:
        problems = self.problems('import attnscope\n\nattnscope.open("m.h5", kind="metrics").heads()\n')
        self.assertTrue(any("heads" in problem for problem in problems), problems)
        self.assertEqual({problem.split(":")[0] for problem in problems}, {"3"})


if __name__ == "__main__":
    unittest.main()
