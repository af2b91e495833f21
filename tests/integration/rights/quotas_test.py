#!/usr/bin/env python3
"""Quotas of each uid: refusals and their messages, no effect on other uids, and that everything is given back.
Usage: quotas_test.py XSCHEDD XSCHEDCTL RIGHTS_CALL SCRIPTED_CLIENT [TEST]
"""

import json
import os
import re
import subprocess
from typing import Dict, List

import rights_world
from rights_world import (ALICE, BOB, OK, PERMISSION_DENIED, QUOTA, RESOURCE_EXHAUSTED, WELCOME, WithDaemon, as_user,
                          identity, needs_root, wait_for)


class WithQuotas(WithDaemon):
    def refusals(self) -> Dict[str, int]:
        return json.loads(self.ctl("stats", "--json").stdout)["quota_refusals"]

    def refused(self, text: str, uid: int, key: str) -> None:
        """Checks that a refusal names the user, the quota and a remedy."""
        for part in (f"uid {uid} ", "; ", key + " in [quota]"):
            self.assertIn(part, text)


@needs_root
class Connections(WithQuotas):
    CONFIG = "[quota]\nconnections_per_uid = 3\nroot_times = 2\n"

    def test_one_user_at_the_quota_does_not_affect_others(self) -> None:
        for _ in range(3):
            self.assertTrue(self.client(uid=ALICE).is_welcome)
        # Shims and other clients get the reason.
        plain = self.client("plain", uid=ALICE)
        self.assertTrue(plain.first.startswith(f"ended {RESOURCE_EXHAUSTED} "), plain.first)
        self.refused(plain.first, ALICE, "connections_per_uid")
        self.assertEqual(self.client(uid=ALICE).first, f"ended by status {QUOTA}")
        done = self.ctl("ps", uid=ALICE)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.refused(done.stderr, ALICE, "connections_per_uid")
        # Other users, root with twice as much, and administrators are admitted.
        for uid, count in ((BOB, 3), (0, 6)):
            self.assertTrue(all([self.client(uid=uid).is_welcome for _ in range(count)]))
        self.assertEqual(self.preamble(), QUOTA)
        self.assertEqual(len(self.pids()), 12)
        self.assertGreaterEqual(self.refusals()["connections"], 4)
        self.assertIn("over quota   connections", self.ctl("stats").stdout)
        self.logged(f"(uid {ALICE}) was refused: uid {ALICE} has 3 connections")

    def test_a_connection_that_ends_is_given_back(self) -> None:
        for _ in range(3):
            clients = [self.client(uid=ALICE) for _ in range(3)]
            self.assertTrue(all(client.is_welcome for client in clients))
            for client in clients:
                client.end()
            wait_for(lambda: not self.pids(), "the end of the clients")

    def test_the_number_of_refused_connections_is_bounded_and_they_end(self) -> None:
        for _ in range(3):
            self.client(uid=ALICE)
        for _ in range(40):  # none of which sends anything
            with as_user(ALICE):
                self.connect()
        wait_for(lambda: self.call("GetPolicy", uid=ALICE).status == RESOURCE_EXHAUSTED, "an answer with the reason")


@needs_root
class Sessions(WithQuotas):
    CONFIG = ("[quota]\nclients_per_uid = 2\nqueues_per_uid = 3\ndevices_per_uid = 2\nwatchers_per_uid = 1\n"
              "root_times = 2\n")

    def test_clients(self) -> None:
        self.assertTrue(all([self.client(uid=ALICE).is_welcome for _ in range(2)]))
        third = self.client(uid=ALICE)
        self.refused(third.first, ALICE, "clients_per_uid")
        self.assertIn(f"ended {RESOURCE_EXHAUSTED} ", third.first)
        self.assertTrue(self.client(uid=BOB).is_welcome)
        # xschedctl still serves a user with all clients that the quota allows.
        self.assertEqual(self.call("ListClients", uid=ALICE).status, OK)
        self.assertTrue(all([self.client(uid=0).is_welcome for _ in range(4)]))
        self.assertIn("clients_per_uid", self.client(uid=0).first)
        self.assertEqual(self.refusals(), {"clients": 2})

    def test_queues_are_counted_over_all_clients(self) -> None:
        first, second, other = self.client(uid=ALICE), self.client(uid=ALICE), self.client(uid=BOB)

        def wait_for_queues(count: int) -> None:
            wait_for(lambda: self.call("ListClients", on="admin").answers[0].count("queues {") == count,
                     f"{count} queues")

        first.tell("queue 2")
        wait_for_queues(2)  # otherwise the other connection's may be counted first
        second.tell("queue 2")
        self.refused(second.tell("notice"), ALICE, "queues_per_uid")
        other.tell("queue 3")
        wait_for_queues(6)
        first.end()
        wait_for(lambda: first.pid not in self.pids(), "the end of the client")
        second.tell("queue 1")
        wait_for_queues(5)
        self.assertEqual(self.refusals(), {"queues": 1})

    def test_devices(self) -> None:
        client = self.client(uid=ALICE)
        for slot in range(3):
            client.tell(f"device 0000:c{slot}:00.0")
        self.refused(client.tell("notice"), ALICE, "devices_per_uid")
        self.assertEqual(self.call("ListClients", on="admin").answers[0].count("pci_address"), 2)

    def test_watchers(self) -> None:
        watcher = self.ctl_watching(ALICE)
        self.assertTrue(watcher)
        refused = self.ctl("events", uid=ALICE)
        self.assertEqual(refused.returncode, 6)
        self.refused(refused.stderr, ALICE, "watchers_per_uid")
        self.assertEqual(self.ctl("events", uid=BOB).returncode, 0)
        self.assertEqual(self.ctl("events").returncode, 0)

    def ctl_watching(self, uid: int) -> bool:
        path = os.path.join(self.folder, "client.sock")
        watching = subprocess.Popen([rights_world.CALL, path, "WatchEvents", "", "9"], stdout=subprocess.PIPE, text=True,
                                    **identity(uid))
        assert watching.stdout is not None
        for cleanup in (watching.stdout.close, watching.wait, watching.kill):
            self.addCleanup(cleanup)
        return "EVENT_KIND_LIVE" in watching.stdout.readline()


@needs_root
class DifferentDevices(WithQuotas):
    CONFIG = "[quota]\ngpus_per_uid = 1\n"

    def devices(self) -> int:
        return self.call("ListClients", on="admin").answers[0].count("pci_address")

    def test_the_number_is_the_users_over_all_its_clients(self) -> None:
        first, second = self.client(uid=ALICE), self.client(uid=ALICE)
        first.tell("device 0000:c0:00.0")
        wait_for(lambda: self.devices() == 1, "the first device")
        second.tell("device 0000:c1:00.0")
        notice = second.tell("notice")
        self.refused(notice, ALICE, "gpus_per_uid")
        self.assertIn("is not scheduled: ", notice)
        self.logged(f"0000:c1:00.0: uid {ALICE} is on 1 different GPUs")
        # A device that the user is on already is allowed, and the client is served as before.
        second.tell("device 0000:c0:00.0")
        wait_for(lambda: " clients: 2 " in self.call("ListClients", on="admin").answers[0], "the same device")
        other = self.client(uid=BOB)
        other.tell("device 0000:c1:00.0")
        wait_for(lambda: self.devices() == 2, "another's device")


@needs_root
class Rates(WithQuotas):
    CONFIG = "[quota]\ncalls_per_s = 1\nmessages_per_s = 50\nconnects_per_s = 1000\n"

    def test_calls(self) -> None:
        # An explanation counts as five calls: more than the quota restores meanwhile, even on a slow machine.
        answers = [self.call("Explain", "pid: 1", uid=ALICE) for _ in range(12)]
        refused = [answer for answer in answers if answer.status == RESOURCE_EXHAUSTED]
        self.assertTrue(refused, "12 explanations were within the quota")
        self.refused(refused[0].text, ALICE, "calls_per_s")
        self.assertEqual(self.call("GetPolicy", uid=BOB).status, OK)
        self.assertEqual(self.call("GetPolicy", on="admin").status, OK)
        self.assertEqual(self.refusals()["calls"], len(refused))

    def test_messages_are_read_more_slowly_and_none_is_lost(self) -> None:
        flooding, quiet = self.client(uid=ALICE), self.client(uid=BOB)
        flooding.tell("hints 400")
        notice = flooding.tell("notice")
        self.refused(notice, ALICE, "messages_per_s")
        self.assertIn("read more slowly", notice)
        quiet.tell("queue 1")
        wait_for(lambda: "queues {" in self.call("ListClients", on="admin").answers[0], "another user's message")
        self.assertEqual(self.one(flooding.pid)["priority_effective"], -1)
        flooding.tell("queue 1")  # behind all other messages
        wait_for(lambda: self.call("ListClients", on="admin").answers[0].count("queues {") == 2, "the last message")
        self.assertEqual(self.refusals()["messages"], 1)


@needs_root
class Connects(WithQuotas):
    CONFIG = "[quota]\nconnects_per_s = 1\nroot_times = 1000\n"

    def lines_of(self, uid: int) -> List[str]:
        return re.findall(rf"refused reason=.*\(uid {uid}\).*", self.log())

    def test_connects(self) -> None:
        self.layout()
        with as_user(ALICE):
            connections = [self.connect() for _ in range(300)]
        answers = [self.preamble(connection) for connection in connections]
        self.assertEqual(set(answers), {WELCOME, QUOTA})
        self.assertGreater(answers.count(QUOTA), 200)
        self.logged("connects_per_s in [quota]")
        # Neither another user nor the log's lines about it are affected.
        self.assertEqual(self.call("Drain", uid=BOB).status, PERMISSION_DENIED)
        wait_for(lambda: len(self.lines_of(BOB)) == 1, "a line about the other user")
        self.assertLess(len(self.lines_of(ALICE)), 100)
        self.assertGreaterEqual(self.refusals()["connects"], answers.count(QUOTA))


@needs_root
class Memory(WithQuotas):
    CONFIG = "[quota]\nmemory_kib_per_uid = 5\n"

    def test_names_count_against_the_memory_quota(self) -> None:
        self.assertTrue(all([self.client("group=" + "g" * 200, uid=ALICE).is_welcome for _ in range(2)]))
        third = self.client("group=" + "g" * 200, uid=ALICE)
        self.refused(third.first, ALICE, "memory_kib_per_uid")
        self.assertTrue(self.client("group=" + "g" * 200, uid=BOB).is_welcome)


if __name__ == "__main__":
    rights_world.main()
