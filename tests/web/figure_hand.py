"""The page of `attnscope figure` in somebody's hands: rulers, the first view, colours, its address, keys, fingers, frames."""

import os
import re
import time
import xml.etree.ElementTree

from figure_page import FOLDER, FigurePage, attnscope
from hostile_words import HOSTILE, name_hostile_words
from pictures import read_png

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "moving-shapes")


def number_of(text):
    """What a page writes: "0.26", "3.2×10⁻⁵", "10⁻⁸"."""
    digits, _, power = text.rpartition("10") if "10⁻" in text else (text, "", "0")
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    return float(digits.rstrip("×") or 1) * 10.0 ** int(power.translate(raised))


def contrast(one, other):
    """The ratio of WCAG 2 of two colours of 0 to 255."""
    lights = []
    for colour in (one, other):
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        lights.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


class FigureHands(FigurePage):
    """Hands on a page, and the files that they save."""

    def ask(self, expression):
        return self.browser.run("window.attnscope." + expression)

    def spot(self, place, canvas):
        """Where the window has a place of a canvas."""
        return self.browser.run(f"""(() => {{
          const box = document.querySelector('{canvas}').getBoundingClientRect(), [x, y] = window.attnscope.{place};
          return [box.left + x, box.top + y];
        }})()""")

    def click_cell(self, row, key):
        self.browser.click(*self.spot(f"mapPlace({row}, {key})", ".view"))

    def choose(self, label, value):
        """Chooses as a hand does: an event of the element's own."""
        self.browser.run(f"""(() => {{
          const found = [...document.querySelectorAll('label')].find((l) => l.textContent.startsWith('{label}'));
          const select = found.querySelector('select');
          select.value = '{value}';
          select.dispatchEvent(new Event('change'));
        }})()""")

    def saved(self, button):
        """The file that a button gives."""
        path = os.path.join(FOLDER, "attention." + button.lower())
        if os.path.exists(path):
            os.remove(path)
        self.browser.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=FOLDER)
        box = self.browser.run(f"""(() => {{
          const button = [...document.querySelectorAll('button')].find((b) => b.textContent === '{button}');
          button.scrollIntoView();
          const box = button.getBoundingClientRect();
          return [box.left + box.width / 2, box.top + box.height / 2];
        }})()""")
        self.browser.click(*box)
        self.browser.run("window.scrollTo(0, 0)")
        end = time.monotonic() + 20
        while not os.path.exists(path) or os.path.getsize(path) == 0:
            self.assertLess(time.monotonic(), end, "nothing was saved")
            time.sleep(0.05)
        with open(path, "rb") as file:
            return file.read()

    def svg_texts(self):
        drawing = xml.etree.ElementTree.fromstring(self.saved("SVG"))
        return [element.text for element in drawing.iter() if element.tag.endswith("}text")], drawing

    def touch(self, kind, *points):
        self.browser.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)])


class FigureHandTest(FigureHands):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        attnscope("synth", "--grid", "4x6x8", "--text", "16@start", "--kinds", "text", "-o", "worded", "--force")
        name_hostile_words(os.path.join(FOLDER, "worded"), "", [["word%d" % i for i in range(16)]])
        attnscope("figure", "worded", "--layers", 0, "--heads", 0, "-o", "worded.html", "--force")

    def test_rulers_name_text_frames_rows_and_cells(self):
        self.show("worded.html")
        texts, drawing = self.svg_texts()
        for name in ("text", "t0", "t1", "t2", "t3"):
            self.assertEqual(texts.count(name), 2, f"{name} in {texts}")   # on both rulers
        # Lines lie where frames begin: 16 tokens of text, then 48 a frame.
        lines = {round(float(e.get("x1"))) for e in drawing.iter() if e.tag.endswith("}line") and e.get("x1") == e.get("x2")}
        for token in (16, 64, 112, 160):
            x = self.browser.run(f"window.attnscope.mapPlace(0, {token} - 0.5)[0] * devicePixelRatio")
            self.assertTrue(any(abs(x - line) <= 1.5 for line in lines), f"no line at {x}: {sorted(lines)}")
        self.browser.run("location.hash = 'z=64,112,64,112'")
        self.browser.until("window.attnscope.view.row > 60")
        texts = self.svg_texts()[0]
        self.assertIn("t1 y3", texts)
        self.assertIn("x4", texts)
        self.browser.run("location.hash = 'z=0,4,0,4'")
        self.browser.until("window.attnscope.view.row < 1 && window.attnscope.idle()")
        self.browser.until("window.attnscope.view.scale > 50")
        self.browser.run("new Promise((done) => setTimeout(() => done(true), 300))")
        texts = self.svg_texts()[0]
        self.assertIn("word1", texts)
        # Cells that are large have their numbers in them, short ones.
        self.assertTrue(any(text[0].isdigit() and number_of(text) == float("%.3g" % number_of(text)) for text in texts), texts)
        self.browser.keep_picture("figure-words.png")
        self.check_quiet()

    def test_the_text_s_name_leaves_room_for_the_first_frame_s(self):
        attnscope("figure", SAMPLE, "--layers", 1, "--heads", 3, "-o", "sample.html", "--force")
        self.browser.resize(390, 844)
        try:
            self.show("sample.html")
            texts = self.svg_texts()[0]
            for name in ("text", "t0", "t1", "t6"):
                self.assertEqual(texts.count(name), 2, f"{name} in {texts}")
        finally:
            self.browser.resize(1280, 900)

    def test_pictures_are_saved_with_rulers(self):
        self.show("worded.html")
        width, height, rows = read_png(self.saved("PNG"))
        self.assertGreater(min(width, height), 200)
        # Below the heading there is something in the ruler beside the map, and colours in the map.
        ruler = {rows[y][3 * x:3 * x + 3] for y in range(80, height - 60) for x in range(4, 34)}
        self.assertGreater(len(ruler), 3)
        inside = {rows[y][3 * x:3 * x + 3] for y in range(80, height - 60, 3) for x in range(60, width - 60, 3)}
        self.assertGreater(len(inside), 20)

    def test_it_begins_with_the_middle_query(self):
        self.show("map.html")
        self.browser.until("document.querySelector('.picked').textContent.startsWith('query 488 ')")
        self.assertEqual(self.ask("picked()"), {"at": 2 * 192 + 6 * 16 + 8, "isKey": False})

    def test_the_first_query_view_and_words_are_the_author_s(self):
        title, caption = HOSTILE + " \u202eabc", "\u05d0\u05d1 <b>bold</b> & <script>alert(1)</script>"
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "--query", "1,2,3", "--zoom", "100,300,200,400", "--title", title,
                  "--caption", caption, "-o", "begun.html", "--force")
        self.show("begun.html")
        self.assertEqual(self.ask("picked().at"), 192 + 2 * 16 + 3)
        view = self.ask("view")
        self.assertEqual((view["row"], view["col"]), (100, 200))
        self.assertEqual(self.browser.run("document.querySelector('h1').textContent"), title)
        self.assertEqual(self.browser.run("document.querySelector('.caption').textContent"), caption)
        self.assertEqual(self.browser.run("document.querySelectorAll('b, img').length"), 0)
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.caption')).direction"), "rtl")
        self.assertFalse(self.browser.run("document.querySelector('details').open"))
        command = self.browser.run("document.querySelector('code').textContent")
        for word in ("--index 227", "--zoom 100,300,200,400", "--caption"):
            self.assertIn(word, command)
        self.check_quiet()

    def test_first_views_that_are_none(self):
        figure = ("figure", "plain", "--layers", 0, "--heads", 1, "-o", "no.html")
        self.assertIn("--query 9,0,0", attnscope(*figure, "--query", "9,0,0", fails=2))
        self.assertIn("192 are chosen", attnscope(*figure, "--query", "0,0:12,0:16", fails=2))
        self.assertIn("has not the query 1", attnscope(*figure, "--index", 1, "--stride", 4, fails=2))
        self.assertIn("four whole numbers", attnscope(*figure, "--zoom", "1,2,3", fails=2))
        self.assertIn("--zoom (keys) 5:900", attnscope(*figure, "--zoom", "1,2,5,900", fails=2))
        self.assertIn("0 to 99 alone", attnscope(*figure, "--zoom", "200,300,0,10", "--rows", "0:100", fails=2))
        self.assertFalse(os.path.exists(os.path.join(FOLDER, "no.html")))

    def test_words_can_be_read_on_every_colour(self):
        self.show("worded.html")
        for name in self.browser.run("Object.keys(window.attnscope.facts.colours)"):
            self.choose("colours", name)
            for row in (3, 40, 200):
                self.browser.run(f"window.attnscope.pick({row}).then(() => true)")
                pairs = self.browser.run("""[...document.querySelectorAll('.words bdi')].map((word) => {
                  const style = getComputedStyle(word);
                  return [style.color, style.backgroundColor].map((text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number));
                })""")
                self.assertEqual(len(pairs), 16)
                for ink, ground in pairs:
                    self.assertGreaterEqual(contrast(ink, ground), 4.5, f"{name}: {ink} on {ground}")
        self.check_quiet()

    def test_numbers_can_be_read_in_every_colour(self):
        self.show("worded.html")
        self.browser.run("location.hash = 'z=14,18,14,18'")
        self.browser.until("window.attnscope.view.scale > 50 && window.attnscope.idle()")
        for name in self.browser.run("Object.keys(window.attnscope.facts.colours)"):
            self.choose("colours", name)
            self.browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
            seen = 0
            for element in self.svg_texts()[1].iter():
                x, y = element.get("x"), element.get("y")
                if not element.tag.endswith("}text") or not element.text[0].isdigit() or x is None or float(x) < 60 or float(y) < 60:
                    continue
                ground = self.browser.run(f"""Array.from(document.querySelector('.view').getContext('2d')
                    .getImageData({float(x) - 20}, {float(y) - 18}, 1, 1).data).slice(0, 3)""")
                if float(y) > self.browser.run("document.querySelector('.view').height"):
                    continue   # the colour bar's
                ink = [0, 0, 0] if element.get("fill") == "#000" else [255, 255, 255]
                self.assertGreaterEqual(contrast(ink, ground), 4.5, f"{name}: {element.text} in {ink} on {ground}")
                seen += 1
            self.assertGreater(seen, 8)

    def test_colours_lie_where_the_mass_is(self):
        self.show("worded.html")
        weights = sorted((v for row in range(208) for v in self.row(row)), reverse=True)
        total, mass = sum(weights), 0
        for low in weights:
            mass += low
            if mass >= 0.999 * total:
                break
        self.assertAlmostEqual(self.ask("range()[0]") / low, 1, delta=0.003)
        whole = self.browser.run("window.attnscope.facts.range.map((octave) => 2 ** octave)")
        self.choose("range", "all")
        self.assertEqual(self.ask("range()"), whole)
        self.assertGreater(low, whole[0])
        # This view has what is seen of it: the text's keys hold more.
        self.browser.run("location.hash = 'z=0,16,0,16'")
        self.browser.until("window.attnscope.idle() && window.attnscope.view.scale > 20")
        self.browser.run("window.before = String(window.attnscope.range())")
        self.choose("range", "view")
        self.browser.until("String(window.attnscope.range()) !== window.before")
        seen = [v for row in range(16) for v in self.row(row)[:16]]
        self.assertLessEqual(min(seen), self.ask("range()[0]") * 1.003)
        self.assertGreaterEqual(max(seen), self.ask("range()[1]") / 1.003)
        self.assertNotEqual(self.ask("range()"), whole)
        self.check_quiet()

    def test_ends_of_colours_are_handles(self):
        self.show("worded.html")
        before = self.ask("range()")
        for end, by in ((0, 20), (1, -20)):
            box = self.browser.run(f"""(() => {{
              const box = document.querySelectorAll('.handle')[{end}].getBoundingClientRect();
              return [box.left + box.width / 2, box.top + box.height / 2];
            }})()""")
            self.browser.drag(box[0], box[1], box[0] + by, box[1])
        after = self.ask("range()")
        self.assertGreater(after[0], 1.2 * before[0])
        self.assertLess(after[1], before[1] / 1.2)
        self.browser.key("ArrowLeft", "ArrowLeft")
        self.assertAlmostEqual(self.ask("range()[1]") / after[1], 2 ** -0.5, delta=1e-6)
        self.assertRegex(self.browser.run("document.querySelector('.end').textContent"), "^(0\\.\\d+|(\\d(\\.\\d+)?×)?10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+)$")
        self.check_quiet()

    def test_the_address_is_the_view(self):
        self.show("map.html")
        self.assertEqual(self.browser.run("location.hash"), "")
        for _ in range(6):
            self.browser.wheel(300, 400, -240)
        self.browser.click(300, 400)
        self.choose("shown", "mean")
        self.browser.until("/q=.*z=.*c=mean/.test(location.hash)")
        self.browser.until("window.attnscope.idle()")
        address, picked, view = self.browser.run("location.hash"), self.ask("picked()"), self.ask("view")
        self.browser.ask("Page.reload")
        self.browser.until("window.attnscope && window.attnscope.ready.then(() => true)")
        self.browser.until("window.attnscope.idle()")
        self.assertEqual(self.ask("picked()"), picked)
        self.assertEqual(self.browser.run("location.hash"), address)
        again = self.ask("view")
        for name in ("row", "col"):
            self.assertLessEqual(abs(again[name] - view[name]), 1)
        q0, q1, k0, k1 = (int(word) for word in re.search(r"z=([\d,]+)", address).group(1).split(","))
        shown = min(q1 - q0, k1 - k0)
        self.assertAlmostEqual(again["scale"] / view["scale"], 1, delta=0.01 + 0.5 / (shown - 0.5))
        # An address that was followed stays as it is, whatever the shape of the map's area, until the view moves.
        for words in ("z=255,262,293,299", "z=255,258,293,299", "z=100,101,30,37"):
            self.browser.run(f"location.hash = '{words}&c=mean'")
            self.browser.until("window.attnscope.idle()")
            self.browser.run("new Promise((resolve) => setTimeout(resolve, 400))")
            self.assertIn(words + "&c=mean", self.browser.run("location.hash"))
        self.browser.wheel(300, 400, -240)
        self.browser.until("!location.hash.includes('z=100,101,30,37')")
        self.browser.run("location.hash = 'q=3,11,15&z=1,2&x=3'")
        self.browser.until("document.querySelector('.read').textContent.includes('z=1,2, x=3')")
        self.assertEqual(self.ask("picked().at"), 767)
        self.check_quiet()

    def test_keys_move_a_cell_and_pick_it(self):
        self.show("map.html")
        tree = self.browser.ask("Accessibility.getFullAXTree")["nodes"]
        map_node = [node for node in tree if node.get("role", {}).get("value") == "application"]
        self.assertIn("768 queries", map_node[0]["name"]["value"])
        for _ in range(20):
            if self.browser.run("document.activeElement.className") == "view":
                break
            self.browser.key("Tab", "Tab")
        self.browser.key("ArrowDown", "ArrowDown")
        for _ in range(6):
            self.browser.key("+")
        start = self.ask("cursor()")
        self.browser.key("ArrowRight", "ArrowRight")
        self.browser.key("ArrowDown", "ArrowDown")
        self.browser.key("ArrowDown", "ArrowDown")
        self.assertEqual(self.ask("cursor()"), {"row": start["row"] + 2, "key": start["key"] + 1})
        self.browser.until(f"document.querySelector('.read').textContent.startsWith('query {start['row'] + 2} ')")
        self.assertIn("weight ", self.browser.run("document.querySelector('[aria-live].read').textContent"))
        self.browser.key("Enter", "Enter")
        self.browser.until(f"window.attnscope.picked().at === {start['row'] + 2}")
        column = self.ask("view.col")
        self.browser.key("ArrowRight", "ArrowRight", shift=True)
        self.assertGreater(self.ask("view.col"), column)
        self.browser.until("window.attnscope.idle()")
        self.browser.keep_picture("figure-cursor.png")
        self.check_quiet()

    def test_the_table_has_the_largest_keys(self):
        self.show("map.html")
        self.browser.run("window.attnscope.pick(100).then(() => true)")
        row = self.row(100)
        largest = sorted(range(768), key=lambda key: (-row[key], key))[:10]
        lines = self.browser.run("[...document.querySelectorAll('.largest tbody tr')].map((tr) => [...tr.cells].map((td) => td.textContent))")
        self.assertEqual([int(line[0].split()[0]) for line in lines], largest)
        for line, key in zip(lines, largest):
            self.assertAlmostEqual(number_of(line[1]) / row[key], 1, delta=0.006)
            self.assertAlmostEqual(float(line[2]) / (768 * row[key]), 1, delta=0.006)

    def test_a_click_into_the_film_is_the_next_query(self):
        self.show("map.html")
        self.browser.click(*self.spot("filmPlace(1, 4, 5)", ".film"))
        self.browser.until(f"window.attnscope.picked().at === {192 + 4 * 16 + 5}")
        # Its own frame says so, and a frame of red stands around its cell.
        self.browser.until("document.querySelector('.picked').textContent.startsWith('query 261 ')")
        red = self.browser.run("""(() => {
          const film = document.querySelector('.film'), context = film.getContext('2d');
          const [x, y] = window.attnscope.filmPlace(1, 4, 5).map((v) => v * devicePixelRatio);
          const data = context.getImageData(x - 14, y - 14, 28, 28).data;
          let found = 0;
          for (let i = 0; i < data.length; i += 4) found += data[i] > 200 && data[i + 1] < 130 && data[i + 2] < 130 ? 1 : 0;
          return found;
        })()""")
        self.assertGreater(red, 8)
        self.check_quiet()

    def test_columns_tell_who_attends(self):
        self.show("map.html")
        self.choose("a click picks", "key")
        self.click_cell(300, 200)
        self.browser.until("window.attnscope.picked().isKey")
        key = self.ask("picked().at")
        self.browser.until(f"document.querySelector('.picked').textContent.startsWith('key {key} ')")
        column = self.ask(f"column({key}).then((v) => Array.from(v))")
        for number in (0, 299, 767):
            self.assertAlmostEqual(column[number] / self.row(number)[key], 1, delta=1e-5)
        best = max(range(768), key=lambda row: column[row])
        self.assertTrue(self.browser.run("document.querySelector('.largest tbody td').textContent").startswith(f"{best} "))
        self.browser.until("location.hash.includes('k=')")
        self.check_quiet()

    def swipe(self, x, y, dy):
        self.touch("touchStart", (x, y))
        for i in range(1, 9):
            self.touch("touchMove", (x, y + dy * i / 8))
            time.sleep(0.02)
        self.touch("touchEnd")

    def test_fingers(self):
        self.browser.resize(390, 844)
        self.browser.ask("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)
        try:
            self.show("map.html")
            box = self.browser.run("(() => { const b = document.querySelector('.view').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
            x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
            scale = self.ask("view.scale")
            self.swipe(x, y, -120)
            self.browser.until("window.scrollY > 40")
            self.assertAlmostEqual(self.ask("view.scale") / scale, 1, delta=0.1)   # but for the width of a scroll bar
            self.assertEqual(self.ask("view.row"), 0)
            time.sleep(0.5)   # the swipe's last motion
            self.browser.run("window.scrollTo(0, 0)")
            self.touch("touchStart", (x - 20, y), (x + 20, y))
            for i in range(1, 9):
                self.touch("touchMove", (x - 20 - 8 * i, y), (x + 20 + 8 * i, y))
            self.touch("touchEnd")
            self.browser.until(f"window.attnscope.view.scale > 2.5 * {scale}")
            self.assertEqual(self.browser.run("window.scrollY"), 0)
            self.touch("touchStart", (x, y))
            self.touch("touchEnd")
            self.browser.until("document.querySelector('.view').className.includes('held')")
            row = self.ask("view.row")
            self.swipe(x, y, -60)
            self.browser.until(f"window.attnscope.view.row > {row}")
            self.assertEqual(self.browser.run("window.scrollY"), 0)
            self.browser.keep_picture("figure-phone.png")
            self.check_quiet()
        finally:
            self.browser.ask("Emulation.setTouchEmulationEnabled", enabled=False)
            self.browser.resize(1280, 900)

    def test_buttons_zoom(self):
        self.show("map.html")
        scale = self.ask("view.scale")
        for title, factor in (("zoom in", 2), ("zoom in", 4), ("zoom out", 2), ("whole map", 1)):
            box = self.browser.run(f"""(() => {{
              const box = document.querySelector('[aria-label="{title}"]').getBoundingClientRect();
              return [box.left + 5, box.top + 5];
            }})()""")
            self.browser.click(*box)
            self.assertAlmostEqual(self.ask("view.scale") / scale, factor, delta=1e-6)

    def wheel_until(self, pixels, expression, session=None, **values):
        """Turns the wheel over the frame of the article; a browser that is busy may lose a notch."""
        for _ in range(60):
            self.browser.mouse("mouseWheel", 200, 560, deltaX=0, deltaY=pixels, **values)
            time.sleep(0.3)
            if self.browser.run(expression, session=session):
                return
        self.fail(f"turning the wheel never came to {expression}")

    def test_within_an_article(self):
        with open(os.path.join(FOLDER, "article.html"), "w", encoding="utf-8") as file:
            file.write("<!doctype html><body style='margin:0'><div style='height:300px'>Words.</div><script>window.heights = [];"
                       "addEventListener('message', (e) => {"
                       "heights.push(e.data); document.querySelector('iframe').height = e.data.height; });</script>"
                       "<iframe sandbox='allow-scripts' src='map.html' width=720 height=560></iframe><div style='height:3000px'>Words.</div>")
        self.browser.open("file://" + os.path.join(FOLDER, "article.html"))
        session = self.browser.frame()
        self.browser.until("window.attnscope && window.attnscope.ready.then(() => true)", session=session)
        scale = "window.attnscope.view.scale"
        self.browser.until("heights.some((m) => m.format === 'attnscope-figure/1' && m.height > 300)")
        # The frame takes that height in the end, once the row is there.
        self.browser.until("document.querySelector('.largest').rows.length > 5", session=session)
        # Until then it has a scroll bar, beside which the figure is narrower and higher.
        for _ in range(300):
            needed = self.browser.run("document.getElementById('figure').getBoundingClientRect().height", session=session)
            if self.browser.run(f"document.querySelector('iframe').height >= {needed} - 1"):
                break
            time.sleep(0.1)
        else:
            self.fail(f"the frame never takes the height of {needed} that its page needs")
        self.browser.move(200, 560)
        before = self.browser.run(scale, session=session)
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('h1')).display", session=session), "none")
        self.wheel_until(100, "window.scrollY > 0")
        # But for the width of a scroll bar; a notch would be 1.4.
        self.assertAlmostEqual(self.browser.run(scale, session=session) / before, 1, delta=0.1)
        self.browser.run("window.scrollTo(0, 0)")
        self.wheel_until(-300, f"{scale} > 1.5 * {before}", session, modifiers=2)
        self.assertEqual(self.browser.run("window.scrollY"), 0)
        # A click takes hold, Esc lets go.
        self.browser.click(200, 560)
        held = self.browser.run(scale, session=session)
        self.wheel_until(-100, f"{scale} > 1.2 * {held}", session)
        self.assertEqual(self.browser.run("window.scrollY"), 0)
        self.browser.keep_picture("figure-article.png")
        self.browser.key("Escape", "Escape")
        self.wheel_until(100, "window.scrollY > 0")

    def test_print_has_no_controls(self):
        self.show("worded.html")
        self.browser.set_dark(True)
        self.browser.ask("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        try:
            # Paper is white: what stands on it is dark, in a browser that is dark as well.
            self.browser.until("""(() => {
              const map = document.querySelector('.view'), data = map.getContext('2d').getImageData(50, 0, 200, 20).data;
              for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && data[i] + data[i + 1] + data[i + 2] < 200) return true;
              return false;
            })()""")
            shown = "(query) => getComputedStyle(document.querySelector(query)).display"
            for query in (".tools button", ".tools label", ".corner", ".read"):
                self.assertEqual(self.browser.run(f"({shown})('{query}')"), "none", query)
            self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.words')).maxHeight"), "none")
        finally:
            self.browser.ask("Emulation.setEmulatedMedia", media="")
            self.browser.set_dark(False)
