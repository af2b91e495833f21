"""Compares the metrics with what clients did, checks where they are served, and that documents name them all.

usage: scrape_test.py XSCHEDD XSCHEDCTL SCRIPTED_CLIENT
"""

import http.client
import json
import os
import pathlib
import re
import socket
import stat
import subprocess
import sys
import time
from typing import Dict, List, Set, Tuple

import metrics_world
import rights_world
from metrics_world import DOCS, GPU, OPEN, OTHER_GPU, Metrics, WithMetrics, monitoring_names, recorded, wait_for
from rights_world import WithDaemon

SANDBOX = metrics_world.ROOT / "tests/integration/install/sandbox.py"


class Values(WithMetrics):
    def setUp(self) -> None:
        self.begun = time.time()
        super().setUp()

    def tenant(self, hint: int, device: str = GPU):
        client = self.client(f"hint={hint}")
        self.assertTrue(client.is_welcome, client.first)
        client.tell(f"device {device}")
        return client

    def stats(self) -> Dict[str, int]:
        return json.loads(self.ctl("stats", "--json").stdout)

    def test_counters_are_what_clients_did(self) -> None:
        low, high = self.tenant(-5), self.tenant(5)
        for client in (low, high):
            client.tell("await tracked")
        begun = time.monotonic()
        low.tell("launches 7")
        low.tell("completions 5")
        low.tell("passed 3")
        low.tell("in_flight 2")
        low.tell("gpu_us 250")
        high.tell("launches 9000")
        low.tell("busy")
        high.tell("busy")
        low.tell("await held")
        held_since = time.monotonic()
        where, rest = {"device": GPU, "class": "low"}, {"device": GPU, "class": "high"}

        def one_is_held() -> bool:
            self.seen = self.scrape()
            return self.seen.one("xschedd_device_clients", state="held", **where) == 1

        wait_for(one_is_held, "the held client")
        seen = self.seen
        self.assertEqual(seen.one("xschedd_launches_total", **where), 7)
        self.assertEqual(seen.one("xschedd_launches_total", **rest), 9000)
        self.assertEqual(seen.one("xschedd_completions_total", **where), 5)
        self.assertEqual(seen.one("xschedd_passed_calls_total", **where), 3)
        self.assertEqual(seen.one("xschedd_in_flight", **where), 2)
        self.assertEqual(seen.one("xschedd_gpu_time_seconds_total", **where), 0.00025)
        self.assertEqual(seen.one("xschedd_gpu_time_seconds_total", **rest), 0)
        self.assertEqual(seen.all("xschedd_window_seconds", **where), [])  # a shut gate has none
        self.assertEqual(seen.one("xschedd_window_seconds", **rest), 0.02)  # [policy] top_window_us
        self.assertEqual(seen.one("xschedd_transitions_total", state="busy", **where), 1)
        self.assertEqual(seen.one("xschedd_transitions_total", state="idle", **where), 0)
        self.assertEqual(seen.one("xschedd_device_clients", state="running", **rest), 1)
        self.assertEqual(seen.one("xschedd_clients"), 2)
        # A hold that lasts counts, and grows. (If the guard opens the gate for a moment, it becomes two holds.)
        first = seen.one("xschedd_held_time_seconds_total", **where)
        wait_for(lambda: self.scrape().one("xschedd_held_time_seconds_total", **where) > first > 0, "a longer hold")
        self.assertGreater(wait_for(lambda: self.scrape().one("xschedd_longest_hold_seconds", **where), "a hold"), 0)
        at_least = time.monotonic() - held_since
        high.tell("idle")
        low.tell("await open")
        low.tell("idle")
        at_most = time.monotonic() - begun

        def both_idle() -> bool:
            self.seen = self.scrape()
            return sum(self.seen.one("xschedd_device_clients", state="idle", **one) for one in (where, rest)) == 2

        wait_for(both_idle, "both idle")
        seen = self.seen
        held = seen.one("xschedd_held_time_seconds_total", **where)
        # No client is held, so the sum of finished holds is all held time: the time that this test saw, less the guard's
        # turns.
        self.assertEqual(held, seen.one("xschedd_hold_duration_seconds_sum", **where))
        self.assertLess(held, at_most)
        self.assertGreater(held, at_least * 0.5)
        count = seen.one("xschedd_hold_duration_seconds_count", **where)
        self.assertGreaterEqual(count, 1)
        self.assertEqual(count, seen.one("xschedd_hold_duration_seconds_bucket", le="+Inf", **where))
        self.assertEqual(seen.one("xschedd_window_seconds", **where), 0.0005)  # [policy] window_us
        self.assertEqual(seen.one("xschedd_hold_duration_seconds_count", **rest), 0)
        self.assertEqual(seen.one("xschedd_held_time_seconds_total", **rest), 0)
        self.assertEqual(seen.one("xschedd_longest_hold_seconds", **where), 0)
        self.assertEqual(sum(seen.all("xschedd_transitions_total")), 4)
        self.assertEqual(self.stats()["transitions_total"], 4)
        # With one device every decision is about it.
        stats = wait_for(lambda: self.same(lambda: self.stats()["decisions_total"],
                                             lambda: self.scrape().one("xschedd_decisions_total", device=GPU)), "no decision")
        self.assertGreater(stats[0], 0)
        self.assertIn(seen.one("xschedd_decision_latency_seconds_count", device=GPU), range(1, 5))
        low.end()
        high.end()
        wait_for(lambda: self.scrape().one("xschedd_clients") == 0, "both gone")
        seen = self.scrape()
        self.assertEqual(sum(seen.all("xschedd_device_clients")), 0)
        self.assertEqual(seen.one("xschedd_launches_total", **where), 7)  # earlier counts stay
        self.assertEqual(seen.one("xschedd_held_time_seconds_total", **where), held)

    @staticmethod
    def same(*asks) -> List[float]:
        """The answers if they are equal, else nothing."""
        found = [ask() for ask in asks]
        return found if len(set(found)) == 1 else []

    def test_a_ledger_that_lies_is_believed_within_physical_limits(self) -> None:
        begun = time.monotonic()
        low, high = self.tenant(-5), self.tenant(5)
        for client in (low, high):
            client.tell("await tracked")
        low.tell(f"gpu_us {10**12}")
        low.tell(f"launches {2**64 - 5}")
        low.tell(f"in_flight {2**32 - 1}")
        high.tell("launches 3")
        seen = self.scrape()
        passed = time.monotonic() - begun
        self.assertLessEqual(seen.one("xschedd_gpu_time_seconds_total", **{"class": "low"}), passed)
        self.assertLessEqual(seen.one("xschedd_launches_total", **{"class": "low"}), 1e7 * passed + 1e4)
        self.assertLessEqual(seen.one("xschedd_in_flight", **{"class": "low"}), 65536)
        self.assertEqual(seen.one("xschedd_launches_total", **{"class": "high"}), 3)
        low.tell("launches 10")  # the client's counter wraps around, and the daemon's does not
        self.assertGreaterEqual(self.scrape().one("xschedd_launches_total", **{"class": "low"}),
                                seen.one("xschedd_launches_total", **{"class": "low"}))

    def test_utilization_is_not_exported_unless_it_is_measured(self) -> None:
        alone = self.tenant(0, OTHER_GPU)
        alone.tell("launches 1")
        seen = wait_for(lambda: self.with_device(OTHER_GPU), "the device")
        self.assertEqual(seen.one("xschedd_device_clients", device=OTHER_GPU, state="untracked"), 1)
        self.assertEqual(seen.all("xschedd_device_utilization_ratio"), [])
        self.tenant(5, OTHER_GPU).tell("await tracked")
        wait_for(lambda: self.scrape().all("xschedd_device_utilization_ratio", device=OTHER_GPU) == [0], "an idle device")

    def with_device(self, device: str):
        seen = self.scrape()
        return seen if seen.all("xschedd_device_clients", device=device) else None

    def test_the_daemon_itself(self) -> None:
        seen = self.scrape()
        version = json.loads(self.ctl("version", "--json").stdout)["daemon"]
        self.assertEqual(seen.one("xschedd_build_info", version=version["version"], abi=str(version["abi_version"])), 1)
        self.assertEqual(seen.one("xschedd_policy_info"), 1)
        self.assertEqual(seen.one("xschedd_policy_info", policy="priority"), 1)
        self.ctl("policy", "set", "share")
        self.assertEqual(self.scrape().one("xschedd_policy_info", policy="share"), 1)
        started = seen.one("process_start_time_seconds")
        self.assertGreater(started, self.begun - 0.01)  # it has a resolution of 1 ms
        self.assertLess(started, time.time())
        resident = int(pathlib.Path(f"/proc/{self.daemon.pid}/statm").read_text(encoding="utf-8").split()[1]) * 4096
        self.assertLess(abs(seen.one("process_resident_memory_bytes") - resident), resident / 2)
        self.assertGreater(seen.one("process_cpu_seconds_total"), 0)
        self.assertEqual(seen.one("xschedd_restarts_total"), 0)
        self.assertEqual((seen.one("xschedd_enabled"), seen.one("xschedd_draining")), (1, 0))
        self.ctl("disable")
        seen = self.scrape()
        self.assertEqual((seen.one("xschedd_enabled"), seen.one("xschedd_draining")), (0, 1))
        self.ctl("enable")
        self.assertEqual(self.scrape().one("xschedd_enabled"), 1)

    def test_the_cost_of_scrapes_is_exported(self) -> None:
        for _ in range(3):
            self.scrape()
        self.ctl("metrics")
        seen = self.scrape()
        # The fifth request is counted when it is answered.
        self.assertEqual(seen.one("xschedd_metrics_requests_total", source="http", result="answered"), 3)
        self.assertEqual(seen.one("xschedd_metrics_requests_total", source="admin_socket", result="answered"), 1)
        self.assertGreater(seen.one("xschedd_metrics_collection_seconds"), 0)


class Claims(WithMetrics):
    def test_each_claim_has_series_up_to_the_limit_and_the_others_are_summed(self) -> None:
        self.assertEqual(self.scrape().all("xschedd_claim_launches_total"), [])
        for i in range(22):
            self.assertEqual(self.ctl("claim", "put", f"c{i}", "--socket", "--label", "namespace=ml", "--label", f"pod=web-{i}").returncode, 0)
        clients, counts = [], {"c3": 5, "c20": 7, "c21": 9}
        for name, count in counts.items():
            client = self.client(where=os.path.join(self.folder, "claims", name))
            client.tell(f"device {GPU}")
            clients.append((client, count))
        self.attached(len(counts))
        for client, count in clients:
            client.tell(f"launches {count}")
        seen = self.scrape()
        self.assertEqual(len(seen.all("xschedd_claim_launches_total")), 21)
        self.assertEqual(seen.one("xschedd_claim_launches_total", claim="c3"), 5)
        self.assertEqual(seen.one("xschedd_claim_launches_total", claim="_other"), 16)
        self.assertEqual(sum(seen.all("xschedd_claim_launches_total")), sum(seen.all("xschedd_launches_total")))
        self.assertEqual(len(seen.all("xschedd_claim_info")), 20)
        self.assertEqual(seen.one("xschedd_claim_info", claim="c3", namespace="ml", pod="web-3"), 1)
        self.assertEqual(seen.one("xschedd_claim_gpu_time_seconds_total", claim="c3"), 0)
        self.assertEqual(self.ctl("claim", "rm", "c3").returncode, 0)
        self.assertEqual(self.scrape().one("xschedd_claim_launches_total", claim="c3"), 5)


class Classes(WithMetrics):
    RULE = f'[[rule]]\nuid = {os.geteuid()}\nexe = "scripted_client"\nclass = "%s"\n'
    CONFIG = WithMetrics.CONFIG + RULE % "batch-jobs"

    def launches(self, name: str) -> float:
        return self.scrape().get("xschedd_launches_total", **{"class": name})

    def test_a_rule_names_a_class_and_a_reload_renames_it(self) -> None:
        client = self.client("hint=5")
        client.tell(f"device {GPU}")
        self.attached(1)
        client.tell("launches 4")
        self.assertEqual(self.launches("batch-jobs"), 4)
        client.tell("launches 1")
        path = os.path.join(self.folder, "config.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(WithMetrics.CONFIG + self.RULE % "nightly")
        self.assertEqual(self.ctl("reload").returncode, 0)
        client.tell("launches 2")
        seen = self.scrape()
        self.assertEqual(seen.one("xschedd_launches_total", **{"class": "batch-jobs"}), 5)
        self.assertEqual(seen.one("xschedd_launches_total", **{"class": "nightly"}), 2)
        # Without a rule's class, the band of the priority counts; later work counts under a changed priority's band.
        with open(path, "w", encoding="utf-8") as file:
            file.write(WithMetrics.CONFIG)
        self.assertEqual(self.ctl("reload").returncode, 0)
        client.tell("launches 8")
        self.assertEqual(self.launches("high"), 8)
        self.assertEqual(self.ctl("set", "--priority", "-1", "--pid", str(client.pid)).returncode, 0)
        client.tell("launches 16")
        self.assertEqual((self.launches("high"), self.launches("low")), (8, 16))

    def test_classes_are_bounded(self) -> None:
        def check(rules: str) -> str:
            path = os.path.join(self.folder, "check.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(rules)
            return metrics_world.run(rights_world.XSCHEDD, "--check-config", "--config", path).stderr

        self.assertEqual(check("".join(self.RULE % f"c{i}" for i in range(16))), "")
        self.assertIn("name at most 16", check("".join(self.RULE % f"c{i}" for i in range(17))))
        for wrong in ("other", "Upper", "x" * 33, "a b", 'a\\"b'):
            self.assertIn("class", check(self.RULE % wrong), wrong)

    def test_devices_are_bounded(self) -> None:
        """However many devices clients report, the number of series is bounded, and `other` keeps the sum complete."""
        client = None
        for i in range(100):
            if i % 50 == 0:
                client = self.client()
            client.tell(f"device 0000:{i:02x}:00.0")
            if i % 50 == 0:
                self.attached(i + 1)
                client.tell("launches 1")
        seen = self.attached(100)
        devices = {dict(labels)["device"] for (name, labels) in seen.samples if name == "xschedd_device_clients"}
        self.assertEqual(len(devices), 65)
        self.assertIn("other", devices)
        self.assertEqual(sum(seen.all("xschedd_launches_total")), 2)


class Refusals(WithMetrics):
    CONFIG = WithMetrics.CONFIG + "[quota]\nclients_per_uid = 1\nroot_times = 1\n"

    def test_quota_refusals_by_kind_and_dropped_lines_of_the_log(self) -> None:
        self.client()
        seen = self.scrape()
        self.assertEqual(len(seen.all("xschedd_quota_refusals_total")), 10)
        self.assertEqual(sum(seen.all("xschedd_quota_refusals_total")), 0)
        count = 0
        # Ten lines at once and then one a second are logged: their number depends on the machine.
        while seen.one("xschedd_log_lines_dropped_total", subject="refusals") == 0:
            together = [subprocess.Popen([rights_world.CLIENT, self.folder], stdout=subprocess.PIPE, text=True)
                        for _ in range(20)]
            for refused in together:
                self.assertRegex(refused.communicate(timeout=60)[0], "^ended 8 ")  # RESOURCE_EXHAUSTED
            count += len(together)
            seen = self.scrape()
        self.assertEqual(seen.one("xschedd_quota_refusals_total", quota="clients"), count)
        self.assertEqual(sum(seen.all("xschedd_quota_refusals_total")), count)
        refusals = seen.one("xschedd_refusals_total")
        dropped = seen.one("xschedd_log_lines_dropped_total", subject="refusals")
        self.assertGreater(dropped, 0)
        wait_for(lambda: self.log().count("refused reason=") == refusals - dropped, "as many lines as were not dropped")


class Serving(WithMetrics):
    def test_formats(self) -> None:
        status, headers, text = self.ask(accept=OPEN)
        self.assertEqual((status, headers["content-type"]), (200, OPEN + "; charset=utf-8"))
        self.assertTrue(text.endswith("# EOF\n"))
        status, headers, older = self.ask(accept=None)
        self.assertEqual((status, headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertNotIn("# EOF", older)
        names = {sample.name for family in metrics_world.text_parser.text_string_to_metric_families(older)
                 for sample in family.samples}
        self.assertEqual(names, set(Metrics(text).names()))
        self.assertEqual(headers["connection"], "close")

    def test_other_requests(self) -> None:
        self.assertEqual(self.ask(method="HEAD")[::2], (200, ""))
        self.assertGreater(int(self.ask(method="HEAD")[1]["content-length"]), 1000)
        self.assertEqual(self.ask("/metrics?x=y")[0], 200)
        self.assertEqual(self.ask("/")[0], 200)
        self.assertEqual(self.ask("/other")[0], 404)
        status, headers, _ = self.ask(method="DELETE")
        self.assertEqual((status, headers["allow"]), (405, "GET, HEAD"))

    def test_over_the_admin_socket(self) -> None:
        text = self.ctl("metrics").stdout
        self.assertEqual(set(Metrics(text).names()), set(self.scrape().names()))
        older = self.ctl("metrics", "--prometheus").stdout
        self.assertIn("# TYPE xschedd_launches_total counter", older)
        document = json.loads(self.ctl("metrics", "--json").stdout)
        self.assertEqual(document["content_type"], OPEN + "; charset=utf-8")
        Metrics(document["text"])

    def test_a_reload_switches_it_off_and_on_and_changes_the_address(self) -> None:
        path = os.path.join(self.folder, "config.toml")

        def reload(text: str) -> None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(self.ctl("reload").returncode, 0)

        self.assertEqual(self.ask()[0], 200)
        reload("")
        with self.assertRaises(ConnectionRefusedError):
            self.ask()
        reload(f'[metrics]\nenabled = true\naddress = "unix:{self.folder}/metrics.sock"\n')
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(f"{self.folder}/metrics.sock")
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.folder}/metrics.sock").st_mode), 0o666)
        connection.sendall(f"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {OPEN}\r\n\r\n".encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        Metrics(answer.read().decode())
        connection.close()
        reload(WithMetrics.CONFIG)
        self.assertFalse(os.path.exists(f"{self.folder}/metrics.sock"))
        self.port = self.find_port()
        self.assertEqual(self.ask()[0], 200)

    def test_a_port_in_use_only_prevents_the_metrics(self) -> None:
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        with open(os.path.join(self.folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(f'[metrics]\nenabled = true\naddress = "127.0.0.1:{taken.getsockname()[1]}"\n')
        self.assertEqual(self.ctl("reload").returncode, 0)
        self.logged("metrics are not served")
        line = [line for line in self.log().splitlines() if "metrics are not served" in line]
        self.assertEqual(len(line), 1)
        self.assertIn("choose another port", line[0])
        self.assertEqual(self.ctl("ps").returncode, 0)

    def test_invalid_addresses(self) -> None:
        for wrong in ("localhost:19464", "19464", "127.0.0.1", "127.0.0.1:99999", "::1:19464", "[::1]", "unix:relative",
                      "unix:/" + "x" * 110, ""):
            path = os.path.join(self.folder, "check.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'[metrics]\naddress = "{wrong}"\n')
            said = metrics_world.run(rights_world.XSCHEDD, "--check-config", "--config", path)
            self.assertEqual((said.returncode, said.stderr.count("\n")), (3, 1), wrong)
            self.assertIn("check.toml:2:", said.stderr)


class Off(WithDaemon):
    CONFIG = ""

    def test_nothing_listens_unless_it_is_switched_on(self) -> None:
        sockets = {os.readlink(f"/proc/{self.daemon.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{self.daemon.pid}/fd")}
        inodes = {match.group(1) for match in map(re.compile(r"socket:\[(\d+)\]").match, sockets) if match}
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{self.daemon.pid}/net/{table}", encoding="utf-8") as file:
                self.assertEqual(inodes & {line.split()[9] for line in list(file)[1:]}, set())
        Metrics(self.ctl("metrics").stdout)


class FromSystemd(WithMetrics):
    """A TCP socket as xschedd-metrics.socket passes it: made outside, and served inside the unit's sandbox, where AF_UNIX is
    the only address family and the network namespace has no connection."""

    CONFIG = ""

    def setUp(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("a sandbox of capabilities needs root")
        unit = os.environ.get("XSCHEDD_UNIT", "")
        if not os.path.exists(unit):
            self.skipTest("built without systemd")
        if metrics_world.run("unshare", "--mount", "--net", "--ipc", "true").returncode:
            self.skipTest("this machine gives no namespaces")
        self.given = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.given.close)
        script = f"exec 3<&{self.given.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=metrics; exec \"$@\""
        # The wrapper executes the daemon in its own process.
        self.PREFIX = ["bash", "-c", script, "bash", sys.executable, str(SANDBOX), unit]
        os.set_inheritable(self.given.fileno(), True)
        popen = subprocess.Popen
        self.addCleanup(setattr, subprocess, "Popen", popen)
        subprocess.Popen = lambda *words, **more: popen(*words, close_fds=False, **more)  # type: ignore
        super().setUp()
        subprocess.Popen = popen  # type: ignore

    def find_port(self) -> int:
        self.logged("socket=systemd")
        return self.given.getsockname()[1]

    def test_it_is_served_from_the_sandbox(self) -> None:
        self.assertNotEqual(os.readlink(f"/proc/{self.daemon.pid}/ns/net"), os.readlink("/proc/self/ns/net"))
        self.assertEqual(self.scrape().one("xschedd_clients"), 0)
        self.assertEqual(self.ctl("reload").returncode, 0)
        self.assertEqual(self.scrape().one("xschedd_clients"), 0)


class Documents(WithMetrics):
    ENDINGS = {"counter": "_total", "info": "_info"}

    def documented(self) -> Dict[str, Tuple[str, str, Set[str]]]:
        """Type, unit and labels by name, from the tables of docs/reference/metrics.md."""
        found = {}
        for line in DOCS.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 5 and re.fullmatch(r"`[a-z_]+`", cells[0]):
                found[cells[0].strip("`")] = (cells[1], cells[2], set(re.findall(r"`(\w+)`", cells[3])))
        return found

    def exposed(self) -> Dict[str, Tuple[str, str, Set[str]]]:
        self.assertEqual(self.ctl("claim", "put", "job-17", "--socket", "--label", "namespace=ml", "--label", "pod=web", "--label", "job=17",
                                  "--label", "step=0", "--label", "user=alice", "--memory", "24G").returncode, 0)
        clients = [self.client(f"hint={hint}") for hint in (-5, 5)]
        for client in clients:
            client.tell(f"device {GPU}")
        for client in clients:
            client.tell("await tracked")
            client.tell("gpu_us 1000")
            client.tell("busy")
        self.assertEqual(self.ctl("set", "--all", "--memory", "8G").returncode, 0)
        for name in ("xschedd_window_seconds", "xschedd_space_gpu_time_seconds_total", "xschedd_wait_seconds_total"):
            wait_for(lambda one=name: self.scrape().all(one), name)
        if os.geteuid() == 0:
            wait_for(lambda: self.scrape().all("xschedd_unscheduled_processes"), "a look at all processes")
        seen = self.scrape()
        units = dict(re.findall(r"^# UNIT (\S+) (\S+)$", seen.text, re.MULTILINE))
        found = {}
        for family, kind in re.findall(r"^# TYPE (\S+) (\S+)$", seen.text, re.MULTILINE):
            name = family + self.ENDINGS.get(kind, "")
            ends = ("_bucket",) if kind == "histogram" else ("",)
            labels = {label for (sample, has) in seen.samples for label, _ in has if sample in [name + end for end in ends]}
            found[name] = (kind, units.get(family, ""), labels - {"le"})
        if os.geteuid() != 0:  # this daemon may not inspect other users' processes, and does not export their number
            found["xschedd_unscheduled_processes"] = ("gauge", "", {"device"})
        return found

    def test_the_document_names_all_metrics(self) -> None:
        documented = {name: (kind, unit if unit in ("seconds", "bytes", "ratio") else "", labels)
                      for name, (kind, unit, labels) in self.documented().items()}
        self.maxDiff = None
        self.assertEqual(documented, self.exposed())

    def test_dashboard_and_alerts_name_existing_metrics(self) -> None:
        exposed = self.exposed()
        known = {name for name, (kind, _, _) in exposed.items() if kind != "histogram"}
        known |= {name + end for name, (kind, _, _) in exposed.items() if kind == "histogram"
                  for end in ("_bucket", "_count", "_sum")}
        known |= {name for name, _ in recorded()}
        used = monitoring_names()
        for where, names in used.items():
            with self.subTest(where):
                self.assertLessEqual(set(names), known)
        self.assertGreater(sum(map(len, used.values())), 20)


if __name__ == "__main__":
    metrics_world.main()
