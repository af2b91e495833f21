#!/usr/bin/env python3
"""The messages of `xschedctl run` about the priority that its program gets. It preloads the shim: not for sanitizers.
Usage: run_test.py XSCHEDD XSCHEDCTL RIGHTS_CALL RIGHTS_CLIENT [TEST]
"""

import signal
import time
from typing import List

import rights_world
from rights_world import ALICE, WithDaemon, needs_root


@needs_root
class Run(WithDaemon):
    def test_it_reports_at_once_what_the_program_gets(self) -> None:
        def run(*options: str, uid: int = ALICE) -> List[str]:
            done = self.ctl("run", *options, "--", "/bin/true", uid=uid)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [line for line in done.stderr.splitlines() if line.startswith("xschedctl: ")]
        lines = run("--priority", "50")
        self.assertEqual(len(lines), 1)
        self.assertIn("warning: priority 50 counts as 0: limited by the default ceiling of uid", lines[0])
        self.assertIn("an administrator can", lines[0])
        self.assertIn("weight 300 counts as 100", run("--weight", "300")[0])
        self.assertEqual(run("--priority", "-50", "--weight", "50"), [])
        self.assertEqual(run("--priority", "50", uid=0), [])
        self.daemon.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        self.assertEqual(run("--priority", "50"), [], "run does not wait for a stopped daemon")
        self.assertLess(time.monotonic() - begun, 30)
        self.daemon.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    rights_world.main()
