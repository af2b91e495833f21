"""The figures of the demo, each a pure function of the records. docs/tutorial/demo.md explains them.

Thread rule: pure functions.
"""

import math
from typing import List, Optional, Sequence, Tuple

from .records import Request

MS = 1_000_000


def quantile(values: Sequence[float], fraction: float) -> float:
    """Nearest rank: always one of the values, not an interpolation. NaN without values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


def in_window(requests: Sequence[Request], start_ns: int, end_ns: int) -> List[Request]:
    """Requests count in the window in which they arrive, whenever they end."""
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


def first_within(times: Sequence[int], after_ns: int, intervals: Sequence[Tuple[int, int]]) -> Optional[int]:
    """The first of `times` after `after_ns` that lies in one of `intervals`."""
    for time_ns in times:
        if time_ns >= after_ns and any(begin <= time_ns < end for begin, end in intervals):
            return time_ns
    return None


def served_intervals(requests: Sequence[Request], kernel_starts: Sequence[int], settle_ns: int,
                     wait_ns: int) -> List[Tuple[int, int]]:
    """When the request tenant would have the device under its high priority: from `settle_ns` after the first kernel of a
    request, or `wait_ns` after its begin if no kernel has started so soon, until its last one started. A request without
    two kernels gives no interval."""
    intervals = []
    for request in requests:
        starts = [start for start in kernel_starts if request.begun_ns <= start < request.done_ns]
        if len(starts) < 2:
            continue
        begin = min(starts[0] + settle_ns, request.begun_ns + wait_ns)
        if begin < starts[-1]:
            intervals.append((begin, starts[-1]))
    return intervals


def handed_over_ns(neighbour_ends: Sequence[int], after_ns: int, gap_ns: int) -> Optional[int]:
    """When the request tenant got the device to itself: the end of the first neighbour's kernel that no other neighbour's
    kernel follows within `gap_ns`."""
    ends = [end for end in neighbour_ends if end >= after_ns]
    for this, following in zip(ends, ends[1:]):
        if following - this >= gap_ns:
            return this
    return None


def throughput_kept(neighbours: float, neighbours_only: float, device_share: float) -> float:
    """The part that the neighbours got of what the request tenant leaves."""
    left_over = neighbours_only * (1.0 - device_share)
    return neighbours / left_over if left_over > 0 else math.nan
