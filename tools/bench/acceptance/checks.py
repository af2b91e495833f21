"""Small programs that must work under xschedd as they do without it, and the cost of a launch.

Thread rule: main thread.
"""

import importlib.util
import json
import os
import sys
import time
from typing import Dict, List, Set, Tuple

from benchlib.processes import Children, ToolError, wait_for
from frame import REPORT_IT, Finding, Skipped
from place import Place, is_stand_in
from scenarios import Load, Program
from scenes import HIGH, LOW
from turns import NATIVE, OURS, TurnsRig, scheduled

STATES_S = 5.0

PROGRAMS = {"the default stream": Program("default stream", "request", "4x500"),
            "8 threads": Program("threads", "threads", "4x500")}


def small_programs(place: Place) -> List[Finding]:
    found = []
    with Children(place.folder) as children:
        rigs = {way: TurnsRig(place, children, way) for way in (NATIVE, OURS)}
        tenants = {way: {what: rig.start(program) for what, program in PROGRAMS.items()} for way, rig in rigs.items()}
        for rig in rigs.values():
            rig.wait_ready()  # under xschedd: also until the daemon lists them on a device
        for way, rig in rigs.items():
            rig.stretch(list(tenants[way].values()), 0.3, {tenant.name: Load(0) for tenant in tenants[way].values()})
        for what in PROGRAMS:
            digests = {way: set(tenants[way][what].digests) for way in rigs}
            is_same = digests[NATIVE] == digests[OURS] and len(digests[OURS]) == 1
            found.append(Finding("ok" if is_same else "error", f"{what}: data {'as' if is_same else 'other than'} without "
                                 "xschedd, and the daemon schedules it", "" if is_same else REPORT_IT))
        for rig in rigs.values():
            rig.stop()
    return found


def one_core() -> int:
    """A launch's cost depends on the core's clock, so both ways run on the same core."""
    return max(os.sched_getaffinity(0))


def states_of(rig: TurnsRig, pid: int) -> Set[str]:
    """None: it is no client."""
    return {device["state"] for device in rig.clients().get(pid, {"devices": []})["devices"]}


def is_as_expected(rig: TurnsRig, pid: int, is_tracked: bool) -> bool:
    """Whether its launches are tracked, or not, soon: on a busy host a session can be lost for a moment."""
    try:
        wait_for("its state", lambda: (states := states_of(rig, pid)) and (states != {"untracked"}) == is_tracked, [], STATES_S)
    except ToolError:
        return False
    return True


def launch_pairs(place: Place, seconds: float) -> Tuple[List[tuple], List[tuple], List[Skipped]]:
    """Pairs (ns natively, ns under xschedd) of adjacent runs, of untracked and of tracked launches."""
    started, pairs, skipped = time.monotonic(), {False: [], True: []}, []
    program = Program("launches", "launches", "0x0", HIGH)
    with Children(place.folder) as children:
        rigs = {way: TurnsRig(place, children, way) for way in (NATIVE, OURS)}
        tenants = {way: rig.start(program, core=one_core()) for way, rig in rigs.items()}
        for rig in rigs.values():
            rig.wait_ready()
        for is_tracked in (False, True):
            if is_tracked:
                beside = rigs[OURS].start(Program("beside", "request", "1x100", LOW))
                rigs[OURS].wait_ready()
            rounds = max(2, min(8, int((seconds - (time.monotonic() - started)) / (2 if is_tracked else 4) / 1.0)))
            for number in range(-1, rounds):
                taken = {}
                for way in (NATIVE, OURS) if number % 2 == 0 else (OURS, NATIVE):
                    taken[way] = rigs[way].stretch([tenants[way]], 0.25)[program.name]["launch_ns"]
                if number >= 0 and taken[NATIVE] and taken[OURS]:  # the first pair warms up; 0: a busy host let nothing be done
                    pairs[is_tracked].append((taken[NATIVE], taken[OURS]))
            pid = tenants[OURS].child.pid
            if not is_as_expected(rigs[OURS], pid, is_tracked):
                states = states_of(rigs[OURS], pid) or {"no client"}
                skipped.append(Skipped(f"launches {'tracked' if is_tracked else 'untracked'}", f"it was {', '.join(states)}: other "
                                       "programs are clients of this daemon, or its policy tracks nobody"))
                pairs[is_tracked] = []
        beside.child.check_alive()
        for rig in rigs.values():
            rig.stop()
    return pairs[False], pairs[True], skipped


# ---- PyTorch

PROBE = ("import json, time; begun = time.monotonic(); import torch; took = time.monotonic() - begun; print(json.dumps({'version': "
        "torch.__version__, 'has_gpu': torch.cuda.is_available(), 'import_s': took}))")


def pytorch(place: Place) -> Tuple[Dict[str, object], List[Finding], List[Skipped]]:
    """PyTorch's properties natively ({}: not installed, or without a GPU), and whether it works under xschedd."""
    if is_stand_in():
        return {}, [], [Skipped("PyTorch", "the software GPU cannot run its kernels; built-in kernels were used instead")]
    if importlib.util.find_spec("torch") is None:
        return {}, [], [Skipped("PyTorch", f"{sys.executable} has none; built-in kernels were used instead")]
    answers = {}
    for way in ("first", NATIVE, OURS):  # the first reads the files
        command = [sys.executable, "-c", PROBE]
        done = place.run(scheduled(place, (), command) if way == OURS else command, 180)
        try:
            answers[way] = json.loads(done.stdout)
        except ValueError:
            why = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
            if way != OURS:
                return {}, [], [Skipped("PyTorch", f"it cannot be imported: {why}")]
            return answers[NATIVE], [Finding("error", f"import torch fails under xschedd alone: {why}", "please report it")], []
    native, ours = answers[NATIVE], answers[OURS]
    is_same = native["version"] == ours["version"] and native["has_gpu"] == ours["has_gpu"]
    found = [Finding("ok" if is_same else "error", f"import torch: PyTorch {ours['version']}, {ours['import_s'] / native['import_s']:.2f} "
                     f"times as long as natively{'' if is_same else '; it sees another GPU than without xschedd'}")]
    if not native["has_gpu"]:
        return {}, found, [Skipped("two models in PyTorch", "this PyTorch sees no GPU; built-in kernels were used instead")]
    return native, found, []
