"""Files that cases read and no command writes: bare tensors, packed sequences, parts of several processes, pieces
of a stream, tables of several runs."""

import base64
import json
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
    facts |= {"minus": json.dumps({"slot": "attn.2", "factor": 0.5})}
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


GRID, TEXT, TOKENS, CHANNELS = "2x3x4", 4, 28, 16


def ramp(count, step=89):
    return [0.02 * (i % step) for i in range(count)]


def ranks():
    """ranks: two processes, each with one of two heads of a call."""
    for rank in range(2):
        folder = pathlib.Path(f"ranks/rank-{rank}-of-2")
        folder.mkdir(parents=True)
        facts = {"format": "attnscope-capture/2", "step": "3", "layer": "1", "grid": GRID, "text": f"{TEXT}@start"}
        facts |= {"part": json.dumps({"rank": rank, "ranks": 2, "run": "r"})}
        facts |= {"head_offset": "1"} if rank == 1 else {}
        shape, values = [1, 1, TOKENS, CHANNELS], ramp(TOKENS * CHANNELS, 89 - rank)
        write_safetensors(folder / "call.safetensors", facts, {"q": (shape, values), "k": (shape, values[::-1])})


def frames(name, first, count):
    """A segment of so many frames of 12 tokens of a stream."""
    text = {"name": name, "modality": "video", "count": 12 * count, "grid": [count, 3, 4]}
    return text | {"position": 12 * first}


def stream():
    """stream: two pieces, the second of which attends to the first as well."""
    pathlib.Path("stream").mkdir()
    for chunk in range(2):
        keys = [frames("cached", 0, 2)] if chunk == 1 else []
        keys.append(frames("video", 2 * chunk, 2))
        facts = {"format": "attnscope-capture/2", "step": "0", "layer": "1", "kind": "self", "chunk": str(chunk)}
        facts |= {"queries": json.dumps([frames("video", 2 * chunk, 2)]), "keys": json.dumps(keys)}
        all_keys = ramp(48 * CHANNELS)
        tensors = {"q": ([1, 1, 24, CHANNELS], ramp(24 * CHANNELS, 61))}
        tensors["k"] = ([1, 1, 24 * len(keys), CHANNELS], all_keys[: 24 * len(keys) * CHANNELS])
        write_safetensors(f"stream/chunk-{chunk}.safetensors", facts, tensors)


def metric(name, kind, values):
    """A variable of heads in a journal of metrics."""
    code = {"f64": "d", "i32": "i"}.get(kind)
    stored = values
    if code:
        stored = base64.b64encode(struct.pack(f"<{len(values)}{code}", *values)).decode()
    own = {"name": name, "long_name": name, "of_heads": True, "axes": [], "shape": [], "labels": {}}
    return own | {"type": kind, "values": stored}


def measured_call(step, classes, entropy):
    texts = ("layer_name", "score", "mask", "grid", "text", "model", "prompt", "q_dtype", "q_state", "backend")
    call = {"step": step, "layer": 2, "branch": "cond", "kind": "joint", "block": "", "slot": "", "chunk": -1}
    call |= {"timestep": None, "scale": 0.125, "head_dim": 16, "head_offset": 0, "num_queries": TOKENS}
    call |= dict.fromkeys(texts, "") | {"score": "softmax", "grid": GRID, "model": "M"}
    variables = [metric("measured", "i32", [1, 1]), metric("class", "text", classes)]
    variables.append(metric("entropy", "f64", entropy))
    return {"group": {"call": call, "batch": [0], "heads": [0, 1], "variables": variables}}


def runs():
    """a.part and b.part: what runs of one model left that were cut off, as the first version wrote it."""
    for number, name in enumerate("ab"):
        run = {"id": f"id of {name}", "run": name, "prompt": "a dog", "seed": number, "launch": "", "rank": 0}
        run |= {"ranks": 1, "complete": False, "seconds": 0.5, "steps": [[10, 0.25], [20, 0.25]], "refused": []}
        lines = [{"format": "attnscope-metrics-part/1", "version": "0.1.0", "options": {"model": "M", "backend": "cpu"}}]
        lines.append({"run": run})
        lines.append(measured_call(10, ["spatial", "sink"], [1.0 + number, 2.0]))
        lines.append(measured_call(20, ["spatial", "text"], [1.5 + number, 2.5]))
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        pathlib.Path(f"{name}.part").write_text(text)


INPUTS = {"tensors": tensors, "segments": segments, "ranks": ranks, "stream": stream, "runs": runs}
