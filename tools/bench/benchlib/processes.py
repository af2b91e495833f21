"""Child processes that never outlive this program, whatever ends it: an error, Ctrl-C, SIGTERM, even SIGKILL.

Thread rule: main thread.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from typing import Callable, Dict, List, Optional, Sequence

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ToolError(Exception):
    """An error that the user can act on, in one line."""


def dies_with_this_process() -> Callable[[], None]:
    """A `preexec_fn`: the child is killed when this process ends, also if that was before the child could ask for it."""
    parent = os.getpid()

    def in_child() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return in_child


def stop_on_signals() -> None:
    """SIGTERM and SIGHUP end the program as Ctrl-C does: through the `finally` blocks."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


class Child:
    def __init__(self, name: str, process: subprocess.Popen, log_path: str):
        self.name = name
        self.process = process
        self.log_path = log_path

    @property
    def pid(self) -> int:
        return self.process.pid

    def lines(self) -> List[str]:
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read().splitlines()

    def log_tail(self) -> str:
        lines = [line.strip() for line in self.lines() if line.strip()]
        return lines[-1] if lines else "it printed nothing"

    def check_alive(self) -> None:
        status = self.process.poll()
        if status is not None:
            raise ToolError(f"{self.name} ended early with status {status}: {self.log_tail()}")


class Children:
    """Starts children with their output in files of `folder`; leaving the context ends those that still run."""

    def __init__(self, folder: str):
        self.folder = folder
        self._children: List[Child] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(self._children[::-1])

    def start(self, name: str, command: Sequence[str], environment: Optional[Dict[str, str]] = None,
              is_asked: bool = False) -> Child:
        """`is_asked`: its standard input and output are text pipes to this program, and only its errors go to the file."""
        log_path = os.path.join(self.folder, name + ".log")
        with open(log_path, "ab") as log:  # two daemons have one name
            # A session of its own: Ctrl-C reaches only this program, which decides the order in which children end.
            process = subprocess.Popen(list(command), stdout=subprocess.PIPE if is_asked else log,
                                       stderr=log if is_asked else subprocess.STDOUT,
                                       stdin=subprocess.PIPE if is_asked else subprocess.DEVNULL, text=is_asked or None,
                                       env=environment, start_new_session=True, preexec_fn=dies_with_this_process())
        child = Child(name, process, log_path)
        self._children.append(child)
        return child

    def stop(self, children: Sequence[Child], patience_s: float = 5.0) -> None:
        """SIGTERM, then SIGKILL for those that do not end."""
        chosen = list(children)
        for child in chosen:
            if child.process.poll() is None:
                child.process.terminate()
        deadline = time.monotonic() + patience_s
        for child in chosen:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                print(f"{child.name} did not end on SIGTERM and was killed", file=sys.stderr)
                child.process.kill()
                child.process.wait()
        self._children = [child for child in self._children if child not in chosen]


def wait_for(what: str, condition, children: Sequence[Child], limit_s: float = 15.0) -> None:
    """Polls until `condition()` holds; fails with the child that died, or with `what` after the limit, instead of hanging."""
    deadline = time.monotonic() + limit_s
    while not condition():
        for child in children:
            child.check_alive()
        if time.monotonic() > deadline:
            raise ToolError(f"{what} did not come within {limit_s:.0f} s")
        time.sleep(0.01)


def memory(pid: int) -> Dict[str, int]:
    """What a process has in memory: "rss_bytes" and "pss_bytes"."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        found = dict(re.findall(r"^(Rss|Pss): +(\d+) kB", file.read(), re.MULTILINE))
    return {name.lower() + "_bytes": int(kb) * 1024 for name, kb in found.items()}


def run_text(command: Sequence[str], environment: Optional[Dict[str, str]] = None, limit_s: float = 30.0) -> str:
    """Standard output of a short command; a failure raises a ToolError with its last line."""
    done = subprocess.run(list(command), env=environment, capture_output=True, text=True, timeout=limit_s, check=False)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it printed nothing"]
        raise ToolError(f"{' '.join(command[:4])}… ended with status {done.returncode}: {lines[-1]}")
    return done.stdout
