"""Metrics across restarts, under a service manager that keeps the daemon's descriptors: restarts are counted, and a client's
work from before a restart is not counted again.

usage: restart_test.py XSCHEDD XSCHEDCTL SCRIPTED_CLIENT
"""

import pathlib
import shutil
import signal
import sys
import tempfile

import metrics_world
import rights_world
from metrics_world import GPU, Metrics, run, wait_for
from rights_world import Client

sys.path[:0] = [str(metrics_world.ROOT / "tests" / name) for name in ("fault", "e2e")]
from service_manager import ServiceManager  # noqa: E402 pylint: disable=wrong-import-position


class Restarts(metrics_world.unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="xschedd-metrics-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        config = pathlib.Path(self.folder, "config.toml")
        config.write_text("", encoding="utf-8")
        self.manager = ServiceManager(self.folder, [rights_world.XSCHEDD, "--software-gpu", "--runtime-dir", self.folder, "--config", config],
                                      log=f"{self.folder}/log", environment={}, restart_s=0.02, watchdog=False)
        self.addCleanup(self.manager.close)
        self.manager.start()

    def scrape(self) -> Metrics:
        said = run(rights_world.XSCHEDCTL, "--runtime-dir", self.folder, "metrics")
        self.assertEqual(said.returncode, 0, said.stderr)
        return Metrics(said.stdout)

    def kill(self) -> None:
        # What the next daemon shall know must be saved. An administrator's change is answered once it and all before are.
        said = run(rights_world.XSCHEDCTL, "--runtime-dir", self.folder, "policy", "set", "priority")
        self.assertEqual(said.returncode, 0, said.stderr)
        count = self.manager.ready + 1
        self.manager.kill(signal.SIGKILL)
        self.manager.wait_ready(count)

    def test_restarts(self) -> None:
        tenant = Client(self.folder, "hint=-5")
        self.addCleanup(tenant.end)
        tenant.tell(f"device {GPU}")
        wait_for(lambda: sum(self.scrape().all("xschedd_device_clients")) == 1, "its device")
        tenant.tell("launches 5")
        self.assertEqual(self.scrape().one("xschedd_launches_total", device=GPU), 5)
        self.assertEqual(self.scrape().one("xschedd_restarts_total"), 0)
        wait_for(lambda: len(self.manager.stored()) == 4, "its memory and the state are stored")
        for count in (1, 2):
            self.kill()
            seen = self.scrape()
            self.assertEqual(seen.one("xschedd_restarts_total"), count)
            self.assertEqual(seen.one("xschedd_clients"), 1)
            # Its memory is the same; the new daemon counts from here.
            self.assertEqual(seen.one("xschedd_launches_total", device=GPU), 0)
            tenant.tell(f"launches {count}")
            self.assertEqual(self.scrape().one("xschedd_launches_total", device=GPU), count)


if __name__ == "__main__":
    metrics_world.main()
