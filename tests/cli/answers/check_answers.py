"""Holds what every command prints with --json against the schemas of docs/schemas.

check_answers.py PROGRAM SCHEMAS CAPTURE: CAPTURE is samples/moving-shapes. An object without a
schema, a field that no schema names, a command that is not run and a schema that no object has are
errors. `--print FORMAT` before these prints the objects of a format. Where ATTNSCOPE_MPIRUN is set
(tests/cluster/mpi_jobs.py, on PYTHONPATH, says what else is) so are the answers of several
processes. Exit code 77: a package is missing.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    from jsonschema import Draft202012Validator  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from commands import CASES, TOGETHER, WITHOUT_JSON, Case
from damage import BROKEN
from inputs import INPUTS
from interrupted import interrupt_export
from schemas import Schemas

ERROR = "attnscope-error/1"


class Checker:
    """Runs commands in the current folder and collects what is wrong with their answers."""

    def __init__(self, program, schemas):
        self.program = program
        self.schemas = schemas
        self.faults = []
        self.objects = []
        self.commands = set()
        self.kinds = set()

    def check(self, words, text, code, expected):
        """One answer: `text` on standard output, and how the command ended."""
        name = " ".join(map(str, words))
        self.commands.add(words[0])
        try:
            answer = json.loads(text)
        except ValueError:
            self.faults.append(f"{name}: prints no JSON: {text[:200]!r}")
            return
        self.objects.append(answer)
        form = answer.get("format")
        if form == ERROR:
            self.kinds.add(answer.get("kind"))
        if code not in expected and answer.get("kind") != "unavailable":
            self.faults.append(f"{name}: exit code {code} ({answer.get('message', form)})")
        self.faults += [f"{name}: {fault}" for fault in self.schemas.faults(answer)]

    def run(self, case: Case):
        if case.before:
            (INPUTS | BROKEN)[case.before]()
        words = [str(word) for word in case.words]
        result = subprocess.run(
            [self.program, *words, "--json", "--quiet"], capture_output=True, text=True, timeout=120
        )
        self.check(words, result.stdout, result.returncode, case.codes)

    def run_together(self, case: Case):
        """The answer of two processes that are one run."""
        from mpi_jobs import mpi_command, run

        words = [str(word) for word in case.words]
        result = run(mpi_command([self.program, *words, "--threads", "1", "--json", "--quiet"], 2))
        self.check(words, result.stdout, result.returncode, case.codes)


def commands_of(program):
    """The names of the program's commands, as its help lists them."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    lines = text.split("Subcommands:\n")[1].split("\n\n")[0].splitlines()
    return {line.split()[0] for line in lines}


def uncovered(checker):
    """Lists the commands, formats and kinds of errors that no case has."""
    left = commands_of(checker.program) - checker.commands - WITHOUT_JSON
    faults = [f"{command}: no case runs it" for command in sorted(left)]
    unused = checker.schemas.formats() - {o.get("format") for o in checker.objects}
    faults += [f"{form}: no command prints it" for form in sorted(unused)]
    # Nobody knows how to come to a defect.
    kinds = checker.schemas.error_kinds() - checker.kinds - {"defect"}
    return faults + [f"{ERROR}: no case has the kind {kind}" for kind in sorted(kinds)]


def check_all(program, schemas, capture):
    checker = Checker(program, Schemas(pathlib.Path(schemas)))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_CACHE_HOME": folder, "TMPDIR": folder, "CUDA_VISIBLE_DEVICES": ""}
        shutil.copytree(capture, pathlib.Path(folder) / "dump")
        os.chdir(folder)
        for case in CASES:
            checker.run(case)
        for case in TOGETHER if os.environ.get("ATTNSCOPE_MPIRUN") else ():
            checker.run_together(case)
        for words, text, code, expected in interrupt_export(program):
            checker.check(words, text, code, expected)
        os.chdir("/")
    return checker, checker.faults + uncovered(checker)


def main():
    words = sys.argv[1:]
    shown = None
    if words[0] == "--print":
        shown, words = words[1], words[2:]
    checker, faults = check_all(*(os.path.abspath(word) for word in words))
    for answer in checker.objects:
        if answer.get("format") == shown:
            print(json.dumps(answer, indent=1))
    for fault in faults:
        print(fault)
    print(f"{len(checker.objects)} objects, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
