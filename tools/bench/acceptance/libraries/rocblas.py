"""rocBLAS: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import SIZE, Product, find
from probe import call

VENDOR = "amd"
LIBRARIES = ("librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0", "librocblas.so")


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Product):
    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle = library, ctypes.c_void_p()
        call(library, "rocblas_create_handle", ctypes.byref(self.handle))
        call(library, "rocblas_set_stream", self.handle, stream)

    def multiply(self) -> None:
        call(self.library, "rocblas_sgemm", self.handle, 111, 111, SIZE, SIZE, SIZE, ctypes.byref(self.one), self.memory[0], SIZE, self.memory[1], SIZE,
             ctypes.byref(self.zero), self.memory[2], SIZE)
