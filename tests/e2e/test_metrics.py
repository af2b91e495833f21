"""Compares the metrics with the device's trace: launches and GPU time of real HIP programs, and a hold of one of them."""

import re
import unittest

import harness
from harness import wait_for

LAUNCHES, MICROS = 40, 2000


class Metrics(harness.NodeTest):
    def value(self, name, **labels):
        """The sum of the samples that have these labels."""
        total = 0.0
        for sample, has, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", self.node.ctl("metrics").stdout, re.MULTILINE):
            if sample == name and set(labels.items()) <= set(re.findall(r'(\w+)="([^"]*)"', has)):
                total += float(value)
        return total

    def test_counters_are_what_the_device_saw(self):
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--guard", 0)
        low, high = node.start_anchor(priority=-10), node.start_anchor(priority=10)
        wait_for(lambda: all(node.device_state(one.pid).get("state") == "idle" for one in (low, high)), "both are tracked")
        before = len(node.dispatches(low.pid))
        launched = self.value("xschedd_launches_total", **{"class": "low"})
        used = self.value("xschedd_gpu_time_seconds_total", **{"class": "low"})
        node.tell(low, f"work {LAUNCHES} {MICROS}")
        self.assertEqual(low.stdout.readline().strip(), "done")
        saw = node.dispatches(low.pid)[before:]
        self.assertEqual(len(saw), LAUNCHES)
        wait_for(lambda: self.value("xschedd_device_clients", state="idle") == 2, "both are idle")
        self.assertEqual(self.value("xschedd_launches_total", **{"class": "low"}) - launched, LAUNCHES)
        self.assertEqual(self.value("xschedd_completions_total", **{"class": "low"}),
                         self.value("xschedd_launches_total", **{"class": "low"}))
        seconds = sum(record["end_ns"] - record["start_ns"] for record in saw) / 1e9
        counted = self.value("xschedd_gpu_time_seconds_total", **{"class": "low"}) - used
        print(f"{LAUNCHES} launches: {seconds:.4f} s on the software GPU, {counted:.4f} s counted")
        self.assertLess(abs(counted - seconds), 0.25 * seconds)
        self.assertEqual(self.value("xschedd_held_time_seconds_total"), 0)
        # Held for the other one: held time, and at least one hold. On a busy machine the other may pause, so there is more than one launch.
        node.tell(high, f"start {MICROS}")
        wait_for(lambda: self.value("xschedd_device_clients", state="running", **{"class": "high"}) == 1, "it runs")
        node.tell(low, f"work {10 * LAUNCHES} {MICROS}")
        wait_for(lambda: self.value("xschedd_device_clients", state="held", **{"class": "low"}) == 1, "the other is held")
        wait_for(lambda: self.value("xschedd_longest_hold_seconds", **{"class": "low"}) > 0, "a hold")
        node.tell(high, "stop")
        self.assertEqual(low.stdout.readline().strip(), "done")
        wait_for(lambda: self.value("xschedd_device_clients", state="idle") == 2, "both are idle")
        held = self.value("xschedd_held_time_seconds_total", **{"class": "low"})
        self.assertGreater(held, 0)
        self.assertEqual(held, self.value("xschedd_hold_duration_seconds_sum", **{"class": "low"}))
        self.assertGreaterEqual(self.value("xschedd_hold_duration_seconds_count", **{"class": "low"}), 1)
        self.assertEqual(self.value("xschedd_held_time_seconds_total", **{"class": "high"}), 0)


if __name__ == "__main__":
    unittest.main()
