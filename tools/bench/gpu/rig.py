"""Tenants of tools/bench/gpu/run as processes: started with or without xschedd, asked for stretches of work together.

Thread rule: main thread.
"""

import json
import os
import select
import sys
import time
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence

from benchlib.daemon import Daemon
from benchlib.processes import Child, Children, ToolError

HERE = os.path.dirname(os.path.realpath(__file__))
START_LIMIT_S = 90.0  # PyTorch's first start on a cold file system takes 30


@dataclass
class Tenant:
    name: str
    kind: str
    model: str
    child: Child
    ready_s: float = 0.0
    digests: List[str] = field(default_factory=list)

    def send(self, command: dict) -> None:
        self.child.process.stdin.write(json.dumps(command) + "\n")
        self.child.process.stdin.flush()

    def answer(self, limit_s: float) -> dict:
        # An answer is one line, read whole: nothing is left in the buffer when the next is waited for.
        if not select.select([self.child.process.stdout], [], [], limit_s)[0]:
            raise ToolError(f"{self.name} gave no answer within {limit_s:.0f} s: {self.child.log_tail()}")
        line = self.child.process.stdout.readline()
        if not line:
            raise ToolError(f"{self.name} ended: {self.child.log_tail()}")
        result = json.loads(line)
        self.digests.append(result["digest"])
        return result


class Rig:
    """Where tenants run. `daemon`: they are scheduled by it, else not."""

    def __init__(self, build: str, children: Children, environment: Dict[str, str], daemon: Optional[Daemon] = None):
        self.shim = os.path.join(build, "client-shim", "libxschedd-shim.so")
        self.children, self.environment, self.daemon = children, environment, daemon
        self.tenants: List[Tenant] = []

    def start(self, name: str, kind: str, model: str, extra: Optional[Dict[str, str]] = None,
              core: Optional[int] = None) -> Tenant:
        """`core`: all its threads run on this one."""
        environment = dict(self.environment, PYTHONUNBUFFERED="1", **(extra or {}))
        if self.daemon is not None:
            environment.update(LD_PRELOAD=self.shim, XSCHEDD_RUNTIME_DIR=self.daemon.folder, XSCHEDD_LOG="info")
        command = [sys.executable, os.path.join(HERE, "tenant.py"), kind, model]
        if core is not None:
            command = ["taskset", "-c", str(core), *command]
        child = self.children.start(name, command, environment, is_asked=True)
        tenant = Tenant(name, kind, model, child)
        self.tenants.append(tenant)
        return tenant

    def wait_ready(self) -> None:
        for tenant in self.tenants:
            if not tenant.digests:
                tenant.ready_s = tenant.answer(START_LIMIT_S)["ready_s"]

    def stretch(self, tenants: Sequence[Tenant], seconds: float, rate: float = 20.0, seed: int = 1) -> Dict[str, dict]:
        """Has the tenants work at the same time; answers by name. `rate` 0: one request after the other."""
        start = self.begin(tenants, seconds, rate, seed)
        return self.finish(tenants, seconds, start)

    def begin(self, tenants: Sequence[Tenant], seconds: float, rate: float = 20.0, seed: int = 1) -> int:
        """The first half of a stretch, for those who want to do something meanwhile: when it starts (monotonic, ns)."""
        start = time.monotonic_ns() + 200_000_000
        command = {"start_ns": start, "end_ns": start + int(seconds * 1e9), "rate": rate, "seed": seed}
        for tenant in tenants:
            tenant.send(command)
        return start

    def finish(self, tenants: Sequence[Tenant], seconds: float, start: int) -> Dict[str, dict]:
        answers = {tenant.name: tenant.answer(seconds * 3 + 30) for tenant in tenants}
        for answer in answers.values():
            answer["seconds"], answer["start_ns"] = seconds, start
        return answers

    def stop(self) -> None:
        for tenant in self.tenants:
            tenant.child.process.stdin.close()
        self.children.stop([tenant.child for tenant in self.tenants])
        self.tenants = []
