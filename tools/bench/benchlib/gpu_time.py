"""How long the device worked for each tenant, from the software GPU's trace.

Thread rule: pure functions and values.
"""

import bisect
import math
from typing import List, Sequence, Tuple

from .records import Dispatch

STEP_NS = 10_000_000
SECOND_NS = 1_000_000_000


class GpuTime:
    """GPU time of one tenant. Overlapping kernels count once."""

    def __init__(self, dispatches: Sequence[Dispatch]):
        self._starts: List[int] = []
        self._ends: List[int] = []
        for dispatch in sorted((one for one in dispatches if one.kind != "copy"), key=lambda one: one.start_ns):
            if self._ends and dispatch.start_ns <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], dispatch.end_ns)
            else:
                self._starts.append(dispatch.start_ns)
                self._ends.append(dispatch.end_ns)
        self._before = [0]  # time in the intervals before each one; at the end, in all
        for start, end in zip(self._starts, self._ends):
            self._before.append(self._before[-1] + end - start)

    def _until(self, time_ns: int) -> int:
        index = bisect.bisect_right(self._starts, time_ns)
        if index == 0:
            return 0
        return self._before[index - 1] + min(time_ns, self._ends[index - 1]) - self._starts[index - 1]

    def between(self, start_ns: int, end_ns: int) -> int:
        return self._until(end_ns) - self._until(start_ns)


def worst_share_error(tenants: Tuple[GpuTime, GpuTime], due: float, start_ns: int, end_ns: int) -> float:
    """The largest deviation of the first tenant's share from `due` in any second between the two times, in percentage points.
    NaN if there is no whole second."""
    worst = math.nan
    for begin in range(start_ns, end_ns - SECOND_NS + 1, STEP_NS):
        first, second = (tenant.between(begin, begin + SECOND_NS) for tenant in tenants)
        if first + second > 0:
            error = abs(first / (first + second) - due) * 100
            worst = error if math.isnan(worst) else max(worst, error)
    return worst
