"""Opens every GPU through HIP's or CUDA's driver library, as any program does, and prints what it found as one line of
JSON; a separate program, so that a library that crashes ends only this process. With --stay it then waits until its
standard input ends, so that the daemon still lists it.

Thread rule: main thread.
"""

import ctypes
import json
import sys
from typing import Dict, List, Tuple

HIP = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")
CUDA = ("libcuda.so.1",)
BYTES = 1 << 16


# The meaning of the drivers' status codes, for whoever must act on them.
SEES_NONE = "it sees no GPU"
HIP_MEANINGS = {3: "it cannot be initialized", 35: "the driver is too old for this runtime", 100: SEES_NONE}
CUDA_MEANINGS = {3: "it cannot be initialized", 46: "another program has the GPU for itself (exclusive mode)", 100: SEES_NONE,
                 802: "the fabric manager does not run", 803: "libcuda.so.1 is not that of the loaded driver",
                 804: "the driver is too old for this libcuda.so.1"}


class NoGpu(Exception):
    pass


def load(names: Tuple[str, ...]) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise NoGpu(f"no {names[0]}")


def call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise NoGpu(said(name, status))


def said(name: str, status: int) -> str:
    meaning = (CUDA_MEANINGS if name.startswith("cu") else HIP_MEANINGS).get(status)
    return f"{name} says {status}" + (f": {meaning}" if meaning else "")


def hip() -> Dict[str, object]:
    library = load(HIP)
    count, number = ctypes.c_int(), ctypes.c_int()
    call(library, "hipGetDeviceCount", ctypes.byref(count))
    call(library, "hipRuntimeGetVersion", ctypes.byref(number))
    gpus: List[Dict[str, str]] = []
    for index in range(count.value):
        name, address, memory = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32), ctypes.c_void_p()
        call(library, "hipSetDevice", index)
        call(library, "hipDeviceGetName", name, 256, index)
        call(library, "hipDeviceGetPCIBusId", address, 32, index)
        stream = ctypes.c_void_p()
        call(library, "hipMalloc", ctypes.byref(memory), ctypes.c_size_t(BYTES))
        call(library, "hipStreamCreate", ctypes.byref(stream))
        call(library, "hipMemsetAsync", memory, 90, ctypes.c_size_t(BYTES), stream)
        call(library, "hipStreamSynchronize", stream)
        back = ctypes.create_string_buffer(BYTES)
        call(library, "hipMemcpy", back, memory, ctypes.c_size_t(BYTES), 2)
        gpus.append({"name": name.value.decode(errors="replace"), "pci": address.value.decode().lower(),
                     "memory": "ok" if back.raw == bytes([90]) * BYTES else "wrong"})
    return {"vendor": "amd", "runtime": f"HIP {number.value}", "gpus": gpus}


def cuda() -> Dict[str, object]:
    library = load(CUDA)
    count, number = ctypes.c_int(), ctypes.c_int()
    call(library, "cuInit", 0)
    call(library, "cuDeviceGetCount", ctypes.byref(count))
    call(library, "cuDriverGetVersion", ctypes.byref(number))
    gpus: List[Dict[str, str]] = []
    for index in range(count.value):
        name, address, device = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32), ctypes.c_int()
        context, memory, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call(library, "cuDeviceGet", ctypes.byref(device), index)
        call(library, "cuDeviceGetName", name, 256, device)
        call(library, "cuDeviceGetPCIBusId", address, 32, device)
        call(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call(library, "cuCtxSetCurrent", context)
        call(library, "cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(BYTES))
        call(library, "cuStreamCreate", ctypes.byref(stream), 1)
        call(library, "cuMemsetD8Async", memory, ctypes.c_ubyte(90), ctypes.c_size_t(BYTES), stream)
        call(library, "cuStreamSynchronize", stream)
        back = ctypes.create_string_buffer(BYTES)
        call(library, "cuMemcpyDtoH_v2", back, memory, ctypes.c_size_t(BYTES))
        gpus.append({"name": name.value.decode(errors="replace"), "pci": address.value.decode().lower(),
                     "memory": "ok" if back.raw == bytes([90]) * BYTES else "wrong"})
    return {"vendor": "nvidia", "runtime": f"CUDA {number.value // 1000}.{number.value % 1000 // 10}", "gpus": gpus}


def main() -> None:
    reasons = []
    found: List[Dict[str, object]] = []
    for look in (hip, cuda):
        try:
            answer = look()
            if answer["gpus"]:
                found.append(answer)
        except (NoGpu, AttributeError) as error:
            reasons.append(str(error))
    print(json.dumps({"found": found, "reasons": reasons}), flush=True)
    if "--stay" in sys.argv:
        sys.stdin.read()


if __name__ == "__main__":
    main()
