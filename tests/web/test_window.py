"""The window in a browser: what it shows is what the native one shows, what hands do in it, and what becomes of
it when the connection, the server or the place at it goes."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from browser import Browser, chromium  # noqa: E402
from pictures import likeness, read_png  # noqa: E402
from served import PROGRAM, SAMPLE, Server, Way  # noqa: E402

# As tests/viewer/app/test_window_pictures.cpp has them; of the status line, which has sizes of caches, and of the
# toolbar, whose fields are wider where a page lacks "Open", nothing.
LEAST_SIMILARITY, MOST_BAD, STATUS_ROWS, TOOLBAR_ROWS = 0.985, 0.005, 28, 38
# So wide that both toolbars break alike.
WIDTH, HEIGHT = 1280, 800
# Digits in every cell are drawn by another library there: in a smaller window there are fewer of them.
SIZES = {"numbers": (960, 640)}
VIEWS = {
    "whole map": "layer 2\nhead 0\nquery 3 8 7",
    "numbers": "layer 2\nhead 2\nproduct logits\nquery 0 0 3\nzoom 16 20 160 164",
    "tracks": "layer 2\nhead 0\nquery 3 8 7\ntrack rows entropy\ntrack keys mass\nframes on\nzoom 160 592 300 900",
    "difference": "layer 2\nhead 0\nb head 3 0\ndifference signed\nquery 3 8 7\nb ranked on",
    "volume": "layer 2\nhead 0\nquery 3 8 7\nvolume threshold 0.4\nvolume slice t 3\nvolume orbit -40 20\npane volume",
    "film": "layer 2\nhead 0\nquery 3 8 7\npane query\nfilm contour\nfilm one\nfilm frame 4",
    "words": "layer 2\nhead 0\nquery 3 8 7\nwords on\nword \"red circle\"",
    "mask": "layer 2\nhead 0\nquery 3 8 7\nmask spatial:frames=1\nmask drop 0 128 512 640\nmask lost on\nwait mask",
    "atlas": "atlas on\nlayer 2\nhead 0\nquery 3 8 7\nwait atlas",
}
NUMBERS = ("layer 1\nhead 2\nquery 3 8 7\nwait exact\nwait query\n"
           "probe 0 0\nprobe 700 415\nprobe 1023 1023\nprint range_low\nprint range_high\n"
           "b head 3 1\nwait exact\nprobe 512 511\nprint share_below\n")


def native(script, *options):
    """The output of a script in the native window, with the one font that a page has."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(script)
        file.flush()
        environment = dict(os.environ, ATTNSCOPE_FONTS="/nowhere", LIBGL_ALWAYS_SOFTWARE="1")
        environment.pop("DISPLAY", None)
        done = subprocess.run([PROGRAM, "view", SAMPLE, "--cache", "none", "--script", file.name, "--quiet", *options],
                              env=environment, capture_output=True, text=True, timeout=240, check=False)
    if "OpenGL 3.3 cannot draw" in done.stderr:
        raise unittest.SkipTest("OpenGL without a display is not here")
    assert done.returncode == 0, done.stderr
    return done.stdout


class Window(Browser):
    """A page that shows what a server has."""

    def __init__(self, address, width=960, height=640, scale=1, options=()):
        super().__init__(width, height, scale, options)
        try:
            self.open(address)
            self.until("typeof attnscope !== 'undefined'")
        except BaseException:
            self.close()
            raise

    def script(self, text, seconds=120):
        """Runs a script in the page's window and gives its output."""
        return self.run(f"attnscope.script({text!r})", seconds)

    def view(self):
        """The command that shows the same, which the window copies."""
        return self.script("key Ctrl+L\nprint clipboard\n").split(" ", 3)[-1].strip()

    def settled(self):
        self.script("wait exact\nwait idle\n")

    def rows(self):
        self.settled()
        # The browser puts the canvas on the screen a moment later.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return read_png(self.picture())

    def cover(self, text):
        """Waits for a notice over the window."""
        self.until(f"!document.getElementById('cover').hidden && "
                   f"document.getElementById('cover').textContent.includes({text!r})")


class Looks(unittest.TestCase):
    """The pictures and numbers that a page shows, beside those of the native window."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.end()

    def test_pictures_are_those_of_the_native_window(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, script in VIEWS.items():
                width, height = SIZES.get(name, (WIDTH, HEIGHT))
                with self.subTest(view=name), Window(self.server.address(), width, height) as window:
                    window.script("atlas off\nwords off\nfilm none\n" + script + "\n")
                    shown = window.rows()
                    self.assertEqual(window.console, [])
                    file = os.path.join(folder, "native.png")
                    native(f"{script}\nwait exact\nwait idle\nshot {file}\n", "--size", f"{width}x{height}", "--force")
                    with open(file, "rb") as picture:
                        meant = read_png(picture.read())
                    self.assertEqual(shown[:2], meant[:2])
                    similarity, bad = likeness(shown, meant, (0, TOOLBAR_ROWS, width, height - STATUS_ROWS))
                    self.assertGreaterEqual(similarity, LEAST_SIMILARITY)
                    self.assertLessEqual(bad, MOST_BAD)

    def test_another_view_is_told_apart(self):
        with Window(self.server.address()) as window:
            window.script("atlas off\nlayer 2\nhead 0\n")
            one = window.rows()
            window.script("layer 3\n")
            self.assertLess(likeness(one, window.rows(), (0, 0, 960, 612))[0], 0.95)
            window.script("layer 2\n")
            self.assertGreater(likeness(one, window.rows(), (0, 0, 960, 612))[0], 0.9999)

    def test_numbers_are_those_of_the_native_window_to_the_bit(self):
        meant = native(NUMBERS)
        with Window(self.server.address(), 1280, 800) as window:
            self.assertEqual(window.script("atlas off\n" + NUMBERS), meant)
        self.assertIn('"weight":', meant)

    def test_a_browser_that_lacks_something_is_told_what(self):
        for missing, without in (("WebGL 2", "HTMLCanvasElement.prototype.getContext = () => null"),
                                 ("WebAssembly", "delete window.WebAssembly"),
                                 ("SIMD", "WebAssembly.validate = () => false")):
            with self.subTest(missing=missing), Browser() as browser:
                browser.ask("Page.addScriptToEvaluateOnNewDocument", source=without)
                browser.open(self.server.address())
                browser.until(f"!document.getElementById('cover').hidden && "
                              f"document.getElementById('cover-text').textContent.includes({missing!r})")

    def test_a_page_at_rest_draws_nothing(self):
        with Window(self.server.address()) as window:
            window.settled()
            time.sleep(3)  # the speed of the line settles
            before = window.script("print frames\n")
            time.sleep(2)
            frames = [int(float(text.split()[1])) for text in (before, window.script("print frames\n"))]
            self.assertLessEqual(frames[1] - frames[0], 5)


class Hands(unittest.TestCase):
    """The mouse, the keys, the clipboard and the sizes of the window."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.end()

    def until(self, window, what, meant):
        end = time.monotonic() + 10
        while not meant(what()):
            self.assertLess(time.monotonic(), end, what())
            time.sleep(0.05)

    @staticmethod
    def zoom(window):
        """Queries and keys that are seen; nothing: all."""
        words = window.view().split()
        return [int(n) for n in words[words.index("--zoom") + 1].split(",")] if "--zoom" in words else []

    def test_wheel_drag_click_and_keys(self):
        with Window(self.server.address()) as window:
            window.script("atlas off\nlayer 2\nhead 0\nwait exact\n")
            self.assertEqual(self.zoom(window), [])
            window.wheel(330, 320, -300)
            self.until(window, lambda: self.zoom(window), bool)
            q0, q1, k0, k1 = self.zoom(window)
            self.assertTrue(200 < q1 - q0 < 800 and 200 < k1 - k0 < 800)
            # Dragging up and left shows what lies below and right.
            window.drag(330, 320, 290, 270)
            self.until(window, lambda: self.zoom(window), lambda z: z[0] > q0 + 20 and z[2] > k0 + 20)
            now = self.zoom(window)
            self.assertLessEqual(abs(now[1] - now[0] - (q1 - q0)), 1)  # whole tokens of a part of one
            for _ in range(8):
                window.wheel(330, 320, 100)
            self.until(window, lambda: self.zoom(window), lambda z: z in ([], [0, 1024, 0, 1024]))
            window.click(330, 300)
            self.until(window, lambda: window.script("print query\n"), lambda q: "none" not in q)
            window.key("Escape", "Escape")
            self.until(window, lambda: window.script("print query\n"), lambda q: "none" in q)
            window.key("ArrowRight", "ArrowRight")
            window.key("?", "Slash", shift=True)
            window.key("Escape", "Escape")
            self.assertEqual(window.console, [])

    def test_text_and_the_clipboard(self):
        with Window(self.server.address()) as window:
            # Takes the text that is handed to the clipboard; a browser without a screen has none to read.
            window.run("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
            window.script("atlas off\nwait exact\n")
            window.key("p", "KeyP", ctrl=True)
            time.sleep(1)  # the field is there
            for letter in "head 3 1":
                window.key(letter)
            window.key("Enter", "Enter")
            self.until(window, lambda: window.script("print layer\nprint head\n"),
                       lambda text: text == "layer 3\nhead 1\n")
            window.key("l", "KeyL", ctrl=True)
            self.until(window, lambda: window.run("window.copied || ''"),
                       lambda text: text.startswith("attnscope view") and text.endswith("--layers 3 --heads 1"))
            window.key("p", "KeyP", ctrl=True)
            time.sleep(1)
            window.run("""document.getElementById('canvas').dispatchEvent(new ClipboardEvent('paste', {
                bubbles: true, clipboardData: (() => {
                    const data = new DataTransfer(); data.setData('text/plain', 'layer 1'); return data; })()}))""")
            time.sleep(1)
            window.key("Enter", "Enter")
            self.until(window, lambda: window.script("print layer\n"), lambda text: text == "layer 1\n")

    def test_other_sizes_and_scales(self):
        with Window(self.server.address(), 960, 640) as window:
            window.script("atlas off\nlayer 2\nhead 0\nwait exact\n")
            window.click(330, 300)
            self.until(window, lambda: window.script("print query\n"), lambda q: "none" not in q)
            picked = window.script("print query\n")
            sized = "[0, 0].map((_, i) => document.getElementById('canvas')[i ? 'height' : 'width'])"
            self.assertEqual(window.run(sized), [960, 640])
            window.key("Escape", "Escape")
            # Chromium tells of another scale alone by no event while it is emulated.
            window.resize(960, 641, 1)
            window.resize(960, 640, 2)
            window.until("document.getElementById('canvas').width === 1920")
            two = window.rows()
            self.assertEqual(two[:2], (1920, 1280))
            # The layout stays: the same entry is at the same place.
            window.click(330, 300)
            self.until(window, lambda: window.script("print query\n"), lambda q: q.split()[:3] == picked.split()[:3])
            window.resize(700, 500, 1)
            window.until("document.getElementById('canvas').width === 700")
            self.assertEqual(window.rows()[:2], (700, 500))


class Addresses(unittest.TestCase):
    """A view in the page's address: it stays when the page is loaded again, and another browser shows it."""

    VIEW = ("atlas off\nlayer 3\nhead 1\nquery 3 8 7\nproduct lift\ncolormap magma\nzoom 100 300 200.5 420\n"
            "wait query\n")
    NUMBERS = "print layer\nprint head\nprint query\nprint product\nprint colormap\nprint range_low\n"

    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.end()

    def shown(self, window):
        window.settled()
        return window.view(), window.script(self.NUMBERS)

    def test_a_view_stays_when_the_page_is_loaded_again_and_others_see_it(self):
        with Window(self.server.address()) as window:
            steps = window.run("history.length")
            window.script(self.VIEW)
            meant = self.shown(window)
            window.until("location.hash.includes('zoom+100+300+200.5+420')")
            link = window.run("location.href")
            self.assertIn(f"#token={self.server.token}&view=", link)
            self.assertRegex(link, r"^[!-~]+$")
            self.assertEqual(window.run("history.length"), steps)
            window.run("window.before = 1")
            window.ask("Page.reload")
            window.until("typeof window.before === 'undefined' && typeof attnscope !== 'undefined'")
            self.assertEqual(self.shown(window), meant)
            self.assertEqual(window.run("location.href"), link)
            self.assertEqual(window.console, [])
        with Window(link) as other:
            self.assertEqual(self.shown(other), meant)

    def test_a_link_that_is_put_into_the_address_of_an_open_page_is_shown(self):
        with Window(self.server.address()) as window:
            window.script("atlas off\nlayer 1\n")
            window.run("window.before = 1")
            window.run(f"location.hash = '#token={self.server.token}&view=layer+3;head+2;atlas+off'")
            window.until("typeof window.before === 'undefined' && typeof attnscope !== 'undefined'")
            self.assertEqual(window.script("print layer\nprint head\n"), "layer 3\nhead 2\n")

    def test_the_last_move_before_a_page_is_loaded_again_is_kept(self):
        with Window(self.server.address()) as window:
            window.script("atlas off\nlayer 1\n")
            window.until("location.hash.includes('layer+1')")
            time.sleep(0.5)
            window.run("window.before = 1")
            window.run("attnscope.script('layer 2').then(() => requestAnimationFrame(() => location.reload()))")
            window.until("typeof window.before === 'undefined' && typeof attnscope !== 'undefined'")
            self.assertEqual(window.script("print layer\n"), "layer 2\n")

    def test_an_address_can_do_nothing_but_look(self):
        for view, said in (("shot+x.png", "words that change what is looked at"),
                           ("layer+3;save-session+x", "words that change what is looked at"),
                           ("open+/etc/passwd", "words that change what is looked at"),
                           ("layer+99", "layer 99: not in this capture"),
                           ("%E0%A4%A", "address:1"),
                           ("nonsense", "address:1"),
                           ("<img src=x onerror=alert(1)>", "address:1"),
                           ("%23" * 2100, "at most 2000 bytes")):
            with self.subTest(view=view[:40]), Window(self.server.address(view=view)) as window:
                self.assertEqual(window.script("print layer\n"), "layer 0\n")
                self.assertTrue(any(said in line for line in window.console), window.console)
                # Nothing of it is an element or a title.
                self.assertEqual(window.run("document.querySelectorAll('img').length"), 0)
                self.assertIn("view=", window.run("location.hash"))


class Connections(unittest.TestCase):
    """A page whose server does not answer as before."""

    def test_a_lost_connection_is_taken_up_again(self):
        with Server() as server:
            way = Way(server.port)
            try:
                with Window(server.address(way.port)) as window:
                    window.script("atlas off\nlayer 2\nhead 0\n")
                    before = window.rows()
                    way.cut()
                    window.until("document.getElementById('banner').textContent.includes('trying again')")
                    self.assertIn("lost", window.script("print connection\n"))
                    # The map can still be looked at: all but the banner and the status line is as it was.
                    shown = read_png(window.picture())
                    self.assertGreater(likeness(before, shown, (0, 80, 960, 612))[0], 0.999)
                    way.mend()
                    window.until("document.getElementById('banner').hidden", 60)
                    self.assertIn("open", window.script("print connection\n"))
                    window.script("layer 3\nhead 1\nwait exact\nprobe 5 6\n")
            finally:
                way.close()

    def test_a_server_that_was_started_again_takes_its_new_address(self):
        server = Server()
        try:
            with Window(server.address()) as window:
                window.script("atlas off\nlayer 2\nwait exact\n")
                server.end()
                window.until("document.getElementById('banner').textContent.includes('trying again')")
                server = Server(port=server.port)
                window.cover("Each start of it has another one")
                window.run(f"location.hash = '#token={server.token}'")
                window.until("document.getElementById('cover').hidden")
                self.assertEqual(window.script("print layer\nlayer 0\nwait exact\nprint layer\n"), "layer 2\nlayer 0\n")
        finally:
            server.end()

    def test_a_server_with_a_token_file_is_found_again_by_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ("--token-file", os.path.join(folder, "token"))
            server = Server(options=options)
            try:
                with Window(server.address()) as window:
                    window.script("atlas off\nlayer 2\nwait exact\n")
                    server.end()
                    window.until("document.getElementById('banner').textContent.includes('trying again')")
                    server = Server(port=server.port, options=options)
                    window.until("document.getElementById('banner').hidden", 60)
                    self.assertTrue(window.run("document.getElementById('cover').hidden"))
                    self.assertEqual(window.script("print layer\nlayer 0\nwait exact\nprint layer\n"),
                                     "layer 2\nlayer 0\n")
            finally:
                server.end()

    def test_a_page_below_a_base_path(self):
        with Server(options=("--base-path", "/user/me/")) as server, Window(server.address()) as window:
            self.assertEqual(server.path, "/user/me/")
            self.assertIn('"weight":', window.script("wait picture\nprobe 5 6\n"))
            self.assertEqual(window.console, [])

    def test_somebody_else_takes_over_and_it_is_taken_back(self):
        with Server() as server, Window(server.address()) as first:
            first.script("atlas off\nlayer 2\nwait exact\n")
            with Window(server.address()) as second:
                first.cover("Somebody else looks now")
                second.script("layer 1\nwait exact\n")
                first.run("document.getElementById('cover-button').click()")
                second.cover("Somebody else looks now")
                first.until("document.getElementById('cover').hidden")
                self.assertEqual(first.script("print layer\nlayer 3\nwait exact\nprint layer\n"),
                                 "layer 2\nlayer 3\n")

    def test_a_wrong_token_and_none(self):
        with Server() as server:
            for token in ("0" * 32, "short"):
                with self.subTest(token=token), Window(server.address(token=token)) as window:
                    window.cover("The server did not take this address")


if __name__ == "__main__":
    if chromium() is None:
        print("skipped: chromium is not here")
        sys.exit(77)
    unittest.main(verbosity=2)
