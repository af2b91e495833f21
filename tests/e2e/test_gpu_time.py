"""GPU time as the client tells it, beside the software GPU's own trace of the same work."""

import unittest

import harness
from harness import wait_for

WITHIN = 0.02  # the promise of docs/shim.md
PART = 2  # workgroups that leave most of the device free
WHOLE = 8000


def union_ns(dispatches):
    """The time during which at least one of them ran."""
    total, reached = 0, 0
    for record in dispatches:
        start = max(record["start_ns"], reached)
        if record["end_ns"] > start:
            total += record["end_ns"] - start
            reached = record["end_ns"]
    return total


class GpuTime(harness.NodeTest):
    def start(self, streams, micros, groups, seconds=1.0, priority=0):
        process = self.node.start("streams", streams, micros, groups, seconds, priority=priority, interactive=True)
        self.assertEqual(process.stdout.readline().strip(), "ready")
        return process

    def measure(self, *processes):
        """Runs what was started, and compares both accounts of each."""
        node = self.node
        wait_for(lambda: len(node.clients()) >= len(processes) + 1, "all are attached")
        for process in processes:
            node.tell(process, "go")
        for process in processes:
            self.assertEqual(process.stdout.readline().strip(), "done")
        for process in processes:
            wait_for(lambda: node.device_state(process.pid).get("state") == "idle", "it is idle")
            said = int(node.device_state(process.pid)["gpu_time_ns"])
            dispatches = node.dispatches(process.pid)
            real = union_ns(dispatches)
            print(f"{process.args[-5:]}: {len(dispatches)} dispatches, trace {real / 1e6:.2f} ms, "
                  f"client {said / 1e6:.2f} ms, {100 * (said / real - 1):+.2f} %")
            with self.subTest(process.args[-5:]):
                self.assertAlmostEqual(said / real, 1, delta=WITHIN)

    def setUp(self):
        super().setUp()
        self.node.start_daemon()
        # Somebody of another priority, so that clients are tracked.
        self.node.start_anchor(priority=50)

    def test_one_stream(self):
        self.measure(self.start(1, 200, WHOLE))

    def test_one_stream_of_short_kernels(self):
        self.measure(self.start(1, 20, WHOLE))

    def test_streams_side_by_side(self):
        self.measure(self.start(4, 400, PART))

    def test_streams_in_turn(self):
        self.measure(self.start(4, 400, WHOLE))

    def test_beside_a_competitor(self):
        self.measure(self.start(1, 300, WHOLE), self.start(1, 1000, WHOLE))

    def test_streams_beside_a_competitor(self):
        self.measure(self.start(3, 500, WHOLE), self.start(2, 1300, WHOLE))


if __name__ == "__main__":
    unittest.main()
