#!/usr/bin/env python3
"""xschedctl top in a real terminal (tmux), beside the real daemon with clients that need no GPU.
Usage: top_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import os
import shutil
import signal
import subprocess
import sys
import unittest

import ctl_world
from ctl_world import WithFolder


class WithDaemon(WithFolder):
    def start_daemon(self):
        daemon = self.start(ctl_world.DAEMON, "--runtime-dir", self.folder)
        self.wait(lambda: self.ctl("version").returncode == 0, "the daemon answers")
        return daemon

    def start_clients(self, *priorities):
        for priority in priorities:
            self.start(ctl_world.CLIENT, "--runtime-dir", self.folder, "--priority", str(priority))
        self.wait(lambda: len(self.clients()) == len(priorities), "the clients are connected")

    def clients(self):
        return self.json("ps")["clients"]


@unittest.skipUnless(shutil.which("tmux"), "no tmux: install tmux")
class InTerminal(WithDaemon):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.tmux, "kill-server", check=False)

    def tmux(self, *words, check=True):
        return subprocess.run(["tmux", "-S", os.path.join(self.folder, "tmux"), "-f", "/dev/null", *words],
                              capture_output=True, text=True, check=check, timeout=ctl_world.LIMIT_S,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"})

    def open_top(self, *words, width=80, height=24):
        command = f"{ctl_world.CTL} --runtime-dir {self.folder} top {' '.join(words)}; echo ended with $?; sleep 1000"
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), command)

    def screen(self):
        return self.tmux("capture-pane", "-p", check=False).stdout

    def seen(self):
        return self.screen()

    def shows(self, text):
        self.wait(lambda: text in self.screen(), f"the screen shows {text!r}")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def test_clients_are_shown_and_changed_after_confirmation(self):
        self.start_daemon()
        self.start_clients(5, -5)
        self.open_top()
        self.shows("2 clients")
        self.shows("? help")
        self.press("<")  # sorts by another column; the question names the selected client
        self.press("+")
        self.shows("(y/n)")
        self.press("n")
        self.shows("nothing was changed")
        self.assertEqual({client["priority_source"] for client in self.clients()}, {"hint"})
        self.press("p")
        self.shows("-100 to 100:")
        self.press("4", "2", "Enter")
        self.shows("to 42? (y/n)")
        self.press("y")
        self.wait(lambda: 42 in [client["priority_effective"] for client in self.clients()], "a client has priority 42")
        self.press("h")
        self.shows("hold ")
        self.press("y")
        self.wait(lambda: any(client["hold"] for client in self.clients()), "a client is on hold")
        self.press("q")
        self.shows("ended with 0")

    def test_it_fits_any_size_and_restores_the_terminal(self):
        self.start_daemon()
        self.start_clients(0, 0, 0)
        self.open_top(width=200, height=50)
        self.shows("WAITS-FOR")
        self.tmux("resize-window", "-x", "40", "-y", "6")
        self.wait(lambda: "WAITS-FOR" not in self.screen() and "PID" in self.screen(), "a narrow table")
        self.tmux("resize-window", "-x", "200", "-y", "50")
        self.shows("WAITS-FOR")
        self.press("C-c")
        self.shows("ended with 0")
        self.assertNotIn("PRIO", self.screen())  # the alternate screen is left

    def test_it_waits_for_a_daemon_that_has_ended(self):
        daemon = self.start_daemon()
        self.open_top("--delay", "200ms")
        self.shows("no client is connected")
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        self.shows("start xschedd")
        self.start_daemon()
        self.wait(lambda: "start xschedd" not in self.screen() and "policy priority" in self.screen(), "it is back")
        self.press("q")
        self.shows("ended with 0")

    def test_without_colour(self):
        self.start_daemon()
        self.tmux("new-session", "-d", "-x", "80", "-y", "24",
                  f"NO_COLOR=1 {ctl_world.CTL} --runtime-dir {self.folder} top; sleep 1000")
        self.shows("no client is connected")
        coloured = self.tmux("capture-pane", "-p", "-e").stdout
        self.assertNotRegex(coloured, "\x1b\\[[0-9;]*3[0-7]m")


class WithoutTerminal(WithDaemon):
    def test_batch(self):
        self.start_daemon()
        self.start_clients(5, -5)
        done = self.ctl("top", "--batch", "--frames", "2", "--delay", "100ms", "--sort", "PRIO")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("2 clients  every"), 2)
        rows = [line.split() for line in done.stdout.split("PRIO*")[1].splitlines()[1:3]]
        self.assertEqual([row[2] for row in rows], ["5", "-5"])
        self.assertNotIn("\x1b", done.stdout)

    def test_an_error_is_one_line(self):
        for words, status, text in ((["top"], 3, "start xschedd"), (["top", "--sort", "x", "--batch"], 2, "choose one of"),
                                    (["top", "--delay", "5"], 2, "duration"), (["top", "--frames", "1"], 2, "--batch"),
                                    (["--json", "top"], 2, "ps --json")):
            done = self.ctl(*words)
            self.assertEqual(done.returncode, status, f"{words}: {done.stderr}")
            self.assertIn(text, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        self.start_daemon()
        done = self.ctl("top")
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs a terminal", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
