"""The page of `attnscope figure` at its edges: narrow maps, few weights, long numbers, other buttons, other screens."""

import os
import xml.etree.ElementTree

from figure_hand import FigureHands
from figure_page import FOLDER, attnscope
from pictures import read_png
from plain_capture import write_call

TITLE = "tiny-cogvideox: CogVideoX of a size that a test can hold, layer 0"


def numbers_of(count):
    return [(7 * i % 23 - 11) / 8 for i in range(count)]


class FigureEdgeTest(FigureHands):
    def figure(self, name, queries, keys, *more, mask=None):
        """A page of one head with so many queries and keys."""
        tensors = {"q": ([1, 1, queries, 4], numbers_of(4 * queries)), "k": ([1, 1, keys, 4], numbers_of(4 * keys))}
        if mask:
            tensors["mask"] = ([queries, keys], mask)
        write_call(os.path.join(FOLDER, name + ".safetensors"), tensors, {})
        attnscope("figure", name + ".safetensors", "-o", name + ".html", "--force", *more)
        self.show(name + ".html")

    def follow(self, words):
        self.browser.open("about:blank")
        self.browser.until("window.attnscope === undefined")
        self.browser.open("file://" + os.path.join(FOLDER, "map.html#" + words))
        self.browser.until("window.attnscope && window.attnscope.ready.then(() => true)")
        self.browser.until("window.attnscope.idle()")

    def test_saved_pictures_of_narrow_maps_have_room_for_the_colour_bar(self):
        for queries, keys in ((96, 20), (3000, 8)):
            self.figure("narrow", queries, keys, "--title", TITLE)
            self.browser.run("document.querySelector('[aria-label=\"whole map\"]').click()")
            drawing = xml.etree.ElementTree.fromstring(self.saved("SVG"))
            width = float(drawing.get("viewBox").split()[2])
            self.assertGreaterEqual(width, 300)
            images = [e for e in drawing.iter() if e.tag.endswith("}image")]
            bar = images[-1]
            self.assertGreaterEqual(float(bar.get("width")), 80)
            high = [e for e in drawing.iter() if e.tag.endswith("}text") and "(log)" in (e.text or "")][0]
            self.assertEqual(high.get("text-anchor"), "start")
            self.assertGreaterEqual(float(high.get("x")), float(bar.get("x")) + float(bar.get("width")))
            long = self.browser.run(f"textWidth({high.text!r}, {high.get('font-size')})")
            self.assertLessEqual(float(high.get("x")) + long, width)
            self.assertEqual(read_png(self.saved("PNG"))[0], width)
        self.check_quiet()

    def test_titles_of_saved_pictures_are_whole_where_there_is_room(self):
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--title", TITLE, "-o", "titled.html", "--force")
        self.show("titled.html")
        self.assertIn(TITLE, self.svg_texts()[0])
        self.figure("narrow", 96, 20, "--title", TITLE)
        self.browser.run("document.querySelector('[aria-label=\"whole map\"]').click()")
        self.assertIn(TITLE, " ".join(text or "" for text in self.svg_texts()[0]))

    def test_other_buttons_of_the_mouse_do_nothing(self):
        self.show("map.html")
        self.browser.run("location.hash = 'z=100,300,100,300'")
        self.browser.until("window.attnscope.view.row > 50")
        picked, view = self.ask("picked()"), self.ask("view")
        x, y = self.spot("mapPlace(200, 200)", ".view")
        for button in ("right", "middle"):
            self.browser.click(x, y, button)
            self.browser.drag(x, y, x - 80, y - 60, button)
            self.assertEqual((self.ask("picked()"), self.ask("view")), (picked, view))
        self.browser.drag(x, y, x - 80, y - 60)
        self.assertGreater(self.ask("view.row"), view["row"])
        # A button that was let go where the page was not told drags no further.
        view = self.ask("view")
        self.browser.run(f"""(() => {{
          const send = (kind, x, buttons) => document.querySelector('.view').dispatchEvent(new PointerEvent(kind,
              {{pointerId: 1, pointerType: 'mouse', button: 0, buttons, clientX: x, clientY: {y}}}));
          Element.prototype.setPointerCapture = () => {{}};
          send('pointerdown', {x}, 1);
          send('pointermove', {x} - 50, 0);
        }})()""")
        self.assertEqual(self.ask("view"), view)
        self.check_quiet()

    def test_the_left_ruler_holds_its_numbers_and_strikes_none_through(self):
        self.figure("long", 12000, 400)
        area = self.browser.run("area.x / ratio")
        self.assertGreaterEqual(area - self.browser.run("textWidth('11999', 10)"), 20)
        drawing = self.svg_texts()[1]
        marks = [e for e in drawing.iter() if e.tag.endswith("}text") and e.get("text-anchor") == "end" and float(e.get("x")) < area]
        self.assertGreater(len(marks), 3)
        self.show("map.html")
        self.assertLess(self.browser.run("area.x / ratio"), 44)
        drawing = self.svg_texts()[1]
        lines = [float(e.get("y1")) for e in drawing.iter() if e.tag.endswith("}line") and e.get("y1") == e.get("y2") and float(e.get("x2")) <= 44]
        marks = [e for e in drawing.iter() if e.tag.endswith("}text") and (e.text or "").startswith("y") and e.get("text-anchor") == "end"]
        self.assertTrue(marks and len(lines) >= 4)
        for mark in marks:
            self.assertGreaterEqual(min(abs(float(mark.get("y")) - line) for line in lines), 5, mark.text)

    def test_addresses_of_no_query_leave_the_first_one(self):
        for words in ("q=foo", "q=9000", "q=", "k=", "q=1e2", "q=1,,2"):
            self.follow(words)
            self.assertEqual(self.ask("picked()"), {"at": 488, "isKey": False}, words)
            self.browser.until("document.querySelector('.picked').textContent.startsWith('query 488 ')")
            self.assertIn(words, self.browser.run("document.querySelector('.read').textContent"))
        self.follow("k=7")
        self.assertEqual(self.ask("picked()"), {"at": 7, "isKey": True})
        self.check_quiet()

    def test_another_ratio_of_pixels_shows_what_was_seen(self):
        self.show("map.html")
        self.browser.run("location.hash = 'z=100,300,100,300'")
        self.browser.until("window.attnscope.view.row > 50")
        seen = "area.width / window.attnscope.view.scale"
        before, view = self.browser.run(seen), self.ask("view")
        try:
            for scale in (2, 1.5):
                self.browser.resize(1280, 900, scale)
                self.browser.until(f"devicePixelRatio === {scale}")
                # Of the emulated screen the page is not told each time.
                self.browser.run("window.dispatchEvent(new Event('resize'))")
                self.assertEqual(self.browser.run("ratio"), scale)
                self.assertAlmostEqual(self.browser.run(seen) / before, 1, delta=0.01)
                self.assertAlmostEqual(self.ask("view.row"), view["row"], delta=1)
        finally:
            self.browser.resize(1280, 900)
        self.check_quiet()

    def test_the_film_of_a_stride_has_its_last_cells(self):
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--stride", 6, "-o", "stride.html", "--force")
        self.show("stride.html")
        bare = self.browser.run("rowOf(20).then((v) => Array.from(filmCells(K, v)).filter(Number.isNaN).length)")
        self.assertEqual(bare, 0)
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--cols", "100:302", "--stride", 5, "-o", "stride.html", "--force")
        self.show("stride.html")
        there = self.browser.run("rowOf(20).then((v) => Array.from(filmCells(K, v)).flatMap((x, i) => Number.isNaN(x) ? [] : [i]))")
        self.assertEqual(there, list(range(100, 302)))

    def test_the_frame_of_the_own_cell_is_whole_at_the_film_s_edge(self):
        self.show("map.html")
        self.browser.run("window.attnscope.pick(0).then(() => true)")
        red = self.browser.run("""(() => {
          const film = document.querySelector('.film'), [x, y] = window.attnscope.filmPlace(0, 0, 0).map((v) => Math.floor(v * ratio));
          const data = film.getContext('2d').getImageData(0, y, x, 1).data;
          let found = 0;
          for (let i = 0; i < data.length; i += 4) found += data[i] > 200 && data[i + 1] < 170 && data[i + 2] < 170 ? 1 : 0;
          return found;
        })()""")
        self.assertGreater(red, 0)

    def test_the_table_has_no_weights_of_0(self):
        mask = [0 if key < row else float("-inf") for row in range(12) for key in range(12)]
        self.figure("few", 12, 12, mask=mask)
        for row, caption in ((0, None), (1, "the largest weight"), (3, "the 3 largest weights"), (11, "the 10 largest weights")):
            self.browser.run(f"window.attnscope.pick({row}).then(() => true)")
            self.assertEqual(self.browser.run("document.querySelector('.largest').hidden"), caption is None)
            self.assertEqual(self.browser.run("document.querySelectorAll('.largest tbody tr').length"), min(row, 10))
            if caption:
                self.assertEqual(self.browser.run("document.querySelector('.largest caption').textContent"), caption)
        self.check_quiet()

    def test_after_a_pinch_the_finger_that_stays_moves_the_map(self):
        self.show("map.html")
        x, y = self.spot("mapPlace(384, 384)", ".view")
        picked = self.ask("picked()")

        def finger(kind, number, across, down=0):
            self.browser.run(f"""document.querySelector('.view').dispatchEvent(new PointerEvent('pointer{kind}', {{pointerId: {number + 9},
                pointerType: 'touch', buttons: 1, clientX: {x + across}, clientY: {y + down}}}))""")

        finger("down", 0, -20)
        finger("down", 1, 20)
        finger("move", 0, -84)
        finger("move", 1, 84)
        view = self.ask("view")
        self.assertGreater(view["scale"], 1)
        finger("up", 1, 84)
        finger("move", 0, -44, -40)
        after = self.ask("view")
        self.assertAlmostEqual((after["row"] - view["row"]) * view["scale"], 40, delta=1)
        self.assertAlmostEqual((view["col"] - after["col"]) * view["scale"], 40, delta=1)
        finger("up", 0, -44, -40)
        self.assertEqual((self.ask("view.scale"), self.ask("picked()")), (view["scale"], picked))
        self.check_quiet()

    def test_maps_that_are_strips_begin_with_their_short_side(self):
        for queries, keys in ((8320, 128), (8, 3000)):
            self.figure("strip", queries, keys)
            picked = self.ask("picked()")
            short, length = ("width", keys) if keys < queries else ("height", queries)
            self.assertAlmostEqual(self.browser.run(f"area.{short} / view.scale"), length, delta=0.01)
            self.assertEqual(self.browser.run("location.hash"), "")
            x, y = self.browser.run(f"window.attnscope.mapPlace({picked['at']}, 0)")
            self.assertTrue(0 < y < self.browser.run("canvas.height / ratio"), y)
        self.check_quiet()
