"""Finds the GPU: a real AMD one if HIP finds it, else the software GPU of this build.

Thread rule: main thread.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Dict, List, Optional

from .processes import ToolError

# Runs in a process of its own, because a failing HIP library may end its process.
_PROBE = """
import ctypes, sys
for name in ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"):
    try:
        hip = ctypes.CDLL(name)
        break
    except OSError:
        pass
else:
    sys.exit(1)
count = ctypes.c_int()
name = ctypes.create_string_buffer(256)
if hip.hipGetDeviceCount(ctypes.byref(count)) != 0 or count.value < 1:
    sys.exit(1)
if hip.hipDeviceGetName(name, 256, 0) != 0:
    sys.exit(1)
print(name.value.decode(errors="replace"))
"""


@dataclass
class Device:
    name: str  # as printed and recorded; contains "software GPU" for one
    is_software: bool
    run: List[str]  # prefix of a command that runs it on the device
    environment: Dict[str, str]
    trace_prefix: Optional[str]  # the software GPU writes <prefix>.<pid>.jsonl

    def command(self, words: List[str], traced: bool = False) -> List[str]:
        if not self.is_software:
            return words
        trace = ["--trace", self.trace_prefix] if traced and self.trace_prefix else []
        return self.run + trace + ["--"] + words


def _probe(command: List[str], environment: Dict[str, str]) -> Optional[str]:
    try:
        done = subprocess.run(command + [sys.executable, "-c", _PROBE], env=environment, capture_output=True, text=True,
                              timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or "unnamed" if done.returncode == 0 else None


def find_device(build: str, folder: str, software_devices: int = 0) -> Device:
    """`software_devices`: if not 0, the software GPU with this many devices, even if there is a real one."""
    environment = dict(os.environ)
    if software_devices > 0:
        environment["SOFTGPU_DEVICES"] = str(software_devices)
    elif os.path.exists("/dev/kfd"):
        name = _probe([], environment)
        if name is not None:
            return Device(f"real GPU: {name}", False, [], environment, None)
    softgpu = os.path.join(build, "tools", "softgpu")
    run = os.path.join(softgpu, "softgpu-run")
    if not os.access(run, os.X_OK):
        raise ToolError(f"there is no AMD GPU and no software GPU ({run}); build with -Dhip=enabled -Dsoftgpu=enabled")
    # A private device: other users of the software GPU must not run on it.
    environment["SOFTGPU_NAME"] = f"bench-{os.getpid()}"
    name = _probe([run, "--"], environment)
    if name is None:
        raise ToolError(f"the software GPU does not work; ./dev test --suite e2e shows what fails")
    # libamdhip64 5.2.3 returns the agent's name, which contains it; other releases may return the board's name.
    name = name if "software GPU" in name else f"software GPU ({name})"
    return Device(name, True, [run], environment, os.path.join(folder, "dispatches"))


def remove_device(device: Device, build: str) -> None:
    """Removes what killed processes of the software GPU leave in shared memory."""
    if not device.is_software:
        return
    control = os.path.join(build, "tools", "softgpu", "softgpuctl")
    subprocess.run([control, "clean", device.environment["SOFTGPU_NAME"]], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
