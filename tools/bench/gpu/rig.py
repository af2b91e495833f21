"""Starts the tenants of tools/bench/gpu/run as processes, with or without xschedd, and has them work together in stretches.

Thread rule: main thread.
"""

import json
import os
import select
import sys
import time
import zlib
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

from benchlib.daemon import Daemon
from benchlib.processes import Child, Children, ToolError
from scenarios import Load, Program

HERE = os.path.dirname(os.path.realpath(__file__))
TENANT = [sys.executable, os.path.join(HERE, "tenant.py")]
START_LIMIT_S = 180.0  # PyTorch's first start on a cold file system takes 30; 32 processes at once take more
TRACE_LEAD_S = 6.0  # CUPTI's start


def cores_of(names: Sequence[str], turn: int) -> Dict[str, int]:
    """By tenant, the core on which it begins a stretch. At one time a virtual machine's cores differ in speed by half, and a
    thread stays on the one that it ran on last: ways with processes of their own are only compared if they begin on the same."""
    cores = sorted(os.sched_getaffinity(0))
    return {name: cores[(place * len(cores) // len(names) + turn) % len(cores)] for place, name in enumerate(names)}


@dataclass
class Tenant:
    program: Program
    child: Child
    ready_s: float = 0.0
    digests: List[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def seed(self) -> int:
        """Of its arrivals: its own, and the same in each way of a scenario."""
        return zlib.crc32(self.name.encode())

    def send(self, command: dict) -> None:
        self.child.process.stdin.write(json.dumps(command) + "\n")
        self.child.process.stdin.flush()

    def answer(self, limit_s: float) -> dict:
        # An answer is one line, read completely, so nothing is left in the buffer before the next.
        if not select.select([self.child.process.stdout], [], [], limit_s)[0]:
            raise ToolError(f"{self.name} gave no answer within {limit_s:.0f} s: {self.child.log_tail()}")
        line = self.child.process.stdout.readline()
        if not line:
            raise ToolError(f"{self.name} ended: {self.child.log_tail()}")
        result = json.loads(line)
        self.digests.append(result["digest"])
        return result


def span_of(tenant: Tenant, seconds: float, start: int, spans: Optional[Dict[str, Tuple[float, float]]]) -> Tuple[int, int]:
    """When it works in a stretch that begins at `start` (monotonic, ns); `spans`: as of Rig.stretch."""
    first, last = (spans or {}).get(tenant.name, (0.0, 1.0))
    return start + int(seconds * 1e9 * first), start + int(seconds * 1e9 * last)


class Rig:
    """Where tenants run. `daemon`: schedules them; None: they are unscheduled."""

    def __init__(self, build: str, children: Children, environment: Dict[str, str], daemon: Optional[Daemon] = None):
        self.shim = os.path.join(build, "client-shim", "libxschedd-shim.so")
        self.children, self.environment, self.daemon = children, environment, daemon
        self.tenants: List[Tenant] = []

    def client_environment(self, extra: Optional[Dict[str, str]] = None) -> Dict[str, str]:
        environment = dict(self.environment, **(extra or {}))
        if self.daemon is not None:
            environment.update(LD_PRELOAD=self.shim, XSCHEDD_RUNTIME_DIR=self.daemon.folder, XSCHEDD_LOG="info")
        return environment

    def start(self, program: Program, extra: Optional[Dict[str, str]] = None, core: Optional[int] = None) -> Tenant:
        """`core`: all its threads run on this core."""
        environment = self.client_environment({"XSCHEDD_PRIORITY": str(program.priority), **(extra or {})})
        command = [*TENANT, program.kind, program.model]
        if core is not None:
            command = ["taskset", "-c", str(core), *command]
        tenant = Tenant(program, self.children.start(program.name, command, environment, is_asked=True))
        self.tenants.append(tenant)
        return tenant

    def wait_ready(self) -> None:
        for tenant in self.tenants:
            if not tenant.digests:
                tenant.ready_s = tenant.answer(START_LIMIT_S)["ready_s"]

    def stretch(self, tenants: Sequence[Tenant], seconds: float, loads: Optional[Dict[str, Load]] = None,
                trace: bool = False, cores: Optional[Dict[str, int]] = None,
                spans: Optional[Dict[str, Tuple[float, float]]] = None) -> Dict[str, dict]:
        """Has the tenants work at the same time; returns their answers by name. `loads`: by name, if not the default.
        `cores`: of cores_of(); else they begin where they are. `spans`: by name, the part of the stretch in which it works,
        from 0 to 1, if not all."""
        return self.finish(tenants, seconds, self.begin(tenants, seconds, loads, trace, cores, spans), spans)

    def begin(self, tenants: Sequence[Tenant], seconds: float, loads: Optional[Dict[str, Load]] = None,
              trace: bool = False, cores: Optional[Dict[str, int]] = None,
              spans: Optional[Dict[str, Tuple[float, float]]] = None) -> int:
        """Begins a stretch, so that the caller can act during it; returns its start (monotonic, ns)."""
        start = time.monotonic_ns() + int(1e9 * (TRACE_LEAD_S if trace else 0.2))
        for tenant in tenants:
            load = (loads or {}).get(tenant.name, Load())
            first, last = span_of(tenant, seconds, start, spans)
            tenant.send({"start_ns": first, "end_ns": last, "rate": load.rate,
                         "arrivals": load.arrivals, "seed": tenant.seed, "trace": trace, "core": (cores or {}).get(tenant.name)})
        return start

    def finish(self, tenants: Sequence[Tenant], seconds: float, start: int,
               spans: Optional[Dict[str, Tuple[float, float]]] = None) -> Dict[str, dict]:
        answers = {tenant.name: tenant.answer(seconds * 3 + 40) for tenant in tenants}
        for tenant in tenants:
            first, last = span_of(tenant, seconds, start, spans)
            answers[tenant.name].update(seconds=(last - first) / 1e9, start_ns=first)
        return answers

    def kill(self, tenant: Tenant) -> int:
        """Kills it; returns when (monotonic, ns)."""
        killed = time.monotonic_ns()
        tenant.child.process.kill()
        self.tenants.remove(tenant)
        return killed

    def stop(self) -> None:
        for tenant in self.tenants:
            tenant.child.process.stdin.close()
        self.children.stop([tenant.child for tenant in self.tenants])
        self.tenants = []
