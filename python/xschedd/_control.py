"""The daemon's clients, devices and events, from `xschedctl --json`.

The answers are xschedctl's JSON as it is (docs/reference/json.md); a newer release may add keys. Thread rule: any thread.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from types import TracebackType
from typing import Any, Optional, TypedDict


class ClientDevice(TypedDict):
    slot: int
    device: str
    state: str
    gpu_time_ns: int
    held_ns: int
    held_for: str
    submitted: int
    completed: int
    in_flight: int
    window_limit: int
    window_us: int
    passthrough: int
    recent_ns: int
    recent_gpu_ns: int
    slice_wanted_us: int
    slice_us: int
    slice: str
    memory_bytes: Optional[int]
    memory_counted_bytes: Optional[int]
    memory_limit_bytes: Optional[int]
    memory_refused: int


class Queue(TypedDict):
    id: int
    slot: int
    native_priority: int
    launches: int
    completions: int


class Passed(TypedDict):
    rule: str
    count: int


class Claim(TypedDict):
    name: str
    text: str
    labels: dict[str, str]


class MemoryLimit(TypedDict):
    bytes: int
    source: str
    is_shared: bool
    not_applied: str


class Benefit(TypedDict):
    mode: str
    slower_percent: float
    tail_percent: float
    comparisons: int
    held_percent: float
    cost_percent: float
    is_settled: bool
    is_searching: bool


class Client(TypedDict):
    id: int
    pid: int
    uid: int
    gid: int
    cgroup: str
    exe: str
    command: str
    group: str
    priority_hint: Optional[int]
    priority_admin: Optional[int]
    priority_owner: Optional[int]
    priority_effective: int
    priority_source: str
    claim: Optional[Claim]
    memory_limit: Optional[MemoryLimit]
    latency: str
    queue_priority: str
    weight: int
    late: int
    passed: list[Passed]
    benefit: Optional[Benefit]
    hold: bool
    hold_by_admin: bool
    runtime: str
    route: str
    client_version: str
    connected_ms: int
    devices: list[ClientDevice]
    queues: list[Queue]


class Device(TypedDict):
    pci_address: str
    name: str
    vendor: str
    compute_units: int
    clients: int
    busy: int
    held: int


class Event(TypedDict):
    schema: str
    time_ns: int
    unix_ms: int
    kind: str
    client_id: int
    pid: int
    device: str
    priority: int
    weight: int
    count: int
    claim: str
    labels: dict[str, str]
    reason: str
    rule: str
    for_pid: int
    for_priority: int


class CtlError(RuntimeError):
    """xschedctl failed; the text is its own, with cause and remedy. `code`: its exit status; None: it is not installed."""

    def __init__(self, text: str, code: Optional[int] = None) -> None:
        super().__init__(text)
        self.code = code


class NoDaemonError(CtlError):
    """No daemon serves that folder."""


class NotPermittedError(CtlError):
    """This user may not ask that."""


_ERRORS = {3: NoDaemonError, 4: NotPermittedError}


def _find() -> str:
    found = os.environ.get("XSCHEDCTL") or shutil.which("xschedctl")
    for path in (found, "/usr/bin/xschedctl", "/usr/local/bin/xschedctl"):
        if path and os.access(path, os.X_OK):
            return path
    raise CtlError("there is no xschedctl; install it, add its folder to PATH, or set XSCHEDCTL to its path")


def _command(runtime_dir: Optional[str], words: list[str]) -> list[str]:
    where = ["--runtime-dir", runtime_dir] if runtime_dir else []
    return [_find(), *where, "--json", *words]


def _environment() -> dict[str, str]:
    # xschedctl itself uses no GPU.
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def _raise(code: int, said: str) -> None:
    lines = [line for line in said.splitlines() if line] or [f"xschedctl ended with {code}"]
    text = lines[-1][len("xschedctl: "):] if lines[-1].startswith("xschedctl: ") else lines[-1]
    raise _ERRORS.get(code, CtlError)(text, code)


def _ask(runtime_dir: Optional[str], *words: str) -> Any:
    done = subprocess.run(_command(runtime_dir, list(words)), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", env=_environment(), check=False)
    if done.returncode != 0:
        _raise(done.returncode, done.stderr)
    return json.loads(done.stdout)


def clients(*, runtime_dir: Optional[str] = None) -> list[Client]:
    """The clients that have a session, as `xschedctl ps` shows them. Raises NoDaemonError, NotPermittedError, CtlError."""
    found: list[Client] = _ask(runtime_dir, "ps")["clients"]
    return found


def devices(*, runtime_dir: Optional[str] = None) -> list[Device]:
    """The GPUs that clients have used."""
    found: list[Device] = _ask(runtime_dir, "ps")["devices"]
    return found


class Events:
    """An iterator over events, from an xschedctl process of its own. close(), the end of a `with` block, or the end of its
    last reference ends that process."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True, errors="replace", env=_environment())

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> Event:
        process = self._process
        assert process.stdout is not None and process.stderr is not None
        line = "" if process.stdout.closed else process.stdout.readline()
        if line:
            event: Event = json.loads(line)
            return event
        if not process.stdout.closed:
            said = process.stderr.read()
            code = process.wait()
            self.close()
            if code != 0:
                _raise(code, said)
        raise StopIteration

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self.close()


def events(*, follow: bool = False, replay: bool = False, runtime_dir: Optional[str] = None) -> Events:
    """What happened and why. Without arguments: the events that the daemon remembers. With `follow`: events from now on,
    until it is closed; with `replay` as well, the remembered ones first. An error is raised instead of the first event."""
    return Events(_command(runtime_dir, ["events", *(["--follow"] if follow else []),
                                         *(["--replay"] if replay and follow else [])]))
