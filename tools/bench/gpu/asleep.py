"""What others lose below an important program that is attached but idle, like a notebook at night: natively, as the daemon
decides, and below one that is `strict`, whose device must be ready for it at any time.

Thread rule: main thread.
"""

import time
from typing import Dict, List

import figures
from bench import Bench
from scenarios import PROGRAMS

STRETCH_S = 2.0
FALLS_ASLEEP_S = 10.5  # daemon/policy/arbiter.h, kAwayNs
IMPORTANT = PROGRAMS["bert"]
OTHERS = ("cupy", "jax", "bert64", "loop0")
WAYS = ("native", "asleep", "strict")


def asleep(bench: Bench) -> None:
    rigs = {"native": bench.rig(), "xschedd": bench.rig(daemon=bench.daemon(bench.policy()))}
    others = {place: {name: rig.start(PROGRAMS[name]) for name in OTHERS} for place, rig in rigs.items()}
    important = rigs["xschedd"].start(IMPORTANT)
    for rig in rigs.values():
        rig.wait_ready()
    time.sleep(FALLS_ASLEEP_S)

    def stretch(way: str, name: str) -> float:
        place = "native" if way == "native" else "xschedd"
        if place == "xschedd":
            rigs[place].daemon.ask("set", str(important.child.pid), "--latency", "strict" if way == "strict" else "auto")
        return figures.batches_per_s(rigs[place].stretch([others[place][name]], STRETCH_S)[name])

    result: Dict[str, Dict[str, List[float]]] = {}
    for name in OTHERS:
        rates: Dict[str, List[float]] = {way: [] for way in WAYS}
        for number in range(-1, bench.options.lever_rounds):
            for way in WAYS if number % 2 == 0 else WAYS[::-1]:
                rate = stretch(way, name)
                if number >= 0:  # the first round warms up
                    rates[way].append(rate)
        result[name] = rates
    bench.note("asleep", result)
    for rig in rigs.values():
        bench.close(rig)
