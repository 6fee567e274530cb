#!/usr/bin/env python3
"""How long the window in a browser takes over a slow line to its first picture: `attnscope serve` here, Chromium
without a screen here, and between them a line of so many megabits a second whose answers take so many milliseconds.

    bench/page_line.py CAPTURE [--program build/release/bin/attnscope] [--line 100,30] [--runs 3] [--wait SECONDS]

The line is this program's: each connection takes a round trip to be opened and begins as slowly as TCP does
(slow_line.py). Chromium draws by software. Each run has a server and a browser of its own, with an empty cache, and one more that loads the page
again, as a looker who comes back does. --wait: seconds between the server's start and the page's, in which somebody
pastes its address. Times are seconds since the navigation began, on the page's clock: when the program was there,
when its connection was, when the first picture was drawn, when the map was whole as far as it is shown."""

import argparse
import os
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tests", "web")]
sys.dont_write_bytecode = True
from slow_line import SlowStart, relay  # noqa: E402

# Before anything of the page: notes when things were there.
WATCH = """
window.seen = {};
const started = WebSocket;
window.WebSocket = function(...words) {
  const socket = new started(...words);
  seen.connecting = performance.now();
  socket.addEventListener('open', () => { seen.connected = performance.now(); });
  socket.addEventListener('message', (event) => {
    seen.messages = (seen.messages || 0) + 1;
    seen.bytes = (seen.bytes || 0) + (event.data.byteLength || event.data.length);
    if (!seen.first) seen.first = performance.now();
  });
  return socket;
};
Object.assign(window.WebSocket, started);
window.WebSocket.prototype = started.prototype;
const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
const look = setInterval(() => {
  if (typeof attnscope === 'undefined') return;
  clearInterval(look);
  seen.program = performance.now();
  attnscope.script('wait picture\\n').then(drawn).then(() => { seen.picture = performance.now(); });
}, 2);
"""
TIMES = """(() => {
  const files = Object.fromEntries(performance.getEntriesByType('resource').map((entry) =>
      [entry.name.split('/').pop(), [entry.startTime, entry.responseEnd]]));
  return {...seen, files};
})()"""


class Line:
    """A port whose connections lead to another port's over the line."""

    def __init__(self, port, megabits, milliseconds):
        self.to, self.rate, self.delay = port, megabits * 1e6 / 8, milliseconds / 2e3
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.to))
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened = time.monotonic() + 2 * self.delay
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(source, target, opened), daemon=True).start()

    def carry(self, source, target, opened):
        relay(source.fileno(), os.dup(target.fileno()), self.rate, self.delay, opened, SlowStart(2 * self.delay))
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was closed already


def measure(browser, address):
    # A browser that is in use has its drawing process already; here it is software's, which takes long to begin.
    browser.open("about:blank")
    browser.until("document.createElement('canvas').getContext('webgl2') !== null")
    browser.open(address)
    browser.until("window.seen && seen.picture", 120)
    times = browser.run(TIMES)
    files = times.pop("files")
    text = ", ".join(f"{name} {begin / 1e3:.2f}-{end / 1e3:.2f}" for name, (begin, end) in files.items())
    return {name: value if name in ("messages", "bytes") else value / 1e3 for name, value in times.items()}, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("capture")
    parser.add_argument("--program", default=os.path.join(os.path.dirname(HERE), "build", "release", "bin", "attnscope"))
    parser.add_argument("--line", default="100,30", help="Mbit/s of each direction, ms of a round trip")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--wait", type=float, default=3)
    options = parser.parse_args()
    os.environ["ATTNSCOPE"] = options.program
    from browser import Browser
    from served import Server

    megabits, milliseconds = map(float, options.line.split(","))
    for run in range(options.runs):
        with Server(options.capture) as server, Browser(1280, 800) as browser:
            line = Line(server.port, megabits, milliseconds)
            time.sleep(options.wait)
            browser.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
            for kind in ("empty cache", "again"):
                times, files = measure(browser, server.address(line.port))
                print(f"run {run + 1}, {kind}: program {times['program']:.2f}, connecting {times['connecting']:.2f}, "
                      f"connected {times['connected']:.2f}, first message {times['first']:.2f}, "
                      f"picture {times['picture']:.2f} ({times['messages']} messages, {times['bytes'] / 1e6:.2f} MB)\n  {files}",
                      flush=True)


if __name__ == "__main__":
    main()
