"""What `xschedctl doctor --pid` says of real clients."""

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
        self.assertIn(f"pid {anchor.pid} works on the software GPU", found["device"][1])

    def test_a_software_gpu_in_use_is_no_missing_gpu(self):
        self.node.start_daemon()
        anchor = self.start()
        wait_for(lambda: self.node.device_state(anchor.pid), "it is attached")
        self.assertNotIn("no GPU: neither", self.findings()["device"][1])

    def test_processes_that_are_not_scheduled(self):
        self.node.start_daemon()
        disabled = self.start(XSCHEDD_DISABLE="1")
        self.assertIn("XSCHEDD_DISABLE=1; start it without", self.findings(disabled.pid)["process"][1])
        lacking = self.start(XSCHEDD_CLIENT_LIB="/nonexistent/libxschedd-client.so")
        found = self.findings(lacking.pid)
        self.assertEqual(found["process"][0], "error")
        self.assertIn("the private library is not there", found["process"][1])
        self.assertEqual(self.node.ctl("doctor", "--pid", lacking.pid, check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main()
