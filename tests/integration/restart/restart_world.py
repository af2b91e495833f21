"""A daemon under a service manager that keeps its descriptors, and its tenants, for restart_test.py. Thread rule: main thread."""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "fault"), str(TESTS / "e2e")]
from harness import wait_for  # noqa: E402
from service_manager import ServiceManager  # noqa: E402

GPU = "0000:c1:00.0"
DEADLINE_S = 60.0


class Tenant:
    """A process with one session; see tenant.cc."""

    def __init__(self, folder, hint, before=()):
        self.process = subprocess.Popen([*before, os.environ["XSCHEDD_TENANT"], folder, str(hint), GPU], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        if self.process.stdout.readline().strip() != "ready":
            raise AssertionError("the tenant did not start")
        if before:  # the tenant is a child of the started process
            self.pid = int(pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text())

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.say(line)
        return self.process.stdout.readline().strip()

    def look(self):
        return {name: int(value) for name, value in (part.split("=") for part in self.ask("look").split())}

    def memory(self):
        seen = self.look()
        return seen["board"], seen["ledger"]

    def close(self):
        self.process.kill()
        self.process.communicate()


class Restart(unittest.TestCase):
    order = "sent"
    environment = {}

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="xschedd-restart-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.config = pathlib.Path(self.folder, "config.toml")
        self.config.write_text("[policy]\nguard_ms_per_s = 0\n")
        self.manager = self.make_manager()
        self.addCleanup(lambda: self.manager.close())  # the last manager
        self.addCleanup(self.end_well)
        self.manager.start()

    def end_well(self):
        """By SIGTERM, with a check of the exit code: sanitizers and coverage report when the daemon ends."""
        if self.manager.pid:
            self.assertEqual(self.manager.stop(), 0, self.manager.log_text()[-5000:])

    def make_manager(self, **settings):
        return ServiceManager(self.folder, [os.environ["XSCHEDD_BINARY"], "--software-gpu", "--runtime-dir", self.folder, "--config",
                                            self.config, "--log-level", "debug"],
                              log=f"{self.folder}/log", environment=self.environment, order=self.order,
                              **{"restart_s": 0.02, "watchdog": False, **settings})

    def tenant(self, hint, before=()):
        tenant = Tenant(self.folder, hint, before)
        self.addCleanup(tenant.close)
        wait_for(lambda: any(client["pid"] == str(tenant.pid) and client.get("devices") for client in self.clients()),
                 "the tenant is listed")
        return tenant

    def ctl(self, *words):
        done = subprocess.run([os.environ["XSCHEDCTL"], "--runtime-dir", self.folder, *map(str, words)], text=True,
                              capture_output=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}\n{self.manager.log_text()[-3000:]}")
        return done.stdout

    def clients(self):
        return [{**client, "pid": str(client["pid"])} for client in json.loads(self.ctl("--json", "ps"))["clients"]]

    def client(self, tenant):
        return next((client for client in self.clients() if client["pid"] == str(tenant.pid)), None)

    def policy(self):
        return json.loads(self.ctl("--json", "policy", "get"))

    def saved_when(self, *texts):
        """Waits until the saved state contains the texts: changes are collected for some milliseconds before they are saved."""
        wait_for(lambda: all(text.encode() in self.saved() for text in texts), f"the state holds {texts}")

    def kept(self, tenants):
        """Waits until so many tenants would outlive a kill: their descriptors are stored, and the state names them with their devices."""
        wait_for(lambda: len(self.manager.stored()) == 1 + 3 * tenants, "they and the state are stored")
        wait_for(lambda: self.saved().count(GPU.encode()) == tenants, "they are saved with their devices")

    def saved(self):
        """The content that was saved last, in the newer of the file's two slots (daemon/state/state_file.cc)."""
        fd = self.state_fd()
        slot_bytes = (os.fstat(fd).st_size - 16) // 2
        slots = [(*struct.unpack("<QQ", os.pread(fd, 16, 16 + slot * slot_bytes)), 16 + slot * slot_bytes) for slot in range(2)]
        _, length, offset = max(slots)
        return os.pread(fd, length, offset + 24)

    def state_fd(self):
        return next(fd for name, fd in list(self.manager._store) if name == "state")

    def logged(self, text):
        """Waits for a line of the log, which another thread writes."""
        wait_for(lambda: text in self.manager.log_text(), f"the log says {text}")

    def kill(self):
        """Kills the daemon with SIGKILL, and waits until another is ready."""
        count = self.manager.ready + 1
        self.manager.kill(signal.SIGKILL)
        self.manager.wait_ready(count)

    def held_pair(self):
        low, high = self.tenant(0), self.tenant(50)
        wait_for(lambda: low.look()["tracked"] and high.look()["tracked"], "both are tracked")
        low.ask("busy")
        high.ask("busy")
        wait_for(lambda: low.look()["bound"], "the less important one is held")
        self.kept(2)
        return low, high
