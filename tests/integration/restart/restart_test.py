#!/usr/bin/env python3
"""What a restart of the daemon must not lose, under a service manager that keeps its descriptors: tenants' memory,
administrators' settings, shut gates. No test depends on how long something takes; they wait for conditions.

Usage: restart_test.py, with XSCHEDD_BINARY, XSCHEDCTL and XSCHEDD_TENANT in the environment (meson test restart).
"""

import ctypes
import fcntl
import os
import pathlib
import signal
import struct
import subprocess
import time
import unittest

from restart_world import DEADLINE_S, Restart, Tenant, wait_for
from service_manager import unit_setting

CAPACITY = 20 << 20  # StateFile::kCapacity
F_ADD_SEALS, F_SEAL_WRITE = 1033, 8
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207


class Kept(Restart):
    def test_held_client_is_held_again_by_the_same_memory(self):
        low, high = self.held_pair()
        memory = low.memory(), high.memory()
        self.assertEqual(low.ask("write"), "refused")
        pid = self.manager.kill(signal.SIGKILL)
        self.manager.wait_down(pid)
        # Neither has connected again: this is the old memory, and the new daemon writes it.
        low.ask(f"bound {time.monotonic_ns() + 100_000_000}")
        self.assertFalse(high.look()["held"])
        self.assertEqual({client["pid"] for client in self.clients()}, {str(low.pid), str(high.pid)})
        # The daemon still reads levels through it.
        high.ask("idle")
        wait_for(lambda: not low.look()["held"], "the gate opens")
        high.ask("busy")
        wait_for(lambda: low.look()["bound"], "the gate shuts")
        ids = [(low.look()["id"]), (high.look()["id"])]
        for tenant in low, high:
            self.assertEqual(tenant.ask("connect"), "ok")
        self.assertEqual((low.memory(), high.memory()), memory)
        self.assertEqual([(low.look()["id"]), (high.look()["id"])], ids)
        wait_for(lambda: low.look()["bound"], "still held")
        self.assertEqual(len(self.clients()), 2)
        self.assertEqual(low.ask("write"), "refused")
        # And again, from the memory that has been handed back.
        self.kill()
        low.ask(f"bound {time.monotonic_ns() + 100_000_000}")
        self.assertEqual(low.ask("connect"), "ok")
        self.assertEqual(low.memory(), memory[0])

    def test_administrators_settings_are_in_force_before_clients_return(self):
        low, high = self.held_pair()
        self.ctl("set", "--pid", high.pid, "--priority", -20, "--weight", 300)
        self.ctl("hold", "--pid", high.pid)
        self.ctl("policy", "set", "--linger", "777us", "--turn", "33ms")
        self.kill()
        # Without waiting for the state: a setting is saved before its call returns.
        seen, policy = self.client(high), self.policy()
        self.assertEqual((policy["linger_us"], policy["turn_ms"]), (777, 33))
        self.assertEqual((seen["priority_admin"], seen["priority_effective"], seen["weight"], seen["hold"]),
                         (-20, -20, 300, True))
        high.ask(f"bound {time.monotonic_ns() + 100_000_000}")
        wait_for(lambda: not low.look()["held"], "the other one runs")
        self.assertEqual(high.ask("connect"), "ok")
        seen = self.client(high)
        self.assertEqual((seen["priority_admin"], seen["hold"], seen["priority_hint"]), (-20, True, 50))
        self.ctl("release", "--pid", high.pid)
        wait_for(lambda: not high.look()["held"], "released")

    def test_upgrade_keeps_all(self):
        low, high = self.held_pair()
        self.ctl("hold", "--pid", high.pid)
        self.ctl("policy", "set", "share")
        memory = high.memory()
        self.manager.restart()
        self.assertEqual(self.policy()["name"], "share")
        high.ask(f"bound {time.monotonic_ns() + 100_000_000}")
        self.assertEqual(high.ask("connect"), "ok")
        self.assertEqual(high.memory(), memory)
        self.assertTrue(self.client(high)["hold"])
        # After a stop, clients that have ended are not remembered.
        self.manager.stop()
        self.manager.start()
        self.assertEqual(self.policy()["name"], "priority")
        self.assertEqual(low.ask("connect"), "ok")

    def test_configuration_that_changed_since_overrides_a_live_policy(self):
        self.ctl("policy", "set", "--linger", "777us")
        self.kill()
        self.assertEqual(self.policy()["linger_us"], 777)
        self.ctl("reload")
        self.assertEqual(self.policy()["linger_us"], 200)
        self.kill()
        self.assertEqual(self.policy()["linger_us"], 200)
        self.ctl("policy", "set", "--linger", "888us")
        self.config.write_text("[policy]\nguard_ms_per_s = 0\nlinger_us = 555\n")
        self.kill()
        self.assertEqual(self.policy()["linger_us"], 555)

    def test_persisted_settings_leave_other_live_settings(self):
        self.ctl("policy", "set", "--linger", "777us", "--turn", "33ms")
        self.ctl("policy", "set", "share", "--turn", "44ms", "--persist")
        self.kill()
        policy = self.policy()
        self.assertEqual((policy["linger_us"], policy["turn_ms"], policy["name"]), (777, 44, "share"))
        kept = self.config.parent / "conf.d/50-policy.toml"
        kept.write_text(kept.read_text().replace("44", "55"))
        self.kill()
        policy = self.policy()
        self.assertEqual((policy["linger_us"], policy["turn_ms"], policy["name"]), (777, 55, "share"))
        self.ctl("reload")
        self.assertEqual((self.policy()["linger_us"], self.policy()["turn_ms"]), (200, 55))

    def test_client_that_died_meanwhile_is_gone(self):
        low, high = self.held_pair()
        # The manager does not restart the daemon meanwhile, because this test runs in its thread.
        with self.manager._changed:
            self.manager.kill(signal.SIGKILL)
            high.close()
        wait_for(lambda: self.manager.ready == 2, "the daemon is back")
        wait_for(lambda: [client["pid"] for client in self.clients()] == [str(low.pid)], "only the other one is listed")
        wait_for(lambda: not low.look()["held"], "the low client is open")
        wait_for(lambda: len(self.manager.stored()) == 4, "its memory has left the store")

    def test_client_that_dies_while_it_is_awaited_is_gone(self):
        low, high = self.held_pair()
        self.kill()
        high.close()
        wait_for(lambda: [client["pid"] for client in self.clients()] == [str(low.pid)], "only the other one is listed")
        wait_for(lambda: not low.look()["held"], "the low client is open")
        wait_for(lambda: len(self.manager.stored()) == 4, "its memory has left the store")

    def test_a_client_that_does_not_return_is_removed(self):
        low, high = self.held_pair()
        self.kill()
        self.assertEqual(low.ask("connect"), "ok")
        wait_for(lambda: [client["pid"] for client in self.clients()] == [str(low.pid)], "the grace has ended")
        wait_for(lambda: not low.look()["held"], "the low client is open")
        self.assertEqual(high.ask("connect"), "ok")  # with fresh memory
        self.assertEqual(len(self.clients()), 2)

    def test_child_of_fork_is_not_taken_for_its_parent(self):
        low, high = self.held_pair()
        child = int(high.ask("fork"))
        self.addCleanup(os.kill, child, signal.SIGKILL)
        high.process.kill()
        high.process.wait()  # the child still has the socket and the memory
        self.kill()
        wait_for(lambda: [client["pid"] for client in self.clients()] == [str(low.pid)], "only the other one is listed")
        wait_for(lambda: not low.look()["held"], "the low client is open")

    def test_ledger_full_of_nonsense_affects_no_other_client(self):
        low, high = self.held_pair()
        high.ask("scramble")
        self.kill()
        low.ask(f"bound {time.monotonic_ns() + 100_000_000}")  # the level still says busy
        self.assertEqual(high.ask("connect"), "ok")
        high.ask("idle")
        wait_for(lambda: not low.look()["held"], "the gate opens")

    def test_tenants_of_other_pid_namespaces_are_told_apart(self):
        before = ["unshare", "--pid", "--fork", "--kill-child"]
        if subprocess.run([*before, "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no pid namespaces here")
        # Each is pid 1 in its namespace.
        tenants = self.tenant(0, before), self.tenant(50, before)
        memory = [tenant.memory() for tenant in tenants]
        self.kept(2)
        self.ctl("hold", "--pid", tenants[0].pid)
        self.kill()
        self.assertEqual({client["pid"] for client in self.clients()}, {str(tenant.pid) for tenant in tenants})
        for tenant in tenants[::-1]:
            self.assertEqual(tenant.ask("connect"), "ok")
        self.assertEqual([tenant.memory() for tenant in tenants], memory)
        self.assertEqual([self.client(tenant)["hold"] for tenant in tenants], [True, False])

    def test_root_of_a_container_does_not_raise_itself_while_it_is_awaited(self):
        before = ["unshare", "--pid", "--fork", "--kill-child"]
        if subprocess.run([*before, "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no pid namespaces here")
        tenant = self.tenant(50, before)
        self.assertEqual(self.client(tenant)["priority_effective"], 0)
        self.kept(1)
        self.kill()
        seen = self.client(tenant)
        self.assertEqual((seen["priority_hint"], seen["priority_effective"]), (50, 0))

    def test_many_restarts(self):
        low, high = self.held_pair()
        memory = low.memory()
        for _ in range(10):
            self.kill()
            low.ask(f"bound {time.monotonic_ns() + 100_000_000}")
        self.assertEqual(low.ask("connect"), "ok")
        self.assertEqual(low.memory(), memory)
        self.assertEqual(high.ask("connect"), "ok")
        self.assertEqual(len(self.manager.stored()), 7)

    def test_disable_lasts_through_a_crash_and_an_upgrade_until_enable(self):
        low, high = self.held_pair()
        self.ctl("disable")
        wait_for(lambda: not low.look()["held"], "all gates are open")
        self.kill()
        self.assertFalse(low.look()["held"])
        self.assertIn("status 3", low.ask("connect"))  # disabled
        self.manager.restart()
        self.assertIn("status 3", low.ask("connect"))
        self.ctl("enable")
        self.assertEqual(low.ask("connect"), "ok")
        self.assertEqual(high.ask("connect"), "ok")
        high.ask("busy")
        low.ask("busy")
        wait_for(lambda: low.look()["bound"], "held again")

    def test_stuck_loop_is_restarted(self):
        self.manager.close()
        self.manager = self.make_manager(watchdog=True)
        self.manager.watchdog_s = 1.0
        self.manager.start()
        low, _ = self.held_pair()
        # Only the daemon's main thread: gRPC's threads and the one for the service manager continue.
        libc = ctypes.CDLL(None, use_errno=True)
        pid = self.manager.pid
        if libc.ptrace(PTRACE_SEIZE, pid, 0, 0) != 0:
            self.skipTest("no ptrace here: " + os.strerror(ctypes.get_errno()))
        libc.ptrace(PTRACE_INTERRUPT, pid, 0, 0)
        wait_for(lambda: self.manager.pid not in (0, pid), "the stuck daemon is replaced")
        self.manager.watchdog_s = 0  # the next daemon may take long to end
        low.ask(f"bound {time.monotonic_ns() + 100_000_000}")


class KeptByASystemdThatMixes(Kept):
    """The same with stored descriptors in random order, as from systemd."""
    order = "systemd"

    # The order does not matter in these tests.
    test_stuck_loop_is_restarted = test_a_client_that_does_not_return_is_removed = None


class Lost(Restart):
    """If a part is missing, the rest is kept."""

    def change_store(self, change):
        """Kills the daemon, and lets `change` edit the store before the next one gets it."""
        with self.manager._changed:
            count = self.manager.ready + 1
            self.manager.kill(signal.SIGKILL)
            self.manager._store = change(self.manager._store)
        self.manager.wait_ready(count)

    def fresh(self, tenant, memory):
        self.assertEqual(tenant.ask("connect"), "ok")
        self.assertNotEqual(tenant.memory(), memory)

    def test_state_lost(self):
        low, high = self.held_pair()
        memory = low.memory()
        self.change_store(lambda store: [entry for entry in store if entry[0] != "state"])
        self.assertEqual(self.clients(), [])
        wait_for(lambda: [name for name, _ in self.manager.stored()] == ["state"], "the store holds what is of use")
        self.logged("the memory of 2 clients is dropped")
        self.fresh(low, memory)
        self.assertEqual(high.ask("connect"), "ok")
        high.ask("busy")
        low.ask("busy")
        wait_for(lambda: low.look()["bound"], "all works")

    def test_memory_lost(self):
        low, high = self.held_pair()
        memory = high.memory()
        self.ctl("set", "--pid", high.pid, "--priority", -20)
        self.ctl("hold", "--pid", high.pid)
        self.change_store(lambda store: [entry for entry in store if entry[0] == "state"])
        self.assertEqual(self.clients(), [])
        self.fresh(high, memory)
        # Not the memory, but the settings of the client.
        seen = self.client(high)
        self.assertEqual((seen["priority_admin"], seen["hold"]), (-20, True))
        wait_for(lambda: high.look()["bound"], "it is on hold")

    def test_part_of_the_memory_lost(self):
        low, high = self.held_pair()
        memory = low.memory()
        self.change_store(lambda store: store[:1] + store[2:])
        self.assertEqual(len(self.clients()), 1)
        self.logged("has only")
        self.fresh(low, memory)
        self.assertEqual(high.ask("connect"), "ok")

    def corrupt(self, change):
        def apply(store):
            for name, fd in store:
                if name == "state":
                    change(fd)
            return store
        self.change_store(apply)

    def test_corrupt_state_is_reported_and_ignored(self):
        low, _ = self.held_pair()
        memory = low.memory()
        self.corrupt(lambda fd: os.pwrite(fd, os.urandom(1 << 20), 16) and os.pwrite(fd, os.urandom(1 << 20), 16 + 24 + CAPACITY))
        self.logged("neither of its two copies is complete")
        self.assertEqual(self.clients(), [])
        self.fresh(low, memory)

    def test_state_of_another_format_is_reported_and_ignored(self):
        low, _ = self.held_pair()
        memory = low.memory()
        self.corrupt(lambda fd: os.pwrite(fd, struct.pack("I", 99), 8))
        self.logged("it has format 99, this daemon's is 1")
        self.fresh(low, memory)
        self.kill()
        self.logged("taken over from")
        self.assertEqual(self.manager.log_text().count("is not used"), 1)

    def test_state_that_crashes_daemons_is_abandoned(self):
        self.held_pair()
        self.corrupt(lambda fd: os.pwrite(fd, struct.pack("I", 5), 12))
        self.logged("5 daemons in a row ended before serving")
        self.assertEqual(self.clients(), [])

    def test_a_change_that_cannot_be_saved_is_reported_to_its_caller(self):
        low, high = self.held_pair()
        fcntl.fcntl(self.state_fd(), F_ADD_SEALS, F_SEAL_WRITE)
        for words in (["set", "--pid", high.pid, "--priority", "-20"], ["hold", "--pid", low.pid], ["policy", "set", "share"],
                      ["reload"], ["drain"]):
            done = subprocess.run([os.environ["XSCHEDCTL"], "--runtime-dir", self.folder, *map(str, words)], text=True,
                                  capture_output=True, timeout=DEADLINE_S, check=False)
            # It is in force nevertheless.
            self.assertEqual(done.returncode, 0, words)
            self.assertIn("done, but not saved: a restart of xschedd loses it: cannot write the state: ", done.stderr, words)
        self.assertEqual(self.client(high)["priority_effective"], -20)
        self.logged("the state is not saved: a restart loses every change since the last save")
        self.kill()
        self.assertEqual(self.client(high)["priority_effective"], 50)

    def test_no_channel_changes_its_client_after_churn(self):
        """The store is newer than the saved state, which has the channels' clients from before others came and went."""
        low, high = self.held_pair()
        behind = os.pread(self.state_fd(), 1 << 20, 0), os.pread(self.state_fd(), 1 << 20, 16 + 24 + CAPACITY)
        had = {low.memory(), high.memory()}
        # Their sessions end and others begin, of these clients and of new ones.
        for tenant in low, high:
            self.assertEqual(tenant.ask("connect"), "ok")
        strangers = [self.tenant(0) for _ in range(4)]
        wait_for(lambda: len(self.manager.stored()) == 1 + 3 * 6, "all are stored")
        theirs = {tenant: tenant.memory() for tenant in (low, high, *strangers)}
        had |= set(theirs.values())
        self.corrupt(lambda fd: os.pwrite(fd, behind[0], 0) and os.pwrite(fd, behind[1], 16 + 24 + CAPACITY))
        self.logged("taken over from")
        for tenant in (low, high, *strangers):
            self.assertEqual(tenant.ask("connect"), "ok")
            others = {memory for other, memory in theirs.items() if other is not tenant}
            self.assertNotIn(tenant.memory(), others)
        self.assertEqual(len({tenant.memory() for tenant in theirs}), 6)
        self.assertEqual(len({tenant.look()["id"] for tenant in theirs}), 6)

    def test_pid_of_another_process(self):
        """The same pid, another process: the state is of a process with another start time."""
        low, high = self.held_pair()
        memory = low.memory()
        ticks = pathlib.Path(f"/proc/{low.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        self.assertNotIn("ended_meanwhile=1", self.manager.log_text())
        self.corrupt(lambda fd: self.edit(fd, int(ticks)))
        self.logged("ended_meanwhile=1")
        self.assertEqual([client["pid"] for client in self.clients()], [str(high.pid)])
        self.fresh(low, memory)

    def edit(self, fd, ticks):
        """Replaces the start time in both copies by one of the same encoded length, and fixes the checksums."""
        import zlib

        def varint(number):
            out = b""
            while number > 127:
                out += bytes([number & 127 | 128])
                number >>= 7
            return out + bytes([number])
        for slot in 0, 1:
            offset = 16 + slot * (24 + CAPACITY)
            sequence, length, _, _ = struct.unpack("QQII", os.pread(fd, 24, offset))
            content = os.pread(fd, length, offset + 24) if length <= CAPACITY else b""
            changed = content.replace(b"\x10" + varint(ticks), b"\x10" + varint(ticks ^ 1), 1)
            total = zlib.crc32(struct.pack("QQ", sequence, length) + changed)
            os.pwrite(fd, struct.pack("QQII", sequence, length, total, 0) + changed, offset)

    def test_child_that_connects_itself_gets_memory_of_its_own(self):
        low, high = self.held_pair()
        memory = low.memory()
        self.kill()
        stranger = Tenant(self.folder, 0)
        self.addCleanup(stranger.close)
        self.assertNotIn(stranger.memory(), (memory, high.memory()))
        self.assertEqual(len(self.clients()), 3)

    def test_connection_that_ends_before_its_session_gives_the_memory_back(self):
        low, high = self.held_pair()
        memory = low.memory()
        self.kill()
        self.assertEqual(low.ask("hello"), "ok")
        self.assertEqual(low.ask("close"), "ok")
        wait_for(lambda: "client waits again" in self.manager.log_text(), "the daemon has seen its end")
        self.assertEqual(low.ask("connect"), "ok")
        self.assertEqual(low.memory(), memory)
        # It is listed once; the other may be gone, if this took longer than the grace period.
        self.assertEqual([client["pid"] for client in self.clients() if client["pid"] != str(high.pid)], [str(low.pid)])

    def test_second_connection_gets_the_settings_and_new_memory(self):
        low, high = self.held_pair()
        memory = low.memory()
        self.ctl("hold", "--pid", low.pid)
        self.kill()
        self.assertEqual(low.ask("hello"), "ok")
        self.fresh(low, memory)
        mine = [client for client in self.clients() if client["pid"] == str(low.pid)]
        self.assertTrue(mine and all(client["hold"] for client in mine))
        self.assertEqual(low.ask("close"), "ok")
        wait_for(lambda: len(self.clients()) == 2, "only clients in use are left")


class TooMany(Restart):
    """More clients than the store has room for."""
    environment = {"FDSTORE": "4"}

    def test_first_come_is_kept(self):
        first, second = self.tenant(0), self.tenant(0)
        memories = first.memory(), second.memory()
        wait_for(lambda: len(self.manager.stored()) == 4, "the first one is stored")
        self.ctl("hold", "--pid", second.pid)
        third = self.tenant(0)
        self.assertEqual(self.manager.log_text().count("the descriptor store is full"), 1)
        self.assertEqual(self.manager.refused, [])
        self.kill()
        self.assertEqual([client["pid"] for client in self.clients()], [str(first.pid)])
        for tenant in first, second, third:
            self.assertEqual(tenant.ask("connect"), "ok")
        self.assertEqual(first.memory(), memories[0])
        self.assertNotEqual(second.memory(), memories[1])
        self.assertTrue(self.client(second)["hold"])
        self.assertFalse(self.client(third).get("hold", False))


class Unit(unittest.TestCase):
    def test_store_of_the_unit_is_the_daemons(self):
        header = pathlib.Path(__file__).resolve().parents[3] / "daemon/service_manager/descriptor_store.h"
        self.assertIn("kDefaultMax = 1 + 2048 * kChannelDescriptors", header.read_text())
        most = int(unit_setting("FileDescriptorStoreMax", "0"))
        self.assertEqual(most, 1 + 2048 * 3)
        # All names together are one environment variable, which the kernel limits (MAX_ARG_STRLEN). This number is reached
        # after 30 years with a thousand new clients a second.
        self.assertLess(len("LISTEN_FDNAMES=client:admin:state") + most * len(":channel-999999999999"), 128 * 1024)


if __name__ == "__main__":
    unittest.main(verbosity=2)
