"""Shared by the tests in this folder: a private daemon, calls by several users, and clients in unusual namespaces."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
from harness import wait_for  # noqa: E402 pylint: disable=wrong-import-position

XSCHEDD, XSCHEDCTL, CALL, CLIENT = "", "", "", ""

GPU = "0000:c1:00.0"
# Two users who are not root; that the machine has no name for the second does not matter.
ALICE, BOB = 65534, 61234

OK, INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 0, 3, 5, 7, 8, 9
# PreambleStatus
WELCOME, QUOTA, NOT_VISIBLE = 0, 2, 4

needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root to become several users: nothing of this was tested")


def identity(uid: Optional[int], also_in: Optional[List[int]] = None) -> Dict[str, Any]:
    """Arguments of subprocess with which the child runs as that user."""
    return {} if uid is None else {"user": uid, "group": uid, "extra_groups": also_in or []}


def needs(command: List[str], uid: int = 0) -> Callable[[Any], Any]:
    """Skips a class unless this is root and `command`, such as unshare, runs a program as user `uid`. A chroot has no user
    namespaces, and no mounts of its own if its / is not a mount point."""
    if os.geteuid() != 0:
        return needs_root
    done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False, **identity(uid))
    why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return unittest.skipUnless(done.returncode == 0, f"no namespace by {' '.join(command)} as uid {uid}: {why}")


@contextlib.contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Connections of this process meanwhile are that user's."""
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class Answer(NamedTuple):
    status: int
    text: str
    answers: List[str]
    connect_error: int = 0


class Client:
    """A process scripted_client, with one session."""

    def __init__(self, where: str, *words: str, uid: Optional[int] = None, prefix: Optional[List[str]] = None,
                 **popen: Any) -> None:
        self.process = subprocess.Popen([*(prefix or []), CLIENT, where, *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **identity(uid), **popen)
        self.first = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, order: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return self.line()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_welcome(self) -> bool:
        return self.first.startswith("welcome ")

    def end(self) -> None:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        self.process.wait()


class WithDaemon(unittest.TestCase):
    CONFIG = ""
    PREFIX: List[str] = []  # prefix of the daemon's command
    DEVICES = ["--software-gpu"]  # devices are what clients report

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="xschedd-rights-")
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.log_path = os.path.join(self.folder, "log")
        config = os.path.join(self.folder, "config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(self.CONFIG)
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen([*self.PREFIX, XSCHEDD, *self.DEVICES, "--runtime-dir", self.folder, "--config", config,
                                            "--log-level", "debug"], stdout=log, stderr=log)
        self.addCleanup(self.end_daemon)
        wait_for(lambda: "ready version" in self.log() or self.daemon.poll() is not None, "the daemon")
        self.assertIsNone(self.daemon.poll(), "the daemon ended: " + self.log())

    def end_daemon(self) -> None:
        """By SIGTERM, with a check of the exit code: sanitizers and coverage report when the daemon ends."""
        if self.daemon.poll() is None:
            # `unshare --fork` does not pass the signal on.
            with open(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children", encoding="utf-8") as file:
                children = [int(pid) for pid in file.read().split()]
            for pid in children or [self.daemon.pid]:
                os.kill(pid, signal.SIGTERM)
        try:
            self.assertEqual(self.daemon.wait(60), 0, self.log()[-5000:])
        finally:
            self.daemon.kill()
            self.daemon.wait()

    def log(self) -> str:
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def logged(self, text: str) -> None:
        """Waits for a line of the log, which another thread writes."""
        wait_for(lambda: text in self.log(), f"the log says {text}")

    def client(self, *words: str, uid: Optional[int] = None, where: Optional[str] = None, **popen: Any) -> Client:
        client = Client(where or self.folder, *words, uid=uid, **popen)
        self.addCleanup(client.end)
        return client

    def call(self, method: str, request: str = "", uid: Optional[int] = None, on: str = "client", count: int = 1,
             prefix: Optional[List[str]] = None, also_in: Optional[List[int]] = None) -> Answer:
        done = subprocess.run([*(prefix or []), CALL, os.path.join(self.folder, on + ".sock"), method, request,
                               str(count)], capture_output=True, text=True, timeout=60, check=True, **identity(uid, also_in))
        lines = done.stdout.splitlines()
        answers = [line[len("ANSWER "):].replace("\\'", "'") for line in lines if line.startswith("ANSWER ")]
        if lines[-1].startswith("CONNECT "):
            return Answer(-1, "", [], int(lines[-1].split()[1]))
        _, status, text = lines[-1].split(" ", 2)
        return Answer(int(status), text, answers)

    def ctl(self, *words: str, uid: Optional[int] = None, prefix: Optional[List[str]] = None,
            also_in: Optional[List[int]] = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*(prefix or []), XSCHEDCTL, "--runtime-dir", self.folder, *words], capture_output=True,
                              text=True, timeout=60, check=False, **identity(uid, also_in))

    def clients(self, uid: Optional[int] = None, on: str = "admin") -> List[Dict[str, int]]:
        """pid, uid, effective and hold of each client that the answer shows."""
        answer = self.call("ListClients", uid=uid, on=on)
        self.assertEqual(answer.status, OK, answer.text)
        shown = []
        for one in re.findall(r"clients \{ id: (.*?)(?=clients \{ id:|$)", answer.answers[0]):
            found = {}
            for field in ("pid", "uid", "gid", "priority_effective"):
                value = re.search(rf" {field}: (-?\d+)", one)
                found[field] = int(value.group(1)) if value else 0
            found["hold"] = int(" hold: true" in one)
            shown.append(found)
        return shown

    def pids(self) -> List[int]:
        return [client["pid"] for client in self.clients()]

    def one(self, pid: int) -> Dict[str, int]:
        return next(client for client in self.clients() if client["pid"] == pid)

    def layout(self) -> bytes:
        """The hello of a shim of this build."""
        if not hasattr(self, "hello"):
            text = self.call("GetVersion", on="admin").answers[0]
            version, layout = (int(text.split(name + ": ")[1].split()[0]) for name in ("abi_version", "layout_hash"))
            self.hello = struct.pack("<4sIQ", b"XSH1", version, layout)
        return self.hello

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(60)
        connection.connect(os.path.join(self.folder, "client.sock"))
        return connection

    def preamble(self, connection: Optional[socket.socket] = None) -> int:
        """The status with which the daemon answers a shim's first bytes; -1: it closed without an answer."""
        hello = self.layout()
        connection = connection or self.connect()
        try:
            connection.sendall(hello)
        except BrokenPipeError:
            pass  # it has answered already
        answer, descriptors, _, _ = socket.recv_fds(connection, 40, 3)
        for descriptor in descriptors:
            os.close(descriptor)
        return struct.unpack("<4sI", answer[:8])[1] if len(answer) >= 8 else -1


def main() -> None:
    global XSCHEDD, XSCHEDCTL, CALL, CLIENT  # pylint: disable=global-statement
    XSCHEDD, XSCHEDCTL, CALL, CLIENT = sys.argv[1:5]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[5:]])
