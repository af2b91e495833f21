"""Shared by the tests in this folder: a daemon that serves metrics, clients with known figures, and a strict reader of the
answers (prometheus_client's parser of OpenMetrics, by the authors of the format)."""

import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import unittest
from typing import Any, Dict, Iterator, List, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/integration/rights"))

import rights_world  # noqa: E402 pylint: disable=wrong-import-position
from rights_world import Client, WithDaemon, wait_for  # noqa: E402,F401 pylint: disable=wrong-import-position

# Debian's modules, also if another Python comes first in PATH.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    from prometheus_client import parser as text_parser  # noqa: F401
    from prometheus_client.openmetrics import parser as openmetrics_parser
except ImportError:
    openmetrics_parser = None

GPU, OTHER_GPU = "0000:c1:00.0", "0000:c2:00.0"
OPEN = "application/openmetrics-text; version=1.0.0"
MONITORING = ROOT / "systemd/monitoring"
DASHBOARDS = (MONITORING / "grafana-dashboard.json", MONITORING / "grafana-dashboard-fleet.json")
RECORDING = MONITORING / "prometheus-recording.yml"
DOCS = ROOT / "docs/reference/metrics.md"

Samples = Dict[Tuple[str, Tuple[Tuple[str, str], ...]], float]


def read_open(text: str) -> Samples:
    """All samples of an OpenMetrics text, parsed strictly, by name and labels."""
    if openmetrics_parser is None:
        raise unittest.SkipTest("python3-prometheus-client is not installed")
    found: Samples = {}
    for family in openmetrics_parser.text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"twice: {key}"
            found[key] = sample.value
    return found


class Metrics:
    """The values of one answer."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = read_open(text)

    def all(self, name: str, **labels: str) -> List[float]:
        return [value for (is_name, has), value in self.samples.items()
                if is_name == name and set(labels.items()) <= set(has)]

    def one(self, name: str, **labels: str) -> float:
        found = self.all(name, **labels)
        assert len(found) == 1, f"{name} {labels}: {found}\n{self.text}"
        return found[0]

    def get(self, name: str, **labels: str) -> float:
        """The same; 0 if it does not exist yet."""
        return sum(self.all(name, **labels))

    def names(self) -> List[str]:
        return sorted({name for name, _ in self.samples})


class WithMetrics(WithDaemon):
    CONFIG = '[metrics]\nenabled = true\naddress = "127.0.0.1:0"\n'

    def setUp(self) -> None:
        super().setUp()
        self.port = self.find_port()

    def find_port(self) -> int:
        found = wait_for(lambda: re.findall(r'metrics are served address="127\.0\.0\.1:(\d+)"', self.log()),
                         "the address of metrics")
        return int(found[-1])

    def ask(self, path: str = "/metrics", accept: Optional[str] = OPEN, method: str = "GET",
            seconds: float = 60) -> Tuple[int, Dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, headers={} if accept is None else {"Accept": accept})
            answer = connection.getresponse()
            return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read().decode()
        finally:
            connection.close()

    def scrape(self) -> Metrics:
        status, _, text = self.ask()
        self.assertEqual(status, 200, text)
        return Metrics(text)

    def attached(self, clients: int) -> Metrics:
        """The metrics once so many clients are on devices: later changes of their ledgers count."""
        def seen() -> Optional[Metrics]:
            metrics = self.scrape()
            return metrics if sum(metrics.all("xschedd_device_clients")) == clients else None

        return wait_for(seen, f"{clients} clients on devices")

    def tcp(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.addCleanup(connection.close)
        return connection


def monitoring_names() -> Dict[str, List[str]]:
    """Metric names in the dashboards and in the rules, by their place; recorded ones with their rule's name."""
    found: Dict[str, List[str]] = {}
    for where, expression in expressions():
        # Label matchers, groupings and ranges contain no metrics.
        bare = re.sub(r'"[^"]*"', "", expression)
        bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
        found[where] = [name for name in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\w|\s*\()", bare)
                        if re.match(r"(\w+:)?(xschedd|hw|process)_", name)]
    return found


def recorded() -> List[Tuple[str, str]]:
    """Names and expressions of the recording rules."""
    return re.findall(r"- record: (\S+)\n\s+expr: (.*)", RECORDING.read_text(encoding="utf-8"))


def expressions() -> Iterator[Tuple[str, str]]:
    """Every expression of PromQL that we ship."""
    for file in DASHBOARDS:
        dashboard = json.loads(file.read_text(encoding="utf-8"))
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield f"{file.name}: {panel['title']}", target["expr"]
        for variable in dashboard["templating"]["list"]:
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
            if asked:
                yield f"{file.name}: ${variable['name']}", asked.group(1)
    for name, expression in recorded():
        yield f"rule: {name}", expression
    text = (MONITORING / "prometheus-alerts.yml").read_text(encoding="utf-8")
    for name, expression in re.findall(r"- alert: (\w+)\n\s+expr: (.*)", text):
        yield f"alert: {name}", expression


def run(*command: Any, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def main(skip_all: str = "") -> None:
    if skip_all:
        print("skipped: all: " + skip_all)
        sys.exit(77)
    rights_world.XSCHEDD, rights_world.XSCHEDCTL, rights_world.CLIENT = sys.argv[1:4]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[4:]])


