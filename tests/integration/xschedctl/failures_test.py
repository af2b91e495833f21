#!/usr/bin/env python3
"""xschedctl without a daemon, with one that has stopped or died, and with a wrong command line: exit status and message.

Usage: failures_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import contextlib
import os
import shutil
import signal
import socket
import stat
import sys
import threading
import unittest

import ctl_world
from ctl_world import WithDaemon, WithFolder


def close_all(listener):
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


class WithoutDaemon(WithFolder):
    def test_no_socket_is_no_daemon(self):
        for words in (["ps"], ["set", "--priority", "5", "--pid", "1"], ["hold", "--all"], ["policy", "get"], ["stats"],
                      ["events"], ["trace", "-o", "/dev/null"], ["explain", "1"], ["reload"], ["disable"], ["enable"], ["ps", "--json"]):
            self.fails(3, *words, says=("admin.sock", "start xschedd"))

    def test_a_daemon_that_closes_connections(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(os.path.join(self.folder, "admin.sock"))
        listener.listen()
        closer = threading.Thread(target=close_all, args=(listener,))
        closer.start()
        self.addCleanup(closer.join)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        self.fails(6, "ps", says=("the daemon closed the connection: ", "try again", "its log"))

    def test_version_is_shown_without_a_daemon(self):
        result = self.ctl("version")
        self.assertIn("xschedctl ", result.stdout)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(self.ctl("--version").returncode, 0)

    def test_usage(self):
        self.fails(2, says=("no command",))
        self.fails(2, "bogus", says=("bogus",))
        self.fails(2, "set", "--pid", "1", says=("--reset",))
        self.fails(2, "set", "--priority", "5", says=("--all",))
        self.fails(2, "set", "--weight", "0", "--pid", "1", says=("1 to 10000",))
        self.fails(2, "set", "--reset", "colour", "--pid", "1", says=("--reset weight",))
        self.fails(2, "set", "--reset", "weight", "--weight", "5", "--pid", "1", says=("contradicts",))
        self.fails(2, "policy", "set", "--max-concurrent", "many", says=("auto",))
        self.fails(2, "trace", says=("--output",))
        self.fails(2, "policy", "set", "--window", "25", says=("25ms",))
        for priority in ("101", "-101", "high", "1.5"):
            self.fails(2, "set", "--priority", priority, "--pid", "1", says=("-100 to 100",))


class Beside(WithDaemon):
    def test_no_client_matches(self):
        self.fails(5, "set", "--priority", "5", "--pid", "1", says=("pid 1",))
        self.fails(5, "explain", "1", says=("pid 1",))
        self.fails(5, "hold", "--exe", "no-such-program", says=("no-such-program",))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv to become another user")
    def test_other_users_see_only_their_own(self):
        # Other users reach the folder, and are refused at the socket.
        os.chmod(self.folder, os.stat(self.folder).st_mode | stat.S_IXGRP | stat.S_IXOTH)
        stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        self.client()
        shown = self.ctl("ps", prefix=stranger)
        self.assertEqual((shown.returncode, shown.stdout.splitlines()[-1]), (0, "(1 client of other users not shown)"), shown.stderr)
        self.fails(4, "stats", prefix=stranger, says=("group xschedd", "admin.sock cannot be opened"))

    def test_a_stopped_daemon_times_out(self):
        self.daemon.send_signal(signal.SIGSTOP)
        self.fails(7, "stats", says=("did not answer",))

    def test_a_killed_daemon_is_no_daemon(self):
        self.daemon.kill()
        self.daemon.wait()
        self.fails(3, "ps", says=("start xschedd",))


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
