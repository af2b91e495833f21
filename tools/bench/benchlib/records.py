"""Reads what the tenants and the software GPU write while they run. Times are CLOCK_MONOTONIC nanoseconds.

Thread rule: plain values.
"""

import bisect
import json
import os
from dataclasses import dataclass
from typing import Iterator, List, Sequence, Tuple


@dataclass
class Request:
    arrival_ns: int
    latency_ms: float
    service_ms: float
    ok: bool

    @property
    def done_ns(self) -> int:
        return self.arrival_ns + round(self.latency_ms * 1e6)

    @property
    def begun_ns(self) -> int:
        return self.done_ns - round(self.service_ms * 1e6)


@dataclass
class Dispatch:
    pid: int
    queue: int
    kind: str
    name: str
    arrival_ns: int  # when it could have started on an idle device
    start_ns: int
    end_ns: int


def _lines(path: str) -> Iterator[dict]:
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        for line in file:
            # The writer may be in the middle of its last line.
            if line.endswith("\n"):
                yield json.loads(line)


def read_requests(path: str) -> List[Request]:
    return [Request(entry["t_mono_ns"], entry["latency_ms"], entry["service_ms"], entry["ok"]) for entry in _lines(path)]


def read_dispatches(path: str) -> List[Dispatch]:
    return [Dispatch(entry["pid"], entry["queue"], entry["kind"], entry["name"], entry["arrival_ns"], entry["start_ns"],
                     entry["end_ns"]) for entry in _lines(path)]


def moments(path: str, pid: int, other: int = 0) -> Tuple[List[int], List[int], List[int]]:
    """From what `xschedctl events --follow` wrote: when the daemon knew that `pid` was busy, when it shut a gate for it, and
    when it opened the gate of `other`."""
    busy, shut, opened = [], [], []
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.startswith("{") and line.endswith("}\n")]  # others are cut off, or not events
    for event in map(json.loads, lines):
        if event["kind"] == "busy" and event["pid"] == pid:
            busy.append(event["time_ns"])
        if event["kind"] == "held" and event["for_pid"] == pid:
            shut.append(event["time_ns"])
        if event["kind"] == "opened" and event["pid"] == other:
            opened.append(event["time_ns"])
    return sorted(busy), sorted(shut), sorted(opened)


class Progress:
    """How many kernels of a tenant had completed, over time."""

    def __init__(self, times: List[int], counts: List[int]):
        self.times = times
        self.counts = counts

    @staticmethod
    def reported(path: str) -> "Progress":
        """As the tenant reports. It notices completions only when it checks, which is late while it is held."""
        entries = list(_lines(path))
        return Progress([entry["t_mono_ns"] for entry in entries], [entry["completed"] for entry in entries])

    @staticmethod
    def traced(dispatches: Sequence[Dispatch]) -> "Progress":
        """From the device's trace: exact."""
        times = sorted(dispatch.end_ns for dispatch in dispatches if dispatch.kind == "kernel")
        return Progress(times, list(range(1, len(times) + 1)))

    def at(self, time_ns: int) -> float:
        """The count at a time, by linear interpolation."""
        if not self.times:
            return 0.0
        right = bisect.bisect_right(self.times, time_ns)
        if right == 0:
            return float(self.counts[0])
        if right == len(self.times):
            return float(self.counts[-1])
        t0, t1 = self.times[right - 1], self.times[right]
        c0, c1 = self.counts[right - 1], self.counts[right]
        return c0 + (c1 - c0) * (time_ns - t0) / (t1 - t0)


def rate(tenants: Sequence[Progress], start_ns: int, end_ns: int) -> float:
    """Kernels per second of all tenants together."""
    if end_ns <= start_ns:
        return 0.0
    return sum(tenant.at(end_ns) - tenant.at(start_ns) for tenant in tenants) / ((end_ns - start_ns) / 1e9)
