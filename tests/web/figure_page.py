"""Pages of `attnscope figure` in a browser, for the tests of test_figure.py and, what it has of browsers, test_report.py,
whose first two words on the command line are meant here as well."""

import os
import struct
import subprocess
import sys
import unittest

from browser import Browser

PROGRAM, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def attnscope(*words, fails=None):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=FOLDER, check=False)
    if fails is None and done.returncode != 0:
        raise AssertionError(f"attnscope {words}: {done.stderr}")
    if fails is not None and done.returncode != fails:
        raise AssertionError(f"attnscope {words} ended with {done.returncode}, not {fails}: {done.stderr}")
    return done.stdout + done.stderr


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    assert b"'<f4'" in data[10:10 + length], data[10:10 + length]
    body = data[10 + length:]
    return struct.unpack(f"<{len(body) // 4}f", body)


class WatchedBrowser(Browser):
    """Notes what the page asks for, and what it does not catch."""

    def __init__(self):
        self.requests, self.exceptions = [], []
        super().__init__(1280, 900)
        self.ask("Network.enable")
        self.set_dark(False)

    def take(self, message):
        super().take(message)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"][:200])
        if message.get("method") == "Runtime.exceptionThrown":
            self.exceptions.append(self.console[-1])

    def set_dark(self, dark):
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def keep_picture(self, name):
        with open(os.path.join(FOLDER, name), "wb") as file:
            file.write(self.picture())


class FigurePage(unittest.TestCase):
    """A browser that shows pages of figures."""

    @classmethod
    def setUpClass(cls):
        attnscope("synth", "--grid", "4x12x16", "--text", "none", "--kinds", "spatial,temporal", "-o", "plain", "--force")
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "-o", "map.html", "--force")
        cls.browser = WatchedBrowser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def show(self, name):
        self.browser.exceptions.clear()
        # Of a page that is opened anew, what was there before would be asked.
        self.browser.open("about:blank")
        self.browser.until("window.attnscope === undefined")
        self.browser.requests.clear()
        self.browser.open("file://" + os.path.join(FOLDER, name))
        self.browser.until("window.attnscope !== undefined")
        self.browser.run("window.attnscope.ready.then(() => true)")
        self.browser.until("window.attnscope.idle()")
        # A row's table may bring a scroll bar, which the canvas hears of in the frame after.
        self.browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def check_quiet(self):
        """No exception, and nothing was asked for but the page and what it made itself."""
        self.assertEqual(self.browser.exceptions, [])
        others = [url for url in self.browser.requests if not url.startswith(("file:", "blob:", "data:"))]
        self.assertEqual(others, [])

    def row(self, number):
        return self.browser.run(f"window.attnscope.row({number}).then((v) => Array.from(v))")

    def expected_row(self, number, *more, capture="plain"):
        attnscope("query", capture, "--layers", 0, "--heads", 1, "--index", number, "--backend", "reference", "-o", "row.npy",
                  "--force", "--quiet", *more)
        return read_npy(os.path.join(FOLDER, "row.npy"))

    def compare(self, got, expected):
        self.assertEqual(len(got), len(expected))
        largest = max(expected)
        for key, (a, b) in enumerate(zip(got, expected)):
            self.assertLessEqual(abs(a - b), 2e-5 * b + 1e-7 * largest, f"key {key}: {a} in the page, {b} by the reference")
