"""What the daemon's sleep costs: scenarios with a daemon that sleeps and one that spins, with two windows each; and what
tracking costs a tenant whose neighbours are idle.

Thread rule: main thread.
"""

from typing import Dict, Optional, Sequence

from beside import mps_server
from bench import Bench
from rig import Rig
from scenarios import LOOPS, LOW, SCENARIOS, Load, programs_of
from traces import traced

SECONDS = 8.0


def stretches(bench: Bench, way: str, rig: Rig, names: Sequence[str], windows_us: Sequence[int],
              background: Optional[Dict[str, str]] = None) -> None:
    """Without a daemon only the reference; `windows_us`: the first is the default."""
    scenarios = [SCENARIOS[name] for name in names]
    tenants = {program.name: rig.start(program, background if program.priority == LOW else None)
               for program in programs_of(scenarios)}
    rig.wait_ready()
    for name, load in (("graph", Load()), *((("decode", Load(10)),) if "decode" in tenants else ())):
        bench.keep(f"{way} {name} idle neighbours", rig.stretch([tenants[name]], SECONDS, {name: load}))
    for window_us in windows_us:
        if rig.daemon is not None:
            rig.daemon.ask("policy", "set", "--window", f"{window_us}us")
        for scenario in scenarios:
            chosen = [tenants[name] for name in (scenario.high.program, *scenario.background)]
            bench.keep(f"{way} window {window_us} {scenario.name}",
                       rig.stretch(chosen, SECONDS, {scenario.high.program: scenario.high.load}), scenario.high.program)
    if rig.daemon is not None:
        rig.daemon.ask("policy", "set", "--window", f"{windows_us[0]}us")
        traced(bench, way, rig, tenants["graph"], [tenants[name] for name in LOOPS])
        bench.note(f"daemon {way}", rig.daemon.ask("stats"))
    bench.close(rig)


def spinning(spin: str, policy: str) -> str:
    return f"[daemon]\nspin = {spin}\n{policy}"


def wake(bench: Bench) -> None:
    names, windows_us = ("graph-five", "train", "decode"), (500, 300)
    stretches(bench, "time-sliced native", bench.rig(), names, ())
    for spin in ("false", "true"):
        daemon = bench.daemon(spinning(spin, bench.policy()))
        stretches(bench, f"time-sliced xschedd spin={spin}", bench.rig(daemon=daemon), names, windows_us)


def wake_mps(bench: Bench) -> None:
    names = ("one-five", "graph-five", "train", "bert")
    with mps_server(bench) as (environment, low):
        stretches(bench, "mps mps priority", bench.rig(environment), names, (0,), low)
        for spin in ("false", "true"):
            daemon = bench.daemon(spinning(spin, bench.policy()))
            stretches(bench, f"mps xschedd spin={spin}", bench.rig(environment, daemon), names, (500, 1000), low)
