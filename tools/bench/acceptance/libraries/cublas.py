"""cuBLAS: a product of small matrices.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import SIZE, Product, find
from probe import call

VENDOR = "nvidia"
LIBRARIES = ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so")


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Product):
    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle = library, ctypes.c_void_p()
        call(library, "cublasCreate_v2", ctypes.byref(self.handle))
        call(library, "cublasSetStream_v2", self.handle, stream)

    def multiply(self) -> None:
        call(self.library, "cublasSgemm_v2", self.handle, 0, 0, SIZE, SIZE, SIZE, ctypes.byref(self.one), self.memory[0], SIZE, self.memory[1], SIZE,
             ctypes.byref(self.zero), self.memory[2], SIZE)
