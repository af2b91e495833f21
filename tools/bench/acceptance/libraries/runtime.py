"""The runtime itself: a graph that is launched again and again, with fills between, on each thread's default stream.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

import calls_program
from libraries.common import Wrong

VENDOR = ""  # either
PER_THREAD = 2  # hipStreamPerThread, CU_STREAM_PER_THREAD
LAUNCHES, FILLED = 8, 1000
QUARTER = calls_program.BYTES // 4


def load() -> None:
    """Nothing to load: its library is open already."""


def fill_of(salt: int, number: int) -> tuple:
    """The place and value of a fill."""
    return number * 4 * FILLED % (calls_program.BYTES - FILLED), (salt + number) % 251


def expected(data: bytes, salt: int) -> bytes:
    made = bytearray(data)
    for number in range(LAUNCHES):
        made = made[QUARTER:] + made[:QUARTER]
        at, value = fill_of(salt, number)
        made[at:at + FILLED] = bytes([value]) * FILLED
    return bytes(made)


class Work:
    """The graph rotates the data by a quarter. It has no kernels: HIP 5.2 leaves a module's kernels out of graphs, and crashes if they
    are launched on a thread's default stream; calls_program.py has them."""

    def __init__(self, _library, gpu, stream, salt: int):
        self.gpu, self.salt, self.calls, self.stream = gpu, salt, calls_program.Calls(gpu), ctypes.c_void_p(PER_THREAD)
        self.memory, spare, graph = gpu.allocate(calls_program.BYTES), gpu.allocate(QUARTER), ctypes.c_void_p()
        self.data = calls_program.filled(salt)
        self.expected = expected(bytes(self.data), salt)
        quarters = [calls_program.shifted(self.memory, QUARTER * number) for number in range(4)]
        self.calls.begin_capture(stream)
        for to, start in zip([spare, *quarters], [*quarters, spare]):
            self.calls.copy(to, start, QUARTER, stream)
        gpu.call("StreamEndCapture", stream, ctypes.byref(graph))
        self.instance = self.calls.instance(graph)

    def once(self) -> bytes:
        self.gpu.to_device(self.memory, self.data, self.stream)
        for number in range(LAUNCHES):
            self.gpu.call("GraphLaunch", self.instance, self.stream)
            at, value = fill_of(self.salt, number)
            self.calls.memset(calls_program.shifted(self.memory, at), value, FILLED, self.stream)
        made = (ctypes.c_ubyte * calls_program.BYTES)()
        self.gpu.to_host(made, self.memory, self.stream)
        if bytes(made) != self.expected:
            raise Wrong("the data after graphs and fills differs from the CPU's")
        return bytes(made)
