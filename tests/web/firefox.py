"""Firefox, driven by its own protocol (Marionette) over a port of this machine that Firefox chooses; nothing but
Python's own library is needed. It has no WebGL without a screen: for a page that draws by it, Xvfb gives one."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from browser import end_process

PREFERENCES = {
    "marionette.port": 0,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "app.update.auto": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "webgl.force-enabled": True,  # where drawing is software's
}


def firefox():
    """The program's path; None where there is none."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


def xvfb():
    """The program's path; None where there is none."""
    return shutil.which("Xvfb")


class FirefoxError(Exception):
    """A failure of the page or of the browser."""


class Firefox:
    """A browser of its own, with one page, on a screen of Xvfb's or on none. Close it, or use it in a with."""

    def __init__(self, width=1280, height=900, on_screen=False):
        self.folder = tempfile.mkdtemp(prefix="attnscope-firefox-")
        profile = os.path.join(self.folder, "profile")
        os.mkdir(profile)
        with open(os.path.join(profile, "user.js"), "w", encoding="utf-8") as file:
            for name, value in PREFERENCES.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        environment, self.screen = dict(os.environ, HOME=self.folder, LIBGL_ALWAYS_SOFTWARE="1"), None
        environment.pop("WAYLAND_DISPLAY", None)
        if on_screen:
            environment["DISPLAY"] = self.start_screen(width, height)
        self.process = subprocess.Popen(
            [firefox(), *([] if on_screen else ["--headless"]), "--marionette", "--no-remote", "--profile", profile,
             f"--window-size={width},{height}"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.line, self.bytes, self.number = None, b"", 0
        try:
            self.connect(os.path.join(profile, "MarionetteActivePort"))
            self.ask("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})
            self.ask("WebDriver:SetTimeouts", {"script": 120_000, "pageLoad": 120_000})
            self.ask("WebDriver:SetWindowRect", {"width": width, "height": height})
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.line is not None:
            self.line.close()
        end_process(self.process)
        if self.screen is not None:
            self.screen.terminate()
            self.screen.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_screen(self, width, height):
        """The display's name."""
        said, say = os.pipe()
        self.screen = subprocess.Popen(
            [xvfb(), "-displayfd", str(say), "-nolisten", "tcp", "-screen", "0", f"{width}x{height}x24"],
            pass_fds=(say,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(say)
        with open(said, encoding="ascii") as file:
            number = file.readline().strip()
        if not number:
            raise FirefoxError("Xvfb gives no screen")
        return ":" + number

    def connect(self, named):
        end = time.monotonic() + 60
        while True:
            try:
                with open(named, encoding="ascii") as file:
                    self.line = socket.create_connection(("127.0.0.1", int(file.read())), timeout=180)
                    break
            except (OSError, ValueError):
                if time.monotonic() > end or self.process.poll() is not None:
                    raise FirefoxError("Firefox opens no port") from None
                time.sleep(0.05)
        self.receive()

    def receive(self):
        while b":" not in self.bytes:
            self.more()
        length, self.bytes = self.bytes.split(b":", 1)
        while len(self.bytes) < int(length):
            self.more()
        message, self.bytes = self.bytes[:int(length)], self.bytes[int(length):]
        return json.loads(message)

    def more(self):
        got = self.line.recv(1 << 16)
        if not got:
            raise FirefoxError("the browser has ended")
        self.bytes += got

    def ask(self, command, values=None):
        """Does it and returns its answer."""
        self.number += 1
        text = json.dumps([0, self.number, command, values or {}]).encode()
        self.line.sendall(str(len(text)).encode() + b":" + text)
        _, number, error, result = self.receive()
        assert number == self.number, (number, self.number)
        if error:
            raise FirefoxError(f"{command}: {error['error']}: {error['message']}")
        return result

    # Actions of somebody at the browser, and the picture that they see.

    def open(self, address):
        self.ask("WebDriver:Navigate", {"url": address})

    def frame(self, number=0):
        """Chooses the frame of the page that later calls are about, until the next page."""
        self.ask("WebDriver:SwitchToFrame", {"id": number})

    def run(self, expression):
        """The value of an expression of JavaScript; of a promise once it is there. `page` is the page's own window."""
        script = (
            "const done = arguments[arguments.length - 1], page = window.wrappedJSObject || window;"
            f"Promise.resolve().then(() => ({expression}))"
            ".then((value) => done([value]), (error) => done(String(error)))"
        )
        value = self.ask("WebDriver:ExecuteAsyncScript", {"script": script, "args": []})["value"]
        if isinstance(value, str):
            raise FirefoxError(value)
        return value[0]

    def until(self, expression, seconds=60):
        """Waits for an expression to be true, and returns its value; one that fails is not true yet."""
        end = time.monotonic() + seconds
        while True:
            problem = ""
            try:
                value = self.run(expression)
                if value:
                    return value
            except FirefoxError as error:
                problem = str(error)
            if time.monotonic() > end:
                raise FirefoxError(f"not within {seconds} s: {expression} {problem}")
            time.sleep(0.05)

    def picture(self):
        """The picture of the page, as the bytes of a PNG."""
        return base64.b64decode(self.ask("WebDriver:TakeScreenshot", {"full": False})["value"])
