"""The launching clients (programs/tenant.hip), and the watch on the one whose gate shows whether the policy is in effect.

Thread rule: the harness's one thread; a Watch has one of its own.
"""

import contextlib
import pathlib
import select
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402: from tests/e2e
from diary import HELD, Diary, boards  # noqa: E402
from lawful import MS  # noqa: E402

LEASE_MS = 100
PATIENCE_S = 15.0  # until everything continues after a fault, on a machine that others use, too
SABOTAGE_PATIENCE_S = 5.0  # with sabotage, for which the harness waits to the end
TENANTS = [("bursty", 50), ("bursty", 40), ("steady", 0), ("steady", 0), ("steady", -10), ("steady", -20),
           ("always", 50), ("beside", 0)]


class Tenant:
    """One launching client."""

    def __init__(self, world, kind, priority):
        self.kind, self.priority = kind, priority
        self.device = 1 if kind in ("always", "beside") else 0
        world.born += 1
        self.name = f"{kind}-{world.born}"
        self.has_other_shim = world.options.other is not None and world.born % 2 == 1
        self.diary = Diary(world.dir / f"{self.name}.diary")
        self.errors = world.dir / f"{self.name}.err"
        environment = {"SOFTGPU_DEVICES": "2"}
        if kind == "always":
            environment["XSCHEDD_LATENCY"] = "strict"  # the sentinel must be held for it, whatever the daemon measures
        with open(self.errors, "wb") as errors:
            self.process = world.start(harness.BUILD / "tests/fault/tenant", kind, self.diary.path,
                                       world.options.how.get("tenant", ""), priority=priority, interactive=True,
                                       trace=False, stderr=errors, environment=environment,
                                       build=world.options.other if self.has_other_shim else None)
        self.is_ready, self.ready_ns = False, 0
        self.died_ns = 0  # we killed it
        self.stops, self.holds, self.claims = [], [], []
        self.stopped_since = 0
        self.rounds_seen = 0

    pid = property(lambda self: self.process.pid)

    def look_ready(self):
        """Returns whether it has begun to launch."""
        if not self.is_ready and select.select([self.process.stdout], [], [], 0)[0]:
            self.is_ready, self.ready_ns = self.process.stdout.readline().strip() == "ready", time.monotonic_ns()
        return self.is_ready

    def say(self, line):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def stop(self):
        self.stopped_since = time.monotonic_ns()
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        if self.stopped_since:
            self.stops.append((self.stopped_since, time.monotonic_ns() + 20 * MS))
        self.stopped_since = 0

    def has_child(self):
        with contextlib.suppress(OSError):  # a thread has ended
            return any(one.read_text() for one in pathlib.Path(f"/proc/{self.pid}/task").glob("*/children"))
        return False

    def is_held(self):
        """Whether its gate is shut and binds."""
        now = time.monotonic_ns()
        return any(board.flags[self.device] & HELD and board.lease_until_ns > now for board in boards(self.pid))

    def spans(self):
        """Its busy spans since the last call."""
        end_of_all = self.died_ns or time.monotonic_ns()
        return [(start, end or end_of_all) for start, end in self.diary.new_spans()]


class Watch(threading.Thread):
    """Polls the sentinel's gate until it is shut by a lease that was written after `since()`."""

    def __init__(self, sentinel, since, patience_s):
        super().__init__(daemon=True)
        self.sentinel, self.since, self.patience_s = sentinel, since, patience_s
        self.restored = None
        self.is_over = threading.Event()
        self.start()

    def run(self):
        while not self.is_over.is_set() and self.restored is None:
            now = time.monotonic_ns()
            since = self.since()
            if since is not None and any(
                    board.flags[self.sentinel.device] & HELD and board.lease_until_ns > max(now, since + LEASE_MS * MS)
                    for board in boards(self.sentinel.pid)):
                self.restored = now
            time.sleep(0.001)

    def result(self):
        """Waits; returns when the gate was shut again, or None if it was not."""
        self.join(self.patience_s)
        self.is_over.set()
        return self.restored
