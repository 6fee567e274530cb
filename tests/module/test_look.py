"""look(): pipelines that run and show what they look at, and what ends them; show() and words() of captures."""

import contextlib
import io
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

import attnscope
from attnscope.budgets import size_of
from attnscope.capture import CaptureError, capture, recorder
from look_models import MODELS, Small
from reference import GRID, SAMPLE, TEXT, logits, sample_head, softmax
from test_show import InNotebook, page_of

torch.set_num_threads(1)
NAMES = ["a", "red", "dog", "runs", "on", "sand", "</s>", "</s>", "</s>"]
WITHOUT_WORDS = ("hunyuan15",)  # classes whose token strings the recorder does not know


class LookTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.said = io.StringIO()
        quiet = contextlib.redirect_stderr(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        self.real = F.scaled_dot_product_attention
        self.addCleanup(self.check_restored)

    def check_restored(self) -> None:
        self.assertIs(F.scaled_dot_product_attention, self.real)
        self.assertFalse(recorder._ACTIVE.locked())

    def look(self, small: Small, **options: Any) -> Any:
        small.pipe.set_progress_bar_config(disable=True)
        given = {"num_inference_steps": 3, "out": self.folder / "dump", **small.arguments, **options}
        record = {"tokens": NAMES[: small.text], "prompt": "a red dog", **given.pop("record", {})}
        return attnscope.look(small.pipe, None, record=record, **given)


class Pipelines(LookTest):
    def test_every_family_shows_what_a_capture_of_it_has(self) -> None:
        for name, make in MODELS.items():
            with self.subTest(name):
                small = make()
                words = None if name in WITHOUT_WORDS else ["red", "dog"]
                run = lambda s=small: s.run(3)  # noqa: E731
                plain = run()
                found = self.look(
                    small, words=words, out=self.folder / name, generator=torch.Generator().manual_seed(7),
                    return_dict=False,
                )  # fmt: skip
                self.assertTrue(torch.equal(found.result[0], plain))  # the model computes the same
                self.assertEqual({call.step for call in found.capture}, {1})
                self.assertEqual(len(found.report.heads), sum(len(call) for call in found.capture))
                self.assertEqual(sum(found.report.classes.values()), len(found.report.heads))
                self.assertTrue(found.report.stands_out)
                self.assertRegex(repr(found), rf"^<Look at {name}: \d+ heads \(.*\); stand out by .*>$")
                self.assertNotIn("\n", repr(found))
                if words is not None:
                    self.check_words(found, words, small.grid)

    def check_words(self, found: Any, words: list[str], grid: tuple[int, int, int]) -> None:
        self.assertEqual(list(found.words), words)
        heads = [
            head for call in found.capture for head in call
            if call.tokens and call.grid and tuple(call.grid) == tuple(grid)
        ]  # fmt: skip
        self.assertEqual(found.words.heads, len(heads))
        for word, volume in found.words.items():
            expected = np.mean([head.query(text_token=word, reverse=True) for head in heads], 0, dtype=np.float64)
            self.assertEqual(volume.shape, tuple(grid))
            np.testing.assert_allclose(volume, expected, rtol=1e-5)

    def test_frames_lie_under_the_words_and_the_page_is_saved(self) -> None:
        small = MODELS["cogvideox"]()
        frames = [Image.new("RGB", (96, 64), (20 * n, 0, 0)) for n in range(9)]
        base = type(small.pipe)

        class Finished(base):  # type: ignore[misc, valid-type]
            def __call__(self, **given: Any) -> Any:
                result = super().__call__(**given)
                result.frames = [frames]
                return result

        Finished.__name__ = base.__name__
        small.pipe.__class__ = Finished
        found = self.look(small, words="red")
        self.assertEqual(len(list((self.folder / "dump").glob("frame*.png"))), 3)
        self.assertEqual(found.words._repr_html_().count("<img"), 6)
        saved = found.save(self.folder / "page.html")
        self.assertEqual(saved.read_text(), found.report.page)
        with self.assertRaisesRegex(attnscope.Error, "is there already"):
            found.save(saved)
        with self.assertRaisesRegex(attnscope.Error, "nothing is written into a capture"):
            found.save(self.folder / "dump" / "page.html")
        with self.assertRaisesRegex(attnscope.Error, "must end in .html"):
            found.save(self.folder / "page.pdf")
        with InNotebook() as notebook:
            found.display()
        (shown,) = notebook.shown
        self.assertIn("<b>red</b>", shown["text/html"])
        self.assertEqual(page_of(shown), found.report.page)


class Budgets(LookTest):
    def test_fewer_modules_where_the_disk_has_no_room_for_all(self) -> None:
        small = MODELS["cogvideox"]()
        whole = self.look(small, out=self.folder / "whole", record={"values": False})
        size = sum(path.stat().st_size for path in (self.folder / "whole").glob("*.safetensors"))
        self.assertEqual([call.layer for call in whole.capture], [0, 1, 2])
        some = self.look(small, out=self.folder / "some", disk=f"{size // 2048}KiB", record={"values": False})
        self.assertEqual([call.layer for call in some.capture], [1])
        self.assertIn("one in 2 of 3 attention modules is recorded", self.said.getvalue())

    def test_a_call_that_has_no_room_at_all_ends_the_run_at_once(self) -> None:
        small = MODELS["cogvideox"]()
        with self.assertRaisesRegex(attnscope.Error, "look: the first call takes .*more than disk=1.0 KiB") as raised:
            self.look(small, disk="1KiB")
        self.assertEqual(raised.exception.code, "resource")

    def test_calls_wait_for_the_disk_within_the_memory(self) -> None:
        small = MODELS["cogvideox"]()
        waiting: list[int] = []
        real = recorder.Writer.put

        def put(writer: Any, job: Any) -> None:
            waiting.append(writer.waiting)
            real(writer, job)

        with mock.patch.object(recorder.Writer, "put", put):
            found = self.look(small, memory="64MiB", layers="all", steps="all")
            self.assertEqual(len(found.capture), 9)
            with mock.patch("attnscope.looks.size_of", lambda text, name: 1 if name == "memory" else 1 << 30):
                with contextlib.suppress(attnscope.Error):  # nothing is measured in so little
                    self.look(small, layers="all", steps="all", out=self.folder / "small")
        self.assertEqual(max(waiting[9:]), 0)
        self.assertEqual(len(attnscope.open(self.folder / "small")), 9)

    def test_sizes(self) -> None:
        self.assertEqual([size_of(t, "x") for t in ("1.5KiB", "2 GiB", "3M", 7)], [1536, 2 << 30, 3 << 20, 7])
        for wrong in ("", "x", "0", -1, "1 PB"):
            with self.assertRaisesRegex(attnscope.Error, "disk: expected a size"):
                size_of(wrong, "disk")


class Ends(LookTest):
    def ended(self, error: BaseException, **options: Any) -> None:
        small = MODELS["cogvideox"]()

        def callback(pipe: Any, step: int, timestep: Any, given: Any) -> Any:
            if step == 1:
                raise error
            return given

        with self.assertRaises(type(error)):
            self.look(small, steps="all", callback_on_step_end=callback, **options)
        self.check_restored()

    def test_an_error_and_ctrl_c_leave_a_capture_that_opens(self) -> None:
        for number, error in enumerate((KeyError("x"), KeyboardInterrupt())):
            out = self.folder / f"d{number}"
            self.ended(error, out=out)
            self.assertEqual({call.step for call in attnscope.open(out)}, {0, 1})
            told = f"{type(error).__name__}: what was recorded stays there: attnscope.open("
            self.assertIn(told, self.said.getvalue())
        self.ended(KeyError("x"), out=None)
        place = self.said.getvalue().rpartition("attnscope.open(")[2].strip().strip("')")
        self.assertEqual(len(attnscope.open(place)), 6)

    def test_what_cannot_be_meant_is_one_line_before_the_model_runs(self) -> None:
        small = MODELS["cogvideox"]()
        folders = set(Path(tempfile.gettempdir()).glob("attnscope-look-*"))
        for words, options in (
            ("layers: expected numbers", {"layers": "x"}),
            ("the model has layers 0 to 2", {"layers": "7"}),
            ("is no option of capture", {"record": {"layer": 1}}),
            ("disk: expected a size", {"disk": "much"}),
            ("words: expected words", {"words": [1]}),
            ("words: expected words", {"words": []}),
        ):
            with self.subTest(words), mock.patch.object(small.pipe.transformer, "forward", side_effect=AssertionError):
                with self.assertRaisesRegex((attnscope.Error, CaptureError), words) as raised:  # type: ignore[arg-type]
                    self.look(small, out=None, **options)
                self.assertNotIn("\n", str(raised.exception))
                self.check_restored()
        small.pipe.transformer.to("meta")
        with self.assertRaisesRegex(attnscope.Error, "transformer has weights on the device meta"):
            self.look(small, out=None)
        with self.assertRaisesRegex(CaptureError, "has no transformer"):
            attnscope.look(object())
        self.assertEqual(set(Path(tempfile.gettempdir()).glob("attnscope-look-*")), folders)  # nothing is left

    def test_a_second_look_while_one_runs_is_one_line(self) -> None:
        small = MODELS["cogvideox"]()
        seen: list[str] = []

        def callback(pipe: Any, step: int, timestep: Any, given: Any) -> Any:
            with self.assertRaisesRegex(CaptureError, "another capture is running") as raised:
                self.look(small, out=None)
            seen.append(str(raised.exception))
            return given

        found = self.look(small, callback_on_step_end=callback)
        self.assertEqual(len(seen), 3)
        self.assertFalse(any("\n" in line for line in seen))
        self.assertEqual(len(found.capture), 3)

    def test_a_model_that_is_captured_already(self) -> None:
        small = MODELS["cogvideox"]()
        with contextlib.suppress(CaptureError), capture(small.pipe, self.folder / "own", quiet=True):
            with self.assertRaisesRegex(CaptureError, "another capture is running"):
                self.look(small, out=None)

    def test_a_word_that_is_not_there_costs_no_capture(self) -> None:
        with self.assertRaisesRegex(attnscope.Error, "cat"):
            self.look(MODELS["cogvideox"](), words="cat")
        self.assertEqual(len(attnscope.open(self.folder / "dump")), 3)


class Captures(LookTest):
    def setUp(self) -> None:
        super().setUp()
        self.cap = attnscope.open(SAMPLE, cache=str(self.folder))

    def test_words_are_those_of_float64(self) -> None:
        words = self.cap.words(["red", "blue"], layers=2, heads="0-1")
        self.assertEqual(words.heads, 2)
        names = self.cap[10, 2].tokens[0]
        for word, volume in words.items():
            columns = [n for n, name in enumerate(names) if name.strip("▁Ġ</w>") == word]
            expected = np.zeros(GRID)
            for head in (0, 1):
                given = sample_head(2, head)
                weights, _ = softmax(logits(given["q"], given["k"]))
                expected += weights[TEXT:, columns].sum(1).reshape(GRID) / 2
            np.testing.assert_allclose(volume, expected, rtol=1e-3, atol=1e-7)

    def test_words_of_the_prompt_and_what_has_none(self) -> None:
        words = self.cap.words(layers=2)
        self.assertIn("red", words)
        self.assertIn("moving", words.left_out)  # it stands there twice
        self.assertNotIn("\n", repr(words))
        self.assertEqual(words._repr_html_().count("<b>"), len(words))
        self.assertEqual(words._repr_html_().count("<img"), 14 * len(words))  # over the frames
        self.assertTrue(words.show().save(self.folder / "words.html").read_text().startswith("<!DOCTYPE html>"))
        with self.assertRaisesRegex(attnscope.Error, "green"):
            self.cap.words("green")
        q = np.random.default_rng(0).standard_normal((2, 24, 8)).astype(np.float32)
        np.savez(self.folder / "qk.npz", q=q, k=q)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(attnscope.Error, "no call has words"):
                attnscope.open(self.folder / "qk.npz").words("red")

    def test_show_is_the_page_of_the_command(self) -> None:
        page = self.folder / "page.html"
        attnscope.command("report", SAMPLE, quiet=True, out=page, sample=64)
        shown = self.cap.show(sample=64)
        self.assertEqual(shown.page, page.read_text())
        self.assertEqual(len(shown.heads), 16)
        self.assertEqual(shown.stands_out[0]["rule"], "temporal_score")
        with InNotebook() as notebook:
            self.cap.show(sample=64, height=500)
        self.assertEqual(page_of(notebook.shown[0]), page.read_text())
        self.assertIn("height:500px", notebook.shown[0]["text/html"])
        for options in ({"height": 1}, {"layers": "9"}, {"sampel": 3}, {"out": "page.html"}):
            with self.assertRaises(attnscope.Error) as raised:
                self.cap.show(**options)
            self.assertNotIn("\n", str(raised.exception))

    def test_options_replace_those_it_was_opened_with_and_closed_it_shows_nothing(self) -> None:
        with attnscope.open(SAMPLE, memory="2GiB", layout="bhsd") as cap:
            self.assertEqual(len(cap.report(sample=8, memory="1GiB", layers=2).heads), 4)
        for ask in (cap.show, lambda: cap.words("red")):
            with self.assertRaisesRegex(attnscope.Error, "is closed"):
                ask()

    def test_volumes_and_tables(self) -> None:
        volume = self.cap[10, 2].head(0).query(3, 8, 7)
        shown = volume.show()
        self.assertRegex(repr(shown), r"^<Volume 7 × 12 × 12: sum 0\.\d+, largest 0\.\d+ at \(\d, \d+, \d+\)>$")
        self.assertEqual(shown.save(self.folder / "film.png").read_bytes(), volume._repr_png_())
        stats = self.cap.stats(sample=8)
        self.assertEqual(stats._repr_html_().count("<tr>"), 17)
        self.assertIsInstance(stats["entropy"], np.ndarray)
        self.assertNotIsInstance(stats["entropy"], type(stats))
        self.assertIsInstance(stats["entropy"].mean(), np.float64)
        self.assertEqual(stats[stats["layer"] == 2]._repr_html_().count("<tr>"), 5)
        self.assertEqual(self.cap._repr_html_().count("<tr>"), 5)
        self.assertIn("<td>joint</td>", self.cap[10, 2]._repr_html_())
        self.assertIn("<th>recall</th>", self.cap[10, 2].head(0).mask("spatial:frames=1")._repr_html_())


if __name__ == "__main__":
    unittest.main()
