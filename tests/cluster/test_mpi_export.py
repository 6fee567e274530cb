"""Exports that several processes write under a real mpirun: the bytes of one process's, whatever happens.

mpi_jobs.py says what they need; ATTNSCOPE_MPI_KILLS how often a rank is killed (a dozen times unless said),
ATTNSCOPE_MPI_SEED where.
"""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time
import unittest

from mpi_jobs import (FAULT, NOTHING_ONE_SIDED, PROGRAM, SAMPLE, SECONDS, at_once, job_environment, mpi_command, own_words,
                      run)

KILLS = int(os.environ.get("ATTNSCOPE_MPI_KILLS", "12"))
SEED = int(os.environ.get("ATTNSCOPE_MPI_SEED", "1"))
TRIES = 5

PRODUCTS = {
    "weights": [],
    "logits": ["--product", "logits"],
    "lse": ["--product", "lse"],
    "output": ["--product", "output"],
    "rows": ["--index", "3", "--index", "400", "--index", "900"],
    "u8 of some columns": ["--dtype", "u8", "--cols", "3:300"],
    "aligned": ["--align", "1MiB"],
    "two heads": ["--layers", "1", "--heads", "0-1"],
    "gzip": ["--compress", "gzip"],
    "topk": ["--topk", "5"],
    "threshold of two calls": ["--threshold", "0.02", "--layers", "1-2"],
}


def export(out, *more):
    return [PROGRAM, "export", SAMPLE, "-o", str(out), "--threads", "1", *more]


def content(folder):
    """Every file below a folder by its name, but for locks."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def is_whole(out):
    """True where the folder of an export has nothing but it, its shards and locks."""
    there = {path.name for path in out.parent.iterdir() if path.suffix != ".lock"}
    return there - {out.name + ".d"} == {out.name}


class MpiExport(unittest.TestCase):
    """Shared by the tests: a folder, mpirun jobs, and the files of one process to compare with."""

    wholes = {}

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.out = self.folder / "maps.h5"
        self.sessions = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(self.sessions.cleanup)

    def whole(self, product="weights"):
        """The bytes of one process's file, and of its shards."""
        if product not in self.wholes:
            with tempfile.TemporaryDirectory() as folder:
                result = run(export(pathlib.Path(folder) / "maps.h5", *PRODUCTS[product]))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.wholes[product] = content(pathlib.Path(folder))
        return self.wholes[product]

    def names(self):
        return sorted(path.name for path in self.folder.iterdir() if path.suffix != ".lock")

    def expect_whole(self, result, product="weights"):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.names(), ["maps.h5"])
        self.assertTrue(content(self.folder) == self.whole(product), "other bytes than one process's")

    def resume(self, ranks, product="weights"):
        """With as many processes; 0: one that no launcher started."""
        command = export(self.out, "--resume", *PRODUCTS[product])
        return run(mpi_command(command, ranks) if ranks else command)

    def start(self, ranks, faults):
        env = job_environment(self.sessions.name)
        return subprocess.Popen(mpi_command(export(self.out), ranks, faults), env=env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def start_waiting(self, ranks, faults, wait):
        """A job one of whose processes waits until `wait` is told. Processes take what is to do as they come to
        it: on a busy machine the others may have done all of it first, and the job is begun anew."""
        for _ in range(TRIES):
            job = self.start(ranks, faults)
            while job.poll() is None:
                if wait.exists():
                    return job
                time.sleep(0.05)
            _, said = job.communicate()
            self.assertEqual(job.returncode, 0, said)
            self.out.unlink()
        self.fail(f"{wait} never came in {TRIES} jobs")


class Bytes(MpiExport):
    """Undisturbed exports."""

    def test_any_number_of_processes_writes_the_bytes_of_one(self):
        cases = [(product, ranks) for product in PRODUCTS
                 for ranks in ((2, 4) if product == "weights" else (3,))]
        for product in PRODUCTS:
            self.whole(product)
        for case, trouble in zip(cases, at_once(self.write_one, cases)):
            with self.subTest(case=case):
                self.assertEqual(trouble, "")

    def write_one(self, case):
        """Exports in several processes; returns a complaint, empty where all is as it should be."""
        product, ranks = case
        out = self.folder / f"{product} {ranks}" / "maps.h5"
        out.parent.mkdir()
        result = run(mpi_command(export(out, *PRODUCTS[product]), ranks))
        if result.returncode != 0 or not is_whole(out) or len(own_words(result)) != 2:
            return f"{result} leaves {list(out.parent.iterdir())}"
        return "" if content(out.parent) == self.whole(product) else "other bytes than one process's"

    def test_what_is_complete_is_not_done_again(self):
        self.expect_whole(run(mpi_command(export(self.out), 2)))
        again = run(mpi_command(export(self.out, "--resume"), 3))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("is complete already", again.stderr)
        one = run(export(self.out, "--resume", "--json"))
        several = run(mpi_command(export(self.out, "--resume", "--json"), 2))
        self.assertEqual(json.loads(one.stdout)["heads"], 16)
        self.assertEqual(several.stdout, one.stdout)
        # But for the first line, the plan of the run.
        self.assertEqual(own_words(several)[1:], own_words(one)[1:])
        self.assertIn(f"attnscope: {self.out} is complete already", own_words(several))
        refused = run(mpi_command(export(self.out), 2))
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(own_words(refused),
                         [f"attnscope: {self.out}: already exists (--force replaces it)"])

    def test_dry_run_tells_how_it_is_shared_out(self):
        text = run(mpi_command(export(self.out, "--dry-run"), 3))
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertRegex(text.stdout, r"processes +3, of 32 units; each about 10\.7 units and 10\.69 MiB")
        self.assertEqual(text.stdout.count("payload"), 1, text.stdout)
        plan = json.loads(run(mpi_command(export(self.out, "--dry-run", "--json"), 2)).stdout)
        self.assertEqual((plan["processes"], plan["units"], plan["heads"]), (2, 16, 16))
        self.assertEqual(self.names(), [])

    def test_results_count_what_all_did(self):
        one = json.loads(run(export(self.out, "--json")).stdout)
        self.out.unlink()
        many = json.loads(run(mpi_command(export(self.out, "--json"), 3)).stdout)
        for key in ("heads", "tiles", "tiles_kept", "bytes_written"):
            self.assertEqual(one[key], many[key], key)


class Ends(MpiExport):
    """Ranks that are killed, stopped, or run out of disk."""

    def test_a_rank_that_is_killed_leaves_what_any_number_goes_on_with(self):
        chance = random.Random(SEED)
        cases = []
        for number in range(KILLS):
            ranks, rank = chance.choice([(2, 0), (2, 1), (3, 1), (3, 2)])
            product = chance.choice(["weights", "weights", "output", "lse", "gzip"])
            # The first rank writes the file's structure before its first tile, the others a journal;
            # of LSEs little is written at all. Some writes may never come.
            first, last = (150, 270) if rank == 0 else (1, {"weights": 25, "output": 14, "lse": 8, "gzip": 45}[product])
            if product == "gzip" and rank == 0:
                first = 3  # whose structure is the shards'
            step = chance.choice(["kill-write", "kill-write", "kill"])
            place = chance.randint(first, last) if step == "kill-write" else chance.randint(1, 5)
            cases.append({"number": number, "ranks": ranks, "rank": rank, "fault": f"{step}:{place}",
                          "product": product, "then": chance.choice([0, 1, 2, 3])})
        for product in ("weights", "output", "lse", "gzip"):
            self.whole(product)
        ends = at_once(self.kill_one, cases)
        for case, (trouble, _) in zip(cases, ends):
            with self.subTest(**case):
                self.assertEqual(trouble, "")
        self.assertGreater(sum(kept for _, kept in ends), KILLS // 6, "hardly anything was ever kept")

    @unittest.skipUnless(NOTHING_ONE_SIDED, "this MPI library cannot be told to have nothing for one-sided access")
    def test_a_kill_where_the_counter_is_asked_for_by_messages(self):
        for rank, write in ((0, 220), (2, 9)):
            ended = run(mpi_command(export(self.out), 3, {rank: [f"ATTNSCOPE_FAULT=kill-write:{write}"]}),
                        **NOTHING_ONE_SIDED)
            with self.subTest(rank=rank):
                if ended.returncode != 0:
                    ended = run(mpi_command(export(self.out, "--resume"), 2), **NOTHING_ONE_SIDED)
                self.expect_whole(ended)
            self.out.unlink()

    def kill_one(self, case):
        """Kills one rank and resumes; returns a complaint (empty: none), and True where --resume found work."""
        out = self.folder / str(case["number"]) / "maps.h5"
        out.parent.mkdir()
        command = export(out, *PRODUCTS[case["product"]])
        fault = [f"ATTNSCOPE_FAULT={case['fault']}"]
        ended = run(mpi_command(command, case["ranks"], {case["rank"]: fault}))
        part = out.with_name("maps.h5.part")
        if ended.returncode != 0 and part.exists() and case["product"] != "gzip":
            told = run([PROGRAM, "info", str(part)])
            others = [*out.parent.glob("maps.h5.*.[1-9]"), *out.parent.glob("maps.h5.*.[1-9].tmp")]
            told_others = "as the journals of" in told.stdout
            if told.returncode != 0 or "incomplete" not in told.stdout or told_others != bool(others):
                return f"info: {told}", False
            checked = run([PROGRAM, "verify", str(part)])
            if "bad" in checked.stdout or "damaged" in checked.stdout:
                return f"verify: {checked}", False
            # info and verify count the tiles that all processes left, as --resume finds them.
            known = [re.search(r"incomplete: (\d+) of \d+ tiles", text) for text in (told.stdout, checked.stdout)]
            counts = {int(found.group(1)) for found in known if found}
        else:
            counts = {0}
        # Hosts whose clocks differ: times of files say nothing.
        for number, path in enumerate(sorted(out.parent.iterdir())):
            os.utime(path, (number % 2 * 4e9,) * 2)
        again = command + ["--resume"]
        resumed = run(mpi_command(again, case["then"]) if case["then"] else again)
        kept = re.search(r": (\d+) of \d+ tiles are there", resumed.stderr)
        unlike = counts != {int(kept.group(1)) if kept else 0}
        if ended.returncode != 0 and unlike and case["product"] != "gzip":
            return f"info and verify count {counts}, and {resumed}", False
        if resumed.returncode != 0 or not is_whole(out):
            return f"{ended}, then {resumed} leaves {list(out.parent.iterdir())}", False
        if content(out.parent) != self.whole(case["product"]):
            return "other bytes than one process's", False
        return "", "resuming" in resumed.stderr

    def test_a_second_kill_loses_nothing_either(self):
        command = export(self.out)
        run(mpi_command(command, 3, {1: ["ATTNSCOPE_FAULT=kill-write:20"]}))
        run(mpi_command(command + ["--resume"], 2, {1: ["ATTNSCOPE_FAULT=kill-write:9"]}))
        # Where what the ranks left is being joined.
        for step in ("kill:1", "kill:2", "kill:4"):
            run(["env", f"LD_PRELOAD={FAULT}", f"ATTNSCOPE_FAULT={step}", *command, "--resume"])
        self.expect_whole(self.resume(4))

    def test_a_full_disk_on_one_rank_ends_all_and_is_said_once(self):
        # The first tiles' writes of each rank; the others wait there, so that the one gets to its own.
        writes = {0: 215, 1: 7, 2: 7}
        for rank, write in ((0, 230), (2, 17)):
            with self.subTest(rank=rank):
                faults, waits = {rank: [f"ATTNSCOPE_FAULT=pwrite:{write}"]}, []
                for other in set(writes) - {rank}:
                    waits.append(self.folder / f"wait{other}")
                    faults[other] = [f"ATTNSCOPE_FAULT=pause-write:{writes[other]}",
                                     f"ATTNSCOPE_FAULT_PAUSE={waits[-1]}"]
                for _ in range(TRIES):
                    job, since = self.start(3, faults), time.monotonic()
                    # Who comes to it waits there; whoever does not come keeps nobody for ever.
                    while job.poll() is None and time.monotonic() < since + SECONDS:
                        if all(wait.exists() for wait in waits) or time.monotonic() > since + 15:
                            time.sleep(1.5)
                            for wait in waits:
                                wait.unlink(missing_ok=True)  # which lets them go on
                        time.sleep(0.05)
                    _, said = job.communicate(timeout=SECONDS)
                    if job.returncode != 0:
                        break
                    self.out.unlink()  # others did what it was to do
                self.assertEqual(job.returncode, 1, said)
                ours = [line for line in said.splitlines() if line.startswith("attnscope: ")]
                errors = [line for line in ours if "failed: " in line]
                self.assertEqual(len(errors), 1, said)
                self.assertEqual("process 2 on " in errors[0], rank == 2, errors[0])
                self.assertEqual(sum("--resume goes on" in line for line in ours), 1, said)
                self.expect_whole(self.resume(2))
                self.out.unlink()

    def test_what_is_worth_nothing_is_not_left(self):
        # Before any tile: the journal of another process than the first.
        result = run(mpi_command(export(self.out), 2, {1: ["ATTNSCOPE_FAULT=rename:1"],
                                                       0: ["ATTNSCOPE_FAULT=fdatasync:1"]}))
        self.assertEqual(result.returncode, 1, result.stderr)
        kept = [line for line in own_words(result) if "--resume goes on" in line]
        self.assertEqual((self.folder / "maps.h5.part").exists(), bool(kept), result.stderr)

    def test_a_signal_ends_all_with_what_is_done(self):
        # One process waits before a write until the others have done what is left to do.
        wait = self.folder / "wait"
        faults = {1: ["ATTNSCOPE_FAULT=pause-write:5", f"ATTNSCOPE_FAULT_PAUSE={wait}"]}
        job = self.start_waiting(2, faults, wait)
        pid = int(wait.read_text())
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.3)
        (self.folder / "wait.go").touch()
        _, said = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 4, said)
        self.assertIn("attnscope: interrupted: ", said)
        self.assertEqual(said.count("--resume goes on"), 1, said)
        wait.unlink()
        (self.folder / "wait.go").unlink()
        self.expect_whole(self.resume(3))


class Refusals(MpiExport):
    """Jobs that several processes refuse together."""

    def test_two_jobs_on_one_output(self):
        wait = self.folder / "wait"
        faults = {1: ["ATTNSCOPE_FAULT=pause-write:5", f"ATTNSCOPE_FAULT_PAUSE={wait}"]}
        first = self.start_waiting(2, faults, wait)
        jobs = [mpi_command(export(self.out, *more), 2) for more in ([], ["--resume"], ["--force"])]
        for second in at_once(run, jobs):
            self.assertEqual(second.returncode, 1, second.stderr)
            self.assertEqual(own_words(second)[-1:],
                             [f"attnscope: {self.out}: is being written by another run"])
        alone = run(export(self.out, "--resume"))
        self.assertIn("is being written by another run", alone.stderr)
        (self.folder / "wait.go").touch()
        _, said = first.communicate(timeout=SECONDS)
        self.assertEqual(first.returncode, 0, said)
        (self.folder / "wait.go").unlink()
        wait.unlink()
        self.assertTrue(content(self.folder) == self.whole())

    def test_processes_that_would_not_write_one_file_are_refused(self):
        line = mpi_command(export(self.out), 2)
        line[-1:] = ["1", "--backend", "reference"]
        result = run(line)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(own_words(result)), 1)
        self.assertRegex(result.stderr, r"process 1 on \S+ has another backend than process 0 on ")
        for words in (["--heads", "0"], ["--where", "entropy<3"]):
            with self.subTest(words):
                other = mpi_command(export(self.out), 2)
                other[-1:] = ["1", *words]
                self.assertRegex(run(other).stderr, "process 1 on .* has another selection than process 0")
        missing = run(mpi_command([PROGRAM, "export", "nowhere", "-o", str(self.out)], 3))
        self.assertEqual(missing.returncode, 1)
        self.assertEqual(len(own_words(missing)), 1, missing.stderr)
        self.assertEqual(self.names(), [])

    def test_tasks_that_cannot_agree_are_refused(self):
        tasks = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
        # srun's processes, which MPI does not know.
        alone = run(export(self.out), **tasks)
        self.assertEqual(alone.returncode, 2, alone.stderr)
        self.assertEqual(len(own_words(alone)), 1, alone.stderr)
        for word in ("task 1 of 4", "--shard auto", "--alone", "MPI: srun gave its tasks nothing"):
            self.assertIn(word, alone.stderr)
        torchrun = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
        other = run(export(self.out), **torchrun)
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertIn("task 0 of 2 (RANK of WORLD_SIZE)", other.stderr)
        self.assertIn("MPI knows of 1", other.stderr)
        without = run(export(self.out), ATTNSCOPE_MPI_MODULE=str(self.folder / "none.so"), **tasks)
        self.assertEqual(without.returncode, 2)
        self.assertIn("none.so: cannot open", without.stderr)
        foreign = run(export(self.out), ATTNSCOPE_MPI_MODULE=FAULT, **tasks)
        self.assertIn("is not attnscope's MPI module", foreign.stderr)
        stats = run([PROGRAM, "stats", SAMPLE, "-o", str(self.folder / "a.json")], **tasks)
        self.assertEqual(stats.returncode, 2)
        self.assertIn("--shard auto", stats.stderr)
        self.assertEqual(self.names(), [])
        # A job's script, an output of its own, a part; and no module is looked for where nothing
        # started several.
        for more, variables in (([], {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}),
                                (["--alone"], tasks),
                                ([], {"ATTNSCOPE_MPI_MODULE": "/none.so"})):
            self.expect_whole(run(export(self.out, *more), **variables))
            self.out.unlink()


if __name__ == "__main__":
    unittest.main()
