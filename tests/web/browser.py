"""Chromium without a screen, driven by its debugging protocol over two pipes: no port is opened, and nothing
but Python's own library is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def chromium():
    """The program's path; None where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


def end_process(process):
    """Asks it to end, and ends it where it does not within ten seconds."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class BrowserError(Exception):
    """A failure of the page or of the browser."""


class Browser:
    """A browser of its own, with one page, that draws by software; `options` are words of its command line. Close it,
    or use it in a with."""

    def __init__(self, width=960, height=640, scale=1, options=()):
        self.folder = tempfile.mkdtemp(prefix="attnscope-browser-")
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()

        def descriptors():
            # The protocol's are 3 and 4, whatever stood there.
            inward, outward = os.dup(to_read), os.dup(back_write)
            os.dup2(inward, 3)
            os.dup2(outward, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu-sandbox", "--use-angle=swiftshader",
             "--enable-unsafe-swiftshader", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--force-color-profile=srgb", "--user-data-dir=" + self.folder, "--remote-debugging-pipe", *options,
             "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(back_write)
        self.number = 0
        self.bytes = b""
        self.answers = {}
        self.console = []
        self.frames = []
        self.session = None
        try:
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for part in ("Runtime", "Page", "Log"):
                self.ask(part + ".enable")
            self.resize(width, height, scale)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        end_process(self.process)
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    # The protocol.

    def ask(self, method, seconds=30, session=None, **values):
        """Does it and returns its answer. `session`: of a frame, else of the page."""
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": values}
        if session or self.session:
            message["sessionId"] = session or self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds
        while number not in self.answers:
            left = until - time.monotonic()
            if left <= 0:
                raise BrowserError(f"{method}: no answer within {seconds} s\n" + "\n".join(self.console))
            self.listen(left)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def listen(self, seconds):
        """Takes in what the browser says for as long, or until it has said something."""
        if not select.select([self.back], [], [], seconds)[0]:
            return
        got = os.read(self.back, 1 << 20)
        if not got:
            raise BrowserError("the browser has ended")
        self.bytes += got
        while b"\0" in self.bytes:
            message, self.bytes = self.bytes.split(b"\0", 1)
            self.take(json.loads(message))

    def take(self, message):
        if "id" in message:
            self.answers[message["id"]] = message
        elif message.get("method") == "Target.attachedToTarget":
            if message["params"]["targetInfo"]["type"] == "iframe":
                self.frames.append(message["params"]["sessionId"])
        elif message.get("method") == "Runtime.consoleAPICalled":
            said = [str(one.get("value", one.get("description", ""))) for one in message["params"]["args"]]
            self.console.append(message["params"]["type"] + ": " + " ".join(said))
        elif message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.console.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            self.console.append(entry["level"] + ": " + entry["text"])

    # Actions of somebody at the browser, and the picture that they see.

    def resize(self, width, height, scale=1):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                 mobile=False)

    def open(self, address):
        self.ask("Page.navigate", url=address)

    def frame(self, seconds=30):
        """The session of the page's one frame, which is of another origin, once it is there. From the second time on
        that of the page that was opened last."""
        self.frames.clear()
        self.ask("Target.setAutoAttach", autoAttach=False, waitForDebuggerOnStart=False, flatten=True)
        self.ask("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)
        end = time.monotonic() + seconds
        while not self.frames:
            if time.monotonic() > end:
                raise BrowserError(f"no frame within {seconds} s")
            self.listen(0.1)
        for part in ("Runtime", "Log", "Network"):
            self.ask(part + ".enable", session=self.frames[-1])
        return self.frames[-1]

    def run(self, expression, seconds=60, session=None):
        """The value of an expression of JavaScript; of a promise once it is there."""
        result = self.ask("Runtime.evaluate", seconds=seconds, session=session, expression=expression,
                          awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def until(self, expression, seconds=30, session=None):
        """Waits for an expression to be true, and returns its value; one that fails is not true yet."""
        end = time.monotonic() + seconds
        while True:
            problem = ""
            try:
                value = self.run(expression, session=session)
                if value:
                    return value
            except BrowserError as error:
                problem = str(error)
            if time.monotonic() > end:
                raise BrowserError(f"not within {seconds} s: {expression} {problem}\n" + "\n".join(self.console))
            time.sleep(0.05)

    def picture(self):
        """The picture of the page, as the bytes of a PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def mouse(self, kind, x, y, button="none", **values):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, **values)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)

    def wheel(self, x, y, pixels):
        """Downwards; a notch is 100."""
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=pixels)

    def click(self, x, y, button="left"):
        self.move(x, y)
        self.mouse("mousePressed", x, y, button, clickCount=1)
        self.mouse("mouseReleased", x, y, button, clickCount=1)

    def drag(self, x0, y0, x1, y1, button="left", steps=5):
        self.move(x0, y0)
        self.mouse("mousePressed", x0, y0, button, clickCount=1)
        for i in range(1, steps + 1):
            self.mouse("mouseMoved", x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, button,
                       buttons={"left": 1, "right": 2, "middle": 4}[button])
        self.mouse("mouseReleased", x1, y1, button, clickCount=1)

    def key(self, key, code="", ctrl=False, shift=False, text=None):
        """Presses and lets go; `key` and `code` as KeyboardEvent has them."""
        held = (2 if ctrl else 0) | (8 if shift else 0)
        text = key if text is None and len(key) == 1 and not ctrl else text
        values = {"key": key, "code": code, "modifiers": held}
        if text:
            self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **values)
        else:
            self.ask("Input.dispatchKeyEvent", type="rawKeyDown", **values)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **values)
