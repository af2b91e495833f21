#!/usr/bin/env python3
"""xschedctl doctor --self-test: it passes with a daemon that schedules, leaves nothing behind, and fails if something that
it claims to test is broken. Usage: see ctl_world.py
"""

import json
import os
import subprocess
import sys
import unittest

import ctl_world
from ctl_world import WithDaemon, WithFolder


class SelfTest(WithDaemon):
    DEVICES = []  # as on a node with GPUs
    CONFIG = "[daemon]\nlease_ms = 10000\n"  # holds do not end while a busy machine gives the daemon no processor

    def outcome(self, *words, **more):
        """(exit status, [(level, what)])"""
        done = self.ctl("--json", "doctor", "--self-test", *words, **more)
        findings = json.loads(done.stdout)["findings"]
        return done.returncode, [(one["level"], one["what"]) for one in findings if one["check"] == "self test"]

    def test_a_daemon_that_schedules(self):
        _, found = self.outcome()
        self.assertEqual({level for level, _ in found}, {"ok"}, found)
        text = "\n".join(what for _, what in found)
        for part in ("priority -90 and pid ", " at -100", "through the shim's symbols", "the lower was held for ",
                     "the lower one continued within ", "both ended with exit code 0", "tested: preload, private library, sessions, priorities, hold and release"):
            self.assertIn(part, text)
        self.assertEqual(self.json("ps")["clients"], [])
        self.assertEqual(self.json("ps")["devices"], [])

    def test_another_policy_is_reported_to_prove_less(self):
        self.json("policy", "set", "fifo")
        _, found = self.outcome()
        self.assertEqual([level for level, _ in found].count("warning"), 1, found)
        self.assertIn("policy fifo", [what for level, what in found if level == "warning"][0])
        self.assertIn("Not tested: priorities, hold and release", found[-1][1])

    def test_a_rule_that_makes_both_equal_is_reported_to_prove_less(self):
        self.file("xschedd.toml", '[[rule]]\nexe = "self-test-client"\npriority = 3\n')
        self.json("reload")
        _, found = self.outcome()
        self.assertEqual([level for level, _ in found].count("warning"), 1, found)
        self.assertIn("priorities 3 and 3", [what for level, what in found if level == "warning"][0])

    def test_a_daemon_that_accepts_no_client(self):
        self.json("drain")
        status, found = self.outcome()
        self.assertEqual((status, found[-1][0]), (1, "error"), found)
        self.assertIn("no session", found[-1][1])

    def test_a_shim_that_does_nothing(self):
        shim = os.path.join(self.folder, "libxschedd-shim.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, "-x", "c", "/dev/null"], check=True)
        status, found = self.outcome("--shim", shim)
        self.assertEqual((status, found[-1][0]), (1, "error"), found)

    def test_a_client_that_others_hold_is_noticed(self):
        # Holds on the test's clients from outside prevent what the test checks.
        done = subprocess.Popen([ctl_world.CTL, "--runtime-dir", self.folder, "--json", "doctor", "--self-test"],
                                          stdout=subprocess.PIPE, text=True, env=ctl_world.environment())
        self.children.append(done)
        self.addCleanup(done.stdout.close)
        while done.poll() is None:  # again and again, because one of the two may come later
            self.ctl("hold", "--exe", "self-test-client")
        said = done.communicate(timeout=ctl_world.LIMIT_S)[0]
        findings = json.loads(said)["findings"]
        self.assertIn("error", [one["level"] for one in findings if one["check"] == "self test"], said)


class WithoutDaemon(WithFolder):
    def test_it_reports_that_there_is_no_daemon(self):
        done = self.ctl("doctor", "--self-test")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"error +self test +no daemon")


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
