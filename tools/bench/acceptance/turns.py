"""Runs the scenarios of scenes.py in alternation: alone, natively, under xschedd, in another order each round; and changes a
priority while programs run.

Thread rule: main thread.
"""

import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from benchlib.processes import Children, ToolError, wait_for
from place import Place
from rig import TENANT, Rig, Tenant
from scenarios import Program
from scenes import HIGH, LOW, PAUSE_S, PROGRAMS, Plan, Scene, is_built_in, order_of, plan

HERE = os.path.dirname(os.path.realpath(__file__))
SPIN_TENANT = [sys.executable, os.path.join(HERE, "spin_tenant.py")]
START_LIMIT_S = 120.0
NO_PERMISSION = 4  # xschedctl's exit code for that
ALONE, NATIVE, OURS = "alone", "native", "xschedd"


class NotHere(Exception):
    """Not xschedd's fault: the program does not run without it either, or this user may not use a command."""


def scheduled(place: Place, options: Sequence[str], command: List[str], runtime_dir: Optional[str] = None) -> List[str]:
    """The command under xschedd. `runtime_dir`: of another daemon than the place's."""
    return [*place.xschedctl(runtime_dir), "run", *options, "--", *command]


class TurnsRig(Rig):
    """Tenants without xschedd, or as `xschedctl run` starts them."""

    def __init__(self, place: Place, children: Children, way: str):
        super().__init__("", children, place.environment)
        self.place, self.way = place, way
        self.options: Dict[str, List[str]] = {}  # of `xschedctl run`, by program

    def start(self, program: Program, extra: Optional[Dict[str, str]] = None, core: Optional[int] = None) -> Tenant:
        command = [*(SPIN_TENANT if is_built_in(program) else TENANT), program.kind, program.model]
        if self.way == OURS:
            command = scheduled(self.place, ["--priority", str(program.priority), *self.options.get(program.name, ())], command)
        if core is not None:
            command = ["taskset", "-c", str(core), *command]
        environment = {**self.environment, **(extra or {})}
        name = f"{self.way}-{program.name}".replace(" ", "-")
        tenant = Tenant(program, self.children.start(name, command, environment, is_asked=True))
        self.tenants.append(tenant)
        return tenant

    def wait_ready(self) -> None:
        try:
            for tenant in self.tenants:
                if not tenant.digests:
                    tenant.ready_s = tenant.answer(self.place.limit_s(START_LIMIT_S))["ready_s"]
            if self.way == OURS:
                wait_for("the sessions of all programs", self._are_clients, [tenant.child for tenant in self.tenants],
                         self.place.limit_s(15))
        except ToolError as error:
            raise (error if self.way == OURS else NotHere(f"it does not run without xschedd either: {error}")) from error

    def clients(self) -> Dict[int, dict]:
        """These tenants in `xschedctl ps`, by pid."""
        return {client["pid"]: client for client in ask(self.place, "ps")["clients"]}

    def _are_clients(self) -> bool:
        known = self.clients()
        return all(known.get(tenant.child.pid, {"devices": []})["devices"] for tenant in self.tenants)


class NoAnswer(ToolError):
    """xschedctl failed."""


def ask(place: Place, *words: str, runtime_dir: Optional[str] = None) -> dict:
    """`runtime_dir`: of another daemon than the place's."""
    done = place.run([*place.xschedctl(runtime_dir), "--json", *words], 20)
    if done.returncode == NO_PERMISSION:
        raise NotHere(f"this user may not use xschedctl {words[0]}")
    if done.returncode != 0:
        raise NoAnswer(f"xschedctl {words[0]}: {(done.stderr.strip().splitlines() or ['it printed nothing'])[-1]}")
    return json.loads(done.stdout)


@dataclass
class Measured:
    scene: Scene
    rounds: List[Dict[str, Dict[str, dict]]]  # by way and program: the tenants' answers
    mode: str  # the mode that was measured to be best (daemon/policy/benefit.h); empty: not settled
    digests: Dict[str, Dict[str, List[str]]]  # by way and program


def mode_of(rig: TurnsRig, high: Tenant) -> str:
    benefit = rig.clients().get(high.child.pid, {}).get("benefit")
    return benefit["mode"] if benefit is not None and benefit["is_settled"] else ""


def learn(rig: TurnsRig, high: Tenant, seconds: float, stretch: Callable[[float], object]) -> None:
    """Runs until the daemon knows what holding gives, or the time is over."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not mode_of(rig, high):
        stretch(max(0.3, min(2.0, left)))


def measure(place: Place, scene: Scene, seconds: float) -> Measured:
    started, scenario = time.monotonic(), scene.scenario
    names = [asked.program for asked in scenario.asked] + list(scenario.background)
    loads = {asked.program: asked.load for asked in scenario.asked}
    with Children(place.folder) as children:
        rigs = {way: TurnsRig(place, children, way) for way in (NATIVE, OURS)}
        if scene.deadline_ms:
            rigs[OURS].options[names[0]] = ["--deadline", f"{scene.deadline_ms:g}ms"]
        tenants = {way: {name: rig.start(PROGRAMS[name]) for name in names} for way, rig in rigs.items()}
        for rig in rigs.values():
            rig.wait_ready()

        def stretch(way: str, length: float) -> Dict[str, dict]:
            at = NATIVE if way == ALONE else way
            those = names[:1] if way == ALONE else names
            return rigs[at].stretch([tenants[at][name] for name in those], length,
                                    {name: loads[name] for name in those if name in loads})

        chosen: Plan = plan(max(1.0, seconds - (time.monotonic() - started)))
        learn(rigs[OURS], tenants[OURS][names[0]], chosen.learn_s, lambda length: stretch(OURS, length))
        rounds = [{way: stretch(way, chosen.stretch_s) for way in order_of([ALONE, NATIVE, OURS], number)}
                  for number in range(chosen.rounds)]
        mode = mode_of(rigs[OURS], tenants[OURS][names[0]])
        digests = {way: {name: tenants[way][name].digests for name in names} for way in rigs}
        for rig in rigs.values():
            rig.stop()
    return Measured(scene, rounds, mode, digests)


@dataclass
class Change:
    """One live change of priority."""

    issued_ns: int
    applied_ns: int
    favoured: str  # the program that is above from then on


@dataclass
class Swaps:
    changes: List[Change] = field(default_factory=list)
    end_ns: int = 0
    ends_ns: Dict[str, List[int]] = field(default_factory=dict)  # of batches


SETTLE_S = 0.4  # between two changes


def live_set(place: Place, seconds: float) -> Swaps:
    """Two programs that always work, one strictly above the other; `xschedctl set` swaps them, again and again."""
    started, result = time.monotonic(), Swaps()
    with Children(place.folder) as children:
        rig = TurnsRig(place, children, OURS)
        first, second = rig.start(Program("first", "loop", "1x1200", HIGH)), rig.start(Program("second", "loop", "1x1200", LOW))
        rig.wait_ready()
        for tenant in (first, second):
            ask(place, "set", "--latency", "strict", "--pid", str(tenant.child.pid))
        cycles = int(max(1, min(8, (seconds - (time.monotonic() - started)) / (2 * (SETTLE_S + 0.2)) - 1)))
        length = 2 * (SETTLE_S + 0.2) * (cycles + 1)
        start = rig.begin([first, second], length)
        time.sleep(max(0.0, (start - time.monotonic_ns()) / 1e9) + SETTLE_S)
        for _ in range(cycles):
            for words, favoured in ((("--priority", str(2 * LOW)), "second"), (("--reset=priority",), "first")):
                issued = time.monotonic_ns()
                answer = ask(place, "set", *words, "--pid", str(first.child.pid))
                result.changes.append(Change(issued, answer["applied_ns"], favoured))
                time.sleep(SETTLE_S)
        result.end_ns = min(time.monotonic_ns(), start + int(length * 1e9))
        answers = rig.finish([first, second], length, start)
        result.ends_ns = {name: answer["ends_ns"] for name, answer in answers.items()}
        rig.stop()
    return result


def events_of(place: Place, seconds: float) -> Tuple[str, Dict[str, dict], int, int]:
    """The daemon's events while the service answers requests beside a program that it always holds: the file with the events,
    both answers, and both pids."""
    with Children(place.folder) as children:
        rig = TurnsRig(place, children, OURS)
        high, low = rig.start(PROGRAMS["service"]), rig.start(PROGRAMS["busy"])
        rig.wait_ready()
        ask(place, "set", "--latency", "strict", "--pid", str(high.child.pid))
        events = children.start("events", [*place.xschedctl(), "--json", "events", "--follow"], place.environment)
        time.sleep(PAUSE_S)
        answers = rig.stretch([high, low], seconds)
        time.sleep(PAUSE_S)
        children.stop([events])
        rig.stop()
    return events.log_path, answers, high.child.pid, low.child.pid
