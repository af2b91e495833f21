"""Streams of one process: requests on a more important stream run before later submissions on a less important one."""

import re
import unittest

import harness

REQUESTS = 12
KERNELS = 6  # of a request
MICROS = 1000


class Streams(harness.NodeTest):
    def overtaken(self, on, has_daemon):
        """How many of the less important stream's kernels began while a request was under way, all requests together; and
        how long threads waited."""
        environment = {"XSCHEDD_STREAMS": "1" if on else "0"}
        if not has_daemon:
            environment["LD_PRELOAD"] = str(harness.BUILD / "client-shim/libxschedd-shim.so")
            environment["XSCHEDD_RUNTIME_DIR"] = str(self.node.dir / "nowhere")
        program = self.node.start("ranked_streams", REQUESTS, KERNELS, MICROS, environment=environment, shim=has_daemon)
        out, err = program.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(program.returncode, 0, err)
        queues = {}
        for record in self.node.dispatches(program.pid):
            queues.setdefault(record["queue"], []).append(record)
        self.assertEqual(len(queues), 2, "each stream has a queue of its own")
        low, high = sorted(queues.values(), key=len, reverse=True)
        self.assertEqual(len(high), REQUESTS * KERNELS)
        count = 0
        for first in range(0, len(high), KERNELS):
            begin, end = high[first]["arrival_ns"], high[first + KERNELS - 1]["end_ns"]
            count += sum(begin < record["start_ns"] < end for record in low)
        return count, int(re.search(r"streams held: (\d+)", out).group(1))

    def check(self, has_daemon):
        def measure():
            (without, unheld), (ordered, held) = self.overtaken(False, has_daemon), self.overtaken(True, has_daemon)
            self.assertEqual(unheld, 0, "no thread waits without ranked streams")
            self.assertGreater(held, 0, "a thread waited")
            print(f"kernels of the background inside requests: {without} without an order, {ordered} with one; held {held} ns")
            return without, ordered

        # Without an order they take turns: about as many background kernels as kernels of requests.
        self.assert_measured(measure, lambda counts: counts[1] < counts[0] / 2,
                             "kernels of the background that ran inside requests: without an order, with one")

    def test_requests_go_before_the_backlog(self):
        self.node.start_daemon()
        self.check(has_daemon=True)

    def test_requests_go_before_the_backlog_without_a_daemon(self):
        self.check(has_daemon=False)


if __name__ == "__main__":
    unittest.main()
