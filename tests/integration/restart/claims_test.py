#!/usr/bin/env python3
"""Claims and their sockets must survive a restart of the daemon.

Usage: claims_test.py, with XSCHEDD_BINARY, XSCHEDCTL and XSCHEDD_TENANT in the environment (meson test 'restart claims').
"""

import json
import os
import pathlib
import signal
import sys
import unittest

from restart_world import Restart, Tenant, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "xschedctl"))
import cgroups  # noqa: E402


@unittest.skipIf(cgroups.ROOT is None, cgroups.WHY_NOT)
class Claims(Restart):
    def test_a_claim_is_saved_before_the_answer_and_counts_before_clients_return(self):
        cgroup = cgroups.make(self)
        tenant = self.tenant(50, ("/bin/sh", "-c", 'echo $$ > "$0"; "$@"; true', f"{cgroup.folder}/cgroup.procs"))
        self.kept(1)
        for priority in range(-20, -10):
            self.ctl("claim", "put", "job-17", "--cgroup", cgroup.path, "--priority", priority, "--ttl", "1h")
            self.kill()
            client = self.client(tenant)
            self.assertEqual((client["priority_effective"], client["priority_source"]), (priority, "claim"))
        self.assertEqual(tenant.ask("connect"), "ok")
        self.assertEqual(self.client(tenant)["claim"]["name"], "job-17")
        left_ms = json.loads(self.ctl("--json", "claim", "list"))["claims"][0]["expires_in_ms"]
        self.assertLess(left_ms, 3_600_000)
        self.ctl("claim", "rm", "job-17")
        self.kill()
        self.assertEqual(json.loads(self.ctl("--json", "claim", "list"))["claims"], [])
        self.assertEqual(self.client(tenant)["priority_effective"], 50)

    def test_a_claim_whose_cgroup_was_removed_meanwhile_has_ended(self):
        cgroup = cgroups.make(self)
        self.ctl("claim", "put", "job-17", "--cgroup", cgroup.path)
        pid = self.manager.kill(signal.SIGSTOP)
        cgroup.remove()
        cgroup.make()
        count = self.manager.ready + 1
        os.kill(pid, signal.SIGKILL)
        self.manager.wait_ready(count)
        self.assertEqual(json.loads(self.ctl("--json", "claim", "list"))["claims"], [])
        self.logged("claims taken over claims=0 ended_meanwhile=1")


class ClaimSockets(Restart):
    def test_a_claims_socket_is_made_again_in_the_same_folder(self):
        self.ctl("claim", "put", "web-1", "--socket", "--priority", 20)
        folder = pathlib.Path(self.folder, "claims", "web-1")
        inode = folder.stat().st_ino
        first = Tenant(str(folder), 50, ())
        self.addCleanup(first.close)
        first.ask("busy")
        self.kept(1)
        self.kill()
        self.assertEqual(self.client(first)["priority_source"], "claim")
        self.assertEqual(folder.stat().st_ino, inode)
        self.assertEqual(first.ask("connect"), "ok")
        self.assertEqual(self.client(first)["priority_effective"], 20)
        second = Tenant(str(folder), 50, ())
        self.addCleanup(second.close)
        wait_for(lambda: self.client(second) is not None, "the second is a client")
        self.assertEqual(self.client(second)["priority_effective"], 20)
        self.kept(2)
        # Links that the container put there are not followed.
        secret = pathlib.Path(self.folder, "secret")
        secret.write_text("1")
        secret.chmod(0o600)
        (folder / "client.sock").unlink()
        (folder / "client.sock").symlink_to(secret)
        self.kill()
        self.assertTrue((folder / "client.sock").is_socket())
        self.assertEqual((secret.read_text(), secret.stat().st_mode & 0o777), ("1", 0o600))
        (folder / "client.sock").unlink()
        (folder / "client.sock").mkdir()
        self.kill()
        self.logged("a claim has no socket: its container is not scheduled name=\"web-1\"")
        self.assertEqual(self.client(second)["priority_effective"], 20)

    def report(self, *words):
        return json.loads(self.ctl("--json", "claim", "report", *words))["claims"]

    def in_claim(self, name):
        self.ctl("claim", "put", name, "--socket", "--label", "job=17")
        tenant = Tenant(str(pathlib.Path(self.folder, "claims", name)), 0, ())
        self.addCleanup(tenant.close)
        wait_for(lambda: any(client["pid"] == str(tenant.pid) and client["devices"] for client in self.clients()), "it is listed")
        return tenant

    def test_the_use_of_a_claim_is_kept_after_its_clients_its_end_and_restarts(self):
        first, second = self.in_claim("job-17"), self.in_claim("job-18")
        first.ask("use 1000 5")
        first.close()
        wait_for(lambda: self.client(first) is None, "it is gone")
        second.ask("use 2000 7")
        used = lambda name: [(claim["gpu_time_ns"], claim["launches"]) for claim in self.report(name)]
        self.assertEqual((used("job-17"), used("job-18")), ([(1000, 5)], [(2000, 7)]))
        # The figures of this claim were not requested before the daemon ends.
        second.ask("use 30 1")
        self.manager.restart()
        self.assertEqual((used("job-17"), used("job-18")), ([(1000, 5)], [(2030, 8)]))
        self.assertEqual(second.ask("connect"), "ok")
        second.ask("use 400 1")
        self.ctl("claim", "rm", "job-18")
        self.logged('claim ended name="job-18" of="job 17" cgroup="" clients=1 gpu_time_ms=0 held_ms=0 launches=9')
        second.ask("use 50000 100")
        ended = self.report("job-18")
        self.assertEqual(used("job-18"), [(2430, 9)])
        self.assertIn("removed by", ended[0]["end_reason"])
        self.assertEqual(ended[0]["labels"], {"job": "17"})
        self.saved_when("removed by")
        self.kill()
        self.assertEqual(self.report("job-18"), [{**ended[0], "clients": 0}])
        self.assertEqual([claim["name"] for claim in self.report()], ["job-17", "job-18"])
        # A claim that uses the name again is another.
        self.ctl("claim", "put", "job-18", "--socket")
        self.assertEqual([claim["ended_unix_ms"] is None for claim in self.report("job-18")], [True, False])
        self.assertEqual(used("job-18"), [(0, 0), (2430, 9)])

    def test_a_killed_daemon_loses_only_seconds(self):
        tenant = self.in_claim("job-17")
        tenant.ask("use 1000 5")
        usage = b"\x08\xe8\x07\x18\x05"  # state.proto's ClaimUsage
        wait_for(lambda: usage in self.saved(), "the usage is saved without being asked for")
        self.kill()
        self.assertGreaterEqual(self.report("job-17")[0]["launches"], 5)


if __name__ == "__main__":
    unittest.main()
