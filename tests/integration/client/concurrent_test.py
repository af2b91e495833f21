"""Tests the client library's threads beside many program threads, in a program that sanitizers see (concurrent_client.cc):
held, released, with windows and other policies, and with its daemon killed and restarted.

Usage: concurrent_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT CONCURRENT_CLIENT
"""

import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "xschedctl"))
import ctl_world  # noqa: E402

THREADS = 6
ROUNDS = 4


class Concurrent(ctl_world.WithDaemon):
    maxDiff = None

    def start_program(self, what=str(THREADS), never_said="queue"):
        """`never_said`: the daemon has no reason to say this of what the program tells."""
        self.errors = pathlib.Path(self.file("errors", ""))
        self.addCleanup(lambda: self.assertEqual(self.said()[:8000], ""))  # a sanitizer's report would be here
        self.addCleanup(lambda: self.assertNotIn(never_said, self.errors.read_text()[:8000]))
        # Write-only, because the library uses standard error only if it is write-only.
        with open(self.errors, "a", encoding="utf-8") as errors:
            program = subprocess.Popen([PROGRAM, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                       env=ctl_world.environment(XSCHEDD_RUNTIME_DIR=self.folder, XSCHEDD_PRIORITY="-5"))
        self.children.append(program)
        return program

    def devices(self, pid):
        client = self.clients().get(pid)
        return client["devices"] if client else []

    def total(self, pid, name):
        return sum(int(device.get(name, 0)) for device in self.devices(pid))

    def await_more(self, pid, name):
        before = self.total(pid, name)
        self.wait(lambda: self.total(pid, name) > before, f"more is {name}")

    def test_beside_everything_that_changes(self):
        numbers = random.Random(1)
        program = self.start_program()
        for number in range(ROUNDS):
            self.wait(lambda: len(self.devices(program.pid)) == 2, "the program is a client of both devices")
            # Of another priority, so that the program is tracked; and busy, so that it is held except for the guard's turns.
            self.client("--priority", 5)
            self.await_more(program.pid, "submitted")
            self.await_more(program.pid, "completed")
            for policy in ("share", "laxity", "priority"):
                self.assertEqual(self.ctl("policy", "set", policy, "--window", numbers.choice(("50us", "500us", "5ms")),
                                          "--guard", "100ms", "--linger", "0us").returncode, 0)
                for _ in range(3):
                    self.assertEqual(self.ctl("hold", "--pid", program.pid).returncode, 0)
                    self.assertEqual(self.ctl("release", "--pid", program.pid).returncode, 0)
                self.await_more(program.pid, "submitted")
            busy = self.client("--priority", 50, "--busy")
            self.await_more(program.pid, "held_ns")
            for child in self.children[1:]:
                if child.pid == busy:
                    child.kill()
            self.assertIsNone(program.poll(), self.said())
            if number < ROUNDS - 1:
                self.daemon.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
                self.daemon.wait()
                self.start_daemon()
        out, _ = program.communicate(timeout=ctl_world.LIMIT_S)
        self.assertEqual(program.returncode, 0, self.said())
        self.assertRegex(out, "^right: [1-9]")

    def test_comes_back_to_a_daemon_after_one_that_no_longer_read(self):
        """gRPC's work for the connection before delays nothing. It would wait for 10 s, and begin again with each stop."""
        program = self.start_program()

        def is_back():
            for number in (signal.SIGSTOP, signal.SIGCONT):
                program.send_signal(number)
            time.sleep(0.2)
            return len(self.clients().get(program.pid, {}).get("queues", [])) > 0  # the daemon has them by a new connection

        for _ in range(ROUNDS):
            self.wait(is_back, "the program is a client")
            for number in 2 * (signal.SIGSTOP, signal.SIGCONT) + (signal.SIGSTOP,):
                self.daemon.send_signal(number)
                time.sleep(0.5 if number == signal.SIGSTOP else 0.1)  # the program fills the socket
            self.daemon.send_signal(signal.SIGKILL)
            self.daemon.wait()
            self.start_daemon()
        self.wait(is_back, "the program is a client of the last daemon")
        program.communicate(timeout=ctl_world.LIMIT_S)
        self.assertEqual(program.returncode, 0, self.said())

    def test_the_daemon_learns_the_newest_hints_and_streams_after_it_did_not_read(self):
        program = self.start_program("toggling")
        self.wait(lambda: program.pid in self.clients(), "the program is a client")
        self.daemon.send_signal(signal.SIGSTOP)
        program.stdin.write(".")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "toggled\n")
        self.daemon.send_signal(signal.SIGCONT)

        def is_told():
            client = self.clients().get(program.pid, {})
            return (client.get("priority_hint"), client.get("weight"), len(client.get("queues", []))) == (7, 70, 1)

        self.wait(is_told, "the daemon knows the newest")
        program.communicate(timeout=ctl_world.LIMIT_S)
        self.assertEqual(program.returncode, 0, self.said())

    def test_streams_over_the_quota_are_not_said_to_be_unknown(self):
        self.file("xschedd.toml", "[quota]\nqueues_per_client = 2\n")
        self.json("reload")
        program = self.start_program(never_said="is not known")
        self.wait(lambda: "the client has 2 queues, the most" in self.errors.read_text(), "a stream is refused")
        destroyed = '"kind":"queue-destroyed"'
        self.wait(lambda: self.ctl("--json", "events").stdout.count(destroyed) > 50, "it destroys streams, listed or not")
        program.communicate(timeout=ctl_world.LIMIT_S)
        self.assertEqual(program.returncode, 0, self.said())

    def test_streams_come_and_go_while_the_daemon_is_greeted(self):
        """The daemon gets each stream exactly once; it would refuse known and unknown ones."""
        program = self.start_program("greeting")
        for _ in range(ROUNDS):
            self.wait(lambda: len(self.clients().get(program.pid, {}).get("queues", [])) == 1, "the daemon knows its stream")
            self.daemon.send_signal(signal.SIGTERM)
            self.daemon.wait()
            self.start_daemon()
        self.wait(lambda: program.pid in self.clients(), "the program is a client again")
        program.communicate(timeout=ctl_world.LIMIT_S)
        self.assertEqual(program.returncode, 0)

    def said(self):
        """Standard error without the client's lines about a lost daemon."""
        lines = self.errors.read_text().splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("xschedd: "))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(4)
    unittest.main(argv=ctl_world.take(sys.argv))
