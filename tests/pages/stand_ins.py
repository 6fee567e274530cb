"""Files that the examples of pages take and that no command of the program writes: tensors as users have them."""

import json
import math
import random
import struct


def half_floats(count, name):
    """`count` float16 values that look random, the same for a name."""
    numbers, block = random.Random(name), bytearray()
    for _ in range(4096):
        # Without its highest bit the exponent means sizes below 2: no NaN and no Inf.
        block += (numbers.getrandbits(16) & 0xBFFF).to_bytes(2, "little")
    # A block is shifted where it comes again, so that tokens differ.
    whole = bytearray()
    for turn in range(-(-2 * count // len(block))):
        start = 2 * (turn * 37 % 4096)
        whole += block[start:] + block[:start]
    return bytes(whole[: 2 * count])


def write_tensors(path, tensors):
    """A safetensors file of float16 tensors: {name: shape}. Readers go by a file's content, not by its name."""
    head, data = {}, b""
    for name, shape in tensors.items():
        values = half_floats(math.prod(shape), path.name + name)
        head[name] = {"dtype": "F16", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_npy(path, shape):
    head = str({"descr": "<f2", "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                     + half_floats(math.prod(shape), path.name))


def write_stand_ins(folder):
    """q and k of one head of Wan 2.1 (480p) and of CogVideoX-5B, and a small file with both."""
    for name in ("q", "k"):
        write_tensors(folder / f"{name}.pt", {name: [1, 1, 32760, 128]})
        write_npy(folder / f"{name}.npy", [1, 1, 17776, 64])
    write_tensors(folder / "dump.pt", {"q": [1, 2, 320, 64], "k": [1, 2, 320, 64]})
