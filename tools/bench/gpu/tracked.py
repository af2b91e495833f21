"""What a program loses by being tracked below an important one, in the same processes by turns: two processes of a program
are not alike, and torch.compile gives each other kernels.

Thread rule: main thread.
"""

import contextlib
import statistics
from collections import defaultdict
from typing import Dict, Iterator, List, Sequence

import figures
from bench import Bench
from rig import Rig, Tenant

# Without xschedd's doing; tracked without a window; with that of a program below an important one that has just worked, and
# of one below an important one that has not for longer than Arbiter::kAwayNs, for which a stretch begins AWAY_S later; beside
# requests of the important one.
DISABLED, NO_WINDOW, RECENT, AWAY, BESIDE = ("disabled", "tracked, no window", "important one just worked", "important one away",
                                             "beside the important one")
AWAY_S = 10.5
RECENT_S = 0.3  # of the important one's work


@contextlib.contextmanager
def disabled(rig: Rig) -> Iterator[None]:
    rig.daemon.ask("disable")
    try:
        yield
    finally:
        rig.daemon.ask("enable")


def by_turns(bench: Bench, rig: Rig, tenants: Sequence[Tenant], high: Tenant, ways: Sequence[str], rounds: int,
             seconds: float, name: str, learn_s: float = 0) -> None:
    """`rounds` stretches of each way, of which DISABLED is the first; the order alternates. Keeps the medians under `name` and the
    way. `kept`: of the rate while disabled in the same round. `learn_s`: how long all work together first, in which
    the daemon learns; it still knows when xschedd is enabled again."""
    found: Dict[str, List[dict]] = defaultdict(list)
    window_us = rig.daemon.ask("policy", "get")["window_us"]
    if learn_s:
        rig.stretch([*tenants, high], learn_s)
    for number in range(rounds):
        for way in ways[:: 1 if number % 2 == 0 else -1]:
            if way in (NO_WINDOW, RECENT):
                rig.stretch([high], RECENT_S)
            rig.daemon.ask("policy", "set", "--window", f"{0 if way == NO_WINDOW else window_us}us")
            with disabled(rig) if way == DISABLED else contextlib.nullcontext():
                answers = rig.stretch([*tenants, high] if way == BESIDE else tenants, seconds)
            found[way].append(figures.summary(answers, high.name if way == BESIDE else None))
    rig.daemon.ask("policy", "set", "--window", f"{window_us}us")
    for way in ways:
        median: dict = {key: statistics.median(each[key] for each in found[way]) for key in ("total_per_s", "cores_each")}
        median["rates"] = {tenant.name: statistics.median(each["rates"][tenant.name] for each in found[way]) for tenant in tenants}
        median["kept"] = statistics.median(ours["total_per_s"] / its["total_per_s"] for ours, its in zip(found[way], found[DISABLED]))
        if way == BESIDE:
            median["high"] = {key: statistics.median(each["high"][key] for each in found[way]) for key in found[way][0]["high"]}
        bench.note(f"{name}, {way}", median)
