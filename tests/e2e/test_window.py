"""The window in time: how much of a background client's work is still on the device when the important one comes."""

import random
import statistics
import time
import unittest

import harness
from harness import wait_for

WHOLE = 8000  # workgroups: all of the device
AHEAD = 64  # launches that the background client would queue by itself
ARRIVALS = 8


class Window(harness.NodeTest):
    def left_over(self, micros, is_right):
        """Measures medians of the GPU time and launches that the background client had on the device when the important one
        arrived, over many arrivals, alternately with the default window and without one: `is_right` gets the two for each."""
        node = self.node
        node.start_daemon()
        # With a tolerance, the daemon would find that a wide window between bursts does this important client no harm.
        node.ctl("policy", "set", "--guard", 0, "--tolerance", 0)
        important = node.start_anchor(priority=50)

        def measure():
            low = node.start("streams", 1, micros, WHOLE, 1000, AHEAD, priority=0, interactive=True)
            self.assertEqual(low.stdout.readline().strip(), "ready")
            node.tell(low, "go")
            wait_for(lambda: len(node.dispatches(low.pid)) > 20, "the background client runs")
            bursts = {"500us": [], "0": []}
            for arrival in range(2 * ARRIVALS):
                window = list(bursts)[arrival % 2]
                node.ctl("policy", "set", "--window", window)
                # What it has in flight was launched with this window.
                before = wait_for(lambda: int(node.device_state(low.pid).get("submitted", 0)), "the daemon knows its work")
                wait_for(lambda: int(node.device_state(low.pid)["submitted"]) > before + 2 * AHEAD, "the background client runs")
                seen = len(node.dispatches(important.pid))
                time.sleep(random.uniform(0.0, 0.02))
                node.tell(important, "work 20 1000")
                self.assertEqual(important.stdout.readline().strip(), "done")
                burst = node.dispatches(important.pid)[seen:]
                bursts[window].append((burst[0]["arrival_ns"], burst[-1]["end_ns"]))
            self.assertIsNone(low.poll())
            low.kill()
            background = node.dispatches(low.pid)

            def medians(window):
                work, launches = [], []
                for begin, end in bursts[window]:
                    # The last kernel of the burst is left out: the gate opens when it ends.
                    after = [r for r in background if r["end_ns"] > begin and r["start_ns"] < end - 2_000_000]
                    work.append(sum(r["end_ns"] - max(r["start_ns"], begin) for r in after) / 1e3)
                    launches.append(len(after))
                print(f"{micros} us kernels, window {window}: median of {len(work)} arrivals {statistics.median(work):.0f} us in "
                      f"flight ({statistics.median(launches):.0f} launches), most {max(work):.0f} us")
                return statistics.median(work), statistics.median(launches)

            return medians("500us"), medians("0")

        self.assert_measured(measure, is_right, "GPU time and launches in flight when work arrives, with a window and without")

    def test_short_kernels(self):
        self.left_over(200, lambda parts: parts[0][0] < parts[1][0] / 2)

    def test_long_kernels(self):
        self.left_over(5000, lambda parts: parts[0][1] < parts[1][1] / 4)

    def overlap(self, program):
        """The part of the averages' time in which a layer ran, without the last of each step, which has no layer beside it; and
        the time that all took on the device, in ms."""
        self.node.finish(program)
        queues = {}
        for record in self.node.dispatches(program.pid):
            queues.setdefault(record["queue"], []).append((record["start_ns"], record["end_ns"]))
        averages, layers = sorted(queues.values(), key=len)
        averages = [span for number, span in enumerate(averages) if number % 4 != 3]
        both = sum(max(0, min(end, last) - max(begin, first)) for begin, end in averages for first, last in layers)
        return both / sum(end - begin for begin, end in averages), (layers[-1][1] - layers[0][0]) / 1e6

    def test_a_collective_leaves_room_for_layers(self):
        """Work in flight on one stream may wait for a peer, or for another stream, and must not use up that stream's window."""
        node = self.node
        node.start_daemon()
        node.start_anchor(priority=50)

        def both_ways():
            native, native_ms = self.overlap(node.start("collective", 30, 1600, shim=False))
            tracked, tracked_ms = self.overlap(node.start("collective", 30, 1600, priority=0))
            print(f"layers ran for {100 * native:.0f} % of the averages' time natively, {100 * tracked:.0f} % with a window; "
                  f"{native_ms:.0f} and {tracked_ms:.0f} ms")
            return native, tracked

        self.assert_measured(both_ways, lambda parts: parts[1] > 0.5 * parts[0],
                             "the parts of the averages' time in which layers ran, natively and with a window")

    def side_by_side(self, program):
        """How many of its kernels the device ran at a time, on average."""
        self.assertEqual(program.stdout.readline().strip(), "ready")
        self.node.tell(program, "go")
        self.assertEqual(program.stdout.readline().strip(), "done")
        records = self.node.dispatches(program.pid)[1:]
        program.kill()
        span = max(r["end_ns"] for r in records) - min(r["start_ns"] for r in records)
        return sum(r["end_ns"] - r["start_ns"] for r in records) / span

    def test_long_kernels_of_several_streams_run_side_by_side(self):
        """With kernels much longer than the window, an important client waits for one of them, with a window or without."""
        node = self.node
        node.start_daemon()
        node.start_anchor(priority=50)

        def both_ways():
            arguments = ("streams", 4, 40000, 2, 1, 2)
            native = self.side_by_side(node.start(*arguments, shim=False, interactive=True))
            tracked = self.side_by_side(node.start(*arguments, priority=0, interactive=True))
            print(f"kernels at a time: {native:.2f} natively, {tracked:.2f} with a window")
            self.assertGreater(native, 1.5)
            return native, tracked

        self.assert_measured(both_ways, lambda parts: parts[1] > 0.8 * parts[0],
                             "kernels at a time, natively and with a window")


if __name__ == "__main__":
    unittest.main()
