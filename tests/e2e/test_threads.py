"""Threads of a client that end: cancelled where they wait in the shim, or many, one after the other."""

import unittest

import harness
from harness import wait_for


class Threads(harness.NodeTest):
    def start(self, config=None):
        """A client whose threads end, beside an idle, more important one."""
        node = self.node
        node.start_daemon(config=config)
        node.start_anchor(priority=50)
        program = node.start("ending", priority=-10, interactive=True)
        self.assertEqual(program.stdout.readline().strip(), "ready", "the program started")
        return program

    def ask(self, program, line):
        self.node.tell(program, line)
        return program.stdout.readline().strip()

    def state(self, program):
        return self.node.device_state(program.pid).get("state")

    def end(self, program):
        """Whatever its threads did, nothing of them is left: it is idle, runs on, and every result is right."""
        self.assertEqual(self.ask(program, "wait"), "done")
        wait_for(lambda: self.state(program) == "idle", "it is idle")
        self.assertEqual(self.ask(program, "short 1"), "done")
        program.stdin.close()
        program.stdin = None
        launches, _ = self.node.finish(program)
        self.assertEqual(len(self.node.dispatches(program.pid)), launches)

    def cancelled_while_held(self, kind):
        node = self.node
        program = self.start(harness.LONG_LEASE)
        node.ctl("hold", "--pid", program.pid)
        self.assertEqual(self.ask(program, f"start {kind} 1 100"), "started")
        wait_for(lambda: self.state(program) == "held", "the thread waits at the gate")
        self.assertEqual(self.ask(program, "cancel"), "cancelled")
        # It goes on waiting: what it is about to submit is not lost, as without a hold.
        self.assertEqual(self.state(program), "held")
        node.ctl("release", "--pid", program.pid)
        self.assertEqual(self.ask(program, "join"), "ended 1")
        self.end(program)

    def test_cancelled_while_held(self):
        self.cancelled_while_held("deferred")

    def test_cancelled_at_any_moment_while_held(self):
        self.cancelled_while_held("asynchronous")

    def test_cancelled_while_it_waits_for_the_window(self):
        program = self.start(harness.LONG_LEASE)
        # Far more than fits the window, so that it waits for that most of the time.
        self.assertEqual(self.ask(program, "start deferred 200 3000"), "started")
        wait_for(lambda: len(self.node.dispatches(program.pid)) > 20, "the thread launches")
        self.assertLess(len(self.node.dispatches(program.pid)), 150, "it has most of its launches before it")
        self.assertEqual(self.ask(program, "cancel"), "cancelled")
        self.assertEqual(self.ask(program, "join"), "ended 200")
        self.end(program)


if __name__ == "__main__":
    unittest.main()
