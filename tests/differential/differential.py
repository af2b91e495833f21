"""The differential suite: runs programs without xschedd and in the other modes, and compares what they wrote.

    differential.py [--program NAME]... [--seeds N | --seed N] [--devices 1,2] [--modes M,...] [--rounds N] [--references N]

The contract with the programs is in transcript.h. A run passes if its transcript, exit status and standard error are
those of the reference. The differences of each run that failed are printed, then a table, then a line `N passed, N failed`.
Exit status 0: all passed; 77: each program was skipped, for a line `// Not with HIP VERSION: REASON` in its source.
Thread rule: one thread a process; a process for each program, seed and number of devices.

Modes:
  reference    the real libamdhip64 and the software GPU alone
  no-daemon    the shim is preloaded, and no daemon is there
  untracked    shim and daemon, alone on the devices
  hostile      shim and daemon beside competitors, under hostile.py's scheduler
  restarts     the same, and the daemon is killed and started again at random moments
"""

import argparse
import collections
import concurrent.futures
import difflib
import os
import pathlib
import random
import re
import selectors
import signal
import sys
import time

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "e2e"))

import evidence  # noqa: E402
import harness  # noqa: E402
import hostile  # noqa: E402

PROGRAMS = harness.BUILD / "tests/differential"
SOURCES = {path.stem: path for path in (here / "programs").glob("*.*") if "int main(" in path.read_text()}
# Markers are late, by far more than a marker takes on a GPU that the program has to itself.
LATE_BARRIERS_US = "1500"
MODES = ("no-daemon", "untracked", "hostile", "restarts")
DEADLINE_S = 120.0
# The parts of a line of the HIP runtime's log that always differ: time, process, thread, a queue's address.
WHEN_AND_WHO = re.compile(r"^(:\d:[\w./]+\s*:\d+\s*:).* us: (?:.*?\[(?:pid:\d+ )?tid:\w+\])?(?: +Callback: Queue \w+)?")
MAX_LINES = 60  # of a difference are printed
MAX_TRIES = 3


class Result:
    """The result of a run: the lines of its lanes, its exit status, and its standard error without the lines that are expected
    of the shim."""

    def __init__(self, mode, out, err, status, hung):
        self.hung = hung
        self.lanes = {}
        for line in out.splitlines():
            lane, _, text = line.partition(": ")
            self.lanes.setdefault(lane, []).append(text)
        self.said = [line for line in err.splitlines() if evidence.is_expected(mode, line)]
        self.lanes["standard error"] = [WHEN_AND_WHO.sub(r"\1", line) for line in err.splitlines() if line not in self.said]
        self.status = status
        self.lanes["exit status"] = ["hung: killed" if hung else str(status)]

    def failed_checks(self):
        failed = [f"{lane}: {line}" for lane, lines in self.lanes.items() for line in lines if line.endswith(" FAILS")]
        return failed + ([f"exit status {self.status}"] if self.status else [])


class Conversation:
    """Reads a program's output, answers its questions (transcript.h, Run::Ask), and lets the scheduler act meanwhile."""

    def __init__(self, node, process, scheduler):
        self.node, self.process, self.scheduler = node, process, scheduler
        self.out, self.err = bytearray(), bytearray()
        self.line_begin = 0

    def run(self):
        """Runs until the program and every process with its output have ended; False if that takes too long."""
        end = time.monotonic() + DEADLINE_S
        act_at = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ, self.out)
            selector.register(self.process.stderr, selectors.EVENT_READ, self.err)
            while selector.get_map():
                now = time.monotonic()
                if now > end:
                    return False
                for key, _ in selector.select(max(0.0, min(end, act_at) - now) if self.scheduler else end - now):
                    piece = os.read(key.fd, 65536)
                    key.data.extend(piece)
                    if not piece:
                        selector.unregister(key.fileobj)
                self._answer()
                if self.scheduler and time.monotonic() >= act_at and self.process.poll() is None:
                    act_at = time.monotonic() + self.scheduler.act()
        self.process.wait()
        return True

    def _answer(self):
        """Answers complete lines that begin with `?`, which are questions, and removes them."""
        while (line_end := self.out.find(b"\n", self.line_begin)) >= 0:
            line = bytes(self.out[self.line_begin:line_end])
            if not line.startswith(b"?"):
                self.line_begin = line_end + 1
                continue
            del self.out[self.line_begin:line_end + 1]
            if self.scheduler:
                what, pid = line[1:].decode().split()
                self._bring_about(what, int(pid))
            self.process.stdin.write("y\n" if self.scheduler else "n\n")
            self.process.stdin.flush()

    def _is_held_or_gone(self, pid):
        """Gone: where a lease may end, the process may have continued to its end."""
        client = self.scheduler.program.look().get(pid)
        return client is None or any(device["state"] == "held" for device in client["devices"])

    def _bring_about(self, what, pid):
        if what == "hold":
            self.scheduler.pin()
            self.scheduler.hold(pid)
        elif what == "held":
            harness.wait_for(lambda: self._is_held_or_gone(pid), "a thread of the process waits at a gate")
        elif what == "release":
            self.scheduler.release(pid)
        else:
            raise AssertionError(f"the program asks for '{what}'; transcript.h lists what there is")


# One case: `rounds` goes to the program, `references` is how often the reference runs.
Case = collections.namedtuple("Case", "program seed devices rounds modes references show")


def run(case, mode):
    """Runs the program once; returns its Result, the scheduler's actions, and the missing evidence."""
    node = harness.Node()
    node.kernels.append(PROGRAMS / "libdifferential_kernels.so")
    environment = {"SOFTGPU_DEVICES": str(case.devices), "XSCHEDD_LOG": "info"}
    scheduler = None
    try:
        if mode == "no-daemon":
            environment["LD_PRELOAD"] = str(harness.BUILD / "client-shim/libxschedd-shim.so")
            environment["XSCHEDD_RUNTIME_DIR"] = str(node.dir / "nowhere")
        elif mode != "reference":
            # With the daemon's own, leases end where it is killed.
            node.start_daemon(lease_ms=None if mode == "restarts" else harness.LONG_LEASE_MS)
        if mode in ("hostile", "restarts"):
            numbers = random.Random(f"{case.seed} {case.program} {case.devices} {mode}")
            scheduler = hostile.Scheduler(node, numbers, case.devices, restarts=mode == "restarts")
            environment["SOFTGPU_LATE_BARRIERS"] = LATE_BARRIERS_US
        process = node.start(PROGRAMS / case.program, case.seed, case.devices, case.rounds, interactive=True,
                             shim=mode not in ("reference", "no-daemon"), environment=environment)
        if scheduler:
            scheduler.pid = process.pid
        conversation = Conversation(node, process, scheduler)
        ended = conversation.run()
        if not ended:
            process.send_signal(signal.SIGKILL)
            process.wait()
        result = Result(mode, conversation.out.decode(errors="replace"), conversation.err.decode(errors="replace"),
                        process.returncode, hung=not ended)
        missing = []
        if mode == "no-daemon":
            missing = evidence.missing_without_daemon(result.said)
        elif mode == "untracked":
            missing = evidence.missing_untracked(node)
        elif scheduler:
            scheduler.program.look_back(process.pid)
            missing = scheduler.program.missing()
        return result, scheduler.done if scheduler else [], missing
    finally:
        node.close()


def difference(reference, other):
    """Lines of a unified diff for each lane that differs; empty if none does."""
    lines = []
    for lane in sorted({*reference.lanes, *other.lanes}):
        before, after = reference.lanes.get(lane, []), other.lanes.get(lane, [])
        if before != after:
            lines.append(f"lane {lane}:")
            lines += ["    " + line for line in list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]]
    return lines


def said_of_hip(program, words):
    """The reasons in the lines `// WORDS HIP VERSIONS: REASON` of the program's source that are about the installed HIP."""
    version = harness.hip_version()
    found = re.findall(rf"^// {words} HIP ([\d., ]+): (.*)", SOURCES[program].read_text(), re.MULTILINE)
    return [why for versions, why in found if version in versions.split(", ")]


def tries(program):
    """How often a run may be made until it is right: more than once where HIP alone is wrong now and then."""
    return MAX_TRIES if said_of_hip(program, "Now and then wrong with") else 1


def compare(case):
    """Runs one case in all modes: a list of (mode, whether it passed, the text to print)."""
    for _ in range(tries(case.program)):
        reference, _, _ = run(case, "reference")
        if not reference.hung and not reference.failed_checks():
            break
    where = f"{case.program}, seed {case.seed}, {case.devices} device{'s' if case.devices > 1 else ''}"
    shown = [f"{lane}: {line}" for lane, lines in reference.lanes.items() for line in lines] if case.show else []
    if reference.hung:
        text = f"{where}: the reference did not end within {DEADLINE_S:.0f} s: no fault of xschedd, and nothing to compare"
        return [("reference", False, "\n".join([*shown, text]))]
    checks = reference.failed_checks()
    found = [("reference", not checks, "\n".join([*shown, f"{where}, reference: {len(checks)} checks failed", *checks]))]
    left_out = re.findall(r"^// Not in mode (\S+):", SOURCES[case.program].read_text(), re.MULTILINE)
    for mode in ["reference"] * (case.references - 1) + [mode for mode in case.modes if mode not in left_out]:
        # Evidence may be missing because the daemon got no processor while a short program ran: then another try has it.
        for number in range(MAX_TRIES):
            begin = time.monotonic()
            result, done, missing = run(case, mode)
            lines = difference(reference, result)
            if not missing and not lines or lines and number + 1 >= tries(case.program):
                break
        lines += [f"NOT SHOWN: {what}" for what in missing]
        text = [f"{where}, {mode}: {'DIFFERS' if lines else 'same'}, {sum(map(len, result.lanes.values()))} lines, "
                f"{time.monotonic() - begin:.1f} s, {len(done)} actions of the scheduler"
                + (f", try {number + 1}" if number else "")]
        if lines:
            text += ["  " + line for line in lines[:MAX_LINES]]
            text += [f"  ... and {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
            text += ["  xschedd said: " + ("; ".join(result.said) or "nothing"), "  the scheduler did, last: " + "; ".join(done[-12:])]
        found.append((mode, not lines, "\n".join(text)))
    return found


def table(counts, modes):
    """Rows by program and devices: for each mode, how many of its runs passed."""
    rows = [["program", "devices", *modes]]
    for program, devices in sorted({key[:2] for key in counts}):
        cells = [counts.get((program, devices, mode), [0, 0]) for mode in modes]
        rows.append([program, str(devices), *(f"{passed}/{passed + failed}" if passed + failed else "-"
                                              for passed, failed in cells)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def parse():
    known = sorted(SOURCES)
    parser = argparse.ArgumentParser(description="Runs differential programs in each mode and compares.")
    parser.add_argument("--program", action="append", choices=known, metavar="NAME",
                        help=f"may be repeated; without it all: {', '.join(known)}")
    parser.add_argument("--seeds", type=int, default=1, help="seeds 1 to N (%(default)s)")
    parser.add_argument("--seed", type=int, help="this seed alone")
    parser.add_argument("--devices", default="1,2", help="numbers of devices, by commas (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the program's body (%(default)s)")
    parser.add_argument("--modes", default=",".join(MODES), help="by commas, of: %(default)s")
    parser.add_argument("--references", type=int, default=1, help="how often the reference runs; all must be equal")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs side by side (%(default)s)")
    parser.add_argument("--show", action="store_true", help="print the reference's transcript")
    arguments = parser.parse_args()
    arguments.modes = [mode for mode in arguments.modes.split(",") if mode]
    for mode in arguments.modes:
        if mode not in MODES:
            parser.error(f"unknown mode '{mode}'; use {', '.join(MODES)}")
    arguments.program = arguments.program or known
    for program in arguments.program:
        if not (PROGRAMS / program).exists():
            parser.error(f"there is no {PROGRAMS / program}; build it, or set XSCHEDD_BUILD to the build folder")
    return arguments


def skip_those_that_hip_cannot_run(arguments):
    """Prints why, and removes them from `arguments`."""
    for name in list(arguments.program):
        for why in said_of_hip(name, "Not with"):
            print(f"skipped: {name}: HIP {harness.hip_version()}: {why}", flush=True)
            arguments.program.remove(name)


def main():
    arguments = parse()
    skip_those_that_hip_cannot_run(arguments)
    if not arguments.program:
        return 77
    seeds = [arguments.seed] if arguments.seed is not None else range(1, arguments.seeds + 1)
    cases = [Case(program, seed, int(devices), arguments.rounds, arguments.modes, arguments.references, arguments.show)
             for seed in seeds for program in arguments.program for devices in arguments.devices.split(",")]
    counts = {}
    with concurrent.futures.ProcessPoolExecutor(max_workers=arguments.jobs) as pool:
        futures = {pool.submit(compare, case): case for case in cases}
        for future in concurrent.futures.as_completed(futures):
            case = futures[future]
            try:
                found = future.result()
            except Exception as error:  # an error of the harness: a daemon that did not start, a question without an answer
                found = [("reference", False, f"{case.program}, seed {case.seed}, {case.devices} devices: {error}")]
            for mode, passed, text in found:
                counts.setdefault((case.program, case.devices, mode), [0, 0])[0 if passed else 1] += 1
                if not passed or mode != "reference" or case.show:
                    print(text, flush=True)
    print(table(counts, ["reference", *arguments.modes]))
    passed, failed = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
