"""Each kind of program under scheduling: right results, held when told, every launch gated exactly once."""

import unittest

import harness

LAUNCHES = 200
MICROS = 2000


class Programs(harness.NodeTest):
    def check(self, program, *arguments):
        """Runs a program beside an idle, more important client, so that it is tracked; holds and releases it on the way."""
        node = self.node
        node.start_daemon()
        anchor = node.start_anchor(priority=50)
        process = node.start(program, LAUNCHES, MICROS, *arguments, priority=-10)
        self.hold_and_release(process, anchor)
        submitted = self.last_submitted(process)
        launches, submissions = node.finish(process)
        self.assertEqual(len(node.dispatches(process.pid)), launches, "each launch reaches the device once")
        return submitted, submissions

    def last_submitted(self, process):
        """The daemon's last view of how many calls it let through, read until the program ends."""
        submitted = 0
        while process.poll() is None:
            submitted = max(submitted, int(self.node.device_state(process.pid).get("submitted", 0)))
        return submitted

    def check_counted(self, program, *arguments):
        submitted, submissions = self.check(program, *arguments)
        # The daemon's last look may be some calls short of the end, never over it: over means gated twice.
        self.assertLessEqual(submitted, submissions)
        self.assertGreater(submitted, submissions // 2)

    def test_default_stream(self):
        self.check_counted("default_stream")

    def test_two_streams(self):
        self.check_counted("two_streams")

    def test_graph(self):
        self.check_counted("graph")

    def test_launch_by_ptr(self):
        self.check_counted("launch_by_ptr")

    def test_left_alone(self):
        node = self.node
        node.start_daemon()
        node.start_anchor(priority=50)
        process = node.start("left_alone", harness.programs / "module_kernel.co", priority=-10, interactive=True)
        self.assertEqual(process.stdout.readline().strip(), "ready")
        node.ctl("hold", "--pid", process.pid)
        node.tell(process, "go")
        node.finish(process)
        self.assertEqual(node.dispatches(process.pid, kernel=None), [], "what is left alone submits nothing")

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
