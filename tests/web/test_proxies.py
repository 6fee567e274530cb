"""`attnscope serve` behind the proxies that stand in front of people's GPUs: nginx, which leaves the path as it is or
takes its part of it away, and JupyterHub's way to a port, jupyter-server-proxy. ATTNSCOPE_NGINX is nginx, ATTNSCOPE_JUPYTER
a Python that has jupyter-server and jupyter-server-proxy; what is not here is skipped, and said."""

import base64
import http.client
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from browser import chromium  # noqa: E402
from served import Server  # noqa: E402

HUB = "hub.example.org"
#: True where the program's page is the window, not a test's.
WINDOW = os.environ.get("ATTNSCOPE_HAS_WINDOW") == "1"


def has_jupyter(python):
    return subprocess.run([python, "-c", "import jupyter_server, jupyter_server_proxy"], capture_output=True,
                          check=False).returncode == 0


# Where they are.
NGINX = os.environ.get("ATTNSCOPE_NGINX") or shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
JUPYTER = os.environ.get("ATTNSCOPE_JUPYTER") or sys.executable
if not has_jupyter(JUPYTER):
    JUPYTER = None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def wait_for(port, process, log):
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                with open(log, encoding="utf-8", errors="replace") as file:
                    raise RuntimeError("the proxy does not listen: " + file.read()) from None
            time.sleep(0.05)


class Place:
    """A prefix of addresses at a proxy, as a browser that has reached it asks for them."""

    def __init__(self, port, path, host, secure=False, fields=None):
        self.port, self.path, self.host, self.secure = port, path, host, secure
        self.fields = fields or {}

    @property
    def origin(self):
        return ("https://" if self.secure else "http://") + self.host

    def socket(self):
        line = socket.create_connection(("127.0.0.1", self.port), 20)
        if not self.secure:
            return line
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(line, server_hostname=self.host)

    def get(self, name, host=None, **fields):
        """Status, fields and body."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        line.sock = self.socket()
        line.putrequest("GET", self.path + name, skip_host=True, skip_accept_encoding=True)
        for key, value in {"Host": host or self.host, "Accept-Encoding": "gzip", **self.fields, **fields}.items():
            line.putheader(key, value)
        line.endheaders()
        answer = line.getresponse()
        body = answer.read()
        line.close()
        return answer.status, answer.headers, body

    def greeting(self, token, origin=None, host=None):
        """What the first frame says after this token: ("text", words), ("close", code), or ("none", status)."""
        line = self.socket()
        fields = {"Host": host or self.host, "Origin": origin or self.origin, "Upgrade": "websocket",
                  "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), **self.fields}
        head = f"GET {self.path}tiles HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items()) + "\r\n"
        line.sendall(head.encode())
        reader = line.makefile("rb")
        status = int(reader.readline().split()[1])
        while reader.readline().strip():
            pass
        if status != 101:
            line.close()
            return "none", status
        mask = os.urandom(4)
        text = bytes(byte ^ mask[i % 4] for i, byte in enumerate(token.encode()))
        line.sendall(bytes([0x81, 0x80 | len(text)]) + mask + text)
        first = reader.read(2)
        length = first[1] & 127 if len(first) == 2 else 0
        payload = reader.read(length)
        line.close()
        if not first or (first[0] & 15) == 8:
            return "close", struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else None
        return "text", payload.decode()


class Behind:
    """What holds behind every proxy; `place` and `server` are there, `other` leads to a server of no options."""

    def test_the_page_and_the_window_come_through(self):
        status, fields, body = self.place.get("")
        self.assertEqual(status, 200)
        self.assertEqual(body[:2], b"\x1f\x8b")
        self.assertIn("frame-ancestors 'self'", fields["Content-Security-Policy"])
        self.assertEqual(fields["X-Frame-Options"], "SAMEORIGIN")
        self.assertEqual(self.place.get("window.js")[0], 200)
        kind, words = self.place.greeting(self.server.token)
        self.assertEqual(kind, "text")
        self.assertTrue(words.startswith("attnscope tiles "), words)

    def test_nothing_without_the_token(self):
        for token in ("0" * 32, "short", self.server.token.upper() + "x"):
            self.assertNotEqual(self.place.greeting(token)[0], "text")

    def test_pages_of_other_places_get_nothing(self):
        for origin in ("https://evil.example", "null", f"https://{HUB}.evil.example"):
            self.assertNotEqual(self.place.greeting(self.server.token, origin=origin)[0], "text", origin)

    def test_nothing_else_is_sent(self):
        for name in ("capture.json", "..%2f..%2fetc/passwd", "index.html", "tiles"):
            status, _, body = self.place.get(name)
            self.assertIn(status, (400, 403, 404, 426), name)
            self.assertNotIn(b"root:", body)

    def test_a_server_that_was_told_of_no_host_refuses(self):
        if self.other is None:
            self.skipTest("this proxy asks by a name of the machine itself")
        self.assertEqual(self.other.get("")[0], 403)
        self.assertNotEqual(self.other.greeting(self.plain.token)[0], "text")

    def test_a_browser_shows_the_window(self):
        if not WINDOW or chromium() is None:
            self.skipTest("the page of attnscope serve, or chromium, is not here")
        from test_window import Window  # only here: it needs a browser
        near, options = f"http://127.0.0.1:{self.place.port}{self.place.path}", ()
        if self.place.secure:
            near = f"https://{HUB}:{self.place.port}{self.place.path}"
            # The test's own certificate, which nobody has signed.
            options = ("--ignore-certificate-errors", f"--host-resolver-rules=MAP {HUB} 127.0.0.1")
        with Window(near + self.query + f"#token={self.server.token}", options=options) as window:
            self.assertIn('"weight":', window.script("atlas off\nlayer 2\nhead 0\nwait exact\nprobe 5 6\n"))
            self.assertEqual([line for line in window.console if "attnscope" in line or "Security" in line], [])


NGINX_CONF = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  server {{
    listen 127.0.0.1:{port}{ssl};
    {certificate}
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    proxy_set_header X-Forwarded-Host $http_host;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_read_timeout 1h;
    {locations}
  }}
}}
"""


class Nginx(unittest.TestCase):
    """One nginx for all of its cases, in a folder of its own."""

    secure = False
    #: Lines of a location, with the port of the server and of one without options.
    locations = ""
    options = ()
    path = "/maps/"

    @classmethod
    def setUpClass(cls):
        if NGINX is None:
            raise unittest.SkipTest("nginx is not here")
        if cls.secure and shutil.which("openssl") is None:
            raise unittest.SkipTest("openssl is not here, for a certificate")
        cls.folder = tempfile.mkdtemp(prefix="attnscope-nginx-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.server = Server(options=cls.options)
        cls.addClassCleanup(cls.server.end)
        cls.plain = Server()
        cls.addClassCleanup(cls.plain.end)
        port = free_port()
        certificate = ""
        if cls.secure:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + HUB, "-days", "2",
                            "-keyout", cls.folder + "/key", "-out", cls.folder + "/cert"], check=True, capture_output=True)
            certificate = f"ssl_certificate {cls.folder}/cert; ssl_certificate_key {cls.folder}/key;"
        locations = cls.locations.format(port=cls.server.port, plain=cls.plain.port)
        with open(cls.folder + "/conf", "w", encoding="utf-8") as file:
            file.write(NGINX_CONF.format(folder=cls.folder, port=port, ssl=" ssl" if cls.secure else "",
                                         certificate=certificate, locations=locations))
        with open(cls.folder + "/said", "wb") as said:
            process = subprocess.Popen(
                [NGINX, "-p", cls.folder, "-c", cls.folder + "/conf", "-e", cls.folder + "/error.log"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.terminate)
        wait_for(port, process, cls.folder + "/said")
        host = HUB if cls.secure else f"127.0.0.1:{port}"
        cls.place = Place(port, cls.path, host, cls.secure)
        cls.other = Place(port, "/plain/", HUB, cls.secure)
        cls.query = ""


KEPT = """
    location /maps/ {{ proxy_set_header Host $http_host; proxy_pass http://127.0.0.1:{port}; }}
    location /plain/ {{ proxy_set_header Host $http_host; proxy_pass http://127.0.0.1:{plain}/; }}
"""
TAKEN = """
    location /maps/ {{ proxy_pass http://127.0.0.1:{port}/; }}
    location /plain/ {{ proxy_set_header Host $host; proxy_pass http://127.0.0.1:{plain}/; }}
"""
# A block of proxy_set_header takes the place of those above it.
UPGRADE = ("proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; "
           "proxy_set_header Host")


class NginxKeepsThePath(Behind, Nginx):
    """https outside, the path and Host as the browser asked."""
    secure = True
    locations = KEPT.replace("proxy_set_header Host", UPGRADE)
    options = ("--allow-host", HUB, "--base-path", "/maps/")


class NginxTakesThePathAway(Behind, Nginx):
    """https outside, Host is nginx's own word for the server (127.0.0.1), Origin the browser's."""
    secure = True
    locations = TAKEN.replace("proxy_set_header Host", UPGRADE)
    options = ("--allow-host", HUB)


class NginxWithoutEncryption(Behind, Nginx):
    """As somebody tries it out on one machine."""
    locations = TAKEN.replace("proxy_set_header Host", UPGRADE)
    options = ("--allow-host", "127.0.0.1", "--base-path", "/maps/")


class Jupyter(unittest.TestCase):
    """A server of Jupyter as a hub starts them: below /user/NAME/, asked for by the hub's name."""

    @classmethod
    def setUpClass(cls):
        if JUPYTER is None:
            raise unittest.SkipTest("jupyter-server and jupyter-server-proxy are not here")
        cls.folder = tempfile.mkdtemp(prefix="attnscope-jupyter-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        port = free_port()
        log = cls.folder + "/log"
        environment = dict(os.environ, HOME=cls.folder, JUPYTER_CONFIG_DIR=cls.folder, JUPYTER_RUNTIME_DIR=cls.folder,
                           JUPYTER_DATA_DIR=cls.folder)
        with open(log, "wb") as said:
            process = subprocess.Popen(
                [JUPYTER, "-m", "jupyter_server", "--allow-root", "--no-browser", f"--ServerApp.port={port}",
                 "--ServerApp.ip=127.0.0.1", "--ServerApp.base_url=/user/me/", "--IdentityProvider.token=secret",
                 "--ServerApp.allow_remote_access=True", "--ServerApp.root_dir=" + cls.folder],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        wait_for(port, process, log)
        cls.server = Server(options=cls.options())
        cls.addClassCleanup(cls.server.end)
        cls.plain = Server()
        cls.addClassCleanup(cls.plain.end)
        fields = {"Authorization": "token secret"}
        cls.place = Place(port, cls.path(cls.server.port), HUB, fields=fields)
        cls.other = Place(port, cls.path(cls.plain.port), HUB, fields=fields)
        cls.query = "?token=secret"


class BehindJupyter(Behind):
    def test_jupyters_own_token_is_asked_for_first(self):
        stranger = Place(self.place.port, self.place.path, HUB)
        self.assertNotEqual(stranger.get("")[0], 200)
        self.assertNotEqual(stranger.greeting(self.server.token)[0], "text")


class JupyterTakesThePathAway(BehindJupyter, Jupyter):
    @classmethod
    def options(cls):
        return ("--allow-host", HUB)

    @classmethod
    def path(cls, port):
        return f"/user/me/proxy/{port}/"


class JupyterKeepsThePath(BehindJupyter, Jupyter):
    @classmethod
    def options(cls):
        cls.fixed = free_port()
        return ("--allow-host", HUB, "--port", str(cls.fixed), "--base-path", f"/user/me/proxy/absolute/{cls.fixed}/")

    @classmethod
    def path(cls, port):
        return f"/user/me/proxy/absolute/{port}/"


if __name__ == "__main__":
    if NGINX is None and JUPYTER is None:
        print("skipped: neither nginx nor jupyter-server-proxy is here")
        sys.exit(77)
    unittest.main(verbosity=2)
