"""The figures of the demo, each a pure function of what was recorded. docs/demo.md says what they mean and why so.

Thread rule: pure functions.
"""

import math
from typing import List, Optional, Sequence, Tuple

from .records import Request

MS = 1_000_000


def quantile(values: Sequence[float], fraction: float) -> float:
    """Nearest rank: one of the values, never one between them. NaN without values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


def in_window(requests: Sequence[Request], start_ns: int, end_ns: int) -> List[Request]:
    """Requests count where they arrived, wherever they ended."""
    return [request for request in requests if start_ns <= request.arrival_ns < end_ns]


def longest_busy_stretch(requests: Sequence[Request]) -> Tuple[int, int]:
    """Begin and end of the longest time during which the tenant always had a request to work on."""
    best = (0, 0)
    begin = end = 0
    for request in requests:
        if request.arrival_ns > end:
            begin = request.arrival_ns
        end = max(end, request.done_ns)
        if end - begin > best[1] - best[0]:
            best = (begin, end)
    return best


def caught_up_ns(requests: Sequence[Request], after_ns: int) -> Optional[int]:
    """When the backlog was worked off: the first arrival after `after_ns` that was served at once."""
    for request in requests:
        if request.arrival_ns > after_ns and request.latency_ms - request.service_ms < 1.0:
            return request.arrival_ns
    return None


def down_visible_ns(requests: Sequence[Request], neighbour_starts: Sequence[int], command_ns: int,
                    settle_ns: int) -> Optional[int]:
    """The first neighbour's kernel that starts after the command in the midst of a request: since `settle_ns` a request
    was being served, so under the old priorities the device was the request tenant's."""
    for start in neighbour_starts:
        if start < command_ns:
            continue
        if any(request.begun_ns + settle_ns <= start < request.done_ns for request in requests):
            return start
    return None


def up_visible_ns(neighbour_ends: Sequence[int], command_ns: int, gap_ns: int) -> Optional[int]:
    """When the device became the request tenant's: the end of the first neighbour's kernel after the command that no
    other neighbour's kernel follows for `gap_ns`. (The tenant has a backlog then: its gate is all that it waits for.)"""
    ends = [end for end in neighbour_ends if end >= command_ns]
    for this, following in zip(ends, ends[1:]):
        if following - this >= gap_ns:
            return this
    return None


def throughput_kept(neighbours: float, neighbours_only: float, device_share: float) -> float:
    """Part of what the request tenant leaves over that the neighbours got."""
    left_over = neighbours_only * (1.0 - device_share)
    return neighbours / left_over if left_over > 0 else math.nan
