"""A daemon that a service manager restarts, with its descriptors kept: programs are held again through the same memory, and
their results are right."""

import pathlib
import re
import signal
import sys
import unittest

import harness
from harness import wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fault"))
from service_manager import ServiceManager  # noqa: E402

LAUNCHES = 2000
MICROS = 5000  # so long that it cannot end in the moments without a lease
RESTARTS = 20


class Restart(harness.NodeTest):
    def setUp(self):
        super().setUp()
        node = self.node
        self.manager = ServiceManager(node.runtime_dir, [harness.daemon_path, "--software-gpu", "--runtime-dir", node.runtime_dir,
                                                         "--log-level", "debug"],
                                      log=node.dir / "daemon.log", restart_s=0.02, watchdog=False)
        self.addCleanup(self.manager.close)
        self.manager.start()

    def kill(self):
        count = self.manager.ready + 1
        self.manager.kill(signal.SIGKILL)
        self.manager.wait_ready(count)

    def memory(self, pid):
        """The inodes of the daemon's memory that the process has mapped."""
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        return sorted(re.findall(r"(\d+)\s+/memfd:xschedd-(board|ledger)", maps))

    def is_back(self, pid, times):
        return len(re.findall(rf"client is back id=\d+ pid={pid} ", self.node.daemon_log())) >= times

    def test_a_held_program_stays_right_across_restarts(self):
        node = self.node
        node.ctl("policy", "set", "--guard", 0)
        high = node.start_anchor(priority=50)
        low = node.start("default_stream", LAUNCHES, MICROS, priority=-10)
        wait_for(lambda: len(node.dispatches(low.pid)) >= 5, "the low client launches")
        node.tell(high, "start 1000")
        # On a busy machine one important client leaves gaps, in which the low one would finish.
        node.hold(low.pid)
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "the low client is held")
        memory = self.memory(low.pid)
        self.assertEqual([name for _, name in memory].count("board"), 1)
        for times in range(1, RESTARTS + 1):
            self.kill()
            self.assertIn(low.pid, node.clients())  # before it can have reconnected, or after
            wait_for(lambda: self.is_back(low.pid, times) and self.is_back(high.pid, times), "both are back")
            wait_for(lambda: node.device_state(low.pid).get("state") == "held" or low.poll() is not None,
                     "the low client is held again")
            self.assertIsNone(low.poll(), "the low client ended although it is held")
        self.assertEqual(self.memory(low.pid), memory)
        held = int(node.device_state(low.pid)["held_ns"])
        self.assertGreater(held, 0)
        node.ctl("release", "--pid", low.pid)
        node.tell(high, "stop")
        node.finish(low)

    def test_settings_last_while_programs_come_and_go(self):
        node = self.node
        anchor = node.start_anchor(priority=0)
        low = node.start("default_stream", LAUNCHES // 4, MICROS, priority=0)
        wait_for(lambda: node.device_state(low.pid), "it is attached")
        node.ctl("set", "--pid", low.pid, "--priority", -5)
        node.hold(low.pid)
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "it is on hold")
        anchor.kill()
        self.kill()
        wait_for(lambda: self.is_back(low.pid, 1), "it is back")
        wait_for(lambda: anchor.pid not in node.clients(), "the dead one is gone")
        self.assertEqual(node.clients()[low.pid]["priority_admin"], -5)
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "it is on hold still")
        self.manager.restart()
        wait_for(lambda: self.is_back(low.pid, 2), "it is back")
        wait_for(lambda: node.device_state(low.pid).get("state") == "held", "it is on hold still")
        node.ctl("release", "--pid", low.pid)
        node.finish(low)


if __name__ == "__main__":
    unittest.main()
