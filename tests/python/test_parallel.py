"""Models that several processes run: each records its part, and joined these are the capture of one process.

The processes are real, started by torchrun, and exchange what they have over gloo as diffusers has them do;
parallel_runs.py tells what is answered for the CPU. Ring attention needs a kernel that tells the log-sum-exp,
which PyTorch has none of for the CPU: there a plain one stands in, the exchange is diffusers' own.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import torch

import attnscope_capture
import parallel_runs
import script_options
import small_models
from attnscope_capture import SequenceShard, WholeCall, capture, dispatched_call
from support import CaptureTest, Recorded, has_program, output_error, program, read_call, read_capture

RUNS = Path(__file__).with_name("parallel_runs.py")
TWO = (
    "flux:ulysses_degree=2",
    "flux:ring_degree=2",
    "flux:tp",
    "kontext:ulysses_degree=2",
    "odd:ulysses_degree=2,ulysses_anything=1",
    "odd:ring_degree=2,ring_anything=1",
    "flux2:ulysses_degree=2,ulysses_anything=1",
    "qwen:ulysses_degree=2",
    "qwen:tp",
    "holes:ulysses_degree=2",
    "wan:ulysses_degree=2",
    "wan:ring_degree=2",
    "wan_image:ulysses_degree=2",
    "ltx:ulysses_degree=2",
    "ltx:ring_degree=2",
    "ltx2:ulysses_degree=2,ulysses_anything=1",
)
FOUR = ("flux:ring_degree=2,ulysses_degree=2",)


def launch(processes: int, out: Path, cases: tuple[str, ...]) -> None:
    """torchrun of the cases; raises with what it said where one fails."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    run = subprocess.run(
        [*torchrun, str(RUNS), str(out), *cases],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-8000:]


def by_place(call: Recorded) -> str:
    """The facts that tell a call from all others, as JSON."""
    return json.dumps([call.facts.get(k) for k in ("step", "layer", "kind", "slot", "branches")])


def folder_calls(folder: Path) -> list[Recorded]:
    return [read_call(f) for f in sorted(folder.glob("*.safetensors"))]


class Processes(unittest.TestCase):
    """Cases that run once for all tests."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        launch(2, cls.folder, TWO)
        launch(4, cls.folder, FOUR)
        for name in sorted({case.partition(":")[0] for case in TWO}):
            parallel_runs.run_case(f"{name}:one", cls.folder)

    def whole(self, case: str) -> list[Recorded]:
        """The parts of the case, joined."""
        out = self.folder / f"{case}-whole"
        program("convert", "--stitch", self.folder / case, "-o", out, "--force", "--quiet")
        return folder_calls(out)

    def check_whole(self, case: str) -> None:
        """The joined capture is that of one process: facts, places, masks, and values as far as the model's own
        rounding goes, which multiplies matrices of other sizes; of each process' values to the bit."""
        one = read_capture(self.folder / (case.partition(":")[0] + ":one"))
        one, joined = ({by_place(c): c for c in calls} for calls in (one, self.whole(case)))
        self.assertEqual(set(joined), set(one))
        for name, call in joined.items():
            expected = one[name]
            self.assertEqual(set(call.tensors), set(expected.tensors))
            for tensor, values in expected.tensors.items():
                got = call[tensor]
                self.assertEqual((got.dtype, got.shape), (values.dtype, values.shape), (name, tensor))
                rounding = 5e-6 if values.is_floating_point() else 0
                self.assertTrue(torch.allclose(got, values, rounding, rounding), (name, tensor))
            for facts in (call.facts, expected.facts):
                facts.pop("extra", None)  # how the kernel was reached
            self.assertEqual(call.facts, expected.facts)
            self.assertLess(output_error(call), 1e-5)
        for part in (c for calls in self.parts(case) for c in calls):
            self.check_places(part, joined[by_place(part)])
        verified = json.loads(program("verify", self.folder / f"{case}-whole", "--json").stdout)
        self.assertEqual({c["verdict"] for c in verified["calls"]}, {"agrees"})

    def check_places(self, part: Recorded, whole: Recorded) -> None:
        """The part's values stand in the whole where it says."""
        first = part.facts.get("head_offset", 0)
        heads = slice(first, first + part["q"].shape[1])
        queries = part.facts["part"].get("queries", [[0, whole["q"].shape[2]]])
        keys = part.facts["part"].get("keys", queries)
        for name, ranges in (("q", queries), ("k", keys), ("v", keys)):
            stands = [whole[name][:, heads, start : start + count] for start, count in ranges]
            self.assertTrue(torch.equal(torch.cat(stands, 2), part[name]), (part.file, name))

    @unittest.skipUnless(has_program(), "no program")
    def test_joined_parts_are_the_capture_of_one_process(self) -> None:
        for case in (*TWO, *FOUR):
            with self.subTest(case):
                self.check_whole(case)

    def parts(self, case: str) -> list[list[Recorded]]:
        folders = sorted((self.folder / case).iterdir())
        parts = [read_capture(f) for f in folders]
        self.assertEqual(
            [[c.facts["part"]["rank"] for c in calls] for calls in parts],
            [[rank] * len(calls) for rank, calls in enumerate(parts)],
        )
        self.assertEqual({c.facts["part"]["ranks"] for calls in parts for c in calls}, {len(parts)})
        # All processes agree on a name of the run, which is that of no other.
        (run,) = {c.facts["part"]["run"] for calls in parts for c in calls}
        self.assertNotIn(run, {p.facts["part"]["run"] for p in folder_calls(self.other(case))})
        return parts

    def other(self, case: str) -> Path:
        return self.folder / next(c for c in TWO if c != case) / "rank-0-of-2"

    def test_text_and_picture_are_split_apart(self) -> None:
        for case in ("flux:ulysses_degree=2", "flux:ring_degree=2"):
            first, second = (calls[0].facts for calls in self.parts(case))
            self.assertEqual(first["part"]["queries"], [[0, 4], [8, 12]])
            self.assertEqual(second["part"]["queries"], [[4, 4], [20, 12]])
            self.assertEqual(second["part"]["whole"], {"grid": "1x4x6", "text": "8@start"})
            # The part's own order, as the process has it.
            self.assertEqual([(s["name"], s["count"]) for s in second["queries"]], [("text", 4), ("video", 12)])
        ranges = [c[0].facts["part"]["queries"] for c in self.parts("odd:ring_degree=2,ring_anything=1")]
        self.assertEqual(ranges, [[[0, 4], [7, 13]], [[4, 3], [20, 12]]])
        # A reference stands behind the image in the stream that is split.
        ranges = [c[0].facts["part"]["queries"] for c in self.parts("kontext:ulysses_degree=2")]
        self.assertEqual(ranges, [[[0, 4], [8, 16]], [[4, 4], [24, 16]]])

    def test_all_processes_share_both_splits(self) -> None:
        parts = self.parts(FOUR[0])
        self.assertEqual(
            [calls[0].facts["part"]["queries"] for calls in parts],
            [[[2 * r, 2], [8 + 6 * r, 6]] for r in range(4)],
        )
        self.assertEqual({c["q"].shape[1] for calls in parts for c in calls}, {4})

    def test_keys_that_nobody_exchanges_are_whole(self) -> None:
        for case, calls in (("wan:ulysses_degree=2", 2), ("wan_image:ulysses_degree=2", 4)):
            cross = [c for c in self.parts(case)[1] if c.facts["kind"] == "cross" and c.facts["layer"] == 0]
            self.assertEqual(len(cross), calls)
            for call in cross:
                self.assertEqual(call.facts["part"]["queries"], [[24, 24]])
                self.assertEqual(call.facts["part"]["keys"], [[0, call["k"].shape[2]]])
                self.assertLess(output_error(call), 1e-5)  # its rows are whole

    def test_what_is_not_split_is_whole(self) -> None:
        """LTX-2's audio, which every process has, and exchanges as well."""
        first, second = (
            {c.facts["slot"]: c for c in calls if c.facts.get("branches") == ["cond"] and c.facts["layer"] == 1}
            for calls in self.parts("ltx2:ulysses_degree=2,ulysses_anything=1")
        )
        self.assertEqual(first["attn1"].facts["part"]["queries"], [[0, 12]])
        for part in (p[slot] for p in (first, second) for slot in ("audio_attn1", "audio_attn2")):
            self.assertNotIn("queries", part.facts["part"])
            self.assertEqual(part["q"].shape[2], 10)
            self.assertLess(output_error(part), 1e-5)
        keys = [part["attn2"].facts["part"]["keys"] for part in (first, second)]
        self.assertEqual(keys, [[[0, 4]], [[4, 3]]])

    def test_tensor_parallelism_splits_heads(self) -> None:
        first, second = self.parts("flux:tp")
        self.assertEqual([c.facts.get("head_offset", 0) for c in first], [0] * 4)
        self.assertEqual([c.facts["head_offset"] for c in second], [2] * 4)
        for call in (*first, *second):
            self.assertNotIn("queries", call.facts["part"])
            self.assertEqual(call.facts["grid"], "1x4x6")
            self.assertLess(output_error(call), 1e-5)

    @unittest.skipUnless(has_program(), "no program")
    def test_program_on_a_part_and_on_all(self) -> None:
        dump = self.folder / "flux:ulysses_degree=2"
        self.assertIn("rank 1 of 2, queries 4-7, 20-31", program("info", dump / "rank-1-of-2").stdout)
        for path in (dump, dump / "rank-1-of-2"):
            self.assertIn(f"convert --stitch {dump}", program("stats", path, code=1).stderr)
        # Heads of all tokens are maps as they are.
        program("verify", self.folder / "flux:tp" / "rank-1-of-2")

    @unittest.skipUnless(has_program(), "no program")
    def test_ranks_of_two_runs(self) -> None:
        mixed = self.folder / "mixed"
        mixed.mkdir()
        for rank, case in enumerate(("flux:ulysses_degree=2", "flux:ring_degree=2")):
            name = f"rank-{rank}-of-2"
            (mixed / name).symlink_to(self.folder / case / name)
        said = program("convert", "--stitch", mixed, "-o", self.folder / "no", code=1).stderr
        self.assertRegex(said, "part: is of run [0-9a-f]{32}, .* of run [0-9a-f]{32}")


class OneProcess(CaptureTest):
    """The rank that a process records, and the parts of calls that other processes would have."""

    def run_wan(self, **options: object) -> None:
        small = small_models.wan()
        with capture(small.pipe, self.folder / "d", layers=0, **options):
            small.run(1)

    def test_rank_of_torchrun_and_of_the_option(self) -> None:
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"}):
            self.run_wan()
            calls = read_capture(self.folder / "d" / "rank-1-of-2")
            self.assertEqual({str(c.facts["part"]) for c in calls}, {str({"rank": 1, "ranks": 2, "run": "x"})})
            self.assertNotIn("--stitch", self.said.getvalue())  # the first rank tells it
            self.run_wan(rank=(0, 1))
        self.assertNotIn("part", read_capture(self.folder / "d")[0].facts)
        self.run_wan(rank=(2, 3))
        part = read_capture(self.folder / "d" / "rank-2-of-3")[0].facts["part"]
        self.assertEqual(part, {"rank": 2, "ranks": 3})
        self.run_wan(rank=(0, 3))
        self.assertIn(f"{self.folder / 'd'}: attnscope convert --stitch", self.said.getvalue())
        with mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "1"}):
            self.run_wan(force=True)
        for rank in ((2, 2), (-1, 2), 3, ("0", 2), (0, 1, 2)):
            with self.refused("rank: expected", "such as"):
                self.run_wan(rank=rank)
        with mock.patch.dict(os.environ, {"RANK": "one", "WORLD_SIZE": "2"}), self.refused("RANK=one"):
            self.run_wan()

    def test_rank_of_the_scripts(self) -> None:
        options = script_options.parser("", families=["wan"])
        args = options.parse_args(["--rank", "1/2"])
        self.assertEqual(script_options.capture_options(args)["rank"], (1, 2))
        said = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(said):
            options.parse_args(["--rank", "1"])
        self.assertIn("--rank: expected R/N, such as 0/2 (got '1')", said.getvalue())

    def split(self, two_streams: bool, tokens: int, here: int, facts: dict[str, str]) -> object:
        """The ranges of process 1 of 3, whose `here` tokens are a part of `tokens`."""
        q = torch.empty(1, 2, tokens, 4, device="meta")
        shard = SequenceShard(1, 3, False, two_streams)
        whole = attnscope_capture.Call(q, q, q, q, None, 0.0, False, None)
        call = WholeCall(whole, "attn", shard, (here, here), (True, True))
        return call.part(facts, "joint" if "text" in facts else "self")[1].facts["part"]["queries"]

    def test_sequences_of_several_segments(self) -> None:
        """Imitated shapes: where text stands before or behind the video, in classes of both kinds."""
        for text, ranges in (("6@start", [[2, 2], [10, 4]]), ("6@end", [[4, 4], [14, 2]])):
            facts = {"grid": "1x3x4", "text": text}
            self.assertEqual(self.split(True, 18, 6, facts), ranges)
            with self.refused("which tokens of (text|video), (text|video)", "grid= nor text="):
                self.split(False, 18, 6, facts)
        self.assertEqual(self.split(False, 18, 6, {}), [[6, 6]])
        with self.refused("7 tokens that are split by themselves are no multiple of 3 processes"):
            self.split(True, 18, 6, {"grid": "1x1x11", "text": "7@start"})
        with self.refused("holds 5 tokens, and its part of 18 is 6"):
            self.split(False, 18, 5, {})
        with self.refused("temporal attention split over processes"):
            self.split(False, 18, 6, {"axes": "temporal"})

    def test_models_of_transformers_that_are_split(self) -> None:
        from transformers import LlamaConfig, LlamaModel

        sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 9}
        model = LlamaModel(LlamaConfig(num_hidden_layers=1, attn_implementation="sdpa", **sizes)).eval()
        model._tp_size = 2  # what loading it with tp_plan="auto" leaves
        with torch.no_grad(), self.refused("transformers splits its heads", "head_offset="):
            with capture(model, self.folder / "d"):
                model(input_ids=torch.ones(1, 5, dtype=torch.long), use_cache=False)
        with torch.no_grad(), capture(model, self.folder / "e", head_offset=2):
            model(input_ids=torch.ones(1, 5, dtype=torch.long), use_cache=False)
        self.assertEqual(read_capture(self.folder / "e")[0].facts["head_offset"], 2)

    def exchanged(self, mask: object, ring: int = 1, causal: bool = False) -> attnscope_capture.Call:
        config = types.SimpleNamespace(ring_degree=ring, ulysses_degree=2)
        parallel = types.SimpleNamespace(context_parallel_config=config)
        q = torch.randn(1, 6, 2, 4)
        given = {"query": q, "key": q, "value": q, "attn_mask": mask, "is_causal": causal}
        return dispatched_call("native", {**given, "_parallel_config": parallel}, q)

    def test_masks_of_calls_that_are_split(self) -> None:
        """Imitated calls: what the dispatcher's backends are given where processes exchange keys."""
        mask = torch.arange(6)[None] < 4
        for given in (mask, mask[:, None, None]):
            call = self.exchanged(given)
            self.assertTrue(torch.equal(call.mask, mask[:, None, None]))
            self.assertTrue(call.exchanged)
        self.assertEqual(self.exchanged(torch.ones(1, 1, 1, 1, dtype=torch.bool)).mask.shape, (1, 1, 1, 6))
        for other in (torch.ones(1, 1, 6, 6, dtype=torch.bool), torch.ones(1, 1, 1, 12, dtype=torch.bool)):
            with self.refused("a mask of each one's own keys", "in one process"):
                self.exchanged(other)
        # A ring gives all keys the mask of the queries' own process.
        self.assertIsNone(self.exchanged(torch.ones(1, 6, dtype=torch.bool), ring=2).mask)
        self.assertIsNone(self.exchanged(torch.zeros(1, 1, 1, 6), ring=2).mask)
        with self.refused("ring attention masks the keys of all processes"):
            self.exchanged(mask, ring=2)
        with self.refused("causal attention split over processes"):
            self.exchanged(None, causal=True).check("attn1")


if __name__ == "__main__":
    unittest.main()
