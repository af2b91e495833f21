"""What xschedd costs a tenant that is alone, at work and at its start.

Thread rule: main thread.
"""

import json
import os
import time
from typing import Dict, List

import figures
from bench import Bench
from benchlib.processes import run_text
from rig import TENANT
from scenarios import Load, Program

PROGRAMS = ["request:resnet18", "graph:resnet18", "loop:resnet50", "request:bert"]
STARTS = 5  # pairs


def one_core() -> int:
    """The core's clock affects the cost of launches more than xschedd does, so both ways use the same core."""
    return max(os.sched_getaffinity(0))


def overhead(bench: Bench) -> None:
    """Pairs of stretches, without and with, of two processes on one core."""
    for words in bench.options.overhead:
        kind, model = words.split(":")
        pairs: List[tuple] = []
        starts: Dict[str, List[float]] = {"native": [], "xschedd": []}
        for again in range(2):  # two processes of each, because some are slower than others throughout
            rigs = {"native": bench.rig(), "xschedd": bench.rig(daemon=bench.daemon())}
            tenants = {}
            for way in ("native", "xschedd") if again == 0 else ("xschedd", "native"):
                tenants[way] = rigs[way].start(Program(f"{way}-{kind}-{model}-{again}", kind, model), core=one_core())
                rigs[way].wait_ready()
                starts[way].append(tenants[way].ready_s)
            for round_number in range(-1, bench.options.rounds):
                value = {}
                # The order alternates from round to round, so that a drift of the clocks cancels.
                for way in ("native", "xschedd") if round_number % 2 == 0 else ("xschedd", "native"):
                    name = tenants[way].name
                    answer = rigs[way].stretch([tenants[way]], bench.options.round_s, {name: Load(0)})[name]
                    value[way] = (1000 / figures.batches_per_s(answer) if kind == "loop"
                                  else figures.latency(answer)["p50_ms"])
                if round_number >= 0:  # the first pair warms up
                    pairs.append((value["native"], value["xschedd"]))
            for rig in rigs.values():
                bench.close(rig)
        bench.note(f"overhead {kind} {model}", {
            "native_ms": [native_ms for native_ms, _ in pairs], "xschedd_ms": [ms for _, ms in pairs],
            "ratio": figures.median_ratio(pairs), "start_s": starts})


def start_up(bench: Bench) -> None:
    """From the start of a process to its end: PyTorch and one kernel; and a Python that uses no GPU."""
    native, ours = bench.rig(), bench.rig(daemon=bench.daemon())
    pin = ["taskset", "-c", str(one_core())]
    for name, command in (("PyTorch and a kernel", [*TENANT, "start"]), ("python3 -c pass", [TENANT[0], "-c", "pass"])):
        times: Dict[str, List[float]] = {"native": [], "xschedd": []}
        parts: Dict[str, List[dict]] = {"native": [], "xschedd": []}
        for number in range(-1, STARTS if "start" in command else 5 * STARTS):
            ways = [("native", native), ("xschedd", ours)]
            for way, rig in ways if number % 2 == 0 else ways[::-1]:
                started = time.monotonic()
                text = run_text([*pin, *command], rig.client_environment(), 120)
                if number >= 0:  # the first pair warms the file cache
                    times[way].append(1e3 * (time.monotonic() - started))
                    parts[way].append(json.loads(text) if text.strip() else {})
        bench.note(f"start {name}", {
            "native_ms": times["native"], "xschedd_ms": times["xschedd"], "parts": parts,
            "ratio": figures.median_ratio(list(zip(times["native"], times["xschedd"])))})
    bench.close(ours)
