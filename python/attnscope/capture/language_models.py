"""The token layouts of language models of transformers whose keys are not the words alone."""

from __future__ import annotations

from typing import Any

from .layouts import Layout, Sequences
from .tokens import Segment
from .video_models import Given

# ---- DeepSeek V4: behind the words, an entry of each window of them that is complete


def _deepseek4(model: Any, a: Given) -> Sequences:
    words = a["input_ids"] if a.get("input_ids") is not None else a["inputs_embeds"]
    text = Segment("text", "text", words.shape[1])
    rates = model.config.compress_rates
    keys = {}
    for layer, kind in enumerate(model.config.layer_types):
        # Of no window too they have a segment: a cache has such of words before.
        entries = [Segment("compressed", "other", text.count // rates[kind])] if kind in rates else []
        keys[f"*layers.{layer} keys"] = [text, *entries]
    return {"text": [text], **keys}


DEEPSEEK4 = Layout(
    ("layers", "model.layers"), _deepseek4, {"* self_attn": "text in keys"}, unsized="masks of entries that are chosen"
)

LANGUAGE_LAYOUTS = {"DeepseekV4ForCausalLM": DEEPSEEK4, "DeepseekV4Model": DEEPSEEK4}
