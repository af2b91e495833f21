"""One PyTorch process for the part `memory`: what it sees of the device, and what it gets of it, as one line of JSON.

usage: memory_work.py fill        allocates until PyTorch says that memory is out, frees, and computes
       memory_work.py kinds BYTES each kind of allocation of cudart: more than BYTES, then three quarters of BYTES
       memory_work.py neighbour BYTES   has BYTES, says "ready", and computes until standard input ends
Thread rule: main thread.
"""

import ctypes
import json
import re
import select
import sys
from typing import Any, Dict

import torch

MIB = 1 << 20


def nvml() -> Dict[str, int]:
    """Of the process's first device, by its identifier."""
    library = ctypes.CDLL("libnvidia-ml.so.1")

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    device, memory = ctypes.c_void_p(), Memory()
    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode()
    for result in (library.nvmlInit_v2(), library.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(device)),
                   library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))):
        if result != 0:
            return {"error": result}
    return {"total": memory.total, "free": memory.free, "used": memory.used}


def seen() -> Dict[str, Any]:
    free, total = torch.cuda.mem_get_info()
    return {"total": total, "free": free, "properties": torch.cuda.get_device_properties(0).total_memory, "nvml": nvml()}


def product() -> float:
    """A product that is the same each time."""
    a = torch.arange(1 << 20, device="cuda", dtype=torch.float32).reshape(1024, 1024) % 7
    return float((a @ a).sum().item())


def fill() -> Dict[str, Any]:
    before, right = seen(), product()
    kept, error = [], ""
    try:
        while len(kept) < 4096:
            kept.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError as out_of_memory:
        error = str(out_of_memory).splitlines()[0]
    got = 64 * MIB * len(kept)
    full = seen()
    kept.clear()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    return {"seen": before, "bytes": got, "error": error, "full": full, "after": seen(),
            "again": torch.empty(got // 2, dtype=torch.uint8, device="cuda").numel(), "is_right": product() == right}


class Extent(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class Format(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("x", "y", "z", "w", "kind")]


def kinds(limit: int) -> Dict[str, Any]:
    torch.cuda.synchronize()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found = re.search(r"\S*libcudart[^\s/]*\.so\S*", maps.read())
    assert found is not None
    runtime = ctypes.CDLL(found.group())
    width = 1 * MIB
    pitch = ctypes.c_size_t()
    array_format = Format(32, 0, 0, 0, 2)  # floats
    calls = {
        "cudaMalloc": (lambda out, size: runtime.cudaMalloc(out, ctypes.c_size_t(size)), runtime.cudaFree),
        "cudaMallocManaged": (lambda out, size: runtime.cudaMallocManaged(out, ctypes.c_size_t(size), 1), runtime.cudaFree),
        "cudaMallocPitch": (lambda out, size: runtime.cudaMallocPitch(
            out, ctypes.byref(pitch), ctypes.c_size_t(width), ctypes.c_size_t(size // width)), runtime.cudaFree),
        "cudaMalloc3DArray": (lambda out, size: runtime.cudaMalloc3DArray(
            out, ctypes.byref(array_format), Extent(2048, 2048, size // 4 // 2048 // 2048), 0), runtime.cudaFreeArray),
        "cudaMallocAsync": (lambda out, size: runtime.cudaMallocAsync(out, ctypes.c_size_t(size), None),
                            lambda at: runtime.cudaFreeAsync(at, None) or runtime.cudaDeviceSynchronize()),
    }
    results: Dict[str, Any] = {}
    for name, (allocate, free) in calls.items():
        at = ctypes.c_void_p(77)
        above = allocate(ctypes.byref(at), limit + 64 * MIB)
        untouched, last = at.value == 77, runtime.cudaGetLastError()
        below = allocate(ctypes.byref(at), limit // 4 * 3)
        freed = free(at) if below == 0 else -1
        results[name] = {"above": above, "last_error": last, "untouched": untouched, "below": below, "freed": freed}
    return {"kinds": results, "after": seen()}


def neighbour(size: int) -> Dict[str, Any]:
    right = product()
    kept = torch.full((size,), 7, dtype=torch.uint8, device="cuda")
    print("ready", flush=True)
    count = wrong = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        wrong += product() != right
        count += 1
    return {"products": count, "wrong": wrong, "is_right": bool((kept == 7).all().item()), "seen": seen()}


def main() -> None:
    what, *rest = sys.argv[1:]
    answer = {"fill": fill, "kinds": kinds, "neighbour": neighbour}[what](*map(int, rest))
    print(json.dumps(answer), flush=True)


main()
