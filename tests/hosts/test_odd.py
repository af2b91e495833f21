"""Hosts with odd habits (programs/odd.cc)."""

import unittest

import harness
import host
from host import hosts, wait_for


class Descriptors(host.HostTest):
    def check_data(self):
        """Nothing but the program itself writes to its files."""
        paths = list(self.node.dir.glob("data.*"))
        self.assertTrue(paths)
        for path in paths:
            self.assertEqual(path.read_bytes(), b"", path.name)

    def test_standard_files_closed(self):
        self.check_scheduled(*self.odd("first=close-stdio"), environment=self.result())

    def test_standard_files_are_data(self):
        self.check_scheduled(*self.odd("first=data-on-stdio"), environment=self.result())
        self.check_data()

    def test_standard_error_is_data_and_the_shim_has_a_message(self):
        self.check_scheduled(*self.odd("before=data-on-stdio"), environment={"XSCHEDD_LOG": "info", **self.result()})
        self.check_data()

    def test_all_descriptors_closed_and_reused_before(self):
        self.check_scheduled(*self.odd("first=close-all-and-reuse"))
        self.check_data()

    def test_all_descriptors_closed_and_reused_after(self):
        node = self.node
        node.start_daemon()
        anchor = node.start_anchor(priority=50)
        process, said = self.start_to_hear(*self.odd("after=close-all-and-reuse"), priority=-10, trace=False)
        self.wait_connected(process, process.pid)
        wait_for(lambda: (self.node.dir / "data.29").exists(), "its descriptors are closed and reused")
        for _ in range(30):
            node.tell(anchor, "work 5 1000")  # gates are moved meanwhile
            self.assertEqual(anchor.stdout.readline().strip(), "done")
        wait_for(lambda: process.pid not in node.clients(), "the session ends")
        wait_for(said.read_text, "the shim says why it does not seek a new one")
        self.stop()
        self.check_end(process)
        self.check_data()
        self.check_said_once(said.read_text(), "closed file descriptors")

    def test_few_descriptors(self):
        err = self.check_scheduled(*self.odd("before=count-descriptors", "after=count-descriptors"))
        before, after = [int(line.split()[1]) for line in err.splitlines() if line.startswith("descriptors")]
        self.assertLessEqual(after - before, 2)


class Memory(host.HostTest):
    def test_small_stack(self):
        self.check_scheduled(*self.odd("after=small-stack"))

    def test_many_threads(self):
        self.check_scheduled(*self.odd("after=many-threads"))

    def test_locked_memory(self):
        self.check_scheduled(*self.odd("before=lock-memory"))


class Signals(host.HostTest):
    def test_a_timers_signals(self):
        self.check_scheduled(*self.odd("first=signals", "end=signals-were-seen"))

    def test_all_signals_blocked(self):
        self.check_scheduled(*self.odd("before=block-all-signals"))


class Places(host.HostTest):
    def test_become_nobody(self):
        self.check_scheduled(*self.odd("after=become-nobody"))

    def test_change_root(self):
        self.check_scheduled(*self.odd("after=change-root"))

    def test_unshare(self):
        self.check_scheduled(*self.odd("after=unshare"))


class Limits(host.HostTest):
    def test_few_descriptors_left(self):
        """For each number of descriptors: right with the shim if it is right without, and either scheduled or reported as
        unscheduled in one line. Both cases occur."""
        node = self.node
        node.start_daemon()

        def outcomes():
            found = set()
            for room in range(0, 16, 3):
                environment = self.environment(HOST_ROOM=room)
                runs = [node.start(hosts / "odd", 9, 1000, "before=few-descriptors-left", shim=shim, trace=False,
                                   environment=environment) for shim in (False, True)]
                (_, without), (out, err) = [run.communicate(timeout=harness.DEADLINE_S) for run in runs]
                self.assertEqual(runs[0].returncode, runs[1].returncode, f"room for {room}: {without}\n{err}")
                if runs[0].returncode == 0:
                    self.assertIn("right: 9", out)
                    found.add("unscheduled" if err else "scheduled")
                    if err:
                        self.check_said_once(err, "open files")
            return found

        # A busy machine may end a program before its shim has tried to connect.
        self.assert_measured(outcomes, lambda found: found == {"unscheduled", "scheduled"}, "both occur")

    def test_little_address_space(self):
        """256 MiB beyond what HIP has taken before its first work."""
        self.check_scheduled(*self.odd("before=little-address-space"), environment={"HOST_ROOM": 256 << 20})

    def test_no_descriptor_left_after(self):
        self.check_scheduled(*self.odd("after=few-descriptors-left"))


class Processes(host.HostTest):
    def test_fork_and_vfork_after(self):
        self.check_scheduled(*self.odd("after=fork-and-wait"))

    def test_idle_child(self):
        self.check_scheduled(*self.odd("after=fork-idle-child"))


if __name__ == "__main__":
    unittest.main()
