"""Runs a command, such as `meson test ...`, and stops each process below it for a quarter of a second about once a second, at random
moments: `./dev test --stalls`. A busy machine does the same to a process now and then. What fails here relies on a process that
is never late, and will fail somewhere; it has found faults of xschedd, too.

    stall.py COMMAND [ARG...]

A test whose script or source stops processes itself is left alone, because the continuation would end its stops. Exit status: the
command's. Thread rule: one thread.
"""

import functools
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

STOPS_A_SECOND = 1.0  # of each process
STOP_S = 0.25
STEP_S = 0.03
STOPPED = "TtZ"  # states in /proc/PID/stat: stopped, traced, ended
HERE = pathlib.Path(__file__).resolve().parent


def processes():
    """{pid: (parent, state)}"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        found[int(pid)] = int(parent), state
    return found


def below(pid, known):
    """The processes that descend from it, without those of tests that are left alone."""
    children = {}
    for child, (parent, _) in known.items():
        children.setdefault(parent, []).append(child)
    found, open_pids = [], children.get(pid, [])
    while open_pids:
        child = open_pids.pop()
        if not stops_by_itself(child):
            found.append(child)
            open_pids += children.get(child, [])
    return found


def stops_by_itself(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return True  # it has ended
    if words == [""]:
        return True  # it has ended, or is between two programs
    return any(word.endswith(own_stoppers()) for word in words)


@functools.lru_cache
def own_stoppers():
    """The ends of the commands of tests that stop processes themselves: a script's name, or that of a source's program."""
    return tuple(f"/{path.name}" if path.suffix == ".py" else f"_{path.stem}" for path in HERE.rglob("*.*")
                 if path.suffix in (".py", ".hip", ".cc") and re.search(r"\bSIGSTOP\b", path.read_text(errors="replace")))


def main():
    command = subprocess.Popen(sys.argv[1:])
    continue_at = {}
    stops = 0

    def go_on(pids):
        for pid in pids:
            continue_at.pop(pid)
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    try:
        while command.poll() is None:
            known = processes()
            now = time.monotonic()
            go_on([pid for pid, at in continue_at.items() if at <= now])
            for pid in below(command.pid, known):
                if pid in continue_at or known[pid][1] in STOPPED or random.random() >= STOPS_A_SECOND * STEP_S:
                    continue
                try:
                    os.kill(pid, signal.SIGSTOP)
                except ProcessLookupError:
                    continue
                continue_at[pid] = now + STOP_S
                stops += 1
            time.sleep(STEP_S)
    finally:
        go_on(list(continue_at))
    print(f"processes were stopped {stops} times", flush=True)
    return command.returncode


if __name__ == "__main__":
    sys.exit(main())
