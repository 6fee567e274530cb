"""A call of a capture, written by Python's own library alone."""

import json
import struct


def write_call(path, tensors, facts):
    """tensors: name to (shape, numbers), stored as float32."""
    header, data = {"__metadata__": {"format": "attnscope-capture/2", "step": "0", "layer": "0", **facts}}, b""
    for name, (shape, numbers) in tensors.items():
        body = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
