"""Shims and daemons of neighbouring releases schedule a program together; if they are further apart, it runs as without a
daemon, and both sides say so. The other releases are the current sources with another table of versions (tests/abi)."""

import subprocess
import unittest

import harness
from harness import wait_for

ABI = harness.BUILD / "tests/abi"
LAUNCHES = 1000
MICROS = 1000


class Versions(harness.NodeTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, harness, "daemon_path", harness.daemon_path)

    def shim(self, ahead):
        release = "before" if ahead < 0 else f"ahead-{ahead}"
        return {"XSCHEDD_CLIENT_LIB": str(ABI / f"libxschedd-client-{release}.so")} if ahead else {}

    def daemon(self, ahead):
        return ABI / ("xschedd_before" if ahead < 0 else f"xschedd_ahead_{ahead}")

    def refusals(self):
        return [line for line in self.node.daemon_log().splitlines() if "refused reason=" in line]

    def work_together(self, daemon_ahead, shim_ahead):
        node = self.node
        if daemon_ahead:
            harness.daemon_path = self.daemon(daemon_ahead)
        node.start_daemon()
        anchor = node.start_anchor(priority=0, environment=self.shim(shim_ahead))
        program = node.start("default_stream", LAUNCHES, MICROS, priority=-10, environment=self.shim(shim_ahead))
        self.hold_and_release(program, anchor)
        node.finish(program)
        self.assertEqual(self.refusals(), [])
        # Checks that they are of these versions.
        self.assertIn(f"layout {4 + daemon_ahead}\n", subprocess.run([harness.daemon_path, "--version"], text=True,
                                                                     capture_output=True, check=True).stdout)
        told = f"newer client asked to retry with our version pid={program.pid} " in node.daemon_log()
        self.assertEqual(told, shim_ahead > daemon_ahead)

    def refuse_each_other(self, daemon_ahead, shim_ahead, remedy):
        node = self.node
        if daemon_ahead:
            harness.daemon_path = self.daemon(daemon_ahead)
        node.start_daemon()
        program = node.start("default_stream", LAUNCHES, MICROS, environment=self.shim(shim_ahead))
        out, err = program.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(program.returncode, 0, err)
        self.assertIn("right:", out)
        self.assertEqual(err.count("the daemon is of another release"), 1, "reported once: " + err)
        self.assertIn(remedy, err)
        wait_for(self.refusals, "the daemon tells it, too")
        self.assertEqual(node.clients(), {})

    def test_todays_shim_and_the_daemon_before(self):
        self.work_together(-1, 0)

    def test_the_shim_before_and_todays_daemon(self):
        self.work_together(0, -1)

    def test_todays_shim_and_the_next_daemon(self):
        self.work_together(1, 0)

    def test_the_next_shim_and_todays_daemon(self):
        self.work_together(0, 1)

    def test_todays_shim_and_the_daemon_after_next(self):
        self.refuse_each_other(2, 0, "install the shim of the daemon's release and start this program again")

    def test_the_shim_after_next_and_todays_daemon(self):
        self.refuse_each_other(0, 2, "install a daemon of this shim's release")

    def test_a_library_of_another_interface(self):
        """The two halves of the shim are from different packages."""
        node = self.node
        node.start_daemon()
        program = node.start("default_stream", 20, MICROS,
                             environment={"XSCHEDD_CLIENT_LIB": str(ABI / "libxschedd-client-other-interface.so")})
        out, err = program.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(program.returncode, 0, err)
        self.assertIn("right:", out)
        self.assertEqual(err.count("is of another release"), 1, "reported once: " + err)
        self.assertIn("install both libraries from one package", err)


if __name__ == "__main__":
    unittest.main()
