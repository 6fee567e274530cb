"""A dump can be opened while it grows, and everything is as it was afterwards, whatever happens."""

import json
import os
import threading
import unittest
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F

import attnscope_capture
import small_models
from attnscope_capture import capture
from support import WRITER, CaptureTest, has_program, program, read_capture


class Growing(CaptureTest):
    def test_every_state_of_the_catalogue_is_whole(self) -> None:
        """Reads what another process would see, after each change of the folder."""
        small = small_models.wan()
        states: list[int] = []
        real = attnscope_capture.replace_file
        out = self.folder / "d"

        def watched(path: Path, write) -> None:  # type: ignore[no-untyped-def]
            real(path, write)
            if (out / "capture.json").exists():
                root = json.loads((out / "capture.json").read_text())
                states.append(len(root["calls"]))
                for entry in root["calls"]:
                    self.assertTrue((out / entry["file"]).exists())

        with mock.patch.object(WRITER, "replace_file", watched), capture(small.pipe, out):
            small.run(2)
        self.assertEqual(sorted(set(states)), list(range(1, 9)))
        self.assertEqual([p for p in out.iterdir() if p.suffix == ".part"], [])

    def test_thousands_of_calls_are_listed_in_time_that_grows_with_them(self) -> None:
        """Not after each one, where the next ones wait, and all of them in the end."""
        q = torch.randn(1, 1, 4, 4)
        texts: list[str] = []
        real = attnscope_capture.replace_file

        def counted(path: Path, write) -> None:  # type: ignore[no-untyped-def]
            real(path, write)
            if path.name == "capture.json":
                texts.append(path.read_text())

        calls = 700
        with (
            mock.patch.object(WRITER, "replace_file", counted),
            mock.patch.object(os, "fsync", lambda handle: None),
            capture(None, self.folder / "d", values=False, quiet=True),
        ):
            for _ in range(calls):
                F.scaled_dot_product_attention(q, q, q)
        listed = [len(json.loads(text)["calls"]) for text in texts]
        self.assertEqual(listed[:256], list(range(1, 257)))
        self.assertEqual((listed[-1], listed), (calls, sorted(set(listed))))
        self.assertLess(len(listed), 600)

    @unittest.skipUnless(has_program(), "ATTNSCOPE names no program")
    def test_the_program_opens_a_growing_dump(self) -> None:
        small = small_models.cogvideox()
        seen = []
        real = attnscope_capture.Writer.write_catalogue

        def watched(writer) -> None:  # type: ignore[no-untyped-def]
            real(writer)
            seen.append(program("info", self.folder / "d").stdout.count("joint attention calls"))

        with mock.patch.object(attnscope_capture.Writer, "write_catalogue", watched):
            with capture(small.pipe, self.folder / "d", layers=0):
                small.run(3)
        self.assertEqual(len(seen), 3)

    def test_an_interrupted_run_keeps_what_was_recorded(self) -> None:
        for kind in (KeyboardInterrupt, ValueError):
            small = small_models.cogvideox()
            block = small.pipe.transformer.transformer_blocks[1]
            runs = []

            def stop(module, args, runs=runs, kind=kind):  # type: ignore[no-untyped-def]
                runs.append(1)
                if len(runs) == 2:
                    raise kind("in the middle of step 1")

            hook = block.register_forward_pre_hook(stop)
            out = self.folder / kind.__name__
            with self.assertRaises(kind), capture(small.pipe, out):
                small.run(3)
            hook.remove()
            self.assertEqual(
                [(c.facts["step"], c.facts["layer"]) for c in read_capture(out)],
                [(0, 0), (0, 1), (0, 2), (1, 0)],
            )
            self.check_untouched(small)
            with capture(small.pipe, self.folder / (kind.__name__ + "2"), steps=0):
                small.run(1)

    def check_untouched(self, small: small_models.Small) -> None:
        self.check_restored()
        transformer = small.pipe.transformer
        for module in transformer.modules():
            for hooks in (
                module._forward_pre_hooks,
                module._forward_hooks,
                module._forward_hooks_always_called,
            ):
                self.assertEqual(len(hooks), 0)
        self.assertNotIn("cache_context", vars(transformer))
        self.assertNotIn("encode_prompt", vars(small.pipe))
        self.assertFalse(any(t.name == "attnscope-writer" for t in threading.enumerate()))

    def test_everything_is_restored(self) -> None:
        small = small_models.wan(two=True)
        with capture(small.pipe, self.folder / "d", steps=0):
            small.run(2)
        self.check_untouched(small)
        self.assertNotIn("cache_context", vars(small.pipe.transformer_2))

    def test_somebody_elses_function_is_left_alone(self) -> None:
        real = F.scaled_dot_product_attention

        def other(*args, **more):  # type: ignore[no-untyped-def]
            return real(*args, **more)

        q = torch.randn(1, 1, 3, 4)
        try:
            with capture(None, self.folder / "d"):
                F.scaled_dot_product_attention(q, q, q)
                F.scaled_dot_product_attention = other
            self.assertIs(F.scaled_dot_product_attention, other)
        finally:
            F.scaled_dot_product_attention = real

    def test_the_model_waits_for_a_slow_disk(self) -> None:
        """The queue is bounded: no more calls wait in memory than it holds."""
        q = torch.randn(1, 1, 3, 4)
        gate = threading.Semaphore(0)
        real, done = WRITER.save_call, []

        def slow(*args, **more):  # type: ignore[no-untyped-def]
            gate.acquire()
            return real(*args, **more)

        def run() -> None:
            for _ in range(12):
                F.scaled_dot_product_attention(q, q, q)
                done.append(1)

        with mock.patch.object(WRITER, "save_call", slow):
            with capture(None, self.folder / "d"):
                thread = threading.Thread(target=run)
                thread.start()
                thread.join(1)
                self.assertTrue(thread.is_alive())
                self.assertLessEqual(len(done), attnscope_capture.QUEUED_CALLS + 2)
                for _ in range(12):
                    gate.release()
                thread.join(20)
                self.assertFalse(thread.is_alive())
        self.assertEqual(len(read_capture(self.folder / "d")), 12)


class Pictures(CaptureTest):
    def captured(self, small: small_models.Small) -> attnscope_capture.Capture:
        with capture(small.pipe, self.folder / "d", steps=0, layers=0) as cap:
            small.run(1)
            with self.refused("after the with-block"):
                cap.add_video(torch.zeros(9, 8, 8, 3))
        return cap

    def test_frames_belong_to_latent_frames(self) -> None:
        from PIL import Image

        small = small_models.cogvideox()
        cap = self.captured(small)
        video = torch.arange(9)[:, None, None, None].expand(9, 4, 5, 3) * 20.0 / 255
        for form in (video, video.numpy(), (video * 255).round().byte(), video.permute(0, 3, 1, 2)):
            cap.add_video(form)
            frames = json.loads((self.folder / "d" / "capture.json").read_text())["frames"]
            self.assertEqual([f["t"] for f in frames], [0, 1, 2])
            shades = [Image.open(self.folder / "d" / f["file"]).getpixel((0, 0)) for f in frames]
            # Frame 0; the third of frames 1 to 4; the third of frames 5 to 8.
            self.assertEqual(shades, [(0, 0, 0), (60, 60, 60), (140, 140, 140)])
        with self.refused("13 frames are 4 latent frames", "the capture has 3"):
            cap.add_video(torch.zeros(13, 4, 4, 3))
        cap.add_video(torch.zeros(3, 4, 4, 3), frames_per_latent=1)
        with self.refused("expected"):
            cap.add_video(torch.zeros(3, 4, 4, 2))
        with mock.patch.dict("sys.modules", {"PIL": None}), self.refused("pip install"):
            cap.add_video(video)

    def test_every_model_tells_its_factor(self) -> None:
        for factor, frames, tokens in ((4, 49, 13), (4, 129, 33), (8, 161, 21), (6, 163, 28), (1, 16, 16)):
            places = attnscope_capture.latent_frames(frames, tokens, factor)
            self.assertEqual([0 if p == 0 else (p - 1) // factor + 1 for p in places], list(range(tokens)))
        # CogVideoX 1.5: 81 frames are 21 latent frames; one is put in front to make pairs.
        places = attnscope_capture.latent_frames(81, 11, 4, 2)
        self.assertEqual(len(places), 11)
        self.assertEqual([((0 if p == 0 else (p - 1) // 4 + 1) + 1) // 2 for p in places], list(range(11)))
        for name, factor in (("cogvideox", 4), ("wan", 4), ("hunyuan", 4), ("ltx", 8), ("mochi", 6)):
            small = small_models.FAMILIES[name]()
            family = attnscope_capture.FAMILIES[type(small.pipe.transformer).__name__]
            self.assertEqual(attnscope_capture.frames_per_latent(small.pipe, family), factor)
            self.assertEqual(attnscope_capture.frames_per_latent(small.pipe.transformer, family), factor)

    def test_one_picture(self) -> None:
        from PIL import Image

        small = small_models.flux()
        cap = self.captured(small)
        cap.add_video(Image.new("RGB", (8, 6), (1, 2, 3)))
        frames = json.loads((self.folder / "d" / "capture.json").read_text())["frames"]
        self.assertEqual(frames, [{"file": "frame000.png", "t": 0}])
        if has_program():
            self.assertNotIn("missing", program("info", self.folder / "d").stderr)


if __name__ == "__main__":
    unittest.main()
