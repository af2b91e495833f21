"""cuDNN: a softmax.

Thread rule: a Work belongs to the thread that made it.
"""

import ctypes

from libraries.common import SIZE, Softmax, find
from probe import call

VENDOR = "nvidia"
LIBRARIES = ("libcudnn.so.9", "libcudnn.so.8", "libcudnn.so")
ROWS, FLOAT, ACCURATE, OF_CHANNELS = 0, 0, 1, 1


def load() -> ctypes.CDLL:
    return find(LIBRARIES)


class Work(Softmax):
    def __init__(self, library: ctypes.CDLL, gpu, stream, salt: int):
        super().__init__(gpu, stream, salt)
        self.library, self.handle, self.layout = library, ctypes.c_void_p(), ctypes.c_void_p()
        call(library, "cudnnCreate", ctypes.byref(self.handle))
        call(library, "cudnnSetStream", self.handle, stream)
        call(library, "cudnnCreateTensorDescriptor", ctypes.byref(self.layout))
        call(library, "cudnnSetTensor4dDescriptor", self.layout, ROWS, FLOAT, SIZE, SIZE, 1, 1)

    def compute(self) -> None:
        call(self.library, "cudnnSoftmaxForward", self.handle, ACCURATE, OF_CHANNELS, ctypes.byref(self.one), self.layout, self.memory[0],
             ctypes.byref(self.zero), self.layout, self.memory[1])
