"""The page of `attnscope figure`, opened from a disk in Chromium. Usage: test_figure.py PROGRAM FOLDER PLAIN_ROWS
WRITTEN_NUMBERS;
exits with 77 where there is no Chromium. Its pictures stay in FOLDER."""

import base64
import json
import os
import struct
import subprocess
import sys
import unittest

from browser import chromium
from figure_edges import FigureEdgeTest  # these tests are run with those below
from figure_hand import FigureHandTest
from figure_page import FOLDER, FigurePage, attnscope, read_npy
from hostile_words import HOSTILE, name_hostile_words
from plain_capture import write_call

PLAIN_ROWS, WRITTEN_NUMBERS = map(os.path.abspath, sys.argv[3:5])


class FigureTest(FigurePage):
    """The contents of the page."""

    def test_rows_are_those_of_the_reference(self):
        self.show("map.html")
        for number in (0, 17, 767):
            self.compare(self.row(number), self.expected_row(number))
        self.check_quiet()

    def test_numbers_are_written_as_in_pictures_and_windows(self):
        self.show("map.html")
        expected = json.loads(subprocess.run([WRITTEN_NUMBERS], capture_output=True, text=True, check=True).stdout)
        self.browser.run("""window.written = (bits) => bits.map((word) => {
          const view = new DataView(new ArrayBuffer(8));
          view.setBigUint64(0, BigInt('0x' + word));
          const value = view.getFloat64(0);
          return [word, numberWords(value), numberWords(value, 2), shareWords(value)];
        })""")
        for begin in range(0, len(expected), 500):
            part = expected[begin:begin + 500]
            self.assertEqual(self.browser.run(f"window.written({json.dumps([each[0] for each in part])})"), part)
        self.check_quiet()

    def test_types_that_are_stored(self):
        for dtype in ("f16", "f32"):
            attnscope("synth", "--grid", "3x5x7", "--text", "none", "--kinds", "sink,temporal", "--head-dim", 40, "--dtype",
                      dtype, "-o", dtype, "--force")
            attnscope("figure", dtype, "--layers", 0, "--heads", 1, "-o", dtype + ".html", "--force")
            self.show(dtype + ".html")
            self.assertEqual(self.browser.run("window.attnscope.facts.dtype"), dtype)
            for number in (0, 60, 104):
                self.compare(self.row(number), self.expected_row(number, capture=dtype))
        self.check_quiet()

    def test_other_scores(self):
        for score in ("sigmoid", "linear:elu1", "linear:relu"):
            attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--score", score, "-o", "score.html", "--force")
            self.show("score.html")
            row = self.row(300)
            self.compare(row, self.expected_row(300, "--score", score))
            self.assertEqual(self.browser.run("window.attnscope.entry(300, 299)")["weight"], row[299])
            # Sigmoids are not normalised, so that there is no LSE to tell.
            self.browser.run("window.attnscope.pick(300).then(() => true)")
            said = self.browser.run("document.querySelector('.row p').textContent")
            self.assertEqual("LSE" in said, score != "sigmoid", said)
            self.check_quiet()

    def test_bits_are_those_of_plain_kernels(self):
        self.show("map.html")
        with open(os.path.join(FOLDER, "map.html"), encoding="utf-8") as file:
            page = file.read()
        for name in "qk":
            text = page.split(f'id="data-{name}">')[1].split("<")[0]
            with open(os.path.join(FOLDER, name + ".bin"), "wb") as file:
                file.write(base64.b64decode(text))
        for number in (0, 17, 400, 767):
            done = subprocess.run([PLAIN_ROWS, "q.bin", "k.bin", "bf16", "768", "768", "64", str(number), "plain.bin"],
                                  cwd=FOLDER, check=False)
            if done.returncode == 77:
                self.skipTest("this build has no kernels without fused multiply-adds")
            self.assertEqual(done.returncode, 0)
            with open(os.path.join(FOLDER, "plain.bin"), "rb") as file:
                expected = struct.unpack("<768f", file.read())
            self.assertEqual(self.row(number), list(expected))

    def test_entries_and_texels_are_those_of_the_rows(self):
        self.show("map.html")
        row = self.row(100)
        for key in (0, 99, 100, 767):
            entry = self.browser.run(f"window.attnscope.entry(100, {key})")
            self.assertEqual(entry["weight"], row[key])
        texels = self.browser.run("window.attnscope.texels(3, 12, 1, 5, 2).then((v) => Array.from(v))")
        block = [self.row(12 * 8 + r)[40:56] for r in range(8)]
        for col in range(2):
            part = [v for line in block for v in line[8 * col:8 * col + 8]]
            self.assertAlmostEqual(texels[col] / max(part), 1, delta=2e-5)
            self.assertAlmostEqual(texels[2 + col] / (sum(part) / 64), 1, delta=2e-5)

    def test_cuts_keep_the_weights_of_the_whole_map(self):
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--rows", "96:", "--cols", "10:500", "-o", "cut.html", "--force")
        self.show("cut.html")
        self.compare(self.row(4), self.expected_row(100)[10:500])
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--stride", 5, "-o", "stride.html", "--force")
        self.show("stride.html")
        self.compare(self.row(20), self.expected_row(100)[::5])
        self.check_quiet()

    def test_hand_and_light(self):
        self.show("map.html")
        self.browser.keep_picture("figure-light.png")
        before = self.browser.run("window.attnscope.view.scale")
        for _ in range(12):
            self.browser.wheel(300, 400, -240)
        self.browser.until(f"window.attnscope.view.scale > {100 * before}")
        before = self.browser.run("document.querySelector('.picked').textContent")
        self.browser.click(300, 400)
        self.browser.until(f"document.querySelector('.picked').textContent !== {json.dumps(before)}")
        self.browser.move(310, 410)
        self.browser.until("document.querySelector('.tip').textContent.includes('weight ')")
        self.browser.until("window.attnscope.idle()")
        self.browser.keep_picture("figure-light-zoomed.png")
        self.browser.set_dark(True)
        self.browser.until("window.attnscope.idle()")
        self.browser.keep_picture("figure-dark.png")
        self.browser.set_dark(False)
        self.check_quiet()

    def test_a_style_is_that_of_all_readers(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        grounds = {}
        for style in ("reader", "dark", "paper"):
            attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--style", style, "-o", "styled.html", "--force")
            for dark in (False, True):
                self.browser.set_dark(dark)
                self.show("styled.html")
                grounds[style, dark] = self.browser.run(ground)
        self.browser.set_dark(False)
        white, black = grounds["reader", False], grounds["reader", True]
        self.assertNotEqual(white, black)
        self.assertEqual([grounds["paper", dark] for dark in (False, True)], [white, white])
        self.assertEqual([grounds["dark", dark] for dark in (False, True)], [black, black])
        self.check_quiet()

    def test_hostile_texts_stay_texts(self):
        hostile = HOSTILE
        attnscope("synth", "--grid", "4x4x4", "--text", "16@start", "--kinds", "text", "-o", "hostile", "--force")
        name_hostile_words(os.path.join(FOLDER, "hostile"), hostile, [[hostile, "</title><b>"] + ["word"] * 14])
        attnscope("figure", "hostile", "--layers", 0, "--heads", 0, "-o", "hostile.html", "--force")
        with open(os.path.join(FOLDER, "hostile.html"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("<img", text)
        self.assertNotIn("\u2028", text)
        self.show("hostile.html")
        self.browser.run("window.attnscope.pick(5).then(() => true)")
        self.assertEqual(self.browser.run("document.querySelector('.prompt').textContent"), "prompt: " + hostile)
        self.assertEqual(self.browser.run("document.querySelector('.words bdi').textContent"), hostile)
        self.assertEqual(self.browser.run("document.images.length"), 0)
        self.assertNotEqual(self.browser.run("document.title"), "1")
        self.check_quiet()

    def test_masks_are_those_of_the_capture(self):
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--mask", "causal", "-o", "causal.html", "--force")
        self.show("causal.html")
        row = self.row(100)
        self.assertTrue(all(v == 0 for v in row[101:]))
        self.compare(row, self.expected_row(100, "--mask", "causal"))

    def test_refusals(self):
        self.assertIn("one head, and 2 are selected", attnscope("figure", "plain", "-o", "no.html", fails=2))
        self.assertIn("must end in .html", attnscope("figure", "plain", "--heads", 0, "-o", "no.png", fails=2))
        self.assertIn("--rows", attnscope("figure", "plain", "--heads", 0, "--rows", "9:900", "-o", "no.html", fails=2))
        attnscope("synth", "--preset", "hunyuanvideo", "--heads", 1, "--kinds", "spatial", "-o", "large", "--force", "--quiet")
        said = attnscope("figure", "large", "-o", "no.html", fails=2)
        self.assertIn("--stride 3", said)
        attnscope("figure", "large", "--stride", 3, "--dry-run", "-o", "no.html")
        attnscope("export", "plain", "--heads", 0, "-o", "maps.h5", "--force", "--quiet")
        self.assertIn("an export has no queries", attnscope("figure", "maps.h5", "-o", "no.html", fails=2))
        attnscope("synth", "--grid", "4x4x4", "--text", "none", "--kinds", "sink", "--steps", 2, "--layers", 3, "-o", "many", "--force")
        for words, count in (((), 6), (("--layers", 1), 2), (("--steps", 1), 3)):
            self.assertIn(f"and {count} are selected", attnscope("figure", "many", *words, "-o", "no.html", fails=2))
        self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("no.")], [])

    def test_refusals_of_what_a_page_does_not_carry(self):
        numbers = [(7 * i % 11 - 5) / 4 for i in range(24)]
        tensors = {"q": ([1, 1, 6, 4], numbers), "k": ([1, 1, 6, 4], numbers[::-1])}
        biased = {**tensors, "mask": ([6, 6], [i % 5 / 8 for i in range(36)])}
        write_call(os.path.join(FOLDER, "biased.safetensors"), biased, {})
        said = attnscope("figure", "biased.safetensors", "-o", "no.html", fails=2)
        self.assertIn("adds biases to logits, which a page does not carry", said)
        said = attnscope("figure", "biased.safetensors", "--dry-run", "-o", "no.html", fails=2)
        self.assertIn("adds biases", said)
        signed = {**tensors, "normaliser": ([1, 1, 6], [4] * 6)}
        write_call(os.path.join(FOLDER, "signed.safetensors"), signed, {"score": "linear:normaliser"})
        said = attnscope("figure", "signed.safetensors", "-o", "no.html", fails=2)
        self.assertIn("either sign", said)
        # Biases that only mask are a mask.
        masked = {**tensors, "mask": ([6, 6], [0 if i % 6 <= i // 6 else float("-inf") for i in range(36)])}
        write_call(os.path.join(FOLDER, "masked.safetensors"), masked, {})
        attnscope("figure", "masked.safetensors", "-o", "masked.html", "--force")
        self.show("masked.html")
        self.assertEqual([v == 0 for v in self.row(2)], [False] * 3 + [True] * 3)
        self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("no.")], [])

    def test_a_stride_is_told_and_leaves_no_gaps(self):
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--stride", 5, "-o", "stride.html", "--force")
        self.show("stride.html")
        self.browser.run("window.attnscope.pick(20).then(() => true)")
        self.browser.keep_picture("figure-stride.png")
        self.assertIn("One key in 5 is here", self.browser.run("document.querySelector('.note').textContent"))
        self.assertIn("one in 5", self.browser.run("document.querySelector('.cut').textContent"))
        # Each cell's middle has a colour of the map; what is left out by --cols has none.
        cells = """(() => {
          const film = document.querySelector('.film'), data = film.getContext('2d').getImageData(0, 0, film.width, film.height).data;
          const [frames, h, w] = window.attnscope.facts.keys.film.grid;
          const none = getComputedStyle(document.documentElement).getPropertyValue('--none').trim();
          const found = [];
          for (let t = 0; t < frames; ++t) for (let y = 0; y < h; ++y) for (let x = 0; x < w; ++x) {
            const [px, py] = window.attnscope.filmPlace(t, y, x).map((v) => Math.floor(v * devicePixelRatio));
            const at = 4 * (py * film.width + px);
            const hex = '#' + [0, 1, 2].map((i) => data[at + i].toString(16).padStart(2, '0')).join('');
            found.push(hex === none ? 0 : 1);
          }
          return found;
        })()"""
        bare = [at for at, is_there in enumerate(self.browser.run(cells)) if not is_there]
        self.assertEqual(bare, [])
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--cols", "100:300", "--stride", 3, "-o", "stride.html", "--force")
        self.show("stride.html")
        self.browser.run("window.attnscope.pick(20).then(() => true)")
        there = [at for at, is_there in enumerate(self.browser.run(cells)) if is_there]
        self.assertEqual((there[0], there[-1], len(there)), (100, 299, 200))

    def test_sizes(self):
        names = json.loads(attnscope("figure", "plain", "--layers", 0, "--heads", 1, "-o", "again.html", "--force", "--json",
                                     "--quiet"))
        size = os.path.getsize(os.path.join(FOLDER, "again.html"))
        self.assertEqual(names["bytes"], size)
        rows = 768
        carried = 4 * (2 * rows * 64 * 2 + rows * 12 + 2 * 384 * 384 * 2) / 3
        self.assertLess(size - carried, 500_000)
        said = attnscope("figure", "plain", "--heads", 1, "-o", "again.html", fails=1)
        self.assertIn("again.html", said)


if __name__ == "__main__":
    del sys.argv[1:5]
    os.makedirs(FOLDER, exist_ok=True)
    if chromium() is None:
        print("skipped: no chromium on the path")
        sys.exit(77)
    unittest.main()
