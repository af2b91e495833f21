"""MIOpen: a softmax.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import SIZE, Softmax, find
from probe import call

VENDOR = "amd"
LIBRARIES = ("libMIOpen.so.1", "libMIOpen.so")
FLOAT = 1


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Softmax):
    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle, self.layout = library, ctypes.c_void_p(), ctypes.c_void_p()
        call(library, "miopenCreateWithStream", ctypes.byref(self.handle), stream)
        call(library, "miopenCreateTensorDescriptor", ctypes.byref(self.layout))
        call(library, "miopenSet4dTensorDescriptor", self.layout, FLOAT, SIZE, SIZE, 1, 1)

    def compute(self) -> None:
        call(self.library, "miopenSoftmaxForward", self.handle, ctypes.byref(self.one), self.layout, self.memory[0],
             ctypes.byref(self.zero), self.layout, self.memory[1])
