"""The findings of `xschedctl doctor PID` about real clients."""

import json
import unittest

import harness
from harness import wait_for


class Doctor(harness.NodeTest):
    def findings(self, pid=None):
        process = () if pid is None else ("--pid", pid)
        answer = json.loads(self.node.ctl("--json", "doctor", *process, check=False).stdout)
        return {one["check"]: (one["level"], one["what"] + "; " + one["fix"]) for one in answer["findings"]}

    def start(self, **environment):
        process = self.node.start("anchor", interactive=True, environment=environment)
        self.assertEqual(process.stdout.readline().strip(), "ready")
        return process

    def test_a_scheduled_process(self):
        self.node.start_daemon()
        anchor = self.start()
        wait_for(lambda: anchor.pid in self.node.clients(), "it is connected")
        found = self.findings(anchor.pid)
        self.assertEqual(found["process"][0], "ok", found["process"])
        self.assertIn("has the shim and its private library", found["process"][1])
        self.assertEqual(found["session"][0], "ok", found["session"])
        self.assertIn(f"pid {anchor.pid} uses the software GPU", found["device"][1])

    def test_a_software_gpu_in_use_counts_as_a_gpu(self):
        self.node.start_daemon()
        anchor = self.start()
        wait_for(lambda: self.node.device_state(anchor.pid), "it is attached")
        self.assertNotIn("no GPU: neither", self.findings()["device"][1])

    def test_time_slices_on_a_vendor_without_them(self):
        """Requested on AMD, which has none: doctor reports it, and everything else works as without them."""
        node = self.node
        node.start_daemon(config="[policy]\nmax_concurrent = 1\n")
        node.ctl("policy", "set", "--guard", 0, "--tolerance", 0)  # both let the lower one run for a while, without a slice
        high = node.start_anchor(priority=50, environment={"XSCHEDD_LOG": "info"})
        low = node.start_anchor(priority=-10, environment={"XSCHEDD_LOG": "info"})
        node.tell(high, "start 1000")
        wait_for(lambda: node.device_state(high.pid).get("state") == "running", "the important one is running")
        node.tell(low, "start 1000")
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "the lower one is held")
        said = "no time slices here: this vendor has none that a process may set"

        def slices(process):
            device = node.device_state(process.pid)
            return device["slice"], device["slice_wanted_us"], device["slice_us"]
        for process, wanted_us in ((high, 20_000), (low, 200)):
            wait_for(lambda p=process, us=wanted_us: slices(p) == (said, us, 0), f"{wanted_us} us are wanted, and it says that there are none")
            level, what = self.findings(process.pid)["time slices"]
            self.assertEqual(level, "ok")
            self.assertIn(said, what)
            self.assertNotIn("time slice", node.ctl("explain", process.pid).stdout)
        self.assertIn("(2 times)", self.findings()["time slices"][1])
        # With AMD's default limit no time slices are requested.
        node.ctl("policy", "set", "--max-concurrent", "auto")
        wait_for(lambda: slices(low)[0] == "", "no time slices are requested")
        node.ctl("policy", "set", "--max-concurrent", "1", "--time-slices", "off")
        wait_for(lambda: slices(low)[0] == "", "no time slices are requested")
        self.assertNotIn("time slices", self.findings(low.pid))
        for process in (high, low):
            node.tell(process, "stop")
            process.stdin.close()
            process.wait(timeout=harness.DEADLINE_S)
            self.assertNotIn("time slice", process.stderr.read())

    def test_processes_that_are_not_scheduled(self):
        self.node.start_daemon()
        disabled = self.start(XSCHEDD_DISABLE="1")
        self.assertIn("XSCHEDD_DISABLE=1; start it without", self.findings(disabled.pid)["process"][1])
        lacking = self.start(XSCHEDD_CLIENT_LIB="/nonexistent/libxschedd-client.so")
        found = self.findings(lacking.pid)
        self.assertEqual(found["process"][0], "error")
        self.assertIn("the private library does not exist", found["process"][1])
        self.assertEqual(self.node.ctl("doctor", "--pid", lacking.pid, check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main()
