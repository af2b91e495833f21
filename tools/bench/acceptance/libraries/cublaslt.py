"""cuBLASLt: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import SIZE, Product, find
from probe import call

VENDOR = "nvidia"
LIBRARIES = ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so")
COMPUTE_32F, REAL_32F = 68, 0


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Product):
    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle, self.what, self.layout = library, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call(library, "cublasLtCreate", ctypes.byref(self.handle))
        call(library, "cublasLtMatmulDescCreate", ctypes.byref(self.what), COMPUTE_32F, REAL_32F)
        call(library, "cublasLtMatrixLayoutCreate", ctypes.byref(self.layout), REAL_32F, ctypes.c_uint64(SIZE), ctypes.c_uint64(SIZE),
             ctypes.c_int64(SIZE))

    def multiply(self) -> None:
        call(self.library, "cublasLtMatmul", self.handle, self.what, ctypes.byref(self.one), self.memory[0], self.layout, self.memory[1],
             self.layout, ctypes.byref(self.zero), self.memory[2], self.layout, self.memory[2], self.layout, None, None,
             ctypes.c_size_t(0), self.stream)
