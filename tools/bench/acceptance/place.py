"""The surroundings of acceptance: xschedctl, a daemon (the system's, or a private one in a temporary folder), the time left.

Thread rule: main thread.
"""

import json
import os
import select
import shutil
import subprocess
import sys
from typing import Dict, List, Optional, Tuple

from benchlib.processes import Child, Children, ToolError, dies_with_this_process, wait_for
from frame import Budget
from kernels import CODE

HERE = os.path.dirname(os.path.realpath(__file__))
# So that Python, CUDA and HIP's compiler leave no files behind.
LEAVES_NOTHING = {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_CACHE_DISABLE": "1", "AMD_COMGR_CACHE": "0"}
START_LIMIT_S = 60.0  # a cold runtime's first start
NO_ANSWER = 7  # xschedctl's exit code for that
OUTSIDE = "it is outside this container, and knows programs here by other pids"
WHY_NOT = {3: "none runs", 4: "this user may not use it", NO_ANSWER: "it does not answer"}


class NoDaemon(ToolError):
    pass


class Place:
    def __init__(self, xschedctl: str, runtime_dir: str, children: Children, folder: str, budget: Budget,
                 root: str = "/"):
        """`root`: where the node's /sys and /dev are read."""
        self._ctl, self._children, self._budget = xschedctl, children, budget
        self.root, self.folder = root, folder
        self.environment: Dict[str, str] = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        # ROCm's compiler leaves folders behind if it is killed.
        self.environment.update(LEAVES_NOTHING, TMPDIR=folder, MIOPEN_USER_DB_PATH=folder, MIOPEN_CUSTOM_CACHE_DIR=folder,
                                **{CODE: folder})
        self.probe = [sys.executable, "-B", os.path.join(HERE, "probe.py")]
        self.runtime_dir, self.why_no_daemon = runtime_dir, ""
        self.repeat = ""  # the only run of harmless to do
        self.levers_s = 0.0  # kept for levers, which are measured last; 0: they are not
        self._given = [xschedctl, *(["--runtime-dir", runtime_dir] if runtime_dir else [])]
        self.measured: Dict[str, list] = {}  # results of a section for later ones
        status = self._status()
        is_outside = status == 0 and self._is_outside()
        self.has_system_daemon = status == 0 and not is_outside
        self.why_not_the_systems = OUTSIDE if is_outside else WHY_NOT.get(status, f"xschedctl ps ends with status {status}")
        if not self.has_system_daemon:
            self._start_own(folder)

    def left_s(self) -> float:
        """At least a second, so that it is a limit."""
        return max(1.0, self._budget.left_s() - self.levers_s)

    def limit_s(self, seconds: float) -> float:
        return max(1.0, min(seconds, self.left_s()))

    def xschedctl(self, runtime_dir: Optional[str] = None) -> List[str]:
        chosen = self.runtime_dir if runtime_dir is None else runtime_dir
        return [self._ctl, *(["--runtime-dir", chosen] if chosen else [])]

    def xschedctl_given(self) -> List[str]:
        """xschedctl with the --runtime-dir that the user gave, whichever daemon is used."""
        return self._given

    def run(self, command: List[str], limit_s: float) -> subprocess.CompletedProcess:
        """Runs a command that ends with this process; its output is text."""
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self.limit_s(limit_s),
                              check=False, env=self.environment, preexec_fn=dies_with_this_process())

    def _ask(self, runtime_dir: Optional[str] = None) -> subprocess.CompletedProcess:
        return self.run([*self.xschedctl(runtime_dir), "--json", "ps"], 20)

    def _status(self, runtime_dir: Optional[str] = None) -> int:
        try:
            return self._ask(runtime_dir).returncode
        except subprocess.TimeoutExpired:
            return NO_ANSWER

    def _is_outside(self) -> bool:
        """Whether the daemon that answers has no process here: it knows programs by the pids of another namespace."""
        answer = self.run([*self.xschedctl(), "--json", "version"], 20)
        pid = (json.loads(answer.stdout)["daemon"] or {}).get("pid", 0) if answer.returncode == 0 else 0
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                return file.read().strip() != "xschedd"
        except OSError:
            return True

    def start_daemon(self, children: Children, folder: str) -> Child:
        """Starts a private daemon, with an empty configuration instead of the node's addresses and rules. It may be started again
        in the same folder after the one before has ended."""
        beside = os.path.dirname(self._ctl)
        candidates = [os.path.join(beside, "../../daemon/xschedd"), os.path.join(beside, "../sbin/xschedd"),
                      shutil.which("xschedd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin") or ""]
        program = next((path for path in candidates if os.access(path, os.X_OK)), None)
        if program is None:
            raise NoDaemon("there is no xschedd to start")
        runtime_dir, configuration = os.path.join(folder, "run"), os.path.join(folder, "xschedd.toml")
        software = ["--software-gpu"] if is_stand_in() else []
        os.makedirs(runtime_dir, 0o700, exist_ok=True)
        with open(configuration, "w", encoding="utf-8"):
            pass
        child = children.start("xschedd", [program, "--runtime-dir", runtime_dir, "--config", configuration, *software],
                               self.environment)
        wait_for("the daemon's answer", lambda: self._status(runtime_dir) == 0, [child], self.limit_s(15))
        return child

    def _start_own(self, folder: str) -> None:
        self.runtime_dir = os.path.join(folder, "run")
        try:
            self.start_daemon(self._children, folder)
        except NoDaemon as error:
            self.runtime_dir, self.why_no_daemon = "", f"none runs, and {error}"
        except (ToolError, OSError) as error:
            self.why_no_daemon = f"a private daemon does not start: {error}"

    def named_by_daemon(self) -> Tuple[Dict[str, object], List[str]]:
        """What the probe finds under the daemon, and the daemon's names of its GPUs."""
        child = self._children.start("probe", [*self.xschedctl(), "run", "--", *self.probe, "--stay"], self.environment, True)
        limit = self.limit_s(START_LIMIT_S)
        try:
            if not select.select([child.process.stdout], [], [], limit)[0]:
                raise ToolError(f"the probe gave no answer within {limit:.0f} s")
            line = child.process.stdout.readline()
            if not line:
                raise ToolError(child.log_tail())
            found = json.loads(line)
            names: List[str] = []

            def known() -> bool:
                names[:] = [device["device"] for client in json.loads(self._ask().stdout)["clients"]
                            if client["pid"] == child.pid for device in client["devices"]]
                return len(names) >= sum(len(answer["gpus"]) for answer in found["found"])

            try:
                wait_for("the session", known, [child], self.limit_s(10))
            except ToolError:
                if not names:
                    raise
            return found, names
        finally:
            child.process.stdin.close()
            self._children.stop([child])
            child.process.stdout.close()


def is_stand_in() -> bool:
    """Whether softgpu-run started this, which it shows by a variable."""
    return "SOFTGPU_ISA" in os.environ
