#!/usr/bin/env python3
"""xschedctl run: the environment of its command, and the messages if it cannot start it.

Usage: run_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import os
import subprocess
import sys
import unittest

import ctl_world
from ctl_world import WithFolder


class Run(WithFolder):
    def test_run_fails_open(self):
        shim = os.path.join(self.folder, "shim.so")
        # A library that can be preloaded and does nothing.
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, "-x", "c", "/dev/null"], check=True)
        result = self.ctl("run", "--shim", shim, "--priority", "-7", "--group", "g", "--weight", "300",
                     "--deadline", "33ms", "--latency", "strict", "--memory", "24G", "--", "sh", "-c",
                     'echo "$XSCHEDD_LATENCY|$LD_PRELOAD|$XSCHEDD_PRIORITY|$XSCHEDD_GROUP|$XSCHEDD_WEIGHT|$XSCHEDD_DEADLINE_US|'
                     '$XSCHEDD_MEMORY|$XSCHEDD_RUNTIME_DIR"; exit 42')
        self.assertEqual(result.returncode, 42)
        self.assertEqual(result.stdout.strip(), f"strict|{shim}|-7|g|300|33000|{24 << 30}|{self.folder}")
        self.assertIn("unscheduled", result.stderr)
        kept = self.ctl("run", "--shim", shim, "--", "sh", "-c", 'echo "$LD_PRELOAD"', LD_PRELOAD=shim + "2")
        self.assertEqual(kept.stdout.strip(), f"{shim}:{shim}2")

    def test_run_passes_the_passthrough_on(self):
        def passed(*options):
            return self.ctl("run", "--shim", "/dev/null", *options, "--", "sh", "-c",
                       'echo "$XSCHEDD_PASSTHROUGH"').stdout.strip()
        self.assertEqual(passed("--passthrough", "librccl.so, hipMemcpyAsync", "--passthrough", "kernel:*nccl*"),
                         "librccl.so,hipMemcpyAsync,kernel:*nccl*")
        self.assertEqual(passed(), "")
        for wrong, advice in (("hipMemcpyAsnc", "did you mean hipMemcpyAsync?"), ("librccl", "write librccl.so"),
                              ("hipStreamSynchronize", "never gated"), ("librccl.so,kernel:", "has no pattern")):
            self.fails(2, "run", "--shim", "/dev/null", "--passthrough", wrong, "--", "true", says=(advice,))

    def test_run_reports_what_is_missing(self):
        self.fails(8, "run", "--shim", "/nowhere.so", "--", "true", says=("/nowhere.so",))
        self.fails(2, "run", "--", says=("no command",))
        self.fails(2, "run", "--priority", "300", "--", "true", says=("-100 to 100",))
        self.fails(2, "run", "--weight", "10001", "--", "true", says=("1 to 10000",))
        self.fails(2, "run", "--deadline", "33", "--", "true", says=("25ms",))
        self.fails(2, "run", "--memory", "24", "--", "true", says=("give 1M to 1024T",))
        self.fails(2, "run", "--memory", "24GB", "--", "true", says=("such as 24G",))
        self.fails(2, "run", "--deadline", "0", "--", "true", says=("1us",))
        missing = self.ctl("run", "--shim", "/dev/null", "--", "/nowhere/at/all")
        self.assertEqual(missing.returncode, 127, missing.stderr)
        plain = os.path.join(self.folder, "plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("text")
        self.assertEqual(self.ctl("run", "--shim", "/dev/null", "--", plain).returncode, 126)


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
