"""What `xschedctl doctor --pid` says of real clients."""

import json
import unittest

import harness
from harness import wait_for


class Doctor(harness.NodeTest):
    def findings(self, pid):
        answer = json.loads(self.node.ctl("--json", "doctor", "--pid", pid, check=False).stdout)
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
