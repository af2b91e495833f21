"""Threads of a client that end: cancelled while they wait in the shim, or many, one after the other."""

import os
import pathlib
import re
import signal
import unittest

import harness
from harness import wait_for


class Threads(harness.NodeTest):
    def start(self, *arguments, **options):
        """A client whose threads end, beside an idle, more important one."""
        node = self.node
        node.start_daemon()
        node.start_anchor(priority=50, environment=options.get("environment"))
        program = node.start("ending", *arguments, priority=-10, interactive=True, **options)
        self.assertEqual(program.stdout.readline().strip(), "ready", "the program started")
        return program

    def ask(self, program, line):
        self.node.tell(program, line)
        return program.stdout.readline().strip()

    def state(self, program):
        return self.node.device_state(program.pid).get("state")

    def end(self, program):
        """Its threads leave nothing behind: it is idle, continues, and every result is right."""
        self.assertEqual(self.ask(program, "wait"), "done")
        wait_for(lambda: self.state(program) == "idle", "it is idle")
        self.assertEqual(self.ask(program, "short 1"), "done")
        program.stdin.close()
        program.stdin = None
        launches, _ = self.node.finish(program)
        self.assertEqual(len(self.node.dispatches(program.pid)), launches)

    def cancelled_while_held(self, kind):
        node = self.node
        program = self.start()
        node.hold(program.pid)
        self.assertEqual(self.ask(program, f"start {kind} 1 100"), "started")
        wait_for(lambda: self.state(program) == "held", "the thread waits at the gate")
        self.assertEqual(self.ask(program, "cancel"), "cancelled")
        # It still waits: the launch is not lost, as without a hold.
        self.assertEqual(self.state(program), "held")
        node.ctl("release", "--pid", program.pid)
        self.assertEqual(self.ask(program, "join"), "ended 1")
        self.end(program)

    def test_cancelled_while_held(self):
        self.cancelled_while_held("deferred")

    def test_cancelled_at_any_moment_while_held(self):
        self.cancelled_while_held("asynchronous")

    def test_cancelled_while_it_waits_for_the_window(self):
        program = self.start()
        # Far more than fits the window, so that it waits for that most of the time.
        self.assertEqual(self.ask(program, "start deferred 200 3000"), "started")
        wait_for(lambda: len(self.node.dispatches(program.pid)) > 20, "the thread launches")
        self.assertLess(len(self.node.dispatches(program.pid)), 150, "most of its launches are still to come")
        self.assertEqual(self.ask(program, "cancel"), "cancelled")
        self.assertEqual(self.ask(program, "join"), "ended 200")
        self.end(program)

    def test_short_threads_leave_nothing_behind(self):
        """Threads with their own default streams: each is forgotten however it ends."""
        program = self.start()

        def resident():
            status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
            return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1))

        self.assertEqual(self.ask(program, "short 300"), "done")
        before = resident()
        self.assertEqual(self.ask(program, "short 700"), "done")
        print(f"700 threads: {resident() - before} kB more")
        self.end(program)

    def threads_of(self, pid):
        """The library's threads: their names, scheduling class (0: SCHED_OTHER) and processors."""
        found = {}
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            name = (thread / "comm").read_text().strip()
            if not name.startswith(("xschedd-", "grpc", "event_engine", "nexting_thread", "default-executo")):
                continue
            policy = int((thread / "stat").read_text().rpartition(") ")[2].split()[38])
            processors = re.search(r"Cpus_allowed_list:\s+(\S+)", (thread / "status").read_text()).group(1)
            found[name] = (policy, processors)
        return found

    def test_the_librarys_threads_are_not_bound_with_the_program(self):
        program = self.start("bound")
        whole = re.search(r"Cpus_allowed_list:\s+(\S+)", pathlib.Path("/proc/self/status").read_text()).group(1)
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor only")
        found = self.threads_of(program.pid)
        print(found)
        self.assertIn("xschedd-agent", found)
        self.assertEqual(set(found.values()), {(0, whole)})
        self.end(program)

    def test_no_runtime_is_called_at_exit(self):
        """After the first exit handler a new device's name is not queried, because the runtime is about to be destroyed."""
        program = self.start("leaving", environment={"SOFTGPU_DEVICES": "2"})
        wait_for(lambda: self.node.clients().get(program.pid, {}).get("devices"), "its device is known")
        program.stdin.close()
        lines = [program.stdout.readline().strip() for _ in range(2)]
        self.assertIn("leaving", lines, lines)
        for _ in range(50):
            devices = self.node.clients()[program.pid]["devices"]
            self.assertEqual(len(devices), 1, devices)
        program.send_signal(signal.SIGUSR1)
        self.assertEqual(program.wait(harness.DEADLINE_S), 0, program.stderr.read())

    def test_memory_does_not_grow_over_many_daemons(self):
        """Each daemon gives new memory; a client has at most that of two mapped."""
        program = self.start()
        node = self.node

        def memory():
            maps = pathlib.Path(f"/proc/{program.pid}/maps").read_text()
            return len(re.findall(r"/memfd:xschedd-board", maps)), len(re.findall(r"/memfd:xschedd-ledger", maps))

        for _ in range(8):
            node.stop_daemon(signal.SIGKILL)
            node.start_daemon()
            wait_for(lambda: node.device_state(program.pid), "it is back")
            self.assertEqual(self.ask(program, "short 3"), "done")
        print(f"boards, ledgers: {memory()}")
        self.assertLessEqual(max(memory()), 2)
        self.end(program)


if __name__ == "__main__":
    unittest.main()
