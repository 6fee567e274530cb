"""The page of `attnscope report` under hands: keys, addresses, narrow screens, and what a screen reader has of it."""

import json
import os

from figure_page import FOLDER, attnscope
from report_page import ReportPage


class ReportHandTest(ReportPage):
    def focused(self):
        return self.browser.run("document.activeElement.dataset.head === undefined ? null : Number(document.activeElement.dataset.head)")

    def test_keys_move_over_the_grid_and_open_a_head(self):
        self.show("small.html")
        heads = self.facts()["heads"]
        self.browser.run("document.querySelector('.grid [tabindex=\"0\"]').focus()")
        self.browser.key("Home", ctrl=True)
        first = self.focused()
        self.assertEqual((heads["layer"][first], heads["head"][first]), (0, 0))
        self.browser.key("ArrowRight")
        self.browser.key("ArrowDown")
        self.browser.key("ArrowDown")
        self.browser.key("ArrowDown")   # the grid's end
        at = self.focused()
        self.assertEqual((heads["layer"][at], heads["head"][at]), (2, 1))
        self.assertIn(heads["names"][at], self.text("#heads .read"))
        self.browser.key("End")
        self.assertEqual(heads["head"][self.focused()], 3)
        self.browser.key("Enter")
        chosen = self.focused()
        self.assertEqual(self.text("#head h3"), heads["names"][chosen])
        self.assertEqual(self.browser.run("document.querySelectorAll('.cell[aria-selected=true]').length"), 1)
        self.assertIn(heads["names"][chosen], self.text("#heads [role=status]"))
        self.browser.until(f"new URLSearchParams(location.hash.slice(1)).get('head') === {json.dumps(heads['names'][chosen])}")
        # One place of the grid takes the focus, so that Tab leaves it.
        self.assertEqual(self.browser.run("document.querySelectorAll('.grid [tabindex=\"0\"]').length"), 1)
        self.check_quiet()

    def test_the_address_keeps_what_is_seen(self):
        self.show("small.html")
        heads = self.facts()["heads"]
        steps = sorted(set(heads["step"]))
        self.browser.run("(() => { const s = document.querySelector('#heads select'); s.value = 'text_mass'; s.onchange(); })()")
        self.browser.run("(() => { const s = document.querySelector('#heads input[type=range]'); s.value = 2; s.oninput(); })()")
        self.browser.until(f"location.hash === '#n=text_mass&step={steps[2]}'")
        self.browser.ask("Page.reload")
        self.browser.until(f"window.attnscopeReport && window.attnscopeReport.state.facets.step === {steps[2]}")
        self.assertEqual(self.browser.run("document.querySelector('#heads select').value"), "text_mass")
        self.assertEqual(self.browser.run("document.querySelector('#heads input[type=range]').value"), "2")
        shown = self.browser.run("[...document.querySelectorAll('.grid .cell')].map((c) => Number(c.dataset.head))")
        self.assertEqual({heads["step"][i] for i in shown}, {steps[2]})
        # A head that an address names is looked at, on its own step.
        other = len(heads["names"]) // 2
        self.show("small.html", "#head=" + heads["names"][other].replace(" ", "+"))
        self.assertEqual(self.text("#head h3"), heads["names"][other])
        self.assertEqual(self.browser.run("window.attnscopeReport.state.facets.step"), heads["step"][other])
        self.assertEqual(self.browser.run("document.activeElement.id"), "head-title")
        self.check_quiet()
        self.show("small.html", "#head=L99+H99&n=nothing&step=7777")
        self.assertIn("head=L99 H99, n=nothing, step=7777", self.text(".missing"))
        self.show("small.html", "#stands-out")
        self.browser.until("Math.abs(document.getElementById('stands-out').getBoundingClientRect().top) < 40")
        self.browser.run("document.querySelector('nav a[href$=table]').click()")
        self.browser.until("document.activeElement.id === 'table-title'")
        self.check_quiet()

    def test_links_lead_somewhere(self):
        for name in ("small.html", "shapes.html"):
            self.show(name)
            lost = self.browser.run("""[...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).filter((href) => {
              const words = new URLSearchParams(href.slice(1));
              if (words.has('head')) return !window.attnscopeReport.facts.heads.names.includes(words.get('head'));
              return !document.getElementById(words.get('at') || href.slice(1));
            })""")
            self.assertEqual(lost, [])
            names = self.facts()["heads"]["names"]
            self.assertEqual(len(set(names)), len(names), "two heads have one name")
            self.browser.run("document.querySelector('table.heads tbody tr:last-child a').click()")
            self.browser.until(f"document.querySelector('#head h3').textContent === {json.dumps(names[-1])}")
            self.browser.until("document.activeElement.id === 'head-title'")
            self.check_quiet()

    def test_the_chart_is_read_by_keys_and_by_a_hand(self):
        self.show("small.html")
        curves = self.facts()["sparsity"]["curves"]
        self.assertEqual(self.browser.run("document.querySelectorAll('.chart .curve').length"), len(curves))
        self.browser.run("document.querySelector('.chart svg').focus()")
        self.browser.key("ArrowDown")
        self.browser.key("ArrowRight")
        said = self.text(".chart [role=status]")
        self.assertTrue(said.startswith(curves[1]["name"] + ": "), said)
        self.assertIn(f"{100 * curves[1]['recall'][1]:g}\u00a0%", said)
        # The points stand where their numbers are, on a log scale.
        points = self.browser.run("[...document.querySelectorAll('.chart .curve')].map((c) => c.getAttribute('points'))")
        xs = [float(point.split(",")[0]) for point in points[0].split()]
        self.assertEqual(xs, sorted(xs))
        box = self.browser.run("(() => { const s = document.querySelector('.chart svg'); s.scrollIntoView({block: 'center'}); const b = s.getBoundingClientRect();"
                               " return [b.left, b.top, b.width / s.viewBox.baseVal.width]; })()")
        x, y = (float(v) for v in points[0].split()[0].split(","))
        self.browser.move(box[0] + x * box[2], box[1] + y * box[2])
        said = json.dumps(f"{100 * curves[0]['recall'][0]:g}\u00a0%")
        self.browser.until(f"document.querySelector('.chart [role=status]').textContent.includes({said})")
        self.check_quiet()

    def test_narrow_screens(self):
        for name in ("small.html", "shapes.html"):
            self.browser.resize(390, 844)
            self.show(name)
            self.assertEqual(self.overflow(), 0)
            self.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            self.assertEqual(self.overflow(), 0)
            small = self.browser.run("[...document.querySelectorAll('#report button, #report select')].filter((e) => e.getClientRects().length && e.getBoundingClientRect().height < 24)"
                                     ".map((e) => e.textContent)")
            self.assertEqual(small, [])
            self.browser.keep_picture(f"report-{name[:-5]}-narrow.png")
            self.check_quiet()

    def test_no_text_lies_over_another(self):
        for name in ("small.html", "shapes.html"):
            for width in (1280, 900, 390):
                self.browser.resize(width, 900)
                self.show(name)
                self.check_no_text_over_another(f"{name}, {width} pixels")
                self.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                self.check_no_text_over_another(f"{name}, {width} pixels, all open")

    def test_names_roles_and_headings(self):
        for name in ("small.html", "shapes.html"):
            self.show(name)
            levels = self.browser.run("[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))")
            self.assertEqual(levels.count(1), 1)
            self.assertTrue(all(b - a <= 1 for a, b in zip(levels, levels[1:])), levels)
            nodes = self.browser.ask("Accessibility.getFullAXTree")["nodes"]
            roles = {}
            for node in nodes:
                if not node.get("ignored"):
                    roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", "").strip())
            for role in ("banner", "main", "navigation", "contentinfo", "complementary", "grid", "gridcell", "table", "link", "heading"):
                self.assertIn(role, roles)
            for role in ("button", "link", "slider", "combobox", "searchbox", "checkbox", "grid", "gridcell", "image", "img", "region",
                         "application", "heading", "table", "navigation", "complementary", "article", "Iframe", "DisclosureTriangle"):
                self.assertEqual([text for text in roles.get(role, []) if not text], [], role)
            self.assertEqual(self.browser.run("[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, at, all) => all.indexOf(id) !== at)"), [])

    def test_many_heads_stay_fast(self):
        attnscope("synth", "--grid", "4x4x4", "--text", "none", "--num-heads", 48, "--num-layers", 30, "--head-dim", 20, "-o", "many",
                  "--force", "--quiet")
        attnscope("report", "many", "--max-size", "64MiB", "-o", "many.html", "--force", "--quiet")
        self.show("many.html")
        self.assertEqual(self.browser.run("document.querySelectorAll('.grid .cell').length"), 1440)
        self.assertEqual(self.browser.run("document.querySelectorAll('table.heads tbody tr').length"), 1440)
        # Generous: a loaded machine of two cores sorts 1 440 lines within a second all the same.
        took = self.browser.run("(() => { const begin = performance.now(); document.querySelectorAll('table.heads thead button')[3].click();"
                                " document.body.getBoundingClientRect(); return performance.now() - begin; })()")
        self.assertLess(took, 3000)
        self.browser.keep_picture("report-many.png")
        self.browser.resize(390, 844)
        self.assertEqual(self.overflow(), 0)
        self.check_quiet()
        self.assertLess(os.path.getsize(os.path.join(FOLDER, "many.html")), 64 << 20)
