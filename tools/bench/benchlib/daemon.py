"""A private, unprivileged xschedd in a folder of its own, and calls to it through xschedctl.

Thread rule: main thread.
"""

import json
import os
import socket
import time
from dataclasses import dataclass
from typing import List

from .processes import Child, Children, ToolError, run_text, wait_for


@dataclass
class Change:
    issued_ns: int  # before xschedctl was started
    applied_ns: int  # the daemon's clock when the last gate was written
    answered_ns: int  # xschedctl had ended


@dataclass
class Levers:
    """What the daemon does to some clients for others that are more important, as it reports it."""

    time_ns: int
    held_ns: int  # until then, summed over all clients
    clients: int
    mode: str  # its answer, of daemon/policy/benefit.h; "-": nothing was compared yet
    is_settled: bool  # it has found the best mode

    def held_since(self, before: "Levers") -> float:
        """The part of the time in which one of them was held."""
        return (self.held_ns - before.held_ns) / (self.time_ns - before.time_ns) / max(self.clients, 1)


class Daemon:
    def __init__(self, build: str, children: Children, folder: str, configuration: str = "",
                 software_gpu: bool = True, portable: bool = False):
        """`portable`: the program that `./dev dist` packs."""
        self.xschedctl = os.path.join(build, "tools", "xschedctl", "xschedctl")
        program = os.path.join(build, *(["tools", "dist"] if portable else ["daemon"]), "xschedd")
        for path in (program, self.xschedctl):
            if not os.access(path, os.X_OK):
                raise ToolError(f"{path} does not exist; build it with ninja -C {build}")
        self.folder = os.path.join(folder, "run")
        os.makedirs(self.folder, 0o700, exist_ok=True)
        command = [program, "--runtime-dir", self.folder, *(["--software-gpu"] if software_gpu else [])]
        if configuration:
            path = os.path.join(self.folder, "xschedd.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(configuration)
            command += ["--config", path]
        self.child: Child = children.start("xschedd", command)
        wait_for("the daemon's admin socket", self._listens, [self.child])

    def _listens(self) -> bool:
        # The file exists a moment before the daemon listens on it.
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(os.path.join(self.folder, "admin.sock")) == 0

    def follow_events(self, children: Children) -> Child:
        return children.start("events", [self.xschedctl, "--runtime-dir", self.folder, "--json", "events", "--follow"])

    def run_command(self, words: List[str], priority: int) -> List[str]:
        return [self.xschedctl, "--runtime-dir", self.folder, "run", "--priority", str(priority), "--"] + words

    def set_policy(self, name: str) -> None:
        self.ask("policy", "set", name)

    def ask(self, *words: str) -> dict:
        return json.loads(run_text([self.xschedctl, "--runtime-dir", self.folder, "--json", *words]))

    def levers(self, important: List[Child], others: List[Child]) -> Levers:
        top, below = ({child.pid for child in children} for children in (important, others))
        clients = self.ask("ps")["clients"]
        time_ns = time.monotonic_ns()
        held_ns = sum(device["held_ns"] for client in clients if client["pid"] in below for device in client["devices"])
        benefits = [client["benefit"] for client in clients if client["pid"] in top]
        known = [benefit for benefit in benefits if benefit is not None]
        mode = "/".join(sorted({benefit["mode"] for benefit in known})) or "-"
        return Levers(time_ns, held_ns, len(below), mode, any(benefit["is_settled"] for benefit in known))

    def wait_for_clients(self, children: List[Child]) -> None:
        pids = {child.pid for child in children}
        # The commands exec one another, so a client's pid is the child's.
        wait_for("the sessions of all tenants",
                 lambda: pids <= {client["pid"] for client in self.ask("ps")["clients"] if client["devices"]},
                 children + [self.child])

    def set_priority(self, child: Child, priority: int) -> Change:
        issued = time.monotonic_ns()
        answer = self.ask("set", "--priority", str(priority), "--pid", str(child.pid))
        return Change(issued, answer["applied_ns"], time.monotonic_ns())
