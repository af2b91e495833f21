"""hipBLASLt: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import Absent, BlasLt, find

VENDOR = "amd"
LIBRARIES = ("libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so")
RESULT_BYTES = 1024  # more than hipblasLtMatmulHeuristicResult_t, which begins with the algorithm


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(BlasLt):
    PREFIX, COMPUTE_32F = "hipblasLt", 2

    def choose(self) -> ctypes.Array:
        preference, count, algorithm = ctypes.c_void_p(), ctypes.c_int(), ctypes.create_string_buffer(RESULT_BYTES)
        self.call("MatmulPreferenceCreate", ctypes.byref(preference))
        self.call("MatmulAlgoGetHeuristic", self.handle, self.what, self.layout, self.layout, self.layout, self.layout, preference, 1,
                  algorithm, ctypes.byref(count))
        if count.value == 0:
            raise Absent("hipBLASLt has no algorithm for this GPU")
        return algorithm
