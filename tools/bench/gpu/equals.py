"""Equals below an important program: which part of its rate alone each keeps while all of them take turns, once that program has
just worked and beside its requests. An equal part for each of n is an n-th, and a little more, since others pause.

Thread rule: main thread.
"""

import itertools
import statistics
from typing import Dict, List

import figures
from bench import Bench
from scenarios import PROGRAMS
from tracked import BESIDE, RECENT, RECENT_S

SETS = (("train0", "cupy"), ("networks", "jax"), ("steps", "cupy"), ("train0", "cupy", "networks", "jax"))
ROUNDS, ALONE_S, SECONDS = 2, 1.5, 4.0


def equals(bench: Bench) -> None:
    rig = bench.rig(daemon=bench.daemon(bench.policy()))
    tenants = {name: rig.start(PROGRAMS[name]) for name in dict.fromkeys(itertools.chain(*SETS))}
    graph = rig.start(PROGRAMS["graph"])
    rig.wait_ready()

    def rates(names, seconds: float, way: str = RECENT) -> Dict[str, float]:
        those = [tenants[name] for name in names]
        rig.stretch([graph], RECENT_S)
        answers = rig.stretch([*those, graph] if way == BESIDE else those, seconds)
        return {name: figures.batches_per_s(answers[name]) for name in names}

    alone: Dict[str, List[float]] = {name: [] for name in tenants}
    parts: Dict[tuple, List[Dict[str, float]]] = {(names, way): [] for names in SETS for way in (RECENT, BESIDE)}
    for _ in range(ROUNDS):
        for name, each in alone.items():
            each.append(rates([name], ALONE_S)[name])
        for (names, way), each in parts.items():
            each.append({name: rate / alone[name][-1] for name, rate in rates(names, SECONDS, way).items()})
    for (names, way), each in parts.items():
        bench.note(f"equals {', '.join(names)}: {way}", {name: statistics.median(one[name] for one in each) for name in names})
    bench.close(rig)
