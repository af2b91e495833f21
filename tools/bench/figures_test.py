#!/usr/bin/env python3
"""The figures of demo and bench, on hand-made records."""

import math
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from benchlib import figures  # noqa: E402
from benchlib.gpu_time import GpuTime, worst_share_error  # noqa: E402
from benchlib.records import Dispatch, Progress, Request, rate  # noqa: E402

MS = 1_000_000


def request(arrival_ms: float, latency_ms: float, service_ms: float) -> Request:
    return Request(round(arrival_ms * MS), latency_ms, service_ms, True)


class Figures(unittest.TestCase):
    def test_quantiles_are_values_that_were_measured(self) -> None:
        values = [float(value) for value in range(1, 101)]
        self.assertEqual(figures.quantile(values, 0.5), 50)
        self.assertEqual(figures.quantile(values, 0.99), 99)
        self.assertEqual(figures.quantile([7.0], 0.99), 7)
        self.assertTrue(math.isnan(figures.quantile([], 0.5)))

    def test_a_request_counts_where_it_arrived(self) -> None:
        requests = [request(9, 100, 10), request(10, 1, 1), request(20, 1, 1)]
        self.assertEqual(figures.in_window(requests, 10 * MS, 20 * MS), requests[1:2])

    def test_longest_busy_stretch(self) -> None:
        requests = [request(0, 16, 16), request(100, 16, 16), request(110, 22, 16), request(200, 16, 16)]
        self.assertEqual(figures.longest_busy_stretch(requests), (100 * MS, 132 * MS))

    def test_the_backlog_ends_with_a_request_served_at_once(self) -> None:
        requests = [request(10, 500, 16), request(20, 300, 16), request(400, 16.5, 16), request(500, 16, 16)]
        self.assertEqual(figures.caught_up_ns(requests, 15 * MS), 400 * MS)
        self.assertIsNone(figures.caught_up_ns(requests[:2], 15 * MS))

    def test_a_lower_priority_shows_only_while_a_request_is_served(self) -> None:
        requests = [request(100, 20, 20), request(200, 60, 60), request(300, 90, 90)]
        kernels = [100 * MS, 118 * MS, 200 * MS, 255 * MS, 370 * MS, 385 * MS]
        intervals = figures.served_intervals(requests, kernels, 8 * MS, 12 * MS)
        self.assertEqual(intervals, [(108 * MS, 118 * MS), (208 * MS, 255 * MS), (312 * MS, 385 * MS)])
        # While no request is served, at a request's begin and after its last kernel, neighbours run under any priorities.
        starts = [at * MS for at in (99, 101, 119, 150, 201, 230)]
        self.assertEqual(figures.first_within(starts, 100 * MS, intervals), 230 * MS)
        self.assertIsNone(figures.first_within(starts, 231 * MS, intervals))
        # A request whose first kernel does not start in time.
        self.assertEqual(figures.first_within([301 * MS, 313 * MS], 260 * MS, intervals), 313 * MS)

    def test_handed_over_when_no_neighbour_follows(self) -> None:
        ends = [at * MS for at in (1, 2, 5, 9, 30, 31)]
        self.assertEqual(figures.handed_over_ns(ends, 3 * MS, 10 * MS), 9 * MS)
        self.assertIsNone(figures.handed_over_ns(ends, 30 * MS, 10 * MS))

    def test_throughput_kept_is_relative_to_what_is_left(self) -> None:
        self.assertAlmostEqual(figures.throughput_kept(720, 1000, 0.2), 0.9)

    def test_rates(self) -> None:
        reported = Progress([0, 1000 * MS], [0, 500])
        self.assertAlmostEqual(rate([reported], 0, 500 * MS), 500)
        traced = Progress.traced([Dispatch(1, 0, "kernel", "k", 0, 0, at * MS) for at in range(10, 110, 10)] +
                                 [Dispatch(1, 0, "blit", "b", 0, 0, 5 * MS)])
        self.assertAlmostEqual(rate([reported, traced], 20 * MS, 60 * MS), 500 + 100)

    def test_gpu_time_counts_overlap_once(self) -> None:
        def ran(kind: str, start_ms: int, end_ms: int) -> Dispatch:
            return Dispatch(1, 0, kind, "k", 0, start_ms * MS, end_ms * MS)

        time = GpuTime([ran("kernel", 30, 40), ran("kernel", 10, 20), ran("blit", 15, 25), ran("copy", 0, 100)])
        self.assertEqual(time.between(0, 100 * MS), 25 * MS)
        self.assertEqual(time.between(0, 5 * MS), 0)
        self.assertEqual(time.between(12 * MS, 35 * MS), 18 * MS)
        self.assertEqual(time.between(26 * MS, 28 * MS), 0)
        self.assertEqual(GpuTime([]).between(0, MS), 0)

    def test_share_error_is_that_of_the_worst_second(self) -> None:
        def turns(milliseconds: range, offset: int, length: int) -> GpuTime:
            return GpuTime([Dispatch(1, 0, "kernel", "k", 0, (at + offset) * MS, (at + offset + length) * MS)
                            for at in milliseconds])

        first, second = turns(range(0, 4000, 40), 0, 30), turns(range(0, 4000, 40), 30, 10)
        self.assertLess(worst_share_error((first, second), 0.75, 0, 4000 * MS), 1)
        # Away for 400 ms of one second: 0.6 × 0.75 of what both got, 0.45 / 0.7.
        late = turns([at for at in range(0, 4000, 40) if not 2000 <= at < 2400], 0, 30)
        self.assertAlmostEqual(worst_share_error((late, second), 0.75, 0, 4000 * MS), 75 - 45 / 0.7, delta=0.5)
        self.assertTrue(math.isnan(worst_share_error((first, second), 0.75, 0, 900 * MS)))


if __name__ == "__main__":
    unittest.main()
