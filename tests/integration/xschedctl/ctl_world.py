"""xschedctl with its own daemon and clients that need no GPU, for the tests in this folder."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

LIMIT_S = 60.0
CTL, DAEMON, CLIENT = "", "", ""


def take(arguments):
    """Takes XSCHEDCTL XSCHEDD FAKE_CLIENT from the arguments; the rest is unittest's."""
    global CTL, DAEMON, CLIENT
    CTL, DAEMON, CLIENT = (os.path.abspath(path) for path in arguments[1:4])
    return [arguments[0], *arguments[4:]]


def environment(**more):
    strange = ("XSCHED", "LD_PRELOAD", "NO_COLOR", "PAGER", "LESS", "COLUMNS")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    return {**clean, "TERM": "xterm", **more}


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="xschedctl-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.children = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGCONT)
            if child.args[0] != DAEMON:
                child.kill()
                child.wait()
                continue
            # By SIGTERM, so that a sanitizer reports what it has found, and coverage is written.
            child.terminate()
            try:
                child.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            self.assertIn(child.returncode, (0, -signal.SIGKILL))

    def start(self, *words, into=None):
        """`into`: a cgroup (cgroups.py)."""
        if into is not None:
            words = ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', f"{into.folder}/cgroup.procs", *words)
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=environment())
        self.children.append(child)
        return child

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def ctl(self, *words, prefix=(), **more):
        """`prefix`: a command that starts it."""
        return subprocess.run([*prefix, CTL, "--runtime-dir", self.folder, *map(str, words)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment(**more))

    def json(self, *words, status=0):
        done = self.ctl("--json", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def fails(self, status, *words, says=(), warns=False, prefix=()):
        """Checks that an error is one line; `warns`: after a line with a warning. `prefix`: as for ctl."""
        done = self.ctl(*words, prefix=prefix)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 2 if warns else 1, done.stderr)
        for part in ("xschedctl: ", "; ", *says):  # cause; remedy
            self.assertIn(part, done.stderr)

    def wait(self, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > end:
                self.fail(f"not within {LIMIT_S:.0f} s: {what}\n{self.seen()}")
            time.sleep(0.02)

    def seen(self):
        """Text of the test for a failure's message."""
        return ""

    def on_terminal(self, *words, columns=100, rows=100, keys="", **more):
        """(exit status, the output to a terminal of this size)."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(CTL, [CTL, "--runtime-dir", self.folder, *map(str, words)], environment(**more))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(pid, signal.SIGWINCH)
        seen = b""
        end = time.monotonic() + LIMIT_S
        pressed = False
        try:
            while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                seen += os.read(terminal, 65536)
                if keys and not pressed:
                    pressed = True
                    os.write(terminal, keys.encode())
        except OSError:  # it has ended
            pass
        os.close(terminal)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode(errors="replace").replace("\r\n", "\n")


class WithDaemon(WithFolder):
    CONFIG = ""
    DEVICES = ["--software-gpu"]  # devices are what clients report

    def setUp(self):
        super().setUp()
        self.config = self.file("xschedd.toml", self.CONFIG)
        self.start_daemon()

    def start_daemon(self, *words):
        self.daemon = self.start(DAEMON, *self.DEVICES, "--runtime-dir", self.folder, "--config", self.config, *words)
        self.wait(lambda: self.ctl("stats").returncode == 0, "the daemon answers")

    def clients(self):
        return {client["pid"]: client for client in self.json("ps")["clients"] if client["devices"]}

    def client(self, *words, into=None):
        pid = self.start(CLIENT, "--runtime-dir", self.folder, *map(str, words), into=into).pid
        self.wait(lambda: pid in self.clients(), "the client is connected")
        return pid

    def held_pair(self):
        """(pid of the higher, pid of the lower, which is held)."""
        high = self.client("--priority", 5, "--busy", "--group", "ranks")
        low = self.client("--priority", -5, "--busy")
        self.wait_for_state(low, "held")
        return high, low

    def wait_for_state(self, pid, state):
        self.wait(lambda: self.clients()[pid]["devices"][0]["state"] == state, f"pid {pid} is {state}")
