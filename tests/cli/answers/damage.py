"""Files that are not as they should be, made of those that the cases before have written."""

import os
import pathlib


def change_byte(name, place):
    """Inverts a byte, counted from the end where negative."""
    path = pathlib.Path(name)
    text = bytearray(path.read_bytes())
    text[place] ^= 0xFF
    path.write_bytes(text)


def damaged_weights():
    """An export one of whose tiles is another one."""
    path = pathlib.Path("w.h5")
    damaged = pathlib.Path("damaged.h5")
    damaged.write_bytes(path.read_bytes())
    change_byte(damaged, path.stat().st_size // 2)


def half_an_export():
    """An export that ends early: HDF5 cannot read it."""
    text = pathlib.Path("w.h5").read_bytes()
    pathlib.Path("half.h5").write_bytes(text[: len(text) // 3])


def part_lost():
    """The second of two parts is missing."""
    os.rename("w-1-of-2.h5", "lost.h5")


def shard_lost():
    """The shard of compressed.h5 is another file."""
    (shard,) = pathlib.Path("compressed.h5.d").iterdir()
    shard.write_bytes(b"short")


BROKEN = {
    "damaged": damaged_weights,
    "half": half_an_export,
    "part lost": part_lost,
    "shard lost": shard_lost,
}
