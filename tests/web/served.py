"""`attnscope serve` as a process, and a way to it that can be cut."""

import os
import re
import select
import socket
import subprocess
import threading

PROGRAM = os.environ.get("ATTNSCOPE", "attnscope")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLE = os.path.join(ROOT, "samples", "moving-shapes")


class Server:
    """Serves the sample until it is ended, or at the end of a with."""

    def __init__(self, capture=SAMPLE, port=None, options=()):
        words = [PROGRAM, "serve", capture, "--cache", "none", "--quiet", *options]
        if port:
            words += ["--port", str(port)]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+)(/.*)#token=([0-9a-f]{32})$", line.strip())
        if not found:
            self.process.kill()
            raise RuntimeError(f"serve said {line!r} and {self.process.communicate()[1]!r}")
        self.port, self.path, self.token = int(found[1]), found[2], found[3]

    def address(self, port=None, token=None, view=None):
        behind = f"&view={view}" if view else ""
        return f"http://127.0.0.1:{port or self.port}{self.path}#token={token or self.token}{behind}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.kill()
        self.process.communicate()


class Way:
    """A port that leads to another one, until it is cut: connections end then and no new one is taken."""

    def __init__(self, port):
        self.to = port
        self.open = True
        self.ends = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.to))
            self.ends += [near, far]
            threading.Thread(target=carry, args=(near, far), daemon=True).start()

    def cut(self):
        self.open = False
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.ends = []

    def mend(self):
        self.open = True

    def close(self):
        self.cut()
        self.listener.close()


def carry(near, far):
    try:
        while True:
            for end in select.select([near, far], [], [])[0]:
                got = end.recv(1 << 16)
                if not got:
                    return
                (far if end is near else near).sendall(got)
    except OSError:
        pass
    finally:
        near.close()
        far.close()
