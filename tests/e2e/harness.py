"""A node for one test: a software GPU, a daemon and their clients, all private to the test and removed after it.

Used by the test_*.py beside this file. Everything waits for conditions, never for fixed times; deadlines are long,
because the machine is shared. Thread rule: one test, one thread.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench"))
from benchlib.processes import dies_with_this_process  # noqa: E402

BUILD = pathlib.Path(os.environ.get("XSCHEDD_BUILD", "build")).resolve()
DEADLINE_S = 60.0

ctl_path = BUILD / "tools/xschedctl/xschedctl"
daemon_path = BUILD / "daemon/xschedd"
programs = BUILD / "tests/e2e"


def hip_version():
    """For example "5.2"."""
    said = subprocess.run(["hipconfig", "--version"], capture_output=True, text=True, check=True).stdout
    return ".".join(said.strip().split(".")[:2])


def wait_for(condition, what, deadline_s=DEADLINE_S):
    """Returns condition()'s first true value; fails the test with `what` after the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(0.005)


# A daemon that gets no CPU for the length of a lease releases every client and counts nothing. That is correct, but on a busy
# machine it would disturb tests of other things.
LONG_LEASE_MS = 10_000
# For an anchor: half a second of work is queued, unless a window ends that (Node.keep_busy).
ALWAYS_BUSY = "start 1000 500"


class Node:
    """One software GPU and, by default, one daemon."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="xschedd-e2e-"))
        self.runtime_dir = self.dir / "run"
        self.runtime_dir.mkdir()
        self.name = f"e2e-{os.getpid()}-{self.dir.name[-8:]}"
        self.config = self.dir / "config.toml"
        self.trace_prefix = self.dir / "trace"
        self.kernels = [programs / "libe2e_kernels.so"]  # host functions of the clients' kernels
        self.daemon = None
        self.processes = []

    # ---- daemon ---------------------------------------------------------------------------------------------------
    def configure(self, text="", lease_ms=LONG_LEASE_MS):
        """Writes the daemon's configuration: `text`, which has no section [daemon], and the lease; None: the daemon's own."""
        self.config.write_text(text + (f"\n[daemon]\nlease_ms = {lease_ms}\n" if lease_ms else ""))

    def start_daemon(self, *arguments, config="", lease_ms=LONG_LEASE_MS, before=()):
        """`config`, `lease_ms`: as in configure(). `before`: a command that runs it. Only where no other runs: that one
        would answer for it."""
        assert self.daemon is None or self.daemon.poll() is not None, "the daemon runs already"
        self.configure(config, lease_ms)
        log = open(self.dir / "daemon.log", "ab")
        self.daemon = subprocess.Popen(
            [*before, daemon_path, "--software-gpu", "--runtime-dir", self.runtime_dir, "--log-level", "debug",
             "--config", self.config, *arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=dies_with_this_process())
        log.close()
        wait_for(self._daemon_answers, "the daemon answers")

    def _daemon_answers(self):
        if self.daemon.poll() is not None:
            raise AssertionError("the daemon ended:\n" + self.daemon_log())
        return self.ctl("version", check=False).returncode == 0

    def stop_daemon(self, how=signal.SIGTERM):
        """Ends the daemon, even a stopped one, and returns its exit code, or None if none was started."""
        if self.daemon is None:
            return None
        if self.daemon.poll() is None:
            self.daemon.send_signal(how)
            self.daemon.send_signal(signal.SIGCONT)
        return self.daemon.wait(DEADLINE_S)

    def daemon_log(self):
        path = self.dir / "daemon.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # ---- xschedctl ------------------------------------------------------------------------------------------------
    def ctl(self, *arguments, check=True):
        result = subprocess.run([ctl_path, "--runtime-dir", self.runtime_dir, *map(str, arguments)],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S)
        if check and result.returncode != 0:
            raise AssertionError(f"xschedctl {arguments}: {result.returncode}: {result.stderr}")
        return result

    def clients(self):
        """The clients by pid, as `xschedctl ps --json` shows them."""
        return {int(client["pid"]): client for client in json.loads(self.ctl("--json", "ps").stdout)["clients"]}

    def device_state(self, pid):
        """The first device entry of a client in `ps`, or an empty dict."""
        devices = self.clients().get(pid, {}).get("devices", [])
        return devices[0] if devices else {}

    def hold(self, pid):
        """As an administrator. A program launches before the daemon knows it."""
        wait_for(lambda: pid in self.clients(), "it is a client when it is to be held")
        self.ctl("hold", "--pid", pid)

    # ---- clients --------------------------------------------------------------------------------------------------
    def start(self, program, *arguments, priority=None, shim=True, environment=None, interactive=False,
              options=(), trace=True, before=(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
              build=None, cwd=None):
        """Starts a program as a client with `xschedctl run OPTIONS`, on this node's software GPU. `program`: a path, or the name
        of one in tests/e2e/programs. `before`: a command that runs it, in the environment that xschedctl sets.
        `build`: another build, whose xschedctl and shim it uses."""
        command = [BUILD / "tools/softgpu/softgpu-run", "--name", self.name,
                   *(["--trace", self.trace_prefix] if trace else []),
                   "--kernels", ":".join(map(str, self.kernels)), "--"]
        if shim:
            command += [build / "tools/xschedctl/xschedctl" if build else ctl_path, "--runtime-dir", self.runtime_dir, "run"]
            command += ["--priority", priority] if priority is not None else []
            command += [*options, "--"]
        command += [*before, programs / program, *arguments]
        process = subprocess.Popen(list(map(str, command)), text=True,
                                   stdin=subprocess.PIPE if interactive else subprocess.DEVNULL,
                                   stdout=stdout, stderr=stderr, cwd=cwd,
                                   # The HIP runtime's compiler leaves a folder behind when a program is killed.
                                   env={**os.environ, "TMPDIR": str(self.dir), **(environment or {})},
                                   preexec_fn=dies_with_this_process())
        self.processes.append(process)
        return process

    def start_anchor(self, priority, device=0, environment=None):
        """A client that has attached to a device and waits for commands on its standard input. The daemon of start_daemon()
        knows it, so that others beside it are tracked."""
        anchor = self.start("anchor", device, priority=priority, interactive=True, environment=environment)
        line = anchor.stdout.readline()
        if line.strip() != "ready":
            raise AssertionError("anchor did not start: " + anchor.stderr.read())
        if self.daemon is not None and self.daemon.poll() is None:
            wait_for(lambda: self.device_state(anchor.pid), "the daemon knows the anchor")
        return anchor

    def keep_busy(self, anchor):
        """A tracked anchor always has work from now on, also while a busy machine stops its thread for less than 0.2 s."""
        self.ctl("policy", "set", "--top-window", 0)
        self.tell(anchor, ALWAYS_BUSY)
        wait_for(lambda: int(self.device_state(anchor.pid)["in_flight"]) > 200, "much of its work is in flight")

    def tell(self, anchor, line):
        anchor.stdin.write(line + "\n")
        anchor.stdin.flush()

    def finish(self, process, deadline_s=DEADLINE_S):
        """Waits for a program's end; returns (launches, submissions) of its last line. Fails unless its results are right."""
        out, err = process.communicate(timeout=deadline_s)
        if process.returncode != 0 or "right:" not in out:
            raise AssertionError(f"{process.args[-3:]}: exit code {process.returncode}\n{out}\n{err}\n{self.daemon_log()}")
        return self.verdict(out)

    @staticmethod
    def verdict(out):
        """(launches, submissions) of a program's last line."""
        words = out.split("right:")[1].replace(",", "").split()
        return int(words[0]), int(words[2])

    # ---- work on the device --------------------------------------------------------------------------------------
    def dispatches(self, pid, kernel="scale_add"):
        """The dispatches of a process in order of start, from the software GPU's own trace; without `kernel`, everything
        that the device did for it, including copies."""
        path = pathlib.Path(f"{self.trace_prefix}.{pid}.jsonl")
        if not path.exists():
            return []
        found = []
        for line in path.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # the last line of a killed process may be cut
                record = json.loads(line)
                if kernel is None or record.get("name") == kernel:
                    found.append(record)
        return sorted(found, key=lambda record: record["start_ns"])

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            with contextlib.suppress(Exception):
                process.communicate(timeout=DEADLINE_S)
        self.stop_daemon(signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/dev/shm/softgpu.{self.name}")
        shutil.rmtree(self.dir, ignore_errors=True)


class NodeTest(unittest.TestCase):
    """A test with a node; the test itself calls self.node.start_daemon()."""

    def setUp(self):
        self.node = Node()
        self.addCleanup(self.node.close)

    def assert_measured(self, measure, is_right, what):
        """Fails unless one of three measurements is right. For comparisons of times, which a busy machine can disturb; all
        other assertions of `measure` must hold every time."""
        values = []
        for retries in range(3):
            values.append(measure())
            if is_right(values[-1]):
                print(f"measured: {retries} retries", flush=True)  # tests/tally.py counts them
                return
            print(f"outside its limits: {values[-1]}", flush=True)
        self.fail(f"{what}: {values}")

    # ---- checks of every scheduled program ------------------------------------------------------------
    def hold_and_release(self, process, anchor, pid=None, traced=True):
        """Holds and releases a running client beside an idle anchor (`pid`: if the started process is not the one that
        launches). Fails unless none of its work reached the device in between, while the anchor's did. Without a trace,
        the daemon's count of passed calls is used instead. Returns how many kernels had reached the device, and how many
        calls the daemon had counted, while it was held."""
        node = self.node
        pid = pid or process.pid

        def count():
            return len(node.dispatches(pid)) if traced else int(node.device_state(pid).get("submitted", 0))

        def settled():
            """How much was done, once two readings with a round trip to the daemon between them agree, and nothing is known to
            be in flight: a device that stands still for a moment would agree with itself, too."""
            before = count()
            for _ in range(10):
                node.clients()
            is_over = int(node.device_state(pid)["in_flight"]) == 0
            return before if is_over and before == count() else 0

        wait_for(lambda: process.poll() is not None or (count() >= 10 and node.device_state(pid)),
                 "the program launches")
        if process.returncode == 77:
            self.skipTest(process.stdout.read().strip())
        self.assertIsNone(process.poll(), "the program ended before it could be held")

        # Held: what was in flight finishes, nothing new reaches the device.
        node.hold(pid)
        wait_for(lambda: node.device_state(pid).get("state") == "held", "ps shows it held")
        done = wait_for(settled, "work in flight ends")
        # Meanwhile another client's work passes: the device is free, only this client waits.
        node.tell(anchor, "work 20 1000")
        self.assertEqual(anchor.stdout.readline().strip(), "done")
        self.assertEqual(count(), done, "launches reached the device while held")
        state = node.device_state(pid)
        self.assertGreater(int(state["held_ns"]), 0)
        node.ctl("release", "--pid", pid)
        return done, int(state["submitted"])
