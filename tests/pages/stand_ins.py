"""Files that the examples of pages take and that no command of the program writes: tensors as users have them."""

import json
import math
import random
import struct
import zipfile


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


def write_tensors(path, tensors, facts=None):
    """A safetensors file of float16 tensors: {name: shape}. Readers go by a file's content, not by its name."""
    head, data = {"__metadata__": facts} if facts else {}, b""
    for name, shape in tensors.items():
        values = half_floats(math.prod(shape), path.name + name)
        head[name] = {"dtype": "F16", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def npy_bytes(values, descr, shape):
    head = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values


def write_npy(path, shape):
    path.write_bytes(npy_bytes(half_floats(math.prod(shape), path.name), "<f2", shape))


def write_npz(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name + ".npy", data)


def write_inputs(folder):
    """For docs/inputs.md: several calls in one file, folders told by their names, packed sequences."""
    pair = [1, 2, 320, 64]
    layers = {f"double_blocks.{layer}.attn.{name}": pair for layer in range(3) for name in ("q", "k")}
    write_tensors(folder / "dump.pt", layers)
    tokens = [1, 2, 7 * 12 * 12 + 16, 64]
    write_npz(folder / "qk.npz", {name: npy_bytes(half_floats(math.prod(tokens), name), "<f2", tokens)
                                  for name in ("q", "k")})
    for place, named in (("dump", "attn_It5_L{}_H0_{}.npy"), ("run7", "run7-5-{}-0-{}.npy")):
        (folder / place).mkdir()
        for layer in (2, 3):
            for name in ("q", "k"):
                write_npy(folder / place / named.format(layer, name), [1, 1, 32760, 128])
    for name in ("q", "k"):
        write_npy(folder / f"packed_{name}.npy", [24, 2, 64])
    cuts = npy_bytes(struct.pack("<4i", 0, 9, 10, 24), "<i4", [4])
    write_npz(folder / "batch.npz", {"cu_q": cuts, "cu_k": cuts})


def write_forwards(folder):
    """For docs/relabel.md: a step of a model that says nothing of its two forwards."""
    (folder / "dump").mkdir()
    calls, forwards = [], []
    for forward in (0, 1):
        facts = {"format": "attnscope-capture/2", "step": "0", "layer": "1",
                 "forward": str(forward), "of_step": str(forward)}
        name = f"f{forward}_l1.safetensors"
        write_tensors(folder / "dump" / name, {"q": [1, 2, 320, 64], "k": [1, 2, 320, 64]}, facts)
        calls.append({"file": name, "step": 0, "forward": forward})
        forwards.append({"forward": forward, "step": 0, "of_step": forward, "timestep": 900, "transformer": "Wan",
                         "batch": 1, "latents": 0, "text": forward, "chosen": True, "calls": 1})
    whole = {"format": "attnscope-capture/2", "calls": calls, "forwards": forwards}
    (folder / "dump" / "capture.json").write_text(json.dumps(whole))


def write_recorded(folder):
    """A capture as a recorder leaves it: step 25, layers 0, 15 and 29 of two heads."""
    (folder / "dump").mkdir()
    shape = [1, 2, 7 * 16 * 24 + 16, 64]
    for layer in (0, 15, 29):
        facts = {"format": "attnscope-capture/1", "step": "25", "layer": str(layer), "branches": '["cond"]',
                 "grid": "7x16x24", "text": "16@start", "q_state": "qk_norm,rope"}
        write_tensors(folder / "dump" / f"step25_layer{layer:02d}.safetensors", {"q": shape, "k": shape}, facts)


def write_capture_format(folder):
    """For docs/capture-format.md: a capture, and bare tensors in the order batch, sequence, heads."""
    write_recorded(folder)
    for name in ("q", "k"):
        write_npy(folder / f"{name}.npy", [1, 17776, 1, 64])
    write_tensors(folder / "dump.safetensors", {"query": [1, 1, 17776, 64], "key": [1, 1, 17776, 64]})


# Of pages whose examples take other files than most.
OF_PAGE = {
    "docs/capture.md": write_recorded,
    "docs/capture-format.md": write_capture_format,
    "docs/cluster.md": write_recorded,
    "docs/inputs.md": write_inputs,
    "docs/relabel.md": write_forwards,
}


def write_stand_ins(folder, page):
    """q and k of one head of Wan 2.1 (480p) and of CogVideoX-5B, a small file with both, and what the page takes."""
    for name in ("q", "k"):
        write_tensors(folder / f"{name}.pt", {name: [1, 1, 32760, 128]})
        write_npy(folder / f"{name}.npy", [1, 1, 17776, 64])
    write_tensors(folder / "dump.pt", {"q": [1, 2, 320, 64], "k": [1, 2, 320, 64]})
    OF_PAGE.get(page, lambda _: None)(folder)
