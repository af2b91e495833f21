"""[amd] queue_priority: the priority of a process's hardware queues follows its priority in xschedd."""

import json
import signal
import unittest

import harness
from harness import wait_for

ON = '\n[amd]\nqueue_priority = "on"\n'


class QueuePriority(harness.NodeTest):
    def last(self, client):
        """The queue priority of a kernel that is launched now."""
        self.node.tell(client, "work 1 10")
        self.assertEqual(client.stdout.readline().strip(), "done")
        return self.node.dispatches(client.pid)[-1]["priority"]

    def becomes(self, client, priority):
        wait_for(lambda: self.last(client) == priority, f"its kernels' queue is {priority}")

    def said(self, client):
        return self.node.clients()[client.pid]["queue_priority"]

    def test_follows_the_clients_priority(self):
        node = self.node
        node.start_daemon(config=ON)
        client = node.start_anchor(priority=10)
        self.becomes(client, "high")
        wait_for(lambda: self.said(client) == "queue priority high on 1 hardware queue", "it says so")
        node.ctl("set", client.pid, "--priority", -5)
        self.becomes(client, "low")
        wait_for(lambda: self.said(client) == "queue priority low on 1 hardware queue", "it says so")
        explained = node.ctl("explain", client.pid)
        self.assertIn("queue priority low on 1 hardware queue\n", explained.stdout)
        self.assertIn("queue priority low", json.loads(node.ctl("--json", "explain", client.pid).stdout)["queue_priority"])
        node.ctl("set", client.pid, "--priority", 0)
        self.becomes(client, "normal")
        self.assertEqual(self.said(client), "")
        node.ctl("set", client.pid, "--priority", 1)
        self.becomes(client, "high")
        node.ctl("policy", "set", "--queue-priority", "off")
        self.becomes(client, "normal")
        node.ctl("policy", "set", "--queue-priority", "on")
        self.becomes(client, "high")
        node.configure()
        node.ctl("reload")
        self.becomes(client, "normal")

    def test_is_the_programs_by_default(self):
        self.node.start_daemon()
        client = self.node.start_anchor(priority=10)
        self.assertEqual({self.last(client) for _ in range(3)}, {"normal"})
        self.assertEqual(self.said(client), "")

    def test_of_streams_that_ask_for_their_own(self):
        """A program's own stream priorities are in force where the daemon wants none, and only there."""
        found = {}
        for config, priority in (("", 5), (ON, 0), (ON, -5)):
            self.node.start_daemon(config=config)
            program = self.node.start("ranked_streams", 12, 6, 1000, priority=priority)
            _, err = program.communicate(timeout=harness.DEADLINE_S)
            self.assertEqual(program.returncode, 0, err)
            by_queue = {}
            for record in self.node.dispatches(program.pid):
                by_queue.setdefault(record["queue"], []).append(record["priority"])
            # A process's first launches are before its session.
            found[config, priority] = sorted(priorities[-1] for priorities in by_queue.values())
            self.node.stop_daemon()
        self.assertEqual(found["", 5], found[ON, 0])
        self.assertEqual(len(set(found["", 5])), 2, "the program's streams differ")
        self.assertEqual(found[ON, -5], ["low", "low"])

    def test_ends_with_the_daemon(self):
        self.node.start_daemon(config=ON)
        client = self.node.start_anchor(priority=10)
        self.becomes(client, "high")
        self.node.stop_daemon(signal.SIGKILL)
        self.becomes(client, "normal")
        self.node.start_daemon(config=ON)
        self.becomes(client, "high")

    def test_that_the_runtime_refuses(self):
        self.node.start_daemon(config=ON)
        client = self.node.start_anchor(priority=10, environment={"SOFTGPU_REFUSE_QUEUE_PRIORITIES": "1"})
        self.assertEqual(self.last(client), "normal")
        wait_for(lambda: self.said(client) == "queue priority high on 0 of 1 hardware queues: the runtime refuses it on the others",
                 "it says so")
        self.node.ctl("set", client.pid, "--priority", -5)
        wait_for(lambda: "priority low on 0 of 1" in self.said(client), "it says so")
        self.assertEqual(self.last(client), "normal")
        # The daemon's log has a thread of its own, and may be behind.
        wait_for(lambda: "the runtime refuses it" in self.node.daemon_log(), "the log says so")
        self.assertEqual(self.node.daemon_log().count("the runtime refuses it"), 1, "one line")


if __name__ == "__main__":
    unittest.main()
