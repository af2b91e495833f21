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

from restart_world import GPU, Restart, Tenant, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "xschedctl"))
import cgroups  # noqa: E402


@unittest.skipIf(cgroups.ROOT is None, cgroups.WHY_NOT)
class Claims(Restart):
    def test_a_claim_is_saved_before_it_is_answered_and_counts_before_anybody_is_back(self):
        cgroup = cgroups.make(self)
        tenant = self.tenant(50, ("/bin/sh", "-c", 'echo $$ > "$0"; "$@"; true', f"{cgroup.folder}/cgroup.procs"))
        wait_for(lambda: self.saved().count(GPU.encode()) == 1, "it is saved with its device")
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

    def test_one_whose_cgroup_has_gone_meanwhile_is_over(self):
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
    def test_a_claims_socket_is_there_again_in_the_same_folder(self):
        self.ctl("claim", "put", "web-1", "--socket", "--priority", 20)
        folder = pathlib.Path(self.folder, "claims", "web-1")
        inode = folder.stat().st_ino
        first = Tenant(str(folder), 50, ())
        self.addCleanup(first.close)
        first.ask("busy")
        wait_for(lambda: self.saved().count(GPU.encode()) == 1, "it is saved with its device")
        self.kill()
        self.assertEqual(self.client(first)["priority_source"], "claim")
        self.assertEqual(folder.stat().st_ino, inode)
        self.assertEqual(first.ask("connect"), "ok")
        self.assertEqual(self.client(first)["priority_effective"], 20)
        second = Tenant(str(folder), 50, ())
        self.addCleanup(second.close)
        wait_for(lambda: self.client(second) is not None, "the second is a client")
        self.assertEqual(self.client(second)["priority_effective"], 20)
        # What the container has put there is not followed, and harms nobody else.
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


if __name__ == "__main__":
    unittest.main()
