"""Whether a GPU is in use by others, from the drivers' answers. Pure, except for the functions that start with `read`.

Thread rule: main thread.
"""

import glob
import os
import subprocess
from typing import List, Optional

BUSY_PERCENT = 5


def nvidia_users(apps: str, utilization: str) -> List[str]:
    """From nvidia-smi's two answers as CSV without a header. In a container the first may be empty, the second is not."""
    pids = [line.strip() for line in apps.splitlines() if line.strip().isdigit()]
    busy = [line.split(",") for line in utilization.splitlines() if "," in line]
    return ([f"pid {pid} computes on an NVIDIA GPU" for pid in pids] +
            [f"GPU {index.strip()} is {percent.strip()} % busy" for index, percent in busy
             if percent.strip().isdigit() and int(percent) >= BUSY_PERCENT])


def read_nvidia() -> List[str]:
    answers = []
    for query in ("--query-compute-apps=pid", "--query-gpu=index,utilization.gpu"):
        try:
            done = subprocess.run(["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True,
                                  timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return []
        answers.append(done.stdout if done.returncode == 0 else "")
    return nvidia_users(*answers)


def read_amd(root: str = "/") -> List[str]:
    users = []
    for folder in sorted(glob.glob(os.path.join(root, "sys/class/kfd/kfd/proc/[0-9]*"))):
        # A process that has opened /dev/kfd without making a queue computes nothing.
        if glob.glob(os.path.join(folder, "queues/[0-9]*")):
            users.append(f"pid {os.path.basename(folder)} has queues on an AMD GPU")
    for path in sorted(glob.glob(os.path.join(root, "sys/class/drm/card*/device/gpu_busy_percent"))):
        try:
            with open(path, encoding="utf-8") as file:
                percent = int(file.read())
        except (OSError, ValueError):
            continue
        if percent >= BUSY_PERCENT:
            users.append(f"{path.split('/')[-3]} is {percent} % busy")
    return users


def read_users(root: str = "/") -> List[str]:
    return read_amd(root) + read_nvidia()


def line(users: List[str]) -> Optional[str]:
    """None: no users."""
    if not users:
        return None
    return users[0] + (f" (and {len(users) - 1} more)" if len(users) > 1 else "")
