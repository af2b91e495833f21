"""Programs below one that gains nothing by holding them: they are not held, and their launches are not tracked."""

import unittest

import harness
from harness import wait_for

# Streams, µs of a kernel, its workgroups, seconds, launches ahead. Several of these fit on the device side by side.
SMALL = (1, 1000, 2, 10**9, 1)


class Aside(harness.NodeTest):
    def start_small(self, priority):
        program = self.node.start("streams", *SMALL, priority=priority, interactive=True, trace=False)
        self.assertEqual(program.stdout.readline().strip(), "ready")
        self.node.tell(program, "go")
        return program

    def test_nobody_pays_for_being_tracked_who_is_held_for_nobody(self):
        node = self.node
        node.start_daemon()
        # The software GPU and its programs share the processor's cores, so they do slow each other down.
        node.ctl("policy", "set", "--tolerance", 100)
        high, low = self.start_small(50), self.start_small(0)

        def state(program):
            return node.device_state(program.pid).get("state")

        wait_for(lambda: state(low) == "untracked", "it is known that nobody gains by holding it")
        self.assertEqual(node.clients()[high.pid]["benefit"]["mode"], "free")
        self.assertNotEqual(state(high), "untracked", "it tells when it begins to do other work")
        wait_for(lambda: "it ran untracked" in node.ctl("explain", low.pid, "--duration", "1s").stdout, "explain says so")

        node.ctl("policy", "set", "--step-aside", "off")
        wait_for(lambda: state(low) == "running", "it is tracked again")
        node.ctl("policy", "set", "--step-aside", "auto")
        wait_for(lambda: state(low) == "untracked", "it is left alone again")

        # Whoever comes is tracked until it is known what it does to the others.
        other = self.start_small(0)
        wait_for(lambda: state(other) == "running", "the new one is tracked")
        wait_for(lambda: state(low) == state(other) == "untracked", "both are left alone")

        node.ctl("set", high.pid, "--latency", "strict")
        wait_for(lambda: state(low) == "held" or state(other) == "held", "they are held by one that is strict")

    def test_nobody_is_held_for_one_whose_ends_no_call_shows(self):
        node = self.node
        node.start_daemon()
        # While its ends were known late where nobody was held for it, it seemed to be a third slower beside others.
        def start():
            return node.start(harness.BUILD / "tools/bench/request_tenant", "--callback", "--seconds", 0, "--rate", 200,
                              "--kernels", 4, "--kernel-us", 250, "--device-part", 0.02, priority=50, trace=False)

        high = start()
        self.start_small(0)

        def found():
            benefit = node.clients().get(high.pid, {}).get("benefit")
            return benefit and benefit["is_settled"] and not benefit["is_searching"] and benefit["mode"] == "free"

        wait_for(found, "it lets others run beside it", deadline_s=120)
        again = start()
        wait_for(lambda: f"pid {again.pid}  begins with what was learnt of pid {high.pid}," in node.ctl("events").stdout,
                 "another process of the program begins with that")


if __name__ == "__main__":
    unittest.main()
