"""What the parts of tools/bench/gpu/run share: daemons, rigs, and where results go.

Thread rule: main thread.
"""

import argparse
import json
import os
from typing import Dict, List, Optional

import figures
from benchlib.daemon import Daemon
from benchlib.processes import Children
from rig import Rig


class Bench:
    def __init__(self, options: argparse.Namespace, folder: str):
        self.options, self.folder = options, folder
        self.children: Children  # of the current part
        self.daemons = 0
        self.results: Dict[str, dict] = {}
        self.raw: Dict[str, Dict[str, dict]] = {}
        self.digests: Dict[str, List[List[str]]] = {}  # by work, of each of its processes

    def daemon(self, configuration: str = "") -> Daemon:
        self.daemons += 1
        folder = os.path.join(self.folder, f"daemon{self.daemons}")
        os.mkdir(folder, 0o700)
        return Daemon(self.options.build, self.children, folder, configuration, software_gpu=False)

    def policy(self, *keys: str) -> str:
        """The daemon's configuration: these keys and those of the command line."""
        return "\n".join(["[policy]", *keys, self.options.policy])

    def daemon_in(self, folder: str, configuration: str) -> Daemon:
        """Another daemon in the folder of one that was killed."""
        return Daemon(self.options.build, self.children, os.path.dirname(folder), configuration, software_gpu=False)

    def rig(self, environment: Optional[Dict[str, str]] = None, daemon: Optional[Daemon] = None) -> Rig:
        return Rig(self.options.build, self.children, {**os.environ, **(environment or {})}, daemon)

    def keep(self, name: str, answers: Dict[str, dict], high: Optional[str] = None) -> dict:
        """The figures of a stretch. `high`: the tenant whose latency matters, of those that answer requests."""
        for answer in answers.values():
            answer.pop("kernels", None)  # only for traces, and large
        self.raw[name] = answers
        return self.note(name, figures.summary(answers, high))

    def note(self, name: str, result: dict) -> dict:
        self.results[name] = result
        print(f"{name}: {json.dumps(result)}", flush=True)
        return result

    def close(self, rig: Rig) -> None:
        """Ends the tenants, and the daemon if there is one."""
        for tenant in rig.tenants:
            self.digests.setdefault(tenant.program.work, []).append(tenant.digests)
        rig.stop()
        if rig.daemon is not None:
            self.children.stop([rig.daemon.child])
