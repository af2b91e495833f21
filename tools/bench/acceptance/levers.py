"""By --levers, for AMD: what the priority of a process's own queues and their CU mask give while others run, and what a change
of either costs everybody. Nobody has published that for gfx942, and each change removes the queues of every process for a
moment, so that the daemon uses neither.

Queues get both when they are made, as HIP's streams; the cost of a change is measured with a queue of its own (hsa_queue.py).

Thread rule: `gains_of` and `costs_of` are pure; `run` starts programs from the main thread.
"""

import json
import subprocess
from typing import Dict, List, Tuple

from benchlib.figures import quantile
from benchlib.processes import Children, ToolError
from frame import NO_TIME, Row, Skipped, Table
from kernels import HALF, HIGH, LOW, QUEUE
from place import Place
from scenarios import Load, Program
from scenes import BUSY, order_of
from turns import NATIVE, NotHere, TurnsRig

WANTED_S, LEAST_S, START_S = 60.0, 25.0, 12.0
ROUNDS = 2
SERVICE, OTHER = "service", "other"
ALONE, PLAIN = "alone", "beside another, both as they are"
# By way: the queues of the important program, and those of the other; None: it does not run.
WAYS: Dict[str, Tuple[str, object]] = {
    ALONE: ("", None), PLAIN: ("", ""), "its queues have high priority": (HIGH, ""), "the other's have low priority": ("", LOW),
    "both": (HIGH, LOW), "the other's may use half of the compute units": ("", HALF)}
QUIET = "none"
CHANGES = {"priorities": "a queue's priority, 100 times a second", "masks": "a queue's CU mask, 100 times a second"}
LOAD = Load(20, "periodic")

Answers = List[Dict[str, dict]]


def p50_p99(rounds: Answers, name: str = SERVICE) -> Tuple[float, float]:
    values = [ms for answers in rounds for _, ms in answers[name]["requests"]]
    return quantile(values, 0.5), quantile(values, 0.99)


def batches(rounds: Answers) -> int:
    return sum(len(answers[OTHER]["ends_ns"]) for answers in rounds)


def gains_of(rounds: Dict[str, Answers]) -> Table:
    """`rounds`: by way, the answers by SERVICE and OTHER."""
    alone, plain = p50_p99(rounds[ALONE]), batches(rounds[PLAIN])
    rows = [Row(way, [*(value / reference for value, reference in zip(p50_p99(answers), alone)), 100 * batches(answers) / max(1, plain)])
            for way, answers in rounds.items() if way != ALONE]
    return Table("What AMD's levers give, without xschedd", ["p50, times alone", "p99, times alone", "the other keeps, %"], rows)


def costs_of(stretches: Dict[str, Dict[str, dict]]) -> Table:
    """`stretches`: by QUIET and the names of CHANGES, the answers of the important program, alone, and of who changed."""
    quiet = p50_p99([stretches[QUIET]])
    rows = []
    for name, text in CHANGES.items():
        took = [ns / 1e6 for ns in stretches[name][name]["change_ns"]]
        meanwhile = p50_p99([stretches[name]])
        rows.append(Row(text, [quantile(took, 0.5), quantile(took, 0.99), len(took),
                               *(value / reference for value, reference in zip(meanwhile, quiet))]))
    return Table("What a change of AMD's levers costs", ["p50 of the call, ms", "p99, ms", "seen", "another program's p50 meanwhile, times without",
                                                        "its p99, times without"], rows)


def measure(place: Place, seconds: float) -> List[Table]:
    with Children(place.folder) as children:
        rig = TurnsRig(place, children, NATIVE)

        def start(name: str, kind: str, model: str, queue: str = ""):
            return rig.start(Program(name, kind, model, 0), {QUEUE: queue} if queue else None)

        services = {queue: start(SERVICE, "request", "4x2000", queue) for queue in ("", HIGH)}
        others = {queue: start(OTHER, "loop", BUSY, queue) for queue in ("", LOW, HALF)}
        changers = {name: start(name, name, "1x10000") for name in CHANGES}
        rig.wait_ready()
        length = max(1.0, (seconds - START_S) / (ROUNDS * len(WAYS) + len(CHANGES) + 1))
        rounds: Dict[str, Answers] = {way: [] for way in WAYS}
        for number in range(ROUNDS):
            for way in order_of(list(WAYS), number):
                mine, its = WAYS[way]
                those = [services[mine], *([others[its]] if its is not None else [])]
                rounds[way].append(rig.stretch(those, length, {SERVICE: LOAD}))
        stretches = {name: rig.stretch([services[""], *([changers[name]] if name in changers else [])], length, {SERVICE: LOAD})
                     for name in (QUIET, *CHANGES)}
        rig.stop()
    return [gains_of(rounds), costs_of(stretches)]


def is_amd(place: Place) -> bool:
    found = json.loads(place.run(place.probe, 60).stdout or '{"found": []}')["found"]
    return bool(found) and found[0]["vendor"] == "amd"


def run(place: Place) -> Tuple[List[Table], List[Skipped]]:
    what = "AMD's levers"
    try:
        if not is_amd(place):
            return [], [Skipped(what, "the GPU is not one of AMD's")]
        if place.left_s() < LEAST_S:
            return [], [Skipped(what, NO_TIME)]
        return measure(place, min(WANTED_S, place.left_s() - 5)), []
    except (ToolError, NotHere, subprocess.TimeoutExpired) as error:
        return [], [Skipped(what, " ".join(str(error).split()))]
