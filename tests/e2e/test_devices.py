"""A client's device names are mapped to the right physical device."""

import unittest

import harness
from harness import wait_for


class Devices(harness.NodeTest):
    def start(self, device, priority, **visible):
        process = self.node.start("anchor", device, priority=priority, interactive=True,
                                  environment={"SOFTGPU_DEVICES": "2", **visible})
        self.assertEqual(process.stdout.readline().strip(), "ready")
        return process

    def address(self, process):
        state = wait_for(lambda: self.node.device_state(process.pid), "the client has a device")
        return state["device"]

    def test_a_device_is_the_same_whatever_its_ordinal(self):
        node = self.node
        node.start_daemon()
        node.ctl("policy", "set", "--guard", 0)
        high = self.start(0, 50, HIP_VISIBLE_DEVICES="1")
        both = self.start(1, 0)
        hidden = self.start(0, 0, ROCR_VISIBLE_DEVICES="1")
        elsewhere = self.start(0, 0)
        self.assertEqual({self.address(process) for process in (high, both, hidden)}, {"0000:14:00.0"})
        self.assertEqual(self.address(elsewhere), "0000:05:00.0")

        for process in (both, hidden, elsewhere, high):
            node.tell(process, "start 1000")
        for process in (both, hidden):
            wait_for(lambda: node.device_state(process.pid).get("state") == "held", "held on the high client's device")
        before = len(node.dispatches(elsewhere.pid))
        wait_for(lambda: len(node.dispatches(elsewhere.pid)) > before + 20, "who is on another device goes on")
        self.assertNotEqual(node.device_state(elsewhere.pid)["state"], "held")
        for process in (high, both, hidden, elsewhere):
            node.tell(process, "stop")


if __name__ == "__main__":
    unittest.main()
