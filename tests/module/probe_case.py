"""Shared by the tests of probes: a folder, calls, and equality with captures."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import attnscope
from attnscope.capture import recorder

# Children of a fork have none of the threads that PyTorch's OpenMP would wait for.
torch.set_num_threads(1)

PRODUCTS = ["stats", "pooled:16", "mask:spatial:frames=1", "mask:topk:keep=0.1"]
ARRAYS = ["frame_frame", "offset_kernel", "entropy_rows"]


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


class ProbeTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "metrics.h5"
        self.said = io.StringIO()
        quiet = contextlib.redirect_stderr(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        self.real = F.scaled_dot_product_attention
        self.addCleanup(self.check_restored)

    def check_restored(self) -> None:
        self.assertIs(F.scaled_dot_product_attention, self.real)
        self.assertFalse(recorder._ACTIVE.locked())

    def child(self, run: Any) -> int:
        """How a process of its own ends that runs `run`: its exit code, or minus the signal."""
        process = os.fork()
        if process == 0:
            code = 1
            try:
                run()
                code = 0
            except KeyboardInterrupt:
                code = 130
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def call(self, heads: int = 2, tokens: int = 40, seed: int = 0) -> None:
        """One attention call of a grid 2×4×5."""
        make = torch.Generator().manual_seed(seed)
        q, k, v = (torch.randn(1, heads, tokens, 16, generator=make) for _ in range(3))
        F.scaled_dot_product_attention(q, k, v)

    def probe(self, out: Path | None = None, products: Any = "stats", **options: Any) -> Any:
        return attnscope.probe(None, out or self.out, products, grid=(2, 4, 5), **options)

    def check_equal(self, table: attnscope.Metrics, cap: Any, options: dict[str, Any], run: int = 0) -> None:
        """Everything of a run is what the capture's calls have, with the same bits."""
        expected, found = cap.stats(**options), table.stats()
        found = found[found["run"] == table.runs[run]["run"]]
        self.assertGreater(len(expected), 0)
        for name in expected.dtype.names:
            self.assertTrue(same(expected[name], found[name]), name)
        masks = table.masks() if any(p.startswith("mask") for p in table.options["products"]) else None
        names = [] if table.options["arrays"] is None else table.options["arrays"].split(",")
        for call in cap:
            records = call.records(**options, arrays=names)
            for number, head in enumerate(call):
                place = (call.step, call.layer, head.branch, call.kind, call.slot)
                (mine,) = (c for c in table.calls if (c.step, c.layer, c.branch, c.kind, c.slot) == place)
                at = (run, mine.batch.index(head.batch), mine.heads.index(head.number))
                for name in names:
                    self.assertTrue(same(records[number]["arrays"][name], mine.arrays[name][at]), name)
                if masks is None:
                    continue
                for pool, values in zip(mine.pooled(16), head.pooled(16), strict=True):
                    self.assertTrue(same(values, pool[at]))
                for place, word in enumerate(mine.labels["mask_recall"]["sparse_mask"]):
                    for name, value in head.mask(word).as_dict().items():
                        if name != "mask":
                            got = mine.arrays[f"mask_{name}"][at][place]
                            self.assertTrue(same(np.nan if value is None else value, got), (word, name))
