"""Numbers of heads, masks, rollouts and pooled maps that several processes find under a real mpirun: what one
process finds, whatever happens. mpi_jobs.py says what is needed.
"""

import json
import pathlib
import shutil
import struct
import tempfile
import unittest

from mpi_jobs import NOTHING_ONE_SIDED, PROGRAM, SAMPLE, at_once, mpi_command, own_words, run

MASKS = ["--mask", "spatial:frames=1", "--mask", "topk:keep=0.1"]
LARGEST_BFLOAT = b"\x7f\x7f"
RUNS = {
    "heads.json": ["stats", SAMPLE],
    "heads.csv": ["stats", SAMPLE, "--sample", "64", "--sort", "entropy"],
    "heads.h5": ["stats", SAMPLE, "--with", "frame_frame,lse_rows"],
    "masks.json": ["mask", SAMPLE, *MASKS],
    "masks.csv": ["mask", SAMPLE, *MASKS, "--layers", "1-2"],
    "inputs.npy": ["rollout", SAMPLE, "--query", "3,4,5"],
    "outputs.h5": ["rollout", SAMPLE, "--query", "3,4,5", "--reverse"],
    "blocks.h5": ["export", SAMPLE, "--block", "16"],
    "volumes.h5": ["query", SAMPLE, "--query", "3,4,5", "--domain", "video"],
    "film.png": ["query", SAMPLE, "--query", "3,4,5", "--reverse", "--mean", "heads", "--cache", "none"],
    "one_head.csv": ["query", SAMPLE, "--query", "3,4,5", "--layers", "1", "--heads", "2"],
    "pyramid.h5": ["export", SAMPLE, "--block", "16", "--pyramid", "--layers", "2"],
}


def command(name, out, *more):
    return [PROGRAM, *RUNS[name], "-o", str(out), "--threads", "1", *more]


class MpiResults(unittest.TestCase):
    """Shared by the tests: a folder, mpirun jobs, and the files of one process to compare with."""

    maxDiff = None
    wholes = {}

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def whole(self, name):
        """The bytes of one process's file."""
        if name not in self.wholes:
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / name
                result = run(command(name, out))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.wholes[name] = out.read_bytes()
        return self.wholes[name]

    def place(self, *words):
        """A file of a folder of its own."""
        folder = self.folder / " ".join(str(word) for word in words)
        folder.mkdir()
        return folder / words[0]

    def names(self, out):
        return sorted(path.name for path in out.parent.iterdir() if path.suffix != ".lock")

    def trouble(self, result, out):
        """A complaint about a run that should have ended well; empty where it did."""
        there = self.names(out)
        if result.returncode != 0 or there != [out.name]:
            return f"{result} leaves {there}"
        return "" if out.read_bytes() == self.whole(out.name) else "other bytes than one process's"


class Same(MpiResults):
    """Undisturbed runs."""

    def test_any_number_of_processes_finds_what_one_does(self):
        cases = [(name, ranks) for name in RUNS for ranks in ((2, 5) if name.endswith("json") else (3,))]
        for name in RUNS:
            self.whole(name)
        for case, trouble in zip(cases, at_once(self.write_one, cases)):
            with self.subTest(case=case):
                self.assertEqual(trouble, "")

    @unittest.skipUnless(NOTHING_ONE_SIDED, "this MPI library cannot be told to have nothing for one-sided access")
    def test_where_the_counter_is_asked_for_by_messages(self):
        for case in (("heads.json", 3), ("inputs.npy", 2), ("volumes.h5", 2)):
            with self.subTest(case=case):
                self.assertEqual(self.write_one(case, **NOTHING_ONE_SIDED), "")

    def write_one(self, case, **variables):
        name, ranks = case
        out = self.place(name, ranks)
        result = run(mpi_command(command(name, out), ranks), **variables)
        # The first process alone speaks: what begins, for some, and what was written.
        return self.trouble(result, out) or ("" if 1 <= len(own_words(result)) <= 2 else str(result))

    def test_tables_are_printed_once(self):
        runs = [[PROGRAM, "stats", SAMPLE, "--layers", "1", "--threads", "1"],
                [PROGRAM, "stats", SAMPLE, "--where", "entropy<6 layer>=1", "--cache", "none", "--threads", "1"],
                [PROGRAM, "mask", SAMPLE, *MASKS, "--layers", "1", "--threads", "1"],
                [PROGRAM, "query", SAMPLE, "--index", "40", "--layers", "1-2", "--threads", "1"],
                [PROGRAM, "rollout", SAMPLE, "--index", "40", "--json", "--threads", "1"]]
        for line, many in zip(runs, at_once(lambda line: run(mpi_command(line, 2)), runs)):
            self.assertEqual(many.returncode, 0, many.stderr)
            self.assertEqual(many.stdout, run(line).stdout)

    def test_dry_runs_tell_how_they_are_shared_out(self):
        lines = [command(name, self.folder / name, "--dry-run") for name in RUNS if name.endswith(".h5")]
        for line, told in zip(lines, at_once(lambda line: run(mpi_command(line, 2)), lines)):
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertRegex(told.stdout, r"processes +2, of \d+ units; each about")
            self.assertEqual(told.stdout.count("arithmetic"), 1)
        self.assertEqual(list(self.folder.iterdir()), [])


class Ends(MpiResults):
    """Processes that are killed or fail."""

    def test_a_process_that_is_killed_leaves_what_any_number_goes_on_with(self):
        # Rank 0 begins with the output's first line, the others with a list's.
        cases = [(name, ranks, rank, f"{step}:{place}", then)
                 for name in ("heads.json", "masks.json")
                 for ranks, rank, step, place, then in ((2, 0, "kill-write", 4, 3), (3, 2, "kill-write", 2, 0),
                                                        (3, 1, "kill", 2, 2))]
        for name in ("heads.json", "masks.json"):
            self.whole(name)
        ends = at_once(self.kill_one, cases)
        for case, (trouble, _) in zip(cases, ends):
            with self.subTest(case=case):
                self.assertEqual(trouble, "")
        self.assertGreater(sum(kept for _, kept in ends), 1, "hardly anything was ever kept")

    def kill_one(self, case):
        name, ranks, rank, fault, then = case
        out = self.place(name, ranks, rank, fault.replace(":", " "))
        ended = run(mpi_command(command(name, out), ranks, {rank: [f"ATTNSCOPE_FAULT={fault}"]}))
        if ended.returncode == 0:
            return self.trouble(ended, out), False
        again = command(name, out, "--resume")
        resumed = run(mpi_command(again, then) if then else again)
        return self.trouble(resumed, out), "resuming" in resumed.stderr

    def test_what_is_complete_is_not_done_again(self):
        for name, trouble in zip(("masks.json", "blocks.h5"), at_once(self.do_again, ("masks.json", "blocks.h5"))):
            self.assertEqual(trouble, "", name)

    def do_again(self, name):
        out = self.place(name)
        self.whole(name)
        first = run(mpi_command(command(name, out, "--resume"), 2))
        again = run(mpi_command(command(name, out, "--resume"), 2))
        if "is complete already" not in again.stderr:
            return str(again)
        refused = run(mpi_command(command(name, out), 2))
        if own_words(refused) != [f"attnscope: {out}: already exists (--force replaces it)"]:
            return str(refused)
        return self.trouble(first, out) or self.trouble(again, out)

    def test_another_run_of_the_same_output_is_not_joined(self):
        out = self.place("heads.json")
        ended = run(mpi_command(command("heads.json", out), 2, {1: ["ATTNSCOPE_FAULT=kill-write:4"]}))
        if ended.returncode == 0:
            self.skipTest("the process that was to be killed had nothing to do")
        lists = self.names(out)
        other = run(mpi_command([PROGRAM, "stats", SAMPLE, "-o", str(out), "--exact", "--resume"], 2))
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertRegex(other.stderr, r"is of another run: exact: expected true, got false")
        plain = run(mpi_command(command("heads.json", out), 2))
        self.assertEqual(plain.returncode, 1, plain.stderr)
        self.assertIn("--resume goes on with it", plain.stderr)
        self.assertEqual(self.names(out), lists)

    def test_a_full_disk_on_one_process_ends_all_and_is_said_once(self):
        for name, write in (("heads.json", 2), ("blocks.h5", 1)):
            out = self.place(name)
            result = run(mpi_command(command(name, out), 2, {1: [f"ATTNSCOPE_FAULT=pwrite:{write}"]}))
            if result.returncode == 0:  # the other had done all
                self.assertEqual(self.trouble(result, out), "")
                continue
            self.assertEqual(result.returncode, 1, result.stderr)
            errors = [line for line in own_words(result) if "failed: " in line]
            self.assertEqual(len(errors), 1, result.stderr)
            self.assertIn("process 1 on ", errors[0])
            self.assertEqual(self.trouble(run(command(name, out, "--resume")), out), "")

    def test_logits_that_no_float_holds_leave_nothing(self):
        capture = self.folder / "capture"
        shutil.copytree(SAMPLE, capture)
        with open(sorted(capture.glob("*.safetensors"))[-1], "r+b") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
            for name in "qk":
                file.seek(8 + size + header[name]["data_offsets"][0])
                file.write(LARGEST_BFLOAT * 64)
        line = [PROGRAM, "mask", str(capture), "--mask", "temporal", "-o", str(self.folder / "masks.json")]
        for ranks in (1, 2):
            result = run(mpi_command([*line, "--threads", "1"], ranks))
            self.assertEqual(result.returncode, 1, result.stderr)
            (said,) = own_words(result)
            self.assertRegex(said, "logits are too large for float32 .*; nothing was kept$")
            self.assertEqual([path.name for path in self.folder.iterdir() if path.suffix != ".lock"], ["capture"])


class Refusals(MpiResults):
    """Jobs that several processes refuse together."""

    def test_what_is_one_process_s_work(self):
        save = ["mask", SAMPLE, "--mask", "temporal", "--layers", "1", "--save", str(self.folder / "kept.npy")]
        result = run(mpi_command([PROGRAM, *save], 2))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(own_words(result)), 1)
        self.assertIn("--save", result.stderr)
        line = mpi_command(command("heads.json", self.folder / "heads.json"), 2)
        line[-1:] = ["1", "--backend", "reference"]
        other = run(line)
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertRegex(other.stderr, r"process 1 on \S+ has another backend than process 0 on ")
        for name in ("volumes.h5", "inputs.npy", "heads.json", "masks.json"):
            line = mpi_command(command(name, self.folder / name), 2)
            line[-1:] = ["1", "--scale", "0.25"]
            other = run(line)
            self.assertEqual(other.returncode, 2, other.stderr)
            self.assertRegex(other.stderr, r"process 1 on \S+ has another facts of the calls than process 0 on ")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_tasks_without_mpi(self):
        tasks = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
        for name in ("heads.json", "masks.json", "inputs.npy", "volumes.h5"):
            refused = run(command(name, self.folder / name), **tasks)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("all tasks would write it: this is task 1 of 4", refused.stderr)
        for line, advice in ((["render", SAMPLE, "--picture", "mosaic", "-o", "a.png"], "the work of one"),
                             (["convert", SAMPLE, "-o", "copy"], "--shard auto makes a part of each"),
                             (["diff", SAMPLE, SAMPLE, "-o", "a.csv"], "the work of one"),
                             (["figure", SAMPLE, "--layers", "1", "--heads", "0", "-o", "a.html"], "the work of one"),
                             (["synth", "--grid", "6x8x8", "-o", "synthetic"], "the work of one"),
                             (["merge", "part-0.h5", "part-1.h5", "-o", "a.h5"], "the work of one")):
            refused = run([PROGRAM, *line], **tasks)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("all tasks would write it: this is task 1 of 4", refused.stderr)
            self.assertIn(advice, refused.stderr)
        alone = run([PROGRAM, "synth", "--grid", "6x8x8", "-o", str(self.folder / "synthetic"), "--alone"], **tasks)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        printed = run([PROGRAM, "stats", SAMPLE, "--layers", "1"], **tasks)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn("note: this is task 1 of 4", printed.stderr)


if __name__ == "__main__":
    unittest.main()
