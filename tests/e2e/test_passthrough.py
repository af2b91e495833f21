"""Passthrough: calls that the configuration names are never held, all others are; passed calls still count as GPU use.

An administrator holds the client under test (programs/passer.hip), so that every gated call waits.
"""

import json
import threading
import unittest

import harness
from harness import wait_for

FIRST = harness.programs / "libpasser_a.so"
SECOND = harness.programs / "libpasser_b.so"


class Passer:
    """A client that submits as commanded, and whose answers are read as they come."""

    def __init__(self, node, passthrough=(), environment=None):
        self.node = node
        self.process = node.start("passer", harness.programs / "passer_module.co", priority=0, interactive=True,
                                  options=[word for entry in passthrough for word in ("--passthrough", entry)],
                                  environment=environment)
        self.pid = self.process.pid
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.wait("ready")

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def count(self, word):
        return sum(line == word or line.startswith(word + " ") for line in list(self.lines))

    def wait(self, word, count=1):
        def has_come():
            if self.count(word) >= count:
                return True
            if self.process.poll() is not None:
                raise AssertionError(f"passer ended: {self.process.stderr.read()}")
            return False
        wait_for(has_come, f"passer says {word!r} ({count}); it said {self.lines}")
        return [line for line in self.lines if line.startswith(word)][count - 1].split()[-1]

    def tell(self, line):
        self.node.tell(self.process, line)

    def at_once(self, line):
        """A command that submits nothing; returns the last word of its answer."""
        answer = "done " + line.split()[0]
        before = self.count(answer)
        self.tell(line)
        return self.wait(answer, before + 1)

    def passes(self, command, kernel=None):
        """Whether a submission comes through while the client is on hold."""
        before = self.count("done " + command)
        seen = len(self.node.dispatches(self.pid, kernel)) if kernel else 0
        self.tell(command)
        self.wait("done " + command, before + 1)
        if kernel:
            wait_for(lambda: len(self.node.dispatches(self.pid, kernel)) == seen + 1, f"{kernel} is on the device once")

    def is_held(self, command):
        """Tells it to submit, and waits until the thread waits at the gate. Held: the call has not returned after several checks."""
        before = self.count("done " + command)
        self.tell(command)
        wait_for(lambda: self.node.device_state(self.pid).get("state") == "held", f"{command} is held")
        for _ in range(10):
            self.node.clients()
        return self.count("done " + command) == before


class PassthroughTest(harness.NodeTest):
    def hold(self, *passthrough, config="", **environment):
        """A client of this node on hold, with its passthrough; an idle, more important one makes it tracked."""
        node = self.node
        node.start_daemon(config=config)
        self.anchor = node.start_anchor(priority=50)
        passer = Passer(node, passthrough, environment)
        wait_for(lambda: node.device_state(passer.pid), "it is attached")
        node.hold(passer.pid)
        return passer

    def reload(self, config):
        self.node.configure(config)
        self.node.ctl("reload")

    def end(self, passer, *held):
        """Held submissions pass when the client is released, and the program ends without error."""
        self.node.ctl("release", "--pid", passer.pid)
        for command in held:
            passer.wait("done " + command)
        passer.tell("quit")
        self.assertEqual(passer.process.wait(harness.DEADLINE_S), 0, passer.process.stderr.read())

    def passed(self, pid):
        return int(self.node.device_state(pid).get("passthrough", 0))


class Passthrough(PassthroughTest):
    def test_a_library_passes_and_another_at_its_address_does_not(self):
        passer = self.hold("libpasser_a.so")
        self.assertTrue(passer.is_held("own"))
        place = passer.at_once(f"open {FIRST}")
        passer.passes("call", "passed_kernel")
        passer.passes("call", "passed_kernel")
        self.assertEqual(self.passed(passer.pid), 2)
        self.assertEqual(passer.at_once("close"), place)
        for _ in range(20):
            if passer.at_once(f"open {SECOND}") == place:
                break
            passer.at_once("close")
        else:
            self.fail("the second library was never loaded at the address of the first")
        self.assertTrue(passer.is_held("call"))
        self.assertEqual(self.passed(passer.pid), 2)
        self.assertEqual(self.node.dispatches(passer.pid, "other_kernel"), [])
        self.node.ctl("release", "--pid", passer.pid)
        passer.wait("done call", 3)
        self.end(passer, "own")
        self.assertEqual(len(self.node.dispatches(passer.pid, "other_kernel")), 1)

    def test_an_entry_point_passes(self):
        passer = self.hold(XSCHEDD_PASSTHROUGH="hipMemcpyAsync, hipGraphLaunch")
        passer.passes("copy")
        passer.passes("graph", "own_kernel")
        self.assertTrue(passer.is_held("own"))
        self.assertEqual(self.passed(passer.pid), 2)
        self.end(passer, "own")

    def test_kernels_pass_by_name(self):
        # By the mangled and by the demangled name; an entry of a list cannot contain a comma.
        passer = self.hold("kernel:*shaped<int? 4>*,kernel:module_kernel_a")
        passer.passes("template", "_Z6shapedIiLi4EEvPT_")
        self.assertTrue(passer.is_held("own"))
        passer.at_once("get module_kernel_a")
        passer.passes("module", "module_kernel_a")
        self.end(passer, "own")

    def test_a_reused_handle_of_a_module_function_does_not_pass(self):
        passer = self.hold("kernel:_Z6shaped*", "kernel:module_kernel_a")
        handles = set()
        for _ in range(50):
            handles.add(passer.at_once("get module_kernel_a"))
            passer.passes("module", "module_kernel_a")
            if passer.at_once("get module_kernel_b") in handles:
                break
        else:
            if harness.hip_version() == "6.4":
                self.skipTest("HIP 6.4 reused no handle in 50 times")
            self.fail(f"no handle was reused: {passer.lines}")
        self.assertTrue(passer.is_held("module"))
        self.assertEqual(self.node.dispatches(passer.pid, "module_kernel_b"), [])
        self.end(passer)

    def test_captures_and_graphs(self):
        passer = self.hold("kernel:own_kernel", "kernel:_Z6shaped*")
        # Looking up names does not break another thread's capture, whose mode restricts this one.
        passer.at_once("begin")
        passer.passes("template", "_Z6shapedIiLi4EEvPT_")
        self.assertEqual(passer.at_once("end"), "0")
        passer.passes("own")
        # A graph is one piece of work without a name.
        self.assertTrue(passer.is_held("graph"))
        self.end(passer, "graph")

    def test_new_configuration_releases_waiting_threads(self):
        node = self.node
        passer = self.hold(config='passthrough = ["hipMemcpyAsync"]\n')
        passer.passes("copy")
        self.assertTrue(passer.is_held("own"))
        self.reload('[[rule]]\nexe = "passer"\npassthrough = ["kernel:own_kernel"]\n')
        passer.wait("done own")
        self.assertTrue(passer.is_held("copy"))
        wrong = node.ctl("reload", check=False)
        self.assertEqual(wrong.returncode, 0)
        self.node.config.write_text('passthrough = [\n  "hipMemcpyAsnc"]\n')
        wrong = node.ctl("reload", check=False)
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn('config.toml:2:3: passthrough: "hipMemcpyAsnc" is no entry point that is gated; did you mean hipMemcpyAsync?',
                      wrong.stderr)
        self.end(passer)

    def test_passed_calls_are_counted_and_make_the_client_busy(self):
        node = self.node
        passer = self.hold("kernel:softgpu_spin_us")
        before = int(node.device_state(passer.pid)["gpu_time_ns"])

        def seen():
            passer.tell("spin")
            return node.device_state(passer.pid).get("state") == "passing"
        wait_for(seen, "ps shows that it works though its gate is shut")
        wait_for(lambda: int(node.device_state(passer.pid)["gpu_time_ns"]) >= before + 20_000_000, "its GPU time is measured")
        count = wait_for(lambda: self.passed(passer.pid), "it is counted")
        wait_for(lambda: node.clients()[passer.pid]["passed"], "by which rule")
        self.assertEqual([entry["rule"] for entry in node.clients()[passer.pid]["passed"]], ["kernel:softgpu_spin_us"])
        self.assertIn("PASSED", node.ctl("ps").stdout)
        explained = json.loads(node.ctl("--json", "explain", passer.pid).stdout)["passed"]
        self.assertGreaterEqual(int(explained[0]["count"]), 1)
        self.assertLessEqual(int(explained[0]["count"]), self.passed(passer.pid))
        self.assertGreaterEqual(self.passed(passer.pid), count)
        self.end(passer)

    def test_a_wrong_entry_is_reported_once(self):
        passer = self.hold("hipMemcpyAsync", XSCHEDD_PASSTHROUGH="")
        self.end(passer)
        wrong = Passer(self.node, (), {"XSCHEDD_PASSTHROUGH": "librccl,hipMemcpyAsync"})
        self.reload('passthrough = ["hipGraphLaunch"]\n')
        wait_for(lambda: self.node.device_state(wrong.pid), "it is attached")
        self.node.hold(wrong.pid)
        wrong.passes("copy")
        wrong.passes("graph")
        self.node.ctl("release", "--pid", wrong.pid)
        wrong.tell("quit")
        wrong.process.wait(harness.DEADLINE_S)
        self.assertEqual(wrong.process.stderr.read().count("write librccl.so; it is ignored"), 1)


if __name__ == "__main__":
    unittest.main()
