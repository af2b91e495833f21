"""Section *harmless*: seeded programs of many kinds of calls (calls_program.py) compute the same with xschedd as without it,
bit by bit, whatever xschedd does to them. A run counts only if the daemon says that it took part.

Thread rule: `judged`, `absence`, `seeds_of` and `whole_s` are pure; `run` starts programs from the main thread.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple

import sequence
from benchlib.processes import Child, Children, ToolError, wait_for
from frame import NO_TIME, REPORT_IT, Finding, Section, Skipped, judge
from place import NoDaemon, Place
from scenarios import Load, Program
from scenes import HIGH, LOW, MIDDLE
from turns import OURS, NotHere, TurnsRig, ask, program_environment, scheduled

HERE = os.path.dirname(os.path.realpath(__file__))
MOST_S, PART = 110.0, 0.2  # of the time that is left
MOST_SEEDS = 8
HANG_S, HANG_FACTOR = 15.0, 10.0  # what nobody needs who goes on, and how many times as long as natively
TRACKED, HELD, REPRIORITISED, KILLED = "tracked", "held", "reprioritised", "daemon killed"
NEIGHBOURS = {TRACKED: Program("neighbour", "request", "1x100", LOW), HELD: Program("neighbour", "request", "4x2000", HIGH),
              REPRIORITISED: Program("neighbour", "loop", "4x1200", MIDDLE)}
WAYS = (TRACKED, HELD, REPRIORITISED, KILLED)
HOLDING = (HELD, REPRIORITISED)


NEVER_HELD = "it was never held"
REMEDIES = {NEVER_HELD: "`xschedctl config show` has the rules: one may give programs here other priorities than they ask for"}
REMEDY = "`xschedctl doctor` says what keeps programs from the daemon"


@dataclass(frozen=True)
class Outcome:
    digest: str = ""
    failure: str = ""  # how it ended instead
    absent: str = ""  # under xschedd: why xschedd took no part, so that it proves nothing


def whole_s(left_s: float) -> float:
    return min(MOST_S, PART * left_s)


def seeds_of(seconds: float, run_s: float) -> List[int]:
    """As many as the time is enough for if a run takes twice as long under xschedd, with one more natively."""
    return list(range(1, 1 + max(1, min(MOST_SEEDS, int(seconds / (2 * run_s * len(WAYS) + 2 * run_s))))))


def again(seed: int) -> str:
    return f"to repeat it: xschedctl run -- python3 {os.path.basename(HERE)}/calls_program.py {seed}; {REPORT_IT}"


def why_not_compared(outcomes: List[Outcome]) -> str:
    """Of a seed without xschedd; empty: it gives one result."""
    failures = [one.failure for one in outcomes if one.failure]
    if failures:
        return f"it does not run without xschedd either: {failures[0]}"
    return "its results differ without xschedd, too" if len({one.digest for one in outcomes}) > 1 else ""


def absence(answer: dict, pid: int, way: str) -> str:
    """Why xschedd took no part in a run, from `xschedctl ps` at its end; empty: it did."""
    client = next((one for one in answer["clients"] if one["pid"] == pid), None)
    if answer["observes_only"]:
        return "the daemon only observes ([daemon] enforce = false)"
    if client is None:
        return "it was no client of the daemon"
    devices = [one for one in client["devices"] if one["state"] not in ("untracked", "unknown")]
    # A daemon that was started in the middle may have seen nothing of what came before.
    if not devices or (way != KILLED and not any(one["submitted"] for one in devices)):
        return "the daemon saw none of its work"
    return NEVER_HELD if way in HOLDING and not any(one["held_ns"] for one in devices) else ""


def absences(way: str, mine: Dict[int, Outcome]) -> Tuple[List[Finding], List[Skipped]]:
    """One line for each cause. A program that was quicker than its neighbour's next request is no fault if others were held."""
    findings, skipped = [], []
    for cause in sorted({one.absent for one in mine.values() if one.absent}):
        seeds = [seed for seed, one in mine.items() if one.absent == cause]
        what = f"{way}: {len(seeds)} of {len(mine)} runs not counted, xschedd took no part: {cause}"
        if cause == NEVER_HELD and any(not one.absent for one in mine.values()):
            skipped.append(Skipped(what, "it was done before its neighbour had work"))
        else:
            findings.append(Finding("warning", what, REMEDIES.get(cause, REMEDY)))
    return findings, skipped


def read_line(fd: int, limit_s: float) -> str:
    """Byte by byte, so that nothing of the next line is taken. Empty: none came."""
    end, line = time.monotonic() + limit_s, b""
    while not line.endswith(b"\n"):
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            return ""
        byte = os.read(fd, 1)
        if not byte:
            return ""
        line += byte
    return line.decode()


def judged(natives: Dict[int, List[Outcome]], ours: Dict[Tuple[str, int], Outcome]) -> Tuple[List[Finding], List[Skipped]]:
    """By seed; by way and seed."""
    findings, skipped, expected = [], [], {}
    for seed, outcomes in natives.items():
        if why := why_not_compared(outcomes):
            skipped.append(Skipped(f"seed {seed}", why))
        else:
            expected[seed] = outcomes[0].digest
    for way in WAYS:
        mine = {seed: outcome for (one, seed), outcome in ours.items() if one == way and seed in expected}
        wrong = {seed: outcome.failure or "other data than without xschedd" for seed, outcome in mine.items()
                 if outcome.failure or outcome.digest != expected[seed]}
        absent, quick = absences(way, {seed: outcome for seed, outcome in mine.items() if seed not in wrong})
        findings, skipped = findings + absent, skipped + quick
        counted = sum(not outcome.absent for outcome in mine.values())
        findings += [Finding("error", f"{way}: seed {seed}: {what}", again(seed)) for seed, what in wrong.items()]
        if counted and not wrong:
            findings.append(Finding("ok", f"{way}: the same data as without xschedd, bit by bit, {counted} program{'s' if counted > 1 else ''} of "
                                    f"{sequence.LANES * sequence.LENGTH} calls of {len(sequence.KINDS)} kinds"))
    return findings, skipped


class Programs:
    def __init__(self, place: Place, stop_at_s: float):
        self.place, self.stop_at_s, self.run_s = place, stop_at_s, 0.0
        self.number = 0

    def left_s(self) -> float:
        return self.place.left_s() - self.stop_at_s

    def limit_s(self) -> float:
        """Native programs may take what is left, others what is surely too long."""
        return self.place.limit_s(max(HANG_S, HANG_FACTOR * self.run_s) if self.run_s else 60.0)

    def outcome(self, children: Children, command: List[str], environment: Dict[str, str],
                meanwhile: Optional[Callable[[Child], None]] = None, absent: Optional[Callable[[int], str]] = None) -> Outcome:
        """`meanwhile`: once it has begun. `absent`: asked with its pid when it has its data and is still there."""
        self.number += 1
        begun, limit = time.monotonic(), self.limit_s()
        child = children.start(f"calls-{self.number}", [*command, "--stay"], environment, True)
        output, why_absent = child.process.stdout.fileno(), ""
        try:
            if read_line(output, limit) and meanwhile is not None:
                meanwhile(child)
            answer = read_line(output, max(0.1, limit - (time.monotonic() - begun)))
            if answer and absent is not None:
                why_absent = absent(child.pid)
            if answer:
                child.process.stdin.close()
            try:
                status = child.process.wait(max(0.1, limit - (time.monotonic() - begun)))
            except subprocess.TimeoutExpired:
                return Outcome(failure=f"it came to no end within {limit:.0f} s")
            if status != 0:
                how = f"ended by signal {-status}" if status < 0 else f"ended with status {status}: {child.log_tail()}"
                return Outcome(failure=how)
            return Outcome(json.loads(answer)["digest"], absent=why_absent)
        except ValueError:
            return Outcome(failure="it gave no answer")
        finally:
            if child.process.poll() is None:
                child.process.kill()
            children.stop([child])
            child.process.stdin.close()
            child.process.stdout.close()

    def absent(self, way: str, runtime_dir: Optional[str] = None) -> Callable[[int], str]:
        """The shim reports every few milliseconds, and comes back to a new daemon within seconds."""
        def ask_daemon(pid: int) -> str:
            end = time.monotonic() + self.place.limit_s(3)
            while True:
                answer = json.loads(self.place.run([*self.place.xschedctl(runtime_dir), "--json", "ps"], 20).stdout)
                why = absence(answer, pid, way)
                if not why or time.monotonic() > end:
                    return why
                time.sleep(0.1)
        return ask_daemon

    def command(self, seed: int) -> List[str]:
        return [sys.executable, "-B", os.path.join(HERE, "calls_program.py"), str(seed)]

    def native(self, seed: int) -> Outcome:
        begun = time.monotonic()
        with Children(self.place.folder) as children:
            outcome = self.outcome(children, self.command(seed), program_environment(self.place))
        self.run_s = max(self.run_s, time.monotonic() - begun)
        return outcome

    def ours(self, way: str, seed: int) -> Outcome:
        with Children(self.place.folder) as children:
            if way == KILLED:
                return self.with_daemon_killed(children, seed)
            rig = TurnsRig(self.place, children, OURS)
            neighbour = rig.start(NEIGHBOURS[way])
            rig.wait_ready()
            if way != TRACKED:
                ask(self.place, "set", "--latency", "strict", "--pid", str(neighbour.child.pid))
                # Held again and again, not without end: beside a loop nobody below it would come to an end.
                loads = {neighbour.name: Load(20, "periodic")} if way == HELD else {}
                rig.begin([neighbour], 2 * self.limit_s(), loads)  # it goes with its folder's context
            priority = {TRACKED: HIGH, HELD: LOW, REPRIORITISED: HIGH}[way]
            return self.outcome(children, scheduled(self.place, ["--priority", str(priority)], self.command(seed)),
                                self.place.environment, self.reprioritise if way == REPRIORITISED else None, self.absent(way))

    def reprioritise(self, child: Child) -> None:
        """As fast as the command can be given, above and below its neighbour."""
        end = time.monotonic() + self.limit_s()
        while not select.select([child.process.stdout], [], [], 0)[0] and time.monotonic() < end:
            for words in (("--priority", str(LOW)), ("--reset=priority",)):
                try:
                    ask(self.place, "set", *words, "--pid", str(child.pid))
                except ToolError:
                    if select.select([child.process.stdout], [], [], 5)[0]:  # it has just ended
                        return
                    raise

    def with_daemon_killed(self, children: Children, seed: int) -> Outcome:
        """A daemon that was started here alone: no other program is its client."""
        folder = os.path.join(self.place.folder, "killed")
        os.makedirs(folder, 0o700, exist_ok=True)
        daemon = self.place.start_daemon(children, folder)

        def kill(_: Child) -> None:
            time.sleep(0.05 * (seed % 4))
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            self.place.start_daemon(children, folder)

        runtime_dir = os.path.join(folder, "run")
        program = scheduled(self.place, ["--priority", str(LOW)], [*self.place.probe, "--stay"], runtime_dir)
        idle = children.start("idle", program, self.place.environment, True)
        try:
            wait_for("the session of an idle program", lambda: json.loads(self.place.run(
                [*self.place.xschedctl(runtime_dir), "--json", "ps"], 20).stdout)["clients"], [idle], self.place.limit_s(15))
            return self.outcome(children, scheduled(self.place, [], self.command(seed), runtime_dir),
                                self.place.environment, kill, self.absent(KILLED, runtime_dir))
        finally:
            idle.process.stdin.close()
            children.stop([idle])
            idle.process.stdout.close()


def run(place: Place) -> Section:
    if place.why_no_daemon:
        return judge("harmless", [], [Skipped("all programs", f"there was no daemon: {place.why_no_daemon}")], "")
    left = place.left_s()
    programs = Programs(place, left - whole_s(left))
    natives, ours, skipped, findings = {1: [programs.native(1) for _ in range(2)]}, {}, [], []
    for seed in seeds_of(programs.left_s(), programs.run_s):
        if seed not in natives:
            natives[seed] = [programs.native(seed) for _ in range(2)]
        if why_not_compared(natives[seed]):
            continue
        for way in WAYS:
            what = f"{way}: seed {seed}"
            if programs.left_s() < programs.run_s:
                skipped.append(Skipped(what, NO_TIME))
                continue
            try:
                ours[way, seed] = programs.ours(way, seed)
            except (NotHere, NoDaemon) as error:
                skipped.append(Skipped(what, str(error)))
            except (ToolError, subprocess.TimeoutExpired) as error:
                findings.append(Finding("error", f"{what}: {' '.join(str(error).split())}", again(seed)))
    found, not_compared = judged(natives, ours)
    counted = sum(not outcome.absent for outcome in ours.values())
    return judge("harmless", found + findings, not_compared + skipped,
                 f"{counted} runs under xschedd computed the same, bit by bit, as without it")
