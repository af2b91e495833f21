"""An xschedd of our own, unprivileged, in a private folder, and xschedctl talking to it.

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


class Daemon:
    def __init__(self, build: str, children: Children, folder: str, configuration: str = "",
                 software_gpu: bool = True):
        self.xschedctl = os.path.join(build, "tools", "xschedctl", "xschedctl")
        program = os.path.join(build, "daemon", "xschedd")
        for path in (program, self.xschedctl):
            if not os.access(path, os.X_OK):
                raise ToolError(f"{path} is not there; build it with ninja -C {build}")
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
        # The file is there a moment before anybody listens on it.
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

    def wait_for_clients(self, children: List[Child]) -> None:
        pids = {child.pid for child in children}
        # The commands exec one another: a client's pid is its child's.
        wait_for("the sessions of all tenants",
                 lambda: pids <= {client["pid"] for client in self.ask("ps")["clients"] if client["devices"]},
                 children + [self.child])

    def set_priority(self, child: Child, priority: int) -> Change:
        issued = time.monotonic_ns()
        answer = self.ask("set", "--priority", str(priority), "--pid", str(child.pid))
        return Change(issued, answer["applied_ns"], time.monotonic_ns())
