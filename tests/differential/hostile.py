"""A scheduler that tries to make a program fail: it changes everything that an administrator may change, at random
moments, beside competitors on each device, so that the program is tracked, held, released and windowed all the time.

It uses only xschedctl and signals to the daemon; nothing exists for tests alone. A seeded generator decides what it does;
when it happens depends on the machine. Thread rule: the driver's one thread.
"""

import signal

import evidence

PRIORITIES = (-50, -10, 10, 10, 30, 80)  # the competitors' is 10
COMPETITOR_PRIORITY = 10
WINDOWS = ("0", "100us", "200us", "500us", "2ms")
NO_CLIENT_FITS = 5  # of xschedctl's exit codes
POLICIES = ("priority", "priority", "priority", "share", "fair", "fifo", "deadline", "laxity")


class Scheduler:
    """Acts on one client of a node. `restarts`: kills and restarts the daemon as well."""

    def __init__(self, node, numbers, devices, restarts=False):
        self.node = node
        self.numbers = numbers
        self.restarts = restarts
        self.pid = None
        self.pinned = False  # the program asked for a hold: no action until it asks for a release
        self.unfinished = None  # the second half of an action, for the next call of act()
        self.done = []  # what was done, for the report of a failure
        self.program = None  # evidence.Watched
        self.competitors = [
            node.start_anchor(COMPETITOR_PRIORITY, device, {"SOFTGPU_DEVICES": str(devices)}) for device in range(devices)]
        self.program = evidence.Watched(node, self.competitors)
        # So that the program's first work is held.
        self._ctl("policy", "set", "priority", "--window", "500us", "--top-window", "2ms")
        for competitor in self.competitors:
            self._tell(competitor, "start 2000")
        self.opening = self._open()

    def _open(self):
        """The beginning is always the same: held, then released as the most important client, then random actions. Yields the
        seconds until the next step."""
        while not self.program.was_held:
            self.program.look()
            yield 0.01
        while not self.program.used_gpu or not self.program.has_window:
            for pid in self.program.look():
                self._ctl("set", "--pid", pid, "--priority", PRIORITIES[-1])
            yield 0.01
        self._policy()
        for competitor in self.competitors:
            self._compete(competitor)

    def act(self):
        """One or a few changes; returns the seconds until the next call."""
        if self.pinned or self.pid is None:
            return 0.01
        pause = next(self.opening, None)
        if pause is not None:
            return pause
        if self.unfinished:
            return self._finish()
        actions = [self._hold_briefly, self._hold_briefly, self._hold_a_while, self._priority, self._priority, self._policy,
                   self._window, self._compete]
        if self.restarts:
            actions += [self._restart] * 3
        pause = self.numbers.choice(actions)()
        return self.numbers.uniform(0, 0.03) if pause is None else pause

    def pin(self):
        """From here on only the program's requests are executed."""
        self.pinned = True
        self._finish()

    def hold(self, pid):
        self.node.hold(pid)

    def release(self, pid):
        self._ctl("release", "--pid", pid)
        self.pinned = False

    def _ctl(self, *arguments):
        self.done.append(" ".join(map(str, arguments)))
        result = self.node.ctl(*arguments, check=False)
        # The client may not be connected yet, any more, or again.
        if result.returncode != 0 and not (result.returncode == NO_CLIENT_FITS and "--pid" in arguments):
            raise AssertionError(f"xschedctl {self.done[-1]}: {result.returncode}: {result.stderr}")

    def _hold_briefly(self):
        for _ in range(self.numbers.randint(1, 4)):
            self._ctl("hold", "--pid", self.pid)
            self._ctl("release", "--pid", self.pid)

    def _hold_a_while(self):
        """Held until the next action, now and then for longer than a lease of the default length."""
        self._ctl("hold", "--pid", self.pid)
        self.unfinished = lambda: self._ctl("release", "--pid", self.pid)
        return self.numbers.choice((0.005, 0.02, 0.02, 0.15))

    def _finish(self):
        """The second half of an action that takes time."""
        unfinished, self.unfinished = self.unfinished, None
        if unfinished:
            unfinished()
        return 0

    def _priority(self):
        self._ctl("set", "--pid", self.pid, "--priority", self.numbers.choice(PRIORITIES))

    def _policy(self):
        self._ctl("policy", "set", self.numbers.choice(POLICIES), "--guard", self.numbers.choice(("50ms", "200ms", "500ms")),
                  "--linger", self.numbers.choice(("0us", "200us", "2ms")), "--turn", self.numbers.choice(("1ms", "5ms")),
                  "--max-concurrent", self.numbers.choice(("0", "1")))

    def _window(self):
        self._ctl("policy", "set", "--window", self.numbers.choice(WINDOWS), "--top-window", self.numbers.choice(WINDOWS))

    def _compete(self, competitor=None):
        competitor = competitor or self.numbers.choice(self.competitors)
        self._tell(competitor, self.numbers.choice(("stop", "start 300", "start 300", "start 2000")))

    def _tell(self, competitor, word):
        self.done.append(f"competitor: {word}")
        self.node.tell(competitor, word)

    def _restart(self):
        self.done.append("the daemon is killed and started again")
        self.node.stop_daemon(signal.SIGKILL)
        self.unfinished = self.node.start_daemon
        return self.numbers.choice((0, 0, 0.05))
