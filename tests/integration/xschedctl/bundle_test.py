#!/usr/bin/env python3
"""xschedctl support-bundle: the content of the file, what it leaves out, and what is reported as missing.
Usage: see ctl_world.py"""

import os
import stat
import subprocess
import sys
import tarfile
import unittest

import ctl_world
from ctl_world import WithDaemon, WithFolder

MARK = "zanzibar"


def content(path):
    with tarfile.open(path) as archive:
        return {one.name: archive.extractfile(one).read().decode() for one in archive.getmembers()}


class NoDaemon(WithFolder):
    def test_it_contains_what_can_be_collected(self):
        path = os.path.join(self.folder, "bundle.tar")
        done = self.ctl("support-bundle", "-o", path, XSCHEDD_PRIORITY=MARK, LD_LIBRARY_PATH="/opt/" + MARK)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, path + "\n", ""))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        parts = content(path)
        self.assertLessEqual({"README", "doctor", "versions"}, set(parts))
        self.assertRegex(parts["README"], r"(?s)Missing:.*ps\.json.*: .*no daemon")
        self.assertIn("XSCHEDD_PRIORITY", parts["doctor"])
        for name, text in parts.items():
            self.assertNotIn(MARK, text, name)

    def test_the_default_name(self):
        done = subprocess.run([ctl_world.CTL, "support-bundle"], cwd=self.folder, capture_output=True, text=True,
                              check=False, timeout=ctl_world.LIMIT_S,
                              env=ctl_world.environment(XSCHEDD_RUNTIME_DIR=self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^xschedd-support-\d{8}-\d{6}\.tar\n$")
        self.assertEqual(os.listdir(self.folder), [done.stdout.strip()])

    def test_a_full_disk(self):
        self.fails(6, "support-bundle", "-o", "/dev/full", says=["No space left", "make room"])
        self.fails(6, "support-bundle", "-o", os.path.join(self.folder, "none", "x.tar"), says=["No such file"])
        self.assertEqual(os.listdir(self.folder), [])


class Beside(WithDaemon):
    def test_it_contains_no_text_of_a_client(self):
        pid = self.client("--group", MARK)
        self.assertIn(MARK, self.ctl("ps").stdout)
        path = os.path.join(self.folder, "bundle.tar")
        done = self.ctl("support-bundle", "--output", path)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, path + "\n", ""))
        parts = content(path)
        self.assertLessEqual({"README", "doctor", "versions", "ps.json", "stats.json", "policy.json", "events.json",
                              "metrics", "config-show", "config-check"}, set(parts))
        self.assertIn(f'"pid":{pid}', parts["ps.json"])
        self.assertIn('"kind":"connected"', parts["events.json"])
        self.assertIn("policy.turn_ms", parts["config-show"])
        for name, text in parts.items():
            for word in (MARK, os.path.basename(ctl_world.CLIENT)):
                self.assertNotIn(word, text, name)


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
