"""Jobs of several processes under a real mpirun: how tests start them and read what they say.

ATTNSCOPE, ATTNSCOPE_MPIRUN, ATTNSCOPE_FAULT_LIBRARY and ATTNSCOPE_SAMPLE say where things are.
"""

import concurrent.futures
import os
import re
import subprocess
import tempfile

PROGRAM = os.environ["ATTNSCOPE"]
MPIRUN = os.environ["ATTNSCOPE_MPIRUN"]
FAULT = os.environ["ATTNSCOPE_FAULT_LIBRARY"]
SAMPLE = os.environ["ATTNSCOPE_SAMPLE"]
SECONDS = 120
LAUNCHERS = ("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "RANK", "WORLD_SIZE", "ATTNSCOPE_FAULT")


def environment(**more):
    """This process's, without what a launcher may have left in it."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    return plain | more


def flags():
    """The options that this mpirun needs to start more processes than cores, as root."""
    said = subprocess.run([MPIRUN, "--version"], capture_output=True, text=True).stdout
    return ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in said or "OpenRTE" in said else []


FLAGS = flags()
# Takes one-sided access away from Open MPI, which lacks it over TCP between hosts as Debian sets it up.
NOTHING_ONE_SIDED = {"OMPI_MCA_osc": "^sm,rdma,pt2pt,ucx,monitoring"} if FLAGS else {}


def mpi_command(command, ranks, faults=None):
    """`command` in `ranks` processes; of some by rank with variables of their own."""
    faults = faults or {}
    parts = []
    for rank in range(ranks):
        own = faults.get(rank)
        if own is not None:
            own = ["env", f"LD_PRELOAD={FAULT}", "ATTNSCOPE_FAULT_BEGUN=1"] + own
        parts.append(["-n", "1", *(own or []), *command])
    line = [MPIRUN, *FLAGS]
    for number, part in enumerate(parts):
        line += ([":"] if number else []) + part
    return line


def job_environment(folder, **more):
    """That of a job whose launcher has its files in `folder`: Open MPI's runs at once take away each other's."""
    return environment(OMPI_MCA_orte_tmpdir_base=str(folder), **more)


def run(line, **more):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = job_environment(folder, **more) if line[0] == MPIRUN else environment(**more)
        return subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, env=env)


def own_words(result):
    """The lines of attnscope itself on standard error, without those of progress, which slow machines get."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("attnscope: ")]
    return [line for line in lines if not re.match(r"attnscope: \w+ \d+ %, ", line)]


def at_once(work, cases):
    """mpirun takes a second or two to begin and to end: most of every run is waiting."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(work, cases))
