"""Faults of a node, injected on the real GPU. Each function is one fault and adds its figures to the results.

Thread rule: main thread.
"""

import json
import math
import time
from typing import Dict, List, Set

import figures
from bench import Bench
from benchlib.daemon import Daemon
from benchlib.processes import wait_for
from rig import Rig, Tenant
from scenarios import LOOPS, PROGRAMS, Load, Program

BACK_TO_BACK = {"graph": Load(0)}
MANY = 31  # loops, plus one client above them


def clients(daemon: Daemon) -> Dict[int, str]:
    """State by pid, of clients with a device."""
    return {client["pid"]: client["devices"][0]["state"] for client in daemon.ask("ps")["clients"] if client["devices"]}


def started(rig: Rig, loops: List[Program]) -> tuple:
    tenants = [rig.start(loop) for loop in loops]
    high = rig.start(PROGRAMS["graph"])
    rig.wait_ready()
    return high, tenants


def longest_gap_ms(answers: Dict[str, dict]) -> float:
    """The longest time without a finished batch of any one loop, from the start on."""
    return max((after - before) / 1e6 for answer in answers.values() if "ends_ns" in answer
               for before, after in zip([answer["start_ns"], *answer["ends_ns"]], answer["ends_ns"]))


def daemon_killed(bench: Bench) -> None:
    """graph-five; the daemon is killed after a third of the time and restarted after another."""
    daemon = bench.daemon(bench.policy())
    rig = bench.rig(daemon=daemon)
    high, loops = started(rig, [PROGRAMS[name] for name in LOOPS])
    seconds = min(9.0, bench.options.seconds)
    start = rig.begin([high, *loops], seconds)
    time.sleep(0.2 + seconds / 3)
    daemon.child.process.kill()
    killed = time.monotonic_ns()
    time.sleep(seconds / 3)
    again = rig.daemon = bench.daemon_in(daemon.folder, bench.policy())
    began = time.monotonic_ns()
    answers = rig.finish([high, *loops], seconds, start)
    for name, begin, end in (("before", start, killed - 100_000_000), ("killed", killed, began),
                             ("again", began + 500_000_000, start + int(seconds * 1e9))):
        part = figures.within(answers["graph"], begin, end)
        bench.note(f"fault daemon {name}", figures.summary({"graph": part}))
    bench.note("fault daemon clients", {"longest_gap_ms": longest_gap_ms(answers), "again": len(clients(again))})
    bench.close(rig)


def client_killed(bench: Bench) -> None:
    """Three loops below a tenant that answers one request after the other. SIGKILL to a loop (under xschedd while it is held
    at the gate), then to the important tenant during a request."""
    seconds = min(6.0, bench.options.seconds)
    for way in ("native", "xschedd"):
        daemon = bench.daemon(bench.policy()) if way == "xschedd" else None
        rig = bench.rig(daemon=daemon)
        high, loops = started(rig, [PROGRAMS[name] for name in LOOPS[:3]])
        start = rig.begin([high, *loops], seconds, BACK_TO_BACK)
        time.sleep(0.2 + seconds / 2)
        victim, state = loops[0], "running"
        if daemon is not None:
            states = clients(daemon)
            victim = next((loop for loop in loops if states.get(loop.child.pid) == "held"), loops[0])
            state = states.get(victim.child.pid, "unknown")
        killed = rig.kill(victim)
        result = {"state": state, "forgotten_ms": forgotten_ms(daemon, victim, killed)}
        loops.remove(victim)
        answers = rig.finish([high, *loops], seconds, start)
        for name, begin, end in (("before", start, killed), ("after", killed, start + int(seconds * 1e9))):
            result[name] = figures.latency(figures.within(answers["graph"], begin, end))
        bench.note(f"fault loop killed {way}", result)

        start = rig.begin([high, *loops], seconds, BACK_TO_BACK)
        time.sleep(0.2 + seconds / 2)
        killed = rig.kill(high)
        forgotten = forgotten_ms(daemon, high, killed)
        answers = rig.finish(loops, seconds, start)
        later = [min((end for end in answer["ends_ns"] if end > killed), default=math.inf) - killed
                 for answer in answers.values()]
        bench.note(f"fault high killed {way}", {
            "forgotten_ms": forgotten, "next_batch_ms": [ns / 1e6 for ns in later],
            "batches_per_s_before": figures.rate_within(answers, start, killed),
            "batches_per_s_after": figures.rate_within(answers, killed + 500_000_000, start + int(seconds * 1e9))})
        bench.close(rig)


def forgotten_ms(daemon: Daemon, tenant: Tenant, killed: int) -> float:
    """Milliseconds until the daemon no longer lists it; 0 without a daemon. Each query takes some milliseconds."""
    if daemon is None:
        return 0.0
    wait_for("the end of a killed client's session", lambda: tenant.child.pid not in clients(daemon), [daemon.child])
    return (time.monotonic_ns() - killed) / 1e6


def never_synchronises(bench: Bench) -> None:
    """The graph beside a tenant that launches batch after batch and never waits for any."""
    endless = Program("endless", "endless", "resnet50")
    for way in ("native", "xschedd"):
        rig = bench.rig(daemon=bench.daemon(bench.policy()) if way == "xschedd" else None)
        high, loops = started(rig, [endless])
        bench.keep(f"fault endless {way}", rig.stretch([high, *loops], bench.options.seconds))
        bench.close(rig)


def many_clients(bench: Bench) -> None:
    """32 clients. The native reference is the same processes under fifo, which neither holds nor tracks."""
    daemon = bench.daemon(bench.policy())
    rig = bench.rig(daemon=daemon)
    high, loops = started(rig, [Program(f"many{number}", "loop", "resnet18b64") for number in range(MANY)])
    states: Set[int] = set(clients(daemon))
    for policy in ("fifo", "priority"):
        daemon.ask("policy", "set", policy)
        answers = rig.stretch([high, *loops], bench.options.seconds)
        result = bench.keep(f"fault 32 clients {policy}", answers)
        result.update(clients=len(states), stats=daemon.ask("stats"),
                      without_a_batch=sum(not answer.get("ends_ns", True) for answer in answers.values()))
        print(json.dumps(result["stats"]), flush=True)
    bench.close(rig)


PARTS = {"fault-daemon": daemon_killed, "fault-kill": client_killed, "fault-endless": never_synchronises,
         "fault-many": many_clients}
