#!/usr/bin/env python3
"""How long a large capture takes on 1 to 1000 hosts: a model, of measured rates and stated limits.

    bench/cluster_time.py                     the table of docs/cluster.md, with its assumptions
    bench/cluster_time.py --cores 128         other hosts; --help has all rates
    bench/cluster_time.py --check docs/cluster.md     exit code 1 where the page has another table

Phases follow each other: every byte of Q and K is read three times (digest, NaN and logits; the maps), then
maps are computed and written at once, whichever takes longer, and the last unit is waited for.
"""

import argparse
import dataclasses
import math
import sys

HOSTS = (1, 4, 16, 64, 256, 1000)


@dataclasses.dataclass
class Rates:
    """Of one host, and of the file system that all share; bytes or entries a second."""

    cores: float = 64  # all alike, and as fast together as alone
    host_read: float = 5e9
    host_write: float = 2e9  # beside the computation; 1.5e9 was measured of one local disk
    all_read: float = 100e9
    all_write: float = 50e9
    start: float = 10.0  # launcher, opening the capture, the file's structure


@dataclasses.dataclass
class Job:
    name: str
    heads: int
    tokens: int
    channels: int
    bytes_an_entry: int  # written; 0: numbers alone
    core_entries: float  # computed by a core in a second: half of what two did (docs/performance.md)

    @property
    def entries(self):
        return self.heads * self.tokens**2

    @property
    def read(self):
        return self.heads * self.tokens * self.channels * 2 * 2  # q and k, bf16

    @property
    def written(self):
        return self.entries * self.bytes_an_entry


JOBS = (
    Job("weights f16 of a step, 60 layers of 24 heads", 1440, 119_056, 128, 2, 0.30e9),
    Job("stats of 50 steps in two branches, 60 layers of 24 heads", 144_000, 119_056, 128, 0, 0.22e9),
)


def seconds(job, hosts, rates):
    """Of the whole job on so many hosts, and what most of it is spent on."""
    rate = rates.cores * job.core_entries
    reading = 3 * job.read / min(hosts * rates.host_read, rates.all_read)
    computing = job.entries / (hosts * rate)
    writing = job.written / min(hosts * rates.host_write, rates.all_write)
    # One file is cut into eight units a process, where a process is a host; of numbers a head is one.
    pieces = math.ceil(8 * hosts / job.heads) if job.written else 1
    last = job.tokens**2 / pieces / rate
    parts = {"reading": reading, "computing": computing, "writing": writing}
    total = rates.start + reading + max(computing, writing) + last
    return total, max(parts, key=parts.get)


def duration(value):
    if value < 90:
        return f"{value:.0f} s"
    if value < 5400:
        return f"{value / 60:.0f} min"
    if value < 172_800:
        return f"{value / 3600:.1f} h"
    return f"{value / 86_400:.1f} d"


def table(rates):
    lines = ["| hosts | " + " | ".join(job.name for job in JOBS) + " |", "|---|" + "---|" * len(JOBS)]
    for hosts in HOSTS:
        cells = []
        for job in JOBS:
            total, most = seconds(job, hosts, rates)
            cells.append(f"{duration(total)} ({most})")
        lines.append(f"| {hosts} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for field in dataclasses.fields(Rates):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=float, default=field.default, help=f"default {field.default:g}")
    parser.add_argument("--check", metavar="PAGE", help="a page that has to have the table")
    arguments = parser.parse_args()
    rates = Rates(**{field.name: getattr(arguments, field.name) for field in dataclasses.fields(Rates)})
    if min(dataclasses.astuple(rates)) <= 0:
        parser.error("rates are above 0")
    if arguments.check:
        with open(arguments.check, encoding="utf-8") as page:
            if table(rates) not in page.read():
                print(f"{arguments.check} has not this table:\n{table(rates)}", file=sys.stderr)
                return 1
        return 0
    print(table(rates))
    for job in JOBS:
        print(f"\n{job.name}: {job.entries:.3g} entries, reads {job.read / 1e12:.3g} TB, "
              f"writes {job.written / 1e12:.3g} TB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
