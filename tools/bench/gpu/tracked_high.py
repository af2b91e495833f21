"""What the important program of a scenario pays on its own host for being tracked, and for what is then done to those below
it: in the same processes, by short turns, because a host's speed varies by more than that.

Thread rule: main thread.
"""

import time
from contextlib import nullcontext
from typing import Dict, List

import figures
from bench import Bench
from benchlib import agent
from benchlib.figures import quantile
from levers import equals, only_of
from rig import Rig
from scenarios import SCENARIOS, Load, Scenario, programs_of

STRETCH_S = 0.6
# Alone, and with the others at work: all equals, thus untracked; above them. BESIDE lets those below run, HELD holds them.
UNTRACKED, TRACKED, EQUAL, BESIDE, HELD = "untracked", "tracked", "others, equal", "others, beside", "others, held"
WAYS = (UNTRACKED, TRACKED, EQUAL, BESIDE, HELD)


def once(rig: Rig, scenario: Scenario, way: str) -> Dict[str, float]:
    """Of a stretch: the median latency; of the host's part the fastest tenth, which most stretches reach whatever else the
    machine does; in ms. The agent's wake-ups a second."""
    high = scenario.high.program
    names = [high] if way in (UNTRACKED, TRACKED) else [high, *scenario.background]
    rig.daemon.ask("policy", "set", "--tolerance", "100" if way == BESIDE else "0")
    tenants = [tenant for tenant in rig.tenants if tenant.name in names]
    pid = next(tenant.child.pid for tenant in tenants if tenant.name == high)
    begun, wakes = time.monotonic(), agent.wakes(pid)
    answer = rig.stretch(tenants, STRETCH_S, {high: Load(0)})[high]
    wakes, took_s = agent.wakes(pid) - wakes, time.monotonic() - begun
    whole, waits = figures.latencies(answer), figures.waited(answer)
    return {"p50_ms": quantile(whole, 0.5), "host_p10_ms": quantile([ms - wait for ms, wait in zip(whole, waits)], 0.1),
            "wakes_per_s": wakes / took_s}


def tracked_high(bench: Bench) -> None:
    scenarios = [SCENARIOS[name] for name in bench.options.scenarios]
    rig = bench.rig(daemon=bench.daemon(bench.policy()))
    for program in programs_of(scenarios):
        rig.start(program)
    rig.wait_ready()
    for scenario in scenarios:
        only_of(scenario, rig)
        found: Dict[str, List[Dict[str, float]]] = {way: [] for way in WAYS}
        for number in range(-1, bench.options.rounds):
            for way in WAYS if number % 2 == 0 else WAYS[::-1]:
                with equals(scenario, rig) if way in (UNTRACKED, EQUAL) else nullcontext():
                    result = once(rig, scenario, way)
                if number >= 0:  # the first round warms up
                    found[way].append(result)
        bench.note(f"tracked-high {scenario.name}", found)
    bench.close(rig)
