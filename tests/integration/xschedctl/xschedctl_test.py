#!/usr/bin/env python3
"""xschedctl against the real daemon with clients that need no GPU: every exit status, JSON that parses, and changes that
show. Usage: xschedctl_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from typing import List, Optional

XSCHEDCTL, XSCHEDD, FAKE_CLIENT = "", "", ""


class Result:
    def __init__(self, done: subprocess.CompletedProcess):
        self.status, self.out, self.error = done.returncode, done.stdout, done.stderr


def ctl(folder: str, *words: str, prefix: Optional[List[str]] = None, **environment: str) -> Result:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("XSCHEDD_", "LD_PRELOAD"))}
    return Result(subprocess.run((prefix or []) + [XSCHEDCTL, "--runtime-dir", folder, *words], capture_output=True,
                                 text=True, timeout=30, check=False, env={**clean, **environment}))


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within 10 s")
        time.sleep(0.02)


class WithFolder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="xschedctl-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.processes: List[subprocess.Popen] = []
        self.addCleanup(self.end_all)

    def end_all(self) -> None:
        for process in reversed(self.processes):
            # A stopped process takes no SIGTERM.
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, *words: str) -> subprocess.Popen:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def one_line(self, result: Result, status: int, *parts: str) -> None:
        self.assertEqual(result.status, status, result.error)
        lines = result.error.strip().splitlines()
        self.assertEqual(len(lines), 1, result.error)
        self.assertTrue(lines[0].startswith("xschedctl: "), lines[0])
        for part in parts:
            self.assertIn(part, lines[0])


class WithoutDaemon(WithFolder):
    def test_no_socket_is_no_daemon_and_comes_at_once(self) -> None:
        begun = time.monotonic()
        for words in (["ps"], ["set", "--priority", "5", "--pid", "1"], ["hold", "--all"], ["policy", "get"], ["stats"],
                      ["events"], ["explain", "1"], ["reload"], ["drain"], ["ps", "--json"]):
            self.one_line(ctl(self.folder, *words), 3, "admin.sock", "start xschedd")
        self.assertLess(time.monotonic() - begun, 10)

    def test_version_is_told_without_a_daemon(self) -> None:
        result = ctl(self.folder, "version")
        self.assertIn("xschedctl ", result.out)
        self.assertEqual(result.status, 3)
        self.assertEqual(ctl(self.folder, "--version").status, 0)

    def test_usage(self) -> None:
        self.one_line(ctl(self.folder), 2, "no command")
        self.one_line(ctl(self.folder, "bogus"), 2, "bogus")
        self.one_line(ctl(self.folder, "set", "--pid", "1"), 2, "--reset")
        self.one_line(ctl(self.folder, "set", "--priority", "5"), 2, "--all")
        self.one_line(ctl(self.folder, "policy", "set", "--window", "25"), 2, "25ms")
        for priority in ("101", "-101", "high", "1.5"):
            self.one_line(ctl(self.folder, "set", "--priority", priority, "--pid", "1"), 2, "-100 to 100")

    def test_run_fails_open(self) -> None:
        shim = os.path.join(self.folder, "shim.so")
        # Something that the dynamic linker can preload and that does nothing.
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, "-x", "c", "/dev/null"], check=True)
        result = ctl(self.folder, "run", "--shim", shim, "--priority", "-7", "--group", "g", "--", "sh", "-c",
                     'echo "$LD_PRELOAD|$XSCHEDD_PRIORITY|$XSCHEDD_GROUP|$XSCHEDD_RUNTIME_DIR"; exit 42')
        self.assertEqual(result.status, 42)
        self.assertEqual(result.out.strip(), f"{shim}|-7|g|{self.folder}")
        self.assertIn("unscheduled", result.error)
        kept = ctl(self.folder, "run", "--shim", shim, "--", "sh", "-c", 'echo "$LD_PRELOAD"', LD_PRELOAD=shim + "2")
        self.assertEqual(kept.out.strip(), f"{shim}:{shim}2")

    def test_run_says_what_is_missing(self) -> None:
        self.one_line(ctl(self.folder, "run", "--shim", "/nowhere.so", "--", "true"), 8, "/nowhere.so")
        self.one_line(ctl(self.folder, "run", "--"), 2, "no command")
        self.one_line(ctl(self.folder, "run", "--priority", "300", "--", "true"), 2, "-100 to 100")
        missing = ctl(self.folder, "run", "--shim", "/dev/null", "--", "/nowhere/at/all")
        self.assertEqual(missing.status, 127, missing.error)
        plain = os.path.join(self.folder, "plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("text")
        self.assertEqual(ctl(self.folder, "run", "--shim", "/dev/null", "--", plain).status, 126)


class WithDaemon(WithFolder):
    def setUp(self) -> None:
        super().setUp()
        self.daemon = self.start(XSCHEDD, "--runtime-dir", self.folder)
        wait_until(lambda: ctl(self.folder, "stats").status == 0, "the daemon")

    def client(self, *words: str) -> int:
        process = self.start(FAKE_CLIENT, "--runtime-dir", self.folder, *words)
        wait_until(lambda: process.pid in self.clients(), "the client")
        return process.pid

    def json(self, *words: str) -> dict:
        result = ctl(self.folder, "--json", *words)
        self.assertEqual(result.status, 0, result.error)
        self.assertEqual(result.error, "")
        return json.loads(result.out)

    def clients(self) -> dict:
        return {client["pid"]: client for client in self.json("ps")["clients"] if client["devices"]}

    def test_ps_shows_hint_and_state(self) -> None:
        high = self.client("--priority", "5", "--busy", "--group", "ranks")
        low = self.client("--priority", "-5", "--busy")
        wait_until(lambda: self.clients()[low]["devices"][0]["state"] == "held", "the hold of the lower one")
        clients = self.clients()
        self.assertEqual(clients[high]["priority_hint"], 5)
        self.assertEqual(clients[high]["priority_source"], "hint")
        self.assertEqual(clients[high]["group"], "ranks")
        self.assertEqual(clients[low]["devices"][0]["held_for"], f"pid {high}")
        plain = ctl(self.folder, "ps")
        self.assertIn("HINT", plain.out.splitlines()[0])
        self.assertEqual(len(ctl(self.folder, "ps", "--no-header").out.splitlines()), 2)
        self.assertEqual(len(ctl(self.folder, "ps", "--no-header", "--pid", str(low)).out.splitlines()), 1)

    def test_set_reset_and_dry_run(self) -> None:
        pid = self.client("--priority", "5")
        would = self.json("set", "--priority", "-50", "--pid", str(pid), "--dry-run")
        self.assertTrue(would["dry_run"])
        self.assertEqual(would["changes"][0]["priority_after"], -50)
        self.assertEqual(self.clients()[pid]["priority_effective"], 5)
        before = time.monotonic_ns()
        done = self.json("set", "--priority", "-50", "--pid", str(pid))
        self.assertEqual((done["changes"][0]["priority_before"], done["changes"][0]["priority_after"]), (5, -50))
        self.assertGreaterEqual(time.monotonic_ns(), done["applied_ns"])
        self.assertGreater(done["applied_ns"], before - 10**9)
        self.assertEqual(self.clients()[pid]["priority_source"], "admin")
        self.json("set", "--reset", "--pid", str(pid))
        self.assertEqual(self.clients()[pid]["priority_effective"], 5)

    def test_hold_and_release(self) -> None:
        pid = self.client("--busy")
        self.json("hold", "--pid", str(pid))
        self.assertTrue(self.clients()[pid]["hold"])
        self.json("release", "--all")
        self.assertFalse(self.clients()[pid]["hold"])

    def test_nobody_fits(self) -> None:
        self.one_line(ctl(self.folder, "set", "--priority", "5", "--pid", "1"), 5, "pid 1")
        self.one_line(ctl(self.folder, "explain", "1"), 5, "pid 1")
        self.one_line(ctl(self.folder, "hold", "--exe", "no-such-program"), 5, "no-such-program")

    def test_policy(self) -> None:
        changed = self.json("policy", "set", "--window", "2ms", "--turn", "50ms", "--guard", "0")
        self.assertEqual((changed["window_us"], changed["turn_ms"], changed["guard_ms_per_s"]), (2000, 50, 0))
        self.assertEqual(self.json("policy", "get"), changed)
        self.one_line(ctl(self.folder, "policy", "set", "no-such-policy"), 2)
        self.one_line(ctl(self.folder, "policy", "set", "--window", "900s"), 2, "range")

    def test_events_remembered_and_followed(self) -> None:
        pid = self.client()
        self.json("set", "--priority", "9", "--pid", str(pid))
        result = ctl(self.folder, "--json", "events")
        self.assertEqual(result.status, 0, result.error)
        events = [json.loads(line) for line in result.out.splitlines()]
        self.assertIn(("priority", pid, 9), [(event["kind"], event["pid"], event["priority"]) for event in events])
        self.assertEqual([event["time_ns"] for event in events], sorted(event["time_ns"] for event in events))

        follower = subprocess.Popen([XSCHEDCTL, "--runtime-dir", self.folder, "--json", "events", "--follow"],
                                    stdout=subprocess.PIPE, text=True)
        self.processes.append(follower)
        self.addCleanup(follower.stdout.close)
        time.sleep(0.3)
        self.json("set", "--priority", "11", "--pid", str(pid))
        self.assertEqual(json.loads(follower.stdout.readline())["priority"], 11)

    def test_everything_answers_in_json(self) -> None:
        pid = self.client("--busy")
        for words in (["ps"], ["ps", "--devices"], ["policy", "get"], ["stats"], ["version"], ["reload"],
                      ["explain", str(pid)], ["drain"]):
            self.assertIsInstance(self.json(*words), dict)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv to become somebody else")
    def test_other_users_are_refused(self) -> None:
        # Others reach the folder, and must fail at the socket itself.
        os.chmod(self.folder, os.stat(self.folder).st_mode | stat.S_IXGRP | stat.S_IXOTH)
        stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        self.one_line(ctl(self.folder, "ps", prefix=stranger), 4, "group xschedd")

    def test_a_stopped_daemon_times_out(self) -> None:
        self.daemon.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        self.one_line(ctl(self.folder, "stats"), 7, "did not answer")
        self.assertLess(time.monotonic() - begun, 8)

    def test_a_killed_daemon_is_no_daemon(self) -> None:
        self.daemon.kill()
        self.daemon.wait()
        self.one_line(ctl(self.folder, "ps"), 3, "start xschedd")


if __name__ == "__main__":
    XSCHEDCTL, XSCHEDD, FAKE_CLIENT = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
