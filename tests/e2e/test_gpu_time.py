"""Compares the GPU time that a client reports with the software GPU's own trace of the same work."""

import contextlib
import unittest

import harness
from harness import wait_for

WITHIN = 0.02  # the promise of docs/explanation/shim.md
PART = 2  # workgroups that leave most of the device free
WHOLE = 8000
AHEAD = 4  # launches that a stream is ahead of the device
POINTS = 3
RATIOS = "what clients say, by what the trace says"


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
    def start(self, streams, micros, groups, seconds=1.0, how="launch", weight=100):
        """Again if its first launch passes before there is a connection, as on a busy machine: it is never counted then."""
        for _ in range(3):
            process = self.node.start("streams", streams, micros, groups, seconds, AHEAD, how,
                                      harness.programs / "module_kernel.co", priority=0, interactive=True,
                                      environment={"XSCHEDD_WEIGHT": str(weight)})
            self.assertEqual(process.stdout.readline().strip(), "ready")
            # Its GPU time, since it may be counted before the daemon has heard that the device is busy, and so still be idle.
            with contextlib.suppress(AssertionError):
                wait_for(lambda pid=process.pid: self.node.device_state(pid).get("gpu_time_ns", 0) > 0, "it is measured", 5)
                return process
            process.kill()
        return self.fail("its first launch is measured")

    def await_ready(self, *processes):
        """Notes what each client has counted for its launch before "ready". The span of that launch includes the loading of
        the code, and so depends on how busy the host is."""
        for process in processes:
            state = self.state_when_idle(process)
            self.assertEqual(state["submitted"], 1)
            self.first_ns[process.pid] = state["gpu_time_ns"]
            self.assertGreaterEqual(self.first_ns[process.pid], union_ns(self.node.dispatches(process.pid)), "it counts")

    def state_when_idle(self, process):
        wait_for(lambda: self.node.device_state(process.pid).get("state") == "idle", "it is idle")
        return self.node.device_state(process.pid)

    def work_of(self, process):
        """Its trace, without the launch before "ready"."""
        return self.node.dispatches(process.pid)[1:]

    def run_all(self, *processes):
        self.await_ready(*processes)
        for process in processes:
            self.node.tell(process, "go")
        self.finish_all(*processes)

    def finish_all(self, *processes):
        for process in processes:
            self.assertEqual(process.stdout.readline().strip(), "done")

    def ratio(self, process):
        """The GPU time reported by the client, divided by that of the trace."""
        state = self.state_when_idle(process)
        said, counted = state["gpu_time_ns"] - self.first_ns[process.pid], state["submitted"] - 1
        dispatches = self.work_of(process)
        real = union_ns(dispatches)
        print(f"{process.args[-7:-1]}: {len(dispatches)} dispatches, {counted} counted, trace {real / 1e6:.2f} ms, "
              f"client {said / 1e6:.2f} ms, {100 * (said / real - 1):+.2f} %")
        return said / real

    def measure(self, *works):
        """Runs these beside each other, and compares both measurements of each. A work: the arguments of `start`."""
        def once():
            processes = [self.start(*work) for work in works]
            self.run_all(*processes)
            return [self.ratio(process) for process in processes]

        self.assert_measured(once, lambda ratios: all(abs(ratio - 1) <= WITHIN for ratio in ratios), RATIOS)

    def run_first_alone(self, graphs, other):
        """Runs two, the second when the first has run by itself for a moment."""
        node = self.node
        self.await_ready(graphs, other)
        node.tell(graphs, "go")
        wait_for(lambda: len(self.work_of(graphs)) > 40, "graphs run alone")
        node.tell(other, "go")
        self.finish_all(graphs, other)

    def measure_shares(self, *processes):
        """Runs two, the first alone for a moment, and returns the share of each, in points, while both ran."""
        self.run_first_alone(*processes)
        traces = [self.work_of(process) for process in processes]
        begin = max(trace[0]["start_ns"] for trace in traces)
        end = min(trace[-1]["end_ns"] for trace in traces)
        times = [union_ns([r for r in trace if r["start_ns"] >= begin and r["end_ns"] <= end]) for trace in traces]
        for process in processes:
            self.ratio(process)
        shares = [100 * time / sum(times) for time in times]
        print("shares " + " / ".join(f"{share:.1f}" for share in shares))
        return shares

    def setUp(self):
        super().setUp()
        self.first_ns = {}  # by pid
        self.node.start_daemon()
        # A client of another priority, so that clients are tracked; strict, so that their windows are narrow.
        self.node.start_anchor(priority=50, environment={"XSCHEDD_LATENCY": "strict"})

    def test_one_stream(self):
        self.measure((1, 200, WHOLE))

    def test_one_stream_of_short_kernels(self):
        self.measure((1, 20, WHOLE))

    def test_streams_side_by_side(self):
        self.measure((4, 400, PART))

    def test_streams_in_turn(self):
        self.measure((4, 400, WHOLE))

    def test_beside_a_competitor(self):
        self.measure((1, 300, WHOLE), (1, 1000, WHOLE))

    def test_streams_beside_a_competitor(self):
        self.measure((3, 500, WHOLE), (2, 1300, WHOLE))

    def test_module_launches_beside_a_competitor(self):
        self.measure((1, 300, WHOLE, 1.0, "module"), (1, 1000, WHOLE, 1.0, "packed-module"))

    def test_ext_launches_beside_a_competitor(self):
        self.measure((1, 300, WHOLE, 1.0, "ext"), (1, 1000, WHOLE, 1.0, "ext-module"))

    def test_hcc_launches_beside_a_competitor(self):
        self.measure((1, 300, WHOLE, 1.0, "hcc-module"), (1, 1000, WHOLE))

    def test_graphs(self):
        self.measure((1, 300, WHOLE, 1.0, "graph"))

    def test_graphs_after_a_moment_alone(self):
        def once():
            graphs, flood = self.start(1, 300, WHOLE, 1.5, "graph"), self.start(1, 700, WHOLE)
            self.run_first_alone(graphs, flood)
            trace, begin = self.work_of(graphs), self.work_of(flood)[0]["start_ns"]
            alone = sum(record["end_ns"] < begin for record in trace)
            self.assertLess(alone, len(trace) / 2, "mostly beside the other")
            return self.ratio(graphs)

        self.assert_measured(once, lambda ratio: abs(ratio - 1) <= WITHIN, RATIOS)

    def share_of_graphs(self, weight, other):
        self.node.ctl("policy", "set", "share")

        def once():
            # Long kernels, so that a busy host is not late with the next ones: then the client could not use its share.
            graphs = self.start(1, 1000, WHOLE, 4, "graph", weight)
            share, _ = self.measure_shares(graphs, self.start(1, 3000, WHOLE, 4, weight=other))
            return share

        wanted = 100 * weight / (weight + other)
        self.assert_measured(once, lambda share: abs(share - wanted) <= POINTS, f"shares that should be {wanted} %")

    def test_larger_share_of_graphs(self):
        self.share_of_graphs(300, 100)

    def test_smaller_share_of_graphs(self):
        self.share_of_graphs(100, 300)

    def test_a_launch_before_the_daemons_first_answer(self):
        """A client's first launch comes before the daemon's first answer."""
        node = self.node
        anchors = []

        def first_launches():
            """How many are counted of each; none if a busy machine lets it pass before there is a connection."""
            anchors[:] = [node.start_anchor(50), node.start_anchor(0, environment={"ANCHOR_FIRST_US": "50000"})]
            return [int(node.device_state(anchor.pid)["submitted"]) for anchor in anchors]

        self.assert_measured(first_launches, lambda counted: counted == [1, 1], "each first launch is counted")
        wait_for(lambda: int(node.device_state(anchors[1].pid)["gpu_time_ns"]) > 40_000_000, "its launch is GPU time")


if __name__ == "__main__":
    unittest.main()
