"""Captures whose words try to be more than words, where a page has them."""

import json
import os
import struct

#: Ends a script and an attribute, if anybody lets it, and renames the page.
HOSTILE = "</script>\"'><img src=x onerror='document.title=1'>\u2028<!--&quot;></iframe>"


def name_hostile_words(folder, prompt, words):
    """Writes a call's file anew with other texts."""
    for name in os.listdir(folder):
        if not name.endswith(".safetensors"):
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            data = file.read()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        facts = header["__metadata__"]
        facts["prompt"] = prompt
        if words is not None:
            facts["tokens"] = json.dumps(words)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data[8 + size:])
