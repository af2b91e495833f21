"""When one side goes away: programs end with right results whatever happens to the daemon, and the daemon removes
clients that die while held or busy."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import harness
from harness import wait_for

LAUNCHES = 1000
MICROS = 1000


class Failure(harness.NodeTest):
    def start_pair(self, lease_ms=harness.LONG_LEASE_MS):
        """A low client that is held by a busy high one."""
        node = self.node
        node.start_daemon(lease_ms=lease_ms)
        node.ctl("policy", "set", "--guard", 0)
        high = node.start_anchor(priority=50)
        low = node.start("default_stream", LAUNCHES, MICROS, priority=-10)
        wait_for(lambda: len(node.dispatches(low.pid)) >= 5, "the low client launches")
        node.tell(high, "start 1000")
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "the low client is held")
        return high, low

    def test_daemon_absent(self):
        process = self.node.start("default_stream", 50, MICROS, priority=10)
        self.node.finish(process)

    def test_daemon_absent_without_xschedctl(self):
        process = self.node.start("default_stream", 50, MICROS, shim=False, environment={
            "LD_PRELOAD": str(harness.BUILD / "client-shim/libxschedd-shim.so"),
            "XSCHEDD_RUNTIME_DIR": str(self.node.dir / "nowhere")})
        self.node.finish(process)

    def test_daemon_killed_while_a_client_is_held(self):
        high, low = self.start_pair()
        self.node.stop_daemon(signal.SIGKILL)
        self.node.finish(low)
        self.node.tell(high, "stop")

    def test_daemon_stopped_while_a_client_is_held(self):
        high, low = self.start_pair(lease_ms=None)
        self.node.daemon.send_signal(signal.SIGSTOP)
        self.node.finish(low)
        self.node.tell(high, "stop")

    def test_daemon_ended_while_a_client_is_held(self):
        high, low = self.start_pair()
        self.assertEqual(self.node.stop_daemon(signal.SIGTERM), 0)
        self.node.finish(low)
        self.node.tell(high, "stop")

    def held_by_a_daemon_whose_clock_is_off_by(self, seconds):
        """The gate binds by the daemon's clock only while the daemon lives. The clients keep the machine's clock, because the
        device uses it."""
        namespace = ["unshare", "--fork", "--kill-child=KILL", "--time", f"--monotonic={seconds}"]
        if os.geteuid() != 0:
            namespace += ["--user", "--map-current-user"]
        if subprocess.run([*namespace, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no time namespaces here")
        node = self.node
        node.start_daemon(lease_ms=2000, before=namespace)  # long enough for a daemon on a busy machine
        anchor = node.start_anchor(priority=50)
        process = node.start("default_stream", 3 * LAUNCHES, MICROS)
        self.hold_and_release(process, anchor)

        # Stopped, not killed, so that only the lease can release the client.
        node.hold(process.pid)
        wait_for(lambda: node.device_state(process.pid).get("state") == "held", "the client is held again")
        daemon = pathlib.Path(f"/proc/{node.daemon.pid}/task/{node.daemon.pid}/children").read_text()
        os.kill(int(daemon), signal.SIGSTOP)
        self.assertIsNone(process.poll(), "the program ended before its daemon was stopped")
        node.finish(process)

    def test_daemon_with_a_clock_ahead(self):
        self.held_by_a_daemon_whose_clock_is_off_by(86400)

    def test_daemon_with_a_clock_behind(self):
        # It cannot be below zero.
        self.held_by_a_daemon_whose_clock_is_off_by(-int(time.clock_gettime(time.CLOCK_MONOTONIC) / 2))

    def test_clients_return_to_a_restarted_daemon(self):
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--guard", 0)
        high, low = node.start_anchor(priority=50), node.start_anchor(priority=-10)
        for client in (low, high):
            node.tell(client, "start 1000")
        for attempt in ("before", "after"):
            wait_for(lambda: node.device_state(low.pid).get("state") == "held", f"the low client is held {attempt} the restart")
            self.assertEqual(set(node.clients()), {high.pid, low.pid})
            if attempt == "before":
                node.stop_daemon(signal.SIGKILL)
                seen = len(node.dispatches(low.pid))
                wait_for(lambda: len(node.dispatches(low.pid)) > seen + 10, "it runs while there is no daemon")
                node.start_daemon()
        for client in (high, low):
            node.tell(client, "stop")

    def test_daemon_killed_again_and_again(self):
        node = self.node
        high, low = self.start_pair()
        for _ in range(8):
            node.stop_daemon(signal.SIGKILL)
            node.start_daemon()
            wait_for(lambda: high.pid in node.clients(), "the busy client is back")
        node.tell(high, "stop")
        node.finish(low)

    def test_daemon_started_after_the_client(self):
        node = self.node
        anchor_program = node.start("anchor", interactive=True)
        self.assertEqual(anchor_program.stdout.readline().strip(), "ready")
        node.start_daemon()
        wait_for(lambda: anchor_program.pid in node.clients(), "the client connects")

    def test_client_starts_while_the_daemon_is_stopped(self):
        node = self.node
        node.start_daemon()
        node.daemon.send_signal(signal.SIGSTOP)
        node.finish(node.start("default_stream", 50, MICROS, priority=10))

    def test_client_killed_while_held(self):
        node = self.node
        high, low = self.start_pair()
        low.kill()
        wait_for(lambda: low.pid not in node.clients(), "the daemon forgets it")
        self.assertIn(high.pid, node.clients())
        node.tell(high, "stop")

    def test_client_killed_while_busy(self):
        node = self.node
        high, low = self.start_pair()
        high.kill()
        wait_for(lambda: high.pid not in node.clients(), "the daemon forgets it")
        node.finish(low)

    def test_client_exits_while_others_are_held(self):
        node = self.node
        high, low = self.start_pair()
        self.assertEqual(node.device_state(high.pid)["state"], "running")
        high.stdin.close()  # it exits with work in flight
        self.assertEqual(high.wait(harness.DEADLINE_S), 0)
        wait_for(lambda: high.pid not in node.clients(), "the daemon forgets it")
        node.finish(low)

    def test_client_that_is_stopped_while_idle_delays_no_other(self):
        node = self.node
        node.start_daemon()
        stopped = node.start_anchor(priority=50)
        # Its work to attach has finished, and the daemon knows it.
        wait_for(lambda: int(node.device_state(stopped.pid).get("in_flight", 1)) == 0, "it is idle")
        stopped.send_signal(signal.SIGSTOP)
        other = node.start_anchor(priority=-20)
        node.tell(other, "work 50 1000")
        self.assertEqual(other.stdout.readline().strip(), "done")
        state = node.device_state(other.pid)
        self.assertGreater(int(state["submitted"]), 0, "it is tracked")
        self.assertEqual(int(state["held_ns"]), 0)

    def test_a_stopped_busy_client_holds_others_only_briefly(self):
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--guard", 0)  # whose turns would open the other's gate
        high, low = node.start_anchor(priority=50), node.start_anchor(priority=-10)
        node.tell(low, "start 1000")
        node.tell(high, harness.ALWAYS_BUSY)
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "the lower client is held")
        high.send_signal(signal.SIGSTOP)
        wait_for(lambda: node.device_state(high.pid)["state"] == "silent", "ps says that nothing is heard of it")
        wait_for(lambda: node.device_state(low.pid)["state"] == "running", "the lower client is let go")
        before = len(node.dispatches(low.pid))
        wait_for(lambda: len(node.dispatches(low.pid)) > before + 20, "and gets on")
        self.assertIn("silent", {json.loads(line)["kind"] for line in node.ctl("events", "--json").stdout.splitlines()
                                 if json.loads(line).get("pid") == high.pid})
        self.assertIn("was silent for", node.ctl("explain", high.pid, "--duration", "1s").stdout)
        self.assertIn('state="silent"} 1', node.ctl("metrics").stdout)
        # It wakes, and counts again.
        high.send_signal(signal.SIGCONT)
        wait_for(lambda: node.device_state(low.pid)["state"] == "held", "the lower client is held again")
        self.assertEqual(node.device_state(high.pid)["state"], "running")
        node.tell(high, "stop")
        wait_for(lambda: node.device_state(low.pid)["state"] in ("running", "idle"), "it goes on")
        node.tell(low, "stop")

    def test_a_waiting_client_is_not_silent(self):
        """A client that waits at its gate for long still gets its turn."""
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--guard", 0, "--tolerance", 0)
        high, low = node.start_anchor(priority=50), node.start_anchor(priority=-10)
        node.keep_busy(high)
        wait_for(lambda: node.device_state(high.pid).get("state") == "running", "the higher client is busy")
        node.tell(low, "start 1000")
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "the lower client is held")
        # Several times as long as a silent one needs to be noticed.
        held_ns = int(node.device_state(low.pid)["held_ns"])
        wait_for(lambda: int(node.device_state(low.pid)["held_ns"]) > held_ns + 1_500_000_000, "it waits on")
        self.assertEqual({node.device_state(low.pid)["state"], node.device_state(high.pid)["state"]}, {"held", "running"})
        self.assertNotIn('"silent"', node.ctl("events", "--json").stdout)
        node.tell(high, "stop")
        node.tell(low, "stop")

    def test_shim_without_its_library_runs_unscheduled(self):
        node = self.node
        node.start_daemon()
        process = node.start("default_stream", 20, MICROS, environment={"XSCHEDD_CLIENT_LIB": "/nonexistent.so"})
        out, err = process.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("right:", out)
        self.assertEqual(err.count("unscheduled"), 1, "reported once: " + err)


if __name__ == "__main__":
    unittest.main()
