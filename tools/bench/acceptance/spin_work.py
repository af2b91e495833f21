"""The work of acceptance's built-in tenants, as units with the functions of tools/bench/gpu/work.py, with the kernels of
kernels.py. A unit's model gives its shape: `4x2000` is four kernels of 2000 µs each.

Thread rule: main thread; Threads starts others, which end before its step does.
"""

import ctypes
import hashlib
import os
import statistics
import threading
import time
from functools import partial
from typing import Callable, List, Tuple

from hsa_queue import HsaQueue
from kernels import QUEUE, Gpu

BYTES = 1 << 16
BATCH = 64  # launches between two waits
LANES = 8


def shape(model: str) -> Tuple[int, int]:
    count, microseconds = model.split("x")
    return int(count), int(microseconds)


def pattern(seed: int) -> ctypes.Array:
    block = hashlib.sha256(seed.to_bytes(4, "little")).digest()
    return (ctypes.c_ubyte * BYTES).from_buffer_copy(block * (BYTES // len(block)))


class Lane:
    """Kernels on one stream between a copy to the GPU and one back."""

    def __init__(self, gpu: Gpu, model: str, stream, seed: int = 7):
        count, microseconds = shape(model)
        self.gpu, self.stream, self.count = gpu, stream, count
        self.sent, self.received, self.memory = pattern(seed), (ctypes.c_ubyte * BYTES)(), gpu.allocate(BYTES)
        self.launch = gpu.launch_of(microseconds, stream)

    def step(self) -> None:
        self.gpu.to_device(self.memory, self.sent, self.stream)
        for _ in range(self.count):
            self.launch()
        self.gpu.to_host(self.received, self.memory, self.stream)

    def digest(self) -> str:
        self.step()
        return hashlib.sha256(bytes(self.received)).hexdigest()


class Requests(Lane):
    """One request at a time, on the default stream; on another if that shall be a special one."""

    def __init__(self, gpu: Gpu, model: str):
        super().__init__(gpu, model, gpu.stream() if QUEUE in os.environ else None)


class UntilEnd:
    """Work whose steps follow one another until a time."""

    def goes_on(self, end_ns: int) -> bool:
        return time.monotonic_ns() < end_ns


class Loop(UntilEnd):
    """Batches without end, one of them queued while the one before it runs. `launches_ns`: when each launch began and had
    returned, which is late while the gate is shut."""

    def __init__(self, gpu: Gpu, model: str):
        self.lanes = [Lane(gpu, model, gpu.stream()) for _ in range(2)]
        self.launches_ns: List[Tuple[int, int]] = []
        self.number = 0

    def step(self) -> None:
        lane, before = self.lanes[self.number % 2], self.lanes[(self.number + 1) % 2]
        for _ in range(lane.count):
            started = time.monotonic_ns()
            lane.launch()
            self.launches_ns.append((started, time.monotonic_ns()))
        before.gpu.wait(before.stream)
        self.number += 1

    def digest(self) -> str:
        return self.lanes[0].digest()


class Threads:
    """A step of each of eight threads at the same time, each on a stream of its own; the digest is of all their data."""

    def __init__(self, gpu: Gpu, model: str):
        self.gpu, self.failures = gpu, []
        self.lanes = [Lane(gpu, model, gpu.stream(), seed) for seed in range(LANES)]

    def _work(self, lane: Lane) -> None:
        try:
            self.gpu.use()
            lane.step()
        except Exception as error:  # pylint: disable=broad-except # raised again by the thread that waits for it
            self.failures.append(error)

    def step(self) -> None:
        threads = [threading.Thread(target=self._work, args=(lane,)) for lane in self.lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def digest(self) -> str:
        self.step()
        return hashlib.sha256(b"".join(bytes(lane.received) for lane in self.lanes)).hexdigest()


class Launches(UntilEnd):
    """Batches of launches of a kernel that does nothing. `launch_ns`: what one launch of each batch took."""

    def __init__(self, gpu: Gpu, _model: str):
        self.gpu, self.launch = gpu, gpu.launch_of(0, None, False)
        self.launch_ns: List[float] = []

    def step(self) -> None:
        go = self.launch.go
        started = time.perf_counter_ns()
        for _ in range(BATCH):
            go()
        self.launch_ns.append((time.perf_counter_ns() - started) / BATCH)
        self.gpu.wait()

    def digest(self) -> str:
        self.launch()
        self.gpu.wait()
        return ""

    def median_ns(self) -> float:
        return statistics.median(self.launch_ns) if self.launch_ns else 0.0


class Changes(UntilEnd):
    """Changes a lever of a queue again and again. `change_ns`: what each change took."""

    def __init__(self, gpu: Gpu, model: str, change: Callable[[HsaQueue], None]):
        self.pause_s = shape(model)[1] / 1e6
        self.change = partial(change, HsaQueue(gpu.units))
        self.change_ns: List[int] = []

    def step(self) -> None:
        time.sleep(self.pause_s)
        started = time.perf_counter_ns()
        self.change()
        self.change_ns.append(time.perf_counter_ns() - started)

    def digest(self) -> str:
        return ""


KINDS = {"request": Requests, "loop": Loop, "threads": Threads, "launches": Launches, "priorities": partial(Changes, change=HsaQueue.change_priority),
         "masks": partial(Changes, change=HsaQueue.change_mask)}


def make_work(gpu: Gpu, kind: str, model: str):
    return KINDS[kind](gpu, model)
