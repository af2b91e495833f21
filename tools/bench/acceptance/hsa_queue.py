"""A queue of this process below HIP, and the two levers that AMD's runtime has on it: both may be changed while it lives.

Facts: hsa/hsa.h and hsa/hsa_ext_amd.h of ROCm 5.2 to 7.2. Thread rule: one thread.
"""

import ctypes

from probe import NoGpu, call, load

HSA = ("libhsa-runtime64.so.1", "libhsa-runtime64.so")
AGENT_DEVICE, DEVICE_GPU = 17, 1  # HSA_AGENT_INFO_DEVICE, HSA_DEVICE_TYPE_GPU
SIZE, MULTI_PRODUCER, ANY_SIZE = 4096, 0, 0xFFFFFFFF
PRIORITIES = (0, 2)  # HSA_AMD_QUEUE_PRIORITY_LOW, _HIGH
WORD = 32
# The runtime passes an agent, a struct of one 64-bit handle, as such a number.
ON_AGENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)


def mask_of(used: int, units: int) -> ctypes.Array:
    """The first `used` of the compute units, in whole words."""
    words, bits = (units + WORD - 1) // WORD, (1 << used) - 1
    return (ctypes.c_uint32 * words)(*(bits >> WORD * word & 0xFFFFFFFF for word in range(words)))


def half_mask(units: int) -> ctypes.Array:
    return mask_of(max(1, units // 2), units)


class HsaQueue:
    """Made on the first GPU; nothing is ever put into it."""

    def __init__(self, units: int):
        self.library = load(HSA)
        self._masks = [half_mask(units), mask_of(units, units)]
        self._changes = 0
        self._handle = ctypes.c_void_p()
        call(self.library, "hsa_init")
        gpus = []

        @ON_AGENT
        def keep_gpu(agent, _data):
            kind = ctypes.c_uint32()
            status = self.library.hsa_agent_get_info(ctypes.c_uint64(agent), AGENT_DEVICE, ctypes.byref(kind))
            if status == 0 and kind.value == DEVICE_GPU:
                gpus.append(agent)
            return status

        call(self.library, "hsa_iterate_agents", keep_gpu, None)
        if not gpus:
            raise NoGpu("hsa_iterate_agents: it sees no GPU")
        call(self.library, "hsa_queue_create", ctypes.c_uint64(gpus[0]), ctypes.c_uint32(SIZE), MULTI_PRODUCER, None, None,
             ctypes.c_uint32(ANY_SIZE), ctypes.c_uint32(ANY_SIZE), ctypes.byref(self._handle))

    def _turn(self) -> int:
        self._changes += 1
        return self._changes % 2

    def change_priority(self) -> None:
        """Low and high in turns."""
        call(self.library, "hsa_amd_queue_set_priority", self._handle, PRIORITIES[self._turn()])

    def change_mask(self) -> None:
        """Half of the compute units and all in turns."""
        mask = self._masks[self._turn()]
        call(self.library, "hsa_amd_queue_cu_set_mask", self._handle, ctypes.c_uint32(len(mask) * WORD), mask)
