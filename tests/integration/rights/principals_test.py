#!/usr/bin/env python3
"""Containers with the same uid are different principals. Pods are real cgroups, named as container engines name them.
Usage: principals_test.py XSCHEDD XSCHEDCTL RIGHTS_CALL SCRIPTED_CLIENT [TEST]
"""

import grp
import os
import pathlib
import subprocess
import sys
import time
import unittest
from typing import List

import rights_world
from rights_world import GPU, OK, PERMISSION_DENIED, Client, WithDaemon, needs_root, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "xschedctl"))
import cgroups  # noqa: E402

VICTIM, HOSTILE = 32 * "a1", 32 * "b2"

# A group that every system has, instead of xschedd-readers.
READERS = grp.getgrnam("daemon")

# Connects as fast as it can, and sends nothing.
FLOOD = """
import socket, sys
while True:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(sys.argv[1])
    except OSError:
        pass
    connection.close()
"""


def inside(procs: str) -> List[str]:
    """The prefix of a command that runs in that cgroup."""
    return ["/bin/sh", "-c", f'echo $$ > {procs} && exec "$@"', "sh"]


@needs_root
@unittest.skipIf(cgroups.ROOT is None, cgroups.WHY_NOT)
class Pods(WithDaemon):
    CONFIG = f'[quota]\nconnects_per_s = 5\nroot_times = 4\n[access]\nreaders = "{READERS.gr_name}"\n'

    def setUp(self) -> None:
        super().setUp()
        engine = cgroups.make(self)
        self.pods = {name: engine.below(f"docker-{name}.scope") for name in (VICTIM, HOSTILE)}
        self.victims = inside(f"{self.pods[VICTIM].folder}/cgroup.procs")
        self.hostiles = inside(f"{self.pods[HOSTILE].folder}/cgroup.procs")

    def pod_client(self, prefix: List[str], *words: str) -> Client:
        client = self.client(*words, prefix=prefix)
        self.assertTrue(client.is_welcome, client.first)
        return client

    def refused(self, method: str, request: str, prefix: List[str], who: str) -> None:
        answer = self.call(method, request, prefix=prefix)
        self.assertEqual(answer.status, PERMISSION_DENIED, answer)
        self.assertIn(who, answer.text)

    def may_nothing(self, prefix: List[str], pid: int, who: str) -> None:
        """Checks that root behind this prefix neither sees nor changes the client."""
        for method, request in (("Set", f"selector {{ pid: {pid} }} priority: -9"), ("Hold", f"selector {{ pid: {pid} }}"),
                                ("Release", f"selector {{ pid: {pid} }}"), ("Explain", f"pid: {pid}")):
            self.refused(method, request, prefix, who)
        seen = self.call("ListClients", prefix=prefix)
        self.assertEqual(seen.status, OK, seen.text)
        self.assertNotIn(f" pid: {pid} ", seen.answers[0])
        self.assertIn(" left_out: ", seen.answers[0])

    def test_root_of_one_pod_manages_nothing_of_another_nor_of_the_host(self) -> None:
        victim = self.pod_client(self.victims, "group=job")
        host = self.client("group=job")
        self.logged(f'uid=0 place="container {VICTIM[:12]}"')
        for pid in (victim.pid, host.pid):
            self.may_nothing(self.hostiles, pid, f"uid 0 in container {HOSTILE[:12]}")
        self.refused("Hold", 'selector { group: "job" }', self.hostiles, f"uid 0 in container {HOSTILE[:12]}")
        # Its own pod may, and root on the host.
        for prefix in (self.victims, []):
            for method in ("Hold", "Release"):
                self.assertEqual(self.call(method, f"selector {{ pid: {victim.pid} }}", prefix=prefix).status, OK)

    def test_root_of_a_pod_cannot_make_itself_a_reader(self) -> None:
        victim = self.pod_client(self.victims)
        for prefix, is_seen in ((self.hostiles, False), ([], True)):
            seen = self.call("ListClients", uid=0, also_in=[READERS.gr_gid], prefix=prefix)
            self.assertEqual(seen.status, OK, seen.text)
            self.assertEqual(f" pid: {victim.pid} " in seen.answers[0], is_seen)

    def test_root_in_a_container_cannot_raise_itself(self) -> None:
        for prefix, priority in ((self.victims, 0), ([], 20)):
            self.assertEqual(self.one(self.pod_client(prefix, "hint=20").pid)["priority_effective"], priority)

    def test_no_other_principal_joins_a_group_by_its_name(self) -> None:
        victim = self.pod_client(self.victims, "group=job", "hint=-5")
        mate = self.pod_client(self.victims, "group=job", "hint=-7")
        stranger = self.pod_client(self.hostiles, "group=job", "hint=-3")
        for client in (victim, mate, stranger):
            client.tell("device " + GPU)
        wait_for(lambda: self.one(mate.pid)["priority_effective"] == -5, "the group's priority")
        self.assertEqual(self.one(victim.pid)["priority_effective"], -5)
        self.assertEqual(self.one(stranger.pid)["priority_effective"], -3)

    def test_a_cgroup_named_like_another_container_is_a_place_of_its_own(self) -> None:
        victim = self.pod_client(self.victims)
        fake = self.pods[HOSTILE].below(f"docker-{VICTIM}.scope")
        self.may_nothing(inside(f"{fake.folder}/cgroup.procs"), victim.pid, f"in container {HOSTILE[:12]}")

    def test_a_cgroup_whose_path_the_kernel_does_not_report_belongs_to_no_place(self) -> None:
        victim = self.pod_client(self.victims)
        host = self.client()
        folders = [os.open(self.pods[HOSTILE].folder, os.O_RDONLY)]
        name = 200 * "x"

        def remove() -> None:
            while len(folders) > 1:
                os.close(folders.pop())
                wait_for(lambda: self.removed(name, folders[-1]), "the end of a cgroup")
            os.close(folders.pop())

        self.addCleanup(remove)
        for _ in range(25):
            os.mkdir(name, dir_fd=folders[-1])
            folders.append(os.open(name, os.O_RDONLY, dir_fd=folders[-1]))
        deep = inside(f"/proc/{os.getpid()}/fd/{folders[-1]}/cgroup.procs")
        for pid in (victim.pid, host.pid):
            self.may_nothing(deep, pid, "uid 0 in pid ")

    @staticmethod
    def removed(name: str, folder: int) -> bool:
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:
            return False
        return True

    def test_a_claim_of_one_pod_does_not_apply_to_another(self) -> None:
        claimed = self.ctl("claim", "put", "web", "--cgroup", self.pods[VICTIM].path, "--priority", "20", "--group", "gang")
        self.assertEqual(claimed.returncode, 0, claimed.stderr)
        victim = self.pod_client(self.victims, "group=gang")
        stranger = self.pod_client(self.hostiles, "group=gang")
        for client in (victim, stranger):
            client.tell("device " + GPU)
        wait_for(lambda: self.one(victim.pid)["priority_effective"] == 20, "the claim's priority")
        self.assertEqual(self.one(stranger.pid)["priority_effective"], 0)
        self.may_nothing(self.hostiles, victim.pid, f"in container {HOSTILE[:12]}")
        self.assertEqual(self.call("Hold", f"selector {{ pid: {victim.pid} }}", prefix=self.victims).status, OK)

    def test_a_pod_that_connects_all_the_time_does_not_block_another(self) -> None:
        path = os.path.join(self.folder, "client.sock")
        flood = subprocess.Popen([*self.hostiles, sys.executable, "-c", FLOOD, path])
        self.addCleanup(flood.wait)
        self.addCleanup(flood.kill)
        self.logged(f"uid 0 in container {HOSTILE[:12]} has used up its 5 new connections")
        time.sleep(2)  # longer than the connections that root has saved up
        for _ in range(10):
            answer = self.call("GetPolicy", prefix=self.victims)
            self.assertEqual(answer.status, OK, answer)
        self.assertEqual(self.call("GetPolicy").status, OK)


@needs_root
class NoCgroups(WithDaemon):
    def test_a_container_of_an_unknown_kind_has_pids_of_its_own(self) -> None:
        host = self.client()
        prefix = ["unshare", "--pid", "--fork", "--kill-child"]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no pid namespace can be made here")
        answer = self.call("Hold", f"selector {{ pid: {host.pid} }}", prefix=prefix)
        self.assertEqual(answer.status, PERMISSION_DENIED, answer)
        self.assertIn("uid 0 in pid:[", answer.text)
        self.assertEqual(self.call("Hold", f"selector {{ pid: {host.pid} }}").status, OK)


if __name__ == "__main__":
    rights_world.main()
