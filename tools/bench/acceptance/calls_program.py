#!/usr/bin/env python3
"""A program of *harmless*. usage: calls_program.py SEED [--stay]. Eight threads make the calls of sequence.py on the first GPU.
It prints `begun`, and at its end the digest of all memory, as JSON. With --stay it waits for a line after `begun`, so that it is
a client by then, and at the end until its standard input ends, so that the daemon still lists it.

A step that uses a buffer first waits, through an event, for the stream that used it last, so without a fault the result is
always the same.

Thread rule: main thread; a lane belongs to its thread, and callbacks come from the runtime's.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import sys
import threading
import time
from typing import Callable, List

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE]

import kernels  # noqa: E402
import sequence  # noqa: E402
from breaks import BROKEN, leave_xschedd  # noqa: E402
from probe import NoGpu, call  # noqa: E402

WORDS, BLOCK, ROUNDS = 1 << 14, 256, 2000
BYTES, HALF = WORDS * 4, WORDS * 2
MIX = b"softgpu_mix"  # the software GPU has a host function for it
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
STREAM_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)  # ROCm 5.2 has only these

# A launch that is lost, doubled or out of order changes the result.
HIP_TEXT = f"""
extern "C" __global__ void {MIX.decode()}(unsigned int* data, unsigned int salt, unsigned int rounds) {{
  unsigned int at = blockIdx.x * blockDim.x + threadIdx.x, value = data[at];
  for (unsigned int round = 0; round < rounds; ++round) value = value * 1664525u + (salt ^ at);
  data[at] = value;
}}
""".encode()
PTX_TEXT = f"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry {MIX.decode()}(.param .u64 data, .param .u32 salt, .param .u32 rounds)
{{
  .reg .u64 %address, %offset;
  .reg .u32 %at, %block, %size, %thread, %value, %salt, %left;
  .reg .pred %is;
  ld.param.u64 %address, [data];
  ld.param.u32 %salt, [salt];
  ld.param.u32 %left, [rounds];
  cvta.to.global.u64 %address, %address;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %at, %block, %size, %thread;
  mul.wide.u32 %offset, %at, 4;
  add.u64 %address, %address, %offset;
  ld.global.u32 %value, [%address];
  xor.b32 %salt, %salt, %at;
ROUND:
  setp.eq.u32 %is, %left, 0;
  @%is bra DONE;
  mad.lo.u32 %value, %value, 1664525, %salt;
  sub.u32 %left, %left, 1;
  bra ROUND;
DONE:
  st.global.u32 [%address], %value;
  ret;
}}
""".encode()


def filled(number: int) -> ctypes.Array:
    block = hashlib.sha256(number.to_bytes(8, "little")).digest()
    return (ctypes.c_ubyte * BYTES).from_buffer_copy(block * (BYTES // len(block)))


class Calls:
    """Calls of both runtimes that kernels.Gpu lacks."""

    def __init__(self, gpu: kernels.Gpu):
        self.gpu, self.is_hip = gpu, gpu.vendor == "amd"
        self.code = gpu.compiled(HIP_TEXT) if self.is_hip else ctypes.c_char_p(PTX_TEXT)
        # HIP 6 refuses calls on the default stream that wait (906, hipErrorStreamCaptureImplicit) while any thread captures.
        self.no_capture = threading.Lock() if self.is_hip else contextlib.nullcontext()

    def mix(self, function: ctypes.c_void_p, memory: ctypes.c_void_p, salt: int, stream) -> None:
        values = (memory, ctypes.c_uint(salt), ctypes.c_uint(ROUNDS))
        call(self.gpu.library, self.gpu.launch_name, function, *kernels.shape_of(WORDS // BLOCK, BLOCK), stream,
             kernels.pointers_to(values), None)

    def event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.gpu.call("EventCreateWithFlags" if self.is_hip else "EventCreate", ctypes.byref(event), ctypes.c_uint(2))
        return event

    def copy(self, to: ctypes.c_void_p, start: ctypes.c_void_p, size: int, stream) -> None:
        if self.is_hip:
            self.gpu.call("MemcpyAsync", to, start, ctypes.c_size_t(size), 3, stream)
        else:
            self.gpu.call("MemcpyDtoDAsync_v2", to, start, ctypes.c_size_t(size), stream)

    def memset(self, memory: ctypes.c_void_p, value: int, size: int, stream) -> None:
        self.gpu.call("MemsetAsync" if self.is_hip else "MemsetD8Async", memory, (ctypes.c_int if self.is_hip else ctypes.c_ubyte)(value),
                      ctypes.c_size_t(size), stream)

    def at_once(self, to: object, start: object, is_to_host: bool) -> None:
        if self.is_hip:
            with self.no_capture:
                self.gpu.call("Memcpy", to, start, ctypes.c_size_t(BYTES), 2 if is_to_host else 1)
        else:
            self.gpu.call("MemcpyDtoH_v2" if is_to_host else "MemcpyHtoD_v2", to, start, ctypes.c_size_t(BYTES))

    def call_back(self, function: Callable[..., None], stream) -> object:
        """The caller must keep the returned object until the call has happened."""
        kept = STREAM_CALLBACK(function) if self.is_hip else HOST_FUNCTION(function)
        if self.is_hip:
            self.gpu.call("StreamAddCallback", stream, kept, None, ctypes.c_uint(0))
        else:
            self.gpu.call("LaunchHostFunc", stream, kept, None)
        return kept

    def free(self, memory: ctypes.c_void_p) -> None:
        self.gpu.call("Free" if self.is_hip else "MemFree_v2", memory)

    def begin_capture(self, stream) -> None:
        self.gpu.call("StreamBeginCapture" if self.is_hip else "StreamBeginCapture_v2", stream, 1)  # of this thread

    def instance(self, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        if self.is_hip:
            self.gpu.call("GraphInstantiate", ctypes.byref(made), graph, None, None, ctypes.c_size_t(0))
        else:
            self.gpu.call("GraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_ulonglong(0))
        return made


def shifted(memory: ctypes.c_void_p, offset: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(memory.value + offset)


class Lane:
    def __init__(self, calls: Calls, seed: int, number: int):
        self.calls, self.gpu, self.steps = calls, calls.gpu, sequence.steps(seed, number)
        if BROKEN == "lost" and number == 0:
            self.steps.pop(sequence.last_visible_kernel(self.steps))
        # Not shared: HIP 5.2 to 6.2 sets the arguments of a graph's kernel without the function's lock (DeviceFunc::dflock_), so a
        # launch by another thread may run with them.
        self.function = self.gpu.loaded(calls.code, MIX)[1]
        self.streams = [ctypes.c_void_p(), *(self.gpu.stream() for _ in range(sequence.STREAMS - 1))]
        self.events = [calls.event() for _ in self.streams]
        self.buffers = [self.gpu.allocate(BYTES) for _ in range(sequence.BUFFERS)]
        self.users = [0] * sequence.BUFFERS  # the stream that used each one last
        self.received: List[ctypes.Array] = []
        self.called: List[List[int]] = [[] for _ in self.streams]
        self.keep: List[object] = []  # until the GPU has used it
        for at, buffer in enumerate(self.buffers):
            calls.at_once(buffer, filled(number * sequence.BUFFERS + at), False)

    def take(self, stream: int, *buffers: int) -> None:
        for buffer in buffers:
            if self.users[buffer] != stream:
                used = self.users[buffer]
                self.gpu.call("EventRecord", self.events[used], self.streams[used])
                self.gpu.call("StreamWaitEvent", self.streams[stream], self.events[used], ctypes.c_uint(0))
                self.users[buffer] = stream

    def step(self, step: sequence.Step) -> None:
        calls, stream, memory = self.calls, self.streams[step.stream], self.buffers[step.buffer]
        if step.kind.endswith("at once"):  # on the default stream, for which the host must wait
            self.gpu.wait(self.streams[self.users[step.buffer]])
            self.users[step.buffer] = 0
            data = filled(step.number)
            calls.at_once(*((data, memory, True) if step.kind.startswith("to host") else (memory, data, False)))
            (self.received if step.kind.startswith("to host") else self.keep).append(data)
            return
        both = step.kind == "copy"
        self.take(step.stream, step.buffer, *([step.other] if both else []))
        if step.kind == "kernel":
            calls.mix(self.function, memory, step.number, stream)
        elif step.kind == "to device":
            self.keep.append(filled(step.number))
            self.gpu.to_device(memory, self.keep[-1], stream)
        elif step.kind == "to host":
            self.received.append((ctypes.c_ubyte * BYTES)())
            self.gpu.queue_to_host(self.received[-1], memory, stream)
        elif step.kind == "copy":
            calls.copy(memory, shifted(self.buffers[step.other], HALF), HALF, stream)
        elif step.kind == "memset":
            calls.memset(shifted(memory, step.number % HALF), step.number % 251, 1000, stream)
        elif step.kind == "callback":
            called, number = self.called[step.stream], step.number
            self.keep.append(calls.call_back(lambda *_: called.append(number), stream))
        elif step.kind == "allocate":
            more = self.gpu.allocate(BYTES)
            calls.copy(more, memory, BYTES, stream)
            calls.mix(self.function, more, step.number, stream)
            calls.copy(memory, shifted(more, 256), HALF, stream)
            self.gpu.wait(stream)  # other streams' work continues
            calls.free(more)
        elif step.kind == "graph":
            self.graph(step, stream, memory)
        elif step.kind == "module":
            module, function = self.gpu.loaded(calls.code, MIX)
            calls.mix(function, memory, step.number, stream)
            self.gpu.wait(stream)
            self.gpu.call("ModuleUnload", module)

    def graph(self, step: sequence.Step, stream, memory: ctypes.c_void_p) -> None:
        calls, graph = self.calls, ctypes.c_void_p()
        with calls.no_capture:
            calls.begin_capture(stream)
            calls.mix(self.function, memory, step.number, stream)
            calls.copy(memory, shifted(memory, HALF), HALF // 2, stream)
            calls.mix(self.function, memory, step.number + 1, stream)
            self.gpu.call("StreamEndCapture", stream, ctypes.byref(graph))
        instance = calls.instance(graph)
        for _ in range(1 + step.number % 3):
            self.gpu.call("GraphLaunch", instance, stream)
        self.gpu.wait(stream)
        self.gpu.call("GraphExecDestroy", instance)
        self.gpu.call("GraphDestroy", graph)

    def work(self, failures: List[str]) -> None:
        try:
            self.gpu.use()
            for step in self.steps:
                self.step(step)
            for stream in self.streams:
                self.gpu.wait(stream)
        except (NoGpu, AttributeError) as error:
            failures.append(str(error))

    def digest(self) -> bytes:
        made = hashlib.sha256(repr(self.called).encode())
        for buffer in self.buffers:
            data = (ctypes.c_ubyte * BYTES)()
            self.calls.at_once(data, buffer, True)
            made.update(data)
        for data in self.received:
            made.update(data)
        return made.digest()


def main() -> int:
    leave_xschedd()
    calls = Calls(kernels.open_gpu())
    lanes = [Lane(calls, int(sys.argv[1]), number) for number in range(sequence.LANES)]
    print("begun", flush=True)
    if "--stay" in sys.argv:
        sys.stdin.readline()
    if BROKEN == "crash":
        os.abort()
    if BROKEN == "hang":
        time.sleep(3600)
    failures: List[str] = ["broken on purpose"] if BROKEN == "status" else []
    threads = [threading.Thread(target=lane.work, args=(failures,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        print(failures[0], file=sys.stderr)
        return 1
    digest = hashlib.sha256(b"".join(lane.digest() for lane in lanes)).hexdigest()
    print(json.dumps({"digest": digest}), flush=True)
    if "--stay" in sys.argv:
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
