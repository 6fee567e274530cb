"""Records Q and K of attention calls while a model runs, as an attnscope capture.

    import attnscope_capture

    with attnscope_capture.capture(pipe, "dump/", layers="0,12-14", steps="0,10,49") as cap:
        video = pipe(prompt).frames[0]
    cap.add_video(video)

Needs torch and safetensors. While the block runs, torch.nn.functional.scaled_dot_product_attention
is replaced by a function that calls the real one with the same arguments and, inside the chosen
attention modules, copies what it was given: q and k after normalisation and rotary embedding, the
mask, the scale, v, and some rows of the result. What the model computes is not changed by a bit.

Shapes: B batch items, H heads, Hkv key heads, Nq queries, Nk keys, d channels; q [B, H, Nq, d],
k [B, Hkv, Nk, d], v [B, Hkv, Nk, dv]. A grid is (T, H, W) in tokens, row-major. Steps, layers and
heads count from 0. Sizes are bytes.

Other entries: record() for one call of a bare function, capture(None, …) for every call in a block,
estimate() for the size of a dump before it is made.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import json
import math
import os
import queue
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

try:
    import fcntl
except ImportError:  # not Unix
    fcntl = None  # type: ignore[assignment]

__all__ = ["Capture", "CaptureError", "capture", "estimate", "record"]

FORMAT = "attnscope-capture/1"
Grid = tuple[int, int, int]
STORED_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
QUEUED_CALLS = 4  # calls that may wait for the disk before the model has to


class CaptureError(RuntimeError):
    """What is asked for cannot be recorded truthfully; the message says what to do."""


# ---------------------------------------------------------------- choosing


def parse_numbers(spec: str | int | Iterable[int] | None, what: str) -> Callable[[int], bool]:
    """A test for what "0,3-7", "8-", "0-39:5", "all", 3 or [0, 4] choose."""
    if spec is None or spec == "all":
        return lambda n: True
    if isinstance(spec, int):
        spec = [spec]
    if not isinstance(spec, str):
        chosen = set(spec)
        if not chosen or any(not isinstance(n, int) or n < 0 for n in chosen):
            raise CaptureError(f"{what}: expected whole numbers from 0 (got {spec!r})")
        return lambda n: n in chosen
    ranges = []
    for part in spec.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:(-)(\d*)(?::(\d+))?)?\s*", part)
        if not match or match[4] == "0":
            raise CaptureError(
                f'{what}: expected numbers as in "0,3-7", "8-", "0-39:5" or "all" (got "{spec}")'
            )
        first = int(match[1])
        last = first if not match[2] else int(match[3]) if match[3] else math.inf
        if last < first:
            raise CaptureError(f'{what}: the range "{part.strip()}" ends before it begins')
        ranges.append((first, last, int(match[4] or 1)))
    return lambda n: any(a <= n <= b and (n - a) % s == 0 for a, b, s in ranges)


def largest_named(spec: str | int | Iterable[int] | None) -> int | None:
    """The largest number that `spec` names itself, None where it is open."""
    if spec is None or spec == "all" or (isinstance(spec, str) and re.search(r"-\s*(?:,|:|$)", spec)):
        return None
    numbers = [spec] if isinstance(spec, int) else spec
    if isinstance(spec, str):
        numbers = [int(n) for part in spec.split(",") for n in part.split(":")[0].split("-")]
    return max(numbers)


def kind_test(kinds: str | Sequence[str]) -> Callable[[str], bool]:
    """A test for the kinds that "all", "self" or ["self", "cross"] choose."""
    chosen = [kinds] if isinstance(kinds, str) else list(kinds)
    odd = set(chosen) - {"all", "self", "cross", "joint"}
    if odd or not chosen:
        raise CaptureError(f"kinds: expected all, self, cross or joint (got {kinds!r})")
    return lambda kind: "all" in chosen or kind in chosen


def head_range(spec: str | int | Iterable[int] | None, count: int) -> tuple[int, int]:
    """[first, end) of the chosen heads. One contiguous range: a capture records only its start."""
    test = parse_numbers(spec, "heads")
    largest = largest_named(spec)
    if largest is not None and largest >= count:
        raise CaptureError(f"heads: the model has heads 0 to {count - 1} (asked for {largest})")
    chosen = [h for h in range(count) if test(h)]
    if not chosen or chosen != list(range(chosen[0], chosen[-1] + 1)):
        raise CaptureError(
            "heads: expected one contiguous range, since a capture records only where "
            f"it begins (got {spec!r}); record a range that holds them all"
        )
    return chosen[0], chosen[-1] + 1


def key_head_range(first: int, end: int, heads: int, key_heads: int) -> tuple[int, int]:
    """The key heads [first, end) that serve query heads [first, end)."""
    if heads % key_heads:
        raise CaptureError(f"{heads} query heads are no multiple of {key_heads} key heads")
    group = heads // key_heads
    a, b = first // group, (end - 1) // group + 1
    if b - a > 1 and (first % group or end % group):
        raise CaptureError(
            f"heads: groups of {group} query heads share a key head; choose whole "
            f"groups or heads of one group (got {first}-{end - 1})"
        )
    return a, b


# ---------------------------------------------------------------- what is known about models


def _patched(dims: Sequence[int], patch: Sequence[int]) -> Grid:
    return tuple(n // p for n, p in zip(dims, patch))  # type: ignore[return-value]


def _cogvideox_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    c, x = model.config, a["hidden_states"]  # [B, T, C, H, W]
    return _patched((x.shape[1], x.shape[3], x.shape[4]), (c.patch_size_t or 1, c.patch_size, c.patch_size))


def _hunyuan_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    c = model.config
    return _patched(a["hidden_states"].shape[2:], (c.patch_size_t, c.patch_size, c.patch_size))


def _wan_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    return _patched(a["hidden_states"].shape[2:], model.config.patch_size)


def _ltx_grid(model: Any, a: Mapping[str, Any]) -> Grid | None:
    dims = (a.get("num_frames"), a.get("height"), a.get("width"))
    return None if None in dims else dims  # type: ignore[return-value]


def _flat_patch_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    p = model.config.patch_size
    return _patched(a["hidden_states"].shape[2:], (1, p, p))


def _sd3_grid(model: Any, a: Mapping[str, Any]) -> Grid:
    p = model.config.patch_size
    return _patched((1, *a["hidden_states"].shape[2:]), (1, p, p))


def _flux_grid(model: Any, a: Mapping[str, Any]) -> Grid | None:
    ids = a["img_ids"]
    ids = (ids[0] if ids.ndim == 3 else ids).round().long().cpu()
    h, w = int(ids[:, 1].max()) + 1, int(ids[:, 2].max()) + 1
    rows = torch.arange(h * w)
    plain = len(ids) == h * w and bool((ids[:, 0] == ids[0, 0]).all())
    if not plain or not torch.equal(ids[:, 1] * w + ids[:, 2], rows):
        return None  # reference images beside the picture: no grid of one piece
    return 1, h, w


def _masked_valid(a: Mapping[str, Any]) -> list[int] | None:
    """Valid text tokens a batch item, of a mask that is 1 for them; None if padding is not last."""
    mask = a.get("encoder_attention_mask")
    if mask is None or mask.ndim != 2:
        return None
    valid = mask.detach().bool().cpu()
    counts = valid.sum(1)
    prefix = torch.arange(valid.shape[1])[None] < counts[:, None]
    return counts.tolist() if torch.equal(valid, prefix) else None


def _wan_valid(a: Mapping[str, Any]) -> list[int] | None:
    """Wan's pipelines set the embeddings of padding to zero: where the last row is zero, it counts."""
    used = a["encoder_hidden_states"].detach().ne(0).any(-1).cpu()
    if bool(used[:, -1].any()):
        return None
    return [int(row.nonzero()[-1]) + 1 if bool(row.any()) else 0 for row in used]


def _vit_grid(model: Any, a: Mapping[str, Any]) -> Grid | None:
    pixels, patch = a.get("pixel_values"), getattr(model.config, "patch_size", None)
    if pixels is None or not isinstance(patch, int):
        return None
    return _patched((1, *pixels.shape[2:]), (1, patch, patch))


@dataclass(frozen=True)
class Family:
    """What the code of a model's library says about its attention calls."""

    blocks: tuple[str, ...]  # lists of blocks, in the order in which they run
    attention: Mapping[str, str]  # attribute of a block -> kind of its calls
    grid: Callable[[Any, Mapping[str, Any]], Grid | None]  # (transformer, forward's arguments)
    text: str = "none"  # where text stands in a joint call: start, end
    guidance: str = "batch"  # batch: one forward of [uncond; cond]; forwards: cond, then uncond
    rope: tuple[str, ...] = ()  # kinds whose q and k are rotated
    valid: Callable[[Mapping[str, Any]], list[int] | None] = lambda a: None
    interleaved: Mapping[str, str] = field(default_factory=dict)  # list of blocks -> its axes
    per_sample: bool = False  # one call a batch item, without its padding
    key_mask: Mapping[str, str] = field(default_factory=dict)  # kind -> row | head_row
    vae: tuple[int, int] = (4, 8)  # video frames and pixels a latent cell
    encoders: tuple[tuple[str, str], ...] = (("text_encoder", "tokenizer"),)
    trims: bool = False  # padding is cut off
    counted_text: bool = False  # padding is attended and comes last: count it from the token ids


_DUAL = ("transformer_blocks", "single_transformer_blocks")
FAMILIES: dict[str, Family] = {
    "CogVideoXTransformer3DModel": Family(
        ("transformer_blocks",),
        {"attn1": "joint"},
        _cogvideox_grid,
        "start",
        rope=("joint",),
        counted_text=True,
    ),
    "HunyuanVideoTransformer3DModel": Family(
        _DUAL,
        {"attn": "joint"},
        _hunyuan_grid,
        "end",
        "forwards",
        ("joint",),
        _masked_valid,
        key_mask={"joint": "row"},
    ),
    "WanTransformer3DModel": Family(
        ("blocks",),
        {"attn1": "self", "attn2": "cross"},
        _wan_grid,
        guidance="forwards",
        rope=("self",),
        valid=_wan_valid,
    ),
    "LTXVideoTransformer3DModel": Family(
        ("transformer_blocks",),
        {"attn1": "self", "attn2": "cross"},
        _ltx_grid,
        rope=("self",),
        valid=_masked_valid,
        key_mask={"cross": "head_row"},
        vae=(8, 32),
    ),
    "MochiTransformer3DModel": Family(
        ("transformer_blocks",),
        {"attn1": "joint"},
        _flat_patch_grid,
        "end",
        rope=("joint",),
        valid=_masked_valid,
        per_sample=True,
        trims=True,
        vae=(6, 8),
    ),
    "FluxTransformer2DModel": Family(
        _DUAL,
        {"attn": "joint"},
        _flux_grid,
        "start",
        "forwards",
        ("joint",),
        vae=(1, 8),
        encoders=(("text_encoder_2", "tokenizer_2"),),
        counted_text=True,
    ),
    "SD3Transformer2DModel": Family(
        ("transformer_blocks",),
        {"attn": "joint", "attn2": "self"},
        _sd3_grid,
        "end",
        vae=(1, 8),
        encoders=(("text_encoder", "tokenizer"), ("text_encoder_3", "tokenizer_3")),
    ),
    "LatteTransformer3DModel": Family(
        ("transformer_blocks", "temporal_transformer_blocks"),
        {"attn1": "self", "attn2": "cross"},
        _flat_patch_grid,
        interleaved={"transformer_blocks": "spatial", "temporal_transformer_blocks": "temporal"},
        vae=(1, 8),
        trims=True,
        counted_text=True,
    ),
}
# Picture encoders of transformers: how many tokens stand before the patches.
PICTURE_ENCODERS = {"ViTModel": 1, "ViTForImageClassification": 1, "DeiTModel": 2}


@dataclass
class Slot:
    """One attention module of the model."""

    module: torch.nn.Module
    layer: int
    name: str
    kind: str | None = None  # None: decided by the shapes of the call
    axes: str = "full"


def _is_attention(module: torch.nn.Module) -> bool:
    return bool(re.search(r"Attention|Attn", type(module).__name__)) and bool(
        any(True for _ in module.parameters(recurse=True))
    )


def _family_slots(model: torch.nn.Module, family: Family, prefix: str) -> list[Slot]:
    lists = [(name, getattr(model, name)) for name in family.blocks]
    if family.interleaved:  # spatial block i, temporal block i, spatial block i + 1 …
        order = [(n, i, b[i]) for i in range(len(lists[0][1])) for n, b in lists]
    else:
        order = [(n, i, block) for n, b in lists for i, block in enumerate(b)]
    slots = []
    for layer, (name, i, block) in enumerate(order):
        for attribute, kind in family.attention.items():
            module = getattr(block, attribute, None)
            if module is not None:
                slots.append(
                    Slot(
                        module,
                        layer,
                        f"{prefix}{name}.{i}.{attribute}",
                        kind,
                        family.interleaved.get(name, "full"),
                    )
                )
    return slots


def _generic_slots(model: torch.nn.Module, prefix: str, pattern: str | None) -> list[Slot]:
    """Innermost attention modules inside lists of blocks; a layer is an entry of such a list.

    With a pattern, the modules whose names it matches instead.
    """
    if pattern is not None:
        names = [n for n, _ in model.named_modules() if n and re.search(pattern, n)]
    else:
        names = [n for n, m in model.named_modules() if re.search(r"\.\d+\.", n) and _is_attention(m)]
    inner = [n for n in names if not any(o.startswith(n + ".") for o in names)]
    layers: dict[str, int] = {}
    slots = []
    for name in inner:
        block = re.match(r".*?\.\d+(?=\.)", name)
        layer = layers.setdefault(block[0] if block else name, len(layers))
        slots.append(Slot(model.get_submodule(name), layer, prefix + name))
    return slots


# ---------------------------------------------------------------- sizes


@dataclass(frozen=True)
class CallSize:
    """What decides the bytes of a call's tensors; `mask` is bytes."""

    items: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    channels: int
    itemsize: int
    mask: int = 0

    def payload(self, values: bool, rows: int) -> int:
        q = self.items * self.heads * self.queries * self.channels
        k = self.items * self.key_heads * self.keys * self.channels
        n = min(rows, self.queries) if values else 0
        out = self.items * self.heads * n * self.channels
        return (q + k + (k if values else 0) + out) * self.itemsize + 8 * n + self.mask


def readable(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def output_rows(queries: int, rows: int) -> torch.Tensor:
    """`rows` query rows spread over all of them, ascending, int64."""
    return torch.linspace(0, queries - 1, min(rows, queries), dtype=torch.float64).round().long()


def _mask_bytes(style: str | None, items: int, heads: int, keys: int, itemsize: int) -> int:
    return {None: 0, "row": items * keys, "head_row": items * heads * keys * itemsize}[style]


def _slot_sizes(
    family: Family,
    slot: Slot,
    grid: Grid,
    text: Sequence[int],
    items: int,
    heads: tuple[int, int],
    dtype: torch.dtype,
) -> list[CallSize]:
    """The calls of `slot` in one forward of `items` chosen items with `text` tokens each."""
    module = slot.module
    count, itemsize = heads[1] - heads[0], torch.empty(0, dtype=dtype).element_size()
    projection = module.to_q if hasattr(module, "to_q") else module.query
    channels = projection.out_features // module.heads
    times = {"full": 1, "spatial": grid[0], "temporal": grid[1] * grid[2]}[slot.axes]
    video = math.prod(grid) // times

    def size(n: int, words: int) -> CallSize:
        queries = video + (words if slot.kind == "joint" else 0)
        keys = words if slot.kind == "cross" else queries
        mask = _mask_bytes(family.key_mask.get(slot.kind or ""), n, count, keys, itemsize)
        return CallSize(n * times, count, count, queries, keys, channels, itemsize, mask)

    if family.per_sample:
        return [size(1, text[i % len(text)]) for i in range(items)]
    return [size(items, text[0])]


def _estimate_grid(
    owner: Any,
    model: Any,
    family: Family,
    grid: Grid | str | None,
    frames: int | None,
    height: int | None,
    width: int | None,
) -> Grid:
    if isinstance(grid, str):
        grid = tuple(int(n) for n in grid.split("x"))  # type: ignore[assignment]
    if grid is not None:
        return grid  # type: ignore[return-value]
    if height is None or width is None:
        raise CaptureError("estimate: give grid=(T, H, W) in tokens, or num_frames, height and width")
    pixels = getattr(owner, "vae_scale_factor_spatial", None) or family.vae[1]
    latent = ((frames or 1) - 1) // (_frames_per_latent(owner, family)) + 1
    patch = model.config.patch_size if hasattr(model.config, "patch_size") else 1
    if isinstance(model, torch.nn.Module) and type(model).__name__ == "FluxTransformer2DModel":
        patch = 2  # its latents are packed 2 by 2 before they reach the transformer
    patch = (
        patch
        if isinstance(patch, (tuple, list))
        else (getattr(model.config, "patch_size_t", None) or 1, patch, patch)
    )
    return -(-latent // patch[0]), height // pixels // patch[1], width // pixels // patch[2]


def _frames_per_latent(owner: Any, family: Family | None) -> int:
    """Video frames a latent frame (the first latent frame is one frame)."""
    for name in ("vae_scale_factor_temporal", "vae_temporal_compression_ratio", "vae_temporal_scale_factor"):
        if isinstance(getattr(owner, name, None), int):
            return getattr(owner, name)
    return family.vae[0] if family else 1


def estimate(
    model: Any,
    *,
    grid: Grid | str | None = None,
    num_frames: int | None = None,
    height: int | None = None,
    width: int | None = None,
    text: int | Sequence[int] = 0,
    layers: Any = "all",
    steps: Any = 0,
    heads: Any = "all",
    kinds: str | Sequence[str] = "all",
    num_steps: int | None = None,
    items: int = 1,
    values: bool = True,
    rows: int = 64,
    dtype: torch.dtype | None = None,
) -> int:
    """Bytes of tensors that a capture of a diffusers pipeline or transformer will hold.

    grid: (T, H, W) in tokens; else it follows from frames and pixels. text: text tokens (valid ones
    for Mochi: one number a recorded item). num_steps: needed where `steps` is open. items: recorded
    batch items a forward (1 for one branch of one video), times the forwards if both branches of a
    model with separate forwards are wanted. File headers, some KB a call, come on top.
    """
    transformer = getattr(model, "transformer", model)
    family = FAMILIES.get(type(transformer).__name__)
    if family is None:
        raise CaptureError(
            f"estimate: nothing is known about {type(transformer).__name__}; the line "
            "that a capture prints at its first call tells its size"
        )
    where = _estimate_grid(model, transformer, family, grid, num_frames, height, width)
    words = [text] if isinstance(text, int) else list(text)
    layer_test, step_test = parse_numbers(layers, "layers"), parse_numbers(steps, "steps")
    wanted = kind_test(kinds)
    last = largest_named(steps)
    count = num_steps if num_steps is not None else None if last is None else last + 1
    if count is None:
        raise CaptureError("estimate: steps are open, give num_steps")
    kind = dtype or next(transformer.parameters()).dtype
    total = 0
    for slot in _family_slots(transformer, family, ""):
        if layer_test(slot.layer) and wanted(slot.kind or ""):
            chosen = head_range(heads, slot.module.heads)
            calls = _slot_sizes(family, slot, where, words, items, chosen, kind)
            total += sum(call.payload(values, rows) for call in calls)
    return total * sum(step_test(s) for s in range(count))


# ---------------------------------------------------------------- steps and branches


class StepCounter:
    """Numbers the denoising steps and names the branch of each forward of the transformer(s)."""

    def __init__(self, guidance: str, branches: Sequence[str] | None) -> None:
        self._separate = guidance == "forwards"
        self._branches = list(branches) if branches else None
        self._forwards = 0
        self._step = -1
        self._seen: set[str] = set()
        self._timestep: float | None = None

    def next(self, timestep: float | None, context: str | None) -> tuple[int, str | None]:
        """(step, branch) of the forward that begins; branch None where the batch decides it."""
        index = self._forwards
        self._forwards += 1
        if not self._separate:
            self._step = index
            return index, None
        if self._branches:
            self._step, place = divmod(index, len(self._branches))
            return self._step, self._branches[place]
        same = timestep is not None and timestep == self._timestep
        branch = context or ("uncond" if same and self._seen == {"cond"} else "cond")
        if self._step < 0 or not same or branch in self._seen:
            self._step += 1
            self._seen = set()
        self._seen.add(branch)
        self._timestep = timestep
        return self._step, branch

    @property
    def steps(self) -> int:
        return self._step + 1


def batch_branches(batch: int, given: Sequence[str] | None, guided: bool | None) -> list[str]:
    """The branch of each item of a forward's batch; `guided`: is it [uncond; cond], None: not known."""
    if given:
        if batch % len(given):
            raise CaptureError(f"branches: {list(given)} does not divide a batch of {batch}")
        return [name for name in given for _ in range(batch // len(given))]
    if guided is False or (guided is None and batch == 1):
        return ["cond"] * batch
    if batch % 2:
        raise CaptureError(
            f"a batch of {batch} is not [uncond; cond]: name its branches with "
            'branches=["…"], one a batch item'
        )
    return ["uncond"] * (batch // 2) + ["cond"] * (batch // 2)


# ---------------------------------------------------------------- writing


@dataclass
class Job:
    """One call on its way to the disk: tensors in host memory once `ready` has come."""

    name: str
    tensors: dict[str, torch.Tensor]
    facts: dict[str, Any]
    ready: Any = None  # torch.cuda.Event


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Writes under a temporary name, syncs, renames: `path` is never half a file."""
    part = path.with_name(path.name + ".part")
    try:
        part.touch()
        mode = part.stat().st_mode  # the user's; safetensors would make it private
        write(part)
        os.chmod(part, mode & 0o777)
        with open(part, "rb") as f:
            os.fsync(f.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class FolderLock:
    """Keeps other recorders out of a folder, whatever process they run in, until release()."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "capture.json.lock"
        self._file: Any = None
        if fcntl is None:
            return
        while True:
            self._file = open(self._path, "a")
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise CaptureError(
                        f"{folder}: another recorder writes here: give each a folder of its own"
                    ) from None
                raise CaptureError(f"{folder}: cannot be locked against other recorders: {error}") from error
            # Who held the lock before may have removed the file that was opened.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno())):
                    return
            self._file.close()

    def release(self) -> None:
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None


class Writer:
    """Writes calls in a thread of its own; capture.json lists a call once its file is complete.

    Thread-safe. An error of the thread is raised by the next put() or by close(). `old`: the
    catalogue of the capture that the calls are added to.
    """

    def __init__(self, folder: Path, old: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.root: dict[str, Any] = {"format": FORMAT}
        self.calls: list[dict[str, Any]] = list(old["calls"]) if old else []
        self.frames: list[dict[str, Any]] = list(old.get("frames", [])) if old else []
        self.bytes = 0
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._jobs: queue.Queue[Job | None] = queue.Queue(QUEUED_CALLS)
        self._thread = threading.Thread(target=self._run, name="attnscope-writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        self.raise_error()
        self._jobs.put(job)

    def raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise CaptureError(f"{self.folder}: writing failed: {error}") from error

    def close(self) -> None:
        """Waits until everything is on disk."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def write_catalogue(self) -> None:
        with self._lock:
            text = json.dumps(
                {**self.root, **({"frames": self.frames} if self.frames else {}), "calls": self.calls},
                indent=1,
                ensure_ascii=False,
            )
            replace_file(self.folder / "capture.json", lambda p: p.write_text(text, encoding="utf-8"))

    def _run(self) -> None:
        failed = False
        while (job := self._jobs.get()) is not None:
            if failed:
                continue
            try:
                self._write(job)
            except BaseException as error:  # reaches the caller through raise_error()
                self._error, failed = error, True

    def _write(self, job: Job) -> None:
        if job.ready is not None:
            job.ready.synchronize()
        facts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in job.facts.items()}
        replace_file(self.folder / job.name, lambda p: save_file(job.tensors, str(p), facts))
        self.bytes += sum(t.numel() * t.element_size() for t in job.tensors.values())
        short = ("step", "layer", "kind", "branches")
        self.calls.append({"file": job.name, **{k: job.facts[k] for k in short if k in job.facts}})
        self.write_catalogue()


def make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise CaptureError(f"{folder}: is no folder")
    folder.mkdir(parents=True, exist_ok=True)


def clear_folder(folder: Path, force: bool) -> None:
    """With `force`, removes the capture that is in the folder; without it, there must be none."""
    old = folder / "capture.json"
    if not old.exists() and not any(folder.glob("*.safetensors")):
        return
    if not force:
        raise CaptureError(f"{folder}: already holds a capture; choose another folder or pass force=True")
    for file in [*folder.glob("step*.safetensors"), *folder.glob("frame*.png"), old]:
        file.unlink(missing_ok=True)


def read_catalogue(folder: Path) -> dict[str, Any] | None:
    """The capture.json of a folder that calls are added to; None where there is none yet."""
    path = folder / "capture.json"
    if not path.exists():
        return None
    try:
        root = json.loads(path.read_text(encoding="utf-8"))
        listed = root["format"] == FORMAT and all(isinstance(c["file"], str) for c in root["calls"])
    except (ValueError, KeyError, TypeError) as error:
        raise CaptureError(f"{path}: is no catalogue that a call can be added to: {error!r}") from error
    if not listed:
        raise CaptureError(f"{path}: is no catalogue that a call can be added to (format {root['format']!r})")
    return root


# ---------------------------------------------------------------- copying


class Snapshot:
    """Copies tensors out of the model so that later changes in place do not reach them.

    On CUDA the copy is taken on the device in the model's stream, and travels to pinned host memory
    in a stream of its own, so that the model goes on; elsewhere it is a plain copy.
    """

    def __init__(self) -> None:
        self._streams: dict[torch.device, Any] = {}

    def take(self, tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], Any]:
        """(host tensors, the event after which they are complete; None: they are)."""
        with torch.no_grad():
            own = {n: t.detach().clone(memory_format=torch.contiguous_format) for n, t in tensors.items()}
            device = next((t.device for t in own.values() if t.is_cuda), None)
            if device is None:
                return {n: t.cpu() for n, t in own.items()}, None
            stream = self._streams.setdefault(device, torch.cuda.Stream(device))
            stream.wait_stream(torch.cuda.current_stream(device))
            host = {}
            with torch.cuda.stream(stream):
                for name, tensor in own.items():
                    host[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
                    host[name].copy_(tensor, non_blocking=True)
                    if tensor.is_cuda:
                        tensor.record_stream(stream)  # its memory is not reused before the copy
                event = torch.cuda.Event()
                event.record(stream)
            return host, event


def chosen_part(tensor: torch.Tensor, items: Sequence[int], heads: tuple[int, int]) -> torch.Tensor:
    """[B, H, …] → the chosen items and heads; a view where the items are a range."""
    if list(items) == list(range(items[0], items[-1] + 1)):
        part = tensor[items[0] : items[-1] + 1]
    else:
        part = tensor[torch.as_tensor(items, device=tensor.device)]
    return part[:, heads[0] : heads[1]]


def chosen_mask(mask: torch.Tensor, items: Sequence[int], heads: tuple[int, int]) -> torch.Tensor:
    """A mask as PyTorch takes it → [1 or B, 1 or H, 1 or Nq, Nk] of the chosen items and heads.

    Axes along which it is only expanded (stride 0) shrink to 1.
    """
    while mask.ndim < 4:
        mask = mask.unsqueeze(0)
    for axis in range(3):
        if mask.shape[axis] > 1 and mask.stride(axis) == 0:
            mask = mask.narrow(axis, 0, 1)
    if mask.shape[0] > 1:
        mask = mask[torch.as_tensor(items, device=mask.device)]
    return mask if mask.shape[1] == 1 else mask[:, heads[0] : heads[1]]


# ---------------------------------------------------------------- the prompt's tokens


class PromptWatch:
    """Learns the prompts and their token ids from what a pipeline gives its text encoders."""

    def __init__(self, pipe: Any, family: Family | None) -> None:
        self.prompt: dict[str, str] = {}  # branch -> prompt
        self._ids: dict[tuple[str, str], tuple[torch.Tensor, torch.Tensor | None]] = {}
        self._pipe, self._encoders = pipe, family.encoders if family else ()
        self._trims = family is not None and family.trims
        self._order: list[str] | None = None  # branches that the running encode_prompt encodes
        self._calls: dict[str, int] = {}  # of each encoder in it
        self._invocations = 0
        self._crop = 0

    def install(self, stack: contextlib.ExitStack) -> None:
        if not callable(getattr(self._pipe, "encode_prompt", None)):
            return
        for attribute, _ in self._encoders:
            encoder = getattr(self._pipe, attribute, None)
            if isinstance(encoder, torch.nn.Module):
                hook = encoder.register_forward_pre_hook(self._seen(attribute), with_kwargs=True)
                stack.callback(hook.remove)
        stack.enter_context(_replaced(self._pipe, "encode_prompt", self._watched_encode()))

    def _watched_encode(self) -> Callable[..., Any]:
        real = self._pipe.encode_prompt
        signature = inspect.signature(real)

        def encode_prompt(*args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(TypeError):
                self._begin(signature, signature.bind(*args, **kwargs).arguments)
            try:
                return real(*args, **kwargs)
            finally:
                self._order = None

        return encode_prompt

    def _begin(self, signature: inspect.Signature, given: Mapping[str, Any]) -> None:
        """Which branches the call encodes, in order: the prompt, then the negative prompt; pipelines
        whose encode_prompt takes one prompt call it again for the negative one."""
        names = [("prompt", "prompt_embeds", "cond"), ("negative_prompt", "negative_prompt_embeds", "uncond")]
        if "negative_prompt" not in signature.parameters:
            names = [("prompt", "prompt_embeds", ("cond", "uncond")[min(self._invocations, 1)])]
        self._invocations += 1
        self._calls = {}
        self._order = [branch for _, embeds, branch in names if given.get(embeds) is None]
        self._crop = (given.get("prompt_template") or {}).get("crop_start") or 0
        for argument, _, branch in names:
            text = given.get(argument)
            text = text[0] if isinstance(text, (list, tuple)) and len(text) == 1 else text
            if isinstance(text, str):
                self.prompt[branch] = text

    def _seen(self, attribute: str) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            index = self._calls.get(attribute, 0)
            self._calls[attribute] = index + 1
            ids = args[0] if args else kwargs.get("input_ids")
            mask = args[1] if len(args) > 1 else kwargs.get("attention_mask")
            if self._order is None or index >= len(self._order) or not isinstance(ids, torch.Tensor):
                return
            key = (attribute, self._order[index])
            self._ids.pop(key, None)
            if ids.ndim == 2 and ids.shape[0] == 1:  # several prompts: which item is whose is not known
                used = mask[0].bool().cpu() if isinstance(mask, torch.Tensor) else None
                self._ids[key] = (
                    ids[0, self._crop :].cpu(),
                    used[self._crop :] if used is not None else None,
                )

        return hook

    def tokens(self, branch: str, count: int) -> tuple[list[str] | None, int | None]:
        """(strings, how many are no padding) of the branch's `count` text tokens; None: not known.

        Where the pipeline or the model drops what is padding at the end, `count` is what is left.
        """
        strings: list[str] = []
        used = None
        for attribute, tokenizer in self._encoders:
            ids, mask = self._ids.get((attribute, branch), (None, None))
            words = getattr(self._pipe, tokenizer, None)
            if ids is None or words is None:
                return None, None
            strings += words.convert_ids_to_tokens(ids.tolist())
            if mask is None and words.pad_token_id is not None:
                mask = ids != words.pad_token_id
            used = int(mask.sum()) if mask is not None else None
        if self._trims and used is not None:
            strings, used = strings[:count], min(used, count)
        if not strings or len(strings) != count:
            return None, None
        return strings, used if len(self._encoders) == 1 else None


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Sets an attribute of one object and takes it back, whatever happens."""
    attributes = vars(owner)
    had, old = name in attributes, attributes.get(name)
    attributes[name] = value
    try:
        yield
    finally:
        if attributes.get(name) is value:
            if had:
                attributes[name] = old
            else:
                del attributes[name]


# ---------------------------------------------------------------- refusals before anything runs


def _check_runnable(model: torch.nn.Module) -> None:
    """Refuses models whose calls would not come by, or would come twice."""
    if hasattr(model, "_orig_mod"):
        raise CaptureError(
            "the transformer is compiled: its attention calls cannot be seen. Capture "
            "with the model as it was before torch.compile (its _orig_mod)"
        )
    for name, module in model.named_modules():
        if getattr(module, "_compiled_call_impl", None) is not None:
            raise CaptureError(
                f"{name or type(model).__name__} is compiled (compile()): its attention "
                "calls cannot be seen. Capture before compiling"
            )
    if getattr(model, "is_cache_enabled", False) is True:
        raise CaptureError(
            "a caching accelerator is on, which skips attention calls: call "
            "transformer.disable_cache() before the capture"
        )
    wanted = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if wanted not in (None, "sdpa"):
        raise CaptureError(
            f'the model uses attention "{wanted}", which does not pass '
            'scaled_dot_product_attention: load it with attn_implementation="sdpa" or '
            'call model.set_attn_implementation("sdpa")'
        )


def _diffusers_backend(slot: Slot) -> str | None:
    """The attention backend of diffusers that the module will use; None where it cannot be told."""
    processor = getattr(slot.module, "processor", None)
    if processor is None or not hasattr(processor, "_attention_backend"):
        return None
    chosen = processor._attention_backend
    if chosen is None:
        dispatch = sys.modules.get("diffusers.models.attention_dispatch")
        try:
            chosen = dispatch._AttentionBackendRegistry.get_active_backend()[0]  # type: ignore[union-attr]
        except Exception:  # its private parts may change: the count of calls tells instead
            return None
    return str(getattr(chosen, "value", chosen))


def _check_backend(slots: Iterable[Slot]) -> None:
    for slot in slots:
        backend = _diffusers_backend(slot)
        if backend not in (None, "native", "_native_math"):
            raise CaptureError(
                f'{slot.name} uses the attention backend "{backend}", which does not pass '
                'scaled_dot_product_attention: call transformer.set_attention_backend("native"), or '
                "unset DIFFUSERS_ATTN_BACKEND"
            )


def _parallel_offset(model: torch.nn.Module, heads_here: int) -> int | None:
    """The first head of this process where context parallelism splits heads; None: not split."""
    config = getattr(model, "_parallel_config", None)
    context = getattr(config, "context_parallel_config", None)
    if context is None:
        return None
    if (getattr(context, "ring_degree", 1) or 1) > 1:
        raise CaptureError(
            "ring attention splits the keys over processes: no process has a whole "
            "row. Capture with ulysses_degree, or in one process"
        )
    return int(context._ulysses_local_rank) * heads_here


# ---------------------------------------------------------------- capturing


@dataclass
class Forward:
    """One run of a transformer's forward."""

    model: torch.nn.Module
    arguments: Mapping[str, Any]
    step: int
    timestep: float | None
    names: list[str] | None  # the branch of each batch item; None: no branches
    items: list[int]  # chosen batch items
    grid: Grid | None
    text: int | None  # text tokens that the transformer was given
    valid: list[int] | None  # valid ones, a batch item
    chosen: bool
    calls: dict[int, int] = field(default_factory=dict)  # id of module -> calls seen


@dataclass(frozen=True)
class Options:
    """What the user asked for; see capture()."""

    layers: Any = "all"
    steps: Any = "all"
    heads: Any = "all"
    kinds: str | Sequence[str] = "all"
    branch: str | Sequence[str] = "cond"
    branches: Sequence[str] | None = None
    guidance: str | None = None
    values: bool = True
    rows: int = 64
    model: str | None = None
    prompt: str | None = None
    negative_prompt: str = ""
    tokenizer: Any = None
    tokens: Any = None
    text_valid: Any = None
    grid: Any = None
    text: str | None = None
    kind: str | None = None
    axes: str | None = None
    q_state: str | None = None
    head_offset: int | None = None
    extra: Any = None
    modules: str | None = None
    force: bool = False
    quiet: bool = False


_ACTIVE = threading.Lock()


class Capture:
    """A running or finished capture; made by capture(). Used by the thread that runs the model."""

    def __init__(self, model: Any, out: str | os.PathLike[str], options: Options) -> None:
        self.options = options
        self._owner = model
        self._transformers = _transformers_of(model)
        first = next(iter(self._transformers.values()), None)
        self._family = FAMILIES.get(type(first).__name__) if first is not None else None
        self._hf = any(c.__name__ == "PreTrainedModel" for c in type(first).__mro__)
        self._slots: dict[str, list[Slot]] = {}
        for name, transformer in self._transformers.items():
            _check_runnable(transformer)
            prefix = name + "." if len(self._transformers) > 1 else ""
            found = (
                _family_slots(transformer, self._family, prefix)
                if self._family
                else _generic_slots(transformer, prefix, options.modules)
            )
            _check_backend(found)
            self._slots[name] = found
        self._layer_test = parse_numbers(options.layers, "layers")
        self._step_test = parse_numbers(options.steps, "steps")
        self._kind_test = kind_test(options.kinds)
        parse_numbers(options.heads, "heads")
        self._check_layers()
        guidance = options.guidance or (self._family.guidance if self._family else "batch")
        if guidance not in ("batch", "forwards"):
            raise CaptureError(f'guidance: expected "batch" or "forwards" (got {guidance!r})')
        self._guidance = guidance
        self._counter = StepCounter(guidance, options.branches)
        self._local = threading.local()
        self._forward: Forward | None = None
        self._contexts: dict[int, str | None] = {}
        self._said: set[str] = set()
        self._names: set[str] = set()
        self._snapshot = Snapshot()
        self._stack = contextlib.ExitStack()
        self._watch = PromptWatch(model, self._family)
        self._bare = [0, 0, None]  # step, next layer, timestep of calls without a model
        self._grid: Grid | None = _as_grid(options.grid)
        self._planned: int | None = None
        self._first = True
        self._adds = False  # to the capture that is in the folder
        self._guides: bool | str | None = "unasked"
        self.folder = Path(out)
        self.writer: Writer | None = None
        self.finished = False

    # ---- entering and leaving

    def __enter__(self) -> Capture:
        if not _ACTIVE.acquire(blocking=False):
            raise CaptureError("another capture is running in this process: captures cannot be nested")
        try:
            self._stack.callback(_ACTIVE.release)
            if self.writer is not None:
                raise CaptureError("a capture runs once: make another one with capture()")
            make_folder(self.folder)
            self._stack.callback(FolderLock(self.folder).release)
            old = read_catalogue(self.folder) if self._adds and not self.options.force else None
            self._adds = old is not None
            if old is None:
                clear_folder(self.folder, self.options.force)
            self.writer = Writer(self.folder, old)
            self._stack.callback(self.writer.close)
            self.writer.root.update(self._root_facts())
            if old is not None:
                self._add_to(old)
            self._watch.install(self._stack)
            for name, transformer in self._transformers.items():
                self._hook(name, transformer)
            self._replace_function()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._stack.close()
        self.finished = True
        assert self.writer is not None
        if error is not None:
            return
        self.writer.raise_error()
        if not self.writer.calls:
            raise CaptureError(self._nothing_came())
        last = largest_named(self.options.steps)
        if self._transformers and last is not None and last >= self._counter.steps:
            self._say(f"step {last} was asked for, but the run had {self._counter.steps} steps")

    def _add_to(self, old: Mapping[str, Any]) -> None:
        """Goes on with a capture: what holds for all of its calls stays where it holds for ours."""
        assert self.writer is not None
        self._names = {Path(c["file"]).stem for c in old["calls"]}
        root = self.writer.root
        if self.options.prompt is not None:
            root["prompt"] = self.options.prompt
        for name in ("model", "prompt"):
            if name in old and root.setdefault(name, old[name]) != old[name] or name not in old:
                root.pop(name, None)
        for name, value in old.items():
            if name not in ("format", "model", "prompt", "calls", "frames"):
                root[name] = value

    def _nothing_came(self) -> str:
        if not self._transformers:
            return (
                "no attention call came by: nothing in the block called "
                "torch.nn.functional.scaled_dot_product_attention"
            )
        if not self._counter.steps:
            return "the model did not run inside the block"
        return (
            f"nothing was recorded: the run had steps 0 to {self._counter.steps - 1}, asked for "
            f"steps {self.options.steps!r}, branch {self.options.branch!r}"
        )

    def _root_facts(self) -> dict[str, Any]:
        extra = {"recorder": "attnscope_capture", "torch": torch.__version__}
        if self._transformers:
            first = next(iter(self._transformers.values()))
            extra["class"] = type(first).__name__
            extra["layers"] = len({s.layer for s in next(iter(self._slots.values()))})
        return {"model": self._model_name(), "extra": {**extra, **(self.options.extra or {})}}

    def _model_name(self) -> str:
        if self.options.model is not None:
            return self.options.model
        first = next(iter(self._transformers.values()), None)
        for owner in (self._owner, first):
            name = getattr(getattr(owner, "config", None), "_name_or_path", None) or ""
            if name:
                return os.path.basename(os.path.normpath(name)) if os.path.isdir(name) else name
        return type(first).__name__ if first is not None else ""

    def _check_layers(self) -> None:
        last = largest_named(self.options.layers)
        if not self._transformers:
            return
        count = 1 + max((s.layer for found in self._slots.values() for s in found), default=-1)
        if not count:
            raise CaptureError(
                "no attention modules were found in the model; capture(None, …) records every call in a block"
            )
        if last is not None and last >= count:
            raise CaptureError(f"layers: the model has layers 0 to {count - 1} (asked for {last})")

    def _say(self, line: str) -> None:
        if line not in self._said and not self.options.quiet:
            print(f"attnscope_capture: {line}", file=sys.stderr)
        self._said.add(line)

    # ---- hooks

    def _hook(self, name: str, transformer: torch.nn.Module) -> None:
        push, pop = self._stack.callback, self._slots[name]
        push(transformer.register_forward_pre_hook(self._begin(name), with_kwargs=True).remove)
        push(transformer.register_forward_hook(self._end(name)).remove)
        for slot in pop:
            push(slot.module.register_forward_pre_hook(self._enter_slot(slot)).remove)
            push(slot.module.register_forward_hook(self._leave_slot, always_call=True).remove)
        if callable(getattr(transformer, "cache_context", None)):
            self._stack.enter_context(
                _replaced(transformer, "cache_context", self._watched_context(transformer))
            )

    def _watched_context(self, transformer: Any) -> Callable[..., Any]:
        real = transformer.cache_context

        @contextlib.contextmanager
        def cache_context(name: str, *args: Any, **kwargs: Any) -> Iterator[Any]:
            self._contexts[id(transformer)] = name
            try:
                with real(name, *args, **kwargs) as value:
                    yield value
            finally:
                self._contexts.pop(id(transformer), None)

        return cache_context

    def _replace_function(self) -> None:
        real, spy = F.scaled_dot_product_attention, self._spy(F.scaled_dot_product_attention)
        self._stack.enter_context(_replaced(F, "scaled_dot_product_attention", spy))
        # Modules that did "from torch.nn.functional import scaled_dot_product_attention".
        seen: set[str] = set()
        for slot in (s for found in self._slots.values() for s in found):
            for cls in {type(slot.module), type(getattr(slot.module, "processor", None))}:
                seen.add(cls.__module__)
        for name in seen - {"builtins", F.__name__}:
            module = sys.modules.get(name)
            for attribute in [k for k, v in vars(module).items() if v is real] if module else []:
                self._stack.enter_context(_replaced(module, attribute, spy))

    def _slot_stack(self) -> list[Slot]:
        if not hasattr(self._local, "slots"):
            self._local.slots = []
        return self._local.slots

    def _enter_slot(self, slot: Slot) -> Callable[..., None]:
        return lambda module, args: self._slot_stack().append(slot)

    def _leave_slot(self, module: Any, args: Any, output: Any) -> None:
        if self._slot_stack():
            self._slot_stack().pop()

    def _spy(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def scaled_dot_product_attention(
            query: torch.Tensor,
            key: torch.Tensor,
            value: torch.Tensor,
            attn_mask: torch.Tensor | None = None,
            dropout_p: float = 0.0,
            is_causal: bool = False,
            scale: float | None = None,
            **more: Any,
        ) -> torch.Tensor:
            out = real(
                query,
                key,
                value,
                attn_mask=attn_mask,
                dropout_p=dropout_p,
                is_causal=is_causal,
                scale=scale,
                **more,
            )
            call = Call(query, key, value, out, attn_mask, float(dropout_p), bool(is_causal), scale)
            if not self._transformers:
                self._record_bare(call)
            elif self._slot_stack() and self._forward is not None:
                self._record_slot(self._slot_stack()[-1], self._forward, call)
            return out

        return scaled_dot_product_attention

    # ---- a forward of the transformer

    def _begin(self, name: str) -> Callable[..., None]:
        transformer = self._transformers[name]
        signature = inspect.signature(type(transformer).forward)

        def begin(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._slot_stack().clear()
            self._forward = None
            given = dict(kwargs)
            with contextlib.suppress(TypeError):
                given = dict(signature.bind(module, *args, **kwargs).arguments)
                given.update(given.pop("kwargs", {}))
            if given.get("skip_layers") is not None:
                self._say("a forward with skip_layers (skip-layer guidance) is not recorded")
                return
            if torch.is_grad_enabled() and any(
                getattr(m, "gradient_checkpointing", False) for m in module.modules()
            ):
                raise CaptureError(
                    "gradient checkpointing runs attention twice: run under "
                    "torch.no_grad(), or call disable_gradient_checkpointing()"
                )
            self._forward = self._describe(module, given)

        return begin

    def _describe(self, module: torch.nn.Module, given: Mapping[str, Any]) -> Forward:
        """Step, branch, grid and text of the forward that begins."""
        timestep = _timestep(given.get("timestep"))
        context = self._contexts.get(id(module))
        step, branch = self._counter.next(timestep, context if context != "cond_uncond" else None)
        names = self._branch_names(given, branch)
        items = [i for i, n in enumerate(names or []) if self._wants(n)]
        chosen = self._step_test(step) and (names is None or bool(items))
        if names is not None and not items and self._guidance == "batch":
            raise CaptureError(
                f"branch {self.options.branch!r}: the batch has {', '.join(sorted(set(names)))}"
            )
        grid, text, valid = self._grid, None, None
        if chosen and self._family:
            grid = grid or self._family.grid(module, given)
            words = given.get("encoder_hidden_states")
            text = words.shape[1] if words is not None else None
            valid = self._family.valid(given)
        elif chosen and self._hf and grid is None and type(module).__name__ in PICTURE_ENCODERS:
            grid, text = _vit_grid(module, given), PICTURE_ENCODERS[type(module).__name__]
        self._grid = grid
        return Forward(module, given, step, timestep, names, items, grid, text, valid, chosen)

    def _branch_names(self, given: Mapping[str, Any], branch: str | None) -> list[str] | None:
        """The branch of each batch item of the forward; None where nothing is known of branches."""
        batch = next((t.shape[0] for t in given.values() if isinstance(t, torch.Tensor) and t.ndim > 1), None)
        states = given.get("hidden_states")
        batch = states.shape[0] if isinstance(states, torch.Tensor) else batch
        if self._guidance == "forwards":
            return [branch or "cond"] * (batch or 1)
        if self._family is None and not self.options.branches:
            return None
        if batch is None:
            raise CaptureError("branches: the forward has no batched tensor to count")
        guided = self._guided()
        if guided is None and batch > 1 and not self.options.branches:
            self._say(f"a batch of {batch} is taken as [uncond; cond]; branches=[…] says otherwise")
        return batch_branches(batch, self.options.branches, guided)

    def _guided(self) -> bool | None:
        """Does the pipeline double the batch for guidance? None: there is no pipeline to ask.

        Asked at the first forward: some pipelines change their guidance scale while they run.
        """
        if self._guides == "unasked":
            self._guides = self._ask_guidance()
        return self._guides  # type: ignore[return-value]

    def _ask_guidance(self) -> bool | None:
        if isinstance(self._owner, torch.nn.Module):
            return None
        for name in ("do_classifier_free_guidance", "guidance_scale"):
            try:
                value = getattr(self._owner, name)
            except AttributeError:
                continue
            return value if isinstance(value, bool) else value > 1
        return None

    def _wants(self, branch: str) -> bool:
        wanted = self.options.branch
        if isinstance(wanted, str):
            return wanted in ("both", "all") or branch == wanted
        return branch in wanted

    def _end(self, name: str) -> Callable[..., None]:
        def end(module: Any, args: Any, output: Any) -> None:
            forward, self._forward = self._forward, None
            if forward is None:
                return
            chosen = [s for s in self._slots[name] if self._layer_test(s.layer)]
            if self._first and not any(forward.calls.values()):
                raise CaptureError(
                    "no scaled_dot_product_attention call came from the model's attention: another "
                    "attention backend or processor is set. diffusers: transformer."
                    'set_attention_backend("native") and the default processors (no xformers, sage or '
                    'flash); transformers: attn_implementation="sdpa"'
                )
            self._first = False
            for slot in chosen if forward.chosen else ():
                due, came = self._due(slot, forward), forward.calls.get(id(slot.module), 0)
                if came != due:
                    raise CaptureError(
                        f"step {forward.step}: {slot.name} made {came} attention calls instead of "
                        f"{due}: a caching accelerator skips layers, or another backend is set for "
                        "it. Switch them off (transformer.disable_cache(), "
                        'set_attention_backend("native")) or leave the layer out'
                    )

        return end

    def _due(self, slot: Slot, forward: Forward) -> int:
        """How many calls the slot makes in a forward; unknown models may make any number above 0."""
        if self._family is None:
            return max(1, forward.calls.get(id(slot.module), 0)) if not self._hf else 1
        if slot.axes == "temporal" and forward.arguments.get("enable_temporal_attentions") is False:
            return 0
        if self._family.per_sample:
            return len(forward.names or [0])
        return 2 if getattr(slot.module, "add_k_proj", None) is not None and slot.kind == "cross" else 1

    # ---- a call

    def _record_slot(self, slot: Slot, forward: Forward, call: Call) -> None:
        index = forward.calls.get(id(slot.module), 0)
        forward.calls[id(slot.module)] = index + 1
        if not forward.chosen or not self._layer_test(slot.layer):
            return
        names, items = forward.names, list(forward.items)
        if self._family and self._family.per_sample:
            if index not in items:
                return
            names, items = [names[index]], [0]  # type: ignore[index]
        elif index + 1 < self._due(slot, forward):
            self._say(f"{slot.name}: its call with image keys is not recorded, only the text one")
            return
        call.check(slot.name)
        kind = self._kind(slot, call)
        if not self._kind_test(kind):
            return
        times = self._times(slot, forward)
        batch = call.q.shape[0]
        if names is None:
            items = list(range(batch))
        elif batch != len(names) * times:
            raise CaptureError(f"{slot.name}: a batch of {batch} instead of {len(names)} items × {times}")
        facts = self._call_facts(slot, forward, call, kind, index)
        if names is not None:
            branches = [names[i] for i in items]
            facts.update(self._text_facts(slot, forward, call, kind, branches, times, items, index))
            expanded = [b for b in branches for _ in range(times)]
            facts["branches"] = expanded[:1] if len(set(expanded)) == 1 else expanded
            items = [i * times + j for i in items for j in range(times)]
        else:
            facts.update(self._text_facts(slot, forward, call, kind, [], 1, items, index))
        module_heads = getattr(slot.module, "heads", None)
        self._save(call, items, facts, forward, self._offset(forward, call, slot, module_heads))

    def _kind(self, slot: Slot, call: Call) -> str:
        kind = self.options.kind or slot.kind
        if kind is None:
            crossing = getattr(slot.module, "is_cross_attention", False) is True or re.search(
                "cross|encoder_att|encdec", slot.name, re.IGNORECASE
            )
            kind = "cross" if crossing or call.q.shape[2] != call.k.shape[2] else "self"
            if self._hf and kind == "cross" and not crossing:
                raise CaptureError(
                    f"{slot.name}: {call.q.shape[2]} queries and {call.k.shape[2]} keys: "
                    "a cache of keys is in use. Run the model with use_cache=False, or "
                    'record the first forward only (steps="0")'
                )
            if kind == "self" and self._grid and (self.options.text or self._hf):
                kind = "joint"
        return kind

    def _times(self, slot: Slot, forward: Forward) -> int:
        axes = self.options.axes or slot.axes
        if axes == "full":
            return 1
        if forward.grid is None:
            raise CaptureError(f"{slot.name}: {axes} attention needs grid=(T, H, W)")
        return forward.grid[0] if axes == "spatial" else forward.grid[1] * forward.grid[2]

    def _offset(self, forward: Forward, call: Call, slot: Slot, heads: int | None) -> int:
        """The model's number of the call's head 0."""
        if self.options.head_offset is not None:
            return self.options.head_offset
        here = call.q.shape[1]
        split = _parallel_offset(forward.model, here)
        if heads is not None and here != heads and split is None:
            raise CaptureError(
                f"{slot.name}: the call has {here} of {heads} heads: they are split over "
                "processes. Say with head_offset= where this part begins"
            )
        return split or 0

    def _call_facts(self, slot: Slot, forward: Forward, call: Call, kind: str, index: int) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "step": forward.step,
            "layer": slot.layer,
            "layer_name": slot.name,
            "kind": kind,
        }
        if forward.timestep is not None:
            facts["timestep"] = forward.timestep
        axes = self.options.axes or slot.axes
        if axes != "full":
            facts["axes"] = axes
        state = self.options.q_state
        if state is None and self._family:
            norm = ["qk_norm"] if getattr(slot.module, "norm_q", None) is not None else []
            turned = kind in self._family.rope and not (
                "image_rotary_emb" in inspect.signature(type(forward.model).forward).parameters
                and forward.arguments.get("image_rotary_emb") is None
            )
            state = ",".join(norm + (["rope"] if turned else [])) or "none"
        if state is not None:
            facts["q_state"] = state
        return facts

    def _text_facts(
        self,
        slot: Slot,
        forward: Forward,
        call: Call,
        kind: str,
        branches: list[str],
        times: int,
        items: list[int],
        index: int,
    ) -> dict[str, Any]:
        """grid, text, tokens and text_valid of a call, checked against its sequence."""
        grid = forward.grid
        facts: dict[str, Any] = {"grid": "x".join(map(str, grid))} if grid else {}
        queries, keys = call.q.shape[2], call.k.shape[2]
        video = math.prod(grid) // times if grid else None
        known = self._family is not None
        if self.options.text is not None and not (known and kind == "self"):
            facts["text"] = self.options.text
            words = _text_count(facts["text"])
            if video is not None and kind != "cross" and facts["text"] != "all" and video + words != queries:
                raise self._wrong_count(queries, grid, words)
        elif kind == "cross":
            facts["text"] = "all"
        elif video is not None:
            words = queries - video
            place = self._family.text if known else "start" if forward.text else "none"  # type: ignore[union-attr]
            expected = (forward.text or 0) if kind == "joint" else 0
            trimmed = known and self._family.per_sample  # type: ignore[union-attr]
            if words < 0 or (not trimmed and words != expected):
                raise self._wrong_count(queries, grid, expected)
            facts["text"] = f"{words}@{place}" if words else "none"
        elif self._hf and forward.arguments.get("input_ids") is not None:
            facts["text"] = "all"
        count = keys if facts.get("text") == "all" else _text_count(facts.get("text"))
        if count and not branches:
            decoding = (
                kind == "self"
                and "decoder" in slot.name
                and getattr(getattr(forward.model, "config", None), "is_encoder_decoder", False)
            )
            facts.update(self._hf_tokens(forward, count, "decoder_" if decoding else ""))
        elif count:
            facts.update(self._token_facts(forward, branches, times, items, count, index))
        return facts

    @staticmethod
    def _wrong_count(tokens: int, grid: Grid | None, words: int) -> CaptureError:
        return CaptureError(
            f"{tokens} tokens are not the grid {_grid_text(grid)} and {words} text tokens: pass grid= and "
            "text= as they are"
        )

    def _token_facts(
        self, forward: Forward, branches: list[str], times: int, items: list[int], count: int, index: int
    ) -> dict[str, Any]:
        per_sample = self._family is not None and self._family.per_sample
        tokens, valid = [], []
        for place, branch in zip(items, branches):
            words, used = self._branch_tokens(branch, count)
            if forward.valid is not None:
                used = forward.valid[index if per_sample else place]
            tokens.append(words)
            valid.append(used)
        return _collapsed("tokens", tokens, times) | _collapsed("text_valid", valid, times)

    def _branch_tokens(self, branch: str, count: int) -> tuple[list[str] | None, int | None]:
        """(strings, valid tokens) of a branch: what the user gave, else what the text encoder saw."""
        o = self.options
        words, used = self._watch.tokens(branch, count)
        counted = bool(self._family and self._family.counted_text)
        if words is None and o.tokenizer is not None and (o.prompt is not None or branch == "uncond"):
            text = o.prompt if branch == "cond" else o.negative_prompt
            pieces = o.tokenizer(text, padding="max_length", max_length=count, truncation=True)
            words = o.tokenizer.convert_ids_to_tokens(pieces["input_ids"])
            used = sum(pieces["attention_mask"])
        if o.tokens is not None:
            words = o.tokens.get(branch) if isinstance(o.tokens, Mapping) else o.tokens
            words = None if words is None else list(words)[:count]
        if o.text_valid is not None:
            given = o.text_valid
            return words, given.get(branch) if isinstance(given, Mapping) else given
        return words, used if counted or not self._family else None

    def _hf_tokens(self, forward: Forward, count: int, side: str) -> dict[str, Any]:
        """Tokens of a language model, one list a batch item; `side`: "decoder_" for a decoder's own."""
        o, ids = self.options, forward.arguments.get(side + "input_ids")
        facts: dict[str, Any] = {}
        mask = forward.arguments.get(side + "attention_mask")
        if o.tokens is not None:
            facts["tokens"] = o.tokens
        elif ids is not None and o.tokenizer is not None and ids.shape[1] == count:
            facts["tokens"] = [o.tokenizer.convert_ids_to_tokens(row) for row in ids.tolist()]
        if o.text_valid is not None:
            facts["text_valid"] = o.text_valid
        elif isinstance(mask, torch.Tensor) and mask.shape[-1] == count:
            valid = _masked_valid({"encoder_attention_mask": mask})
            if valid is not None:
                facts["text_valid"] = valid
        return facts

    # ---- calls without a model

    def begin_step(self, step: int, timestep: float | None = None) -> None:
        """For capture(None, …): the calls that follow belong to `step`, layers from 0 again."""
        self._bare = [step, 0, timestep]

    def _record_bare(self, call: Call) -> None:
        step, layer, timestep = self._bare
        self._bare[1] += 1
        if not (self._step_test(step) and self._layer_test(layer)):
            return
        call = call.with_batch()
        call.check(f"call {layer}")
        o = self.options
        facts: dict[str, Any] = {"step": step, "layer": layer}
        given = {
            "timestep": timestep,
            "kind": o.kind,
            "grid": _grid_text(self._grid),
            "text": o.text,
            "axes": o.axes,
            "q_state": o.q_state,
            "tokens": o.tokens,
            "text_valid": o.text_valid,
            "branches": list(o.branches) if o.branches else None,
        }
        facts.update({k: v for k, v in given.items() if v is not None})
        self._save(call, list(range(call.q.shape[0])), facts, None, o.head_offset or 0)

    # ---- to the disk

    def _save(
        self, call: Call, items: list[int], facts: dict[str, Any], forward: Forward | None, offset: int
    ) -> None:
        assert self.writer is not None
        heads, key_heads = call.q.shape[1], call.k.shape[1]
        first, end = head_range(self.options.heads, heads)
        keys = key_head_range(first, end, heads, key_heads)
        tensors = call.tensors(items, (first, end), keys, self.options.values, self.options.rows)
        d = call.q.shape[-1]
        head: dict[str, Any] = {"format": FORMAT, "model": self._model_name()}
        prompt = self.options.prompt or self._watch.prompt.get("cond")
        if prompt is not None:
            head["prompt"] = prompt
            if not self._adds:
                self.writer.root.setdefault("prompt", prompt)
        facts = {
            **head,
            **facts,
            "layout": "bhsd",
            "scale": float(call.scale) if call.scale is not None else d**-0.5,
            "mask": "causal" if call.causal else "tensor" if call.mask is not None else "none",
        }
        if offset + first:
            facts["head_offset"] = offset + first
        extra = self._call_extra(forward)
        if extra:
            facts["extra"] = extra
        name = self._file_name(facts)
        size = sum(t.numel() * t.element_size() for t in tensors.values())
        self._announce(size, forward, facts)
        self._check_room(size)
        host, event = self._snapshot.take(tensors)
        self.writer.put(Job(name, host, facts, event))

    def _call_extra(self, forward: Forward | None) -> dict[str, Any]:
        extra = dict(self.options.extra or {})
        if forward is not None and len(self._transformers) > 1:
            extra["transformer"] = next(n for n, t in self._transformers.items() if t is forward.model)
        stamp = forward.arguments.get("timestep") if forward is not None else None
        if isinstance(stamp, torch.Tensor) and stamp.ndim > 1:
            extra["timestep_lowest"] = float(stamp.min())
        return extra

    def _file_name(self, facts: Mapping[str, Any]) -> str:
        name = f"step{facts['step']:04d}_layer{facts['layer']:03d}"
        name += f"_{facts['kind']}" if "kind" in facts else ""
        branches = facts.get("branches", [])
        if len(branches) == 1 and self.options.branch != branches[0] and self._transformers:
            name += "_" + re.sub(r"[^A-Za-z0-9_.-]", "_", branches[0])
        if name in self._names:
            raise CaptureError(
                f"{name}: this step, layer, kind and branch came twice (several items of "
                "a branch in calls of their own?): run one video at a time"
                if not self._adds
                else f"{name}: {self.folder} holds this step, layer and kind already: give another step= "
                "or layer="
            )
        self._names.add(name)
        return name + ".safetensors"

    def _announce(self, size: int, forward: Forward | None, facts: Mapping[str, Any]) -> None:
        """At the first call: says what the dump will take and refuses where it does not fit."""
        if self._planned is not None:
            return
        self._planned = size
        steps = self._steps_to_come()
        a_step = self._bytes_a_step(forward, facts, size)
        known = a_step is not None and steps is not None
        total = a_step * steps if known else None  # type: ignore[operator]
        text = (
            f"{readable(total)} ({readable(a_step)} a step, {steps} steps)"
            if total is not None
            else f"{readable(a_step)} a step"
            if a_step is not None
            else f"{readable(size)} a call"
        )
        self._say(f"{self.folder}: the dump takes {text}; the first call {readable(size)}")
        self._planned = total if total is not None else size
        self._check_room(self._planned)

    def _bytes_a_step(self, forward: Forward | None, facts: Mapping[str, Any], size: int) -> int | None:
        """Tensor bytes of a step; None where the model's calls are not known."""
        if forward is None or self._family is None or forward.grid is None:
            return None
        items = [0] if self._guidance == "forwards" else forward.items
        text = [forward.text or 0]
        if self._family.per_sample and forward.valid:
            text = [forward.valid[i] for i in items]
        name = next(n for n, t in self._transformers.items() if t is forward.model)
        total = 0
        for slot in self._slots[name]:
            if self._layer_test(slot.layer) and self._kind_test(slot.kind or "") and self._due(slot, forward):
                heads = head_range(self.options.heads, slot.module.heads)
                calls = _slot_sizes(
                    self._family,
                    slot,
                    forward.grid,
                    text,
                    len(items),
                    heads,
                    next(slot.module.parameters()).dtype,
                )
                total += sum(c.payload(self.options.values, self.options.rows) for c in calls)
        separate = self._guidance == "forwards" and (
            not isinstance(self.options.branch, str) or self.options.branch in ("both", "all")
        )
        return total * 2 if separate else total

    def _steps_to_come(self) -> int | None:
        """How many chosen steps the run has; None where nobody knows."""
        last = largest_named(self.options.steps)
        timesteps = getattr(getattr(self._owner, "scheduler", None), "timesteps", None)
        count = (
            len(timesteps)
            if timesteps is not None and not isinstance(self._owner, torch.nn.Module)
            else None
            if last is None
            else last + 1
        )
        return None if count is None else sum(self._step_test(s) for s in range(count))

    def _check_room(self, size: int) -> None:
        free = shutil.disk_usage(self.folder).free
        if size > free:
            raise CaptureError(
                f"{self.folder}: {readable(size)} do not fit, {readable(free)} are free: "
                "choose fewer layers, steps or heads, or values=False"
            )

    # ---- afterwards

    def add_video(self, video: Any, frames_per_latent: int | None = None) -> None:
        """Adds pictures of the finished video, one a latent frame, to the capture.

        video: PIL pictures, or an array or tensor [F, H, W, 3] (uint8, or 0 to 1), or [F, 3, H, W], or
        one picture. frames_per_latent: frames of video a latent frame after the first (the VAE's
        factor), where the model does not tell.
        """
        if self.writer is None or not self.finished:
            raise CaptureError("add_video: after the with-block, when the capture is complete")
        if self._grid is None:
            raise CaptureError("add_video: the capture has no grid")
        pictures = _pictures(video)
        factor = frames_per_latent or _frames_per_latent(self._owner, self._family)
        patch = 1
        first = next(iter(self._transformers.values()), None)
        if self._family and isinstance(getattr(first.config, "patch_size_t", None), int):
            patch = first.config.patch_size_t
        places = latent_frames(len(pictures), self._grid[0], factor, patch)
        entries = []
        for t, frame in enumerate(places):
            name = f"frame{t:03d}.png"
            replace_file(self.folder / name, lambda p, frame=frame: pictures[frame].save(p, format="PNG"))
            entries.append({"file": name, "t": t})
        self.writer.frames = entries
        self.writer.write_catalogue()


@dataclass
class Call:
    """The arguments and the result of one call."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    mask: torch.Tensor | None
    dropout: float
    causal: bool
    scale: float | None

    def with_batch(self) -> Call:
        """The same with a batch axis: [H, N, d] is one item."""
        if self.q.ndim == 4:
            return self
        if self.q.ndim != 3:
            raise CaptureError(f"expected q [B, H, N, d] or [H, N, d] (got {list(self.q.shape)})")
        q, k, v, out = (t.unsqueeze(0) for t in (self.q, self.k, self.v, self.out))
        return Call(q, k, v, out, self.mask, self.dropout, self.causal, self.scale)

    def check(self, where: str) -> None:
        if self.dropout > 0:
            raise CaptureError(
                f"{where}: attention dropout {self.dropout} makes the map random: call model.eval()"
            )
        if self.q.ndim != 4 or self.k.ndim != 4:
            raise CaptureError(f"{where}: expected q [B, H, N, d] (got {list(self.q.shape)})")
        if self.out.dtype not in STORED_DTYPES:
            raise CaptureError(f"{where}: {self.q.dtype} cannot be stored")
        for name, tensor in (("q", self.q), ("k", self.k), ("v", self.v)):
            if not tensor.numel():
                raise CaptureError(f"{where}: {name} {list(tensor.shape)} is empty: there is no map to record")
        if self.scale is not None and not (math.isfinite(self.scale) and self.scale > 0):
            raise CaptureError(f"{where}: the scale has to be finite and above 0 (got {self.scale})")

    def tensors(
        self, items: list[int], heads: tuple[int, int], key_heads: tuple[int, int], values: bool, rows: int
    ) -> dict[str, torch.Tensor]:
        """Views of what is stored. Under autocast q, k and v are what the kernel saw: out's type."""
        kernel = self.out.dtype
        parts = {
            "q": chosen_part(self.q, items, heads).to(kernel),
            "k": chosen_part(self.k, items, key_heads).to(kernel),
        }
        if values:
            parts["v"] = chosen_part(self.v, items, key_heads).to(kernel)
        if values and rows > 0:
            where = output_rows(self.q.shape[2], rows)
            parts["out"] = chosen_part(self.out, items, heads)[:, :, where.to(self.out.device)]
            parts["out_rows"] = where
        if self.mask is not None:
            mask = chosen_mask(self.mask, items, heads)
            parts["mask"] = mask if mask.dtype == torch.bool else mask.to(kernel)
        return parts


def _transformers_of(model: Any) -> dict[str, torch.nn.Module]:
    """The modules to hook, by attribute: the model itself, or a pipeline's one or two transformers."""
    if model is None:
        return {}
    if isinstance(model, torch.nn.Module):
        return {"model": model}
    found = {n: getattr(model, n, None) for n in ("transformer", "transformer_2")}
    found = {n: m for n, m in found.items() if isinstance(m, torch.nn.Module)}
    if not found:
        raise CaptureError(f"{type(model).__name__} has no transformer: pass the module to capture")
    return found


def _as_grid(grid: Any) -> Grid | None:
    if grid is None:
        return None
    numbers = [int(n) for n in grid.split("x")] if isinstance(grid, str) else list(grid)
    if len(numbers) != 3 or min(numbers) < 1:
        raise CaptureError(f'grid: expected (T, H, W) or "TxHxW" (got {grid!r})')
    return tuple(numbers)  # type: ignore[return-value]


def _grid_text(grid: Grid | None) -> str | None:
    return "x".join(map(str, grid)) if grid else None


def _text_count(text: str | None) -> int:
    return int(text.split("@")[0]) if text and "@" in text else 0


def _timestep(value: Any) -> float | None:
    """The timestep of a forward: a number, a tensor, or one a token (then the largest)."""
    if isinstance(value, torch.Tensor):
        return float(value.detach().max()) if value.numel() else None
    return float(value) if isinstance(value, (int, float)) else None


def _collapsed(name: str, values: list[Any], times: int) -> dict[str, Any]:
    """One value where all items agree, a list otherwise; nothing where one is not known."""
    if not values or any(v is None for v in values):
        return {}
    if all(v == values[0] for v in values):
        return {name: values[0]}
    return {name: [v for v in values for _ in range(times)]}


def latent_frames(frames: int, tokens: int, factor: int, patch: int = 1) -> list[int]:
    """The video frame that shows each of `tokens` token frames.

    Latent frame 0 is one video frame, each other one `factor`; `patch` latent frames make a token
    frame, and pipelines put what is missing to a multiple of it in front.
    """
    latents = (frames - 1) // factor + 1
    front = tokens * patch - latents
    if (frames - 1) % factor or not 0 <= front < patch:
        raise CaptureError(
            f"add_video: {frames} frames are {latents} latent frames at {factor} frames "
            f"each, but the capture has {tokens * patch}; pass frames_per_latent="
        )
    places = []
    for t in range(tokens):
        latent = max(0, t * patch + patch // 2 - front)
        places.append(0 if latent == 0 else (latent - 1) * factor + 1 + factor // 2)
    return [min(p, frames - 1) for p in places]


def _pictures(video: Any) -> list[Any]:
    """A list of PIL pictures."""
    try:
        import numpy
        from PIL import Image
    except ImportError as error:
        raise CaptureError(f"add_video needs numpy and Pillow: pip install numpy Pillow ({error})") from error
    if hasattr(video, "save"):
        return [video]
    if isinstance(video, (list, tuple)) and all(hasattr(v, "save") for v in video) and video:
        return list(video)
    if isinstance(video, torch.Tensor):
        video = video.detach().float().cpu().numpy() if video.is_floating_point() else video.cpu().numpy()
    data = numpy.asarray(video)
    data = data[0] if data.ndim == 5 else data[None] if data.ndim == 3 else data
    if data.ndim == 4 and data.shape[-1] != 3 and data.shape[1] == 3:
        data = data.transpose(0, 2, 3, 1)
    if data.ndim != 4 or data.shape[-1] != 3:
        raise CaptureError(f"add_video: expected [frames, height, width, 3] (got {list(data.shape)})")
    if data.dtype != numpy.uint8:
        data = (data.astype(numpy.float64) * 255).round().clip(0, 255).astype(numpy.uint8)
    return [Image.fromarray(frame) for frame in data]


def capture(model: Any, out: str | os.PathLike[str], /, **options: Any) -> Capture:
    """A context manager that records the attention calls of `model` into the folder `out`.

    model: a diffusers pipeline or transformer, a transformers model with sdpa attention, any module,
    or None: every call in the block. Options, all by name:

    layers, steps, heads   "0,3-7", "8-", "0-39:5", "all", a number or a list; heads: one range
    kinds                  all, self, cross, joint, or a list of these
    branch                 cond (default), uncond, both, or a list of names: what to record
    branches               the names, where they are not [uncond; cond] in a batch or cond, uncond in
                           separate forwards: one a batch item, or one a forward of a step
    guidance               batch | forwards, for models that are not known
    values, rows           store v and `rows` rows of the result, to check the capture by
    model, prompt, negative_prompt, tokenizer, tokens, text_valid, grid, text, kind, axes, q_state,
    head_offset, extra     facts, where the model does not tell or tells otherwise; tokens and
                           text_valid: for all branches, or a dict by branch
    modules                of a model that is not known: a regular expression for the names of its
                           attention modules
    force                  replace the capture in `out`
    quiet                  nothing on standard error

    Raises CaptureError where something cannot be recorded truthfully.
    """
    known = {f.name for f in Options.__dataclass_fields__.values()}
    odd = sorted(set(options) - known)
    if odd:
        raise CaptureError(f"capture: unknown option {odd[0]} (known: {', '.join(sorted(known))})")
    return Capture(model, out, Options(**options))


def record(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: str | os.PathLike[str],
    /,
    *,
    mask: torch.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    step: int = 0,
    layer: int = 0,
    timestep: float | None = None,
    **options: Any,
) -> torch.Tensor:
    """Computes one attention call, records it in the folder `out` and returns its result.

    q [B, H, Nq, d] or [H, Nq, d]; options as for capture(). A capture that is in the folder is added
    to, unless force=True replaces it; a step, layer and kind that it holds already is refused.
    """
    more = {"enable_gqa": True} if enable_gqa else {}
    cap = capture(None, out, **options)
    cap._adds = True
    with cap:
        cap._bare = [step, layer, timestep]
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=is_causal, scale=scale, **more
        )
