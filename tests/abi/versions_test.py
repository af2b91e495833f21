"""Clients and daemons of different versions: neighbours work together, others refuse each other and say so.

One case is run by `python3 versions_test.py Versions.test_CASE`, with XSCHEDD_BUILD. Thread rule: one test, one thread.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import harness  # noqa: E402
from harness import wait_for  # noqa: E402

HERE = harness.BUILD / "tests/abi"
TODAY = harness.BUILD / "daemon/xschedd"
TODAYS_VERSION = 4
SPOKEN = "1, 2, 3 and 4"
VERSION_MISMATCH = 1  # PreambleStatus


class Versions(harness.NodeTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, harness, "daemon_path", harness.daemon_path)

    def start_daemon(self, path):
        harness.daemon_path = path
        self.node.start_daemon()
        # The guard would open held gates now and then.
        self.node.ctl("policy", "set", "--guard", 0, "--linger", 0)

    def frozen(self, priority):
        """A client of version 1, and what it says first."""
        client = subprocess.Popen([HERE / "frozen_client", self.node.runtime_dir, str(priority)], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=harness.dies_with_this_process())
        self.node.processes.append(client)
        line = client.stdout.readline().strip()
        self.assertTrue(line, "the frozen client said nothing: " + ("" if line else client.stderr.read()))
        return client, line

    def say(self, client, command):
        self.node.tell(client, command)
        return client.stdout.readline().strip()

    def newer(self, ahead):
        """A client of today's sources, `ahead` versions ahead, which says that it is busy once it is tracked."""
        return self.other(f"ahead_{ahead}")

    def other(self, release):
        client = subprocess.Popen([HERE / f"fake_client_{release}", self.node.runtime_dir, "50", "0000:c1:00.0"],
                                  text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=harness.dies_with_this_process())
        self.node.processes.append(client)
        return client

    def refusals(self):
        return [line for line in self.node.daemon_log().splitlines() if "refused reason=" in line]

    # ---- an old client, by the frozen headers
    def be_scheduled(self, daemon):
        self.start_daemon(daemon)
        high, first = self.frozen(50)
        low, second = self.frozen(-10)
        self.assertEqual((first, second), ("connected 1", "connected 1"))
        for client in (high, low):
            wait_for(lambda c=client: self.say(c, "gate") == "tracked", "both are tracked")
        self.say(low, "busy")
        wait_for(lambda: self.node.device_state(low.pid).get("state") == "running", "its transition is seen")
        self.say(high, "busy")
        wait_for(lambda: self.say(low, "gate") == "held", "the lower one is held")
        self.assertEqual(self.say(high, "gate"), "tracked")
        self.assertEqual(self.node.device_state(low.pid)["state"], "held")
        low.stdin.write("wait\n")
        low.stdin.flush()
        wait_for(lambda: self.node.device_state(low.pid).get("state") == "held", "it waits")
        self.say(high, "idle")
        self.assertEqual(low.stdout.readline().strip(), "through")
        wait_for(lambda: self.say(low, "gate") == "tracked", "it is released")
        self.assertEqual(self.refusals(), [])

    def test_frozen_client_of_todays_daemon(self):
        self.be_scheduled(TODAY)

    def test_a_stopped_frozen_client_counts_as_it_always_did(self):
        """Version 1 has no renewals: busy stays busy."""
        self.start_daemon(TODAY)
        (high, _), (low, _) = self.frozen(50), self.frozen(-10)
        wait_for(lambda: self.say(low, "gate") == "tracked", "both are tracked")
        self.say(high, "busy")
        wait_for(lambda: self.say(low, "gate") == "held", "the lower one is held")
        high.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        # Well beyond what a newer client has.
        while time.monotonic() < begun + 1.5:
            self.assertEqual(self.say(low, "gate"), "held")
            self.assertEqual(self.node.device_state(high.pid)["state"], "running")

    def test_frozen_client_of_the_next_daemon(self):
        self.start_daemon(HERE / "xschedd_ahead_1")
        _, line = self.frozen(0)
        self.assertEqual(line, f"refused {VERSION_MISMATCH} {TODAYS_VERSION + 1}")
        wait_for(self.refusals, "the daemon tells it, too")
        self.assertIn(f"it speaks at most version 1 of the shared memory, this daemon "
                      f"{TODAYS_VERSION} and {TODAYS_VERSION + 1}; install the shim of this daemon's release",
                      self.refusals()[0])
        self.assertEqual(self.node.clients(), {})

    # ---- a newer client
    def schedule_newer(self, daemon, ahead, other):
        """A newer client and another one are scheduled by `daemon`."""
        self.start_daemon(daemon)
        low = other()
        newer = self.newer(ahead)
        self.assertEqual(newer.stdout.readline().strip(), "ready")  # attached, tracked, busy
        self.assertEqual(self.refusals(), [])
        # The daemon's log has a thread of its own, and may be behind.
        wait_for(lambda: f"newer client asked to retry with our version pid={newer.pid} " in self.node.daemon_log(), "it was asked")
        return newer, low

    def test_next_client_of_todays_daemon(self):
        newer, (low, line) = self.schedule_newer(TODAY, 1, lambda: self.frozen(-10))
        self.assertEqual(line, "connected 1")
        wait_for(lambda: self.say(low, "gate") == "held", "it holds the lower one")
        newer.kill()
        wait_for(lambda: self.say(low, "gate") == "open", "it is forgotten")

    def test_client_of_the_release_before_of_todays_daemon(self):
        """Scheduled as ever, and nothing is asked of it that it does not know; of version 1 neither are time slices."""
        self.start_daemon(TODAY)
        self.node.ctl("policy", "set", "--time-slices", "auto", "--max-concurrent", "1")
        low, line = self.frozen(-10)
        self.assertEqual(line, "connected 1")
        before = self.other("before")
        self.assertEqual(before.stdout.readline().strip(), "ready")  # attached, tracked, busy
        self.assertEqual(self.refusals(), [])
        wait_for(lambda: self.say(low, "gate") == "held", "it holds the lower one")
        self.assertEqual(self.node.device_state(low.pid)["slice"], "no time slices here: the client's shim is of an older release")
        limited = self.node.ctl("set", "--memory", "1G", "--pid", before.pid).stdout
        self.assertIn("not limited: the client's shim is of an older release", limited)
        self.assertIsNone(self.node.device_state(before.pid)["memory_limit_bytes"])
        before.kill()
        wait_for(lambda: self.say(low, "gate") == "open", "it is forgotten")

    def test_neighbours_ahead(self):
        """The next release's client and the one's after next at the latter's daemon: nothing is about version 1."""
        self.start_daemon(HERE / "xschedd_ahead_2")
        first, second = self.newer(1), self.newer(2)
        for client in (first, second):
            wait_for(lambda c=client: self.node.device_state(c.pid), "it is attached")
        self.assertEqual(self.refusals(), [])

    def test_client_after_next_of_todays_daemon(self):
        self.start_daemon(TODAY)
        newer = self.newer(2)
        _, err = newer.communicate(timeout=harness.DEADLINE_S)
        self.assertIn("status 1", err)  # of another version
        wait_for(self.refusals, "the daemon tells it")
        self.assertEqual(len(self.refusals()), 1, "it comes once: there is no version in common")
        self.assertIn(f"it speaks version {TODAYS_VERSION + 2} of the shared memory, this daemon {SPOKEN}; "
                      "install a daemon of its shim's release", self.refusals()[0])

    def test_a_build_that_was_never_published(self):
        """The same version with another hash is no match, whatever the rest."""
        self.start_daemon(TODAY)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.node.runtime_dir / "client.sock"))
            client.sendall(struct.pack("<4sIQ", b"XSH1", TODAYS_VERSION, 12345))
            answer = client.recv(40, socket.MSG_WAITALL)
            magic, status, version, _, layout_hash = struct.unpack("<4sIIIQ", answer[:24])
            self.assertEqual((magic, status, version), (b"XSW1", VERSION_MISMATCH, TODAYS_VERSION))
            self.assertNotEqual(layout_hash, 12345)
            self.assertEqual(client.recv(1), b"", "and that is all")
        wait_for(self.refusals, "the daemon tells it")
        self.assertIn("differs from the released one", self.refusals()[0])


if __name__ == "__main__":
    unittest.main()
