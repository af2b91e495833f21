"""The checked work of programs/work.h in Python: HIP through ctypes, loaded locally as by an extension module.
Works with every Python from 3.6 on. Without a mode, as a program:

    hip_work.py LAUNCHES MICROS [MODE]
      plain                        works
      fork | forkserver | spawn    multiprocessing: two workers, one after the other, and a parent that never uses HIP
      subprocess                   works, then runs itself by subprocess
"""
import ctypes
import mmap
import multiprocessing
import os
import subprocess
import sys

COUNT = 256
MASK = 0xffffffff


def load():
    for name in ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"):
        try:
            return ctypes.CDLL(os.environ.get("HOST_HIP", name), mode=ctypes.RTLD_LOCAL)
        except OSError as error:
            failure = error
    raise failure


def check(status, what):
    if status != 0:
        raise SystemExit("%s gave error %d" % (what, status))


def work(least, micros, until_told=True):
    stop = None
    if until_told and os.environ.get("HOST_STOP"):
        with open(os.environ["HOST_STOP"], "rb") as file:
            stop = mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ)
    hip = load()
    size = 4 * COUNT
    Values = ctypes.c_uint32 * COUNT
    x = Values(*(3 * i + 1 for i in range(COUNT)))
    wanted = [7] * COUNT
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    device_x, device_y = ctypes.c_void_p(), ctypes.c_void_p()
    check(hip.hipModuleLoad(ctypes.byref(module), os.environ["HOST_CODE_OBJECT"].encode()), "hipModuleLoad")
    check(hip.hipModuleGetFunction(ctypes.byref(function), module, b"scale_add"), "hipModuleGetFunction")
    check(hip.hipMalloc(ctypes.byref(device_x), ctypes.c_size_t(size)), "hipMalloc")
    check(hip.hipMalloc(ctypes.byref(device_y), ctypes.c_size_t(size)), "hipMalloc")
    check(hip.hipMemcpy(device_x, x, ctypes.c_size_t(size), 1), "hipMemcpy")
    check(hip.hipMemcpy(device_y, Values(*wanted), ctypes.c_size_t(size), 1), "hipMemcpy")
    launches = 0
    while launches < least or (stop is not None and stop[0:1] != b"\1"):
        step, count, duration = ctypes.c_uint32(launches), ctypes.c_uint32(COUNT), ctypes.c_uint64(micros)
        parameters = (ctypes.c_void_p * 5)(*(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in
                                             (device_y, device_x, step, count, duration)))
        check(hip.hipModuleLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, None, parameters, None), "hipModuleLaunchKernel")
        wanted = [(2 * wanted[i] + 3 * i + 1 + launches) & MASK for i in range(COUNT)]
        launches += 1
        if launches % 10 == 0:
            check(hip.hipStreamSynchronize(None), "hipStreamSynchronize")
    got = Values()
    check(hip.hipMemcpy(got, device_y, ctypes.c_size_t(size), 2), "hipMemcpy")
    verdict = "right" if list(got) == wanted else "wrong"
    os.write(1, ("%s: %d launches, %d submissions\n" % (verdict, launches, launches + 3)).encode())
    return verdict == "right"


def in_worker(arguments):
    return work(*arguments)


def main():
    least, micros = int(sys.argv[1]), int(sys.argv[2])
    mode = sys.argv[3] if len(sys.argv) > 3 else "plain"
    if mode == "plain":
        return work(least, micros)
    if mode == "subprocess":
        return work(least, micros, False) and subprocess.call([sys.executable, __file__] + sys.argv[1:3]) == 0
    context = multiprocessing.get_context(mode)
    result = []
    for until_told in (False, True):
        with context.Pool(1) as pool:
            result += pool.map(in_worker, [(least, micros, until_told)])
    return all(result)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
