"""Head.show(): the page in a notebook, what stands in its place, and the page's numbers in Chromium."""

import base64
import html
import re
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import attnscope
from attnscope import views
from reference import ROOT, SAMPLE, random_heads

sys.path.insert(0, str(ROOT / "tests" / "web"))
from browser import Browser, chromium  # noqa: E402
from hostile_words import HOSTILE, name_hostile_words  # noqa: E402

_PNG = b"\x89PNG"


def sample_head() -> attnscope.Head:
    return attnscope.open(SAMPLE)[10, 2, "cond"].head(1)


def page_of(bundle: dict[str, str]) -> str:
    """The page within the frame, as a browser reads the attribute."""
    found = re.search(r'<iframe [^>]*? srcdoc="([^"]*)"></iframe>', bundle["text/html"])
    assert found is not None
    return html.unescape(found[1])


class ZMQInteractiveShell:
    """Stands in for IPython's shell of a notebook's kernel."""

    execution_count = 7


class NotebookShell(ZMQInteractiveShell):
    """Other notebooks derive their own."""


class InNotebook:
    """A context in which there seems to be a notebook; its value is what was displayed."""

    def __init__(self) -> None:
        self.shell = NotebookShell()
        self.shown: list[dict[str, str]] = []
        ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        ipython.get_ipython = lambda: self.shell  # type: ignore[attr-defined]
        display.display = lambda one: self.shown.append(one._repr_mimebundle_())  # type: ignore[attr-defined]
        self.patch = mock.patch.dict(sys.modules, {"IPython": ipython, "IPython.display": display})

    def __enter__(self) -> "InNotebook":
        self.patch.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.patch.__exit__(*failure)


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Pages(Folder):
    def test_elsewhere_it_is_a_page_to_save(self) -> None:
        view = sample_head().show()
        self.assertEqual((view.reason, view.stride, view.queries, view.keys), ("", 1, 1024, 1024))
        self.assertIn('.save("map.html")', repr(view))
        self.assertTrue(view.html.startswith("<!doctype html>"))
        self.assertTrue(view.png.startswith(_PNG))
        path = view.save(self.folder / "map.html")
        self.assertEqual(path.read_text(encoding="utf-8"), view.html)
        with self.assertRaisesRegex(attnscope.Error, "map.html: is there already .force=True"):
            view.save(path)
        view.save(path, force=True)
        self.assertEqual(view.save(self.folder / "map.png").read_bytes(), view.png)
        with self.assertRaisesRegex(attnscope.Error, "must end in .html or .png"):
            view.save(self.folder / "map.pdf")
        with self.assertRaises(attnscope.Error) as raised:
            view.save(self.folder / "none" / "map.html")
        self.assertEqual(raised.exception.code, "file")
        with self.assertRaisesRegex(attnscope.Error, "which is read: nothing is written into a capture"):
            view.save(Path(SAMPLE) / "map.html", force=True)
        self.assertFalse((Path(SAMPLE) / "map.html").exists())

    def test_it_is_the_page_of_the_command(self) -> None:
        attnscope.command(
            "figure", SAMPLE, out=self.folder / "map.html", steps=10, layers=2, branch="cond", heads=1, quiet=True,
            rows="100:900", stride=3,
        )  # fmt: skip
        made = (self.folder / "map.html").read_text(encoding="utf-8")
        view = sample_head().show(rows=slice(100, 900), stride=3)
        self.assertEqual((view.stride, view.queries, view.keys), (3, 267, 342))
        ours, theirs = (re.sub(r'"command":"(\\.|[^"])*"', "", page) for page in (view.html, made))
        self.assertEqual(ours, theirs)
        self.assertIn(
            "attnscope.open('moving-shapes')[10, 2, 'cond'].head(1).show(rows='100:900', stride=3)", view.html
        )
        self.assertNotIn(str(SAMPLE.parent), view.html)

    def test_parts(self) -> None:
        view = sample_head().show(rows=slice(-24, None), cols="16:")
        self.assertEqual((view.queries, view.keys), (24, 1008))
        for options, words in (
            ({"rows": slice(0, 9, 2)}, "rows: expected a slice without a step"),
            ({"rows": [1, 2]}, "rows: expected a slice"),
            ({"cols": "9:90000"}, "cols 9:90000: 90000 is out of range"),
            ({"rows": slice(5, 5)}, "holds nothing"),
            ({"stride": 0}, "stride 0: expected"),
            ({"height": 5}, "height 5: expected"),
        ):
            with self.assertRaisesRegex(attnscope.Error, words) as raised:
                sample_head().show(**options)
            self.assertEqual(raised.exception.code, "usage")
        q = random_heads((8, 4))
        q[3, 2] = np.nan
        with self.assertRaises(attnscope.Error) as raised:
            attnscope.call(q.astype(np.float32), q.astype(np.float32)).head(0).show()
        self.assertEqual(raised.exception.code, "value")

    def test_a_notebook_shows_it_once(self) -> None:
        with InNotebook() as notebook:
            view = sample_head().show(height=400)
            (bundle,) = notebook.shown
            self.assertEqual(set(bundle), {"text/html", "image/png", "text/plain"})
            self.assertEqual(page_of(bundle), view.html)
            self.assertIn('sandbox="allow-scripts"', bundle["text/html"])
            self.assertIn("height:400px", bundle["text/html"])
            self.assertTrue(base64.b64decode(bundle["image/png"]).startswith(_PNG))
            # As the cell's last value it would be there twice.
            self.assertEqual(view._repr_mimebundle_(), {"text/plain": repr(view)})
            notebook.shell.execution_count += 1
            self.assertEqual(view._repr_mimebundle_(), bundle)

    def test_hostile_words_stay_words(self) -> None:
        capture = self.folder / "dump"
        attnscope.command("synth", grid="4x4x4", text="16@start", kinds="text", out=capture, quiet=True)
        name_hostile_words(capture, HOSTILE, [[HOSTILE] + ["word"] * 15])
        bundle = attnscope.open(capture)[0, 0].head(0).show()._repr_mimebundle_()
        text = bundle["text/html"]
        self.assertEqual(len(re.findall("<iframe|<img|<script|<title", text)), 1)
        self.assertTrue(text.endswith("run the cell.</div></div>"))
        page = page_of(bundle)
        self.assertNotIn("<img", page)
        self.assertNotIn("</iframe", page)

    def test_other_scores(self) -> None:
        q, k = (random_heads((40, 16), seed).astype(np.float32) for seed in (1, 2))
        for score in ("sigmoid", "linear:elu1", "linear:relu"):
            view = attnscope.call(q, k, score=score).head(0).show()
            self.assertEqual(view.reason, "")
            self.assertIn(f'"score":"{score}"', view.html)


class Pictures(Folder):
    """The picture that is shown where there can be no page."""

    def check(self, view: attnscope.HeadView, words: str) -> None:
        self.assertIsNone(view.html)
        self.assertRegex(view.reason, words)
        self.assertNotIn("\n", view.reason)
        self.assertTrue(view.png.startswith(_PNG))
        self.assertIn(view.reason, repr(view))
        bundle = view._repr_mimebundle_()
        self.assertIn(html.escape(view.reason), bundle["text/html"])
        self.assertIn('src="data:image/png;base64,' + bundle["image/png"] + '"', bundle["text/html"])
        with self.assertRaisesRegex(attnscope.Error, "there is no page"):
            view.save(self.folder / "map.html")
        self.assertFalse((self.folder / "map.html").exists())

    def test_biases(self) -> None:
        q = random_heads((30, 8)).astype(np.float32)
        head = attnscope.call(q, q, mask=random_heads((30, 30)).astype(np.float32)).head(0)
        with InNotebook() as notebook:
            view = head.show(rows=slice(3, 20))
        self.check(view, "adds biases to logits")
        self.assertEqual(notebook.shown, [view._repr_mimebundle_()])

    def test_too_large(self) -> None:
        q = random_heads((2, 24_000, 128)).astype(np.float32)
        head = attnscope.call(q[0], q[1]).head(0)
        view = head.show()
        self.check(view, r"33.2 MB of queries and keys, more than the 32 MB .* take stride=2 .* rows=\"A:B\"")
        self.assertEqual((view.stride, view.queries, view.keys), (47, 511, 24_000))
        self.assertIn("It has one query in 47.", view._repr_mimebundle_()["text/html"])
        self.assertIsNotNone(head.show(rows=slice(0, 100)).html)

    def test_signed_weights(self) -> None:
        from safetensors.numpy import save_file

        q, k = (np.abs(random_heads((1, 1, 24, 8), seed)).astype(np.float32) for seed in (1, 2))
        q[..., :2] *= -1
        tensors = {"q": q, "k": k, "normaliser": np.full((1, 1, 24), 10, np.float32)}
        facts = {
            "format": "attnscope-capture/2",
            "step": "0",
            "layer": "0",
            "branch": "cond",
            "score": "linear:normaliser",
            "scale": "1",
        }
        save_file(tensors, self.folder / "step00_layer00.safetensors", metadata=facts)
        head = attnscope.open(self.folder)[0, 0].head(0)
        self.assertLess(head.weights().min(), 0)
        self.check(head.show(), "either sign")

    def test_exports(self) -> None:
        for product in ("weights", "logits"):
            made = attnscope.export(
                SAMPLE, out=self.folder / f"{product}.h5", layers=1, heads=2, product=product, quiet=True
            )
            (stored,) = attnscope.open(made)
            view = stored.show()
            self.check(view, "an export has no queries and keys")
            self.assertEqual(view.stride, 2)

    def test_what_is_drawn_is_the_map(self) -> None:
        calls = []

        def read(rows: range) -> np.ndarray:
            calls.append(rows)
            return np.add.outer(np.asarray(rows) * 1000.0, np.arange(1500.0))

        with mock.patch.object(views, "_MOST_READ", 150_000), mock.patch.object(views, "png") as png:
            _, step = views._sampled(read, range(10, 1210), 1500)
        self.assertEqual(step, 3)
        self.assertEqual([row for rows in calls for row in rows], list(range(10, 1210, 3)))
        self.assertTrue(all(len(rows) <= 100 for rows in calls))
        drawn = png.call_args[0][0]
        self.assertEqual(drawn.shape, (400, 500))
        np.testing.assert_allclose(drawn[7], 1000.0 * (10 + 3 * 7) + 3 * np.arange(500) + 1)


class InChromium(Folder):
    """The bundle's HTML in a page, as a notebook has it."""

    def setUp(self) -> None:
        super().setUp()
        if chromium() is None:
            self.skipTest("no chromium on the path")

    def open(self, browser: Browser, view: attnscope.HeadView, policy: str = "") -> str:
        page = self.folder / "notebook.html"
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
        body = view._repr_mimebundle_()["text/html"]
        page.write_text(
            f'<!doctype html><meta charset="utf-8">{meta}<title>notebook</title><body>{body}',
            encoding="utf-8",
        )
        browser.open(page.as_uri())
        browser.until("document.title === 'notebook'")
        frame = browser.frame()
        browser.until("window.attnscope !== undefined", session=frame)
        browser.run("window.attnscope.ready.then(() => true)", session=frame)
        return frame

    def check_rows(self, browser: Browser, frame: str, head: attnscope.Head) -> None:
        for number in (0, 17, 1000):
            got = browser.run(f"window.attnscope.row({number}).then((v) => Array.from(v))", session=frame)
            expected = head.weights(number).astype(np.float64)
            bound = 2e-5 * expected + 1e-7 * expected.max()
            self.assertLessEqual(np.max(np.abs(np.array(got) - expected) - bound), 0)

    def test_numbers_are_those_of_the_head(self) -> None:
        head = sample_head()
        with Browser(1280, 900) as browser:
            frame = self.open(browser, head.show())
            self.check_rows(browser, frame, head)
            self.assertFalse(browser.run("document.querySelector('.inpage') !== null", session=frame))
            # The frame reaches nothing of the notebook, nor the notebook into it.
            self.assertEqual(browser.run("window.origin", session=frame), "null")
            with self.assertRaisesRegex(Exception, "SecurityError|Blocked a frame"):
                browser.run("window.parent.document.title", session=frame)
            self.assertEqual([line for line in browser.console if line.startswith("exception")], [])

    def test_a_notebook_that_allows_no_worker(self) -> None:
        head = sample_head()
        policy = (
            "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
            "img-src https: data:; connect-src https:; child-src https: data:"
        )
        with Browser(1280, 900) as browser:
            frame = self.open(browser, head.show(), policy)
            self.check_rows(browser, frame, head)
            browser.until("window.attnscope.idle()", session=frame)
            self.assertTrue(browser.run("document.querySelector('.inpage') !== null", session=frame))

    def test_hostile_words_stay_words(self) -> None:
        capture = self.folder / "dump"
        attnscope.command("synth", grid="4x4x4", text="16@start", kinds="text", out=capture, quiet=True)
        name_hostile_words(capture, HOSTILE, [[HOSTILE] + ["word"] * 15])
        with Browser(1280, 900) as browser:
            frame = self.open(browser, attnscope.open(capture)[0, 0].head(0).show())
            prompt = "document.querySelector('.prompt').textContent"
            self.assertEqual(browser.run(prompt, session=frame), "prompt: " + HOSTILE)
            self.assertEqual(browser.run("document.images.length", session=frame), 0)
            self.assertEqual(browser.run("document.title"), "notebook")
            self.assertEqual(browser.run("document.images.length"), 0)
            self.assertEqual(browser.run("document.querySelectorAll('iframe').length"), 1)


if __name__ == "__main__":
    unittest.main()
