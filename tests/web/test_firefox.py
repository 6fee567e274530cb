"""The pages in Firefox: a figure and a report from a disk, and the window of attnscope serve. Usage: test_firefox.py PROGRAM FOLDER;
exits with 77 where there is no Firefox. Its pictures stay in FOLDER."""

import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from firefox import Firefox, firefox, xvfb  # noqa: E402

PROGRAM, FOLDER = None, None


def attnscope(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=FOLDER, check=False)
    if done.returncode != 0:
        raise AssertionError(f"attnscope {words}: {done.stderr}")
    return done.stdout


def keep_picture(browser, name):
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(browser.picture())


def reference_row(layer, head, number):
    """A row of the capture `plain`, by the reference."""
    attnscope("query", "plain", "--layers", layer, "--heads", head, "--index", number, "--backend", "reference", "-o", "row.csv",
              "--force", "--quiet")
    with open(os.path.join(FOLDER, "row.csv"), encoding="utf-8") as file:
        names, *lines = (line.rstrip().split(",") for line in file)
    return [float(line[names.index("weight")]) for line in lines]


class FirefoxTest(unittest.TestCase):
    def compare(self, got, expected):
        self.assertEqual(len(got), len(expected))
        largest = max(expected)
        worst = max(abs(a - b) - 2e-5 * b for a, b in zip(got, expected))
        self.assertLessEqual(worst, 1e-7 * largest)

    def test_a_figure_from_a_disk(self):
        attnscope("synth", "--grid", "4x12x16", "--text", "none", "--kinds", "spatial,temporal", "-o", "plain", "--force")
        attnscope("figure", "plain", "--layers", 0, "--heads", 1, "-o", "map.html", "--force")
        with Firefox() as browser:
            browser.open("file://" + os.path.join(FOLDER, "map.html"))
            browser.until("page.attnscope !== undefined")
            browser.run("page.attnscope.ready.then(() => true)")
            # By a worker of its own, which pages of files may have.
            self.assertTrue(browser.run("document.querySelector('.inpage') === null"))
            for number in (0, 17, 767):
                got = browser.run(f"page.attnscope.row({number}).then((v) => Array.from(v))")
                self.compare(got, reference_row(0, 1, number))
            browser.run("page.attnscope.pick(100).then(() => true)")
            self.assertIn("query 100 ", browser.run("document.querySelector('.row p').textContent"))
            keep_picture(browser, "firefox-figure.png")

    def test_a_report_from_a_disk(self):
        attnscope("synth", "--grid", "4x12x16", "--text", "none", "--kinds", "spatial,temporal", "-o", "plain", "--force")
        attnscope("report", "plain", "-o", "report.html", "--force", "--quiet")
        with Firefox() as browser:
            browser.open("file://" + os.path.join(FOLDER, "report.html"))
            browser.until("page.attnscopeReport !== undefined")
            facts = json.loads(browser.run("JSON.stringify(page.attnscopeReport.facts)"))
            heads = facts["heads"]
            self.assertEqual(browser.run("document.querySelectorAll('.grid .cell').length"), len(heads["names"]))
            self.assertEqual(browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
            keep_picture(browser, "firefox-report.png")
            at, head = next((at, look["head"]) for at, look in enumerate(facts["looks"]) if look["figure"] is not None)
            browser.run(f"document.querySelector('#look-{at} .open').click()")
            browser.until("parseInt(document.querySelector('.exact iframe').style.height) > 200")
            browser.run("document.querySelector('.exact').scrollIntoView()")
            keep_picture(browser, "firefox-report-exact.png")
            browser.frame()
            browser.run("page.attnscope.ready.then(() => true)")
            got = browser.run("page.attnscope.row(17).then((v) => Array.from(v))")
            self.compare(got, reference_row(heads["layer"][head], heads["head"][head], 17))

    def test_the_window(self):
        if xvfb() is None:
            self.skipTest("no Xvfb on the path, without which Firefox has no WebGL")
        os.environ["ATTNSCOPE"] = PROGRAM
        from served import SAMPLE, Server

        with Server() as server, Firefox(on_screen=True) as browser:
            browser.open(server.address())
            browser.until("page.attnscope !== undefined")
            said = browser.run("page.attnscope.script('layer 1\\nhead 2\\nquery 3 8 7\\nwait exact\\nwait query\\n"
                               "probe 700 415\\nprobe 0 0\\nprint range_low\\n')")
            keep_picture(browser, "firefox-window.png")
        script = os.path.join(FOLDER, "script.txt")
        with open(script, "w", encoding="utf-8") as file:
            file.write("layer 1\nhead 2\nquery 3 8 7\nwait exact\nwait query\nprobe 700 415\nprobe 0 0\nprint range_low\n")
        environment = dict(os.environ, LIBGL_ALWAYS_SOFTWARE="1")
        environment.pop("DISPLAY", None)
        native = subprocess.run([PROGRAM, "view", SAMPLE, "--cache", "none", "--script", script, "--quiet"], text=True,
                                env=environment, capture_output=True, check=False)
        if "OpenGL 3.3 cannot draw" in native.stderr:
            self.skipTest("OpenGL without a display is not here")
        self.assertIn("weight", said)
        self.assertEqual(said, native.stdout)


if __name__ == "__main__":
    PROGRAM, FOLDER = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    os.makedirs(FOLDER, exist_ok=True)
    if firefox() is None:
        print("skipped: no firefox on the path")
        sys.exit(77)
    unittest.main()
