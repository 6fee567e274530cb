"""The window through `ssh -L`, by a real sshd of this very user on a port of 127.0.0.1, to a Unix socket and to a port.
Usage: test_ssh.py PROGRAM; exits with 77 where sshd, ssh or Chromium is not here."""

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from browser import Browser, chromium  # noqa: E402

PROGRAM = None
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLE = os.path.join(ROOT, "samples", "moving-shapes")
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait_for(port, process):
    end = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"nobody listens at {port}: {process.args[0]}") from None
            time.sleep(0.05)


class SshTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="attnscope-ssh-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.file(name)], check=True)
        shutil.copy(self.file("user.pub"), self.file("allowed"))
        self.port = free_port()
        with open(self.file("config"), "w", encoding="utf-8") as file:
            file.write(f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.file('host')}\nUsePAM no\n"
                       f"AuthorizedKeysFile {self.file('allowed')}\nStrictModes no\nPasswordAuthentication no\n"
                       "PermitRootLogin prohibit-password\nPidFile none\n")
        if os.geteuid() == 0:  # which a started sshd of the system's has made
            os.makedirs("/run/sshd", exist_ok=True)
        self.sshd = self.start([SSHD, "-D", "-e", "-f", self.file("config")])
        wait_for(self.port, self.sshd)

    def file(self, name):
        return os.path.join(self.folder, name)

    def start(self, words, **options):
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
                                   **{"stdout": subprocess.DEVNULL, **options})
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def look(self, *place):
        """Serves at the place, and opens the page by the very line that serve prints for ssh, with another port here."""
        server = self.start([PROGRAM, "serve", SAMPLE, "--cache", "none", "--quiet", *place], stdout=subprocess.PIPE)
        address, line = server.stdout.readline().strip(), server.stdout.readline().strip()
        self.addCleanup(server.stdout.close)
        found = re.fullmatch(r"ssh -N -L '?(\d+):(.*?)'? '?\S+?'?", line)
        self.assertIsNotNone(found, line)
        here = free_port()
        ssh = self.start(["ssh", "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o",
                          "IdentitiesOnly=yes", "-i", self.file("user"), "-p", str(self.port), "-o", "ExitOnForwardFailure=yes",
                          "-N", "-L", f"{here}:{found[2]}", f"{getpass.getuser()}@127.0.0.1"])
        wait_for(here, ssh)
        with Browser(960, 640) as browser:
            browser.open(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{here}", address))
            browser.until("typeof attnscope !== 'undefined'", 60)
            said = browser.run("attnscope.script('layer 1\\nhead 2\\nwait exact\\nprobe 700 415\\n')", 120)
            self.assertIn('"weight"', said)
            ssh.terminate()
            ssh.wait()
            browser.until("!document.getElementById('banner').hidden", 60)
        return said

    def test_a_socket_and_a_port(self):
        path = self.file("s.sock")
        by_socket = self.look("--socket", path)
        self.assertEqual(by_socket, self.look())


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    missing = [name for name, path in (("sshd", SSHD), ("ssh", shutil.which("ssh")), ("chromium", chromium())) if not path]
    if missing:
        print("skipped: not on the path: " + ", ".join(missing))
        sys.exit(77)
    unittest.main()
