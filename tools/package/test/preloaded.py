"""A program that uses HIP, with the package's shim preloaded: for each line that it reads, it launches one kernel and prints
"STATUS REACHED"; REACHED is 1 if HIP was called. HIP is a fake (tests/unit/shim), because the package is tested, not the device.
"""

import ctypes
import pathlib
import sys


class Dim3(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in "xyz"]


hip = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libamdhip64.so.98.fake")), mode=ctypes.RTLD_LOCAL)
calls = ctypes.c_int.in_dll(hip, "fake_hip_calls")
one = Dim3(1, 1, 1)
for _ in sys.stdin:
    before = calls.value  # the shim reads its markers' times meanwhile, and those calls count, too
    status = hip.hipLaunchKernel(None, one, one, None, ctypes.c_size_t(0), None)
    print(status, int(calls.value > before), flush=True)
