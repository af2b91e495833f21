"""A Python process that loads the HIP libraries as a framework's extension modules do: by dlopen, with local symbols, and
works on the default stream: allocation, rocRAND, rocBLAS if installed. Its output is like that of the C++ programs (check.h).

usage: python_host.py [rocblas]
"""

import ctypes
import glob
import os
import sys

calls = failed = 0


def call(function, *arguments):
    global calls, failed
    status = function(*arguments)
    calls += 1
    failed += status != 0
    print(f"{function.__name__}: {status}")
    return status


def load(pattern):
    """The library of the root's own release; RTLD_LOCAL, so that none of its symbols enter the global scope."""
    return ctypes.CDLL(sorted(glob.glob("/usr/lib/x86_64-linux-gnu/" + pattern))[-1], mode=os.RTLD_LOCAL | os.RTLD_NOW)


def finish():
    print(f"{calls} calls, {failed} failed", flush=True)
    sys.stdin.read()
    sys.exit(0 if failed == 0 and calls > 0 else 1)


N = 256
random = load("librocrand.so.?")
hip = load("libamdhip64.so.?")
blas = load("librocblas.so.?") if "rocblas" in sys.argv else None

pointer, size, single = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float
data, generator, handle, one = pointer(), pointer(), pointer(), single(1.0)
call(hip.hipSetDevice, 0)
call(hip.hipMalloc, ctypes.byref(data), size(N * N * 4))
call(hip.hipMemset, data, 0, size(N * N * 4))
call(random.rocrand_create_generator, ctypes.byref(generator), 400)  # ROCRAND_RNG_PSEUDO_DEFAULT
if blas:
    call(blas.rocblas_create_handle, ctypes.byref(handle))
for _ in range(int(os.environ.get("COMPAT_ROUNDS", "20"))):
    call(random.rocrand_generate_normal, generator, data, size(N * N), single(0.0), single(1.0))
    call(random.rocrand_generate_uniform, generator, data, size(N * N))
    if blas:
        none = 111  # rocblas_operation_none
        call(blas.rocblas_sgemm, handle, none, none, N, N, N, ctypes.byref(one), data, N, data, N, ctypes.byref(one), data, N)
        call(blas.rocblas_saxpy, handle, N, ctypes.byref(one), data, 1, data, 1)
    call(hip.hipDeviceSynchronize)
if blas:
    call(blas.rocblas_destroy_handle, handle)
call(random.rocrand_destroy_generator, generator)
call(hip.hipFree, data)
finish()
