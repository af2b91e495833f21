"""Kernels and copies on the first GPU through HIP's or CUDA's driver library, by ctypes alone: the programs of acceptance
need neither a compiler nor PyTorch. HIP's own compiler (hiprtc) or CUDA's driver makes the kernel from the text here.

A kernel runs for about the requested time: it counts its own steps instead of reading a clock, so that it takes longer if
others use the GPU. It has the name of the software GPU's kernel that only takes time.

Thread rule: each thread that uses it calls `use` first; calls of several threads do not disturb each other.
"""

import contextlib
import ctypes
import hashlib
import os
import re
from typing import Callable, List, Optional, Tuple

from hsa_queue import half_mask
from probe import CUDA, HIP, NoGpu, call, load

KERNEL = b"softgpu_spin_us"
THREADS, BLOCKS_PER_UNIT = 1024, 2  # these fill a compute unit or multiprocessor
STEPS = 16  # of a round
BLOCKING = 4  # a waiting host sleeps: hipDeviceScheduleBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC
# By device: clock rate in kHz and number of units; hipDeviceAttribute_t, CUdevice_attribute.
HIP_ATTRIBUTES, CUDA_ATTRIBUTES = (5, 63), (13, 16)
# Cycles that a step takes with a full unit: threads over lanes.
HIP_CYCLES, CUDA_CYCLES = 32, 16

# An environment variable, for HIP alone, and its values: what all streams get that are not the default one.
QUEUE = "ACCEPTANCE_QUEUE"
HIGH, LOW, HALF = "high", "low", "half"  # priority; half of the compute units

# An environment variable: the folder, private to a report, in which its programs find kernels that an earlier one compiled. Programs
# with another LD_PRELOAD compile their own, so that the compiler is used under xschedd, too.
CODE = "ACCEPTANCE_CODE"

HIP_TEXT = f"""
extern "C" __global__ void {KERNEL.decode()}(unsigned long long us, unsigned long long rounds, float* never) {{
  float value = threadIdx.x;
  for (unsigned long long round = 0; round < rounds; ++round) {{
#pragma unroll
    for (int step = 0; step < {STEPS}; ++step)
      value = __builtin_fmaf(value, 0.5f, 0.5f);
  }}
  if (value < 0.0f) *never = value;
}}
""".encode()

STEP = "  fma.rn.f32 %value, %value, %half, %half;\n"
PTX_TEXT = f"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry {KERNEL.decode()}(.param .u64 us, .param .u64 rounds, .param .u64 never)
{{
  .reg .u64 %left, %address;
  .reg .u32 %thread;
  .reg .f32 %value, %half;
  .reg .pred %is;
  ld.param.u64 %left, [rounds];
  ld.param.u64 %address, [never];
  cvta.to.global.u64 %address, %address;
  mov.u32 %thread, %tid.x;
  cvt.rn.f32.u32 %value, %thread;
  mov.f32 %half, 0f3F000000;
ROUND:
  setp.eq.u64 %is, %left, 0;
  @%is bra DONE;
{STEP * STEPS}  sub.u64 %left, %left, 1;
  bra ROUND;
DONE:
  setp.lt.f32 %is, %value, 0f00000000;
  @!%is bra END;
  st.global.f32 [%address], %value;
END:
  ret;
}}
""".encode()


class Launch:
    """A kernel with its arguments, ready to be launched again and again: so a launch costs only the runtime's call."""

    def __init__(self, go: Callable[[], int], name: str, keep: tuple):
        self.go, self._name, self._keep = go, name, keep

    def __call__(self) -> None:
        status = self.go()
        if status != 0:
            raise NoGpu(f"{self._name} says {status}")


def pointers_to(values: tuple) -> ctypes.Array:
    """A kernel's arguments as both runtimes take them; the values must live until the call."""
    return (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values])


def shape_of(blocks: int, threads: int) -> List[ctypes.c_uint]:
    """Grid, block and shared memory of a launch in one dimension."""
    return [ctypes.c_uint(number) for number in (blocks, 1, 1, threads, 1, 1, 0)]


class Gpu:
    """`prefix`: begins the name of every call; `launch_name` includes it, other names do not."""

    vendor, prefix, launch_name = "", "", ""
    stream_name, allocate_name = "", ""

    def __init__(self) -> None:
        self.khz, self.units, self.cycles = 0, 0, 1
        self.function = ctypes.c_void_p()
        self.never = ctypes.c_void_p()

    def call(self, name: str, *arguments: object) -> None:
        call(self.library, self.prefix + name, *arguments)

    def use(self) -> None:
        """Called first in each further thread."""

    def stream(self) -> ctypes.c_void_p:
        """A stream that does not wait for the default stream."""
        stream = ctypes.c_void_p()
        self.call(self.stream_name, ctypes.byref(stream), ctypes.c_uint(1))
        return stream

    def allocate(self, size: int) -> ctypes.c_void_p:
        memory = ctypes.c_void_p()
        self.call(self.allocate_name, ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def queue_to_host(self, data: ctypes.Array, memory: ctypes.c_void_p, stream: Optional[ctypes.c_void_p] = None) -> None:
        raise NotImplementedError

    def to_host(self, data: ctypes.Array, memory: ctypes.c_void_p, stream: Optional[ctypes.c_void_p] = None) -> None:
        """Copies and waits until the data has arrived."""
        self.queue_to_host(data, memory, stream)
        self.wait(stream)

    def wait(self, stream: Optional[ctypes.c_void_p] = None) -> None:
        self.call("StreamSynchronize", stream)

    def loaded(self, code: object, kernel: bytes) -> Tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """A module and its kernel."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("ModuleLoadData", ctypes.byref(module), code)
        self.call("ModuleGetFunction", ctypes.byref(function), module, kernel)
        return module, function

    def launch_of(self, microseconds: int, stream: Optional[ctypes.c_void_p] = None, fills: bool = True) -> Launch:
        """`stream`: None: the default one. `fills`: whether it uses the whole GPU, or one block."""
        rounds = microseconds * self.khz // 1000 // (STEPS * self.cycles)
        values = (ctypes.c_uint64(microseconds), ctypes.c_uint64(rounds), self.never)
        pointers = pointers_to(values)
        function = getattr(self.library, self.launch_name)
        shape = shape_of(self.units * BLOCKS_PER_UNIT, THREADS) if fills else shape_of(1, 64)
        handle = stream if stream is not None else ctypes.c_void_p()

        def go() -> int:
            return function(self.function, *shape, handle, pointers, None)

        return Launch(go, self.launch_name, (values, pointers))


def said_by_compiler(compiler: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    """In one line."""
    size = ctypes.c_size_t()
    call(compiler, "hiprtcGetProgramLogSize", program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    call(compiler, "hiprtcGetProgramLog", program, log)
    return " ".join(log.value.decode(errors="replace").split()) or "the compiler gave no reason"


class Hip(Gpu):
    vendor, prefix, launch_name = "amd", "hip", "hipModuleLaunchKernel"
    stream_name, allocate_name = "StreamCreateWithFlags", "Malloc"

    def __init__(self) -> None:
        super().__init__()
        self.library = load(HIP)
        count = ctypes.c_int()
        self.call("GetDeviceCount", ctypes.byref(count))
        self.call("SetDevice", 0)
        self.call("SetDeviceFlags", ctypes.c_uint(BLOCKING))
        self.khz, self.units = (self.attribute(number) for number in HIP_ATTRIBUTES)
        self.cycles = HIP_CYCLES
        self.never = self.allocate(4)
        self.function = self.loaded(self.compiled(), KERNEL)[1]

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("DeviceGetAttribute", ctypes.byref(value), number, 0)
        return value.value

    def architecture(self) -> bytes:
        """As `gfx90a:sramecc+:xnack-`; empty: not known. Told, because hiprtc asks libamdhip64.so for it, a name that only packages for
        developers install. It is searched for in the properties, whose layout each release changes."""
        properties = ctypes.create_string_buffer(1 << 14)
        newer = "GetDevicePropertiesR0600"
        self.call(newer if hasattr(self.library, self.prefix + newer) else "GetDeviceProperties", properties, 0)
        found = re.search(rb"gfx[0-9a-z]+(?::[a-z]+[+-])*", properties.raw)
        return found.group() if found else b""

    def compiled(self, text: bytes = HIP_TEXT) -> ctypes.Array:
        """Compiled for the GPU in use, or found where an earlier program left it."""
        folder, arch = os.environ.get(CODE), self.architecture()
        if not folder:
            return self.compile(text, arch)
        which = b"\0".join((text, arch, os.environ.get("LD_PRELOAD", "").encode()))
        path = os.path.join(folder, f"{hashlib.sha256(which).hexdigest()}.co")
        try:
            with open(path, "rb") as file:
                code = file.read()
            return (ctypes.c_char * len(code)).from_buffer_copy(code)
        except OSError:
            code = self.compile(text, arch)
        with contextlib.suppress(OSError):  # no space, or another program left it first
            with open(f"{path}.{os.getpid()}", "xb") as file:
                file.write(code)
            os.rename(file.name, path)  # so that nobody reads a part
        return code

    def compile(self, text: bytes, arch: bytes) -> ctypes.Array:
        """By hiprtc, which is part of the HIP library before ROCm 6, and a library of its own since. `arch`: empty: hiprtc finds it."""
        compiler = self.library
        if not hasattr(compiler, "hiprtcCompileProgram"):
            compiler = load(("libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6"))
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        wanted = [b"--offload-arch=" + arch] if arch else []
        options = (ctypes.c_char_p * len(wanted))(*wanted)
        call(compiler, "hiprtcCreateProgram", ctypes.byref(program), text, b"acceptance.hip", 0, None, None)
        try:
            call(compiler, "hiprtcCompileProgram", program, len(options), options)
        except NoGpu as error:
            raise NoGpu(f"{error}: {said_by_compiler(compiler, program)}") from error
        call(compiler, "hiprtcGetCodeSize", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        call(compiler, "hiprtcGetCode", program, code)
        call(compiler, "hiprtcDestroyProgram", ctypes.byref(program))
        return code

    def use(self) -> None:
        self.call("SetDevice", 0)

    def stream(self) -> ctypes.c_void_p:
        queue, stream = os.environ.get(QUEUE, ""), ctypes.c_void_p()
        if queue == HALF:
            mask = half_mask(self.units)
            self.call("ExtStreamCreateWithCUMask", ctypes.byref(stream), ctypes.c_uint32(len(mask)), mask)
        elif queue:
            least, greatest = ctypes.c_int(), ctypes.c_int()
            self.call("DeviceGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
            self.call("StreamCreateWithPriority", ctypes.byref(stream), ctypes.c_uint(1), greatest if queue == HIGH else least)
        else:
            return super().stream()
        return stream

    def to_device(self, memory: ctypes.c_void_p, data: ctypes.Array, stream: Optional[ctypes.c_void_p] = None) -> None:
        self.call("MemcpyAsync", memory, data, ctypes.c_size_t(len(data)), 1, stream)

    def queue_to_host(self, data: ctypes.Array, memory: ctypes.c_void_p, stream: Optional[ctypes.c_void_p] = None) -> None:
        self.call("MemcpyAsync", data, memory, ctypes.c_size_t(len(data)), 2, stream)


class Cuda(Gpu):
    vendor, prefix, launch_name = "nvidia", "cu", "cuLaunchKernel"
    stream_name, allocate_name = "StreamCreate", "MemAlloc_v2"

    def __init__(self) -> None:
        super().__init__()
        self.library = load(CUDA)
        self.call("Init", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("DeviceGet", ctypes.byref(device), 0)
        self.call("DevicePrimaryCtxSetFlags_v2", device, ctypes.c_uint(BLOCKING))
        self.call("DevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.use()
        values: List[int] = []
        for number in CUDA_ATTRIBUTES:
            value = ctypes.c_int()
            self.call("DeviceGetAttribute", ctypes.byref(value), number, device)
            values.append(value.value)
        (self.khz, self.units), self.cycles = values, CUDA_CYCLES
        self.never = self.allocate(4)
        self.function = self.loaded(ctypes.c_char_p(PTX_TEXT), KERNEL)[1]

    def use(self) -> None:
        self.call("CtxSetCurrent", self.context)

    def to_device(self, memory: ctypes.c_void_p, data: ctypes.Array, stream: Optional[ctypes.c_void_p] = None) -> None:
        self.call("MemcpyHtoDAsync_v2", memory, data, ctypes.c_size_t(len(data)), stream)

    def queue_to_host(self, data: ctypes.Array, memory: ctypes.c_void_p, stream: Optional[ctypes.c_void_p] = None) -> None:
        self.call("MemcpyDtoHAsync_v2", data, memory, ctypes.c_size_t(len(data)), stream)


def open_gpu() -> Gpu:
    """The first GPU, of either vendor."""
    reasons = []
    for vendor in (Cuda, Hip):
        try:
            return vendor()
        except (NoGpu, AttributeError) as error:
            reasons.append(str(error))
    raise NoGpu("; ".join(reasons))
