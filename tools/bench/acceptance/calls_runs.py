"""Runs the programs of *harmless*: natively, natively beside a neighbour, and under xschedd in each way.

Thread rule: `absence` is pure; the rest starts programs from the main thread.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable, List, Optional

from benchlib.processes import Child, Children, ToolError, wait_for
from place import Place
from scenarios import Load, Program
from scenes import HIGH, LOW, MIDDLE
from turns import NATIVE, OURS, NotHere, TurnsRig, ask, scheduled

HERE = os.path.dirname(os.path.realpath(__file__))
HANG_S, HANG_FACTOR = 15.0, 10.0  # a program that takes longer hangs; and so many times as long as natively
TRACKED, HELD, REPRIORITISED, KILLED = "tracked", "held", "reprioritised", "daemon killed"
NEIGHBOURS = {TRACKED: Program("neighbour", "request", "1x100", LOW), HELD: Program("neighbour", "request", "4x2000", HIGH),
              REPRIORITISED: Program("neighbour", "loop", "4x1200", MIDDLE)}
WAYS = (TRACKED, HELD, REPRIORITISED, KILLED)
HOLDING = (HELD, REPRIORITISED)
NEVER_HELD = "it was never held"


@dataclass(frozen=True)
class Outcome:
    digest: str = ""
    failure: str = ""  # how it failed
    absent: str = ""  # under xschedd: why the run proves nothing: the program was not scheduled, or nobody could say whether it was


def absence(answer: dict, pid: int, way: str) -> str:
    """Why a program was not scheduled, from `xschedctl ps` at its end; empty: it was."""
    client = next((one for one in answer["clients"] if one["pid"] == pid), None)
    if answer["observes_only"]:
        return "the daemon only observes ([daemon] enforce = false)"
    if client is None:
        return "it was not a client of the daemon"
    devices = [one for one in client["devices"] if one["state"] not in ("untracked", "unknown")]
    # A daemon that was started in the middle may not have seen earlier work.
    if not devices or (way != KILLED and not any(one["submitted"] for one in devices)):
        return "the daemon saw none of its work"
    return NEVER_HELD if way in HOLDING and not any(one["held_ns"] for one in devices) else ""


def read_line(fd: int, limit_s: float) -> str:
    """Reads byte by byte, so that the next line stays. Empty: no line came."""
    end, line = time.monotonic() + limit_s, b""
    while not line.endswith(b"\n"):
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            return ""
        byte = os.read(fd, 1)
        if not byte:
            return ""
        line += byte
    return line.decode()


class Programs:
    def __init__(self, place: Place, stop_at_s: float):
        self.place, self.stop_at_s, self.run_s = place, stop_at_s, 0.0
        self.number = 0

    def left_s(self) -> float:
        return self.place.left_s() - self.stop_at_s

    def allow(self, seconds: float) -> None:
        """Allows that many more seconds from now on, within the whole time."""
        self.stop_at_s = max(0.0, min(self.stop_at_s, self.place.left_s()) - seconds)

    def limit_s(self) -> float:
        """Native programs may take all the time that is left, others up to a time that is surely too long."""
        return self.place.limit_s(max(HANG_S, HANG_FACTOR * self.run_s) if self.run_s else 60.0)

    def outcome(self, children: Children, command: List[str], meanwhile: Optional[Callable[[Child], None]] = None, way: str = "",
                runtime_dir: Optional[str] = None) -> Outcome:
        """`meanwhile`: called when the program begins its calls. `way`: under xschedd; then it begins once the daemon lists it,
        because it may end before a daemon on a busy host looks, and is asked about while it still runs."""
        self.number += 1
        started, limit = time.monotonic(), self.limit_s()
        child = children.start(f"calls-{self.number}", [*command, "--stay"], self.place.environment, True)
        output, why_absent = child.process.stdout.fileno(), ""
        try:
            if read_line(output, limit):
                if way:
                    self.poll(lambda seen: any(one["pid"] == child.pid and one["devices"] for one in seen["clients"]), runtime_dir)
                with contextlib.suppress(BrokenPipeError):  # it has crashed
                    os.write(child.process.stdin.fileno(), b"go\n")
                if meanwhile is not None:
                    meanwhile(child)
            answer = read_line(output, max(0.1, limit - (time.monotonic() - started)))
            if answer and way:
                why_absent = absence(self.poll(lambda seen: not absence(seen, child.pid, way), runtime_dir), child.pid, way)
            if answer:
                child.process.stdin.close()
            try:
                status = child.process.wait(max(0.1, limit - (time.monotonic() - started)))
            except subprocess.TimeoutExpired:
                return Outcome(failure=f"it did not end within {limit:.0f} s")
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

    def poll(self, is_enough: Callable[[dict], bool], runtime_dir: Optional[str]) -> dict:
        """`xschedctl ps` once it `is_enough`, or after a while as it is: the shim reports every few milliseconds, and reconnects to
        a new daemon within seconds."""
        end = time.monotonic() + self.place.limit_s(3)
        while True:
            answer = ask(self.place, "ps", runtime_dir=runtime_dir)
            if is_enough(answer) or time.monotonic() > end:
                return answer
            time.sleep(0.02)

    def command(self, seed: object) -> List[str]:
        """`seed`: a seed for calls_program.py, or a library's name for library_program.py."""
        if isinstance(seed, str):
            return [sys.executable, "-B", os.path.join(HERE, "library_program.py"), seed]
        return [sys.executable, "-B", os.path.join(HERE, "calls_program.py"), str(seed)]

    def native(self, seed: int) -> Outcome:
        started = time.monotonic()
        with Children(self.place.folder) as children:
            outcome = self.outcome(children, self.command(seed))
        self.run_s = max(self.run_s, time.monotonic() - started)
        return outcome

    def ours(self, way: str, seed: int) -> Outcome:
        with Children(self.place.folder) as children:
            if way == KILLED:
                return self.with_daemon_killed(children, seed)
            rig = TurnsRig(self.place, children, OURS)
            self.start_neighbour(rig, way)
            # The one that is reprioritised begins below: on a busy host it would end before a first command moved it there.
            priority = {TRACKED: HIGH, HELD: LOW, REPRIORITISED: LOW}[way]
            return self.outcome(children, scheduled(self.place, ["--priority", str(priority)], self.command(seed)),
                                self.reprioritise if way == REPRIORITISED else None, way)

    def start_neighbour(self, rig: TurnsRig, way: str) -> None:
        """The neighbour ends with its folder's context."""
        neighbour = rig.start(NEIGHBOURS[way])
        rig.wait_ready()
        if way == TRACKED:
            return
        if rig.way == OURS:
            ask(self.place, "set", "--latency", "strict", "--pid", str(neighbour.child.pid))
        # It holds others again and again, but not all the time: beside a loop no program below it would finish.
        start_ns = rig.begin([neighbour], 2 * self.limit_s(), {neighbour.name: Load(50, "periodic")} if way == HELD else {})
        # A program on a fast host works for 30 ms, and would have ended before.
        time.sleep(max(0.0, (start_ns - time.monotonic_ns()) / 1e9))

    def beside(self, way: str, seed: int) -> Outcome:
        """Runs it without xschedd, beside the same neighbour as under xschedd."""
        try:
            with Children(self.place.folder) as children:
                if way != KILLED:
                    self.start_neighbour(TurnsRig(self.place, children, NATIVE), way)
                    return self.outcome(children, self.command(seed))
                idle = children.start("idle", [*self.place.probe, "--stay"], self.place.environment, True)
                try:
                    read_line(idle.process.stdout.fileno(), self.place.limit_s(60))
                    return self.outcome(children, self.command(seed))
                finally:
                    idle.process.stdin.close()
                    children.stop([idle])
                    idle.process.stdout.close()
        except (NotHere, ToolError) as error:
            return Outcome(failure=str(error))

    def reprioritise(self, child: Child) -> None:
        """Sets its priority above and below its neighbour's, as fast as the command runs."""
        end = time.monotonic() + self.limit_s()
        while not select.select([child.process.stdout], [], [], 0)[0] and time.monotonic() < end:
            for words in (("--priority", str(HIGH)), ("--reset=priority",)):
                try:
                    ask(self.place, "set", *words, "--pid", str(child.pid))
                except ToolError:
                    if select.select([child.process.stdout], [], [], 5)[0]:  # the program has just ended
                        return
                    raise

    def with_daemon_killed(self, children: Children, seed: int) -> Outcome:
        """Kills a daemon that was started only for this run, so that no other program is its client."""
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
            wait_for("the session of an idle program", lambda: ask(self.place, "ps", runtime_dir=runtime_dir)["clients"], [idle],
                     self.place.limit_s(15))
            return self.outcome(children, scheduled(self.place, [], self.command(seed), runtime_dir), kill, KILLED, runtime_dir)
        finally:
            idle.process.stdin.close()
            children.stop([idle])
            idle.process.stdout.close()
