"""xschedd's C API, called by a real HIP program (programs/asking.hip): its hints reach the daemon, its holds
take effect, and without a daemon only the answers change."""

import unittest

import harness
from harness import wait_for

OK, NOT_CONNECTED, TOO_LATE = 0, -2, -5
NO_PRIORITY = 1 << 30
MINUTE_US = 60_000_000


class Asking:
    def __init__(self, node, *arguments, **options):
        self.node = node
        self.process = node.start("asking", *arguments, interactive=True, **options)
        self.pid = self.process.pid
        self.first = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("asking ended: " + self.process.stderr.read())
        return [int(word) for word in line.split()[1:]]

    def ask(self, *words):
        self.node.tell(self.process, " ".join(map(str, words)))
        answer = self.read()
        return answer[0] if len(answer) == 1 else answer

    def end(self):
        _, err = self.process.communicate(timeout=harness.DEADLINE_S)
        return self.process.returncode, err


class CApi(harness.NodeTest):
    def client(self, asking):
        return self.node.clients().get(asking.pid, {})

    def shows(self, asking, **wanted):
        wait_for(lambda: all(self.client(asking).get(name) == value for name, value in wanted.items()),
                 f"ps shows {wanted}; it shows {self.client(asking)}")

    def test_hints_reach_the_daemon(self):
        self.node.start_daemon()
        asking = Asking(self.node)
        self.assertEqual(asking.ask("status")[:5], [OK, 2, NO_PRIORITY, 0, 0])
        self.assertEqual(asking.ask("priority", 20), OK)
        self.assertEqual(asking.ask("weight", 300), OK)
        self.shows(asking, priority_hint=20, priority_effective=20, weight=300)
        self.assertEqual(asking.ask("status")[2:4], [20, 300])

        # The highest hint of process and streams counts; lower ones change nothing.
        self.assertEqual(asking.ask("stream-priority", 0, 40), OK)
        self.assertEqual(asking.ask("stream-priority", 1, -5), OK)
        self.assertEqual(asking.ask("stream-weight", 1, 500), OK)
        self.shows(asking, priority_hint=40, priority_effective=40, weight=500)
        self.assertEqual(asking.ask("status")[2:4], [20, 300], "the process's own are as they were")
        # A stream's hints go with it.
        self.assertEqual(asking.ask("destroy", 0), OK)
        self.assertEqual(asking.ask("stream-weight", 1, 0), OK)
        self.shows(asking, priority_hint=20, weight=300)
        # Without a hint of the process the stream's counts, however low.
        self.assertEqual(asking.ask("priority", NO_PRIORITY), OK)
        self.shows(asking, priority_hint=-5, priority_effective=-5)
        self.assertEqual(asking.end()[0], 0)

    def test_deadlines_of_a_stream(self):
        self.node.start_daemon("--policy", "deadline")
        asking = Asking(self.node)
        anchor = self.node.start_anchor(priority=0)
        # Any work misses a deadline of one microsecond.
        self.assertEqual(asking.ask("stream-deadline", 1, 1), OK)
        asking.ask("launch", 0, 1000)
        asking.ask("wait")
        self.node.clients()
        self.assertEqual(int(self.client(asking).get("late", 0)), 0, "the other stream has no deadline")

        def late():
            asking.ask("launch", 1, 1000)
            asking.ask("wait")
            return int(self.client(asking).get("late", 0)) > 0
        wait_for(late, "the daemon counts a missed deadline")
        self.assertEqual(asking.end()[0], 0)
        self.assertIsNone(anchor.poll())

    def test_group(self):
        self.node.start_daemon()
        asking = Asking(self.node, "together")
        self.assertEqual(asking.first, [OK, TOO_LATE])
        self.shows(asking, group="together")
        self.assertEqual(asking.end()[0], 0)

    def check_held(self, asking, hold, release, held_stream, free_stream):
        """While `hold` holds, a launch on held_stream does not return, and one on free_stream does."""
        free = asking.ask("launched", free_stream) if free_stream is not None else 0
        before = asking.ask("launched", held_stream)
        submitted = len(self.node.dispatches(asking.pid))
        self.assertEqual(asking.ask(*hold), OK)
        asking.ask("launch", held_stream, 10)
        if free_stream is not None:
            asking.ask("launch", free_stream, 10)
            wait_for(lambda: asking.ask("launched", free_stream) == free + 1, "the other stream goes on")
            wait_for(lambda: len(self.node.dispatches(asking.pid)) == submitted + 1, "its kernel runs")
        for _ in range(20):
            self.node.ctl("version", check=False)
        self.assertEqual(asking.ask("launched", held_stream), before, "the launch waits")
        self.assertEqual(asking.ask(*release), OK)
        wait_for(lambda: asking.ask("launched", held_stream) == before + 1, "the launch goes on")
        asking.ask("wait")

    def check_holds(self, asking):
        self.check_held(asking, ("hold", -1, MINUTE_US), ("release", -1), 0, None)
        self.check_held(asking, ("hold", 0, MINUTE_US), ("release", 0), 1, None)
        self.check_held(asking, ("hold-stream", 1, MINUTE_US), ("release-stream", 1), 1, 0)
        self.check_held(asking, ("hold-stream", 0, MINUTE_US), ("release", -1), 0, 1)
        # It ends by itself: nothing releases it.
        self.assertEqual(asking.ask("hold", 0, 1000), OK)
        asking.ask("launch", 0, 10)
        asking.ask("wait")
        self.assertGreater(asking.ask("status")[7], 0, "it is counted")
        # A hold on another device does not bind here.
        self.assertEqual(asking.ask("hold", 5, MINUTE_US), OK)
        asking.ask("launch", 0, 10)
        asking.ask("wait")

    def test_holds(self):
        self.node.start_daemon()
        asking = Asking(self.node, priority=10)
        self.check_holds(asking)
        self.assertEqual(asking.end()[0], 0)

    def test_a_program_that_holds_itself_holds_no_other(self):
        self.node.start_daemon()
        asking = Asking(self.node, priority=50)
        lower = self.node.start_anchor(priority=-50)
        wait_for(lambda: self.node.device_state(asking.pid).get("state") == "idle", "tracked")
        self.assertEqual(asking.ask("hold", -1, MINUTE_US), OK)
        asking.ask("launch", 0, 1000)
        self.node.tell(lower, "work 20 1000")
        self.assertEqual(lower.stdout.readline().strip(), "done")
        self.assertEqual(asking.ask("launched", 0), 0)
        self.assertEqual(self.node.device_state(asking.pid)["state"], "idle")
        asking.ask("release", -1)
        asking.ask("wait")
        result, held, tracked, submitted = asking.ask("device", 0)
        self.assertEqual((result, held, tracked), (OK, 0, 1))
        self.assertGreater(submitted, 0)
        self.assertEqual(asking.end()[0], 0)

    def test_without_a_daemon(self):
        asking = Asking(self.node)
        self.assertEqual(asking.ask("priority", 20), NOT_CONNECTED)
        self.assertEqual(asking.ask("stream-weight", 1, 700), NOT_CONNECTED)
        self.assertEqual(asking.ask("device", 0)[0], NOT_CONNECTED)
        self.assertEqual(asking.ask("status")[:4], [OK, 1, 20, 0])
        self.check_holds(asking)
        # Remembered until a daemon starts.
        self.node.start_daemon()
        self.shows(asking, priority_hint=20, weight=700)
        self.assertEqual(asking.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
