"""Harm that a library must not do its host: copy, hold the lock, take signals, mix up libraries, hang after fork."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import attnscope
from reference import SAMPLE, check_weights, logits, random_heads, softmax


def python(code: str, *arguments: object) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert run.returncode == 0, (code, run.stdout, run.stderr)
    return run.stdout


class Imports(unittest.TestCase):
    def test_importing_the_package_imports_nothing_else(self) -> None:
        self.assertEqual(
            python(
                "import sys, attnscope; print([m for m in ('numpy', 'torch', 'attnscope._native') if m in sys.modules])"
            ),
            "[]\n",
        )

    def test_no_torch_is_needed(self) -> None:
        code = (
            "import sys; sys.modules['torch'] = None\n"
            "import attnscope, numpy as np\nq = np.eye(4, dtype='f4'); print(attnscope.weights(q, q).sum())"
        )
        self.assertAlmostEqual(float(python(code)), 4.0, places=5)

    def test_beside_h5py_and_torch_in_either_order(self) -> None:
        """Two HDF5 libraries in one process; ours is asked through a helper process for files, theirs reads them."""
        mine = (
            "import attnscope, sys\ncap = attnscope.open(sys.argv[1], check=False)\n"
            "w = cap[0, 0].head(0).weights([3])\n"
        )
        theirs = (
            "import h5py, torch\nimport numpy as np\nwith h5py.File('FILE') as f: q = f['q'][:]\n"
            "p = torch.softmax(torch.from_numpy(q[0, 0]).double() @ torch.from_numpy(q[0, 0]).double().T / 4, 1)\n"
        )
        import h5py

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "qk.h5"
            q = random_heads((1, 1, 20, 16)).astype(np.float32)
            with h5py.File(file, "w") as f:
                f["q"], f["k"] = q, q
            check = "import numpy as np; assert abs(w[0] - p[3].numpy()).max() < 1e-5; print('good')"
            other = theirs.replace("FILE", str(file))
            for code in (mine + other + check, other + mine + check):
                self.assertEqual(python(code, file), "good\n")

    def test_no_symbol_of_the_libraries_inside_is_shown(self) -> None:
        from attnscope import native

        run = subprocess.run(
            ["nm", "-D", "--defined-only", native._native.__file__],
            capture_output=True,
            text=True,
            check=True,
        )
        names = [line.split()[-1].split("@")[0] for line in run.stdout.splitlines()]
        self.assertEqual(names, ["PyInit__native"])


class Signals(unittest.TestCase):
    def test_handlers_are_the_hosts(self) -> None:
        before = {
            number: signal.getsignal(number)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGXFSZ, signal.SIGPIPE)
        }
        code = (
            "import ctypes, os, signal, sys\n"
            "def taken():\n"
            "    return [l for l in open('/proc/self/status') if l.startswith(('SigCgt', 'SigIgn', 'SigBlk'))]\n"
            "import numpy as np\nbefore = taken()\n"
            "import attnscope\nattnscope.open(sys.argv[1]).stats(sample=10)\n"
            "assert taken() == before, (before, taken())\nprint('as they were')"
        )
        self.assertEqual(python(code, SAMPLE), "as they were\n")
        attnscope.open(SAMPLE)
        self.assertEqual(before, {number: signal.getsignal(number) for number in before})

    def test_ctrl_c_ends_a_computation(self) -> None:
        """Minutes of work, of which a signal leaves nothing after a moment."""
        # A process that is started in the background ignores the signal, and Python then leaves it so.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        q = random_heads((40_000, 64)).astype(np.float32)
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        begin = time.monotonic()
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            attnscope.call(q, q, grid=(4, 100, 100), threads=1, backend="reference").head(0).stats()
        self.assertLess(time.monotonic() - begin, 30)

    def test_what_a_progress_function_raises(self) -> None:
        class Enough(Exception):
            pass

        def stop(share: float) -> None:
            raise Enough(share)

        q = random_heads((40_000, 64)).astype(np.float32)
        with self.assertRaises(Enough):
            attnscope.call(q, q, threads=1, backend="reference").head(0).pooled(64, progress=stop)

    def test_progress_comes_to_its_end(self) -> None:
        shares: list[float] = []
        q = random_heads((3000, 64)).astype(np.float32)
        attnscope.call(q, q, threads=1, backend="reference").head(0).pooled(64, progress=shares.append)
        self.assertEqual(shares[-1], 1.0)
        self.assertEqual(shares, sorted(shares))


class Bars(unittest.TestCase):
    def test_with_tqdm_and_without(self) -> None:
        from attnscope.progress import Reporter

        for absent in ({}, {"tqdm.auto": None}):
            shown = io.StringIO()
            with mock.patch.dict(sys.modules, absent), contextlib.redirect_stderr(shown):
                with Reporter("stats", True) as report:
                    report(0.25)
                    report(0.5)
            self.assertRegex(shown.getvalue(), r"stats.*25")
            self.assertRegex(shown.getvalue(), r"stats.*50")
        with Reporter("stats", False) as report:
            self.assertIsNone(report)
        with contextlib.redirect_stderr(io.StringIO()), Reporter("stats", None) as report:
            self.assertIsNone(report)


class Threads(unittest.TestCase):
    def test_the_lock_is_given_up(self) -> None:
        """Another thread counts while one computes."""
        q = random_heads((4000, 64)).astype(np.float32)
        done = threading.Event()
        counted = [0]

        def count() -> None:
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)

        counter = threading.Thread(target=count)
        counter.start()
        begin = time.monotonic()
        attnscope.call(q, q, threads=1, backend="reference").head(0).pooled(64)
        seconds = time.monotonic() - begin
        done.set()
        counter.join()
        self.assertGreater(seconds, 0.2)
        self.assertGreater(counted[0], 50 * seconds)

    def test_many_threads_at_once(self) -> None:
        q = random_heads((8, 500, 32)).astype(np.float32)
        expected = attnscope.weights(q, q)
        head = attnscope.open(SAMPLE)[10, 2].head(1)
        row = head.weights([4])
        wrong: list[object] = []

        def work(number: int) -> None:
            try:
                for _ in range(5):
                    np.testing.assert_array_equal(attnscope.weights(q[number], q[number]), expected[number])
                    np.testing.assert_array_equal(head.weights([4]), row)
            except BaseException as error:  # noqa: BLE001 - told by the test
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_after_a_fork(self) -> None:
        """The parent has computed, and has asked its helper process for an HDF5 file."""
        code = (
            "import os, sys, numpy as np, attnscope\n"
            "q = np.eye(50, 16, dtype='f4')\n"
            "cap = attnscope.open(sys.argv[1], check=False)\n"
            "w = attnscope.weights(q, q); r = cap[0, 0].head(0).weights()\n"
            "child = os.fork()\n"
            "ok = (attnscope.weights(q, q) == w).all() and (cap[0, 0].head(0).weights() == r).all()\n"
            "ok = ok and (attnscope.open(sys.argv[1], check=False)[0, 0].head(0).weights() == r).all()\n"
            "if child == 0: os._exit(0 if ok else 1)\n"
            "print(ok and os.waitpid(child, 0)[1] == 0)"
        )
        import h5py

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "qk.h5"
            with h5py.File(file, "w") as f:
                f["q"] = f["k"] = random_heads((1, 1, 20, 16)).astype(np.float32)
            self.assertEqual(python(code, file), "True\n")


class Memory(unittest.TestCase):
    def test_nothing_is_copied(self) -> None:
        """Of 2 × 256 MiB, a few rows: what the process grows by is far less than one of them."""
        code = (
            "import resource, numpy as np, attnscope\n"
            "q = np.random.default_rng(0).standard_normal((1 << 20, 64), np.float32); k = q[::-1]\n"
            "attnscope.weights(q[:100], k[:100])\n"
            "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
            "before = peak()\n"
            "w = attnscope.weights(q, k, rows=[5, 1 << 19], memory='64MiB')\n"
            "assert w.shape == (2, 1 << 20)\n"
            "print(peak() - before)"
        )
        self.assertLess(float(python(code)), 130)

    def test_a_result_is_its_callers(self) -> None:
        q = random_heads((60, 8)).astype(np.float32)
        w = attnscope.weights(q, q)
        self.assertTrue(w.flags.writeable and w.flags.c_contiguous)
        expected = softmax(logits(q, q))[0]
        del q
        check_weights(w, expected, 60)

    def test_a_head_keeps_its_arrays(self) -> None:
        q = random_heads((60, 8)).astype(np.float32)
        head = attnscope.call(q.copy(), q.copy()).head(0)
        junk = [np.ones((60, 8), np.float32) for _ in range(200)]
        check_weights(head.weights(), softmax(logits(q, q))[0], 60)
        self.assertEqual(len(junk), 200)


if __name__ == "__main__":
    unittest.main()
