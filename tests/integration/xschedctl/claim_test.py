#!/usr/bin/env python3
"""Claims on real cgroups: the processes they apply to, their effect, when they end, and processes that get none.

Usage: claim_test.py XSCHEDCTL XSCHEDD FAKE_CLIENT
"""

import os
import subprocess
import sys
import tempfile
import unittest

import cgroups
import ctl_world
from ctl_world import WithDaemon


class Wrong(WithDaemon):
    """Tests that need no cgroup."""

    def test_each_wrong_claim_is_one_line_with_a_remedy(self):
        put = ["claim", "put"]
        self.fails(2, *put, "a", "--cgroup", "/no/such/cgroup", says=("there is no cgroup /no/such/cgroup", "/proc/PID/cgroup"))
        self.fails(2, *put, "a/b", "--cgroup", "/x", says=("cannot be the name of a claim",))
        self.fails(2, *put, "a", "--cgroup", "/x/../y", says=("not the path of a cgroup",))
        self.fails(2, *put, "a", "--cgroup", "/", says=("not the path of a cgroup",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--priority", "101", says=("101",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--priority", "5", "--ceiling", "4", says=("above the claim's own ceiling",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--weight", "0", says=("10000",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--latency", "low", says=("--latency auto",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--memory", "24", says=("give 1M to 1024T",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--label", "job", says=("NAME=VALUE",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--label", "a=1", "--label", "a=2", says=("given twice",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--label", "big=" + 2000 * "x", says=("more than 1024",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--ttl", "5", says=("5",))
        self.fails(2, *put, "a", "--cgroup", "/x", "--ttl", "0", says=("--ttl",))
        self.fails(2, *put, "a", says=("--cgroup PATH or --socket",))
        for words in (["claim", "rm", "nobody"], ["claim", "list", "nobody"], ["claim", "report", "nobody"]):
            self.fails(5, *words, says=('there is no claim "nobody"',))
        self.assertEqual(self.json("claim", "list")["claims"], [])


@unittest.skipIf(cgroups.ROOT is None, cgroups.WHY_NOT)
class Claims(WithDaemon):
    def setUp(self):
        super().setUp()
        self.cgroup = cgroups.make(self)

    def put(self, name="job-17", cgroup=None, *words):
        return self.json("claim", "put", name, "--cgroup", (cgroup or self.cgroup).path, *map(str, words))["claim"]

    def seen(self):
        return self.ctl("claim", "list").stdout + self.ctl("ps").stdout

    def priority(self, pid):
        client = self.clients()[pid]
        return client["priority_effective"], client["priority_source"]

    def claims(self):
        return [claim["name"] for claim in self.json("claim", "list")["claims"]]

    def test_a_client_has_it_from_its_start_and_follows_changes_at_once(self):
        self.put("job-17", None, "--priority", 20, "--label", "job=17", "--label", "step=0")
        pid = self.client("--priority", 50, into=self.cgroup)
        outside = self.client("--priority", 50)
        self.assertEqual(self.priority(pid), (20, "claim"))
        self.assertEqual(self.clients()[pid]["claim"], {"name": "job-17", "text": "job 17.0", "labels": {"job": "17", "step": "0"}})
        self.assertEqual(self.priority(outside), (50, "hint"))
        self.assertIsNone(self.clients()[outside]["claim"])
        header, *rows = self.ctl("ps").stdout.splitlines()
        self.assertIn(" CLAIM ", header)
        self.assertEqual([row.split()[0] for row in rows if " job 17.0 " in row], [str(pid)])
        self.assertIn('(priority 20 by claim "job-17" of job 17.0, weight 100)', self.ctl("explain", str(pid)).stdout)
        self.put("job-17", None, "--priority", -20, "--weight", 300)
        self.assertEqual((self.priority(pid), self.clients()[pid]["weight"]), ((-20, "claim"), 300))
        # The administrator's setting overrides it.
        self.json("set", "--priority", "7", str(pid))
        self.assertEqual(self.priority(pid), (7, "admin"))
        self.json("set", "--reset", str(pid))
        self.json("claim", "rm", "job-17", "--dry-run")
        self.assertEqual(self.priority(pid), (-20, "claim"))
        self.assertEqual(self.json("claim", "rm", "job-17")["claim"]["clients"], 1)
        self.assertEqual((self.priority(pid), self.clients()[pid]["weight"]), ((50, "hint"), 100))
        events = self.ctl("events").stdout
        for said in ('claim "job-17" of job 17.0 was put by uid 0', 'claim "job-17" was changed by uid 0',
                     'claim "job-17" has ended: removed by uid 0'):
            self.assertIn(said, events)

    def test_it_applies_to_cgroups_below_and_the_innermost_claim_counts(self):
        inner = self.cgroup.below("step")
        pid = self.client("--priority", 50, into=inner.below("task"))
        self.put("outer", self.cgroup, "--priority", 1)
        self.assertEqual(self.priority(pid), (1, "claim"))
        self.put("inner", inner, "--ceiling", 5)
        self.assertEqual(self.priority(pid), (5, "hint"))
        self.json("claim", "rm", "inner")
        self.assertEqual(self.priority(pid), (1, "claim"))

    def test_it_ends_after_its_ttl_unless_it_is_put_again(self):
        pid = self.client("--priority", 50, into=self.cgroup)
        for _ in range(3):
            self.put("job-17", None, "--priority", 20, "--ttl", "1h")
        self.assertGreater(self.json("claim", "list")["claims"][0]["expires_in_ms"], 3_500_000)
        self.assertEqual(sum(" was changed " in line for line in self.ctl("events").stdout.splitlines()), 0)
        self.put("job-17", None, "--priority", 20, "--ttl", "1s")
        self.wait(lambda: self.priority(pid) == (50, "hint"), "the claim is over")
        self.assertEqual(self.claims(), [])

    def test_it_does_not_apply_to_a_cgroup_that_is_made_again(self):
        inner = self.cgroup.below("job")
        self.put("job-17", inner, "--priority", 20)
        inner.remove()
        inner.make()
        # Before and after the daemon has checked its cgroups.
        self.assertEqual(self.priority(self.client("--priority", 50, into=inner)), (50, "hint"))
        self.wait(lambda: self.claims() == [], "it has ended with its cgroup")
        self.assertEqual(self.priority(self.client("--priority", 49, into=inner)), (49, "hint"))
        self.put("job-18", inner, "--priority", 3)
        self.assertEqual({self.priority(pid) for pid in self.clients()}, {(3, "claim")})

    def test_two_claims_of_one_cgroup_are_refused(self):
        self.put("one")
        self.fails(2, "claim", "put", "two", "--cgroup", self.cgroup.path, says=('has claim "one" already',))

    def test_a_process_that_moves_there_later_or_into_a_similar_name_gets_nothing(self):
        claimed = self.cgroup.below("job")
        self.put("job-17", claimed, "--priority", 20)
        like = [self.client("--priority", 50, into=self.cgroup.below(name)) for name in ("job2", "jobs", "nojob", "job (deleted)")]
        self.assertEqual({self.priority(pid) for pid in like}, {(50, "hint")})
        # Its cgroup was read when it connected.
        (claimed.folder / "cgroup.procs").write_text(str(like[0]))
        self.put("job-17", claimed, "--priority", 21)
        self.assertEqual(self.priority(like[0]), (50, "hint"))
        mine = self.client("--priority", 50, into=claimed)
        (self.cgroup.folder / "jobs" / "cgroup.procs").write_text(str(mine))
        self.put("job-17", claimed, "--priority", 22)
        self.assertEqual(self.priority(mine), (22, "claim"))

    def test_only_claims_that_name_a_group_join_it(self):
        inside = [self.client("--priority", 50, "--group", "ranks", into=self.cgroup) for _ in range(2)]
        stranger = self.client("--priority", 49, "--group", "ranks")
        self.put("job-17", None, "--ceiling", 5)
        # A client that only knows the group's name does not share its priority.
        self.assertEqual([self.priority(pid)[0] for pid in inside], [5, 5])
        self.assertEqual(self.priority(stranger)[0], 49)


class Sockets(WithDaemon):
    """Clients that connect there have the claim: no cgroup is needed."""

    def put(self, *words):
        claim = self.json("claim", "put", "web-1", "--socket", "--label", "pod=web-1", *map(str, words))["claim"]
        self.assertEqual(claim["socket_folder"], os.path.join(self.folder, "claims", "web-1"))
        return claim["socket_folder"]

    def listed(self, pid):
        self.wait(lambda: pid in self.clients(), "the client is connected")
        client = self.clients()[pid]
        return client["priority_effective"], client["priority_source"]

    def test_a_client_that_connects_there_has_the_claim_until_it_ends(self):
        folder = self.put("--priority", 20)
        self.assertIn(f"mount {folder} as", self.ctl("claim", "put", "web-1", "--socket", "--priority", 20).stdout)
        inside = self.start(ctl_world.CLIENT, "--runtime-dir", folder, "--priority", "50").pid
        outside = self.client("--priority", 50)
        self.assertEqual(self.listed(inside), (20, "claim"))
        self.assertEqual(self.listed(outside), (50, "hint"))
        before = os.stat(folder).st_ino
        self.put("--priority", 21)
        self.assertEqual(self.listed(inside), (21, "claim"))
        self.assertEqual(os.stat(folder).st_ino, before)
        self.json("claim", "rm", "web-1")
        # It is still in a container, where root cannot raise itself.
        self.assertEqual(self.listed(inside), (0, "hint"))
        self.assertFalse(os.path.exists(folder))
        # A later claim of the same name is another.
        self.put("--priority", 22)
        self.assertEqual(self.listed(inside), (0, "hint"))

    def test_a_user_manages_its_own_clients_there(self):
        folder = self.put("--ceiling", 30)
        inside = self.start(ctl_world.CLIENT, "--runtime-dir", folder, "--priority", "50").pid
        self.assertEqual(self.listed(inside), (30, "hint"))
        done = subprocess.run([ctl_world.CTL, "--runtime-dir", folder, "set", "--priority", "40", str(inside)],
                              capture_output=True, text=True, check=False, env=ctl_world.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('limited by the ceiling of claim "web-1"', done.stdout)
        done = subprocess.run([ctl_world.CTL, "--runtime-dir", folder, "claim", "list"], capture_output=True, text=True,
                              check=False, env=ctl_world.environment())
        self.assertEqual(done.returncode, 4, done.stderr)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_user_of_the_host_reaches_only_a_socket_that_is_mounted_for_it(self):
        folder = self.put("--priority", 20)
        os.chmod(self.folder, 0o755)
        self.assertEqual(os.stat(os.path.dirname(folder)).st_mode & 0o777, 0o700)
        as_user = ["setpriv", "--reuid", "61000", "--regid", "61000", "--clear-groups"]
        if subprocess.run(["unshare", "--mount", *as_user, "true"], capture_output=True, check=False).returncode:
            self.skipTest("this machine gives no mount namespaces")
        connect = [sys.executable, "-c", "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"]
        done = subprocess.run([*as_user, *connect, f"{folder}/client.sock"], capture_output=True, text=True, check=False)
        self.assertIn("PermissionError", done.stderr)
        place = tempfile.mkdtemp(prefix="xschedd-mount-")
        self.addCleanup(os.rmdir, place)
        os.chmod(place, 0o755)
        inside = self.start("unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', folder, place,
                            *as_user, ctl_world.CLIENT, "--runtime-dir", place, "--priority", "50").pid
        self.assertEqual(self.listed(inside), (20, "claim"))
        self.assertEqual(self.clients()[inside]["uid"], 61000)


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
