"""A program that uses HIP, with the package's shim preloaded: for each line that it reads, it launches one kernel and prints
"STATUS CALLS". HIP is a fake (tests/unit/shim), because the package is tested, not the device."""

import ctypes
import pathlib
import sys


class Dim3(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in "xyz"]


hip = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libamdhip64.so.98.fake")), mode=ctypes.RTLD_LOCAL)
one = Dim3(1, 1, 1)
for _ in sys.stdin:
    status = hip.hipLaunchKernel(None, one, one, None, ctypes.c_size_t(0), None)
    print(status, ctypes.c_int.in_dll(hip, "fake_hip_calls").value, flush=True)
