"""Files that are not as they should be, made of those that the cases before have written."""

import json
import os
import pathlib
import struct


def write_npy(name, shape, values):
    """A .npy of float32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    pathlib.Path(name).write_bytes(head + struct.pack(f"<{len(values)}f", *values))


def tensors():
    """q.npy and k.npy of one head; nan.npy with a value that nothing can be made of."""
    values = [0.01 * (i % 97) for i in range(64 * 16)]
    for name in ("q.npy", "k.npy"):
        write_npy(name, (1, 1, 64, 16), values)
    write_npy("nan.npy", (1, 1, 64, 16), [float("nan"), *values[1:]])


SEGMENTS = [
    {"name": "text", "modality": "text", "start": 0, "count": 8},
    {"name": "video", "modality": "video", "start": 8, "count": 18, "grid": [2, 3, 3]},
    {"name": "ref", "modality": "reference", "start": 26, "count": 9, "grid": [1, 3, 3]},
]


def write_safetensors(name, facts, tensors):
    """A safetensors file of float32 (lists of floats) and int64."""
    header, data = {"__metadata__": facts}, b""
    for key, (shape, values) in tensors.items():
        kind, code = ("F32", "f") if isinstance(values[0], float) else ("I64", "q")
        part = struct.pack(f"<{len(values)}{code}", *values)
        header[key] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    pathlib.Path(name).write_bytes(struct.pack("<Q", len(text)) + text + data)


def segments():
    """A call with a block, a token map, a forward whose branch nobody told, an approximating kernel
    and a tensor that is not understood."""
    tokens, channels, rows = 35, 16, [0, 9, 30]
    shape = [1, 2, tokens, channels]
    count = 2 * tokens * channels
    facts = {"format": "attnscope-capture/2", "step": "3", "kind": "joint", "block": "refiner.0"}
    facts |= {"slot": "attn", "queries": json.dumps(SEGMENTS), "approximation": "int8"}
    facts |= {"forward": "1", "of_step": "1"}
    values = [0.02 * (i % 89) for i in range(count)]
    write_safetensors(
        "segments.safetensors",
        facts,
        {
            "q": (shape, values),
            "k": (shape, values[::-1]),
            "v": (shape, [1.0] * count),
            "out": ([1, 2, len(rows), channels], [1.01] * (2 * len(rows) * channels)),
            "out_rows": ([len(rows)], rows),
            "softcap": ([1], [30.0]),
        },
    )


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
    "tensors": tensors,
    "segments": segments,
    "damaged": damaged_weights,
    "half": half_an_export,
    "part lost": part_lost,
    "shard lost": shard_lost,
}
