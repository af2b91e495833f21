"""Communicates with running HIP tenants: reads their output, and waits while checking that they live.

Thread rule: main thread.
"""

import json
import time
from typing import List, Optional, Sequence

from .processes import Child, wait_for


def said(child: Child, key: str) -> Optional[dict]:
    """The first line of JSON with this key that a tenant has printed."""
    with open(child.log_path, encoding="utf-8", errors="replace") as log:
        for line in log:
            if line.startswith("{") and line.endswith("\n") and f'"{key}"' in line:
                return json.loads(line)
    return None


def wait_until_ready(children: Sequence[Child]) -> None:
    for child in children:
        wait_for(f"{child.name}: its first kernels", lambda: said(child, "ready") is not None, children)


def wrong_results(children: Sequence[Child]) -> int:
    """Wrong results that ended tenants reported themselves; a tenant without a report counts as one."""
    total = 0
    for child in children:
        summary = said(child, "wrong_results")
        total += 1 if summary is None else summary["wrong_results"]
    return total


def sleep_until(time_ns: int, children: List[Child]) -> None:
    """Sleeps until a time of CLOCK_MONOTONIC; fails if a child ends."""
    while True:
        for child in children:
            child.check_alive()
        left = (time_ns - time.monotonic_ns()) / 1e9
        if left <= 0:
            return
        time.sleep(min(left, 0.2))
