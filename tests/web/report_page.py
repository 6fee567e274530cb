"""Pages of `attnscope report` in a browser, for the tests of test_report.py."""

import json
import os
import unittest

from figure_page import FOLDER, WatchedBrowser, attnscope
from served import SAMPLE

#: What of a page's text is hard to read, on what it stands: [[contrast, colours, text]…]. Bars are read on both of
#: their colours.
CONTRASTS = """(() => {
  const channels = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const backs = (element) => {
    const found = [];
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage.includes('gradient')) {
        for (const text of style.backgroundImage.match(/rgba?\\([^)]*\\)/g)) if (channels(text)[3] !== 0) found.push(channels(text).slice(0, 3));
      }
      const colour = channels(style.backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return [...found, colour.slice(0, 3)];
    }
    return found;
  };
  const bad = [];
  let texts = 0;
  for (const element of document.querySelectorAll('#report *')) {
    const text = Array.from(element.childNodes).filter((n) => n.nodeType === 3).map((n) => n.textContent.trim()).join('');
    if (!text || element.closest('.unseen') || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    if (style.fontSize === '0px' || style.visibility === 'hidden') continue;
    ++texts;
    const front = channels(element.namespaceURI.endsWith('svg') ? style.fill : style.color).slice(0, 3);
    for (const back of backs(element)) {
      if (contrast(front, back) < 4.5) bad.push([contrast(front, back), front.join() + ' on ' + back.join(), text.slice(0, 40)]);
    }
  }
  return {texts, bad: bad.slice(0, 10)};
})()"""


# Texts of which one lies over another: by their lines as they are laid out, of any font.
OVERLAPS = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), lines = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const owner = node.parentElement;
    if (!node.data.trim() || owner.closest('script, style, noscript, select, .unseen') || !owner.checkVisibility({checkVisibilityCSS: true})) continue;
    const range = document.createRange(), holder = owner.closest('.scroll');
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) lines.push({node, holder, text: node.data.trim().slice(0, 40), box});
  }
  lines.sort((a, b) => a.box.top - b.box.top);
  const bad = [];
  lines.forEach((a, i) => {
    for (let j = i + 1; j < lines.length && lines[j].box.top < a.box.bottom - 4; ++j) {
      const b = lines[j];
      // What scrolls away within a part of the page lies beside it, cut off.
      if (b.node === a.node || a.holder !== b.holder) continue;
      if (Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left) > 2 && a.box.bottom - b.box.top > 0.35 * Math.min(a.box.height, b.box.height))
        bad.push(a.text + ' | ' + b.text);
    }
  });
  return {texts: lines.length, bad: bad.slice(0, 10)};
})()"""


class ReportPage(unittest.TestCase):
    """A browser that shows pages of reports."""

    is_made = False

    @classmethod
    def setUpClass(cls):
        if not ReportPage.is_made:
            ReportPage.is_made = True
            attnscope("synth", "--grid", "3x6x8", "--text", "16@start", "--head-kinds", "temporal,spatial,text,sink",
                      "--num-layers", 3, "--num-steps", 3, "-o", "small", "--force", "--quiet")
            attnscope("report", "small", "-o", "small.html", "--force", "--quiet")
            attnscope("report", SAMPLE, "-o", "shapes.html", "--force", "--quiet")
        cls.browser = WatchedBrowser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.browser.resize(1280, 900)

    def show(self, name, words=""):
        self.browser.open("about:blank")
        self.browser.until("window.attnscopeReport === undefined")
        self.browser.exceptions.clear()
        self.browser.console.clear()
        self.browser.requests.clear()
        self.browser.open("file://" + os.path.join(FOLDER, name) + words)
        self.browser.until("window.attnscopeReport !== undefined && document.readyState === 'complete'")

    def check_quiet(self):
        """No line on the console, and nothing was asked for but the page and what it made itself."""
        self.assertEqual(self.browser.console, [])
        others = [url for url in self.browser.requests if not url.startswith(("file:", "blob:", "data:", "about:"))]
        self.assertEqual(others, [])

    def facts(self):
        return self.browser.run("window.attnscopeReport.facts")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector):
        return self.browser.run(f"Array.from(document.querySelectorAll({json.dumps(selector)}), (e) => e.textContent)")

    def check_no_text_over_another(self, where):
        found = self.browser.run(OVERLAPS)
        self.assertGreater(found["texts"], 100)
        self.assertEqual(found["bad"], [], where)

    def overflow(self):
        """CSS pixels by which the page is wider than what is seen."""
        return self.browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
