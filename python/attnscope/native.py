"""The compiled part, attnscope._native, and how it is told to compute."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import engine_error, make_error

try:
    from . import _native
except ImportError as error:
    raise ImportError(
        f"attnscope's compiled part is not here ({error}); from a clone, `scripts/setup python` and `pip install .` "
        "build it (docs/install.md). attnscope.capture works without it"
    ) from error

if TYPE_CHECKING:
    from ._native import Engine

__version__ = _native.version()
PROGRAMS = Path(__file__).resolve().parent / "bin"

_native.set_error_maker(engine_error)
_native.set_program(os.fspath(PROGRAMS / "attnscope"))
# The CUDA module, where the wheel was built with it: looked for beside the host's program otherwise.
if "ATTNSCOPE_CUDA_MODULE" not in os.environ and (PROGRAMS / "attnscope_cuda.so").exists():
    os.environ["ATTNSCOPE_CUDA_MODULE"] = os.fspath(PROGRAMS / "attnscope_cuda.so")

ENGINE_OPTIONS = ("memory", "threads", "backend", "vram", "tf32")


@functools.lru_cache(maxsize=8)
def _engine(memory: str, threads: int, backend: str, vram: str, tf32: bool) -> Engine:
    return _native.Engine(memory, threads, backend, vram, tf32)


def engine(
    memory: str | int | None = None,
    threads: int | None = None,
    backend: str = "auto",
    vram: str | int | None = None,
    tf32: bool = False,
) -> Engine:
    """As the command line's --memory --threads --backend --vram --tf32 say. One that is asked for again is the
    same."""
    if threads is not None and not 1 <= threads <= 4096:
        raise make_error(f"threads {threads}: expected 1 to 4096", "usage")
    return _engine(
        "" if memory is None else str(memory),
        threads or 0,
        backend,
        "" if vram is None else str(vram),
        bool(tf32),
    )


def free_memory() -> int:
    """Bytes that this process can still take."""
    return int(_native.available_memory())


def take_engine(options: dict[str, Any]) -> Engine:
    """The engine that the options say, which it takes out of them."""
    return engine(**{name: options.pop(name) for name in ENGINE_OPTIONS if name in options})


def word(value: Any) -> str:
    """An option's value as the command line writes it: (7, 12, 12) is "7,12,12", range(3, 8) "3-7"."""
    if isinstance(value, range) and value.step == 1 and len(value) > 0:
        return f"{value.start}-{value.stop - 1}"
    if isinstance(value, (list, tuple, range, set, frozenset)):
        return ",".join(str(item) for item in value)
    return str(value)


def selection_word(name: str, value: Any) -> tuple[str, str]:
    """A selection option as the command line has it: from_ is --from, pick=[(3, 1), "12.7"] is --pick 3.1,12.7."""
    if name == "from_":
        return "from", os.fspath(value)
    if name == "pick" and not isinstance(value, str):
        return name, ",".join(_picked(item) for item in value)
    return name, word(value)


def _picked(item: Any) -> str:
    """A head of pick=: (layer, head), (step, layer, head) or a word such as "refiner.0/attn.1"."""
    if isinstance(item, str):
        return item
    if isinstance(item, tuple) and len(item) == 2:
        return f"{item[0]}.{item[1]}"
    if isinstance(item, tuple) and len(item) == 3:
        return f"{item[0]}:{item[1]}.{item[2]}"
    # 3.10 would be head 1.
    raise make_error(f'pick: expected "3.1", (layer, head) or (step, layer, head) (got {item!r})', "usage")
