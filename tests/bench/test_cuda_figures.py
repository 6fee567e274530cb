"""bench/cuda_figures.py: what it reads of the program's tables, and what it makes of them."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(FOLDER))
import cuda_figures as figures

TABLE = """\
attnscope: note: something else
device   kernel            product  launches    grid  threads  registers  shared  blocks/SM  warps %  waves  splits     ms  us/launch  TFLOP/s  GB/s  remark
0 A GPU  row sums          mma             4  12x11x1      128        168   66560          2       12   0.50      11  2.000     500.00      500  1500  -
0 A GPU  combine rows      -               4  12x1x1       128         40       0         16      100   0.01       -  1.000     250.00        -   100  idle: 120 of 132 SMs
1 A GPU  copy to the host  -               2        -        -          -       -          -        -      -       -  5.000    2500.00        -  2e+01  -
attnscope: note: afterwards
"""


class Reading(unittest.TestCase):
    def test_lines(self):
        lines = figures.read_table(TABLE)
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[0]["kernel"], "row sums")
        self.assertEqual(lines[0]["grid"], "12x11x1")
        self.assertEqual(lines[0]["TFLOP/s"], 500)
        self.assertIsNone(lines[0]["remark"])
        self.assertEqual(lines[1]["remark"], "idle: 120 of 132 SMs")
        self.assertIsNone(lines[2]["grid"])
        self.assertEqual(lines[2]["GB/s"], 20)

    def test_no_table(self):
        with self.assertRaisesRegex(ValueError, "no table of launches in: attnscope: x"):
            figures.read_table("attnscope: x\n")


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.lines = figures.read_table(TABLE)

    def test_sums(self):
        self.assertAlmostEqual(figures.milliseconds(self.lines, ["row sums", "combine"]), 3)
        self.assertAlmostEqual(figures.rate_of(self.lines, ["row sums"], "TFLOP/s"), 500)
        # 3 GB in 2 ms and 0.1 GB in 1 ms.
        rate = figures.rate_of(self.lines, ["row sums", "combine"], "GB/s")
        self.assertAlmostEqual(rate, 3.1e9 / 3e-3 / 1e9)
        self.assertIsNone(figures.rate_of(self.lines, ["logits"], "GB/s"))
        # Copies launch no blocks.
        self.assertAlmostEqual(figures.idle_launches(self.lines), 1 / 3)

    def test_rows(self):
        samples = figures.Samples()
        for gemm in (90, 100, 400):
            samples.add("gemm", gemm)
        samples.add("copy", 50)
        samples.add("17776x64 lse", 0.002)
        samples.add("17776x64 lse kernels", 0.001)
        samples.add("17776x64 sdpa", 0.003)
        samples.add("17776x64 weights", 0.0316)
        flops = 2 * 17776**2 * 64
        self.assertEqual(
            figures.pass_row(samples, "17776x64", "lse", "LSE pass"),
            ["17776x64: LSE pass", "1", f"{flops / 1e-3 / 1e12:.3g}", "40 %", "2"],
        )
        size = figures.weight_bytes(17776)
        self.assertEqual(
            figures.copy_row(samples, "17776x64", "weights", "weights", size)[2:],
            [f"{size / 0.0316 / 1e9:.3g}", "40 %"],
        )
        # A figure that was not measured is a dash, or has no row at all.
        self.assertEqual(
            figures.pass_row(samples, "17776x64", "pyramid", "blocks")[1:], ["-", "-", "-", "-"]
        )
        self.assertEqual(
            figures.peer_rows(samples, "17776x64"),
            [["17776x64: SDPA forward (computes P·V too)", "3", "1", "3.00"]],
        )

    def test_markdown(self):
        self.assertEqual(
            figures.markdown(["", "ms"], [["a", "1"]]), "|  | ms |\n|---|---|\n| a | 1 |"
        )


class Program(unittest.TestCase):
    def test_without_a_gpu_it_is_one_line(self):
        run = subprocess.run(
            [sys.executable, str(FOLDER / "cuda_figures.py"), "attnscope"],
            capture_output=True,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, "")
        self.assertRegex(run.stderr, r"^cuda_figures: torch (is not installed|sees no CUDA device)\n$")

    @unittest.skipUnless(os.environ.get("ATTNSCOPE_CUDA_MODULE"), "no emulated module in this build")
    def test_on_the_emulation(self):
        program = os.environ["ATTNSCOPE"]
        entries = 300 * 300
        for case, kernels in (
            ("lse", ["row sums", "combine rows"]),
            ("pyramid", ["row sums", "reductions"]),
            ("tile", ["row sums", "entries"]),
            ("weights", ["row sums", "entries"]),
            ("export", ["row sums", "entries"]),
        ):
            with self.subTest(case):
                results, lines = figures.bench(program, "300x16", case, 2, threads=1)
                self.assertEqual(len(results), 2 if case == "export" else 1)
                for name, seconds in results.items():
                    self.assertTrue(name.startswith("S=300 d=16 "), name)
                    self.assertGreater(seconds, 0)
                for kernel in kernels + ["copy to the device", "copy to the host"]:
                    self.assertGreater(figures.milliseconds(lines, [kernel]), 0, kernel)
                if case in ("tile", "weights", "lse"):
                    # Of a tile, the row sums come once, before.
                    runs = 1 if case == "tile" else 2
                    flops = figures.amount(lines, ["row sums"], "TFLOP/s", 1e12)
                    expected = runs * 2 * entries * 16
                    # The table has four digits of the rate and microseconds of the time.
                    self.assertAlmostEqual(flops / expected, 1, delta=2e-3)

    @unittest.skipUnless(os.environ.get("ATTNSCOPE_CUDA_MODULE"), "no emulated module in this build")
    def test_what_the_program_refuses_is_told(self):
        with self.assertRaisesRegex(RuntimeError, "attnscope: --head 300y16: expected tokens"):
            figures.bench(os.environ["ATTNSCOPE"], "300y16", "lse", 1)


if __name__ == "__main__":
    unittest.main()
