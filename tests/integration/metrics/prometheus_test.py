"""A real Prometheus scrapes the daemon, and its values are checked; promtool and Prometheus read the shipped files.

usage: prometheus_test.py XSCHEDD XSCHEDCTL SCRIPTED_CLIENT
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, List

import metrics_world
from metrics_world import DASHBOARDS, GPU, MONITORING, RECORDING, ROOT, WithMetrics, expressions, monitoring_names, recorded, run, wait_for

PROGRAMS = pathlib.Path(run(ROOT / "tools/prometheus/fetch", "--path").stdout.strip())
PROMTOOL = PROGRAMS / "promtool"
ALERTS = MONITORING / "prometheus-alerts.yml"
ALERTS_TEST = pathlib.Path(__file__).with_name("alerts_test.yml")
RECORDING_TEST = pathlib.Path(__file__).with_name("recording_test.yml")


def strict(pairs: List[Any]) -> Dict[str, Any]:
    """JSON as in its standard: unlike Python, without repeated keys."""
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a key twice: {names}"
    return dict(pairs)


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class Scraped(WithMetrics):
    def setUp(self) -> None:
        super().setUp()
        self.data = tempfile.mkdtemp(prefix="xschedd-prometheus-")
        self.addCleanup(shutil.rmtree, self.data, ignore_errors=True)
        config = pathlib.Path(self.data, "prometheus.yml")
        shipped = (MONITORING / "prometheus-scrape.yml").read_text(encoding="utf-8")
        text = shipped.replace("/usr/share/xschedd", str(MONITORING)).replace("19464", str(self.port))
        self.assertEqual(text.count(str(self.port)), 1)
        config.write_text("global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  evaluation_interval: 200ms\n" + text,
                          encoding="utf-8")
        checked = run(PROMTOOL, "check", "config", config)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.prometheus_log = pathlib.Path(self.data, "log")
        with open(self.prometheus_log, "wb") as log:
            self.prometheus = subprocess.Popen(
                [PROGRAMS / "prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.data}/tsdb",
                 "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "1"})
        self.addCleanup(self.end_prometheus)
        self.api = "http://" + wait_for(self.listens_at, "Prometheus")
        wait_for(self.is_up, "a scrape")

    def end_prometheus(self) -> None:
        self.prometheus.kill()
        self.prometheus.wait()

    def listens_at(self) -> str:
        self.assertIsNone(self.prometheus.poll(), self.prometheus_log.read_text(encoding="utf-8"))
        found = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', self.prometheus_log.read_text(encoding="utf-8"))
        return found.group(1) if found else ""

    def get(self, path: str, **words: str) -> Any:
        address = f"{self.api}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is still starting
                return None
            raise AssertionError(f"{address}: {error.read().decode()}") from error

    def is_up(self) -> bool:
        targets = (self.get("targets") or {}).get("activeTargets", [])
        return bool(targets) and targets[0]["health"] == "up"

    def value(self, expression: str) -> List[float]:
        return [float(one["value"][1]) for one in self.get("query", query=expression)["result"]]

    def eventually(self, expression: str, wanted: List[float]) -> None:
        wait_for(lambda: self.value(expression) == wanted, f"{expression} = {wanted}")

    def two_clients(self) -> List[Any]:
        clients = [self.client(f"hint={hint}") for hint in (-5, 5)]
        for client in clients:
            client.tell(f"device {GPU}")
        for client in clients:
            client.tell("await tracked")
        return clients

    def test_values(self) -> None:
        low, high = self.two_clients()
        low.tell("launches 42")
        low.tell("gpu_us 1250")
        low.tell("busy")
        high.tell("busy")
        low.tell("await held")
        where = f'device="{GPU}", class="low"'
        self.eventually(f"xschedd_launches_total{{{where}}}", [42])
        self.eventually(f"xschedd_gpu_time_seconds_total{{{where}}}", [0.00125])
        self.eventually(f'xschedd_device_clients{{{where}, state="held"}}', [1])
        self.eventually(f'xschedd_transitions_total{{class="high", state="busy"}}', [1])
        self.eventually(f"xschedd_longest_hold_seconds{{{where}}} > bool 0", [1])
        self.eventually("sum(xschedd_quota_refusals_total)", [0])
        high.tell("idle")
        low.tell("await open")
        low.tell("idle")
        self.eventually(f"xschedd_held_time_seconds_total{{{where}}} > bool 0", [1])
        self.eventually(f"xschedd_held_time_seconds_total{{{where}}} - xschedd_hold_duration_seconds_sum{{{where}}}", [0])
        self.eventually(f'xschedd_hold_duration_seconds_bucket{{{where}, le="+Inf"}} - ignoring(le) '
                        f"xschedd_hold_duration_seconds_count{{{where}}}", [0])
        # Only OpenMetrics has units, so Prometheus has read that format.
        metadata = self.get("metadata", metric="xschedd_gpu_time_seconds")["xschedd_gpu_time_seconds"][0]
        self.assertEqual((metadata["type"], metadata["unit"]), ("counter", "seconds"))
        target = self.get("targets")["activeTargets"][0]
        self.assertEqual((target["lastError"], target["labels"]["job"]), ("", "xschedd"))

    def test_every_expression_that_we_ship(self) -> None:
        for name, label in (("high", "namespace=serving"), ("low", "partition=batch")):
            self.ctl("claim", "put", name, "--socket", "--label", label, "--label", "job=17", "--priority", "5" if name == "high" else "-5")
        low, high = [self.client(where=os.path.join(self.folder, "claims", name)) for name in ("low", "high")]
        for client in (low, high):
            client.tell(f"device {GPU}")
        for client in (low, high):
            client.tell("await tracked")
        low.tell("gpu_us 1250")
        low.tell("busy")
        high.tell("busy")
        self.eventually('xschedd_device_clients{class="low", state="held"}', [1])
        # A claim's labels keep their names, though Prometheus has a "job" of its own.
        self.eventually('sum by (job, partition) (xschedd_claim_info{job="17", partition="batch"})', [1])
        # The recording rules have values.
        for name in ("waiter_blocker:xschedd_wait_seconds:rate5m{waiter=\"batch\", blocker=\"serving\"}",
                     "claim:xschedd_held_time_seconds:rate5m{claim=\"low\", job=\"17\"}", "fleet:xschedd_wait_seconds:rate5m"):
            self.eventually(f"{name} > bool 0", [1])
        for name in ("fleet:xschedd_nodes:count", "fleet:xschedd_shared_devices:count", "fleet:xschedd_devices:count"):
            self.eventually(name, [1])
        wait_for(lambda: {name for name, _ in recorded()} <= set(self.get("label/__name__/values")), "all recorded series")
        known = {"xschedd_unscheduled_processes"}
        if os.geteuid() == 0:  # otherwise the daemon may not inspect other users' processes, and does not export their number
            self.eventually("count(xschedd_unscheduled_processes) > bool 0", [1])
            known.clear()
        known |= set(self.get("label/__name__/values"))
        count = 0
        for where, expression in expressions():
            plain = expression.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$gpu", ".*").replace("$space", ".*")
            self.assertNotIn("$", plain.replace('"$1"', ""), where)  # label_replace's own
            with self.subTest(where):
                self.assertIsInstance(self.get("query", query=plain)["result"], list)
                count += 1
        self.assertGreater(count, 30)
        for where, names in monitoring_names().items():
            with self.subTest(where):
                self.assertLessEqual(set(names), known)

    def alerts(self) -> List[Any]:
        return [rule for group in self.get("rules")["groups"] if group["name"] == "xschedd" for rule in group["rules"]]

    def test_the_alerts_are_loaded_and_none_fires(self) -> None:
        rules = self.alerts()
        self.assertEqual(len(rules), ALERTS.read_text(encoding="utf-8").count("- alert:"))

        def all_evaluated() -> bool:
            self.rules = self.alerts()
            return all(rule["health"] != "unknown" for rule in self.rules)

        wait_for(all_evaluated, "an evaluation")
        for rule in self.rules:
            with self.subTest(rule["name"]):
                self.assertEqual((rule["health"], rule.get("lastError", ""), rule["state"]), ("ok", "", "inactive"))
        self.ctl("disable")
        wait_for(lambda: "pending" in {rule["state"] for rule in self.alerts()
                                         if rule["name"] == "XscheddDisabled"}, "XscheddDisabled")

    def test_promtool_accepts_the_exposed_metrics(self) -> None:
        self.two_clients()
        text = self.ctl("metrics", "--prometheus").stdout
        said = run(PROMTOOL, "check", "metrics", input=text)
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "", ""))
        # It does report errors.
        wrong = run(PROMTOOL, "check", "metrics", input=text.replace("_total", "_sums"))
        self.assertNotEqual(wrong.returncode, 0)


class Files(metrics_world.unittest.TestCase):
    def test_rules(self) -> None:
        for file in (ALERTS, RECORDING):
            said = run(PROMTOOL, "check", "rules", "--lint-fatal", file)
            self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertEqual(len(recorded()), RECORDING.read_text(encoding="utf-8").count("- record:"))

    def test_recorded_values_add_up_over_nodes(self) -> None:
        said = run(PROMTOOL, "test", "rules", RECORDING_TEST, cwd=RECORDING_TEST.parent)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        text = RECORDING_TEST.read_text(encoding="utf-8")
        for name, _ in recorded():
            self.assertIn(f"- expr: {name}\n", text)
        # The page names each.
        document = metrics_world.DOCS.read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| `(\w+:\S+)` \|", document, re.MULTILINE), [name for name, _ in recorded()])

    def test_alerts_fire_when_they_should_and_only_then(self) -> None:
        said = run(PROMTOOL, "test", "rules", ALERTS_TEST, cwd=ALERTS_TEST.parent)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        # Each alert is tested firing and not firing.
        text = ALERTS_TEST.read_text(encoding="utf-8")
        for name in re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8")):
            with self.subTest(name):
                cases = re.findall(rf"alertname: {name}\n(?:\s+exp_alerts: (\[\]))?", text)
                self.assertIn("[]", cases)
                self.assertIn("", cases)

    def test_each_alert_is_explained(self) -> None:
        document = metrics_world.DOCS.read_text(encoding="utf-8")
        headings = re.findall(r"^### (\w+)$", document, re.MULTILINE)
        text = ALERTS.read_text(encoding="utf-8")
        self.assertEqual(headings, re.findall(r"- alert: (\w+)", text))
        # The expression that the page shows is the tested one.
        tested = " ".join(ALERTS_TEST.read_text(encoding="utf-8").split())
        joins = re.findall(r"```promql\n(.*?)```", document, re.DOTALL)
        self.assertTrue(joins)
        for join in joins:
            self.assertIn("expr: >- " + " ".join(join.split()), tested)
        self.assertEqual([name.lower() for name in headings], re.findall(r"runbook_url: file://@docdir@/reference/metrics\.md#(\w+)", text))

    def test_the_dashboards(self) -> None:
        uids = [self.dashboard(file) for file in DASHBOARDS]
        self.assertEqual(len(set(uids)), len(uids))

    def dashboard(self, file: pathlib.Path) -> str:
        text = file.read_text(encoding="utf-8")
        dashboard = json.loads(text, object_pairs_hook=strict, parse_constant=no_constant)
        panels = dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells
            if panel["type"] == "row":
                continue
            self.assertIn(panel["type"], ("timeseries", "stat", "heatmap"))
            references = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(references)), len(references))
        variables = {variable["name"] for variable in dashboard["templating"]["list"]}
        used = set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval", "__all"}
        self.assertEqual(used, variables)
        return dashboard["uid"]


if __name__ == "__main__":
    metrics_world.main("" if os.access(PROMTOOL, os.X_OK) else
                       "there is no Prometheus here; ./dev setup (tools/prometheus/fetch) gets Debian's")
