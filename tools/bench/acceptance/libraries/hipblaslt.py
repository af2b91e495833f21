"""hipBLASLt: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import SIZE, Absent, Product, find
from probe import call

VENDOR = "amd"
LIBRARIES = ("libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so")
COMPUTE_32F, REAL_32F = 2, 0
RESULT_BYTES = 1024  # more than hipblasLtMatmulHeuristicResult_t, which begins with the algorithm


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Product):
    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle, self.what, self.layout = library, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        preference, count = ctypes.c_void_p(), ctypes.c_int()
        self.algorithm = ctypes.create_string_buffer(RESULT_BYTES)
        call(library, "hipblasLtCreate", ctypes.byref(self.handle))
        call(library, "hipblasLtMatmulDescCreate", ctypes.byref(self.what), COMPUTE_32F, REAL_32F)
        call(library, "hipblasLtMatrixLayoutCreate", ctypes.byref(self.layout), REAL_32F, ctypes.c_uint64(SIZE), ctypes.c_uint64(SIZE),
             ctypes.c_int64(SIZE))
        call(library, "hipblasLtMatmulPreferenceCreate", ctypes.byref(preference))
        call(library, "hipblasLtMatmulAlgoGetHeuristic", self.handle, self.what, self.layout, self.layout, self.layout, self.layout,
             preference, 1, self.algorithm, ctypes.byref(count))
        if count.value == 0:
            raise Absent("hipBLASLt has no algorithm for this GPU")

    def multiply(self) -> None:
        call(self.library, "hipblasLtMatmul", self.handle, self.what, ctypes.byref(self.one), self.memory[0], self.layout, self.memory[1],
             self.layout, ctypes.byref(self.zero), self.memory[2], self.layout, self.memory[2], self.layout, self.algorithm, None,
             ctypes.c_size_t(0), self.stream)
