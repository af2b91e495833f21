"""Each kind of program under scheduling: right results, held on request, every launch gated exactly once."""

import unittest

import harness

LAUNCHES = 500
MICROS = 2000


class Programs(harness.NodeTest):
    def check_counted(self, program, *arguments, kernels=1):
        """Runs a program beside an idle, more important client, so that it is tracked; holds and releases it on the way. Each
        of its calls, of that many kernels, reaches the device once and is gated once."""
        node = self.node
        node.start_daemon()
        anchor = node.start_anchor(priority=50)
        process = node.start(program, LAUNCHES, MICROS, *arguments, priority=-10, interactive=True)
        done, counted = self.hold_and_release(process, anchor)
        launches, submissions = node.verdict(process.stdout.readline())
        self.assertEqual(len(node.dispatches(process.pid)), launches, "each launch reaches the device once")
        # It waits for the end of its input, so that the count is the last. Copies may be on either side of the hold.
        since = int(node.device_state(process.pid)["submitted"]) - counted
        calls, copies = (launches - done) // kernels, submissions - launches // kernels
        self.assertGreater(calls, 0)
        self.assertGreaterEqual(since, calls, "a call was not gated")
        self.assertLessEqual(since, calls + copies, "a call was gated twice")
        process.stdin.close()
        self.assertEqual(process.wait(harness.DEADLINE_S), 0)

    def test_default_stream(self):
        self.check_counted("default_stream")

    def test_two_streams(self):
        self.check_counted("two_streams")

    def test_graph(self):
        self.check_counted("graph", kernels=5)

    def test_launch_by_ptr(self):
        self.check_counted("launch_by_ptr")

    def test_left_alone(self):
        node = self.node
        node.start_daemon()
        node.start_anchor(priority=50)
        process = node.start("left_alone", harness.programs / "module_kernel.co", priority=-10, interactive=True)
        self.assertEqual(process.stdout.readline().strip(), "ready")
        node.hold(process.pid)
        node.tell(process, "go")
        node.finish(process)
        self.assertEqual(node.dispatches(process.pid, kernel=None), [], "functions that are not wrapped submit nothing")

    def test_threads(self):
        self.check_counted("threads")

    def test_module_global_dlsym(self):
        self.check_counted("module", "global-dlsym", harness.programs / "module_kernel.co")

    def test_module_local_dlsym(self):
        self.check_counted("module", "local-dlsym", harness.programs / "module_kernel.co")

    def test_module_deep_dlsym(self):
        self.check_counted("module", "deep-dlsym", harness.programs / "module_kernel.co")

    def test_module_local_dlvsym(self):
        self.check_counted("module", "local-dlvsym", harness.programs / "module_kernel.co")

    def test_module_get_proc_address(self):
        self.check_counted("module", "get-proc-address", harness.programs / "module_kernel.co")


if __name__ == "__main__":
    unittest.main()
