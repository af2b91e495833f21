"""A Python program with GPU work (HIP through ctypes) that calls the package xschedd: each line of standard input is an
expression, answered with the repr of its value. `launch(stream, micros)` and `wait()` are work; `stream` is a stream
with the attribute that torch's has. Prints "ready" once it has attached.
"""

import ctypes
import os
import sys

import xschedd  # noqa: F401


def load():
    for name in ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"):
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_LOCAL)
        except OSError as error:
            failure = error
    raise failure


def check(status, what):
    if status != 0:
        raise SystemExit(f"{what} gave error {status}")


class TorchStream:
    def __init__(self):
        handle = ctypes.c_void_p()
        check(hip.hipStreamCreateWithFlags(ctypes.byref(handle), 1), "hipStreamCreateWithFlags")
        self.cuda_stream = handle.value

    def destroy(self):
        check(hip.hipStreamDestroy(ctypes.c_void_p(self.cuda_stream)), "hipStreamDestroy")


hip = load()
module, function, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(hip.hipModuleLoad(ctypes.byref(module), os.environ["HOST_CODE_OBJECT"].encode()), "hipModuleLoad")
check(hip.hipModuleGetFunction(ctypes.byref(function), module, b"scale_add"), "hipModuleGetFunction")
check(hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(4 * 256)), "hipMalloc")


def launch(on, micros):
    values = (memory, memory, ctypes.c_uint32(1), ctypes.c_uint32(256), ctypes.c_uint64(micros))
    parameters = (ctypes.c_void_p * 5)(*(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values))
    handle = ctypes.c_void_p(on.cuda_stream if on is not None else None)
    check(hip.hipModuleLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, handle, parameters, None), "hipModuleLaunchKernel")


def wait():
    check(hip.hipDeviceSynchronize(), "hipDeviceSynchronize")


stream = TorchStream()
launch(stream, 1)
wait()
print("ready", flush=True)
for line in sys.stdin:
    print(repr(eval(line)), flush=True)
