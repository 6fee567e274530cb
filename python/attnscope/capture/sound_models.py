"""The token layouts of transformers of diffusers that make sound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .layouts import Layout, Sequences
from .tokens import Segment, argument_count, counted, grid_segment
from .video_models import Given, text_of

# ---- Stable Audio 3: a module is two calls, of which the second's result is taken from the first's


def _stable_audio3(model: Any, a: Given) -> Sequences:
    config = model.config
    latents = a["hidden_states"].shape[2] // config.patch_size  # [B, C, N]
    memory = Segment("memory", "register", config.num_memory_tokens)
    text = text_of(a)
    words, length = a["encoder_hidden_states"], a["global_hidden_states"]
    # Pipelines append the embedding of the duration, which is the global condition too.
    timed = words.shape[-1] == length.shape[-1] and torch.equal(words[:, -1], length.to(words))
    keys = [replace(text, count=text.count - timed), Segment("duration", "other", int(timed))]
    return {"audio": [memory, grid_segment("audio", "audio", (latents, 1, 1))], "text": keys}


STABLE_AUDIO3 = Layout(
    ("transformer_blocks",),
    _stable_audio3,
    {
        "* self_attn": "audio",
        "* self_attn.2": "audio",
        "* cross_attn": "audio > text",
        "* cross_attn.2": "audio > text",
    },
    lambda model, a: [] if model.config.use_differential_attention else ["* self_attn.2", "* cross_attn.2"],
    guidance="batch",
)

# ---- LongCat's audio


def _longcat_audio(model: Any, a: Given) -> Sequences:
    count = a["hidden_states"].shape[1]  # [B, N, C]
    audio = grid_segment("audio", "audio", (count, 1, 1))
    audio = replace(audio, valid=counted(a.get("attention_mask")))
    return {"audio": [audio], "text": [text_of(a, mask="encoder_attention_mask")]}


LONGCAT_AUDIO = Layout(
    ("blocks",),
    _longcat_audio,
    {"* self_attn": "audio", "* cross_attn": "audio > text"},
    guidance="forwards",
    masks={"* self_attn": ("row", "attention_mask"), "* cross_attn": ("row", "encoder_attention_mask")},
)

# ---- ACE-Step and MiniMax Music 3


def _ace_step(model: Any, a: Given) -> Sequences:
    count = -(-a["hidden_states"].shape[1] // model.config.patch_size)  # [B, N, C]
    condition = Segment("condition", "other", argument_count(a, "encoder_hidden_states"))  # text, lyrics, timbre
    return {"audio": [grid_segment("audio", "audio", (count, 1, 1))], "condition": [condition]}


ACE_STEP = Layout(
    ("layers",),
    _ace_step,
    {"* self_attn": "audio", "* cross_attn": "audio > condition"},
    unsized="masks of windows",
)


def _minimax_music3(model: Any, a: Given) -> Sequences:
    count = a["hidden_states"].shape[2]  # [B, C, N]
    return {"audio": [Segment("time", "register", 1), grid_segment("audio", "audio", (count, 1, 1))]}


MINIMAX_MUSIC3 = Layout(("transformer_blocks",), _minimax_music3, {"* attn": "audio"})

SOUND_LAYOUTS = {
    "AceStepTransformer1DModel": ACE_STEP,
    "LongCatAudioDiTTransformer": LONGCAT_AUDIO,
    "MiniMaxMusic3Transformer1DModel": MINIMAX_MUSIC3,
    "StableAudio3DiTModel": STABLE_AUDIO3,
}
