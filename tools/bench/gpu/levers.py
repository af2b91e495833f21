"""What each lever achieves, and which ones the daemon uses: every scenario in short alternating stretches, alone, natively,
with those below held or beside and with or without time slices, and as the daemon decides.

Thread rule: main thread.
"""

from collections import Counter
from contextlib import contextmanager, nullcontext
from typing import Callable, Dict, Iterator, List, Tuple

import figures
from beside import mps_server
from bench import Bench
from figures import DECIDED, EQUALS
from rig import Rig, cores_of
from scenarios import LOW, SCENARIOS, Scenario, programs_of

STRETCH_S, SHIFTING_S = 3.0, 12.0
# The daemon first tries other modes for some bursts of work, each two to thirty times (daemon/policy/benefit.h): the fewer
# requests a second, the longer that takes. How many take turns at a time, and which join them (daemon/policy/filling.h),
# has 35 s for each program.
LEARN_S, LEARN_MOST_S, LEARN_TURNS_S = 20.0, 200.0, 35.0

BESIDE = ("priority", "--tolerance", "100", "--step-aside", "off")
# Each lever, as arguments of `xschedctl policy set`, for one daemon that decides nothing itself; under MPS windows are four
# times as large as their names say. `fifo` is the reference in
# the same processes: a host-bound loop may have a slower core in another, native process.
LEVERS = {
    "fifo": ("fifo", "--time-slices", "off", "--window", "500us"),
    "held": ("priority", "--tolerance", "0", "--time-slices", "off", "--window", "500us"),
    "beside": (*BESIDE, "--time-slices", "off", "--window", "500us"),
    "beside, 1 ms": (*BESIDE, "--time-slices", "off", "--window", "1ms"),
    "beside, 2 ms": (*BESIDE, "--time-slices", "off", "--window", "2ms"),
    "beside, 20 ms": (*BESIDE, "--time-slices", "off", "--window", "20ms"),
    "held, slices": ("priority", "--tolerance", "0", "--time-slices", "auto", "--window", "500us"),
    "held, slices, 4 ms": ("priority", "--tolerance", "0", "--time-slices", "auto", "--window", "4ms"),
    "beside, slices": (*BESIDE, "--time-slices", "auto", "--window", "500us"),
    "beside, untracked": ("priority", "--tolerance", "100", "--step-aside", "auto", "--time-slices", "off", "--window", "500us")}
USUAL = ("held", "beside")  # the others are optional: each adds a stretch to every round of every scenario


def decided(rig: Rig, scenario: Scenario) -> Dict[str, dict]:
    """For each client of the scenario, by its program's name: the measured benefit, and its time slices."""
    parts = {*(asked.program for asked in scenario.asked), *scenario.background}
    names = {tenant.child.pid: tenant.name for tenant in rig.tenants if tenant.name in parts}
    return {names[client["pid"]]: {"benefit": client["benefit"], "slices": [device["slice"] for device in client["devices"]]}
            for client in rig.daemon.ask("ps")["clients"] if client["pid"] in names}


def learn(work: Callable[[], object], decided_now: Callable[[], Dict[str, dict]], least_s: float) -> float:
    """Works, LEARN_S at a time, until each measured benefit has led to an answer and no search is under way, and for
    `least_s`. Returns the seconds of work."""
    learnt_s = 0.0
    while learnt_s < LEARN_MOST_S:
        work()
        learnt_s += LEARN_S
        benefits = [its["benefit"] for its in decided_now().values() if its["benefit"]]
        if learnt_s >= least_s and all(benefit["is_settled"] and not benefit["is_searching"] for benefit in benefits):
            break
    return learnt_s


def only_of(scenario: Scenario, rig: Rig) -> None:
    """Puts programs outside the scenario below those in it: an idle one above would keep their windows small."""
    parts = {asked.program for asked in scenario.asked}
    for tenant in rig.tenants:
        priority = tenant.program.priority if tenant.name in parts | set(scenario.background) else LOW
        rig.daemon.ask("set", str(tenant.child.pid), "--priority", str(priority))


@contextmanager
def equals(scenario: Scenario, rig: Rig) -> Iterator[None]:
    """All have one priority meanwhile: nothing is tracked, and the daemon keeps what it knows."""
    for tenant in rig.tenants:
        rig.daemon.ask("set", str(tenant.child.pid), "--priority", str(LOW))
    try:
        yield
    finally:
        only_of(scenario, rig)


def by_turns(bench: Bench, substrate: str, unscheduled: Dict[str, Tuple[Rig, Dict[str, str]]], scheduled: Dict[str, Rig],
             low: Dict[str, str], levers: Dict[str, Tuple[str, ...]]) -> None:
    """`unscheduled`: by way, its rig and the environment of its low-priority tenants; `scheduled`: the rig whose daemon has
    its levers set, and the one whose daemon decides; `low`: the environment of their low-priority tenants."""
    scenarios = [SCENARIOS[name] for name in bench.options.scenarios]
    environments = {**unscheduled, **{way: (rig, low) for way, rig in scheduled.items()}}
    rigs = {way: rig for way, (rig, _) in environments.items()}
    tenants = {way: {program.name: rig.start(program, below if program.priority == LOW else None)
                     for program in programs_of(scenarios)} for way, (rig, below) in environments.items()}
    for rig in rigs.values():
        rig.wait_ready()

    def stretch(way: str, scenario: Scenario, seconds: float, cores: Dict[str, int]) -> Dict[str, dict]:
        loads = {asked.program: asked.load for asked in scenario.asked}
        place = "levers" if way in levers else DECIDED if way == EQUALS else way
        if way in levers:
            rigs[place].daemon.ask("policy", "set", *levers[way])
        those = [tenants[place][name] for name in [*loads, *scenario.background]]
        with equals(scenario, rigs[place]) if way == EQUALS else nullcontext():
            return rigs[place].stretch(those, seconds, loads, cores=cores, spans=scenario.spans)

    for scenario in scenarios:
        for place in ("levers", DECIDED):
            if place in rigs:
                only_of(scenario, rigs[place])
        high, stretch_s = scenario.high.program, SHIFTING_S if scenario.shifts else STRETCH_S
        ways = [*unscheduled, *levers, EQUALS, DECIDED]
        modes: Counter = Counter()  # at the end of each stretch: asking during one takes cores from the programs
        rounds: List[Dict[str, dict]] = []
        names = [*(asked.program for asked in scenario.asked), *scenario.background]
        others = len(scenario.background)
        learnt_s = learn(lambda: stretch(DECIDED, scenario, LEARN_S, cores_of(names, 0)), lambda: decided(rigs[DECIDED], scenario),
                         LEARN_TURNS_S * others if others > 2 else 0)
        for number in range(-1, bench.options.lever_rounds):
            cores = cores_of(names, number)
            answers = {"alone": rigs["native"].stretch([tenants["native"][high]], stretch_s, {high: scenario.high.load},
                                                       cores=cores)}
            for way in ways if number % 2 == 0 else ways[::-1]:
                # In the first round the programs warm up.
                answers[way] = stretch(way, scenario, stretch_s if number >= 0 else 2.0, cores)
                if way == DECIDED and number >= 0:
                    benefit = decided(rigs[DECIDED], scenario)[high]["benefit"]
                    modes.update([benefit["mode"]] if benefit else [])
            if number >= 0:
                rounds.append(answers)
        bench.note(f"levers {substrate} {scenario.name}",
                   {**figures.of_levers(rounds, high), "decided": decided(rigs[DECIDED], scenario), "modes": dict(modes),
                    "learnt_s": learnt_s})
    for rig in rigs.values():
        bench.close(rig)


def time_sliced(bench: Bench) -> None:
    by_turns(bench, "time-sliced", {"native": (bench.rig(), {})},
             {"levers": bench.rig(daemon=bench.daemon()), DECIDED: bench.rig(daemon=bench.daemon(bench.policy()))}, {},
             {name: LEVERS[name] for name in bench.options.levers})


def mps(bench: Bench) -> None:
    """Time slices have no effect: under MPS its server is one process to the driver."""
    with mps_server(bench) as (environment, low):
        by_turns(bench, "mps", {"native": (bench.rig(environment), {}), "mps priority": (bench.rig(environment), low)},
                 {way: bench.rig(environment, bench.daemon(bench.policy())) for way in ("levers", DECIDED)},
                 low, {name: LEVERS[name] for name in bench.options.levers})
