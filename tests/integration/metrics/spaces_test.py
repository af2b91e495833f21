"""Who waited for whom and what was gained, by namespace and partition, compared with what clients did.

usage: spaces_test.py XSCHEDD XSCHEDCTL SCRIPTED_CLIENT
"""

import os
from typing import Any

import metrics_world
from metrics_world import GPU, WithMetrics, wait_for


class Spaces(WithMetrics):
    def in_space(self, name: str, label: str, priority: int) -> Any:
        self.assertEqual(self.ctl("claim", "put", name, "--socket", "--label", label, "--priority", str(priority)).returncode, 0)
        client = self.client(where=os.path.join(self.folder, "claims", name))
        client.tell(f"device {GPU}")
        return client

    def test_who_waited_for_whom_and_what_was_gained(self) -> None:
        serve = self.in_space("serve", "namespace=serving", 20)
        batch = self.in_space("batch", "partition=batch", -20)
        for client in (serve, batch):
            client.tell("await tracked")
        self.attached(2)
        serve.tell("gpu_us 3000")
        batch.tell("gpu_us 2000")
        batch.tell("busy")
        serve.tell("busy")
        batch.tell("await held")
        wait_for(lambda: self.scrape().get("xschedd_wait_seconds_total", waiter="batch", blocker="serving") > 0.01, "a wait")
        serve.tell("idle")
        batch.tell("await open")
        seen = self.scrape()
        self.assertAlmostEqual(sum(seen.all("xschedd_wait_seconds_total")), sum(seen.all("xschedd_held_time_seconds_total")))
        self.assertEqual(seen.one("xschedd_wait_seconds_total", waiter="_other", blocker="_other"), 0)
        for space, gpu, gained in (("serving", 0.003, 0), ("batch", 0.002, 0.002), ("_other", 0, 0)):
            self.assertAlmostEqual(seen.one("xschedd_space_gpu_time_seconds_total", space=space), gpu)
            self.assertAlmostEqual(seen.one("xschedd_space_gained_gpu_time_seconds_total", space=space), gained)
        self.assertEqual(seen.one("xschedd_claim_info", claim="batch", partition="batch", namespace=""), 1)


if __name__ == "__main__":
    metrics_world.main()
