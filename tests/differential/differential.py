"""One differential program: runs it without xschedd and in the other modes, and compares what it wrote.

    differential.py PROGRAM [--seed N] [--devices N] [--rounds N] [--modes M,...] [--references N]

The contract with the programs is in transcript.h. Exit status 0: the transcripts, exit statuses and standard errors of all
modes are those of the reference. 1: they are not, and the difference is printed. Thread rule: one thread.

Modes:
  reference    the real libamdhip64 and the software GPU alone
  no-daemon    the shim is preloaded, and no daemon is there
  untracked    shim and daemon, alone on the devices
  hostile      shim and daemon beside competitors, under hostile.py's scheduler
  restarts     the same, and the daemon is killed and started again at random moments
"""

import argparse
import difflib
import os
import pathlib
import random
import selectors
import signal
import sys
import time

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "e2e"))

import harness  # noqa: E402
import hostile  # noqa: E402

PROGRAMS = harness.BUILD / "tests/differential"
MODES = ("no-daemon", "untracked", "hostile", "restarts")
DEADLINE_S = 60.0


class Result:
    """What a run of the program gave: its lanes' lines, its exit status, its standard error without xschedd's own lines."""

    def __init__(self, out, err, status, hung):
        self.hung = hung
        self.lanes = {}
        for line in out.splitlines():
            lane, _, text = line.partition(": ")
            self.lanes.setdefault(lane, []).append(text)
        own = [line for line in err.splitlines() if line.startswith(("xschedd", "xschedctl"))]
        self.said = "\n".join(own)  # shown with a difference, and not part of it
        self.lanes["standard error"] = [line for line in err.splitlines() if line not in own]
        self.lanes["exit status"] = ["hung: killed" if hung else str(status)]

    def failed_checks(self):
        return [f"{lane}: {line}" for lane, lines in self.lanes.items() for line in lines if line.endswith(" FAILS")]


class Conversation:
    """Reads a program's output, answers its questions (transcript.h, Run::Ask), and lets the scheduler act meanwhile."""

    def __init__(self, node, process, scheduler):
        self.node, self.process, self.scheduler = node, process, scheduler
        self.out, self.err = bytearray(), bytearray()
        self.line_begin = 0

    def run(self):
        """Until the program has ended, and every process that has its output; False where that takes too long."""
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
        """Complete lines that begin with `?` are questions: they are answered and taken out."""
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

    def _bring_about(self, what, pid):
        if what == "hold":
            self.scheduler.pin()
            harness.wait_for(lambda: pid in self.node.clients(), "the process is a client when it is to be held")
            self.scheduler.hold(pid)
        elif what == "held":
            harness.wait_for(lambda: any(device["state"] == "held" for device in self.node.clients()[pid]["devices"]),
                             "a thread of the process waits at a gate")
        elif what == "release":
            self.scheduler.release(pid)
        else:
            raise AssertionError(f"the program asks for '{what}'; transcript.h lists what there is")


def run(program, arguments, mode):
    """Runs the program once; returns its Result and what the scheduler did."""
    node = harness.Node()
    node.kernels.append(PROGRAMS / "libdifferential_kernels.so")
    environment = {"SOFTGPU_DEVICES": str(arguments.devices)}
    scheduler = None
    try:
        if mode == "no-daemon":
            environment["LD_PRELOAD"] = str(harness.BUILD / "client-shim/libxschedd-shim.so")
            environment["XSCHEDD_RUNTIME_DIR"] = str(node.dir / "nowhere")
        elif mode != "reference":
            node.start_daemon()
        if mode in ("hostile", "restarts"):
            numbers = random.Random(f"{arguments.seed} {program} {arguments.devices} {mode}")
            scheduler = hostile.Scheduler(node, numbers, arguments.devices, restarts=mode == "restarts")
        process = node.start(PROGRAMS / program, arguments.seed, arguments.devices, arguments.rounds, interactive=True,
                             shim=mode not in ("reference", "no-daemon"), environment=environment)
        if scheduler:
            scheduler.pid = process.pid
        conversation = Conversation(node, process, scheduler)
        ended = conversation.run()
        if not ended:
            process.send_signal(signal.SIGKILL)
            process.wait()
        result = Result(conversation.out.decode(errors="replace"), conversation.err.decode(errors="replace"),
                        process.returncode, hung=not ended)
        return result, scheduler.done if scheduler else []
    finally:
        node.close()


def difference(reference, other):
    """Lines of a unified diff for each lane that is not the same; empty where nothing differs."""
    lines = []
    for lane in sorted({*reference.lanes, *other.lanes}):
        before, after = reference.lanes.get(lane, []), other.lanes.get(lane, [])
        if before != after:
            lines.append(f"lane {lane}:")
            lines += ["    " + line for line in list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]]
    return lines


def main():
    parser = argparse.ArgumentParser(description="Runs one differential program in each mode and compares.")
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--modes", default=",".join(MODES), help="by commas, of: %(default)s")
    parser.add_argument("--references", type=int, default=1, help="how often the reference runs; all runs must be equal")
    parser.add_argument("--show", action="store_true", help="print the reference's transcript")
    arguments = parser.parse_args()
    modes = arguments.modes.split(",")
    for mode in modes:
        if mode not in MODES:
            parser.error(f"unknown mode '{mode}'; use {', '.join(MODES)}")

    if not (PROGRAMS / arguments.program).exists():
        parser.error(f"there is no {PROGRAMS / arguments.program}; build it, or set XSCHEDD_BUILD to the build folder")

    reference, _ = run(arguments.program, arguments, "reference")
    if arguments.show:
        for lane, lines in reference.lanes.items():
            for line in lines:
                print(f"{lane}: {line}")
    if reference.hung:
        print(f"{arguments.program}: the reference did not end within {DEADLINE_S:.0f} s: no fault of xschedd, and nothing to "
              "compare; --show prints how far it came")
        return 1
    failed = bool(reference.failed_checks())
    for check in reference.failed_checks():
        print(f"{arguments.program}: reference: {check}")
    for mode in ["reference"] * (arguments.references - 1) + modes:
        begin = time.monotonic()
        result, done = run(arguments.program, arguments, mode)
        lines = difference(reference, result)
        where = f"{arguments.program}, seed {arguments.seed}, {arguments.devices} devices, {mode}"
        print(f"{where}: {'DIFFERS' if lines else 'same'}, {sum(map(len, result.lanes.values()))} lines, "
              f"{time.monotonic() - begin:.1f} s, {len(done)} actions", flush=True)
        if lines:
            failed = True
            print("  " + "\n  ".join(lines[:200]))
            print("  xschedd said: " + (result.said or "nothing"))
            print("  the scheduler did, last: " + "; ".join(done[-12:]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
