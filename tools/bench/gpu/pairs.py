"""Each scenario in short alternating stretches: alone, natively, under MPS's priority, under xschedd, and again. If the host
spends most of a request on launching, its core's speed decides, and on a shared host that varies by a factor of two from one
second to the next: only stretches that are close in time can be compared.

Thread rule: main thread.
"""

from typing import Dict, List, Optional

import figures
from beside import mps_server
from bench import Bench
from rig import Rig, cores_of
from scenarios import LOW, SCENARIOS, programs_of

STRETCH_S = 3.0


def by_turns(bench: Bench, substrate: str, rigs: Dict[str, Rig], low: Dict[str, Dict[str, str]],
             above: Optional[Dict[str, Dict[str, str]]] = None) -> None:
    """`low`, `above`: by way, what is added to the environment of those below, and of the others."""
    scenarios = [SCENARIOS[name] for name in bench.options.scenarios]
    tenants = {way: {program.name: rig.start(program, (low if program.priority == LOW else above or {}).get(way))
                     for program in programs_of(scenarios)} for way, rig in rigs.items()}
    for rig in rigs.values():
        rig.wait_ready()
    for scenario in scenarios:
        high = scenario.high.program
        names = [asked.program for asked in scenario.asked] + list(scenario.background)
        loads = {asked.program: asked.load for asked in scenario.asked}
        rounds: List[Dict[str, dict]] = []
        for number in range(-1, bench.options.rounds):
            ways = list(rigs) if number % 2 == 0 else list(rigs)[::-1]
            cores = cores_of(names, number)
            answers = {"alone": rigs["native"].stretch([tenants["native"][high]], STRETCH_S, loads, cores=cores)}
            for way in ways:
                answers[way] = rigs[way].stretch([tenants[way][name] for name in names], STRETCH_S, loads, cores=cores)
            if number >= 0:  # the first round warms up
                rounds.append(answers)
        bench.note(f"pairs {substrate} {scenario.name}", figures.by_turns(rounds, high))
    for rig in rigs.values():
        bench.close(rig)


def time_sliced(bench: Bench) -> None:
    by_turns(bench, "time-sliced", {"native": bench.rig(), "xschedd": bench.rig(daemon=bench.daemon(bench.policy()))}, {})


def mps(bench: Bench) -> None:
    with mps_server(bench) as (environment, low):
        by_turns(bench, "mps", {"native": bench.rig(environment), "mps priority": bench.rig(environment),
                                "xschedd": bench.rig(environment, bench.daemon(bench.policy()))},
                 {"mps priority": low, "xschedd": low})


# A stream of the highest priority that CUDA has, in the important tenants.
STREAM = {"TENANT_STREAM_PRIORITY": "-5"}


def streams(bench: Bench) -> None:
    """What the driver's stream priorities achieve."""
    by_turns(bench, "time-sliced streams", {"native": bench.rig(), "native, high stream": bench.rig(),
                                            "xschedd, high stream": bench.rig(daemon=bench.daemon(bench.policy()))},
             {}, {"native, high stream": STREAM, "xschedd, high stream": STREAM})


def streams_mps(bench: Bench) -> None:
    with mps_server(bench) as (environment, low):
        by_turns(bench, "mps streams", {"native": bench.rig(environment), "native, high stream": bench.rig(environment),
                                        "xschedd, high stream":
                                            bench.rig(environment, bench.daemon(bench.policy()))},
                 {"xschedd, high stream": low}, {"native, high stream": STREAM, "xschedd, high stream": STREAM})
