"""What every test of an odd host does: runs a checked program under the shim, sees it held and released by a real daemon,
or sees it run unscheduled and say why, once. Used by the test_*.py beside this file.

The daemon, the software GPU and the clients are those of tests/e2e/harness.py: private to the test and gone after it.
Thread rule: one test, one thread.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
from harness import wait_for  # noqa: E402,F401

here = pathlib.Path(__file__).resolve().parent
hosts = harness.BUILD / "tests/hosts"
shim = harness.BUILD / "client-shim/libxschedd-shim.so"
client_library = harness.BUILD / "client-shim/libxschedd-client.so"

LAUNCHES = 150
MICROS = 2000


class HostTest(harness.NodeTest):
    def environment(self, **more):
        """What the programs of work.h and hip_work.py take from the environment, and more."""
        return {"HOST_CODE_OBJECT": str(harness.programs / "module_kernel.co"),
                "HOST_DATA": str(self.node.dir / "data"),
                **{name: str(value) for name, value in more.items()}}

    def result(self):
        """For a host without standard output: the verdict goes to a file."""
        return {"HOST_RESULT": self.node.dir / "result"}

    def check_end(self, process, status=0, launches=LAUNCHES, verdicts=1):
        """Waits for a program's end and returns what it wrote to standard error. Fails unless every result was right."""
        out, err = process.communicate(timeout=harness.DEADLINE_S)
        result = self.node.dir / "result"
        lines = (out + (result.read_text() if result.exists() else "")).splitlines()
        said = f"{process.args}: exit status {process.returncode}\n{out}\n{err}\n"
        self.assertEqual(process.returncode, status, said + self.node.daemon_log())
        wanted = [f"right: {launches} launches"] * verdicts
        self.assertEqual([line.split(",")[0] for line in lines if line.startswith(("right", "wrong"))], wanted, said)
        return err

    def check_scheduled(self, *command, environment=None, launches=LAUNCHES, traced=True, quiet=True, pid_of=None,
                        **options):
        """Runs `command LAUNCHES MICROS` beside an idle, more important client: it is held and released by the daemon,
        its results are right, and the shim says nothing. `pid_of`: finds the process that launches."""
        node = self.node
        if node.daemon is None:
            node.start_daemon()
        anchor = node.start_anchor(priority=50)
        process = node.start(*command, priority=-10, trace=traced, environment=self.environment(**(environment or {})),
                             **options)
        pid = wait_for(lambda: pid_of(process, anchor), "the process that launches") if pid_of else process.pid
        self.hold_and_release(process, anchor, pid=pid, traced=traced)
        err = self.check_end(process, launches=launches)
        if traced:
            self.assertEqual(len(node.dispatches(pid)), launches, "each launch reaches the device once")
        if quiet:
            self.assertNotIn("xschedd:", err)
        wait_for(lambda: pid not in node.clients(), "the daemon forgets it")
        return err

    def check_unscheduled(self, *command, cause, environment=None, launches=LAUNCHES, priority=-10, **options):
        """Runs it likewise: its results are right, no session of its comes about, and it says so and why in one line."""
        node = self.node
        if node.daemon is None:
            node.start_daemon()
        process = node.start(*command, priority=priority, environment=self.environment(**(environment or {})), **options)
        seen = set()
        while process.poll() is None:
            seen |= set(node.clients())
        err = self.check_end(process, launches=launches)
        self.assertEqual(seen, set(), "no session")
        self.check_said_once(err, cause)
        return err

    def check_said_once(self, err, cause):
        lines = [line for line in err.splitlines() if line.startswith("xschedd:")]
        self.assertEqual(len(lines), 1, f"one line: {err}")
        self.assertIn("unscheduled", lines[0])
        self.assertRegex(lines[0], cause)

    def other_client(self, process, anchor):
        """For pid_of: the client that is not the anchor, once it has a device."""
        self.assertIsNone(process.poll(), "the program ended too early")
        pids = [pid for pid, client in self.node.clients().items() if pid != anchor.pid and client.get("devices")]
        return pids[0] if pids else None

    def odd(self, *habits):
        return [hosts / "odd", LAUNCHES, MICROS, *habits]
