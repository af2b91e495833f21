"""Which waits remain: scenarios in which every tenant records its kernels and the daemon its events, and each request of the
important tenant is analysed. Recording itself costs time, so these are not the scenarios' figures.

Thread rule: main thread.
"""

import json
import os
from dataclasses import asdict
from typing import Dict, List, Optional, Sequence

import waits
from beside import mps_server
from bench import Bench
from benchlib.records import moments
from rig import Rig, Tenant
from scenarios import LOOPS, PROGRAMS, SCENARIOS, Load

SECONDS = 4.0
SMALL_WINDOW_US = 100  # under MPS four times as large


def traced(bench: Bench, name: str, rig: Rig, high: Tenant, loops: Sequence[Tenant], load: Load = Load()) -> dict:
    events = rig.daemon.follow_events(bench.children) if rig.daemon is not None else None
    answers = rig.stretch([high, *loops], SECONDS, {high.name: load}, trace=True)
    known: List[int] = []
    shut: List[int] = []
    if events is not None:
        bench.children.stop([events])
        known, shut, _ = moments(events.log_path, high.child.pid)
    kernels = {tenant: answer["kernels"] for tenant, answer in answers.items()}
    requests = waits.analyse(answers[high.name]["requests"], kernels[high.name],
                                {loop.name: kernels[loop.name] for loop in loops}, known, shut)
    with open(os.path.join(bench.options.out, f"trace-{name.replace(' ', '-')}.json"), "w", encoding="utf-8") as file:
        json.dump({"requests": [asdict(request) for request in requests], "known": known, "shut": shut,
                   "asked": answers[high.name]["requests"], "kernels": kernels}, file, separators=(",", ":"))
    bench.keep(f"traced {name}", answers)
    slowest = sorted(requests, key=lambda request: -request.latency_ms)[:5]
    return bench.note(f"waits {name}", {**waits.digest(requests), "slowest": [asdict(request) for request in slowest]})


def graph_five(bench: Bench, substrate: str, environment: Optional[Dict[str, str]] = None,
               background: Optional[Dict[str, str]] = None) -> None:
    """Natively, under xschedd with two windows, and with a single loop, which needs no turns."""
    for way in ("native", "xschedd"):
        rig = bench.rig(environment, bench.daemon(bench.policy()) if way == "xschedd" else None)
        high = rig.start(PROGRAMS["graph"])
        loops = [rig.start(PROGRAMS[name], background) for name in LOOPS]
        rig.wait_ready()
        if way == "native":
            traced(bench, f"{substrate} alone", rig, high, [])
        traced(bench, f"{substrate} {way}", rig, high, loops)
        if rig.daemon is not None:
            traced(bench, f"{substrate} {way} one loop", rig, high, loops[:1])
            rig.daemon.ask("policy", "set", "--window", f"{SMALL_WINDOW_US}us")
            traced(bench, f"{substrate} {way} window {SMALL_WINDOW_US}", rig, high, loops)
        bench.close(rig)


def decode(bench: Bench) -> None:
    scenario = SCENARIOS["decode"]
    for way in ("native", "xschedd"):
        rig = bench.rig(daemon=bench.daemon(bench.policy()) if way == "xschedd" else None)
        high = rig.start(PROGRAMS[scenario.high.program])
        below = [rig.start(PROGRAMS[name]) for name in scenario.background]
        rig.wait_ready()
        traced(bench, f"decode {way} idle neighbours", rig, high, [], scenario.high.load)
        traced(bench, f"decode {way}", rig, high, below, scenario.high.load)
        bench.close(rig)


def trace(bench: Bench) -> None:
    graph_five(bench, "time-sliced")


def trace_mps(bench: Bench) -> None:
    with mps_server(bench) as (environment, low):
        graph_five(bench, "mps", environment, low)
