"""The page of `attnscope report`, opened from a disk in Chromium. Usage: test_report.py PROGRAM FOLDER; exits with 77
where there is no Chromium. Its pictures stay in FOLDER."""

import base64
import csv
import json
import os
import random
import sys
import unittest

from browser import chromium
from figure_page import FOLDER, attnscope
from hostile_words import HOSTILE, name_hostile_words
from plain_capture import write_call
from report_hand import ReportHandTest  # these tests are run with those below
from report_page import CONTRASTS, ReportPage
from served import SAMPLE

COLUMNS = ("step", "layer", "branch", "kind", "batch", "head")


class ReportTest(ReportPage):
    """The contents of the page."""

    def test_numbers_are_those_of_stats(self):
        listed = json.loads(attnscope("stats", "small", "--json", "--quiet"))["heads"]
        numbers = {tuple(head[name] for name in COLUMNS): head for head in listed}
        self.show("small.html")
        facts = self.facts()
        heads = facts["heads"]
        self.assertEqual(len(heads["names"]), len(listed))
        for i in random.Random(1).sample(range(len(listed)), 10):
            expected = numbers[tuple(heads[name][i] for name in COLUMNS)]
            self.assertEqual(heads["class"][i], expected["class"])
            for name, values in heads["values"].items():
                self.assertEqual(values[i], expected.get(name), f"{heads['names'][i]} {name}")
        self.check_quiet()

    def test_the_table_has_these_numbers_rounded_and_sorts_them(self):
        self.show("small.html")
        facts = self.facts()
        values, names = facts["heads"]["values"], facts["heads"]["names"]
        shown = self.browser.run("[...document.querySelectorAll('table.heads thead th button')].slice(2).map((b) => b.textContent)")
        columns = [next(n for n in facts["numbers"] if n["heading"] == heading) for heading in shown]
        self.assertGreaterEqual(len(columns), 5)
        cells = "[...document.querySelectorAll('table.heads tbody tr')].map((line) => [...line.cells].map((c) => c.textContent))"
        lines = self.browser.run(cells)
        self.assertEqual([line[0] for line in lines], names)
        for i, line in enumerate(lines):
            for number, text in zip(columns, line[2:]):
                value = values[number["name"]][i]
                if value is None:
                    self.assertEqual(text, "–")
                else:
                    self.assertLessEqual(abs(float(text) - value), max(0.5 * 10 ** -number["decimals"], 0.005 * abs(value)) * 1.0001)
        column = columns[0]["name"]
        press = "document.querySelectorAll('table.heads thead th button')[2].click(), document.querySelector('[aria-sort$=ending]').getAttribute('aria-sort')"
        self.assertEqual(self.browser.run(press), "descending")
        order = sorted(range(len(names)), key=lambda i: (-values[column][i], i))
        self.assertEqual([line[0] for line in self.browser.run(cells)], [names[i] for i in order])
        self.assertEqual(self.browser.run(press), "ascending")
        self.assertEqual(self.browser.run(cells)[0][0], names[order[-1]])
        limit = sorted(values[column])[len(names) // 2]
        self.browser.run(f"(() => {{ const s = document.querySelector('input[type=search]'); s.value = '{column}<{limit}'; s.oninput(); }})()")
        self.assertEqual(len(self.browser.run(cells)), sum(v < limit for v in values[column]))
        self.assertIn(f"of {len(names)} heads", self.text("#table [role=status]"))
        self.check_quiet()

    def test_cells_have_the_colours_of_their_numbers(self):
        self.show("small.html", "#n=entropy")
        heads = self.facts()["heads"]
        values = heads["values"]["entropy"]
        low, high = min(values), max(values)
        colours = self.browser.run("[...document.querySelectorAll('.grid .cell')].map((c) => [Number(c.dataset.head), c.style.background, c.getAttribute('aria-label')])")
        self.assertEqual(len(colours), 12)
        table = self.browser.run("Array.from(table)")
        for i, colour, name in colours:
            at = 3 * int(255 * (values[i] - low) / (high - low) + 0.5)
            self.assertEqual([int(v) for v in colour.strip("rgb()").split(",")], table[at:at + 3])
            self.assertIn(heads["names"][i], name)
            self.assertIn(f"{values[i]:.3f}"[:4], name)

    def test_small_maps_are_painted_from_their_bytes(self):
        self.show("small.html")
        maps = self.facts()["maps"]
        data = self.browser.run(f"window.attnscopeReport.bytes({json.dumps(maps['data'])})")
        rows, cols = maps["rows"], maps["cols"]
        self.assertEqual(len(data), len(maps["heads"]) * rows * cols)
        table = self.browser.run("Array.from(table)")
        at = maps["heads"].index(self.browser.run("window.attnscopeReport.state.head"))
        pixels = self.browser.run("(() => { const c = document.querySelector('.details canvas'); return Array.from(c.getContext('2d')"
                                  ".getImageData(0, 0, c.width, c.height).data); })()")
        self.assertEqual(len(pixels), 4 * rows * cols)
        for i, byte in enumerate(data[at * rows * cols:(at + 1) * rows * cols]):
            got = pixels[4 * i:4 * i + 4]
            unit = 3 * int(255 * (byte - 1) / 254 + 0.5)
            self.assertEqual(got, [0] * 4 if byte == 0 else table[unit:unit + 3] + [255])

    def test_an_exact_map_opens_in_place(self):
        self.show("shapes.html")
        facts = self.facts()
        look = next((look for look in facts["looks"] if look["figure"] is not None), None)
        self.assertIsNotNone(look)
        at = facts["looks"].index(look)
        self.browser.run(f"document.querySelector('#look-{at} .open').click()")
        frame = self.browser.frame()
        self.browser.until("window.attnscope && window.attnscope.ready.then(() => true)", session=frame)
        self.browser.until("parseInt(document.querySelector('.exact iframe').style.height) > 200")
        row = self.browser.run("window.attnscope.row(400).then((v) => Array.from(v))", session=frame)
        i, heads = look["head"], facts["heads"]
        attnscope("query", SAMPLE, "--layers", heads["layer"][i], "--heads", heads["head"][i], "--index", 400, "--backend", "reference",
                  "-o", "row.csv", "--force", "--quiet")
        with open(os.path.join(FOLDER, "row.csv"), encoding="utf-8", newline="") as file:
            expected = [float(line["weight"]) for line in csv.DictReader(file)]
        self.assertEqual(len(row), len(expected))
        for key, (a, b) in enumerate(zip(row, expected)):
            self.assertLessEqual(abs(a - b), 2e-5 * b + 1e-7 * max(expected), f"key {key}: {a} in the page, {b} by the reference")
        self.browser.keep_picture("report-exact.png")
        self.assertEqual(self.browser.run(f"document.querySelector('#look-{at} .open').getAttribute('aria-expanded')"), "true")
        self.browser.run("document.querySelector('.exact .close').focus()")
        self.browser.key("Escape")
        self.browser.until("document.querySelector('iframe') === null")
        self.assertEqual(self.browser.run("document.activeElement.className"), "open")
        # From within as well. The key is let go of where the frame is no longer.
        self.browser.run(f"document.querySelector('#look-{at} .open').click()")
        frame = self.browser.frame()
        self.browser.until("window.attnscope && window.attnscope.ready.then(() => true)", session=frame)
        self.browser.run("setTimeout(() => document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true})), 0), 1", session=frame)
        self.browser.until("document.querySelector('iframe') === null")
        self.check_quiet()

    def test_films_and_words_stand_over_the_frames(self):
        self.show("shapes.html")
        facts = self.facts()
        films = [look["film"] for look in facts["looks"] if look["film"]]
        self.assertTrue(films)
        t, h, w = films[0]["grid"]
        shape = "[...document.querySelector('.look .film').querySelectorAll('canvas')].map((c) => [c.width, c.height])"
        self.assertEqual(self.browser.run(shape), [[w, h]] * t)
        self.assertEqual(self.browser.run("document.querySelectorAll('.look .film')[0].querySelectorAll('.query').length"), 1)
        self.assertEqual(len(self.texts(".strip h3")), len(facts["words"]["strips"]))
        if any(frame is not None for frame in facts["words"]["frames"]):
            self.browser.until("[...document.querySelectorAll('.strip img')].length && [...document.images].every((i) => i.complete && i.naturalWidth > 0)")
        self.browser.run("document.getElementById('words').scrollIntoView()")
        self.browser.keep_picture("report-words.png")
        self.check_quiet()

    def test_hostile_texts_stay_texts(self):
        attnscope("synth", "--grid", "4x4x4", "--text", "16@start", "--head-kinds", "text,sink", "-o", "hostile", "--force", "--quiet")
        prompt = HOSTILE + " שלום " + "word " * 2000
        name_hostile_words(os.path.join(FOLDER, "hostile"), prompt, [[HOSTILE, "</title><b>", "שלום"] + ["word"] * 13])
        attnscope("report", "hostile", "--title", HOSTILE, "-o", "hostile.html", "--force", "--quiet")
        with open(os.path.join(FOLDER, "hostile.html"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("<img", text)
        self.assertNotIn("\u2028", text.split("</noscript>")[1])
        self.show("hostile.html")
        self.assertEqual(self.text("h1"), HOSTILE)
        self.assertIn(prompt.strip(), [text.strip() for text in self.texts("#about dd .text")])
        self.assertEqual(self.browser.run("document.title"), HOSTILE)
        self.assertEqual(self.browser.run("document.querySelectorAll('img[src=x], #report b:not(.query)').length"), 0)
        for width in (1280, 390):
            self.browser.resize(width, 844)
            self.assertEqual(self.overflow(), 0)
        self.check_quiet()

    def test_one_head_of_one_token(self):
        write_call(os.path.join(FOLDER, "one.safetensors"), {"q": ([1, 1, 1, 4], [1, 2, 3, 4]), "k": ([1, 1, 1, 4], [1, 0, 1, 0])}, {})
        attnscope("report", "one.safetensors", "-o", "one.html", "--force", "--quiet")
        self.show("one.html")
        self.check_whole()
        self.assertEqual(self.browser.run("document.querySelectorAll('.grid .cell').length"), 1)
        self.assertTrue(self.texts(".lacks li"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.film').length"), 0)

    def test_a_table_of_numbers(self):
        attnscope("stats", "small", "--json", "-o", "small.json", "--force", "--quiet")
        attnscope("report", "small.json", "-o", "table.html", "--force", "--quiet")
        self.show("table.html")
        self.check_whole()
        self.assertEqual(self.browser.run("document.querySelectorAll('.look, .gallery, iframe').length"), 0)
        self.assertTrue(self.texts(".lacks li"))

    def test_an_export_has_no_boxes_without_contents(self):
        attnscope("export", SAMPLE, "-o", "weights.h5", "--force", "--quiet")
        attnscope("report", "weights.h5", "-o", "export.html", "--force", "--quiet")
        self.show("export.html")
        self.check_whole()
        names = self.facts()["heads"]["names"]
        self.assertEqual(self.texts("table.heads tbody th"), names)
        self.assertEqual(self.texts("table.heads thead th"), ["head"])
        # Nothing is known of a head that could be coloured or shown.
        empty = "document.querySelectorAll('.grid, .details, .class:empty, #table tbody a').length"
        self.assertEqual(self.browser.run(empty), 0)

    def test_a_mask_tells_what_it_keeps_beside_what_was_asked_for(self):
        self.show("small.html")
        kept = self.facts()["sparsity"]["kept"]
        lines = self.browser.run("[...document.querySelector('table.kept').tBodies[0].rows].map((line) => [...line.cells].slice(0, 3).map((c) => c.textContent))")
        self.assertEqual(lines, [[f"{100 * one['keep']:.0f}\u00a0%", f"{100 * one['density']:.1f}\u00a0%", f"{100 * one['blocks']['recall']:.1f}\u00a0%"]
                                 for one in kept])
        self.assertTrue(any(one["density"] > one["keep"] for one in kept))

    def test_few_heads_have_large_cells_beside_their_details(self):
        self.show("shapes.html")
        box = "(() => { const b = document.querySelector('%s').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        left, details = (self.browser.run(box % name) for name in ("#heads .left", "#heads .details"))
        self.assertGreater(details[0], left[0] + left[2])
        self.assertGreater(left[3], 0.6 * details[3], "there is an empty room beside the details")
        self.assertGreaterEqual(self.browser.run(box % ".cell")[3], 40)
        # The page's sentences begin large and end, whoever wrote them.
        for text in self.texts(".rule .note, .rule .meaning, .look .told > p:not(.command, .tools)"):
            self.assertRegex(text, r"^[^a-z].*[.!?:]$")
        # A part that does not scroll takes no key.
        stops = "[...document.querySelectorAll('.scroll')].filter((e) => e.getClientRects().length && e.tabIndex === 0 && e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight).length"
        self.browser.until(stops + " === 0")

    def test_two_captures(self):
        attnscope("synth", "--grid", "3x6x8", "--text", "16@start", "--head-kinds", "temporal,spatial,text,sink", "--num-layers", 2,
                  "--seed", 7, "-o", "one", "--force", "--quiet")
        attnscope("synth", "--grid", "3x6x8", "--text", "16@start", "--head-kinds", "temporal,spatial,text,sink", "--num-layers", 2,
                  "--seed", 8, "-o", "other", "--force", "--quiet")
        attnscope("report", "one", "other", "-o", "pair.html", "--force", "--quiet")
        self.show("pair.html")
        self.check_whole()
        facts = self.facts()
        pairs, heads = facts["diff"]["pairs"], facts["heads"]
        self.assertEqual(len(pairs), 8)
        expected = [[heads["names"][p["a"]], heads["names"][p["b"]]] for p in sorted(pairs, key=lambda p: -p["js"])]
        lines = "[...document.querySelectorAll('table.pairs tbody tr')].map((line) => [line.cells[0].textContent, line.cells[1].textContent])"
        self.assertEqual(self.browser.run(lines), expected)
        sides = "[...new Set([...document.querySelectorAll('.grid .cell')].map((c) => window.attnscopeReport.facts.heads.side[Number(c.dataset.head)]))]"
        self.assertEqual(self.browser.run(sides), [0])
        self.browser.run("document.querySelectorAll('#heads .toggles button')[1].click()")
        self.assertEqual(self.browser.run(sides), [1])
        self.check_quiet()

    def check_whole(self):
        """What the page shows is not empty, what it has not is said, and all its links lead somewhere."""
        facts = self.facts()
        sections = self.browser.run("[...document.querySelectorAll('main > section')].map((s) => [s.id, s.textContent.trim().length, s.querySelector('h2').textContent.length])")
        for name, length, title in sections:
            self.assertGreater(length, title, name)
        links = self.browser.run("[...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href').split('=')[1])")
        self.assertEqual(links, [name for name, _, _ in sections])
        for name, section in (("maps", "maps"), ("sparsity", "sparsity"), ("words", "words"), ("stands_out", "stands-out")):
            if not facts.get(name):
                self.assertNotIn(section, links)
        self.check_quiet()

    def test_print(self):
        self.show("shapes.html")
        self.assertGreater(self.browser.run("window.attnscopeReport.unpainted()"), 0)
        self.browser.set_dark(True)
        data = base64.b64decode(self.browser.ask("Page.printToPDF", seconds=60, printBackground=True)["data"])
        self.browser.set_dark(False)
        self.assertTrue(data.startswith(b"%PDF"))
        self.assertGreater(data.count(b"/Type /Page\n"), 2)
        self.assertEqual(self.browser.run("window.attnscopeReport.unpainted()"), 0)
        self.assertEqual(self.browser.run("document.querySelectorAll('details[open]').length"), 0)
        # As paper has it: nothing is wider, nothing scrolls, and there is nothing to press.
        self.browser.resize(718, 1000)
        self.browser.ask("Emulation.setEmulatedMedia", media="print")
        try:
            self.browser.run("dispatchEvent(new Event('beforeprint'))")
            self.assertEqual(self.browser.run("document.querySelectorAll('details:not([open])').length"), 0)
            self.assertLessEqual(self.overflow(), 1)   # a part of a pixel is rounded up
            self.check_no_text_over_another("print")
            cut = "[...document.querySelectorAll('#report *')].filter((e) => e.clientHeight && e.scrollHeight > e.clientHeight + 2 && getComputedStyle(e).overflowY !== 'visible' && !e.closest('.unseen')).map((e) => e.className)"
            self.assertEqual(self.browser.run(cut), [])
            seen = "[...document.querySelectorAll('select, input, .tools button')].filter((e) => e.getClientRects().length).length"
            self.assertEqual(self.browser.run(seen), 0)
        finally:
            self.browser.ask("Emulation.setEmulatedMedia", media="")
            self.browser.set_dark(False)

    def test_contrast(self):
        for name in ("shapes.html", "small.html"):
            self.show(name)
            self.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            for dark in (False, True):
                self.browser.set_dark(dark)
                found = self.browser.run(CONTRASTS)
                self.assertGreater(found["texts"], 100)
                self.assertEqual(found["bad"], [], f"{name}, {'dark' if dark else 'light'}")
                self.browser.keep_picture(f"report-{name[:-5]}-{'dark' if dark else 'light'}.png")
            self.browser.set_dark(False)

    def test_without_javascript(self):
        self.browser.ask("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.browser.open("file://" + os.path.join(FOLDER, "shapes.html"))
            self.browser.until("document.querySelector('noscript dl') && document.querySelector('noscript h1').getClientRects().length")
            self.assertIn("JavaScript", self.text("noscript p"))
        finally:
            self.browser.ask("Emulation.setScriptExecutionDisabled", value=False)


if __name__ == "__main__":
    del sys.argv[1:3]
    os.makedirs(FOLDER, exist_ok=True)
    if chromium() is None:
        print("skipped: no chromium on the path")
        sys.exit(77)
    unittest.main()
