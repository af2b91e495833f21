"""Facts about the node: kernel, drivers, partition modes, from files below `root` and the drivers' own tools.

Thread rule: main thread.
"""

import csv
import glob
import os
import platform
import subprocess
from typing import Dict, List

NVIDIA = ("index", "name", "pci.bus_id", "driver_version", "compute_mode", "mig.mode.current")


def text_of(path: str) -> str:
    """Empty: it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def pci_address(domain: int, location: int) -> str:
    """The address from KFD's `domain` and `location_id`, in the notation of HIP and the daemon."""
    return f"{domain:04x}:{location >> 8 & 0xff:02x}:{location >> 3 & 0x1f:02x}.{location & 7:x}"


def kfd_gpu(properties: str) -> Dict[str, str]:
    """A node of KFD's topology; empty: it has no shader engine, so it is a CPU."""
    numbers = {}
    for line in properties.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdigit():
            numbers[name] = int(value)
    if not numbers.get("simd_count"):
        return {}
    version = numbers.get("gfx_target_version", 0)
    return {"pci": pci_address(numbers.get("domain", 0), numbers.get("location_id", 0)),
            "isa": f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}",
            "compute_queues": str(numbers.get("num_cp_queues", 0))}


def amd(root: str) -> List[Dict[str, str]]:
    gpus = []
    for path in sorted(glob.glob(os.path.join(root, "sys/class/kfd/kfd/topology/nodes/*/properties"))):
        gpu = kfd_gpu(text_of(path))
        if gpu:
            device = os.path.join(root, "sys/bus/pci/devices", gpu["pci"])
            gpu["compute_partition"] = text_of(os.path.join(device, "current_compute_partition")) or "not reported"
            gpu["memory_partition"] = text_of(os.path.join(device, "current_memory_partition")) or "not reported"
            gpus.append(gpu)
    return gpus


def nvidia(answer: str) -> List[Dict[str, str]]:
    """From nvidia-smi's table; addresses in the notation of CUDA and the daemon, with four digits of domain."""
    gpus = []
    for row in csv.reader(answer.splitlines(), skipinitialspace=True):
        if len(row) == len(NVIDIA):
            gpu = dict(zip(NVIDIA, row))
            gpu["pci"] = gpu.pop("pci.bus_id").lower()[-12:]
            gpus.append(gpu)
    return gpus


def read_nvidia() -> List[Dict[str, str]]:
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(NVIDIA), "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return nvidia(done.stdout) if done.returncode == 0 else []


def read(root: str = "/") -> Dict[str, object]:
    return {"kernel": platform.release(),
            "amdgpu": text_of(os.path.join(root, "sys/module/amdgpu/version")),
            "scheduler": {"0": "HWS", "1": "MES"}.get(text_of(os.path.join(root, "sys/module/amdgpu/parameters/mes")), ""),
            "rocm": text_of(os.path.join(root, "opt/rocm/.info/version")),
            "has_kfd": os.path.exists(os.path.join(root, "dev/kfd")),
            # Not opened, because that would register this process with KFD.
            "may_use_kfd": os.access(os.path.join(root, "dev/kfd"), os.R_OK | os.W_OK),
            "amd": amd(root), "nvidia": read_nvidia()}
