#!/usr/bin/env python3
"""xschedctl top in a real terminal (tmux), beside the real daemon with clients that need no GPU.
Usage: top_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

XSCHEDCTL, XSCHEDD, FAKE_CLIENT = sys.argv[1:4]
LIMIT_S = 30.0


class WithDaemon(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="xsched-top-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.children = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for child in reversed(self.children):
            if child.args[0] == XSCHEDD:  # a leak, a race and the counts of coverage are told at the end
                child.terminate()
                self.assertIn(child.wait(60), (0, -signal.SIGKILL))
            child.kill()
            child.wait()

    def start(self, *words):
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.append(child)
        return child

    def start_daemon(self):
        daemon = self.start(XSCHEDD, "--runtime-dir", self.folder)
        self.wait(lambda: self.ctl("version").returncode == 0, "the daemon answers")
        return daemon

    def start_clients(self, *priorities):
        for priority in priorities:
            self.start(FAKE_CLIENT, "--runtime-dir", self.folder, "--priority", str(priority))
        self.wait(lambda: len(self.clients()) == len(priorities), "the clients are connected")

    def ctl(self, *words):
        return subprocess.run([XSCHEDCTL, "--runtime-dir", self.folder, *words], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S)

    def clients(self):
        return json.loads(self.ctl("--json", "ps").stdout)["clients"]

    def wait(self, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > end:
                self.fail(f"not within {LIMIT_S:.0f} s: {what}\n{self.seen()}")
            time.sleep(0.05)

    def seen(self):
        return ""


@unittest.skipUnless(shutil.which("tmux"), "no tmux: install tmux")
class InTerminal(WithDaemon):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.tmux, "kill-server", check=False)

    def tmux(self, *words, check=True):
        return subprocess.run(["tmux", "-S", os.path.join(self.folder, "tmux"), "-f", "/dev/null", *words],
                              capture_output=True, text=True, check=check, timeout=LIMIT_S,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"})

    def open_top(self, *words, width=80, height=24):
        command = f"{XSCHEDCTL} --runtime-dir {self.folder} top {' '.join(words)}; echo ended with $?; sleep 1000"
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), command)

    def screen(self):
        return self.tmux("capture-pane", "-p", check=False).stdout

    def seen(self):
        return self.screen()

    def shows(self, text):
        self.wait(lambda: text in self.screen(), f"the screen shows {text!r}")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def test_clients_are_shown_and_changed_after_a_question(self):
        self.start_daemon()
        self.start_clients(5, -5)
        self.open_top()
        self.shows("2 clients")
        self.shows("? help")
        self.press("<")  # by PID upwards or so; whoever is chosen is named in the question
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

    def test_it_fits_any_size_and_leaves_the_terminal_as_it_was(self):
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
        self.assertNotIn("PRIO", self.screen())  # the alternate screen is gone

    def test_it_waits_for_a_daemon_that_has_gone(self):
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
                  f"NO_COLOR=1 {XSCHEDCTL} --runtime-dir {self.folder} top; sleep 1000")
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

    def test_what_is_wrong_is_one_line(self):
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
    unittest.main(argv=sys.argv[:1])
