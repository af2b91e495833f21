"""Where the time of a request went: whose kernels ran on the GPU while it waited, from the kernels of all tenants.

Thread rule: pure functions. All times are ns of CLOCK_MONOTONIC, durations ms.
"""

import bisect
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from benchlib.figures import quantile

Interval = Tuple[int, int]
Kernel = Tuple[int, int, str]  # start, end, name


@dataclass
class Request:
    """Where the time of one request of the important tenant went. Copies count as waiting: they run on separate engines."""

    latency_ms: float
    known_ms: Optional[float]  # from its arrival until the daemon knew the tenant busy
    shut_ms: Optional[float]  # until the daemon had shut the others' gates
    others_before_ms: float  # others' kernels ran, before its own first
    idle_before_ms: float  # nothing ran, before its own first: the host, the driver, a context switch
    own_ms: float  # one of its own kernels ran
    others_between_ms: float  # between its first kernel and its last
    idle_between_ms: float
    after_ms: float  # from its last kernel to the result on the host
    first_left_ms: float  # remaining time of another tenant's kernel that ran when it arrived
    later: int  # others' kernels that began after its arrival and before its first
    later_ms: float
    tenants: int  # number of tenants whose these were
    longest: str  # the longest of the others' kernels before its first: name and duration


def merged(intervals: Sequence[Interval]) -> List[Interval]:
    """Sorted, without overlap."""
    result: List[Interval] = []
    for start, end in sorted(intervals):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def covered(intervals: Sequence[Interval], begin: int, end: int) -> int:
    """How much of the time from `begin` to `end` the merged intervals cover."""
    total, index = 0, max(0, bisect.bisect_left(intervals, (begin, begin)) - 1)
    while index < len(intervals) and intervals[index][0] < end:
        total += max(0, min(intervals[index][1], end) - max(intervals[index][0], begin))
        index += 1
    return total


def analyse(requests: Sequence[Tuple[int, float]], own: Sequence[Kernel], others: Dict[str, Sequence[Kernel]],
               known: Sequence[int] = (), shut: Sequence[int] = ()) -> List[Request]:
    """`requests`: begin, and latency in ms; `known`, `shut`: when the daemon learnt that the tenant was busy, and shut others'
    gates for it. A request without kernels of its own (the recorder loses some) is left out."""
    everybody = sorted((start, end, name, tenant) for tenant, kernels in others.items() for start, end, name in kernels)
    union = merged([(start, end) for start, end, _, _ in everybody])
    starts = [kernel[0] for kernel in everybody]
    longest = max((end - start for start, end, _, _ in everybody), default=0)
    result = []
    for started, latency_ms in requests:
        ended = started + round(latency_ms * 1e6)
        mine = merged([(start, end) for start, end, _ in own if started <= start and end <= ended])
        if not mine:
            continue
        first, last = mine[0][0], mine[-1][1]
        near = everybody[bisect.bisect_left(starts, started - longest):bisect.bisect_left(starts, first)]
        left = max((end - started for start, end, _, _ in near if start <= started < end), default=0)
        later = [kernel for kernel in near if kernel[0] > started]
        waited_for = [kernel for kernel in near if kernel[1] > started]
        worst = max(waited_for, key=lambda kernel: kernel[1] - kernel[0], default=None)
        before, own_ns = covered(union, started, first), sum(end - start for start, end in mine)
        # Time in which kernels of two tenants run side by side counts as the request's own.
        between = sum(covered(union, end, start) for (_, end), (start, _) in zip(mine, mine[1:]))
        result.append(Request(
            latency_ms=latency_ms, known_ms=since(known, started, ended), shut_ms=since(shut, started, ended),
            others_before_ms=before / 1e6, idle_before_ms=(first - started - before) / 1e6, own_ms=own_ns / 1e6,
            others_between_ms=between / 1e6, idle_between_ms=(last - first - own_ns - between) / 1e6,
            after_ms=(ended - last) / 1e6, first_left_ms=left / 1e6, later=len(later),
            later_ms=sum(end - start for start, end, _, _ in later) / 1e6, tenants=len({kernel[3] for kernel in waited_for}),
            longest=f"{worst[2][:48]} {(worst[1] - worst[0]) / 1e3:.0f} µs of {worst[3]}" if worst else "none"))
    return result


def since(moments: Sequence[int], started: int, ended: int) -> Optional[float]:
    """From `started` to the first of the sorted moments, if before `ended`, in ms."""
    index = bisect.bisect_left(moments, started)
    return (moments[index] - started) / 1e6 if index < len(moments) and moments[index] < ended else None


PARTS = ("latency_ms", "known_ms", "shut_ms", "others_before_ms", "idle_before_ms", "own_ms", "others_between_ms", "idle_between_ms",
         "after_ms", "first_left_ms", "later", "later_ms", "tenants")


def means(requests: Sequence[Request]) -> Dict[str, Optional[float]]:
    """The mean of each part over the requests that have it. The parts of the latency, which all have, add up to its mean."""
    result: Dict[str, Optional[float]] = {"count": len(requests)}
    for part in PARTS:
        values = [value for value in (getattr(request, part) for request in requests) if value is not None]
        result[part] = sum(values) / len(values) if values else None
    return result


def digest(requests: Sequence[Request]) -> Dict[str, dict]:
    """Where the time of the fastest tenth, the tenth around the median and the slowest twentieth went."""
    ordered, count = sorted(requests, key=lambda request: request.latency_ms), len(requests)
    if not ordered:
        return {}
    groups = {"fastest tenth": ordered[:max(1, count // 10)],
              "around the median": ordered[int(count * 0.45):max(int(count * 0.45) + 1, int(count * 0.55))],
              "slowest twentieth": ordered[-max(1, count // 20):], "all": ordered}
    result = {name: means(group) for name, group in groups.items()}
    result["all"]["p50_ms"] = quantile([request.latency_ms for request in ordered], 0.5)
    result["all"]["p99_ms"] = quantile([request.latency_ms for request in ordered], 0.99)
    return result
