"""Shared by all tests of odd hosts: runs a checked program with the shim, and checks that a real daemon holds and releases
it, or that it runs unscheduled and says why, once. Used by the test_*.py beside this file.

The daemon, the software GPU and the clients are those of tests/e2e/harness.py: private to the test and removed after it.
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

LAUNCHES = 30  # at least; a program that is held continues until it is told to stop
MICROS = 1000


class HostTest(harness.NodeTest):
    def setUp(self):
        super().setUp()
        self.stop_path = self.node.dir / "stop"
        self.stop_path.write_bytes(b"\0")
        self.addCleanup(self.stop)  # a worker of a program that was killed works until it is told to stop

    def environment(self, **more):
        """The environment for the programs of work.h and hip_work.py, and more."""
        return {"HOST_CODE_OBJECT": str(harness.programs / "module_kernel.co"),
                "HOST_DATA": str(self.node.dir / "data"), **{name: str(value) for name, value in more.items()}}

    def result(self):
        """For a host without standard output: the verdict goes to a file."""
        return {"HOST_RESULT": self.node.dir / "result"}

    def stop(self):
        """Tells programs that were started with HOST_STOP to end."""
        self._tell(b"\1")

    def wait_connected(self, process, pid):
        """Tells a program that was started with HOST_STOP that the daemon knows it, once it does; the client's number."""
        def number():
            client = self.node.clients().get(pid, {"devices": []})
            return process.poll() is not None or (client["devices"] and client["id"])
        found = wait_for(number, "it connects")
        self._tell(b"\2")
        return found

    def _tell(self, byte):
        with open(self.stop_path, "r+b") as file:
            file.write(byte)

    def check_end(self, process, status=0, verdicts=1):
        """Waits for a program's end. Fails unless every result was right. Returns what it wrote to standard error, and how
        many launches each verdict names."""
        out, err = process.communicate(timeout=harness.DEADLINE_S)
        result = self.node.dir / "result"
        lines = (out + (result.read_text() if result.exists() else "")).splitlines()
        said = f"{process.args}: exit status {process.returncode}\n{out}\n{err}\n"
        self.assertEqual(process.returncode, status, said + self.node.daemon_log())
        self.assertNotIn("wrong", out, said)
        launches = [int(line.split()[1]) for line in lines if line.startswith("right:")]
        self.assertEqual(len(launches), verdicts, said)
        return err, launches

    def check_scheduled(self, *command, environment=None, traced=True, quiet=True, pid_of=None, verdicts=1, **options):
        """Runs `command` beside an idle, more important client: it is held and released by the daemon, its results are
        right, and the shim says nothing. `pid_of`: finds the process that launches."""
        node = self.node
        if node.daemon is None:
            node.start_daemon()
        anchor = node.start_anchor(priority=50)
        process = node.start(*command, priority=-10, trace=traced,
                             environment=self.environment(HOST_STOP=self.stop_path, **(environment or {})), **options)
        pid = wait_for(lambda: pid_of(process, anchor), "the process that launches") if pid_of else process.pid
        self.wait_connected(process, pid)
        self.hold_and_release(process, anchor, pid=pid, traced=traced)
        self.stop()
        err, launches = self.check_end(process, verdicts=verdicts)
        if traced:
            self.assertEqual(len(node.dispatches(pid)), launches[-1], "each launch reaches the device once")
        if quiet:
            self.assertNotIn("xschedd:", err)
        wait_for(lambda: pid not in node.clients(), "the daemon forgets it")
        return err

    def start_to_hear(self, *command, environment=None, **options):
        """A program that works until it is told to stop, and the file of its standard error, which can be read meanwhile."""
        said = self.node.dir / "said"
        with open(said, "w", encoding="utf-8") as file:
            process = self.node.start(*command, stderr=file, **options,
                                      environment=self.environment(HOST_STOP=self.stop_path, **(environment or {})))
        return process, said

    def check_unscheduled(self, *command, cause, environment=None, **options):
        """Runs it in the same way: its results are right, it gets no session, and it reports the cause in one line; if `cause` is
        None, it does not, because the shim is not in the process."""
        node = self.node
        if node.daemon is None:
            node.start_daemon()
        process, said = self.start_to_hear(*command, environment=environment, **options)
        seen = set()

        def has_ended():
            seen.update(node.clients())
            if cause is None or said.read_text():  # on a busy machine the shim may say it after the first work
                self.stop()
            return process.poll() is not None

        wait_for(has_ended, "the program ends, told to once the shim has said why it is unscheduled")
        self.check_end(process)
        err = said.read_text()
        self.assertEqual(seen, set(), "no session")
        if cause is None:
            self.assertNotIn("xschedd:", err)
        else:
            self.check_said_once(err, cause)
        return err

    def check_said_once(self, err, cause):
        lines = [line for line in err.splitlines() if line.startswith("xschedd:")]
        self.assertEqual(len(lines), 1, f"one line: {err}")
        self.assertIn("unscheduled", lines[0])
        self.assertRegex(lines[0], cause)

    def only_client(self, process, anchor):
        """For pid_of: the client that is not the anchor, once it has a device."""
        if process.poll() is not None:
            raise AssertionError(f"the program ended too early: {process.communicate()}")
        pids = [pid for pid, client in self.node.clients().items() if pid != anchor.pid and client.get("devices")]
        return pids[0] if pids else None

    def odd(self, *habits):
        return [hosts / "odd", LAUNCHES, MICROS, *habits]
