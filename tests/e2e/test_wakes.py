"""How often the library's own thread wakes in a client that launches continuously."""

import time
import unittest

import harness
from harness import wait_for

from benchlib import agent  # found by harness

WHOLE = 8000  # workgroups: all of the device


class Wakes(harness.NodeTest):
    def wakes_a_launch(self, what, *arguments, priority, neighbour):
        """Wake-ups of the agent for each launch of a client that launches steadily beside an idle neighbour."""
        node = self.node
        beside = node.start_anchor(priority=neighbour)
        program = node.start("streams", *arguments, priority=priority, interactive=True, trace=False)
        self.assertEqual(program.stdout.readline().strip(), "ready")
        node.tell(program, "go")

        def submitted():
            return int(node.device_state(program.pid).get("submitted", 0))

        # The agent polls more often after the first launches.
        wait_for(lambda: submitted() > 2000, "it launches")
        begun, wakes, launches = time.monotonic(), agent.wakes(program.pid), submitted()
        wait_for(lambda: submitted() > launches + 5000, "it launches")
        wakes, launches, took = agent.wakes(program.pid) - wakes, submitted() - launches, time.monotonic() - begun
        program.kill()
        beside.kill()
        print(f"{what}: the agent woke {wakes / took:.0f} times a second beside {launches / took:.0f} launches")
        return wakes / launches

    def test_the_agent_sleeps_beside_steady_launching(self):
        self.node.start_daemon()
        cases = {"several ahead, less important": ((1, 200, WHOLE, 1000, 4), 0, 50),
                 "several ahead, more important": ((1, 200, WHOLE, 1000, 4), 50, 0),
                 "one at a time, less important": ((1, 100, 2, 1000, 1), 0, 50),
                 "nothing is waited for, more important": ((1, 50, 2, 1000, 0), 50, 0)}
        for what, (arguments, priority, neighbour) in cases.items():
            def measure():
                return self.wakes_a_launch(what, *arguments, priority=priority, neighbour=neighbour)

            self.assert_measured(measure, lambda value: value < 0.6, f"{what}: wake-ups a launch")


if __name__ == "__main__":
    unittest.main()
