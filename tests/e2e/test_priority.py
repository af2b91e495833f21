"""The purpose of xschedd: the more important client runs first, and priorities can change while programs run."""

import json
import os
import statistics
import unittest

import harness
from harness import wait_for


class Priority(harness.NodeTest):
    def progress(self, process):
        return len(self.node.dispatches(process.pid))

    def test_lower_waits_while_higher_is_busy(self):
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--guard", 0, "--tolerance", 0)  # otherwise it would try the higher one beside the lower
        high = node.start_anchor(priority=50)
        low = node.start("default_stream", 1000, 1000, priority=-10)
        wait_for(lambda: self.progress(low) >= 5, "the lower client runs while the higher is idle")

        node.keep_busy(high)
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "the lower client is held")
        seen = self.progress(low)
        wait_for(lambda: str(high.pid) in node.device_state(low.pid)["held_for"], "it says for whom it is held")
        before = self.progress(high)
        wait_for(lambda: self.progress(high) > before + 200, "the higher one runs")
        self.assertLessEqual(self.progress(low) - seen, 4, "at most what was in flight when the gate shut")
        node.tell(high, "stop")
        node.finish(low)

    def test_swap_while_running(self):
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--guard", 0)
        one = node.start_anchor(priority=50)
        two = node.start_anchor(priority=-10)
        node.tell(one, "start 1000")
        node.tell(two, "start 1000")
        for important, other, priority in ((one, two, None), (two, one, 80), (one, two, -20)):
            if priority is not None:
                node.ctl("set", "--pid", two.pid, "--priority", priority)
            wait_for(lambda: node.device_state(other.pid).get("state") == "held", "the other is held")
            # On a busy machine its thread may be late, so that the device is idle for a moment.
            wait_for(lambda: node.device_state(important.pid)["state"] == "running", "the important one is running")
            before = self.progress(important)
            wait_for(lambda: self.progress(important) > before + 20, "the important one runs")
        node.tell(one, "stop")
        node.tell(two, "stop")

    def test_starvation_guard_gives_turns(self):
        node = self.node
        node.start_daemon()
        high, low = node.start_anchor(priority=50), node.start_anchor(priority=-10)
        node.tell(low, "start 1000")

        def launched(guard):
            """By the lower one, while the higher one launches 2,500."""
            node.ctl("policy", "set", "--guard", guard, "--tolerance", 0)
            node.keep_busy(high)
            wait_for(lambda: node.device_state(low.pid).get("state") == "held", "the lower client is held")
            low_before, high_before = self.progress(low), self.progress(high)
            wait_for(lambda: self.progress(high) > high_before + 2500, "the higher one runs")
            count = self.progress(low) - low_before
            node.tell(high, "stop")
            return count

        self.assertLessEqual(launched("0"), 4, "at most what was in flight when the gate shut")
        self.assert_measured(lambda: launched("50ms"), lambda count: count > 20, "a turn of 50 ms is many kernels of 1 ms")
        node.tell(low, "stop")

    def start_in_turns(self, *loads):
        """Programs that have their turn one at a time, below an idle one: each with these options of request_tenant. Kernels
        take 0.3 ms by default."""
        self.node.start_daemon()
        self.node.ctl("policy", "set", "--max-concurrent", 1, "--tolerance", 0)
        self.node.start_anchor(priority=50)
        usual = ("--seconds", 0, "--device-part", 1)
        return [self.node.start(harness.BUILD / "tools/bench/request_tenant", *usual, *load,
                                *([] if "--kernel-us" in load else ["--kernel-us", 300]), priority=0, trace=False) for load in loads]

    def part_beside(self, first, loop, seconds=1):
        """What the first has of the GPU time of both, while the loop has so many seconds of it."""
        def gpu_ns(process):
            return int(self.node.device_state(process.pid).get("gpu_time_ns", 0))

        wait_for(lambda: gpu_ns(first) and gpu_ns(loop), "both have work")
        before = gpu_ns(first), gpu_ns(loop)
        wait_for(lambda: gpu_ns(loop) > before[1] + seconds * 10**9, "the loop has its turns")
        gained = gpu_ns(first) - before[0], gpu_ns(loop) - before[1]
        return gained[0] / sum(gained)

    def test_one_that_pauses_has_its_part_of_the_turns(self):
        training, loop = self.start_in_turns(("--think-ms", 2, "--kernels", 30), ("--think-ms", 0.02, "--kernels", 4))
        self.assert_measured(lambda: self.part_beside(training, loop), lambda part: part > 0.3,
                             "a pause of 2 ms after 9 does not cost it its turn")

    def test_one_with_launches_longer_than_a_turn_has_its_part(self):
        # Each launch has two and a half turns' work, and the host is two of them ahead.
        long, loop = self.start_in_turns(("--think-ms", 0.02, "--kernels", 1000, "--kernel-us", 250_000),
                                         ("--think-ms", 0.02, "--kernels", 4))
        self.assert_measured(lambda: self.part_beside(long, loop, 3), lambda part: 0.3 < part < 0.7, "of two equals")

    def test_one_that_seldom_works_does_not_wait_for_all_turns(self):
        node = self.node
        answers = os.path.join(node.dir, "answers")
        loop = ("--think-ms", 0.02, "--kernels", 8)
        self.start_in_turns(loop, loop, loop, ("--think-ms", 60, "--kernels", 10, "--out", answers))
        turn_ms = 100  # the default

        def median():
            def found():
                if not os.path.exists(answers):
                    return []
                with open(answers, encoding="utf-8") as file:
                    return [json.loads(line)["latency_ms"] for line in file if line.endswith("\n")]

            before = len(found())
            wait_for(lambda: len(found()) >= before + 30, "it answers requests")
            return statistics.median(found()[before:]) / turn_ms

        self.assert_measured(median, lambda turns: turns < 0.5, "most requests go early, and the others' turns are three")

    def test_fifo_lets_all_run(self):
        node = self.node
        node.start_daemon("--policy", "fifo")
        high, low = node.start_anchor(priority=50), node.start_anchor(priority=-10)
        attached = self.progress(high)
        node.tell(high, harness.ALWAYS_BUSY)
        wait_for(lambda: self.progress(high) > attached, "the higher client runs")
        node.tell(low, "work 100 1000")
        self.assertEqual(low.stdout.readline().strip(), "done")
        self.assertEqual(int(node.device_state(low.pid)["held_ns"]), 0)
        low_end = node.dispatches(low.pid)[-1]["end_ns"]
        node.tell(high, "stop")
        wait_for(lambda: node.dispatches(high.pid)[-1]["end_ns"] > low_end, "it ran beside the higher one")

    def test_a_guard_that_is_off_gives_a_warning(self):
        """However it is set: in the file, by a reload, by policy set, or found by a restarted daemon."""
        node = self.node

        def assert_warnings(count):
            # The daemon's log has a thread of its own, and may be behind an answer.
            wait_for(lambda: node.daemon_log().count("the starvation guard is off") >= count, f"warning {count}")
            self.assertEqual(node.daemon_log().count("the starvation guard is off"), count)

        node.start_daemon(config="[policy]\nguard_ms_per_s = 0\n")
        assert_warnings(1)
        node.ctl("reload")
        assert_warnings(2)
        self.assertIn("for ever", node.ctl("policy", "get").stdout)
        node.ctl("policy", "set", "--guard", "10ms")
        assert_warnings(2)
        self.assertNotIn("for ever", node.ctl("policy", "get").stdout)
        node.ctl("policy", "set", "--guard", 0)
        assert_warnings(3)


if __name__ == "__main__":
    unittest.main()
